//! A compaction ends whatever fault a model has: with the next candidate, or without a model. Each fault is reported
//! once, typed,
//! with the next step, and without the key.

use crate::{
    provider::{Asked, Format, Provider, Step, Tls, Trouble},
    summarizing::{good, good_model},
    support::{Daemon, Home, assistant, at_once, calls, result, session_of, text_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread,
    time::Duration,
};

/// Values that must not appear in any output. No pattern recognizes them as secrets.
const KEY: &str = "planted.key.of.the.first.4711";
const HEADER: &str = "planted.header.of.the.first.0815";

/// A daemon beside its log, which has everything in it.
struct Scene {
    daemon: Daemon,
    sessions: usize,
}

impl Scene {
    fn new(settings: &Value, variables: &[(&str, &str)]) -> Self {
        Self::with(settings, variables, json!({}))
    }

    fn with(settings: &Value, variables: &[(&str, &str)], capabilities: Value) -> Self {
        let home = Home::new();
        home.settings(&settings.to_string());
        let mut command = home.command();
        command.env("ABRIDGED_LOG", "trace").stderr(File::create(home.path("log")).expect("a file"));
        command.env("FIRST_KEY", KEY);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(name);
        }
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let mut daemon = Daemon::of(home, command);
        daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": capabilities}));
        Self { daemon, sessions: 0 }
    }

    /// Another session of whole turns, whose cut falls between two of them.
    fn session(&mut self) -> (String, PathBuf) {
        let turn = |turn: usize| {
            let request = format!("Request {turn}: look at part_{turn}. You must never change part_{turn}.lock. ");
            [user(&(request + &text_of(280, &format!("part_{turn}")))), assistant(&format!("value_{turn} is set."))]
        };
        self.session_of(&(0..20).flat_map(turn).collect::<Vec<_>>())
    }

    fn session_of(&mut self, messages: &[Value]) -> (String, PathBuf) {
        self.sessions += 1;
        let path = session_of(&self.daemon.home, &format!("s{}", self.sessions), messages);
        let id = self.daemon.load(&path);
        (id, path)
    }

    fn begin(&mut self, session: &str) -> u64 {
        self.daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 500, "wait": true}))
    }

    /// Compacts a new session: its result, and its events.
    fn compact(&mut self) -> (Value, Vec<Value>) {
        let (session, path) = self.session();
        let id = self.begin(&session);
        let answer = self.daemon.answer(id).expect("an answer");
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let events = self.events(&session);
        in_order(&events);
        self.keeps_secrets(&[answer.to_string(), fs::read_to_string(path).expect("a file")]);
        (answer["result"].clone(), events)
    }

    /// Events of the session, without their envelopes.
    fn events(&self, session: &str) -> Vec<Value> {
        let frames = self.daemon.events.iter().filter(|frame| frame["params"]["sessionId"] == session);
        frames.map(|frame| frame["params"]["event"].clone()).collect()
    }

    /// In nothing that was said, written or logged is a secret.
    fn keeps_secrets(&self, more: &[String]) {
        let log = fs::read_to_string(self.daemon.home.path("log")).expect("a log");
        assert!(!log.is_empty(), "there is a log");
        let said = self.daemon.events.iter().map(Value::to_string);
        for text in said.chain([log]).chain(more.iter().cloned()) {
            for secret in [KEY, HEADER] {
                assert!(!text.contains(secret), "told: {text}");
            }
        }
    }
}

/// Settings of two models: what goes wrong happens to the first.
fn two(first: Value, second: &Provider, more: Value) -> Value {
    let mut settings = json!({
        "models": [
            {"provider": "first", "id": "model", "contextWindow": 100_000, "apiKeyEnv": "FIRST_KEY", "headers": {"x-proxy": HEADER}},
            {"provider": "second", "id": "model", "contextWindow": 100_000, "api": "openai_chat", "baseUrl": second.base_url()},
        ],
        "compaction": {"models": ["first/model", "second/model"]},
        "tokens": {"estimator": "chars"},
        "retry": {"baseDelayMs": 100},
    });
    merge(&mut settings["models"][0], first);
    merge(&mut settings, more);
    settings
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn at(provider: &Provider, format: Format) -> Value {
    json!({"api": format.api(), "baseUrl": provider.base_url()})
}

fn good_provider() -> Provider {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    provider
}

/// Each try again is told with its end, before the next begins and before the compaction ends.
fn in_order(events: &[Value]) {
    let mut open: Vec<(Value, Value)> = Vec::new();
    for event in events {
        let which = (event["source"].clone(), event["attempt"].clone());
        match event["type"].as_str().unwrap_or_default() {
            "retry_start" => {
                assert!(!open.iter().any(|(source, _)| *source == which.0), "one at a time: {event:#}");
                assert_eq!(event["error"]["code"], "provider_error");
                assert_eq!(event["error"]["retryable"], true, "{event:#}");
                assert!(event["errorMessage"].as_str().is_some_and(|text| text.contains("/model")), "{event:#}");
                open.push(which);
            }
            "retry_end" => {
                assert_eq!(event["success"] == true, event["error"].is_null(), "{event:#}");
                let before = open.len();
                open.retain(|it| *it != which);
                assert_eq!(open.len() + 1, before, "an end without its start: {event:#}");
            }
            "compaction_end" => assert!(open.is_empty(), "not ended: {open:?}"),
            _ => {}
        }
    }
}

fn of<'a>(events: &'a [Value], kind: &'a str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Expected failure of the first model: status, retryable, and words of its text.
fn rejects(result: &Value, status: Option<u16>, retryable: bool, words: &[&str]) {
    let rejected = result["rejected"].as_array().expect("a list");
    assert_eq!(rejected.len(), 1, "{result:#}");
    let model = json!({"provider": "first", "id": "model"});
    assert_eq!(rejected[0]["model"], model);
    let error = json!({
        "code": "provider_error", "retryable": retryable, "provider": "first", "model": "model", "httpStatus": status,
    });
    assert_eq!(rejected[0]["error"], error, "{result:#}");
    let why = rejected[0]["why"].as_str().expect("a text");
    assert!(why.starts_with("first/model: "), "{why}");
    if let Some(status) = status {
        assert!(why.contains(&format!("(status {status})")), "{why}");
    }
    for word in words {
        assert!(why.contains(word), "{word} is not in {why}");
    }
}

/// Author of the summary.
fn by(result: &Value) -> &str {
    result["model"]["provider"].as_str().unwrap_or("nobody")
}

/// Consequence of a fault.
enum Fate {
    /// A retry after at least this many milliseconds succeeds.
    Again(u64),
    /// The next candidate at once: status, whether it may work later, and what is said.
    Next(u16, bool, &'static [&'static str]),
    /// It is none.
    Fine,
}

