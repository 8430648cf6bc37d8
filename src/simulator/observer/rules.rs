//! The rules of the observer.

pub mod spending;
pub mod trust;

/// The rules. Each fails for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A request is answered at most once.
    AnsweredOnce,
    /// A request is answered before the session rests.
    Answered,
    /// No answer and no end reports a defect.
    NoDefect,
    /// An answer introduces an id before an event names it.
    AnswerIntroduces,
    /// A start event has a request that asked for it, or an answer whose `next` names it.
    StartWasAsked,
    /// An operation that `next` names runs when the input is done.
    NextRuns,
    /// An operation that `next` names begins over the threshold, and only with automatic compaction.
    NextIsDue,
    /// A context that is asked for with `wait` or in a provider's format fits a known window.
    RequestFits,
    /// An answer that waits for the end of an operation follows the end and agrees with it.
    WaitingAnswer,
    /// A context that waits is answered when no operation runs, and then at once.
    HeldContext,
    /// An answer follows the answers of the appends that were sent before its request.
    AnswersSeeAppends,
    /// `session/status` agrees with the published status and the open operations.
    StatusAnswer,
    /// A request that rewrites the context is refused while an operation works on it.
    RefusedWhileBusy,
    /// A request that is cancelled while it waits for its turn is not done.
    CancelledAnswer,
    /// A session that is closed or stopped ends what runs.
    EndsWhatRuns,
    /// A session whose log is lost ends its operations and itself.
    LostLogEnds,
    /// Pipelined appends are written in their order.
    AppendOrder,
    /// An append with `expectedLeafId` is written only while nothing has changed after that entry.
    ExpectedLeaf,
    /// The entry of an appended message has its content.
    MessageKept,
    /// An entry that an answer names is durable.
    AnsweredIsDurable,
    /// An announced entry is durable, with the same line.
    AnnouncedIsDurable,
    /// An entry is announced once in a life of the session.
    AnnouncedOnce,
    /// Entries are announced in the order of the file, and none is left out.
    AnnouncedInOrder,
    /// An entry follows the one before it.
    Chained,
    /// Durable lines stay as they are.
    BytesStay,
    /// A start has one start event.
    StartedOnce,
    /// An end follows its start, once.
    EndedOnce,
    /// A started operation ends before the session rests; after a crash, in the next life.
    EveryStartEnds,
    /// Inner operations end before outer ones.
    InnerEndsFirst,
    /// One compaction runs at a time.
    OneCompaction,
    /// An event belongs to an open operation.
    NothingAfterTheEnd,
    /// A retry has one start and one end, inside its operation.
    RetriesEnd,
    /// A start is in the lock before it is sent.
    StartIsRecorded,
    /// The lock lists no operation at rest.
    RecordEmpties,
    /// The job of an operation that ended is stopped.
    JobsStop,
    /// `entry_appended`, `usage_updated`, `compaction_end`, in this order.
    EndFollowsEntry,
    /// `entry_appended`, then `usage_updated` with the usage of the answer.
    UsageFollowsEntries,
    /// `status_changed` and the status flip precede the start event.
    StatusBeforeStart,
    /// The status is published before an end event is sent.
    StatusBeforeEnd,
    /// `status_changed` is sent when the status changes, with the published status, and only then.
    StatusChanges,
    /// An end is followed by `status_changed`, notices, `settled` and the waiting answers, in this order.
    OrderAfterEnd,
    /// `settled` is sent once whenever the session turns from busy to idle.
    SettledOnce,
    /// After `settled` nothing starts without a request.
    NothingBehindSettled,
    /// A cancel is answered before the next effect that is not its own.
    CancelWaitsForNothing,
    /// A cancel names each operation that it can end.
    CancelNamesAll,
    /// An operation that a cancel names ends at once, and an operation ends with its request.
    CancelledEnds,
    /// An operation that ends as cancelled was cancelled.
    CancelWasAsked,
    /// A cancelled compaction leaves no entry.
    CancelledWritesNothing,
    /// A context is valid for a provider.
    ContextValid,
    /// The context after a reopening is the one from before.
    ContextSurvives,
    /// The usage after a reopening is the one from before.
    UsageSurvives,
    /// Every message is kept or covered, and the newest message of the user is in the context.
    NoMessageLost,
    /// A message of the user that no model has read is summarized by no compaction that maintenance starts, while it fits.
    UnreadStays,
    /// A removed answer is in no later context.
    RemovedStaysOut,
    /// A recovery starts after the edit that removes its answer.
    RecoveryFollowsEdit,
    /// A recovery answers a request that was too long, or an answer that was cut off.
    RecoveryWasNeeded,
    /// The start and the end of a recovery agree with each other and with its compaction.
    RecoveryAgrees,
    /// Two overflows and three recoveries in a row are the most without progress, over crashes.
    AttemptsAreBounded,
    /// The compaction of a recovery leaves less than was rejected, and at the second attempt at most 70 % of it.
    AttemptShrinks,
    /// A context right after a recovery is not refused.
    RecoveredFits,
    /// A context right after a failed recovery is refused.
    FailedRefuses,
    /// With automatic maintenance off no automatic compaction starts.
    OffIsOff,
    /// A larger model has a larger, known window, and the client asks the model that a context names.
    PromotionFits,
    /// A failure that is older than a compaction or another model compacts nothing.
    StaleCompactsNothing,
    /// An automatic compaction that left the context over its threshold is not repeated at once.
    NoLoop,
    /// A pin is in every context once.
    PinsStay,
    /// A compaction applies to a path that only grew since its plan.
    CoveredUnchanged,
    /// One summary is made ahead at a time, and none while an operation runs.
    OneAhead,
    /// A compaction begins with a summary that was ready only where nothing that it covers was changed.
    SplicedUnchanged,
    /// A compaction that begins with a summary from before it is due at its threshold.
    SplicedWhenDue,
    /// A compaction that begins with a summary that was ready covers what that summary was made of, and nothing more.
    SplicedAsDrafted,
    /// No summary is made ahead while the client answers a hook of compactions.
    NoneAheadWithHooks,
    /// A summary that is made ahead changes nothing and has no event before its compaction.
    AheadIsQuiet,
    /// A compaction after the turn is planned after a complete answer without calls.
    AfterTheTurn,
    /// A compaction after the turn starts when the turn is over and nothing else runs.
    LaterStarts,
    /// A window that the client states is the largest that its model has, over crashes, until the client changes it.
    LimitsHold,
    /// The longest answer that a context allows fits the window beside it, and the limit that the client states.
    OutputFits,
    /// A completed compaction fits the window.
    CompactionFits,
    /// A pruning that nobody asked for frees its minimum, and the newest result stays.
    PruningKeepsLimits,
    /// A compaction sends at most 12 requests beyond its planned chunks.
    CallsAreBounded,
    /// Idle maintenance is planned where no tool call waits for its result, and no message for its answer.
    IdleAwaitsNoAnswer,
    /// Idle maintenance ends with the activity that comes while it runs, and nothing in the foreground waits for it.
    IdleGivesWay,
    /// Idle maintenance has its turn among the sessions.
    IdleHasItsTurn,
    /// A session at rest has left its turn.
    IdleLeavesItsTurn,
    /// An automatic compaction asks no model while the tokens of the last hour are at their ceiling.
    BudgetHolds,
    /// A hook starts inside of a compaction and ends once, before its compaction.
    HooksEnd,
    /// A hook is asked where it was registered when the draft began, and after no decision of a hook.
    HooksRegistered,
    /// The outcome of a hook is the one of its answer, or its compaction ends.
    HookOutcome,
    /// An answer to a hook is used until its deadline, and not after it.
    LateHook,
    /// A compaction that a hook cancels ends as cancelled.
    HookCancels,
    /// A compaction with the summary of a hook has that summary.
    HookReplaces,
    /// A compaction has no summary of a hook that is refused.
    RefusedIsNotUsed,
    /// Data of hooks is stored with their compaction, and the next ones carry it on.
    HookDataKept,
    /// `tree_changed` and the answer of a navigation name the leaf of the file.
    LeafIsNamed,
    /// The summary of a branch stands after the target of its navigation.
    SummaryAtTarget,
    /// A leaf that is entered again has the context with which it was left.
    ThereAndBack,
    /// A tool result stands on the branch of its call.
    ResultAtItsCall,
    /// No entry of another branch is in the context.
    OtherBranchesStayOut,
    /// A session is opened again at the leaf of its last line.
    LeafSurvives,
    /// No answer that was delivered leaves the context: not failed, not empty, not cut inside of a call.
    NoDeliveredAnswerLeaves,
    /// A window is learned where a provider meant it: from its refusal, or because it is where its server cuts prompts.
    NoWindowFromALie,
    /// A context is refused for its size only where nothing would make it fit, or the attempts to recover are used up.
    OverflowOnlyWhereNothingFits,
    /// Summaries ahead that came to nothing take at most two windows an hour.
    SpendingIsBounded,
    /// A context fits the window of a provider that tells the truth.
    FitsTheTrueWindow,
    /// Costs of model requests are written.
    CostsKept,
    /// A message that was accepted for a turn is in the conversation once, or waits.
    DeliveredOnce,
    /// No call of a turn is executed twice.
    ToolOnce,
    /// Queues are bounded and empty at rest.
    QueuesBounded,
    /// A learned window and the shared size are sensible.
    SaneNumbers,
    /// The world's own rules: no panic, no work for a log that is out, and an end of all work.
    World,
}
