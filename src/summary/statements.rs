//! Statements of the user: rules, wishes and facts, each in its own words with the values that belong to it.

use super::{
    cues::{changes, label, values},
    current::has_topic,
    prose::{lines, sentences_of_line},
    words::{COMMANDS, Words},
};
use std::sync::LazyLock;

/// A statement of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub kind: Kind,
    pub text: String,
}

/// The kinds of statements, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A rule: must, never, always, use X.
    Rule,
    /// A wish, a preference or a limit in other words.
    Wish,
    /// A fact that the user put under a label, or that changes another one.
    Note,
    /// A fact with values: numbers, names, dates, addresses.
    Fact,
}

/// The longest statement, in characters.
const MOST: usize = 600;

/// Beginnings of a rule in a person's own words.
const COMMANDING: [&str; 19] = [
    "never ",
    "always ",
    "do not ",
    "don't ",
    "you must ",
    "please never ",
    "please always ",
    "please don't ",
    "please do not ",
    "no ",
    "only ",
    // German, Portuguese, French, Italian
    "kein ",
    "keine ",
    "keinen ",
    "bitte kein ",
    "bitte keine ",
    "não ",
    "pas de ",
    "non ",
];

/// Whether a sentence begins like a rule in a person's own words.
fn begins_rule(lower: &str) -> bool {
    COMMANDING.iter().any(|start| lower.starts_with(start))
}

/// A sentence without the question at its end.
fn without_tag_question(said: &str) -> &str {
    [", ok?", ", okay?", ", understood?", ", right?", ", please?", ", ja?", ", oder?"]
        .iter()
        .find_map(|tail| said.strip_suffix(tail))
        .unwrap_or(said)
}

/// Whether a sentence asks for work: it begins with what is to be done.
pub(super) fn asks_for_work(said: &str) -> bool {
    const VERBS: [&str; 44] = [
        "add",
        "analyze",
        "build",
        "change",
        "check",
        "clean",
        "commit",
        "compare",
        "configure",
        "continue",
        "convert",
        "create",
        "debug",
        "delete",
        "deploy",
        "design",
        "document",
        "draft",
        "explain",
        "extend",
        "extract",
        "find",
        "fix",
        "generate",
        "help",
        "implement",
        "improve",
        "install",
        "investigate",
        "look",
        "migrate",
        "move",
        "plan",
        "port",
        "refactor",
        "remove",
        "rename",
        "replace",
        "review",
        "rewrite",
        "test",
        "translate",
        "update",
        "write",
    ];
    let lower = said.to_lowercase();
    let lower = lower.trim_start_matches("please ").trim_start_matches("now ").trim_start_matches("then ");
    let first = lower.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    VERBS.contains(&first) && label(said).is_none()
}

/// The longest line that is one statement, in characters. Longer lines are divided into sentences.
const LONGEST: usize = 260;

/// The statements of a text of the user, in its order.
pub(super) fn of_user(said: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    // A quotation is somebody else's.
    for line in lines(said).map(str::trim).filter(|line| !line.starts_with('>') && !is_pasted(line)) {
        // A label is of its whole line.
        if line.len() <= LONGEST && !has_question(line) && label(without_bullet(line)).is_some() {
            found.extend(statement(line));
            continue;
        }
        let sentences: Vec<&str> =
            sentences_of_line(line).map(str::trim).filter(|sentence| !sentence.is_empty()).collect();
        for (at, sentence) in sentences.iter().enumerate() {
            // "Never exceed it." says nothing without the sentence before it.
            let before = at.checked_sub(1).map(|at| sentences[at]).filter(|_| leans(sentence));
            let before = before.filter(|before| !asks_for_work(before));
            let before =
                before.filter(|before| before.len() + sentence.len() < LONGEST && !before.ends_with(['?', '？']));
            match (before, statement(sentence)) {
                (Some(before), leaning) if leaning.is_some() || stands_in(&found, before) => {
                    found.pop_if(|last| before.ends_with(&last.text) || last.text == before);
                    found.extend(statement(&format!("{before} {sentence}")));
                }
                (_, statement) => found.extend(statement),
            }
        }
    }
    found
}