/// Every fault that a provider has an own way for, and what it means.
fn faults(format: Format) -> Vec<(&'static str, Step, Fate)> {
    use Fate::{Again, Fine, Next};
    let google = format == Format::Google;
    let chat = matches!(format, Format::OpenAiChat | Format::OpenAiResponses);
    let denied = if google { 400 } else { 401 };
    let quota = if format == Format::Anthropic { 400 } else { 429 };
    let missing = if format == Format::OpenAiResponses { 400 } else { 404 };
    let overloaded = if format == Format::Anthropic { 529 } else { 503 };
    let in_stream = if google { 400 } else { 200 };
    let with_crab = good("größer – 🦀 数");
    const ADVICE: &str = "name another model";
    vec![
        ("a short wait", Step::trouble(Trouble::RateLimited).header("retry-after", "0.06"), Again(60)),
        ("a wait in milliseconds", Step::trouble(Trouble::RateLimited).header("retry-after-ms", "70"), Again(70)),
        ("a long wait", Step::rate_limited(31), Next(429, true, &["no more requests", "wait, or"])),
        ("its own failure", Step::server_error(), Again(0)),
        ("too much to do", Step::overloaded(), Again(0)),
        ("503", Step::status(503), Again(0)),
        ("529", Step::status(529), Again(0)),
        (
            "a long wait of its own",
            Step::status(overloaded).header("retry-after", "40"),
            Next(overloaded, true, &[ADVICE]),
        ),
        ("nothing left", Step::insufficient_quota(), Next(quota, false, &["quota is used up", ADVICE])),
        (
            "a wrong key",
            Step::unauthorized(),
            Next(denied, false, &["the key is missing or not accepted", "apiKeyEnv"]),
        ),
        ("not for this key", Step::status(403), Next(403, false, &["apiKeyEnv"])),
        ("an unknown model", Step::model_not_found(), Next(missing, false, &["no such model", "check the model's id"])),
        ("a wrong request", Step::status(400), Next(400, false, &["the request was refused"])),
        ("a page of a proxy", Step::html_proxy(200), Next(200, false, &["check baseUrl and api"])),
        ("a sign-in", Step::html_proxy(401), Next(401, false, &["check baseUrl and api"])),
        ("a proxy that fails", Step::html_proxy(502), Again(0)),
        ("a cut stream", Step::answer(&good("cut")).cut_after(2), Again(0)),
        ("no end", Step::answer(&good("cut")).ends_clean_without_end_event(), Again(0)),
        (
            "no JSON",
            Step::answer(&good("broken")).malformed_event(),
            Next(200, false, &["no answer of such a provider"]),
        ),
        ("overloaded later", Step::answer("Well").error_in_stream(Trouble::Overloaded), Again(0)),
        ("failed later", Step::answer("Well").error_in_stream(Trouble::Server), Again(0)),
        (
            "refused later",
            Step::answer("Well").error_in_stream(Trouble::Invalid("This is nothing I take.".to_owned())),
            Next(in_stream, false, &["refused", "nothing I take"]),
        ),
        ("an error in a 200", Step::error_in_200(Trouble::Server), Again(0)),
        (
            "a wrong key in a 200",
            Step::error_in_200(Trouble::Unauthorized),
            Next(if google { 400 } else { 200 }, false, &["key is missing or not accepted"]),
        ),
        ("not as events", Step::answer(&good("whole")).json(), Fine),
        ("torn to pieces", Step::answer(&with_crab).split_utf8(), Fine),
        ("events by another name", Step::answer(&with_crab).split_utf8().header("content-type", "text/plain"), Fine),
        ("numbers as texts", Step::answer(&good("numbers")).numbers_as_strings(), Fine),
        ("nothing counted", Step::answer(&good("uncounted")).without_usage(), Fine),
        ("a nameless failure", Step::status(500).body(""), Again(0)),
        (
            "a redirection",
            Step::status(307).header("location", "http://127.0.0.1:1/"),
            Next(307, false, &["redirects to"]),
        ),
        ("words of its own", Step::status(500).body("I fell over."), Again(0)),
    ]
    .into_iter()
    // Only they have a mark behind the end.
    .chain(
        chat.then(|| ("no mark", Step::answer(&good("unmarked")).without_last_event(), Fine))
            .filter(|_| format == Format::OpenAiChat),
    )
    .collect()
}

/// Half of the faults at a time, so that their waits overlap.
fn every_fault_of(format: Format) {
    let mut half = faults(format);
    let rest = half.split_off(half.len() / 2);
    at_once([half, rest], |faults| each_of(format, faults));
}

