//! A whole draft in virtual time, with scripted models.

use super::{
    models::{Asked, Models, Outcome},
    pool::VirtualPool,
    script::{End, Fault, KINDS, Said, Script, Step, Text},
    tasks::Tasks,
};
use crate::{
    ask::{
        Pending,
        access::ModelAccess,
        clock::{Clock as _, after},
        pool::{Blocking, Pool},
        purpose::Purpose,
        rank::Rank,
        virtual_clock::VirtualClock,
    },
    compaction::{
        draft::Draft,
        plan::Plan,
        request::{Cause, Initiator, PlanRequest},
    },
    conversation::{
        entry::{Entry, Stamps},
        path::Path,
        spending::{Spending, Trigger},
    },
    ids::{ModelRef, random::SplitMix64},
    models::{
        candidates::{Candidate, Way},
        learned::Learned,
        windows::Windows,
    },
    protocol::errors::Failure,
    provider::{Api, Endpoint, KeySource, TroubleKind},
    session::{
        jobs::{
            DraftOrder, Focus,
            draft::{self, DraftJob},
            progress::Progress,
        },
        stop::Stop,
    },
    settings::{Layers, Sourced, layers::Source},
};
use jiff::Timestamp;
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Whether long properties run with all of their cases, as in `.ci/run`. A plain `cargo test` runs a part of them.
pub fn is_whole() -> bool {
    std::env::var_os("ABRIDGED_WHOLE").is_some()
}

const DEADLINE: Duration = Duration::from_secs(300);

/// The model of most tests.
const MODEL: &str = "writer";

fn settings() -> Arc<Sourced> {
    let settings = json!({"tokens": {"estimator": "chars"}});
    Arc::new(Layers::of(vec![(Source::Global, settings)]).sourced())
}

fn path(entries: usize) -> Path {
    let line = |at: usize| {
        let parent = at.checked_sub(1).map(|before| format!("e{before}"));
        let text =
            format!("Step {at}: look at src/parser/part{at}.rs and mend what its test number {at} says. ").repeat(4);
        let message = match at % 2 {
            0 if at == 0 => json!({"role": "user", "content": format!("Never push to main. {text}"), "timestamp": 1}),
            0 => json!({"role": "user", "content": text, "timestamp": 1}),
            _ => json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": 1}),
        };
        let line = json!({
            "type": "message", "id": format!("e{at}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": message,
        });
        Arc::new(Entry::parse(line.to_string().into()).expect("a line"))
    };
    Path::of(&(0..entries).map(line).collect::<Vec<_>>())
}

fn plan(entries: usize) -> Plan {
    let request = PlanRequest {
        is_counted: true,
        path: path(entries),
        settings: settings(),
        model: None,
        learned: Learned::default(),
        instructions: Arc::default(),
        cwd: None,
        keep_recent_tokens: Some(450),
        initiator: Initiator::User,
        cause: Cause::Asked,
        insists: false,
    };
    request.plan(&|| false).unwrap_or_else(|why| panic!("no plan: {why:?}")).plan
}

fn at_provider(model: &str) -> Candidate {
    let endpoint = Endpoint {
        api: Api::Anthropic,
        base_url: "http://127.0.0.1:1".to_owned(),
        key: KeySource::None,
        headers: Vec::new(),
    };
    Candidate { way: Way::Provider(endpoint), ..by_client(model) }
}

fn by_client(model: &str) -> Candidate {
    let model = ModelRef { provider: "some".to_owned(), id: model.to_owned() };
    Candidate { model, window: 100_000, output: None, thinks: false, way: Way::Client }
}

/// A draft that is being made.
struct World {
    clock: VirtualClock,
    models: Models,
    stop: Stop,
    tasks: Tasks<Result<Draft, Failure>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// A draft of a short path.
    fn new(script: Script, candidates: Vec<Candidate>) -> Self {
        Self::drafting(plan(16), script, candidates)
    }

    /// A draft of a path with 60 entries and one model.
    fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        let script = Script { models: [(MODEL.to_owned(), steps.into_iter().collect())].into() };
        Self::drafting(plan(60), script, vec![at_provider(MODEL)])
    }

    fn drafting(plan: Plan, script: Script, candidates: Vec<Candidate>) -> Self {
        Self::in_pool(plan, script, candidates, |clock| VirtualPool { clock, longest: Duration::from_millis(100) })
    }

    fn in_pool<P: Pool + 'static>(
        plan: Plan,
        script: Script,
        candidates: Vec<Candidate>,
        pool: impl Fn(VirtualClock) -> P,
    ) -> Self {
        let clock = VirtualClock::seeded(7);
        let models = Models::new(clock.clone(), script);
        let (stop, told) = (Stop::default(), Arc::new(Mutex::new(Vec::new())));
        let order = DraftOrder {
            id: "o".into(),
            trigger: Trigger::Threshold,
            plan,
            focus: Focus::default(),
            hooks: None,
            candidates: candidates.into_iter().map(Ok).collect(),
            native: None,
            live: None,
            only: None,
            settings: settings(),
            deadline: Some(DEADLINE),
            tokens: None,
            rank: Rank::foreground(),
            stop: stop.clone(),
        };
        let access = ModelAccess::of(models.routes(), Windows::in_memory());
        let job = DraftJob { session: "s".into(), order, access, may_block: None };
        let pool = pool(clock.clone());
        let mut tasks = Tasks::default();
        let steps = told.clone();
        tasks.start(1, async move {
            let tell = |step: Progress| steps.lock().expect("no panic").push(format!("{step:?}"));
            draft::draft(job, &pool, &tell).await
        });
        Self { clock, models, stop, tasks, told }
    }

    /// Moves the clock from alarm to alarm until the draft is made.
    fn ends(&mut self) -> Result<Draft, Failure> {
        loop {
            if let Some((_, result)) = self.tasks.poll().pop() {
                return result;
            }
            self.clock.advance_to(self.clock.next_alarm().expect("the draft waits for no alarm: it never ends"));
        }
    }

    /// Moves the clock until a request runs.
    fn asks(&mut self) {
        while self.models.running().is_empty() {
            assert!(self.tasks.poll().is_empty(), "the draft is made");
            if self.models.running().is_empty() {
                self.clock.advance_to(self.clock.next_alarm().expect("an alarm"));
            }
        }
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.models.take_ended().iter().map(|it| it.outcome).collect()
    }
}

