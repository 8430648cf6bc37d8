//! The client of a session, as far as decisions depend on it.

use crate::{ask::access::ModelAccess, ids::ModelRef};
use serde::{Deserialize, Serialize};

/// The client of a session.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// The model that it chose at the opening.
    pub chosen: Option<ModelRef>,
    /// The capabilities that it declared at `initialize`.
    pub capabilities: Capabilities,
}

/// The capabilities that a client declared at `initialize`, as far as its sessions decide by them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// The way in which it chooses the model of a request.
    pub model_choice: ModelChoice,
    /// Whether it goes on with the session that `session_replaced` names.
    pub follows_sessions: bool,
}

/// The way in which a client chooses the model of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChoice {
    /// It chooses the model by itself.
    #[default]
    Client,
    /// It asks the model that a context names.
    Context,
}

impl Capabilities {
    /// The capabilities of the client of a daemon.
    #[must_use]
    pub fn of(access: &ModelAccess) -> Self {
        let model_choice = if access.client_switches_models() { ModelChoice::Context } else { ModelChoice::Client };
        Self { model_choice, follows_sessions: access.client_follows_sessions() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_recording_without_a_capability_is_of_a_client_that_declared_none() {
        let read = |value| serde_json::from_value::<Capabilities>(value).expect("capabilities");
        assert_eq!(read(json!({})), Capabilities::default());
        let switches = Capabilities { model_choice: ModelChoice::Context, follows_sessions: false };
        assert_eq!(read(json!({"modelChoice": "context"})), switches);
        let follows = Capabilities { follows_sessions: true, ..switches };
        assert_eq!(read(serde_json::to_value(follows).expect("JSON")), follows);
    }
}
