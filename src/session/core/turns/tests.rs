//! Turns of a session whose log and jobs are in the hands of the test.

mod ending;
mod queueing;

use crate::{
    ask::{client::Executed, purpose::Purpose, request::Update, spent::Spent},
    conversation::{message::Usage, spending::Trigger},
    ids::{ModelRef, OperationId},
    protocol::{
        SessionContinue, SessionNavigate, SessionPrompt, SessionStatus,
        events::{Event, Reason},
        types::Outcome,
    },
    provider::Delta,
    session::{
        core::{
            Input,
            held::{Held, answer, draft, events, job, line, message, messages, plan, started},
        },
        effects::{Effect, TicketNumber},
        jobs::{
            Job,
            turn::{Refused, ToolCall, TurnAnswer, TurnOrder, TurnReport},
        },
        log_work::LogWork,
    },
    settings::{Layers, layers::Source},
};
use serde_json::{Value, json, value::RawValue};

/// A session with a model and a tool, whose log comes back at once.
struct Play {
    held: Held,
    /// The jobs that were started and not taken.
    jobs: Vec<Job>,
    /// All effects but work on the log and jobs, in their order.
    seen: Vec<Effect>,
}

impl Play {
    fn of(held: Held, window: u64) -> Self {
        let mut play = Self { held, jobs: Vec::new(), seen: Vec::new() };
        let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m", "compaction": {"speculative": false},
            "models": [{"provider": "p", "id": "m", "contextWindow": window}]});
        play.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        play.seen.clear();
        play
    }

    fn new() -> Self {
        let tools = json!([{"name": "read", "description": "", "inputSchema": {"type": "object"}}]);
        let session =
            line("s0", Some("e39"), "custom", json!({"customType": "abridged.session", "data": {"tools": tools}}));
        let lines: Vec<String> = messages().into_iter().chain([session]).collect();
        Self::of(Held::of(&lines, u64::MAX), 100_000)
    }

    fn feed(&mut self, input: Input) {
        let effects = self.held.feed(input);
        self.perform(effects);
    }

    /// Performs effects, and goes on until nothing is due.
    fn perform(&mut self, effects: Vec<Effect>) {
        let mut works = Vec::new();
        for effect in effects {
            match effect {
                Effect::Log(work) => works.push(work),
                Effect::Start(job) => self.jobs.push(*job),
                effect => self.seen.push(effect),
            }
        }
        for work in works {
            let effects = self.held.back(work);
            self.perform(effects);
        }
        while self.held.core.is_due() {
            let effects = self.held.turn();
            self.perform(effects);
        }
    }

    fn prompt(&mut self, number: TicketNumber, params: Value) {
        self.held.command::<SessionPrompt>(number, params);
        self.perform(Vec::new());
    }

    fn go_on(&mut self, number: TicketNumber) {
        self.held.command::<SessionContinue>(number, json!({}));
        self.perform(Vec::new());
    }

    /// The next step of a turn that was started.
    fn step(&mut self) -> TurnOrder {
        let at = self.jobs.iter().position(|job| matches!(job, Job::Turn(_))).expect("a step of a turn");
        let Job::Turn(order) = self.jobs.remove(at) else { unreachable!("it is one") };
        order
    }

    /// Whether a step of a turn was started.
    fn has_step(&self) -> bool {
        self.jobs.iter().any(|job| matches!(job, Job::Turn(_)))
    }

    fn report(&mut self, turn: &OperationId, report: TurnReport) {
        self.feed(Input::Turned(turn.clone(), report));
    }

    /// Begins a turn with a message, up to its request to the model.
    fn begin(&mut self, number: TicketNumber, message: &str) -> OperationId {
        self.prompt(number, json!({ "message": message }));
        self.route()
    }

    /// The model of the turn that starts can be asked, and it is asked.
    fn route(&mut self) -> OperationId {
        let TurnOrder::Route(order) = self.step() else { panic!("the model is looked for first") };
        self.report(&order.id, TurnReport::Routed(None));
        self.asked()
    }

    /// The turn whose model is asked now.
    fn asked(&mut self) -> OperationId {
        let TurnOrder::Ask(order) = self.step() else { panic!("the model is asked") };
        order.id
    }

    fn hear(&mut self, turn: &OperationId, text: &str) {
        self.report(turn, TurnReport::Heard(Update::Delta(Delta::Text(text.to_owned()))));
    }

    /// The model answers with this text and these calls.
    fn answer(&mut self, turn: &OperationId, text: &str, calls: &[(&str, &str)], stop: &str) {
        self.answer_of(turn, text, calls, stop, 0);
    }

    fn answer_of(&mut self, turn: &OperationId, text: &str, calls: &[(&str, &str)], stop: &str, tokens: u64) {
        let call = |(id, name): &(&str, &str)| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
        let content: Vec<Value> =
            [json!({"type": "text", "text": text})].into_iter().chain(calls.iter().map(call)).collect();
        let mut message =
            json!({"role": "assistant", "content": content, "stopReason": stop, "provider": "p", "model": "m"});
        if tokens > 0 {
            message["usage"] =
                json!({"input": tokens, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens + 1});
        }
        let calls = calls.iter().map(|(id, name)| ToolCall {
            id: (*id).into(),
            name: (*name).to_owned(),
            arguments: raw(&json!({})),
            unreadable: None,
        });
        let answer = TurnAnswer {
            message: raw(&message),
            context: None,
            stop: stop.to_owned(),
            calls: calls.collect(),
            failed: None,
        };
        self.report(turn, TurnReport::Answered(Box::new(answer)));
    }

    /// The model fails with this text.
    fn fail(&mut self, turn: &OperationId, what: &str) {
        let message = json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": what,
            "provider": "p", "model": "m"});
        let failed = Some(refused(what));
        let answer =
            TurnAnswer { message: raw(&message), context: None, stop: "error".to_owned(), calls: Vec::new(), failed };
        self.report(turn, TurnReport::Answered(Box::new(answer)));
    }

    fn execute(&mut self, turn: &OperationId, call: &str, text: &str) {
        let executed = Executed { content: json!(text), is_error: false };
        self.report(turn, TurnReport::Executed(call.into(), executed));
    }

    /// The compaction that is planned is made.
    fn compact(&mut self) {
        let at = self.jobs.iter().position(|job| matches!(job, Job::Plan(_))).expect("a plan");
        let Job::Plan(order) = self.jobs.remove(at) else { unreachable!("it is one") };
        let id = order.id.clone();
        self.feed(Input::Planned(id, Ok(plan(order))));
        let at = self.jobs.iter().position(|job| matches!(job, Job::Draft(_))).expect("a draft");
        let Job::Draft(order) = self.jobs.remove(at) else { unreachable!("it is one") };
        self.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    }

    fn cancel(&mut self, number: TicketNumber) {
        let effects = self.held.cancel(number);
        self.perform(effects);
    }

    /// The names of the events since the last call, without those that say only sizes.
    fn told(&mut self) -> Vec<&'static str> {
        let told: Vec<&str> = events(&self.seen).map(Event::kind).collect();
        self.seen.clear();
        told.into_iter()
            .filter(|kind| !["usage_updated", "compaction_progress", "summary_chunk"].contains(kind))
            .collect()
    }

    /// The outcomes of the turns that ended.
    fn ends(&self) -> Vec<Outcome> {
        let outcome = |event: &Event| match event {
            Event::TurnEnd { outcome, .. } => Some(*outcome),
            _ => None,
        };
        events(&self.seen).filter_map(outcome).collect()
    }

    /// The messages after the first ones: the role, the text, and the stop reason of an answer.
    fn said(&self) -> Vec<String> {
        let entries = self.held.core.state().path().iter();
        let new = entries.filter(|entry| entry.id.is_of_bits() && entry.kind == "message");
        let said = new.map(|entry| {
            let line: Value = serde_json::from_str(entry.line()).expect("JSON");
            let message = &line["message"];
            let text = message["content"].as_str().or(message["content"][0]["text"].as_str()).unwrap_or_default();
            format!("{}: {}", message["role"].as_str().unwrap_or_default(), &text[..text.len().min(30)])
        });
        said.collect()
    }

    fn queue(&mut self) -> [Vec<String>; 2] {
        self.held.call::<SessionStatus>(999, json!({}));
        let effects = self.held.turn();
        let status = answer(&effects, 999).expect("an answer");
        ["steering", "followUp"].map(|list| {
            let texts = status["queue"][list].as_array().expect("a list");
            texts.iter().map(|it| it["text"].as_str().unwrap_or_default().to_owned()).collect()
        })
    }

    fn result(&self, number: TicketNumber) -> Value {
        answer(&self.seen, number).expect("an answer")
    }

    fn reopened(self) -> Self {
        Self::of(self.held.reopened(), 100_000)
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("JSON")
}

