//! How full a session is, against a provider that counts with a tokenizer of its own and adds what nobody announced.

use crate::{
    support::{Daemon, Home, assistant, header, text_of, turns, user},
    wire::cases,
};
use abridged::{
    compaction::{
        draft::Draft,
        gauge::{Fullness, Gauge},
        ladder,
        meter::Meter,
        request::{Cause, PlanRequest},
    },
    conversation::{
        context,
        entry::{self, Entry, Stamp},
        instructions::{Given, Instructions},
        message::{Block, Message},
        path::Path,
        spending::Spending,
        tokens::{self, Estimator},
    },
    ids::ModelRef,
    protocol::types::{Initiator, Usage, UsageSource},
    settings::{Layers, Sourced, layers::Source},
    summary::cleaner::Cleaner,
};
use proptest::{prelude::*, test_runner::RngSeed};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{cell::RefCell, collections::HashMap, sync::Arc};

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

/// The report of a provider beside its answer.
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
    Turn {
        size: usize,
        result: usize,
        report: Report,
    },
    Compact {
        keep: u64,
    },
    Prune,
    /// The compaction in force is undone.
    Undo,
    /// A text is pinned.
    Pin,
    /// A line that adds nothing to the context.
    Note(&'static str),
    /// The system prompt changes in the way of pi.
    Declare,
    /// Everything is cleared in the way of oh-my-pi.
    Clear,
    /// The client announces a system prompt of this many words.
    Configure {
        words: usize,
    },
}

/// The announcement of the system prompt at the beginning. It is a half of the overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announced {
    /// There is none. The provider adds all of the overhead.
    Never,
    /// The client gives it for each load.
    AtLoad,
    /// An entry of the session stores it.
    Stored,
}

#[derive(Debug, Clone)]
struct Provider {
    tokenizer: Tokenizer,
    overhead: u64,
    window: u64,
    announced: Announced,
}

