//! Params of another method, which are refused by name.

use serde::{Deserialize, Deserializer, de};

/// The settings of a session in the params of another method than that which changes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetElsewhere;

impl<'de> Deserialize<'de> for SetElsewhere {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        match Option::<de::IgnoredAny>::deserialize(reader)? {
            None => Ok(Self),
            Some(_) => Err(de::Error::custom("settings/set {scope: \"session\", sessionId, patch} changes them")),
        }
    }
}
