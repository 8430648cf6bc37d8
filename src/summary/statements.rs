//! Statements of the user: rules, wishes and facts, each in its own words with the values that belong to it.

mod corrected;
mod kinds;
mod lists;
mod pasted;
mod tasks;
mod withdrawn;

use super::{
    cues::{changes, label, values},
    current::{has_topic, sets_value},
    prose::{lines, sentences_of_line},
    words::Words,
};
pub(super) use corrected::{LOOKED_AT as CORRECTED, corrections};
use kinds::{
    asks_for_rule, begins_command, begins_rule, complains, is_fact, is_question, is_rule, is_standing, is_wish, opines,
    reports_speech, reports_trouble, supposes,
};
pub(super) use kinds::{asks_for_work, may_ask_for_work};
use lists::List;
pub(super) use pasted::Paste;
use pasted::is_log;
use regex::Regex;
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::LazyLock,
};
pub(super) use tasks::{bare_task, is_task};
pub(super) use withdrawn::{Initials, withdrawals};

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
    /// A message that asked for nothing, in words that nothing else is known of.
    Told,
}

/// The longest statement, in characters.
const MOST: usize = 600;

/// A sentence without the question at its end.
fn without_tag_question(said: &str) -> &str {
    [", ok?", ", okay?", ", understood?", ", right?", ", please?", ", ja?", ", oder?"]
        .iter()
        .find_map(|tail| said.strip_suffix(tail))
        .unwrap_or(said)
}

/// The longest line that is one statement, in characters. Longer lines are divided into sentences.
const LONGEST: usize = 260;

/// The statements of a text of the user, in its order.
pub(super) fn of_user(said: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    // The items of a list whose line is a rule or says that rules follow.
    let mut listed: HashSet<usize> = HashSet::new();
    // An item is looked at with its list, and by itself.
    let mut known: HashMap<usize, bool> = HashMap::new();
    let place_of = |line: &str| line.as_ptr().addr() - said.as_ptr().addr();
    let mut is_own = |item: &str| {
        *known.entry(place_of(item)).or_insert_with(|| statement(item).is_some_and(|it| it.kind <= Kind::Wish))
    };
    let mut paste = Paste::default();
    let mut headings = lists::Headings::default();
    let quoted = quotation(said);
    for line in lines(said).map(str::trim) {
        let before = found.len();
        let place = place_of(line);
        headings.pass(line);
        // A quotation is somebody else's.
        if quoted.contains(&place) || listed.contains(&place) || line.starts_with('>') || is_pasted(line) {
            continue;
        }
        if paste.has(without_bullet(line)) {
            // A rule of the user may stand after a log on the same line.
            if !paste.is_remark() {
                let sentences = sentences_of_line(line).map(str::trim).skip(1);
                let rules = sentences.filter(|sentence| begins_command(&sentence.to_lowercase()));
                found.extend(rules.filter_map(statement));
            }
            continue;
        }
        let after = &said[place + line.len()..];
        match line.ends_with([':', '：']).then(|| lists::headed(line, after, &mut is_own)).flatten() {
            Some(List { statements, items }) => {
                found.extend(statements);
                listed.extend(items.iter().map(|item| place_of(item)));
            }
            None => {
                of_line(line, &mut found);
                headings.complete(line, &mut found[before..]);
            }
        }
        // After a log, facts are those of the log.
        if paste.began() {
            let kept = found.split_off(before).into_iter().filter(|it| it.kind <= Kind::Wish);
            found.extend(kept);
        }
    }
    found
}

