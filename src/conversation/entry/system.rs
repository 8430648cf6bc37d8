//! Stamps from the clock and the randomness of the system.

#![expect(clippy::disallowed_methods, reason = "a random seed and the time of the system")]

use super::stamps::Stamps;
use crate::clock;

impl Stamps {
    /// A source with a random seed, at the time of the system's clock.
    #[must_use]
    pub fn system() -> Self {
        // Both halves of a version 4 UUID carry fixed bits in different places; folded, none is fixed.
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        Self::seeded(high ^ low.rotate_left(17), clock::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_source_of_the_system_has_ids_of_its_own() {
        let before = clock::now();
        let ids: HashSet<_> = (0..100).map(|_| Stamps::system().stamp().id).collect();
        assert_eq!(ids.len(), 100);
        assert!(Stamps::system().now() >= before);
    }
}
