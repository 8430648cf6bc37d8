//! The agenda of a session: the work that it starts without input, in the order of precedence.
//!
//! A unit of work is due from an input on, and starts when nothing before it is due and the session is free for it. One
//! `Input::Turn` starts one unit. `settled`, the status of an idle session, speculation and idle maintenance ask this
//! agenda, so that a new kind of work is written down once.

use super::{
    base::Ending,
    commands::context::Way,
    parts::log_gate::FollowUp,
    standing::Standing,
    work::{TransferPhase, Work},
};
use crate::session::operations::Follows;

/// A unit of work, in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Writes the entry about the compaction after the turn.
    AfterTurnEntry,
    /// Starts and ends operations that end before their starts.
    Unbegun,
    /// Starts the operation whose plan or source was found.
    Begin,
    /// Writes the draft or the text that was made.
    Commit,
    /// Writes the costs of model requests.
    Costs,
    /// Decides about failed answers that came while other work ran.
    FailedAnswers,
    /// Decides about a change of the model that came while other work ran.
    Switch,
    /// Writes an extract that waited for the results of open calls.
    Extract,
    /// Decides about maintenance after a transfer.
    AfterTransfer,
    /// Starts the compaction after the turn.
    AfterTurn,
    /// Starts the maintenance for contexts that wait and lack room in the window.
    Contexts,
    /// Writes messages of turns, or the queue of messages.
    TurnMessages,
    /// Asks the model of the turn that runs.
    Ask,
    /// Starts the turn of the next message in the queue.
    NextTurn,
    /// Decides about a summary that was made ahead of the threshold.
    Ahead,
    /// Reads entries of other programs.
    FileChanges,
    /// Handles the next command.
    Command,
}

/// The work that has to end before a unit starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// The log is here.
    Log,
    /// No compaction and no transfer runs, either.
    NoWork,
    /// The path is known back to its last compaction, either.
    Path,
}

impl Unit {
    /// All units, in their order.
    pub const ALL: [Self; 17] = [
        Self::AfterTurnEntry,
        Self::Unbegun,
        Self::Begin,
        Self::Commit,
        Self::Costs,
        Self::FailedAnswers,
        Self::Switch,
        Self::Extract,
        Self::AfterTransfer,
        Self::AfterTurn,
        Self::Contexts,
        Self::TurnMessages,
        Self::Ask,
        Self::NextTurn,
        Self::Ahead,
        Self::FileChanges,
        Self::Command,
    ];

    fn needs(self) -> Needs {
        match self {
            Self::AfterTurnEntry
            | Self::Unbegun
            | Self::Begin
            | Self::Commit
            | Self::TurnMessages
            | Self::FileChanges
            | Self::Command => Needs::Log,
            Self::Costs | Self::Extract | Self::AfterTurn | Self::Contexts | Self::Ahead => Needs::NoWork,
            Self::FailedAnswers | Self::Switch | Self::AfterTransfer | Self::Ask | Self::NextTurn => Needs::Path,
        }
    }

    /// Whether it starts in a session that ends now, too: work of operations that were named to the client.
    fn survives_the_end(self) -> bool {
        !matches!(self, Self::Ask | Self::NextTurn | Self::Ahead | Self::FileChanges | Self::Command)
    }

    /// Whether `settled` waits for it.
    fn keeps_from_settling(self) -> bool {
        match self {
            Self::Unbegun
            | Self::FailedAnswers
            | Self::Switch
            | Self::Extract
            | Self::AfterTransfer
            | Self::AfterTurn
            | Self::Contexts
            | Self::TurnMessages
            | Self::NextTurn => true,
            // An operation is open around a draft, and the others change nothing that the client waits for.
            Self::AfterTurnEntry
            | Self::Begin
            | Self::Commit
            | Self::Costs
            | Self::Ask
            | Self::Ahead
            | Self::FileChanges
            | Self::Command => false,
        }
    }

    /// Whether no summary begins ahead of the threshold while it is due: it may start maintenance.
    fn keeps_from_speculating(self) -> bool {
        matches!(self, Self::FailedAnswers | Self::Switch | Self::AfterTransfer)
    }
}

