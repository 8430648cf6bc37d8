//! The facts that a summary by a model must have: the rules of the user (must, must never, always), open tasks and errors that
//! are not solved. Those that it lost are added.

use crate::{
    conversation::entry::{Entry, TodoState},
    redact::Clean,
    summary::{
        heard,
        ledger::{Failure, Held, Ledger, Sources},
        prose::clip,
        sections::{self, Section},
        statements,
        words::{COMMANDS, Words},
    },
    text,
};
use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

/// A fact that a summary must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Must {
    heading: Heading,
    text: String,
}

/// The headings that facts are added under, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Constraints,
    Blocked,
    NextSteps,
}

impl Heading {
    const ALL: [Self; 3] = [Self::Constraints, Self::Blocked, Self::NextSteps];

    /// The line of the heading, and the heading that it stands after where a summary does not have it.
    fn lines(self) -> (&'static str, &'static str) {
        match self {
            Self::Constraints => ("## Constraints & Preferences", "## Goal"),
            Self::Blocked => ("### Blocked", "## Progress"),
            Self::NextSteps => ("## Next Steps", "## Key Decisions"),
        }
    }
}

/// Errors that are added, the newest.
const MOST_ERRORS: usize = 5;

/// The rules of an earlier summary and those that the user set in these messages, oldest first; then the errors that are not
/// solved, and the open tasks. `todo_tools`: tools that hold a list, beside the known ones.
#[must_use]
pub fn musts(
    previous: Option<&str>,
    entries: &[&Arc<Entry>],
    todo_tools: &[String],
    clean: &dyn Fn(&str) -> Clean,
    stop: &dyn Fn() -> bool,
) -> Vec<Must> {
    let mut previous = previous.map(sections::parse).unwrap_or_default();
    // A rule may stand in the request that the goal is.
    let goal = previous.iter().filter(|(section, _)| *section == Section::Goal);
    let of_goal = goal.flat_map(|(_, goal)| statements::of_user(goal)).filter(|it| commands(&it.text));
    let of_goal: Vec<_> = of_goal.map(|it| (Section::Constraints, it.text)).collect();
    previous.extend(of_goal);
    let heard = heard::listen(entries, clean, stop);
    let ledger = Ledger::of(&Sources { previous: &previous, said: &heard, entries, goes_on: false, todo_tools, clean });
    let is_rule = |held: &Held| match held.carried {
        true => held.statement.kind <= statements::Kind::Wish,
        false => commands(&held.statement.text),
    };
    let rules = ledger.statements.into_iter().filter(is_rule).map(|held| text::one_line(&held.statement.text, LONGEST));
    let must = |heading: Heading| move |text: String| Must { heading, text };
    let errors: Vec<_> = ledger.failures.into_iter().filter(Failure::is_open).collect();
    let errors = errors.into_iter().rev().take(MOST_ERRORS).map(|it| it.text());
    let errors = errors.collect::<Vec<_>>().into_iter().rev();
    let open =
        ledger.todos.into_iter().filter(|todo| todo.state != TodoState::Done).map(|todo| clip(&todo.text, LONGEST));
    let rules = rules.map(must(Heading::Constraints));
    rules.chain(errors.map(must(Heading::Blocked))).chain(open.map(must(Heading::NextSteps))).collect()
}

/// Whether a sentence is a command. A sentence that merely contains a word of rules is not added to a model's summary.
fn commands(sentence: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(COMMANDS));
    let lower = sentence.to_lowercase().replace('’', "'");
    ["use ", "no ", "only "].iter().any(|start| lower.starts_with(start)) || WORDS.stand_in(&lower)
}

/// Longest rule, in characters: a sentence.
const LONGEST: usize = 400;

/// The kinds of facts that a summary must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A rule of the user.
    Rule,
    /// An error that is not solved.
    Error,
    /// An open task.
    Task,
}

impl Must {
    /// The kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.heading {
            Heading::Constraints => Kind::Rule,
            Heading::Blocked => Kind::Error,
            Heading::NextSteps => Kind::Task,
        }
    }

    /// The text, as it is added.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The facts that a summary lost. They are compared by their words, without order, endings and fillers.
#[must_use]
pub fn lost<'a>(musts: &'a [Must], summary: &str) -> Vec<&'a Must> {
    // Words of several lines say nothing together.
    let said: Vec<HashSet<String>> = summary.lines().map(words).collect();
    let lost = |must: &&'a Must| {
        let wanted = words(&must.text);
        // Two thirds of the words of a fact are the fact.
        let has =
            |line: &HashSet<String>| wanted.iter().filter(|word| line.contains(*word)).count() * 3 >= wanted.len() * 2;
        !said.iter().any(has)
    };
    musts.iter().filter(lost).collect()
}

