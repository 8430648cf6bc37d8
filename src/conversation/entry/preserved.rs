//! The state that a compaction carries, so that a reader needs no entry before the first kept one.

use super::{CarriedTodos, ContextEdit, Entry, native::NativeHistory};
use crate::{
    conversation::{spending::Spending, tokens::calibration::Calibration},
    ids::{EntryId, ModelRef},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The field `preserveData.abridged` of a compaction or a reset: the state of the session that comes from entries before the first
/// kept one. Only this program writes it.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preserved {
    /// The newest user message, if it is before the cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_user_message: Option<CarriedMessage>,
    /// The newest messages of the user before the cut, oldest first, which stand in front of the summary. Only in the style
    /// `recent_user_messages`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_messages: Vec<CarriedMessage>,
    /// The edits of kept entries that this compaction makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<ContextEdit>,
    /// The title of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The data of the last `abridged.session` entry: system prompt, tools and settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Value>,
    /// All pins in force, including those of kept entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<CarriedPin>,
    /// The model that was chosen or that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Whether that model was chosen, and not only an answer named it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub model_is_chosen: bool,
    /// The thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The number of compactions on the path, including this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub compactions: u64,
    /// The compaction that this line undoes for other programs. This program does not read such a line as a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<EntryId>,
    /// Whether the session begins with this compaction. What it summarizes is in the parent session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub begins_session: bool,
    /// The reset that this line repeats for other programs. This program does not read such a line as a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<EntryId>,
    /// The part of `tokensAfter` that every request contains: system prompt, tools and the additions of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<u64>,
    /// The name of the estimator of `overhead` and `tokensAfter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<String>,
    /// The calibrations of the models that reported, the current one last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calibrations: Vec<CarriedCalibration>,
    /// The maintenance since the last progress, without this compaction.
    #[serde(skip_serializing_if = "Attempts::is_none")]
    pub attempts: Attempts,
    /// Times that models took for the newest summaries, in milliseconds, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary_times: Vec<u64>,
    /// The open tasks of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<CarriedTodos>,
    /// The number of the first items of `openaiRemoteCompaction.replacementHistory` that stand for the summarized part. The
    /// items behind them repeat kept entries for oh-my-pi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_items: Option<u64>,
    /// The costs of all entries before this compaction, on any branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spending>,
}

/// Counts of maintenance since the last progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempts {
    /// Recoveries of requests that were too long.
    pub overflow: u32,
    /// Recoveries of answers that were cut off.
    pub incomplete: u32,
    /// Compactions, those of recoveries included.
    pub compactions: u32,
    /// Moves to a larger model.
    pub promotions: u32,
}

/// The calibration of one model in a compaction.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedCalibration {
    /// The model that reported. Missing if its answers do not name it.
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

/// A pin in a compaction.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedPin {
    /// The pinned entry.
    pub entry_id: EntryId,
    /// The text of the entry, if the entry is before the cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The newest user message in a compaction. The summary message repeats it, because it is before the cut.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedMessage {
    /// The entry of the message.
    pub entry_id: EntryId,
    /// The text of the message. A long text is clipped in the middle.
    pub text: String,
}

/// The field `preserveData` of a compaction.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", from = "Stored")]
pub(super) struct PreserveData {
    abridged: Option<Arc<Preserved>>,
    native: Option<Arc<NativeHistory>>,
}

/// The parts of `preserveData` that are read. The other parts of other programs are not.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    #[serde(default, deserialize_with = "ours_or_nothing")]
    abridged: Option<Arc<Preserved>>,
    #[serde(default)]
    openai_remote_compaction: Value,
}

impl From<Stored> for PreserveData {
    fn from(Stored { abridged, openai_remote_compaction: native }: Stored) -> Self {
        let ours = abridged.as_ref().and_then(|ours| ours.native_items);
        // A history beside data of this program, without a count, was inherited by another program and is stale.
        let is_stale = abridged.is_some() && ours.is_none();
        let native = Some(native).filter(|native| !native.is_null() && !is_stale);
        Self { native: native.and_then(|native| NativeHistory::read(native, ours)).map(Arc::new), abridged }
    }
}

/// Reads the part of this program. An invalid one counts as missing, because another program may have written it.
fn ours_or_nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Arc<Preserved>>, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(Preserved::deserialize(value).ok().map(Arc::new))
}

/// Reads `preserveData`. A value that is no object counts as missing: hooks write any value.
pub(super) fn object_or_nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<PreserveData>, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(PreserveData::deserialize(value).ok())
}

/// Keys of `preserveData` that no later compaction carries on: ours, and the state that providers made of a conversation
/// for the compaction that has it.
const NOT_CARRIED: &[&str] = &["abridged", "openaiRemoteCompaction", "anthropicCompaction"];

/// The data that a compaction carries for other programs, and that the next one carries on.
#[must_use]
pub fn carried_data(compaction: &Entry) -> Map<String, Value> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Line {
        preserve_data: Option<Value>,
    }
    let line: Line = serde_json::from_str(compaction.line()).unwrap_or_default();
    let Some(Value::Object(mut data)) = line.preserve_data else { return Map::new() };
    data.retain(|key, _| !NOT_CARRIED.contains(&key.as_str()));
    data
}

impl PreserveData {
    pub(super) fn ours(&self) -> Option<&Preserved> {
        self.abridged.as_deref()
    }

    pub(super) fn native(&self) -> Option<&Arc<NativeHistory>> {
        self.native.as_ref()
    }
}
