//! Maintenance that no client asks for: what brings the context below the threshold, and the time after a compaction that did
//! not complete.

pub(super) mod cold;
pub(super) mod pruning;
pub(super) mod resuming;
pub(super) mod speculating;
pub(super) mod speculation;
pub(super) mod switching;

use super::{
    base::Base,
    commands::prune,
    due::{Due, DueCompaction},
    edit::Staged,
    parts::{log_gate::FollowUp, waiting_contexts::Starts},
    step::{Step, Write},
    upkeep::Upkeep,
    work::{Unstarted, Work},
};
use crate::{
    compaction::{
        decide::{Automatic, Decision, Rest, Why},
        request::Cause,
    },
    conversation::entry::Entry,
    protocol::{
        errors::Failure,
        events::{Event, ModelChange},
        notices::{NoticeCode, Warning},
    },
    session::{
        core::{recovering::promotion, transfers::relaying},
        data::model_fields,
        fault::{Fault, planted},
        jobs::Focus,
        kind::{OperationKind, Product},
        operations::End,
        state::State,
        stop::Stop,
    },
    wire::outbox::About,
};
use std::sync::Arc;

/// Entries that bring the context below the threshold, with the event that follows them.
struct Relief {
    staged: Staged,
    event: Event,
}

impl Write for Relief {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.staged.entries.clone()
    }

    /// The context is measured again.
    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        if self.staged.stores_model() {
            base.state.stored_model();
        }
        self.staged.entries.iter().for_each(|entry| base.effects.announce(entry, None));
        base.effects.emit(About::default(), self.event);
        base.send_usage();
        vec![Step::StartIfDue, Step::AnswerContexts]
    }

    fn not_written(self: Box<Self>, base: &mut Base, failure: &Failure) -> Vec<Step> {
        let title = "The context could not be made smaller";
        base.effects.warn(NoticeCode::ContextNotReduced, title, failure.to_string());
        // Another try would fail, too, and the requests would start one after the other.
        base.waiting.start(Starts::Nothing);
        vec![Step::AnswerContexts]
    }

    /// The context is measured again.
    fn again(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::AnswerContexts]
    }

    fn follow_up(&self) -> FollowUp {
        FollowUp::Measure
    }
}

/// Writes entries that bring the context below the threshold.
pub(super) fn write_relief(staged: Staged, event: Event) -> Step {
    Step::Write(Box::new(Relief { staged, event }))
}

/// How the session stands towards maintenance at its leaf.
pub(super) struct AtLeaf {
    pub decision: Decision,
    /// Whether a compaction is due and may start.
    pub is_due: bool,
    /// Whether maintenance may start.
    pub may_start: bool,
}

/// Entries that bring the context below the threshold without a compaction: old tool results are cut, or a larger model
/// is chosen. That needs no automatic compaction.
pub(super) fn relief(base: &mut Base, upkeep: &mut Upkeep, at_leaf: &AtLeaf) -> Option<Due> {
    let AtLeaf { decision, is_due, may_start } = at_leaf;
    // A pruning of a context with room saves less than a compaction, and a larger model nothing.
    if matches!(decision.why, Why::Cold { .. }) {
        return None;
    }
    // It is paid for already.
    if *is_due && decision.why != Why::Images && upkeep.ahead.serving(&base.state).is_some() {
        return None;
    }
    if *is_due && let Some(staged) = pruning::that_suffices(base, upkeep, decision.why) {
        let event = prune::event(&staged, &staged.why);
        return Some(Due::Relief(staged, event));
    }
    let off = |why| matches!(why, Why::Off(Automatic::Disabled | Automatic::StrategyOff));
    // A larger window takes no more bytes.
    let helps = *is_due || *may_start && off(decision.why);
    if decision.is_about_images() || !helps {
        return None;
    }
    let to = promotion::larger_model(base)?;
    let from = base.state.model(base.state.path());
    let mut staged = Staged::default();
    staged.add(&base.state, &mut base.stamps, "model_change", &model_fields(&to)).ok()?;
    Some(Due::Relief(staged, Event::ModelChanged { from, to, reason: ModelChange::Promotion }))
}

/// Starts a compaction, with the summary that was made ahead if there is one.
pub(super) fn begin(base: &mut Base, upkeep: &mut Upkeep, due: DueCompaction) {
    let DueCompaction { id, reason, asked, former } = due;
    let kind = OperationKind::Compaction(reason);
    let Some(asked) = speculating::splice(base, &mut upkeep.ahead, kind.clone(), &id, asked) else { return };
    let stop = Stop::default();
    let unstarted = Unstarted { id: id.clone(), kind, asked, stop: stop.clone() };
    let operation = base.open(unstarted, base.state.usage());
    base.plan(id, Cause::Due, former, stop);
    base.work = Work::Preparing(operation, Focus::default());
}

