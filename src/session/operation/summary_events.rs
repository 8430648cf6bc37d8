//! The events about a summary in the making: its progress and its text.

use super::forward::Forward;
use crate::{
    ask::request::Update,
    models::ModelRef,
    protocol::events::{ChunkSource, Event, Stage},
    provider::Delta,
    summary::model::writer::Step,
};
use std::{collections::HashMap, time::Instant};

/// The largest piece of summary text in one event, in bytes. The limit of a frame holds it even when it is escaped.
const CHUNK: usize = 8 * 1024;

/// The progress and the text that were sent.
#[derive(Debug, Default)]
pub struct SummaryEvents {
    /// The number of the chunk that is being summarized, by source.
    chunks: HashMap<ChunkSource, u32>,
    /// The number of times that each chunk was begun.
    attempts: HashMap<(ChunkSource, u32), u32>,
    forward: Forward,
}

impl SummaryEvents {
    /// The event for these steps of a stage; `None` where nothing is new. `model`: the model that is asked.
    pub fn progress(
        &mut self,
        stage: Stage,
        steps: (usize, usize),
        model: Option<ModelRef>,
        now: Instant,
    ) -> Option<Event> {
        self.forward.to(stage, steps, model, now)
    }

    /// All steps of a stage.
    pub fn all(&self, stage: Stage) -> usize {
        self.forward.all(stage)
    }

    /// Moves on to a chunk of a source, counted from 1.
    pub fn moves_to(&mut self, source: ChunkSource, chunk: u32) {
        self.chunks.insert(source, chunk);
    }

    /// Begins the chunk of a source anew: the text that was sent of the source before is void.
    pub fn begins(&mut self, source: ChunkSource) {
        *self.attempts.entry((source, self.chunk(source))).or_default() += 1;
    }

    fn chunk(&self, source: ChunkSource) -> u32 {
        self.chunks.get(&source).copied().unwrap_or(1)
    }

    /// The events with a text of the summary, piece by piece.
    pub fn text(&self, source: ChunkSource, text: &str) -> Vec<Event> {
        let part = self.chunk(source);
        let attempt = self.attempts.get(&(source, part)).copied().unwrap_or(1);
        let mut events = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let mut end = rest.len().min(CHUNK);
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            let (piece, tail) = rest.split_at(end);
            events.push(Event::SummaryChunk { source, part, attempt, text: piece.to_owned() });
            rest = tail;
        }
        events
    }

    /// The events about the progress and the text of a step. Repetitions of its requests are told by their operation.
    pub fn step(&mut self, step: Step, now: Instant) -> Vec<Event> {
        match step {
            Step::Progress { done, total, model } => {
                self.progress(Stage::Summarizing, (done, total), model, now).into_iter().collect()
            }
            Step::Chunk { purpose, number } => {
                ChunkSource::of(purpose).into_iter().for_each(|source| self.moves_to(source, number));
                Vec::new()
            }
            Step::Request(purpose, update) => match (update, ChunkSource::of(purpose)) {
                (Update::Begins, Some(source)) => {
                    self.begins(source);
                    Vec::new()
                }
                (Update::Delta(Delta::Text(text)), Some(source)) => self.text(source, &text),
                _ => Vec::new(),
            },
        }
    }
}
