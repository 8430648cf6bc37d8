//! `session/context`: the messages, or the request body, that a model may be sent now.

mod body;

use crate::{
    compaction::ladder::Floor,
    conversation::{context, path::Path},
    log::{blobs::Reading, sealed::Blocking},
    models::{Budget, ModelRef, SaidBy},
    protocol::{
        SessionContext,
        errors::Failure,
        types::{ContextParams, Usage},
    },
    session::{
        core::{
            Core,
            command::{Command, SessionMethod},
            queue,
        },
        effects::{Answer, Ticket},
        fault::{Fault, planted},
        state::View,
    },
    wire::transport::Piece,
};
use serde_json::Value;

impl SessionMethod for SessionContext {
    fn handle(core: &mut Core, params: ContextParams, ticket: Ticket) {
        if ticket.cancelled() && !planted(Fault::CancelledContextAnswered) {
            return ticket.fail(&Failure::Cancelled);
        }
        core.context(params, ticket);
    }
}

/// The way to the answer of a request for a context.
enum Way {
    /// The context as the session stands.
    Answer,
    /// The context behind the maintenance that runs, or behind the counts that decide.
    Hold,
    /// The context behind maintenance that starts now.
    Maintain,
    /// No request with this context fits the window, and no maintenance may run.
    TooLarge(Floor),
}

impl Core {
    /// Answers a request for a context, holds it, or refuses it.
    pub(in crate::session::core) fn context(&mut self, params: ContextParams, ticket: Ticket) {
        match self.way(&params) {
            Way::Answer => return self.answer_context(params, ticket),
            Way::TooLarge(floor) => return ticket.fail(&Failure::ContextOverflow(floor)),
            Way::Hold | Way::Maintain if self.held.len() >= queue::FULL => {
                return ticket.fail(&Failure::Overloaded { retry_after_ms: queue::TRY_AGAIN });
            }
            Way::Hold => {}
            // A start is recorded in the lock, which is with the writer.
            Way::Maintain if !self.listens() => {
                return self.queue.put_back(Command::call::<SessionContext>(params), ticket);
            }
            Way::Maintain => self.start_unasked(),
        }
        self.held.push((params, ticket));
    }

    /// A request that waits, or that is in a provider's format, gets a context that fits a window that is known.
    fn way(&self, params: &ContextParams) -> Way {
        let waits = params.wait == Some(true);
        if waits && !self.work.is_none() && !planted(Fault::ContextNotHeld) {
            return Way::Hold;
        }
        let is_request = params.format.and_then(body::api).is_some();
        if !waits && !is_request || !self.work.is_none() {
            return Way::Answer;
        }
        let leaf = params.leaf_entry_id.as_ref();
        let at_leaf = leaf.is_none_or(|leaf| self.state.path().visible_leaf() == Some(leaf));
        let fullness = match leaf.and_then(|leaf| self.state.path().up_to(leaf)) {
            Some(path) if !at_leaf => self.state.view().of(&path).measure(&path),
            _ if at_leaf => self.state.measure(),
            // Another branch is measured where it is read.
            _ => return Way::Answer,
        };
        if fullness.context_tokens <= fullness.budget.window || fullness.window_source == SaidBy::Default {
            return Way::Answer;
        }
        if at_leaf && self.counting.runs() {
            return Way::Hold;
        }
        if at_leaf && self.maintenance_is_due() {
            return Way::Maintain;
        }
        let Budget { system, tools, pins, window, .. } = fullness.budget;
        let latest_turn = fullness.context_tokens.saturating_sub(fullness.budget.overhead() + pins);
        Way::TooLarge(Floor { system, tools, pins, latest_turn, window })
    }