fn provider() -> impl Strategy<Value = Provider> {
    let tokenizer = prop_oneof![
        (0.7..1.5_f64).prop_map(Tokenizer::Ours),
        (3.4..5.5_f64).prop_map(Tokenizer::Bytes),
        (1.2..1.9_f64).prop_map(Tokenizer::Words),
    ];
    let window = prop_oneof![Just(32_000_u64), Just(64_000)];
    let announced = prop_oneof![Just(Announced::Never), Just(Announced::AtLoad), Just(Announced::Stored)];
    (tokenizer, 0..60_u64, window, announced).prop_map(|(tokenizer, percent, window, announced)| Provider {
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
    let notes = ["label", "model_change", "custom", "session_info", "thinking_level_change"];
    let other = prop_oneof![
        Just(Step::Undo),
        Just(Step::Pin),
        Just(Step::Declare),
        Just(Step::Clear),
        (0_usize..4_000).prop_map(|words| Step::Configure { words }),
        (0..notes.len()).prop_map(move |at| Step::Note(notes[at])),
    ];
    let begin = prop::collection::vec(
        (40_usize..300).prop_map(|size| Step::Turn { size, result: 4 * size, report: Report::Right }),
        5..12,
    );
    let keep = prop_oneof![1 => Just(0_u64), 5 => 300_u64..3_000];
    let rest = prop::collection::vec(
        prop_oneof![8 => turn, 2 => keep.prop_map(|keep| Step::Compact { keep }), 1 => Just(Step::Prune), 1 => other],
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
    /// The instructions that the client gives for a load.
    given: Given,
    /// The system prompt that the session stores.
    prompt: Option<String>,
    instructions: Arc<Instructions>,
    model: ModelRef,
    entries: Vec<Arc<Entry>>,
    path: Path,
    meter: Option<Meter>,
    /// Everything was cleared once. The reports before it are forgotten with the messages.
    cleared: bool,
    /// The provider's counts of texts that it was sent.
    counted: RefCell<HashMap<String, f64>>,
}

impl World {
    fn new(provider: Provider) -> Self {
        let settings = json!({"models": [{"provider": "stub", "id": "m", "contextWindow": provider.window}]});
        let settings = Layers::of(vec![(Source::Session, settings)]).sourced();
        let mut world = Self {
            settings: Arc::new(settings),
            given: Given::default(),
            prompt: None,
            instructions: Arc::default(),
            model: ModelRef { provider: "stub".into(), id: "m".into() },
            entries: Vec::new(),
            path: Path::default(),
            meter: None,
            cleared: false,
            counted: RefCell::default(),
            provider,
        };
        let prompt = world.system_prompt(world.provider.overhead / 2);
        if world.provider.announced != Announced::Never {
            world.provider.overhead = world.provider.overhead.max(world.provider.tokenizer.count(&prompt) as u64);
        }
        match world.provider.announced {
            Announced::Never => {}
            Announced::AtLoad => {
                world.given.system_prompt = Some(prompt);
                world.look();
            }
            Announced::Stored => world.store(prompt),
        }
        world
    }

    /// A system prompt of about this many tokens by the provider's count.
    fn system_prompt(&self, tokens: u64) -> String {
        let (mut prompt, mut counted) = (String::new(), 0.0);
        while counted < tokens as f64 {
            let more = text(200, prompt.len());
            counted += self.provider.tokenizer.count(&more);
            prompt.push_str(&more);
        }
        prompt
    }

    /// Stores a system prompt as `session/configure` does. The client gives none for a load from then on.
    fn store(&mut self, prompt: String) {
        self.given = Given::default();
        self.prompt = Some(prompt.clone());
        let data = json!({"systemPrompt": prompt});
        self.fields("custom", &[("customType", json!("abridged.session")), ("data", data)]);
    }

    /// Reads the instructions of the path.
    fn look(&mut self) {
        let stored = self.path.session_data().and_then(|data| Given::deserialize(data).ok()).unwrap_or_default();
        let given = if self.given == Given::default() { stored } else { self.given.clone() };
        self.instructions = Arc::new(Instructions::new(given, &self.path.system_prompt()));
    }

    /// The client announces another system prompt. The provider counts the difference, but the first announcement is of a
    /// prompt that it received all the time, as far as the overhead has room for it.
    fn configure(&mut self, words: usize) {
        let count = |prompt: &str| self.provider.tokenizer.count(prompt) as u64;
        let prompt = match (&self.prompt, &self.given.system_prompt) {
            // Another call, such as `settings/set`, stores it with the session.
            (None, Some(given)) => given.clone(),
            _ => text(words, words),
        };
        let overhead = match &self.prompt {
            Some(before) => self.provider.overhead + count(&prompt) - count(before),
            None => self.provider.overhead.max(count(&prompt)),
        };
        if overhead > self.provider.window * 6 / 10 {
            return;
        }
        let before = self.usage();
        self.provider.overhead = overhead;
        self.store(prompt);
        let usage = self.usage();
        let system = |usage: &Usage| usage.breakdown.system as f64;
        let told = usage.context_tokens as f64 - before.context_tokens as f64;
        let off = (told - (system(&usage) - system(&before))).abs();
        // After a cleared point the calibrations depend on few reports.
        let allowed = 50.0 + 0.05 * system(&usage).max(system(&before));
        assert!(off <= allowed || self.cleared, "{before:?} then {usage:?}");
    }

    fn push(&mut self, line: String) {
        let entry = Arc::new(Entry::parse(line.into()).expect("a line"));
        self.entries.push(entry.clone());
        match entry.undoes() {
            // The entries that were trimmed are read again.
            Some(_) => self.path = Path::of(&self.entries),
            None => self.path.push(entry),
        }
        if self.entries.last().is_some_and(|entry| !entry.is_plain()) {
            self.look();
        }
        self.follow();
    }

    fn follow(&mut self) {
        let sourced = &self.settings;
        match &mut self.meter {
            Some(meter) => meter.follow(&self.path, sourced, Estimator::Tiktoken),
            None => self.meter = Some(Meter::of(&self.path, sourced, Estimator::Tiktoken)),
        }
        assert_eq!(self.usage(), Usage::of(&self.measure(&self.path, Estimator::Tiktoken), &self.path));
        let again = Path::of(&self.entries);
        assert_eq!(self.usage(), Usage::of(&self.measure(&again, Estimator::Tiktoken), &again));
    }

    /// Writes an entry of these fields behind the leaf.
    fn fields(&mut self, kind: &str, fields: &[(&str, Value)]) {
        let stamp = Stamp { id: format!("e{}", self.entries.len()).into(), timestamp: String::new() };
        let parent = self.path.last().map(|leaf| leaf.id.clone());
        let raw: Vec<_> = fields.iter().map(|(name, value)| (*name, entry::raw(value))).collect();
        let fields: Vec<_> = raw.iter().map(|(name, value)| (*name, &**value)).collect();
        self.push(entry::line(kind, &stamp, parent.as_ref(), &fields));
    }

    /// The provider's count of a request for this path.
    fn count(&self) -> u64 {
        let context = context::build(&self.path, &self.settings.prompts);
        let mut counted = self.counted.borrow_mut();
        let mut text = |text: &str| match counted.get(text) {
            Some(count) => *count,
            None => *counted.entry(text.to_owned()).or_insert_with(|| self.provider.tokenizer.count(text)),
        };
        let mut block = |block: &Block| match block {
            Block::Text(it) | Block::Thinking { text: it, .. } => text(it),
            Block::ToolCall(call) => text(&call.name) + text(&call.arguments),
            Block::Image(_) | Block::Other(_) => 0.0,
        };
        let mut message = |message: &Message| message.blocks().iter().map(&mut block).sum::<f64>() + 4.0;
        self.provider.overhead + context.messages().iter().map(|it| message(it.message())).sum::<f64>() as u64
    }

    fn gauge(&self) -> Gauge<'_> {
        Gauge {
            settings: &self.settings.settings,
            model: Some(&self.model),
            learned: None.into(),
            instructions: &self.instructions,
        }
    }

    fn measure(&self, path: &Path, estimator: Estimator) -> Fullness {
        self.gauge().measure(&Meter::of(path, &self.settings, estimator))
    }

    fn usage(&self) -> Usage {
        Usage::of(&self.gauge().measure(self.meter.as_ref().expect("something was pushed")), &self.path)
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Turn { size, result, report } => self.turn(*size, *result, *report),
            Step::Prune => {
                let result = self.path.iter().rev().find(|entry| entry.is_from(message_role()));
                let Some(target) = result.map(|entry| entry.id.clone()) else { return };
                let replacement = json!({"content": "[left out]"});
                self.fields("context_edit", &[("targetId", json!(target)), ("replacement", replacement)]);
                // No report from before an edit counts again.
                assert_eq!(self.usage().source, UsageSource::Estimate);
            }
            Step::Compact { keep } => self.compact(*keep),
            Step::Undo => {
                let Some(place) = self.path.compaction() else { return };
                let data = json!({"compactionEntryId": self.path[place].id});
                self.fields("custom", &[("customType", json!("abridged.undo")), ("data", data)]);
                assert_eq!(self.usage().source, UsageSource::Estimate);
            }
            Step::Pin => self
                .fields("custom_message", &[("customType", json!("abridged.pin")), ("content", json!("Never push."))]),
            Step::Note(kind) => self.fields(
                kind,
                &[
                    ("targetId", json!("e0")),
                    ("name", json!("A name")),
                    ("customType", json!("x")),
                    ("thinkingLevel", json!("low")),
                    ("provider", json!("stub")),
                    ("modelId", json!("m")),
                ],
            ),
            Step::Configure { words } => self.configure(*words),
            Step::Clear => {
                self.fields("reset_boundary", &[]);
                self.cleared = true;
            }
            Step::Declare => {
                let message = json!({"role": "system", "content": "", "sections": {"date": "Monday"}});
                self.fields("message", &[("message", message)]);
            }
        }
    }

    fn turn(&mut self, size: usize, result: usize, report: Report) {
        let seed = self.entries.len();
        let call = format!("c{seed}");
        self.fields("message", &[("message", json!({"role": "user", "content": text(size, seed)}))]);
        self.answer(
            json!([{"type": "toolCall", "id": call, "name": "read", "arguments": {"path": format!("src/{seed}.rs")}}]),
            report,
        );
        let content = json!([{"type": "text", "text": text(result, seed + 1)}]);
        self.fields(
            "message",
            &[("message", json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content}))],
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
        self.fields("message", &[("message", message)]);
    }

    fn compact(&mut self, keep: u64) {
        let Some(tokens_after) = self.compact_unchecked(keep) else { return };
        let usage = self.usage();
        assert_eq!((usage.context_tokens, usage.source), (tokens_after, UsageSource::Estimate));
        let reopened = Path::of(&self.entries);
        assert_eq!(Usage::of(&self.measure(&reopened, Estimator::Tiktoken), &reopened), usage);
        assert_eq!(Usage::of(&self.measure(&reopened, Estimator::Chars), &reopened).context_tokens, tokens_after);
        let reported = self.count();
        let off = tokens_after.abs_diff(reported) as f64 / reported as f64;
        assert!(
            off <= 0.15 || self.cleared,
            "{tokens_after} said, {reported} reported by {:?}: {usage:?}",
            self.provider
        );
        self.path.trim();
        assert_eq!(Usage::of(&self.measure(&self.path, Estimator::Tiktoken), &self.path), usage);
    }

    /// Writes a compaction. Returns the size of the context that it states, if there was anything to compact.
    fn compact_unchecked(&mut self, keep: u64) -> Option<u64> {
        let request = PlanRequest {
            path: self.path.clone(),
            is_counted: true,
            settings: self.settings.clone(),
            model: Some(self.model.clone()),
            learned: abridged::models::learned::Learned::default(),
            instructions: self.instructions.clone(),
            cwd: None,
            keep_recent_tokens: Some(keep),
            initiator: Initiator::User,
            cause: Cause::Asked,
            insists: false,
        };
        let planned = request.plan(&|| false).ok()?;
        // An overhead of more than half of the window may leave no room at all.
        let draft = ladder::extracted(
            planned.plan,
            &self.settings.settings,
            &Cleaner::new(&self.settings.settings),
            Default::default(),
            &|| false,
        )
        .ok()?;
        self.write(&draft);
        Some(draft.tokens_after)
    }

    fn write(&mut self, draft: &Draft) {
        let stamp = Stamp { id: format!("e{}", self.entries.len()).into(), timestamp: String::new() };
        let parent = self.path.last().map(|leaf| leaf.id.clone());
        self.push(draft.line(
            &stamp,
            parent.as_ref(),
            &self.path.clone(),
            None,
            draft.tokens_after,
            Spending::default(),
        ));
    }
}

