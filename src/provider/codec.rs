//! A request in any wire format, and the answer in the same one.

use super::{
    Answer, Api, Delivery, Delta, Encoded, Request, Trouble,
    anthropic::Anthropic,
    format::{Decode, WireFormat},
    google::Google,
    halves::Halves,
    openai_chat::OpenaiChat,
    openai_responses::OpenaiResponses,
    reading, sse,
};
use crate::conversation::message::Usage;

/// The wire format of an API.
pub(super) fn wire_format(api: Api) -> &'static dyn WireFormat {
    match api {
        Api::OpenaiResponses => &OpenaiResponses,
        // Clients take the format that most servers take.
        Api::OpenaiChat | Api::Client => &OpenaiChat,
        Api::Anthropic => &Anthropic,
        Api::Google => &Google,
    }
}

/// The path and the body of a request.
#[must_use]
pub fn encode(api: Api, request: &Request, delivery: Delivery) -> Encoded {
    wire_format(api).encode(request, delivery)
}

/// The decoder of one answer in any wire format.
pub struct Decoder {
    format: &'static dyn WireFormat,
    decode: Box<dyn Decode>,
    halves: Halves,
    over: bool,
}

impl Decoder {
    /// A decoder for an answer in this format.
    #[must_use]
    pub fn new(api: Api) -> Self {
        let format = wire_format(api);
        Self { format, decode: format.decoder(), halves: Halves::default(), over: false }
    }

    /// Takes the next event of a stream and returns the pieces of the answer that it adds.
    ///
    /// # Errors
    /// When the event reports an error, or is no event of this format.
    pub fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        let is_last = |name: &str| self.format.last_events().contains(&name);
        self.over |= event.data.trim() == "[DONE]" || event.name.as_deref().is_some_and(is_last);
        let deltas = self.decode.event(&self.halves.joined(event))?;
        reading::few(self.decode.parts())?;
        Ok(deltas)
    }

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    /// When the body reports an error, or is no answer of this format.
    pub fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        self.decode.whole(&Halves::whole(body))?;
        reading::few(self.decode.parts())
    }

    /// The place of the part that grew last.
    #[must_use]
    pub fn part(&self) -> usize {
        self.decode.parts().saturating_sub(1)
    }

    /// The tokens that were reported so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.decode.usage()
    }

    /// Whether the last event came.
    #[must_use]
    pub fn over(&self) -> bool {
        self.over
    }

    /// Whether the model has ended its answer. Only its tokens may follow.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.decode.has_ended()
    }

    /// The answer.
    ///
    /// # Errors
    /// When its end did not come, or the provider failed in it.
    pub fn finish(self) -> Result<Answer, Trouble> {
        self.decode.finish()
    }
}
