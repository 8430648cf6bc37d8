//! The topics of statements: a budget, a date, a name, an owner, and the scope that each is of.

use super::subject::{FILLERS, stem};
use crate::summary::{cues::values, words::Words};
use regex::Regex;
use std::{collections::BTreeSet, sync::LazyLock};

/// Topics that people speak of in many words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Spending,
    Date,
    Name,
    Zone,
    Duty,
    Branch,
    Base,
    Phase,
    Style,
    Code,
    Region,
    Language,
    Approval,
}

impl Topic {
    /// Words of a topic, by their stems. One of them has to stand in a statement.
    const WORDS: [(Self, &'static [&'static str]); 13] = [
        (Self::Code, &["code", "passcode", "access-code"]),
        (Self::Name, &["codename", "label", "called", "calling", "designated", "renamed", "nickname"]),
        (Self::Base, &["commit"]),
        (Self::Branch, &["branch", "rebased"]),
        (Self::Phase, &["phase", "stage", "sprint"]),
        (Self::Zone, &["utc", "gmt", "timezone", "zone", "timestamp", "time"]),
        (Self::Spending, &["budget", "spend", "spending", "expense", "cost", "ceiling", "cap"]),
        (Self::Duty, &["on-call", "oncall", "pager", "escalation", "duty"]),
        (
            Self::Date,
            &["deadline", "due", "date", "schedule", "scheduled", "timing", "milestone", "ship", "eta", "freeze"],
        ),
        (Self::Style, &["answer", "response", "reply", "replie"]),
        (Self::Region, &["region"]),
        (Self::Language, &["example", "snippet"]),
        (Self::Approval, &["approve", "approved", "approval", "approving", "approver"]),
    ];

    /// A key that is no word.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Spending => " spending",
            Self::Date => " date",
            Self::Name => " name",
            Self::Zone => " zone",
            Self::Duty => " duty",
            Self::Branch => " branch",
            Self::Base => " base",
            Self::Phase => " phase",
            Self::Style => " style",
            Self::Code => " code",
            Self::Region => " region",
            Self::Language => " language",
            Self::Approval => " approval",
        }
    }

    /// Whether a project has one value of this topic. A branch with a name of its own, as the release branch, is another one.
    pub(super) fn is_single_in(self, scope: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
        const OTHERS: [&str; 13] = [
            "release",
            "base",
            "default",
            "production",
            "staging",
            "hotfix",
            "target",
            "upstream",
            "stable",
            "backup",
            "demo",
            "doc",
            "maintenance",
        ];
        let named =
            |scope: &BTreeSet<String>| OTHERS.into_iter().filter(|word| scope.contains(*word)).collect::<Vec<_>>();
        match self {
            Self::Zone | Self::Base | Self::Language | Self::Region | Self::Approval => true,
            Self::Branch => named(scope) == named(other),
            _ => false,
        }
    }

    /// Whether a statement forbids a value, or asks for one more: it gives none.
    pub(super) fn forbids(self, lower: &str) -> bool {
        let is_not = |word: &str| matches!(word, "never" | "not") || word.ends_with("n't");
        let negates = lower.split_whitespace().any(is_not);
        match self {
            Self::Region => negates,
            Self::Approval => negates || lower.starts_with("no ") && !lower.contains(" else"),
            _ => false,
        }
    }

    /// Whether a later statement may leave a word of the scope out: "the launch moved".
    pub(super) fn may_leave_out(self) -> bool {
        !matches!(self, Self::Region | Self::Approval)
    }

    /// Whether its values are no names, so that a name tells its scope: the budget of Berlin.
    fn has_names_in_scope(self) -> bool {
        matches!(self, Self::Spending | Self::Date | Self::Style | Self::Phase)
    }

    /// Whether a later statement without a scope is about the only one that there was. Of budgets and dates a project has
    /// several.
    pub(super) fn is_rare(self) -> bool {
        matches!(self, Self::Name | Self::Duty | Self::Code)
    }

    /// The words of the topic, by their stems.
    pub(super) fn words(self) -> &'static [&'static str] {
        Self::WORDS.iter().find(|(topic, _)| *topic == self).map_or(&[], |(_, words)| words)
    }

    /// The texts that are values of the topic. `None` where these are names.
    pub(super) fn slots(self) -> Option<&'static Regex> {
        static MONEY: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(
                r"[$€£]\s?\d[\d,.]*k?\b|\b\d[\d,.]*\s?(?:dollars|euros?|usd|eur|k\b)|(?:\b(?:one|two|three|four|five|six|seven|eight|nine|ten) )?\b(?:hundred|thousand|million)\b(?: dollars| euros)?",
            )
            .expect("fixed")
        });
        static DATE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(
                r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}\.\d{1,2}\.(?:\d{4})?|\b(?:january|february|march|april|may \d+|june|july|august|september|october|november|december)(?: \d{1,2})?\b|\b(?:monday|tuesday|wednesday|thursday|friday|tomorrow)\b|\b\d\d-\d\d\b",
            )
            .expect("fixed")
        });
        static ZONE: LazyLock<Regex> = LazyLock::new(|| {
            let zones = "zone|africa|america|antarctica|asia|atlantic|australia|europe|indian|pacific|etc";
            Regex::new(&format!(
                r"\b(?:utc|gmt|cet|cest|est|edt|pst|pdt|jst|bst)\b|\b(?:pacific|eastern|central|mountain)(?: standard| daylight)? time\b|\b(?:{zones})/[a-z_]+\b",
            ))
            .expect("fixed")
        });
        static REGION: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\b[a-z]{2,}-(?:north|south|east|west|central)[a-z]*-?\d\b").expect("fixed"));
        static PHASE: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\b(?:phase|stage|sprint) \d+ ?(?:of|/) ?\d+").expect("fixed"));
        static LANGUAGES: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(&format!(r"\b(?:{LANGUAGES_OF_CODE})\b")).expect("fixed"));
        match self {
            Self::Spending => Some(&MONEY),
            Self::Date => Some(&DATE),
            Self::Zone => Some(&ZONE),
            Self::Region => Some(&REGION),
            Self::Phase => Some(&PHASE),
            Self::Style => Some(&STYLE),
            Self::Language => Some(&LANGUAGES),
            Self::Branch | Self::Base | Self::Code | Self::Name | Self::Duty | Self::Approval => None,
        }
    }

    /// Whether the values of a statement are of the topic.
    fn fits(self, lower: &str, values: &BTreeSet<String>) -> bool {
        static CLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\d{1,2}:\d\d\b").expect("fixed"));
        static BRANCH: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"\brebased\b|\b(?:working|current|active|our|on|to) branch\b|\bbranch(?: is\b|:)|\bbranch\b.*\b(?:unpushed|based|parked)\b")
                .expect("fixed")
        });
        static CODE: LazyLock<Regex> = LazyLock::new(|| {
            let places = PLACES.join("|");
            Regex::new(&format!(r"\bpasscode\b|\b(?:{places})[- ](?:access[- ])?code\b")).expect("fixed")
        });
        // The language that examples are wanted in, not an example in a language.
        static LANGUAGE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(&format!(
                r"^(?:please |now |always |from now on,? )*(?:(?:the )?user(?:'s| wants| prefers)|i (?:want|prefer)|my|our|use|write|give|show|keep|switch|all|code)\b.*?\b(?:example|snippet)s?(?: code)?(?: language is| language:| only| all| should be| must be| to)* (?:in )?(?:{LANGUAGES_OF_CODE})\b",
            ))
            .expect("fixed")
        });
        // One person and no other.
        let alone = || {
            let words: Vec<&str> =
                lower.split_whitespace().filter(|word| !matches!(*word, "the" | "by" | "from")).collect();
            let is_value = |word: &str| values.contains(word.trim_matches(|char: char| !char.is_alphanumeric()));
            words.windows(2).any(|pair| pair[0] == "only" && is_value(pair[1]))
                || ["nobody else", "no one else"].iter().any(|nobody| lower.contains(nobody))
                || lower.starts_with("no ") && lower.contains(" without ")
        };
        match self {
            Self::Language => LANGUAGE.is_match(lower),
            Self::Approval => !values.is_empty() && alone(),
            // A commit that a branch begins at. A statement that names the branch is about the branch.
            Self::Base => {
                let hash = |it: &String| it.len() >= 7 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
                lower
                    .split(|char: char| !char.is_alphanumeric())
                    .any(|word| matches!(word, "base" | "based" | "branched"))
                    && values.iter().any(hash)
                    && !values.iter().any(|value| value.contains('/'))
            }
            Self::Region | Self::Phase | Self::Spending | Self::Date | Self::Style => {
                self.slots().is_some_and(|slots| slots.is_match(lower))
            }
            // A time of the day is an appointment.
            Self::Zone => self.slots().is_some_and(|slots| slots.is_match(lower)) && !CLOCK.is_match(lower),
            // The branch that the work is on, not one that something is forbidden for or that is to be made.
            Self::Branch => {
                BRANCH.is_match(lower)
                    && !["never", "do not", "don't", "create", "make"].iter().any(|start| lower.starts_with(start))
                    && values.iter().any(|value| value.contains(['/', '-']))
            }
            // A code that opens something, not the code of a program.
            Self::Code => {
                let opens = |value: &String| {
                    value.bytes().any(|byte| byte.is_ascii_digit())
                        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                };
                CODE.is_match(lower) && values.iter().any(opens)
            }
            // A function is called in a file.
            Self::Name => {
                let is_called = |word: &&str| lower.contains(&format!("called {word} "));
                !values.is_empty() && !["in", "by", "from", "with", "on", "at"].iter().any(is_called)
            }
            Self::Duty => !values.is_empty(),
        }
    }
}

