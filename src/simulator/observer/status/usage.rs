//! The usage that clients are sent after the entries of an append.

use super::super::{Rule, Verdict, require};
use crate::{protocol::types::Usage, session::core::Core, wire::outbox::About};
use serde_json::Value;

/// The usage of a life, as clients know it.
#[derive(Debug, Default)]
pub struct UsageSent {
    /// The usage that was sent last, or the one of the opening.
    sent: Option<Value>,
    /// The usage of the answer of an append of this input.
    answered: Option<Value>,
    /// Whether the usage was sent after that answer.
    follows: bool,
}

impl UsageSent {
    /// An append was answered.
    pub fn answered(&mut self, result: &Value) {
        self.answered = Some(result["usage"].clone()).filter(|usage| !usage.is_null());
        self.follows = false;
    }

    /// An entry is announced.
    pub fn announced(&self, about: &About) -> Verdict {
        let late = about.operation.is_none() && self.answered.is_some() && self.follows;
        require(!late, Rule::UsageFollowsEntries, || format!("the usage was sent before {:?}", about.entry))
    }

    /// `usage_updated` is sent.
    pub fn sent(&mut self, usage: &Usage) {
        self.sent = serde_json::to_value(usage).ok();
        self.follows = true;
    }

    /// An input was handled: the usage of its last append was sent after the entries, where it is another one.
    pub fn after_input(&mut self, core: &Core) -> Verdict {
        let answered = self.answered.take();
        match (&self.sent, answered) {
            // The usage of a session that sleeps is not known.
            (None, _) if core.state().history().is_asleep() => {}
            (None, _) => self.sent = serde_json::to_value(core.state().usage()).ok(),
            (Some(sent), Some(answered)) => require(*sent == answered, Rule::UsageFollowsEntries, || {
                format!("an append is answered with {answered}, and {sent} was sent last")
            })?,
            (Some(_), None) => {}
        }
        Ok(())
    }
}
