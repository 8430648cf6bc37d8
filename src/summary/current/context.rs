//! The context of a value: the words of its statement that tell what it is of.
//!
//! "Only Ada may approve deploys to Oslo" and "only Bob may approve deploys to Rome" have the contexts "deploy, oslo" and
//! "deploy, rome": both hold.

use super::{
    subject::{is_change, stem},
    topic::{Topic, scope_word},
};
use regex::Regex;
use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

/// Words that say nothing of what a statement is about, by their stems.
const STOP: &[&str] = &[
    "a",
    "all",
    "alway",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "by",
    "can",
    "current",
    "currently",
    "do",
    "doe",
    "every",
    "for",
    "from",
    "get",
    "got",
    "had",
    "has",
    "have",
    "i",
    "in",
    "is",
    "it",
    "just",
    "keep",
    "let",
    "like",
    "make",
    "may",
    "me",
    "must",
    "never",
    "new",
    "no",
    "not",
    "now",
    "of",
    "on",
    "or",
    "our",
    "please",
    "prefer",
    "preferred",
    "put",
    "quick",
    "rather",
    "set",
    "should",
    "so",
    "stay",
    "still",
    "that",
    "the",
    "them",
    "there",
    "these",
    "this",
    "to",
    "today",
    "total",
    "update",
    "use",
    "user",
    "using",
    "want",
    "was",
    "we",
    "week",
    "will",
    "with",
    "would",
    "you",
    "actually",
    "correction",
    "belong",
    "own",
    "der",
    "die",
    "das",
    "den",
    "ist",
    "jetzt",
    "unser",
    "unsere",
];

/// Words that say nothing of the scope of a topic, by their stems: its verbs, and other words for it.
fn neutral(topic: Topic) -> &'static [&'static str] {
    match topic {
        Topic::Spending => &[
            "approval",
            "below",
            "cap",
            "capped",
            "exceeding",
            "need",
            "ceiling",
            "exceed",
            "explicit",
            "limit",
            "max",
            "maximum",
            "more",
            "most",
            "pass",
            "spend",
            "than",
            "under",
            "without",
            "allowed",
        ],
        Topic::Date => &["fixed", "land", "move", "past", "plan", "scheduled", "target"],
        Topic::Zone => &["another", "clock", "display", "other", "put", "report", "reported", "show", "status"],
        Topic::Duty => &["engineer", "handle", "handling", "owner", "person", "rotation"],
        Topic::Branch => &[
            "active",
            "base",
            "based",
            "development",
            "onto",
            "old",
            "parked",
            "rebased",
            "switched",
            "unpushed",
            "work",
            "working",
        ],
        Topic::Base => &["base", "based", "branch", "branched", "work"],
        Topic::Phase => &["progress"],
        Topic::Style => &["em", "dash", "dashe", "give"],
        Topic::Code => &[
            "circumstance",
            "under",
            "disclose",
            "done",
            "longer",
            "old",
            "previous",
            "retired",
            "reveal",
            "rotated",
            "rotation",
            "share",
            "shared",
            "work",
        ],
        Topic::Name => &["internal", "internally", "refer", "name"],
        Topic::Region => &["deployed", "host", "hosted", "live", "located", "run", "running", "served", "sit"],
        Topic::Language => &["code", "give", "language", "other", "programming", "show", "write"],
        Topic::Approval => &["else", "first", "give", "need", "nobody", "one", "only", "without"],
    }
}

/// Words of a newer statement that ask for something else beside.
fn beside(topic: Topic) -> &'static [&'static str] {
    match topic {
        Topic::Style => &["stick", "unit"],
        _ => &[],
    }
}

/// The words of a statement with a topic, without its values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Context {
    /// Those of the clause with the value.
    clause: BTreeSet<String>,
    /// Those of the whole statement.
    whole: BTreeSet<String>,
}

impl Context {
    /// The context of a statement in small letters with these values.
    pub(super) fn of(topic: Topic, lower: &str, values: &BTreeSet<String>) -> Self {
        let words = |text: &str| words(topic, text, values);
        let has_value =
            |clause: &&str| topic.slots().is_some_and(|slots| slots.is_match(clause)) || has_any(clause, values);
        let clause = clauses(lower).find(has_value).unwrap_or(lower);
        // "Never exceed it" is about the same value.
        let is_of_value = |other: &str| other != clause && other.split(' ').any(|word| bare(word) == "it");
        let whole = clauses(lower).filter(|other| !is_of_value(other)).flat_map(&words).collect();
        Self { clause: words(clause), whole }
    }

