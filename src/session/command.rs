//! Requests to a session, in the form in which they wait in its mailbox, and the traits of their handlers.
//!
//! A line of the table in `protocol.rs` names the kind of its handler. `session` makes a [`Command::Call`] of a
//! [`SessionMethod`], `edit` a [`Command::Edit`] of an [`EditMethod`], `command` the variant that a [`CommandMethod`]
//! chooses.

use super::{
    Session,
    edit::{self, Edit, EditMethod},
};
use crate::{
    protocol::{
        Method,
        errors::Failure,
        types::{AppendParams, CompactParams},
    },
    wire::rpc::Reply,
};

/// A request to a session. The loop of the session has to tell apart all variants but `Call`.
pub enum Command {
    /// `session/append`. Consecutive ones become one write.
    Append(AppendParams, Reply),
    /// `session/compact`. A cancel stops those that wait, too.
    Compact(CompactParams, Reply),
    /// A request that writes entries and is answered when they are on disk.
    Edit(Box<dyn Edit>, Reply),
    /// A request that writes nothing.
    Call(Call, Reply),
    /// `session/close`
    Close(Reply),
    /// A close that has no answer.
    Leave,
}

/// A handler with the params of its request. It answers the reply, or passes it on. It must not block.
pub type Call = Box<dyn FnOnce(&mut Session, Reply) + Send>;

/// The handler of a method that a session answers without writing entries.
#[diagnostic::on_unimplemented(
    message = "the method `{Self}` has no handler",
    label = "implement `SessionMethod` for `{Self}` in a file of `src/session/commands`"
)]
pub trait SessionMethod: Method {
    /// Answers a request, or passes the reply on to work that answers it. Must not block.
    fn handle(session: &mut Session, params: Self::Params, reply: Reply);
}

/// A method that the loop of a session has to tell apart from others.
#[diagnostic::on_unimplemented(
    message = "the method `{Self}` has no handler",
    label = "implement `CommandMethod` for `{Self}` in a file of `src/session/commands`"
)]
pub trait CommandMethod: Method {
    /// The command for a request.
    fn command(params: Self::Params, reply: Reply) -> Command;
}

impl Command {
    /// A request to a method that writes nothing.
    #[must_use]
    pub fn call<M: SessionMethod>(params: M::Params, reply: Reply) -> Self {
        Self::with(reply, move |session, reply| M::handle(session, params, reply))
    }

    /// A request to a method that writes entries.
    #[must_use]
    pub fn edit<M: EditMethod>(params: M::Params, reply: Reply) -> Self {
        Self::Edit(edit::request::<M>(params), reply)
    }

    /// A request of the daemon's own: `call` runs in the order of the mailbox.
    #[must_use]
    pub fn with(reply: Reply, call: impl FnOnce(&mut Session, Reply) + Send + 'static) -> Self {
        Self::Call(Box::new(call), reply)
    }

    /// Whether it adds to the file.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Self::Append(..) | Self::Compact(..) | Self::Edit(..))
    }

    /// Whether the session ends with it.
    #[must_use]
    pub fn closes(&self) -> bool {
        matches!(self, Self::Close(_) | Self::Leave)
    }

    /// Whether a cancel stops it before it begins.
    #[must_use]
    pub fn can_be_cancelled(&self) -> bool {
        matches!(self, Self::Compact(params, _) if params.dry_run != Some(true))
    }

    /// Answers it with an error.
    pub fn refuse(self, failure: &Failure) {
        match self {
            Self::Append(_, reply)
            | Self::Compact(_, reply)
            | Self::Edit(_, reply)
            | Self::Call(_, reply)
            | Self::Close(reply) => reply.fail(failure),
            Self::Leave => {}
        }
    }
}
