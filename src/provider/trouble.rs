//! Failed requests, named by the next step of the caller, with the provider's text.

use super::overflow::{self, Meaning, Overflow, Reservation};
use crate::{conversation::message::Usage, text};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::LazyLock, time::Duration};

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The kind of failure.
    pub kind: TroubleKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The text of the provider or of the network. It may be long and hold anything.
    pub said: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// The tokens that the provider reported before the failure.
    pub usage: Usage,
    /// How far the request got.
    pub reach: Reach,
}

/// How far a failed request got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// It was not sent: a local refusal, or no connection.
    Unsent,
    /// An error answered it before any part of an answer.
    Refused,
    /// It was sent, and the failure does not show how far it got: silence, a connection that broke, or an error inside an
    /// answer that had begun.
    #[default]
    Sent,
}

/// The kind of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// The request is too long for the window.
    Overflow(Overflow),
    /// The input fits the window, and the room kept for the answer does not.
    Reserved(Reservation),
    /// Too many bytes or images in the request.
    TooLarge,
    /// Too much was asked lately; later it works.
    Throttled,
    /// Nothing is left of a quota or a balance.
    OutOfQuota,
    /// The key is missing or wrong, or may not do this.
    Denied,
    /// The provider has no such model, or no such address.
    NotFound,
    /// The provider failed.
    Broken,
    /// No server answers at the address.
    Unreachable,
    /// The server's certificate is not trusted.
    Untrusted,
    /// No more of the answer came for too long.
    Stalled,
    /// The client did not answer in time.
    Late,
    /// The time for the request is over.
    OutOfTime,
    /// The answer broke off.
    CutOff,
    /// The answer went on and on.
    Endless,
    /// The response is no answer of this wire format.
    Garbled,
    /// The summary took more requests than one may take; this one was not sent.
    TooMany,
    /// The request may take more tokens than the work may still spend; it was not sent.
    NoTokens,
    /// The client cannot, or does not want to, run a model.
    Unwilling,
    /// The provider takes the request for a wrong one.
    Refused,
}

impl Trouble {
    /// Without a status.
    #[must_use]
    pub fn new(kind: TroubleKind, said: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            said: said.into(),
            retry_after: None,
            usage: Usage::default(),
            reach: Reach::default(),
        }
    }

    /// The trouble of an error response, or of an error inside an answer that began well.
    #[must_use]
    pub fn of(status: Option<u16>, body: &str, retry_after: Option<Duration>) -> Self {
        let html = looks_like_html(body);
        let lower = body.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        // A library writes the status into its words.
        let meant = status.or_else(|| overflow::stated_status(body));
        let kind = match (overflow::meaning(status, body), meant) {
            (_, Some(401 | 403)) if !html => TroubleKind::Denied,
            (_, Some(404)) => TroubleKind::NotFound,
            (_, Some(407 | 500..=599)) if html => TroubleKind::Broken,
            _ if html => TroubleKind::Garbled,
            (Meaning::Overflow(overflow), _) => TroubleKind::Overflow(overflow),
            (Meaning::Reserved(reservation), _) => TroubleKind::Reserved(reservation),
            (Meaning::OutOfQuota, _) | (_, Some(402)) => TroubleKind::OutOfQuota,
            (Meaning::Throttled, _) | (_, Some(429)) => TroubleKind::Throttled,
            (Meaning::PayloadTooLarge, _) | (_, Some(413)) => TroubleKind::TooLarge,
            (_, Some(408 | 409 | 425 | 500..=599)) => TroubleKind::Broken,
            (_, None | Some(200..=299)) if says(BROKEN) => TroubleKind::Broken,
            (_, Some(300..=399)) => TroubleKind::Garbled,
            // A wrong key, or an unknown model, is a wrong argument to some.
            _ if says(DENIED) => TroubleKind::Denied,
            _ if says(MISSING) => TroubleKind::NotFound,
            (Meaning::Other, _) => TroubleKind::Refused,
        };
        let later = matches!(kind, TroubleKind::Throttled | TroubleKind::Broken);
        let retry_after = retry_after.or_else(|| stated_wait(body).filter(|_| later));
        Self { kind, status, said: body.to_owned(), retry_after, usage: Usage::default(), reach: Reach::default() }
    }

    /// The same for a request that got so far.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// The same, known to be no answer of such a provider.
    #[must_use]
    pub fn garbled(self) -> Self {
        Self { kind: TroubleKind::Garbled, ..self }
    }

    /// The sizes of a request that was refused for the room kept for its answer.
    #[must_use]
    pub fn reservation(&self) -> Option<Reservation> {
        if let TroubleKind::Reserved(reservation) = self.kind { Some(reservation) } else { None }
    }

    /// Whether the same request may work in a moment.
    #[must_use]
    pub fn transient(&self) -> bool {
        use TroubleKind::{Broken, CutOff, Late, Stalled, Throttled, Unreachable};
        matches!(self.kind, Throttled | Broken | Unreachable | CutOff | Stalled | Late)
    }

    /// The same with other words for what was said: what may not be told is gone from all of it, not only from what is
    /// quoted.
    #[must_use]
    pub fn said_as(&self, clean: impl FnOnce(&str) -> String) -> Self {
        Self { said: clean(&stated(&self.said)), ..self.clone() }
    }

    /// The advice for a person.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.kind {
            TroubleKind::Overflow(_) => "set the model's contextWindow to what it really has",
            TroubleKind::Reserved(_) => {
                "set the model's maxOutputTokens lower, or its contextWindow to what it really has"
            }
            TroubleKind::TooLarge => "send fewer or smaller images",
            TroubleKind::Throttled => {
                "wait, or name another model (compaction.models for summaries, session/configure for turns)"
            }
            TroubleKind::OutOfQuota => {
                "see to the account, or name another model (compaction.models for summaries, session/configure for turns)"
            }
            TroubleKind::Denied => {
                "check the key in the variable that apiKeyEnv names, or the command in apiKeyCommand"
            }
            TroubleKind::NotFound => {
                "check the model's id and baseUrl; a local server may have to load the model first"
            }
            TroubleKind::Broken => {
                "try again later, or name another model (compaction.models for summaries, session/configure for turns)"
            }
            TroubleKind::Unreachable => "check baseUrl, and that the server runs",
            TroubleKind::Untrusted => "check baseUrl; a proxy's own certificate can be trusted by SSL_CERT_FILE",
            TroubleKind::Stalled => "see whether the server still works, or raise compaction.stallSeconds",
            TroubleKind::Late => "answer llm/complete sooner, or raise compaction.deadlineSeconds",
            TroubleKind::OutOfTime => "allow it more time",
            TroubleKind::CutOff => "try again; a proxy may end long answers",
            TroubleKind::Endless => "see whether the model suits the work; it did not keep to its output limit",
            TroubleKind::Garbled => "check baseUrl and api: something else than this provider answers there",
            TroubleKind::TooMany => {
                "see why its answers were refused, and set the model's contextWindow to what it really has"
            }
            TroubleKind::NoTokens => "wait until tokens of the last hour are an hour old, or raise the setting",
            TroubleKind::Unwilling => "answer llm/complete, or give the model an api and a baseUrl in the settings",
            TroubleKind::Refused => "see what the provider says; the model's settings may not suit it",
        }
    }
}

