//! conservation
