//! The words by which a sentence is a rule, a wish, a fact, a question, an opinion or a request for work.

use crate::summary::{
    cues::label,
    words::{COMMANDS, Words},
};
use std::{borrow::Cow, sync::LazyLock};

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
    "only ",
    // German, Portuguese, French, Italian
    "kein ",
    "keine ",
    "keinen ",
    "bitte kein ",
    "bitte keine ",
    "bitte nur ",
    "não ",
    "pas de ",
    "non ",
];

/// Whether a sentence begins with a command, and not with words that an error text has, too.
pub(super) fn begins_command(lower: &str) -> bool {
    ["never ", "always ", "do not ", "don't ", "please ", "bitte "].iter().any(|start| lower.starts_with(start))
}

/// Whether a sentence begins like a rule in a person's own words.
pub(super) fn begins_rule(lower: &str) -> bool {
    let commands = |lower: &str| COMMANDING.iter().find(|start| lower.starts_with(**start));
    let plain = without_emphasis(lower);
    let own = without_turns(&plain);
    // "And only then it failed" tells what happened.
    let commands_after_turn = || commands(own).is_some_and(|start| *start != "only ");
    commands(&plain).is_some() || commands_after_turn() || forbids(&plain) || forbids(own) && !reports(own)
}

/// Whether a short sentence says what happened or how something is: "no tests failed".
fn reports(lower: &str) -> bool {
    const VERBS: [&str; 9] = ["is", "are", "was", "were", "has", "have", "shows", "works", "helps"];
    if ["no luck", "no success", "no progress", "no change", "no difference"].iter().any(|it| lower.starts_with(it)) {
        return true;
    }
    let mut words = lower.split(|char: char| !char.is_alphanumeric());
    words.any(|word| word.len() > 3 && word.ends_with("ed") || VERBS.contains(&word))
}

/// A text without the marks of bold text.
fn without_emphasis(lower: &str) -> Cow<'_, str> {
    // Most sentences have no mark at all.
    if memchr::memchr2(b'*', b'_', lower.as_bytes()).is_some() && (lower.contains("**") || lower.contains("__")) {
        return lower.replace("**", "").replace("__", "").into();
    }
    lower.into()
}

/// A sentence without the words by which it only goes on from another.
fn without_turns(lower: &str) -> &str {
    const TURNS: [&str; 6] = ["also", "oh", "and", "plus", "whatever you do", "whatever happens"];
    let mut lower = lower;
    while let Some(rest) = TURNS.iter().find_map(|turn| {
        let rest = lower.strip_prefix(turn)?;
        rest.starts_with([' ', ',']).then(|| rest.trim_start_matches([',', ' ']))
    }) {
        lower = rest;
    }
    lower
}

/// Whether a sentence says that each thing of a kind has to have something: "every function needs a docstring".
fn demands_of_each(lower: &str) -> bool {
    static EACH: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"^(?:every|each|all)\s(?:[\w-]+\s){1,3}(?:needs?\s(?:an?|its|to|at\sleast)|gets?\s(?:an?|its)|has\sto|have\sto)\b",
        )
        .expect("a fixed pattern")
    });
    if !["every ", "each ", "all "].iter().any(|start| lower.starts_with(start)) {
        return false;
    }
    // "Every request gets a 500 since noon" reports something.
    let reports = [" since ", " when ", " because "].iter().any(|word| lower.contains(word))
        || lower.bytes().filter(u8::is_ascii_digit).count() > 2;
    EACH.is_match(lower) && !lower.starts_with("each time") && !reports
}

/// Whether a sentence says in which form texts of the project are wanted: "commit messages in imperative mood, please".
fn sets_form(lower: &str) -> bool {
    static FORM: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"^(?:(?:commit|branch|test|log|error|code|file|release)\s)?(?:messages|comments|commits|names|docs|docstrings|titles|descriptions|branches|headings|tests)\s(?:in|as|with|without)\s[^.,;:]{2,60},?\splease[.!]?$",
        )
        .expect("a fixed pattern")
    });
    FORM.is_match(lower)
}

/// Whether a line gives a way of working after its name, and something that it forbids: "code style: 4 spaces, no tabs".
fn forbids_by_name(lower: &str) -> bool {
    /// Words of a name.
    const MOST: usize = 3;
    // A report of a result has the same form.
    const RESULTS: [&str; 8] = ["error", "failure", "issue", "problem", "warning", "change", "result", "output"];
    const WAYS: [&str; 14] = [
        "style",
        "format",
        "naming",
        "commits",
        "messages",
        "rules",
        "indentation",
        "quotes",
        "dependencies",
        "deps",
        "tests",
        "comments",
        "docs",
        "language",
    ];
    let Some((name, value)) = lower.split_once(": ").filter(|(name, _)| name.split_whitespace().count() <= MOST) else {
        return false;
    };
    if !name.split_whitespace().any(|word| WAYS.contains(&word)) {
        return false;
    }
    let forbids = |part: &str| {
        let rest = part.trim().strip_prefix("no ").unwrap_or_default();
        forbids(part.trim()) && !RESULTS.iter().any(|result| rest.starts_with(result))
    };
    name.chars().all(|char| char.is_alphabetic() || matches!(char, ' ' | '-')) && value.split([',', ';']).any(forbids)
}

