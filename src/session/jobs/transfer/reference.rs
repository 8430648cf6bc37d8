//! The extract of a reference: by a model about the question, else the passages that have its words.

use super::{Making, room_in, window_of};
use crate::{
    ask::{pool::Pool, rank::Rank, request::Update},
    conversation::tokens::Scale,
    ids::EntryId,
    models::candidates::{Candidate, Unfit},
    prompts::{Prompt, Prompts, escape_tags},
    protocol::errors::Failure,
    redact::Clean,
    session::{
        jobs::{
            blocking::blocking,
            draft::by_models,
            floor::LEAST_SUMMARY,
            progress::{Progress, Tell},
            summarizers,
        },
        source::Source,
    },
    settings::Sourced,
    summary::{
        cleaner::Cleaner,
        made::Made,
        model::{
            brief::{Brief, Subject},
            material::Material,
            writer::{Step, Summarized, SummaryJob, Written},
        },
        passages::{Chosen, Passage, answering, named_in, newest, passages, readable},
    },
    text,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Most characters of each message of the user that stands in for a question.
const LONGEST_MESSAGE: usize = 1_000;

/// An extract from another session that is to be made.
pub struct ReferenceOrder {
    /// The other session.
    pub source: Source,
    /// The question of the request.
    pub question: Option<Clean>,
    /// The newest messages of the user. They stand in for a question.
    pub newest: Vec<String>,
    /// The largest extract, in tokens.
    pub cap: u64,
    /// The scale of the session that receives it.
    pub scale: Scale,
}

/// An extract from another session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceText {
    /// The extract in its frame.
    pub text: Clean,
    /// The `details` of its entry.
    pub details: Value,
    /// The reason why no model wrote it, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
}

/// The passages of the other session, and everything for a model that reads them.
struct Prepared {
    passages: Vec<Passage>,
    /// The extract without a model.
    extracted: Chosen,
    /// The question, or the texts that stand in for it.
    asked: Clean,
    candidates: Vec<Result<Candidate, Unfit>>,
    /// None where no model is asked.
    material: Option<Material>,
}

/// Makes the extract. Dropping the future cancels its requests.
///
/// # Errors
/// When the work ends in a panic. No model is a reason for an error.
pub(super) async fn reference(
    making: &Making<'_>,
    order: Arc<ReferenceOrder>,
    pool: &dyn Pool,
    tell: Tell<'_>,
) -> Result<ReferenceText, Failure> {
    let (own, settings, stop) = (order.clone(), making.settings.clone(), making.stop.clone());
    let (model, access) = (making.model.cloned(), making.access.clone());
    let learned = access.windows.learned().in_session(&making.origin.session);
    let prepare = move || {
        let candidates = summarizers(&settings, model.as_ref(), &learned, &access);
        Ok(prepared(&own, &settings, candidates, &|| stop.requested()))
    };
    let Prepared { passages, extracted, asked, candidates, material } = blocking(pool, prepare).await?;
    let prompts = &making.settings.prompts;
    let Some(material) = material else { return Ok(framed(&order, prompts, &extracted, &Made::default())) };
    let job = SummaryJob {
        origin: making.origin.clone(),
        brief: Brief {
            prompts: (**prompts).clone(),
            instructions: Some(asked),
            context: Vec::new(),
            language: material.language,
            subject: Subject::Reference,
        },
        material,
        reserve: making.settings.settings.branch_summary.reserve_tokens,
        candidates,
        native: None,
        live: None,
        settings: making.settings.clone(),
        scale: order.scale,
        deadline: None,
        tokens: None,
        rank: Rank::foreground(),
        access: making.access.clone(),
    };
    // The events of pieces have no name for an extract. Costs and retries are told.
    let tell = |step: Step| match step {
        Step::Request(_, Update::Spent(_) | Update::RetryStart { .. } | Update::RetryEnd { .. }) => {
            tell(Progress::Summary(step));
        }
        Step::Request(..) | Step::Progress { .. } | Step::Chunk { .. } => {}
    };
    let Summarized { written, made, .. } = by_models(&job, pool, &tell).await;
    let chosen = match written.and_then(Written::whole) {
        Some(text) => Chosen { entries: named_in(&text, &passages), text: text.into_string() },
        None => extracted,
    };
    Ok(framed(&order, prompts, &chosen, &made))
}

fn prepared(
    order: &ReferenceOrder,
    settings: &Sourced,
    candidates: Vec<Result<Candidate, Unfit>>,
    stop: &dyn Fn() -> bool,
) -> Prepared {
    let ReferenceOrder { source, question, newest: messages, cap, scale } = order;
    let cleaner = Cleaner::new(&settings.settings);
    // Redacted before they are clipped: half of a secret looks like none.
    let secrets = settings.settings.redaction.secrets();
    let messages: Vec<Clean> = messages.iter().map(|text| secrets.clean(text)).collect();
    let messages: Vec<&str> = messages.iter().map(|text| text::head(text, LONGEST_MESSAGE)).collect();
    let asked = question.clone().unwrap_or_else(|| Clean::assembled(messages.join("\n")));
    let passages = passages(&source.path, &asked, &|text| cleaner.clean(text).into_string(), stop);
    let measure = |text: &str| scale.text(text);
    // The frame has the question of the request.
    let frame = framed(order, &settings.prompts, &Chosen::default(), &Made::default());
    let cap = cap.saturating_sub(measure(&frame.text));
    let extracted = answering(&passages, &asked, cap, &measure).unwrap_or_else(|| {
        let mut chosen = newest(&passages, cap, &measure);
        if question.is_some() {
            chosen.text = format!("No passage has a word of the question. The newest part:\n{}", chosen.text);
        }
        chosen
    });
    let asked = match asked.trim() {
        "" => Clean::assembled("What does this session know that helps another one to go on?"),
        _ => asked,
    };
    let material = window_of(&candidates).filter(|_| cap >= LEAST_SUMMARY).map(|window| {
        let room = room_in(window, &settings.settings);
        // A fifth stays free for the prompt, and for another tokenizer.
        let lines = readable(&passages, &asked, room / 5 * 4, &measure);
        let words: Vec<&str> = question.iter().map(|question| &**question).chain(messages).collect();
        Material::of_texts(lines, &words, cap, *scale)
    });
    Prepared { passages, extracted, asked, candidates, material }
}

/// The extract in its frame, with its origin.
fn framed(order: &ReferenceOrder, prompts: &Prompts, chosen: &Chosen, made: &Made) -> ReferenceText {
    let ReferenceOrder { source, question, .. } = order;
    let Chosen { text, entries } = chosen;
    let asked = question.as_deref().map(|question| format!("The question was: {}\n", escape_tags(question)));
    let values = [
        ("session", source.id.as_str()),
        ("question", asked.as_deref().unwrap_or_default()),
        ("extract", text.as_str()),
    ];
    let lack = made.rejected.last().filter(|_| made.is_extracted()).map(|last| last.why.clone());
    let details = details(source, question.as_deref(), entries, made);
    ReferenceText { text: Clean::assembled(prompts.render(Prompt::ReferenceContext, &values)), details, lack }
}

fn details(source: &Source, question: Option<&str>, entries: &[EntryId], made: &Made) -> Value {
    let mut details = json!({
        "fromSessionId": source.id,
        "fromPath": source.file,
        "question": question,
        "entryIds": entries,
        "method": made.method,
        "model": made.by,
    });
    if !made.rejected.is_empty() {
        details["rejected"] = json!(made.rejected);
    }
    details
}
