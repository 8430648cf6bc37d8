//! Settings that switch something off, each alone and each with each other one: the effect, and the reason in
//! `session/usage`.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{good_model, merge},
    support::{Daemon, Home, assistant, at_once, calls, result, text_of, user},
    wire::is_whole,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// A way to switch something off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    Enabled,
    Strategy,
    Environment,
    OfTheModel,
    MidTurn,
    ReadOnly,
    Undone,
    Promotion,
    LearnWindow,
    Retry,
}

use Switch::{Enabled, Environment, LearnWindow, MidTurn, OfTheModel, Promotion, ReadOnly, Retry, Strategy, Undone};

impl Switch {
    const ALL: [Self; 10] =
        [Enabled, Strategy, Environment, OfTheModel, MidTurn, ReadOnly, Undone, Promotion, LearnWindow, Retry];

    /// The name in the reason.
    fn name(self) -> &'static str {
        match self {
            Enabled => "compaction.enabled (",
            Strategy => "compaction.strategy (",
            Environment => "ABRIDGED_DISABLE_AUTOCOMPACT",
            OfTheModel => "compaction.enabled (of the model p/",
            MidTurn => "compaction.midTurn (",
            ReadOnly => "readOnly",
            Undone => "undone",
            Promotion => "contextPromotion.enabled (",
            LearnWindow => "tokens.learnWindow (",
            Retry => "retry.enabled (",
        }
    }

    /// Whether no threshold acts.
    fn stops_the_threshold(self) -> bool {
        matches!(self, Enabled | Strategy | Environment | OfTheModel | ReadOnly | Undone)
    }

    fn settings(self) -> Value {
        match self {
            Enabled => json!({"compaction": {"enabled": false}}),
            Strategy => json!({"compaction": {"strategy": "off"}}),
            MidTurn => json!({"compaction": {"midTurn": false}}),
            Promotion => json!({"contextPromotion": {"enabled": false}}),
            LearnWindow => json!({"tokens": {"learnWindow": false}}),
            Retry => json!({"retry": {"enabled": false}}),
            Environment | OfTheModel | ReadOnly | Undone => json!({}),
        }
    }
}

/// Each switch alone, and each pair. In a run that is not whole it is every third pair.
fn sets() -> Vec<Vec<Switch>> {
    let every = if is_whole() { 1 } else { 3 };
    let pairs = Switch::ALL
        .iter()
        .enumerate()
        .flat_map(|(at, first)| Switch::ALL[at + 1..].iter().map(|second| vec![*first, *second]));
    std::iter::once(Vec::new()).chain(Switch::ALL.map(|switch| vec![switch])).chain(pairs.step_by(every)).collect()
}

/// A daemon under some switches, and its provider.
struct Case {
    off: Vec<Switch>,
    daemon: Daemon,
    _provider: Provider,
}

