//! The largest answer of a request: the limit of the model, the room in the window, and a smaller one where the model refused
//! a request for the room kept for its answer.

use super::View;
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::{self, outline::Role},
        path::{Path, Places},
    },
    models::{self, ModelRef},
    protocol::types::{Usage, UsageSource},
    provider::overflow::{self, Meaning, Reservation},
};

/// The largest answer of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxOutput {
    /// In tokens. None where neither a limit nor a window is known.
    pub tokens: Option<u64>,
    /// Whether a body names it: a limit of the model is known, or the model has refused a larger one.
    pub is_named: bool,
}

impl View {
    /// The largest answer to the context of a path, of this size: the limit of the model, and no more than the window leaves.
    /// Providers that add the limit to the request refuse a sum over the window, and the size of the request is partly
    /// estimated. So a hundredth of the window stays free, and a twentieth of a size without any report. Both leave half of
    /// the room at least. After a refusal for the room kept for the answer the numbers are the provider's, until a request
    /// succeeds.
    #[must_use]
    pub fn max_output(&self, path: &Path, usage: &Usage, model: Option<&ModelRef>) -> MaxOutput {
        let limit = models::output_limit(self.settings(), model).map(|limit| limit.tokens.max(1));
        let refused = Refused::before(path, path.len(), model);
        if let Some((input, most)) = refused.and_then(|refused| refused.output(usage.context_tokens)) {
            let room = usage.context_window.map(|window| overflow::output_beside(input, window));
            return MaxOutput { tokens: [Some(most), room, limit].into_iter().flatten().min(), is_named: true };
        }
        let room = usage.context_window.map(|window| {
            let room = window.saturating_sub(usage.context_tokens);
            let estimated = match usage.source {
                UsageSource::Provider => 0,
                UsageSource::Estimate => usage.context_tokens / 20,
            };
            (room - (window / 100).max(estimated).min(room / 2)).max(1)
        });
        MaxOutput { tokens: [limit, room].into_iter().flatten().min(), is_named: limit.is_some() }
    }
}

/// The newest refusal of a model for the room kept for an answer, after which no request of the model succeeded. It is read
/// from the path, so it holds on its branch and after a restart, too.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    reservation: Reservation,
    since: Since,
}

/// The change of the context since a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Since {
    Unchanged,
    Grown,
    Rewritten,
}

impl Refused {
    /// The newest such refusal before a place of a path.
    #[must_use]
    pub fn before(path: &Path, place: usize, model: Option<&ModelRef>) -> Option<Self> {
        let (mut since, places) = (Since::Unchanged, path.places());
        for entry in path[path.first_kept().min(place)..place].iter().rev() {
            match entry.outline().filter(|outline| outline.role == Role::Assistant) {
                Some(outline) => {
                    let is_its = outline.model.is_none() || outline.model.as_ref() == model;
                    match reservation(entry).filter(|_| outline.failed) {
                        Some(reservation) if is_its => return Some(Self { reservation, since }),
                        None if is_its && !outline.failed => return None,
                        _ if !outline.failed => since = since.max(Since::Grown),
                        _ => {}
                    }
                }
                None if entry.rewrites() && !removes_failure(entry, &places) => since = Since::Rewritten,
                None if entry.in_context() => since = since.max(Since::Grown),
                None => {}
            }
        }
        None
    }

    /// Whether nothing was added to the context since, and nothing in it changed.
    #[must_use]
    pub fn is_of_same_context(&self) -> bool {
        self.since == Since::Unchanged
    }

    /// The input of a request with a context of this size, and its largest answer, in tokens. None where the refusal says
    /// nothing about it.
    fn output(&self, context: u64) -> Option<(u64, u64)> {
        let input = match self.since {
            Since::Unchanged => self.reservation.next_input(context),
            Since::Grown => context.max(self.reservation.input()),
            Since::Rewritten => context,
        };
        Some((input, self.reservation.output_beside(input)?))
    }
}

/// The sizes of an answer that was refused for the room kept for it.
#[must_use]
pub fn reservation(answer: &Entry) -> Option<Reservation> {
    let failed = answer.outline().is_some_and(|outline| outline.failed);
    let message = message::value(answer.message_json().filter(|_| failed)?)?;
    match overflow::meaning(None, message["errorMessage"].as_str()?) {
        Meaning::Reserved(reservation) => Some(reservation),
        _ => None,
    }
}

