//! Summaries on virtual time, by clients that answer badly.

use super::*;
use crate::{
    ask::{
        Pending,
        client::{Client, Completion, Unanswered},
        clock::Clock as _,
        pool::Blocking,
        routes::Routes,
        virtual_clock::VirtualClock,
    },
    conversation::{entry::Entry, spending::Trigger, tokens::Estimator},
    models::windows::Windows,
    settings::Layers,
    summary::{cleaner::Cleaner, files::FileLists, made::SummaryMethod, span::Span},
};
use serde_json::{Value, json};

/// A client that never answers.
#[derive(Default)]
struct Silent {
    deadlines: Mutex<Vec<Option<Duration>>>,
    cancelled: AtomicUsize,
}

impl Client for Silent {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        struct Request<'a>(&'a AtomicUsize);
        impl Drop for Request<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.deadlines.lock().expect("no panic").push(completion.deadline);
        let request = Request(&self.cancelled);
        Box::pin(async move {
            let _request = request;
            std::future::pending().await
        })
    }
}

/// A client whose answers are of no use, in turn.
struct Hostile {
    answers: Vec<Result<Value, Unanswered>>,
    asked: AtomicUsize,
}

impl Client for Hostile {
    fn complete(&self, _: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        let at = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers[at % self.answers.len()].clone();
        Box::pin(async move { answer })
    }
}

/// Runs work where it is started.
struct Inline;

impl Pool for Inline {
    fn run(&self, work: Blocking) -> Pending<'_, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
}

/// A conversation that only a client can summarize.
fn job(clock: &VirtualClock, client: Arc<dyn Client>, deadline: Duration) -> SummaryJob {
    let line = |at: usize| {
        let parent = if at == 0 { Value::Null } else { json!(format!("e{}", at - 1)) };
        let line = json!({
            "type": "message", "id": format!("e{at}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": "Look at this. ".repeat(100), "timestamp": 1},
        });
        Arc::new(Entry::parse(line.to_string().into()).expect("a line"))
    };
    let entries: Vec<_> = (0..20).map(line).collect();
    let settings = Arc::new(Layers::default().sourced());
    let scale = Scale::new(Estimator::Chars, 1.0);
    let material = material(&entries, &settings, scale);
    let model = ModelRef::parse("some/model").expect("a model");
    let candidate = Candidate { model, window: 100_000, output: None, thinks: false, way: Way::Client };
    let routes = Routes { client, clock: Box::new(clock.clone()), ..Routes::new(Arc::new(Silent::default())) };
    SummaryJob {
        origin: Origin { session: "s".into(), operation: "o".into(), trigger: Trigger::Threshold },
        material,
        brief: Brief::default(),
        reserve: 16_384,
        candidates: vec![Ok(candidate)],
        native: None,
        live: None,
        settings,
        scale,
        deadline: Some(deadline),
        tokens: None,
        rank: Rank::foreground(),
        access: ModelAccess::of(routes, Windows::in_memory()),
    }
}

/// The material of a conversation.
fn material(entries: &[Arc<Entry>], settings: &Sourced, scale: Scale) -> Material {
    let (files, cleaner) = (FileLists::default(), Cleaner::new(&settings.settings));
    Material::of(Span::of(entries), &files, 4_000, &cleaner, scale, &|| false)
}

/// A client whose provider refuses to show a model what another one thought.
#[derive(Default)]
struct Guarded {
    asked: AtomicUsize,
}

impl Client for Guarded {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let asked = json!(completion.messages).to_string();
        let is_refused = asked.contains("Assistant thinking") || asked.contains("a request for a model's reasoning");
        let text = json!([{"type": "text", "text": "## Goal\nMend it."}]);
        Box::pin(async move {
            match is_refused {
                true => Err(Unanswered::Error("400 refused (reasoning_extraction)".to_owned())),
                false => Ok(json!({"role": "assistant", "content": text})),
            }
        })
    }
}