/// Whether the last statement is this sentence.
fn stands_in(found: &[Statement], sentence: &str) -> bool {
    found.last().is_some_and(|last| last.text == sentence)
}

/// Whether a sentence asks, though it may have no question mark.
fn asks(lower: &str) -> bool {
    const STARTS: [&str; 14] = [
        "why ",
        "what ",
        "how ",
        "when ",
        "where ",
        "who ",
        "which ",
        "can you",
        "could ",
        "would you",
        "is ",
        "are ",
        "do you",
        "does ",
    ];
    STARTS.iter().any(|start| lower.starts_with(start)) || lower == "keep going" || lower.starts_with("keep going ")
}

/// Whether a line is a sentence, and no step of a numbered list and no piece of data.
fn is_sentence(text: &str) -> bool {
    let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let step = rest.len() < text.len() && rest.starts_with(['.', ')']);
    !step && !text.ends_with([',', '{', '(']) && (text.split_whitespace().count() > 3 || !text.is_ascii())
}

fn has_question(line: &str) -> bool {
    line.contains("? ") || line.ends_with(['?', '？'])
}

/// Whether a sentence leans on the one before it.
fn leans(sentence: &str) -> bool {
    const STARTS: [&str; 10] =
        ["never ", "do not ", "don't ", "it ", "they ", "this ", "that ", "use it", "use them", "these "];
    let lower = sentence.to_lowercase();
    STARTS.iter().any(|start| lower.starts_with(start))
}

/// The statement that a sentence, or a line of several sentences, makes.
pub(super) fn statement(said: &str) -> Option<Statement> {
    // "Never push, ok?" asks for nothing.
    let text = without_bullet(without_tag_question(said.trim()));
    let lower = text.to_lowercase();
    // A rule may name code and quote words.
    if text.len() < 8 || text.chars().nth(MOST).is_some() || !begins_rule(&lower) && !is_prose(text) {
        return None;
    }
    let kind = match () {
        () if asks(&lower) => return None,
        () if is_rule(&lower) => Kind::Rule,
        () if asks_for_work(text) => return None,
        () if is_wish(&lower) => Kind::Wish,
        () if label(text).is_some() || changes(&lower) && is_fact(&lower) || has_topic(text, &lower) => Kind::Note,
        () if is_fact(&lower) && is_sentence(text) && !values(text, true).is_empty() => Kind::Fact,
        () => return None,
    };
    Some(Statement { kind, text: text.split_whitespace().collect::<Vec<_>>().join(" ") })
}

/// A line without the mark of a list, a heading or a quotation. Bold text keeps its marks.
fn without_bullet(line: &str) -> &str {
    let rest = line.trim_start_matches(['#', '>', ' ']);
    ["- ", "* ", "+ "].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest).trim()
}

/// Whether a line is data that was pasted: JSON, or a tenth of it are its characters.
fn is_pasted(line: &str) -> bool {
    let is_json = line.starts_with(['{', '[']) && line.contains("\":");
    is_json || strange(line) * 10 > line.len() && !begins_rule(&line.to_lowercase())
}

/// The number of characters that data have and prose has rarely.
fn strange(text: &str) -> usize {
    text.chars().filter(|char| matches!(char, '{' | '}' | '"' | '\\' | '|' | '<' | '>' | ';' | '=')).count()
}

/// A person's own words, not a log or a piece of JSON that was pasted, and no question.
fn is_prose(sentence: &str) -> bool {
    // The end of a parenthesis is the end of another sentence.
    let is_end = sentence.matches(')').count() > sentence.matches('(').count();
    strange(sentence) * 20 <= sentence.len() && !is_end && !sentence.ends_with(['?', '？']) && !is_log(sentence)
}

