//! The hooks of a compaction. The client is asked at most three times, each time for a limited time, and each of its answers is
//! checked before anything is made of it.

pub mod asking;
pub mod tree;

use super::{blocking::blocking, progress::Tell};
use crate::{
    ask::{access::ModelAccess, pool::Pool, request::Origin},
    compaction::{
        draft::{Draft, Supplied},
        ladder,
        plan::Plan,
        preview::Preview,
    },
    prompts,
    protocol::{
        errors::Failure,
        events::{HookOutcome, Reason},
        requests::{
            BeforeCompactAnswer, BeforeCompactParams, ClientRequest as _, CompactDraftParams, CompactingAnswer,
            CompactingParams, HookBeforeCompact, HookCompactDraft, HookCompacting, HookPreparation, SuppliedCompaction,
        },
        types::{HookEvent, Object, ShownDraft},
    },
    redact::Clean,
    session::hooks::Hooks,
    settings::{Settings, Sourced},
    summary::{
        extractive::Summary,
        files::FileLists,
        lost::Lost,
        made::{Made, Rejected, SummaryMethod},
        model::check::{self, Rejection},
    },
};
use asking::{Questions, Unusable, clipped};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The hooks that a compaction asks, and the facts that they are told.
#[derive(Clone)]
pub struct HookOrder {
    /// The hooks of the session.
    pub hooks: Arc<Hooks>,
    /// Reason of the compaction.
    pub reason: Reason,
    /// Whether the turn is repeated after it.
    pub will_retry: bool,
}

/// The way in which a compaction goes on after its hooks.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
pub enum Hooked {
    /// As planned.
    GoesOn(Additions),
    /// With the draft of a hook.
    Supplied(Box<Draft>),
}

/// Additions of hooks to a summary.
#[derive(Default)]
pub struct Additions {
    /// A summary of a hook that was refused.
    pub refused: Option<Rejected>,
    /// The prompt for the summary of whole turns.
    pub prompt: Option<String>,
    /// Lines beside the conversation.
    pub context: Vec<String>,
    /// Data that the compaction stores.
    pub data: Map<String, Value>,
}

/// The way in which a compaction goes on after `session_before_compact`.
enum Before {
    GoesOn(Option<Rejected>),
    Supplied(Box<Draft>),
}

/// The most text that a hook adds to a request, in bytes: as much as a prompt may have.
const MOST_CONTEXT: usize = prompts::LONGEST;

/// The most data of hooks and other programs that a compaction carries, in bytes of JSON: as much as one answer may have.
const MOST_DATA: usize = 1 << 20;

/// Asks the hooks of one compaction.
pub struct Asking<'a> {
    /// The hooks.
    pub order: &'a HookOrder,
    /// Session and operation.
    pub origin: &'a Origin,
    /// The settings in force.
    pub settings: &'a Arc<Sourced>,
    /// Access to the client and to the clock.
    pub access: &'a ModelAccess,
    /// Receives the steps.
    pub tell: Tell<'a>,
}

