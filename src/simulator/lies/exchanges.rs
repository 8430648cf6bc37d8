//! The requests that a host really sends to its provider, and their ends.

use super::{Beyond, Gives, Named, Report, Stated, Told, Truth};
use crate::{session::effects::Answer, session::effects::TicketNumber, wire::transport::Piece};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A request to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    /// Its size, in tokens of the provider.
    tokens: u64,
    /// The compaction that its context begins with.
    compaction: Option<String>,
    /// The id of its context, where the daemon gives one.
    context: Option<String>,
    /// The longest answer that the context allows, in tokens.
    allowed: Option<u64>,
    /// The turns before it.
    turn: u64,
}

/// The end of a request, as the world knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The input that the provider accepted, in tokens.
    pub accepted: Option<u64>,
    /// The window that a refusal states, in tokens.
    pub stated: Option<u64>,
    /// Whether the host reports another input than that.
    pub lies: bool,
    /// Whether it reports the input.
    pub reports: bool,
}

/// The message that tells of the end of a request.
pub enum Telling {
    /// There is no request to tell of.
    NoRequest,
    /// It failed with this text.
    Refused(String),
    /// It was answered, with this usage.
    Answered(Option<Value>),
}

/// The requests of a host to a provider with a truth of its own.
#[derive(Debug, Default)]
pub struct Exchanges {
    truth: Option<Truth>,
    /// Open requests for a context to send.
    asked: BTreeSet<TicketNumber>,
    requests: Vec<Request>,
    /// Whether the newest request for a context was answered.
    has_context: bool,
    /// Turns so far.
    turns: u64,
    /// The exchanges that nobody has looked at.
    ended: Vec<Exchange>,
}

impl Exchanges {
    /// The requests to a provider.
    #[must_use]
    pub fn with(truth: Option<Truth>) -> Self {
        Self { truth, ..Self::default() }
    }

    /// A request goes to the daemon.
    pub fn sent(&mut self, number: TicketNumber, method: &str, params: &Value) {
        if self.truth.is_some() && method == "session/context" && is_for_a_model(params) {
            self.asked.insert(number);
        }
    }

    /// A request to the daemon is answered.
    pub fn answered(&mut self, number: TicketNumber, answer: &Answer) {
        let Some(truth) = self.truth.filter(|_| self.asked.remove(&number)) else { return };
        let Some(context) = value(answer) else {
            self.has_context = false;
            return;
        };
        self.has_context = true;
        self.requests.push(Request {
            tokens: truth.tokens(&context) + truth.untold,
            compaction: context["compactionEntryId"].as_str().map(str::to_owned),
            context: context["contextId"].as_str().map(str::to_owned),
            allowed: context["maxOutputTokens"].as_u64(),
            turn: self.turns,
        });
    }

    /// The user says something.
    pub fn turn_begins(&mut self) {
        self.turns += 1;
    }