/// Whether a line is the output of a program: an error with its place, a line of a trace, of a log or of a listing.
fn is_log(line: &str) -> bool {
    static LOG: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?://|/\*|raise\s|assert\s|throw\s|Caused\sby:|Assertion\sfailed|node:|at\s|\[[a-z]|\d+\s*\||\d{4}-\d\d-\d\d[T\s]\d\d:|\$\s|~|\+\s|\+{3}|-{3}|diff\s|Traceback|File\s\S)
              | \w:\d+:\d+ | \b(?:[A-Za-z]*Error|[A-Za-z]*Exception|error\[[^\]]*\]|warning|panicked\sat|FAIL(?:ED)?)\s*:
              | ^\S+(?:Error|Exception)\b",
        )
        .expect("a fixed pattern")
    });
    LOG.is_match(line)
}

fn is_rule(lower: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(COMMANDS));
    let lower = &lower.replace('’', "'");
    WORDS.stand_in(lower)
        || begins_rule(lower)
        || ["use ", "keep "].iter().any(|start| lower.starts_with(start))
        || leaves_alone(lower)
        || lower.contains(". use ")
        || lower.contains(": only ")
}

/// Whether a sentence says to leave something as it is: "leave vendor/ alone".
fn leaves_alone(lower: &str) -> bool {
    const ENDS: [&str; 5] = [" alone", " as it is", " as they are", " untouched", " unchanged"];
    let lower = lower.strip_prefix("please ").unwrap_or(lower);
    (lower.starts_with("leave ") || lower.starts_with("keep ")) && ENDS.iter().any(|end| lower.contains(end))
}

/// Whether a sentence wishes something. The wish may stand in the third person.
fn is_wish(lower: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "prefer",
            "prefers",
            "preferred",
            "preference",
            "would rather",
            "i'd rather",
            "user wants",
            "user likes",
            "i want",
            "i like",
            "we want",
            "avoid",
            "should not",
            "shouldn't",
            "required",
            "instead of",
            "without",
            "keep it",
            "no more",
            "ensure",
            "use the",
            "use a",
            "we use",
            "from now on",
            "going forward",
            "stick to",
            "at most",
            "at least",
            "stay below",
            "keep them",
            // German, French, Italian, Russian
            "müssen",
            "nicht",
            "keine",
            "lieber",
            "ne pas",
            "mai ",
            "нужно",
        ])
    });
    // A condition for the agent: "if it fails, stop".
    WORDS.stand_in(lower) || lower.starts_with("if ") && lower.contains(", ")
}