/// Whether a sentence forbids something with "no": "no force pushes". An answer begins with the same word.
fn forbids(lower: &str) -> bool {
    const OTHERS: [&str; 18] = [
        "i", "we", "you", "it", "that", "this", "the", "they", "there", "problem", "worries", "need", "idea", "wait",
        "longer", "one", "more", "doubt",
    ];
    let Some(rest) = lower.strip_prefix("no ") else { return false };
    let first = rest.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    // "No remove this again" is a request, "no commits on Friday" is not.
    let second = rest.split_whitespace().nth(1).unwrap_or_default();
    let asks = asks_for_work(rest) && ["this", "that", "it", "the", "them"].contains(&second);
    !asks && !OTHERS.contains(&first)
}

/// Whether a sentence asks for work: it begins with what is to be done.
pub(in crate::summary) fn asks_for_work(said: &str) -> bool {
    const VERBS: [&str; 54] = [
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
        "disable",
        "document",
        "draft",
        "enable",
        "ensure",
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
        "repair",
        "replace",
        "restart",
        "revert",
        "review",
        "rewrite",
        "simplify",
        "test",
        "translate",
        "undo",
        "update",
        "upgrade",
        "verify",
        "write",
    ];
    let lower = said.to_lowercase();
    let lower = without_leads(&lower);
    let first = lower.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    let is_set_up = first == "set" && lower.starts_with("set up ");
    (VERBS.contains(&first) || is_set_up) && label(said).is_none()
}

/// The same, also with words that begin other sentences, too: "make it", "release timing has changed". For messages that answer a
/// question, and where nothing is lost.
pub(in crate::summary) fn may_ask_for_work(said: &str) -> bool {
    const VERBS: [&str; 25] = [
        "apply", "free", "give", "handle", "kill", "list", "make", "merge", "open", "print", "push", "put", "read",
        "reduce", "release", "rerun", "run", "set", "show", "split", "start", "stop", "tell", "tidy", "try",
    ];
    let lower = said.to_lowercase();
    let first = without_leads(&lower).split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    asks_for_work(said) || VERBS.contains(&first) && label(said).is_none()
}

/// A sentence without the words by which it follows on another.
fn without_leads(lower: &str) -> &str {
    const LEADS: [&str; 22] = [
        "please", "now", "then", "yes", "yep", "yeah", "ok", "okay", "sure", "so", "and", "also", "great", "cool",
        "nice", "good", "perfect", "thanks", "no", "ja", "well", "just",
    ];
    let mut lower = lower;
    while let Some((word, rest)) =
        lower.split_once(' ').filter(|(word, _)| LEADS.contains(&word.trim_end_matches([',', '.', '!'])))
    {
        // "No release on Friday" is a rule.
        if word == "no" {
            break;
        }
        lower = rest.trim_start();
    }
    lower
}

/// Whether a sentence is a question, though it may have no question mark.
pub(super) fn is_question(lower: &str) -> bool {
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

/// Whether a sentence says what somebody thinks or what happened, and sets no rule.
pub(super) fn opines(lower: &str) -> bool {
    const THOUGHTS: [&str; 12] = [
        "i think",
        "i guess",
        "i feel",
        "i believe",
        "i wonder",
        "i thought",
        "i was told",
        "maybe",
        "perhaps",
        "probably",
        "and on top",
        "ich glaube",
    ];
    const PHRASES: [&str; 13] = [
        "never mind",
        "you never know",
        "it always",
        "it never",
        "it must be",
        "you must be joking",
        "no way",
        "i always get",
        "don't worry",
        "please don't worry",
        "es schlägt",
        "das muss",
        "es muss",
    ];
    const RULES: [&str; 7] = ["must", "never", "always", "should not", "shouldn't", "not allowed", "do not "];
    let thinks = THOUGHTS.iter().any(|start| lower.starts_with(start) || lower.contains(&format!(": {start}")));
    let is_phrase = PHRASES.iter().any(|start| lower.starts_with(start));
    let happened = ["must have ", "must be a ", "muss gestern"].iter().any(|word| lower.contains(word))
        && !lower.starts_with("there must be ");
    let told = ["i thought", "i was told"].iter().any(|start| lower.starts_with(start));
    told || is_phrase || happened || thinks && !RULES.iter().any(|rule| lower.contains(rule))
}

/// Whether a sentence reports that something does not work now: the agent is to look at it, and soon it may be true no more.
pub(super) fn reports_trouble(lower: &str) -> bool {
    static TROUBLE: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)\b(?:is|are|keeps?)\s(?:now\s|still\s|currently\s)?(?:broken|failing|crashing|hanging|red|kaputt|returning\s(?:an?\serror|[45]\d\d))\b
              | \bthere\s(?:is|are)\s\d+\sfailing\b",
        )
        .expect("a fixed pattern")
    });
    let is_case = [" if ", " when ", " until ", ", "].iter().any(|word| lower.contains(word));
    TROUBLE.is_match(lower) && !is_case
}