    /// Takes the exchanges since the last call.
    #[must_use]
    pub fn take(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.ended)
    }

    /// The `contextId` of an append.
    #[must_use]
    pub fn named(&self, named: Named) -> Option<String> {
        let mut newest = self.requests.iter().rev().filter_map(|request| request.context.clone());
        // A daemon that gives no ids is told none.
        let newest_id = newest.next()?;
        match named {
            Named::Omitted => None,
            Named::Right => Some(newest_id),
            // The last part of an id is an entry.
            Named::Wrong => Some(format!("{newest_id}-none")),
            Named::Stale => newest.find(|id| *id != newest_id),
        }
    }

    /// The end of the newest request, as the daemon is told of it.
    pub fn tell(&mut self, told: Told) -> Telling {
        let (Some(truth), Some(request)) = (self.truth, self.requests.last().filter(|_| self.has_context)) else {
            return Telling::NoRequest;
        };
        let (tokens, window) = (request.tokens, truth.window);
        let reserved = truth.reserved.min(request.allowed.unwrap_or(u64::MAX));
        if let Gives::Throttled(limit) = told.gives {
            self.ended.push(Exchange::default());
            return Telling::Refused(format!(
                "429 rate limit reached: too many tokens per minute, {tokens} tokens > {limit} maximum"
            ));
        }
        let parts = || {
            format!(
                "This model's maximum context length is {window} tokens. However, you requested {} tokens ({tokens} in \
                 the messages, {reserved} in the completion). Please reduce the length of the messages or completion.",
                tokens + reserved
            )
        };
        let over = tokens > window;
        let text = match truth.beyond {
            Beyond::Cuts => None,
            Beyond::Refuses(stated) if over => Some(match stated {
                Stated::Nothing => ("prompt is too long".to_owned(), None),
                Stated::Window => (format!("prompt is too long: {tokens} tokens > {window} maximum"), Some(window)),
                Stated::Parts => (parts(), Some(window)),
                Stated::Wrong(other) => (format!("prompt is too long: {tokens} tokens > {other} maximum"), Some(other)),
            }),
            // The parts name the true window.
            Beyond::Refuses(_) if tokens + reserved > window => Some((parts(), Some(window))),
            Beyond::Refuses(_) => None,
        };
        if let Some((text, stated)) = text {
            self.ended.push(Exchange { stated, ..Exchange::default() });
            return Telling::Refused(text);
        }
        let true_input = tokens.min(window);
        let output = match told.gives {
            Gives::Text(chars) => u64::from(chars) * truth.density / 400,
            Gives::Calls(calls) => u64::from(calls) * 30,
            Gives::Throttled(_) => 0,
        };
        let usage = self.usage(told.reports, true_input, output);
        let reported = usage.as_ref().map(input);
        self.ended.push(Exchange {
            accepted: Some(true_input),
            stated: None,
            lies: reported.is_some_and(|reported| reported != true_input),
            reports: reported.is_some(),
        });
        Telling::Answered(usage)
    }

    /// The usage that a host reports of its newest request, whose input was this.
    fn usage(&self, report: Report, tokens: u64, output: u64) -> Option<Value> {
        let window = self.truth.map_or(u64::MAX, |truth| truth.window);
        let size = |request: &Request| request.tokens.min(window);
        let (newest, earlier) = self.requests.split_last()?;
        let before = earlier.last().filter(|it| it.compaction == newest.compaction);
        let cached = before.map_or(0, |before| size(before).min(tokens));
        let of = |input: u64, cached: u64| {
            json!({"input": input, "output": output, "cacheRead": cached, "cacheWrite": 0,
                "totalTokens": input.saturating_add(cached).saturating_add(output)})
        };
        Some(match report {
            Report::Nothing => return None,
            Report::True => of(tokens - cached, cached),
            Report::Zero => json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}),
            Report::Uncached => of(tokens - cached, 0),
            Report::Steps => of(self.requests.iter().filter(|it| it.turn == newest.turn).map(size).sum(), 0),
            Report::Constant(input) => of(input, 0),
            Report::Doubled => of(tokens, cached),
            Report::Late(requests) => of(earlier.iter().rev().nth(requests as usize).map_or(tokens, size), 0),
            Report::BeforeRewrite => {
                let before = earlier.iter().rev().find(|it| it.compaction != newest.compaction);
                of(before.map_or(tokens, size), 0)
            }
            Report::OfAnother(percent) => of(tokens.saturating_mul(percent.into()) / 100, 0),
        })
    }
}

/// Whether a context is asked for in order to send it: a host without a provider's format waits for it.
#[must_use]
pub fn is_for_a_model(params: &Value) -> bool {
    params["leafEntryId"].is_null()
        && (params["wait"] == true || params["format"].as_str().is_some_and(|format| format != "messages"))
}

/// An answer as a value. None where it is a failure.
#[must_use]
pub fn value(answer: &Answer) -> Option<Value> {
    let text = match answer {
        Answer::Failed(_) => return None,
        Answer::Result(json) => json.get().to_owned(),
        Answer::Pieces(pieces) => pieces.iter().map(Piece::as_str).collect(),
    };
    serde_json::from_str(&text).ok()
}

fn input(usage: &Value) -> u64 {
    ["input", "cacheRead", "cacheWrite"].iter().filter_map(|part| usage[part].as_u64()).fold(0, u64::saturating_add)
}

impl Truth {
    /// The size of a context by the provider's own count, in tokens.
    #[must_use]
    pub fn tokens(&self, context: &Value) -> u64 {
        let parts = [&context["messages"], &context["body"]];
        parts.iter().map(|part| characters(part)).sum::<u64>() * self.density / 400
    }
}

