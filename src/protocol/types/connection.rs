//! Greeting, settings, and taking requests back.

use super::Object;
use crate::ids::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// Params of `initialize`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeParams {
    /// The version the client speaks; 1 if omitted.
    pub protocol_version: Option<u32>,
    /// Who it is.
    pub client_info: Option<ClientInfo>,
    /// The daemon ends when this process does.
    pub process_id: Option<i64>,
    /// What it can do.
    pub capabilities: Option<ClientCapabilities>,
}

/// Who a client is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    pub title: Option<String>,
}

/// What a client can do.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    /// Which hooks it answers.
    pub hooks: Option<Object>,
    /// It can execute tools.
    pub tools: Option<Object>,
    /// It can run model calls.
    pub llm: Option<Object>,
    /// Which events it wants.
    pub events: Option<EventCapabilities>,
}

/// Which events a client wants.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCapabilities {
    /// Types it does not want.
    pub opt_out: Vec<String>,
}

/// The result of `initialize`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeAnswer {
    /// The version both speak.
    pub protocol_version: u32,
    /// Who we are.
    pub server_info: ServerInfo,
    /// What we can do.
    pub capabilities: ServerCapabilities,
    /// Our limits.
    pub limits: Limits,
    /// This life of the daemon: event numbers are unique within it.
    pub epoch: String,
    /// Where sessions live.
    pub data_dir: String,
}

/// Who we are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServerInfo {
    /// `abridged`.
    pub name: &'static str,
    /// Of the program.
    pub version: &'static str,
}

/// What we can do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// The methods that are answered.
    pub methods: Vec<&'static str>,
    /// The formats of `session/context`.
    pub context_formats: Vec<&'static str>,
    /// How summaries can be made.
    pub compaction_methods: Vec<&'static str>,
}

/// Our limits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// A larger frame is skipped, in bytes.
    pub max_inbound_frame_bytes: usize,
    /// Events and notifications stay under this, in bytes.
    pub soft_outbound_frame_bytes: usize,
    /// More requests at once are refused.
    pub max_in_flight_requests: usize,
    /// A batch with more members is refused whole.
    pub max_batch_requests: usize,
}

/// Params of `settings/get`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsGetParams {
    /// As they are in force for this session.
    pub session_id: Option<SessionId>,
}

/// Params of `$/cancelRequest`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CancelLspParams {
    /// The request's id.
    #[schemars(with = "Value")]
    pub id: Box<RawValue>,
}

/// Params of `$/cancel_request`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelAcpParams {
    /// The request's id.
    #[schemars(with = "Value")]
    pub request_id: Box<RawValue>,
}
