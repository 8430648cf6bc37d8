//! The contract of the wire. Dispatch, `rpc.discover` and the files under `protocol/` are generated from its tables of
//! methods, events and errors.

pub mod codes;
pub mod errors;
pub mod events;
pub mod notices;
pub mod notifications;
pub mod requests;
pub mod schema;
mod settings_page;
pub mod transcripts;
pub mod types;
pub mod typescript;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use types::*;

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// A method: its name, params and result.
pub trait Method {
    /// Name on the wire.
    const NAME: &'static str;
    /// Type of the params.
    type Params: DeserializeOwned + JsonSchema + Send + 'static;
    /// Type of the result.
    type Answer: Serialize + JsonSchema;
}

/// A method in the documents.
pub struct MethodDoc {
    /// Name on the wire.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Whether the method is a notification, which has no response.
    pub notification: bool,
    /// Schema of the params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the result.
    pub answer: fn(&mut SchemaGenerator) -> Schema,
}

/// Hands the table of methods to a macro. A line says
/// - whether the method is a `request` or a `notification`;
/// - the kind of its handler: `daemon` is answered by the daemon (`daemon::routes::DaemonMethod`), the others by the
///   session that `sessionId` of the params names. `session` is a request that writes nothing
///   (`session::command::SessionMethod`), `edit` one that writes entries (`session::edit::EditMethod`), `command` one
///   for which the loop of a session has a variant of its own (`session::command::CommandMethod`);
/// - its type, its name on the wire, the types of its params and of its result.
macro_rules! with_methods {
    ($table:ident) => {
        $table! {
            /// Opens the connection. Every other request before it fails.
            request daemon Initialize = "initialize": InitializeParams => InitializeAnswer;
            /// Accepted after `initialize`, and not required.
            notification daemon Initialized = "initialized": Nothing => ();
            /// Cancels running operations, sends their end events, and closes all sessions. `exit` follows.
            request daemon Shutdown = "shutdown": Nothing => ();
            /// Ends the process.
            notification daemon Exit = "exit": Nothing => ();
            /// Answers immediately, independent of running operations.
            request daemon Ping = "ping": Nothing => Empty;
            /// Returns this document.
            request daemon Discover = "rpc.discover": Nothing => AnyJson;
            /// Creates a session.
            request daemon SessionNew = "session/new": NewParams => SessionAnswer;
            /// Opens a session file of abridged, of any version of pi, or of oh-my-pi, in place. With `readOnly` it also opens a
            /// session of Claude Code, Codex, OpenCode or Gemini CLI where it lies.
            request daemon SessionLoad = "session/load": LoadParams => LoadAnswer;
            /// Makes a session of one of Claude Code, Codex, OpenCode or Gemini CLI, and opens it. The original stays as it is.
            request daemon SessionImport = "session/import": ImportParams => ImportAnswer;
            /// Lists the sessions, newest first, without opening them.
            request daemon SessionList = "session/list": ListParams => ListAnswer;
            /// Closes a session. Running operations are cancelled and send their end events.
            request command SessionClose = "session/close": SessionParams => ();
            /// Deletes a session with its file. Running operations are cancelled and send their end events.
            request daemon SessionDelete = "session/delete": SessionParams => ();
            /// Returns a session, its queue and its running operations.
            request session SessionStatus = "session/status": SessionParams => StatusAnswer;
            /// Appends messages of the client's own agent loop. They are on disk when the request is answered.
            request command SessionAppend = "session/append": AppendParams => AppendAnswer;
            /// Returns the context for the next model request.
            request session SessionContext = "session/context": ContextParams => ContextAnswer;
            /// Returns the entries of a session in pages. An entry id is a cursor that stays valid.
            request session SessionEntries = "session/entries": EntriesParams => EntriesAnswer;
            /// Returns one entry as it was written, also after a compaction or pruning.
            request session SessionEntry = "session/entry": EntryParams => EntryAnswer;
            /// Finds entries by their text in the whole tree, newest first.
            request session SessionSearch = "session/search": SearchParams => SearchAnswer;
            /// Returns every entry of a session as a tree, in pages.
            request session SessionTree = "session/tree": TreeParams => TreeAnswer;
            /// Returns the fullness of the context and the reason why it is compacted now or not.
            request session SessionUsage = "session/usage": SessionParams => UsageAnswer;
            /// Runs idle maintenance now, independent of its timer and of `compaction.idleEnabled`.
            request session SessionRunIdle = "session/run_idle": SessionParams => RunIdleAnswer;
            /// The user is active: restarts the idle timer and cancels running idle maintenance.
            notification command SessionActivity = "session/activity": SessionParams => ();
            /// Cancels running operations. Answered immediately.
            request daemon SessionCancel = "session/cancel": CancelParams => CancelAnswer;
            /// Replaces the older part of the context by a summary. With `dryRun` it returns the plan.
            request command SessionCompact = "session/compact": CompactParams => CompactAnswer;
            /// Fits messages of a client that keeps its own history into a window. Nothing is stored. It is cancelled with its
            /// request.
            request daemon ContextFit = "context/fit": FitParams => FitAnswer;
            /// Undoes the compaction in force. The context becomes the one without it, including later messages. A reset is
            /// undone as long as nothing follows it.
            request edit SessionUndoCompaction = "session/undo_compaction": SessionParams => UndoAnswer;
            /// Clears the context. Entries before the reset stay in the file, and pins stay in the context.
            request edit SessionReset = "session/reset": SessionParams => ResetAnswer;
            /// Adds a message of the user and runs a turn: the model is asked, and its calls go to the client as `tool/call`, until it
            /// answers without calls. While a turn or an operation runs, the message waits in the queue.
            request command SessionPrompt = "session/prompt": PromptParams => PromptAnswer;
            /// Runs a turn on the context as it stands.
            request command SessionContinue = "session/continue": SessionParams => ContinueAnswer;
            /// Moves to another entry of the tree, on request with a summary of the branch that is left.
            request command SessionNavigate = "session/navigate": NavigateParams => NavigateAnswer;
            /// Extracts the knowledge of another session about a question into this one.
            request command SessionReference = "session/reference": ReferenceParams => ReferenceAnswer;
            /// Begins a new session with a document about this one, which a model writes for the goal. This one stays as it is.
            request command SessionHandoff = "session/handoff": HandoffParams => HandoffAnswer;
            /// Replaces old tool results in the context by one line each. The entries stay unchanged.
            request edit SessionPrune = "session/prune": PruneParams => PruneAnswer;
            /// Pins an entry or a text: every compaction keeps it verbatim.
            request edit SessionPin = "session/pin": PinParams => EntryIdAnswer;
            /// Removes a pin.
            request edit SessionUnpin = "session/unpin": PinParams => EntryIdAnswer;
            /// Sets or removes the label of an entry.
            request edit SessionLabel = "session/label": LabelParams => EntryIdAnswer;
            /// Changes values that are stored with the session: model, system prompt, tools, title.
            request edit SessionConfigure = "session/configure": ConfigureParams => ConfigureAnswer;
            /// Copies the path to an entry into a new session, compactions included, and opens it. The session itself stays as
            /// it is.
            request session SessionFork = "session/fork": ForkParams => ForkAnswer;
            /// Removes and returns the queued messages.
            request session SessionClearQueue = "session/clear_queue": SessionParams => Queue;
            /// Exports the session to a file.
            request session SessionExport = "session/export": ExportParams => ExportAnswer;
            /// Subscribes to a session's events, from a given event on. Opening a session subscribes too.
            request session SessionSubscribe = "session/subscribe": SubscribeParams => SubscribeAnswer;
            /// Unsubscribes from a session's events. They are retained for a later `session/subscribe`.
            request session SessionUnsubscribe = "session/unsubscribe": SessionParams => ();
            /// Lists models with their known properties and the source of each.
            request daemon ModelsList = "models/list": ModelsListParams => ModelsListAnswer;
            /// Forgets the windows of a model that its providers taught, in all sessions and for good.
            request daemon ModelsForget = "models/forget": ModelsForgetParams => ModelsForgetAnswer;
            /// Returns the settings in force, each with its source.
            request daemon SettingsGet = "settings/get": SettingsGetParams => crate::settings::Sourced;
            /// Changes settings by a merge patch in which null removes a value. An invalid patch changes nothing.
            request daemon SettingsSet = "settings/set": SettingsSetParams => crate::settings::Sourced;
            /// Registers the hooks that the client answers, for every session or for some. It holds for every later request.
            request daemon HooksSet = "hooks/set": HooksSetParams => ();
            /// Sets the tools of a session, which are stored with it; without `sessionId`, those of sessions that begin later without
            /// tools of their own. In a turn the client executes them as `tool/call`.
            request daemon ToolsSet = "tools/set": ToolsSetParams => ();
            /// Cancels a request, in the form of LSP.
            notification daemon CancelLsp = "$/cancelRequest": CancelLspParams => ();
            /// Cancels a request, in the form of ACP.
            notification daemon CancelAcp = "$/cancel_request": CancelAcpParams => ();
        }
    };
}
pub(crate) use with_methods;

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $kind:ident $handler:ident $method:ident = $name:literal: $params:ty => $answer:ty;)+) => {
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

with_methods!(methods);

/// The request that returns the whole of an event.
#[must_use]
pub fn whole_of_event(event: &events::Event) -> Option<&'static str> {
    match event {
        events::Event::SettingsChanged { .. } => Some(SettingsGet::NAME),
        events::Event::UsageUpdated { .. } => Some(SessionUsage::NAME),
        events::Event::StatusChanged { .. } => Some(SessionStatus::NAME),
        events::Event::TreeChanged { .. } => Some(SessionTree::NAME),
        events::Event::EntryAppended { .. } | events::Event::CompactionEnd { .. } => Some(SessionEntry::NAME),
        _ => None,
    }
}

/// The request that returns the whole of a notification about no session.
#[must_use]
pub fn whole_of(notification: &str) -> Option<&'static str> {
    use notifications::Notification as _;
    match notification {
        notifications::SettingsChanged::NAME => Some(SettingsGet::NAME),
        notifications::SessionsChanged::NAME => Some(SessionList::NAME),
        _ => None,
    }
}
