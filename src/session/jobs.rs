//! Jobs beside a session: counting, indexing, planning and drafting. A job works on values that it owns and reports to the
//! session by inputs.

pub mod at_once;
pub mod blocking;
pub mod draft;
pub mod export;
pub mod fitting;
pub mod floor;
pub mod hooks;
pub mod live;
pub mod pool;
pub mod progress;
pub mod search;
pub mod transfer;
pub mod turn;

use super::{founding::Founding, source::SourceOrder, state::View, stop::Stop};
use crate::{
    ask::{access::ModelAccess, rank::Rank},
    compaction::{
        draft::Draft,
        ladder,
        native::NativeOrder,
        plan::Plan,
        preview::Preview,
        request::{PlanRequest, Planned},
    },
    conversation::{entry::Entry, spending::Trigger},
    ids::{ModelRef, OperationId},
    log::{
        error::StoreError,
        history::library::{Indexed, Indexing},
        sealed::Blocking,
    },
    models::{
        candidates::{self, Candidate, NativeCandidate, Situation, Unfit},
        learned::Learned,
    },
    protocol::{
        errors::Failure,
        types::{CompactMethod, CompactParams, Preparation},
    },
    provider::keys,
    settings::Sourced,
    summary::{cleaner::Cleaner, extractive::Wishes},
};
use hooks::HookOrder;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use transfer::TransferOrder;
use turn::TurnOrder;

/// A job.
pub enum Job {
    /// Counts the tokens of entries. Ends with `Input::Counted`.
    Count(Vec<Arc<Entry>>),
    /// Builds the index. Ends with `Input::Indexed`.
    Index(Indexing, Stop),
    /// Plans a compaction and looks for models that may write its summary. Ends with `Input::Planned`.
    Plan(PlanOrder),
    /// Makes a draft. Reports with `Input::Reported` and ends with `Input::Drafted`.
    Draft(DraftOrder),
    /// Makes the text of a transfer. Reports with `Input::Reported` and ends with `Input::Transferred`.
    Transfer(TransferOrder),
    /// A step of a turn. Reports with `Input::Turned`.
    Turn(TurnOrder),
    /// Looks for the source of a reference. Ends with `Input::Sourced`.
    Source(SourceOrder),
    /// Makes a session. Ends with `Input::Founded`.
    Found(OperationId, Box<Founding>),
}

/// The result of building an index.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
pub enum IndexBuilt {
    /// The index.
    Made(Indexed),
    /// The work was stopped.
    Stopped,
    /// The file could not be read.
    Failed(StoreError),
    /// The work ended in a panic.
    Lost,
}

/// A compaction that is to be planned.
pub struct PlanOrder {
    /// Its operation.
    pub id: OperationId,
    /// The path and everything that the plan depends on.
    pub request: PlanRequest,
    /// The models that may write the summary, as the client asks for it.
    pub authors: Authors,
    /// The model before the session's. It may write the summary, if it needs fewer requests.
    pub former: Option<ModelRef>,
    /// Cancels the job.
    pub stop: Stop,
}

/// A plan, with the models that may write the summary, in order. Without one the summary is extracted.
pub struct PlanMade {
    /// The plan and the fullness before it.
    pub planned: Planned,
    /// The models.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The provider's own compaction, where it has one.
    pub native: Option<Box<NativeOrder>>,
    /// The only model that may write the summary. Without its summary there is no draft.
    pub only: Option<ModelRef>,
}

/// The models that may write a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authors {
    /// Any that can be asked, or a service, or the provider by its own compaction. Without a summary of theirs it is
    /// extracted.
    #[default]
    Anyone,
    /// Any model. One has to be there.
    Models,
    /// None: the summary is extracted.
    Nobody,
    /// This one. Without its summary there is none.
    Only(ModelRef),
    /// This one, then the others.
    First(ModelRef, Others),
}

/// The authors after the one that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// As in `Authors::Anyone`.
    Anyone,
    /// As in `Authors::Models`.
    Models,
}

impl Authors {
    /// The authors that a client asks for.
    ///
    /// # Errors
    /// When the params contradict each other.
    pub fn of(params: &CompactParams) -> Result<Self, Failure> {
        let CompactParams { method, model, fallback, .. } = params;
        Ok(match (model.clone(), method) {
            (None, None) => Self::Anyone,
            (None, Some(CompactMethod::Llm)) => Self::Models,
            (None, Some(CompactMethod::Extractive)) => Self::Nobody,
            (Some(_), Some(CompactMethod::Extractive)) => {
                let what = "an extracted summary has no model; leave out `model`, or the `method`";
                return Err(Failure::params("model", what));
            }
            (Some(model), None) if *fallback == Some(true) => Self::First(model, Others::Anyone),
            (Some(model), Some(CompactMethod::Llm)) if *fallback == Some(true) => Self::First(model, Others::Models),
            (Some(model), _) => Self::Only(model),
        })
    }

