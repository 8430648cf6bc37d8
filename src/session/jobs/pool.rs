//! Runs jobs beside a session, on tokio.

use crate::{
    ask::Pending,
    compaction::draft::Draft,
    protocol::errors::Failure,
    session::jobs::{
        blocking::{Blocking, Pool},
        draft::{DraftJob, draft},
        progress::Progress,
    },
};

/// A report of a job.
pub enum Report {
    /// A step.
    Step(Progress),
    /// The result.
    Drafted(Box<Result<Draft, Failure>>),
}

/// Starts a job that makes a draft.
pub fn spawn(job: DraftJob, report: impl Fn(Report) + Send + Sync + 'static) {
    tokio::spawn(async move {
        let result = draft(job, &BlockingPool, &|step| report(Report::Step(step))).await;
        report(Report::Drafted(Box::new(result)));
    });
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
