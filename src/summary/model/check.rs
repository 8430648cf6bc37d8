//! The gate: whether what a model answered is a summary. The only way to a text that may be stored; whatever does not
//! pass is named by its reason and thrown away.

mod form;
#[cfg(test)]
mod tests;

use super::language::Script;
use crate::{
    prompts::{Prompts, escape_tags},
    provider::{Answer, Part as Piece, Stop},
    redact::{Clean, Secrets},
};
use std::{borrow::Cow, fmt};

/// A text that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted(Clean);

impl Accepted {
    /// A summary that passed when it was made and stays as it is; none where it is over its limit now.
    #[must_use]
    pub fn kept(summary: &str, cap: u64, measure: &dyn Fn(&str) -> u64) -> Option<Self> {
        let summary = summary.trim();
        (measure(summary) <= cap).then(|| Self(Clean::assembled(summary)))
    }

    /// Text of the summary.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The text on one line.
    #[must_use]
    pub fn on_one_line(&self) -> Clean {
        Clean::assembled(self.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The summary.
    #[must_use]
    pub fn into_clean(self) -> Clean {
        self.0
    }
}

/// The form of a summary.
#[derive(Debug, Clone, Copy)]
pub enum Form<'a> {
    /// A record under headings of `prompt`, or of any other prompt in force: models mix them. Where `prompt` has no
    /// headings, the record needs none.
    Record {
        /// The prompt of the summary.
        prompt: &'a str,
        /// The prompts in force.
        prompts: &'a Prompts,
    },
    /// The form that a person asks for in instructions of their own. Headings, language and coverage are not judged.
    Free {
        /// The prompt of the summary.
        prompt: &'a str,
    },
    /// Two sentences for a person.
    Sentences,
}

/// Requirements on a summary.
pub struct Expected<'a> {
    /// Its form.
    pub form: Form<'a>,
    /// Size of the replaced part, in tokens. The summary has to be smaller.
    pub replaces: u64,
    /// Largest size, in tokens.
    pub cap: u64,
    /// Script of the user, if it is clear. A summary of free form may have another.
    pub script: Option<Script>,
    /// Whether a secret in the summary is an error.
    pub secrets: Secrets,
    /// The size of a text in tokens.
    pub measure: &'a dyn Fn(&str) -> u64,
}

/// Why an answer is no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// Nothing, or blanks.
    Empty,
    /// Thoughts without an answer.
    OnlyReasoning,
    /// A call of a tool, made or written out.
    ToolCall,
    /// The limit was reached before the end.
    CutOff,
    /// The provider, or the model, does not want to.
    Refusal,
    /// The provider found a request for the reasoning of a model in it.
    ReasoningExtraction,
    /// Our own tags, which would end the frame that it stands in.
    BoundaryTags,
    /// The conversation again instead of a summary of it.
    Transcript,
    /// A sentence that there is nothing to say, or headings with nothing under them.
    NothingSaid,
    /// It goes on with the work.
    ContinuesTheTask,
    /// None of the headings.
    NoHeadings,
    /// The headings' own explanations, not filled in.
    Unfilled,
    /// The same again and again.
    Repeats,
    /// Not smaller than what it replaces, in tokens.
    LargerThanSource { tokens: u64, source: u64 },
    /// Over the limit, in tokens.
    OverCap { tokens: u64, cap: u64 },
    /// Not in the user's script.
    WrongScript(Script),
    /// A secret.
    Secret,
}

/// Whether a provider says that a request asks for the reasoning of a model.
#[must_use]
pub fn is_about_reasoning(said: &str) -> bool {
    said.contains("reasoning_extraction")
}

