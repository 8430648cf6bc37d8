//! Errors of JSON readers in the words of JSON, with the path of the value. serde speaks of Rust's types.

use super::spelling;
use serde::de::{self, DeserializeOwned};
use serde_json::Value;
use std::fmt;

/// Reads a JSON text.
///
/// # Errors
/// The path and the problem of the first value that is not as expected.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| sentence(&error))?;
    reader.end().map_err(|error| plain(&error))?;
    Ok(read)
}

/// Reads a JSON value.
///
/// # Errors
/// The path and the problem of the first value that is not as expected.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| sentence(&error))
}

fn sentence(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let (path, problem) = place_and_problem(error);
    if path.is_empty() { problem } else { format!("{path}: {problem}") }
}

/// Reads a member of an object whose type depends on another member. serde keeps no path of such a member.
///
/// # Errors
/// With the path from the object on, when the member is missing or not as expected.
pub fn member<T: DeserializeOwned, E: de::Error>(name: &str, value: Option<Value>) -> Result<T, E> {
    let wrong = |path: &str, what: &str| E::custom(Placed { path, what });
    let value = value.ok_or_else(|| wrong(name, &format!("missing field `{name}`")))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, problem) = place_and_problem(&error);
        let path = if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") };
        wrong(&path, &problem)
    })
}

/// The same for a member that may be missing or null.
///
/// # Errors
/// With the path from the object on, when the member is not as expected.
pub fn optional_member<T: DeserializeOwned, E: de::Error>(name: &str, value: Option<Value>) -> Result<Option<T>, E> {
    value.map_or(Ok(None), |value| member(name, Some(value)))
}

/// An error of a value below the one that is read. serde knows the path of the latter alone, so the text of the error has the rest.
pub struct Placed<'a> {
    /// The path from the value on.
    pub path: &'a str,
    /// The problem and the expected value.
    pub what: &'a str,
}

/// Stands around the path in the text of an error. It is in no path.
const PLACE: char = '\u{1f}';

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PLACE}{}{PLACE}{}", self.path, self.what)
    }
}

/// The path and the text of a JSON error. serde names a missing field in its text and not in its path.
#[must_use]
pub fn place_and_problem(error: &serde_path_to_error::Error<serde_json::Error>) -> (String, String) {
    let problem = without_position(&error.inner().to_string());
    let path = match error.path().to_string().as_str() {
        "." => String::new(),
        path => path.to_owned(),
    };
    let below = |below: &str| match (path.as_str(), below) {
        ("", path) | (path, "") => path.to_owned(),
        (path, below) => format!("{path}.{below}"),
    };
    if let Some((place, what)) = problem.strip_prefix(PLACE).and_then(|rest| rest.split_once(PLACE)) {
        return (below(place), what.to_owned());
    }
    let missing = problem.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    (below(missing.unwrap_or_default()), in_plain_words(problem))
}

/// The text of a JSON error, without Rust's types and positions.
#[must_use]
pub fn plain(error: &serde_json::Error) -> String {
    in_plain_words(without_position(&error.to_string()))
}

/// The text of an error of serde in the words of JSON. serde speaks of Rust's types.
#[must_use]
pub fn in_plain_words(problem: String) -> String {
    let found = [
        ("invalid type: map", "invalid type: object"),
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: floating point `", "invalid type: number `"),
        ("unknown variant `", "unknown value `"),
    ];
    let problem = with_the_meant_one(problem);
    let problem = match found.iter().find(|(rust, _)| problem.starts_with(rust)) {
        Some((rust, json)) => format!("{json}{}", &problem[rust.len()..]),
        None => problem,
    };
    let Some((found, expected)) = problem.split_once("expected ") else { return problem };
    let plain = match expected {
        "u64" | "usize" | "u32" | "u16" | "u8" | "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        "string or map" => "a text",
        "unit" => "null",
        expected if expected.starts_with("struct ") || expected.starts_with("internally tagged enum") => "an object",
        _ => return problem,
    };
    format!("{found}expected {plain}")
}

/// An error text of serde without its position: " at line 1 column 7" does not help a client that sent one line.
#[must_use]
pub fn without_position(text: &str) -> String {
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

/// The longest unknown value that is compared with the known ones, in bytes.
const LONGEST_COMPARED: usize = 64;

/// An error about an unknown value, with the known one that it looks like.
fn with_the_meant_one(problem: String) -> String {
    let Some((value, known)) =
        problem.strip_prefix("unknown variant `").and_then(|rest| rest.rsplit_once("`, expected "))
    else {
        return problem;
    };
    if value.len() > LONGEST_COMPARED {
        return problem;
    }
    let known = known.split('`').skip(1).step_by(2);
    match spelling::meant_value(value, known) {
        Some(meant) => format!("{problem}; did you mean `{meant}`?"),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Level {
        High,
        OpenaiChat,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "it is only read")]
        level: Level,
    }

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "it is only read")]
        inner: Vec<Inner>,
    }

    #[test]
    fn an_error_has_its_path_and_the_words_of_json() {
        for (json, expected) in [
            (r#"{"inner": 7}"#, "inner: invalid type: integer `7`, expected a list"),
            (r#"{"inner": [{}]}"#, "inner[0].level: missing field `level`"),
            (
                r#"{"inner": [{"level": "hgh"}]}"#,
                "inner[0].level: unknown value `hgh`, expected `high` or `openai_chat`; did you mean `high`?",
            ),
            (
                r#"{"inner": [{"level": "openai"}]}"#,
                "inner[0].level: unknown value `openai`, expected `high` or `openai_chat`; did you mean `openai_chat`?",
            ),
            (r#"{"inner": [{"level": "x"}]}"#, "inner[0].level: unknown value `x`, expected `high` or `openai_chat`"),
            ("7", "invalid type: integer `7`, expected an object"),
        ] {
            assert_eq!(read::<Outer>(json).expect_err("wrong"), expected, "{json}");
        }
    }
}