/// The time of a slow floor: longer than any model takes.
const LONG: Duration = Duration::from_secs(250);

/// A pool whose second work, the floor of a large span, takes long, or is dropped.
struct SlowFloor {
    clock: VirtualClock,
    works: AtomicUsize,
    drops: bool,
}

impl Pool for SlowFloor {
    fn run(&self, work: Blocking) -> Pending<'_, ()> {
        let is_floor = self.works.fetch_add(1, Ordering::Relaxed) == 1;
        Box::pin(async move {
            if is_floor {
                self.clock.sleep_until(after(self.clock.now(), LONG)).await;
            }
            if !(is_floor && self.drops) {
                work();
            }
        })
    }
}

/// A draft of a large span whose floor takes long.
fn with_slow_floor(drops: bool) -> World {
    let script = Script { models: [(MODEL.to_owned(), vec![])].into() };
    let pool = |clock| SlowFloor { clock, works: AtomicUsize::new(0), drops };
    World::in_pool(plan(60), script, vec![at_provider(MODEL)], pool)
}

#[test]
fn a_model_is_asked_while_the_floor_of_a_large_span_is_made() {
    let mut world = with_slow_floor(false);
    world.asks();
    assert_eq!(world.clock.passed(), Duration::ZERO);
    let draft = world.ends().expect("a draft");
    assert!(world.clock.passed() >= LONG, "its lists of files come with the floor");
    assert_eq!((draft.made.by.is_some(), reasons(&draft)), (true, vec![]));
    assert!(draft.summary.text.contains("- Never push to main."), "{}", draft.summary.text);
}

#[test]
fn without_a_floor_there_is_no_draft() {
    let mut world = with_slow_floor(true);
    assert!(matches!(world.ends(), Err(Failure::Internal(_))));
}

fn reasons(draft: &Draft) -> Vec<&str> {
    draft.made.rejected.iter().map(|it| it.why.as_str()).collect()
}

