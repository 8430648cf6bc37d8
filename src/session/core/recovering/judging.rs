//! The verdict on an answer that was appended: its error, its end and the counts that its provider reports.

use crate::{
    compaction::{
        native,
        recovery::{Answer, AnswerError, Room, Verdict},
    },
    conversation::{
        entry::Entry,
        evidence,
        message::{self, Block, Message, StopReason, outline::Role},
    },
    models::{self, SaidBy},
    protocol::notices::NoticeCode,
    provider::overflow::{self, Meaning, Overflow},
    session::{
        core::{
            base::Base,
            base::learning,
            commands::append::Append,
            parts::{contexts::Identity, facts::Facts},
            recovering::reserving,
        },
        fault::{Fault, planted},
        state::State,
    },
};
use std::sync::Arc;

/// The answer of an append, as the core judges it.
pub(super) struct Judged {
    pub answer: Arc<Entry>,
    pub verdict: Verdict,
    /// Limit and size of the request as the provider states them, in tokens.
    pub stated: Option<(u64, u64)>,
    /// The context that the answer was made for.
    pub context: Option<Identity>,
}

/// Tells that the output limit cut the text of the answer at the leaf.
pub(in crate::session::core) fn report_cut_off(base: &Base, answer: &Arc<Entry>) {
    let cut_off = answer.outline().is_some_and(|outline| outline.cut_off);
    if cut_off && judge(&base.facts(), answer).is_some_and(|judged| judged.verdict == Verdict::Shortened) {
        base.effects.warn(
            NoticeCode::AnswerCutOff,
            "The answer is cut off",
            "The model reached its output limit, or the end of its window. The text that came is kept. To get the rest, ask \
             the model to go on, or raise maxOutputTokens.",
        );
    }
}

/// Judges an answer whose prompt had this size in tokens, if its report is believed.
fn judge_with(facts: &Facts<'_>, answer: &Arc<Entry>, reported: Option<u64>) -> Option<Judged> {
    let outline = answer.outline().filter(|outline| outline.role == Role::Assistant)?;
    let usage = outline.usage.unwrap_or_default();
    let judged = |verdict, stated| Some(Judged { answer: answer.clone(), verdict, stated, context: None });
    let model = learning::model_of(outline, facts);
    let taught = facts.state.taught(model.as_ref());
    let window = models::window(&facts.state.settings().settings, taught, model.as_ref());
    let room = Room { window: window.tokens, assumed: window.source == SaidBy::Default };
    let answer_of = |stop, error, has_text| Answer {
        stop,
        error,
        has_text,
        has_calls: !outline.calls.is_empty(),
        input: reported,
        output: usage.output,
        context_tokens: facts.state.measure().evident_tokens,
    };
    // The body of an answer that came through is not read.
    if !outline.failed && !outline.cut_off {
        return judged(answer_of(StopReason::Other, AnswerError::None, true).verdict(room), None);
    }
    let Some(Message::Assistant(message)) = answer.message() else { return None };
    let meaning = answer.message_json().and_then(message::error_of).map(|error| overflow::meaning(None, &error));
    let (error, stated) = match meaning {
        Some(Meaning::Overflow(Overflow { limit, requested })) => (AnswerError::TooManyTokens, limit.zip(requested)),
        Some(Meaning::Reserved(refused)) => reserving::reserved(facts.state, refused, answer, model.as_ref()),
        Some(Meaning::Throttled) if planted(Fault::RateLimitRecovered) => (AnswerError::TooManyTokens, None),
        Some(Meaning::PayloadTooLarge) => (AnswerError::TooManyBytes, None),
        _ if native::is_first_refusal(facts.state.path(), &answer.id) => (AnswerError::RefusedBlock, None),
        _ => (AnswerError::None, None),
    };
    let text = |block: &Block| matches!(block, Block::Text(text) if !text.trim().is_empty());
    let has_text = message.content.iter().any(text);
    judged(answer_of(message.stop, error, has_text).verdict(room), stated)
}