    fn only(&self) -> Option<ModelRef> {
        match self {
            Self::Only(model) => Some(model.clone()),
            Self::Anyone | Self::Models | Self::Nobody | Self::First(..) => None,
        }
    }
}

/// The wishes of a request for its summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Focus {
    /// The topics that a person wants to be kept above all.
    pub instructions: Option<String>,
    /// Lines beside the conversation.
    pub context: Vec<String>,
}

impl Focus {
    /// The wishes of a client's request.
    #[must_use]
    pub fn of(params: CompactParams) -> Self {
        Self { instructions: params.instructions, context: params.context.unwrap_or_default() }
    }

    /// The wishes for a summary without a model.
    #[must_use]
    pub fn wishes(&self) -> Wishes<'_> {
        Wishes { instructions: self.instructions.as_deref(), topics: &self.context }
    }

    /// Whether the compaction is made even where it makes nothing smaller.
    #[must_use]
    pub fn insists(&self) -> bool {
        self.instructions.is_some()
    }
}

/// The requests of a session.
pub struct LiveOrder {
    /// The view on its path.
    pub view: Box<View>,
    /// Whether the provider of its model has the last one in its cache.
    pub is_warm: bool,
}

/// A draft that is to be made.
pub struct DraftOrder {
    /// Its operation.
    pub id: OperationId,
    /// The reason for which models are asked. The costs say it.
    pub trigger: Trigger,
    /// The tokens that the models may take, if they are limited.
    pub tokens: Option<u64>,
    /// The plan.
    pub plan: Plan,
    /// The wishes of its request.
    pub focus: Focus,
    /// The hooks that are asked. None: no hook.
    pub hooks: Option<HookOrder>,
    /// The models that may write the summary, in order.
    pub candidates: Vec<Result<Candidate, Unfit>>,
    /// The provider's own compaction, where it has one.
    pub native: Option<Box<NativeOrder>>,
    /// The requests of the session. None where a host goes on with the result.
    pub live: Option<LiveOrder>,
    /// The only model that may write the summary. Without its summary there is no draft.
    pub only: Option<ModelRef>,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The time for the models, if it is limited.
    pub deadline: Option<Duration>,
    /// Whether something waits for the draft.
    pub rank: Rank,
    /// Cancels the job.
    pub stop: Stop,
}

/// Builds an index. Blocks.
#[must_use]
pub fn index(work: Indexing, stop: &Stop, blocking: &Blocking) -> IndexBuilt {
    match catch_unwind(AssertUnwindSafe(|| work.run(&|| stop.requested(), blocking))) {
        Ok(Ok(Some(indexed))) => IndexBuilt::Made(indexed),
        Ok(Ok(None)) => IndexBuilt::Stopped,
        Ok(Err(error)) => IndexBuilt::Failed(error),
        Err(_) => IndexBuilt::Lost,
    }
}

/// Plans a compaction. Blocks.
///
/// # Errors
/// When there is nothing to compact, no model can be asked though one has to be, or the job is cancelled.
pub fn plan(order: PlanOrder, access: &ModelAccess) -> Result<PlanMade, Failure> {
    let PlanOrder { request, authors, former, stop, .. } = order;
    guarded(|| {
        let mut candidates = candidates(&request, &authors, former.as_ref(), access)?;
        let native = native(&request, &authors, access);
        let (settings, model) = (request.settings.clone(), request.model.clone());
        let planned = request.plan(&|| stop.requested())?;
        if let (Some(model), Some(former)) = (&model, &former) {
            let requests = |candidate: &Candidate| {
                draft::requests(&planned.plan, None, candidate, &settings, &|| stop.requested())
            };
            candidates::prefer_former(&mut candidates, model, former, requests);
        }
        Ok(PlanMade { planned, candidates, native, only: authors.only() })
    })
}

/// Plans a compaction and says what it would do. Blocks.
///
/// # Errors
/// As [`plan`].
pub fn dry_run(
    request: PlanRequest,
    authors: &Authors,
    focus: &Focus,
    access: &ModelAccess,
    stop: &dyn Fn() -> bool,
) -> Result<Preparation, Failure> {
    let go_on = || if stop() { Err(Failure::Cancelled) } else { Ok(()) };
    guarded(|| {
        let settings = request.settings.clone();
        let candidates = candidates(&request, authors, None, access)?;
        let planned = request.plan(stop)?;
        let preparation = preparation(planned.plan, &candidates, focus, &settings, stop);
        go_on()?;
        Ok(preparation)
    })
}

