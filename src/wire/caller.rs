//! Requests to the client, and their answers. Only the caller waits. A request whose caller is gone is cancelled.

use crate::{protocol::requests::ClientRequest, wire::outbox::Outbox};
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::oneshot;

/// Sends requests to the client.
pub struct Caller {
    outbox: Arc<Outbox>,
    next: AtomicU64,
    gone: AtomicBool,
    waiting: Mutex<HashMap<String, oneshot::Sender<Result<String, Unanswered>>>>,
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The client answered with an error.
    #[error("the client answered: {0}")]
    Error(String),
    /// The answer has not the form that the request asks for.
    #[error("the client's answer cannot be read: {0}")]
    Garbled(String),
    /// The connection is closed.
    #[error("the client is gone")]
    Gone,
}

impl Caller {
    /// A caller that sends through this queue.
    #[must_use]
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, next: AtomicU64::new(1), gone: AtomicBool::new(false), waiting: Mutex::default() }
    }

    /// Sends a request and waits for the answer, which has at most `largest` bytes. Where the future is dropped before,
    /// the request is cancelled.
    ///
    /// # Errors
    /// When the client answers with an error or in another form, or the connection is closed.
    pub async fn call<R: ClientRequest>(&self, params: &R::Params, largest: usize) -> Result<R::Answer, Unanswered> {
        let id = format!("srv-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        if self.gone.load(Ordering::SeqCst) {
            self.waiting().remove(&id);
            return Err(Unanswered::Gone);
        }
        let asked = Asked { caller: self, id: &id };
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": R::NAME, "params": params });
        self.outbox.request(frame.to_string());
        let answer = answer.await.unwrap_or(Err(Unanswered::Gone))?;
        drop(asked);
        if answer.len() > largest {
            return Err(Unanswered::Garbled(format!("it has {} bytes, and {largest} are enough", answer.len())));
        }
        serde_json::from_str(&answer).map_err(|error| Unanswered::Garbled(error.to_string()))
    }

    /// Takes an answer of the client. Returns false where no request with this id waits.
    pub fn answered(&self, id: &RawValue, result: Option<&RawValue>, error: Option<&RawValue>) -> bool {
        let Some(waiting) = serde_json::from_str::<String>(id.get()).ok().and_then(|id| self.waiting().remove(&id))
        else {
            return false;
        };
        let answer = match (error.filter(|error| error.get() != "null"), result) {
            (Some(error), _) => Err(Unanswered::Error(message_of(error))),
            (None, Some(result)) => Ok(result.get().to_owned()),
            (None, None) => Err(Unanswered::Garbled("neither a result nor an error".to_owned())),
        };
        let _ = waiting.send(answer);
        true
    }

    /// Ends all waiting requests, because the connection is closed.
    pub fn client_is_gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Result<String, Unanswered>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for its answer.
struct Asked<'a> {
    caller: &'a Caller,
    id: &'a str,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        // Answered ones are not in the list any more.
        if self.caller.waiting().remove(self.id).is_some() {
            self.caller.outbox.notify("$/cancelRequest", json!({ "id": self.id }));
        }
    }
}

/// The message of an error object.
fn message_of(error: &RawValue) -> String {
    let value: Value = serde_json::from_str(error.get()).unwrap_or_default();
    value["message"].as_str().map_or_else(|| error.get().to_owned(), str::to_owned)
}