impl Case {
    fn new(off: &[Switch]) -> Self {
        let provider = Provider::start(Format::OpenAiChat);
        // The first request for a summary fails.
        let failed = AtomicBool::new(false);
        provider.otherwise(move |asked: &Asked| match failed.swap(true, Ordering::SeqCst) {
            false => Step::server_error(),
            true => good_model(asked),
        });
        let model = |id: &str| json!({"provider": "p", "id": id, "contextWindow": 16_000});
        let writer = json!({"provider": "p", "id": "writer", "contextWindow": 64_000, "api": "openai_chat",
            "baseUrl": provider.base_url()});
        let (mut own, mut other, mut small) = (model("m"), model("other"), model("small"));
        // Their thresholds are near their windows.
        other["compaction"] = json!({"thresholdPercent": 95});
        small["compaction"] = json!({"thresholdPercent": 95});
        small["promoteTo"] = json!("p/large");
        let large = json!({"provider": "p", "id": "large", "contextWindow": 64_000});
        if off.contains(&OfTheModel) {
            own["compaction"] = json!({"enabled": false});
            other["compaction"]["enabled"] = json!(false);
        }
        let mut settings = json!({"models": [own, other, small, large, writer], "defaultModel": "p/m",
            "tokens": {"estimator": "chars"}, "retry": {"baseDelayMs": 100}, "compaction": {"reserveTokens": 8_000}});
        off.iter().for_each(|switch| merge(&mut settings, switch.settings()));
        let home = Home::new();
        home.settings(&settings.to_string());
        let mut command = home.command();
        if off.contains(&Environment) {
            command.env("ABRIDGED_DISABLE_AUTOCOMPACT", "1");
        }
        let mut daemon = Daemon::of(home, command);
        daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"modelSwitch": {}}}));
        Self { off: off.to_vec(), daemon, _provider: provider }
    }

    fn has(&self, switch: Switch) -> bool {
        self.off.contains(&switch)
    }

    fn session(&mut self, model: &str) -> String {
        let session = self.daemon.ok("session/new", json!({"cwd": "/project", "model": model}))["session"].clone();
        session["sessionId"].as_str().expect("an id").to_owned()
    }

    fn append(&mut self, session: &str, messages: &[Value]) -> Value {
        self.daemon.ok("session/append", json!({"sessionId": session, "messages": messages}))
    }

    fn usage(&mut self, session: &str) -> Value {
        self.daemon.ok("session/usage", json!({"sessionId": session}))
    }

    /// The type of `next` behind these messages. Maintenance is waited for.
    fn next(&mut self, session: &str, messages: &[Value]) -> String {
        let next = self.append(session, messages)["next"].clone();
        if next["type"] == "maintenance" {
            self.daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
            let end = |frame: &&Value| {
                frame["params"]["event"]["type"] == "compaction_end"
                    && frame["params"]["operationId"] == next["operationId"]
            };
            let end = self.daemon.events.iter().find(end).expect("its end came").clone();
            assert_eq!(end["params"]["event"]["outcome"], "completed", "{:?}: {end}", self.off);
        }
        next["type"].as_str().expect("a type").to_owned()
    }

    /// Sets `compaction.speculative` of a session. Null unsets it.
    fn makes_summaries_ahead(&mut self, session: &str, value: Value) {
        let set = json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"speculative": value}}});
        self.daemon.ok("settings/set", set);
    }

    /// The reason names each switch.
    fn names_each(&mut self, session: &str, but: &[Switch]) {
        let why = self.usage(session)["why"].as_str().expect("a text").to_owned();
        let unnamed: Vec<_> =
            self.off.iter().filter(|switch| !but.contains(switch) && !why.contains(switch.name())).collect();
        // The environment and the model set the same key.
        let same_key = self.has(Environment) || self.has(OfTheModel);
        let left: Vec<_> =
            unnamed.into_iter().filter(|switch| !same_key || !matches!(switch, Enabled | OfTheModel)).collect();
        assert!(left.is_empty(), "{left:?} of {:?}: {why}", self.off);
        assert_eq!(why.contains("Switched off"), self.off.iter().any(|switch| !but.contains(switch)), "{why}");
    }
}

/// A compaction by hand, which is undone.
fn undo(case: &mut Case, session: &str) {
    let messages = [user(&text_of(2_000, "old")), assistant("Read."), user(&text_of(40, "on")), assistant("Yes.")];
    case.append(session, &messages);
    let params = json!({"sessionId": session, "keepRecentTokens": 20, "method": "extractive", "wait": true});
    let done = case.daemon.ok("session/compact", params);
    assert_eq!(done["outcome"], "completed", "{done}");
    case.daemon.ok("session/undo_compaction", json!({"sessionId": session}));
}

