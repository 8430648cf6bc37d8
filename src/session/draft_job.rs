//! The job that makes a draft beside the session. The extracted draft comes first and fits without a model. A summary by a
//! model replaces the extracted one only if it fits too.

use super::stop::Stop;
use crate::{
    ask::{access::ModelAccess, request::Origin},
    compaction::{draft::Draft, ladder, plan::Plan},
    models::candidates::{Candidate, Unfit},
    protocol::errors::Failure,
    redact,
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
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;

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
    /// Access to models.
    pub access: Arc<ModelAccess>,
    /// Cancels the job.
    pub stop: Stop,
}

/// Receives the steps of a draft.
type Tell = Arc<dyn Fn(Step) + Send + Sync>;

/// A report of a job.
pub enum Report {
    /// A step of the summary by a model.
    Step(Step),
    /// The result.
    Drafted(Box<Result<Draft, Failure>>),
}

/// Starts a job. A panic ends only the job.
pub fn spawn(job: DraftJob, report: impl Fn(Report) + Send + Sync + Clone + 'static) {
    tokio::spawn(async move {
        let tell = report.clone();
        let tell: Tell = Arc::new(move |step| tell(Report::Step(step)));
        let work = tokio::spawn(draft(job, tell));
        report(Report::Drafted(Box::new(work.await.unwrap_or_else(|_| Err(defect())))));
    });
}

/// Makes the draft of a job.
///
/// # Errors
/// When the job is cancelled, or no draft fits the window.
async fn draft(job: DraftJob, tell: Tell) -> Result<Draft, Failure> {
    let DraftJob { origin, plan, instructions, candidates, settings, deadline, access, stop } = job;
    let scale = plan.demand.scale;
    let reserve = plan.demand.budget.reserve;
    let asks = !candidates.is_empty();
    let (sourced, focus, stopped) = (settings.clone(), instructions.clone(), stop.clone());
    let floor = move || {
        let settings = &sourced.settings;
        let stop = || stopped.requested();
        let floor = ladder::extracted(plan, settings, focus.as_deref(), &stop)?;
        let cap = floor.room_for_summary();
        // Without room for more than a few lines a model has nothing to add.
        let material = (asks && cap >= LEAST_SUMMARY)
            .then(|| Material::of(floor.plan.span(), &floor.summary.files, cap, settings, scale, &stop));
        Ok((floor, material))
    };
    let (floor, material) = blocking(floor).await??;
    let Some(material) = material else { return Ok(floor) };
    let brief = Brief {
        prompts: (*settings.prompts).clone(),
        instructions: instructions.map(|it| cleaned(&it, &settings)),
        context: Vec::new(),
        language: material.language,
    };
    let job = SummaryJob { origin, material, brief, reserve, candidates, settings, scale, deadline, access };
    let (written, made) = tokio::select! { biased;
        () = stop.wait() => return Err(Failure::Cancelled),
        made = apart(job, tell) => made,
    };
    match written {
        Some(Written { text, short }) => blocking(move || Ok(floor.with_summary(text, short, made))).await?,
        None => Ok(Draft { made, ..floor }),
    }
}

/// Asks the models in a task of its own, which ends with this one. A panic costs only their summary.
async fn apart(job: SummaryJob, tell: Tell) -> (Option<Written>, Made) {
    let mut task = JoinSet::new();
    task.spawn(async move { summarize(&job, &*tell).await });
    match task.join_next().await {
        Some(Ok(made)) => made,
        _ => {
            let why = defect().to_string();
            (None, Made { by: None, rejected: vec![Rejected { model: None, why, error: None }] })
        }
    }
}

/// Least room for a summary by a model, in tokens. A smaller one is extracted.
const LEAST_SUMMARY: u64 = 200;

/// Runs work on the blocking pool. A panic is an error of the work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Result<T, Failure>, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| defect())
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
    planned(&material, &brief, candidate, plan.demand.budget.reserve, scale)
}
