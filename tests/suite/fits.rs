//! The end of the ladder: whatever a session looks like, a compaction makes a context that fits, or says which parts do not.

use crate::{
    conservation::World,
    wire::{cases, is_whole},
};
use abridged::{
    compaction::{
        draft::Draft,
        images,
        ladder::{Floor, NoDraft},
        plan::NothingToDo,
        request::{Cause, Initiator, NoPlan, PlanRequest},
    },
    conversation::{
        context::{self, check::violations},
        entry::{Entry, Stamp},
        instructions::{Given, Instructions},
        message::{outline::Role, system::SystemPrompt},
        path::Path,
        spending::Spending,
    },
    prompts::Prompts,
    settings::{Layers, layers::Source},
    summary::cleaner::Cleaner,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// A part of a session.
#[derive(Debug, Clone)]
enum Part {
    User(usize),
    /// A message of the user with images of so many bytes.
    Shown(Vec<usize>),
    /// An answer with calls; a result for each size, and so many calls that stay open.
    Answer {
        text: usize,
        results: Vec<usize>,
        open: usize,
    },
    /// A command of the user.
    Command(usize),
    Custom(usize),
    /// A pin of the newest message.
    Pin,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1_usize..2_000, 2 => 2_000_usize..60_000, 1 => 60_000_usize..500_000]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => size().prop_map(Part::User),
        1 => prop::collection::vec(prop_oneof![1_usize..10_000, 1_000_000_usize..6_000_000], 1..4).prop_map(Part::Shown),
        6 => (1_usize..3_000, prop::collection::vec(size(), 0..5), prop_oneof![5 => Just(0_usize), 1 => 1_usize..3])
            .prop_map(|(text, results, open)| Part::Answer { text, results, open }),
        1 => size().prop_map(Part::Command),
        1 => (1_usize..2_000).prop_map(Part::Custom),
        1 => Just(Part::Pin),
    ]
}

fn text(size: usize, n: usize) -> String {
    format!("word_{n} must be in src/file_{n}.rs and error_{n} too. ").repeat(size / 50 + 1)
}

fn session(parts: &[Part]) -> Path {
    let mut world = World::default();
    let message = |world: &mut World, message: Value| world.add(json!({"type": "message", "message": message}));
    for (n, part) in parts.iter().enumerate() {
        match part {
            Part::User(size) => {
                message(&mut world, json!({"role": "user", "content": text(*size, n)}));
            }
            Part::Shown(images) => {
                let image =
                    |bytes: &usize| json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(*bytes)});
                let mut content = vec![json!({"type": "text", "text": text(40, n)})];
                content.extend(images.iter().map(image));
                message(&mut world, json!({"role": "user", "content": content}));
            }
            Part::Answer { text: size, results, open } => {
                let call = |at: usize| json!({"type": "toolCall", "id": format!("call_{n}_{at}"), "name": "bash", "arguments": {"command": "a"}});
                let mut blocks = vec![json!({"type": "text", "text": text(*size, n)})];
                blocks.extend((0..results.len() + open).map(call));
                message(&mut world, json!({"role": "assistant", "content": blocks, "stopReason": "stop"}));
                for (at, size) in results.iter().enumerate() {
                    let content = json!([{"type": "text", "text": text(*size, n)}]);
                    message(
                        &mut world,
                        json!({"role": "toolResult", "toolCallId": format!("call_{n}_{at}"), "toolName": "bash", "content": content}),
                    );
                }
            }
            Part::Command(size) => {
                message(&mut world, json!({"role": "bashExecution", "command": "ls", "output": text(*size, n)}));
            }
            Part::Custom(size) => {
                world.add(
                    json!({"type": "custom_message", "customType": "x", "content": text(*size, n), "display": true}),
                );
            }
            Part::Pin => {
                // The daemon refuses pins over a tenth of the window.
                let path = world.path();
                let small = |entry: &&Arc<Entry>| entry.in_context() && entry.line().len() < 1_000;
                if let Some(entry) = path.last().filter(small) {
                    world.add(json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": entry.id}}));
                }
            }
        }
    }
    world.path()
}

fn instructions(prompt: String) -> Instructions {
    let given = Given { system_prompt: Some(prompt), tools: None };
    Instructions::new(given, &SystemPrompt::default())
}

/// A request for a compaction that is due, in a window with a share of overhead.
fn request(path: &Path, window: u64, overhead: u64, cause: Cause) -> PlanRequest {
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [{"provider": "openai", "id": "m", "contextWindow": window}]});
    let layers = Layers::of(vec![(Source::Global, settings)]);
    // The factor before the first report is 1.35, and a token has four characters.
    let prompt = "word ".repeat((overhead as f64 * 4.0 / 1.35 / 5.0) as usize);
    PlanRequest {
        path: path.clone(),
        is_counted: true,
        settings: Arc::new(layers.sourced()),
        model: Some(abridged::models::ModelRef { provider: "openai".into(), id: "m".into() }),
        learned: abridged::models::learned::Learned::default(),
        instructions: Arc::new(instructions(prompt)),
        cwd: None,
        keep_recent_tokens: None,
        initiator: Initiator::User,
        cause,
        insists: false,
    }
}