    /// Answers with the context of any entry.
    pub(in crate::session::core) fn answer_context(&mut self, params: ContextParams, ticket: Ticket) {
        let here = match &params.leaf_entry_id {
            None => Some(self.state.path().clone()),
            Some(leaf) => self.state.path().up_to(leaf),
        };
        let api = params.format.and_then(body::api);
        if let Some(path) = here {
            let view = match params.leaf_entry_id {
                Some(_) => self.state.view().of(&path),
                None => self.state.view(),
            };
            return match api {
                None if view.blobs().is_none() => ticket.answer(Context::new(&view, &path).answer(Reading::none())),
                None => self.read_context(ticket, &view.clone(), move |blocking| {
                    Context::new(&view, &path).answer(Reading::of(view.blobs(), blocking))
                }),
                Some(api) => {
                    let session = self.state.id.clone();
                    let outside = view.clone();
                    let read = move |blocking: &Blocking| body::answer(&view, &path, &session, api, blocking);
                    self.read_context(ticket, &outside, read);
                }
            };
        }
        let (Some(library), Some(leaf)) = (self.state.history().library(), params.leaf_entry_id.clone()) else {
            return self.await_index(Command::call::<SessionContext>(params), ticket);
        };
        let (view, session) = (self.state.view(), self.state.id.clone());
        self.read_context(ticket, &view.clone(), move |blocking| match (library.path_to(&leaf, blocking), api) {
            (Ok(Some(path)), None) => {
                let view = view.of(&path);
                Context::new(&view, &path).answer(Reading::of(view.blobs(), blocking))
            }
            (Ok(Some(path)), Some(api)) => body::answer(&view.of(&path), &path, &session, api, blocking),
            (Ok(None), _) => Answer::Failed(Failure::no_entry(&leaf)),
            (Err(error), _) => Answer::Failed(error.into()),
        });
    }

    /// Makes a context beside the session. Images are read from files of their own.
    fn read_context(&mut self, ticket: Ticket, view: &View, read: impl FnOnce(&Blocking) -> Answer + Send + 'static) {
        match view.blobs() {
            None => self.spawn_read(ticket, read),
            Some(_) => self.spawn_outside(ticket, move |_, blocking| read(blocking)),
        }
    }
}

/// The result in the format `messages`.
struct Context {
    context: context::Context,
    system: Option<Value>,
    usage: Usage,
    model: Option<ModelRef>,
    max_output: Option<u64>,
}

impl Context {
    fn new(view: &View, path: &Path) -> Self {
        let context = context::build(path, view.prompts());
        let usage = Usage::from(&view.measure(path));
        let system = view.instructions().message().cloned();
        let model = view.model(path);
        let max_output = view.max_output(&usage, model.as_ref());
        Self { context, system, usage, model, max_output }
    }

    /// The JSON of a `ContextAnswer`. The messages are JSON already and may have a hundred megabytes, so they are not
    /// copied.
    fn answer(&self, mut images: Reading<'_>) -> Answer {
        let messages = self.context.messages();
        let mut pieces = Vec::with_capacity(2 * messages.len() + 2);
        let mut before = "{\"messages\":[".to_owned();
        if let Some(system) = &self.system {
            before.push_str(&format!("{system}{}", if messages.is_empty() { "" } else { "," }));
        }
        for message in messages {
            pieces.push(Piece::Text(std::mem::replace(&mut before, ",".to_owned())));
            pieces.push(match message.part() {
                Some((line, part)) if !images.concerns(&line[part.clone()]) => Piece::Part(line, part),
                _ => Piece::Text(images.resolve(message.json()).into_owned()),
            });
        }
        // No single entry says all of the system prompt.
        let system = self.system.iter().map(|_| None);
        let entries: Vec<_> = system.chain(messages.iter().map(context::ContextMessage::entry_shown)).collect();
        let rest = serde_json::json!({
            "entryIds": entries,
            "usage": self.usage,
            "compactionEntryId": self.context.compaction(),
            "model": self.model,
            "maxOutputTokens": self.max_output,
        });
        let end = if messages.is_empty() { before } else { String::new() };
        pieces.push(Piece::Text(format!("{end}],{}", &rest.to_string()[1..])));
        Answer::Pieces(pieces)
    }
}