/// The part of a message in which the user quotes somebody else: the paragraph after "reply to this mail:" or "Bob wrote:", and
/// another one after a greeting.
fn quotation(said: &str) -> Range<usize> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
r"(?ix)^(?:please\s)?(?:
                (?:draft|write|reply|answer|respond)\b.*\b(?:to|for)\s(?:this|that|the\sfollowing|his|her|their)\s(?:mail|e-?mail|message|letter|review)
              | here(?:'s|\sis)\s(?:the|his|her|their|an?)\s(?:mail|e-?mail|message|letter|review)
              | translate\s(?:this|the\sfollowing)\b )[^.!?]*[:：]$
              | \b(?:wrote|writes|says|said)[:：]$",
        )
        .expect("a fixed pattern")
    });
    const GREETING: usize = 40;
    let place = |line: &str| line.as_ptr().addr() - said.as_ptr().addr();
    let Some(head) = said.lines().find(|line| line.len() <= LONGEST && HEAD.is_match(line.trim())) else { return 0..0 };
    let start = place(head);
    let mut end = start + head.len();
    let mut greets = true;
    for paragraph in said[end..].split_inclusive("\n\n") {
        end += paragraph.len();
        let text = paragraph.trim();
        if !text.is_empty() {
            greets &= text.len() <= GREETING && text.ends_with([',', '!']);
            if !greets {
                break;
            }
        }
    }
    start..end
}

/// The statements in a line.
fn of_line(line: &str, found: &mut Vec<Statement>) {
    // A label is of its whole line.
    if line.len() <= LONGEST && !has_question(line) && label(without_bullet(line)).is_some() {
        found.extend(statement(line));
        return;
    }
    let mut sentences: Vec<&str> =
        sentences_of_line(line).map(str::trim).filter(|sentence| !sentence.is_empty()).collect();
    // A sentence that is repeated says nothing more.
    sentences.dedup();
    let own = pasted::own(&sentences);
    for (at, sentence) in sentences.iter().enumerate().take(own) {
        // "Never exceed it." says nothing without the sentence before it.
        let before = at.checked_sub(1).map(|at| sentences[at]).filter(|_| leans(sentence));
        let before = before.filter(|before| !asks_for_work(before) && !is_log(before));
        let before = before.filter(|before| before.len() + sentence.len() < LONGEST && !before.ends_with(['?', '？']));
        match (before, statement(sentence)) {
            (Some(before), leaning) if leaning.is_some() || stands_in(found, before) => {
                found.pop_if(|last| before.ends_with(&last.text) || last.text == before);
                found.extend(statement(&format!("{before} {sentence}")));
            }
            (_, statement) => found.extend(statement),
        }
    }
}

/// Whether the last statement is this sentence.
fn stands_in(found: &[Statement], sentence: &str) -> bool {
    found.last().is_some_and(|last| last.text == sentence)
}

/// Whether a line asks the agent for something.
pub(super) fn asks(line: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "please",
            "bitte",
            "can you",
            "could you",
            "i",
            "we",
            "why",
            "how",
            "kannst",
            "ich",
            "wir",
            "por favor",
            "请",
            "해주세요",
        ])
    });
    asks_for_work(line) || line.ends_with(['?', '？']) || WORDS.stand_in(&line.to_lowercase())
}

/// Whether a message asks a question, also without a question mark.
pub(super) fn asks_something(text: &str) -> bool {
    is_question(&text.to_lowercase())
}

/// Whether a message reports that something does not work.
pub(super) fn is_trouble(text: &str) -> bool {
    reports_trouble(&text.to_lowercase())
}

