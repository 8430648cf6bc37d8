//! The verdict on an answer that was appended: its error, its end and the counts that its provider reports.

use crate::{
    compaction::{
        meter,
        recovery::{Answer, AnswerError, Room, Trouble, Verdict},
    },
    conversation::{
        entry::Entry,
        message::{Block, Message, StopReason, outline::Role},
    },
    models::{self, SaidBy},
    provider::overflow::{self, Meaning, Overflow},
    session::{
        core::{Append, Core, commands::append},
        fault::{Fault, planted},
    },
};
use std::sync::Arc;

/// The answer of an append, as the core judges it.
pub(super) struct Judged {
    pub answer: Arc<Entry>,
    pub verdict: Verdict,
    /// Limit and size of the request as the provider states them, in tokens.
    pub stated: Option<(u64, u64)>,
}

impl Core {
    /// Judges the answer that ends these appends. `None` where they end with another message.
    pub(super) fn judge_last(&self, appends: &[Append]) -> Option<Judged> {
        let entries = &appends.last()?.staged.entries;
        let answer = entries.iter().rev().find(|entry| !entry.is_marker())?;
        let at_leaf = self.state.path().visible_leaf() == Some(&answer.id);
        if at_leaf { self.judge(answer) } else { None }
    }

    /// Judges an answer. `None` where the entry is none.
    pub(super) fn judge(&self, answer: &Arc<Entry>) -> Option<Judged> {
        let outline = answer.outline().filter(|outline| outline.role == Role::Assistant)?;
        let usage = outline.usage.unwrap_or_default();
        let judged = |verdict, stated| Some(Judged { answer: answer.clone(), verdict, stated });
        let model = self.model_of(outline);
        let taught = self.state.taught(model.as_ref());
        let window = models::window(&self.state.settings().settings, taught, model.as_ref());
        let room = Room { window: window.tokens, assumed: window.source == SaidBy::Default };
        let answer_of = |stop, error, has_text| Answer {
            stop,
            error,
            has_text,
            has_calls: !outline.calls.is_empty(),
            input: usage.prompt_tokens(),
            output: usage.output,
            context_tokens: self.state.measure().context_tokens,
        };
        if let Some(cut) = self.cut_prompt(answer, usage.prompt_tokens()).filter(|_| !outline.failed) {
            return judged(Verdict::Unusable(Trouble::TooLong), Some(cut));
        }
        // The body of an answer that came through is not read.
        if !outline.failed && !outline.cut_off {
            return judged(answer_of(StopReason::Other, AnswerError::None, true).verdict(room), None);
        }
        let Some(Message::Assistant(message)) = answer.message() else { return None };
        let meaning = append::failed_answer(answer).map(|failed| overflow::meaning(None, &failed.error));
        let (error, stated) = match meaning {
            Some(Meaning::Overflow(Overflow { limit, requested })) => {
                (AnswerError::TooManyTokens, limit.zip(requested))
            }
            Some(Meaning::Throttled) if planted(Fault::RateLimitRecovered) => (AnswerError::TooManyTokens, None),
            Some(Meaning::PayloadTooLarge) => (AnswerError::TooManyBytes, None),
            _ => (AnswerError::None, None),
        };
        let text = |block: &Block| matches!(block, Block::Text(text) if !text.trim().is_empty());
        let has_text = message.content.iter().any(text);
        judged(answer_of(message.stop, error, has_text).verdict(room), stated)
    }

    /// The window that a provider shows that cut the prompt of an answer without an error, and the size of the prompt, in
    /// tokens. A model that reported a longer prompt before has a larger window: then a part of the report is missing.
    fn cut_prompt(&self, answer: &Entry, reported: u64) -> Option<(u64, u64)> {
        let sent = self.state.plain_request().saturating_sub(meter::sent(answer, self.state.estimator()));
        let window = overflow::truncated(reported, sent)?;
        let model = |entry: &Entry| entry.outline().and_then(|outline| outline.model.clone());
        let longer = |entry: &Arc<Entry>| {
            let usage = entry.outline().and_then(|outline| outline.measured());
            usage.is_some_and(|usage| usage.prompt_tokens() > reported) && model(entry) == model(answer)
        };
        let misreported = self.state.path().iter().any(longer);
        (!misreported && self.state.settings().settings.tokens.learn_window).then_some((window, sent))
    }

