//! Rules that the user takes back: "forget the rule about tabs", "you may push after all", "use spaces, not tabs".

use super::{Kind, Statement};
use crate::summary::{prose::sentences_of_line, words::Words};
use regex::Regex;
use std::sync::LazyLock;

/// A sentence that takes rules back. It has to say so without a doubt: a rule that is told though it holds no longer does less
/// harm than one that is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::summary) struct Withdrawal {
    /// The sentence.
    pub text: String,
    words: Initials,
    way: Way,
}

/// Words with the set of their first letters. Words with other first letters are others, so most comparisons end early.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::summary) struct Initials {
    words: Vec<String>,
    letters: u64,
}

impl Initials {
    /// The words of a rule or of a sentence about one, in small letters.
    pub(in crate::summary) fn of(lower: &str) -> Self {
        let words = words(lower);
        let first = |word: &String| word.chars().next().map_or(0, |char| 1 << (char as u32 % u64::BITS));
        Self { letters: words.iter().map(first).fold(0, |all, letter| all | letter), words }
    }

    /// Whether each word is one of others.
    fn are_in(&self, others: &Self) -> bool {
        self.letters & !others.letters == 0 && self.words.iter().all(|word| others.has(word))
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| is_same(word, it))
    }
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
    /// It asks for the work that was to wait.
    Asks,
}

/// Sentences of a message that are looked at. A message with more is a paste.
const MOST_SENTENCES: usize = 48;

/// The longest sentence that takes a rule back, in characters.
const LONGEST: usize = 160;

/// The withdrawals in a message of the user. `found`: the statements in it.
pub(in crate::summary) fn withdrawals(said: &str, found: &[Statement]) -> Vec<Withdrawal> {
    let sentences = said.lines().flat_map(sentences_of_line).map(str::trim).filter(|sentence| !sentence.is_empty());
    let of_sentence = |sentence: &str| {
        let lower = sentence.to_lowercase().replace('’', "'");
        let is_rule = || found.iter().any(|it| it.kind <= Kind::Wish && it.text.contains(sentence));
        let way = way(&lower, &is_rule)?;
        // "Commit it, then push."
        let end = if way == Way::Asks || way == Way::Forgets {
            lower.find([',', ';']).unwrap_or(lower.len())
        } else {
            lower.len()
        };
        let words = Initials::of(lower[..end].split(" then ").next().unwrap_or_default());
        (!words.words.is_empty()).then(|| Withdrawal { text: sentence.to_owned(), words, way })
    };
    let short = sentences.take(MOST_SENTENCES).filter(|sentence| sentence.chars().count() <= LONGEST);
    short.filter(|sentence| !sentence.ends_with(['?', '？'])).filter_map(of_sentence).collect()
}

impl Withdrawal {
    /// Whether the sentence says more than that work is asked for: it is told in the place of the rule.
    pub(in crate::summary) fn is_told(&self) -> bool {
        matches!(self.way, Way::Forgets | Way::Permits | Way::Language)
    }

    /// Whether a rule holds no longer. `of_rule`: its words.
    pub(in crate::summary) fn takes_back(&self, rule: &str, of_rule: &Initials) -> bool {
        // All that the rule is about, and all that the sentence is about.
        let has_rule = || !of_rule.words.is_empty() && of_rule.are_in(&self.words);
        let is_in_rule = || self.words.are_in(of_rule);
        let lower = || rule.to_lowercase().replace('’', "'");
        match &self.way {
            Way::Forgets => is_in_rule(),
            // A permission for less than the rule is about leaves the rule.
            Way::Permits => has_rule() && forbids(&lower()),
            Way::Asks => has_rule() && is_in_rule() && is_liftable(&lower(), of_rule.words.len()),
            // One new thing takes the place of the old one. With more it holds for a part of the work.
            Way::Replaces(old) => {
                has_rule()
                    && of_rule.has(old)
                    && self.words.words.iter().filter(|word| !of_rule.has(word)).count() <= 1
                    && !forbids(&lower())
            }
            Way::Language => {
                let lower = lower();
                LANGUAGE.is_match(&lower) && lower != self.text.to_lowercase()
            }
        }
    }
}

