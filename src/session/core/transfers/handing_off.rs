//! `session/handoff`: a new session goes on from a document about this one, which stays as it is.

use crate::{
    conversation::{
        entry::{CarriedTodos, Entry, Stamps},
        message::outline::Role,
        path::Path,
    },
    protocol::{
        SessionHandoff,
        errors::{Failure, Nothing},
        events::ChunkSource,
        types::{HandoffAnswer, HandoffParams},
    },
    redact::Clean,
    session::{
        core::{
            base::Base,
            command::{Command, CommandMethod, TransferRequest},
            step::Step,
            transfers::{self, relays::Relays},
            turns::prompts::Prompts,
            work::{Founded, HandingOff, Task, Work},
        },
        effects::{Answer, Ticket},
        founding::{Document, Founding, Keeping, Outcome, Saved},
        jobs::{
            Job, defect,
            transfer::{DocumentOrigin, HandoffOrder, HandoffText, TransferText, TransferWork},
        },
        kind::{HandedOff, Handoff, OperationKind, Product, Transfer, Transferred, said},
        operation::Operation,
        operations::{Asked, End},
        state::State,
    },
    summary::todo,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Most characters of `goal` and of `instructions`: each stands in events and in requests to models.
const LONGEST_WISH: usize = 8_000;

impl CommandMethod for SessionHandoff {
    fn command(params: HandoffParams) -> Command {
        Command::Transfer(Box::new(TransferRequest::Handoff(params)))
    }
}

/// Handles a request for a handoff. It writes nothing into this session, so that it may be read-only.
pub(super) fn hand_off(base: &mut Base, relays: &mut Relays, params: HandoffParams, ticket: Ticket) -> Option<Step> {
    let secrets = transfers::secrets(&base.state);
    let document = params.document.as_deref().map(|document| secrets.clean(document));
    let room = match room_of(&base.state, &mut base.stamps, &params, document.as_ref()) {
        Ok(room) => room,
        Err(failure) => return Some(Step::fail(ticket, &failure)),
    };
    let handoff = Handoff::of(&params, secrets);
    if let (true, Some(document)) = (handoff.is_draft, &document) {
        let draft = HandoffAnswer::Draft { document: document.to_string() };
        return Some(Step::Answer(ticket, Answer::ok(&draft)));
    }
    let id = base.stamps.operation();
    let asked = if handoff.is_draft { Asked::Waits(ticket) } else { Asked::by(ticket, params.wait) };
    let handing = HandingOff {
        goal: handoff.goal.clone(),
        covered: base.state.path().clone(),
        is_draft: handoff.is_draft,
        saves: params.save == Some(true),
    };
    relays.asked |= !handoff.is_draft;
    let goal = handoff.goal.clone();
    let operation = transfers::open(base, id, Transfer::Handoff(handoff), asked);
    let task = Task::Handoff(handing);
    let HandoffParams { instructions, model, .. } = params;
    if let Some(document) = document {
        let text = HandoffText { document, origin: DocumentOrigin::Client };
        return Some(Step::Deliver(operation, task, Some(TransferText::Handoff(text))));
    }
    let order = HandoffOrder {
        is_warm: base.is_cache_warm(),
        view: base.state.view(),
        path: base.state.path().clone(),
        goal,
        instructions: said(instructions.as_deref(), secrets),
        only: model,
        maintenance: None,
        fullness: base.state.measure(),
        room,
    };
    let model = base.state.model(base.state.path());
    transfers::make_text(base, operation, task, TransferWork::Handoff(Box::new(order)), model);
    None
}

/// Begins the session of a document, or ends a draft.
pub(super) fn hand_over(
    base: &mut Base,
    prompts: &mut Prompts,
    mut operation: Operation,
    handing: HandingOff,
    text: Option<TransferText>,
) -> Option<Step> {
    let Some(HandoffText { document, origin }) = text.and_then(TransferText::handoff) else {
        return Some(Step::end(operation, End::Failed(defect())));
    };
    if matches!(origin, DocumentOrigin::Extracted(_)) {
        operation.begins(ChunkSource::Handoff);
        operation.chunks(ChunkSource::Handoff, &document);
    }
    if let OperationKind::Transfer(Transfer::Handoff(handoff)) = &operation.kind {
        let _: Result<(), Clean> = handoff.document.set(document.clone());
    }
    let mut made = HandedOff { document, origin, session: None, saved: None };
    if handing.is_draft {
        return Some(Step::end(operation, completed(made)));
    }
    let newer = match newer_than(&base.state, &handing) {
        Ok(newer) => newer,
        Err(failure) => return Some(Step::end(operation, End::Failed(failure))),
    };
    let (details, todos) = (details(&handing, &made.origin), open_tasks(&base.state));
    let document = Document { text: &made.document, details: &details, todos: todos.as_ref(), newer: &newer };
    let Some(founding) = Founding::with_document(&base.state, &document, &mut base.stamps) else {
        return Some(Step::end(operation, End::Failed(defect())));
    };
    let founding = founding.with_queue(|session, parent| prompts.entry_for(base, session, parent));
    let founding = if handing.saves { founding.saving(made.document.clone()) } else { founding };
    made.session = Some(founding.id().clone());
    let saved = founding.saved.clone();
    operation.commits();
    base.effects.start(Job::Found(operation.id.clone(), Box::new(founding)));
    base.work = Work::Founding(operation, Box::new(Founded::Handoff { made, saved }));
    None
}

fn completed(made: HandedOff) -> End<Product> {
    End::Completed(Product::Transferred(Transferred::HandedOff(Box::new(made))))
}

/// The end of a handoff whose session was made, or not.
pub(in crate::session::core) fn handed_over(made: HandedOff, saved: Option<Saved>, outcome: Outcome) -> End<Product> {
    match outcome {
        Ok(file) => {
            let saved = saved.zip(file).map(|(saved, file)| saved.path(&file));
            completed(HandedOff { saved, ..made })
        }
        Err(failed) => End::Failed(failed.into()),
    }
}

fn open_tasks(state: &State) -> Option<CarriedTodos> {
    todo::open_tasks(state.path(), &todo::Rules::default().of(&state.settings().settings))
}

/// The entries that came since a handoff began. They go along, unless the document cannot stand before them.
fn newer_than(state: &State, handing: &HandingOff) -> Result<Vec<Arc<Entry>>, Failure> {
    let path = state.path();
    let changed = || Failure::ContentModified { leaf: state.visible_leaf() };
    if !path.grew_from(&handing.covered) {
        return Err(changed());
    }
    let newer = &path[handing.covered.len()..];
    // The call of a result is in the part that the document stands for.
    let first = newer.iter().find(|entry| entry.in_context());
    if newer.iter().any(|entry| entry.rewrites()) || first.is_some_and(|entry| entry.is_from(Role::ToolResult)) {
        return Err(changed());
    }
    Ok(if first.is_some() { newer.to_vec() } else { Vec::new() })
}

/// The tokens between a new session with this document and its threshold. None where it is over that.
pub(super) fn room_beside(state: &State, stamps: &mut Stamps, text: &Clean) -> Result<Option<u64>, Failure> {
    let todos = open_tasks(state);
    let document = Document { text, details: &Value::Null, todos: todos.as_ref(), newer: &[] };
    let mut stamps = stamps.fork();
    let founding = Founding::with_document(state, &document, &mut stamps).ok_or_else(defect)?;
    let path = founding.path();
    let fullness = state.view().of(&path).measure(&path);
    Ok(fullness.budget.threshold.checked_sub(fullness.context_tokens))
}

/// The largest document of a handoff, in tokens.
///
/// # Errors
/// When there is nothing to hand off, or a param is invalid.
fn room_of(
    state: &State,
    stamps: &mut Stamps,
    params: &HandoffParams,
    document: Option<&Clean>,
) -> Result<u64, Failure> {
    for (name, wish) in [("goal", &params.goal), ("instructions", &params.instructions)] {
        let chars = wish.as_ref().map_or(0, |wish| wish.chars().count());
        if chars > LONGEST_WISH {
            let what = format!(
                "it has {chars} characters, and {LONGEST_WISH} are the limit; shorten it, and append a long text to the \
                 new session as a message"
            );
            return Err(Failure::params(name, what));
        }
    }
    let path = state.path();
    if messages_of(path) < 2 && path.compaction().is_none() {
        return Err(Failure::NothingToCompact(Nothing::NoConversation));
    }
    if params.save == Some(true) && Keeping::like(state) == Keeping::Memory {
        let what = "the session is kept in memory, and so is the new one; leave out save, and take the document from \
                    the answer";
        return Err(Failure::params("save", what));
    }
    let refused = |what: String| Failure::params("document", what);
    if document.is_some_and(|document| document.trim().is_empty()) {
        let what = "it is empty; write the document, or leave it out and it is made from the conversation";
        return Err(refused(what.to_owned()));
    }
    let room = room_beside(state, stamps, &Clean::default())?.ok_or_else(|| {
        let what = "system prompt, tools and pins alone fill the window; use a larger model, fewer tools or fewer pins";
        refused(what.to_owned())
    });
    match document {
        None => Ok(room.unwrap_or_default()),
        Some(document) => {
            let room = room?;
            room_beside(state, stamps, document)?.map(|_| room).ok_or_else(|| {
                refused(format!(
                    "it is too large for the new session, which has room for {room} tokens of it; shorten it, or give \
                     the session a model with a larger window"
                ))
            })
        }
    }
}

/// The number of messages in the context of a path.
pub(super) fn messages_of(path: &Path) -> usize {
    path[path.first_kept()..].iter().filter(|entry| entry.is_conversation()).count()
}

/// The `details` of the message with the document, beside the document itself.
fn details(handing: &HandingOff, origin: &DocumentOrigin) -> Value {
    let (method, model) = match origin {
        DocumentOrigin::Model(model) => ("llm", Some(model)),
        DocumentOrigin::Extracted(_) => ("extractive", None),
        DocumentOrigin::Client => ("client", None),
    };
    let mut details = json!({"method": method});
    if let Some(model) = model {
        details["model"] = json!(model);
    }
    if let Some(goal) = &handing.goal {
        details["goal"] = json!(goal);
    }
    details
}
