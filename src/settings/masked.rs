//! Secrets in settings, masked: in everything that is told of settings, and in recordings. A key may stand in the values of
//! headers, in an address and in the arguments of a command.

use super::Settings;
use crate::{
    provider::{address::without_credentials, http::is_address},
    redact::secret::MASK,
    text::spelling,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A value that may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A text that is one as a whole.
    Whole,
    /// An address of a server with more in it than may be shown.
    Address,
}

/// Replaces the secrets of settings, or of a patch of them, which may be malformed. `masked` gives the text in the place of a
/// secret.
pub fn mask(settings: &mut Value, masked: &dyn Fn(Part, &str) -> String) {
    match settings {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| match name.to_ascii_lowercase().as_str() {
            "headers" | "header" | "store" => texts(value, &|text| masked(Part::Whole, text)),
            "apikeycommand" | "storepasswordcommand" => match value {
                // The program is none.
                Value::Array(words) => {
                    words.iter_mut().skip(1).for_each(|word| texts(word, &|text| masked(Part::Whole, text)))
                }
                other => texts(other, &|text| masked(Part::Whole, text)),
            },
            "baseurl" | "remoteendpoint" => texts(value, &|text| match is_address(text) {
                Ok(()) if without_credentials(text) == text => text.to_owned(),
                Ok(()) => masked(Part::Address, text),
                Err(_) => masked(Part::Whole, text),
            }),
            "apikeyenv" => {}
            // A patch that is a text may be one of JSON.
            "settings" | "patch" if value.is_string() => texts(value, &|text| masked(Part::Whole, text)),
            name if is_near_a_secret(name) => texts(value, &|text| masked(Part::Whole, text)),
            _ => mask(value, masked),
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, masked)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a key is a misspelt or a dotted name of a setting with a secret, or names a credential.
fn is_near_a_secret(name: &str) -> bool {
    const SECRET: [&str; 4] = ["headers", "apikeycommand", "baseurl", "remoteendpoint"];
    const PARTS: [&str; 3] = ["apikey", "authorization", "password"];
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    letters.ends_with("key")
        || SECRET.iter().chain(&PARTS).any(|part| letters.contains(part))
        || spelling::meant(&letters, SECRET.into_iter()).is_some()
}

/// Replaces each text in a value.
fn texts(value: &mut Value, replacement: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = replacement(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, replacement)),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| texts(value, replacement)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the secrets of settings by a mask, and addresses by those without credentials.
pub fn hide(settings: &mut Value) {
    mask(settings, &|part, text| match part {
        Part::Whole => MASK.to_owned(),
        Part::Address => without_credentials(text),
    });
}

/// Settings as they are told.
#[must_use]
pub fn told(settings: &Settings) -> Value {
    let mut value = serde_json::to_value(settings).unwrap_or_default();
    hide(&mut value);
    value
}

/// Serializes settings as they are told.
///
/// # Errors
/// When the writer has one.
pub fn serialize<S: Serializer>(settings: &Settings, writer: S) -> Result<S::Ok, S::Error> {
    told(settings).serialize(writer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_malformed_patch_tells_no_secret() {
        for mut patch in [
            json!({"models": {"headers": {"x": ["hush"]}}}),
            json!({"models": [{"headers": "hush", "apiKeyCommand": "echo hush"}]}),
            json!({"models": [{"headers": {"x": {"y": "hush"}}, "apiKeyCommand": ["echo", ["hush"]]}]}),
            json!({"models": [{"baseUrl": "hush", "Headers": ["hush"]}], "compaction": {"remoteEndpoint": ["hush"]}}),
            json!([[{"baseUrl": "http://me:hush@host"}]]),
            json!({"models": [{"apiKeyComand": ["echo", "hush"], "api_key_command": "hush", "heders": {"x": "hush"}}]}),
            json!({"models.0.headers": {"x": "hush"}, "models.0.apiKeyCommand": ["echo", "hush"]}),
            json!({"models": [{"extraHeaders": {"x": "hush"}, "baseURL ": "http://host?key=hush", "key": "hush"}]}),
            json!({"store": "postgres://me:hush@host/db", "storePasswordCommand": ["echo", "hush"]}),
            json!({"patch": "{\"models\": \"hush\"}", "Authorization": "Bearer hush"}),
        ] {
            mask(&mut patch, &|_, _| "masked".to_owned());
            let text = patch.to_string();
            assert!(!text.contains("hush") && text.contains("masked"), "{text}");
        }
    }

    #[test]
    fn other_values_stay() {
        let settings = json!({"models": [{"provider": "a", "id": "b", "baseUrl": "http://127.0.0.1:1/v1", "apiKeyEnv": "KEY",
            "apiKeyCommand": ["pass"]}], "compaction": {"remoteEndpoint": null, "models": ["a/b"]}});
        let mut same = settings.clone();
        mask(&mut same, &|_, _| "masked".to_owned());
        assert_eq!(same, settings);
    }
}
