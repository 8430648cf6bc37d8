//! The identifiers of the system, one type each, so that none is mistaken for another.

pub mod random;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};
use std::{
    borrow::{Borrow, Cow},
    fmt,
    sync::Arc,
};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        #[schemars(transparent)]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// The text of the identifier.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), &self.0)
            }
        }
    };
}

id!(
    /// A session: the `id` of its file's header line.
    SessionId
);
id!(
    /// One line of a session file after the header.
    EntryId
);
id!(
    /// One long operation (a compaction, later a handoff, a branch summary) from its start event to its end event.
    OperationId
);
id!(
    /// A tool call, as the model named it. Not unique within a session: some models number their calls from zero each time.
    CallId
);

impl SessionId {
    /// A new id at this time.
    #[must_use]
    pub fn fresh(now: Timestamp) -> Self {
        Self::of_bits(now, random_u64())
    }

    /// The id of a new session: a version 7 UUID of this time and of these bits, so that ids sort by their time. A time before
    /// 1970 counts as its beginning.
    #[must_use]
    pub fn of_bits(now: Timestamp, bits: u64) -> Self {
        let milliseconds = u64::try_from(now.as_millisecond()).unwrap_or_default();
        let mut random = [0; 10];
        random[2..].copy_from_slice(&bits.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid().to_string().into()
    }
}

impl EntryId {
    /// The id of a new entry: these bits as 16 hex digits.
    #[must_use]
    pub fn of_bits(bits: u64) -> Self {
        format!("{bits:016x}").into()
    }

    /// Whether it has the form of [`EntryId::of_bits`]. The ids of pi and oh-my-pi have 8 digits, or are UUIDs.
    #[must_use]
    pub fn is_of_bits(&self) -> bool {
        self.0.len() == 16 && self.0.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    }
}

impl OperationId {
    /// The id of a new operation: `op-` and these bits as 16 hex digits.
    #[must_use]
    pub fn of_bits(bits: u64) -> Self {
        format!("op-{bits:016x}").into()
    }

    /// A new id, unique within the life of the daemon and beyond.
    #[must_use]
    pub fn fresh() -> Self {
        Self::of_bits(random_u64())
    }
}

/// 64 random bits. Both halves of a version 4 UUID carry fixed bits in different places; folded, none is fixed.
#[expect(clippy::disallowed_methods, reason = "new ids are random")]
fn random_u64() -> u64 {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    high ^ low.rotate_left(17)
}

/// A provider's model. On the wire `{provider, id}`; params may say `"provider/id"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ModelRef {
    /// The provider's name.
    pub provider: String,
    /// The model's name at that provider; may contain slashes.
    pub id: String,
}

impl ModelRef {
    /// Reads `"provider/id"`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, id) = text.split_once('/')?;
        (!provider.is_empty() && !id.is_empty()).then(|| Self { provider: provider.to_owned(), id: id.to_owned() })
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.id)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(NameOrParts)
    }
}

struct NameOrParts;

impl<'de> Visitor<'de> for NameOrParts {
    type Value = ModelRef;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"provider/id\" or {\"provider\": …, \"id\": …}")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<ModelRef, E> {
        ModelRef::parse(name).ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, parts: A) -> Result<ModelRef, A::Error> {
        #[derive(Deserialize)]
        struct Parts {
            provider: String,
            id: String,
        }
        let Parts { provider, id } = Parts::deserialize(MapAccessDeserializer::new(parts))?;
        Ok(ModelRef { provider, id })
    }
}

impl JsonSchema for ModelRef {
    fn schema_name() -> Cow<'static, str> {
        "ModelRef".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parts = json_schema!({
            "description": "A provider's model.",
            "type": "object",
            "properties": { "provider": { "type": "string" }, "id": { "type": "string" } },
            "required": ["provider", "id"],
        });
        if generator.contract().is_serialize() {
            return parts;
        }
        json_schema!({
            "description": "A provider's model; also as `\"provider/id\"`.",
            "anyOf": [parts, { "type": "string", "pattern": "^[^/]+/.+$" }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_session_sorts_by_its_time_whatever_the_clock_says() {
        let at = |time: &str| SessionId::of_bits(time.parse().expect("a time"), 7);
        let ids =
            ["1970-01-01T00:00:00Z", "2001-09-09T01:46:40Z", "2026-01-01T00:00:00Z", "9999-12-30T00:00:00Z"].map(at);
        assert_eq!(ids[1].as_str(), "00e8d4a5-1000-7000-8000-000000000007");
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        assert_eq!(
            [at("1969-12-31T23:59:59Z"), SessionId::of_bits(Timestamp::MIN, 7)],
            [ids[0].clone(), ids[0].clone()]
        );
        assert_ne!(SessionId::fresh(Timestamp::MIN), SessionId::fresh(Timestamp::MIN));
    }
}