/// The summary with facts under their headings, at most `room` tokens longer.
#[must_use]
pub fn with(summary: &str, musts: &[&Must], room: u64, measure: &dyn Fn(&str) -> u64) -> String {
    let mut left = room;
    let mut whole = summary.to_owned();
    for heading in Heading::ALL {
        let mut lines = String::new();
        for must in musts.iter().filter(|must| must.heading == heading) {
            let line = format!("- {}\n", must.text);
            let cost = measure(&line) + 1;
            if cost <= left {
                left -= cost;
                lines.push_str(&line);
            }
        }
        if !lines.is_empty() {
            whole = with_lines(&whole, heading, lines.trim_end());
        }
    }
    whole
}

/// The summary with lines at the end of the section of a heading.
fn with_lines(summary: &str, heading: Heading, lines: &str) -> String {
    let (heading, before) = heading.lines();
    let Some(at) = find_heading(summary, heading) else {
        let at = find_heading(summary, before).map_or(0, |before| next_heading(summary, before));
        // Of the goal and the rules a summary without a goal begins with the rules; other facts end it.
        let at = if at == 0 && heading != Heading::Constraints.lines().0 { summary.len() } else { at };
        let (before, after) = summary.split_at(at);
        let before = before.trim_end();
        let gap = if before.is_empty() { "" } else { "\n\n" };
        return format!("{before}{gap}{heading}\n{lines}\n\n{after}").trim_end().to_owned();
    };
    let end = next_heading(summary, at);
    let section = summary[at..end].trim_end();
    let section = section.strip_suffix("(none)").unwrap_or(section).trim_end();
    let gap = if summary[end..].starts_with("### ") { "\n" } else { "\n\n" };
    format!("{}{section}\n{lines}{gap}{}", &summary[..at], &summary[end..]).trim_end().to_owned()
}

