//! Why a model did not answer, named by what to do next. The provider's own words stay beside it.

use super::overflow::{self, Meaning, Overflow};
use crate::text;
use std::{fmt, time::Duration};

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What it means.
    pub kind: TroubleKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What the provider, or the network, said. May be long, and may hold anything.
    pub said: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// What it means that a model did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// The request is too long for the window.
    Overflow(Overflow),
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
    /// Nobody answers at that address.
    Unreachable,
    /// Who answers there is not who they should be.
    Untrusted,
    /// No byte came for too long.
    Stalled,
    /// The answer broke off.
    CutOff,
    /// The answer went on and on.
    Endless,
    /// What came is no answer of such a provider.
    Garbled,
    /// The client cannot, or does not want to, run a model.
    Unwilling,
    /// The provider takes the request for a wrong one.
    Refused,
}

impl Trouble {
    /// Without a status.
    #[must_use]
    pub fn new(kind: TroubleKind, said: impl Into<String>) -> Self {
        Self { kind, status: None, said: said.into(), retry_after: None }
    }

    /// What an error answer means, or an error inside an answer that began well.
    #[must_use]
    pub fn of(status: Option<u16>, body: &str, retry_after: Option<Duration>) -> Self {
        let html = looks_like_html(body);
        let kind = match (overflow::meaning(status, body), status) {
            (_, Some(401 | 403)) if !html => TroubleKind::Denied,
            (_, Some(404)) => TroubleKind::NotFound,
            (_, Some(407 | 500..=599)) if html => TroubleKind::Broken,
            _ if html => TroubleKind::Garbled,
            (Meaning::Overflow(overflow), _) => TroubleKind::Overflow(overflow),
            (Meaning::OutOfQuota, _) | (_, Some(402)) => TroubleKind::OutOfQuota,
            (Meaning::Throttled, _) | (_, Some(429)) => TroubleKind::Throttled,
            (Meaning::PayloadTooLarge, _) | (_, Some(413)) => TroubleKind::TooLarge,
            (_, Some(408 | 409 | 425 | 500..=599)) => TroubleKind::Broken,
            (_, None) if BROKEN.iter().any(|word| contains(body, word)) => TroubleKind::Broken,
            (_, None) if DENIED.iter().any(|word| contains(body, word)) => TroubleKind::Denied,
            (_, Some(300..=399)) => TroubleKind::Garbled,
            (Meaning::Other, _) => TroubleKind::Refused,
        };
        Self { kind, status, said: body.to_owned(), retry_after }
    }

    /// The same, known to be no answer of such a provider.
    #[must_use]
    pub fn garbled(self) -> Self {
        Self { kind: TroubleKind::Garbled, ..self }
    }

    /// Whether the same request may work in a moment.
    #[must_use]
    pub fn transient(&self) -> bool {
        use TroubleKind::{Broken, CutOff, Stalled, Throttled, Unreachable};
        matches!(self.kind, Throttled | Broken | Unreachable | CutOff | Stalled)
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.kind {
            TroubleKind::Overflow(_) => "set the model's contextWindow to what it really has",
            TroubleKind::TooLarge => "send fewer or smaller images",
            TroubleKind::Throttled => "wait, or name another model in compaction.models",
            TroubleKind::OutOfQuota => "see to the account, or name another model in compaction.models",
            TroubleKind::Denied => {
                "check the key in the variable that apiKeyEnv names, or the command in apiKeyCommand"
            }
            TroubleKind::NotFound => {
                "check the model's id and baseUrl; a local server may have to load the model first"
            }
            TroubleKind::Broken => "try again later, or name another model in compaction.models",
            TroubleKind::Unreachable => "check baseUrl, and that the server runs",
            TroubleKind::Untrusted => "check baseUrl; a proxy's own certificate can be trusted by SSL_CERT_FILE",
            TroubleKind::Stalled => "see whether the server still works, or raise compaction.stallSeconds",
            TroubleKind::CutOff => "try again; a proxy may end long answers",
            TroubleKind::Endless => "see whether the model suits the work; it did not keep to its output limit",
            TroubleKind::Garbled => "check baseUrl and api: something else than this provider answers there",
            TroubleKind::Unwilling => "answer llm/complete, or give the model an api and a baseUrl in the settings",
            TroubleKind::Refused => "see what the provider says; the model's settings may not suit it",
        }
    }
}

/// As a sentence, with as much of the provider's words as a person reads.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TroubleKind::Overflow(_) => "the request is too long for its window",
            TroubleKind::TooLarge => "the request is too large",
            TroubleKind::Throttled => "it was asked too often",
            TroubleKind::OutOfQuota => "the quota is used up",
            TroubleKind::Denied => "the key is missing or not accepted",
            TroubleKind::NotFound => "there is no such model or address",
            TroubleKind::Broken => "the provider failed",
            TroubleKind::Unreachable => "nobody answers there",
            TroubleKind::Untrusted => "the certificate cannot be trusted",
            TroubleKind::Stalled => "no byte came for too long",
            TroubleKind::CutOff => "the answer broke off",
            TroubleKind::Endless => "the answer did not end",
            TroubleKind::Garbled => "what came is no answer of such a provider",
            TroubleKind::Unwilling => "the client does not run it",
            TroubleKind::Refused => "the request was refused",
        };
        f.write_str(what)?;
        if let Some(status) = self.status {
            write!(f, " (status {status})")?;
        }
        let said = text::one_line(&stated(&self.said), LONGEST_QUOTE);
        if !said.is_empty() {
            write!(f, ": {said}")?;
        }
        Ok(())
    }
}

/// So much of a provider's words is quoted, in characters.
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
const DENIED: &[&str] = &["authentication_error", "invalid_api_key", "permission_error", "unauthorized"];

fn contains(body: &str, word: &str) -> bool {
    body.to_ascii_lowercase().contains(word)
}

/// The message in a JSON body; the body where there is none.
fn stated(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(body) else {
        return body.to_owned();
    };
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").unwrap_or(value);
    let message = [error.get("message"), value.get("message"), value.get("detail"), Some(error)];
    match message.into_iter().flatten().find_map(|it| it.as_str()) {
        Some(text) => text.to_owned(),
        None => body.to_owned(),
    }
}

fn looks_like_html(body: &str) -> bool {
    let start = body.trim_start().get(..15.min(body.trim_start().len())).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}
