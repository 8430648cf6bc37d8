//! The rules of the user (must, must never, always), and those that a summary lost.

use crate::{
    conversation::entry::Entry,
    redact::Clean,
    summary::{
        heard,
        ledger::{Ledger, Sources},
        sections::{self, Section},
        words::{COMMANDS, Words},
    },
    text,
};
use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

/// The rules of an earlier summary and those that the user set in these messages, oldest first.
#[must_use]
pub fn rules(
    previous: Option<&str>,
    entries: &[&Arc<Entry>],
    clean: &dyn Fn(&str) -> Clean,
    stop: &dyn Fn() -> bool,
) -> Vec<String> {
    let mut rules: Vec<String> = previous
        .map(sections::parse)
        .unwrap_or_default()
        .into_iter()
        .filter(|(section, _)| *section == Section::Constraints)
        .map(|(_, rule)| text::one_line(&rule, LONGEST))
        .collect();
    let heard = heard::listen(entries, clean, stop);
    let sources = Sources { previous: &[], said: &heard, entries: &[], todo_tools: &[], clean };
    for held in Ledger::of(&sources).statements {
        let rule = held.statement.text;
        if commands(&rule) && !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// Whether a sentence is a command. A sentence that merely contains a word of rules is not added to a model's summary.
fn commands(sentence: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(COMMANDS));
    let lower = sentence.to_lowercase().replace('’', "'");
    ["use ", "no ", "only "].iter().any(|start| lower.starts_with(start)) || WORDS.stand_in(&lower)
}

/// Longest rule, in characters: a sentence.
const LONGEST: usize = 400;

/// The rules that a summary lost. Rules are compared by their words, without order, endings and fillers.
#[must_use]
pub fn lost<'a>(rules: &'a [String], summary: &str) -> Vec<&'a str> {
    let said = words(summary);
    let lost = |rule: &&'a String| {
        let wanted = words(rule);
        let kept = wanted.iter().filter(|word| said.contains(*word)).count();
        // Two thirds of what a rule says is the rule.
        kept * 3 < wanted.len() * 2
    };
    rules.iter().filter(lost).map(String::as_str).collect()
}

/// The summary with rules under their heading, at most `room` tokens longer.
#[must_use]
pub fn with(summary: &str, rules: &[&str], room: u64, measure: &dyn Fn(&str) -> u64) -> String {
    let mut left = room;
    let mut lines = String::new();
    for rule in rules {
        let line = format!("- {rule}\n");
        let cost = measure(&line) + 1;
        if cost > left {
            continue;
        }
        left -= cost;
        lines.push_str(&line);
    }
    let lines = lines.trim_end();
    if lines.is_empty() {
        return summary.to_owned();
    }
    const HEADING: &str = "## Constraints & Preferences";
    let Some(at) = find_heading(summary, HEADING) else {
        // After the goal, where there is one.
        let at = find_heading(summary, "## Goal").map_or(0, |goal| next_heading(summary, goal));
        let (before, after) = summary.split_at(at);
        let before = before.trim_end();
        let gap = if before.is_empty() { "" } else { "\n\n" };
        return format!("{before}{gap}{HEADING}\n{lines}\n\n{after}").trim_end().to_owned();
    };
    let end = next_heading(summary, at);
    let section = summary[at..end].trim_end();
    let section = section.strip_suffix("(none)").unwrap_or(section).trim_end();
    format!("{}{section}\n{lines}\n\n{}", &summary[..at], &summary[end..]).trim_end().to_owned()
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
        if number > 0 && (line.starts_with("## ") || line.starts_with("# ") || line.trim_end() == "---") {
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

    fn kept(rule: &str, summary: &str) -> bool {
        lost(&[rule.to_owned()], summary).is_empty()
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
    }

    #[test]
    fn lost_rules_stand_under_their_heading() {
        let measure = |text: &str| text.len() as u64;
        let with = |summary: &str| with(summary, &["never push"], 100, &measure);
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
        assert_eq!(super::with("x", &["never push"], 5, &measure), "x", "not at any price");
    }
}
