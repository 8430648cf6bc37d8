//! Requests to models on a clock of the tests, with a scripted provider and a scripted client.

mod charged;

use super::{
    Pending,
    allowance::Allowance,
    client::{Client, Completion, Unanswered},
    clock::Clock,
    content::Content,
    failed::{Failed, Next},
    purpose::Purpose,
    request::{Answered, Limits, Origin, Quota, Request, RetryOutcome, Update},
    retry::Policy,
    routes::{Provider, Routes},
    virtual_clock::VirtualClock,
};
use crate::{
    conversation::{message::Usage, spending::Trigger},
    ids::ModelRef,
    models::candidates::{Candidate, Way},
    provider::{
        self, Answer, Api, Beside, Cache, Delta, Encoded, Endpoint, KeySource, Part, Reach, Reasoning, Stop,
        ToolChoice, ToolOutcome, Trouble, TroubleKind, Turn,
    },
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::Duration,
};

const PURPOSES: [Purpose; 6] = [
    Purpose::Turn,
    Purpose::Compaction,
    Purpose::TurnPrefix,
    Purpose::ShortSummary,
    Purpose::BranchSummary,
    Purpose::Handoff,
];

const STALL: Duration = Duration::from_secs(90);

/// Everything that happened, in order.
#[derive(Debug, Clone)]
enum Seen {
    Provider(provider::Request),
    Client(Box<Completion>),
    /// A request for a document.
    Post(Endpoint, Encoded),
    /// A request was dropped without its answer.
    Cancelled,
    Update(Update),
}

/// Step of a script.
enum Reply {
    /// Pieces, and then the end of the attempt.
    Ends(Vec<Delta>, Result<Answer, Trouble>),
    /// An answer of the client.
    Message(Result<Value, Unanswered>),
    /// A document.
    Document(Result<String, Trouble>),
    /// Pieces, and then silence.
    Silence(Vec<Delta>),
}

/// The world around the routes: a clock, a script, and a list of everything that happened.
#[derive(Clone)]
struct World {
    clock: VirtualClock,
    state: Arc<Mutex<State>>,
}

struct State {
    script: VecDeque<Reply>,
    seen: Vec<Seen>,
}

impl World {
    fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let state = State { script: script.into_iter().collect(), seen: Vec::new() };
        Self { clock: VirtualClock::default(), state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, seen: Seen) {
        self.state().seen.push(seen);
    }

    fn reply(&self) -> Reply {
        self.state().script.pop_front().expect("a reply for each request")
    }

    fn routes(&self) -> Routes {
        let world = || self.clone();
        Routes {
            provider: Box::new(world()),
            client: Arc::new(world()),
            clock: Box::new(self.clock.clone()),
            ..Routes::new(Arc::new(world()))
        }
    }

    fn ask(&self, request: &Request) -> Result<Answered, Failed> {
        let tell = |update: Update| self.see(Seen::Update(update));
        self.clock.run(self.routes().ask(request, &tell))
    }

    /// Asks until it waits for the first time, and drops the request then.
    fn ask_and_drop(&self, request: &Request) {
        let routes = self.routes();
        let tell = |update: Update| self.see(Seen::Update(update));
        let mut asking = Box::pin(routes.ask(request, &tell));
        assert!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    fn updates(&self) -> Vec<Update> {
        let update = |seen: Seen| if let Seen::Update(update) = seen { Some(update) } else { None };
        self.seen().into_iter().filter_map(update).collect()
    }

    fn requests(&self) -> Vec<provider::Request> {
        let request = |seen: Seen| if let Seen::Provider(request) = seen { Some(request) } else { None };
        self.seen().into_iter().filter_map(request).collect()
    }

    fn completions(&self) -> Vec<Completion> {
        let completion = |seen: Seen| if let Seen::Client(completion) = seen { Some(*completion) } else { None };
        self.seen().into_iter().filter_map(completion).collect()
    }

    fn is_cancelled(&self) -> bool {
        self.seen().iter().any(|seen| matches!(seen, Seen::Cancelled))
    }
}

/// A request on its way. Dropping it before its answer is seen.
struct OnItsWay<'a>(&'a World, bool);

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.see(Seen::Cancelled);
        }
    }
}

