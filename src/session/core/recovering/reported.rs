//! Failed answers that were appended while maintenance ran. They are decided about after it.

use super::judging::Judged;
use crate::{
    compaction::recovery::{Trouble, Verdict},
    conversation::{entry::Entry, message::outline::Role},
    ids::EntryId,
    protocol::{errors::Failure, notices::NoticeCode},
    session::{
        core::{
            base::Base,
            due::{Due, DueRecovery},
            edit::Staged,
            parts::{log_gate::FollowUp, waiting_contexts::Starts},
            recovering::{self, Recoveries},
            step::{Step, Write},
        },
        operations::Asked,
        state::State,
    },
    settings::Switch,
};
use std::sync::Arc;

/// A failed answer that waits for a decision.
pub(super) struct Reported {
    /// The answer, as it was judged in the context that it was given for.
    judged: Judged,
    /// The size of the context that was rejected, in tokens.
    rejected: u64,
}

/// Failed answers leave the context. No recovery follows.
struct Removal(Staged);

impl Write for Removal {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.entries.clone()
    }

    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        self.0.entries.iter().for_each(|entry| base.effects.announce(entry, None));
        base.send_usage();
        vec![Step::AnswerContexts]
    }

    fn not_written(self: Box<Self>, base: &mut Base, failure: &Failure) -> Vec<Step> {
        let title = "A failed answer could not be removed from the context";
        base.effects.warn(NoticeCode::FailedAnswerKept, title, failure.to_string());
        vec![Step::AnswerContexts]
    }

    /// The context is measured again.
    fn again(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::AnswerContexts]
    }

    fn follow_up(&self) -> FollowUp {
        FollowUp::Removal
    }
}

impl Recoveries {
    /// Whether the turn at the leaf is repeated after the maintenance that runs: its answer failed, and will leave the context.
    pub fn repeat_after_maintenance(&self, state: &State) -> bool {
        let leaf = state.path().visible_leaf();
        let at_leaf = self.reported.last().filter(|it| Some(&it.judged.answer.id) == leaf);
        at_leaf.is_some_and(|it| match it.judged.verdict {
            Verdict::Unusable(Trouble::CutOff) | Verdict::Reserved(_) | Verdict::RefusedBlock => true,
            _ => state.measure().compaction.switch() == Switch::On,
        })
    }

    /// Takes a failed answer. Where the path lacks its past, the decision needs the index.
    pub(super) fn report(&mut self, base: &mut Base, judged: Judged) {
        if !base.ending.goes_on() {
            return;
        }
        let rejected = base.state.measure().context_tokens;
        self.reported.push(Reported { judged, rejected });
        if base.state.lacks_past() {
            base.start_indexing();
        }
    }

    /// Forgets the failed answers that wait for a decision.
    pub fn forget_reported(&mut self) {
        self.reported.clear();
    }

    /// Decides about the newest of the failed answers. Where the context is smaller now than the one that was rejected, or the
    /// conversation went on, it only leaves the context. Those before it leave the context in any case.
    pub fn decide_reported(&mut self, base: &mut Base) -> Option<Step> {
        let mut reported = std::mem::take(&mut self.reported);
        let Reported { judged, rejected } = reported.pop()?;
        let path = base.state.path();
        let earlier = reported.iter().map(|it| &it.judged.answer.id).filter(|id| path.position(id).is_some());
        let earlier: Vec<EntryId> = earlier.cloned().collect();
        let newest = &judged.answer.id;
        let Some(place) = path.position(newest) else { return Some(remove(base, &earlier)) };
        let goes_on = |entry: &Arc<Entry>| entry.is_from(Role::User) || entry.is_from(Role::Assistant);
        let gone = path[place + 1..].iter().any(goes_on) || base.state.measure().context_tokens < rejected;
        let trouble = match judged.verdict {
            Verdict::Unusable(trouble) if !gone => trouble,
            _ => return Some(remove(base, &[earlier, vec![newest.clone()]].concat())),
        };
        Some(match self.recovery(base, &judged, trouble, Asked::Unasked) {
            Some(due) => Step::Start(Due::Recovery(DueRecovery { earlier, ..due })),
            None => remove(base, &earlier),
        })
    }
}

