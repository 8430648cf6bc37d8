//! Breaks JSON texts, the same way for the same seed. `ABRIDGED_MUTATIONS=1000000` for long versions, `ABRIDGED_SEED` for
//! other runs.

use crate::wire::{Dice, cases, number};
use serde_json::{Value, json};

/// How many are made.
pub fn mutations() -> usize {
    cases("ABRIDGED_MUTATIONS", 10_000, 20_000) as usize
}

pub fn seed() -> u64 {
    number("ABRIDGED_SEED", 1)
}

/// Breaks a text here and there.
pub fn mutate(dice: &mut Dice, text: &mut Vec<u8>, others: &[String]) {
    const TOKENS: [&str; 28] = [
        "null",
        "true",
        "-1",
        "1e999",
        "18446744073709551616",
        "0.1",
        "\"\"",
        "{}",
        "[]",
        "[[",
        "{\"",
        "\\u0000",
        "\\ud800",
        "\\",
        "\"",
        "\n",
        "\r\n",
        ",",
        ":",
        "}",
        "]",
        "\u{2028}",
        "\u{feff}",
        "\0",
        "é",
        "id",
        "jsonrpc",
        "\"id\":7,",
    ];
    for _ in 0..dice.below(4) {
        let end = text.len() + 1;
        let (a, b) = (dice.below(end), dice.below(end));
        // Mostly short pieces: whoever swaps half of a frame learns only that it is no JSON.
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 1 + dice.below(24)));
        match dice.below(9) {
            0 if from < text.len() => text[from] ^= 1 << dice.below(8),
            1 if from < text.len() => text[from] = dice.roll() as u8,
            2 => drop(text.drain(from..to.min(text.len()))),
            3 => {
                let piece = text[from..to.min(text.len())].to_vec();
                text.splice(a..a, piece);
            }
            4 => text.truncate(text.len() - dice.below(text.len().min(8) + 1)),
            5 => {
                let other = dice.pick(others).as_bytes();
                let at = dice.below(other.len());
                let piece = other[at..other.len().min(at + 1 + dice.below(40))].to_vec();
                text.splice(from..to.min(text.len()), piece);
            }
            6 => {
                let depth = 1 + dice.below(300);
                text.splice(a..a, std::iter::repeat_n(b'[', depth));
            }
            _ => {
                let token = dice.pick(&TOKENS).as_bytes().to_vec();
                text.splice(from..to.min(text.len()), token);
            }
        }
    }
}

/// Changes the values of a JSON text and leaves it one.
pub fn change(dice: &mut Dice, value: &mut Value) {
    let children = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if children == 0 || dice.below(4) == 0 {
        *value = match dice.below(9) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(1e300),
            4 => json!(u64::MAX),
            5 => json!("x".repeat(dice.below(2_000))),
            6 => json!({"": value.clone()}),
            7 => json!([value.clone()]),
            _ => json!([]),
        };
        return;
    }
    let at = dice.below(children);
    match value {
        Value::Array(items) if dice.below(5) == 0 => drop(items.remove(at)),
        Value::Array(items) => change(dice, &mut items[at]),
        Value::Object(fields) => {
            let key = fields.keys().nth(at).expect("it is there").clone();
            if dice.below(5) == 0 {
                fields.remove(&key);
            } else {
                change(dice, &mut fields[&key]);
            }
        }
        _ => {}
    }
}

/// A text and what becomes of it.
pub fn mutant(dice: &mut Dice, of: &[String]) -> Vec<u8> {
    let text = dice.pick(of);
    if dice.below(3) > 0 {
        let mut bytes = text.clone().into_bytes();
        mutate(dice, &mut bytes, of);
        return bytes;
    }
    let mut value: Value = serde_json::from_str(text).expect("what is mutated was right");
    change(dice, &mut value);
    value.to_string().into_bytes()
}