/// Programming languages, as alternatives of a pattern.
const LANGUAGES_OF_CODE: &str = "bash|c|clojure|dart|elixir|go|haskell|java|javascript|julia|kotlin|lua|ocaml|perl|php|python|r|ruby|rust|scala|swift|typescript|zig";

/// Words for the things that a code opens.
const PLACES: [&str; 12] = [
    "access",
    "vault",
    "door",
    "gate",
    "pin",
    "login",
    "security",
    "maintenance",
    "entry",
    "staging",
    "contact",
    "lock",
];

/// Words for the style of an answer.
pub(super) static STYLE: LazyLock<Regex> = LazyLock::new(|| {
    let words =
        "terse|playful|warm|formal|informal|brief|concise|light|casual|friendly|verbose|detailed|short|long|style|tone";
    Regex::new(&format!(r"\b(?:{words})\b")).expect("fixed")
});
/// Whether a sentence gives a value for a topic.
pub(in crate::summary) fn has_topic(sentence: &str, lower: &str) -> bool {
    topic(lower, &values(sentence, true)).is_some()
}
/// The topic of a statement, in small letters, and its scope.
pub(super) fn topic(lower: &str, values: &BTreeSet<String>) -> Option<(Topic, BTreeSet<String>)> {
    // Most sentences have no word of any topic.
    static ANY: LazyLock<Words> = LazyLock::new(|| {
        let verbs = &["switched", "launch", "release", "land"];
        Words::new(Topic::WORDS.iter().flat_map(|(_, words)| *words).chain(verbs))
    });
    if !ANY.are_in(lower) {
        return None;
    }
    let words: Vec<String> = lower.split_whitespace().map(stem).collect();
    let found = Topic::WORDS.iter().find_map(|(topic, of_topic)| {
        let places: Vec<usize> = (0..words.len()).filter(|at| of_topic.contains(&words[*at].as_str())).collect();
        (!places.is_empty() && topic.fits(lower, values)).then_some((*topic, *of_topic, places))
    });
    let (topic, of_topic, places) = found.or_else(|| by_verbs(lower, &words, values))?;
    let mut scope = BTreeSet::new();
    // The words have no sign of the plural, and neither has a name that ends like one.
    let names: BTreeSet<String> = values.iter().map(|value| stem(value)).collect();
    let is_value = |word: &String| match topic.has_names_in_scope() {
        true => topic.fits(word, values),
        false => names.contains(word),
    };
    let content = |word: &String| {
        word.len() > 2
            && !FILLERS.contains(&word.as_str())
            && !of_topic.contains(&word.as_str())
            && !is_value(word)
            && !word.chars().any(|char| char.is_ascii_digit())
    };
    for at in places {
        // Up to four words before a word of the topic, and the one after "for" or "of". A date has an article before its event:
        // "do not plan past the launch deadline".
        let before = &words[at.saturating_sub(4)..at];
        let article = before.iter().rposition(|word| topic == Topic::Date && word == "the").unwrap_or(0);
        scope.extend(before[article..].iter().filter(|word| content(word)).cloned());
        let after = words.get(at + 1..).unwrap_or_default();
        if after.first().is_some_and(|word| matches!(word.as_str(), "for" | "of")) {
            scope.extend(after.iter().filter(|word| content(word)).take(1).cloned());
        }
        // Something is called, renamed or designated: its name follows the verb.
        if topic == Topic::Name && words[at].ends_with(['d', 'g']) {
            scope.extend(after.iter().take(2).filter(|word| content(word)).cloned());
        }
    }
    match topic {
        Topic::Date => {
            scope.extend(words.iter().filter(|word| RELEASES.contains(&word.as_str())).cloned());
            // The launch party is not the launch.
            let named = words.windows(2).filter(|pair| RELEASES.contains(&pair[0].as_str()) && content(&pair[1]));
            scope.extend(named.map(|pair| pair[1].clone()));
        }
        Topic::Code => {
            let parts = words.iter().flat_map(|word| word.split('-'));
            scope = parts.filter(|word| PLACES.contains(word)).map(str::to_owned).collect();
        }
        Topic::Phase => scope.extend(words.iter().filter(|word| content(word)).cloned()),
        _ => {}
    }
    let scope = scope.iter().flat_map(|word| word.split('-')).map(scope_word).filter(|word| !word.is_empty());
    Some((topic, scope.map(str::to_owned).collect()))
}

/// Words for the events that dates are of.
const RELEASES: [&str; 3] = ["launch", "release", "freeze"];

/// Topics that a verb tells, where no noun does.
fn by_verbs(
    lower: &str,
    words: &[String],
    values: &BTreeSet<String>,
) -> Option<(Topic, &'static [&'static str], Vec<usize>)> {
    let at = |word: &str| words.iter().position(|it| it == word);
    if lower.contains("switched") && lower.contains("development") && values.iter().any(|value| value.contains('/')) {
        return Some((Topic::Branch, &[], vec![at("switched")?]));
    }
    if Topic::Date.fits(lower, values) {
        let place = at("launch").or_else(|| at("release")).or_else(|| at("land"))?;
        return Some((Topic::Date, &[], vec![place]));
    }
    None
}

/// Words of one scope that people use for each other.
pub(super) fn scope_word(word: &str) -> &str {
    match word {
        "metric" | "imperial" | "measurement" => "unit",
        "travel" | "field" | "journey" => "trip",
        "documentation" | "handbook" => "doc",
        "effort" | "product" => "project",
        _ => word,
    }
}
