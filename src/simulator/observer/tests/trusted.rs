//! Streams in which a session believes what is not true.

use super::{
    super::{Clocks, Rule, Verdict},
    Fault,
    play::*,
};
use crate::{
    compaction::{ladder::Floor, request::Cause},
    conversation::entry::Entry,
    ids::ModelRef,
    models::learned::{Address, Change, LearnedWindow, Server, WindowOrigin},
    protocol::errors::Failure,
    session::{
        core::Input,
        effects::{Answer, Effect},
        jobs::Job,
        stop::Stop,
    },
    simulator::{
        lies::exchanges::Exchange,
        lies::{Beyond, Stated, Truth},
    },
};
use serde_json::{Value, json};
use std::sync::Arc;

const TRUTH: Truth =
    Truth { window: 8_000, density: 100, untold: 500, reserved: 0, beyond: Beyond::Refuses(Stated::Window) };

impl Play {
    /// An answer with these fields that is written, and then leaves the context.
    fn answers_and_removes(&mut self, fields: Value) -> Verdict {
        let answer = self.answers(fields)?;
        let edit = self.entry("context_edit", &[("targetId", json!(answer.id)), ("replacement", Value::Null)]);
        self.write(&[edit])
    }

    fn answers(&mut self, fields: Value) -> Result<Arc<Entry>, super::Violation> {
        let mut message = json!({"role": "assistant", "stopReason": "stop", "timestamp": 1,
            "content": [{"type": "text", "text": "Done."}]});
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        let entry = self.entry("message", &[("message", message)]);
        self.write(std::slice::from_ref(&entry))?;
        Ok(entry)
    }

    fn learns(&mut self, window: u64) -> Verdict {
        let model = ModelRef { provider: "p".to_owned(), id: "m".to_owned() };
        let server = Server { model, address: Address::Usual };
        self.effect(Effect::Teach(Change::Learned(LearnedWindow::undated(server, window, WindowOrigin::Refusal))))
    }

    fn refuses(&mut self, window: u64) {
        self.observer.knows(TRUTH);
        self.observer.exchanged(Exchange { stated: Some(window), ..Exchange::default() });
    }

    /// A context of so many characters is given for a request.
    fn gives(&mut self, characters: usize) -> Verdict {
        let request = self.send("session/context", json!({"wait": true}));
        let message = json!({"role": "user", "content": "x".repeat(characters)});
        self.answer(request, &json!({"messages": [message], "entryIds": [null], "usage": usage(900)}))
    }

    /// A context is refused because of its size in this window.
    fn is_refused(&mut self, window: u64) -> Verdict {
        let entry = self.append("hello")?;
        self.done()?;
        let request = self.send("session/context", json!({"wait": true}));
        let floor = Floor { system: 0, tools: 0, pins: 0, latest_turn: 9_000, window };
        let failure = Failure::OverWindow { floor, why: "it is over the window".to_owned() };
        drop(entry);
        self.effect(Effect::Answer(request, Answer::Failed(failure)))
    }

    /// A summary begins ahead. Models are asked so many tokens for it.
    fn makes_ahead(&mut self, operation: &str, tokens: u64, now: Clocks) -> Verdict {
        let mut order = self.order(operation, &[], Stop::default());
        order.request.cause = Cause::Ahead;
        self.effect(Effect::Start(Box::new(Job::Plan(order))))?;
        self.observer.models_were_asked(tokens, tokens, (0, 0), now);
        self.observer.spending.after_input(Some(&usage(900)))?;
        self.observer.feeds(&Input::Drafted(operation.into(), Err(Failure::Cancelled)));
        Ok(())
    }
}

