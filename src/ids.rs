//! The identifiers of the system, one type each, so that none is mistaken for another.

pub mod random;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
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
    /// A new id: a version 7 UUID, so that ids sort by their time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "new ids are random")]
    pub fn fresh() -> Self {
        uuid::Uuid::now_v7().to_string().into()
    }

    /// The id of a new session in the same form, of a time in milliseconds since 1970 and of these bits.
    #[must_use]
    pub fn of_bits(milliseconds: u64, bits: u64) -> Self {
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
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Name(String),
            Parts { provider: String, id: String },
        }
        let wrong = || serde::de::Error::custom("expected \"provider/id\" or {\"provider\": …, \"id\": …}");
        match Wire::deserialize(reader).map_err(|_| wrong())? {
            Wire::Name(name) => Self::parse(&name).ok_or_else(wrong),
            Wire::Parts { provider, id } => Ok(Self { provider, id }),
        }
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
