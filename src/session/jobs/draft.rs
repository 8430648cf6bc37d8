//! The job that makes a draft beside the session. The extracted draft comes first and fits without a model. A summary by a
//! model replaces the extracted one only if it fits too.

use crate::{
    ask::{Pending, access::ModelAccess, rank::Rank, request::Origin},
    compaction::{draft::Draft, ladder, plan::Plan},
    models::candidates::{Candidate, Unfit},
    protocol::errors::Failure,
    redact,
    session::stop::Stop,
    settings::Sourced,
    summary::{
        files::FileLists,
        made::{Made, Rejected},
        model::{
            brief::Brief,
            material::Material,
            summarizer::planned,
            writer::{Step, SummaryJob, Written, summarize},
        },
    },
};
use std::{
    future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

/// A job: the plan, and everything that its draft depends on.
pub struct DraftJob {
    /// Session and operation.
    pub origin: Origin,
    /// The plan.
    pub plan: Plan,
    /// The topics that a person wants to be kept above all.
    pub instructions: Option<String>,
    /// The candidates for the summary, in order. Without one it is extracted.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The time for the models, if it is limited.
    pub deadline: Option<Duration>,
    /// The tokens that the models may take, if they are limited.
    pub tokens: Option<u64>,
    /// Whether something waits for the draft.
    pub rank: Rank,
    /// Access to models.
    pub access: Arc<ModelAccess>,
    /// Cancels the job.
    pub stop: Stop,
}

/// Receives the steps of a draft.
pub type Tell<'a> = &'a (dyn Fn(Step) + Send + Sync);

/// Work that blocks: it counts tokens and reads long texts.
pub type Blocking = Box<dyn FnOnce() + Send>;

/// Runs work that blocks, apart from the tasks that wait.
pub trait Pool: Send + Sync {
    /// Runs `work` and waits for its end. A pool that shuts down may drop it. It does not panic.
    fn run(&self, work: Blocking) -> Pending<'_, ()>;
}

/// Makes the draft of a job. It needs no runtime: time and requests come from the job's access to models. A panic is an
/// error of the job. Dropping the future cancels its requests.
///
/// # Errors
/// When the job is cancelled, or no draft fits the window.
pub async fn draft(job: DraftJob, pool: &dyn Pool, tell: Tell<'_>) -> Result<Draft, Failure> {
    caught(drafted(job, pool, tell)).await.unwrap_or_else(|| Err(defect()))
}

async fn drafted(job: DraftJob, pool: &dyn Pool, tell: Tell<'_>) -> Result<Draft, Failure> {
    let DraftJob { origin, plan, instructions, candidates, settings, deadline, tokens, rank, access, stop } = job;
    let scale = plan.demand.scale;
    let reserve = plan.demand.budget.reserve;
    let asks = !candidates.is_empty();
    let (sourced, focus, stopped) = (settings.clone(), instructions.clone(), stop.clone());
    let floor = move || {
        let settings = &sourced.settings;
        let stop = || stopped.requested();
        let floor = ladder::extracted(plan, settings, focus.as_deref(), &stop)?;
        let cap = floor.room_for_summary();
        // Without messages, or without room for more than a few lines, a model has nothing to add.
        let adds = cap >= LEAST_SUMMARY && !floor.plan.summarized().is_empty();
        let material =
            (asks && adds).then(|| Material::of(floor.plan.span(), &floor.summary.files, cap, settings, scale, &stop));
        Ok((floor, material))
    };
    let (floor, material) = blocking(pool, floor).await?;
    let Some(material) = material else { return Ok(floor) };
    let brief = Brief {
        prompts: (*settings.prompts).clone(),
        instructions: instructions.map(|it| cleaned(&it, &settings)),
        context: Vec::new(),
        language: material.language,
    };
    let job =
        SummaryJob { origin, material, brief, reserve, candidates, settings, scale, deadline, tokens, rank, access };
    let Some((written, made)) = stop.unless_requested(by_models(&job, tell)).await else {
        return Err(Failure::Cancelled);
    };
    match written {
        Some(Written { text, short }) => blocking(pool, move || Ok(floor.with_summary(text, short, made))).await,
        None => Ok(Draft { made, ..floor }),
    }
}

/// Asks the models. A panic costs only their summary.
async fn by_models(job: &SummaryJob, tell: Tell<'_>) -> (Option<Written>, Made) {
    caught(summarize(job, tell)).await.unwrap_or_else(|| {
        let why = defect().to_string();
        (None, Made { rejected: vec![Rejected::model(None, why)], ..Made::default() })
    })
}

/// Least room for a summary by a model, in tokens. A smaller one is extracted.
const LEAST_SUMMARY: u64 = 200;

/// The result of work in the pool. A panic is an error of the work.
async fn blocking<T: Send + 'static>(
    pool: &dyn Pool,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = Arc::new(Mutex::new(None));
    let result = done.clone();
    let work = move || {
        let worked = catch_unwind(AssertUnwindSafe(work)).ok();
        *result.lock().unwrap_or_else(PoisonError::into_inner) = worked;
    };
    pool.run(Box::new(work)).await;
    let done = done.lock().unwrap_or_else(PoisonError::into_inner).take();
    done.unwrap_or_else(|| Err(defect()))
}

/// The result of `work`. None where it panics, and then it is not polled again.
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Err(_) => Poll::Ready(None),
    })
    .await
}

fn defect() -> Failure {
    Failure::Internal("a defect of abridged ended this work; nothing was changed".to_owned())
}

fn cleaned(text: &str, settings: &Sourced) -> String {
    if settings.settings.redaction.enabled { redact::redact(text).into_owned() } else { text.to_owned() }
}

/// The number of requests to a candidate for the summary of a plan.
#[must_use]
pub fn requests(plan: &Plan, candidate: &Candidate, settings: &Sourced) -> usize {
    let scale = plan.demand.scale;
    let cap = plan.demand.budget.summary_cap();
    let files = FileLists::default();
    let material = Material::of(plan.span(), &files, cap, &settings.settings, scale, &|| false);
    let brief = Brief { prompts: (*settings.prompts).clone(), ..Brief::default() };
    planned(&material, &brief, candidate, plan.demand.budget.reserve, scale).requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    /// Runs work where it is started, or drops it.
    #[derive(Clone, Copy)]
    enum TestPool {
        Inline,
        ShutDown,
    }

    impl Pool for TestPool {
        fn run(&self, work: Blocking) -> Pending<'_, ()> {
            if matches!(self, Self::Inline) {
                work();
            }
            Box::pin(future::ready(()))
        }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn work_in_a_pool_has_its_result_or_a_defect() {
        assert!(matches!(run(blocking(&TestPool::Inline, || Ok(7))), Ok(7)));
        let panicked = run(blocking(&TestPool::Inline, || -> Result<(), _> { panic!("a planted panic") }));
        assert!(matches!(panicked, Err(Failure::Internal(_))));
        assert!(matches!(run(blocking(&TestPool::ShutDown, || Ok(7))), Err(Failure::Internal(_))));
    }

    #[test]
    fn a_panic_ends_a_future_without_a_result() {
        assert_eq!(run(caught(future::ready(7))), Some(7));
        assert_eq!(run(caught(async { panic!("a planted panic") })), None::<()>);
    }
}
