//! Rules that the user takes back: "forget the rule about tabs", "you may push after all", "use spaces, not tabs".

use super::{Kind, Statement};
use crate::summary::{prose::sentences_of_line, words::Words};
use regex::Regex;
use std::sync::LazyLock;

/// A sentence that takes rules back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::summary) struct Withdrawal {
    /// The sentence.
    pub text: String,
    words: Vec<String>,
    way: Way,
}

/// The way in which a sentence takes a rule back.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// It names the rule.
    Forgets,
    /// It permits all that the rule forbids.
    Permits,
    /// It names the thing that another one takes the place of.
    Replaces(String),
    /// It names the language of the answers.
    Language,
    /// It asks for the work that was to wait, by its verb.
    Asks,
}

/// The withdrawals in a message of the user. `found`: the statements in it.
pub(in crate::summary) fn withdrawals(said: &str, found: &[Statement]) -> Vec<Withdrawal> {
    let sentences = said.lines().flat_map(sentences_of_line).map(str::trim).filter(|sentence| !sentence.is_empty());
    let of_sentence = |sentence: &str| {
        let rule = found.iter().any(|it| it.kind <= Kind::Wish && it.text.contains(sentence));
        way(&sentence.to_lowercase().replace('’', "'"), rule).map(|way| Withdrawal {
            text: sentence.to_owned(),
            words: words(&sentence.to_lowercase()),
            way,
        })
    };
    sentences.filter_map(of_sentence).collect()
}

impl Withdrawal {
    /// Whether the sentence says more than that work is asked for: it is told in the place of the rule.
    pub(in crate::summary) fn is_told(&self) -> bool {
        matches!(self.way, Way::Forgets | Way::Permits | Way::Language)
    }

    /// Whether a rule holds no longer.
    pub(in crate::summary) fn takes_back(&self, rule: &str) -> bool {
        let lower = rule.to_lowercase().replace('’', "'");
        if lower == self.text.to_lowercase() {
            return false;
        }
        let of_rule = words(&lower);
        let both = of_rule.iter().filter(|word| self.words.iter().any(|other| is_same(word, other))).count();
        match &self.way {
            Way::Forgets => both > 0 && both * 2 >= self.words.len().min(of_rule.len()),
            // A permission for less than the rule is about leaves the rule.
            Way::Permits => !of_rule.is_empty() && both == of_rule.len() && forbids(&lower),
            Way::Replaces(old) => {
                !forbids(&lower) && both == of_rule.len() && of_rule.iter().any(|word| is_same(word, old))
            }
            Way::Language => LANGUAGE.is_match(&lower),
            Way::Asks => {
                is_liftable(&lower, of_rule.len())
                    && self.words.first().is_some_and(|verb| of_rule.iter().any(|it| is_same(it, verb)))
            }
        }
    }
}

/// Words for the language of answers.
static LANGUAGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)\b(?:answer|reply|respond|write|talk|speak|antworte\w*|schreib\w*|répond\w*|responde\w*)\b.{0,30}
            \b(?:english|german|french|spanish|italian|portuguese|japanese|chinese|korean|russian|englisch|deutsch|français|anglais|español|inglés)\b",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a fixed pattern")
}