/// Whether an entry takes a failed answer out of the context, where it never was.
fn removes_failure(entry: &Entry, places: &Places<'_>) -> bool {
    let Body::ContextEdit(edit) = &entry.body else { return false };
    let target = || places.entry(&edit.target_id).and_then(|target| target.outline());
    edit.replacement.is_none() && target().is_some_and(|outline| outline.failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn path(lines: &[Value]) -> Path {
        let mut parent = Value::Null;
        let entries = lines.iter().enumerate().map(|(at, line)| {
            let mut line = line.clone();
            let id = format!("e{at}");
            line["id"] = json!(id);
            line["parentId"] = std::mem::replace(&mut parent, json!(id));
            line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        });
        Path::of(&entries.collect::<Vec<_>>())
    }

    fn message(role: &str, fields: Value) -> Value {
        let mut message = json!({"role": role, "content": "x", "timestamp": 1});
        message.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        json!({"type": "message", "message": message})
    }

    fn user() -> Value {
        message("user", json!({}))
    }

    fn answer(model: &str, stop: &str, error: &str) -> Value {
        let content = json!([{"type": "text", "text": "x"}]);
        message(
            "assistant",
            json!({"content": content, "provider": "p", "model": model, "stopReason": stop, "errorMessage": error}),
        )
    }

    const REFUSAL: &str = "input length and `max_tokens` exceed context limit: 9000 + 8000 > 16000";

    fn refused(model: &str) -> Value {
        answer(model, "error", REFUSAL)
    }

    fn edit(target: &str) -> Value {
        json!({"type": "context_edit", "targetId": target, "replacement": null})
    }

    fn found(lines: &[Value]) -> Option<(Since, Option<u64>)> {
        let path = path(lines);
        let model = ModelRef::parse("p/m").expect("a name");
        let refused = Refused::before(&path, path.len(), Some(&model))?;
        Some((refused.since, refused.output(9_000).map(|(_, most)| most)))
    }

    #[test]
    fn a_refusal_holds_until_a_request_of_its_model_succeeds() {
        let same = Some((Since::Unchanged, Some(16_000 - 9_450)));
        let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1});
        for (lines, expected) in [
            (vec![user(), refused("m")], same),
            (vec![user(), refused("m"), edit("e1")], same),
            (vec![user(), refused("m"), answer("m", "error", "500"), edit("e2")], same),
            (vec![user(), refused("m"), answer("m", "aborted", "")], same),
            (vec![user(), refused("m"), answer("m", "stop", "")], None),
            (vec![user(), refused("m"), answer("m", "length", "")], None),
            (vec![user(), refused("n")], None),
            (vec![user(), answer("m", "stop", REFUSAL)], None),
            (vec![user(), answer("m", "aborted", "stopped")], None),
            (vec![user(), refused("m"), answer("n", "stop", "")], Some((Since::Grown, Some(16_000 - 9_450)))),
            (vec![user(), refused("m"), user()], Some((Since::Grown, Some(16_000 - 9_450)))),
            (vec![user(), refused("m"), user(), edit("e0")], Some((Since::Rewritten, Some(16_000 - 9_450)))),
            (vec![user(), refused("m"), compaction], Some((Since::Rewritten, Some(16_000 - 9_450)))),
        ] {
            assert_eq!(found(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_answer_is_limited_by_the_context_as_it_is_now() {
        let of = |since: Since, context: u64| {
            let reservation = Reservation::of(16_000, 9_000, 8_000).expect("a reservation");
            Refused { reservation, since }.output(context).map(|(_, most)| most)
        };
        assert_eq!(of(Since::Unchanged, 10_000), Some(6_550), "the provider's count");
        assert_eq!(of(Since::Unchanged, 2_000), Some(6_550));
        assert_eq!(of(Since::Grown, 10_000), Some(16_000 - 10_500));
        assert_eq!(of(Since::Grown, 8_000), Some(6_550), "it has not become smaller");
        assert_eq!(of(Since::Rewritten, 4_000), Some(16_000 - 4_200));
        assert_eq!(of(Since::Rewritten, 15_000), None);
    }

    #[test]
    fn only_a_failed_answer_was_refused() {
        let of = |line: &Value| reservation(&path(std::slice::from_ref(line))[0]).is_some();
        assert!(of(&refused("m")));
        assert!(!of(&answer("m", "stop", REFUSAL)));
        assert!(!of(&answer("m", "error", "prompt is too long: 9000 tokens > 8000 maximum")));
        assert!(!of(&user()));
    }
}
