//! The script and the language of a user. An agent continues in the language of the summary, so it has to be the user's.
//! The rules are deterministic and rough, and give nothing for a text that is not certain.

/// A script that tells languages apart by sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// English, French, Vietnamese and so on.
    Latin,
    /// Russian, Ukrainian, Bulgarian and so on.
    Cyrillic,
    /// Greek.
    Greek,
    /// Arabic, Persian, Urdu.
    Arabic,
    /// Hebrew.
    Hebrew,
    /// Hindi, Marathi, Nepali.
    Devanagari,
    /// Thai.
    Thai,
    /// Korean.
    Hangul,
    /// Japanese, which mixes kana with Chinese characters.
    Kana,
    /// Chinese.
    Han,
}

/// The language of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language {
    /// The script.
    pub script: Script,
    /// Its name for a model: `German`, or the script of an unknown language.
    pub name: &'static str,
}

/// The language of a user's texts, if it is certain and not English.
#[must_use]
pub fn of(texts: &[&str]) -> Option<Language> {
    let script = script(texts)?;
    let name = match script {
        Script::Latin => latin(texts)?,
        Script::Cyrillic => cyrillic(texts).unwrap_or("the language of the user, in Cyrillic script"),
        Script::Greek => "Greek",
        Script::Arabic => "the language of the user, in Arabic script",
        Script::Hebrew => "Hebrew",
        Script::Devanagari => "the language of the user, in Devanagari script",
        Script::Thai => "Thai",
        Script::Hangul => "Korean",
        Script::Kana => "Japanese",
        Script::Han => "Chinese",
    };
    Some(Language { script, name })
}

/// The script of most letters, if there are enough of them.
#[must_use]
pub fn script(texts: &[&str]) -> Option<Script> {
    /// Fewer letters are a word or two.
    const ENOUGH: usize = 24;
    let counts = counts(texts);
    // Code and names are Latin everywhere, and one Chinese character is a word: a third of another script decides.
    let letters: usize = counts.iter().map(|(_, count)| count).sum();
    let of = |script: Script| counts.iter().find(|(it, _)| *it == script).map_or(0, |(_, count)| *count);
    if of(Script::Kana) * 10 >= letters.max(1) && (of(Script::Kana) + of(Script::Han)) * 3 >= letters {
        return (of(Script::Kana) + of(Script::Han) >= ENOUGH / 2).then_some(Script::Kana);
    }
    let other = counts.iter().copied().filter(|(it, _)| *it != Script::Latin).max_by_key(|(_, count)| *count);
    if let Some((script, count)) = other {
        let dense = matches!(script, Script::Han | Script::Hangul);
        if count * 3 >= letters && count >= if dense { ENOUGH / 2 } else { ENOUGH } {
            return Some(script);
        }
    }
    (of(Script::Latin) >= ENOUGH && of(Script::Latin) * 10 >= letters * 7).then_some(Script::Latin)
}

/// Share of a text that is in a script, from 0 to 1. `None` if it has hardly a letter.
#[must_use]
pub fn share(text: &str, script: Script) -> Option<f64> {
    let counts = counts(&[text]);
    let letters: usize = counts.iter().map(|(_, count)| count).sum();
    let of = |script: Script| counts.iter().find(|(it, _)| *it == script).map_or(0, |(_, count)| *count);
    let own = match script {
        Script::Kana => of(Script::Kana) + of(Script::Han),
        script => of(script),
    };
    (letters >= 12).then(|| own as f64 / letters as f64)
}

fn counts(texts: &[&str]) -> Vec<(Script, usize)> {
    let mut counts: Vec<(Script, usize)> = Vec::new();
    for script in texts.iter().flat_map(|text| text.chars()).filter_map(of_char) {
        match counts.iter_mut().find(|(it, _)| *it == script) {
            Some((_, count)) => *count += 1,
            None => counts.push((script, 1)),
        }
    }
    counts
}

/// The script of a letter, by the Unicode blocks of everyday text.
fn of_char(char: char) -> Option<Script> {
    Some(match char {
        'a'..='z' | 'A'..='Z' | 'À'..='ɏ' | 'Ḁ'..='ỿ' => Script::Latin,
        'Ѐ'..='ԯ' => Script::Cyrillic,
        'Ͱ'..='Ͽ' | 'ἀ'..='῿' => Script::Greek,
        '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' => Script::Arabic,
        '\u{590}'..='\u{5ff}' => Script::Hebrew,
        '\u{900}'..='\u{97f}' => Script::Devanagari,
        '\u{e00}'..='\u{e7f}' => Script::Thai,
        '\u{ac00}'..='\u{d7a3}' | '\u{1100}'..='\u{11ff}' => Script::Hangul,
        '\u{3041}'..='\u{30ff}' => Script::Kana,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Script::Han,
        _ => return None,
    })
}