impl Provider for World {
    fn ask<'a>(
        &'a self,
        _: &'a Endpoint,
        request: &'a provider::Request,
        stall: Duration,
        told: &'a mut (dyn FnMut(&Delta) + Send),
    ) -> Pending<'a, Result<Answer, Trouble>> {
        assert_eq!(stall, STALL);
        self.see(Seen::Provider(request.clone()));
        Box::pin(async move {
            let mut on_its_way = OnItsWay(self, false);
            match self.reply() {
                Reply::Ends(deltas, end) => {
                    deltas.iter().for_each(told);
                    on_its_way.1 = true;
                    end
                }
                Reply::Silence(deltas) => {
                    deltas.iter().for_each(told);
                    future::pending().await
                }
                Reply::Message(_) | Reply::Document(_) => panic!("another reply for a provider"),
            }
        })
    }

    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: Encoded,
        _: u64,
        stall: Duration,
    ) -> Pending<'a, Result<String, Trouble>> {
        assert_eq!(stall, STALL);
        self.see(Seen::Post(endpoint.clone(), request));
        Box::pin(async move {
            let mut on_its_way = OnItsWay(self, false);
            match self.reply() {
                Reply::Document(document) => {
                    on_its_way.1 = true;
                    document
                }
                Reply::Silence(_) => future::pending().await,
                _ => panic!("another reply for a request for a document"),
            }
        })
    }

    fn get<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'static str,
        _: Vec<(&'static str, String)>,
        _: u64,
        _: Duration,
    ) -> Pending<'a, Result<String, Trouble>> {
        Box::pin(future::ready(Err(Trouble::new(TroubleKind::NotFound, "no list"))))
    }
}

impl Client for World {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        self.see(Seen::Client(Box::new(completion)));
        Box::pin(async move {
            let mut on_its_way = OnItsWay(self, false);
            match self.reply() {
                Reply::Message(message) => {
                    on_its_way.1 = true;
                    message
                }
                Reply::Silence(_) => future::pending().await,
                Reply::Ends(..) | Reply::Document(_) => panic!("a provider's reply for a client"),
            }
        })
    }
}

fn texts(turns: Vec<Turn>, tools: Vec<Value>) -> Content {
    Content::live(provider::Request { system: Some("Be brief.".to_owned()), turns, tools, ..Default::default() })
}

fn request(way: Way) -> Request {
    let second = Duration::from_secs(1);
    Request {
        purpose: Purpose::Turn,
        origin: Origin { session: "s".into(), operation: "o".into(), trigger: Trigger::Threshold },
        candidate: Candidate {
            model: ModelRef::parse("some/model").expect("a model"),
            window: 100_000,
            output: None,
            thinks: false,
            way,
        },
        content: texts(vec![Turn::user("Hello.")], Vec::new()),
        tool_choice: ToolChoice::default(),
        max_tokens: 4_000,
        reasoning: Reasoning::Off,
        cache: Cache::default(),
        retry: Policy { most: 3, base: 2 * second, max: 60 * second, longest: 30 * second, silences: 0, unreached: 1 },
        limits: Limits { stall: STALL, client: None, until: None, input: 0, quota: None, tokens: None },
    }
}

fn at_provider() -> Request {
    let endpoint = Endpoint {
        api: Api::Anthropic,
        base_url: "http://127.0.0.1:1".to_owned(),
        key: KeySource::None,
        headers: Vec::new(),
    };
    request(Way::Provider(endpoint))
}

fn at_service() -> Request {
    let request = by_client();
    let limits = Limits { input: 700, ..request.limits.clone() };
    Request { candidate: Candidate::summarizer("https://service/sum"), limits, ..request }
}

fn by_client() -> Request {
    request(Way::Client)
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

fn answer(text: &str) -> Answer {
    Answer { parts: vec![Part::text(text)], usage: usage(10, 2), ..Answer::default() }
}

fn answers(with: &str) -> Reply {
    Reply::Ends(vec![text(with)], Ok(answer(with)))
}

fn fails(kind: TroubleKind) -> Reply {
    Reply::Ends(Vec::new(), Err(Trouble::new(kind, "")))
}

/// The kinds of the updates, in order.
fn kinds(updates: &[Update]) -> Vec<&'static str> {
    let kind = |update: &Update| match update {
        Update::Begins => "begins",
        Update::Delta(_) => "delta",
        Update::Complete => "complete",
        Update::RetryStart { .. } => "retry starts",
        Update::RetryEnd { outcome: RetryOutcome::Answered, .. } => "retry answered",
        Update::RetryEnd { outcome: RetryOutcome::Failed(_), .. } => "retry failed",
        Update::RetryEnd { outcome: RetryOutcome::Cancelled, .. } => "retry cancelled",
        Update::Spent(_) => "spent",
        Update::AtStake(_) => "at stake",
    };
    updates.iter().map(kind).collect()
}