impl Standing<'_> {
    /// Whether no work, no write and no read runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.core.base.log.is_free()
            && self.core.base.work.is_none()
            && self.core.base.reads.is_empty()
            && !self.is_pending(Unit::Unbegun)
            && !self.is_pending(Unit::AfterTurnEntry)
            && !self.is_pending(Unit::TurnMessages)
            && self.core.turns.id().is_none()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_quiet()
            && self.core.base.queue.is_empty()
            && self.core.base.waiting.is_empty()
            && self.core.base.index.commands.is_empty()
            && !self.is_pending(Unit::Costs)
    }

    /// The next unit that may start now.
    pub(super) fn unit(&self) -> Option<Unit> {
        if !self.core.base.log.is_free() || self.core.base.work.founds() {
            return None;
        }
        Unit::ALL.into_iter().find(|unit| self.may_start(*unit) && self.is_pending(*unit))
    }

    /// Whether a unit is due.
    pub(super) fn is_pending(&self, unit: Unit) -> bool {
        match unit {
            Unit::AfterTurnEntry => self.core.upkeep.after_turn.must_write(self.core.base.log.facts().access),
            Unit::Unbegun => !self.core.unbegun.is_empty(),
            Unit::Begin => matches!(self.core.base.work, Work::Planned(..) | Work::Referring(_, Some(_))),
            Unit::Commit => {
                matches!(self.core.base.work, Work::Drafted(..) | Work::Transfer(_, TransferPhase::Made(..)))
            }
            Unit::Costs => !self.core.base.costs.is_empty() && self.core.base.writable().is_ok(),
            Unit::FailedAnswers => self.core.recoveries.is_pending(),
            Unit::Switch => self.core.upkeep.switches.is_pending(),
            // A failed answer at the leaf is decided about first.
            Unit::Extract => {
                self.core.upkeep.extracts.are_due(&self.core.base.state) && !self.core.recoveries.is_pending()
            }
            Unit::AfterTransfer => self.core.upkeep.after_transfer,
            Unit::AfterTurn => self.core.upkeep.after_turn.is_due(self.core.base.state.path()),
            Unit::Contexts => self.waiting_context_needs_more(),
            Unit::TurnMessages => self.core.turns.must_write(),
            Unit::Ask => self.core.turns.asks(),
            Unit::NextTurn => self.core.turns.follows(),
            Unit::Ahead => self.core.upkeep.ahead.is_new(),
            Unit::FileChanges => self.core.changes.is_pending(),
            Unit::Command => !self.core.base.queue.is_empty(),
        }
    }

    /// Whether a unit may start where it is due, and the log is here.
    fn may_start(&self, unit: Unit) -> bool {
        let is_free = match unit.needs() {
            Needs::Log => true,
            Needs::NoWork => self.core.base.work.is_none(),
            Needs::Path => self.core.base.work.is_none() && self.may_decide(),
        };
        let is_in_time = unit.survives_the_end() || !self.core.base.ending.is_now();
        let may = match unit {
            Unit::Unbegun => self.may_end_unbegun(),
            Unit::AfterTurn => self.may_maintain() && self.core.turns.id().is_none(),
            // The answers of these contexts start it, in the input after which it is due.
            Unit::Contexts => false,
            // A context that waits for counts is made after them.
            Unit::Ask => self.is_pending(unit) && !matches!(self.way_of_turn(), Way::Hold),
            Unit::NextTurn => self.core.turns.id().is_none() && self.core.base.operations.idle().is_ok(),
            _ => true,
        };
        is_free && is_in_time && may
    }

    /// Whether the session starts work without input. Where it ends, it starts nothing but what is being written or was
    /// cancelled.
    pub(super) fn follows(&self) -> Follows {
        let writes = !matches!(self.core.base.log.follow_up(), FollowUp::None);
        let starts = |unit: Unit| match self.core.base.ending {
            Ending::No => unit.keeps_from_settling(),
            Ending::WhenIdle | Ending::Now(_) => matches!(unit, Unit::Unbegun | Unit::TurnMessages),
        };
        match writes || Unit::ALL.into_iter().any(|unit| starts(unit) && self.is_pending(unit)) {
            true => Follows::Work,
            false => Follows::Nothing,
        }
    }

    /// Whether work is due that may start maintenance, so that no summary begins ahead of it. That holds for a compaction
    /// after a turn which has not ended, too.
    pub(super) fn maintenance_may_follow(&self) -> bool {
        self.core.upkeep.after_turn.waits()
            || Unit::ALL.into_iter().any(|unit| unit.keeps_from_speculating() && self.is_pending(unit))
    }

    /// Whether the session has nothing to do in the foreground, now or after the work that runs.
    pub(super) fn nothing_waits(&self) -> bool {
        let waits = |unit: Unit| match unit {
            // A turn that is over starts no compaction where maintenance may not start.
            Unit::AfterTurn => self.is_pending(unit) && self.may_start(unit),
            unit => self.is_pending(unit),
        };
        self.core.turns.id().is_none()
            && self.core.base.ending.goes_on()
            && self.core.base.log.is_free()
            && self.core.base.work.is_none()
            && self.core.base.index.commands.is_empty()
            && self.core.base.waiting.is_empty()
            && !self.core.upkeep.ahead.runs()
            && !Unit::ALL.into_iter().any(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::{Needs, Unit};
    use crate::{
        protocol::{SessionConfigure, SessionContext, errors::Failure, events::Event, types::CompactParams},
        session::{
            core::{
                Input,
                command::Command,
                held::{Held, answer, draft, events, log_work},
            },
            effects::Effect,
            jobs::DraftOrder,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    const WINDOW: u64 = 16_000;

    /// The rows of the table of units in the page of the architecture, as their cells.
    fn rows() -> Vec<Vec<&'static str>> {
        let page = include_str!("../../../docs/ARCHITECTURE.md");
        let rows = page.lines().skip_while(|line| !line.starts_with("| unit |")).skip(2);
        let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
        rows.take_while(|line| line.starts_with('|')).map(cells).collect()
    }

    #[test]
    fn the_page_of_the_architecture_lists_the_agenda() {
        let needs = |unit: Unit| match unit.needs() {
            Needs::Log => "the log",
            Needs::NoWork => "no work",
            Needs::Path => "no work, the path",
        };
        let settles = |unit: Unit| if unit.keeps_from_settling() { "yes" } else { "" };
        let expected = Unit::ALL.map(|unit| (format!("`{unit:?}`"), needs(unit), settles(unit)));
        let listed: Vec<_> = rows().iter().map(|row| (row[0].to_owned(), row[2], row[3])).collect();
        assert_eq!(listed, expected);
    }

    /// A session below the threshold of its model, and a draft that is being made.
    fn drafting() -> (Held, DraftOrder) {
        let mut held = Held::new();
        let model = |id: &str, window: u64| json!({"provider": "p", "id": id, "contextWindow": window});
        let settings = json!({
            "tokens": {"estimator": "chars"},
            "defaultModel": "p/large",
            "models": [model("large", WINDOW), model("small", 4_000)],
        });
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        let order = held.begin_draft(1);
        (held, order)
    }

    fn failed(order: &DraftOrder) -> Input {
        Input::Drafted(order.id.clone(), Err(Failure::Internal("it failed".to_owned())))
    }

    /// The places of these events among all.
    fn places(effects: &[Effect], kind: &str) -> Vec<usize> {
        events(effects).enumerate().filter(|(_, event)| event.kind() == kind).map(|(at, _)| at).collect()
    }

    fn refusal() -> Value {
        json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"})
    }

    #[test]
    fn a_session_settles_behind_the_end_of_its_last_operation() {
        let (mut held, order) = drafting();
        let effects = held.feed(failed(&order));
        let (end, settled) = (places(&effects, "compaction_end"), places(&effects, "settled"));
        assert!(settled.len() == 1 && end < settled, "{end:?} {settled:?}");
        let answered = effects.iter().position(|effect| matches!(effect, Effect::Answer(1, _)));
        let sent = effects.iter().position(|effect| matches!(effect, Effect::Emit(_, Event::Settled { .. })));
        assert!(sent < answered, "the request that waited is answered behind it");
    }

    #[test]
    fn a_session_settles_behind_the_recovery_of_a_refusal_that_came_meanwhile() {
        let (mut held, order) = drafting();
        held.write_message(2, &refusal());
        assert_eq!(places(&held.feed(failed(&order)), "settled"), [0; 0]);
        let work = log_work(held.turn()).expect("the answer leaves the context");
        assert_eq!(places(&held.back(work), "settled"), [0; 0], "the recovery runs");
        let effects = held.cancel(3);
        assert_eq!((places(&effects, "recovery_end").len(), places(&effects, "settled").len()), (1, 1));
    }

    #[test]
    fn a_session_settles_behind_the_removal_of_a_refusal_and_before_the_contexts_that_wait() {
        let (mut held, order) = drafting();
        held.write_message(2, &refusal());
        held.write_message(3, &json!({"role": "user", "content": "go on", "timestamp": 1}));
        held.call::<SessionContext>(4, json!({"wait": true}));
        held.turn();
        assert_eq!(places(&held.feed(failed(&order)), "settled"), [0; 0]);
        let work = log_work(held.turn()).expect("the answer leaves the context");
        let effects = held.back(work);
        let sent = effects.iter().position(|effect| matches!(effect, Effect::Emit(_, Event::Settled { .. })));
        let answered = effects.iter().position(|effect| matches!(effect, Effect::Answer(4, _) | Effect::Read(4, _)));
        assert!(sent.is_some() && sent < answered, "{sent:?} {answered:?}");
    }

    #[test]
    fn a_session_settles_behind_a_cancel_that_forgets_a_refusal() {
        let (mut held, order) = drafting();
        held.write_message(2, &refusal());
        held.feed(failed(&order));
        assert_eq!(places(&held.cancel(3), "settled").len(), 1);
    }

    #[test]
    fn a_session_settles_behind_the_decision_about_a_change_of_its_model() {
        for (model, starts) in [("p/small", 1), ("p/large", 0)] {
            let (mut held, order) = drafting();
            held.edit::<SessionConfigure>(2, json!({ "model": model }));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
            let effects = held.feed(failed(&order));
            let behind = held.turn();
            assert_eq!(places(&behind, "compaction_start").len(), starts);
            assert_eq!(places(&effects, "settled").len() + places(&behind, "settled").len(), 1 - starts);
        }
    }

    #[test]
    fn a_session_settles_behind_the_compaction_after_the_turn() {
        let (mut held, order) = drafting();
        let params: CompactParams =
            serde_json::from_value(json!({"sessionId": "held", "when": "after_turn"})).expect("params");
        held.send(2, Command::Compact(params));
        let work = log_work(held.turn()).expect("its entry");
        held.back(work);
        let done = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop",
            "timestamp": 1});
        held.write_message(3, &done);
        assert_eq!(places(&held.feed(failed(&order)), "settled"), [0; 0]);
        assert_eq!(places(&held.turn(), "compaction_start").len(), 1);
    }

    /// A context waits for a draft, and messages that came meanwhile are over the window.
    fn with_context_over_window() -> (Held, DraftOrder) {
        let (mut held, order) = drafting();
        let text = "word ".repeat(14_000);
        held.write_message(2, &json!({"role": "user", "content": text, "timestamp": 1}));
        held.write_message(3, &json!({"role": "user", "content": "go on", "timestamp": 1}));
        held.call::<SessionContext>(4, json!({"wait": true}));
        held.turn();
        (held, order)
    }

    #[test]
    fn a_session_that_ends_settles_before_a_context_over_the_window_is_refused() {
        let (mut held, order) = with_context_over_window();
        held.feed(Input::Finish);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        let sent = effects.iter().position(|effect| matches!(effect, Effect::Emit(_, Event::Settled { .. })));
        let answered = effects.iter().position(|effect| matches!(effect, Effect::Answer(4, _)));
        assert!(sent.is_some() && sent < answered, "{sent:?} {answered:?}");
    }

    #[test]
    fn a_session_settles_behind_the_maintenance_for_a_context_that_is_over_the_window() {
        let (mut held, order) = with_context_over_window();
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(places(&effects, "compaction_end").len(), 1);
        assert_eq!((places(&effects, "compaction_start").len(), places(&effects, "settled").len()), (1, 0));
        let effects = held.cancel(5);
        assert_eq!(places(&effects, "settled").len(), 1);
        assert_eq!(answer(&effects, 4), Some(json!("context_overflow")));
    }

    #[test]
    fn a_session_settles_once_behind_compactions_that_were_cancelled_before_their_starts() {
        let mut held = Held::new();
        held.compact(1);
        held.compact(2);
        let effects = held.cancel(3);
        assert_eq!(places(&effects, "compaction_end").len(), 2);
        assert_eq!(places(&effects, "settled").len(), 1);
    }
}
