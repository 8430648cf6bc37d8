//! A change of the model, or of its window, that is not decided about.

use crate::{
    ids::{ModelRef, OperationId},
    protocol::events::Reason,
    session::{kind::OperationKind, state::ModelInForce},
};

/// A change of the model, or of its window.
pub(in crate::session::core) struct Switched {
    /// The model before, if it is another one.
    pub former: Option<ModelRef>,
}

/// The change that is not decided about.
#[derive(Default)]
pub(in crate::session::core) struct Switches(Option<Switched>);

impl Switches {
    /// Notes the model in force before and after an edit. Returns whether it has changed.
    pub fn note(&mut self, before: &ModelInForce, now: &ModelInForce) -> bool {
        let has_changed = before != now;
        if has_changed {
            let former = before.model.clone().filter(|_| before.model != now.model);
            self.0 = Some(Switched { former });
        }
        has_changed
    }

    /// Whether a change waits for a decision.
    pub fn is_pending(&self) -> bool {
        self.0.is_some()
    }

    /// Whether requests for a context to send wait until the conversation fits the new model. `running`: the operation that
    /// runs.
    pub fn hold_contexts(&self, running: Option<&OperationKind>) -> bool {
        self.is_pending() || running == Some(&OperationKind::Compaction(Reason::ModelSwitch))
    }

    /// Takes the change.
    pub fn take(&mut self) -> Option<Switched> {
        self.0.take()
    }

    /// Forgets the change.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Forgets the change, if a cancel ends all work.
    pub fn cancelled(&mut self, which: Option<&OperationId>) {
        if which.is_none() {
            self.forget();
        }
    }
}
