//! Whether a model compacts on demand, by its provider. Each provider is asked once.

use super::{clock::Clock, routes::Provider};
use crate::provider::{Endpoint, Trouble, anthropic::support};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The answers of providers, by their addresses.
#[derive(Default)]
pub struct Supports {
    lists: Mutex<HashMap<String, Known>>,
    /// Models that refused a compaction on demand, by address and id.
    refusals: Mutex<HashSet<(String, String)>>,
}

#[derive(Clone)]
struct Known {
    since: Instant,
    answer: Result<Arc<support::Compacting>, String>,
}

/// The time after which a provider that gave no answer is asked again. A decision: an outage is mostly over by then.
const AGAIN: Duration = Duration::from_secs(600);

impl Supports {
    /// Whether a model at this address compacts on demand.
    ///
    /// # Errors
    /// The reason for which its provider gave no answer.
    pub async fn compacts(
        &self,
        provider: &dyn Provider,
        clock: &dyn Clock,
        endpoint: &Endpoint,
        model: &str,
        stall: Duration,
    ) -> Result<bool, String> {
        let known = self.known(endpoint).filter(|known| {
            let age = clock.now().saturating_duration_since(known.since);
            known.answer.is_ok() || age < AGAIN
        });
        let answer = match known {
            Some(Known { answer, .. }) => answer,
            None => {
                let asked = provider.get(endpoint, support::PATH, support::headers(), support::LARGEST, stall).await;
                let answer = asked.and_then(|list| support::Compacting::of(&list)).map(Arc::new);
                let answer = answer.map_err(|trouble: Trouble| trouble.to_string());
                self.learn(endpoint, Known { since: clock.now(), answer: answer.clone() });
                answer
            }
        };
        answer.map(|compacting| compacting.has(model))
    }

    /// Notes that a model at this address refuses compactions on demand.
    pub fn refuse(&self, endpoint: &Endpoint, model: &str) {
        let refused = (endpoint.base_url.clone(), model.to_owned());
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).insert(refused);
    }

    /// Whether a model at this address refused a compaction on demand.
    #[must_use]
    pub fn refuses(&self, endpoint: &Endpoint, model: &str) -> bool {
        let refused = (endpoint.base_url.clone(), model.to_owned());
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).contains(&refused)
    }

    fn known(&self, endpoint: &Endpoint) -> Option<Known> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).get(&endpoint.base_url).cloned()
    }

    fn learn(&self, endpoint: &Endpoint, known: Known) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).insert(endpoint.base_url.clone(), known);
    }
}