#[test]
fn a_request_of_any_purpose_is_answered_retried_and_paid_alike() {
    for purpose in PURPOSES {
        let world = World::new([fails(TroubleKind::Broken), answers("hi")]);
        let answered = world.ask(&Request { purpose, ..at_provider() }).expect("an answer");
        assert_eq!((answered.answer.text().as_str(), answered.cost), ("hi", usage(10, 2).with_total()), "{purpose:?}");
        let updates = world.updates();
        let expected = ["begins", "retry starts", "begins", "delta", "complete", "retry answered", "spent"];
        assert_eq!(kinds(&updates), expected, "{purpose:?}");
        let Some(Update::Spent(spent)) = updates.last() else { panic!("{updates:?}") };
        assert_eq!(
            (spent.purpose, spent.model.to_string().as_str(), spent.usage),
            (purpose, "some/model", usage(10, 2))
        );

        let message = json!({"content": [{"type": "text", "text": "hi"}]});
        let world = World::new([Reply::Message(Ok(message))]);
        assert_eq!(world.ask(&Request { purpose, ..by_client() }).expect("an answer").answer.text(), "hi");
        assert_eq!(world.completions()[0].purpose, purpose);
    }
}

impl Usage {
    /// The same with the total that a sum of usages has.
    fn with_total(self) -> Self {
        Self { total: self.context_tokens(), ..self }
    }
}

#[test]
fn turns_and_tools_reach_the_provider() {
    let tools = vec![json!({"name": "read", "description": "Reads a file.", "inputSchema": {"type": "object"}})];
    let call = Part::Call { id: "c".into(), name: "read".into(), arguments: "{}".into(), signature: None };
    let result = ToolOutcome { call: "c".into(), name: "read".into(), parts: vec![Part::text("x")], is_error: false };
    let turns = vec![Turn::user("Read it."), Turn::Assistant(vec![call.clone()]), Turn::Result(result)];
    let cache = Cache::Prefix("s".to_owned());
    let asked = Request { content: texts(turns.clone(), tools.clone()), cache: cache.clone(), ..at_provider() };
    let calls = Answer { parts: vec![call], usage: usage(10, 2), stop: Stop::ToolUse, ..Answer::default() };
    let world = World::new([Reply::Ends(vec![Delta::Call("{}".to_owned())], Ok(calls.clone()))]);
    assert_eq!(world.ask(&asked).expect("an answer").answer, calls);
    let sent = world.requests().remove(0);
    assert_eq!((sent.model.id.as_str(), sent.system.as_deref()), ("model", Some("Be brief.")));
    assert_eq!((sent.turns, sent.tools, sent.tool_choice, sent.cache), (turns, tools, ToolChoice::Auto, cache));
}