/// The threshold behind a whole turn, a context over the window, and the reasons.
fn threshold(case: &mut Case) {
    let session = case.session("p/m");
    if case.has(Undone) {
        undo(case, &session);
    }
    // The session is closed before it is read only.
    let writable = !case.has(ReadOnly);
    let off = case.off.clone();
    let stopped = off.iter().any(|switch| switch.stops_the_threshold() && *switch != ReadOnly);
    let next = case.next(&session, &[user(&text_of(6_400, "one")), assistant("Done."), user("And now?")]);
    assert_eq!(next == "maintenance", !stopped, "{off:?}");
    case.names_each(&session, &[ReadOnly]);
    let messages = [user(&text_of(9_000, "two")), assistant("Done."), user("And then?")];
    // Near the window the time after an undo ends.
    let stopped = off.iter().any(|switch| switch.stops_the_threshold() && !matches!(switch, ReadOnly | Undone));
    let next = case.next(&session, &messages);
    assert_eq!(next == "maintenance", !stopped, "{off:?}");
    let context = json!({"sessionId": session, "wait": true});
    match case.daemon.call("session/context", context.clone()) {
        Ok(context) => {
            assert!(!stopped, "{off:?}: it is over the window");
            assert!(context["usage"]["contextTokens"].as_u64() <= Some(16_000), "{off:?}: {context}");
        }
        Err(error) => {
            assert!(stopped, "{off:?}: {error}");
            assert_eq!(error["data"]["code"], "context_overflow", "{off:?}");
        }
    }
    if writable {
        return;
    }
    // Over the threshold, also where the threshold acted before.
    let set = json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"enabled": false}}});
    case.daemon.ok("settings/set", set);
    let messages = [user(&text_of(14_000, "three")), assistant("Done.")];
    assert_eq!(case.next(&session, &messages), "none");
    let set = json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"enabled": null}}});
    case.daemon.ok("settings/set", set);
    case.daemon.ok("session/close", json!({"sessionId": session}));
    case.daemon.ok("session/load", json!({"sessionId": session, "readOnly": true}));
    case.names_each(&session, &[Undone]);
    assert_eq!(case.daemon.err("session/context", context)["data"]["code"], "context_overflow", "{off:?}");
    let refused = case.daemon.err("session/append", json!({"sessionId": session, "messages": [user("x")]}));
    assert_eq!(refused["data"]["code"], "storage_error", "{off:?}");
}

/// The threshold between the calls of a turn.
fn mid_turn(case: &mut Case) {
    let session = case.session("p/m");
    if case.has(Undone) {
        undo(case, &session);
    }
    let stopped = case.off.iter().any(|switch| switch.stops_the_threshold() && *switch != ReadOnly);
    // A summary that is being made ahead since the first result would delay the compaction after the second.
    case.makes_summaries_ahead(&session, json!(false));
    case.append(&session, &[user("Read."), calls(&["a", "b"])]);
    assert_eq!(case.next(&session, &[result("a", &text_of(6_400, "a"))]), "none", "{:?}", case.off);
    let batch = case.next(&session, &[result("b", "short")]);
    let acts = !stopped && !case.has(MidTurn);
    assert_eq!(batch == "maintenance", acts, "{:?}", case.off);
    case.makes_summaries_ahead(&session, Value::Null);
    if case.has(MidTurn) && !stopped {
        case.names_each(&session, &[ReadOnly]);
        assert_eq!(case.next(&session, &[assistant("Done.")]), "maintenance", "{:?}", case.off);
    }
}

/// An overflow, whose text states a smaller window than the settings.
fn overflow(case: &mut Case) {
    let session = case.session("p/other");
    if case.has(Undone) {
        undo(case, &session);
    }
    let stopped = [Enabled, Strategy, Environment, OfTheModel].into_iter().any(|switch| case.has(switch));
    case.append(&session, &[user(&text_of(8_000, "long")), assistant("Read."), user("And now?")]);
    let before = case.daemon.events.len();
    let next = case.append(&session, &[refused("9000", "9500")])["next"].clone();
    let expected = if stopped { json!({"type": "none"}) } else { next.clone() };
    assert_eq!(next, expected, "{:?}", case.off);
    let context = case.daemon.call("session/context", json!({"sessionId": session, "wait": true}));
    let recovered = if stopped { None } else { Some("compact") };
    assert_eq!(action(case, before).as_deref(), recovered, "{:?}", case.off);
    if recovered.is_some() {
        assert_eq!((&next["reason"], &next["willRetry"]), (&json!("overflow"), &json!(true)), "{:?}", case.off);
        let usage = &context.expect("it was compacted")["usage"];
        assert!(usage["contextTokens"].as_u64() <= Some(9_000), "{:?}: {usage}", case.off);
    } else {
        // No context fits the window that was learned.
        assert_eq!(context.is_err(), !case.has(LearnWindow), "{:?}: {context:?}", case.off);
        case.names_each(&session, &[ReadOnly, Undone]);
    }
    let usage = case.usage(&session);
    let expected = if case.has(LearnWindow) { (16_000, "setting") } else { (9_000, "learned") };
    let told = (usage["contextWindow"].as_u64().expect("a number"), usage["windowSource"].as_str().expect("a text"));
    assert_eq!(told, expected, "{:?}", case.off);
}