/// The beginning of the line with this heading.
fn find_heading(summary: &str, heading: &str) -> Option<usize> {
    let mut at = 0;
    for line in summary.split_inclusive('\n') {
        if line.trim_end().eq_ignore_ascii_case(heading) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// The beginning of the next section, or the end of the summary.
fn next_heading(summary: &str, from: usize) -> usize {
    let mut at = from;
    for (number, line) in summary[from..].split_inclusive('\n').enumerate() {
        if number > 0
            && (line.starts_with("### ")
                || line.starts_with("## ")
                || line.starts_with("# ")
                || line.trim_end() == "---")
        {
            return at;
        }
        at += line.len();
    }
    summary.len()
}

/// The words of a text that carry its meaning: words of some length, numbers and names. A script without spaces is split
/// into characters.
fn words(text: &str) -> HashSet<String> {
    const FILLERS: &[&str] = &["please", "the", "and", "that", "this", "with", "you", "for", "should", "bitte", "will"];
    let lower = text.to_lowercase();
    let mut words = HashSet::new();
    for word in lower.split(|char: char| !char.is_alphanumeric() && char != '_') {
        if word.chars().any(|char| matches!(char, '\u{3041}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')) {
            words.extend(word.chars().map(String::from));
        } else if word.chars().count() > 2 && !FILLERS.contains(&word) {
            // A plural or a conjugated form is the same word.
            let stem = word.trim_end_matches('s');
            words.insert(if stem.len() > 2 { stem.to_owned() } else { word.to_owned() });
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn must(heading: Heading, text: &str) -> Must {
        Must { heading, text: text.to_owned() }
    }

    fn kept(rule: &str, summary: &str) -> bool {
        lost(&[must(Heading::Constraints, rule)], summary).is_empty()
    }

    fn rules(previous: &str, said: &str) -> Vec<String> {
        let line = serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "",
            "message": {"role": "user", "content": said}});
        let entry = Arc::new(Entry::parse(line.to_string().into()).expect("an entry"));
        let clean = |text: &str| Clean::assembled(text);
        musts(Some(previous), &[&entry], &[], &clean, &|| false).into_iter().map(|must| must.text).collect()
    }

    #[test]
    fn a_rule_that_was_replaced_is_not_brought_back() {
        let previous = "## Constraints & Preferences\n- The staging port must be 4711.\n- Never use macros.";
        let now = rules(previous, "The staging port must be 9000.");
        assert_eq!(now, ["The staging port must be 9000.", "Never use macros."]);
    }

    #[test]
    fn a_rule_in_the_goal_is_a_rule() {
        let previous = "## Goal\n- Port the parser. Never push to main.";
        assert_eq!(rules(previous, "go on with it"), ["Never push to main."]);
        assert_eq!(rules("## Goal\n- Port the parser. I prefer short names.", "go on with it"), [""; 0], "a wish");
        let done = "## Progress\n### Done\n- [x] Port the parser. Never push to main.";
        assert_eq!(rules(done, "go on with it"), [""; 0], "of another section");
    }

    #[test]
    fn words_of_several_lines_keep_no_rule() {
        assert!(!kept("Never push to main", "- pushed the branch, merged main\n- the flag was never used"));
    }

    #[test]
    fn a_rule_commands() {
        for rule in
            ["You must never push", "use tabs", "don’t touch vendor", "必须使用中文回答", "only change src/lib.rs"]
        {
            assert!(commands(rule), "{rule}");
        }
        for word in COMMANDS {
            assert!(commands(&format!("and {word} so")), "{word}");
        }
        for other in [
            "ids were found without `tool_result` blocks immediately after",
            "mustard is yellow",
            "I used it",
            "I prefer short names",
            "Work without the network",
        ] {
            assert!(!commands(other), "{other}");
        }
    }

    #[test]
    fn a_rule_in_other_words_is_kept_and_a_missing_one_is_not() {
        assert!(kept("You must never push to the main branch", "- Never push to main branch"));
        assert!(kept("please use tabs, not spaces", "Use tabs (not spaces)"));
        assert!(kept("必须使用中文回答", "## Constraints\n- 必须用中文回答"));
        assert!(!kept("never push to the main branch", "## Goal\nFix the parser on the main branch"));
        assert!(!kept("don't touch vendor/", "- nothing"));
        assert!(!kept("keep retry_budget", "keep the retry of the budget"));
    }

    #[test]
    fn lost_rules_stand_under_their_heading() {
        let measure = |text: &str| text.len() as u64;
        let with = |summary: &str| with(summary, &[&must(Heading::Constraints, "never push")], 100, &measure);
        assert_eq!(
            with("## Goal\nx\n\n## Constraints & Preferences\n(none)\n\n## Progress\ny"),
            "## Goal\nx\n\n## Constraints & Preferences\n- never push\n\n## Progress\ny"
        );
        assert_eq!(
            with("## Goal\nx\n\n## Constraints & Preferences\n- tabs"),
            "## Goal\nx\n\n## Constraints & Preferences\n- tabs\n- never push"
        );
        assert_eq!(
            with("## Goal\nx\n\n## Progress\ny"),
            "## Goal\nx\n\n## Constraints & Preferences\n- never push\n\n## Progress\ny"
        );
        assert_eq!(with("## Progress\ny"), "## Constraints & Preferences\n- never push\n\n## Progress\ny");
        assert_eq!(
            super::with("x", &[&must(Heading::Constraints, "never push")], 5, &measure),
            "x",
            "not at any price"
        );
    }

    #[test]
    fn lost_errors_and_tasks_stand_under_their_headings() {
        let measure = |text: &str| text.len() as u64;
        let (error, task) = (must(Heading::Blocked, "make: no rule"), must(Heading::NextSteps, "port the lexer"));
        let with = |summary: &str| with(summary, &[&error, &task], 100, &measure);
        assert_eq!(
            with(
                "## Goal\nx\n\n## Progress\n### Done\n- a\n### Blocked\n(none)\n\n## Next Steps\n1. b\n\n## Critical Context\n- c"
            ),
            "## Goal\nx\n\n## Progress\n### Done\n- a\n### Blocked\n- make: no rule\n\n## Next Steps\n1. b\n- port the lexer\n\n## Critical Context\n- c"
        );
        let task = |summary: &str| super::with(summary, &[&task], 100, &measure);
        for end in ["---\n\nThe turn", "# Notes\nx", "### Later\nx"] {
            let gap = if end.starts_with("###") { "\n" } else { "\n\n" };
            let told = format!("## Next Steps\n1. b\n- port the lexer{gap}{end}");
            assert_eq!(task(&format!("## Next Steps\n1. b\n\n{end}")), told);
        }
        assert_eq!(with("## Goal\nx"), "## Goal\nx\n\n### Blocked\n- make: no rule\n\n## Next Steps\n- port the lexer");
    }
}
