//! Lists of words, and the search for them. One automaton finds out that a sentence has none of them, as most have.

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

/// Words with which a person gives a command: the sentence sets a rule.
pub(super) const COMMANDS: &[&str] = &[
    "must",
    "never",
    "always",
    "don't",
    "dont",
    "do not",
    "make sure",
    "not allowed",
    "please use",
    "refrain from",
    "under no circumstances",
    "ask me before",
    "ask me first",
    "ask first",
    "hands off",
    "off limits",
    "off-limits",
    "stay away from",
    "mustn't",
    "forbidden",
    "prohibited",
    "nobody should",
    "no one should",
    "ask before",
    "stop using",
    "from here on",
    "from now on",
    "our convention",
    "read-only",
    "hereafter",
    "it's important that",
    "you may not",
    "nobody may",
    // German, French, Spanish and Portuguese, Italian, Russian
    "niemals",
    "nie",
    "nur nach",
    "immer",
    "auf keinen fall",
    "muss",
    "verboten",
    "finger weg",
    "künftig",
    "in zukunft",
    "ab jetzt",
    "frag mich",
    "verzichte auf",
    "unter keinen umständen",
    "darf nicht",
    "jamais",
    "ne faut pas",
    "désormais",
    "évite",
    "interdit",
    "interdiction",
    "en aucun cas",
    "dorénavant",
    "je ne veux pas",
    "evita ",
    "nada de",
    "pregúntame antes",
    "de ahora en adelante",
    "bajo ningún",
    "prohibido",
    "a partir de ahora",
    "toujours",
    "il faut",
    "nunca",
    "sólo usa",
    "solo usa",
    "siempre",
    "debe",
    "sempre",
    "deve",
    "никогда",
    "всегда",
    "нельзя",
    "не трогай",
    "не пушь",
    "не меняй",
    "не используй",
    "только",
    "должен",
    // Chinese, Japanese, Korean
    "必须",
    "永远",
    "不要",
    "禁止",
    "不能",
    "总是",
    "只能",
    "务必",
    "不允许",
    "请勿",
    "别动",
    "别碰",
    "别改",
    "别用",
    "千万",
    "严禁",
    "先问我",
    "以后都",
    "ないでください",
    "てはいけない",
    "今後は",
    "始终",
    "以后请",
    "每次",
    "必ず",
    "絶対に",
    "しないで",
    "常に",
    "반드시",
    "절대",
    "항상",
    "지 마세요",
    "지 말아",
    "하지 마",
    "앞으로는",
    "매번",
    "금지",
    "물어봐",
    // Arabic
    "يجب",
    "أبد",
    "دائم",
    "لا تلمس",
    "من الآن فصاعد",
    "يُمنع",
    "يمنع",
    "ممنوع",
    "إياك",
    "تجنب",
    "اسألني قبل",
];

/// Words in small letters.
pub(super) struct Words {
    words: Vec<(&'static str, Finder<'static>)>,
    any: AhoCorasick,
}

impl Words {
    pub(super) fn new(words: impl IntoIterator<Item = &'static &'static str>) -> Self {
        let words: Vec<&str> = words.into_iter().copied().collect();
        let any = AhoCorasick::new(&words).expect("the words are fixed and tested");
        Self { words: words.into_iter().map(|word| (word, Finder::new(word))).collect(), any }
    }

    /// Whether a text in small letters contains one of them, also inside of a longer word.
    pub(super) fn are_in(&self, lower: &str) -> bool {
        self.any.is_match(lower)
    }

    /// Whether one of them stands in a text in small letters by itself. Writing without spaces has no "by itself".
    pub(super) fn stand_in(&self, lower: &str) -> bool {
        let word = |(word, finder): &(&str, Finder<'_>)| {
            finder.find_iter(lower.as_bytes()).any(|at| {
                let before = lower[..at].chars().next_back();
                let after = lower[at + word.len()..].chars().next();
                let cjk = !word.is_ascii();
                cjk || before.is_none_or(|char| !char.is_alphanumeric())
                    && after.is_none_or(|char| !char.is_alphanumeric() || word.ends_with(' '))
            })
        };
        self.are_in(lower) && self.words.iter().any(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_by_itself_or_inside_of_another() {
        let words = Words::new(&["must", "use a", "mai ", "必须", "c++"]);
        for (text, contains, stands) in [
            ("you must go", true, true),
            ("mustard, and then you must", true, true),
            ("mustard", true, false),
            ("because also", true, false),
            ("use a", true, true),
            ("non è mai vero", true, true),
            ("请必须使用", true, true),
            ("in c++", true, true),
            ("c", false, false),
            ("", false, false),
        ] {
            assert_eq!((words.are_in(text), words.stand_in(text)), (contains, stands), "{text}");
        }
    }
}