/// Whether a sentence says how something could be.
pub(super) fn supposes(lower: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&["could", "would", "might", "maybe", "perhaps", "i guess", "könnte", "vielleicht"])
    });
    WORDS.stand_in(lower)
}

/// Whether a sentence asks for something each time: for every change, in every answer, before committing.
pub(super) fn is_standing(lower: &str) -> bool {
    static STANDING: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)\b(?:for|in|on|with|after|before|at)\s(?:each|every|all)\s(?:\w+\s)?
                (?:changes?|commits?|steps?|prs?|pull\srequests?|answers?|repl(?:y|ies)|responses?|messages?|edits?|releases?|merges?)\b
              | \bevery\stime\b
              | \b(?:für|in|bei|nach|vor|mit)\s(?:jede[rsmn]?|alle[nr]?)\s(?:\w+\s)?(?:änderung|commit|schritt|antwort|nachricht|pr)
              | \b(?:pour|à|dans|après)\schaque\s | \b(?:en|para|por)\scada\s
              | \b(?:answer|reply|respond|write\sto\sme|talk\sto\sme)\b.{0,24}\bin\s(?:english|german|french|spanish|italian|portuguese|japanese|chinese|korean|russian|dutch|polish|turkish)\b
              | \b(?:antworte|schreib)\w*\b.{0,24}\bauf\s(?:deutsch|englisch)\b
              | \brépond\w*\b.{0,24}\ben\s(?:français|anglais)\b | \bresponde\w*\b.{0,24}\ben\s(?:español|inglés)\b
              | ^n(?:e\s|')\w+\s(?:\w+\s)?(?:pas|jamais|rien|plus)\b | ^(?:merci|prière)\sde\sne\b
              | ^(?:avant|après)\schaque\s | ^(?:vor|nach)\s(?:dem|jedem|der|jeder)\s(?:commit|push|änderung|release|merge)",
        )
        .expect("a fixed pattern")
    });
    STANDING.is_match(lower) || is_on_occasion(lower)
}

/// Whether a sentence says what to do each time that something happens: "before you open a PR, run the tests".
fn is_on_occasion(lower: &str) -> bool {
    static TO_DO: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "run", "use", "update", "add", "say", "tell", "ask", "make", "check", "write", "include", "mention",
            "keep", "start", "test", "format", "note", "prefix", "has to", "have to", "needs to", "must", "should",
            "do", "do not", "don't",
        ])
    });
    const OCCASIONS: [&str; 8] =
        ["before ", "after ", "when ", "whenever ", "each time ", "every time ", "once you ", "while "];
    // A report of the user begins in the same way.
    const REPORTS: [&str; 10] = ["i ", "we ", "it ", "they ", "the ", "that ", "this ", "he ", "she ", "running "];
    let Some(rest) = OCCASIONS.iter().find_map(|start| lower.strip_prefix(start)) else { return false };
    let describes = [" it's ", " it is ", " isn't ", " that's "].iter().any(|word| rest.contains(word));
    !describes && !REPORTS.iter().any(|start| rest.starts_with(start)) && TO_DO.stand_in(rest)
}

