//! Faults that tests plant into a session, to see that the simulator finds them. A build without tests has none.
//!
//! The world of the simulator plants those that are seen in inputs and effects (`simulator/world/tampering.rs`). The others are
//! planted where a session decides.

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A summary that was made ahead is spliced in though what it covers was changed.
    StaleSpliced,
    /// A summary that was made ahead is spliced in before the context is over its threshold.
    SplicedEarly,
    /// The usage is sent when a summary was made ahead.
    AheadAnnounced,
    /// An append is announced before it is answered.
    EventBeforeAnswer,
    /// Entries are announced before their write.
    AnnouncedBeforeWrite,
    /// The first entry of an append is not announced.
    NotAnnounced,
    /// Written entries are not taken into the path.
    ForgottenEntry,
    /// Pipelined appends are answered in reverse.
    AppendsReversed,
    /// An append with `expectedLeafId` is written in any case.
    ExpectedLeafIgnored,
    /// A request that writes is not answered.
    NeverAnswered,
    /// A request is answered twice.
    AnsweredTwice,
    /// An operation has no end event.
    LostEnd,
    /// The operations of a process that died have no end events.
    LostEndOfCrash,
    /// An operation has two end events.
    SecondEnd,
    /// The result of a cancelled draft is written.
    LateResult,
    /// A retry has no end event.
    LostRetryEnd,
    /// The job of an ended operation goes on.
    JobGoesOn,
    /// A start is not in the lock.
    StartNotRecorded,
    /// The starts of hooks and retries are not in the lock.
    InsideNotRecorded,
    /// The hooks and retries of a process that died have no end events.
    LostInsideOfCrash,
    /// The lock lists an operation that has ended.
    RecordStays,
    /// The status is published after the start event.
    StatusAfterStart,
    /// The status is published after the end event.
    StatusAfterEnd,
    /// `status_changed` names an operation that its start introduces.
    NamedTooEarly,
    /// `settled` is sent before `status_changed`.
    SettledEarly,
    /// `settled` is sent before work that the session starts without input.
    SettledBeforeWork,
    /// `settled` is sent twice.
    SettledTwice,
    /// Waiting requests are answered before the end event.
    AnsweredBeforeEnd,
    /// A compaction ends without `usage_updated`.
    NoUsageBeforeEnd,
    /// A cancel waits for its turn in the queue.
    CancelQueues,
    /// A cancel does not name what it ends.
    CancelNamesNothing,
    /// A context that waits is answered during a compaction.
    ContextNotHeld,
    /// A request over the window is answered.
    OverWindow,
    /// A compaction that `next` names does not start.
    NextNotStarted,
    /// A compaction is due at any size.
    AlwaysDue,
    /// Cancelled requests are remembered for ever.
    CancelledRemembered,
    /// The last cost of a compaction is not written.
    CostDropped,
    /// A compaction is written though its path has changed.
    ChangedPathCovered,
    /// An edit that rewrites the context is written while an operation runs.
    BusyIgnored,
    /// A cancel does not answer the contexts that wait.
    HeldStays,
    /// A close waits for the operation that runs.
    CloseWaits,
    /// An append that was cancelled while it waited is written.
    CancelledAppendWritten,
    /// An edit that was cancelled while it waited is written.
    CancelledEditWritten,
    /// A context that was cancelled while it waited is answered.
    CancelledContextAnswered,
    /// An append is not followed by `usage_updated`.
    UsageNotSent,
    /// A session goes on without its log.
    LostLogGoesOn,
    /// The plan of a cancelled request goes on.
    JobOfUnstarted,
    /// A compaction with `expectedLeafId` begins in any case.
    StaleCompacted,
    /// A recovery leaves its answer in the context.
    AnswerStays,
    /// A recovery knows of no attempt before it.
    AttemptsForgotten,
    /// A failure is recovered from although it is older than a compaction.
    StaleForgotten,
    /// A recovery compacts although automatic maintenance is off.
    OffForgotten,
    /// A larger model is chosen for any client.
    SwitchAssumed,
    /// A context is answered right after a failed recovery.
    FailureForgotten,
    /// A recovery that changes nothing recovers also where the context is over the window.
    RoomAssumed,
    /// A rate limit is recovered from.
    RateLimitRecovered,
    /// A compaction that did not complete is repeated at once.
    RestForgotten,
    /// The end of a recovery does not say that the turn is to be repeated.
    RetryNotSaid,
    /// A compaction after the turn starts after any message.
    TurnAssumed,
    /// A compaction after the turn never starts.
    LaterForgotten,
    /// The limits that a client states are not stored.
    LimitsForgotten,
    /// A context allows an answer of any length.
    OutputUnlimited,
    /// Idle maintenance begins while a tool call has no result.
    IdleCallIgnored,
    /// Idle maintenance begins while a message waits for its answer.
    IdleMessageIgnored,
    /// Idle maintenance gives way to nothing.
    IdleStays,
    /// Idle maintenance begins without its turn among the sessions.
    IdleTurnAssumed,
    /// A session keeps its turn for idle maintenance.
    IdleTurnKept,
    /// Automatic maintenance has any number of tokens.
    CeilingForgotten,
    /// A hook that is asked when its operation ends has no end event.
    LostHookEnd,
    /// `session_compacting` is asked although it is not registered.
    HookAssumed,
    /// A hook that failed counts as one that changes nothing.
    HookFailureHidden,
    /// A hook has ten times the time of its registration.
    HookDeadlineStretched,
    /// A compaction that a hook cancels counts as one with nothing to do.
    HookCancelSkips,
    /// A summary of a hook counts as an extracted one.
    HookSummaryRenamed,
    /// A hook may supply data under our key.
    HookKeyAllowed,
    /// Data of a hook is not stored.
    HookDataDropped,
    /// A summary is made ahead although a hook is registered.
    AheadOfHooks,
    /// `tree_changed` names the leaf before as the leaf now.
    LeafMisnamed,
    /// The summary of a branch stands on that branch.
    SummaryOnBranch,
    /// Maintenance plans as if a request had named the size of the tail.
    TailNamed,
    /// A navigation leaves out our own lines behind its target.
    StateForgotten,
    /// An answer that was delivered leaves the context.
    DeliveredLeaves,
    /// A window is learned from any report.
    ReportLearned,
    /// A context over the threshold is refused though maintenance would make it fit.
    OverflowAssumed,
    /// The context counts as half as large as it is.
    SizeHalved,
    /// The tokens of summaries ahead that came to nothing are not counted.
    UnusedForgotten,
    /// The requests of summaries ahead that failed and that their providers may have read are not counted.
    AtStakeForgotten,
    /// The cancel of a compaction after the turn is answered before its entry is on disk.
    CancelNotWritten,
}

#[cfg(not(any(test, feature = "simulator")))]
mod switch {
    use super::Fault;

    /// Whether a fault is planted.
    #[must_use]
    pub const fn planted(_: Fault) -> bool {
        false
    }
}

#[cfg(any(test, feature = "simulator"))]
mod switch {
    use super::Fault;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// The planted fault.
    #[must_use]
    pub fn current() -> Option<Fault> {
        PLANTED.get()
    }

    /// Whether a fault is planted.
    #[must_use]
    pub fn planted(fault: Fault) -> bool {
        current() == Some(fault)
    }

    /// A planted fault. Dropping it takes the fault out.
    #[derive(Debug)]
    pub struct Planted(());

    /// Plants a fault into the sessions of this thread.
    #[must_use]
    pub fn plant(fault: Fault) -> Planted {
        PLANTED.set(Some(fault));
        Planted(())
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.set(None);
        }
    }
}

pub use switch::*;
