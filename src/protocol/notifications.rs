//! What the daemon sends unasked, each said once.

use super::events::{Envelope, Severity};
use crate::{ids::SessionId, settings::Sourced};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// A notification to the client: its name and what comes with it.
pub trait Notification {
    /// On the wire.
    const NAME: &'static str;
    /// Its params.
    type Params: Serialize + JsonSchema;
}

/// A notification as documents describe it.
pub struct NotificationDoc {
    /// On the wire.
    pub name: &'static str,
    /// What it says.
    pub doc: &'static str,
    /// The schema of its params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! notifications {
    ($($(#[doc = $doc:literal])+ $notification:ident = $name:literal: $params:ty;)+) => {
        $(
            $(#[doc = $doc])+
            pub struct $notification;
            impl Notification for $notification {
                const NAME: &'static str = $name;
                type Params = $params;
            }
        )+

        /// Every notification to the client, in the order of the contract.
        #[must_use]
        pub fn notifications() -> Vec<NotificationDoc> {
            vec![$(NotificationDoc {
                name: $name,
                doc: concat!($($doc),+),
                params: SchemaGenerator::subschema_for::<$params>,
            }),+]
        }
    };
}

notifications! {
    /// An event of a session.
    SessionEvent = "session/event": Envelope;
    /// Events of a session were dropped, because the client read too slowly: look at it afresh.
    ResyncRequired = "session/resync_required": ResyncParams;
    /// There are other sessions than before: `session/list` says which.
    SessionsChanged = "sessions_changed": SessionsChangedParams;
    /// The settings that hold where no project and no session says otherwise are different now.
    SettingsChanged = "settings_changed": Sourced;
    /// Something a person may want to know, about no session in particular.
    Notice = "notice": NoticeParams;
}

/// Params of `session/resync_required`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResyncParams {
    /// Which session.
    pub session_id: SessionId,
    /// In which life of the daemon.
    pub epoch: String,
    /// The number of its newest event.
    pub last_seq: u64,
    /// How many events were dropped.
    pub dropped: u64,
}

/// Params of `sessions_changed`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionsChangedParams {
    /// The files that came, went, or were first written to by another program.
    pub paths: Vec<String>,
}

/// Params of `notice`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NoticeParams {
    /// How much it matters.
    pub severity: Severity,
    /// In a line.
    pub title: String,
    /// In more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