fn refused(what: &str) -> Refused {
    Refused { model: None, status: None, retryable: false, what: what.to_owned() }
}

fn queue_of(lists: [&[&str]; 2]) -> [Vec<String>; 2] {
    lists.map(|list| list.iter().map(|text| (*text).to_owned()).collect())
}

/// The cost of an attempt of so many tokens.
fn spent(input: u64) -> TurnReport {
    let usage = Usage { input, ..Usage::default() };
    let model = ModelRef::parse("p/m").expect("a model");
    let (purpose, trigger) = (Purpose::Turn, Trigger::Manual);
    TurnReport::Heard(Update::Spent(Spent { purpose, model, trigger, usage, estimated: false, sent: 0 }))
}

#[test]
fn the_costs_of_attempts_that_failed_are_written() {
    let costs = |play: &Play| -> Vec<u64> {
        let entries = play.held.core.state().path().iter().filter(|entry| entry.kind == "usage");
        let lines = entries.map(|entry| serde_json::from_str::<Value>(entry.line()).expect("JSON"));
        lines.map(|line| line["usage"]["input"].as_u64().expect("tokens")).collect()
    };
    let mut play = Play::new();
    let turn = play.begin(1, "Mend it.");
    for input in [100, 200, 300] {
        play.report(&turn, spent(input));
    }
    play.answer(&turn, "It is mended.", &[], "stop");
    assert_eq!(costs(&play), [100, 200], "the message has those of the answer");
    let turn = play.begin(2, "And now?");
    play.report(&turn, spent(400));
    play.report(&turn, spent(0));
    play.fail(&turn, "it is broken");
    assert_eq!(costs(&play), [100, 200, 400]);
    let turn = play.begin(3, "And now?");
    play.report(&turn, spent(500));
    play.fail(&turn, "it is broken");
    assert_eq!(costs(&play), [100, 200, 400, 500]);
}

