//! Values that are used and never told.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Text shown in the place of a secret.
pub const MASK: &str = "***";

/// A secret text: as JSON and in a log it is `***`.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text, for who needs it to ask a model.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        // Settings that are read, changed and written back would otherwise put the mask in the place of the value.
        match String::deserialize(reader).map_err(without_value)? {
            text if text == MASK => {
                Err(serde::de::Error::custom("*** stands for a value that is not told; expected the value itself"))
            }
            text => Ok(Self(text)),
        }
    }
}

/// An error about a value at the place of a secret, without the value: serde repeats a value of another type.
pub fn without_value<E: serde::de::Error>(error: E) -> E {
    let text = error.to_string();
    match text.rsplit_once("expected ") {
        Some((found, expected)) if found.starts_with("invalid ") => E::custom(format!("expected {expected}")),
        _ => error,
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_used_and_not_told() {
        let secret: Secret = serde_json::from_str("\"hush\"").expect("a text");
        assert_eq!(secret.reveal(), "hush");
        assert_eq!(serde_json::to_string(&secret).expect("JSON"), "\"***\"");
        assert_eq!(format!("{secret:?}"), "***");
        assert!(serde_json::from_str::<Secret>("\"***\"").is_err(), "a mask is no value");
        let error = serde_json::from_value::<Secret>(serde_json::json!(12_345_678)).expect_err("no text");
        assert_eq!(error.to_string(), "expected a string");
    }
}