/// Letters that one language in Cyrillic script has and the others do not, and those that it never has.
const LETTERS: &[(&str, &str, &str)] = &[
    ("Ukrainian", "їєґ", "ыэёъў"),
    ("Belarusian", "ў", "їєґъ"),
    ("Serbian", "ђћјљњџ", "йыэщюя"),
    ("Russian", "ыэё", "їєґўіђћјљњџөүәқң"),
    ("Bulgarian", "ъ", "ыэёїєґўіђћјљњџ"),
];

/// The language of a text in Cyrillic script, if its letters are certain.
fn cyrillic(texts: &[&str]) -> Option<&'static str> {
    let mut count = std::collections::HashMap::new();
    for letter in texts.iter().flat_map(|text| text.chars()).flat_map(char::to_lowercase) {
        *count.entry(letter).or_insert(0_usize) += 1;
    }
    let of = |letters: &str| letters.chars().filter_map(|letter| count.get(&letter)).sum::<usize>();
    // A quoted word of another language changes nothing.
    let fits = |(_, own, never): &&(_, &str, &str)| of(own) > 0 && of(never) * 10 <= of(own);
    LETTERS.iter().find(fits).map(|(name, ..)| *name)
}

/// Words that are frequent in one language and in none of the others.
const WORDS: &[(&str, &[&str])] = &[
    ("English", &["the", "and", "that", "with", "this", "is", "are", "you", "of", "it", "for", "please"]),
    ("German", &["und", "nicht", "ist", "das", "bitte", "eine", "mit", "auf", "wir", "auch", "noch", "kannst"]),
    ("French", &["les", "des", "est", "pas", "pour", "dans", "une", "avec", "nous", "vous", "cette", "être"]),
    ("Spanish", &["los", "las", "el", "una", "pero", "como", "por", "está", "hay", "también", "archivo", "y"]),
    ("Portuguese", &["não", "uma", "você", "com", "isso", "então", "também", "são", "arquivo", "ao", "em", "os"]),
    ("Italian", &["che", "gli", "della", "sono", "perché", "questo", "anche", "nel", "il", "è", "più", "non"]),
    ("Dutch", &["het", "een", "niet", "zijn", "voor", "maar", "ook", "deze", "wordt", "graag", "moet", "naar"]),
    ("Polish", &["nie", "jest", "się", "że", "oraz", "proszę", "jak", "przez", "czy", "tylko", "już", "aby"]),
    ("Turkish", &["ve", "bir", "bu", "için", "değil", "ile", "olarak", "gibi", "lütfen", "daha", "çok", "şu"]),
];

/// The language of a text in Latin script, if it is certain and not English.
fn latin(texts: &[&str]) -> Option<&'static str> {
    let mut hits = vec![0_usize; WORDS.len()];
    for word in texts.iter().flat_map(|text| text.split(|char: char| !char.is_alphabetic())) {
        let word = word.to_lowercase();
        for (at, (_, words)) in WORDS.iter().enumerate() {
            hits[at] += usize::from(words.contains(&word.as_str()));
        }
    }
    let best = (0..WORDS.len()).max_by_key(|at| hits[*at])?;
    let second = (0..WORDS.len()).filter(|at| *at != best).map(|at| hits[at]).max().unwrap_or(0);
    (best != 0 && hits[best] >= 3 && hits[best] >= second * 3 / 2).then_some(WORDS[best].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        for (text, name) in [
            ("Please fix the parser and run the tests with cargo, that is all", None),
            ("Bitte repariere den Parser und lass die Tests laufen, das ist nicht fertig", Some("German")),
            (
                "Por favor arruma o parser, não esqueça os testes, isso também não funciona em produção",
                Some("Portuguese"),
            ),
            ("Arregla el archivo, pero no toques las pruebas, está en los módulos y hay más", Some("Spanish")),
            ("Исправь парсер и запусти тесты, пожалуйста", Some("Russian")),
            ("Виправ парсер і запусти тести, будь ласка, їх багато", Some("Ukrainian")),
            ("Поправи парсъра и пусни тестовете, моля те", Some("Bulgarian")),
            ("Поправи парсер и покрени тестове, молим", Some("the language of the user, in Cyrillic script")),
            ("请修复解析器并运行测试，不要修改 vendor 目录", Some("Chinese")),
            ("パーサーを修正してテストを実行してください", Some("Japanese")),
            ("파서를 고치고 테스트를 실행해 주세요", Some("Korean")),
            ("ok", None),
            ("fn main() { let x = 3; println!(\"{x}\"); } // über", None),
        ] {
            assert_eq!(of(&[text]).map(|it| it.name), name, "{text}");
        }
    }

    #[test]
    fn a_script_has_its_share_of_a_text() {
        let russian = "## Goal\nИсправить парсер в `src/parser.rs` и запустить тесты";
        assert!(share(russian, Script::Cyrillic).expect("enough letters") > 0.5);
        assert!(share("## Goal\nFix the parser in `src/parser.rs`", Script::Cyrillic).expect("enough") < 0.1);
        assert_eq!(share("1 2 3", Script::Latin), None);
    }
}