/// The end of a compaction.
#[derive(Debug)]
enum End {
    Fits(Box<Draft>),
    Nothing(NothingToDo),
    Floor(Floor),
    WouldNotShrink,
}

fn compacted(path: &Path, window: u64, overhead: u64, cause: Cause) -> End {
    let request = request(path, window, overhead, cause);
    let settings = request.settings.clone();
    let plan = match request.plan(&|| false) {
        Ok(planned) => planned.plan,
        Err(NoPlan::NothingToDo(nothing)) => return End::Nothing(nothing),
        Err(NoPlan::Cancelled) => panic!("nothing cancels it"),
    };
    match abridged::compaction::ladder::extracted(
        plan,
        &settings.settings,
        &Cleaner::new(&settings.settings),
        Default::default(),
        &|| false,
    ) {
        Ok(draft) => End::Fits(Box::new(draft)),
        Err(NoDraft::TooLarge(floor)) => End::Floor(floor),
        Err(NoDraft::WouldNotShrink) => End::WouldNotShrink,
        Err(NoDraft::Cancelled) => panic!("nothing cancels it"),
    }
}

/// The path behind the line that a draft writes.
fn written(path: &Path, draft: &Draft) -> Path {
    let stamp = Stamp { id: "compaction".into(), timestamp: "2026-01-01T00:00:00.000Z".into() };
    let line =
        draft.line(&stamp, path.last().map(|leaf| &leaf.id), path, None, draft.tokens_after, Spending::default());
    path.with(Arc::new(Entry::parse(line.into()).expect("a line")))
}

