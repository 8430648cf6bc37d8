//! Params and results of the connection: `initialize`, `settings/get`, and the cancellation of requests.

use super::{ClaimedHooks, HookRegistration, Object};
use crate::ids::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// Params of `initialize`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeParams {
    /// Protocol version of the client. Default: 1.
    pub protocol_version: Option<u32>,
    /// Name and version of the client.
    pub client_info: Option<ClientInfo>,
    /// Process of the client. The daemon ends when this process has ended.
    pub process_id: Option<i64>,
    /// Capabilities of the client.
    pub capabilities: Option<ClientCapabilities>,
}

/// Name and version of a client.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientInfo {
    /// Name of the client.
    pub name: String,
    /// Version of the client.
    pub version: String,
    /// Name for display.
    pub title: Option<String>,
}

/// Capabilities of a client.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    /// Hooks that the client answers, as by `hooks/set` without `sessionIds`. A wrong part is left out, with a `notice`.
    #[schemars(with = "Option<HookRegistration>")]
    pub hooks: Option<ClaimedHooks>,
    /// The client executes tools.
    pub tools: Option<Object>,
    /// The client runs model requests.
    pub llm: Option<Object>,
    /// The client asks the model that a context names.
    pub model_switch: Option<Object>,
    /// The client goes on with the session that `session_replaced` names. Automatic maintenance may hand off then.
    pub session_replaced: Option<Object>,
    /// Selection of events.
    pub events: Option<EventCapabilities>,
}

/// Selection of events.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCapabilities {
    /// Event types that are not sent.
    pub opt_out: Vec<String>,
}

/// Result of `initialize`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeAnswer {
    /// Protocol version of the connection.
    pub protocol_version: u32,
    /// Name and version of the daemon.
    pub server_info: ServerInfo,
    /// Capabilities of the daemon.
    pub capabilities: ServerCapabilities,
    /// Limits of the connection.
    pub limits: Limits,
    /// Id of this run of the daemon. Event numbers are unique within it.
    pub epoch: String,
    /// Data folder, which holds the sessions.
    pub data_dir: String,
}

/// Name and version of the daemon.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServerInfo {
    /// Always `abridged`.
    pub name: &'static str,
    /// Version of the program.
    pub version: &'static str,
}

/// Capabilities of the daemon.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Methods that the daemon answers.
    pub methods: Vec<&'static str>,
    /// Formats of `session/context`.
    pub context_formats: Vec<&'static str>,
    /// Methods of a summary.
    pub compaction_methods: Vec<&'static str>,
}

/// Limits of the connection.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Largest frame that is read, in bytes. A larger frame is skipped.
    pub max_inbound_frame_bytes: usize,
    /// Size below which events and notifications stay, in bytes.
    pub soft_outbound_frame_bytes: usize,
    /// Largest number of requests in flight. Further requests are refused.
    pub max_in_flight_requests: usize,
    /// Largest number of members in a batch. A larger batch is refused whole.
    pub max_batch_requests: usize,
}

/// Params of `settings/get`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsGetParams {
    /// Session whose effective settings are returned. Default: the settings outside of sessions.
    pub session_id: Option<SessionId>,
}

/// Params of `$/cancelRequest`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CancelLspParams {
    /// Id of the request.
    #[schemars(with = "Value")]
    pub id: Box<RawValue>,
}

/// Params of `$/cancel_request`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelAcpParams {
    /// Id of the request.
    #[schemars(with = "Value")]
    pub request_id: Box<RawValue>,
}
