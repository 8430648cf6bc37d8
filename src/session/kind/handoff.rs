//! Handoffs: their events and their answers.

use super::Product;
use crate::{
    ids::{OperationId, SessionId},
    protocol::{
        errors::Failure,
        events::{Event, Replacement},
        notices::{NoticeCode, Warning},
        types::{HandoffAnswer, HandoffParams},
    },
    redact::{Clean, Secrets},
    session::{jobs::transfer::DocumentOrigin, operations::End},
};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

/// A handoff to a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// The goal of the new session. A lock file does not name it.
    pub goal: Option<Clean>,
    /// Whether only the document is wanted.
    pub is_draft: bool,
    /// The document, once it is made. It outlives a failure after it.
    pub document: Arc<OnceLock<Clean>>,
}

/// The result of a handoff.
#[derive(Debug)]
pub struct HandedOff {
    /// The document.
    pub document: Clean,
    /// Its origin.
    pub origin: DocumentOrigin,
    /// The session that goes on; none for a draft.
    pub session: Option<SessionId>,
    /// The file with the document, if one was wanted.
    pub saved: Option<PathBuf>,
}

impl Handoff {
    /// The handoff that a request asks for.
    #[must_use]
    pub fn of(params: &HandoffParams, secrets: Secrets) -> Self {
        let goal = said(params.goal.as_deref(), secrets);
        Self { goal, is_draft: params.dry_run == Some(true), document: Arc::default() }
    }

    pub(super) fn start(&self) -> Event {
        Event::HandoffStart { goal: self.goal.as_ref().map(Clean::to_string) }
    }

    /// The error of a handoff for a person.
    pub(super) fn failed(&self, failure: &str) -> String {
        match self.document.get() {
            Some(_) => {
                format!("Handoff failed: {failure}. The document is finished: hand it in with `document` to try again")
            }
            None => format!("Handoff failed: {failure}"),
        }
    }

    pub(super) fn end(&self, made: Option<&HandedOff>, end: &End<Product>) -> Event {
        let failure = end.failure();
        Event::HandoffEnd {
            outcome: end.outcome(),
            new_session_id: made.and_then(|made| made.session.clone()),
            error: failure.map(Failure::data),
            error_message: failure.map(|failure| self.failed(&failure.to_string())),
        }
    }

    /// The event after everything else of it.
    pub(super) fn last(made: Option<&HandedOff>) -> Option<Event> {
        let new_session_id = made?.session.clone()?;
        Some(Event::SessionReplaced { new_session_id, reason: Replacement::Handoff })
    }

    pub(super) fn ended(&self, id: &OperationId, made: Option<&HandedOff>, end: &End<Product>) -> HandoffAnswer {
        if let (true, Some(made)) = (self.is_draft, made) {
            return HandoffAnswer::Draft { document: made.document.to_string() };
        }
        HandoffAnswer::Ended {
            operation_id: id.clone(),
            outcome: end.outcome(),
            new_session_id: made.and_then(|made| made.session.clone()),
            document: made.map(|made| &made.document).or_else(|| self.document.get()).map(Clean::to_string),
            saved_path: made.and_then(|made| made.saved.as_ref()).map(|path| path.display().to_string()),
            error: end.failure().map(Failure::data),
            error_message: end.failure().map(|failure| self.failed(&failure.to_string())),
        }
    }
}

/// A text of a request without blanks around it and without secrets. None where it says nothing.
#[must_use]
pub fn said(text: Option<&str>, secrets: Secrets) -> Option<Clean> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(|text| secrets.clean(text))
}

impl HandedOff {
    /// The notice about a document that no model wrote.
    pub(super) fn notice(&self) -> Option<Warning> {
        let DocumentOrigin::Extracted(why) = &self.origin else { return None };
        let why = match why {
            Some(why) => format!("no model wrote a usable one. The last reason: {why}"),
            None => "no model can be asked. Name one in `models` of the settings, or hand in a document of your own"
                .to_owned(),
        };
        let detail = format!("The document of the handoff was extracted, because {why}. Details may be lost.");
        Some(Warning::new(NoticeCode::DocumentExtracted, "No model could write the document", detail))
    }
}
