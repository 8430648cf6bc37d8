//! A window that a provider taught, and the server that it belongs to.

use crate::{
    conversation::entry,
    ids::{ModelRef, SessionId},
    provider::address::without_credentials,
    settings::Settings,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// A model at one address. At another address it may have another window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The model.
    pub model: ModelRef,
    /// The address.
    pub address: Address,
}

impl Server {
    /// The server that these settings name for a model.
    #[must_use]
    pub fn of(settings: &Settings, model: &ModelRef) -> Self {
        let url = settings.model(model).and_then(|set| set.base_url.as_deref());
        let address = url.map_or(Address::Usual, |url| Address::At(without_credentials(url)));
        Self { model: model.clone(), address }
    }
}

/// The address of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Address {
    /// A file of an older version does not say it.
    #[default]
    Unknown,
    /// The settings name none: the usual address of the provider.
    Usual,
    /// The `baseUrl` of the settings, without credentials.
    At(String),
}

impl Address {
    /// Whether both may be the same address.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        self == other || self.is_unknown() || other.is_unknown()
    }

    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// The URL, where one is known.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::At(url) => Some(url),
            Self::Unknown | Self::Usual => None,
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        self.url().serialize(writer)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(reader)?.map_or(Self::Usual, Self::At))
    }
}

/// The evidence for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowOrigin {
    /// A refusal that states the limit.
    Refusal,
    /// A server read less of its prompts than it was sent, without an error.
    Saturation,
}

/// A window that a provider taught.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LearnedWindow {
    /// The model.
    pub model: ModelRef,
    /// The `baseUrl` of its server in the settings, without credentials; null where they name none. Absent where an older
    /// version learned it: then it counts for every server of the model.
    #[serde(default, skip_serializing_if = "Address::is_unknown")]
    #[schemars(with = "Option<String>")]
    pub base_url: Address,
    /// Size of the window, in tokens.
    pub context_window: u64,
    /// The evidence for it.
    pub origin: WindowOrigin,
    /// Time of the last evidence; null where an older version learned it.
    #[serde(default, deserialize_with = "time")]
    pub learned_at: Option<String>,
    /// Number of times that it was taught. From the second one on it counts over a larger window that a host or a setting
    /// names, in every session.
    #[serde(default = "once")]
    pub refusals: u32,
    /// The session in which it was taught last. It counts over a named window there from the beginning.
    #[serde(default)]
    pub session: Option<SessionId>,
}

fn once() -> u32 {
    1
}

/// A time that is none is left out: no decision depends on it.
fn time<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = serde_json::from_value(serde_json::Value::deserialize(reader)?).unwrap_or_default();
    Ok(text.filter(|text| text.parse::<Timestamp>().is_ok()))
}

impl LearnedWindow {
    /// A window that a server showed now, for the first time, in this session.
    #[must_use]
    pub fn new(server: Server, context_window: u64, origin: WindowOrigin, now: Timestamp, session: &SessionId) -> Self {
        Self {
            session: Some(session.clone()),
            learned_at: Some(entry::timestamp(now)),
            ..Self::undated(server, context_window, origin)
        }
    }

    /// Whether both are the same window of the same server.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.context_window == other.context_window && self.base_url.may_be(&other.base_url)
    }

    /// A window of which neither time nor session are known.
    #[must_use]
    pub fn undated(server: Server, context_window: u64, origin: WindowOrigin) -> Self {
        let Server { model, address } = server;
        Self { model, base_url: address, context_window, origin, learned_at: None, refusals: once(), session: None }
    }

    /// A window as the files of older versions have it: a name and a number of tokens.
    #[must_use]
    pub fn before_2(name: &str, tokens: u64) -> Option<Self> {
        let server = Server { model: ModelRef::parse(name)?, address: Address::Unknown };
        Some(Self::undated(server, tokens, WindowOrigin::Refusal))
    }
}

/// The largest request of a model that a server took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The model.
    pub model: ModelRef,
    /// The `baseUrl` of its server, as in a learned window.
    #[serde(default, skip_serializing_if = "Address::is_unknown")]
    pub base_url: Address,
    /// Size of the prompt, in tokens.
    pub tokens: u64,
}

/// The windows in the recording of a session.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Recorded {
    /// With the number of times that a model was forgotten, and the sizes that were accepted.
    Rows {
        windows: Vec<LearnedWindow>,
        forgotten: BTreeMap<String, u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted: Vec<Accepted>,
    },
    /// A recording of an older version.
    Tokens(BTreeMap<String, u64>),
}