fn message_role() -> abridged::conversation::message::outline::Role {
    abridged::conversation::message::outline::Role::ToolResult
}

/// The same histories in every run: 60, or the first 30 of them; `ABRIDGED_OVERHEADS=N` for N other ones.
fn histories() -> ProptestConfig {
    match std::env::var("ABRIDGED_OVERHEADS").ok().and_then(|cases| cases.parse().ok()) {
        Some(cases) => ProptestConfig { cases, ..ProptestConfig::default() },
        None => ProptestConfig {
            cases: cases("ABRIDGED_OVERHEADS", 20, 60),
            rng_seed: RngSeed::Fixed(60),
            ..ProptestConfig::default()
        },
    }
}

proptest! {
    #![proptest_config(histories())]

    /// `tokensAfter`, the session's usage, live and reopened, and the provider's next report agree, the last within 15
    /// %.
    #[test]
    fn after_a_compaction_everybody_says_the_same(provider in provider(), steps in steps()) {
        let mut world = World::new(provider);
        steps.iter().for_each(|step| world.take(step));
    }
}

#[test]
fn a_session_whose_compaction_keeps_nothing_is_as_full_when_it_is_opened_again() {
    let provider =
        Provider { tokenizer: Tokenizer::Ours(0.8), overhead: 4_000, window: 32_000, announced: Announced::Never };
    let mut world = World::new(provider);
    (0..6).for_each(|at| world.turn(100 + at, 400, Report::Right));
    world.compact(0);
    // The compaction is the whole path: no answer names the model.
    let path = Path::of(&world.entries);
    let factor = world.measure(&path, Estimator::Tiktoken).scale.factor();
    assert!(path.len() == 1 && (0.7..0.9).contains(&factor), "{factor}");
}