impl Upkeep {
    /// Records the end of a compaction: an automatic one that did not complete is not repeated immediately.
    pub fn rests_after(&mut self, state: &State, kind: &OperationKind, end: &End<Product>) {
        self.rest = match end {
            End::Completed(_) => {
                self.ahead.begins_anew();
                None
            }
            _ if planted(Fault::RestForgotten) => None,
            // It says nothing about the branch that the session is on now.
            End::Failed(Failure::ContentModified { .. }) => None,
            _ if kind.is_automatic() => {
                let fullness = state.measure();
                Some(Rest { context_tokens: fullness.context_tokens, threshold: fullness.budget.threshold })
            }
            _ => self.rest,
        };
    }

    /// A transfer ends. `is_due`: whether maintenance is due then. After one that left the conversation to a new session nothing is
    /// done here, and nothing after a move: a client that looks at another branch must find it as it was.
    pub fn transfer_ends(&mut self, base: &Base, end: &End<Product>, is_due: bool) {
        self.relays.handed_off(end);
        let is_left = end.product().is_some_and(|product| product.new_session().is_some() || product.is_move());
        if base.relay().is_none() && !is_left {
            self.after_transfer = is_due;
        }
    }

    /// The notices after the end of an operation.
    pub fn notices_after(&mut self, base: &mut Base, kind: &OperationKind, end: &End<Product>) -> Vec<Warning> {
        if let OperationKind::Transfer(transfer) = kind {
            return transfer.notices(end);
        }
        let lack = base.take_lack();
        let follows_handoffs = relaying::client_follows_handoffs(&base.state, &self.relays);
        self.notices.notices_after(&base.facts(), kind, end, lack, follows_handoffs)
    }
}

#[cfg(test)]
mod tests {
    use crate::session::core::standing::Standing;
    use crate::{
        ids::ModelRef,
        protocol::{
            SessionContext,
            errors::Failure,
            events::{Event, Reason},
            types::Outcome,
        },
        session::{
            core::{
                Input,
                command::Command,
                commands::prune::{self, Share},
                held::{
                    Held, answer, answered, compacted_messages, draft, events, job, line, log_work, message, messages,
                    named, notices, outcomes, plan, started, written,
                },
            },
            effects::Effect,
            jobs::Job,
            state::SessionData,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    fn set(held: &mut Held, mut settings: Value) {
        settings["tokens"] = json!({"estimator": "chars"});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    }

    /// A session of these lines with these settings.
    fn session(lines: &[String], settings: Value) -> Held {
        let mut held = Held::of(lines, u64::MAX);
        set(&mut held, settings);
        held
    }

    /// 40 messages of users, over the threshold.
    fn over() -> Held {
        session(&messages(), json!({"compaction": {"thresholdTokens": 2_000}}))
    }

    /// Four calls, each with a result of about 1,000 tokens.
    fn results() -> Vec<String> {
        let user = json!({"message": {"role": "user", "content": "Read the four parts.", "timestamp": 1}});
        let mut lines = vec![line("u", None, "message", user)];
        let mut before = "u".to_owned();
        for at in 0..4 {
            let call = json!([{"type": "toolCall", "id": format!("c{at}"), "name": "bash", "arguments": {}}]);
            let call = json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1});
            let text = "A line of the part that was read. ".repeat(120);
            let result = json!({"role": "toolResult", "toolCallId": format!("c{at}"), "toolName": "bash",
                "content": [{"type": "text", "text": text}], "timestamp": 1});
            for (id, message) in [(format!("a{at}"), call), (format!("r{at}"), result)] {
                lines.push(line(&id, Some(&before), "message", json!({ "message": message })));
                before = id;
            }
        }
        lines
    }

    /// Settings with which all results but the newest may leave.
    fn pruning(compaction: &Value) -> Value {
        json!({"prune": {"protectTokens": 500, "minimumSavings": 100}, "compaction": compaction})
    }

