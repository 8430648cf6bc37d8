//! Answers that change nothing.

use crate::{
    conversation::{
        context,
        entry::{self, Entry},
        path::Path,
        tokens::Estimator,
    },
    ids::EntryId,
    log::blobs::{Blobs, Reading},
    models::ModelRef,
    protocol::types::{self, EntriesAnswer, EntriesParams, Thresholds, Usage, UsageAnswer},
    session::state::{State, View},
    wire::transport::Piece,
};
use serde_json::{Value, value::RawValue};

/// Entries of a page, if the client does not say.
const PAGE: usize = 1_000;

/// Bytes of a page, if the client does not say.
const PAGE_BYTES: usize = 1 << 20;

/// The result of `session/context` with the format `messages`.
pub struct Context {
    context: context::Context,
    system: Option<Value>,
    usage: Usage,
    model: Option<ModelRef>,
    blobs: Option<Blobs>,
}

impl Context {
    /// What is answered for a path.
    #[must_use]
    pub fn new(view: &View, path: &Path) -> Self {
        let context = context::build(path, view.prompts());
        let usage = view.measure(path).usage;
        let system = view.instructions().message().cloned();
        Self { context, system, usage, model: view.model(path), blobs: view.blobs().cloned() }
    }

    /// Its JSON: the fields of `ContextAnswer`, which the schema is made of. Messages are JSON already, and there may be
    /// a hundred megabytes of them, so they are not copied.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece> {
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

/// `session/usage`.
#[must_use]
pub fn usage(state: &State) -> UsageAnswer {
    let path = state.path();
    let measure = state.measure();
    let why = measure.decision(path).why().to_owned();
    let estimator = match measure.estimator {
        Estimator::Tiktoken => "tiktoken",
        Estimator::Chars => "chars",
    };
    UsageAnswer {
        thresholds: Thresholds {
            threshold_tokens: measure.budget.threshold,
            target_tokens: measure.budget.target(),
            fixed_overhead_tokens: measure.budget.overhead(),
            summary_tokens: measure.budget.summary_cap(),
            keep_recent_tokens: measure.compaction.keep_recent_tokens,
            calibration: measure.calibration,
            estimator: estimator.to_owned(),
        },
        usage: measure.usage,
        why,
    }
}

/// A page of `session/entries` that is being filled.
pub struct Page<'a> {
    params: &'a EntriesParams,
    entries: Vec<types::Entry>,
    bytes: usize,
    last: Option<EntryId>,
    next_cursor: Option<EntryId>,
}

impl<'a> Page<'a> {
    /// An empty one.
    #[must_use]
    pub fn new(params: &'a EntriesParams) -> Self {
        Self { params, entries: Vec::new(), bytes: 0, last: None, next_cursor: None }
    }

    /// Adds the next entry, if it is wanted. False where the page is full; the entry is for the next one then.
    pub fn add(&mut self, entry: &Entry) -> bool {
        if self.params.types.as_ref().is_some_and(|types| !types.contains(&entry.kind)) {
            return true;
        }
        let limit = self.params.limit.unwrap_or(PAGE).max(1);
        let max_bytes = self.params.max_bytes.unwrap_or(PAGE_BYTES);
        let size = entry.line().len();
        if self.entries.len() == limit || !self.entries.is_empty() && self.bytes + size > max_bytes {
            self.next_cursor = self.last.take();
            return false;
        }
        self.bytes += size;
        self.last = Some(entry.id.clone());
        self.entries.push(wire(entry));
        true
    }

    /// The page.
    #[must_use]
    pub fn answer(self, leaf_entry_id: Option<EntryId>) -> EntriesAnswer {
        EntriesAnswer { entries: self.entries, leaf_entry_id, next_cursor: self.next_cursor }
    }
}

/// An entry as it goes onto the wire: its line, with the parent that it has in the tree.
#[must_use]
pub fn wire(entry: &Entry) -> types::Entry {
    types::Entry(raw(&entry.line_with_parent()))
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(entry::one_line(json).into_owned()).expect("lines and messages were read as JSON")
}
