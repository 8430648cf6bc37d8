//! The state that a compaction carries for readers that do not read the entries before it.

use super::ContextEdit;
use crate::{
    conversation::tokens::calibration::Calibration,
    ids::{EntryId, ModelRef},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The part of a compaction that only this program writes: the state that the context needs from before the first kept
/// entry.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preserved {
    /// The newest user message, where the cut left it behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_user_message: Option<CarriedMessage>,
    /// Edits of kept entries that came with this compaction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<ContextEdit>,
    /// The session's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// System prompt, tools and settings, as the last `abridged.session` entry has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Value>,
    /// The pins in force, those of kept entries too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<CarriedPin>,
    /// The model that was chosen or answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The number of compactions on the path, this one included.
    #[serde(skip_serializing_if = "is_zero")]
    pub compactions: u64,
    /// The compaction that this one undoes for other programs. Here it is no compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<EntryId>,
    /// Tokens of system prompt, tools and anything else that every request carries, as counted in `tokensAfter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<u64>,
    /// The name of the estimator of `overhead` and `tokensAfter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<String>,
    /// The calibrations of the models that reported, the current one last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calibrations: Vec<CarriedCalibration>,
}

/// A calibration as a compaction carries it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedCalibration {
    /// The model that reported, where its answers name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The name of the estimator that the reports are compared with.
    pub estimator: String,
    /// The calibration.
    pub sums: Calibration,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A pin as a compaction carries it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedPin {
    /// The pins.
    pub entry_id: EntryId,
    /// Its text, where the cut left the entry behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A message that stands in the summary because the cut left it behind.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedMessage {
    /// The entry with the whole text.
    pub entry_id: EntryId,
    /// Its text, perhaps clipped in the middle.
    pub text: String,
}

/// Of what programs keep with a compaction only our own part is read; the line has the rest.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PreserveData {
    #[serde(default, deserialize_with = "ours_or_nothing")]
    abridged: Option<Arc<Preserved>>,
}

/// Another program may have put anything there.
fn ours_or_nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Arc<Preserved>>, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(Preserved::deserialize(value).ok().map(Arc::new))
}

/// A hook's data may be no object at all.
pub(super) fn object_or_nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<PreserveData>, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(PreserveData::deserialize(value).ok())
}

impl PreserveData {
    pub(super) fn ours(&self) -> Option<&Preserved> {
        self.abridged.as_deref()
    }
}
