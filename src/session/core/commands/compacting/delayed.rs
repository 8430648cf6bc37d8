//! A compaction that a client asks for after the turn: it starts behind the next complete answer without calls.
//!
//! It has its id from the beginning, so it can be named and cancelled. Its start is sent when it starts, and it is planned
//! for the context of that moment.

use crate::{
    compaction::request::{Cause, is_too_early},
    conversation::{entry::Body, message::outline::Role},
    ids::OperationId,
    protocol::{
        errors::{Failure, Nothing},
        types::{CompactParams, Initiator},
    },
    session::{
        core::{
            Core, Ending,
            commands::compacting::BY_CLIENT,
            due::Due,
            work::{Request, Work},
        },
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Authors, Focus, Job, PlanOrder},
        operations::{Asked, Kind as _, Place},
        stop::Stop,
    },
};

impl Core {
    /// Whether a compaction after the turn has to wait.
    pub(in crate::session::core) fn must_wait(&self) -> bool {
        !self.turn_is_over() || !self.may_maintain()
    }

    /// Takes a request for a compaction after the turn. There is at most one.
    pub(in crate::session::core) fn delay(&mut self, params: CompactParams, ticket: Ticket) {
        if let Err(failure) = self.may_delay(&params) {
            return ticket.fail(&failure);
        }
        let id = self.stamps.operation();
        let asked = match Asked::by(ticket, params.wait) {
            Asked::Answered(ticket) => {
                ticket.ok(&BY_CLIENT.started(&id));
                Asked::Introduced
            }
            Asked::Batched(ticket) => {
                ticket.ok(&BY_CLIENT.started(&id));
                Asked::Unasked
            }
            waits => waits,
        };
        let request = Request { id, kind: BY_CLIENT, params, asked, stop: Stop::default() };
        match self.ending {
            Ending::No => self.upkeep.after_turn = Some(request),
            Ending::WhenIdle | Ending::Now(_) => self.end_unstarted([request]),
        }
    }

    fn may_delay(&self, params: &CompactParams) -> Result<(), Failure> {
        self.writable()?;
        if let Some(Request { id, kind, .. }) = &self.upkeep.after_turn {
            return Err(Failure::Busy { operation_id: id.clone(), kind: kind.name() });
        }
        if is_too_early(params.initiator.unwrap_or(Initiator::User), &self.state.measure()) {
            return Err(Failure::NothingToCompact(Nothing::BelowHalfThreshold));
        }
        Ok(())
    }

    /// Whether the newest message is a complete answer without calls. An answer that failed, was cut off or was removed is
    /// repeated.
    pub(in crate::session::core) fn turn_is_over(&self) -> bool {
        if planted(Fault::TurnAssumed) {
            return true;
        }
        let mut removed = Vec::new();
        for entry in self.state.path().iter().rev() {
            match (&entry.body, entry.outline()) {
                (Body::ContextEdit(edit), _) if edit.replacement.is_none() => removed.push(&edit.target_id),
                (_, Some(newest)) => {
                    let is_whole = newest.calls.is_empty() && !newest.failed && !newest.cut_off;
                    return newest.role == Role::Assistant && is_whole && !removed.contains(&&entry.id);
                }
                _ => {}
            }
        }
        false
    }

    /// Whether the compaction after the turn may start.
    pub(in crate::session::core) fn may_begin_delayed(&self) -> bool {
        self.upkeep.after_turn.is_some() && !self.must_wait() && !planted(Fault::LaterForgotten)
    }

    /// The compaction after the turn, if it is due.
    pub(in crate::session::core) fn due_after_turn(&mut self) -> Option<Due> {
        if !self.may_begin_delayed() {
            return None;
        }
        self.upkeep.after_turn.take().map(|request| Due::Delayed(Box::new(request)))
    }