/// Removes answers from the context. No recovery follows.
pub(in crate::session::core) fn remove(base: &mut Base, answers: &[EntryId]) -> Step {
    // They waited for a recovery, and there is none.
    base.waiting.start(Starts::Maintenance);
    match recovering::removal(&base.state, &mut base.stamps, answers.iter()) {
        Ok(staged) if !staged.entries.is_empty() => Step::Write(Box::new(Removal(staged))),
        _ => Step::AnswerContexts,
    }
}

/// Takes the failed answer of a repeated turn out of the context, for other programs that read the file: a context of this
/// one has no failed answers. So it can stay where the session is at work.
pub(in crate::session::core) fn remove_repeated(base: &mut Base, answer: &EntryId) -> Option<Step> {
    (!base.work.is_in_front()).then(|| remove(base, std::slice::from_ref(answer)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_answered, next, recoveries, refuse_write, refused, set, wait_for_context};
    use crate::{
        protocol::{
            errors::Failure,
            events::{Event, RecoveryReason},
        },
        session::{
            core::{
                Input,
                held::{
                    Held, answer, built, compacted_messages, draft, events, job, log_work, message, notices, outcomes,
                    started, usages, written,
                },
            },
            effects::Effect,
            jobs::{DraftOrder, IndexBuilt},
            log_work::LogWork,
        },
    };
    use serde_json::{Value, json};

    #[test]
    fn a_refusal_during_a_compaction_is_decided_about_behind_it() {
        for smaller in [true, false] {
            let mut held = Held::new();
            let order = held.begin_draft(1);
            refused(&mut held, 2);
            let work = log_work(held.turn()).expect("a write");
            let effects = held.back(work);
            assert_eq!(next(&effects, 2)["operationId"], json!(order.id), "next names the compaction that runs");
            let effects = match smaller {
                true => {
                    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
                    let work = log_work(held.turn()).expect("a write");
                    held.back(work)
                }
                false => held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned())))),
            };
            assert_eq!(outcomes(&effects).len(), 1);
            let work = log_work(held.turn()).expect("the answer leaves the context");
            let kinds = written(Some(&work));
            assert!(kinds.contains(&"context_edit".to_owned()), "{kinds:?}");
            let effects = held.back(work);
            assert_eq!(recoveries(&effects).0, usize::from(!smaller));
        }
    }

    #[test]
    fn next_says_that_a_turn_is_repeated_behind_the_compaction_that_runs() {
        let cut_off = json!({"role": "assistant", "content": [], "stopReason": "length", "timestamp": 1});
        let good = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop",
            "timestamp": 1});
        let refusal = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"});
        for (message, enabled, repeats) in [
            (&refusal, true, true),
            (&refusal, false, false),
            (&cut_off, true, true),
            (&cut_off, false, true),
            (&good, true, false),
        ] {
            let mut held = Held::new();
            set(&mut held, json!({"compaction": {"enabled": enabled}}));
            let order = held.begin_draft(1);
            held.append_with(2, json!({"messages": [message]}));
            let work = log_work(held.turn()).expect("a write");
            let next = next(&held.back(work), 2);
            assert_eq!(next["operationId"], json!(order.id));
            assert_eq!(next["willRetry"], json!(repeats), "{message} {enabled}");
            held.append(3);
            let work = log_work(held.turn()).expect("a write");
            let next = super::super::tests::next(&held.back(work), 3);
            assert_eq!(next["willRetry"], json!(false), "the conversation goes on");
        }
    }

    /// A refusal was appended while a draft was made, and a context waits. The compaction ends with a failure.
    fn reported(held: &mut Held, behind: &[Value]) -> Vec<Effect> {
        let order = held.begin_draft(1);
        refused(held, 2);
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        for message in behind {
            held.append_with(3, json!({"messages": [message]}));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        assert!(!is_answered(&wait_for_context(held, 4), 4));
        held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))))
    }

    #[test]
    fn a_refusal_that_the_conversation_went_on_behind_only_leaves_the_context() {
        let good = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop",
            "timestamp": 1});
        for behind in [json!({"role": "user", "content": "go on", "timestamp": 1}), good] {
            let mut held = Held::new();
            reported(&mut held, &[behind]);
            let work = log_work(held.turn()).expect("the answer leaves the context");
            assert_eq!(written(Some(&work)), ["context_edit"]);
            let effects = held.back(work);
            assert_eq!(recoveries(&effects).0, 0);
            let kinds: Vec<&str> = events(&effects).map(Event::kind).collect();
            assert!(kinds.contains(&"entry_appended"), "{kinds:?}");
            assert!(is_answered(&effects, 4));
        }
    }

    #[test]
    fn a_context_that_waited_for_answers_to_leave_starts_the_compaction_that_is_due() {
        let mut held = Held::new();
        let model = json!({"provider": "p", "id": "m", "contextWindow": 6_000});
        set(&mut held, json!({"models": [model], "defaultModel": "p/m"}));
        let order = held.begin_draft(1);
        refused(&mut held, 2);
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let long = json!({"role": "user", "content": "a word ".repeat(6_000), "timestamp": 1});
        held.append_with(3, json!({"messages": [long]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        assert!(!is_answered(&wait_for_context(&mut held, 4), 4));
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("the compaction");
        held.back(work);
        let work = log_work(held.turn()).expect("the answer leaves the context");
        assert_eq!(written(Some(&work)), ["context_edit"]);
        let effects = held.back(work);
        assert_eq!((started(&effects).len(), answer(&effects, 4)), (1, None));
    }

    #[test]
    fn a_refusal_that_cannot_leave_the_context_does_not_hold_it() {
        let user = json!({"role": "user", "content": "go on", "timestamp": 1});
        let mut held = Held::new();
        reported(&mut held, std::slice::from_ref(&user));
        assert!(log_work(held.turn()).is_some());
        let effects = refuse_write(&mut held);
        assert_eq!(notices(&effects), ["A failed answer could not be removed from the context"]);
        assert!(is_answered(&effects, 4));

        let mut held = Held::new();
        reported(&mut held, &[user]);
        let work = log_work(held.turn()).expect("a write");
        let leaf = held.core.state().path().last().expect("a leaf").id.clone();
        held.disk.append_as_another(&message("other", Some(leaf.as_str()))).expect("an entry");
        assert!(is_answered(&held.back(work), 4), "another program was faster");
    }

    #[test]
    fn a_cancel_of_all_forgets_a_refusal_that_is_not_decided_about() {
        for all in [true, false] {
            let mut held = Held::new();
            let order = held.begin_draft(1);
            refused(&mut held, 2);
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
            let ticket = held.ticket(3);
            held.feed(Input::Cancel((!all).then(|| order.id.clone()), ticket));
            assert_eq!(log_work(held.turn()).is_none(), all);
        }
    }

    #[test]
    fn a_refusal_behind_a_compaction_of_another_program_waits_for_the_index() {
        let mut held = Held::of(&compacted_messages(), 0);
        refused(&mut held, 1);
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(next(&effects, 1), json!({"type": "none"}));
        assert!(!is_answered(&wait_for_context(&mut held, 2), 2), "the context waits");
        let rest = held.feed(built(job(effects)));
        let work = log_work(rest).or_else(|| log_work(held.turn())).expect("the rest of the index, or the entries");
        let effects = held.back(work);
        let started = match recoveries(&effects).0 {
            0 => {
                let work = log_work(held.turn()).expect("the entries of the recovery");
                recoveries(&held.back(work)).0
            }
            started => started,
        };
        assert_eq!(started, 1);
    }

    #[test]
    fn all_answers_that_fail_during_a_compaction_leave_the_context() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        for (number, id) in [(2, "a"), (3, "b")] {
            let call = json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}});
            let cut = json!({"role": "assistant", "content": [call], "stopReason": "length", "timestamp": 1});
            held.append_with(number, json!({"messages": [cut]}));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("the compaction");
        held.back(work);
        let work = log_work(held.turn()).expect("the answers leave the context");
        let removed = written(Some(&work)).iter().filter(|kind| *kind == "context_edit").count();
        assert_eq!(removed, 2, "in one write");
    }

    /// A draft is being made. After it, refusals with these params are appended, and a context waits with number 9.
    fn refusals(held: &mut Held, params: &[Value]) -> DraftOrder {
        let order = held.begin_draft(1);
        for (number, params) in (2..).zip(params) {
            let mut params = params.clone();
            params["messages"] = json!([{"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
                "errorMessage": "context_length_exceeded"}]);
            held.write_with(number, params);
        }
        assert!(!is_answered(&wait_for_context(held, 9), 9));
        order
    }

    fn fail(held: &mut Held, order: DraftOrder) -> Vec<Effect> {
        held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))))
    }

    /// The targets of the edits that are given to the log, and whether an attempt is recorded.
    fn edits(work: &LogWork) -> (Vec<String>, bool) {
        let LogWork::Append(work) = work else { return (Vec::new(), false) };
        let field = |line: &str, key: &str| serde_json::from_str::<Value>(line).expect("JSON")[key].clone();
        let edits = work.entries.iter().filter(|entry| entry.kind == "context_edit");
        let target = |line: &str| field(line, "targetId").as_str().expect("an id").to_owned();
        let attempt = work.entries.iter().any(|entry| field(entry.line(), "customType") == "abridged.attempt");
        (edits.map(|entry| target(entry.line())).collect(), attempt)
    }

    /// The ids of the failed answers of the session, oldest first.
    fn failures(held: &Held) -> Vec<String> {
        let failed = |entry: &&std::sync::Arc<crate::conversation::entry::Entry>| {
            entry.outline().is_some_and(|outline| outline.failed || outline.cut_off)
        };
        held.core.state().path().iter().filter(failed).map(|entry| entry.id.to_string()).collect()
    }

    #[test]
    fn a_recovery_behind_a_compaction_removes_the_earlier_refusals_too() {
        let mut held = Held::new();
        let order = refusals(&mut held, &[json!({}), json!({})]);
        fail(&mut held, order);
        let failures = failures(&held);
        assert_eq!(failures.len(), 2);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(edits(&work), (failures, true));
        assert_eq!(recoveries(&held.back(work)).0, 1);
    }

    #[test]
    fn an_earlier_refusal_on_a_branch_that_was_left_stays() {
        let mut held = Held::new();
        let order = refusals(&mut held, &[json!({}), json!({"parentEntryId": "e10"})]);
        fail(&mut held, order);
        let failures = failures(&held);
        assert_eq!(failures.len(), 1);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(edits(&work), (failures, true));
    }

    #[test]
    fn a_refusal_on_a_branch_that_was_left_changes_nothing() {
        let mut held = Held::new();
        let order = refusals(&mut held, &[json!({})]);
        // The other branch is larger than the context that was refused.
        let long = json!({"role": "user", "content": "word ".repeat(8_000), "timestamp": 1});
        held.write_with(3, json!({"parentEntryId": "e10", "messages": [long]}));
        fail(&mut held, order);
        let effects = held.turn();
        assert!(is_answered(&effects, 9));
        assert!(log_work(effects).is_none());
    }

    #[test]
    fn without_automatic_compaction_the_newest_refusal_stays() {
        for earlier in [0, 1] {
            let mut held = Held::new();
            set(&mut held, json!({"compaction": {"enabled": false}}));
            let order = refusals(&mut held, &vec![json!({}); earlier + 1]);
            fail(&mut held, order);
            let failures = failures(&held);
            let mut effects = held.turn();
            if earlier > 0 {
                let work = log_work(effects).expect("a write");
                assert_eq!(edits(&work), (failures[..earlier].to_vec(), false));
                effects = held.back(work);
                assert_eq!(recoveries(&effects).0, 0);
            }
            assert!(is_answered(&effects, 9), "no recovery follows");
        }
    }

    #[test]
    fn a_session_that_ends_decides_about_no_refusal() {
        let mut held = Held::new();
        let order = refusals(&mut held, &[json!({})]);
        held.feed(Input::Finish);
        assert!(!is_answered(&fail(&mut held, order), 9));
        let effects = held.turn();
        assert!(is_answered(&effects, 9));
        assert!(log_work(effects).is_none());
    }

    /// An answer with text that fills a window of 10,000 tokens, but none of 40,000.
    /// An answer without text that was cut off where the estimate of the context fills a window of 8,000 tokens.
    fn full() -> Value {
        json!({"messages": [
            {"role": "user", "content": "word ".repeat(3_000), "timestamp": 1},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}], "stopReason": "length",
                "timestamp": 1, "usage": {"input": 0, "output": 900, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}},
        ]})
    }

    fn window(held: &mut Held, tokens: u64) {
        let models = json!([{"provider": "p", "id": "m", "contextWindow": tokens}]);
        set(held, json!({"defaultModel": "p/m", "compaction": {"thresholdPercent": 99}, "models": models}));
    }

    #[test]
    fn the_usage_is_sent_when_an_answer_with_counts_has_left_the_context() {
        let mut held = Held::new();
        window(&mut held, 9_800);
        let order = held.begin_draft(1);
        held.write_with(2, full());
        held.write_with(3, json!({}));
        fail(&mut held, order);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(written(Some(&work)), ["context_edit"]);
        assert_eq!(usages(&held.back(work)), 1);
    }

    /// A refusal after a compaction of another program, and a context that waits with number 2. The index is being built.
    fn without_past() -> (Held, crate::session::jobs::Job) {
        let mut held = Held::of(&compacted_messages(), 0);
        refused(&mut held, 1);
        let work = log_work(held.turn()).expect("a write");
        let index = job(held.back(work));
        assert!(!is_answered(&wait_for_context(&mut held, 2), 2));
        (held, index)
    }

    #[test]
    fn a_context_is_answered_when_the_index_that_a_refusal_needs_cannot_be_built() {
        let (mut held, _) = without_past();
        assert!(is_answered(&held.feed(Input::Indexed(IndexBuilt::Stopped)), 2));
        assert!(!held.core.is_due());
    }

    #[test]
    fn a_cancel_of_all_answers_a_context_that_waits_for_a_decision() {
        let (mut held, index) = without_past();
        let cancelled = held.cancel(3);
        assert_eq!(answer(&cancelled, 3).expect("an answer")["cancelled"], json!([]));
        assert!(is_answered(&cancelled, 2));
        held.feed(built(index));
        assert!(log_work(held.turn()).is_none_or(|work| written(Some(&work)).is_empty()));
    }

    #[test]
    fn a_recovery_behind_a_compaction_has_the_reason_of_its_answer() {
        let mut held = Held::new();
        window(&mut held, 9_800);
        let order = held.begin_draft(1);
        held.write_with(2, full());
        fail(&mut held, order);
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        let reason = events(&effects).find_map(|event| match event {
            Event::RecoveryStart { reason, .. } => Some(*reason),
            _ => None,
        });
        assert_eq!(reason, Some(RecoveryReason::Incomplete));
    }

    #[test]
    fn a_session_that_ends_builds_no_index_for_a_refusal() {
        let mut held = Held::of(&compacted_messages(), 0);
        refused(&mut held, 1);
        let work = log_work(held.turn()).expect("a write");
        held.feed(Input::Finish);
        assert!(!held.back(work).iter().any(|effect| matches!(effect, Effect::Start(_))));
    }

    #[test]
    fn a_context_waits_until_the_entries_behind_a_refusal_are_written() {
        let user = json!({"role": "user", "content": "go on", "timestamp": 1});
        for (behind, kinds) in [(vec![], 2), (vec![user], 1)] {
            let mut held = Held::new();
            reported(&mut held, &behind);
            let work = log_work(held.turn()).expect("a write");
            assert_eq!(written(Some(&work)).len(), kinds);
            assert!(!is_answered(&held.feed(Input::Counted), 4), "counts decide nothing here");
            assert_eq!(is_answered(&held.back(work), 4), kinds == 1, "a recovery runs on");
        }
    }
}
