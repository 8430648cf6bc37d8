//! Addresses whose servers do not know the field that says what happens to bound thinking. Requests there go without thinking.

use super::request::Request;
use crate::provider::{self, Endpoint, Trouble, anthropic};
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The addresses, as far as requests showed them.
#[derive(Default)]
pub struct PlainAddresses(Mutex<HashSet<String>>);

impl PlainAddresses {
    /// Learns from a failed request. True where the same request may be answered without thinking.
    pub fn learn(&self, request: &Request, trouble: &Trouble) -> bool {
        let Some(endpoint) = request.candidate.way.endpoint() else { return false };
        let is_about = trouble.status == Some(400) && anthropic::is_about_binding(&trouble.said);
        let learns = is_about && request.content.has_bound_thinking();
        if learns {
            self.addresses().insert(endpoint.base_url.clone());
        }
        learns
    }

    /// The request as the server at this address takes it.
    #[must_use]
    pub fn suited(&self, request: &Request, endpoint: &Endpoint) -> provider::Request {
        let mut suited = request.for_provider();
        suited.has_bound_thinking &= !self.addresses().contains(&endpoint.base_url);
        suited
    }

    fn addresses(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