/// Whether a sentence says how something is.
fn is_fact(lower: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "is",
            "are",
            "was",
            "were",
            "has",
            "have",
            "uses",
            "runs",
            "lives",
            "owns",
            "belongs",
            "moved",
            "changed",
            "became",
            "called",
            "calling",
            "named",
            "costs",
            "takes",
            "needs",
            "starts",
            "ends",
            "equals",
            "means",
            "stays",
            "stands",
            "ist",
            "sind",
            "hat",
            "est",
            "sont",
            "es",
            "son",
            "è",
            "был",
            "это",
            "rebased",
            "switched",
            "renamed",
            "scheduled",
            "lands",
            "expires",
            "listens",
            "points",
            "comes",
            "goes",
            "go",
            "listens",
            "listen",
            "expires",
            "expire",
            "defaults",
            "是",
            "は",
            "です",
            "입니다",
            "remember",
            "note",
            "fyi",
        ])
    });
    WORDS.stand_in(lower) || lower.contains(" = ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<Kind> {
        statement(text).map(|it| it.kind)
    }

    #[test]
    fn rules_of_the_user_are_told_from_other_words() {
        for rule in [
            "You must not touch the vendor folder",
            "never push to main",
            "Don't use unwrap",
            "always run the tests",
            "use tabs",
            "bitte niemals force-push",
            "必须使用中文回答",
            "only change src/lib.rs",
            "Leave vendor/ alone.",
            "please leave the schema untouched",
            "Ask me first if a test has to go",
            "Hands off the migrations folder!",
            "The billing module is off limits",
            "Kein Push auf main!",
            "Não apague os testes",
            "Pas de commit sans test",
        ] {
            assert_eq!(kind(rule), Some(Kind::Rule), "{rule}");
        }
        for wish in
            ["I prefer short names", "Work without the network", "User wants code examples in Python, not JavaScript."]
        {
            assert_eq!(kind(wish), Some(Kind::Wish), "{wish}");
        }
        for word in COMMANDS {
            assert_eq!(kind(&format!("and {word} so")), Some(Kind::Rule), "{word}");
        }
        for other in [
            "read the file please",
            "what must this do?",
            "mustard looks yellow",
            "looks good",
            "Refactor it",
            "I leave it to you",
            "you left it alone?",
        ] {
            assert_eq!(kind(other), None, "{other}");
        }
    }

    #[test]
    fn output_that_was_pasted_is_no_rule() {
        for pasted in [
            "src/main.rs:12:5 must not be empty",
            "TypeError: you must call super first",
            "[browser] the module must have a default export",
            "error[E0382]: a value must not be used after move",
            "at never (app.js:3)",
            "12 | never used",
        ] {
            assert_eq!(kind(pasted), None, "{pasted}");
        }
    }

    #[test]
    fn a_rule_keeps_the_sentence_that_it_leans_on() {
        let said = of_user("Budget cap is $500 total. Never exceed without explicit approval.");
        assert_eq!(said[0].text, "Budget cap is $500 total. Never exceed without explicit approval.");
        let long = format!(
            "{} The cap is $500. Never exceed it. And so on.",
            "This part explains a lot about nothing. ".repeat(8)
        );
        let found = of_user(&long);
        assert!(found.iter().any(|it| it.text == "The cap is $500. Never exceed it."), "{found:?}");
    }

    #[test]
    fn a_rule_may_quote_and_end_with_a_question() {
        for rule in [
            "Never use \"foo\" here.",
            "Always use <Button> from ui, never <button>.",
            "Never use a == b for floats.",
            "Never push to main, ok?",
            "Never catch Exception: let it crash.",
            "Under no circumstances touch prod.",
            "Auf keinen Fall pushen",
        ] {
            let found = of_user(rule);
            assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), [Kind::Rule], "{rule}");
        }
        let long = format!("本番には絶対に触らないでください、{}", "理由は色々あります".repeat(25));
        assert_eq!(kind(&long), Some(Kind::Rule), "{} bytes", long.len());
        assert_eq!(of_user("The customer wrote:\n> never deploy on Friday"), []);
        assert_eq!(kind("raise ValueError('You must never call this')"), None);
        let json = r#"{"type":"error","message":"Each `tool_use` block must have a `tool_result` block. Some don't."}"#;
        assert_eq!(of_user(&format!("We need to tackle this:\n{json}\nAlways use <Button>, never <button>.")).len(), 1);
        assert_eq!(kind("some exclude pre-releases, some don't)"), None);
    }

    #[test]
    fn a_sentence_that_asks_for_work_is_no_fact_and_takes_no_rule_along() {
        assert_eq!(kind("Fix the bug in src/cart.rs where the total is 3 instead of 4."), None);
        assert_eq!(kind("Add an endpoint /v2/export that returns CSV and is limited to 100 rows."), None);
        assert_eq!(kind("Update: the launch date moved to May 11."), Some(Kind::Note));
        let found = of_user("Port the parser. Never push to main.");
        assert_eq!(found.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["Never push to main."]);
    }

    #[test]
    fn facts_have_values_or_labels() {
        assert_eq!(kind("The staging API is at https://a.internal/v2."), Some(Kind::Fact));
        assert_eq!(kind("FACT: the owner is unknown"), Some(Kind::Note));
        assert_eq!(kind("Ada Lovelace now owns the pager this week."), Some(Kind::Note));
        assert_eq!(kind("Metrics go to port 9090."), Some(Kind::Fact));
        assert_eq!(kind("The token expires after 900 s."), Some(Kind::Fact));
        assert_eq!(kind("the layout is fine"), None);
    }
}
