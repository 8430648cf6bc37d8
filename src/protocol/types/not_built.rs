//! Params that are refused by name: those of the contract that this version does not build, and those of another method.

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

/// The value of a param that this version does not build: none. A request that sets it asks for something else than it would
/// get, so it is refused: a compaction with `apply: false` would write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotBuilt;

impl<'de> Deserialize<'de> for NotBuilt {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        match Option::<de::IgnoredAny>::deserialize(reader)? {
            None => Ok(Self),
            Some(_) => Err(de::Error::custom("this version of abridged does not support it; leave it out")),
        }
    }
}