#[test]
fn reports_from_before_a_cleared_point_count_neither_live_nor_when_the_session_is_opened_again() {
    let provider =
        Provider { tokenizer: Tokenizer::Ours(1.3), overhead: 4_000, window: 32_000, announced: Announced::Never };
    let mut world = World::new(provider);
    (0..6).for_each(|at| world.turn(100 + at, 400, Report::Right));
    world.take(&Step::Clear);
    assert_eq!(world.usage().context_tokens, 0);
    // The reports after it are of the whole context: they tell the overhead.
    (0..6).for_each(|at| world.turn(100 + at, 400, Report::Right));
    world.take(&Step::Prune);
    let system = world.usage().breakdown.system;
    assert!(system.abs_diff(4_000) < 800, "{system}");
}

/// A world after six turns, with this tokenizer and overhead.
fn reported(factor: f64, overhead: u64, announced: Announced) -> World {
    let mut world = World::new(Provider { tokenizer: Tokenizer::Ours(factor), overhead, window: 64_000, announced });
    (0..6).for_each(|at| world.turn(100 + at, 400, Report::Right));
    world
}

/// The tokens that a step adds to the context, and to the system prompt in it.
fn growth(world: &mut World, step: &Step) -> (i64, i64) {
    let sizes = |usage: &Usage| [usage.context_tokens, usage.breakdown.system].map(|tokens| tokens as i64);
    let [context, system] = sizes(&world.usage());
    world.take(step);
    let [context_now, system_now] = sizes(&world.usage());
    (context_now - context, system_now - system)
}