/// The effect of a compaction by this plan. Where the kept part has to be smaller than demanded, it is that of the plan that fits.
#[must_use]
pub fn preparation(
    plan: Plan,
    candidates: &[Result<Candidate, Unfit>],
    focus: &Focus,
    settings: &Sourced,
    stop: &dyn Fn() -> bool,
) -> Preparation {
    let summarizer = candidates.iter().find_map(|it| it.as_ref().ok());
    // As of the draft: a model is asked for a large span without a look at it.
    let fits = || summarizer.is_some() && floor::is_read_later(&plan) && ladder::room_at_once(&plan).is_some();
    let drafted = (!fits()).then(|| {
        let cleaner = Cleaner::new(&settings.settings);
        ladder::extracted(plan.clone(), &settings.settings, &cleaner, focus.wishes(), stop)
    });
    let requests = |plan: &Plan, floor: Option<&Draft>| {
        summarizer.map_or(0, |summarizer| draft::requests(plan, floor, summarizer, settings, stop))
    };
    let (plan, preview, requests) = match drafted {
        Some(Ok(floor)) => {
            let preview = Preview::of_draft(&floor, summarizer.is_some(), &settings.settings);
            let requests = requests(&floor.plan, Some(&floor));
            (floor.plan, preview, requests)
        }
        _ => {
            let preview = Preview::of(&plan, &settings.settings);
            let requests = requests(&plan, None);
            (plan, preview, requests)
        }
    };
    let summarizer = summarizer.and_then(|it| it.named().cloned());
    Preparation::of(&plan, preview, summarizer, requests)
}

/// The models that may write a summary for a session with this model, in order.
#[must_use]
pub fn summarizers(
    settings: &Sourced,
    model: Option<&ModelRef>,
    learned: &Learned,
    access: &ModelAccess,
) -> Vec<Result<Candidate, Unfit>> {
    candidates::candidates(&situation(settings, model, learned, access))
}

fn situation<'a>(
    settings: &'a Sourced,
    model: Option<&'a ModelRef>,
    learned: &'a Learned,
    access: &ModelAccess,
) -> Situation<'a> {
    Situation {
        settings: &settings.settings,
        session: model,
        former: None,
        client_runs_models: access.client_runs_models(),
        is_set: &keys::is_set,
        learned,
    }
}

/// The situation of a compaction.
fn situation_of<'a>(request: &'a PlanRequest, access: &ModelAccess) -> Situation<'a> {
    situation(&request.settings, request.model.as_ref(), &request.learned, access)
}

/// The own compaction of the session's provider. A client that says who is to write the summary asks for that alone.
fn native(request: &PlanRequest, authors: &Authors, access: &ModelAccess) -> Option<Box<NativeOrder>> {
    let native = candidates::native(&situation_of(request, access)).filter(|_| *authors == Authors::Anyone)?;
    let NativeCandidate { candidate, is_certain } = native;
    let system = request.instructions.system_prompt().map(str::to_owned);
    Some(Box::new(NativeOrder { candidate, is_certain, system }))
}

/// The models that may write a summary, in order.
///
/// # Errors
/// When a model has to write it, and that one, or any, cannot be asked.
fn candidates(
    request: &PlanRequest,
    authors: &Authors,
    former: Option<&ModelRef>,
    access: &ModelAccess,
) -> Result<Vec<Result<Candidate, Unfit>>, Failure> {
    let situation = Situation { former, ..situation_of(request, access) };
    let asked = |model: &ModelRef| situation.candidate(model).map_err(|unfit| unasked(&unfit));
    Ok(match authors {
        Authors::Anyone => candidates::candidates(&situation),
        Authors::Models => {
            let models = models_only(candidates::candidates(&situation));
            if models.is_empty() {
                return Err(no_model());
            }
            models
        }
        Authors::Nobody => Vec::new(),
        Authors::Only(model) => vec![Ok(asked(model)?)],
        Authors::First(model, others) => {
            let all = candidates::candidates(&situation);
            let others = if *others == Others::Models { models_only(all) } else { all };
            let is_first = |it: &Result<Candidate, Unfit>| it.as_ref().is_ok_and(|it| it.named() == Some(model));
            let others = others.into_iter().filter(|it| !is_first(it));
            [Ok(asked(model)?)].into_iter().chain(others).collect()
        }
    })
}

/// The service at `compaction.remoteEndpoint` is no model.
fn models_only(mut candidates: Vec<Result<Candidate, Unfit>>) -> Vec<Result<Candidate, Unfit>> {
    candidates.retain(|candidate| candidate.as_ref().map_or(true, Candidate::is_model));
    candidates
}

/// The error of a model that a request names and that cannot be asked.
fn unasked(unfit: &Unfit) -> Failure {
    Failure::params("model", format!("{} cannot be asked: {}", unfit.model, unfit.why))
}

/// The error of a summary that has to be written by a model where none can be asked.
#[must_use]
pub fn no_model() -> Failure {
    let what = "there is no model to ask: name one in `models` or `defaultModel` of the settings, set the key of \
                the session's model in the environment, or declare `llm` at initialize; without `method` the \
                summary is made by what there is";
    Failure::params("method", what)
}

/// Runs work. A panic becomes its error.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(defect()))
}

/// The error of work that ended in a panic.
pub fn defect() -> Failure {
    Failure::Internal("a defect of abridged ended this work; nothing was changed".to_owned())
}
