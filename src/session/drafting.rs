//! A draft made beside the session: one that fits without any model first, and then, if a model writes a summary that
//! fits too, with that. So there is always something to fall back on, and it was measured before anybody was asked.

use super::operation::Stop;
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
            summarizing::{Job, Step, Written, planned, summarize},
        },
    },
};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// What is to be drafted, and with whom.
pub struct Drafting {
    /// Session and operation.
    pub origin: Origin,
    /// What is done.
    pub plan: Plan,
    /// What a person wants kept above all.
    pub instructions: Option<String>,
    /// Who may write the summary, in order; with nobody it is extracted.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// How much time there is, where it is limited.
    pub deadline: Option<Duration>,
    /// Access to models.
    pub access: Arc<ModelAccess>,
    /// Ends it early.
    pub stop: Stop,
}

/// Receives the steps of a draft.
type Tell = Arc<dyn Fn(Step) + Send + Sync>;

/// What comes back from a draft being made.
pub enum Report {
    /// A step on the way.
    Step(Step),
    /// It is done.
    Drafted(Box<Result<Draft, Failure>>),
}

/// Makes a draft beside the session. A panic in it is a defect, and ends only this.
pub fn spawn(drafting: Drafting, report: impl Fn(Report) + Send + Sync + Clone + 'static) {
    tokio::spawn(async move {
        let tell = report.clone();
        let tell: Tell = Arc::new(move |step| tell(Report::Step(step)));
        let work = tokio::spawn(draft(drafting, tell));
        report(Report::Drafted(Box::new(work.await.unwrap_or_else(|_| Err(defect())))));
    });
}

/// Makes a draft: one that fits without any model first, and then, if a model writes a summary that fits too, with that.
///
/// # Errors
/// When it was stopped, or nothing that could be written fits the window.
pub async fn draft(drafting: Drafting, tell: Tell) -> Result<Draft, Failure> {
    let Drafting { origin, plan, instructions, candidates, settings, deadline, access, stop } = drafting;
    let measure = plan.demand.scale;
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
            .then(|| Material::of(floor.plan.span(), &floor.summary.files, cap, settings, measure, &stop));
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
    let job = Job { origin, material, brief, reserve, candidates, settings, measure, deadline, access };
    let (written, made) = tokio::select! { biased;
        () = stop.wait() => return Err(Failure::Cancelled),
        made = apart(job, tell) => made,
    };
    match written {
        Some(Written { text, short }) => blocking(move || Ok(floor.with_summary(text, short, made))).await?,
        None => Ok(Draft { made, ..floor }),
    }
}

/// Asks the models in a task of its own, which ends with this one. A panic in there is a defect, and costs no more than
/// their summary.
async fn apart(job: Job, tell: Tell) -> (Option<Written>, Made) {
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

/// A summary smaller than this, in tokens, is left to the extractor.
const LEAST_SUMMARY: u64 = 200;

/// Runs work on the blocking pool. A panic in it is a defect, and ends only this.
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

/// How many requests a candidate would take for the summary of a plan.
#[must_use]
pub fn requests(plan: &Plan, candidate: &Candidate, settings: &Sourced) -> usize {
    let measure = plan.demand.scale;
    let cap = plan.demand.budget.summary_cap();
    let files = FileLists::default();
    let material = Material::of(plan.span(), &files, cap, &settings.settings, measure, &|| false);
    let brief = Brief { prompts: (*settings.prompts).clone(), ..Brief::default() };
    planned(&material, &brief, candidate, plan.demand.budget.reserve, measure)
}