fn near(value: i64, wanted: i64, off: i64) -> bool {
    (value - wanted).abs() <= off
}

#[test]
fn a_system_prompt_that_follows_a_report_is_in_the_context_at_once() {
    let mut world = reported(1.3, 6_000, Announced::Stored);
    for (words, compact) in [(200, false), (2_000, false), (1_000, false), (1_400, true), (200, false)] {
        if compact {
            world.compact(500);
        }
        let before = world.provider.overhead as i64;
        let (context, system) = growth(&mut world, &Step::Configure { words });
        let wanted = world.provider.overhead as i64 - before;
        assert!(near(context, wanted, wanted.abs() / 10 + 20), "{words}: {context} of {wanted}");
        assert!(near(system, wanted, wanted.abs() / 10 + 20), "{words}: {system} of {wanted}");
    }
    // The next report agrees with the calibrations that were shifted.
    let factor = world.measure(&world.path, Estimator::Tiktoken).scale.factor();
    world.turn(100, 400, Report::Right);
    let now = world.measure(&world.path, Estimator::Tiktoken);
    assert!((now.scale.factor() - factor).abs() < 0.02, "{factor} then {}", now.scale.factor());
    assert!(near(now.budget.system as i64, world.provider.overhead as i64, 200), "{now:?}");
}

#[test]
fn the_first_announcement_of_a_system_prompt_counts_what_the_reports_do_not_contain() {
    let count = |words: usize| (f64::from(tokens::of_text(&text(words, words))) * 1.3) as i64;
    let (small, large) = (count(1_000), count(5_000));
    for (words, wanted) in [(1_000, 0), (5_000, large - 4_000)] {
        let mut world = reported(1.3, 4_000, Announced::Never);
        let (context, system) = growth(&mut world, &Step::Configure { words });
        assert!(near(context, wanted, 250), "{words}: {context} of {wanted}");
        assert!(near(system, wanted, 250), "{words}: {system} of {wanted}");
        let (context, _) = growth(&mut world, &Step::Configure { words: 1_200 });
        let wanted = count(1_200) - if words == 1_000 { small } else { large };
        assert!(near(context, wanted, 250), "{words}: {context} of {wanted}");
    }
    // A client that stores the prompt of each load announces nothing new.
    let mut world = reported(1.3, 4_000, Announced::AtLoad);
    let (context, _) = growth(&mut world, &Step::Configure { words: 0 });
    assert!(near(context, 0, 50), "{context}");
}

