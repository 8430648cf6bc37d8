//! The state that a compaction carries, so that a reader needs no entry before the first kept one.

use super::{CarriedAgent, CarriedSummary, ContextEdit, Entry, archive::Archive, native::NativeHistory};
use crate::{
    conversation::{spending::Spending, tokens::calibration::Calibration},
    ids::{EntryId, ModelRef},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The field `preserveData.abridged` of a compaction or a reset: the state of the session that comes from entries before the first
/// kept one. Only this program writes it. Beside this state the field names its own entry, see [`Preserved::of_entry`].
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
    pub model: Option<CarriedModel>,
    /// The thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The number of compactions on the path, including this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub compactions: u64,
    /// The compaction whose place this line takes for other programs: one that was undone, or one in a form that they do not
    /// read. This program does not read such a line as a compaction.
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
    /// The state of the agent.
    #[serde(flatten)]
    pub agent: CarriedAgent,
    /// The making of the summary.
    #[serde(flatten)]
    pub summary: CarriedSummary,
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
    /// Turns that were repeated because their failure said nothing about the context.
    #[serde(skip_serializing_if = "is_none")]
    pub repeats: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// The model of a path in a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedModel {
    /// The model.
    #[serde(flatten)]
    pub model: ModelRef,
    /// Whether it was chosen, and not only an answer named it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
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

/// The field `preserveData` of an entry, as far as it is that entry's own.
#[derive(Debug, Clone, Default)]
pub(super) struct PreserveData {
    abridged: Option<Arc<Preserved>>,
    native: Option<Arc<NativeHistory>>,
    archive: Option<Arc<Archive>>,
}

/// The parts of `preserveData` that are read, as a line has them. The other parts of other programs are not read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stored {
    #[serde(default)]
    abridged: Value,
    #[serde(default)]
    openai_remote_compaction: Value,
    #[serde(default)]
    anthropic_compaction: Value,
    #[serde(default)]
    snapcompact: Value,
}

impl Stored {
    /// The data of the entry with this id. oh-my-pi copies `preserveData` into its own compactions: a part of this program
    /// that names another entry is such a copy.
    pub(super) fn of_entry(self, id: &EntryId) -> PreserveData {
        let Self { abridged, openai_remote_compaction: native, anthropic_compaction: block, snapcompact } = self;
        let is_own = match &abridged["entryId"] {
            Value::String(owner) => owner == id.as_str(),
            // Lines of versions that wrote no name. Another program's entry never has an id of this form.
            Value::Null => id.is_of_bits(),
            _ => false,
        };
        // An invalid part counts as missing, because another program may have written it.
        let abridged = Some(abridged).filter(|it| is_own && it.is_object());
        let abridged = abridged.and_then(|abridged| Preserved::deserialize(abridged).ok()).map(Arc::new);
        let ours = abridged.as_ref().and_then(|ours| ours.summary.native_items);
        // A history beside data of this program, without a count, is a hook's or was inherited, and is stale.
        let is_stale = abridged.is_some() && ours.is_none();
        let native = Some(native).filter(|native| !native.is_null() && !is_stale);
        // The summaries of this program stand for an archive before them.
        let archive = Archive::read(&snapcompact).filter(|_| abridged.is_none()).map(Arc::new);
        let of_openai = || native.and_then(|native| NativeHistory::read(native, ours));
        let native = NativeHistory::read_block(block, id).or_else(of_openai);
        PreserveData { native: native.map(Arc::new), abridged, archive }
    }
}

impl Preserved {
    /// The field with this state in the line of an entry, whose id it names.
    #[must_use]
    pub fn of_entry(&self, id: &EntryId) -> Value {
        let mut stored = json!(self);
        stored["entryId"] = json!(id);
        stored
    }
}

/// Reads `preserveData`. A value that is no object counts as missing: hooks write any value.
pub(super) fn object_or_nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Box<Stored>>, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(Stored::deserialize(value).ok().map(Box::new))
}

/// Keys of `preserveData` that no later compaction carries on: ours, the state that providers made of a conversation for
/// the compaction that has it, and oh-my-pi's archive, which belongs to the summary beside it.
const NOT_CARRIED: &[&str] = &["abridged", "openaiRemoteCompaction", "anthropicCompaction", "snapcompact"];

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

    pub(super) fn archive(&self) -> Option<&Archive> {
        self.archive.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Body, Entry, Mirror};
    use super::*;

    fn entry(kind: &str, id: &str, data: &Value) -> Entry {
        let line = json!({"type": kind, "id": id, "summary": "s", "firstKeptEntryId": id, "preserveData": data});
        Entry::parse(line.to_string().into()).expect("an entry")
    }

    #[test]
    fn state_is_that_of_the_entry_that_it_names() {
        let state = Preserved { title: Some("mine".to_owned()), ..Preserved::default() };
        let named = |id: &str| json!({ "abridged": state.of_entry(&id.into()) });
        let titles = |id: &str, data: &Value| {
            ["compaction", "reset_boundary"].map(|kind| entry(kind, id, data).preserved().map(|it| it.title.clone()))
        };
        let mine = Some(Some("mine".to_owned()));
        assert_eq!(titles("c", &named("c")), [mine.clone(), mine]);
        for copied in ["d", "0123456789abcdef"] {
            assert_eq!(titles(copied, &named("c")), [None, None], "a copy in {copied}");
        }
        let mut odd = named("c");
        odd["abridged"]["entryId"] = json!(["c"]);
        assert_eq!(titles("c", &odd), [None, None]);
    }

    #[test]
    fn state_without_a_name_is_that_of_an_entry_with_an_id_of_this_program() {
        let state = json!({"abridged": {"title": "old"}});
        let of = |id: &str| entry("compaction", id, &state).preserved().and_then(|it| it.title.clone());
        assert_eq!(of("0123456789abcdef").as_deref(), Some("old"));
        for other in ["01234567", "0123456789ABCDEF", "0123456789abcdefa", "a1b2c3d4-0000-4000-8000-000000000000"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_copy_of_a_line_for_others_is_a_compaction() {
        for state in [json!({"undone": "c"}), json!({"reset": "r"})] {
            for (name, id) in [(json!("0123456789abcdef"), "0123456789abcdef"), (Value::Null, "0123456789abcdef")] {
                let mut data = json!({ "abridged": state });
                data["abridged"]["entryId"] = name;
                assert!(matches!(entry("compaction", id, &data).body, Body::Mirror(Mirror::Compaction { .. })));
                assert!(matches!(entry("compaction", "01234567", &data).body, Body::Compaction(_)), "{data}");
            }
        }
    }

    #[test]
    fn a_history_beside_a_copy_is_the_one_of_its_compaction() {
        let item = json!({"type": "compaction", "encrypted_content": "c2VjcmV0"});
        let said = json!({"role": "user", "content": "the kept request"});
        let history = json!({"provider": "openai", "replacementHistory": [item, said]});
        let data = json!({"abridged": {"entryId": "c", "nativeItems": 1}, "openaiRemoteCompaction": history});
        let items =
            |id: &str| entry("compaction", id, &data).compaction().and_then(|it| Some(it.native()?.items().len()));
        assert_eq!((items("c"), items("theirs")), (Some(1), Some(2)));
    }
}