    /// Tells that the output limit cut the text of the answer at the leaf, or that its prompt seems to be cut.
    pub(in crate::session::core) fn tell_of(&self, answer: &Arc<Entry>) {
        let usage = answer.outline().and_then(|outline| outline.measured());
        if let Some((reported, sent)) = usage.and_then(|usage| self.cut_prompt(answer, usage.prompt_tokens())) {
            self.warn(
                "The provider seems to have cut the prompt",
                format!(
                    "It reported {reported} tokens of about {sent}, so the answer leaves the context. If the report lacks a part, \
                     such as cached tokens, add that to its usage, or set tokens.learnWindow to false."
                ),
            );
        }
        let cut_off = answer.outline().is_some_and(|outline| outline.cut_off);
        if cut_off && self.judge(answer).is_some_and(|judged| judged.verdict == Verdict::Shortened) {
            self.warn(
                "The answer is cut off",
                "The model reached its output limit. The text that came is kept. To get the rest, ask the model to go on, \
                 or raise maxOutputTokens."
                    .to_owned(),
            );
        }
    }
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

    /// The verdict on an answer with these fields behind the session, and the sizes that its provider states.
    fn judged(held: &Held, fields: Value) -> (Verdict, Option<(u64, u64)>) {
        let line = line("answer", Some("e39"), "message", json!({"message": assistant(fields)}));
        let judged = held.core.judge(&Arc::new(Entry::parse(line.into()).expect("an entry"))).expect("an answer");
        (judged.verdict, judged.stated)
    }

    fn verdict(held: &Held, fields: Value) -> Verdict {
        judged(held, fields).0
    }

