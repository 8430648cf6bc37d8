//! Answers of providers in each wire format: the same however the bytes arrive, in a form that can be stored and sent again,
//! and with troubles that tell no secret.

use super::{
    chunks::{choices, cuts},
    errors::told,
};
use abridged::{
    ask::messages,
    conversation::message::{Message, Usage},
    ids::ModelRef,
    provider::{
        Answer, Api, Delivery, Delta, Endpoint, KeySource, Part, Request, Trouble, Turn,
        address::withheld::{without_secrets, without_secrets_as_it_stands},
        body::Body,
        codec, openai_responses, summarizer,
        turns::{Target, turns},
    },
    redact::secret::Secret,
};
use serde_json::Value;
use std::borrow::Cow;

const APIS: [Api; 4] = [Api::Anthropic, Api::OpenaiChat, Api::OpenaiResponses, Api::Google];

const CONTENT_TYPES: [&str; 3] = ["text/event-stream", "application/json", ""];

/// The limits of the answer, in tokens. Small ones are reached.
const LIMITS: [Option<u64>; 3] = [None, Some(1), Some(64_000)];

/// No count of tokens is larger.
const MOST_TOKENS: u64 = 1_000_000_000_000;

pub fn check(data: &[u8]) {
    let Some(([form, size], body)) = choices(data) else { return };
    let api = APIS[form % APIS.len()];
    let content_type = CONTENT_TYPES[form / APIS.len() % CONTENT_TYPES.len()];
    let max_tokens = LIMITS[form / (APIS.len() * CONTENT_TYPES.len()) % LIMITS.len()];
    let request = Request { max_tokens, ..Request::default() };
    let [whole, others @ ..] = cuts(body, size).map(|pieces| Read::of(api, &request, content_type, &pieces));
    for other in others {
        assert_eq!(other, whole);
    }
    if api != Api::OpenaiResponses && content_type == CONTENT_TYPES[0] {
        whole.tells_what_it_says();
    }
    holds(&whole.answer);
    let text = String::from_utf8_lossy(body);
    holds(&summarizer::decode(&text));
    holds(&openai_responses::compact::decode(&text));
    if let Ok(message) = serde_json::from_slice::<Value>(body) {
        // The answer of a client that asks the model.
        if let Ok(answer) = messages::answer(message) {
            parts_are_sound(&answer);
        }
    }
    tells_no_secret(&text, size);
}

/// An answer that was read, and the texts that were told of it.
#[derive(Debug, PartialEq)]
struct Read {
    answer: Result<Answer, Trouble>,
    text: String,
    thinking: String,
    call: String,
}

impl Read {
    fn of(api: Api, request: &Request, content_type: &str, pieces: &[&[u8]]) -> Self {
        let mut body = Body::new(api, request, content_type);
        let (mut text, mut thinking, mut call) = (String::new(), String::new(), String::new());
        let mut told = |delta: &Delta| match delta {
            Delta::Text(more) => text.push_str(more),
            Delta::Thinking(more) => thinking.push_str(more),
            Delta::Call(more) => call.push_str(more),
            Delta::Part(_) => {}
        };
        let mut failed = None;
        for piece in pieces {
            if body.over() {
                break;
            }
            if let Err(trouble) = body.take(piece, &mut told) {
                failed = Some(trouble);
                break;
            }
        }
        counts_are_sound(body.usage());
        let answer = match failed {
            Some(trouble) => Err(trouble),
            None => body.finish(|_| None),
        };
        Self { answer, text, thinking, call }
    }

    /// Updates of a stream say the same as its answer, in any order.
    fn tells_what_it_says(&self) {
        let Ok(answer) = &self.answer else { return };
        let (mut text, mut thinking) = (0, 0);
        for part in &answer.parts {
            match part {
                Part::Text { text: more, .. } => text += more.len(),
                Part::Thinking { text: more, .. } => thinking += more.len(),
                Part::Call { .. } | Part::Image { .. } => {}
            }
        }
        assert_eq!((self.text.len(), self.thinking.len()), (text, thinking), "{self:?}");
    }
}

