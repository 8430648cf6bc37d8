//! The golden dialogues under `protocol/transcripts/`. A test plays each one against the real daemon.
//! `protocol/README.md` describes their form.

/// A dialogue.
pub struct Transcript {
    /// File name without `.jsonl`.
    pub name: &'static str,
    /// Lines of the dialogue.
    pub text: &'static str,
}

macro_rules! transcripts {
    ($($name:literal,)+) => {
        /// All dialogues, in reading order.
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
    "hooks",
    "handoff",
    "dry-run",
    "cancel",
    "cancel-request",
    "errors",
    "batch",
    "old-file",
    "undo-and-pins",
    "browsing",
    "navigate",
    "fork",
    "missed-events",
}