/// A sentence for a person, with the beginning of the provider's text.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TroubleKind::Overflow(_) => "the request is too long for its window",
            TroubleKind::Reserved(_) => "the request leaves too little of its window for the answer",
            TroubleKind::TooLarge => "the request is too large",
            TroubleKind::Throttled => "it takes no more requests for now",
            TroubleKind::OutOfQuota => "the quota is used up",
            TroubleKind::Denied => "the key is missing or not accepted",
            TroubleKind::NotFound => "there is no such model or address",
            TroubleKind::Broken => "the provider failed",
            TroubleKind::Unreachable => "nobody answers there",
            TroubleKind::Untrusted => "the certificate cannot be trusted",
            TroubleKind::Stalled => "the answer does not go on",
            TroubleKind::Late => "the client did not answer in time",
            TroubleKind::OutOfTime => "its time was over",
            TroubleKind::CutOff => "the answer broke off",
            TroubleKind::Endless => "the answer did not end",
            TroubleKind::Garbled => "what came is no answer of such a provider",
            TroubleKind::TooMany => "too many requests for one summary",
            TroubleKind::NoTokens => "too few tokens are left for it",
            TroubleKind::Unwilling => "the client does not run it",
            TroubleKind::Refused => "the request was refused",
        };
        f.write_str(what)?;
        if let Some(status) = self.status {
            write!(f, " (status {status})")?;
        }
        let said = stated(&self.said).replace(char::is_control, " ");
        let said = text::one_line(&said, LONGEST_QUOTE);
        if !said.is_empty() {
            write!(f, ": {said}")?;
        }
        Ok(())
    }
}

/// The part of a provider's text that is quoted, in characters.
const LONGEST_QUOTE: usize = 300;

/// Words of an error inside a stream, where no status says what it means.
const BROKEN: &[&str] = &[
    "overloaded",
    "internal_server_error",
    "internal server error",
    "server_error",
    "api_error",
    "unavailable",
    "timeout",
];
const DENIED: &[&str] = &[
    "authentication_error",
    "invalid_api_key",
    "api_key_invalid",
    "api key not valid",
    "api_key_service_blocked",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "unauthorized",
];
const MISSING: &[&str] = &["model_not_found", "not_found_error"];