fn each_of(format: Format, faults: Vec<(&'static str, Step, Fate)>) {
    let (first, second) = (Provider::start(format), good_provider());
    first.otherwise(good_model).key(KEY);
    let mut scene = Scene::new(&two(at(&first, format), &second, json!({})), &[]);
    for (name, step, fate) in faults {
        eprintln!("{format:?}: {name}");
        let before = first.asked().len();
        first.script([step]);
        let (result, events) = scene.compact();
        let asked = first.asked()[before..].to_vec();
        assert!(asked.iter().all(|it| it.refused.is_none() && it.header("x-proxy") == Some(HEADER)), "{asked:#?}");
        let (starts, ends) = (of(&events, "retry_start"), of(&events, "retry_end"));
        let standing_in = events.iter().any(|it| it["title"] == "No model could write the summary");
        assert!(!standing_in);
        match fate {
            Fate::Fine => {
                assert_eq!((by(&result), &result["rejected"]), ("first", &json!([])), "{result:#}");
                assert_eq!((asked.len(), starts.len()), (2, 0), "{events:#?}");
                let crab = result["summary"].as_str().expect("a text").contains("🦀");
                assert_eq!(crab, name.contains("torn") || name.contains("another name"));
            }
            Fate::Again(wait) => {
                assert_eq!((by(&result), &result["rejected"]), ("first", &json!([])), "{result:#}");
                assert_eq!((asked.len(), starts.len(), ends.len()), (3, 1, 1), "{events:#?}");
                let start = starts[0];
                assert_eq!(
                    (&start["attempt"], &start["maxAttempts"], &start["source"]),
                    (&json!(1), &json!(3), &json!("history"))
                );
                assert!(start["delayMs"].as_u64().expect("a number") >= wait, "{start:#}");
                assert!(asked[1].at - asked[0].at >= Duration::from_millis(wait));
                assert_eq!(ends[0]["success"], true);
            }
            Fate::Next(status, retryable, words) => {
                assert_eq!(by(&result), "second", "{result:#}");
                assert_eq!((asked.len(), starts.len()), (1, 0), "{events:#?}");
                rejects(&result, Some(status), retryable, words);
            }
        }
    }
}

#[test]
fn every_fault_of_anthropics_format() {
    every_fault_of(Format::Anthropic);
}

#[test]
fn every_fault_of_chat_completions() {
    every_fault_of(Format::OpenAiChat);
}

#[test]
fn every_fault_of_responses() {
    every_fault_of(Format::OpenAiResponses);
}

#[test]
fn every_fault_of_googles_format() {
    every_fault_of(Format::Google);
}

#[test]
fn what_fails_again_and_again_is_given_up_and_without_anybody_the_floor_stands_in() {
    let (first, second) = (Provider::start(Format::Anthropic), Provider::start(Format::OpenAiChat));
    first.otherwise(Step::server_error());
    second.otherwise(Step::insufficient_quota());
    let settings = two(at(&first, Format::Anthropic), &second, json!({"retry": {"maxRetries": 2}}));
    let mut scene = Scene::new(&settings, &[]);
    let (result, events) = scene.compact();
    assert_eq!((first.asked().len(), second.asked().len()), (3, 1));
    assert_eq!((&result["method"], by(&result)), (&json!("extractive"), "nobody"));
    let providers: Vec<_> =
        result["rejected"].as_array().expect("a list").iter().map(|it| &it["error"]["provider"]).collect();
    assert_eq!(providers, ["first", "second"]);
    let attempts: Vec<_> =
        of(&events, "retry_start").iter().map(|it| (it["attempt"].clone(), it["maxAttempts"].clone())).collect();
    assert_eq!(attempts, [(json!(1), json!(2)), (json!(2), json!(2))]);
    assert!(of(&events, "retry_end").iter().all(|it| it["success"] == false && it["error"]["httpStatus"] == 500));
    let notice = events.iter().find(|it| it["title"] == "No model could write the summary").expect("a notice");
    assert!(notice["detail"].as_str().expect("a text").contains("second/model: the quota is used up"), "{notice:#}");
    let kinds: Vec<_> = events.iter().filter_map(|it| it["type"].as_str()).collect();
    let place = |kind| kinds.iter().rposition(|it| *it == kind).expect(kind);
    assert!(place("compaction_end") < place("notice") && place("notice") < place("settled"), "{kinds:?}");
}

#[test]
fn without_retries_there_are_none() {
    let (first, second) = (Provider::start(Format::OpenAiChat), good_provider());
    first.otherwise(Step::server_error());
    let settings = two(at(&first, Format::OpenAiChat), &second, json!({"retry": {"enabled": false}}));
    let (result, events) = Scene::new(&settings, &[]).compact();
    assert_eq!((first.asked().len(), by(&result)), (1, "second"));
    assert!(of(&events, "retry_start").is_empty());
    rejects(&result, Some(500), true, &["the provider failed", "try again later"]);
}

#[test]
fn googles_wait_stands_in_the_body() {
    let (first, second) = (Provider::start(Format::Google), good_provider());
    let wait = |time: &str| {
        let body = json!({"error": {"code": 429, "message": "Resource has been exhausted.", "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": time}]}});
        Step::status(429).body(&body.to_string())
    };
    first.otherwise(good_model).script([wait("0.08s")]);
    let mut scene = Scene::new(&two(at(&first, Format::Google), &second, json!({})), &[]);
    let (result, events) = scene.compact();
    assert_eq!(by(&result), "first");
    assert!(of(&events, "retry_start")[0]["delayMs"].as_u64().expect("a number") >= 80);
    first.script([wait("34s")]);
    assert_eq!(by(&scene.compact().0), "second");
}

#[test]
fn where_nobody_answers_is_said() {
    let second = good_provider();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let plain = Provider::start(Format::OpenAiChat);
    let nowhere = format!("{}/nowhere", plain.base_url());
    let rows: [(String, usize, Option<u16>, &[&str]); 7] = [
        (format!("http://{free}/v1"), 1, None, &["nobody answers there", "check baseUrl"]),
        ("http://nobody.invalid/v1".to_owned(), 1, None, &["nobody answers there", "check baseUrl"]),
        ("nonsense".to_owned(), 0, None, &["no address", "check the model's id and baseUrl"]),
        ("ftp://127.0.0.1/v1".to_owned(), 0, None, &["no address"]),
        ("http://".to_owned(), 0, None, &["no address"]),
        (nowhere, 0, Some(404), &["no such model or address"]),
        (format!("https://{}/v1", not_tls()), 0, None, &["something else than this provider answers there"]),
    ];
    at_once(rows, |(address, retries, status, words)| {
        eprintln!("{address}");
        let (result, events) = Scene::new(&two(json!({"baseUrl": address}), &second, json!({})), &[]).compact();
        assert_eq!(by(&result), "second");
        assert_eq!(of(&events, "retry_start").len(), retries, "{result:#}");
        rejects(&result, status, retries > 0, words);
    });
}

/// A server that never heard of TLS: whatever is said to it, it answers in plain text.
fn not_tls() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    address
}