#[test]
fn turns_and_tools_reach_the_client() {
    let tools = vec![json!({"name": "read", "description": "Reads a file.", "inputSchema": {"type": "object"}})];
    let content = json!([
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one"}, {"type": "text", "text": "two"},
        {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}},
    ]);
    let message = json!({"content": content, "stopReason": "toolUse", "usage": {"input": 10, "output": 2}});
    let world = World::new([Reply::Message(Ok(message))]);
    let answered = world
        .ask(&Request { content: texts(vec![Turn::user("Hello.")], tools.clone()), ..by_client() })
        .expect("an answer");
    assert!(answered.answer.calls_a_tool() && answered.answer.stop == Stop::ToolUse);
    let sent = world.completions().remove(0);
    assert_eq!((sent.tools, sent.max_tokens, sent.model.to_string().as_str()), (tools, 4_000, "some/model"));
    assert_eq!((sent.system.as_deref(), sent.deadline), (Some("Be brief."), None));
    assert_eq!(sent.origin, Origin { session: "s".into(), operation: "o".into(), trigger: Trigger::Threshold });
    let user = json!({"role": "user", "content": [{"type": "text", "text": "Hello."}], "timestamp": world.clock.timestamp_ms()});
    assert_eq!(sent.messages, [user]);
    // An answer that comes whole is reported in pieces too, each part with its place.
    let deltas: Vec<Delta> =
        world.updates().into_iter().filter_map(|it| if let Update::Delta(it) = it { Some(it) } else { None }).collect();
    let call = Delta::Call(r#"{"path":"a"}"#.to_owned());
    let parts = [Delta::Thinking("hm".to_owned()), text("one"), text("two"), call];
    let expected: Vec<Delta> = parts.into_iter().enumerate().flat_map(|(at, part)| [Delta::Part(at), part]).collect();
    assert_eq!(deltas, expected);
    assert_eq!(answered.answer.text(), "one\ntwo");
}

#[test]
fn thinking_gets_room_beside_the_answer() {
    let most = |thinks: bool, output: Option<u64>, reasoning: Reasoning| {
        let mut request = Request { reasoning, ..at_provider() };
        (request.candidate.thinks, request.candidate.output) = (thinks, output);
        let sent = request.for_provider();
        (sent.max_tokens, sent.ceiling, sent.reasoning)
    };
    assert_eq!(most(false, None, Reasoning::Off), (Some(4_000), None, Reasoning::Unsaid));
    assert_eq!(most(true, None, Reasoning::Off), (Some(5_024), None, Reasoning::Off));
    assert_eq!(most(true, Some(4_500), Reasoning::Off), (Some(4_500), Some(4_500), Reasoning::Off));
    let high = Reasoning::Effort(provider::Effort::High);
    assert_eq!(most(true, Some(64_000), high), (Some(4_000), Some(64_000), high), "the codec adds its room");
}

#[test]
fn pieces_are_reported_as_they_come_and_void_after_a_new_beginning() {
    let cut_off = Trouble::new(TroubleKind::CutOff, "");
    let world = World::new([
        Reply::Ends(vec![text("half an ans")], Err(cut_off)),
        Reply::Ends(vec![text("a whole "), text("answer")], Ok(answer("a whole answer"))),
    ]);
    world.ask(&at_provider()).expect("an answer");
    let mut told = String::new();
    for update in world.updates() {
        match update {
            Update::Begins => told.clear(),
            Update::Delta(Delta::Text(piece)) => told.push_str(&piece),
            Update::Complete => told.push('.'),
            _ => {}
        }
    }
    assert_eq!(told, "a whole answer.");
}

#[test]
fn retries_wait_longer_each_time_and_have_an_end() {
    let world = World::new((0..4).map(|_| fails(TroubleKind::Broken)));
    let failed = world.ask(&at_provider()).expect_err("a failure");
    assert_eq!((failed.next, failed.retryable), (Next::OtherModel, true));
    assert_eq!(world.clock.passed(), Duration::from_secs(2 + 4 + 8));
    let mut attempts = Vec::new();
    for update in world.updates() {
        if let Update::RetryStart { attempt, most, delay, failed } = update {
            assert!(failed.to_string().starts_with("some/model: the provider failed"), "{failed}");
            attempts.push((attempt, most, delay.as_secs()));
        }
    }
    assert_eq!(attempts, [(1, 3, 2), (2, 3, 4), (3, 3, 8)]);
    let ends = kinds(&world.updates()).iter().filter(|kind| **kind == "retry failed").count();
    assert_eq!(ends, 3, "each start has its end");
}

#[test]
fn what_no_retry_mends_fails_at_once() {
    for kind in [TroubleKind::Denied, TroubleKind::Stalled, TroubleKind::Overflow(Default::default())] {
        let world = World::new([fails(kind)]);
        world.ask(&at_provider()).expect_err("a failure");
        assert_eq!(kinds(&world.updates()), ["begins"], "{kind:?}");
    }
    let long = Trouble { retry_after: Some(Duration::from_secs(31)), ..Trouble::new(TroubleKind::Throttled, "") };
    let world = World::new([Reply::Ends(Vec::new(), Err(long))]);
    world.ask(&at_provider()).expect_err("nobody waits that long");
}