#[test]
fn a_prompt_is_on_disk_before_its_answer_and_its_turn_starts_after_it() {
    let mut play = Play::new();
    let turn = play.begin(1, "Mend it.");
    assert_eq!(play.result(1), json!({"turnId": turn, "disposition": "started"}));
    let answered = play.seen.iter().position(|effect| matches!(effect, Effect::Answer(1, _)));
    let started = play.seen.iter().position(|effect| matches!(effect, Effect::Emit(_, Event::TurnStart {})));
    assert!(answered < started);
    assert_eq!(play.told(), ["status_changed", "turn_start", "entry_appended"]);
    play.hear(&turn, "I ");
    play.answer(&turn, "I did.", &[], "stop");
    assert_eq!(play.ends(), [Outcome::Completed]);
    assert_eq!(play.told(), ["message_delta", "entry_appended", "turn_end", "status_changed", "settled"]);
    assert_eq!(play.said(), ["user: Mend it.", "assistant: I did."]);
}

#[test]
fn calls_are_executed_and_the_model_is_asked_after_the_last_result() {
    let mut play = Play::new();
    let turn = play.begin(1, "Read.");
    play.told();
    play.answer(&turn, "I read.", &[("c1", "read"), ("c2", "none"), ("c3", "read")], "toolUse");
    let TurnOrder::Execute(order) = play.step() else { panic!("the tools are executed") };
    let ids: Vec<&str> = order.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["c1", "c3"], "the client has no tool of the other name");
    play.execute(&turn, "c3", "third");
    play.execute(&turn, "c3", "again");
    play.execute(&turn, "other", "unknown");
    assert!(!play.has_step(), "a result is missing");
    play.execute(&turn, "c1", "first");
    assert_eq!(play.asked(), turn);
    let said = play.said();
    assert_eq!(
        said[1..],
        [
            "assistant: I read.",
            "toolResult: there is no tool \"none\"; the t",
            "toolResult: third",
            "toolResult: first"
        ]
    );
    let told = play.told();
    let count = |kind: &str| told.iter().filter(|it| **it == kind).count();
    assert_eq!((count("tool_start"), count("tool_end")), (3, 3));
    play.answer(&turn, "Done.", &[], "stop");
    play.answer(&turn, "Late.", &[], "stop");
    assert_eq!(play.said().last().map(String::as_str), Some("assistant: Done."));
    assert_eq!(play.ends(), [Outcome::Completed]);
}

