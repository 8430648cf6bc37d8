//! The request of an answer, where it was another one than the path before the answer. A line after the answer says so, so that
//! a session that is opened again judges its report in the same way.

use crate::ids::EntryId;
use serde_json::{Value, json};

/// The context that the request of an answer was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// One from before a rewrite of the context, or one that its server changed. A report of it is about nothing that is left.
    Earlier,
    /// The path without these entries. They came while the model ran, and the host names the context.
    Without(Gap),
    /// The path, or the path without these entries. The report tells which.
    Perhaps(Gap),
}

/// Entries of a path that follow each other, by the first and the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The first one.
    pub from: EntryId,
    /// The last one.
    pub to: EntryId,
}

const WITHOUT: &str = "without";
const PERHAPS: &str = "perhapsWithout";

impl Requested {
    /// The data of the line about this answer.
    #[must_use]
    pub fn data(&self, answer: &EntryId) -> Value {
        let gap = |gap: &Gap| json!({ "from": gap.from, "to": gap.to });
        match self {
            Self::Earlier => json!({ "entryId": answer }),
            Self::Without(entries) => json!({ "entryId": answer, WITHOUT: gap(entries) }),
            Self::Perhaps(entries) => json!({ "entryId": answer, PERHAPS: gap(entries) }),
        }
    }

    /// Reads the data of a line.
    pub(super) fn of(data: &Value) -> Self {
        let gap = |name: &str| {
            let id = |end: &str| Some(EntryId::from(data.get(name)?.get(end)?.as_str()?));
            Some(Gap { from: id("from")?, to: id("to")? })
        };
        let without = gap(WITHOUT).map(Self::Without);
        without.or_else(|| gap(PERHAPS).map(Self::Perhaps)).unwrap_or(Self::Earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_an_answer_is_read_as_it_was_written() {
        let gap = || Gap { from: "e1".into(), to: "e2".into() };
        for requested in [Requested::Earlier, Requested::Without(gap()), Requested::Perhaps(gap())] {
            assert_eq!(Requested::of(&requested.data(&"answer".into())), requested);
        }
        // A line of another version, or one that was edited by hand.
        for data in [json!({"entryId": "a", "without": {"from": "e1"}}), json!({"entryId": "a", "without": 3})] {
            assert_eq!(Requested::of(&data), Requested::Earlier, "{data}");
        }
    }
}
