//! Runs jobs beside a session, on tokio.

use crate::{
    ask::{
        Pending,
        pool::{Blocking, Pool},
    },
    compaction::draft::Draft,
    protocol::errors::Failure,
    session::jobs::{
        blocking::blocking,
        draft::{DraftJob, draft},
        progress::Progress,
        transfer::{TransferJob, TransferText, transfer},
        turn::{self, TurnJob, TurnReport},
    },
};

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

/// Makes a plan on a thread that may block.
///
/// # Errors
/// Those of the plan.
pub async fn planned<T: Send + 'static>(
    plan: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    blocking(&BlockingPool, plan).await
}

/// Makes a draft that no session waits for. No thread waits for a model.
///
/// # Errors
/// As [`draft`].
pub async fn unapplied(job: DraftJob, report: impl Fn(Progress) + Send + Sync) -> Result<Draft, Failure> {
    draft(job, &BlockingPool, &report).await
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