#[test]
fn a_system_prompt_that_was_cleared_counts_whole_when_it_is_announced_again() {
    let mut world = reported(1.3, 6_000, Announced::Stored);
    let prompt = world.prompt.clone().expect("a prompt");
    let size = world.provider.tokenizer.count(&prompt) as u64;
    let cleared = json!({"systemPrompt": null});
    world.fields("custom", &[("customType", json!("abridged.session")), ("data", cleared)]);
    world.provider.overhead -= size;
    (0..3).for_each(|at| world.turn(100 + at, 400, Report::Right));
    let before = world.usage().context_tokens;
    world.store(prompt);
    world.provider.overhead += size;
    let grown = world.usage().context_tokens as i64 - before as i64;
    assert!(near(grown, size as i64, 250), "{grown} of {size}");
    world.turn(100, 400, Report::Right);
    world.compact(500);
}

#[test]
fn the_next_report_tells_whether_an_announced_system_prompt_is_new() {
    for (words, new) in [(2_500, true), (2_500, false), (400, true)] {
        for reports in [1, 2, 4] {
            let mut world = reported(1.3, 4_500, Announced::Never);
            let prompt = text(words, 5);
            let size = world.provider.tokenizer.count(&prompt) as u64;
            if new {
                world.provider.overhead += size;
            }
            world.store(prompt);
            (0..reports).for_each(|at| world.turn(100 + at, 400, Report::Right));
            let system = world.usage().breakdown.system as i64;
            let wanted = world.provider.overhead as i64;
            assert!(near(system, wanted, wanted / 10), "{words} {new} {reports}: {system} of {wanted}");
            world.compact(500);
        }
    }
}

#[test]
fn instructions_that_did_not_change_have_one_size_by_every_estimator() {
    let overhead = 960;
    let provider = Provider { tokenizer: Tokenizer::Ours(0.7), overhead, window: 32_000, announced: Announced::Never };
    let mut world = World::new(provider);
    (0..5).for_each(|_| world.turn(40, 160, Report::Right));
    world.turn(20, 235, Report::Right);
    world.take(&Step::Configure { words: 1_297 });
    world.compact(0);
    world.turn(20, 50, Report::Right);
    world.compact(800);
}

#[test]
fn a_small_difference_of_the_instructions_counts_after_a_compaction() {
    let overhead = 1_000;
    let provider = Provider { tokenizer: Tokenizer::Ours(1.3), overhead, window: 64_000, announced: Announced::AtLoad };
    let mut world = World::new(provider);
    for seed in 0..6 {
        world.fields("message", &[("message", json!({"role": "user", "content": text(300, seed)}))]);
        world.answer(json!([{"type": "text", "text": text(300, seed + 9)}]), Report::None);
    }
    world.compact_unchecked(500);
    let before = world.usage();
    // Another estimator finds another size of the same instructions: that is no difference.
    let by_characters = Usage::of(&world.measure(&world.path, Estimator::Chars), &world.path);
    assert_ne!(by_characters.breakdown.system, before.breakdown.system);
    assert_eq!(by_characters.context_tokens, before.context_tokens);
    // The client gives 200 more words with another load.
    let prompt = world.given.system_prompt.take().expect("a prompt");
    world.given.system_prompt = Some(prompt + &text(200, 3));
    world.look();
    let usage = world.usage();
    let (context, system) =
        (usage.context_tokens - before.context_tokens, usage.breakdown.system - before.breakdown.system);
    assert!(context == system && (100..500).contains(&system), "{context} and {system}");
}

#[test]
fn growths_between_reports_of_one_model_do_not_change_the_overhead_of_another() {
    let mut world = reported(0.7, 28_000, Announced::Never);
    world.compact(0);
    world.turn(20, 50, Report::OtherModel);
    world.turn(62, 50, Report::OtherModel);
    world.take(&Step::Prune);
    let system = world.usage().breakdown.system as i64;
    assert!(near(system, 28_000, 800), "{system}");
}

/// A host that drives a session of the real daemon against the stub provider.
struct Host {
    daemon: Daemon,
    session: String,
    path: String,
    tokenizer: Tokenizer,
    overhead: u64,
    count: usize,
}

impl Host {
    fn start(tokenizer: Tokenizer, overhead: u64) -> Self {
        let home = Home::new();
        let settings =
            json!({"models": [{"provider": "stub", "id": "m", "api": "anthropic", "contextWindow": 64_000}]});
        home.settings(&settings.to_string());
        let mut daemon = Daemon::at(home);
        let session = daemon.ok("session/new", json!({"cwd": "/project", "model": "stub/m"}))["session"].clone();
        let text = |key: &str| session[key].as_str().expect("a text").to_owned();
        Self { session: text("sessionId"), path: text("path"), daemon, tokenizer, overhead, count: 0 }
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["sessionId"] = json!(self.session);
        self.daemon.ok(method, params)
    }