    /// An answer of `p/id`, or of an unknown model, that ended with text and this usage at its output limit.
    fn cut_off(id: Option<&str>, usage: Value) -> Value {
        let mut fields = json!({"stopReason": "length", "content": text("The first half"), "usage": usage});
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
            let expected = if full { Verdict::Unusable(WindowFull) } else { Verdict::Shortened };
            assert_eq!(verdict(&held, cut_off(id, usage(input, 0, 0))), expected, "{id:?}: {input}");
        }
    }

    #[test]
    fn the_window_of_an_answer_is_the_learned_one() {
        let mut held = session_of(&messages(), json!([]));
        let full = || cut_off(None, usage(9_900, 0, 0));
        assert_eq!(verdict(&held, full()), Verdict::Shortened);
        held.feed(Input::Windows(learned("p/m", 10_000)));
        assert_eq!(verdict(&held, full()), Verdict::Unusable(WindowFull));
    }

    #[test]
    fn the_counts_of_an_answer_are_input_with_cache_and_output() {
        let held = session(40_000);
        for (counts, full) in
            [(usage(1_000, 36_600, 0), true), (usage(1_000, 35_600, 1_000), true), (usage(1_000, 35_600, 0), false)]
        {
            let expected = if full { Verdict::Unusable(WindowFull) } else { Verdict::Shortened };
            assert_eq!(verdict(&held, cut_off(None, counts.clone())), expected, "{counts}");
        }
        let tokens = held.core.state.measure().context_tokens;
        let held = session(tokens);
        assert_eq!(verdict(&held, cut_off(None, json!(null))), Verdict::Unusable(WindowFull), "the context is counted");
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
        let tokens = session(40_000).core.state.measure().context_tokens;
        let large = || failed("413 Payload Too Large");
        assert_eq!(verdict(&session(2 * tokens), large()), Verdict::Usable);
        assert_eq!(verdict(&session(tokens), large()), Verdict::Unusable(TooLong));
    }

    #[test]
    fn a_message_of_the_user_is_not_judged() {
        let held = session(40_000);
        let entry = Entry::parse(message("question", Some("e39")).into()).expect("an entry");
        assert!(held.core.judge(&Arc::new(entry)).is_none());
    }

    #[test]
    fn a_prompt_that_was_cut_is_an_overflow_unless_the_answer_failed() {
        let held = session(40_000);
        let whole = json!({"content": text("I saw the end alone."), "usage": usage(1_024, 0, 10)});
        let (verdict_of, stated) = judged(&held, whole);
        assert_eq!((verdict_of, stated.map(|(window, _)| window)), (Verdict::Unusable(TooLong), Some(1_024)));
        let aborted = json!({"stopReason": "aborted", "usage": usage(1_024, 0, 10)});
        assert_eq!(verdict(&held, aborted), Verdict::Usable);
    }

    /// Appends an answer with these fields, and returns the verdict on it and the effects of the append.
    fn append(held: &mut Held, number: u64, fields: Value) -> (Verdict, Vec<crate::session::effects::Effect>) {
        held.append_with(number, json!({"messages": [assistant(fields)]}));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        let newest = held.core.state.path().iter().rev().find(|entry| !entry.is_marker()).cloned().expect("an answer");
        (held.core.judge(&newest).expect("an answer").verdict, effects)
    }

    #[test]
    fn the_answer_itself_is_no_part_of_its_prompt() {
        let mut held = session(40_000);
        let sent = held.core.state.plain_request();
        // With the answer, the report is less than 60 % of the context.
        let fields = json!({"content": text(&"word ".repeat(4_000)), "usage": usage(sent * 7 / 10, 0, 10)});
        assert_eq!(append(&mut held, 1, fields).0, Verdict::Usable);
    }

    #[test]
    fn a_longer_report_of_another_model_or_of_a_failed_answer_says_nothing_about_a_cut_prompt() {
        let cut = || json!({"content": text("I saw the end alone."), "usage": usage(1_024, 0, 10)});
        let earlier = |id: &str, stop: &str| json!({"provider": "p", "model": id, "stopReason": stop, "content": text("Read."), "usage": usage(4_200, 0, 10)});
        for (before, expected) in [
            (earlier("m", "stop"), Verdict::Usable),
            (earlier("small", "stop"), Verdict::Unusable(TooLong)),
            (earlier("m", "aborted"), Verdict::Unusable(TooLong)),
        ] {
            let mut held = session(40_000);
            append(&mut held, 1, before.clone());
            let mut fields = cut();
            fields["provider"] = "p".into();
            fields["model"] = "m".into();
            let line = line("answer", Some("e39"), "message", json!({"message": assistant(fields)}));
            let answer = Arc::new(Entry::parse(line.into()).expect("an entry"));
            assert_eq!(held.core.judge(&answer).expect("an answer").verdict, expected, "{before}");
        }
    }

    #[test]
    fn the_client_is_told_of_a_cut_prompt_and_of_shortened_text() {
        let told = |fields: Value| {
            let (_, effects) = append(&mut session(40_000), 1, fields);
            notices(&effects).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let cut_prompt = "The provider seems to have cut the prompt";
        assert_eq!(told(json!({"content": text("The end."), "usage": usage(1_024, 0, 10)})), [cut_prompt]);
        assert_eq!(told(json!({"stopReason": "aborted", "usage": usage(1_024, 0, 10)})), [""; 0]);
        assert_eq!(told(cut_off(None, usage(10_000, 0, 10))), ["The answer is cut off"]);
        assert_eq!(told(cut_off(None, usage(40_000, 0, 10))), [""; 0], "it leaves the context");
        assert_eq!(told(json!({"content": text("Done."), "usage": usage(5_000, 0, 10)})), [""; 0]);
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
        let done = LogDone::Wrote { appended, path: Some(Err(error)), undone: None };
        let effects = held.feed(Input::Log(Some(done), facts));
        assert_eq!(answer(&effects, 1).expect("an answer")["next"]["type"], "none");
    }
}
