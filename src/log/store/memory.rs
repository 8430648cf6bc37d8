//! A store in memory, for tests.