#[test]
fn the_cost_of_all_attempts_adds_up() {
    let failed = json!({"stopReason": "error", "errorMessage": "overloaded", "content": [], "usage": {"input": 100, "output": 20}});
    let whole =
        json!({"content": [{"type": "text", "text": "hi"}], "usage": {"input": 100, "output": 30, "cacheRead": 5}});
    let world = World::new([Reply::Message(Ok(failed)), Reply::Message(Ok(whole))]);
    let answered = world.ask(&by_client()).expect("an answer");
    let last = Usage { cache_read: 5, ..usage(100, 30) };
    assert_eq!((answered.answer.usage.input, answered.answer.usage.output), (last.input, last.output));
    assert_eq!(answered.cost, Usage { cache_read: 5, total: 255, ..usage(200, 50) });
    let updates = world.updates();
    let spent: Vec<u64> = updates
        .iter()
        .filter_map(|update| if let Update::Spent(spent) = update { Some(spent.usage.context_tokens()) } else { None })
        .collect();
    assert_eq!(spent, [120, 135]);
    let expected =
        ["begins", "spent", "retry starts", "begins", "delta", "delta", "complete", "retry answered", "spent"];
    assert_eq!(kinds(&updates), expected);
}

#[test]
fn a_client_that_is_silent_is_late_and_is_not_asked_again() {
    let mut request = by_client();
    request.limits.client = Some(Duration::from_secs(60));
    let world = World::new([Reply::Silence(Vec::new())]);
    let failed = world.ask(&request).expect_err("a failure");
    assert!(failed.to_string().contains("the client did not answer in time: nothing within 60 s"), "{failed}");
    assert_eq!((failed.next, world.clock.passed()), (Next::OtherModel, Duration::from_secs(60)));
    assert_eq!(world.completions()[0].deadline, Some(Duration::from_secs(60)));
    assert!(world.is_cancelled());
    assert_eq!(kinds(&world.updates()), ["begins"]);
}

#[test]
fn a_request_ends_with_its_time_retries_included() {
    // By the client: it gets the time that is left.
    let world =
        World::new([Reply::Message(Err(Unanswered::Error("503 overloaded".into()))), Reply::Silence(Vec::new())]);
    let mut request = by_client();
    request.limits.client = Some(Duration::from_secs(60));
    request.limits.until = Some(world.clock.now() + Duration::from_secs(50));
    let failed = world.ask(&request).expect_err("a failure");
    assert_eq!((failed.next, world.clock.passed()), (Next::Stop, Duration::from_secs(50)));
    let deadlines: Vec<_> = world.completions().iter().map(|it| it.deadline.map(|it| it.as_secs())).collect();
    assert_eq!(deadlines, [Some(50), Some(48)]);
    assert!(world.is_cancelled());
    assert_eq!(kinds(&world.updates()), ["begins", "retry starts", "begins", "retry cancelled"]);

    // At a provider, in the middle of an answer.
    let world = World::new([Reply::Silence(vec![text("half")])]);
    let mut request = at_provider();
    request.limits.until = Some(world.clock.now() + Duration::from_secs(5));
    assert_eq!(world.ask(&request).expect_err("a failure").next, Next::Stop);
    assert!(world.is_cancelled());

    // During the wait before a retry.
    let world = World::new([fails(TroubleKind::Broken)]);
    let mut request = at_provider();
    request.limits.until = Some(world.clock.now() + Duration::from_secs(1));
    assert_eq!(world.ask(&request).expect_err("a failure").next, Next::Stop);
    assert_eq!(kinds(&world.updates()), ["begins", "retry starts", "retry cancelled"]);
}

#[test]
fn dropping_a_request_cancels_it() {
    for request in [at_provider(), by_client()] {
        let world = World::new([Reply::Silence(vec![text("half")])]);
        world.ask_and_drop(&request);
        assert!(world.is_cancelled());
    }
    let world = World::new([fails(TroubleKind::Broken)]);
    world.ask_and_drop(&at_provider());
    assert_eq!(kinds(&world.updates()), ["begins", "retry starts", "retry cancelled"], "a start has its end here too");
}