/// Whether a sentence complains, wonders or tells, with a word that rules have, too. With a rule after it, it is one.
pub(super) fn complains(lower: &str) -> bool {
    static COMPLAINT: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?:but\s|and\s|so\s|hmm+,?\s|ugh,?\s|well,?\s|ok,?\s|no,?\s|yes,?\s)*(?:
                i\s(?:don't|do\snot|can't|cannot|never)\s(?:see|think|understand|know|get|believe|feel|find|remember|recall)\b
              | you\s(?:always|never)\s(?:forget|miss|break|ignore)\b
              | (?:do|does|did)\s(?:we|you|i|they|it|the)\s
              | that\smust\sbe\s(?:the|a|because)\b | (?:never\smind|nevermind)\b | (?:we|you)\s(?:don't|do\snot)\s(?:need|have)\sto\b
              | (?:the|our|my|das|die|der)\s[\w\s-]{1,40}?\s(?:always\s|never\s|geht\s)(?:fails?|breaks?|works?|crash\w*|hangs?|times?\sout|nie)\b )
              | \bthat's\s(?:the|a)\sbug\b",
        )
        .expect("a fixed pattern")
    });
    static RULES: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(r"(?:,|;|\bbut|\band)\s(?:but\s|so\s)?(?:never|always|do not|don't|please|use|keep|must)\b")
            .expect("fixed")
    });
    let lower = lower.replace('’', "'");
    COMPLAINT.is_match(&lower) && !RULES.is_match(&lower)
}

/// Whether a sentence tells what somebody or something else says: a linter, the docs, a colleague.
pub(super) fn reports_speech(lower: &str) -> bool {
    static SAYS: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?:but\s|and\s|also,?\s)*(?:(?:the|a|an|my|our|his|her|their)\s)?(?P<who>[\w'-]+(?:\s[\w'-]+)?)\s
                (?:says?|said|claims?|claimed|complains?|complained|suggests?|suggested|states?|reports?|told\s(?:me|us)|tells?\s(?:me|us)|wrote|should\ssay|should\sread|sagt|meint|schreibt|dit|dice)\b",
        )
        .expect("a fixed pattern")
    });
    let is_own = |who: &str| who.split(' ').any(|word| ["i", "we", "you", "rule", "rules", "user"].contains(&word));
    SAYS.captures(lower).is_some_and(|found| !is_own(&found["who"]))
}

/// Whether a question is a rule in the form of a request: "could you please always run the tests".
pub(super) fn asks_for_rule(lower: &str) -> bool {
    static ASKS: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"^(?:please )?(?:can|could|will|would) you (?:please )?(?:always|never|not|only|make sure|stop|avoid)\b|^would you mind not\b",
        )
        .expect("a fixed pattern")
    });
    ASKS.is_match(lower)
}

/// Whether a short sentence names a way of working and nothing else: "English only", "tabs, not spaces", "commits auf Deutsch
/// bitte", "stay on branch dev".
fn sets_way(lower: &str) -> bool {
    static WAY: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^[\w./-]+(?:\s[\w./-]+)?\sonly[.!]?$ | ^[\w./-]+(?:\s[\w./-]+)?,\snot\s[\w./-]+[.!]?$
              | ^(?:tests|commits|docs|comments|names|messages|code|files)\s(?:\w+\s)?(?:go|goes|belong|live|gehören)\sin\s.*,?\s(?:not|nicht)\s
              | \b(?:messages?|comments?|commits?|names?|docs?|answers?|docstrings?|kommentare|antworten)\s(?:please\s|bitte\s)?(?:in|auf)\s(?:english|german|french|spanish|englisch|deutsch)\b
              | ^(?:please\s)?stay\son\s(?:branch|the\s|main|dev) | ^(?:please\s)?(?:stay|keep)\sout\sof\s | ^(?:please\s)?just\suse\s
              | \byou\sare\snot\s(?:to|allowed)\b | \bonly\safter\si\b | \bthe\sonly\sallowed\b",
        )
        .expect("a fixed pattern")
    });
    WAY.is_match(lower)
}

pub(super) fn is_rule(lower: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(COMMANDS));
    let lower = &lower.replace('’', "'");
    let own = without_turns(lower);
    WORDS.stand_in(lower)
        || asks_for_rule(lower)
        || sets_way(own)
        || sets_form(own)
        || demands_of_each(own)
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
pub(super) fn is_wish(lower: &str) -> bool {
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
    // How a program works is no wish: "the handler uses the id directly instead of calling it".
    static DESCRIBES: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(r"^(?:the|a|an|this|that|it|`?\w+`?\(\))\s(?:.{1,80}?\s)?(?:uses|calls|overwrites|returns|creates|does|reads|writes|gets|sets|ignores|fails|takes|sends|shows|skips|drops)\b")
            .expect("a fixed pattern")
    });
    const STILL: [&str; 5] = ["should", "must", "prefer", "wants", "required"];
    if DESCRIBES.is_match(lower) && !STILL.iter().any(|word| lower.contains(word)) {
        return false;
    }
    // A condition for the agent: "if it fails, stop".
    forbids_by_name(lower) || WORDS.stand_in(lower) || lower.starts_with("if ") && lower.contains(", ")
}

/// Whether a sentence says how something is.
pub(super) fn is_fact(lower: &str) -> bool {
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