impl Asking<'_> {
    /// Asks the hooks about a plan. `instructions` are those of the request.
    ///
    /// # Errors
    /// When a hook cancels the compaction, or fails and its registration says `abort`.
    pub async fn of_plan(&self, plan: &Plan, instructions: Option<&str>, pool: &dyn Pool) -> Result<Hooked, Failure> {
        match self.before_compact(plan, instructions, pool).await? {
            Before::Supplied(draft) => Ok(Hooked::Supplied(draft)),
            Before::GoesOn(refused) => Ok(Hooked::GoesOn(Additions { refused, ..self.compacting(plan).await? })),
        }
    }

    async fn before_compact(
        &self,
        plan: &Plan,
        instructions: Option<&str>,
        pool: &dyn Pool,
    ) -> Result<Before, Failure> {
        let hook = HookEvent::SessionBeforeCompact;
        if !self.order.hooks.answers(hook) {
            return Ok(Before::GoesOn(None));
        }
        let questions = self.questions();
        let sent = questions.begins(hook);
        let (planned, sourced) = (plan.clone(), self.settings.clone());
        let prepare = move || {
            let preview = Preview::of(&planned, &sourced.settings);
            Ok(HookPreparation::of(&planned, preview, sourced.settings.compaction.clone()))
        };
        let preparation = match blocking(pool, prepare).await {
            Ok(preparation) => preparation,
            Err(failure) => {
                return questions.fails(hook, Unusable::Wrong(failure.to_string())).map(|()| Before::GoesOn(None));
            }
        };
        let params = BeforeCompactParams {
            session_id: self.origin.session.clone(),
            operation_id: self.origin.operation.clone(),
            reason: self.order.reason,
            will_retry: self.order.will_retry,
            instructions: instructions.map(str::to_owned),
            preparation,
            deadline_ms: questions.deadline(),
        };
        sent.wait().await;
        let answer = match questions.ask(HookBeforeCompact::NAME, json!(params)).await {
            Ok(answer) => answer.unwrap_or(BeforeCompactAnswer::Continue {}),
            Err(unusable) => return questions.fails(hook, unusable).map(|()| Before::GoesOn(None)),
        };
        match answer {
            BeforeCompactAnswer::Continue {} => {
                questions.ends(hook, HookOutcome::Ok, None);
                Ok(Before::GoesOn(None))
            }
            BeforeCompactAnswer::Cancel { reason } => {
                questions.ends(hook, HookOutcome::Cancelled, reason);
                Err(Failure::Cancelled)
            }
            BeforeCompactAnswer::Replace { compaction } => {
                let (plan, sourced) = (plan.clone(), self.settings.clone());
                let drafted = move || Ok(draft(&plan, *compaction, &sourced.settings));
                match blocking(pool, drafted).await.unwrap_or_else(|failure| Err(failure.to_string())) {
                    Ok(draft) => {
                        questions.ends(hook, HookOutcome::Replaced, None);
                        Ok(Before::Supplied(Box::new(draft)))
                    }
                    Err(why) => {
                        let why = clipped(&why);
                        questions.ends(hook, HookOutcome::Error, Some(format!("its summary is not used: {why}")));
                        let refused = Rejected { method: SummaryMethod::Hook, model: None, why, error: None };
                        Ok(Before::GoesOn(Some(refused)))
                    }
                }
            }
        }
    }

    /// Asks the hook about a draft, and returns the draft that is written: this one, or one with the summary of the answer.
    ///
    /// # Errors
    /// When the hook cancels the compaction, or fails and its registration says `abort`.
    pub async fn of_draft(&self, draft: Draft, pool: &dyn Pool) -> Result<Draft, Failure> {
        let hook = HookEvent::SessionCompactDraft;
        if !self.order.hooks.answers(hook) {
            return Ok(draft);
        }
        let questions = self.questions();
        let sent = questions.begins(hook);
        let params = CompactDraftParams {
            session_id: self.origin.session.clone(),
            operation_id: self.origin.operation.clone(),
            reason: self.order.reason,
            draft: ShownDraft::of(&draft),
            deadline_ms: questions.deadline(),
        };
        sent.wait().await;
        let answer = match questions.ask(HookCompactDraft::NAME, json!(params)).await {
            Ok(answer) => answer.unwrap_or(BeforeCompactAnswer::Continue {}),
            Err(unusable) => return questions.fails(hook, unusable).map(|()| draft),
        };
        match answer {
            BeforeCompactAnswer::Continue {} => {
                questions.ends(hook, HookOutcome::Ok, None);
                Ok(draft)
            }
            BeforeCompactAnswer::Cancel { reason } => {
                questions.ends(hook, HookOutcome::Cancelled, reason);
                Err(Failure::Cancelled)
            }
            BeforeCompactAnswer::Replace { compaction } => {
                let (shown, sourced) = (draft.clone(), self.settings.clone());
                let replaced = move || Ok(replacement(&shown, *compaction, &sourced.settings));
                match blocking(pool, replaced).await.unwrap_or_else(|failure| Err(failure.to_string())) {
                    Ok(replaced) => {
                        questions.ends(hook, HookOutcome::Replaced, None);
                        Ok(replaced)
                    }
                    Err(why) => {
                        let why = clipped(&why);
                        questions.ends(hook, HookOutcome::Error, Some(format!("its summary is not used: {why}")));
                        let refused = Rejected { method: SummaryMethod::Hook, model: None, why, error: None };
                        let rejected = draft.made.rejected.iter().cloned().chain([refused]).collect();
                        Ok(Draft { made: Made { rejected, ..draft.made.clone() }, ..draft })
                    }
                }
            }
        }
    }

    async fn compacting(&self, plan: &Plan) -> Result<Additions, Failure> {
        let hook = HookEvent::SessionCompacting;
        if !self.order.hooks.answers(hook) {
            return Ok(Additions::default());
        }
        let questions = self.questions();
        let sent = questions.begins(hook);
        let carried = plan.carried_data();
        let params = CompactingParams {
            session_id: self.origin.session.clone(),
            operation_id: self.origin.operation.clone(),
            reason: self.order.reason,
            previous_preserve_data: (!carried.is_empty()).then(|| Object(carried.clone())),
            deadline_ms: questions.deadline(),
        };
        sent.wait().await;
        let answer = questions.ask(HookCompacting::NAME, json!(params)).await;
        match answer.and_then(|answer| usable(answer.unwrap_or_default(), carried).map_err(Unusable::Wrong)) {
            Ok(additions) => {
                questions.ends(hook, HookOutcome::Ok, None);
                Ok(additions)
            }
            Err(unusable) => questions.fails(hook, unusable).map(|()| Additions::default()),
        }
    }

    /// The questions to the client.
    fn questions(&self) -> Questions<'_> {
        Questions { hooks: &self.order.hooks, access: self.access, tell: self.tell }
    }
}

