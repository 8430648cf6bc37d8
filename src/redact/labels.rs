//! Labels of secrets in the languages of people: `contraseña: …`, `密码：…`, `ключ API — …`.

use super::named::{is_random, is_stand_in, names_an_algorithm};
use memchr::{memchr, memrchr};
use regex::{Captures, Regex};
use std::{collections::BTreeSet, ops::Range, sync::LazyLock};

/// Labels of what a person chose, by language: its value has digits and letters.
const PASSWORDS: &[(&str, &str)] = &[
    ("ar", "كلمة المرور|كلمة السر"),
    ("cs", "heslo"),
    ("da", "adgangskode"),
    ("de", "passwort|kennwort"),
    ("el", "κωδικός|κωδικός πρόσβασης"),
    ("es", "contraseña|contrasena|clave de acceso"),
    ("fa", "رمز عبور"),
    ("fi", "salasana"),
    ("fr", "mot de passe|mdp"),
    ("he", "סיסמה|סיסמא"),
    ("hi", "पासवर्ड|कूटशब्द"),
    ("hu", "jelszó"),
    ("id", "kata sandi"),
    ("it", "la password|parola|parola d'ordine|parola chiave"),
    ("ja", "パスワード|暗証番号"),
    ("ko", "비밀번호|암호"),
    ("nl", "wachtwoord|toegangscode"),
    ("no", "passord"),
    ("pl", "hasło|haslo"),
    ("pt", "senha|palavra-passe"),
    ("ro", "parolă"),
    ("ru", "пароль"),
    ("sv", "lösenord"),
    ("th", "รหัสผ่าน"),
    ("tr", "şifre|şifreniz|şifresi|sifre"),
    ("vi", "mật khẩu|mâ\u{323}t khâ\u{309}u"),
    ("zh", "密码|密碼|口令"),
];

/// Labels of what a program made, by language: its value is long and random.
const TOKENS: &[(&str, &str)] = &[
    ("ar", "مفتاح api|رمز الوصول"),
    ("de", "api-schlüssel|zugangsschlüssel"),
    ("es", "clave api|clave de api"),
    ("fr", "clé api|clé d'api|jeton|jeton d'accès"),
    ("hi", "टोकन"),
    ("it", "chiave api"),
    ("ja", "apiキー|api キー|トークン|秘密鍵"),
    ("ko", "api 키|api키|토큰"),
    ("nl", "api-sleutel"),
    ("pl", "klucz api"),
    ("pt", "chave de api|chave api"),
    ("ru", "токен|секрет|ключ api|api-ключ|секретный ключ"),
    ("tr", "api anahtarı"),
    ("zh", "密钥|秘钥|api 密钥|令牌|访问令牌"),
];

/// Between a label and its value: `:`, a dash, an arrow, or the verb of a sentence.
const GIVES: &str = r"(?:[ \t]*(?:[:：=＝—–→]|->)[ \t]*|[ \t]+(?:es|est|é|è|to|jest|is|ist|lautet|är|er|on|je|هي|هو)[ \t]+|[ \t]*(?:是|为|は|는|은)[ \t]*)";

/// The letters of the labels that have a decomposed form, which macOS and some editors write.
const PARTS: &[(char, &str)] = &[
    ('ä', "a\u{308}"),
    ('è', "e\u{300}"),
    ('é', "e\u{301}"),
    ('ñ', "n\u{303}"),
    ('ó', "o\u{301}"),
    ('ö', "o\u{308}"),
    ('ü', "u\u{308}"),
    ('ă', "a\u{306}"),
    ('ş', "s\u{327}"),
    ('ό', "ο\u{301}"),
    ('й', "и\u{306}"),
    ('ẩ', "a\u{302}\u{309}"),
    ('ậ', "a\u{323}\u{302}"),
    ('ド', "ト\u{3099}"),
    ('パ', "ハ\u{309a}"),
];

