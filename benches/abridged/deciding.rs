//! The decision of a session of a million tokens, as the core asks it after an append.

use super::{Report, median};
use abridged::{
    compaction::decide::{Why, at_threshold},
    conversation::entry::{Entry, Header, HeaderKind, VERSION},
    log::{
        Placed,
        history::History,
        index::{Gap, Spot},
    },
    models::ModelRef,
    session::state::{SessionData, State},
    settings::{Layers, layers::Source, trust::Trust},
};
use serde_json::{Map, Value, json};
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

/// The calls of a long batch.
const BATCH: usize = 2_000;

/// The decisions behind each number.
const ROUNDS: usize = 51;

/// The end of a session, and the entries that are appended to it.
struct Shape {
    name: &'static str,
    /// The window of the model, in tokens.
    window: u64,
    /// Adds the end.
    end: fn(&mut Entries),
    /// The message that is appended before a decision, by its number.
    next: fn(usize) -> Value,
    /// The reason of each decision.
    why: Why,
}

const SHAPES: [Shape; 5] = [
    Shape { name: "below the threshold", window: 2_000_000, end: |_| {}, next: |_| user(), why: Why::Below },
    Shape {
        name: "over it, a call open",
        window: 500_000,
        end: |_| {},
        next: |at| answer(&[format!("open-{at}")]),
        why: Why::CallsOpen,
    },
    Shape {
        name: "over it, in a batch of 2,000 results",
        window: 500_000,
        end: |entries| entries.batch(BATCH - ROUNDS - 1),
        next: |at| result(&call(BATCH - ROUNDS - 1 + at)),
        why: Why::CallsOpen,
    },
    Shape {
        name: "over it, behind a batch of 2,000 results",
        window: 500_000,
        end: |entries| entries.batch(BATCH),
        // Results that come twice leave the batch complete.
        next: |at| result(&call(at)),
        why: Why::Due,
    },
    Shape {
        name: "over it, behind an undone compaction",
        window: 500_000,
        end: |entries| {
            let id =
                entries.add(json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1}));
            entries.add(json!({"type": "custom", "customType": "abridged.undo", "data": {"compactionEntryId": id}}));
        },
        next: |_| user(),
        // Over the window the rest after an undo is over.
        why: Why::Due,
    },
];

fn message(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

fn user() -> Value {
    message(json!({"role": "user", "content": "Go on with the next part.", "timestamp": 1}))
}

fn call(at: usize) -> String {
    format!("call-{at}")
}

fn answer(calls: &[String]) -> Value {
    let calls: Vec<Value> =
        calls.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}})).collect();
    message(json!({"role": "assistant", "stopReason": "toolUse", "timestamp": 1, "content": calls}))
}

fn result(call: &str) -> Value {
    message(json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "isError": false, "timestamp": 1,
        "content": [{"type": "text", "text": "3 lines"}]}))
}

/// Entries, each the child of the one before.
#[derive(Default)]
struct Entries {
    all: Vec<Arc<Entry>>,
}

impl Entries {
    /// A session of a million tokens: a thousand turns, each answer with a report of the provider.
    fn of_a_million_tokens() -> Self {
        let mut entries = Self::default();
        let source = "let value = read_part(&config.parts, limits).context(\"part\")?;\n".repeat(60);
        for turn in 1..=1_000 {
            let id = format!("turn-{turn}");
            entries.add(user());
            entries.add(answer(std::slice::from_ref(&id)));
            let content = json!([{"type": "text", "text": source}]);
            entries.add(message(json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false,
                "timestamp": 1, "content": content})));
            let usage = json!({"input": turn * 1_000, "output": 20, "totalTokens": turn * 1_000 + 20});
            entries.add(message(json!({"role": "assistant", "stopReason": "stop", "timestamp": 1, "usage": usage,
                "content": [{"type": "text", "text": "The part is fine."}]})));
        }
        entries
    }

    fn add(&mut self, line: Value) -> String {
        let (entry, id) = self.entry(line);
        self.all.push(entry);
        id
    }

    /// An entry behind the last one.
    fn entry(&self, mut line: Value) -> (Arc<Entry>, String) {
        let id = format!("e{}", self.all.len());
        line["id"] = json!(id);
        line["parentId"] = json!(self.all.last().map(|entry| entry.id.to_string()));
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        (Arc::new(Entry::parse(line.to_string().into()).expect("a line")), id)
    }

    /// An answer with a long batch of calls, and the first `results` of its results.
    fn batch(&mut self, results: usize) {
        let calls: Vec<String> = (0..BATCH).map(call).collect();
        self.add(answer(&calls));
        calls[..results].iter().for_each(|call| drop(self.add(result(call))));
    }
}

fn state(entries: &Entries, window: u64) -> State {
    let model =
        json!({"provider": "bench", "id": "model", "contextWindow": window, "compaction": {"thresholdPercent": 80}});
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model]});
    let header = Header {
        kind: HeaderKind::Session,
        version: VERSION,
        id: "bench".into(),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        cwd: "/bench".to_owned(),
        parent_session: None,
        title: None,
        rest: Map::new(),
    };
    State::new(
        header,
        None,
        None,
        History::in_memory(entries.all.clone()),
        SessionData::default(),
        ModelRef::parse("bench/model"),
        &Layers::of(vec![(Source::Global, settings)]),
        Trust::Trusted,
    )
    .expect("a state")
}

/// Takes the caches of the processor, as the rest of a daemon does between two appends.
fn take_caches(memory: &mut [u64]) {
    memory.iter_mut().step_by(8).for_each(|word| *word = word.wrapping_add(1));
    black_box(memory.len());
}

/// The time of a decision behind each of some appends.
fn times(shape: &Shape) -> Vec<Duration> {
    let mut entries = Entries::of_a_million_tokens();
    (shape.end)(&mut entries);
    let mut state = state(&entries, shape.window);
    assert!(state.measure().context_tokens > 999_000);
    let mut memory = vec![0_u64; 8 << 20];
    (0..ROUNDS)
        .map(|at| {
            let (entry, _) = entries.entry((shape.next)(at));
            entries.all.push(entry.clone());
            let spot = Spot { offset: 0, length: 0 };
            state.change(|history| history.push(Placed { entry, spot, gap: Gap::Blank }));
            take_caches(&mut memory);
            let started = Instant::now();
            let decision = at_threshold(state.measure().facts(state.path(), None, None));
            let took = started.elapsed();
            assert_eq!(decision.why, shape.why, "{}", shape.name);
            took
        })
        .collect()
}

/// The decision in each shape.
pub fn decisions(report: &mut Report) {
    for shape in &SHAPES {
        let name = format!("decision at 1M tokens, {}", shape.name);
        report.add(name, median(times(shape)).as_secs_f64() * 1e6, "µs", "50");
    }
}
