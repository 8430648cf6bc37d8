//! Reports of answers, after they were judged: the window that a saturated server shows, the doubts that the client is told of,
//! and the model that an answer names.

use super::super::{
    base::{Base, learning},
    commands::{append::Append, notices::SentNotices},
};
use crate::{
    conversation::{evidence::Verdict, tokens::Estimator},
    models::{ModelRef, learned::WindowOrigin},
    protocol::{
        events::{Event, ModelChange},
        notices::NoticeCode,
    },
    provider::address,
    session::{effects::Effects, state::State},
    wire::outbox::About,
};

/// Reports in a row that are not believed, after which the client is told.
const TOLD_AFTER: u32 = 3;

/// Provider whose servers cut prompts without an error, at any address.
const CUTS_PROMPTS: &str = "ollama";

/// A remark about a report: code, title and detail of a notice.
pub(in crate::session::core) type Remark = (NoticeCode, &'static str, String);

/// Acts on the report of the answer that ends these appends. Returns the remark that the client is sent after their entries.
pub(in crate::session::core) fn heed_report(
    base: &mut Base,
    sent: &mut SentNotices,
    appends: &[Append],
) -> Option<Remark> {
    let judged = base.state.newest_report()?;
    let is_new = |append: &Append| append.staged.entries.iter().any(|entry| entry.id == judged.answer);
    // Until the entries are counted, a report is judged by a weaker estimate.
    let is_counted = base.state.estimator() == base.state.wanted_estimator();
    if !appends.iter().any(is_new) || !is_counted {
        return None;
    }
    let (standing, model) = (judged.standing, judged.model.or_else(|| base.state.model(base.state.path())));
    if let (Verdict::Believed, Some(model)) = (standing.verdict, &model) {
        base.learn(learning::of_accepted(model, standing.reported, &base.facts()));
    }
    let cuts =
        |model: &ModelRef| base.state.settings().settings.tokens.learn_window && may_cut_prompts(&base.state, model);
    if let (Some(window), Some(model)) = (standing.saturated, model.filter(cuts)) {
        base.learn(learning::of_window(&model, window, WindowOrigin::Saturation, &base.facts()));
        let detail = format!(
            "It reported about {window} tokens three times in a row, while the conversation has about {} and grows. The next \
             contexts are made to fit {window} tokens. To keep more, raise the server's context length (num_ctx of Ollama, \
             --ctx-size of llama.cpp); if the reports lack a part, report it, or set tokens.learnWindow to false.",
            standing.expected
        );
        return Some((NoticeCode::PromptCut, "The server cuts prompts", detail));
    }
    let doubt = standing.doubt.filter(|_| standing.doubted >= TOLD_AFTER && sent.doubt_is_due())?;
    let detail = format!(
        "It reports {} tokens where about {} are expected. The estimate counts instead, and nothing else follows from the \
         report. {}",
        standing.reported,
        standing.expected,
        doubt.question()
    );
    Some((NoticeCode::UsageNotBelieved, "The reported usage is not believed", detail))
}

/// Tells of the model that an answer of these appends gave the session. A session with a chosen model keeps that.
pub(in crate::session::core) fn report_model(effects: &Effects, state: &State, from: Option<ModelRef>) {
    let to = state.model(state.path());
    if let Some(to) = to.filter(|to| from.as_ref() != Some(to)) {
        effects.emit(About::default(), Event::ModelChanged { from, to, reason: ModelChange::User });
    }
}

/// Whether the server of a model is one that may cut prompts without an error: on this machine, or Ollama.
fn may_cut_prompts(state: &State, model: &ModelRef) -> bool {
    let settings = &state.settings().settings;
    let address = settings.model(model).and_then(|model| model.base_url.as_deref());
    model.provider == CUTS_PROMPTS || address.is_some_and(address::is_local)
}

/// The sentence about the newest report, where it is not the size of the context.
pub(in crate::session::core) fn why_estimated(state: &State) -> Option<String> {
    let judged = state.newest_report()?;
    let (reported, expected) = (judged.standing.reported, judged.standing.expected);
    let counted = match state.estimator() {
        Estimator::Tiktoken => "",
        Estimator::Chars => " by characters",
    };
    match judged.standing.verdict {
        Verdict::Believed => None,
        Verdict::Unconfirmed => Some(format!(
            "The report of {reported} tokens is the first about this context; it starts nothing until a later one agrees."
        )),
        Verdict::Waits => Some(format!(
            "The report of {reported} tokens is not believed yet, because about {expected} were expected{counted}; the \
             estimate counts until a later one agrees."
        )),
        Verdict::Refused(doubt) => Some(format!(
            "The report of {reported} tokens is not believed, because about {expected} were expected{counted}; the estimate \
             counts. {}",
            doubt.question()
        )),
    }
}