#[test]
fn a_certificate_is_trusted_or_it_is_said() {
    let second = good_provider();
    let (trusted, untrusted) = (Tls::start(Format::Anthropic), Tls::untrusted(Format::Anthropic));
    trusted.otherwise(good_model);
    let authority = tempfile::NamedTempFile::new().expect("a file");
    fs::write(authority.path(), trusted.ca_pem()).expect("a file");
    let authority = authority.path().to_str().expect("a path");
    let trusts = [("SSL_CERT_FILE", authority), ("SSL_CERT_DIR", "/nonexistent")];
    let (result, _) = Scene::new(&two(at(&trusted, Format::Anthropic), &second, json!({})), &trusts).compact();
    assert_eq!(by(&result), "first", "{result:#}");
    let loud = json!({"api": "anthropic", "baseUrl": trusted.base_url().replace("https", "HTTPS")});
    assert_eq!(by(&Scene::new(&two(loud, &second, json!({})), &trusts).compact().0), "first");

    let nothing = [("SSL_CERT_FILE", "/nonexistent"), ("SSL_CERT_DIR", "/nonexistent")];
    for variables in [trusts, nothing] {
        let settings = two(at(&untrusted, Format::Anthropic), &second, json!({}));
        let (result, events) = Scene::new(&settings, &variables).compact();
        // Nothing but loopback is asked: no certificate is needed for it.
        assert_eq!(by(&result), "second");
        assert!(of(&events, "retry_start").is_empty());
        rejects(&result, None, false, &["the certificate cannot be trusted", "SSL_CERT_FILE"]);
    }
    assert!(untrusted.asked().is_empty());
    let not_tls = json!({"api": "anthropic", "baseUrl": trusted.base_url().replace("https", "http")});
    let (result, _) = Scene::new(&two(not_tls, &second, json!({})), &nothing).compact();
    rejects(&result, None, false, &["something else than this provider answers there"]);
}

#[test]
fn silence_is_waited_for_once_and_its_connection_closed() {
    let second = good_provider();
    let silences = [
        (Format::Anthropic, Step::hang()),
        (Format::Anthropic, Step::answer(&good("half")).hang_after(2)),
        (Format::Google, Step::answer(&good("half")).hang_after(1)),
    ];
    at_once(silences, |(format, step)| {
        let first = Provider::start(format);
        first.script([step]);
        let settings = two(at(&first, format), &second, json!({"compaction": {"stallSeconds": 1}}));
        let (result, events) = Scene::new(&settings, &[]).compact();
        assert_eq!(by(&result), "second", "{result:#}");
        assert!(of(&events, "retry_start").is_empty());
        rejects(&result, None, true, &[" came for 1 s", "compaction.stallSeconds"]);
        first.wait_for_close(0);
        assert_eq!(first.asked().len(), 1);
    });
}

#[test]
fn an_answer_without_end_is_ended() {
    let (first, second) = (Provider::start(Format::OpenAiChat), good_provider());
    first.otherwise(Step::endless());
    let mut settings = two(at(&first, Format::OpenAiChat), &second, json!({}));
    settings["models"][0]["maxOutputTokens"] = json!(16);
    let (result, _) = Scene::new(&settings, &[]).compact();
    assert_eq!(by(&result), "second");
    rejects(&result, Some(200), false, &["did not end", "output limit"]);
    assert_eq!(first.wait_for_close(0).len(), 1);
}

#[test]
fn a_redirection_does_not_carry_the_key_away() {
    let (first, second, other) = (Provider::start(Format::Anthropic), good_provider(), good_provider());
    let there = format!("{}/messages?key={KEY}", other.base_url());
    let mut scene = Scene::new(&two(at(&first, Format::Anthropic), &second, json!({})), &[]);
    for code in [301, 302, 303, 307, 308] {
        first.script([Step::status(code).header("location", &there)]);
        let (result, _) = scene.compact();
        assert_eq!(by(&result), "second");
        rejects(&result, Some(code), false, &["redirects to http://127.0.0.1", "[REDACTED:key]", "check baseUrl"]);
    }
    assert_eq!(first.asked()[0].header("x-api-key"), Some(KEY));
    assert!(other.asked().is_empty());
}

#[test]
fn a_key_that_comes_back_is_told_to_nobody() {
    let second = good_provider();
    for format in Format::ALL {
        let first = Provider::start(format);
        first.otherwise(good_model);
        let mut scene = Scene::new(&two(at(&first, format), &second, json!({})), &[]);
        let quoted = format!("Wrong key {KEY}, or header {HEADER}.");
        let long = format!("{} {KEY}", "x".repeat(285));
        let rows = [
            Step::status(401).body(&json!({"error": {"message": quoted}}).to_string()),
            Step::status(400).body(&quoted),
            Step::status(400).body(&long),
            Step::status(500).body(&quoted),
            Step::html_proxy(403).body(&format!("<html>{quoted}</html>")),
            Step::status(200).body(&json!({"error": {"message": quoted}}).to_string()),
            Step::status(200).body(&quoted),
            Step::answer("Well").error_in_stream(Trouble::Invalid(quoted.clone())),
        ];
        // A fault that candidates have in common is tried once.
        let every = if format == Format::Anthropic { 1 } else { 5 };
        for step in rows.into_iter().step_by(every) {
            first.script([step]);
            let (_, events) = scene.compact();
            let told = json!(events).to_string();
            assert!(!told.contains("planted"), "{told}");
        }
    }
}

#[test]
fn a_key_comes_from_the_environment_of_a_known_provider() {
    let (first, second) = (Provider::start(Format::Anthropic), good_provider());
    first.otherwise(good_model).key(KEY);
    let settings = json!({
        "models": [
            {"provider": "anthropic", "id": "claude-sonnet-4-5", "baseUrl": first.base_url()},
            {"provider": "second", "id": "model", "baseUrl": second.base_url()},
        ],
        "compaction": {"models": ["anthropic/claude-sonnet-4-5"]},
    });
    let (result, _) = Scene::new(&settings, &[("ANTHROPIC_API_KEY", &format!(" {KEY}\n"))]).compact();
    assert_eq!(by(&result), "anthropic", "{result:#}");
    assert_eq!(result["rejected"], json!([]));
}

