//! The largest requests that servers took. A smaller window of the same model at the same server is wrong.

use super::{
    Change,
    row::{Accepted, Address, Server},
};
use crate::ids::ModelRef;
use std::sync::Arc;

/// Most servers of which a size is kept. The one that took a larger request longest ago goes first.
const MOST: usize = 256;

/// The largest request of each server, the one that grew last at the end. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AcceptedSizes(Arc<Vec<Accepted>>);

impl AcceptedSizes {
    /// The largest request of a model that a server took, in tokens.
    pub fn largest(&self, model: &ModelRef, address: &Address) -> Option<u64> {
        let of_server = self.0.iter().filter(|row| row.model == *model && row.base_url.may_be(address));
        of_server.map(|row| row.tokens).max()
    }

    /// A server took a request of so many tokens. Returns true if none was larger.
    pub fn grow(&mut self, server: &Server, tokens: u64) -> bool {
        if self.largest(&server.model, &server.address).is_some_and(|largest| largest >= tokens) {
            return false;
        }
        let rows = Arc::make_mut(&mut self.0);
        rows.retain(|row| row.model != server.model || row.base_url != server.address);
        rows.push(Accepted { model: server.model.clone(), base_url: server.address.clone(), tokens });
        let too_many = rows.len().saturating_sub(MOST);
        rows.drain(..too_many);
        true
    }

    /// Forgets the sizes of a model that are larger than a window of this address.
    pub fn bound(&mut self, model: &ModelRef, address: &Address, window: u64) {
        self.retain(|row| row.model != *model || !row.base_url.may_be(address) || row.tokens <= window);
    }

    /// Forgets the sizes of a model.
    pub fn forget(&mut self, model: &ModelRef) {
        self.retain(|row| row.model != *model);
    }

    fn retain(&mut self, stays: impl Fn(&Accepted) -> bool) {
        if !self.0.iter().all(&stays) {
            Arc::make_mut(&mut self.0).retain(stays);
        }
    }

    /// Forgets the sizes that others have as well.
    pub fn leave_out(&mut self, others: &Self) {
        self.retain(|row| !others.0.contains(row));
    }

    /// The changes that make these sizes.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        let change = |row: &Accepted| {
            let server = Server { model: row.model.clone(), address: row.base_url.clone() };
            Change::Accepted(server, row.tokens)
        };
        self.0.iter().map(change)
    }

    /// All sizes, in their order.
    pub fn all(&self) -> &[Accepted] {
        &self.0
    }
}

impl FromIterator<Accepted> for AcceptedSizes {
    fn from_iter<T: IntoIterator<Item = Accepted>>(rows: T) -> Self {
        let mut sizes = Self::default();
        for Accepted { model, base_url: address, tokens } in rows {
            sizes.grow(&Server { model, address }, tokens);
        }
        sizes
    }
}
