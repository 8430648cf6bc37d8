//! Runs jobs beside a session, on tokio.

use crate::{
    ask::{
        Pending,
        pool::{Blocking, Pool},
    },
    compaction::draft::Draft,
    protocol::errors::Failure,
    session::jobs::{
        defect,
        draft::{DraftJob, draft},
        progress::Progress,
        transfer::{TransferJob, TransferText, transfer},
        turn::{self, TurnJob, TurnReport},
    },
};

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A report of a job.
pub enum Report<T> {
    /// A step.
    Step(Progress),
    /// The result.
    Made(Result<T, Failure>),
}

/// Starts a job that makes a draft.
pub fn spawn(job: DraftJob, report: impl Fn(Report<Draft>) + Send + Sync + 'static) {
    tokio::spawn(async move {
        let result = draft(job, &BlockingPool, &|step| report(Report::Step(step))).await;
        report(Report::Made(result));
    });
}

/// Plans on a thread that may block, then makes the draft. No thread waits for a model.
///
/// # Errors
/// As [`draft`], and of the plan.
pub async fn planned_draft<T: Send + 'static>(
    plan: impl FnOnce() -> Result<Planned<T>, Failure> + Send + 'static,
) -> Result<DraftOr<T>, Failure> {
    let planned = tokio::task::spawn_blocking(move || catch_unwind(AssertUnwindSafe(plan))).await;
    match planned.ok().and_then(Result::ok).unwrap_or_else(|| Err(defect()))? {
        Planned::Needless(other) => Ok(DraftOr::Other(other)),
        Planned::Job(job, other) => Ok(DraftOr::Draft(Box::new(draft(*job, &BlockingPool, &|_| ()).await?), other)),
    }
}

/// A plan.
pub enum Planned<T> {
    /// No draft is needed.
    Needless(T),
    /// The draft that is to be made.
    Job(Box<DraftJob>, T),
}

/// The result of a plan.
pub enum DraftOr<T> {
    /// No draft was needed.
    Other(T),
    /// The draft.
    Draft(Box<Draft>, T),
}

/// Starts a job that makes the text of a transfer.
pub fn spawn_transfer(job: TransferJob, report: impl Fn(Report<TransferText>) + Send + Sync + 'static) {
    tokio::spawn(async move {
        let result = transfer(job, &BlockingPool, &|step| report(Report::Step(step))).await;
        report(Report::Made(result));
    });
}

/// Runs a step of a turn.
pub fn spawn_turn(job: TurnJob, report: impl Fn(TurnReport) + Send + Sync + 'static) {
    tokio::spawn(async move { turn::run(job, &BlockingPool, &report).await });
}

/// The blocking pool of the runtime.
struct BlockingPool;

impl Pool for BlockingPool {
    fn run(&self, work: Blocking) -> Pending<'_, ()> {
        let running = tokio::task::spawn_blocking(work);
        // A runtime that shuts down drops the work.
        Box::pin(async { running.await.unwrap_or_default() })
    }
}
