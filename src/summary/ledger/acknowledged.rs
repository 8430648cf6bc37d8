//! Answers of the agent that only acknowledge a message.

use super::outcomes::{claims_result, exclaims};
use std::sync::LazyLock;

/// Whether an answer says no more than that it was heard.
pub(super) fn is_acknowledgement(answer: &str) -> bool {
    // A longer one says something.
    const LONGEST: usize = 160;
    // "OK, the trip is booked" says something.
    const MOST_WORDS: usize = 5;
    static PROMISES: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?:(?:ok(?:ay)?|sure|alright|great|perfect|ja|gut|klar|alles\sklar|vale|claro)[,.!]\s)?(?:
                (?:i'll|i\swill)\s(?:remember|keep|note|make\ssure|remind|bear|follow|stick|do\s(?:that|so|it)|use\sthat|take|add\sit\sto\smy)\b
              | (?:will\sdo|thanks|thank\syou|noted|got\sit|understood|acknowledged|makes\ssense|good\sto\sknow|sounds\sgood|fair\senough|continuing|duly\snoted)\b
              | (?:alles\sklar|verstanden|notiert|danke|geht\sklar|merke\sich\smir|ist\snotiert|mache\sich|wird\sgemacht)\b
              | (?:de\sacuerdo|entendido|anotado|gracias|tomo\snota|lo\srecordaré|d'accord|compris|c'est\snoté|capito|entendi|anotei)\b
              | понял|хорошо|了解|好的|明白|收到|わかりました|承知|알겠습니다 )",
        )
        .expect("a fixed pattern")
    });
    let answer = answer.trim();
    let promises = |sentence: &str| {
        let lower = sentence.trim().to_lowercase().replace('’', "'");
        exclaims(&lower) && lower.split_whitespace().count() <= MOST_WORDS
            || PROMISES.is_match(&lower) && !claims_result(&lower)
    };
    let mut parts = answer.split_inclusive(['.', '!', '。', '！']).map(str::trim).filter(|part| !part.is_empty());
    answer.chars().count() <= LONGEST && parts.all(promises)
}

/// Whether an answer promises work.
pub(super) fn promises_work(answer: &str) -> bool {
    static WORK: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"\b(?:will do|on it|i'll do|i will do|i'll take care|i'll make|wird gemacht|mache ich|lo haré|je m'en occupe)\b",
        )
        .expect("a fixed pattern")
    });
    WORK.is_match(&answer.to_lowercase().replace('’', "'"))
}