#[test]
fn a_provider_that_refuses_thinking_is_asked_without_it() {
    let message = |at: usize, message: Value| {
        let line = json!({"type": "message", "id": format!("e{at}"), "message": message});
        Arc::new(Entry::parse(line.to_string().into()).expect("a line"))
    };
    let content = json!([{"type": "thinking", "thinking": "Hm, hm. ".repeat(50)}, {"type": "text", "text": "Yes."}]);
    let entries = [
        message(0, json!({"role": "user", "content": "Look at this. ".repeat(300)})),
        message(1, json!({"role": "assistant", "content": content})),
        message(2, json!({"role": "user", "content": "Go on. ".repeat(300)})),
    ];
    // The last request is the one for the short summary.
    for (model, requests, refusals) in [("some/model", 3, 1), ("some/claude-opus-5-5", 2, 0)] {
        let (clock, client) = (VirtualClock::default(), Arc::new(Guarded::default()));
        let mut job = job(&clock, client.clone(), Duration::from_secs(60));
        job.material = material(&entries, &job.settings, job.scale);
        if let Ok(candidate) = &mut job.candidates[0] {
            candidate.model = ModelRef::parse(model).expect("a model");
        }
        let Summarized { written, made, .. } = clock.run(summarize(&job, &Inline, &|_| {}));
        assert!(matches!(written, Some(Written::Whole { .. })), "{model}: {:?}", made.rejected);
        assert_eq!(client.asked.load(Ordering::SeqCst), requests, "{model}: {:?}", made.rejected);
        let named = made.rejected.iter().filter(|it| it.why.contains("reasoning_extraction")).count();
        assert_eq!((named, made.rejected.len()), (refusals, refusals), "{model}: {:?}", made.rejected);
    }
}

/// A client that never answers requests of this purpose, and all others at once.
struct SilentOn(Purpose);

impl Client for SilentOn {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        let text = json!([{"type": "text", "text": "## Goal\nMend it."}]);
        let is_silent = completion.purpose == self.0;
        Box::pin(async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            Ok(json!({"role": "assistant", "content": text}))
        })
    }
}

#[test]
fn a_part_that_is_written_stays_when_the_time_is_over() {
    let clock = VirtualClock::default();
    let mut job = job(&clock, Arc::new(SilentOn(Purpose::TurnPrefix)), Duration::from_secs(60));
    job.material.prefix = job.material.history.clone();
    let Summarized { written, made, .. } = clock.run(summarize(&job, &Inline, &|_| {}));
    let Some(Written::Part(SummaryPart::History, text)) = written else { panic!("a history: {written:?}") };
    assert_eq!(text.text(), "## Goal\nMend it.");
    let parts = made.parts.expect("two origins");
    assert_eq!((parts.history.method, parts.turn_prefix), (SummaryMethod::Llm, PartOrigin::default()));
    let why: Vec<_> = made.rejected.iter().map(|it| it.why.as_str()).collect();
    assert_eq!(why, ["the 60 s for this maintenance were over"]);
}

/// A client that refuses the beginning of a turn at once, and writes the history a minute later.
struct Slow(VirtualClock);

impl Client for Slow {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        Box::pin(async move {
            let text = if completion.purpose == Purpose::TurnPrefix {
                "I cannot help with that."
            } else {
                self.0.sleep_until(after(self.0.now(), Duration::from_secs(60))).await;
                "## Goal\nMend it."
            };
            Ok(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}))
        })
    }
}

#[test]
fn a_refused_part_does_not_end_the_request_for_the_other() {
    let clock = VirtualClock::default();
    let mut job = job(&clock, Arc::new(Slow(clock.clone())), Duration::from_secs(300));
    job.material.prefix = job.material.history.clone();
    let Summarized { written, made, .. } = clock.run(summarize(&job, &Inline, &|_| {}));
    assert!(matches!(written, Some(Written::Part(SummaryPart::History, _))), "{written:?}");
    assert_eq!((made.rejected.len(), clock.passed()), (2, Duration::from_secs(60)));
}

#[test]
fn a_whole_summary_stays_when_the_time_is_over_for_its_sentences() {
    let clock = VirtualClock::default();
    let job = job(&clock, Arc::new(SilentOn(Purpose::ShortSummary)), Duration::from_secs(5));
    let Summarized { written, made, .. } = clock.run(summarize(&job, &Inline, &|_| {}));
    assert!(matches!(written, Some(Written::Whole { short: None, .. })), "{written:?}");
    assert_eq!((made.method, made.parts, made.rejected), (SummaryMethod::Llm, None, vec![]));
}

#[test]
fn the_time_for_a_maintenance_ends_whatever_is_asked() {
    let (clock, client) = (VirtualClock::default(), Arc::new(Silent::default()));
    let deadline = Duration::from_secs(60);
    let Summarized { written, made, .. } =
        clock.run(summarize(&job(&clock, client.clone(), deadline), &Inline, &|_| {}));
    assert!(written.is_none() && made.by.is_none());
    let why: Vec<_> = made.rejected.iter().map(|it| it.why.as_str()).collect();
    assert_eq!(why, ["the 60 s for this maintenance were over"]);
    assert_eq!(clock.passed(), deadline);
    // The client gets the time of the maintenance, which is shorter than that for one request.
    assert_eq!(*client.deadlines.lock().expect("no panic"), [Some(deadline)]);
    assert_eq!(client.cancelled.load(Ordering::SeqCst), 1);
}