fn holds(answer: &Result<Answer, Trouble>) {
    match answer {
        Ok(answer) => {
            parts_are_sound(answer);
            is_stored_and_sent_again(answer);
        }
        Err(trouble) => {
            counts_are_sound(trouble.usage);
            told(trouble);
        }
    }
}

fn parts_are_sound(answer: &Answer) {
    counts_are_sound(answer.usage);
    for part in &answer.parts {
        if let Part::Call { arguments, .. } = part {
            assert!(part.block()["arguments"].is_object(), "{arguments}");
        }
    }
}

fn counts_are_sound(usage: Usage) {
    let Usage { input, output, cache_read, cache_write, total } = usage;
    assert!([input, output, cache_read, cache_write].iter().all(|count| *count < 2 * MOST_TOKENS), "{usage:?}");
    assert!(total < 8 * MOST_TOKENS, "{usage:?}");
}

/// An answer is a message of a session, and a turn of the next request in any format.
fn is_stored_and_sent_again(answer: &Answer) {
    for api in APIS {
        let message = answer.message(api.name(), "p", "m", 1).to_string();
        let parsed = Message::parse(&message).unwrap_or_else(|error| panic!("{error}: {message}"));
        assert!(matches!(parsed, Message::Assistant(_)), "{message}");
        let target = Target { api, provider: "p", model: "m" };
        let stored = turns([Cow::Borrowed(message.as_str())], &target);
        for turns in [stored, vec![Turn::user("u"), Turn::Assistant(answer.parts.clone())]] {
            let messages = messages::messages(&turns, &model(), 1);
            assert_eq!(messages.len(), turns.len());
            let request = Request { turns, ..Request::default() };
            for delivery in [Delivery::Whole, Delivery::Stream] {
                assert!(codec::encode(api, &request, delivery).body.is_object());
            }
        }
    }
}

fn model() -> ModelRef {
    ModelRef::parse("p/m").expect("a model")
}

/// A text that names a key and the other secrets of an endpoint, as they are and as JSON escapes them, is told without them.
fn tells_no_secret(text: &str, number: usize) {
    const KEYS: [&str; 4] = ["sk-0123456789abcdef", "nvapi-0123456789", "\"quoted\"-key-01", "tab\\key-0123456"];
    let key = KEYS[number % KEYS.len()];
    let secret = Secret::from(key.to_owned());
    let endpoint = Endpoint {
        api: Api::OpenaiChat,
        base_url: "https://user:pass-word-1@host/v1?token=in-the-address".to_owned(),
        key: KeySource::None,
        headers: vec![("x-proxy".to_owned(), Secret::from("Bearer for-the-proxy".to_owned()))],
    };
    let cut = (0..=text.len().min(number)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (before, behind) = text.split_at(cut);
    for secret_text in [key, "for-the-proxy", "pass-word-1", "in-the-address"] {
        let mut named = secret_text.to_owned();
        for escapes in 0..3 {
            let said = format!("{before}{named}{behind}");
            let told = without_secrets(said.clone(), &endpoint, Some(&secret));
            assert!(!told.contains(secret_text), "{said} is told as {told}");
            // All but one character of a key is as good as the key.
            for nearly in [&secret_text[1..], &secret_text.replace('\\', "")] {
                assert!(text.contains(nearly) || !told.contains(nearly), "{said} is told as {told}");
            }
            if escapes == 0 {
                let told = without_secrets_as_it_stands(said, &endpoint, Some(&secret));
                assert!(!told.contains(secret_text), "{told}");
            }
            let escaped = serde_json::to_string(&named).expect("a text is JSON");
            named = escaped[1..escaped.len() - 1].to_owned();
        }
    }
}