/// The additions of an answer, without empty texts.
fn usable(answer: CompactingAnswer, carried: &Map<String, Value>) -> Result<Additions, String> {
    let CompactingAnswer { prompt, context, preserve_data } = answer;
    let prompt = prompt.filter(|prompt| !prompt.trim().is_empty());
    if prompt.as_ref().is_some_and(|prompt| prompt.len() > prompts::LONGEST) {
        return Err(format!("its prompt has more than {} bytes", prompts::LONGEST));
    }
    let context: Vec<_> = context.unwrap_or_default().into_iter().filter(|line| !line.trim().is_empty()).collect();
    let bytes: usize = context.iter().map(String::len).sum();
    if bytes > MOST_CONTEXT {
        return Err(format!("its context has {bytes} bytes, and {MOST_CONTEXT} are the most"));
    }
    Ok(Additions { refused: None, prompt, context, data: of_the_hook(preserve_data.as_ref(), carried)? })
}

/// The data of a hook. It has no key of ours, and is no larger than the limit together with the data that is carried on.
fn of_the_hook(data: Option<&Object>, carried: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let Some(Object(data)) = data else { return Ok(Map::new()) };
    if data.contains_key("abridged") {
        return Err("the key `abridged` of `preserveData` belongs to abridged; choose another one".to_owned());
    }
    let mut all = carried.clone();
    all.extend(data.clone());
    let bytes = json!(all).to_string().len();
    if bytes > MOST_DATA {
        return Err(format!(
            "`preserveData` would have {bytes} bytes together with that of earlier compactions, and {MOST_DATA} are the \
             most; a key with null removes it"
        ));
    }
    Ok(data.clone())
}

/// The draft with the summary that a client gives in its place. Its cut stays, and so do lines and data of other hooks.
fn replacement(shown: &Draft, compaction: SuppliedCompaction, settings: &Settings) -> Result<Draft, String> {
    let supplied = draft(&shown.plan, compaction, settings)?;
    let mut data = shown.supplied.data.clone();
    data.extend(supplied.supplied.data);
    let supplied = Draft {
        made: Made { rejected: shown.made.rejected.clone(), usage: shown.made.usage, ..supplied.made },
        supplied: Supplied { data, ..supplied.supplied },
        ..supplied
    };
    let lost = Lost::of(supplied.plan.span(), &supplied.summary.text, settings, &|| false);
    Ok(Draft { lost: lost.map(Box::new), ..supplied })
}

/// The draft of a supplied compaction, or the reason why it is not used.
fn draft(plan: &Plan, compaction: SuppliedCompaction, settings: &Settings) -> Result<Draft, String> {
    let SuppliedCompaction { summary, short_summary, first_kept_entry_id, details, preserve_data } = compaction;
    let data = of_the_hook(preserve_data.as_ref(), plan.carried_data())?;
    let plan = match &first_kept_entry_id {
        None => plan.clone(),
        Some(id) => plan.keeping_from(id).map_err(|no| format!("`firstKeptEntryId` is {id}, but {no}"))?,
    };
    let scale = plan.demand.scale;
    let measure = |text: &str| scale.text(text);
    let limits = check::Supplied {
        replaces: scale.size(plan.span().replaced(scale.estimator())),
        secrets: settings.redaction.secrets(),
        measure: &measure,
    };
    let accepted = |text: &str| check::supplied(text, &limits);
    let text = accepted(&summary).map_err(|refused| refused.to_string())?.into_clean();
    let short = match short_summary.as_deref().map(accepted) {
        None | Some(Err(Rejection::Empty)) => Clean::default(),
        Some(Ok(short)) => short.into_clean(),
        Some(Err(refused)) => return Err(format!("its short summary: {refused}")),
    };
    let summary = Summary { text, short, files: FileLists::default() };
    let draft = ladder::supplied(plan, summary, settings.into()).map_err(|unfit| unfit.to_string())?;
    let made = Made { method: SummaryMethod::Hook, ..Made::default() };
    Ok(Draft { made, supplied: Supplied { details, data, ..Supplied::default() }, ..draft })
}