/// A text in the decomposed form of Unicode (NFD), as far as the labels need it.
fn decomposed(text: &str) -> String {
    let mut written = String::with_capacity(text.len() * 2);
    for char in text.chars() {
        match PARTS.iter().find(|(whole, _)| *whole == char) {
            Some((_, parts)) => written.push_str(parts),
            None if ('가'..='힣').contains(&char) => written.extend(letters_of_a_syllable(char)),
            None => written.push(char),
        }
    }
    written
}

/// The two or three letters of a Korean syllable, by the formula of Unicode.
fn letters_of_a_syllable(syllable: char) -> impl Iterator<Item = char> {
    const VOWELS: u32 = 21;
    const ENDS: u32 = 28;
    let number = u32::from(syllable) - u32::from('가');
    let end = number % ENDS;
    let letters = [0x1100 + number / (VOWELS * ENDS), 0x1161 + number / ENDS % VOWELS, 0x11A7 + end];
    letters.into_iter().take(if end == 0 { 2 } else { 3 }).filter_map(char::from_u32)
}

/// The labels of these languages in each form, each once.
fn all_forms(languages: &[(&str, &str)]) -> BTreeSet<String> {
    let labels = languages.iter().flat_map(|(_, labels)| labels.split('|'));
    labels.flat_map(|label| [label.to_owned(), decomposed(label)]).collect()
}

/// Labels of one kind, with their values.
struct Labels {
    pattern: Regex,
    is_secret: fn(&str) -> bool,
}

static LABELS: LazyLock<[Labels; 2]> =
    LazyLock::new(|| [Labels::new(PASSWORDS, is_password), Labels::new(TOKENS, is_token)]);

/// The ends of labels, in small and in capital letters: one of these is on each line that has a label. Nothing but
/// text is searched for, which is many times faster than the patterns.
struct Ends {
    /// Of the labels that have no other letters than ASCII has.
    ascii: Regex,
    /// Of the others.
    other: Regex,
}

static ENDS: LazyLock<Ends> = LazyLock::new(|| Ends {
    ascii: fixed(&format!("(?i){}", hints().join("|"))),
    other: fixed(&ends_of_all(|label| !label.is_ascii()).join("|")),
});

/// The ends of the labels that have no other letters than ASCII has.
pub(super) fn hints() -> Vec<String> {
    ends_of_all(str::is_ascii)
}

fn ends_of_all(are: fn(&str) -> bool) -> Vec<String> {
    let labels = all_forms(PASSWORDS).into_iter().chain(all_forms(TOKENS)).filter(|label| are(label));
    let mut ends: Vec<String> = labels.flat_map(|label| ends_of(&label)).collect();
    ends.sort_unstable();
    // The shorter one is enough.
    ends.dedup_by(|longer, shorter| longer.starts_with(shorter.as_str()));
    ends
}

/// The end of a label, as it may be written. A search for three bytes or fewer would be slow.
fn ends_of(label: &str) -> Vec<String> {
    const SHORT: usize = 4;
    if label.to_uppercase() == label {
        return vec![label.to_owned()];
    }
    if label.len() < SHORT {
        let written = [label.to_owned(), label.to_uppercase()];
        return written.iter().flat_map(|label| [":", " :", "="].map(|gives| format!("{label}{gives}"))).collect();
    }
    // `API` and the first letter after it are of either size, whatever the others are.
    let rest = label.strip_prefix("api").map_or(label, |rest| rest.trim_start_matches([' ', '-']));
    let first = rest.chars().next().filter(|char| char.is_lowercase()).map_or(0, char::len_utf8);
    let end = &rest[first..];
    vec![end.to_uppercase(), end.replace("api", "API"), end.to_owned()]
}

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are fixed and tested")
}