/// Whether a message begins by refusing what was said before it.
pub(super) fn refuses(text: &str) -> bool {
    const NO: [&str; 12] = ["no", "nope", "nah", "nein", "non", "não", "нет", "wrong", "falsch", "不", "いや", "아니"];
    let lower = text.trim_start().to_lowercase();
    // "No, that's it" refuses nothing.
    const ENDS: [&str; 8] = ["that's it", "that is", "nothing", "thanks", "thank", "go on", "good", "all good"];
    let rest = lower.split_once([',', '.', ' ']).map_or("", |(_, rest)| rest.trim_start());
    !ENDS.iter().any(|end| rest.starts_with(end))
        && !text.trim().contains('\n')
        && NO.iter().any(|no| {
            lower
                .strip_prefix(no)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([',', '.', '!', ';', '，', '、']))
        })
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
    let is_own = begins_rule(&lower) || asks_for_rule(&lower) || is_prose(text);
    if text.len() < 8 || text.chars().nth(MOST).is_some() || !is_own {
        return None;
    }
    let kind = match () {
        () if is_question(&lower) && !asks_for_rule(&lower) && !(lower.starts_with("when ") && is_standing(&lower)) => {
            return None;
        }
        () if lower.starts_with("keep in mind") => Kind::Note,
        () if opines(&lower) || complains(&lower) => return None,
        // It may hold, and is told with the one who says it.
        () if reports_speech(&lower) && (is_rule(&lower) || is_wish(&lower)) => Kind::Note,
        () if is_rule(&lower) || is_standing(&lower) => Kind::Rule,
        () if sets_value(&lower) => Kind::Note,
        () if asks_for_work(text) => return None,
        () if is_wish(&lower) => Kind::Wish,
        () if label(text).is_none() && (supposes(&lower) || reports_trouble(&lower)) => return None,
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

/// The number of characters that data have and prose has rarely, outside of code between marks.
fn strange(text: &str) -> usize {
    let is_strange = |byte: &u8| matches!(byte, b'{' | b'}' | b'"' | b'\\' | b'|' | b'<' | b'>' | b';' | b'=');
    if memchr::memchr(b'`', text.as_bytes()).is_none() {
        return text.bytes().filter(is_strange).count();
    }
    let parts = text.split('`').count();
    // The last mark of an odd number opens nothing.
    let prose = text.split('`').enumerate().filter(|(at, _)| at % 2 == 0 || at + 1 == parts);
    prose.flat_map(|(_, part)| part.bytes()).filter(is_strange).count()
}

/// A person's own words, not a log or a piece of JSON that was pasted, and no question.
fn is_prose(sentence: &str) -> bool {
    // The end of a parenthesis is the end of another sentence.
    let is_end = sentence.matches(')').count() > sentence.matches('(').count();
    strange(sentence) * 20 <= sentence.len() && !is_end && !sentence.ends_with(['?', '？']) && !is_log(sentence)
}

#[cfg(test)]
mod tests {
    use super::{super::words::COMMANDS, *};

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
        for rule in [
            "Antworte bitte auf Deutsch und schreibe für jede Änderung einen Test.",
            "Please answer in English and write a test for each change.",
            "When posting comments on GitHub, say that they are AI-generated.",
            "no force pushes",
            "No new dependencies, please.",
            "Before committing run `make fmt`.",
            "Each time you change a query, update the fixture.",
            "Whenever you add an endpoint it has to be in the docs.",
            "yeah don't push to main yet",
            "It is forbidden to use eval",
            "Stop using pytest -x, run the whole suite",
            "以后请用中文回答",
            "테스트 파일은 건드리지 마세요",
            "يجب أن تكتب الاختبارات",
            "Avant chaque commit, lance les tests",
            "Ne touche pas à migrations/.",
            "Treat vendor/ as read-only",
            "Verzichte auf neue Pakete",
            "别碰 migrations 目录",
            "migrations には触らないでください",
            "No deploys this week.",
            "No test files in src/.",
            "I think we must never push",
            "The rules say you must never push.",
            "We said we never push.",
            "Access: only admins may delete",
            "The client is old. Use the new one.",
            "please keep the schema as it is",
            "In every answer, mention the file.",
            "For each pull request add a note.",
            "Check the logs every time",
            "Bei jeder Änderung Tests schreiben.",
            "Pour chaque commit, un test.",
            "En cada commit, una prueba.",
            "Réponds moi en anglais",
            "Responde en español",
            "Merci de ne pas toucher à src.",
            "Vor dem Commit bitte testen.",
            "Write to me in German.",
            "Talk to me in German.",
        ] {
            assert_eq!(kind(rule), Some(Kind::Rule), "{rule}");
        }
        for none in [
            "I think even more code can be removed now if we don't mess with the raw ids.",
            "no remove this again, the risk someone assumes it is a stable link is too big",
            "Now when the user commits we could diff his changes.",
            "Never mind, forget what I said.",
            "The server must have crashed yesterday.",
            "When I run it the tests fail.",
            "When merging sessions (line 343), the attribution of the new one overwrites it.",
            "i thought we don't need that because of the config",
            "No problem with the new layout.",
            "why do we always call it twice",
            "keep going",
            "keep going with port 8080 please",
            "Status: maybe the port is 8080.",
            "you must be joking",
            "don't worry about port 80",
            "I was told we must never use port 80",
            "you left it alone",
            "Leave it to me",
            "if it fails then stop",
            "The host 10.0.0.7 is currently returning 503",
        ] {
            assert_eq!(kind(none), None, "{none}");
        }
        for wish in [
            "I prefer short names",
            "Work without the network",
            "User wants code examples in Python, not JavaScript.",
            "The handler calls the API and should not retry it.",
            "If the build fails, stop.",
        ] {
            assert_eq!(kind(wish), Some(Kind::Wish), "{wish}");
        }
        for word in COMMANDS {
            assert_eq!(kind(&format!("and {word} so")), Some(Kind::Rule), "{word}");
        }
        assert_eq!(kind("After merging it is the bot that should update the docs."), Some(Kind::Note));
        for report in [
            "Every request gets a 500 from the gateway since noon.",
            "Every page gets a white flash when it loads",
            "All users have to log in twice since the update of Monday.",
            "Status: deployed, no downtime.",
            "Logs: empty, no stack trace",
            "And no luck with the proxy on the second box.",
        ] {
            assert!(kind(report).is_none_or(|kind| kind > Kind::Wish), "{report}");
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
    fn complaints_and_the_words_of_others_are_no_rules() {
        for none in [
            "I don't see the button anymore.",
            "the build always fails on CI",
            "you always forget the semicolons",
            "I don't think so",
            "I don't understand why this never returns.",
            "ugh, the watcher never works",
            "Do we always call init twice",
            "hmm that must be the cache then",
            "so users must log in twice, that's the bug",
            "Das Ding geht nie!",
            "ok never mind, the tests don't pass",
        ] {
            assert_eq!(of_user(none), [], "{none}");
        }
        for rule in [
            "It must never return null.",
            "There must be a test for each endpoint.",
            "I do not mind long files, but never use globals.",
            "The build always runs in Docker, never run it on the host.",
            "The API always returns JSON, keep it so.",
            "I don't see why not, but never push.",
        ] {
            assert_eq!(kind(rule), Some(Kind::Rule), "{rule}");
        }
        for fact in [
            "The fallback host is 10.0.0.7 if the main one is down.",
            "The memory limit is 512 MB, it crashes above.",
            "Failed jobs are kept 14 days.",
            "The retry count is 5 when the upload fails.",
            "Python 3.12 does not work with our lib, we are on 3.11.",
            "The flaky test is tests/test_net.py, skip it.",
        ] {
            assert!(kind(fact).is_some(), "{fact}");
        }
        for reported in [
            "the linter says we must use snake_case everywhere, but I don't care",
            "And the docs say you should never call unwrap.",
            "Bob told me never to push",
            "Bob tells us never to push",
            "the README should read never push",
            "Bob says we must never deploy on Fridays, but he left the company, ignore that",
        ] {
            assert_eq!(kind(reported), Some(Kind::Note), "{reported}");
        }
        for quoted in [
            "Draft a reply to this mail:\n\nHi team,\nyou must always send me the passwords. Never use https.",
            "Here is the review from Copilot:\n- You must never call unwrap.\n- Always use tabs.",
        ] {
            assert_eq!(of_user(quoted), [], "{quoted}");
        }
        for none in
            ["yes, but we don't need to commit", "The handler uses the id directly instead of calling the helper."]
        {
            assert!(kind(none).is_none_or(|kind| kind > Kind::Wish), "{none}");
        }
        for (message, count) in [
            ("Implement the email module:\n- never send to real addresses in tests", 1),
            ("As Bob wrote:\n> rename it\n\nMy own rules: never touch vendor/.", 1),
            ("Fix the review comments:\n- a.ts line 3\n\nNever push to main.", 1),
            ("Bob says:\nAlways wait.\n\nAlways run the benchmarks before you commit.", 1),
            ("Steps for the review:\n\n1. Read the diff.\n2. Never approve without tests.", 1),
            ("Translate the following strings:\n- Save\n\nNever translate the product name.", 1),
            ("Here is what I need for the letter generator:\n\nAlways use A4.\nNever use colors.", 2),
            ("Translate the labels in src/de.json: never touch the keys.", 1),
            ("For the code review:\n- Never suggest style changes.", 1),
            ("Translate this:\n\nNever push.\n\nNever pull.", 1),
        ] {
            assert_eq!(of_user(message).len(), count, "{message} {:?}", of_user(message));
        }
        assert_eq!(of_user("Never push.\nHere is the review:\n- Always use tabs.").len(), 1);
    }

    #[test]
    fn rules_stand_in_many_words() {
        for rule in [
            "Could you please always run the tests before committing?",
            "can you never push to main",
            "Would you mind not touching legacy/?",
            "commit messages in English please",
            "English only",
            "tabs, not spaces",
            "stay on branch dev",
            "just use sqlite",
            "you are not to touch prod",
            "deploys only after I say so",
            "Tests go in spec/, not test/",
            "The only allowed package manager is pnpm",
            "nie auf main pushen",
            "Du sollst main nie anfassen",
            "Commits bitte auf Englisch",
            "sólo usa pnpm",
            "не пушь в main",
            "永远用中文回答",
        ] {
            assert_eq!(kind(rule), Some(Kind::Rule), "{rule}");
        }
        for rule in [
            "Also, no TODO comments.",
            "oh and plus, never squash",
            "Whatever you do, stay out of the billing module.",
            "Every function needs a docstring.",
            "each new endpoint gets a test",
            "Commit messages in imperative mood, please.",
        ] {
            assert_eq!(kind(rule), Some(Kind::Rule), "{rule}");
        }
        assert_eq!(kind("Code style: 4 spaces, no tabs"), Some(Kind::Wish));
        for none in [
            "And only then the tests failed",
            "And no test failed in it",
            "Each time the build gets a change it hangs",
            "Every request gets slower",
            "Fix comments in the parser, please.",
            "Tests: 3 passed, no failures",
        ] {
            assert!(kind(none).is_none_or(|kind| kind > Kind::Wish), "{none}");
        }
        for none in ["read only", "Is it read-only or not?", "The tests run on Linux only because of CI."] {
            assert_ne!(kind(none), Some(Kind::Wish), "{none}");
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
    fn text_that_was_pasted_after_an_error_is_no_rule_and_no_fact() {
        let line = "I saw this: ERROR: deadlock detected. DETAIL: Process 4242 waits for 991. You must always retry the transaction.";
        assert_eq!(of_user(line), []);
        let trace = "This came up:\n\nTraceback (most recent call last):\n  File \"a.py\", line 8\nAttributeError: x\nHinweis: Sie müssen den Betrag immer umwandeln. Never pass raw strings.";
        assert_eq!(of_user(trace), []);
        let browser = "[browser] ./a.js:203:1\nExport default does not exist\n\nAll exports of a.tsx are known (It has 3 exports).";
        assert_eq!(of_user(browser), []);
        let own = of_user("error: the build failed\nNever touch vendor/ for that.");
        assert_eq!(own.len(), 1, "a rule after a log is the user's own");
        assert_eq!(of_user("I get Error: x failed. Never retry it.").len(), 1);
        for own in ["+ never push to main", "at the moment CI is red. Don't touch it.", "[frontend] Fix x. Never push."]
        {
            assert_eq!(of_user(own).len(), 1, "{own}");
        }
        for pasted in [
            "[WARN] do not use the flag --fast",
            "remote: error: You must never push to it.",
            "hint: Always pull first.",
        ] {
            assert_eq!(of_user(pasted), [], "{pasted}");
        }
    }

    #[test]
    fn a_rule_that_ends_with_a_colon_has_its_list() {
        let said = "All commits MUST follow this format:\n\n```\n<type>(<scope>): <text>\n```\nGo on.";
        assert_eq!(of_user(said)[0].text, "All commits MUST follow this format: <type>(<scope>): <text>");
        let next = "Titles MUST follow this format:\n\n**Format:** `<type>: <text>`\n\nGo.";
        assert_eq!(of_user(next)[0].text, "Titles MUST follow this format: **Format:** `<type>: <text>`");
        let twice = "Never touch:\n- a/\n\nNever touch:\n- b/";
        assert_eq!(
            of_user(twice).iter().map(|it| &*it.text).collect::<Vec<_>>(),
            ["Never touch: a/", "Never touch: b/"]
        );
        for tasks in [
            "Read-only inventory. Produce these sections, each bullet with `path:line`:\n- the readers\n- the writers",
            "Fix these bugs, and never skip tests:\n- the reader\n- the writer",
        ] {
            let found = of_user(tasks);
            assert!(found.len() <= 1 && found.iter().all(|it| !it.text.contains("the ")), "{found:?}");
        }
        let said = of_user("The port is 8080. Never touch these folders:\n- vendor/\n- dist/");
        assert_eq!(
            said.iter().map(|it| &*it.text).collect::<Vec<_>>(),
            ["The port is 8080.", "Never touch these folders: vendor/; dist/"]
        );
        let rules =
            "The following is mandatory:\n1. one class per file\n2. no globals\n3. every function has a docstring";
        let found: Vec<_> = of_user(rules).into_iter().map(|it| (it.kind <= Kind::Wish, it.text)).collect();
        assert!(found.len() == 3 && found.iter().all(|(is_rule, _)| *is_rule), "{found:?}");
        assert_eq!(of_user("Never do this:\n> never deploy on Friday").len(), 1);
        let said = "Never touch these folders:\n- vendor/\n- dist/\n\nThat is all.";
        assert_eq!(
            of_user(said).iter().map(|it| &*it.text).collect::<Vec<_>>(),
            ["Never touch these folders: vendor/; dist/"]
        );
    }

    #[test]
    fn a_short_item_has_the_heading_that_it_belongs_to() {
        let rules = |said: &str| of_user(said).into_iter().map(|it| it.text).collect::<Vec<_>>();
        let style = "- use lowercase after the colon\n- never use more than seventy characters in it, also for merges";
        for heading in ["### Description Style", "**Description Style:**", "Description Style:"] {
            assert_eq!(
                rules(&format!("# All\n\n{heading}\n\n{style}")),
                [
                    "Description Style: use lowercase after the colon",
                    "never use more than seventy characters in it, also for merges"
                ],
                "{heading}"
            );
        }
        assert_eq!(
            rules("## Tests\nStyle:\n1. use tabs\n\nSome words.\n- never sleep"),
            ["Style: use tabs", "Tests: never sleep"]
        );
        assert_eq!(rules("My own rules:\n- never push"), ["never push"]);
        assert_eq!(rules("Fix these bugs:\n- never sleep"), ["never sleep"]);
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
            "**Never** use `git push --force` (it breaks {\"a\": \"b\"})",
            "Wrap it in `<a href=\"x\">`, `<b>` or `{}` so that it is never empty",
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
        assert_eq!(kind("the retry timeout = 30 s"), Some(Kind::Fact));
        assert_eq!(kind("Set A1 is the default here."), Some(Kind::Fact));
        assert_eq!(kind("The worker is failing if the queue is over 500."), Some(Kind::Fact));
        assert_eq!(kind("The token expires after 900 s."), Some(Kind::Fact));
        assert_eq!(kind("the layout is fine"), None);
    }
}