    /// Starts a compaction after the turn.
    pub(in crate::session::core) fn begin_delayed(&mut self, request: Request) {
        self.idle_gives_way();
        let Request { id, kind, params, asked, stop } = request;
        let opening = self.opening(kind, Place::Top(id.clone()), asked, self.state.usage(), stop.clone());
        let operation = self.start_operation(opening);
        self.moves(&id, &params);
        let initiator = params.initiator.unwrap_or(Initiator::User);
        let mut request = self.plan_request(params.keep_recent_tokens, initiator, Cause::Asked);
        request.insists = self.insists(&params);
        // It was checked when it was asked for.
        let authors = Authors::of(&params).unwrap_or_default();
        self.start(Job::Plan(PlanOrder { id, request, authors, former: None, stop }));
        self.work = Work::Preparing(operation, Focus::of(params));
    }

    /// Takes out the compaction after the turn, if it is the one with this id, or any without one.
    pub(in crate::session::core) fn take_delayed(&mut self, which: Option<&OperationId>) -> Option<Request> {
        self.upkeep.after_turn.take_if(|request| which.is_none_or(|which| *which == request.id))
    }

    /// Takes out the compaction after the turn, if the client cancelled the request that waits for it.
    pub(in crate::session::core) fn take_delayed_without_request(&mut self) -> Option<Request> {
        self.upkeep.after_turn.take_if(|request| request.asked.request().is_some_and(Ticket::cancelled))
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        compaction::request::PlanRequest,
        ids::ModelRef,
        protocol::{
            events::{Event, Reason},
            types::{Initiator, Outcome},
        },
        session::{
            core::{
                Input, Over,
                command::Command,
                held::{Held, answer, answered, events, job, line, log_work, messages, named, outcomes, plan},
            },
            effects::Effect,
            jobs::{Authors, Job},
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    /// A session below its threshold.
    fn session() -> Held {
        let mut held = Held::new();
        let model = json!({"provider": "p", "id": "m", "contextWindow": 16_000});
        let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m", "models": [model]});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held
    }

    fn ask(held: &mut Held, number: u64, mut params: Value) -> Vec<Effect> {
        params["sessionId"] = "held".into();
        params["when"] = "after_turn".into();
        held.send(number, Command::Compact(serde_json::from_value(params).expect("params")));
        held.turn()
    }

    fn append(held: &mut Held, number: u64, message: &Value) -> Vec<Effect> {
        let params = json!({"sessionId": "held", "messages": [message]});
        held.send(number, Command::Append(serde_json::from_value(params).expect("params")));
        let work = log_work(held.turn()).expect("a write");
        held.back(work)
    }

    fn assistant(content: Value, stop: &str) -> Value {
        json!({"role": "assistant", "content": content, "stopReason": stop, "timestamp": 1})
    }

    fn done() -> Value {
        assistant(json!([{"type": "text", "text": "Done."}]), "stop")
    }

    fn started(effects: &[Effect]) -> usize {
        let manual = |event: &&Event| matches!(event, Event::CompactionStart { reason: Reason::Manual, .. });
        events(effects).filter(manual).count()
    }

    #[test]
    fn it_starts_behind_the_next_answer_without_calls_which_names_it() {
        let mut held = session();
        let id = answer(&ask(&mut held, 1, json!({})), 1).expect("an answer at once")["operationId"].clone();
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
        for (number, message) in [
            (2, json!({"role": "user", "content": "Go on.", "timestamp": 1})),
            (3, assistant(call, "toolUse")),
            (4, json!({"role": "toolResult", "toolCallId": "c", "content": "x", "timestamp": 1})),
            (5, assistant(json!([]), "aborted")),
        ] {
            assert_eq!(started(&append(&mut held, number, &message)), 0, "behind message {number}");
            assert!(!held.core.is_due());
        }
        let effects = append(&mut held, 6, &done());
        let next = &answer(&effects, 6).expect("an answer")["next"];
        assert_eq!((&next["operationId"], &next["reason"]), (&id, &json!("manual")));
        assert_eq!(started(&effects), 1);
    }

    #[test]
    fn it_starts_at_once_where_the_turn_is_over() {
        let mut lines = messages();
        lines.push(line("answer", Some("e39"), "message", json!({"message": done()})));
        let mut held = Held::of(&lines, u64::MAX);
        let effects = ask(&mut held, 1, json!({}));
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Start(_))), "it is planned");
    }

    #[test]
    fn it_waits_for_the_repeat_of_an_answer_that_was_removed() {
        let mut lines = messages();
        lines.push(line("answer", Some("e39"), "message", json!({"message": done()})));
        let removal = json!({"targetId": "answer", "replacement": null});
        lines.push(line("removal", Some("answer"), "context_edit", removal));
        let mut held = Held::of(&lines, u64::MAX);
        let effects = ask(&mut held, 1, json!({}));
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Start(_))), "it is not planned");
        assert_eq!(started(&append(&mut held, 2, &done())), 1);
    }

    #[test]
    fn a_second_one_is_busy_and_one_without_a_condition_is_not() {
        let mut held = session();
        ask(&mut held, 1, json!({}));
        assert_eq!(answer(&ask(&mut held, 2, json!({})), 2), Some(json!("busy")));
        held.begin_draft(3);
    }

    #[test]
    fn it_starts_behind_a_compaction_that_runs_and_is_skipped_where_nothing_is_left() {
        let mut held = session();
        let order = held.begin_draft(1);
        assert!(answer(&ask(&mut held, 2, json!({"initiator": "agent"})), 2).expect("it is taken").is_object());
        assert_eq!(started(&append(&mut held, 3, &done())), 0);
        let failed = Err(crate::protocol::errors::Failure::Cancelled);
        assert_eq!(outcomes(&held.feed(Input::Drafted(order.id, failed))), [Outcome::Cancelled]);
        let effects = held.turn();
        assert_eq!(started(&effects), 1);
        let Job::Plan(order) = job(effects) else { unreachable!("it is planned when it starts") };
        let nothing = crate::protocol::errors::Failure::NothingToCompact(super::Nothing::AlreadyCompacted);
        assert_eq!(outcomes(&held.feed(Input::Planned(order.id, Err(nothing)))), [Outcome::Skipped]);
    }

    #[test]
    fn a_cancel_names_it_and_it_has_a_start_and_an_end() {
        for by_id in [true, false] {
            let mut held = session();
            let id = answer(&ask(&mut held, 1, json!({})), 1).expect("an answer")["operationId"].clone();
            let ticket = held.ticket(2);
            let which = by_id.then(|| id.as_str().expect("an id").into());
            let effects = held.feed(Input::Cancel(which, ticket));
            assert_eq!(answer(&effects, 2).expect("an answer")["cancelled"][0]["operationId"], id);
            assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
            assert_eq!(started(&append(&mut held, 3, &done())), 0);
        }
    }

    #[test]
    fn the_end_of_the_session_ends_it() {
        for input in [Input::Finish, Input::Stop] {
            let mut held = session();
            assert_eq!(answered(&ask(&mut held, 1, json!({"wait": true}))), [0; 0]);
            let effects = held.feed(input);
            assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
            assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
            assert_ne!(held.core.over(), Over::No);
        }
    }

    #[test]
    fn a_cancelled_request_ends_it() {
        let mut held = session();
        ask(&mut held, 1, json!({"wait": true}));
        let effects = held.feed(Input::RequestCancelled(1));
        assert_eq!(outcomes(&effects), [Outcome::Cancelled]);
    }

    #[test]
    fn an_agent_is_refused_below_half_of_the_threshold() {
        let mut held = Held::new();
        let refused = ask(&mut held, 1, json!({"initiator": "agent"}));
        assert_eq!(answer(&refused, 1), Some(json!("nothing_to_compact")));
        assert!(answer(&ask(&mut held, 2, json!({})), 2).expect("a person may").is_object());
    }

    #[test]
    fn a_session_that_is_only_read_refuses_it() {
        let mut lines = messages();
        for over in [false, true] {
            let mut held = Held::read_only_of(&lines);
            assert_eq!(
                answer(&ask(&mut held, 1, json!({})), 1),
                Some(json!("storage_error")),
                "the turn is over: {over}"
            );
            lines.push(line("answer", Some("e39"), "message", json!({"message": done()})));
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_is_no_end_of_a_turn() {
        let mut held = session();
        ask(&mut held, 1, json!({}));
        let cut = assistant(json!([{"type": "text", "text": "It is"}]), "length");
        assert_eq!(started(&append(&mut held, 2, &cut)), 0);
        assert_eq!(started(&append(&mut held, 3, &done())), 1);
    }

    #[test]
    fn it_begins_and_ends_at_once_in_a_session_that_finishes() {
        let mut held = session();
        held.feed(Input::Finish);
        let effects = ask(&mut held, 1, json!({"wait": true}));
        assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
        assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
    }

    #[test]
    fn its_answer_names_it_before_its_status_does_unless_it_leaves_with_a_batch() {
        let mut held = session();
        let id = answer(&ask(&mut held, 1, json!({})), 1).expect("an answer")["operationId"].clone();
        assert_eq!(named(&append(&mut held, 2, &done())), [id.as_str().map(str::to_owned)]);
        let mut held = session();
        let params = json!({"sessionId": "held", "when": "after_turn"});
        held.send_in_batch(1, Command::Compact(serde_json::from_value(params).expect("params")));
        held.turn();
        assert_eq!(named(&append(&mut held, 2, &done())), [None]);
    }

    #[test]
    fn it_is_planned_as_it_was_asked_for() {
        let mut held = session();
        let params =
            json!({"keepRecentTokens": 700, "initiator": "agent", "method": "extractive", "instructions": "Briefly."});
        ask(&mut held, 1, params);
        let Job::Plan(order) = job(append(&mut held, 2, &done())) else { unreachable!("it is planned") };
        let PlanRequest { keep_recent_tokens, initiator, insists, .. } = order.request;
        assert_eq!((keep_recent_tokens, initiator, insists), (Some(700), Initiator::Agent, true));
        assert_eq!(order.authors, Authors::Nobody);

        let mut held = session();
        ask(&mut held, 1, json!({"model": "p/other"}));
        let Job::Plan(order) = job(append(&mut held, 2, &done())) else { unreachable!("it is planned") };
        assert_eq!(order.authors, Authors::Only(ModelRef { provider: "p".into(), id: "other".into() }));

        let mut held = session();
        ask(&mut held, 1, json!({}));
        let Job::Plan(order) = job(append(&mut held, 2, &done())) else { unreachable!("it is planned") };
        let PlanRequest { keep_recent_tokens, initiator, insists, .. } = order.request;
        assert_eq!((keep_recent_tokens, initiator, insists), (None, Initiator::User, false));
        assert_eq!(order.authors, Authors::Anyone);
    }

    #[test]
    fn its_summary_follows_its_instructions() {
        let mut held = session();
        ask(&mut held, 1, json!({"keepRecentTokens": 500, "instructions": "Briefly."}));
        let Job::Plan(order) = job(append(&mut held, 2, &done())) else { unreachable!("it is planned") };
        let id = order.id.clone();
        let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
        assert_eq!(order.focus.instructions.as_deref(), Some("Briefly."));
    }

    #[test]
    fn a_cancel_stops_it_behind_its_start() {
        let mut held = session();
        ask(&mut held, 1, json!({}));
        let Job::Plan(order) = job(append(&mut held, 2, &done())) else { unreachable!("it is planned") };
        assert_eq!(outcomes(&held.cancel(3)), [Outcome::Cancelled]);
        assert!(order.stop.requested());
    }

    #[test]
    fn a_cancel_of_another_operation_or_request_leaves_it() {
        let mut held = session();
        assert_eq!(answered(&ask(&mut held, 1, json!({"wait": true}))), [0; 0]);
        let ticket = held.ticket(2);
        let cancelled = held.feed(Input::Cancel(Some("another".into()), ticket));
        assert_eq!(answer(&cancelled, 2), Some(json!({"cancelled": []})));
        assert_eq!(outcomes(&held.feed(Input::RequestCancelled(7))), []);
        assert_eq!(started(&append(&mut held, 3, &done())), 1);
    }
}
