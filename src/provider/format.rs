//! The parts of a wire format: requests with their headers, and a decoder for answers.

use super::{Answer, Delivery, Delta, Encoded, Request, Trouble, sse};
use crate::conversation::message::Usage;

/// A wire format: requests, their headers, and the decoder of answers.
pub(super) trait WireFormat: Sync {
    /// The path and the body of a request.
    fn encode(&self, request: &Request, delivery: Delivery) -> Encoded;

    /// Headers of each request beside those of JSON and the key, by name.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The header that carries the key: its name and its value.
    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    /// Names of events that end a stream, beside the data `[DONE]`, which gateways send in each format. Some servers keep
    /// the connection open after them.
    fn last_events(&self) -> &'static [&'static str] {
        &[]
    }

    /// A decoder for one answer.
    fn decoder(&self) -> Box<dyn Decode>;
}

/// The decoder of one answer.
pub(super) trait Decode: Send {
    /// Takes the next event of a stream and returns the pieces of the answer that it adds.
    ///
    /// # Errors
    /// When the event reports an error, or is no event of this format.
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble>;

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    /// When the body reports an error, or is no answer of this format.
    fn whole(&mut self, body: &str) -> Result<(), Trouble>;

    /// The number of parts so far.
    fn parts(&self) -> usize;

    /// The tokens that were reported so far. A format that reports them at the end of an answer has none before it.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// Whether the model has ended its answer. Only its tokens may follow.
    fn has_ended(&self) -> bool {
        false
    }

    /// The answer.
    ///
    /// # Errors
    /// When its end did not come, or the provider failed in it.
    fn finish(self: Box<Self>) -> Result<Answer, Trouble>;
}
