//! The summary of a branch that is left. The client's hook comes first, then the models, and the extracted summary stays
//! where none of them writes one.

use super::{BranchOrder, BranchSummaryText, BranchText, Making, room_in, window_of};
use crate::{
    ask::{pool::Pool, rank::Rank},
    conversation::{entry::Entry, tokens::Scale},
    log::sealed::Blocking,
    models::candidates::{Candidate, Unfit},
    prompts::Prompt,
    protocol::{
        errors::Failure,
        requests::{MessageRange, SuppliedBranchSummary},
    },
    redact::Clean,
    session::jobs::{
        blocking::blocking,
        draft::by_models,
        floor::LEAST_SUMMARY,
        hooks::{
            asking::{Questions, clipped},
            tree::{self, Facts},
        },
        live::{Live, left_part},
        progress::{Progress, Tell},
        summarizers,
    },
    settings::{Settings, Sourced},
    summary::{
        branch::{Demand, Frame, Prepared},
        cleaner::Cleaner,
        extractive::{self, Wishes},
        files::{FileLists, without_files},
        made::{Made, Rejected, SummaryMethod},
        model::{
            brief::{Brief, Subject},
            check::{self, Rejection},
            material::Material,
            writer::{LiveJob, Summarized, SummaryJob, Written},
        },
    },
};
use serde_json::json;
use std::sync::Arc;

/// The instructions of a summary.
#[derive(Clone)]
struct Instructions {
    text: Option<String>,
    /// Whether they take the place of the prompt.
    replace: bool,
}

/// The branch, ready for its summary.
struct Ready {
    prepared: Prepared,
    /// The texts around the summary.
    frame: Frame,
    candidates: Vec<Result<Candidate, Unfit>>,
    scale: Scale,
}

/// Makes the text of a navigation.
///
/// # Errors
/// When a hook cancels the navigation, or the work is cancelled. No model is a reason for an error.
pub(super) async fn text(
    making: &Making<'_>,
    order: Arc<BranchOrder>,
    may_block: fn() -> Blocking,
    pool: &dyn Pool,
    tell: Tell<'_>,
) -> Result<BranchText, Failure> {
    let settings = making.settings;
    let questions = Questions { hooks: &order.hooks, access: making.access, tell };
    let facts = Facts {
        origin: making.origin,
        target: &order.params.target_entry_id,
        old_leaf: order.old_leaf.as_ref(),
        common_ancestor: order.route.common_ancestor.as_ref(),
        messages: messages(&order.route.left),
        summarizes: order.summarizes,
        instructions: order.params.instructions.as_deref(),
    };
    let wishes = tree::ask(questions, facts).await?;
    let label = wishes.label;
    if !order.summarizes {
        return Ok(BranchText { label, ..BranchText::default() });
    }
    let ready = match ready(making, &order, pool).await {
        Ok(ready) => ready.map(Arc::new),
        Err(failure) => {
            if wishes.supplied.is_some() {
                tree::checked(questions, Some(&failure.to_string()));
            }
            return Err(failure);
        }
    };
    let Some(ready) = ready else {
        if wishes.supplied.is_some() {
            tree::checked(questions, Some("the window has no room for it at the target"));
        }
        return Ok(BranchText { label, lacks_room: true, ..BranchText::default() });
    };
    let mut refused = None;
    if let Some(supplied) = wishes.supplied {
        match by_hook(&ready, supplied, settings, pool).await {
            Ok(summary) => {
                tree::checked(questions, None);
                return Ok(BranchText { summary: Some(summary), label, lacks_room: false });
            }
            Err(why) => {
                let why = clipped(&why);
                tree::checked(questions, Some(&why));
                refused = Some(Rejected { method: SummaryMethod::Hook, model: None, why, error: None });
            }
        }
    }
    let of_request = order.params.instructions.clone().filter(|text| !text.trim().is_empty());
    let instructions = Instructions {
        text: wishes.instructions.or(of_request),
        replace: wishes.replaces.or(order.params.replace_instructions).unwrap_or(false),
    };
    let live = live(making, &order, &ready, may_block, pool).await?;
    let summary = written(making, &ready, instructions, (refused, live), pool, tell).await?;
    Ok(BranchText { lacks_room: summary.is_none(), summary, label })
}