fn line(draft: &Draft) -> String {
    let stamp = Stamps::seeded(1, Timestamp::UNIX_EPOCH).stamp();
    draft.line(&stamp, None, draft.plan.path(), None, draft.tokens_after, Spending::default())
}

#[test]
fn a_draft_with_a_model_that_never_answers_ends_at_its_deadline_with_the_extracted_summary() {
    let mut world = World::of([Step::ends(End::Deaf)]);
    world.asks();
    let asked_at = world.clock.passed();
    let draft = world.ends().expect("a draft");
    // The time begins before the messages of the first request are read.
    assert!(draft.made.by.is_none() && (DEADLINE..=asked_at + DEADLINE).contains(&world.clock.passed()));
    assert_eq!(reasons(&draft), ["the 300 s for this maintenance were over"]);
    assert!(draft.summary.text.contains("part0.rs"), "{}", draft.summary.text);
    assert_eq!(world.outcomes(), [Outcome::Cancelled]);
    assert_eq!(world.clock.next_alarm(), None);
}

#[test]
fn a_cancel_drops_the_request_and_nothing_is_asked_after_it() {
    for candidate in [at_provider(MODEL), by_client(MODEL)] {
        let script = Script { models: [(MODEL.to_owned(), vec![Step::ends(End::Deaf)])].into() };
        let mut world = World::new(script, vec![candidate, at_provider("other")]);
        world.asks();
        world.stop.request();
        assert!(matches!(world.tasks.poll().pop(), Some((1, Err(Failure::Cancelled)))));
        assert_eq!((world.outcomes(), world.models.count()), (vec![Outcome::Cancelled], 1));
        assert_eq!(world.clock.next_alarm(), None);
    }
    // A retry that is due at the instant of the cancel is not sent.
    let mut world = World::of([Step::ends(End::Fails(Fault::new(TroubleKind::Broken)))]);
    world.asks();
    while world.outcomes().is_empty() {
        world.clock.advance_to(world.clock.next_alarm().expect("an alarm"));
        assert!(world.tasks.poll().is_empty());
    }
    world.clock.advance_to(world.clock.next_alarm().expect("the wait before the retry"));
    world.stop.request();
    assert!(matches!(world.tasks.poll().pop(), Some((1, Err(Failure::Cancelled)))));
    assert_eq!(world.models.count(), 1);
}

#[test]
fn a_stopped_draft_drops_its_request() {
    let mut world = World::of([Step::ends(End::Deaf)]);
    world.asks();
    assert!(world.tasks.stop(1));
    assert_eq!((world.outcomes(), world.clock.next_alarm()), (vec![Outcome::Cancelled], None));
}

#[test]
fn a_good_text_passes_the_gate_on_both_ways() {
    for candidate in [at_provider(MODEL), by_client(MODEL)] {
        let mut world = World::new(Script::default(), vec![candidate.clone()]);
        let draft = world.ends().expect("a draft");
        assert_eq!((draft.made.by.as_ref(), reasons(&draft)), (Some(&candidate.model), vec![]), "{:?}", draft.made);
        assert!(draft.summary.text.contains("## Goal\n- Item 0 of part 0"), "{}", draft.summary.text);
        assert_eq!(*draft.summary.short, *"The parser was rewritten, and its tests pass.");
        let asked = world.models.take_ended();
        let purposes: Vec<_> = asked.iter().filter_map(|it| it.purpose).collect();
        assert_eq!(purposes.last(), Some(&Purpose::ShortSummary));
        assert!(purposes.contains(&Purpose::Compaction), "{purposes:?}");
        assert!(asked.iter().all(|it| it.outcome == Outcome::Answered && it.tokens < candidate.window), "{asked:?}");
        let told = world.told.lock().expect("no panic");
        assert!(told.iter().any(|it| it.contains("Delta(Text")), "{told:?}");
    }
}