/// When to ask again, where it stands in the body: Google has a field for it, OpenAI says "try again in 6m0s".
fn stated_wait(body: &str) -> Option<Duration> {
    static WAIT: LazyLock<Regex> = LazyLock::new(|| {
        let time = r"(?:[0-9]+(?:\.[0-9]+)? ?(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?) ?)+";
        let pattern = format!(r#"(?i)(?:"retryDelay" ?: ?"|(?:try again|retry) (?:in|after) )({time})"#);
        Regex::new(&pattern).expect("the pattern is fixed and tested")
    });
    static PART: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"([0-9]+(?:\.[0-9]+)?) ?([a-zA-Z]+)").expect("the pattern is fixed and tested"));
    let time = WAIT.captures(body)?.get(1)?.as_str();
    let seconds = PART.captures_iter(time).filter_map(|part| {
        let number: f64 = part[1].parse().ok()?;
        let unit = part[2].to_ascii_lowercase();
        Some(match unit.as_str() {
            unit if unit.starts_with("ms") || unit.starts_with("milli") => number / 1_000.0,
            unit if unit.starts_with('m') => number * 60.0,
            unit if unit.starts_with('h') => number * 3_600.0,
            _ => number,
        })
    });
    Duration::try_from_secs_f64(seconds.sum()).ok()
}

/// The message in a JSON body, with the code of Anthropic's compaction; the body where there is none.
fn stated(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(body) else {
        return body.to_owned();
    };
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").unwrap_or(value);
    let message = [error.get("message"), value.get("message"), value.get("detail"), Some(error)];
    match message.into_iter().flatten().find_map(|it| it.as_str()) {
        Some(text) => match error.get("details").and_then(|details| details["error_code"].as_str()) {
            Some(code) if !text.contains(code) => format!("{text} ({code})"),
            _ => text.to_owned(),
        },
        None => body.to_owned(),
    }
}

fn looks_like_html(body: &str) -> bool {
    let start = body.trim_start().get(..15.min(body.trim_start().len())).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_means() {
        let row = |status: Option<u16>, body: &str, expected: TroubleKind| {
            assert_eq!(Trouble::of(status, body, None).kind, expected, "{status:?} {body}");
        };
        let wrong_key =
            r#"{"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}"#;
        row(Some(400), wrong_key, TroubleKind::Denied);
        row(Some(400), "API key not valid. Please pass a valid API key.", TroubleKind::Denied);
        row(Some(401), "", TroubleKind::Denied);
        row(None, "401 Unauthorized", TroubleKind::Denied);
        row(None, "403 Forbidden", TroubleKind::Denied);
        row(Some(200), r#"{"type": "authentication_error"}"#, TroubleKind::Denied);
        row(Some(400), r#"{"error": {"code": "model_not_found"}}"#, TroubleKind::NotFound);
        row(Some(404), "<html>", TroubleKind::NotFound);
        row(Some(401), "<html>", TroubleKind::Garbled);
        row(Some(200), "<!DOCTYPE html>", TroubleKind::Garbled);
        row(Some(502), "<!DOCTYPE html>", TroubleKind::Broken);
        row(Some(307), "", TroubleKind::Garbled);
        row(Some(402), "", TroubleKind::OutOfQuota);
        row(Some(413), "", TroubleKind::TooLarge);
        row(Some(429), "", TroubleKind::Throttled);
        row(Some(500), "", TroubleKind::Broken);
        row(None, "500 Internal Server Error", TroubleKind::Broken);
        row(Some(200), "api_error", TroubleKind::Broken);
        row(Some(400), "no", TroubleKind::Refused);
    }

    #[test]
    fn when_to_ask_again_may_stand_in_the_body() {
        let row = |body: &str, expected: Option<u64>| {
            let trouble = Trouble::of(Some(429), body, None);
            assert_eq!(trouble.retry_after, expected.map(Duration::from_millis), "{body}");
        };
        row(r#"{"error": {"details": [{"retryDelay": "34s"}]}}"#, Some(34_000));
        row(r#"{"error": {"details": [{"retryDelay":"0.847s"}]}}"#, Some(847));
        row("Rate limit reached. Please try again in 1.2s. Visit", Some(1_200));
        row("Please try again in 6m0s.", Some(360_000));
        row("Please try again in 1h2m3s.", Some(3_723_000));
        row("Please try again in 20ms.", Some(20));
        row("Please retry after 20 seconds.", Some(20_000));
        row("Please try again later.", None);
        row("try again in May", None);
        let header = Some(Duration::from_secs(2));
        assert_eq!(Trouble::of(Some(429), "try again in 9s", header).retry_after, header, "the header counts");
        assert_eq!(Trouble::of(Some(400), "try again in 9s", None).retry_after, Some(Duration::from_secs(9)));
    }

    #[test]
    fn what_may_not_be_told_is_gone_before_anything_is_cut() {
        let body = format!(r#"{{"error": {{"message": "{}hush-hush"}}}}"#, "x".repeat(296));
        let trouble = Trouble::of(Some(400), &body, None);
        assert!(trouble.to_string().contains("xhu"), "half of it is left");
        assert!(!trouble.said_as(|said| said.replace("hush", "***")).to_string().contains("xhu"));
    }
}
