//! How full a session is, against a provider that counts with a tokenizer of its own and adds what nobody announced.

use abridged::{
    context,
    entry::{self, Entry},
    ids::{EntryId, ModelRef},
    maintenance::ladder::Draft,
    message::{Block, Message},
    path::Path,
    protocol::types::{Initiator, Usage, UsageSource},
    session::{
        compaction::{self, Snapshot},
        instructions::Instructions,
        meter::Meter,
        operation::Stop,
        state::SessionData,
        usage::{Gauge, Measure},
    },
    settings::{Layers, Sourced, layers::Source},
    tokens::{self, Estimator},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// How the stub provider counts.
#[derive(Debug, Clone, Copy)]
enum Tokenizer {
    /// So many times our count.
    Ours(f64),
    /// Bytes over so many.
    Bytes(f64),
    /// So many for each word.
    Words(f64),
}

impl Tokenizer {
    fn count(self, text: &str) -> f64 {
        match self {
            Self::Ours(factor) => f64::from(tokens::of_text(text)) * factor,
            Self::Bytes(each) => text.len() as f64 / each,
            Self::Words(each) => text.split_whitespace().count() as f64 * each,
        }
    }
}

/// What a provider answers with, beside the answer.
#[derive(Debug, Clone, Copy)]
enum Report {
    Right,
    /// The answer failed; its usage says half of it.
    Failed,
    Zero,
    Absurd,
    /// The count of an answer of another model, with another tokenizer.
    OtherModel,
    /// Less than the one before.
    Shrunk,
    None,
}

#[derive(Debug, Clone)]
enum Step {
    Turn { size: usize, result: usize, report: Report },
    Compact { keep: u64 },
    Prune,
}

#[derive(Debug, Clone)]
struct Provider {
    tokenizer: Tokenizer,
    overhead: u64,
    window: u64,
    /// How much of the overhead the client announces as a system prompt.
    announced: bool,
}

fn provider() -> impl Strategy<Value = Provider> {
    let tokenizer = prop_oneof![
        (0.7..1.5_f64).prop_map(Tokenizer::Ours),
        (3.4..5.5_f64).prop_map(Tokenizer::Bytes),
        (1.2..1.9_f64).prop_map(Tokenizer::Words),
    ];
    let window = prop_oneof![Just(32_000_u64), Just(64_000)];
    (tokenizer, 0..60_u64, window, any::<bool>()).prop_map(|(tokenizer, percent, window, announced)| Provider {
        tokenizer,
        overhead: window * percent / 100,
        window,
        announced,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let report = prop_oneof![
        12 => Just(Report::Right),
        1 => Just(Report::Failed),
        1 => Just(Report::Zero),
        1 => Just(Report::Absurd),
        1 => Just(Report::OtherModel),
        1 => Just(Report::Shrunk),
        1 => Just(Report::None),
    ];
    let turn =
        (20_usize..400, 50_usize..900, report).prop_map(|(size, result, report)| Step::Turn { size, result, report });
    let begin = prop::collection::vec(
        (40_usize..300).prop_map(|size| Step::Turn { size, result: 4 * size, report: Report::Right }),
        5..12,
    );
    let rest = prop::collection::vec(
        prop_oneof![8 => turn, 2 => (300_u64..3_000).prop_map(|keep| Step::Compact { keep }), 1 => Just(Step::Prune)],
        4..24,
    );
    (begin, rest).prop_map(|(begin, rest)| begin.into_iter().chain(rest).chain([Step::Compact { keep: 800 }]).collect())
}

/// Prose with some code in it.
fn text(words: usize, seed: usize) -> String {
    const WORDS: [&str; 24] = [
        "the",
        "parser",
        "reads",
        "a",
        "line",
        "and",
        "keeps",
        "its",
        "bytes",
        "because",
        "nobody",
        "else",
        "may",
        "change",
        "them",
        "later",
        "fn",
        "parse(line:",
        "&str)",
        "->",
        "Option<Entry>",
        "{",
        "}",
        "return;",
    ];
    let mut state = seed as u64 * 2_654_435_761 + 1;
    let mut text = String::new();
    for at in 0..words {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        text.push(if at % 14 == 13 { '\n' } else { ' ' });
    }
    text
}

struct World {
    provider: Provider,
    settings: Arc<Sourced>,
    instructions: Arc<Instructions>,
    model: ModelRef,
    entries: Vec<Arc<Entry>>,
    path: Path,
    meter: Option<Meter>,
    compactions: usize,
}

impl World {
    fn new(provider: Provider) -> Self {
        let settings = json!({"models": [{"provider": "stub", "id": "m", "contextWindow": provider.window}]});
        let settings = Layers::of(vec![(Source::Session, settings)]).sourced();
        let prompt = provider.announced.then(|| {
            let mut prompt = String::new();
            while provider.tokenizer.count(&prompt) < provider.overhead as f64 / 2.0 {
                prompt.push_str(&text(200, prompt.len()));
            }
            prompt
        });
        let data = SessionData { system_prompt: prompt, ..SessionData::default() };
        Self {
            provider,
            settings: Arc::new(settings),
            instructions: Arc::new(Instructions::new(&data, &Path::default())),
            model: ModelRef { provider: "stub".into(), id: "m".into() },
            entries: Vec::new(),
            path: Path::default(),
            meter: None,
            compactions: 0,
        }
    }

    fn push(&mut self, line: String) {
        let entry = Arc::new(Entry::parse(line.into()).expect("a line"));
        self.entries.push(entry.clone());
        self.path.push(entry);
        let prompts = &self.settings.prompts;
        match &mut self.meter {
            Some(meter) => meter.follow(&self.path, prompts, Estimator::Tiktoken),
            None => self.meter = Some(Meter::of(&self.path, prompts, Estimator::Tiktoken)),
        }
        self.the_sums_are_those_of_the_path_read_at_once();
    }

    fn line(&mut self, kind: &str, field: &str, value: &Value) {
        let id: EntryId = format!("e{}", self.entries.len()).into();
        let parent = self.path.last().map(|leaf| leaf.id.clone());
        self.push(entry::line(kind, &id, parent.as_ref(), &[(field, &entry::raw(value))]));
    }

    /// What the provider counts of a request for this path.
    fn count(&self) -> u64 {
        let context = context::build(&self.path, &self.settings.prompts);
        let message = |message: &Message| {
            let text = |block: &Block| match block {
                Block::Text(text) | Block::Thinking { text, .. } => self.provider.tokenizer.count(text),
                Block::ToolCall(call) => {
                    self.provider.tokenizer.count(&call.name) + self.provider.tokenizer.count(&call.arguments)
                }
                Block::Image(_) | Block::Other(_) => 0.0,
            };
            message.blocks().iter().map(text).sum::<f64>() + 4.0
        };
        self.provider.overhead + context.messages().iter().map(|it| message(it.message())).sum::<f64>() as u64
    }

    fn gauge(&self) -> Gauge<'_> {
        Gauge {
            settings: &self.settings.settings,
            model: Some(&self.model),
            learned: None,
            instructions: &self.instructions,
        }
    }

    fn measure(&self, path: &Path, estimator: Estimator) -> Measure {
        self.gauge().measure(&Meter::of(path, &self.settings.prompts, estimator))
    }

    fn usage(&self) -> Usage {
        self.gauge().measure(self.meter.as_ref().expect("something was pushed")).usage
    }

    fn the_sums_are_those_of_the_path_read_at_once(&self) {
        assert_eq!(self.usage(), self.measure(&self.path, Estimator::Tiktoken).usage);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Turn { size, result, report } => self.turn(*size, *result, *report),
            Step::Prune => {
                let result = self.path.iter().rev().find(|entry| entry.is_from(message_role()));
                let Some(target) = result.map(|entry| entry.id.clone()) else { return };
                let id: EntryId = format!("e{}", self.entries.len()).into();
                let parent = self.path.last().map(|leaf| leaf.id.clone());
                let (target, replacement) = (entry::raw(&target), entry::raw(&json!({"content": "[left out]"})));
                let fields = [("targetId", &*target), ("replacement", &*replacement)];
                self.push(entry::line("context_edit", &id, parent.as_ref(), &fields));
            }
            Step::Compact { keep } => self.compact(*keep),
        }
    }

    fn turn(&mut self, size: usize, result: usize, report: Report) {
        let seed = self.entries.len();
        let call = format!("c{seed}");
        self.line("message", "message", &json!({"role": "user", "content": text(size, seed)}));
        self.answer(
            json!([{"type": "toolCall", "id": call, "name": "read", "arguments": {"path": format!("src/{seed}.rs")}}]),
            report,
        );
        let content = json!([{"type": "text", "text": text(result, seed + 1)}]);
        self.line(
            "message",
            "message",
            &json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content}),
        );
        self.answer(json!([{"type": "text", "text": text(size / 2 + 1, seed + 2)}]), Report::Right);
    }

    fn answer(&mut self, content: Value, report: Report) {
        let sent = self.count();
        let mut message =
            json!({"role": "assistant", "content": content, "stopReason": "stop", "provider": "stub", "model": "m"});
        let usage =
            |input: u64| json!({"input": input / 3, "output": 60, "cacheRead": input - input / 3, "cacheWrite": 0});
        match report {
            Report::Right => message["usage"] = usage(sent),
            Report::Failed => {
                message["usage"] = usage(sent / 2);
                message["stopReason"] = "error".into();
            }
            Report::Zero => message["usage"] = json!({"input": 0, "output": 0}),
            Report::Absurd => message["usage"] = usage(sent * 1_000_000),
            Report::OtherModel => {
                message["usage"] = usage(sent * 2);
                message["model"] = "other".into();
            }
            Report::Shrunk => message["usage"] = usage(sent * 2 / 5),
            Report::None => {}
        }
        self.line("message", "message", &message);
    }

    fn compact(&mut self, keep: u64) {
        let snapshot = Snapshot {
            path: self.path.clone(),
            settings: self.settings.clone(),
            model: Some(self.model.clone()),
            learned: None,
            instructions: self.instructions.clone(),
            keep_recent_tokens: Some(keep),
            initiator: Initiator::User,
            stop: Stop::default(),
        };
        let Ok(planned) = compaction::prepare(snapshot) else { return };
        // An overhead of more than half of the window may leave no room at all.
        let Ok(draft) = compaction::draft(planned.plan, &self.settings.settings, None, &Stop::default()) else {
            return;
        };
        self.write(&draft);
        self.compactions += 1;
        let tokens_after = draft.tokens_after;
        let usage = self.usage();
        assert_eq!((usage.context_tokens, usage.source), (tokens_after, UsageSource::Estimate));
        let reopened = Path::of(&self.entries);
        assert_eq!(self.measure(&reopened, Estimator::Tiktoken).usage, usage);
        assert_eq!(self.measure(&reopened, Estimator::Chars).usage.context_tokens, tokens_after);
        let reported = self.count();
        let off = tokens_after.abs_diff(reported) as f64 / reported as f64;
        assert!(off <= 0.15, "{tokens_after} said, {reported} reported by {:?}: {usage:?}", self.provider);
        self.path.trim();
        assert_eq!(self.measure(&self.path, Estimator::Tiktoken).usage, usage);
    }

    fn write(&mut self, draft: &Draft) {
        let id: EntryId = format!("e{}", self.entries.len()).into();
        let parent = self.path.last().map(|leaf| leaf.id.clone());
        self.push(draft.line(&id, parent.as_ref(), &self.path.clone(), None, draft.tokens_after));
    }
}

fn message_role() -> abridged::message::outline::Role {
    abridged::message::outline::Role::ToolResult
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// What a compaction says it leaves, what the session says then, live and opened again, and what the provider reports
    /// next are the same, the last within 15 %.
    #[test]
    fn after_a_compaction_everybody_says_the_same(provider in provider(), steps in steps()) {
        let mut world = World::new(provider);
        steps.iter().for_each(|step| world.take(step));
    }
}