#[test]
fn the_gate_refuses_every_bad_text() {
    let row = |text: Text, why: &str| {
        let script = Script { models: [(MODEL.to_owned(), vec![Step::says(text.clone())])].into() };
        let mut world = World::new(script, vec![at_provider(MODEL)]);
        let draft = world.ends().expect("a draft");
        assert_eq!(draft.made.by, None, "{text:?}");
        assert!(reasons(&draft)[0].contains(why), "{text:?}: {:?}", reasons(&draft));
        assert_eq!(world.models.count(), 2, "{text:?}: it is asked again once");
    };
    row(Text::Empty, "empty");
    row(Text::OnlyThinking, "no answer");
    row(Text::Refusal, "refusal");
    row(Text::RefusedByProvider, "refusal");
    row(Text::Repeats, "repeated itself");
    row(Text::Transcript, "repeated the conversation");
    row(Text::ToolCall, "called a tool");
    row(Text::WrittenCall, "called a tool");
    row(Text::Tags, "tags that frame data");
    row(Text::Secret, "secret");
    row(Text::Long(200_000), "tokens");
    row(Text::CutOff, "cut off");
    row(Text::NoHeadings, "none of the headings");
    row(Text::Template, "not filled in");
    row(Text::GoesOn, "went on with the work");
    row(Text::OtherScript, "not in the user's script");
}

#[test]
fn every_fault_ends_with_a_draft() {
    for kind in KINDS {
        for end in [End::Fails(Fault::new(*kind)), End::BreaksOff(1, Fault::new(*kind))] {
            for candidate in [at_provider(MODEL), by_client(MODEL)] {
                let script =
                    Script { models: [(MODEL.to_owned(), vec![Step { pieces: 3, ..Step::ends(end) }])].into() };
                let mut world = World::new(script, vec![candidate]);
                let draft = world.ends().expect("a draft");
                assert_eq!(draft.made.by, None, "{end:?}");
                assert!(world.models.count() <= 70 && !draft.made.rejected.is_empty(), "{end:?}: {:?}", draft.made);
            }
        }
    }
}

#[test]
fn a_panic_of_a_model_costs_only_its_summary() {
    let mut world = World::of([Step::ends(End::Panics)]);
    let draft = world.ends().expect("a draft");
    assert_eq!((draft.made.by.clone(), draft.made.rejected.len()), (None, 1));
    assert!(reasons(&draft)[0].contains("a defect of abridged"), "{:?}", reasons(&draft));
    assert_eq!((world.models.take_ended()[0].outcome, world.clock.next_alarm()), (Outcome::Failed, None));
}

#[test]
fn a_silence_in_the_middle_ends_after_the_longest_one_that_is_allowed() {
    let step = Step { pieces: 4, between_ms: 1_000, ..Step::ends(End::Silent(2)) };
    let mut world = World::of([step]);
    world.asks();
    let asked_at = world.clock.passed();
    let draft = world.ends().expect("a draft");
    let stall = Duration::from_secs(settings().settings.compaction.stall_seconds);
    assert_eq!(world.clock.passed(), asked_at + Duration::from_millis(500 + 1_000) + stall);
    assert_eq!((draft.made.by.clone(), world.models.count()), (None, 1));
}

#[test]
fn a_false_usage_ends_with_a_draft() {
    let number = u64::MAX;
    let lies = [Said::Zero, Said::Absurd, Said::Negative, Said::Decreasing, Said::Truncated(100)];
    for usage in lies.into_iter().chain([Said::Fixed(number, 1), Said::Fixed(1, number)]) {
        for candidate in [at_provider(MODEL), by_client(MODEL)] {
            let script = Script { models: [(MODEL.to_owned(), vec![Step { usage, ..Step::default() }])].into() };
            World::new(script, vec![candidate]).ends().unwrap_or_else(|failure| panic!("{usage:?}: {failure:?}"));
        }
    }
}

#[test]
fn a_seed_repeats_its_draft_byte_for_byte() {
    let run = |seed: u64| -> (String, Duration, Vec<Asked>, Vec<String>) {
        let script = Script::random(&mut SplitMix64::new(seed), &["a", "b", "c"]);
        let mut world = World::new(script, vec![at_provider("a"), by_client("b"), at_provider("c")]);
        let draft = world.ends().unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}"));
        let asked = world.models.take_ended();
        assert!(asked.iter().all(|it| it.tokens < 100_000), "seed {seed}: a request over its window");
        let told = world.told.lock().expect("no panic").clone();
        (line(&draft), world.clock.passed(), asked, told)
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