#[test]
fn a_key_comes_from_a_program() {
    let second = good_provider();
    let shell = |script: String| json!(["sh", "-c", script]);
    let rows = [
        (shell(format!("echo ' {KEY} '; echo and a note")), "first", ""),
        (shell("echo wrong; exit 3".to_owned()), "second", "`sh` ended with exit status: 3"),
        (shell("true".to_owned()), "second", "`sh` printed nothing"),
        (shell("printf '\\n\\nlater'".to_owned()), "second", "`sh` printed nothing"),
        (json!(["/nonexistent/program", KEY]), "second", "cannot be run"),
        (json!(["sleep", "600"]), "second", "`sleep` gave no key within 1 s"),
        (json!(["yes", "y"]), "second", "`yes` prints and prints"),
        (shell("printf 'a\\001b'".to_owned()), "second", "characters that no key has"),
    ];
    at_once(rows, |(command, expected, says)| {
        eprintln!("{command}");
        let first = Provider::start(Format::OpenAiResponses);
        first.otherwise(good_model).key(KEY);
        let mut model = at(&first, Format::OpenAiResponses);
        merge(&mut model, json!({"apiKeyCommand": command}));
        let mut settings = two(model, &second, json!({"compaction": {"stallSeconds": 1}}));
        settings["models"][0].as_object_mut().expect("an object").remove("apiKeyEnv");
        let (result, events) = Scene::new(&settings, &[]).compact();
        assert_eq!(by(&result), expected, "{result:#}");
        if expected == "second" {
            assert!(first.asked().is_empty());
            assert!(of(&events, "retry_start").is_empty());
            rejects(&result, None, false, &[says, "apiKeyCommand"]);
        }
    });
}

#[test]
fn candidates_are_asked_in_order() {
    let providers: Vec<Provider> = (0..4).map(|_| Provider::start(Format::OpenAiChat)).collect();
    let names = ["named", "own", "small", "large"];
    let model = |at: usize| json!({"provider": names[at], "id": "model", "baseUrl": providers[at].base_url(), "contextWindow": 100_000 + at * 1_000});
    let settings = json!({
        "models": [model(2), model(3), model(1), model(0)],
        "defaultModel": "own/model",
        "compaction": {"models": ["unset/model", "no model", "named/model"]},
        "tokens": {"estimator": "chars"},
    });
    for provider in &providers {
        provider.otherwise(Step::unauthorized());
    }
    let (result, _) = Scene::new(&settings, &[]).compact();
    let rejected = result["rejected"].as_array().expect("a list");
    let models: Vec<_> = rejected.iter().map(|it| it["model"]["provider"].as_str().unwrap_or("none")).collect();
    assert_eq!(models, ["unset", "none", "named", "own", "large"], "{result:#}");
    assert!(providers[2].asked().is_empty());
    assert_eq!(rejected[0]["error"]["provider"], "unset");
    let why = rejected[0]["why"].as_str().expect("a text");
    assert!(why.starts_with("unset/model: ") && why.contains("`baseUrl` in models"), "{why}");
    assert!(rejected[1]["why"].as_str().expect("a text").contains("`no model`"));
}

/// A daemon whose first request at the first provider hangs.
fn hanging(provider: &Provider, format: Format) -> (Scene, String, PathBuf, u64) {
    let settings = json!({
        "models": [{"provider": "first", "id": "model", "api": format.api(), "baseUrl": provider.base_url(), "contextWindow": 100_000}],
        "compaction": {"models": ["first/model"]},
        "tokens": {"estimator": "chars"},
        // Longer than any test: only a cancel ends the wait.
        "retry": {"baseDelayMs": 25_000},
    });
    let mut scene = Scene::new(&settings, &[]);
    let (session, path) = scene.session();
    let id = scene.begin(&session);
    (scene, session, path, id)
}

/// The answer to a cancel comes before anything else that follows from it; then the end.
fn cancelled(scene: &mut Scene, session: &str, compact: u64) -> Vec<Value> {
    // Events on their way are sent before.
    scene.daemon.ok("ping", json!({}));
    let before = scene.daemon.events.len();
    let id = scene.daemon.begin("session/cancel", json!({"sessionId": session}));
    let answer = scene.daemon.answer(id).expect("an answer");
    // Pieces of an answer, and how far it is, may be on their way; nothing that follows from it.
    let early = scene.daemon.events[before..].iter().map(|frame| &frame["params"]["event"]["type"]);
    let early: Vec<_> = early.filter(|kind| *kind != "summary_chunk" && *kind != "compaction_progress").collect();
    assert!(early.is_empty(), "nothing comes before it: {early:?}");
    assert_eq!(answer["cancelled"][0]["kind"], "compaction", "{answer:#}");
    let ended = scene.daemon.answer(compact).expect("an answer");
    assert_eq!(ended["outcome"], "cancelled");
    let events = scene.events(session);
    in_order(&events);
    assert_eq!(of(&events, "compaction_end")[0]["outcome"], "cancelled");
    events
}

#[test]
fn a_cancel_ends_a_request_that_hangs() {
    for (format, step) in [
        (Format::Anthropic, Step::hang()),
        (Format::Google, Step::answer(&good("half")).hang_after(2)),
        (Format::OpenAiChat, Step::endless()),
    ] {
        let provider = Provider::start(format);
        provider.script([step]);
        let (mut scene, session, path, id) = hanging(&provider, format);
        let before = fs::read(&path).expect("a file");
        provider.wait_for(1);
        cancelled(&mut scene, &session, id);
        provider.wait_for_close(0);
        assert_eq!(provider.asked().len(), 1);
        assert_eq!(fs::read(&path).expect("a file"), before);
        let (result, _) = (scene.begin(&session), provider.wait_for(2));
        assert!(scene.daemon.answer(result).is_ok(), "the session goes on");
    }
}

#[test]
fn a_cancel_ends_a_wait_before_the_next_try() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::server_error()]);
    let (mut scene, session, path, id) = hanging(&provider, Format::Anthropic);
    let before = fs::read(&path).expect("a file");
    scene.daemon.until("retry_start");
    let events = cancelled(&mut scene, &session, id);
    let kinds: Vec<_> = events.iter().filter_map(|it| it["type"].as_str()).collect();
    let place = |kind| kinds.iter().position(|it| *it == kind).expect(kind);
    assert!(place("retry_start") < place("retry_end") && place("retry_end") < place("compaction_end"), "{kinds:?}");
    assert_eq!(of(&events, "retry_end")[0]["error"]["code"], "request_cancelled");
    assert_eq!(provider.asked().len(), 1);
    assert_eq!(fs::read(&path).expect("a file"), before);
}

