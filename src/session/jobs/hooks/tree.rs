//! The hook of a navigation. It is asked before every move of the leaf, with a summary or without one.

use super::asking::{Questions, Unusable};
use crate::{
    ask::request::Origin,
    ids::EntryId,
    prompts,
    protocol::{
        errors::Failure,
        events::HookOutcome,
        requests::{
            BeforeTreeAnswer, BeforeTreeParams, ClientRequest as _, HookBeforeTree, MessageRange, SuppliedBranchSummary,
        },
        types::{HookEvent, LONGEST_LABEL},
    },
};
use serde_json::json;

/// The hook of a navigation.
const HOOK: HookEvent = HookEvent::SessionBeforeTree;

/// The facts of a navigation that its hook is told.
pub struct Facts<'a> {
    /// Session and operation.
    pub origin: &'a Origin,
    /// Entry to which the leaf moves.
    pub target: &'a EntryId,
    /// Leaf now.
    pub old_leaf: Option<&'a EntryId>,
    /// The deepest entry of both branches.
    pub common_ancestor: Option<&'a EntryId>,
    /// The messages of the branch that is left.
    pub messages: MessageRange,
    /// Whether the branch is summarized.
    pub summarizes: bool,
    /// The instructions of the request.
    pub instructions: Option<&'a str>,
}

/// The answer of a hook.
#[derive(Default)]
pub struct Wishes {
    /// Instructions for the summary, in the place of those of the request.
    pub instructions: Option<String>,
    /// Whether the instructions take the place of the prompt.
    pub replaces: Option<bool>,
    /// The label, in the place of that of the request.
    pub label: Option<String>,
    /// A summary that is to be checked. The hook has not ended where there is one.
    pub supplied: Option<SuppliedBranchSummary>,
}

/// Asks the hook of a navigation, if the client answers it.
///
/// # Errors
/// When the hook cancels the navigation, or fails and its registration says `abort`.
pub async fn ask(questions: Questions<'_>, facts: Facts<'_>) -> Result<Wishes, Failure> {
    if !questions.hooks.answers(HOOK) {
        return Ok(Wishes::default());
    }
    let sent = questions.begins(HOOK);
    let params = BeforeTreeParams {
        session_id: facts.origin.session.clone(),
        operation_id: facts.origin.operation.clone(),
        target_entry_id: facts.target.clone(),
        old_leaf_id: facts.old_leaf.cloned(),
        common_ancestor_id: facts.common_ancestor.cloned(),
        entries_to_summarize: facts.messages,
        user_wants_summary: facts.summarizes,
        instructions: facts.instructions.map(str::to_owned),
        deadline_ms: questions.deadline(),
    };
    sent.wait().await;
    let asked = questions.ask(HookBeforeTree::NAME, json!(params)).await.and_then(|answer| match answer {
        None => Ok(None),
        Some(answer) => within_limits(answer).map(Some),
    });
    let said = |text: Option<String>| text.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    match asked {
        Err(unusable) => questions.fails(HOOK, unusable).map(|()| Wishes::default()),
        Ok(None) => {
            questions.ends(HOOK, HookOutcome::Ok, None);
            Ok(Wishes::default())
        }
        Ok(Some(BeforeTreeAnswer::Continue { instructions, replace_instructions, label })) => {
            questions.ends(HOOK, HookOutcome::Ok, None);
            let (instructions, label) = (said(instructions), said(label));
            Ok(Wishes { instructions, replaces: replace_instructions, label, supplied: None })
        }
        Ok(Some(BeforeTreeAnswer::Cancel { reason })) => {
            questions.ends(HOOK, HookOutcome::Cancelled, reason);
            Err(Failure::Cancelled)
        }
        Ok(Some(BeforeTreeAnswer::Replace { summary, label })) => {
            if !facts.summarizes {
                let why = "its summary is not used: none was asked for".to_owned();
                questions.ends(HOOK, HookOutcome::Ok, Some(why));
                return Ok(Wishes { label: said(label), ..Wishes::default() });
            }
            Ok(Wishes { label: said(label), supplied: Some(summary), ..Wishes::default() })
        }
    }
}

/// Ends a hook whose summary was checked. `refused`: the reason why it is not used.
pub fn checked(questions: Questions<'_>, refused: Option<&str>) {
    match refused {
        None => questions.ends(HOOK, HookOutcome::Replaced, None),
        Some(why) => questions.ends(HOOK, HookOutcome::Error, Some(format!("its summary is not used: {why}"))),
    }
}

/// Checks the sizes of an answer.
fn within_limits(answer: BeforeTreeAnswer) -> Result<BeforeTreeAnswer, Unusable> {
    /// The most data of a summary, in bytes of JSON: as much as a compaction may carry.
    const MOST_DETAILS: usize = 1 << 20;
    let wrong = |what: String| Err(Unusable::Wrong(what));
    let (label, instructions, details) = match &answer {
        BeforeTreeAnswer::Continue { label, instructions, .. } => (label.as_ref(), instructions.as_ref(), None),
        BeforeTreeAnswer::Replace { label, summary } => (label.as_ref(), None, summary.details.as_ref()),
        BeforeTreeAnswer::Cancel { .. } => (None, None, None),
    };
    if label.is_some_and(|label| label.len() > LONGEST_LABEL) {
        return wrong(format!("its label has more than {LONGEST_LABEL} bytes"));
    }
    if instructions.is_some_and(|text| text.len() > prompts::LONGEST) {
        return wrong(format!("its instructions have more than {} bytes", prompts::LONGEST));
    }
    if details.is_some_and(|details| details.to_string().len() > MOST_DETAILS) {
        return wrong(format!("its details have more than {MOST_DETAILS} bytes"));
    }
    Ok(answer)
}
