//! Whether a provider evidently read nothing of a failed request.
//!
//! A provider may bill the input of a request that ends in an error. Only some failures show that no model read it.

use super::{Reach, Trouble, TroubleKind};

/// Whether a model read the input of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Evidently not. Nothing can be billed.
    Unread,
    /// It may have been read, and billed.
    MaybeRead,
}

impl Trouble {
    /// Whether a model read the input of the request.
    ///
    /// A refusal for its length, its bytes, its key, its model or the rate of requests comes before a model. Any other error
    /// status may come after it: 500, 502 and 504 of a provider or a proxy whose model failed, and 400 where the answer of the
    /// model was invalid (Groq's `tool_use_failed`).
    #[must_use]
    pub fn input(&self) -> Input {
        use TroubleKind as Kind;
        let is_refused_before_a_model = || match self.kind {
            Kind::Overflow(_)
            | Kind::Reserved(_)
            | Kind::TooLarge
            | Kind::OutOfQuota
            | Kind::Denied
            | Kind::NotFound => true,
            // 503 is the load of a provider where the text says so, and any failure of a proxy.
            Kind::Throttled => {
                let is_failure = self.status.is_some_and(|status| status >= 500 && status != OVERLOADED);
                !is_failure || self.said.to_ascii_lowercase().contains("overloaded")
            }
            // A page of a proxy, or a redirect.
            Kind::Garbled => matches!(self.status, Some(300..=399 | 401 | 403 | 407)),
            Kind::Broken
            | Kind::Unreachable
            | Kind::Untrusted
            | Kind::Stalled
            | Kind::Late
            | Kind::OutOfTime
            | Kind::CutOff
            | Kind::Endless
            | Kind::TooMany
            | Kind::NoTokens
            | Kind::Unwilling
            | Kind::Refused => false,
        };
        match self.reach {
            Reach::Unsent => Input::Unread,
            Reach::Refused if is_refused_before_a_model() => Input::Unread,
            Reach::Refused | Reach::Sent => Input::MaybeRead,
        }
    }
}

/// The status of a provider that takes no requests for now because of its load, as Anthropic documents it.
const OVERLOADED: u16 = 529;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::overflow::Overflow;

    /// An error response.
    fn refused(status: u16, body: &str) -> Trouble {
        Trouble::of(Some(status), body, None).reaching(Reach::Refused)
    }

    #[test]
    fn a_failure_shows_whether_a_model_may_have_read_the_input() {
        use Input::{MaybeRead, Unread};
        let overflow = r#"{"error": {"message": "prompt is too long: 250000 tokens > 200000 maximum"}}"#;
        let failed_call = r#"{"error": {"code": "tool_use_failed", "failed_generation": "<function=read>"}}"#;
        let google = r#"{"error": {"code": 503, "message": "The model is overloaded. Please try again later."}}"#;
        for (status, body, expected) in [
            (401, "", Unread),
            (403, "", Unread),
            (404, "", Unread),
            (402, "", Unread),
            (413, "", Unread),
            (429, "", Unread),
            (529, "", Unread),
            (503, google, Unread),
            (400, overflow, Unread),
            (307, "", Unread),
            (401, "<html>", Unread),
            (400, failed_call, MaybeRead),
            (400, "no", MaybeRead),
            (408, "", MaybeRead),
            (500, "", MaybeRead),
            (500, "An error occurred. Please try again in 30 seconds.", MaybeRead),
            (502, "<!DOCTYPE html>", MaybeRead),
            (503, "", MaybeRead),
            (504, "", MaybeRead),
        ] {
            let trouble = refused(status, body);
            assert_eq!(trouble.input(), expected, "{status} {body}: {:?}", trouble.kind);
            assert_eq!(trouble.clone().reaching(Reach::Sent).input(), MaybeRead, "{status} {body} inside an answer");
            assert_eq!(trouble.reaching(Reach::Unsent).input(), Unread, "{status} {body} unsent");
        }
        let sent = [
            TroubleKind::Overflow(Overflow::default()),
            TroubleKind::Throttled,
            TroubleKind::Broken,
            TroubleKind::Stalled,
            TroubleKind::Late,
            TroubleKind::OutOfTime,
            TroubleKind::CutOff,
            TroubleKind::Endless,
            TroubleKind::Garbled,
            TroubleKind::Unwilling,
            TroubleKind::Refused,
        ];
        for kind in sent {
            assert_eq!(Trouble::new(kind, "").input(), MaybeRead, "{kind:?} without a refusal");
        }
    }
}
