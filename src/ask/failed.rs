//! A failed request to a model: what its caller does next, and a text for a person.

use crate::{
    ids::ModelRef,
    models::candidates::Candidate,
    provider::{Trouble, TroubleKind},
    redact, text,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// Longest part of an error text that is searched for secrets, in characters. Far more than is quoted.
const LONGEST_REDACTED: usize = 8_192;

/// A request that has no answer. Its text holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Model that was asked. None: the service at `compaction.remoteEndpoint`.
    pub model: Option<ModelRef>,
    /// Next step of the caller.
    pub next: Next,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// Whether the same request may work later.
    pub retryable: bool,
    what: String,
}

/// Next step of the caller of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Next {
    /// Shorten the request. It does not fit the window, of so many tokens where the provider said it.
    Shorten { window: Option<u64> },
    /// Ask another model. The same request fails here again.
    OtherModel,
    /// Stop. The time for the request is over.
    Stop,
    /// Stop. The requests or the tokens of the work are used up.
    Enough,
}

impl Failed {
    /// The failure of a request to a candidate.
    #[must_use]
    pub fn new(candidate: &Candidate, trouble: &Trouble) -> Self {
        // Only the beginning is quoted, and a long text takes long to redact.
        let redacted = trouble.said_as(|said| redact::redact(text::head(said, LONGEST_REDACTED)).into_owned());
        Self {
            model: candidate.named().cloned(),
            next: match trouble.kind {
                TroubleKind::Overflow(overflow) => Next::Shorten { window: overflow.limit },
                TroubleKind::Reserved(reservation) => Next::Shorten { window: Some(reservation.limit()) },
                // A limit of bytes, or an error without numbers.
                TroubleKind::TooLarge => Next::Shorten { window: None },
                TroubleKind::OutOfTime => Next::Stop,
                TroubleKind::TooMany | TroubleKind::NoTokens => Next::Enough,
                _ => Next::OtherModel,
            },
            status: trouble.status,
            retryable: trouble.transient(),
            what: format!("{redacted}; {}", if candidate.is_model() { trouble.advice() } else { advice(trouble.kind) }),
        }
    }

    /// The failure of a model that cannot be asked at all.
    #[must_use]
    pub fn unfit(model: ModelRef, why: &str) -> Self {
        Self { model: Some(model), next: Next::OtherModel, status: None, retryable: false, what: why.to_owned() }
    }

    /// The failure as entries of a session store it: the `error.data` of the protocol.
    #[must_use]
    pub fn data(&self) -> Value {
        json!({
            "code": "provider_error",
            "retryable": self.retryable,
            "provider": self.model.as_ref().map(|model| &model.provider),
            "model": self.model.as_ref().map(|model| &model.id),
            "httpStatus": self.status,
        })
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(f, "{model}: {}", self.what),
            None => write!(f, "compaction.remoteEndpoint: {}", self.what),
        }
    }
}

/// The advice for a person about the service at `compaction.remoteEndpoint`.
fn advice(kind: TroubleKind) -> &'static str {
    use TroubleKind::{Denied, Endless, Garbled, NotFound, OutOfTime, Stalled, Unreachable, Untrusted};
    match kind {
        Stalled => "see whether the service still works, or raise compaction.stallSeconds",
        OutOfTime => "allow it more time",
        Denied => "the service must take requests without a key, or with one in its URL",
        NotFound | Garbled | Endless => "check the URL: another service may answer there",
        Unreachable => "check the URL, and that the service runs",
        Untrusted => "check the URL; a proxy's own certificate can be trusted by SSL_CERT_FILE",
        _ => "see what the service says; set compaction.remoteEnabled to false to go without it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::candidates::Way,
        provider::overflow::{Overflow, Reservation},
    };

    fn failed(kind: TroubleKind, said: &str) -> Failed {
        let model = ModelRef::parse("some/model").expect("a model");
        let candidate = Candidate { model, window: 1_000, output: None, thinks: false, way: Way::Client };
        Failed::new(&candidate, &Trouble::new(kind, said))
    }

    #[test]
    fn each_trouble_says_what_to_do_next() {
        let row = |kind: TroubleKind, next: Next| assert_eq!(failed(kind, "").next, next, "{kind:?}");
        let overflow = |limit| TroubleKind::Overflow(Overflow { limit, ..Overflow::default() });
        row(overflow(Some(8_192)), Next::Shorten { window: Some(8_192) });
        row(overflow(None), Next::Shorten { window: None });
        let reservation = Reservation::of(8_192, 4_000, 8_192).expect("a reservation");
        row(TroubleKind::Reserved(reservation), Next::Shorten { window: Some(8_192) });
        row(TroubleKind::TooLarge, Next::Shorten { window: None });
        row(TroubleKind::OutOfTime, Next::Stop);
        row(TroubleKind::Denied, Next::OtherModel);
        row(TroubleKind::Throttled, Next::OtherModel);
        row(TroubleKind::TooMany, Next::Enough);
        row(TroubleKind::NoTokens, Next::Enough);
    }

    #[test]
    fn a_failure_names_model_reason_and_advice_and_no_secret() {
        let failed = failed(TroubleKind::Denied, "wrong key sk-ant-api03-0123456789abcdefghijABCDEFGHIJ");
        let text = failed.to_string();
        assert!(text.starts_with("some/model: the key is missing or not accepted: wrong key [REDACTED:"), "{text}");
        assert!(
            text.ends_with("; check the key in the variable that apiKeyEnv names, or the command in apiKeyCommand")
        );
    }
}