#[test]
fn taking_the_request_back_is_a_cancel_too() {
    let provider = Provider::start(Format::OpenAiResponses);
    provider.script([Step::hang()]);
    let (mut scene, session, path, id) = hanging(&provider, Format::OpenAiResponses);
    let before = fs::read(&path).expect("a file");
    provider.wait_for(1);
    scene.daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(scene.daemon.answer(id).expect("its normal answer")["outcome"], "cancelled");
    provider.wait_for_close(0);
    assert_eq!(of(&scene.events(&session), "compaction_end").len(), 1);
    assert_eq!(fs::read(&path).expect("a file"), before);
}

/// Settings whose model reads so little at a time that a summary takes several requests.
fn in_chunks(provider: &Provider) -> Value {
    json!({
        "models": [{"provider": "first", "id": "model", "api": "anthropic", "baseUrl": provider.base_url(), "contextWindow": 6_000}],
        "compaction": {"models": ["first/model"]},
        "tokens": {"estimator": "chars"},
    })
}

#[test]
fn what_was_paid_before_a_cancel_is_noted() {
    for ends in ["session/cancel", "stdin"] {
        let provider = Provider::start(Format::Anthropic);
        provider.script([Step::answer(&good("chunk")).usage(700, 70, 0, 0), Step::hang()]);
        let mut scene = Scene::new(&in_chunks(&provider), &[]);
        let (session, path) = scene.session();
        let id = scene.begin(&session);
        provider.wait_for(2);
        match ends {
            "session/cancel" => {
                cancelled(&mut scene, &session, id);
            }
            _ => {
                let (status, took) = scene.daemon.end();
                assert!(status.success());
                // Far below every other wait there is.
                assert!(took < Duration::from_secs(5), "{took:?}");
                let events = scene.events(&session);
                assert_eq!(of(&events, "compaction_end")[0]["outcome"], "cancelled");
            }
        }
        provider.wait_for_close(1);
        if ends == "session/cancel" {
            scene.daemon.ok("session/close", json!({"sessionId": session}));
        }
        let lines = fs::read_to_string(&path).expect("a file");
        let last: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
        assert_eq!(last["type"], "usage", "{ends}: {last:#}");
        assert_eq!((&last["purpose"], &last["usage"]["input"]), (&json!("compaction"), &json!(700)));
        assert!(!lines.contains("\"compaction\",\"id\""), "{ends}");
        assert_eq!(lines.lines().filter(|line| line.contains("\"type\":\"usage\"")).count(), 1);
    }
}

/// The request that the client receives.
fn asked(scene: &mut Scene) -> Value {
    let asks = |frame: &Value| frame["method"] == "llm/complete";
    if let Some(at) = scene.daemon.events.iter().position(asks) {
        return scene.daemon.events.remove(at);
    }
    loop {
        let frame = scene.daemon.frame();
        if asks(&frame) {
            return frame;
        }
        scene.daemon.events.push(frame);
    }
}

fn answers(scene: &mut Scene, request: &Value, message: Value) {
    scene.daemon.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"message": message}}));
}

/// An assistant message as a client's model says it.
fn said(text: &str) -> Value {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "timestamp": 1,
        "provider": "first", "model": "model", "usage": {"input": 9_000, "output": 90, "cacheRead": 5, "cacheWrite": 6},
    })
}

/// Answer of a good model of a client.
fn fitting(request: &Value) -> Value {
    let params = &request["params"];
    let text = match params["purpose"].as_str().expect("a purpose") {
        "short_summary" => "Looked at the parts. The rest is to be done.",
        "turn_prefix" => {
            "## Original Request\nlook at everything\n\n## Early Progress\n- read the first parts\n\n## Context for the Rest\n- none"
        }
        _ => &good("by the client"),
    };
    let mut message = said(text);
    message["usage"]["input"] = json!((params["messages"].to_string().len() + params["system"].to_string().len()) / 4);
    message
}

fn by_client(second: &Provider, more: Value) -> Scene {
    let mut settings = two(json!({"api": "client"}), second, more);
    settings["models"][0].as_object_mut().expect("an object").remove("apiKeyEnv");
    Scene::with(&settings, &[], json!({"llm": {}}))
}

