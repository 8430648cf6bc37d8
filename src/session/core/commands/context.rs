//! `session/context`: the messages, or the request body, that a model may be sent now.

mod body;

use crate::{
    compaction::{gauge::Fullness, ladder::Floor},
    conversation::{context, path::Path},
    log::{blobs::Reading, sealed::Blocking},
    models::{ModelRef, SaidBy},
    protocol::{
        SessionContext,
        errors::Failure,
        types::{ContextParams, MessageFormat, Usage},
    },
    session::{
        core::{
            Core, Ending, HeldContext, WaitsFor,
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
        core.context(params, ticket, WaitsFor::Decision);
    }
}

/// The way to the answer of a request for a context.
enum Way {
    /// The context as the session stands.
    Answer,
    /// The context behind the maintenance that runs, or behind the counts that decide.
    Hold(WaitsFor),
    /// The context behind maintenance that starts now.
    Maintain,
    /// No request with this context fits the window, and no maintenance may run.
    TooLarge(Floor),
}

/// Whether a context over a known window is refused.
fn must_fit(params: &ContextParams) -> bool {
    params.wait == Some(true) || params.format.and_then(MessageFormat::api).is_some()
}

/// The parts of a context that is larger than its window, where somebody said how large that is.
pub(in crate::session::core) fn too_large(fullness: &Fullness) -> Option<Floor> {
    let over = fullness.context_tokens > fullness.budget.window && fullness.window_source != SaidBy::Default;
    over.then(|| fullness.floor())
}

/// Refuses a context that is larger than its window.
fn within_window(view: &View, path: &Path) -> Result<(), Failure> {
    let why = || "The session compacts itself at its leaf alone; ask for the context of the leaf.".to_owned();
    too_large(&view.measure(path)).map_or(Ok(()), |floor| Err(Failure::OverWindow { floor, why: why() }))
}

impl Core {
    /// Answers a request for a context, holds it, or refuses it. `waited_for` is the end that it waited for before.
    pub(in crate::session::core) fn context(&mut self, params: ContextParams, ticket: Ticket, waited_for: WaitsFor) {
        let waits_for = match self.way(&params, waited_for) {
            Way::Answer => return self.answer_context(params, ticket),
            Way::TooLarge(floor) => {
                let why = self.why();
                return ticket.fail(&Failure::OverWindow { floor, why });
            }
            Way::Hold(_) | Way::Maintain if self.held.len() >= queue::FULL => {
                return ticket.fail(&Failure::Overloaded { retry_after_ms: queue::TRY_AGAIN });
            }
            Way::Hold(waits_for) => waits_for,
            // A start is recorded in the lock, which is with the writer.
            Way::Maintain if !self.listens() => {
                return self.queue.put_back(Command::call::<SessionContext>(params), ticket);
            }
            Way::Maintain => self.maintain(),
        };
        self.held.push(HeldContext { params, ticket, waits_for });
    }

    /// A request that waits, or that is in a provider's format, gets a context that fits a window that is known.
    fn way(&self, params: &ContextParams, waited_for: WaitsFor) -> Way {
        let (waits, runs) = (params.wait == Some(true), !self.work.is_none() && !planted(Fault::ContextNotHeld));
        if waits && runs || must_fit(params) && (self.recovers() || self.switches()) {
            return Way::Hold(WaitsFor::Compaction);
        }
        let leaf = params.leaf_entry_id.as_ref();
        let at_leaf = leaf.is_none_or(|leaf| self.state.path().visible_leaf() == Some(leaf));
        if !must_fit(params) || !at_leaf || planted(Fault::OverWindow) {
            return Way::Answer;
        }
        if self.failed_recovery().is_some() {
            return Way::TooLarge(self.state.measure().floor());
        }
        match too_large(&self.state.measure()) {
            None => Way::Answer,
            Some(_) if runs => Way::Hold(WaitsFor::Compaction),
            Some(_) if self.counting.runs() && matches!(self.ending, Ending::No) => Way::Hold(WaitsFor::Decision),
            Some(_) if waited_for == WaitsFor::Decision && self.maintenance_is_due() => Way::Maintain,
            Some(floor) => Way::TooLarge(floor),
        }
    }

    /// Whether a context that waits is over the window, and more maintenance makes it smaller.
    pub(in crate::session::core) fn held_needs_more(&self) -> bool {
        let decides = |context: &HeldContext| context.waits_for == WaitsFor::Decision && must_fit(&context.params);
        self.held.iter().any(decides)
            && self.failed_recovery().is_none()
            && too_large(&self.state.measure()).is_some()
            && (self.counting.runs() || self.decision().is_due())
    }

    /// Answers with the context of any entry.
    pub(in crate::session::core) fn answer_context(&mut self, params: ContextParams, ticket: Ticket) {
        let here = match &params.leaf_entry_id {
            None => Some(self.state.path().clone()),
            Some(leaf) => self.state.path().up_to(leaf),
        };
        if params.leaf_entry_id.is_none() {
            self.gives_context();
        }
        let api = params.format.and_then(MessageFormat::api);
        // No maintenance makes the context of another leaf smaller.
        let fits = match params.leaf_entry_id {
            Some(_) if must_fit(&params) => within_window,
            _ => |_: &View, _: &Path| Ok(()),
        };
        if let Some(path) = here {
            let view = match params.leaf_entry_id {
                Some(_) => self.state.view().of(&path),
                None => self.state.view(),
            };
            if let Err(failure) = fits(&view, &path) {
                return ticket.fail(&failure);
            }
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
            (Ok(Some(path)), api) => {
                let view = view.of(&path);
                match (fits(&view, &path), api) {
                    (Err(failure), _) => Answer::Failed(failure),
                    (Ok(()), None) => Context::new(&view, &path).answer(Reading::of(view.blobs(), blocking)),
                    (Ok(()), Some(api)) => body::answer(&view, &path, &session, api, blocking),
                }
            }
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