impl Rejection {
    /// Whether it is about the length: asking again helps only so often.
    #[must_use]
    pub fn is_about_length(self) -> bool {
        matches!(self, Self::CutOff | Self::LargerThanSource { .. } | Self::OverCap { .. } | Self::Repeats)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the answer was empty"),
            Self::OnlyReasoning => f.write_str("there was reasoning and no answer"),
            Self::ToolCall => f.write_str("it called a tool"),
            Self::CutOff => f.write_str("it was cut off by the output limit"),
            Self::Refusal => f.write_str("it was a refusal"),
            Self::ReasoningExtraction => {
                f.write_str("its provider took it for a request for a model's reasoning (reasoning_extraction)")
            }
            Self::BoundaryTags => f.write_str("it contained tags that frame data"),
            Self::Transcript => f.write_str("it repeated the conversation instead of summarizing it"),
            Self::NothingSaid => f.write_str("it said that there is nothing to say"),
            Self::ContinuesTheTask => f.write_str("it went on with the work instead of summarizing it"),
            Self::NoHeadings => f.write_str("it had none of the headings"),
            Self::Unfilled => f.write_str("it was the template, not filled in"),
            Self::Repeats => f.write_str("it repeated itself"),
            Self::LargerThanSource { tokens, source } => {
                write!(f, "with {tokens} tokens it was not smaller than the {source} it replaces")
            }
            Self::OverCap { tokens, cap } => write!(f, "with {tokens} tokens it was over the limit of {cap}"),
            Self::WrongScript(script) => write!(f, "it was not in the user's script ({script:?})"),
            Self::Secret => f.write_str("it contained a secret"),
        }
    }
}

/// Whether an answer is what was asked for.
///
/// # Errors
/// When it is not, with the first reason found.
pub fn check(answer: &Answer, expected: &Expected<'_>) -> Result<Accepted, Rejection> {
    if answer.calls_a_tool() || answer.stop == Stop::ToolUse {
        return Err(Rejection::ToolCall);
    }
    if matches!(&answer.stop, Stop::Refused(why) if is_about_reasoning(why)) {
        return Err(Rejection::ReasoningExtraction);
    }
    if matches!(answer.stop, Stop::Refused(_)) {
        return Err(Rejection::Refusal);
    }
    let whole = answer.text();
    let (said, thought) = without_thoughts(&whole);
    let said = unfenced(said.trim());
    if said.is_empty() {
        let thought = thought || answer.parts.iter().any(|part| matches!(part, Piece::Thinking { .. }));
        return Err(match (&answer.stop, thought) {
            (Stop::Length, _) => Rejection::CutOff,
            (_, true) => Rejection::OnlyReasoning,
            _ => Rejection::Empty,
        });
    }
    if answer.stop == Stop::Length {
        return Err(Rejection::CutOff);
    }
    let said = with_quoted_tags_escaped(said);
    let said = said.as_ref();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    is_safe(said, &lines)?;
    form::has_form(said, &lines, expected.form)?;
    fits(said, expected)?;
    if let Some(script) = expected.script.filter(|_| !matches!(expected.form, Form::Free { .. }))
        && !form::in_script(said, script)
    {
        return Err(Rejection::WrongScript(script));
    }
    if !expected.secrets.allow(said) {
        return Err(Rejection::Secret);
    }
    Ok(Accepted(Clean::assembled(said)))
}

/// Whether a text of a hook can be a summary: it is not empty, has no tags that frame data and no secret, and is smaller
/// than the part that it replaces. Its content is not judged.
///
/// # Errors
/// When it cannot, with the first reason found.
pub fn supplied(text: &str, supplied: &Supplied<'_>) -> Result<Accepted, Rejection> {
    let said = text.trim();
    if said.is_empty() {
        return Err(Rejection::Empty);
    }
    let said = with_quoted_tags_escaped(said);
    if escape_tags(&said) != said {
        return Err(Rejection::BoundaryTags);
    }
    let (tokens, source) = ((supplied.measure)(&said), supplied.replaces);
    if tokens >= source {
        return Err(Rejection::LargerThanSource { tokens, source });
    }
    if !supplied.secrets.allow(&said) {
        return Err(Rejection::Secret);
    }
    Ok(Accepted(Clean::assembled(said)))
}

/// Requirements on a text that a hook supplies.
pub struct Supplied<'a> {
    /// Size of the replaced part, in tokens. The text has to be smaller.
    pub replaces: u64,
    /// Whether a secret in the text is an error.
    pub secrets: Secrets,
    /// The size of a text in tokens.
    pub measure: &'a dyn Fn(&str) -> u64,
}

/// The text after reasoning that a model wrote into its answer, and whether there was any.
fn without_thoughts(text: &str) -> (&str, bool) {
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<analysis>", "</analysis>")] {
        if let Some(inside) = text.trim_start().strip_prefix(open) {
            return (inside.split_once(close).map_or("", |(_, after)| after), true);
        }
    }
    // Some servers cut the opening tag off. After a heading it is only spoken of.
    match text.split_once("</think>") {
        Some((before, after)) if form::headings(before).is_empty() => (after, true),
        _ => (text, false),
    }
}

