//! `session/context`: the messages, or the request body, that a model may be sent now.

mod body;

use crate::{
    conversation::{context, path::Path},
    log::blobs::{Blobs, Reading},
    models::ModelRef,
    protocol::{
        SessionContext,
        errors::Failure,
        types::{ContextParams, Usage},
    },
    session::{
        Session,
        command::{Command, SessionMethod},
        handle::Urgent,
        state::View,
    },
    wire::{rpc::Reply, transport::Piece},
};
use serde_json::Value;

impl SessionMethod for SessionContext {
    fn handle(session: &mut Session, params: ContextParams, reply: Reply) {
        if reply.cancelled() {
            return reply.fail(&Failure::Cancelled);
        }
        if params.wait == Some(true) && !session.work.is_none() {
            let urgent = session.urgent.clone();
            session.waiting.push((params, reply));
            if let Some((_, reply)) = session.waiting.last() {
                reply.on_cancel(move || drop(urgent.send(Box::new(Urgent::TakenBack))));
            }
            return;
        }
        session.answer_context(params, reply);
    }
}

impl Session {
    /// Answers with the context of any entry.
    pub(in crate::session) fn answer_context(&mut self, params: ContextParams, reply: Reply) {
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
                None if view.blobs().is_none() => reply.pieces(Context::new(&view, &path).pieces()),
                // Images are read from files of their own.
                None => self.spawn_read(move || reply.pieces(Context::new(&view, &path).pieces())),
                Some(api) => {
                    let session = self.state.id.clone();
                    self.spawn_read(move || body::answer(&view, &path, &session, api, reply));
                }
            };
        }
        let (Some(library), Some(leaf)) = (self.state.history().library(), params.leaf_entry_id.clone()) else {
            return self.await_index(Command::call::<SessionContext>(params, reply));
        };
        let (view, session) = (self.state.view(), self.state.id.clone());
        self.spawn_read(move || match (library.path_to(&leaf), api) {
            (Ok(Some(path)), None) => reply.pieces(Context::new(&view.of(&path), &path).pieces()),
            (Ok(Some(path)), Some(api)) => body::answer(&view.of(&path), &path, &session, api, reply),
            (Ok(None), _) => reply.fail(&Failure::no_entry(&leaf)),
            (Err(error), _) => reply.fail(&error.into()),
        });
    }
}

/// The result in the format `messages`.
struct Context {
    context: context::Context,
    system: Option<Value>,
    usage: Usage,
    model: Option<ModelRef>,
    blobs: Option<Blobs>,
}

impl Context {
    fn new(view: &View, path: &Path) -> Self {
        let context = context::build(path, view.prompts());
        let usage = Usage::from(&view.measure(path));
        let system = view.instructions().message().cloned();
        Self { context, system, usage, model: view.model(path), blobs: view.blobs().cloned() }
    }

    /// The JSON of a `ContextAnswer`. The messages are JSON already and may have a hundred megabytes, so they are not
    /// copied.
    fn pieces(&self) -> Vec<Piece> {
        let messages = self.context.messages();
        let mut pieces = Vec::with_capacity(2 * messages.len() + 2);
        let mut images = Reading::of(self.blobs.as_ref());
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
        });
        let end = if messages.is_empty() { before } else { String::new() };
        pieces.push(Piece::Text(format!("{end}],{}", &rest.to_string()[1..])));
        pieces
    }
}
