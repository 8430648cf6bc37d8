//! The wire: every method, every event and every error, each said once. Dispatch, `rpc.discover` and the files under
//! `protocol/` come from here.

pub mod codes;
pub mod errors;
pub mod events;
pub mod notifications;
pub mod requests;
pub mod schema;
pub mod transcripts;
pub mod types;
pub mod typescript;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use types::*;

/// The protocol's version.
pub const VERSION: u32 = 1;

/// A method: its name and what goes in and out.
pub trait Method {
    /// On the wire.
    const NAME: &'static str;
    /// Its params.
    type Params: DeserializeOwned + JsonSchema + 'static;
    /// Its result.
    type Answer: Serialize + JsonSchema;
}

/// A method as documents describe it.
pub struct MethodDoc {
    /// On the wire.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Never answered.
    pub notification: bool,
    /// The schema of its params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its result.
    pub answer: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $kind:ident $method:ident = $name:literal: $params:ty => $answer:ty;)+) => {
        $(
            $(#[doc = $doc])+
            pub struct $method;
            impl Method for $method {
                const NAME: &'static str = $name;
                type Params = $params;
                type Answer = $answer;
            }
        )+

        /// Every method, in the order of the contract.
        #[must_use]
        pub fn methods() -> Vec<MethodDoc> {
            vec![$(MethodDoc {
                name: $name,
                doc: concat!($($doc),+),
                notification: methods!(@ $kind),
                params: SchemaGenerator::subschema_for::<$params>,
                answer: SchemaGenerator::subschema_for::<$answer>,
            }),+]
        }
    };
    (@ request) => { false };
    (@ notification) => { true };
}

methods! {
    /// Begins a connection. Nothing else is answered before it.
    request Initialize = "initialize": InitializeParams => InitializeAnswer;
    /// Accepted after `initialize`, and not required.
    notification Initialized = "initialized": Nothing => ();
    /// Ends the work: running operations are cancelled with their end events. `exit` follows.
    request Shutdown = "shutdown": Nothing => ();
    /// Ends the process.
    notification Exit = "exit": Nothing => ();
    /// Answers at once, whatever runs.
    request Ping = "ping": Nothing => Empty;
    /// This document.
    request Discover = "rpc.discover": Nothing => AnyJson;
    /// Makes a session.
    request SessionNew = "session/new": NewParams => SessionAnswer;
    /// Opens a session where it lies: pi's files of every version, and oh-my-pi's.
    request SessionLoad = "session/load": LoadParams => LoadAnswer;
    /// The sessions there are, newest first, without opening any.
    request SessionList = "session/list": ListParams => ListAnswer;
    /// Closes a session. What runs in it is cancelled with its end event.
    request SessionClose = "session/close": SessionParams => ();
    /// Deletes a session with its file. What runs in it is cancelled with its end event.
    request SessionDelete = "session/delete": SessionParams => ();
    /// A session, its queue and what runs in it.
    request SessionStatus = "session/status": SessionParams => StatusAnswer;
    /// Reports what happened in an agent loop of the client's own. On disk when it is answered.
    request SessionAppend = "session/append": AppendParams => AppendAnswer;
    /// Exactly what a model may be sent now.
    request SessionContext = "session/context": ContextParams => ContextAnswer;
    /// The entries of a session, page by page. An entry id is a cursor that lasts.
    request SessionEntries = "session/entries": EntriesParams => EntriesAnswer;
    /// One entry as it was written, whatever was compacted or pruned since.
    request SessionEntry = "session/entry": EntryParams => EntryAnswer;
    /// Finds entries by a text they have, over the whole tree, compacted history too. Newest first.
    request SessionSearch = "session/search": SearchParams => SearchAnswer;
    /// Every entry of a session as a tree, page by page.
    request SessionTree = "session/tree": TreeParams => TreeAnswer;
    /// How full the context is, and why it is or is not compacted now.
    request SessionUsage = "session/usage": SessionParams => UsageAnswer;
    /// Stops what runs. Answered at once, never queued behind it.
    request SessionCancel = "session/cancel": CancelParams => CancelAnswer;
    /// Condenses the older part of the context. With `dryRun` it only says what it would do.
    request SessionCompact = "session/compact": CompactParams => CompactAnswer;
    /// Takes back the compaction in force. The context is again what it would be without it, what came later included.
    request SessionUndoCompaction = "session/undo_compaction": SessionParams => UndoAnswer;
    /// Cuts old tool results in the context. The entries stay what they are.
    request SessionPrune = "session/prune": PruneParams => PruneAnswer;
    /// Keeps an entry, or a text, word for word through every compaction.
    request SessionPin = "session/pin": PinParams => EntryIdAnswer;
    /// Takes a pin away.
    request SessionUnpin = "session/unpin": PinParams => EntryIdAnswer;
    /// Gives an entry a name, or takes it away.
    request SessionLabel = "session/label": LabelParams => EntryIdAnswer;
    /// Changes what is stored with the session: model, system prompt, tools, title.
    request SessionConfigure = "session/configure": ConfigureParams => ConfigureAnswer;
    /// Takes out what waits to be sent to the model.
    request SessionClearQueue = "session/clear_queue": SessionParams => Queue;
    /// Writes the session to a file for somewhere else.
    request SessionExport = "session/export": ExportParams => ExportAnswer;
    /// Wants a session's events from here on, and those that were missed. Opening a session does this by itself.
    request SessionSubscribe = "session/subscribe": SubscribeParams => SubscribeAnswer;
    /// Wants no more events of a session. They are kept all the same, for a later `session/subscribe`.
    request SessionUnsubscribe = "session/unsubscribe": SessionParams => ();
    /// Which models there are and what is known of each, with who said so.
    request ModelsList = "models/list": ModelsListParams => ModelsListAnswer;
    /// The settings in force, each with its source.
    request SettingsGet = "settings/get": SettingsGetParams => crate::settings::Sourced;
    /// Changes settings by a patch in which null takes a value out. Checked before anything is written.
    request SettingsSet = "settings/set": SettingsSetParams => crate::settings::Sourced;
    /// Takes a request back, in the words of LSP.
    notification CancelLsp = "$/cancelRequest": CancelLspParams => ();
    /// Takes a request back, in the words of ACP.
    notification CancelAcp = "$/cancel_request": CancelAcpParams => ();
}