#[test]
fn a_client_runs_the_model() {
    let second = good_provider();
    let mut scene = by_client(&second, json!({}));
    let (session, path) = scene.session();
    let id = scene.begin(&session);
    for (at, purpose) in ["compaction", "short_summary"].iter().enumerate() {
        let request = asked(&mut scene);
        assert_eq!(request["id"], format!("srv-{}", at + 1));
        let params = &request["params"];
        assert_eq!((&params["sessionId"], &params["purpose"]), (&json!(session), &json!(purpose)));
        let start = scene.daemon.until("compaction_start");
        assert_eq!(params["operationId"], start["params"]["operationId"]);
        assert_eq!(params["deadlineMs"], 900_000);
        assert_eq!(params["model"], json!({"provider": "first", "id": "model"}));
        assert!(params["maxTokens"].as_u64().is_some_and(|most| most > 0));
        assert!(params["system"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(params["messages"][0]["role"], "user");
        assert!(params["messages"][0]["content"][0]["text"].as_str().expect("a text").len() > 100);
        let answer = fitting(&request);
        answers(&mut scene, &request, answer);
    }
    let answer = scene.daemon.answer(id).expect("an answer");
    assert_eq!((by(&answer["result"]), &answer["result"]["rejected"]), ("first", &json!([])));
    assert!(answer["result"]["summary"].as_str().expect("a text").contains("by the client"));
    assert_eq!(answer["result"]["shortSummary"], "Looked at the parts. The rest is to be done.");
    let told: String =
        of(&scene.events(&session), "summary_chunk").iter().filter_map(|it| it["text"].as_str()).collect();
    assert!(told.contains("by the client"));
    assert!(second.asked().is_empty());
    let lines = fs::read_to_string(path).expect("a file");
    assert_eq!(lines.lines().filter(|line| line.contains("\"type\":\"usage\"")).count(), 2);
}

#[test]
fn what_a_client_says_instead_is_typed() {
    let second = good_provider();
    let failed = |what: &str| json!({"result": {"message": {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": what, "timestamp": 1}}});
    let unwilling: &[&str] = &["the client does not run it", "answer llm/complete"];
    let rows: [(Value, bool, &[&str]); 13] = [
        (
            json!({"error": {"code": -32601, "message": "no such method"}}),
            false,
            &["no such method", "does not run it"],
        ),
        (json!({"error": {"code": 1}}), false, unwilling),
        (json!({"error": {"code": 1, "message": "401 Unauthorized"}}), false, &["the key is missing or not accepted"]),
        (json!({"result": null}), false, unwilling),
        (json!({"result": "text"}), false, unwilling),
        (json!({"result": {"message": "text"}}), false, unwilling),
        (json!({"result": {"message": 7}}), false, unwilling),
        (json!({"result": {"message": null}}), false, unwilling),
        (json!({"result": {"message": {"role": "user", "content": "x", "timestamp": 1}}}), false, unwilling),
        (json!({"result": {"message": {"role": "assistant", "content": 7}}}), false, unwilling),
        (failed("insufficient_quota"), false, &["the quota is used up"]),
        (failed("Something"), false, &["Something"]),
        (failed(&format!("wrong key sk-{}", "a1B2c3D4e5".repeat(3))), false, &["[REDACTED"]),
    ];
    let mut scene = by_client(&second, json!({}));
    for (response, retryable, words) in rows {
        eprintln!("{response}");
        let (session, _) = scene.session();
        let id = scene.begin(&session);
        let request = asked(&mut scene);
        let mut frame = json!({"jsonrpc": "2.0", "id": request["id"]});
        merge(&mut frame, response);
        scene.daemon.send(&frame);
        let answer = scene.daemon.answer(id).expect("an answer");
        assert_eq!(by(&answer["result"]), "second", "{answer:#}");
        rejects(&answer["result"], None, retryable, words);
    }
}

#[test]
fn a_client_whose_model_is_too_small_is_asked_for_less() {
    let second = good_provider();
    let mut scene = by_client(&second, json!({}));
    let overflow = "prompt is too long: 8000 tokens > 5000 maximum";
    let failed =
        json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": overflow, "timestamp": 1});
    for (at, too_long) in [json!({"result": {"message": failed}}), json!({"error": {"code": 1, "message": overflow}})]
        .into_iter()
        .enumerate()
    {
        // The next compaction knows the learned window.
        if at == 1 {
            scene = by_client(&second, json!({}));
        }
        let (session, _) = scene.session();
        let id = scene.begin(&session);
        let request = asked(&mut scene);
        let length = |request: &Value| request["params"]["messages"].to_string().len();
        let first = length(&request);
        let mut frame = json!({"jsonrpc": "2.0", "id": request["id"]});
        merge(&mut frame, too_long);
        scene.daemon.send(&frame);
        loop {
            let request = asked(&mut scene);
            assert!(length(&request) < first, "no request is as long again");
            let answer = fitting(&request);
            answers(&mut scene, &request, answer);
            if request["params"]["purpose"] == "short_summary" {
                break;
            }
        }
        let answer = scene.daemon.answer(id).expect("an answer");
        assert_eq!(by(&answer["result"]), "first", "{answer:#}");
    }
}

#[test]
fn a_client_that_asks_to_wait_is_asked_again() {
    let second = good_provider();
    let mut scene = by_client(&second, json!({}));
    let (session, _) = scene.session();
    let id = scene.begin(&session);
    let request = asked(&mut scene);
    let failed = json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "529 Overloaded", "timestamp": 1});
    answers(&mut scene, &request, failed);
    for _ in 0..2 {
        let request = asked(&mut scene);
        let answer = fitting(&request);
        answers(&mut scene, &request, answer);
    }
    assert_eq!(by(&scene.daemon.answer(id).expect("an answer")["result"]), "first");
    let events = scene.events(&session);
    in_order(&events);
    assert_eq!(of(&events, "retry_end")[0]["success"], true);
}

fn taken_back(scene: &mut Scene, request: &Value) {
    let takes_back = |frame: &Value| frame["method"] == "$/cancelRequest" && frame["params"]["id"] == request["id"];
    while !scene.daemon.events.iter().any(takes_back) {
        let frame = scene.daemon.frame();
        scene.daemon.events.push(frame);
    }
}

#[test]
fn a_client_that_does_not_answer_is_not_waited_for() {
    let second = good_provider();
    let mut scene = by_client(&second, json!({"compaction": {"deadlineSeconds": 1}}));
    let (session, path) = scene.session();
    let id = scene.begin(&session);
    let request = asked(&mut scene);
    assert_eq!(request["params"]["deadlineMs"], 1_000);
    let answer = scene.daemon.answer(id).expect("an answer");
    assert_eq!(by(&answer["result"]), "second");
    rejects(&answer["result"], None, true, &["did not answer in time", "compaction.deadlineSeconds"]);
    taken_back(&mut scene, &request);
    // Too late.
    let before = fs::read(&path).expect("a file");
    answers(&mut scene, &request, said(&good("too late")));
    answers(&mut scene, &json!({"id": "srv-77"}), said("never asked"));
    answers(&mut scene, &json!({"id": 7}), said("never asked"));
    scene.daemon.ok("ping", json!({}));
    assert_eq!(fs::read(&path).expect("a file"), before);
}

#[test]
fn a_cancel_takes_the_request_of_the_client_back() {
    let second = good_provider();
    let mut scene = by_client(&second, json!({}));
    let (session, path) = scene.session();
    let before = fs::read(&path).expect("a file");
    let id = scene.begin(&session);
    let request = asked(&mut scene);
    cancelled(&mut scene, &session, id);
    taken_back(&mut scene, &request);
    answers(&mut scene, &request, said(&good("too late")));
    scene.daemon.ok("session/close", json!({"sessionId": session}));
    assert_eq!(fs::read(&path).expect("a file"), before);
    assert!(second.asked().is_empty());
}

#[test]
fn a_client_that_leaves_is_not_waited_for() {
    let second = good_provider();
    let mut scene = by_client(&second, json!({}));
    let (session, _) = scene.session();
    scene.begin(&session);
    asked(&mut scene);
    let (status, took) = scene.daemon.end();
    assert!(status.success() && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(of(&scene.events(&session), "compaction_end").len(), 1);
}

/// A turn so long that its beginning is summarized apart.
fn split() -> Vec<Value> {
    let mut messages = turns(10);
    messages.push(user("Now look at everything. You must never change all.lock."));
    for at in 0..10 {
        let id = format!("long{at}");
        messages.extend([calls(&[&id]), result(&id, &text_of(200, &format!("long_{at}")))]);
    }
    messages.push(assistant("That was everything."));
    messages
}

#[test]
fn two_questions_at_once_are_answered_in_any_order() {
    let second = good_provider();
    for turned_around in [false, true] {
        let mut scene = by_client(&second, json!({}));
        let (session, _) = scene.session_of(&split());
        let id = scene.begin(&session);
        let mut requests = vec![asked(&mut scene), asked(&mut scene)];
        let purposes: Vec<_> = requests.iter().map(|it| it["params"]["purpose"].clone()).collect();
        assert_eq!(purposes, ["compaction", "turn_prefix"]);
        assert_ne!(requests[0]["id"], requests[1]["id"]);
        if turned_around {
            requests.reverse();
        }
        for request in requests {
            let answer = fitting(&request);
            answers(&mut scene, &request, answer);
        }
        let request = asked(&mut scene);
        let answer = fitting(&request);
        answers(&mut scene, &request, answer);
        let answer = scene.daemon.answer(id).expect("an answer");
        let summary = answer["result"]["summary"].as_str().expect("a text");
        assert!(summary.find("by the client") < summary.find("## Original Request"), "{summary}");
    }
}

#[test]
fn of_two_questions_the_failed_one_leaves_the_other() {
    let second = good_provider();
    let first = Provider::start(Format::Anthropic);
    let tries = AtomicUsize::new(0);
    first.otherwise(move |asked: &Asked| match asked.text().contains("the beginning of one long turn") {
        true if tries.fetch_add(1, Ordering::SeqCst) == 0 => Step::server_error(),
        true => good_model(asked),
        false => Step::hang(),
    });
    let mut scene =
        Scene::new(&two(at(&first, Format::Anthropic), &second, json!({"compaction": {"stallSeconds": 1}})), &[]);
    let (session, _) = scene.session_of(&split());
    let id = scene.begin(&session);
    let answer = scene.daemon.answer(id).expect("an answer");
    assert_eq!(answer["result"]["parts"]["history"]["model"]["provider"], "second", "{answer:#}");
    assert_eq!(answer["result"]["parts"]["turnPrefix"]["model"]["provider"], "first", "{answer:#}");
    rejects(&answer["result"], None, true, &["nothing came"]);
    let events = scene.events(&session);
    in_order(&events);
    assert_eq!(of(&events, "retry_end")[0]["success"], true);
    assert!(second.asked().iter().all(|asked| !asked.text().contains("the beginning of one long turn")));
}

#[test]
fn a_client_that_runs_no_models_is_not_asked() {
    let second = good_provider();
    let mut settings = two(json!({"api": "client"}), &second, json!({}));
    settings["models"][0].as_object_mut().expect("an object").remove("apiKeyEnv");
    let (result, _) = Scene::new(&settings, &[]).compact();
    assert_eq!(by(&result), "second");
    rejects(&result, None, false, &["capabilities.llm"]);
}

#[test]
fn a_client_is_asked_in_the_framing_it_chose() {
    let home = Home::new();
    let settings = json!({"models": [{"provider": "first", "id": "model", "api": "client", "contextWindow": 100_000}], "compaction": {"models": ["first/model"]}, "tokens": {"estimator": "chars"}});
    home.settings(&settings.to_string());
    let path = session_of(&home, "framed", &turns(20));
    let mut child = home.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut to = child.stdin.take().expect("a pipe");
    let mut from = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut send = |frame: Value| {
        let text = frame.to_string();
        write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| to.flush()).expect("it reads");
    };
    let mut frame = || -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            from.read_line(&mut line).expect("a header");
            match line.trim().split_once(':') {
                Some((_, value)) => length = value.trim().parse().expect("a length"),
                None => break,
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    };
    send(
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "capabilities": {"llm": {}}}}),
    );
    send(json!({"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": {"path": path}}));
    send(
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/compact", "params": {"sessionId": "framed", "keepRecentTokens": 600, "wait": true}}),
    );
    let answer = loop {
        let frame = frame();
        if frame["method"] == "llm/complete" {
            let message = fitting(&frame);
            send(json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"message": message}}));
        } else if frame["id"] == 3 {
            break frame;
        }
    };
    assert_eq!(answer["result"]["result"]["method"], "llm", "{answer:#}");
    drop(to);
    assert!(child.wait().expect("a child can be waited for").success());
}

