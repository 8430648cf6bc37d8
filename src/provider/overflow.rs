//! Placeholder.
/// o
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overflow {
    /// l
    pub limit: Option<u64>,
    /// r
    pub requested: Option<u64>,
}
/// m
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// o
    Overflow(Overflow),
    /// t
    Throttled,
    /// q
    OutOfQuota,
    /// p
    PayloadTooLarge,
    /// o
    Other,
}
/// m
#[must_use]
pub fn meaning(_: Option<u16>, _: &str) -> Meaning {
    Meaning::Other
}
