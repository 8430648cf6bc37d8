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
        let model = outline.model.clone().or_else(|| self.state.model(self.state.path()));
        let learned = model.as_ref().map(|model| self.state.learned.taught(model)).unwrap_or_default();
        let window = models::window(&self.state.settings().settings, learned, model.as_ref());
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