#[test]
fn a_quota_limits_requests_and_their_retries_together() {
    let quota = Arc::new(Quota::new(3, "3 were sent"));
    let mut request = at_provider();
    request.limits.quota = Some(quota.clone());
    let world = World::new([answers("hi"), fails(TroubleKind::Broken), fails(TroubleKind::Broken)]);
    world.ask(&request).expect("an answer");
    let failed = world.ask(&request).expect_err("a failure");
    assert!(failed.to_string().contains("3 were sent"), "{failed}");
    assert_eq!((world.requests().len(), failed.next), (3, Next::Enough), "the fourth one is not sent");
    quota.add(1);
    let world = World::new([answers("hi")]);
    world.ask(&request).expect("one more may be sent");
}

#[test]
fn an_allowance_limits_the_tokens_of_requests_and_their_retries_together() {
    let allowance = Arc::new(Allowance::new(130));
    let mut request = at_provider();
    request.limits.tokens = Some((allowance.clone(), 100));
    // An answer takes 12, a failure what was reported before it.
    let broken = || Trouble { usage: usage(30, 0), ..Trouble::new(TroubleKind::Broken, "overloaded") };
    let world = World::new([answers("hi"), Reply::Ends(Vec::new(), Err(broken())), answers("hi")]);
    world.ask(&request).expect("an answer");
    let failed = world.ask(&request).expect_err("a failure");
    assert!(failed.to_string().contains("overloaded"), "the cause, and no lack of tokens for a retry: {failed}");
    assert_eq!((world.requests().len(), failed.next), (2, Next::Enough), "the third one is not sent");
    assert_eq!(allowance.refused(), Some(100));
    let spent =
        world.updates().into_iter().filter_map(|it| if let Update::Spent(it) = it { Some(it.usage) } else { None });
    assert_eq!(spent.map(|usage| usage.context_tokens()).collect::<Vec<_>>(), [12, 30]);
}

#[test]
fn an_error_of_a_client_is_read_like_its_providers() {
    let next = |unanswered: Unanswered| {
        let mut request = by_client();
        request.retry = Policy::NEVER;
        let failed = World::new([Reply::Message(Err(unanswered))]).ask(&request).expect_err("a failure");
        (failed.next, failed.retryable)
    };
    let said = |text: &str| Unanswered::Error(text.to_owned());
    let too_long = said("prompt is too long: 210000 tokens > 200000 maximum");
    assert_eq!(next(too_long), (Next::Shorten { window: Some(200_000) }, false));
    assert_eq!(next(said("429 Too Many Requests")), (Next::OtherModel, true));
    assert_eq!(next(said("no")), (Next::OtherModel, false));
    assert_eq!(next(Unanswered::Gone), (Next::OtherModel, false));
}