/// The characters of a request that a model reads. A message costs some for its frame.
fn characters(part: &Value) -> u64 {
    /// Fields that a model does not read.
    const UNREAD: &[&str] = &[
        "id",
        "type",
        "role",
        "model",
        "api",
        "provider",
        "stopReason",
        "toolCallId",
        "tool_call_id",
        "tool_use_id",
        "call_id",
        "thinkingSignature",
        "signature",
        "data",
        "mimeType",
        "media_type",
        "usage",
    ];
    match part {
        Value::String(text) => text.chars().count() as u64,
        Value::Array(items) => items.iter().map(characters).sum(),
        Value::Object(fields) => {
            let frame = if fields.contains_key("role") { 16 } else { 0 };
            let read = fields.iter().filter(|(name, _)| !UNREAD.contains(&name.as_str()));
            frame + read.map(|(_, value)| characters(value)).sum::<u64>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: Truth =
        Truth { window: 1_000, density: 100, untold: 100, reserved: 0, beyond: Beyond::Refuses(Stated::Window) };

    /// A host that has sent contexts of these sizes, each with its compaction.
    fn host(truth: Truth, contexts: &[(usize, Option<&str>)]) -> Exchanges {
        let mut exchanges = Exchanges::with(Some(truth));
        for (number, (tokens, compaction)) in (0..).zip(contexts) {
            exchanges.sent(number, "session/context", &json!({"wait": true}));
            let messages = json!([{"content": "x".repeat(4 * tokens)}]);
            let answer =
                json!({"messages": messages, "compactionEntryId": compaction, "contextId": format!("c{number}")});
            exchanges.answered(number, &Answer::ok(&answer));
        }
        exchanges
    }

    fn tells(exchanges: &mut Exchanges, reports: Report) -> Telling {
        exchanges.tell(Told { gives: Gives::Text(40), reports, names: Named::Right })
    }

    #[test]
    fn a_host_reports_each_number_as_it_says() {
        let contexts = [(300, Some("a")), (200, Some("b")), (400, Some("b"))];
        let reported = |report| {
            let mut host = host(TRUTH, &contexts);
            let Telling::Answered(usage) = tells(&mut host, report) else { panic!("it fits") };
            (usage.map(|usage| input(&usage)), host.take()[0].lies)
        };
        assert_eq!(reported(Report::True), (Some(500), false));
        assert_eq!(reported(Report::Nothing), (None, false));
        assert_eq!(reported(Report::Zero), (Some(0), true));
        assert_eq!(reported(Report::Uncached), (Some(200), true), "300 were read from the cache");
        assert_eq!(reported(Report::Steps), (Some(400 + 300 + 500), true));
        assert_eq!(reported(Report::Constant(7)), (Some(7), true));
        assert_eq!(reported(Report::Doubled), (Some(800), true));
        assert_eq!(reported(Report::Late(0)), (Some(300), true));
        assert_eq!(reported(Report::Late(1)), (Some(400), true));
        assert_eq!(reported(Report::Late(9)), (Some(500), false), "there is no such request");
        assert_eq!(reported(Report::BeforeRewrite), (Some(400), true));
        assert_eq!(reported(Report::OfAnother(40)), (Some(200), true));
    }

    #[test]
    fn a_provider_refuses_cuts_or_takes_a_request() {
        let end = |beyond, reserved, tokens| {
            let mut host = host(Truth { beyond, reserved, ..TRUTH }, &[(tokens, None)]);
            let text = match tells(&mut host, Report::True) {
                Telling::NoRequest => "no request".to_owned(),
                Telling::Refused(text) => text,
                Telling::Answered(usage) => format!("{} tokens", input(&usage.expect("a report"))),
            };
            (text, host.take()[0])
        };
        let refuses = Beyond::Refuses;
        assert_eq!(end(refuses(Stated::Window), 0, 900).0, "1000 tokens");
        let (text, exchange) = end(refuses(Stated::Window), 0, 901);
        assert_eq!((text.as_str(), exchange.stated), ("prompt is too long: 1001 tokens > 1000 maximum", Some(1_000)));
        assert_eq!(end(refuses(Stated::Nothing), 0, 901).1.stated, None);
        assert_eq!(end(refuses(Stated::Wrong(7)), 0, 901).1.stated, Some(7));
        assert!(end(refuses(Stated::Nothing), 500, 800).0.contains("(900 in the messages, 500 in the completion)"));
        assert_eq!(end(Beyond::Cuts, 0, 5_000).0, "1000 tokens");
        assert!(!end(Beyond::Cuts, 0, 5_000).1.lies, "the server counts what it read");
    }

    #[test]
    fn a_host_names_contexts_and_sends_none_that_was_refused() {
        let mut host = host(TRUTH, &[(1, None), (2, None)]);
        assert_eq!(host.named(Named::Right).as_deref(), Some("c1"));
        assert_eq!(host.named(Named::Stale).as_deref(), Some("c0"));
        assert_eq!(host.named(Named::Omitted), None);
        assert!(host.named(Named::Wrong).is_some_and(|id| id != "c1"));
        host.sent(7, "session/context", &json!({"format": "messages"}));
        host.answered(7, &Answer::Failed(crate::protocol::errors::Failure::Cancelled));
        assert!(matches!(tells(&mut host, Report::True), Telling::Answered(_)), "a person reads");
        host.sent(8, "session/context", &json!({"format": "anthropic"}));
        host.answered(8, &Answer::Failed(crate::protocol::errors::Failure::Cancelled));
        assert!(matches!(tells(&mut host, Report::True), Telling::NoRequest));
    }

    #[test]
    fn a_context_has_one_size_in_each_format() {
        let messages = json!({"messages": [{"role": "user", "content": "x".repeat(400), "timestamp": 1}]});
        let body = json!({"body": {"model": "m", "messages": [{"role": "user", "content": [
            {"type": "text", "text": "x".repeat(400)}]}]}});
        assert_eq!((TRUTH.tokens(&messages), TRUTH.tokens(&body)), (104, 104));
    }
}
