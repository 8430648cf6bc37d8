//! The handoffs of a session by its maintenance, as it remembers them.

use crate::{
    ids::SessionId,
    session::{kind::Product, operations::End},
};

/// The handoffs of a session by its maintenance.
#[derive(Default)]
pub(in crate::session::core) struct Relays {
    /// Whether the host has asked for a handoff.
    pub asked: bool,
    /// Whether another session goes on in the place of this one. A host that stays here is not handed off again.
    pub(super) replaced: bool,
    /// The session of the last handoff, which goes on in the place of this one.
    successor: Option<SessionId>,
}

impl Relays {
    /// The reason why no request fits this session, with the session in which the conversation goes on.
    pub fn or_goes_on_elsewhere(&self, why: String) -> String {
        match &self.successor {
            // The text of a recovery that failed may name it.
            Some(new) if !why.contains(new.as_str()) => {
                format!("{why} Session {new} goes on in the place of this one: open it with session/load.")
            }
            _ => why,
        }
    }

    /// A handoff has ended. Where it completed, the conversation goes on in the new session.
    pub fn handed_off(&mut self, end: &End<Product>) {
        if let Some(product) = end.product().filter(|product| product.replaces_session()) {
            self.successor = product.new_session().cloned();
        }
    }

    /// Maintenance that hands off has ended.
    pub fn relayed(&mut self, end: &End<Product>) {
        self.replaced |= matches!(end, End::Completed(_));
    }
}