#[test]
fn calls_of_an_answer_that_was_cut_off_are_not_executed() {
    let mut play = Play::new();
    let turn = play.begin(1, "Read.");
    play.answer(&turn, "I", &[("c1", "read")], "length");
    assert!(play.jobs.iter().all(|job| !matches!(job, Job::Turn(TurnOrder::Execute(_)))));
    let path = play.held.core.state().path();
    assert!(path.iter().any(|entry| entry.kind == "context_edit"), "the answer leaves the context");
    assert_eq!(play.asked(), turn, "the turn is repeated");
}

#[test]
fn a_model_that_cannot_be_asked_is_an_error_and_the_message_stays() {
    let mut play = Play::new();
    play.prompt(1, json!({"message": "Hello."}));
    let TurnOrder::Route(order) = play.step() else { panic!("the model is looked for first") };
    play.report(&order.id, TurnReport::Routed(Some(refused("no key"))));
    assert_eq!(play.result(1), json!("provider_error"));
    assert_eq!((play.said(), play.has_step()), (vec!["user: Hello.".to_owned()], false));
    assert!(!play.told().contains(&"turn_start"));
    play.go_on(2);
    let turn = play.route();
    assert_eq!(play.result(2), json!({"turnId": turn}));
    play.answer(&turn, "Hi.", &[], "stop");
    assert_eq!(play.said(), ["user: Hello.", "assistant: Hi."]);
}

#[test]
fn a_turn_goes_on_only_where_something_waits_for_an_answer() {
    let mut play = Play::new();
    let turn = play.begin(1, "Hello.");
    play.answer(&turn, "Hi.", &[], "stop");
    play.go_on(2);
    assert_eq!(play.result(2), json!("invalid_params"));
}

#[test]
fn messages_that_steer_come_before_the_next_request_and_the_others_after_the_turn() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.prompt(2, json!({"message": "Later.", "behavior": "follow_up"}));
    play.prompt(3, json!({"message": "Not so.", "behavior": "steer"}));
    let next = play.result(2)["turnId"].as_str().map(str::to_owned).expect("an id");
    assert_eq!(play.result(3), json!({"turnId": turn, "disposition": "queued"}));
    assert_eq!(play.queue(), queue_of([&["Not so."], &["Later."]]));
    play.answer(&turn, "I read.", &[("c1", "read")], "toolUse");
    play.step();
    play.execute(&turn, "c1", "text");
    assert_eq!(play.asked(), turn);
    assert_eq!(play.queue(), queue_of([&[], &["Later."]]));
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.route().as_str(), next);
    assert_eq!(events(&play.seen).filter(|event| matches!(event, Event::Settled { .. })).count(), 0);
    assert_eq!(play.said()[3..], ["user: Not so.", "assistant: Done.", "user: Later."]);
    play.answer(&next.as_str().into(), "That too.", &[], "stop");
    assert_eq!((play.queue(), play.ends()), (queue_of([&[], &[]]), vec![Outcome::Completed; 2]));
    assert_eq!(play.told().last(), Some(&"settled"));
}

#[test]
fn a_message_that_steers_an_answer_without_calls_is_answered_in_the_same_turn() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.prompt(2, json!({"message": "And this.", "behavior": "steer"}));
    play.answer(&turn, "One.", &[], "stop");
    assert_eq!((play.asked(), play.ends()), (turn.clone(), vec![]));
    play.answer(&turn, "Two.", &[], "stop");
    assert_eq!(play.said(), ["user: First.", "assistant: One.", "user: And this.", "assistant: Two."]);
}

#[test]
fn an_append_of_the_client_is_busy_while_a_turn_runs() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.held.append(2);
    play.perform(Vec::new());
    assert_eq!(play.result(2), json!("busy"));
    play.answer(&turn, "Done.", &[], "stop");
    play.held.append(3);
    play.perform(Vec::new());
    assert!(play.result(3).is_object());
}

/// A session whose context is near the threshold of its window.
fn near_threshold() -> Play {
    let mut play = Play::new();
    let tokens = play.held.core.state().measure().context_tokens;
    let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m",
        "compaction": {"speculative": false, "keepRecentTokens": 500},
        "models": [{"provider": "p", "id": "m", "contextWindow": tokens * 3 / 2}]});
    play.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    play
}