/// The messages among these entries.
fn messages(left: &[Arc<Entry>]) -> MessageRange {
    let mut messages = left.iter().filter(|entry| entry.is_conversation()).map(|entry| &entry.id);
    let first = messages.next();
    let (count, last) = messages.fold((usize::from(first.is_some()), first), |(count, _), id| (count + 1, Some(id)));
    MessageRange { first_entry_id: first.cloned(), last_entry_id: last.cloned(), count }
}

/// Measures the context at the target and chooses the entries for the summary. None where the window has no room for one.
async fn ready(making: &Making<'_>, order: &Arc<BranchOrder>, pool: &dyn Pool) -> Result<Option<Ready>, Failure> {
    let (order, sourced, access) = (order.clone(), making.settings.clone(), making.access.clone());
    let (model, stop) = (making.model.cloned(), making.stop.clone());
    let learned = access.windows.learned().in_session(&making.origin.session);
    let work = move || {
        let settings = &sourced.settings;
        let there = &order.route.there;
        let fullness = order.view.clone().of(there).measure(there);
        let (scale, budget) = (fullness.scale, fullness.budget);
        let frame = scale.text(sourced.prompts.get(Prompt::BranchSummaryContext));
        let room = budget.usable().saturating_sub(fullness.context_tokens).saturating_sub(frame);
        let candidates = summarizers(&sourced, model.as_ref(), &learned, &access);
        let window = window_of(&candidates).unwrap_or(budget.window);
        let cleaner = Cleaner::new(settings);
        let prepared = Prepared::of(
            &order.route.left,
            &Demand {
                pins: &order.pins,
                budget: room_in(window, settings),
                scale,
                tools: &settings.tools.files,
                secrets: settings.redaction.secrets(),
                clean: &|text| cleaner.clean(text),
                stop: &|| stop.requested(),
            },
        );
        let frame = Frame::of(&prepared, &sourced.prompts, room, scale);
        Ok(frame.map(|frame| Ready { prepared, frame, candidates, scale }))
    };
    blocking(pool, work).await
}

/// The session's own request before the navigation, where its provider has it in its cache.
async fn live(
    making: &Making<'_>,
    order: &Arc<BranchOrder>,
    ready: &Arc<Ready>,
    may_block: fn() -> Blocking,
    pool: &dyn Pool,
) -> Result<Option<LiveJob>, Failure> {
    if !order.is_warm {
        return Ok(None);
    }
    let secrets = making.settings.settings.redaction.secrets();
    let (session, order, ready) = (making.origin.session.clone(), order.clone(), ready.clone());
    let work = move || {
        // Without it the summary would be of the whole conversation.
        let Some(part) = left_part(&order.path, &order.route.left, secrets) else { return Ok(None) };
        let live = Live { view: Box::new(order.view.clone()), session, may_block, is_warm: order.is_warm };
        Ok(live.request(&order.path, Some(part), &ready.candidates))
    };
    blocking(pool, work).await
}

/// Checks the summary of a hook.
///
/// # Errors
/// The reason why it is not used.
async fn by_hook(
    ready: &Arc<Ready>,
    supplied: SuppliedBranchSummary,
    settings: &Arc<Sourced>,
    pool: &dyn Pool,
) -> Result<BranchSummaryText, String> {
    let (ready, sourced) = (ready.clone(), settings.clone());
    let work = move || {
        let SuppliedBranchSummary { summary, details } = supplied;
        let measure = |text: &str| ready.scale.text(text);
        let replaced = ready.scale.size(ready.prepared.span().replaced(ready.scale.estimator()));
        let limits = check::Supplied {
            replaces: Prepared::limit(replaced),
            secrets: sourced.settings.redaction.secrets(),
            measure: &measure,
        };
        let text = check::supplied(&summary, &limits).and_then(|accepted| {
            let over = Rejection::OverCap { tokens: measure(accepted.text()), cap: ready.frame.all() };
            ready.frame.behind(&accepted.into_clean(), &ready.prepared).ok_or(over)
        });
        let made = Made { method: SummaryMethod::Hook, ..Made::default() };
        Ok(text.map(|text| BranchSummaryText { text, details, made }).map_err(|refused| refused.to_string()))
    };
    blocking(pool, work).await.unwrap_or_else(|failure| Err(failure.to_string()))
}