fn way(lower: &str, is_rule: bool) -> Option<Way> {
    static FORGETS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?x)^(?:please\s|ok(?:ay)?,?\s|actually,?\s)*(?:forget|ignore|drop|scrap|cancel|scratch|disregard)\b.*\b(?:rules?|said|told|about|constraints?)\b
              | \b(?:you|we)\s(?:no\slonger\s(?:need|have)\sto|don't\s(?:need|have)\sto|needn't)\b | \brule\b.*\b(?:no\slonger|does\snot|doesn't)\s(?:apply|applies|hold)
              | ^(?:vergiss|ignoriere)\b.*\b(?:regel|gesagt)\b | ^oublie\b.*\brègle\b | ^olvida\b.*\bregla\b | ^забудь\b
              | ^(?:忘掉|忘记|忽略).*(?:规则|规定) | ルールは(?:忘れて|無視)",
        )
    });
    static PERMITS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?x)^(?:ok(?:ay)?,?\s|actually,?\s|now\s)*(?:you|we)\s(?:may|can|could|are\sallowed\sto)\b
              | \b(?:is|are)\s(?:fine|ok|okay|allowed|welcome)\b(?:\s(?:now|again|after\sall))?[.!]?$
              | \bdu\s(?:darfst|kannst)\b | \bist\s(?:doch\s|jetzt\s)?(?:ok|erlaubt|in\sordnung)\b | ^(?:tu\speux|vous\spouvez)\b
              | \b(?:ya\s|ahora\s)?puedes?\b | てもいい | て大丈夫 | \bможно\b | \bможешь\b | ^(?:算了[,，]?\s?)?可以",
        )
    });
    static REPLACES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\b(?:instead of|rather than|not|no longer|statt|anstatt|au lieu de|en lugar de|вместо)\s([\w./+-]+)")
    });
    if FORGETS.is_match(lower) {
        return Some(Way::Forgets);
    }
    if LANGUAGE.is_match(lower) {
        return Some(Way::Language);
    }
    if !is_rule && PERMITS.is_match(lower) && !lower.ends_with(['?', '？']) {
        return Some(Way::Permits);
    }
    if is_rule {
        let old = REPLACES.captures(lower).map(|found| found[1].to_owned());
        return old.map(Way::Replaces);
    }
    Some(Way::Asks).filter(|_| super::asks_for_work(lower) || lower.split_whitespace().count() <= 4)
}

/// Whether a rule forbids something.
fn forbids(lower: &str) -> bool {
    static NOT: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "never",
            "don't",
            "dont",
            "do not",
            "no",
            "not",
            "kein",
            "keine",
            "keinen",
            "nicht",
            "nie",
            "niemals",
            "nur",
            "ne",
            "pas",
            "jamais",
            "no ",
            "nunca",
            "não",
            "не",
            "нельзя",
            "никогда",
            "only",
            "without",
            "avoid",
            "must not",
            "不要",
            "别",
            "禁止",
            "不能",
            "不允许",
            "ないで",
            "しない",
            "금지",
            "마세요",
        ])
    });
    NOT.stand_in(lower)
}

/// Whether a request for the same work lifts a rule: it forbids that for a while, or nothing but that and not for ever.
fn is_liftable(lower: &str, words: usize) -> bool {
    let for_ever =
        ["never", "always", "under no", "niemals", "jamais", "nunca"].iter().any(|word| lower.contains(word));
    is_temporary(lower) || words == 1 && forbids(lower) && !for_ever
}

/// Whether a rule says that it holds for a while.
fn is_temporary(lower: &str) -> bool {
    static FOR_NOW: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "yet",
            "for now",
            "now",
            "right now",
            "at the moment",
            "this time",
            "until i",
            "until we",
            "noch nicht",
            "vorerst",
            "pour l'instant",
            "por ahora",
            "todavía",
            "пока",
            "先别",
            "まだ",
        ])
    });
    FOR_NOW.stand_in(lower) && forbids(lower)
}

/// Words that say nothing of a rule.
const FILLERS: [&str; 63] = [
    "ist",
    "nur",
    "the",
    "and",
    "for",
    "you",
    "can",
    "may",
    "now",
    "all",
    "after",
    "any",
    "more",
    "again",
    "rule",
    "rules",
    "about",
    "what",
    "said",
    "told",
    "forget",
    "ignore",
    "please",
    "with",
    "that",
    "this",
    "have",
    "need",
    "don",
    "not",
    "never",
    "always",
    "only",
    "use",
    "must",
    "should",
    "just",
    "from",
    "are",
    "fine",
    "okay",
    "allowed",
    "longer",
    "yet",
    "anything",
    "anymore",
    "regel",
    "vergiss",
    "mit",
    "darf",
    "darfst",
    "jetzt",
    "doch",
    "nie",
    "oublie",
    "règle",
    "peux",
    "ahora",
    "puedes",
    "hacer",
    "правило",
    "можно",
    "забудь",
];