/// Judges an answer. `None` where the entry is none.
pub(super) fn judge(facts: &Facts<'_>, answer: &Arc<Entry>) -> Option<Judged> {
    judge_with(facts, answer, believed_report(facts.state, answer))
}

/// Judges the answer that ends these appends. `None` where they end with another message.
pub(super) fn judge_last(facts: &Facts<'_>, appends: &[Append]) -> Option<Judged> {
    let entries = &appends.last()?.staged.entries;
    let answer = entries.iter().rev().find(|entry| !entry.is_marker())?;
    let at_leaf = facts.state.path().visible_leaf() == Some(&answer.id);
    if at_leaf { judge(facts, answer) } else { None }
}

/// The prompt that an answer reports, in tokens, if the report is believed.
fn believed_report(state: &State, answer: &Entry) -> Option<u64> {
    let report = state.newest_report().filter(|report| report.answer == answer.id)?;
    (report.standing.verdict == evidence::Verdict::Believed).then_some(report.standing.reported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compaction::recovery::Trouble::{CutOff, TooLong, WindowFull},
        log::error::StoreError,
        session::{
            core::{
                Input,
                held::{Held, answer, learned, line, log_work, message, messages, notices, written},
            },
            log_work::LogDone,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    /// A session of these lines whose model is `p/m`.
    fn session_of(lines: &[String], models: Value) -> Held {
        let mut held = Held::of(lines, u64::MAX);
        set(&mut held, json!({ "models": models }));
        held
    }

    /// A session of 40 messages whose model is `p/m`, with this window.
    fn session(window: u64) -> Held {
        session_of(&messages(), json!([model("m", window), model("small", 10_000)]))
    }

    fn set(held: &mut Held, mut settings: Value) {
        settings["defaultModel"] = "p/m".into();
        settings["tokens"]["estimator"] = "chars".into();
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    }

    fn model(id: &str, window: u64) -> Value {
        json!({"provider": "p", "id": id, "contextWindow": window})
    }

    fn assistant(fields: Value) -> Value {
        let mut message = json!({"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1});
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        message
    }

    fn usage(input: u64, cache_read: u64, output: u64) -> Value {
        json!({"input": input, "output": output, "cacheRead": cache_read, "cacheWrite": 0,
            "totalTokens": input + cache_read + output})
    }

    fn text(text: &str) -> Value {
        json!([{"type": "text", "text": text}])
    }

    /// The verdict on an answer with these fields after the session, and the sizes that its provider states. Its report is
    /// believed.
    fn judged(held: &Held, fields: Value) -> (Verdict, Option<(u64, u64)>) {
        let line = line("answer", Some("e39"), "message", json!({"message": assistant(fields)}));
        let answer = Arc::new(Entry::parse(line.into()).expect("an entry"));
        let usage = answer.outline().and_then(|outline| outline.measured());
        let judged =
            judge_with(&held.core.base.facts(), &answer, usage.map(|usage| usage.prompt_tokens())).expect("an answer");
        (judged.verdict, judged.stated)
    }

    fn verdict(held: &Held, fields: Value) -> Verdict {
        judged(held, fields).0
    }

    /// An answer of `p/id`, or of an unknown model, that ended without text and with this usage at its output limit.
    fn cut_off(id: Option<&str>, usage: Value) -> Value {
        let mut fields = json!({"stopReason": "length", "content": [], "usage": usage});
        if let Some(id) = id {
            fields["provider"] = "p".into();
            fields["model"] = id.into();
        }
        fields
    }

    fn failed(error: &str) -> Value {
        json!({"stopReason": "error", "errorMessage": error})
    }

    #[test]
    fn an_answer_is_held_against_the_window_of_the_model_that_gave_it() {
        let held = session(40_000);
        for (id, input, full) in
            [(None, 39_500, true), (None, 10_000, false), (Some("small"), 10_000, true), (Some("m"), 10_000, false)]
        {
            let expected = Verdict::Unusable(if full { WindowFull } else { CutOff });
            assert_eq!(verdict(&held, cut_off(id, usage(input, 0, 1))), expected, "{id:?}: {input}");
        }
    }

    #[test]
    fn the_window_of_an_answer_is_the_learned_one() {
        let mut held = session_of(&messages(), json!([]));
        let full = || cut_off(None, usage(9_900, 0, 1));
        assert_eq!(verdict(&held, full()), Verdict::Unusable(CutOff));
        held.feed(Input::Windows(learned("p/m", 10_000)));
        assert_eq!(verdict(&held, full()), Verdict::Unusable(WindowFull));
    }

    #[test]
    fn the_counts_of_an_answer_are_input_with_cache_and_output() {
        let held = session(40_000);
        for (counts, full) in
            [(usage(1_000, 36_600, 1), true), (usage(1_000, 35_600, 1_000), true), (usage(1_000, 35_600, 1), false)]
        {
            let expected = Verdict::Unusable(if full { WindowFull } else { CutOff });
            assert_eq!(verdict(&held, cut_off(None, counts.clone())), expected, "{counts}");
        }
        let tokens = held.core.base.state.measure().context_tokens;
        let held = session(tokens);
        assert_eq!(verdict(&held, cut_off(None, json!(null))), Verdict::Unusable(TooLong), "the context is counted");
    }

    #[test]
    fn an_answer_that_came_through_is_not_over_an_assumed_window() {
        let over = || json!({"content": text("Done."), "usage": usage(130_000, 0, 1)});
        assert_eq!(verdict(&session_of(&messages(), json!([])), over()), Verdict::Usable);
        assert_eq!(verdict(&session(128_000), over()), Verdict::OverWindow);
    }

    #[test]
    fn blank_text_is_no_text() {
        let held = session(40_000);
        let cut = |content: Value| {
            verdict(&held, json!({"stopReason": "length", "content": content, "usage": usage(10_000, 0, 500)}))
        };
        assert_eq!(cut(text(" \n")), Verdict::Unusable(CutOff));
        assert_eq!(cut(json!([{"type": "thinking", "thinking": "Hm."}])), Verdict::Unusable(CutOff));
        assert_eq!(cut(text("Yes")), Verdict::Shortened);
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
        assert_eq!(cut(json!([{"type": "text", "text": "Yes"}, call])), Verdict::Unusable(CutOff));
    }

    #[test]
    fn the_error_of_an_answer_decides_and_may_state_sizes() {
        let held = session(40_000);
        let too_long = "prompt is too long: 21000 tokens > 16000 maximum";
        assert_eq!(judged(&held, failed(too_long)), (Verdict::Unusable(TooLong), Some((16_000, 21_000))));
        let limit_alone = "This model's maximum context length is 16000 tokens.";
        assert_eq!(judged(&held, failed(limit_alone)), (Verdict::Unusable(TooLong), None));
        let mut aborted = failed(too_long);
        aborted["stopReason"] = "aborted".into();
        assert_eq!(verdict(&held, aborted), Verdict::Usable);
        assert_eq!(verdict(&held, failed("the connection was reset")), Verdict::Usable);
    }

    #[test]
    fn too_many_bytes_are_too_long_in_a_nearly_full_context_alone() {
        let tokens = session(40_000).core.base.state.measure().context_tokens;
        let large = || failed("413 Payload Too Large");
        assert_eq!(verdict(&session(2 * tokens), large()), Verdict::Usable);
        assert_eq!(verdict(&session(tokens), large()), Verdict::Unusable(TooLong));
    }

    #[test]
    fn a_message_of_the_user_is_not_judged() {
        let held = session(40_000);
        let entry = Entry::parse(message("question", Some("e39")).into()).expect("an entry");
        assert!(judge(&held.core.base.facts(), &Arc::new(entry)).is_none());
    }

    /// Appends an answer with these fields, and returns the verdict on it and the effects of the append.
    fn append_and_judge(
        held: &mut Held,
        number: u64,
        fields: Value,
    ) -> (Verdict, Vec<crate::session::effects::Effect>) {
        let effects = held.write_message(number, &assistant(fields));
        let newest =
            held.core.base.state.path().iter().rev().find(|entry| !entry.is_marker()).cloned().expect("an answer");
        (judge(&held.core.base.facts(), &newest).expect("an answer").verdict, effects)
    }

    #[test]
    fn a_report_that_is_not_believed_decides_nothing() {
        // By it the window is full, by the estimate it is not.
        let fields = json!({"stopReason": "length", "content": [], "usage": usage(39_500, 0, 500)});
        assert_eq!(append_and_judge(&mut session(40_000), 1, fields).0, Verdict::Unusable(CutOff));
        // No request can have been that small, and the answer stays.
        let fields = json!({"content": text("Done."), "usage": usage(1_024, 0, 10)});
        assert_eq!(append_and_judge(&mut session(40_000), 1, fields).0, Verdict::Usable);
    }

    #[test]
    fn the_client_is_told_of_shortened_text() {
        let told = |fields: Value| {
            let (_, effects) = append_and_judge(&mut session(40_000), 1, fields);
            notices(&effects).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let shortened =
            |input| json!({"stopReason": "length", "content": text("The first half"), "usage": usage(input, 0, 10)});
        assert_eq!(told(shortened(10_000)), ["The answer is cut off"]);
        assert_eq!(told(cut_off(None, usage(10_000, 0, 10))), [""; 0], "it leaves the context");
        assert_eq!(told(json!({"stopReason": "aborted", "usage": usage(1_024, 0, 10)})), [""; 0]);
        assert_eq!(told(json!({"content": text("The end."), "usage": usage(1_024, 0, 10)})), [""; 0]);
    }

    #[test]
    fn texts_for_other_programs_behind_an_answer_do_not_hide_it() {
        let pin = line("p1", Some("e39"), "custom", json!({"customType": "abridged.pin", "data": {"entryId": "e2"}}));
        let fields = json!({"summary": "A parser was mended.", "firstKeptEntryId": "e30", "tokensBefore": 100});
        let compaction = line("c1", Some("p1"), "compaction", fields);
        let lines: Vec<String> = messages().into_iter().chain([pin, compaction]).collect();
        let mut held = session_of(&lines, json!([]));
        held.append_with(1, json!({"messages": [assistant(failed("context_length_exceeded"))]}));
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(written(Some(&work)), ["message", "custom_message"]);
        let effects = held.back(work);
        assert_eq!(answer(&effects, 1).expect("an answer")["next"]["reason"], "overflow");
    }

    #[test]
    fn an_answer_on_a_path_that_cannot_be_read_is_not_judged() {
        let mut held = session(40_000);
        let refused = assistant(failed("context_length_exceeded"));
        held.append_with(1, json!({"parentEntryId": "branch", "messages": [refused]}));
        let mut work = log_work(held.turn()).expect("a write");
        if written(Some(&work)).is_empty() {
            held.back(work);
            work = log_work(held.turn()).expect("a write");
        }
        let done = work.run(&mut *held.log, &crate::log::sealed::Blocking::is_allowed_here());
        let LogDone::Wrote { appended, .. } = done else { unreachable!("it was a write") };
        let error = StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() };
        let facts = held.facts();
        let done = LogDone::Wrote { appended, path: Some(Err(error)), undone: None, added: Vec::new() };
        let effects = held.feed(Input::Log(Some(done), facts));
        assert_eq!(answer(&effects, 1).expect("an answer")["next"]["type"], "none");
    }
}
