//! Lines that repeat for other programs what a context here has from elsewhere. This program reads a context from its
//! compactions and markers; pi and oh-my-pi read it from entries that they know. A mirror is such an entry with a mark.

use super::{Body, ContextEdit};
use crate::ids::EntryId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The `customType` of a custom message that repeats a text from before a cut.
pub const CARRIED: &str = "abridged.carried";

/// A line that other programs read in the place of something that this one knows from elsewhere.
#[derive(Debug, Clone)]
pub enum Mirror {
    /// A `context_edit`. With a compaction it is one of the edits that the compaction carries, and holds like these:
    /// until the compaction is undone. Without one it never changes a context here.
    Edit { edit: ContextEdit, compaction: Option<EntryId> },
    /// A `custom_message` with a pinned text, or with the newest user message, of this entry before the cut.
    Carried { of: EntryId },
    /// A `compaction` that repeats the context from before a compaction that was undone, the empty one after a reset, or
    /// that of a compaction in an older form.
    Compaction { first_kept: Option<EntryId> },
}

/// The mark on a `context_edit`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mark {
    /// The compaction that carries the edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_entry_id: Option<EntryId>,
}

/// Another program may have put anything there.
fn mark_or_none<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Mark>, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(Mark::deserialize(value).ok())
}

/// The body as it is here where its line has a mark.
pub(super) fn marked(body: Body, line: &str) -> Body {
    match body {
        Body::ContextEdit(edit) => match mark(line) {
            Some(Mark { compaction_entry_id }) => Body::Mirror(Mirror::Edit { edit, compaction: compaction_entry_id }),
            None => Body::ContextEdit(edit),
        },
        Body::CustomMessage(custom) if custom.custom_type == CARRIED => {
            carried(line).map_or(Body::CustomMessage(custom), |of| Body::Mirror(Mirror::Carried { of }))
        }
        Body::Compaction(compaction)
            if compaction.preserved().is_some_and(|ours| ours.undone.is_some() || ours.reset.is_some()) =>
        {
            Body::Mirror(Mirror::Compaction { first_kept: compaction.first_kept_entry_id })
        }
        body => body,
    }
}

/// The mark of a `context_edit` line.
fn mark(line: &str) -> Option<Mark> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(default, deserialize_with = "mark_or_none")]
        abridged: Option<Mark>,
    }
    serde_json::from_str::<Line>(line).ok()?.abridged
}

/// The entry whose text a custom message repeats.
fn carried(line: &str) -> Option<EntryId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Details {
        entry_id: EntryId,
    }
    #[derive(Deserialize)]
    struct Line {
        details: Details,
    }
    Some(serde_json::from_str::<Line>(line).ok()?.details.entry_id)
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;
    use serde_json::json;

    fn body(line: &Value) -> Body {
        Entry::parse(line.to_string().into()).expect("an entry").body
    }

    #[test]
    fn lines_of_other_programs_are_no_mirrors() {
        let edit = json!({"type": "context_edit", "id": "a", "targetId": "x", "replacement": null});
        assert!(matches!(body(&edit), Body::ContextEdit(_)));
        let mut odd = edit.clone();
        odd["abridged"] = json!("a text");
        assert!(matches!(body(&odd), Body::ContextEdit(_)), "a mark that is none");
        let custom = json!({"type": "custom_message", "id": "a", "customType": "x", "content": "y", "details": {"entryId": "z"}});
        assert!(matches!(body(&custom), Body::CustomMessage(_)));
        let compaction = json!({"type": "compaction", "id": "a", "summary": "s", "preserveData": {"other": 1}});
        assert!(matches!(body(&compaction), Body::Compaction(_)));
    }

    #[test]
    fn mirrors_are_markers_that_add_and_rewrite_nothing() {
        let marked = [
            json!({"type": "context_edit", "id": "a", "targetId": "x", "replacement": null, "abridged": {}}),
            json!({"type": "context_edit", "id": "a", "targetId": "x", "replacement": null, "abridged": {"compactionEntryId": "c"}}),
            json!({"type": "custom_message", "id": "a", "customType": CARRIED, "content": "y", "details": {"entryId": "z"}}),
            json!({"type": "compaction", "id": "a", "summary": "s", "preserveData": {"abridged": {"entryId": "a", "undone": "c"}}}),
            json!({"type": "compaction", "id": "a", "summary": "s", "preserveData": {"abridged": {"entryId": "a", "reset": "r"}}}),
        ];
        for line in marked {
            let entry = Entry::parse(line.to_string().into()).expect("an entry");
            assert!(matches!(entry.body, Body::Mirror(_)), "{line}");
            assert!(entry.is_marker() && !entry.in_context() && !entry.rewrites() && entry.compaction().is_none());
            assert_eq!(entry.tokens(crate::conversation::tokens::Estimator::Chars), 0);
        }
    }
}