fn check(path: &Path, window: u64, overhead: u64, cause: Cause) -> Result<(), TestCaseError> {
    let before = request(path, window, overhead, cause);
    let (scale_before, overhead_size) = {
        let meter = abridged::compaction::meter::Meter::of(
            path,
            &before.settings,
            abridged::conversation::tokens::Estimator::Chars,
        );
        let settings = &before.settings.settings;
        let gauge = abridged::compaction::gauge::Gauge {
            settings,
            model: before.model.as_ref(),
            learned: None.into(),
            instructions: &before.instructions,
        };
        let fullness = gauge.measure(&meter);
        (fullness.context_tokens, fullness.budget.overhead())
    };
    match compacted(path, window, overhead, cause) {
        End::Fits(draft) => {
            prop_assert!(draft.tokens_after < scale_before, "{} of {scale_before}", draft.tokens_after);
            prop_assert!(draft.tokens_after <= window, "{} over {window}", draft.tokens_after);
            prop_assert!(draft.image_bytes <= images::BUDGET || images::pinned_bytes(path) > 0);
            let after = written(path, &draft);
            let context = context::build(&after, &Prompts::default());
            let sent: Vec<Value> =
                context.messages().iter().map(|it| serde_json::from_str(&it.json()).expect("JSON")).collect();
            prop_assert_eq!(violations(&sent), Vec::<String>::new());
            let said = serde_json::to_string(&sent).expect("JSON");
            if let Some(newest) = path.iter().rev().find(|entry| entry.is_from(Role::User)) {
                let marker =
                    newest.line().split("word_").nth(1).and_then(|rest| rest.split(' ').next()).expect("a marker");
                prop_assert!(said.contains(&format!("word_{marker} ")), "the newest user message is there");
            }
            for pin in path.pins() {
                let entry = &path[path.position(&pin.entry).expect("it is on the path")];
                let quoted = json!(entry.pinned_text()).to_string();
                let is_sent = entry.is_from(Role::User) || entry.outline().is_none();
                if is_sent {
                    prop_assert!(said.contains(&quoted[1..quoted.len() - 1]), "{} is there byte for byte", pin.entry);
                }
            }
        }
        End::Floor(floor) => {
            let total = floor.system + floor.tools + floor.pins + floor.latest_turn;
            prop_assert!(scale_before > window, "{scale_before} of {window} fits already");
            prop_assert!(total * 100 > window * 84, "the parts {floor:?} fit");
            prop_assert!(overhead_size <= floor.system + floor.tools);
        }
        End::Nothing(NothingToDo::TooShort) | End::WouldNotShrink | End::Nothing(NothingToDo::WouldNotShrink) => {
            prop_assert!(scale_before <= window, "{scale_before} of {window} and nothing is done");
        }
        End::Nothing(NothingToDo::AlreadyCompacted | NothingToDo::Empty) => {
            prop_assert!(path.iter().all(|entry| !entry.in_context()))
        }
        End::Nothing(NothingToDo::BelowHalfThreshold) => prop_assert!(false, "no agent asks"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases("ABRIDGED_FITS", 24, 48), max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_context_fits_or_the_parts_of_its_floor_are_named(
        parts in prop::collection::vec(part(), 1..24),
        window in prop_oneof![Just(4_096_u64), Just(8_192), Just(16_384), Just(128_000), Just(2_000_000)],
        percent in prop_oneof![3 => Just(0_u64), 2 => 0_u64..60, 2 => 60_u64..96],
        due in any::<bool>(),
    ) {
        let cause = if due { Cause::Due } else { Cause::Asked };
        check(&session(&parts), window, window * percent / 100, cause)?;
    }
}

/// Windows and shares of overhead, in percent, in which every compaction has to make a context that fits.
const WINDOWS: [u64; 4] = [4_096, 8_192, 200_000, 2_000_000];

fn fits(path: &Path, window: u64, percent: u64) -> Box<Draft> {
    match compacted(path, window, window * percent / 100, Cause::Due) {
        End::Fits(draft) => draft,
        end => panic!("a window of {window} with {percent} % of overhead: {end:?}"),
    }
}

#[test]
fn a_huge_request_alone_is_clipped_and_not_summarized() {
    // A request over two million tokens takes as long as all others.
    for window in WINDOWS.into_iter().filter(|window| is_whole() || *window < 1_000_000) {
        for percent in [0, 40] {
            // Over each window, and large in a small one.
            let path = session(&[Part::User((window as usize * 6).max(1_000_000))]);
            let draft = fits(&path, window, percent);
            assert_eq!(draft.plan.first_kept_id(), path.first().map(|entry| &entry.id), "it is kept");
            let context = context::build(&written(&path, &draft), &Prompts::default());
            let newest = context.messages().last().expect("a message");
            assert_eq!(newest.entry_shown(), path.first().map(|entry| &entry.id));
            let text = newest.message().text();
            assert!(text.starts_with("word_0 must") && text.contains("e1 has all of it"), "{text:.300}");
            assert!(percent > 0 || text.len() as u64 > window / 2, "{} characters in a window of {window}", text.len());
        }
    }
}

#[test]
fn one_result_of_five_megabytes_fits_every_window() {
    for window in WINDOWS {
        let open = Part::Answer { text: 20, results: vec![5_000_000], open: 1 };
        for last in [Part::Answer { text: 20, results: vec![5_000_000], open: 0 }, open] {
            let path = session(&[Part::User(100), last]);
            if window == 2_000_000 {
                assert!(matches!(compacted(&path, window, 0, Cause::Due), End::Fits(_) | End::Nothing(_)));
                continue;
            }
            for percent in [0, 40] {
                fits(&path, window, percent);
            }
        }
    }
}

#[test]
fn open_calls_stay_with_their_results_cut() {
    let said = |size: usize, window: u64, percent: u64| -> String {
        let path = session(&[Part::User(3_000), Part::Answer { text: 100, results: vec![size; 12], open: 3 }]);
        let draft = fits(&path, window, percent);
        let context = context::build(&written(&path, &draft), &Prompts::default());
        context.messages().iter().map(|message| message.json().into_owned()).collect()
    };
    for (size, window, percent) in [(400_000, 8_192, 30), (400_000, 200_000, 30), (10_000, 8_192, 0)] {
        let said = said(size, window, percent);
        for at in 0..15 {
            assert!(said.contains(&format!("call_1_{at}")), "call {at} in a window of {window}");
        }
        // No model has read them, so none is pruned: beginning and end of each have room.
        let only_cut = said.contains("has all of it") && !said.contains("[Output truncated");
        assert!(only_cut, "{size} in {window} with {percent} %");
    }
}

#[test]
fn a_session_of_nothing_but_images_fits() {
    let shown: Vec<Part> = (0..40).map(|_| Part::Shown(vec![2_000_000])).collect();
    let path = session(&shown);
    for window in [8_192, 200_000] {
        let draft = fits(&path, window, 0);
        assert!(draft.image_bytes <= images::BUDGET, "{}", draft.image_bytes);
    }
    let one = session(&[Part::Shown(vec![100; 30])]);
    fits(&one, 8_192, 0);
}

#[test]
fn a_request_for_nothing_smaller_is_known_before_its_start() {
    let path = session(&[Part::User(10), Part::Answer { text: 10, results: vec![], open: 0 }, Part::User(10)]);
    let mut ask = request(&path, 200_000, 0, Cause::Asked);
    ask.keep_recent_tokens = Some(1);
    assert!(matches!(ask.plan(&|| false), Err(NoPlan::NothingToDo(NothingToDo::WouldNotShrink))));
    let mut ask = request(&path, 200_000, 0, Cause::Asked);
    (ask.keep_recent_tokens, ask.insists) = (Some(1), true);
    let settings = ask.settings.clone();
    let plan = ask.plan(&|| false).unwrap_or_else(|why| panic!("instructions override it: {why:?}")).plan;
    assert!(
        abridged::compaction::ladder::extracted(
            plan,
            &settings.settings,
            &Cleaner::new(&settings.settings),
            Default::default(),
            &|| false
        )
        .is_ok()
    );
}