/// The words of a sentence in small letters that tell what it is about. Of writing without blanks, pairs of characters.
fn words(lower: &str) -> Vec<String> {
    let mut words = Vec::new();
    let is_part = |char: char| char.is_alphanumeric() || char == '-' || char == '_';
    for word in lower.split(|char: char| !is_part(char)).filter(|word| !word.is_empty()) {
        let wide: Vec<char> = word.chars().filter(|char| is_wide(*char)).collect();
        if !wide.is_empty() {
            let has_meaning = |pair: &&[char]| pair.iter().all(|char| !"不要可以请算了别先能的".contains(*char));
            words.extend(wide.windows(2).filter(has_meaning).map(String::from_iter));
        }
        let narrow: String = word.chars().map(|char| if is_wide(char) || is_kana(char) { ' ' } else { char }).collect();
        let narrow = narrow.split(' ').filter(|word| word.chars().count() > 2 && !FILLERS.contains(word));
        words.extend(narrow.map(str::to_owned));
    }
    words
}

fn is_wide(char: char) -> bool {
    matches!(char, '\u{30a0}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn is_kana(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{309f}')
}

/// Whether two words are one with different endings.
fn is_same(one: &str, other: &str) -> bool {
    const STEM: usize = 4;
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    one == other || short.chars().count() >= STEM && long.starts_with(short) || is_singular(short, long)
}

fn is_singular(short: &str, long: &str) -> bool {
    short.len() > 2 && long.strip_suffix('s') == Some(short)
}

#[cfg(test)]
mod tests {
    use super::{super::of_user, *};

    fn takes_back(rule: &str, later: &str) -> bool {
        withdrawals(later, &of_user(later)).iter().any(|it| it.takes_back(rule))
    }

    #[test]
    fn a_rule_is_taken_back_in_many_words() {
        for (rule, later) in [
            ("Never touch the migrations folder.", "You may touch the migrations folder after all."),
            ("Never use default exports.", "Forget the rule about default exports."),
            ("Never edit package-lock.json.", "Ignore what I said about package-lock.json."),
            ("don't push", "you can push now"),
            ("No emojis please.", "emojis are fine now"),
            ("Ask me before deleting files.", "you don't have to ask me before deleting files any more"),
            ("Nur pnpm benutzen.", "Vergiss die Regel mit pnpm, npm ist ok."),
            ("mainにpushしないで", "やっぱりmainにpushしてもいいです"),
            ("不要修改 package.json", "算了，可以修改 package.json"),
            ("don't commit yet", "commit it"),
            ("Don't run the tests now.", "Run the tests."),
            ("don't commit", "commit please, then push"),
            ("Always use tabs.", "Always use spaces, not tabs."),
            ("Use Jest for tests.", "Use Vitest for tests instead of Jest."),
            ("From now on answer in German.", "You can answer in English again."),
        ] {
            assert!(takes_back(rule, later), "{rule} | {later}");
        }
    }

    #[test]
    fn a_rule_holds_after_other_words() {
        for (rule, later) in [
            ("Never push to main.", "you can push now"),
            ("Never push to main.", "Push it."),
            ("Never touch the migrations folder.", "You can find the logs in the folder."),
            ("Never use default exports.", "Forget the test for now."),
            ("Always use tabs.", "Never use spaces."),
            ("Use pnpm.", "Use Vitest, not Jest."),
            ("don't commit yet", "Run the tests."),
            ("Never commit secrets.", "commit it"),
            ("Never push.", "push it"),
            ("Always answer in German.", "Write the docs."),
        ] {
            assert!(!takes_back(rule, later), "{rule} | {later}");
        }
    }
}