/// The summary by the first model that writes one, else the extracted one. None where not even that fits.
async fn written(
    making: &Making<'_>,
    ready: &Arc<Ready>,
    instructions: Instructions,
    (refused, live): (Option<Rejected>, Option<LiveJob>),
    pool: &dyn Pool,
    tell: Tell<'_>,
) -> Result<Option<BranchSummaryText>, Failure> {
    let (own, sourced, stop) = (ready.clone(), making.settings.clone(), making.stop.clone());
    let wishes = instructions.clone();
    let work = move || {
        let (settings, stop) = (&sourced.settings, || stop.requested());
        // The extract and the model have the same texts: each is redacted once for both.
        let cleaner = Cleaner::new(settings);
        let Ready { prepared, frame, candidates, scale } = &*own;
        let span = prepared.span();
        let has_messages = !span.messages().is_empty();
        let floor = match has_messages {
            true => extracted(prepared, frame.room, wishes.text.as_deref(), settings, &cleaner, *scale, &stop),
            // Everything is pinned.
            false => Clean::default(),
        };
        let asks = has_messages && frame.room >= LEAST_SUMMARY && !candidates.is_empty();
        let material = asks.then(|| {
            let mut material = Material::of(span, &FileLists::default(), frame.room, &cleaner, *scale, &stop);
            material.replaces = Prepared::limit(material.replaces);
            material
        });
        Ok((frame.around(&floor), material))
    };
    let (floor, material) = blocking(pool, work).await?;
    let details = Some(json!(ready.prepared.files));
    let summary = |text: Clean, made: Made| BranchSummaryText { text, details: details.clone(), made };
    let mut made = Made { rejected: refused.into_iter().collect(), ..Made::default() };
    let Some(material) = material else { return Ok(floor.map(|text| summary(text, made))) };
    let job = SummaryJob {
        origin: making.origin.clone(),
        brief: brief(instructions, &material, making.settings),
        material,
        reserve: making.settings.settings.branch_summary.reserve_tokens,
        candidates: ready.candidates.clone(),
        native: None,
        live,
        settings: making.settings.clone(),
        scale: ready.scale,
        deadline: None,
        tokens: None,
        rank: Rank::foreground(),
        access: making.access.clone(),
    };
    let Summarized { written, made: by, .. } = by_models(&job, pool, &|step| tell(Progress::Summary(step))).await;
    made.rejected.extend(by.rejected);
    match written.and_then(Written::whole).map(|text| ready.frame.around(&text)) {
        None => {}
        Some(Some(text)) => return Ok(Some(summary(text, Made { method: by.method, by: by.by, ..made }))),
        Some(None) => {
            let why = "with the texts around it the window had no room for it at the target".to_owned();
            made.rejected.push(Rejected::model(by.by, why));
        }
    }
    Ok(floor.map(|text| summary(text, made)))
}

/// The extracted summary without its lists of files, which have their own place.
fn extracted(
    prepared: &Prepared,
    cap: u64,
    instructions: Option<&str>,
    settings: &Settings,
    cleaner: &Cleaner,
    scale: Scale,
    stop: &dyn Fn() -> bool,
) -> Clean {
    let summary = extractive::summarize(&extractive::Request {
        span: prepared.span(),
        wishes: Wishes { instructions, topics: &[] },
        cap,
        without: None,
        settings,
        cleaner,
        scale,
        stop,
    });
    Clean::assembled(without_files(&summary.text))
}

/// The texts of the requests.
fn brief(instructions: Instructions, material: &Material, settings: &Sourced) -> Brief {
    let mut prompts = (*settings.prompts).clone();
    let secrets = settings.settings.redaction.secrets();
    let mut text = instructions.text.map(|text| secrets.clean(&text));
    if instructions.replace
        && let Some(text) = text.take()
    {
        prompts.stand_in(Prompt::BranchSummary, &text);
    }
    Brief { prompts, instructions: text, context: Vec::new(), language: material.language, subject: Subject::Branch }
}