/// A turn whose call had a large result, so that a compaction has started inside of it.
fn compacting_inside() -> (Play, OperationId) {
    let mut play = near_threshold();
    let turn = play.begin(1, "Read.");
    play.answer(&turn, "I read.", &[("c1", "read")], "toolUse");
    play.step();
    play.execute(&turn, "c1", &"word ".repeat(2_000));
    assert_eq!(started(&play.seen), [Reason::Threshold]);
    (play, turn)
}

#[test]
fn a_compaction_between_the_calls_of_a_turn_lets_the_model_go_on() {
    let (mut play, turn) = compacting_inside();
    assert!(!play.has_step());
    play.compact();
    let continues = events(&play.seen).any(|event| matches!(event, Event::CompactionEnd { will_continue: true, .. }));
    assert!(continues);
    assert_eq!((play.asked(), play.ends()), (turn.clone(), vec![]));
    let said = play.said();
    assert!(said.last().is_some_and(|last| last.starts_with("developer: The conversation was condensed")), "{said:?}");
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.ends(), [Outcome::Completed]);
}

#[test]
fn a_turn_ends_before_the_compaction_after_its_last_answer() {
    let mut play = near_threshold();
    let turn = play.begin(1, "Write.");
    play.told();
    play.answer(&turn, &"word ".repeat(2_000), &[], "stop");
    assert_eq!(play.ends(), [Outcome::Completed]);
    assert_eq!(
        play.told(),
        ["entry_appended", "turn_end", "status_changed", "status_changed", "compaction_start"],
        "it settles after the compaction"
    );
    play.compact();
    let continues = events(&play.seen).any(|event| matches!(event, Event::CompactionEnd { will_continue: true, .. }));
    assert!(!continues);
    assert_eq!(play.told().last(), Some(&"settled"));
    assert!(!play.has_step());
}

#[test]
fn a_request_that_is_too_long_is_repeated_after_a_compaction() {
    let mut play = near_threshold();
    let turn = play.begin(1, "Write.");
    play.fail(&turn, "prompt is too long");
    assert_eq!(started(&play.seen), [Reason::Overflow]);
    play.compact();
    assert_eq!((play.asked(), play.ends()), (turn.clone(), vec![]));
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.ends(), [Outcome::Completed]);
    let told = play.told();
    let place = |kind: &str| told.iter().position(|it| *it == kind);
    assert!(place("recovery_start") < place("compaction_start") && place("compaction_end") < place("recovery_end"));
    assert!(place("recovery_end") < place("turn_end"));
    assert_eq!(told.iter().filter(|kind| **kind == "settled").count(), 1);
}

#[test]
fn a_turn_whose_recoveries_fail_ends_with_their_error() {
    let mut play = near_threshold();
    let mut turn = play.begin(1, "Write.");
    for _ in 0..2 {
        play.fail(&turn, "prompt is too long");
        play.compact();
        turn = play.asked();
    }
    play.fail(&turn, "prompt is too long");
    assert_eq!((play.ends(), play.has_step()), (vec![Outcome::Failed], false));
    assert_eq!(play.told().last(), Some(&"settled"));
}

#[test]
fn a_failure_of_the_provider_ends_the_turn_and_the_queue_waits() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.prompt(2, json!({"message": "Later."}));
    play.fail(&turn, "the provider is down");
    assert_eq!((play.ends(), play.has_step()), (vec![Outcome::Failed], false));
    assert_eq!(play.queue(), queue_of([&[], &["Later."]]));
}

#[test]
fn messages_that_cannot_be_written_end_the_turn() {
    let mut play = Play::new();
    play.prompt(1, json!({"message": "First."}));
    let TurnOrder::Route(order) = play.step() else { panic!("the model is looked for first") };
    play.held.disk.fill();
    play.report(&order.id, TurnReport::Routed(None));
    assert_eq!((play.result(1), play.said()), (json!("storage_error"), vec![]));
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.held.disk.fill();
    play.prompt(2, json!({"message": "Later."}));
    assert_eq!((play.result(2), play.queue()), (json!("storage_error"), queue_of([&[], &[]])));
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.ends(), [Outcome::Failed]);
}