    /// The provider's count of the current request.
    fn reported(&mut self) -> u64 {
        let body = self.ask("session/context", json!({"format": "anthropic"}))["body"]["messages"].to_string();
        self.overhead + self.tokenizer.count(&body) as u64
    }

    fn turn(&mut self) {
        self.count += 1;
        let asked = text(250, self.count * 7);
        self.ask("session/append", json!({"messages": [user(&asked)]}));
        let input = self.reported();
        let mut answer = assistant(&text(120, self.count * 11));
        answer["usage"] = json!({"input": input, "output": 150, "cacheRead": 0, "cacheWrite": 0});
        self.ask("session/append", json!({"messages": [answer]}));
    }

    fn compact_and_check(&mut self) {
        self.daemon.events.clear();
        let done =
            self.ask("session/compact", json!({"method": "extractive", "keepRecentTokens": 1_500, "wait": true}));
        let said = done["result"]["tokensAfter"].as_u64().unwrap_or_else(|| panic!("{done:#}"));
        let end = self.daemon.until("compaction_end")["params"]["event"].clone();
        let file = std::fs::read_to_string(&self.path).expect("a file");
        let line = file.lines().rev().find(|line| line.contains("\"type\":\"compaction\"")).expect("a compaction");
        let line: Value = serde_json::from_str(line).expect("JSON");
        let usage = self.ask("session/usage", json!({}));
        self.ask("session/close", json!({}));
        self.daemon.ok("session/load", json!({"path": self.path}));
        let reopened = self.ask("session/usage", json!({}));
        let all =
            [&line["tokensAfter"], &end["usage"]["contextTokens"], &usage["contextTokens"], &reopened["contextTokens"]];
        assert!(all.iter().all(|tokens| tokens.as_u64() == Some(said)), "{all:?} instead of {said}");
        let reported = self.reported();
        assert!(
            said.abs_diff(reported) * 100 <= reported * 15,
            "{said} said, {reported} reported by {:?}",
            self.tokenizer
        );
    }
}

#[test]
fn the_daemon_agrees_with_providers_that_count_otherwise() {
    for (tokenizer, overhead) in
        [(Tokenizer::Ours(0.7), 0), (Tokenizer::Bytes(3.5), 18_000), (Tokenizer::Words(1.8), 30_000)]
    {
        let mut host = Host::start(tokenizer, overhead);
        for turns in [14, 8] {
            (0..turns).for_each(|_| host.turn());
            host.compact_and_check();
        }
        // Another process begins with nothing counted.
        let home = std::mem::replace(&mut host.daemon.home, Home::new());
        host.daemon.end();
        host.daemon = Daemon::at(home);
        let said = host.daemon.ok("session/load", json!({"path": host.path}))["session"]["usage"].clone();
        let reported = host.reported();
        let said = said["contextTokens"].as_u64().expect("a number");
        assert!(said.abs_diff(reported) * 100 <= reported * 15, "{said} said, {reported} reported");
    }
}

#[test]
fn a_session_counts_by_characters_until_all_was_counted_once_and_then_by_the_tokenizer() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    assert_eq!(session["usage"]["estimator"], "chars", "the tables of a new process are not loaded");
    let session = session["sessionId"].clone();
    daemon.ok("session/append", json!({"sessionId": session, "messages": turns(40)}));
    let counted = daemon.next_within(std::time::Duration::from_secs(60), |frame| {
        frame["params"]["event"]["usage"]["estimator"] == "o200k_base"
    });
    assert!(counted.is_some(), "the move is told");
    let mut all = Vec::new();
    let mut see = |answer: &Value| all.push(answer["estimator"].clone());
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 500, "wait": true}));
    see(&daemon.until("compaction_end")["params"]["event"]["usage"]);
    // Everything before the cut is read from the file again.
    see(&daemon.ok("session/undo_compaction", json!({"sessionId": session}))["usage"]);
    see(&daemon.ok("session/append", json!({"sessionId": session, "messages": turns(1)}))["usage"]);
    see(&daemon.ok("session/usage", json!({"sessionId": session})));
    assert_eq!(all, vec![json!("o200k_base"); 4]);
}