    /// Appends an answer.
    fn append_answer(held: &mut Held, number: u64) -> Vec<Effect> {
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "timestamp": 1});
        held.write_message(number, &answer)
    }

    fn kinds(effects: &[Effect]) -> Vec<&'static str> {
        events(effects).map(Event::kind).collect()
    }

    /// Asks for a context to send.
    fn ask(held: &mut Held, number: u64) -> Vec<Effect> {
        held.call::<SessionContext>(number, json!({"wait": true}));
        held.turn()
    }

    #[test]
    fn nothing_starts_beside_a_compaction_that_is_planned() {
        let mut held = over();
        held.compact(1);
        assert!(matches!(job(held.turn()), Job::Plan(_)));
        let effects = held.write(2);
        assert_eq!(started(&effects), []);
        assert_eq!(answer(&effects, 2).expect("an answer")["next"], json!({"type": "none"}));
    }

    #[test]
    fn nothing_starts_before_the_end_of_a_compaction_that_was_cancelled() {
        let mut held = over();
        held.compact(1);
        held.turn();
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(outcomes(&held.cancel(3)), []);
        assert_eq!(started(&held.back(work)), []);
        let ended = held.turn();
        assert_eq!((started(&ended), outcomes(&ended)), (vec![Reason::Manual], vec![Outcome::Cancelled]));
        assert_eq!(started(&held.write(4)), [Reason::Threshold]);
    }

    #[test]
    fn nothing_starts_in_a_session_that_finishes() {
        let mut held = over();
        held.feed(Input::Finish);
        assert_eq!(started(&held.write(1)), []);
    }

    #[test]
    fn an_answer_names_a_compaction_before_its_status_does_unless_it_leaves_with_a_batch() {
        let mut held = over();
        let effects = held.write(1);
        let id = answer(&effects, 1).expect("an answer")["next"]["operationId"].as_str().map(str::to_owned);
        assert_eq!(named(&effects), [id]);
        let mut held = over();
        let message = json!({"role": "user", "content": "go on", "timestamp": 1});
        let params = json!({"sessionId": "held", "messages": [message]});
        held.send_in_batch(1, Command::Append(serde_json::from_value(params).expect("params")));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(started(&effects), [Reason::Threshold]);
        assert_eq!(named(&effects), [None]);
    }

    /// The size of the context after a pruning, in tokens.
    fn left(held: &Held) -> u64 {
        let state = held.core.state();
        let pruned = prune::pruned(state, &state.settings().settings.prune, Share::All);
        let fullness = state.measure();
        fullness.context_tokens - fullness.scale.size(pruned.tokens_saved)
    }

    #[test]
    fn old_results_leave_where_that_brings_the_context_to_its_threshold() {
        let mut held = session(&results(), pruning(&json!({"thresholdTokens": 100_000})));
        held.write(1);
        let suffices = left(&held);
        for (threshold, prunes) in [(suffices, true), (suffices - 1, false)] {
            let mut held = session(&results(), pruning(&json!({"thresholdTokens": threshold})));
            let effects = held.write(1);
            assert_eq!(started(&effects).is_empty(), prunes, "threshold {threshold}");
            let work = log_work(effects);
            assert_eq!(written(work.as_ref()), vec!["context_edit"; if prunes { 3 } else { 0 }]);
            if let Some(work) = work {
                let effects = held.back(work);
                let entry = "entry_appended";
                assert_eq!(kinds(&effects), [entry, entry, entry, "pruned", "usage_updated"]);
            }
        }
    }

    #[test]
    fn old_results_leave_where_that_brings_the_context_to_the_threshold_that_stands_in() {
        let model = json!({"provider": "p", "id": "m", "contextWindow": 6_000});
        let mut settings = pruning(&json!({"thresholdTokens": 100, "reserveTokens": 500}));
        settings["models"] = json!([model]);
        settings["defaultModel"] = "p/m".into();
        let mut held = session(&results(), settings);
        let effects = held.write(1);
        assert_eq!(started(&effects), []);
        assert_eq!(written(log_work(effects).as_ref()), ["context_edit"; 3]);
    }

    /// A session whose client asks the model that a context names, with a larger model for `p/small`, which it chose.
    fn promoted(lines: &[String], compaction: &Value) -> Held {
        let chosen = ModelRef { provider: "p".to_owned(), id: "small".to_owned() };
        let mut held = Held::given_lines(lines, SessionData::default(), chosen);
        held.switches_models();
        let models = json!([
            {"provider": "p", "id": "small", "contextWindow": 4_000, "promoteTo": "p/large"},
            {"provider": "p", "id": "large", "contextWindow": 100_000},
        ]);
        let promotion = json!({"enabled": true});
        set(&mut held, json!({"models": models, "compaction": compaction, "contextPromotion": promotion}));
        held
    }

    #[test]
    fn a_larger_model_takes_the_context_where_automatic_compaction_is_off() {
        for compaction in [json!({"enabled": false}), json!({"strategy": "off"})] {
            let mut held = promoted(&messages(), &compaction);
            let work = log_work(held.write(1)).expect("the change of the model");
            assert_eq!(written(Some(&work)), ["model_change"]);
            let effects = held.back(work);
            assert_eq!(kinds(&effects), ["entry_appended", "model_changed", "usage_updated"]);
            let state = held.core.state();
            assert_eq!(state.model(state.path()).map(|model| model.id).as_deref(), Some("large"));
        }
    }

    #[test]
    fn the_model_does_not_change_while_a_compaction_runs() {
        let mut held = promoted(&messages(), &json!({"enabled": false}));
        held.begin_draft(1);
        assert!(log_work(held.write(2)).is_none());
    }

    #[test]
    fn a_larger_model_is_not_chosen_for_the_bytes_of_images() {
        let data = "A".repeat(15_000_004);
        let content = json!([{"type": "image", "data": data, "mimeType": "image/png"}]);
        let image = json!({"message": {"role": "user", "content": content, "timestamp": 1}});
        let mut held = promoted(&[line("e0", None, "message", image)], &json!({"enabled": false}));
        assert!(Standing::of(&held.core).decision().is_about_images());
        assert!(log_work(held.write(1)).is_none());
    }

    /// A session over its window, whose old results may leave.
    fn over_window() -> Held {
        let model = json!({"provider": "p", "id": "m", "contextWindow": 4_000});
        let mut settings = pruning(&json!({}));
        settings["models"] = json!([model]);
        settings["defaultModel"] = "p/m".into();
        session(&results(), settings)
    }

    #[test]
    fn a_pruning_that_cannot_be_written_is_not_repeated_for_the_context_that_waits() {
        let mut held = over_window();
        assert!(log_work(ask(&mut held, 1)).is_some());
        let effects = held.refuse_write();
        assert_eq!(notices(&effects), ["The context could not be made smaller"]);
        assert_eq!(answer(&effects, 1), Some(json!("context_overflow")));
        assert!(log_work(effects).is_none());
    }

    #[test]
    fn a_pruning_is_decided_about_again_behind_the_entries_of_another_program() {
        let mut held = over_window();
        let work = log_work(ask(&mut held, 1)).expect("the pruning");
        held.disk.append_as_another(&message("other", Some("r3"))).expect("an entry");
        let work = log_work(held.back(work)).expect("the pruning again");
        assert_eq!(written(Some(&work)), ["context_edit"; 3]);
        assert_eq!(answered(&held.back(work)), [1]);
    }

    #[test]
    fn a_context_is_answered_behind_the_pruning_that_makes_room_for_it() {
        let mut held = over_window();
        let effects = ask(&mut held, 1);
        assert_eq!(answered(&effects), [0; 0]);
        let work = log_work(effects).expect("the pruning");
        assert_eq!(written(Some(&work)), ["context_edit"; 3]);
        let effects = held.back(work);
        assert_eq!(answered(&effects), [1]);
        assert!(answer(&effects, 1).is_none_or(|answer| answer.is_object()), "it is not refused");
    }

    #[test]
    fn a_compaction_that_a_context_starts_is_named_by_its_start() {
        let model = json!({"provider": "p", "id": "m", "contextWindow": 4_000});
        let mut held = session(&messages(), json!({"models": [model], "defaultModel": "p/m"}));
        let effects = ask(&mut held, 1);
        assert_eq!((started(&effects), named(&effects)), (vec![Reason::Threshold], vec![None]));
    }

    #[test]
    fn a_compaction_by_hand_that_is_cancelled_changes_nothing_for_the_next_automatic_one() {
        let mut held = over();
        held.begin_draft(1);
        held.cancel(2);
        assert_eq!(started(&append_answer(&mut held, 3)), [Reason::Threshold]);
        assert_eq!(outcomes(&held.cancel(4)), [Outcome::Cancelled]);
        held.begin_draft(5);
        held.cancel(6);
        assert_eq!(started(&append_answer(&mut held, 7)), []);
    }

    #[test]
    fn a_path_whose_past_is_indexed_is_compacted() {
        let mut held = session(&compacted_messages(), json!({"compaction": {"thresholdTokens": 2_000}}));
        assert_eq!(started(&held.write(1)), [Reason::Threshold]);
    }

    #[test]
    fn the_reason_names_a_compaction_that_runs() {
        let mut held = over();
        let order = held.begin_draft(1);
        assert!(Standing::of(&held.core).why().starts_with(&format!("A compaction is running ({})", order.id)));
    }

    /// A session that counts with a tokenizer whose tables are not loaded.
    fn uncounted(threshold: u64) -> Held {
        let mut held = Held::new();
        let settings = json!({"tokens": {"estimator": "auto"}, "compaction": {"thresholdTokens": threshold}});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        assert!(held.core.base.counting.runs());
        held
    }

    #[test]
    fn an_append_below_the_threshold_waits_for_no_counts() {
        let mut held = uncounted(50_000);
        assert_eq!(answered(&held.write(1)), [1]);
    }

    #[test]
    fn an_append_over_the_threshold_waits_until_its_own_entries_are_counted() {
        let mut held = uncounted(2_000);
        let message = json!({"role": "user", "content": "a word ".repeat(10_000), "timestamp": 1});
        held.append_with(1, json!({"messages": [message]}));
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(answered(&held.back(work)), [0; 0]);
        held.at.tokenizer = true;
        assert_eq!(answered(&held.feed(Input::Counted)), [0; 0], "those before it are counted");
        assert_eq!(answered(&held.feed(Input::Counted)), [1]);
    }

    #[test]
    fn an_append_during_a_recovery_is_told_that_the_turn_is_repeated() {
        let mut held = Held::new();
        let refused = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"});
        held.append_with(1, json!({"messages": [refused]}));
        let work = log_work(held.turn()).expect("a write");
        let work = log_work(held.back(work)).expect("the entries of the recovery");
        held.back(work);
        let next = answer(&held.write(2), 2).expect("an answer")["next"].clone();
        assert_eq!((&next["reason"], &next["willRetry"]), (&json!("overflow"), &json!(true)));
    }

    #[test]
    fn a_context_starts_no_second_compaction_where_the_conversation_was_changed() {
        let model = json!({"provider": "p", "id": "m", "contextWindow": 4_000});
        let mut held = session(&messages(), json!({"models": [model], "defaultModel": "p/m"}));
        let Job::Plan(order) = job(ask(&mut held, 1)) else { unreachable!("it is planned") };
        let id = order.id.clone();
        let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
        held.append_with(2, json!({"parentEntryId": "e38"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let effects = held.turn();
        assert_eq!((outcomes(&effects), started(&effects)), (vec![Outcome::Failed], vec![]));
        assert_eq!(answer(&effects, 1), Some(json!("context_overflow")));
    }

    #[test]
    fn old_results_stay_where_automatic_compaction_is_off() {
        let mut held = session(&results(), pruning(&json!({"thresholdTokens": 2_500, "enabled": false})));
        assert!(log_work(held.write(1)).is_none());
    }

    #[test]
    fn a_compaction_follows_the_images_that_leave_where_the_context_is_over_the_threshold() {
        let mut lines = messages();
        for (at, bytes) in [2_000_000, 5_000_000, 4_500_000, 4_000_000].into_iter().enumerate() {
            let content = json!([{"type": "image", "data": "A".repeat(bytes), "mimeType": "image/png"}]);
            let image = json!({"message": {"role": "user", "content": content, "timestamp": 1}});
            let before = if at == 0 { "e39".to_owned() } else { format!("i{}", at - 1) };
            lines.push(line(&format!("i{at}"), Some(&before), "message", image));
        }
        let mut held = session(&lines, json!({"compaction": {"thresholdTokens": 2_000}}));
        let effects = held.write(1);
        assert_eq!(started(&effects), []);
        let work = log_work(effects).expect("the edits");
        assert_eq!(written(Some(&work)), ["context_edit"; 2]);
        let effects = held.back(work);
        assert_eq!((started(&effects), named(&effects)), (vec![Reason::Threshold], vec![None]));
    }

    #[test]
    fn a_compaction_that_fails_is_not_repeated_before_the_next_message_of_the_user() {
        let mut held = over();
        let Job::Plan(order) = job(held.write(1)) else { unreachable!("it is planned") };
        let failed = held.feed(Input::Planned(order.id, Err(Failure::Internal("it failed".to_owned()))));
        assert_eq!(outcomes(&failed), [Outcome::Failed]);
        assert_eq!(started(&append_answer(&mut held, 2)), []);
        assert_eq!(started(&held.write(3)), [Reason::Threshold]);
    }
}