#[test]
fn a_summary_ends_where_its_tokens_do() {
    let text = json!([{"type": "text", "text": "## Goal\nMend it."}]);
    let said =
        |output: u64| Ok(json!({"role": "assistant", "content": text, "usage": {"input": 100, "output": output}}));
    let ask = |tokens: u64, output: u64| {
        let client = Arc::new(Hostile { answers: vec![said(output)], asked: AtomicUsize::new(0) });
        let clock = VirtualClock::default();
        let mut job = job(&clock, client.clone(), Duration::from_secs(60));
        let fit = job.candidates.remove(0).expect("it is fit");
        job.candidates = vec![Ok(Candidate { window: 5_000, ..fit })];
        (job.reserve, job.tokens) = (1_000, Some(tokens));
        let Summarized { written, made, .. } = clock.run(summarize(&job, &Inline, &|_| {}));
        assert_eq!(made.unaffordable.is_some(), written.is_none(), "{made:?}");
        (client.asked.load(Ordering::SeqCst), written.is_some(), made.unaffordable)
    };
    let (none, _, needed) = ask(0, 100);
    let needed = needed.expect("the size of the summary");
    assert_eq!(none, 0, "nothing is sent");
    assert_eq!(ask(needed - 1, 100), (0, false, Some(needed)));
    let (all, written, _) = ask(needed, 100);
    assert!(written && all > 3, "{all}");
    // The first request takes far more than it was estimated to.
    let (asked, written, _) = ask(needed, needed - 100);
    assert_eq!((asked, written), (1, false));
}

#[test]
fn a_hostile_summarizer_is_asked_a_bounded_number_of_times() {
    let said = |text: &str| Ok(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}));
    let failed = |text: &str| Err(Unanswered::Error(text.to_owned()));
    let (refusal, long) = (said("I cannot help with that."), said(&"## Goal\nWords and words.\n".repeat(5_000)));
    let (overflow, throttled) = (failed("prompt is too long"), failed("429 Too Many Requests"));
    let cut = failed("prompt is too long: 30000 tokens > 5000 maximum");
    let good = said("## Goal\nMend it.");
    let ask = |answers: &[Result<Value, Unanswered>], candidates: u64| {
        let client = Arc::new(Hostile { answers: answers.to_vec(), asked: AtomicUsize::new(0) });
        let clock = VirtualClock::default();
        let mut job = job(&clock, client.clone(), Duration::from_secs(86_400));
        let fit = job.candidates.remove(0).expect("it is fit");
        let candidate = |at: u64| {
            let model = ModelRef::parse(&format!("some/model-{at}")).expect("a model");
            Ok(Candidate { model, window: 5_000 + 1_000 * (at % 3), ..fit.clone() })
        };
        job.candidates = (0..candidates).map(candidate).collect();
        job.reserve = 1_000;
        let Summarized { written, made, .. } = clock.run(summarize(&job, &Inline, &|_| {}));
        (client.asked.load(Ordering::SeqCst), written, made.rejected)
    };
    let (asked, written, _) = ask(std::slice::from_ref(&good), 1);
    assert!(written.is_some());
    // The short summary is not planned.
    let chunks = asked - 1;
    assert!(chunks > 2, "{chunks}");
    for (answers, accepts) in [
        (vec![throttled.clone()], false),
        (vec![refusal.clone()], false),
        (vec![throttled.clone(), refusal.clone()], false),
        (vec![overflow.clone(), throttled.clone(), long.clone()], false),
        (vec![overflow.clone(), good.clone()], true),
        (vec![cut, throttled.clone(), good.clone(), long, overflow], true),
        (vec![throttled.clone(), throttled, good, refusal], true),
    ] {
        let (asked, written, rejected) = ask(&answers, 30);
        let most = if accepts { chunks + 12 } else { 1 + 12 };
        assert!(asked <= most, "{asked} requests for {chunks} chunks: {answers:?}");
        if written.is_none() {
            let enough = rejected.iter().filter(|it| it.why.contains("12 more than planned")).count();
            assert_eq!(enough, 1, "no candidate is asked behind the last request: {rejected:?}");
            assert!(rejected.last().is_some_and(|it| it.why.contains("12 more than planned")), "{rejected:?}");
        }
        assert!(accepts || (written.is_none() && asked == most), "{asked}: {answers:?}");
    }
}