/// A session of pi that declares its system prompt and tools in messages and changes them later.
fn declared() -> Vec<Value> {
    let system = |id: &str, parent: Value, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
    let tool = |name: &str| json!({"name": name, "description": text_of(300, name), "parameters": {"type": "object"}});
    let first = json!({"role": "system", "content": "You help.", "timestamp": 1,
        "sections": {"skills": text_of(400, "skills"), "date": "Monday"}, "toolsAdded": [tool("read"), tool("write")]});
    let later = json!({"role": "system", "content": "", "timestamp": 2,
        "sections": {"date": "Tuesday"}, "toolsRemoved": [{"name": "write"}]});
    let mut lines = vec![header("declared"), system("s1", Value::Null, first)];
    let mut parent = json!("s1");
    for (at, message) in turns(12).into_iter().enumerate() {
        let id = json!(format!("e{at}"));
        lines.push(json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": message}));
        parent = id;
    }
    lines.push(system("s2", parent, later));
    lines
}

#[test]
fn the_system_messages_of_pi_are_its_system_prompt_and_tools() {
    let mut daemon = Daemon::start();
    let path = daemon.home.session("declared.jsonl", &declared());
    let session = daemon.load(&path);
    daemon.ok("session/configure", json!({"sessionId": session, "model": "p/m"}));
    let look = |daemon: &mut Daemon| {
        let context = daemon.ok("session/context", json!({"sessionId": session}));
        let system = context["messages"][0].clone();
        let roles = context["messages"].as_array().expect("messages").iter().filter(|it| it["role"] == "system");
        assert_eq!((roles.count(), &context["entryIds"][0]), (1, &Value::Null));
        assert_eq!(context["messages"].as_array().map(Vec::len), context["entryIds"].as_array().map(Vec::len));
        let body = daemon.ok("session/context", json!({"sessionId": session, "format": "openai_chat"}))["body"].clone();
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        (system, body, usage["breakdown"].clone())
    };
    let (system, body, breakdown) = look(&mut daemon);
    assert_eq!((&system["content"], &system["sections"]["date"]), (&json!("You help."), &json!("Tuesday")));
    assert_eq!(system["toolsAdded"].as_array().map(Vec::len), Some(1));
    let prompt = body["messages"][0]["content"].as_str().expect("a system prompt");
    assert!(prompt.starts_with("You help.\n\n") && prompt.ends_with("\n\nTuesday"), "{prompt}");
    assert_eq!(
        (body["tools"].as_array().map(Vec::len), &body["tools"][0]["function"]["name"]),
        (Some(1), &json!("read"))
    );
    assert!(breakdown["system"].as_u64() > Some(200) && breakdown["tools"].as_u64() > Some(150), "{breakdown}");
    // They outlive compactions, also for pi, which reads them of the line.
    for _ in 0..2 {
        daemon.ok("session/append", json!({"sessionId": session, "messages": turns(3)}));
        let done = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 300, "wait": true}));
        let line =
            daemon.ok("session/entry", json!({"sessionId": session, "entryId": done["result"]["entryId"]}))["entry"]
                .clone();
        assert_eq!(line["systemMessage"], system);
        assert_eq!(look(&mut daemon).0, system);
        daemon.ok("session/close", json!({"sessionId": session}));
        daemon.load(&path);
        let (again, body_again, _) = look(&mut daemon);
        assert_eq!(
            (&again, &body_again["messages"][0], &body_again["tools"]),
            (&system, &body["messages"][0], &body["tools"])
        );
    }
    // Instructions of the client have precedence, and the client sends them.
    daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": "Mine."}));
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert!(context["messages"].as_array().expect("messages").iter().all(|message| message["role"] != "system"));
    let body = daemon.ok("session/context", json!({"sessionId": session, "format": "openai_chat"}))["body"].clone();
    assert_eq!((&body["messages"][0]["content"], body["tools"].as_array().map(Vec::len)), (&json!("Mine."), Some(1)));
}
