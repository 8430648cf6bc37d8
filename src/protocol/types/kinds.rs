//! Names of operations and of things, as schemas. The session names them by texts, also those that another version wrote.

use schemars::JsonSchema;

/// Kinds of operations. A later version may add some.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum OperationName {
    /// The older part of the context becomes a summary.
    Compaction,
    /// A failed answer is removed, and the turn gets a context to be repeated with.
    Recovery,
    /// Maintenance of a session whose user is away.
    Idle,
    /// A summary ahead of the threshold. It has no events.
    Speculation,
    /// The leaf moves without a summary.
    Navigation,
    /// The leaf moves, and the branch that is left is summarized.
    BranchSummary,
    /// Knowledge of another session is extracted.
    Reference,
    /// A new session goes on.
    Handoff,
    /// A turn of the model.
    Turn,
}

/// Kinds of things that a request names. A later version may add some.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum ThingName {
    /// A session.
    Session,
    /// An entry.
    Entry,
    /// A compaction or a reset that could be undone.
    Compaction,
    /// A pin.
    Pin,
}
