//! The ways to reach a session: a mailbox in the order of the wire, and an urgent channel that bypasses it.

use super::{
    effects::{Answer, TicketNumber},
    shared::Shared,
    state::State,
};
use crate::{
    ids::{OperationId, SessionId},
    protocol::{
        errors::Failure,
        types::{CancelAnswer, Cancelled, LoadParams, Status},
    },
    session::core::{
        command::Command,
        parts::queue::{FULL, TRY_AGAIN},
    },
    settings::Layers,
    wire::rpc::{Kept, Reply},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The most commands that wait for a session. More are refused.
const MAILBOX: usize = FULL;

/// A request that waits for its turn in a session.
pub enum Mail {
    /// A command.
    Command(Command, Reply),
    /// `session/load` of a session that is open.
    Describe(Box<LoadParams>, Reply),
    /// A request of which the daemon does the work, when those before it are done.
    HandOver(HandOver, Reply),
    /// A close that has no answer.
    Leave,
}

/// Work of the daemon for a session with this working folder.
pub type HandOver = Box<dyn FnOnce(&str, Reply) + Send>;

impl Mail {
    /// Whether the session ends with it.
    #[must_use]
    pub fn closes(&self) -> bool {
        match self {
            Self::Command(command, _) => command.closes(),
            Self::Leave => true,
            Self::Describe(..) | Self::HandOver(..) => false,
        }
    }

    /// Whether a cancel stops it before it begins.
    #[must_use]
    pub fn can_be_cancelled(&self) -> bool {
        matches!(self, Self::Command(command, _) if command.can_be_cancelled())
    }

    /// Answers it with an error.
    pub fn refuse(self, failure: &Failure) {
        match self {
            Self::Command(_, reply) | Self::Describe(_, reply) | Self::HandOver(_, reply) => reply.fail(failure),
            Self::Leave => {}
        }
    }
}

/// A message that bypasses the mailbox.
pub enum Urgent {
    /// `session/cancel`
    Cancel(Option<OperationId>, CancelReply),
    /// The settings below the session's own changed.
    Layers(Layers),
    /// A client cancelled the request with this ticket.
    RequestCancelled(TicketNumber),
    /// The session's file was touched.
    FileTouched,
    /// Another session looks at the state.
    Look(Look),
    /// The session ends when no operation runs.
    Finish,
    /// The session ends now. Running operations are cancelled.
    Stop,
}

/// A look at the state of a session. It changes nothing, and is no input.
pub type Look = Box<dyn FnOnce(&State) + Send>;

/// The right to answer a cancel. Dropping it answers with an empty list, as when the session has ended.
pub struct CancelReply(Option<Reply>);

impl From<Reply> for CancelReply {
    fn from(reply: Reply) -> Self {
        Self(Some(reply))
    }
}

impl CancelReply {
    /// Answers.
    pub(super) fn answer(mut self, answer: Answer) {
        if let Some(reply) = self.0.take() {
            answer.send(reply);
        }
    }

    /// The request, where requests are kept.
    pub(super) fn request(&self) -> Option<&Kept> {
        self.0.as_ref()?.request()
    }

    fn send(&mut self, cancelled: Vec<Cancelled>) {
        if let Some(reply) = self.0.take() {
            reply.ok(&CancelAnswer { cancelled });
        }
    }
}

impl Drop for CancelReply {
    fn drop(&mut self) {
        self.send(Vec::new());
    }
}

/// Sends commands to a session.
#[derive(Clone)]
pub struct Handle {
    // Boxed: a channel has room for 32 at once, and most sessions have nothing to do.
    mailbox: mpsc::Sender<Box<Mail>>,
    urgent: mpsc::UnboundedSender<Box<Urgent>>,
    /// A look at it.
    pub glance: SharedGlance,
}

/// A look at a session that does not wait for it.
#[derive(Clone)]
pub struct SharedGlance(Arc<Mutex<Glance>>);

/// The values of a session that a list shows.
#[derive(Debug, Clone, Default)]
pub struct Glance {
    /// The status that clients were sent last.
    pub status: Status,
    /// The size of the context, as clients were sent it last, in percent of the window.
    pub percent: Option<f64>,
    /// The number of entries; none until the file is indexed.
    pub entry_count: Option<usize>,
}

impl SharedGlance {
    pub(super) fn set_status(&self, status: Status) {
        self.lock().status = status;
    }

    pub(super) fn set_percent(&self, percent: Option<f64>) {
        self.lock().percent = percent;
    }

    pub(super) fn set_entry_count(&self, entry_count: Option<usize>) {
        self.lock().entry_count = entry_count;
    }

    /// The values now.
    #[must_use]
    pub fn get(&self) -> Glance {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Glance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving ends of a handle.
pub struct Inbox {
    pub(super) mailbox: mpsc::Receiver<Box<Mail>>,
    pub(super) urgent: mpsc::UnboundedReceiver<Box<Urgent>>,
    pub(super) urgent_sender: mpsc::UnboundedSender<Box<Urgent>>,
    pub(super) shared: Shared,
    /// A look at the session, shared with the handles.
    pub glance: SharedGlance,
}

/// The two ends of a mailbox for a session that is still to be opened. Commands wait until it is open.
#[must_use]
pub fn mailbox(shared: Shared) -> (Handle, Inbox) {
    let (mailbox, commands) = mpsc::channel(MAILBOX);
    let (urgent, urgents) = mpsc::unbounded_channel();
    let glance = SharedGlance(Arc::default());
    let inbox =
        Inbox { mailbox: commands, urgent: urgents, urgent_sender: urgent.clone(), shared, glance: glance.clone() };
    (Handle { mailbox, urgent, glance }, inbox)
}

impl Handle {
    /// Sends a request. Requests begin in the order in which they were sent. Returns false for a request that was refused,
    /// which is answered.
    pub fn send(&self, id: &SessionId, mail: Mail) -> bool {
        use mpsc::error::TrySendError::{Closed, Full};
        let (mail, failure) = match self.mailbox.try_send(Box::new(mail)) {
            Ok(()) => return true,
            Err(Full(mail)) => {
                // A notification would be gone without a word.
                tracing::warn!(session = %id, "too many commands wait; one was refused");
                (mail, Failure::Overloaded { retry_after_ms: TRY_AGAIN })
            }
            Err(Closed(mail)) => (mail, Failure::no_session(id.as_str())),
        };
        mail.refuse(&failure);
        false
    }

    /// Sends a message that bypasses the mailbox.
    pub fn send_urgent(&self, urgent: Urgent) {
        // A session that is gone has nothing left to cancel; a reply in here answers for itself.
        let _ = self.urgent.send(Box::new(urgent));
    }

    /// Waits until the session has closed its file.
    pub async fn gone(&self) {
        self.urgent.closed().await;
    }

    /// Whether the session still runs.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.mailbox.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol,
        wire::{caller::Caller, outbox::Outbox, rpc::Service, transport::Chosen},
    };

    /// A session that ends does not read its queue any more.
    #[test]
    fn a_dropped_cancel_answers_with_an_empty_list() {
        let outbox = Arc::new(Outbox::new());
        let mut service = Service::new(Arc::new(()), outbox.clone(), Arc::new(Caller::new(outbox.clone())), |_| Ok(()));
        service.method::<protocol::SessionCancel>(|_, params, reply| {
            drop(Urgent::Cancel(params.operation_id, CancelReply::from(reply)));
        });
        service.frame(br#"{"jsonrpc":"2.0","id":1,"method":"session/cancel","params":{"sessionId":"a"}}"#);
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written, &Chosen::default());
        let written = String::from_utf8(written).expect("text");
        assert_eq!(written.trim_end(), r#"{"jsonrpc":"2.0","id":1,"result":{"cancelled":[]}}"#);
    }
}