/// An answer that is one code block is what stands in it.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")).and_then(|rest| {
        let (info, inside) = rest.split_once('\n')?;
        (matches!(info.trim(), "" | "markdown" | "md" | "text") && !inside.contains("```")).then_some(inside)
    });
    inside.unwrap_or(text).trim()
}

/// Whether a text is data that a model wrote about the conversation, whatever its form: it frames nothing, calls nothing,
/// repeats no conversation and refuses nothing.
fn is_safe(said: &str, lines: &[&str]) -> Result<(), Rejection> {
    if escape_tags(said) != said {
        return Err(Rejection::BoundaryTags);
    }
    if writes_a_call(said) {
        return Err(Rejection::ToolCall);
    }
    let spoken = lines.iter().filter(|line| LABELS.iter().any(|label| line.starts_with(label))).count();
    if spoken >= 2 || lines.first().is_some_and(|line| LABELS.iter().any(|label| line.starts_with(label))) {
        return Err(Rejection::Transcript);
    }
    // A refusal under a heading is one all the same.
    let first = form::contents(lines).next().unwrap_or_default();
    if starts_with_any(&said.to_lowercase(), REFUSALS) || starts_with_any(&first, REFUSALS) {
        return Err(Rejection::Refusal);
    }
    Ok(())
}

fn fits(said: &str, expected: &Expected<'_>) -> Result<(), Rejection> {
    let tokens = (expected.measure)(said);
    if tokens > expected.cap {
        return Err(Rejection::OverCap { tokens, cap: expected.cap });
    }
    if tokens >= expected.replaces {
        return Err(Rejection::LargerThanSource { tokens, source: expected.replaces });
    }
    Ok(())
}

/// How our transcripts name who speaks.
const LABELS: &[&str] =
    &["[User]:", "[Assistant]:", "[Assistant thinking]:", "[Assistant tool calls]:", "[Tool result"];

const REFUSALS: &[&str] = &[
    "i'm sorry",
    "i am sorry",
    "sorry, ",
    "i can't ",
    "i cannot ",
    "i can not ",
    "i'm unable",
    "i am unable",
    "i won't ",
    "i'm not able",
    "as an ai",
    "i apologize",
    "unfortunately, i can",
    "es tut mir leid",
    "je suis désolé",
    "lo siento",
    "desculpe",
    "извините",
    "很抱歉",
    "申し訳",
    "죄송",
];

fn starts_with_any(lower: &str, starts: &[&str]) -> bool {
    let lower = lower.trim_start_matches(['#', '*', '-', ' ', '\n']).replace('’', "'");
    starts.iter().any(|start| lower.starts_with(start))
}

/// A call of a tool in the words of one model or another.
fn writes_a_call(said: &str) -> bool {
    const CALLS: &[&str] = &[
        "<function_calls>",
        "<invoke ",
        "<tool_call>",
        "<tool_use>",
        "<|tool_call",
        "<|python_tag|>",
        "[TOOL_CALLS]",
        "```tool_code",
        "<function=",
        "to=functions.",
    ];
    // Between backticks it is only spoken of; a block of a tool's own begins with them.
    let called = |call: &&str| match call.starts_with('`') {
        true => said.contains(*call),
        false => said.split('`').step_by(2).any(|prose| prose.contains(*call)),
    };
    if CALLS.iter().any(called) {
        return true;
    }
    let json = said.starts_with(['{', '[']).then(|| serde_json::from_str::<serde_json::Value>(said).ok()).flatten();
    json.is_some_and(|json| {
        let call = json.get(0).unwrap_or(&json);
        call.get("name").is_some() && (call.get("arguments").is_some() || call.get("input").is_some())
            || call.get("tool").is_some()
            || call.get("tool_calls").is_some()
    })
}

/// A tag that is quoted, between backticks, is spoken of and meant to frame nothing: it is escaped as it is in what a
/// model is given.
fn with_quoted_tags_escaped(said: &str) -> Cow<'_, str> {
    if !said.contains('`') {
        return Cow::Borrowed(said);
    }
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { escape_tags(part).into_owned() } else { part.to_owned() };
    Cow::Owned(said.split('`').enumerate().map(part).collect::<Vec<_>>().join("`"))
}
