//! The work that a session starts without input. `settled` is sent behind it.

use super::{Core, Ending, LogState, Write};
use crate::session::{
    fault::{Fault, planted},
    operations::Follows,
};

impl Core {
    /// Sends `settled` where it waited for work, and none follows any more.
    pub(super) fn settle(&self) {
        self.operations.follow(match planted(Fault::SettledBeforeWork) {
            true => Follows::Nothing,
            false => self.follows(),
        });
    }

    /// Whether the session starts work without input. Where it ends, it starts nothing but what is being written or was
    /// cancelled.
    fn follows(&self) -> Follows {
        let writes =
            matches!(self.log, LogState::Writing(_, Write::Recovery { .. } | Write::Removal(_) | Write::Relief(..)));
        let goes_on = matches!(self.ending, Ending::No);
        let turn_is_over = || self.waits_no_more() && self.turn_is_over();
        let decides = || {
            self.has_reported()
                || self.has_switched()
                || self.is_behind_transfer()
                || turn_is_over()
                || self.held_needs_more()
                || self.extract_is_due()
        };
        match writes || !self.cancelled.is_empty() || goes_on && decides() {
            true => Follows::Work,
            false => Follows::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
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

    fn append(held: &mut Held, number: u64, message: &Value) {
        held.append_with(number, json!({ "messages": [message] }));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
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
        append(&mut held, 2, &refusal());
        assert_eq!(places(&held.feed(failed(&order)), "settled"), [0; 0]);
        let work = log_work(held.turn()).expect("the answer leaves the context");
        assert_eq!(places(&held.back(work), "settled"), [0; 0], "the recovery runs");
        let effects = held.cancel(3);
        assert_eq!((places(&effects, "recovery_end").len(), places(&effects, "settled").len()), (1, 1));
    }

    #[test]
    fn a_session_settles_behind_the_removal_of_a_refusal_and_before_the_contexts_that_wait() {
        let (mut held, order) = drafting();
        append(&mut held, 2, &refusal());
        append(&mut held, 3, &json!({"role": "user", "content": "go on", "timestamp": 1}));
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
        append(&mut held, 2, &refusal());
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
        append(&mut held, 3, &done);
        assert_eq!(places(&held.feed(failed(&order)), "settled"), [0; 0]);
        assert_eq!(places(&held.turn(), "compaction_start").len(), 1);
    }

    /// A context waits for a draft, and messages that came meanwhile are over the window.
    fn with_context_over_window() -> (Held, DraftOrder) {
        let (mut held, order) = drafting();
        let text = "word ".repeat(14_000);
        append(&mut held, 2, &json!({"role": "user", "content": text, "timestamp": 1}));
        append(&mut held, 3, &json!({"role": "user", "content": "go on", "timestamp": 1}));
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
