//! Notifications to the client.

use super::{
    events::{Envelope, Severity},
    notices::NoticeCode,
};
use crate::{ids::SessionId, settings::Sourced};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// A notification to the client: its name and its params.
pub trait Notification {
    /// Name on the wire.
    const NAME: &'static str;
    /// Type of the params.
    type Params: Serialize + JsonSchema;
}

/// A notification in the documents.
pub struct NotificationDoc {
    /// Name on the wire.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Schema of the params.
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
    SessionEvent = "session/event": Envelope<'static>;
    /// Events of a session were dropped, because the client read too slowly. The client reads the session again.
    ResyncRequired = "session/resync_required": ResyncParams;
    /// The set of sessions has changed: `session/list` returns it.
    SessionsChanged = "sessions_changed": SessionsChangedParams;
    /// The settings outside of projects and sessions have changed.
    SettingsChanged = "settings_changed": Sourced;
    /// A message for a person that concerns no session.
    Notice = "notice": NoticeParams;
}

/// Params of `session/resync_required`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResyncParams {
    /// Session whose events were dropped.
    pub session_id: SessionId,
    /// Run of the daemon.
    pub epoch: String,
    /// Number of the session's newest event.
    pub last_seq: u64,
    /// Number of dropped events.
    pub dropped: u64,
}

/// Params of `sessions_changed`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionsChangedParams {
    /// Files that were created, deleted, or first written by another program.
    pub paths: Vec<String>,
}

/// Params of `notice`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NoticeParams {
    /// Severity.
    pub severity: Severity,
    /// Its subject, for programs.
    pub code: NoticeCode,
    /// Message in one line.
    pub title: String,
    /// Further details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