    /// Whether a later statement with this context is about the same thing as an older one, of which it may leave words of its
    /// scope out.
    pub(super) fn is_of(&self, topic: Topic, older: &Self, may_leave_out: impl Fn(&String) -> bool) -> bool {
        let is_beside = |word: &String| beside(topic).contains(&word.as_str());
        self.clause.difference(&older.whole).all(is_beside) && older.whole.difference(&self.clause).all(may_leave_out)
    }
}

/// The clauses of a text. A reason is one of its own.
pub(super) fn clauses(text: &str) -> impl Iterator<Item = &str> {
    const ENDS: [&str; 13] = [
        "; ",
        ". ",
        "! ",
        "? ",
        " (",
        " because ",
        ", since ",
        ", which ",
        ", as ",
        ", but ",
        ", not ",
        ", we ",
        ", weil ",
    ];
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = ENDS.iter().filter_map(|mark| Some((text.find(mark)?, mark.len()))).min();
        rest = end.map(|(end, len)| &text[end + len..]);
        Some(end.map_or(text, |(end, _)| &text[..end]))
    })
}

fn has_any(clause: &str, values: &BTreeSet<String>) -> bool {
    clause.split_whitespace().any(|word| values.contains(bare(word)))
}

/// A word without the marks around it.
pub(super) fn bare(word: &str) -> &str {
    word.trim_matches(|char: char| !char.is_alphanumeric() && !matches!(char, '$' | '€'))
}

fn words(topic: Topic, text: &str, values: &BTreeSet<String>) -> BTreeSet<String> {
    /// A style that is called by a name.
    static NAMED_STYLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\S+ style\b(?: is \S+)?").expect("fixed"));
    let text = if topic == Topic::Style { NAMED_STYLE.replace_all(text, " ") } else { Cow::Borrowed(text) };
    let text = match topic.slots() {
        Some(slots) => slots.replace_all(&text, " ").into_owned(),
        None => text.into_owned(),
    };
    // The zone of a person is not that of a report.
    let text = if topic == Topic::Zone { text.replace("user's", "person") } else { text };
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let is_slot = slots(topic, &tokens, values);
    let words = tokens.iter().zip(is_slot).filter(|(_, is_slot)| !is_slot).map(|(word, _)| stem(word));
    let is_topic = |word: &String| topic.words().contains(&word.as_str());
    // "On-call" is one word of its topic. Other words count by their parts.
    let words = words.filter(|word| !is_topic(word));
    let words = words.flat_map(|word| word.split('-').map(str::to_owned).collect::<Vec<_>>());
    let says = |word: &String| {
        !word.is_empty()
            && !is_change(word)
            && !STOP.contains(&word.as_str())
            && !is_topic(word)
            && !neutral(topic).contains(&word.as_str())
    };
    words.filter(says).map(|word| scope_word(&word).to_owned()).collect()
}

/// The words that are values of a topic with names: those after a word that introduces them. Other names tell the scope.
fn slots(topic: Topic, tokens: &[&str], values: &BTreeSet<String>) -> Vec<bool> {
    let is_value = |at: usize| values.contains(bare(tokens[at]));
    let introduces: &[&str] = match topic {
        Topic::Duty => &["is", "are", "to", "by", "now"],
        Topic::Approval => &["only", "from", "by", "without", "than", "is"],
        Topic::Name => {
            let last = (0..tokens.len()).rev().find(|at| is_value(*at));
            return (0..tokens.len()).map(|at| Some(at) == last).collect();
        }
        Topic::Branch => return tokens.iter().map(|token| bare(token).contains('/')).collect(),
        Topic::Base => return (0..tokens.len()).map(is_value).collect(),
        Topic::Code => {
            let opens = |token: &&str| {
                let token = bare(token);
                token.bytes().any(|byte| byte.is_ascii_digit())
                    && (token.len() > 3 || token.contains('-'))
                    && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            };
            return tokens.iter().map(opens).collect();
        }
        _ => return vec![false; tokens.len()],
    };
    let mut slots = vec![false; tokens.len()];
    for at in 0..tokens.len() {
        let before = tokens[..at].iter().rposition(|word| !matches!(*word, "the" | "a" | "an"));
        let starts = before.is_none_or(|before| introduces.contains(&bare(tokens[before])) || slots[before]);
        slots[at] = starts && is_value(at);
    }
    slots
}