impl Labels {
    fn new(languages: &[(&str, &str)], is_secret: fn(&str) -> bool) -> Self {
        let mut labels: Vec<String> = all_forms(languages).into_iter().collect();
        // The longer one first: `parola chiave` before `parola`.
        labels.sort_by_key(|label| std::cmp::Reverse(label.len()));
        let pattern = format!(
            concat!(
                r#"(?i)(?P<label>{})(?:[ \t]+[\w'’]+){{0,4}}\\*["'`*]{{0,2}}(?:{}|{})(?:[\\"'`*«»“”„「『‘’]|[ \t\u{{a0}}]){{0,4}}"#,
                r#"(?P<secret>[!-~&&[^\x22'`,;<>()\[\]{{}}|\\]]{{4,}}[A-Za-z0-9!#$%&*+/=@^_~-])"#
            ),
            labels.join("|"),
            GIVES,
            decomposed(GIVES)
        );
        Self { pattern: fixed(&pattern), is_secret }
    }
}

/// Where in `text` the values of labels stand that are secrets. Ends of labels are on these `lines`.
pub(super) fn find(text: &str, lines: &[Range<usize>]) -> Vec<Range<usize>> {
    const CHUNK: usize = 1024;
    let mut found = Vec::new();
    for lines in lines {
        find_on_lines(text, lines.clone(), &ENDS.ascii, &mut found);
    }
    let mut done = 0;
    for (at, chunk) in text.as_bytes().chunks(CHUNK).enumerate() {
        let (start, end) = (at * CHUNK, at * CHUNK + chunk.len());
        if end > done && has_letters(chunk) {
            let start = memrchr(b'\n', &text.as_bytes()[done..start.max(done)]).map_or(done, |end| done + end + 1);
            done = memchr(b'\n', &text.as_bytes()[end..]).map_or(text.len(), |next| end + next);
            find_on_lines(text, start..done, &ENDS.other, &mut found);
        }
    }
    found
}

/// Whether bytes have letters that ASCII has not. Signs as `→` and `“` begin with 0xE2.
fn has_letters(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |has, byte| has | (0xC3..0xE2).contains(byte) | (0xE3..0xEE).contains(byte))
}

/// Looks for labels on the lines that have the end of one.
fn find_on_lines(text: &str, within: Range<usize>, ends: &Regex, found: &mut Vec<Range<usize>>) {
    let text = &text[..within.end];
    let mut after = within.start;
    while let Some(hit) = ends.find_at(text, after) {
        let start = text[after..hit.start()].rfind('\n').map_or(after, |at| after + at + 1);
        let end = text[hit.end()..].find('\n').map_or(text.len(), |at| hit.end() + at);
        let line = &text[start..end];
        for labels in LABELS.iter() {
            let values = labels.pattern.captures_iter(line).filter(|it| begins_a_word(line, it));
            let secrets = values.filter_map(|it| it.name("secret")).filter(|it| (labels.is_secret)(it.as_str()));
            found.extend(secrets.map(|secret| start + secret.start()..start + secret.end()));
        }
        after = end;
    }
}

/// Whether a label is no part of a longer word. Some scripts put nothing between words.
fn begins_a_word(line: &str, found: &Captures<'_>) -> bool {
    const ALPHABETS: std::ops::Range<char> = '\0'..'\u{e00}';
    let Some(label) = found.name("label") else {
        return false;
    };
    let mut before = line[..label.start()].chars().rev();
    let combines = |char: char| ('\u{300}'..='\u{36f}').contains(&char);
    let spaced = |char: char| ALPHABETS.contains(&char) && (char.is_alphanumeric() || char == '_' || combines(char));
    match before.next() {
        Some('n' | 't' | 'r') if before.next() == Some('\\') => true,
        Some(char) => !(spaced(char) && label.as_str().starts_with(spaced)),
        None => true,
    }
}

fn is_password(text: &str) -> bool {
    let has = |of: fn(&u8) -> bool| text.bytes().any(|byte| of(&byte));
    let word = text.contains("://") || names_an_algorithm(text) || is_stand_in(text);
    text.len() >= 6 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && !word
}

fn is_token(text: &str) -> bool {
    is_random(text) && is_password(text)
}