#[test]
fn a_service_for_summaries_gets_two_texts_and_its_cost_is_estimated() {
    let world = World::new([Reply::Document(Ok(r#"{"summary": "All.", "shortSummary": "A."}"#.to_owned()))]);
    let answered = world.ask(&at_service()).expect("an answer");
    assert_eq!(answered.answer.text(), "All.");
    assert_eq!(answered.answer.beside, Beside::Short("A.".to_owned()));
    let seen = world.seen();
    let Seen::Post(endpoint, Encoded { path, body, .. }) = &seen[1] else { panic!("{seen:?}") };
    assert_eq!((endpoint.base_url.as_str(), path.as_str()), ("https://service/sum", ""));
    assert_eq!(*body, json!({"systemPrompt": "Be brief.", "prompt": "Hello."}));
    let updates = world.updates();
    let [Update::Begins, Update::Delta(Delta::Part(0)), Update::Delta(delta), Update::Complete, Update::Spent(spent)] =
        updates.as_slice()
    else {
        panic!("{updates:?}")
    };
    assert_eq!(*delta, text("All."));
    assert_eq!((spent.model.to_string().as_str(), spent.usage.input, spent.estimated), ("remote/endpoint", 700, true));
}

#[test]
fn a_service_that_fails_is_asked_again_where_that_helps_and_named_by_its_setting() {
    let broken = || Reply::Document(Err(Trouble::of(Some(503), "overloaded", None)));
    let world = World::new([broken(), Reply::Document(Ok(r#"{"summary": "All."}"#.to_owned()))]);
    assert_eq!(world.ask(&at_service()).expect("an answer").answer.beside, Beside::Nothing);
    let world = World::new([Reply::Document(Ok("{}".to_owned()))]);
    let failed = world.ask(&at_service()).expect_err("no summary");
    assert_eq!((failed.model.clone(), failed.next, failed.retryable), (None, Next::OtherModel, false));
    assert_eq!(failed.data()["model"], Value::Null);
    let said = failed.to_string();
    assert!(said.starts_with("compaction.remoteEndpoint: ") && said.contains("no `summary`"), "{said}");
    assert!(said.ends_with("another service may answer there"), "{said}");
}

#[test]
fn a_request_to_a_service_ends_where_it_is_dropped() {
    let world = World::new([Reply::Silence(Vec::new())]);
    world.ask_and_drop(&at_service());
    assert!(world.is_cancelled());
}

/// A refusal for the room kept for an answer.
fn reserves(limit: u64, input: u64, output: u64) -> Reply {
    let said = format!("input length and `max_tokens` exceed context limit: {input} + {output} > {limit}");
    Reply::Ends(Vec::new(), Err(Trouble::of(Some(400), &said, None)))
}

#[test]
fn a_request_that_is_refused_for_the_room_of_its_answer_is_sent_once_more_with_less() {
    let mut request = at_provider();
    request.limits.input = 5_000;
    let world = World::new([reserves(8_000, 5_000, 4_000), answers("hi")]);
    let answered = world.ask(&request).expect("an answer");
    assert_eq!(answered.limit, Some(8_000));
    let asked = world.requests();
    let most = |request: &provider::Request| request.max_tokens;
    assert_eq!(asked.iter().map(most).collect::<Vec<_>>(), [Some(4_000), Some(2_750)]);
    assert_eq!(asked[0].turns, asked[1].turns);
    let retried = world.updates().iter().any(|update| matches!(update, Update::RetryStart { .. }));
    assert!(!retried, "it waits for nothing");

    let world = World::new([reserves(8_000, 5_000, 4_000), reserves(8_000, 5_500, 2_750)]);
    let failed = world.ask(&request).expect_err("a failure");
    assert_eq!((failed.next, world.requests().len()), (Next::Shorten { window: Some(8_000) }, 2), "once");

    let world = World::new([reserves(8_000, 5_000, 4_000), fails(TroubleKind::Broken), answers("hi")]);
    world.ask(&request).expect("an answer");
    let asked = world.requests();
    assert_eq!(asked.iter().map(most).collect::<Vec<_>>(), [Some(4_000), Some(2_750), Some(2_750)]);
}

#[test]
fn a_request_without_room_for_a_smaller_answer_has_to_be_shorter() {
    for (limit, input, output) in [
        (8_000, 7_500, 4_000),
        // The thinking beside the answer takes what is left.
        (8_000, 5_000, 7_000),
    ] {
        let mut request = at_provider();
        request.limits.input = 5_000;
        let world = World::new([reserves(limit, input, output)]);
        let failed = world.ask(&request).expect_err("a failure");
        assert_eq!((failed.next, world.requests().len()), (Next::Shorten { window: Some(limit) }, 1), "{input}");
    }
}

#[test]
fn sizes_far_off_the_request_say_nothing_about_the_window() {
    let next = |said: &str, input: u64| {
        let mut request = at_provider();
        request.limits.input = input;
        let world = World::new([Reply::Ends(Vec::new(), Err(Trouble::of(Some(400), said, None)))]);
        world.ask(&request).expect_err("a failure").next
    };
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    let stated = Next::Shorten { window: Some(200_000) };
    for (input, expected) in [
        (0, stated),
        (200_000, stated),
        (70_000, stated),
        (60_000, Next::Shorten { window: None }),
        (640_000, Next::Shorten { window: None }),
    ] {
        assert_eq!(next(too_long, input), expected, "{input}");
    }
    // The room for the answer is a part of the size.
    let sum = "This model's maximum context length is 4000 tokens. However, you requested 5000 tokens.";
    assert_eq!(next(sum, 1_000), Next::Shorten { window: Some(4_000) });
    assert_eq!(next("prompt is too long: 5000 tokens", 1_000), Next::Shorten { window: None });
}