/// An overflow of a model that has a larger one to go to.
fn promotion(case: &mut Case) {
    let session = case.session("p/small");
    if case.has(Undone) {
        undo(case, &session);
    }
    let stopped = [Enabled, Strategy, Environment].into_iter().any(|switch| case.has(switch));
    case.append(&session, &[user(&text_of(8_000, "long")), assistant("Read."), user("And now?")]);
    let before = case.daemon.events.len();
    let next = case.append(&session, &[refused("12000", "12500")])["next"].clone();
    let expected = match (case.has(Promotion), stopped) {
        (false, _) => Some("promote_model"),
        (true, false) => Some("compact"),
        (true, true) => None,
    };
    assert_eq!(next["type"] == "maintenance", expected.is_some(), "{:?}: {next}", case.off);
    let context = case.daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
    assert_eq!(action(case, before).as_deref(), expected, "{:?}", case.off);
    let model = if case.has(Promotion) { "small" } else { "large" };
    assert_eq!(context["model"]["id"], model, "{:?}", case.off);
    // A compaction ends the time after an undone one.
    let over = if expected == Some("compact") { Undone } else { ReadOnly };
    case.names_each(&session, &[ReadOnly, OfTheModel, over]);
}

/// An answer that a provider refused as too long.
fn refused(limit: &str, requested: &str) -> Value {
    let text = format!(
        "This model's maximum context length is {limit} tokens. However, your messages resulted in {requested} tokens."
    );
    json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": text})
}

/// The action of the recovery in the events from a place on.
fn action(case: &Case, from: usize) -> Option<String> {
    let mut events = case.daemon.events[from..].iter().map(|frame| &frame["params"]["event"]).rev();
    let start = events.find(|event| event["type"] == "recovery_start")?;
    start["action"].as_str().map(str::to_owned)
}

/// A compaction by hand works under every switch. Its summarizer fails once.
fn by_hand(case: &mut Case) {
    let session = case.session("p/m");
    let set = json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"models": ["p/writer"]}}});
    case.daemon.ok("settings/set", set);
    case.append(
        &session,
        &[user(&text_of(3_000, "old")), assistant("Read."), user(&text_of(40, "on")), assistant("Yes.")],
    );
    let params = json!({"sessionId": session, "keepRecentTokens": 20, "wait": true});
    let done = case.daemon.ok("session/compact", params);
    assert_eq!(done["outcome"], "completed", "{:?}: {done}", case.off);
    let method = if case.has(Retry) { "extractive" } else { "llm" };
    assert_eq!(done["result"]["method"], method, "{:?}: {done}", case.off);
}

#[test]
fn each_switch_and_each_pair_does_what_it_says() {
    let sets = sets();
    assert_eq!(sets.len(), if is_whole() { 56 } else { 26 });
    let shares: Vec<Vec<Vec<Switch>>> = sets.chunks(7).map(<[_]>::to_vec).collect();
    at_once(shares, |share| {
        for off in share {
            let mut case = Case::new(&off);
            by_hand(&mut case);
            threshold(&mut case);
            mid_turn(&mut case);
            overflow(&mut case);
            promotion(&mut case);
        }
    });
}
