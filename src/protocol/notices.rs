//! Notices: messages for a person, with codes for programs.

use schemars::JsonSchema;
use serde::Serialize;

/// The subject of a notice, for programs. The names are stable. A later version may add some, so a reader takes a notice with another code
/// for one that it has no action for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeCode {
    /// Reported token counts cannot be true. The estimate counts in their place.
    UsageNotBelieved,
    /// A provider taught a window that is smaller than the one that the host, a setting or the catalog names.
    WindowLearned,
    /// A refusal states a limit below a request that the same server took. The limit does not count.
    WindowDoubted,
    /// The file of learned windows cannot be read, or cannot be written. The windows of earlier runs are unknown, or those of this
    /// run are forgotten at its end.
    WindowsNotKept,
    /// The prompt cache is cold and the context is large: the next request pays for all of it.
    ColdResume,
    /// The output limit of the next requests is lower, because a provider refused a larger one.
    OutputLimited,
    /// The provider seems to have cut the prompt.
    PromptCut,
    /// An answer reached the output limit. Its text stays in the context.
    AnswerCutOff,
    /// A compaction cut messages that no model has read, because they have no room in the window. The session keeps them whole.
    MessagesShortened,
    /// A summary lost details: it is one of many, or no model wrote it.
    QualityMayDegrade,
    /// Summaries ahead of the threshold pause, because some came to nothing.
    SpeculationRests,
    /// Automatic compaction, which rested after an undo, acts again.
    AutoCompactionResumes,
    /// Automatic maintenance spent the tokens of an hour. Its summaries are extracted.
    TokenCeilingReached,
    /// The strategy is `handoff`, and automatic compaction summarizes in place.
    HandoffNotAutomatic,
    /// A handoff became a compaction, because no model wrote a document.
    HandoffCompacted,
    /// No model wrote the document of a handoff. It is extracted.
    DocumentExtracted,
    /// A handoff failed.
    HandoffFailed,
    /// A navigation failed.
    NavigationFailed,
    /// No model wrote the summary of a branch. It is extracted.
    BranchSummaryExtracted,
    /// The summary of a branch has no room in the window.
    BranchNotSummarized,
    /// A reference failed or was cancelled.
    ReferenceFailed,
    /// No model wrote the extract of a reference. It consists of passages.
    ReferenceExtracted,
    /// An operation of another version was interrupted.
    OperationInterrupted,
    /// Another program wrote to the session at the same time, and some messages are a branch of their own.
    SessionBranched,
    /// The file of the session was changed and cannot be read on.
    FileChanged,
    /// The costs of model requests could not be stored.
    CostsNotRecorded,
    /// The start or the end of the wait for the end of a turn could not be stored.
    AfterTurnNotRecorded,
    /// Smaller messages could not be stored, so the context is as large as before.
    ContextNotReduced,
    /// The removal of a failed answer could not be stored.
    FailedAnswerKept,
    /// The store does not answer. Appends are refused until it does.
    StoreAway,
    /// The store answers again.
    StoreBack,
    /// New settings contradict those of the session.
    SettingsConflict,
    /// A settings file cannot be read.
    SettingsBroken,
    /// A setting has a wrong value.
    SettingInvalid,
    /// A setting is out of its range.
    SettingClamped,
    /// A setting is not known.
    SettingUnknown,
    /// A project sets what only a trusted project may set.
    SettingUntrusted,
    /// A prompt file cannot be used.
    PromptInvalid,
    /// A prompt file has a name that no prompt has.
    PromptUnknown,
    /// A project has prompts, which only a trusted project may have.
    PromptUntrusted,
    /// A part of `capabilities.hooks` is wrong.
    HooksInvalid,
    /// A request had params that its method does not know.
    ParamsIgnored,
    /// Notifications of the client were dropped.
    NotificationsDropped,
    /// The recording of the connection has ended.
    RecordingEnded,
    /// The trace of the connection has ended.
    TraceEnded,
}

/// A notice of severity `warning`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Its subject, for programs.
    pub code: NoticeCode,
    /// Message in one line.
    pub title: &'static str,
    /// Further details.
    pub detail: String,
}

impl Warning {
    /// A warning.
    #[must_use]
    pub fn new(code: NoticeCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self { code, title, detail: detail.into() }
    }
}