#[test]
fn no_more_summaries_are_made_at_once_than_allowed() {
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let provider = Provider::start(Format::OpenAiChat);
    let (goes_on, wait) = channel::<()>();
    let (seen, wait) = (running.clone(), Mutex::new(wait));
    provider.otherwise(move |asked: &Asked| {
        let now = seen.0.fetch_add(1, Ordering::SeqCst) + 1;
        seen.1.fetch_max(now, Ordering::SeqCst);
        // The first one waits until all others want to be asked too.
        let _ = wait.lock().expect("a channel").recv();
        seen.0.fetch_sub(1, Ordering::SeqCst);
        good_model(asked)
    });
    let settings = json!({
        "models": [{"provider": "first", "id": "model", "baseUrl": provider.base_url(), "contextWindow": 100_000}],
        "compaction": {"models": ["first/model"], "maxConcurrent": 1},
        "tokens": {"estimator": "chars"},
    });
    let mut scene = Scene::new(&settings, &[]);
    let sessions: Vec<String> = (0..4).map(|_| scene.session().0).collect();
    let mut ids = vec![scene.begin(&sessions[0])];
    provider.wait_for(1);
    ids.extend(sessions[1..].iter().map(|session| scene.begin(session)));
    let starts = |scene: &Scene| scene.daemon.count("compaction_start");
    while starts(&scene) < 4 {
        let frame = scene.daemon.frame();
        scene.daemon.events.push(frame);
    }
    // A request that waits for its turn can be cancelled too.
    cancelled(&mut scene, &sessions[3], ids.pop().expect("four of them"));
    drop(goes_on);
    for id in ids {
        assert_eq!(by(&scene.daemon.answer(id).expect("an answer")["result"]), "first");
    }
    assert_eq!((running.1.load(Ordering::SeqCst), provider.asked().len()), (1, 6));
}
