//! Properties of the pure core: whatever led to a path, each message on it is kept or covered, and the context is one
//! that a provider takes.

use abridged::{
    compaction::{
        draft::Draft,
        ladder,
        plan::{self, Demand},
    },
    conversation::{
        context::{self, check::violations},
        entry::{Entry, Stamp},
        message::Message,
        path::Path,
        spending::Spending,
        tokens::{Estimator, Scale},
    },
    ids::EntryId,
    models::Budget,
    prompts::Prompts,
    settings::{CompactionSettings, Settings},
    summary::{
        cleaner::Cleaner,
        extractive::{self, Summary},
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The scale of all plans here: by characters, and no provider.
const SCALE: Scale = Scale::new(Estimator::Chars, 1.0);

/// A step of a session's history.
#[derive(Debug, Clone)]
pub enum Step {
    User(usize),
    /// An answer with so many calls, of which so many are answered, and whether it failed.
    Answer {
        calls: usize,
        results: usize,
        failed: bool,
        size: usize,
    },
    /// A result that nobody asked for.
    Orphan,
    Metadata,
    Custom(usize),
    /// Go on from an earlier entry.
    Branch(prop::sample::Index),
    Compact {
        keep: u64,
    },
    /// Pin, or unpin, an entry of the path.
    Pin(prop::sample::Index),
    Unpin(prop::sample::Index),
    /// Take back the compaction in force.
    Undo,
    /// Another content for an entry of the path.
    Edit(prop::sample::Index),
}

pub fn step() -> impl Strategy<Value = Step> {
    let size = 1_usize..900;
    prop_oneof![
        4 => size.clone().prop_map(Step::User),
        6 => (0_usize..4, 0_usize..4, prop::bool::weighted(0.15), size.clone())
            .prop_map(|(calls, results, failed, size)| Step::Answer { calls, results, failed, size }),
        1 => Just(Step::Orphan),
        1 => Just(Step::Metadata),
        1 => size.prop_map(Step::Custom),
        1 => any::<prop::sample::Index>().prop_map(Step::Branch),
        3 => (0_u64..1_500).prop_map(|keep| Step::Compact { keep }),
        1 => any::<prop::sample::Index>().prop_map(Step::Pin),
        1 => any::<prop::sample::Index>().prop_map(Step::Unpin),
        1 => Just(Step::Undo),
        1 => any::<prop::sample::Index>().prop_map(Step::Edit),
    ]
}

/// A session without a file, and what each compaction of it covers.
#[derive(Default)]
pub struct World {
    entries: Vec<Arc<Entry>>,
    covered: HashMap<EntryId, HashSet<EntryId>>,
    leaf: Option<EntryId>,
    count: usize,
    compactions: usize,
}

impl World {
    pub fn add(&mut self, mut line: Value) -> EntryId {
        self.count += 1;
        let id = format!("e{}", self.count);
        line["id"] = json!(id);
        line["parentId"] = json!(self.leaf);
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        self.push(&line.to_string())
    }

    fn push(&mut self, line: &str) -> EntryId {
        let entry = Arc::new(Entry::parse(line.into()).expect("a line"));
        let id = entry.id.clone();
        self.entries.push(entry);
        self.leaf = Some(id.clone());
        id
    }

    fn message(&mut self, message: Value) {
        self.add(json!({"type": "message", "message": message}));
    }

    /// The whole path from its root.
    pub fn path(&self) -> Path {
        let mut from_leaf = Vec::new();
        let mut next = self.leaf.clone();
        for entry in self.entries.iter().rev() {
            if next.as_ref() == Some(&entry.id) {
                from_leaf.push(entry.clone());
                next = entry.parent.clone();
            }
        }
        let mut path = Path::default();
        from_leaf.into_iter().rev().for_each(|entry| path.push(entry));
        path
    }

    /// The same as it is read from a file: only as far back as the context needs.
    fn end_of_path(&self) -> Path {
        let leaf = self.entries.iter().rposition(|entry| Some(&entry.id) == self.leaf.as_ref());
        leaf.map(|leaf| Path::of(&self.entries[..=leaf])).unwrap_or_default()
    }

    fn mark(&mut self, name: &str, data: Value) {
        self.add(json!({"type": "custom", "customType": format!("abridged.{name}"), "data": data}));
    }

    pub fn take(&mut self, step: &Step) {
        let text = |size: usize, n: usize| {
            format!("word_{n} must be in src/file_{n}.rs and error_{n} too. ").repeat(size / 50 + 1)
        };
        let n = self.count;
        match step {
            Step::User(size) => self.message(json!({"role": "user", "content": text(*size, n)})),
            Step::Answer { calls, results, failed, size } => {
                // Ids repeat, as with models that number their calls from zero each time.
                let blocks: Vec<Value> = std::iter::once(json!({"type": "text", "text": text(*size, n)}))
                    .chain((0..*calls).map(|at| json!({"type": "toolCall", "id": format!("call_{at}"), "name": "read", "arguments": {"path": "a"}})))
                    .collect();
                let stop = if *failed { "error" } else { "stop" };
                self.message(json!({"role": "assistant", "content": blocks, "stopReason": stop}));
                for at in 0..*results {
                    self.message(json!({"role": "toolResult", "toolCallId": format!("call_{at}"), "content": [{"type": "text", "text": text(*size, n)}]}));
                }
            }
            Step::Orphan => self.message(json!({"role": "toolResult", "toolCallId": "nobody", "content": []})),
            Step::Metadata => {
                self.add(json!({"type": "model_change", "provider": "p", "modelId": "m"}));
            }
            Step::Custom(size) => {
                self.add(
                    json!({"type": "custom_message", "customType": "x", "content": text(*size, n), "display": true}),
                );
            }
            Step::Branch(at) => {
                if !self.entries.is_empty() {
                    self.leaf = Some(self.entries[at.index(self.entries.len())].id.clone());
                }
            }
            Step::Pin(at) => {
                let path = self.path();
                let messages: Vec<_> = path.iter().filter(|entry| entry.in_context()).collect();
                let Some(entry) = (!messages.is_empty()).then(|| messages[at.index(messages.len())].clone()) else {
                    return;
                };
                let mut data = json!({"entryId": entry.id});
                if path.position(&entry.id).is_some_and(|place| place < path.first_kept()) {
                    data["text"] = entry.pinned_text().into();
                    let own = path.position(&entry.id);
                    let next = path.pins().iter().find(|pin| path.position(&pin.entry) > own);
                    data["before"] = json!(next.map(|pin| pin.entry.clone()));
                }
                self.mark("pin", data);
            }
            Step::Unpin(at) => {
                let path = self.path();
                let pins = path.pins();
                if !pins.is_empty() {
                    self.mark("unpin", json!({"entryId": pins[at.index(pins.len())].entry}));
                }
            }
            Step::Undo => {
                let path = self.path();
                if let Some(place) = path.compaction() {
                    self.mark("undo", json!({"compactionEntryId": path[place].id}));
                }
            }
            Step::Edit(at) => {
                let path = self.path();
                if !path.is_empty() {
                    let target = path[at.index(path.len())].id.clone();
                    self.add(json!({"type": "context_edit", "targetId": target, "replacement": {"content": "edited"}}));
                }
            }
            Step::Compact { keep } => self.compact(*keep),
        }
    }

    fn compact(&mut self, keep: u64) {
        let path = self.path();
        let before = tokens_of(&path);
        let demand = Demand {
            keep,
            explicit: true,
            scale: SCALE,
            budget: Budget::of(32_768, &CompactionSettings::default(), 0, 0),
            tokens_before: before,
            may_stay: u64::MAX,
            insists: true,
        };
        let Ok(plan) = plan::plan(path.clone(), demand, Arc::default()) else {
            return;
        };
        let settings = Settings::default();
        let Ok(draft) = ladder::climb(plan, (&settings).into(), &|plan, cap| summarize(plan, cap, &settings)) else {
            panic!("32,768 tokens are enough for any of these");
        };
        assert!(draft.tokens_after <= draft.plan.demand.budget.threshold);
        let summarized = draft.plan.history().iter().chain(draft.plan.turn_prefix());
        let mut covered: HashSet<EntryId> = summarized.map(|entry| entry.id.clone()).collect();
        if let Some(previous) = draft.plan.previous() {
            covered.extend(self.covered[&previous.id].clone());
        }
        self.count += 1;
        let id: EntryId = format!("c{}", self.count).into();
        let stamp = Stamp { id: id.clone(), timestamp: String::new() };
        let line =
            draft.line(&stamp, path.last().map(|leaf| &leaf.id), &path, None, draft.tokens_after, Spending::default());
        self.push(&line);
        self.covered.insert(id, covered);
        self.compactions += 1;
        self.what_resulted_is_what_was_measured(&draft);
    }

    fn what_resulted_is_what_was_measured(&self, draft: &Draft) {
        assert_eq!(tokens_of(&self.path()), draft.tokens_after);
    }

    fn check(&self) {
        let path = self.path();
        let context = context::build(&path, &Prompts::default());
        let sent: Vec<Value> =
            context.messages().iter().map(|it| serde_json::from_str(&it.json()).expect("JSON")).collect();
        assert_eq!(violations(&sent), Vec::<String>::new());
        let first_kept = path.first_kept();
        let covered = context.compaction().map(|id| &self.covered[id]);
        for (place, entry) in path.iter().enumerate().filter(|(_, entry)| entry.in_context()) {
            let kept = place >= first_kept;
            let is_covered = covered.is_some_and(|covered| covered.contains(&entry.id));
            assert!(kept != is_covered, "{}: kept {kept}, covered {is_covered}", entry.id);
        }
        let short = context::build(&self.end_of_path(), &Prompts::default());
        let json = |context: &context::Context| -> Vec<String> {
            context.messages().iter().map(|message| message.json().into_owned()).collect()
        };
        assert_eq!(json(&context), json(&short), "the end of the path is enough");
        for pin in path.pins() {
            let entry = &path[path.position(&pin.entry).expect("only what is on the path was pinned")];
            let text = entry.pinned_text();
            let quoted = json!(text).to_string();
            let times = sent.iter().filter(|it| it.to_string().contains(&quoted[1..quoted.len() - 1])).count();
            // A failed answer and a result without its call are never sent.
            let always_sent = matches!(entry.message(), None | Some(Message::User(_) | Message::Custom(_)));
            if always_sent && !text.is_empty() {
                assert_eq!(times, 1, "{} is there once", pin.entry);
            }
        }
        let newest_user = path.iter().rev().find(|entry| entry.line().contains(r#""role":"user""#));
        let edited = context::edited_entries(&path);
        if let Some(newest) = newest_user.filter(|entry| !edited.contains(&entry.id)) {
            let marker = newest.line().split("word_").nth(1).and_then(|rest| rest.split(' ').next()).expect("a marker");
            assert!(
                sent.iter().any(|message| message.to_string().contains(&format!("word_{marker} "))),
                "the newest user message is there"
            );
        }
    }
}

fn summarize(plan: &plan::Plan, cap: u64, settings: &Settings) -> Summary {
    let summary = extractive::summarize(&extractive::Request {
        span: plan.span(),
        without: None,
        wishes: Default::default(),
        cap,
        settings,
        cleaner: &Cleaner::new(settings),
        scale: SCALE,
        stop: &|| false,
    });
    let size = SCALE.text(&summary.text);
    assert!(size <= cap, "{size} tokens of {cap}");
    summary
}

fn tokens_of(path: &Path) -> u64 {
    context::build(path, &Prompts::default()).tokens(Estimator::Chars)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_message_on_a_path_is_kept_or_covered(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::default();
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}

#[test]
fn twenty_chained_compactions_with_branches_lose_nothing() {
    let mut world = World::default();
    let mut round = 0_usize;
    while world.compactions < 20 {
        round += 1;
        for size in [300, 40, 700] {
            world.take(&Step::User(size));
            world.take(&Step::Answer { calls: round % 3, results: round % 4, failed: round.is_multiple_of(7), size });
            world.check();
        }
        if round.is_multiple_of(5) {
            // Back a few entries, and on from there.
            let back = world.entries.iter().rev().nth(4).map(|entry| entry.id.clone());
            world.leaf = back;
        }
        world.take(&Step::Compact { keep: (round as u64 * 97) % 1_200 });
        world.check();
        assert!(round < 200, "{} compactions", world.compactions);
    }
}

#[test]
fn the_same_plan_gives_the_same_summary() {
    let build = || {
        let mut world = World::default();
        for at in 0..40 {
            world.take(&Step::User(at * 13));
            world.take(&Step::Answer { calls: 2, results: 2, failed: false, size: at * 29 });
        }
        let demand = Demand {
            keep: 500,
            explicit: true,
            scale: SCALE,
            budget: Budget::of(32_768, &CompactionSettings::default(), 0, 0),
            tokens_before: 0,
            may_stay: u64::MAX,
            insists: true,
        };
        let plan = plan::plan(world.path(), demand, Arc::default()).expect("long enough");
        (plan.hash(), summarize(&plan, 2_000, &Settings::default()))
    };
    assert_eq!(build(), build());
}

/// Neither an answer with signed thinking nor anything else that is kept is changed by a byte.
#[test]
fn what_is_kept_is_sent_byte_for_byte_and_the_prefix_stays() {
    let mut world = World::default();
    let odd = r#"{"role":"assistant","content":[{"thinkingSignature":"sig==","type":"thinking","thinking":"hm  m"},{"type":"text","text":"Umlaut ü"}],"z":1.50,"stopReason":"stop"}"#;
    world.take(&Step::User(10));
    let line = format!(r#"{{"type":"message","id":"odd","parentId":"e1","timestamp":"t","message":{odd}}}"#);
    world.push(&line);
    let before: Vec<String> =
        context::build(&world.path(), &Prompts::default()).messages().iter().map(|it| it.json().into_owned()).collect();
    assert_eq!(before[1], odd);
    for _ in 0..5 {
        world.take(&Step::User(100));
        world.take(&Step::Metadata);
        let now: Vec<String> = context::build(&world.path(), &Prompts::default())
            .messages()
            .iter()
            .map(|it| it.json().into_owned())
            .collect();
        assert_eq!(now[..before.len()], before[..]);
    }
}
