//! The golden dialogues under `protocol/transcripts/`, as they are shipped. A test plays each one against the real
//! daemon, so they are true; `protocol/README.md` says how to read them.

/// A dialogue.
pub struct Transcript {
    /// Of its file, without `.jsonl`.
    pub name: &'static str,
    /// Its lines.
    pub text: &'static str,
}

macro_rules! transcripts {
    ($($name:literal,)+) => {
        /// All of them, the first to read first.
        pub const ALL: &[Transcript] = &[$(Transcript {
            name: $name,
            text: include_str!(concat!("../../protocol/transcripts/", $name, ".jsonl")),
        }),+];
    };
}

transcripts! {
    "handshake",
    "first-session",
    "compaction",
    "compaction-wait",
    "llm-complete",
    "dry-run",
    "cancel",
    "cancel-request",
    "errors",
    "batch",
    "old-file",
    "undo-and-pins",
    "browsing",
    "missed-events",
}
