//! The ends of operations whose process died.

use super::{End, Ended, Kind, inside};
use crate::{
    ids::OperationId,
    log::Unfinished,
    protocol::{
        errors::Failure,
        events::Event,
        notices::{NoticeCode, Warning},
        types::Usage,
    },
};
use std::time::Duration;

/// Characters of an unknown kind that a notice shows.
const LONGEST_KIND: usize = 64;

/// The events that end the operations of a process that died, inner ones first, and before each the hooks and retries inside
/// of it. `left_behind` is the list in its lock, `usage` the usage now. A kind that this version does not know has no end
/// event here, so a notice says that its operation is over.
#[must_use]
pub fn interrupted<K: Kind>(left_behind: Vec<Unfinished>, usage: &Usage) -> Vec<(OperationId, Event)> {
    let ends = |left: Unfinished| {
        let inside = left.inside.iter().rev();
        let mut events: Vec<Event> = inside.filter_map(inside::interrupted).collect();
        events.extend(end::<K>(&left, usage));
        events.into_iter().map(move |event| (left.operation_id.clone(), event))
    };
    left_behind.into_iter().rev().flat_map(ends).collect()
}

/// The event that ends an operation of a process that died.
fn end<K: Kind>(left: &Unfinished, usage: &Usage) -> Option<Event> {
    let Unfinished { kind, reason, .. } = left;
    if let Some(kind) = K::read(kind, reason) {
        let what =
            "the process that ran it ended before it did; what it had written is there, and nothing else was changed";
        let end = End::Failed(Failure::Internal(what.to_owned()));
        let event = kind.end(&Ended { end: &end, usage, duration: Duration::ZERO, continues: false });
        return event.or_else(|| kind.untold(&end).map(Event::from));
    }
    let kind: String = kind.chars().take(LONGEST_KIND).collect();
    tracing::warn!(kind, "the lock lists an operation of an unknown kind");
    let detail = format!(
        "The process that ran it ended before it did. Its kind, {kind:?}, is unknown to this version. The entries that it \
         had written are in the session, and nothing else was changed."
    );
    let title = "An operation of another version of abridged was interrupted";
    Some(Warning::new(NoticeCode::OperationInterrupted, title, detail).into())
}