/// A fault for each rule of trust.
const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::NoDeliveredAnswerLeaves, "a text leaves the context", |play| play.answers_and_removes(json!({}))),
    (Rule::NoDeliveredAnswerLeaves, "a text leaves that the output limit cut", |play| {
        play.answers_and_removes(json!({"stopReason": "length"}))
    }),
    (Rule::NoDeliveredAnswerLeaves, "a whole call leaves", |play| {
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
        play.answers_and_removes(json!({"stopReason": "toolUse", "content": [call]}))
    }),
    (Rule::NoDeliveredAnswerLeaves, "a compaction removes a text", |play| {
        let answer = play.answers(json!({}))?;
        let edits = json!([{"targetId": answer.id, "replacement": null}]);
        let fields = [
            ("summary", json!("short")),
            ("firstKeptEntryId", json!(answer.id)),
            ("tokensBefore", json!(500)),
            ("preserveData", json!({"abridged": {"edits": edits}})),
        ];
        let compaction = play.entry("compaction", &fields);
        play.write(&[compaction])
    }),
    (Rule::NoWindowFromALie, "a window is learned that nobody stated", |play| {
        play.refuses(8_000);
        play.learns(2_200)
    }),
    (Rule::NoWindowFromALie, "a window is learned in which nothing fits", |play| {
        play.refuses(500);
        play.learns(500)
    }),
    (Rule::NoWindowFromALie, "a session plans with a window that nobody stated", |play| {
        play.observer.knows(TRUTH);
        let learned = crate::protocol::types::Usage { window_source: "learned".to_owned(), ..usage(100) };
        play.observer.trust.measured(Some(&learned))
    }),
    (Rule::OverflowOnlyWhereNothingFits, "a context is refused that a compaction would make fit", |play| {
        play.observer.knows(TRUTH);
        play.is_refused(8_000)
    }),
    (Rule::SpendingIsBounded, "a summary is asked for ahead again and again", |play| {
        (0..9).try_for_each(|turn| play.makes_ahead(&format!("op-{turn}"), 1_000 * (turn + 1), Clocks::default()))
    }),
    (Rule::FitsTheTrueWindow, "a context is over the window of an honest provider before any report", |play| {
        play.observer.knows(TRUTH);
        play.gives(8_000 * 4 * 150 / 100)
    }),
    (Rule::FitsTheTrueWindow, "a context is a fifth over the window of a provider that reports its counts", |play| {
        play.observer.knows(TRUTH);
        play.observer.exchanged(Exchange { accepted: Some(900), reports: true, ..Exchange::default() });
        play.gives(8_000 * 4 * 120 / 100)
    }),
];

#[test]
fn each_rule_of_trust_can_fail() {
    for (rule, fault, play) in FAULTS {
        let found = play(&mut Play::new()).map_err(|violation| violation.rule);
        assert_eq!(found, Err(*rule), "{fault}");
    }
}

#[test]
fn what_is_true_may_be_believed() -> Result<(), super::Violation> {
    let fresh = || {
        let mut play = Play::new();
        play.refuses(8_000);
        play
    };
    let cut = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
    for useless in [
        json!({"stopReason": "error", "errorMessage": "prompt is too long"}),
        json!({"stopReason": "aborted"}),
        json!({"content": []}),
        json!({"content": [{"type": "text", "text": ""}]}),
        json!({"stopReason": "length", "content": [cut]}),
    ] {
        fresh().answers_and_removes(useless)?;
    }
    fresh().learns(8_000)?;
    let mut cuts = Play::new();
    cuts.observer.knows(Truth { beyond: Beyond::Cuts, ..TRUTH });
    cuts.learns(7_990)?;
    fresh().gives(8_000 * 4)?;
    let mut lied = fresh();
    lied.observer.exchanged(Exchange { lies: true, reports: true, ..Exchange::default() });
    lied.gives(8_000 * 4 * 2)?;
    // The message of the user takes most of the window.
    fresh().is_refused(2_500)?;
    // Tokens of an hour before do not count, and a summary that a compaction begins with was not in vain.
    for now in [|day| Clocks { day, timers: 0 }, |timers| Clocks { day: 0, timers }] {
        let mut play = fresh();
        (0..9).try_for_each(|turn| {
            play.makes_ahead(&format!("op-{turn}"), 1_000 * (turn + 1), now(turn as i64 * 1_800_001))
        })?;
    }
    Ok(())
}