/// A sentence about the language of all answers, and nothing else.
static LANGUAGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)^(?:please\s|now\s|ok,?\s|you\s(?:can|may)\s|from\snow\son,?\s|always\s|bitte\s|toujours\s|siempre\s)*
            (?:answer|reply|respond|talk|antworte\w*|répond\w*|responde\w*)\s(?:to\sme\s|me\s|mir\s|bitte\s|immer\s|always\s|toujours\s|siempre\s|wieder\s)*
            (?:in|auf|en)\s(?:english|german|french|spanish|italian|portuguese|japanese|chinese|korean|russian|englisch|deutsch|français|anglais|español|inglés)
            (?:\s(?:again|please|from\snow\son|now|wieder|bitte))?[.!]?$",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a fixed pattern")
}

fn way(lower: &str, is_rule: &dyn Fn() -> bool) -> Option<Way> {
    static FORGETS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?x)^(?:please\s|ok(?:ay)?,?\s|actually,?\s)*(?:forget|ignore|drop|scrap|cancel|scratch|disregard)\s
                (?:(?:the|my|that|this)\s(?:[\w-]+\s){0,2}rules?\b|what\si\s(?:said|told\syou)\sabout\b)
              | ^(?:and\s|ok,?\s|now\s)*(?:you|we)\s(?:no\slonger\s(?:need|have)\sto\b|don't\s(?:need|have)\sto\b.*\b(?:any\smore|anymore)\b)
              | ^(?:vergiss|ignoriere)\s(?:die|meine)\sregel\b | ^oublie\s(?:la|ma)\srègle\b | ^olvida\s(?:la|mi)\sregla\b
              | ^забудь\s(?:про\s)?правило\b | ^(?:忘掉|忘记|忽略).*(?:规则|规定) | ルールは(?:忘れて|無視)",
        )
    });
    static PERMITS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?x)^(?:ok(?:ay)?,?\s|actually,?\s|now\s)*(?:you|we)\s(?:may|can|are\sallowed\sto)\s.*\b(?:now|again|after\sall|anyway)[.!]?$
              | \b(?:is|are)\s(?:fine|ok|okay|allowed|welcome)\s(?:now|again|after\sall)[.!]?$
              | ^(?:ok,?\s)?du\s(?:darfst|kannst)\s(?:jetzt|doch|wieder)\b | \bist\s(?:doch|jetzt|wieder)\s(?:ok|erlaubt|in\sordnung)[.!]?$
              | ^(?:tu\speux|vous\spouvez)\s.*\bmaintenant\b | ^(?:ya|ahora)\spuedes\b
              | (?:やっぱり|もう).*て(?:もいい|大丈夫) | ^теперь\sможно\b | ^(?:算了[,，]?\s?|现在)可以",
        )
    });
    static DENIES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:can't|cannot|not|never|nicht|pas|no)\b|不"));
    static REPLACES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\b(?:instead of|rather than|not|no longer|statt|anstatt|au lieu de|en lugar de|вместо)\s([\w./+-]+)")
    });
    if FORGETS.is_match(lower) {
        // An exception leaves the rule.
        let excepts =
            [" for this", " for the ", " for now", " this time", " here", " today"].iter().any(|it| lower.contains(it));
        return (!excepts).then_some(Way::Forgets);
    }
    if LANGUAGE.is_match(lower) {
        return Some(Way::Language);
    }
    if PERMITS.is_match(lower) && !DENIES.is_match(lower) {
        return Some(Way::Permits);
    }
    if super::may_ask_for_work(lower) || lower.split_whitespace().count() <= 4 {
        return Some(Way::Asks);
    }
    let old = REPLACES.captures(lower).filter(|_| is_rule());
    old.map(|found| Way::Replaces(found[1].to_owned()))
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
const FILLERS: [&str; 72] = [
    "instead",
    "rather",
    "than",
    "die",
    "der",
    "das",
    "los",
    "las",
    "les",
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

/// The words of a rule or of a sentence about one, in small letters, that tell what it is about. Of writing without blanks, pairs of characters.
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
        let is_number = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
        let has_meaning = |word: &&str| is_number(word) || word.chars().count() > 2 && !FILLERS.contains(word);
        let narrow = narrow.split(' ').filter(has_meaning);
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
        let of_rule = Initials::of(&rule.to_lowercase());
        withdrawals(later, &of_user(later)).iter().any(|it| it.takes_back(rule, &of_rule))
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
            ("don't commit yet", "commit it, the tests pass"),
            ("don't run the tests yet", "Run all of the tests now."),
            ("Don't publish yet.", "publish it now"),
            ("不要修改配置文件", "现在可以修改配置文件"),
            ("Never touch the migrations folder.", "You may touch the migration folder again."),
            ("Never touch the APIs.", "You may touch the API again."),
            ("Ask me before deleting files.", "We no longer need to ask before deleting files"),
            ("Jamais de tabs.", "Oublie la règle tabs"),
            ("Никогда tabs.", "Забудь правило tabs"),
            ("No emojis in the docs.", "Emojis in the docs are fine now."),
            ("No emojis in the docs.", "Emojis in the docs are fine after all."),
            ("Nie auf main pushen.", "Du darfst jetzt auf main pushen."),
            ("Nie Emojis in Commits.", "Emojis in Commits ist wieder erlaubt."),
            ("No tabs.", "Ahora puedes poner tabs otra vez"),
            ("Не пушь в main.", "Теперь можно пушь в main"),
            ("Never touch vendor.", "You are allowed to touch vendor again."),
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
            // Each of these is about something else, or for a part of the work.
            ("Don't deploy to prod yet.", "deploy to staging"),
            ("Don't merge PR 12 yet.", "merge PR 15"),
            ("Don't run the migrations now.", "run git status"),
            ("don't commit yet", "Fix the typo. Commit message style is conventional."),
            ("Don't deploy now.", "deploy script has a bug, fix it"),
            ("Never use tabs and don't push yet.", "push"),
            ("Never touch vendor/. Always run cargo fmt. Don't commit yet.", "commit it"),
            ("Always answer in German.", "Write the README in English."),
            ("Respond in Spanish.", "The bot should answer in German if the user is German."),
            ("Reply in French.", "Could you explain this answer: 'Write it in English'?"),
            ("Never push to main.", "You can't push to main, remember."),
            ("Don't deploy to production.", "You can deploy to staging and production uses the same image."),
            ("Do not use Redis.", "We can see Redis in the diagram, remove it"),
            ("Never use eval.", "You can find eval in old.js, please replace it"),
            ("No emojis.", "The emojis page is ok."),
            ("Always run the tests before committing.", "You don't need to run the tests for this typo."),
            ("Never log passwords.", "ignore the failing test about passwords for now"),
            ("Never remove the license header.", "ignore what the linter said about the header"),
            ("Use tabs.", "Use spaces in YAML files, not tabs."),
            ("Use Postgres.", "Use SQLite in the unit tests instead of Postgres."),
            ("Always answer in German.", "Write the docs."),
            ("Use port 8080.", "The port is 9090 not 8080."),
            ("Always use tabs.", "We have spaces, not tabs."),
            ("Always use tabs.", "Never push. We have spaces, not tabs."),
            ("Never use default exports.", "Forget the rule about default exports?"),
            ("Never use default exports.", "Forget the rule about default exports for now."),
            ("Don't do it.", "you can push now"),
            ("Always run the tests.", "You can run the tests again."),
            ("Never use tabs.", "Always use spaces, not tabs."),
            ("Always use tabs in Makefiles.", "Always use spaces, not tabs."),
            ("Always use spaces.", "Always use spaces, not tabs."),
            ("Never push to main.", "Answer in English."),
            ("Answer in German.", "Answer in German."),
            ("Never push to main.", "You may not push to main now."),
            ("Don't push to main.", "push to main"),
            ("Use pnpm.", "use pnpm"),
            ("Run the tests now.", "run the tests"),
            ("Never touch api_old.", "You may touch the old api again."),
            ("Never touch api-old.", "You may touch the old api again."),
            ("Never touch the app.", "You may touch the appendix now."),
        ] {
            assert!(!takes_back(rule, later), "{rule} | {later}");
        }
        let long = format!("Forget the rule about default exports, {}", "because we like them all ".repeat(6));
        assert!(!takes_back("Never use default exports.", &long), "a long sentence");
    }
}
