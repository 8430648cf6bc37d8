//! The extract of a reference.

use super::Making;
use crate::{
    conversation::{context, tokens::Scale},
    ids::EntryId,
    prompts::{Prompt, Prompts, escape_tags},
    protocol::errors::Failure,
    session::{
        jobs::blocking::{Pool, blocking},
        source::Source,
    },
    settings::Sourced,
    summary::{
        extractive::Cleaner,
        made::Made,
        passages::{Chosen, Passage, answering, newest, passages},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// An extract from another session that is to be made.
pub struct ReferenceOrder {
    /// The other session.
    pub source: Source,
    /// The question of the request.
    pub question: Option<String>,
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
    pub text: String,
    /// The `details` of its entry.
    pub details: Value,
}

/// The passages of the other session, and the extract without a model.
struct Prepared {
    chosen: Chosen,
}

/// The largest share of the extract that its frame takes, in tokens.
const FRAME: u64 = 120;

/// Makes the extract. Dropping the future cancels its requests.
///
/// # Errors
/// When the job is cancelled.
pub(super) async fn reference(
    making: &Making<'_>,
    order: Arc<ReferenceOrder>,
    pool: &dyn Pool,
) -> Result<ReferenceText, Failure> {
    let (own, settings, stop) = (order.clone(), making.settings.clone(), making.stop.clone());
    let prepared = blocking(pool, move || Ok(prepared(&own, &settings, &|| stop.requested()))).await?;
    let made = Made::default();
    Ok(framed(&order, &making.settings.prompts, &prepared.chosen, &made))
}

fn prepared(order: &ReferenceOrder, settings: &Sourced, stop: &dyn Fn() -> bool) -> Prepared {
    let ReferenceOrder { source, question, newest: messages, cap, scale } = order;
    let cleaner = Cleaner::new(&settings.settings);
    let context = context::build(&source.path, &Prompts::default());
    let passages: Vec<Passage> = passages(&context, &|text| cleaner.clean(text), stop);
    let asked = question.clone().unwrap_or_else(|| messages.join("\n"));
    let measure = |text: &str| scale.text(text);
    let cap = cap.saturating_sub(FRAME);
    let chosen = answering(&passages, &asked, cap, &measure).unwrap_or_else(|| {
        let mut chosen = newest(&passages, cap, &measure);
        if question.is_some() {
            chosen.text = format!("No passage has a word of the question. The newest part:\n{}", chosen.text);
        }
        chosen
    });
    Prepared { chosen }
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
    let details = details(source, question.as_deref(), entries, made);
    ReferenceText { text: prompts.render(Prompt::ReferenceContext, &values), details }
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
