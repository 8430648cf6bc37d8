//! Messages of an append in the format of a provider.

use crate::{
    conversation::{
        entry::Entry,
        message::{known, outline::Role},
    },
    models::ModelRef,
    protocol::{
        errors::Failure,
        types::{AppendParams, MessageFormat},
    },
    provider::given::{self, Beside, OpenCall},
    session::{core::commands::append::Append, state::State},
    text::values,
};
use serde_json::Value;
use std::{borrow::Cow, collections::HashSet, sync::Arc};

/// The refusal of a message of which no tree is made.
pub(super) fn too_large(at: usize) -> Failure {
    let what = format!("it has more than {} values and keys; give large data as one text", values::MOST);
    Failure::of_message(at, "", what)
}

/// The messages in pi's form, each with the place of its original.
///
/// # Errors
/// When a message is none of its format, or a field of an answer stands beside messages without one.
pub(super) fn in_pis_form<'a>(
    params: &'a AppendParams,
    state: &State,
    before: &[Append],
    model: Option<&ModelRef>,
) -> Result<Vec<(usize, Cow<'a, str>)>, Failure> {
    let texts: Vec<&str> = params.messages.iter().map(|message| message.0.get()).collect();
    for (at, text) in texts.iter().enumerate() {
        values::check(text).map_err(|_| too_large(at))?;
    }
    let beside = Beside {
        usage: params.usage.as_ref().map(|usage| &*usage.0),
        stop: params.stop_reason.as_deref(),
        error: params.error_message.as_deref(),
    };
    let Some(api) = params.format.and_then(MessageFormat::api) else {
        return match beside.first() {
            None => {
                for (at, text) in texts.iter().enumerate() {
                    known::check(text).map_err(|error| Failure::of_message(at, &error.path, error.problem))?;
                }
                Ok(texts.into_iter().map(Cow::Borrowed).enumerate().collect())
            }
            Some(name) => {
                let what = format!(
                    "`{name}` stands beside messages in a provider's format; an assistant message in the format \
                     `messages` holds it itself"
                );
                Err(Failure::params(name, what))
            }
        };
    };
    let open = open_calls(params, state, before);
    let made = given::messages(api, &texts, &beside, model, open)
        .map_err(|given::Invalid { path, problem }| Failure::params(path, problem))?;
    Ok(made.into_iter().map(|made| (made.at, Cow::Owned(made.json))).collect())
}

/// Whether the server changed the request of an answer: it cleared or compacted parts of the conversation, or dropped thinking.
/// Its counts are of another prompt than the one that was sent.
pub(super) fn was_changed_by_server(params: &AppendParams, at: usize) -> bool {
    let text = params.messages.get(at).map_or("", |message| message.0.get());
    let names: &[&str] = match params.format {
        Some(MessageFormat::Anthropic) => &["\"applied_edits\"", "\"input_transformations\"", "\"compaction\""],
        Some(MessageFormat::OpenaiResponses) => &["\"compaction\""],
        Some(MessageFormat::Messages | MessageFormat::OpenaiChat | MessageFormat::Google) | None => &[],
    };
    if !names.iter().any(|name| text.contains(name)) {
        return false;
    }
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let any = |list: &Value, kind: &str| list.as_array().is_some_and(|all| all.iter().any(|it| it["type"] == kind));
    let edits = answer["context_management"]["applied_edits"].as_array();
    edits.is_some_and(|edits| !edits.is_empty())
        || any(&answer["input_transformations"], "thinking_dropped")
        || [&answer["usage"]["iterations"], &answer["content"], &answer["output"]]
            .into_iter()
            .any(|list| any(list, "compaction"))
}

/// The entries of appends that are written with this one, oldest first.
pub(super) fn staged_before(before: &[Append]) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
    before.iter().flat_map(|append| &append.staged.entries)
}

/// The calls of the newest answer before an append that have no result, in their order.
fn open_calls(params: &AppendParams, state: &State, before: &[Append]) -> Vec<OpenCall> {
    let path = state.path();
    let parent = params.parent_entry_id.as_ref();
    // A parent on another branch is rare, and ids alone tell its calls.
    let end = match parent {
        None => path.len(),
        Some(parent) => path.position(parent).map_or(0, |place| place + 1),
    };
    let behind = staged_before(before).rev().filter(|_| parent.is_none());
    let mut results = HashSet::new();
    for entry in behind.chain(path[..end].iter().rev()) {
        let Some(outline) = entry.outline() else { continue };
        if outline.role == Role::Assistant {
            let open = outline.calls.iter().filter(|call| !results.contains(&call.id));
            return open.map(|call| OpenCall { id: call.id.to_string(), name: call.name.clone() }).collect();
        }
        results.extend(&outline.answers);
    }
    Vec::new()
}
