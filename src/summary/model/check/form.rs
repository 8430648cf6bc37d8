//! The form of a summary: its headings, what stands under them, and the prose.

use super::{Form, Rejection, starts_with_any};
use crate::{
    prompts::{Prompt, Prompts},
    summary::model::language::{self, Script},
    text,
};

/// How somebody begins who goes on with the work.
const GOES_ON: &[&str] = &[
    "i'll ",
    "i will ",
    "let me ",
    "now let",
    "now i",
    "sure",
    "of course",
    "okay, ",
    "ok, ",
    "next, i",
    "i'm going to",
    "let's ",
    "looking at",
    "the next step is to",
    "great",
    "perfect",
    "understood",
];

/// Whether a text has the form that was asked for. `lines` are its lines without blanks at their ends and without empty ones.
pub(super) fn has_form(said: &str, lines: &[&str], form: Form<'_>) -> Result<(), Rejection> {
    let begins_to_work = || starts_with_any(&said.to_lowercase(), GOES_ON);
    match form {
        Form::Sentences if nothing_said(lines) => return Err(Rejection::NothingSaid),
        Form::Sentences if begins_to_work() => return Err(Rejection::ContinuesTheTask),
        Form::Sentences => return Ok(()),
        Form::Record { .. } if nothing_said(lines) => return Err(Rejection::NothingSaid),
        Form::Record { prompt, prompts } if !has_headings(said, prompt, prompts) => {
            return Err(if begins_to_work() { Rejection::ContinuesTheTask } else { Rejection::NoHeadings });
        }
        // "(none)" may be the answer that was asked for.
        Form::Free { .. } if contents(lines).next().is_none_or(|first| denies_the_conversation(&first)) => {
            return Err(Rejection::NothingSaid);
        }
        Form::Record { prompt, .. } | Form::Free { prompt } if unfilled(lines, prompt) => {
            return Err(Rejection::Unfilled);
        }
        Form::Record { .. } | Form::Free { .. } => {}
    }
    if goes_on(said) {
        return Err(Rejection::ContinuesTheTask);
    }
    if repeats(lines) { Err(Rejection::Repeats) } else { Ok(()) }
}

/// Whether a record has a heading that one of the prompts asks for.
fn has_headings(said: &str, prompt: &str, prompts: &Prompts) -> bool {
    let own = headings(prompt);
    let found = headings(said);
    let has = |wanted: &str| found.iter().any(|heading| heading.eq_ignore_ascii_case(wanted));
    let others = Prompt::ALL.iter().flat_map(|other| headings(prompts.get(*other)));
    own.is_empty() || own.into_iter().chain(others).any(has)
}

/// The headings of a text, without their marks.
pub(super) fn headings(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| heading(line.trim_end())).collect()
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let marked = rest.len() < line.len() && rest.starts_with(' ');
    let bold = line.strip_prefix("**").and_then(|rest| rest.trim_end_matches(':').strip_suffix("**"));
    let found = if marked { Some(rest) } else { bold };
    found.map(|found| found.trim().trim_matches('*').trim_end_matches(':').trim())
}

/// Nothing but headings and words for nothing.
fn nothing_said(lines: &[&str]) -> bool {
    const NOTHING: &[&str] = &["(none)", "none", "n/a", "-", "(empty)", "nothing", "no prior history", "…", "..."];
    let mut content = contents(lines).peekable();
    let Some(first) = content.peek().cloned() else { return true };
    let whole = lines.join(" ").to_lowercase();
    content.all(|line| line.is_empty() || NOTHING.contains(&line.as_str()))
        || denies_the_conversation(&first)
        || whole.len() < 200 && DENIALS.iter().any(|sentence| whole.contains(sentence))
}

/// How a model says that it was given no conversation.
const DENIALS: &[&str] = &[
    "no prior history",
    "there is no conversation",
    "there is nothing to summarize",
    "no conversation to summarize",
    "the conversation is empty",
    "no conversation was provided",
    "nothing to summarize",
];

fn denies_the_conversation(first: &str) -> bool {
    DENIALS.iter().any(|sentence| first.starts_with(sentence))
}

/// Lines under the headings, without marks and in lower case.
pub(super) fn contents<'a>(lines: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let content = |line: &&&str| !(line.starts_with('#') || line.starts_with("**") && line.ends_with("**"));
    lines.iter().filter(content).map(|line| {
        let line = line.trim_start_matches(|char: char| "-*[]x0123456789. ".contains(char));
        line.trim_end_matches('.').to_lowercase()
    })
}

/// The prompt's own explanations under its headings.
fn unfilled(lines: &[&str], prompt: &str) -> bool {
    let prompt: Vec<&str> = prompt.lines().map(str::trim).collect();
    let own = |line: &&&str| !line.starts_with('#') && line.len() > 12;
    let said = lines.iter().filter(own).count();
    let copied = lines.iter().filter(own).filter(|line| prompt.contains(line)).count();
    copied > 0 && copied * 2 > said
}

/// Outside of any list somebody says what they do now; or does so in the last words.
fn goes_on(said: &str) -> bool {
    const DOES: &[&str] =
        &["now let me", "let me now", "now i'll", "now i will", "i'll now", "i will now", "next, i'll"];
    let in_list = |line: &str| {
        line.starts_with([' ', '\t', '-', '*', '#', '|', '>']) || line.starts_with(|char: char| char.is_ascii_digit())
    };
    let own = || said.lines().filter(|line| !line.trim().is_empty() && !in_list(line));
    let plain = |line: &str| line.to_lowercase().replace('’', "'");
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).filter(|line| !in_list(line)).map(plain);
    // "Let me know" is only polite.
    let ends = last.is_some_and(|last| last.starts_with("let me ") && !last.starts_with("let me know"));
    ends || own().map(plain).any(|line| DOES.iter().any(|start| line.starts_with(start)))
}

/// A model that has lost its way writes the same line, or the same few words, for ever.
fn repeats(lines: &[&str]) -> bool {
    let long: Vec<&&str> = lines.iter().filter(|line| line.len() > 20).collect();
    let mut sorted = long.clone();
    sorted.sort_unstable();
    let most = sorted.chunk_by(|one, other| one == other).map(<[_]>::len).max().unwrap_or(0);
    if most >= 6 && most * 3 >= long.len() {
        return true;
    }
    lines.iter().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut kinds = words.clone();
        kinds.sort_unstable();
        kinds.dedup();
        words.len() >= 60 && kinds.len() * 8 < words.len()
    })
}

/// Whether the prose is in the user's script. Code, paths and names are Latin in every script, so a part is enough.
pub(super) fn in_script(said: &str, script: Script) -> bool {
    /// Of the letters of the prose.
    const ENOUGH: f64 = 0.15;
    let mut prose = String::new();
    let mut code = false;
    for line in said.lines() {
        code ^= line.trim_start().starts_with("```");
        if code || line.starts_with('#') {
            continue;
        }
        // Every other part between backticks is prose.
        line.split('`').step_by(2).for_each(|part| prose.push_str(part));
        prose.push('\n');
    }
    language::share(text::head(&prose, 20_000), script).is_none_or(|share| share >= ENOUGH)
}
