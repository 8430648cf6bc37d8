//! Maintenance after a transfer. Entries that came while it ran may have crossed the threshold. No answer named maintenance
//! then, because none could start.

use crate::session::{
    core::{Core, standing::Standing},
    kind::{OperationKind, Product},
    operations::End,
};

impl Core {
    /// A transfer ends. After one that left the conversation to a new session nothing is done here, and nothing after a move:
    /// a client that looks at another branch must find it as it was.
    pub(in crate::session::core) fn transfer_ends(&mut self, kind: &OperationKind, end: &End<Product>) {
        if let Some(product) = end.product().filter(|product| product.replaces_session()) {
            self.upkeep.relays.successor = product.new_session().cloned();
        }
        let is_left = end.product().is_some_and(|product| product.new_session().is_some() || product.is_move());
        if matches!(kind, OperationKind::Transfer(_)) && self.upkeep.relays.around().is_none() && !is_left {
            self.upkeep.behind_transfer = Standing::of(self).decision().is_due();
        }
    }

    /// Starts the maintenance after a transfer, if it is still due.
    pub(in crate::session::core) fn decide_behind_transfer(&mut self) {
        self.upkeep.behind_transfer = false;
        if Standing::of(self).maintenance_is_due() {
            self.maintain();
        } else {
            self.answer_held();
        }
    }
}
