//! Requests to a session, in the form in which they wait for their turn, and the traits of their handlers.
//!
//! A line of the table in `protocol.rs` names the kind of its handler. `session` makes a [`Command::Call`] of a
//! [`SessionMethod`], `edit` a [`Command::Edit`] of an `EditMethod`, `command` the variant that a [`CommandMethod`]
//! chooses.

use super::edit::{self, Edit, EditMethod};
use crate::{
    protocol::{
        Method,
        types::{AppendParams, Behavior, CompactParams, HandoffParams, NavigateParams, PromptMessage, ReferenceParams},
    },
    session::{core::Core, effects::Ticket},
};

/// A request to a session. The core has to tell apart all variants but `Call`.
pub enum Command {
    /// `session/append`. Consecutive ones become one write.
    Append(AppendParams),
    /// `session/compact`. A cancel stops those that wait, too.
    Compact(CompactParams),
    /// A request that carries knowledge to another place. A cancel stops those that wait, too.
    Transfer(Box<TransferRequest>),
    /// `session/prompt` or `session/continue`. A cancel stops those that wait, too: the message stays, and its turn ends at its start.
    Turn(Box<TurnRequest>),
    /// A request that writes entries and is answered when they are on disk.
    Edit(Box<dyn Edit>),
    /// A request that writes nothing.
    Call(Call),
    /// `session/activity`. It acts when it arrives.
    Activity,
    /// A request of which the daemon does the work, when those before it are done.
    HandOver,
    /// `session/close`, and a close that the daemon decides.
    Close,
}

/// A request for a turn.
pub struct TurnRequest {
    /// The message; none for a turn on the context as it stands.
    pub prompt: Option<(PromptMessage, Behavior)>,
    /// Whether a cancel came after it: its message waits for the user.
    pub cancelled: bool,
}

/// A request for a transfer.
pub enum TransferRequest {
    /// `session/navigate`.
    Navigate(NavigateParams),
    /// `session/reference`.
    Reference(ReferenceParams),
    /// `session/handoff`.
    Handoff(HandoffParams),
}

impl TransferRequest {
    /// Whether the request is answered at the end.
    #[must_use]
    pub fn wait(&self) -> Option<bool> {
        match self {
            Self::Navigate(params) => params.wait,
            Self::Reference(params) => params.wait,
            Self::Handoff(params) => params.wait.or(params.dry_run),
        }
    }

    /// Whether it writes into the session.
    #[must_use]
    pub fn writes_here(&self) -> bool {
        !matches!(self, Self::Handoff(_))
    }
}

/// A handler with the params of its request. It answers the ticket, or passes it on. It must not block.
pub type Call = Box<dyn FnOnce(&mut Core, Ticket) + Send>;

/// The handler of a method that a session answers without writing entries.
#[diagnostic::on_unimplemented(
    message = "the method `{Self}` has no handler",
    label = "implement `SessionMethod` for `{Self}` in a file of `src/session/commands`"
)]
pub trait SessionMethod: Method {
    /// Answers a request, or passes the ticket on to work that answers it. Must not block.
    fn handle(core: &mut Core, params: Self::Params, ticket: Ticket);
}

/// A method that the core has to tell apart from others.
#[diagnostic::on_unimplemented(
    message = "the method `{Self}` has no handler",
    label = "implement `CommandMethod` for `{Self}` in a file of `src/session/commands`"
)]
pub trait CommandMethod: Method {
    /// The command for a request.
    fn command(params: Self::Params) -> Command;
}

impl Command {
    /// A request to a method that writes nothing.
    #[must_use]
    pub fn call<M: SessionMethod>(params: M::Params) -> Self {
        Self::with(move |core, ticket| M::handle(core, params, ticket))
    }

    /// A request to a method that writes entries.
    #[must_use]
    pub fn edit<M: EditMethod>(params: M::Params) -> Self {
        Self::Edit(edit::request::<M>(params))
    }

    /// A request of the daemon's own: `call` runs in the order of the mailbox.
    #[must_use]
    pub fn with(call: impl FnOnce(&mut Core, Ticket) + Send + 'static) -> Self {
        Self::Call(Box::new(call))
    }

    /// Whether it would change the conversation of a turn that runs: it adds messages, or moves to another place.
    #[must_use]
    pub fn disturbs_turns(&self) -> bool {
        match self {
            Self::Append(_) => true,
            Self::Transfer(request) => !matches!(**request, TransferRequest::Reference(_)),
            _ => false,
        }
    }

    /// Whether it adds to the file.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Self::Append(_) | Self::Compact(_) | Self::Transfer(_) | Self::Turn(_) | Self::Edit(_))
    }

    /// Whether it ends idle maintenance and starts its timer anew: it changes the session, or its user is there.
    #[must_use]
    pub fn is_activity(&self) -> bool {
        match self {
            Self::Append(_) | Self::Edit(_) | Self::Transfer(_) | Self::Turn(_) | Self::Activity => true,
            Self::Compact(params) => params.writes(),
            Self::Call(_) | Self::HandOver | Self::Close => false,
        }
    }

    /// Whether the daemon does the work.
    #[must_use]
    pub fn is_handed_over(&self) -> bool {
        matches!(self, Self::HandOver)
    }

    /// Whether the session ends with it.
    #[must_use]
    pub fn closes(&self) -> bool {
        matches!(self, Self::Close)
    }

    /// Whether it compacts the session.
    #[must_use]
    pub fn compacts(&self) -> bool {
        matches!(self, Self::Compact(params) if params.writes())
    }

    /// Whether a cancel stops it before it begins.
    #[must_use]
    pub fn can_be_cancelled(&self) -> bool {
        match self {
            Self::Transfer(_) => true,
            other => other.compacts(),
        }
    }
}
