//! The job that makes a draft beside the session. The extracted draft comes first and fits without a model. A summary by a
//! model replaces the extracted one only if it fits too.

use super::{
    DraftOrder, Focus, LiveOrder,
    blocking::blocking,
    defect,
    floor::{Begun, FloorOrder, Requests, is_read_later},
    hooks::{Additions, Asking, Hooked},
    live::Live,
    progress::{Progress, Tell},
};
use crate::{
    ask::{
        access::ModelAccess,
        later::both,
        pool::Pool,
        request::{Origin, Update},
    },
    compaction::{
        draft::{Draft, Supplied},
        ladder,
        plan::Plan,
    },
    conversation::message::Usage,
    ids::SessionId,
    log::sealed::Blocking,
    models::{ModelRef, candidates::Candidate, prices},
    prompts::Prompt,
    protocol::errors::Failure,
    redact::Clean,
    settings::{Settings, Sourced},
    summary::{
        cleaner::Cleaner,
        extractive::{self, Wishes},
        files::FileLists,
        lost::Lost,
        made::{Made, Rejected, SummaryMethod, SummaryPart},
        model::{
            brief::{Brief, Subject},
            material::Material,
            summarizer::planned,
            writer::{Step, Summarized, SummaryJob, Written, summarize},
        },
    },
};
use std::{
    future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

/// A job: the order, and everything that it works with.
pub struct DraftJob {
    /// The session.
    pub session: SessionId,
    /// The order.
    pub order: DraftOrder,
    /// Access to models.
    pub access: Arc<ModelAccess>,
    /// The proof that a thread of the pool may wait for the disk. None: no request is made as the session's own.
    pub may_block: Option<fn() -> Blocking>,
}

/// Makes the draft of a job. It needs no runtime: time and requests come from the job's access to models. A panic is an
/// error of the job. Dropping the future cancels its requests.
///
/// # Errors
/// When the job is cancelled, or no draft fits the window.
pub async fn draft(job: DraftJob, pool: &dyn Pool, tell: Tell<'_>) -> Result<Draft, Failure> {
    let spent: Mutex<Option<Spending>> = Mutex::new(None);
    let prices = job.order.settings.clone();
    let counted = |step: Progress| {
        if let Progress::Summary(Step::Request(_, Update::Spent(request))) = &step {
            let mut spent = spent.lock().unwrap_or_else(PoisonError::into_inner);
            let saved = prices::saved_by_cache(&prices.settings, &request.model, &request.usage);
            *spent = Some(match *spent {
                None => Spending { usage: request.usage, saved },
                Some(before) => Spending {
                    usage: before.usage.plus(request.usage),
                    saved: before.saved.zip(saved).map(|(one, other)| prices::rounded(one + other)),
                },
            });
        }
        tell(step);
    };
    let (origin, settings, stop) = (origin_of(&job), job.order.settings.clone(), job.order.stop.clone());
    let (hooks, access) = (job.order.hooks.clone(), job.access.clone());
    let mut draft = caught(drafted(job, pool, &counted)).await.unwrap_or_else(|| Err(defect()))?;
    if let Some(Spending { usage, saved }) = *spent.lock().unwrap_or_else(PoisonError::into_inner) {
        (draft.made.usage, draft.made.saved) = (Some(usage), saved);
    }
    let (sourced, stopped) = (settings.clone(), stop.clone());
    let lost = move |draft| with_lost(draft, &sourced.settings, &|| stopped.requested());
    // A small span takes less time than the way to another thread.
    draft = match draft.plan.span().bytes() > SMALL {
        true => blocking(pool, move || Ok(lost(draft))).await?,
        false => lost(draft),
    };
    if let Some(order) = hooks.filter(|_| draft.made.method != SummaryMethod::Hook) {
        let asking = Asking { order: &order, origin: &origin, settings: &settings, access: &access, tell };
        let asked = Box::pin(asking.of_draft(draft, pool));
        draft = stop.unless_requested(asked).await.unwrap_or(Err(Failure::Cancelled))?;
    }
    if !ladder::is_to_be_completed(&draft) {
        return Ok(draft);
    }
    blocking(pool, move || Ok(ladder::completed(draft))).await
}

/// The tokens of requests, and the dollars that their providers' caches saved.
#[derive(Clone, Copy)]
struct Spending {
    usage: Usage,
    saved: Option<f64>,
}

fn origin_of(job: &DraftJob) -> Origin {
    Origin { session: job.session.clone(), operation: job.order.id.clone(), trigger: job.order.trigger }
}

/// A span whose facts are gathered without another thread, in bytes: a millisecond.
const SMALL: usize = 64 * 1024;

/// The draft with the facts that its summary does not have. A defect there costs these facts alone.
fn with_lost(mut draft: Draft, settings: &Settings, stop: &dyn Fn() -> bool) -> Draft {
    let lost = catch_unwind(AssertUnwindSafe(|| Lost::of(draft.plan.span(), &draft.summary.text, settings, stop)));
    draft.lost = lost.unwrap_or_default().map(Box::new);
    draft
}

async fn drafted(job: DraftJob, pool: &dyn Pool, tell: Tell<'_>) -> Result<Draft, Failure> {
    let DraftJob { session, order, access, may_block } = job;
    let DraftOrder { id, trigger, plan, mut focus, hooks, candidates, native, live, only, settings, .. } = order;
    let (deadline, tokens, rank, stop) = (order.deadline, order.tokens, order.rank, order.stop);
    let origin = Origin { session: session.clone(), operation: id, trigger };
    let mut additions = Additions::default();
    if let Some(order) = &hooks {
        let asking = Asking { order, origin: &origin, settings: &settings, access: &access, tell };
        let asked = asking.of_plan(&plan, focus.instructions.as_deref(), pool);
        match stop.unless_requested(asked).await.unwrap_or(Err(Failure::Cancelled))? {
            Hooked::Supplied(draft) => return Ok(*draft),
            Hooked::GoesOn(more) => additions = more,
        }
    }
    let Additions { refused, prompt, context: more, data } = additions;
    focus.context.extend(more.iter().cloned());
    let has_wishes = prompt.is_some() || focus != Focus::default();
    // OpenAI takes no wishes.
    let native = native.filter(|native| native.is_summary() || !has_wishes);
    let live = live.zip(may_block).map(|(LiveOrder { view, is_warm }, may_block)| Live {
        view,
        session: session.clone(),
        may_block,
        is_warm,
    });
    let scale = plan.demand.scale;
    let reserve = plan.demand.budget.reserve;
    let order = FloorOrder {
        plan,
        focus: focus.clone(),
        settings: settings.clone(),
        stop: stop.clone(),
        supplied: Supplied { context: more, data, ..Supplied::default() },
        refused,
        live,
    };
    let asked = candidates.clone();
    let (floor, material, requests) = match blocking(pool, move || order.begin(&asked, native)).await? {
        Begun::Alone(draft) => return by_whom_it_must(*draft, only.as_ref()),
        Begun::Asks { floor, material, requests } => (floor, *material, *requests),
    };
    let Requests { native, live } = requests;
    let mut prompts = (*settings.prompts).clone();
    let secrets = settings.settings.redaction.secrets();
    let prompt = prompt.map(|prompt| secrets.clean(&prompt));
    for summary in [Prompt::CompactionSummary, Prompt::CompactionUpdateSummary] {
        prompt.iter().for_each(|prompt| prompts.stand_in(summary, prompt));
    }
    let brief = Brief {
        prompts,
        instructions: focus.instructions.as_deref().map(|it| secrets.clean(it)),
        context: focus.context.iter().map(|line| secrets.clean(line)).collect(),
        language: material.language,
        subject: Subject::Conversation,
    };
    let native = native.map(|native| native.with_wishes(&brief, has_wishes, material.cap));
    let job = SummaryJob {
        origin,
        material,
        brief,
        reserve,
        candidates,
        native,
        live,
        settings,
        scale,
        deadline,
        tokens,
        rank,
        access,
    };
    let tell = |step| tell(Progress::Summary(step));
    let added = job.material.clone();
    // Without a floor nothing is compacted, so the requests end with it.
    // Without optimization futures inside of each other need more stack than a thread has.
    let (floor, asked) = (Box::pin(floor.adding(added, pool)), Box::pin(by_models(&job, pool, &tell)));
    let both = Box::pin(both(floor, asked));
    let (floor, summarized) = stop.unless_requested(both).await.unwrap_or(Err(Failure::Cancelled))?;
    let Summarized { written, native, mut made } = summarized;
    made.rejected.splice(0..0, floor.made.rejected.iter().cloned());
    if written.is_none() && native.is_none() {
        return by_whom_it_must(Draft { made, ..floor }, only.as_ref());
    }
    let SummaryJob { material, settings, .. } = job;
    let drafted = move || {
        let draft = match written {
            Some(written) => {
                let (text, short) = match written {
                    Written::Whole { text, short } => (text, short),
                    // A model's two sentences would be about one part.
                    Written::Part(part, accepted) => {
                        let rest = rest(&floor.plan, &material, part, focus.wishes(), &settings.settings, &|| {
                            stop.requested()
                        });
                        (material.completed(part, accepted, &rest), None)
                    }
                };
                by_whom_it_must(floor.with_summary(text, short, made), only.as_ref())?
            }
            None => Draft { made, ..floor },
        };
        Ok(match native {
            Some(native) => draft.with_native(native),
            None => draft,
        })
    };
    blocking(pool, drafted).await
}

/// A draft whose summary is by the model that has to write it, if there is one.
///
/// # Errors
/// When that model wrote no summary that can be used.
fn by_whom_it_must(draft: Draft, only: Option<&ModelRef>) -> Result<Draft, Failure> {
    let Some(model) = only.filter(|model| draft.made.by.as_ref() != Some(model)) else { return Ok(draft) };
    let last = draft.made.rejected.iter().rev().find(|it| it.model.as_ref() == Some(model));
    let why = last.map_or("there is no room for a summary, or nothing to summarize", |it| it.why.as_str());
    let error = last.and_then(|it| it.error.as_ref());
    let status = error.and_then(|error| u16::try_from(error["httpStatus"].as_u64()?).ok());
    Err(Failure::Provider {
        provider: Some(model.provider.clone()),
        model: Some(model.id.clone()),
        status,
        retryable: error.is_some_and(|error| error["retryable"] == true),
        what: format!(
            "{model} wrote no summary, and no other model was asked: {why}. The context stays as it is. Name another \
             `model`, or let the others follow with `fallback`: true."
        ),
    })
}

/// Extracts the part of a summary that no model wrote. `written`: the other part.
fn rest(
    plan: &Plan,
    material: &Material,
    written: SummaryPart,
    wishes: Wishes<'_>,
    settings: &Settings,
    stop: &dyn Fn() -> bool,
) -> Clean {
    let shares = material.shares();
    let (part, cap) = match written {
        SummaryPart::History => (SummaryPart::TurnPrefix, shares.prefix),
        SummaryPart::TurnPrefix => (SummaryPart::History, shares.history),
    };
    let (span, scale, cleaner) = (plan.span(), plan.demand.scale, &Cleaner::new(settings));
    extractive::part(&extractive::Request { span, wishes, cap, without: None, settings, cleaner, scale, stop }, part)
}

/// Asks the models. A panic costs only their summary.
pub(super) async fn by_models(job: &SummaryJob, pool: &dyn Pool, tell: &(dyn Fn(Step) + Send + Sync)) -> Summarized {
    caught(summarize(job, pool, tell)).await.unwrap_or_else(|| {
        let rejected = vec![Rejected::model(None, defect().to_string())];
        Summarized { made: Made { rejected, ..Made::default() }, ..Summarized::default() }
    })
}

/// The result of `work`. None where it panics, and then it is not polled again.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// The number of requests to a candidate for the summary of a plan. `floor` is its draft without a model, where that is made
/// before the requests.
#[must_use]
pub fn requests(
    plan: &Plan,
    floor: Option<&Draft>,
    candidate: &Candidate,
    settings: &Sourced,
    stop: &dyn Fn() -> bool,
) -> usize {
    let scale = plan.demand.scale;
    let cap = floor.map_or(plan.demand.budget.summary_cap(), Draft::room_for_summary);
    let files = floor.map_or_else(FileLists::default, |floor| floor.summary.files.clone());
    let span = plan.span();
    let material = match is_read_later(plan) && floor.is_none() {
        true => Material::unread(span, cap, settings.settings.redaction.secrets(), scale),
        false => Material::of(span, &files, cap, &Cleaner::new(&settings.settings), scale, stop),
    };
    let brief = Brief { prompts: (*settings.prompts).clone(), ..Brief::default() };
    planned(&material, &brief, candidate, plan.demand.budget.reserve, scale).requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    fn run<T>(work: impl Future<Output = T>) -> T {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn a_panic_ends_a_future_without_a_result() {
        assert_eq!(run(caught(future::ready(7))), Some(7));
        assert_eq!(run(caught(async { panic!("a planted panic") })), None::<()>);
    }
}