#[test]
fn a_write_that_another_program_was_faster_than_is_repeated() {
    let mut held = Held::new();
    held.command::<SessionPrompt>(1, json!({"message": "First."}));
    let Job::Turn(TurnOrder::Route(order)) = job(held.turn()) else { panic!("the model is looked for first") };
    held.feed(Input::Turned(order.id, TurnReport::Routed(None)));
    let Some(work @ LogWork::Append(_)) = crate::session::core::held::log_work(held.turn()) else { panic!("a write") };
    held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
    let effects = held.back(work);
    let mut play = Play { held, jobs: Vec::new(), seen: Vec::new() };
    play.perform(effects);
    assert_eq!(play.result(1)["disposition"], json!("started"));
    assert_eq!(play.said().iter().filter(|said| *said == "user: First.").count(), 1);
}

#[test]
fn a_model_that_is_cut_off_again_after_a_compaction_is_not_asked_without_end() {
    let mut play = near_threshold();
    let turn = play.begin(1, "Write.");
    play.answer(&turn, &"word ".repeat(2_000), &[], "length");
    play.compact();
    assert_eq!((play.asked(), play.ends()), (turn.clone(), vec![]));
    assert!(play.said().last().is_some_and(|last| last.starts_with("developer: ")));
    play.answer(&turn, &"word ".repeat(2_000), &[], "length");
    play.compact();
    assert_eq!((play.ends(), play.has_step()), (vec![Outcome::Completed], false));
}

#[test]
fn a_move_is_busy_while_a_turn_runs() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.held.command::<SessionNavigate>(2, json!({"targetEntryId": "e5"}));
    play.perform(Vec::new());
    assert_eq!(play.result(2), json!("busy"));
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.said(), ["user: First.", "assistant: Done."]);
}

#[test]
fn a_model_that_calls_only_unknown_tools_is_stopped() {
    let mut play = Play::new();
    let turn = play.begin(1, "Fly.");
    for answer in 1..5 {
        play.answer(&turn, "I fly.", &[("c1", "fly")], "toolUse");
        assert_eq!((play.asked(), play.ends()), (turn.clone(), vec![]), "{answer}");
    }
    play.answer(&turn, "I fly.", &[("c1", "fly")], "toolUse");
    assert_eq!((play.ends(), play.has_step()), (vec![Outcome::Failed], false));
    let mut play = Play::new();
    let turn = play.begin(1, "Fly.");
    for tool in ["fly", "fly", "fly", "fly", "read", "fly", "fly", "fly", "fly"] {
        play.answer(&turn, "I try.", &[("c1", tool)], "toolUse");
        if tool == "read" {
            play.step();
            play.execute(&turn, "c1", "text");
        }
        assert_eq!((play.asked(), play.ends()), (turn.clone(), vec![]));
    }
}

#[test]
fn a_call_whose_arguments_cannot_be_read_is_not_executed_and_the_model_reads_why() {
    let mut play = Play::new();
    let turn = play.begin(1, "Remove it.");
    let content = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]);
    let message = raw(&json!({"role": "assistant", "content": content, "stopReason": "toolUse"}));
    let unreadable = Some(r#"{"path": "/home/x"#.to_owned());
    let call = ToolCall { id: "c".into(), name: "read".to_owned(), arguments: raw(&json!({})), unreadable };
    let answer = TurnAnswer { message, context: None, stop: "toolUse".to_owned(), calls: vec![call], failed: None };
    play.report(&turn, TurnReport::Answered(Box::new(answer)));
    assert!(!play.jobs.iter().any(|job| matches!(job, Job::Turn(TurnOrder::Execute(_)))));
    assert_eq!(play.asked(), turn);
    let result = play.held.core.state().path().last().expect("a result").line().to_owned();
    assert!(result.contains("arguments are no JSON object") && result.contains("/home/x"), "{result}");
}

#[test]
fn the_text_that_was_seen_of_an_answer_that_failed_stays() {
    let mut play = Play::new();
    let turn = play.begin(1, "Mend it.");
    play.hear(&turn, "Here is half of ");
    play.hear(&turn, "an answer");
    play.fail(&turn, "it broke off");
    assert_eq!(play.said().last().map(String::as_str), Some("assistant: Here is half of an answer"));
    let path = play.held.core.state().path();
    assert!(path.last().and_then(|answer| answer.outline()).is_some_and(|outline| outline.failed));
}
