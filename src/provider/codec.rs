//! One wire format or another.

use super::{
    Answer, Api, Delivery, Delta, Encoded, Request, Trouble, anthropic, google, halves::Halves, openai_chat,
    openai_responses, sse,
};

/// A request in a provider's own words.
#[must_use]
pub fn encode(api: Api, request: &Request, delivery: Delivery) -> Encoded {
    match api {
        Api::OpenaiResponses => openai_responses::encode(request, delivery),
        // A client takes what nearly everybody takes.
        Api::OpenaiChat | Api::Client => openai_chat::encode(request, delivery),
        Api::Anthropic => anthropic::encode(request, delivery),
        Api::Google => google::encode(request, delivery),
    }
}

/// An answer on its way in.
pub struct Decoder {
    format: Format,
    halves: Halves,
    over: bool,
}

enum Format {
    OpenaiChat(openai_chat::Decoder),
    OpenaiResponses(openai_responses::Decoder),
    Anthropic(anthropic::Decoder),
    Google(google::Decoder),
}

impl Decoder {
    /// For an answer in this format.
    #[must_use]
    pub fn new(api: Api) -> Self {
        let format = match api {
            Api::OpenaiChat | Api::Client => Format::OpenaiChat(Default::default()),
            Api::Anthropic => Format::Anthropic(Default::default()),
            Api::Google => Format::Google(Default::default()),
            Api::OpenaiResponses => Format::OpenaiResponses(Default::default()),
        };
        Self { format, halves: Halves::default(), over: false }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// When it is an error, or no event of this format.
    pub fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        // Behind these nothing comes, though some servers keep the connection open.
        const LAST: [&str; 4] = ["message_stop", "response.completed", "response.incomplete", "response.failed"];
        self.over |= event.data.trim() == "[DONE]" || event.name.as_deref().is_some_and(|name| LAST.contains(&name));
        let event = &*self.halves.joined(event);
        match &mut self.format {
            Format::OpenaiChat(decoder) => decoder.event(event),
            Format::OpenaiResponses(decoder) => decoder.event(event),
            Format::Anthropic(decoder) => decoder.event(event),
            Format::Google(decoder) => decoder.event(event),
        }
    }

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    /// When it is an error, or no answer of this format.
    pub fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        let body = &*Halves::whole(body);
        match &mut self.format {
            Format::OpenaiChat(decoder) => decoder.whole(body),
            Format::OpenaiResponses(decoder) => decoder.whole(body),
            Format::Anthropic(decoder) => decoder.whole(body),
            Format::Google(decoder) => decoder.whole(body),
        }
    }

    /// Whether the last event came.
    #[must_use]
    pub fn over(&self) -> bool {
        self.over
    }

    /// The answer.
    ///
    /// # Errors
    /// When its end did not come.
    pub fn finish(self) -> Result<Answer, Trouble> {
        match self.format {
            Format::OpenaiChat(decoder) => decoder.finish(),
            Format::OpenaiResponses(decoder) => decoder.finish(),
            Format::Anthropic(decoder) => decoder.finish(),
            Format::Google(decoder) => decoder.finish(),
        }
    }
}
