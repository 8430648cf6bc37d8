//! Summaries by the service at `compaction.remoteEndpoint`, with its faults: through the real binary, and a server of HTTP
//! on loopback.

use crate::{
    provider::{Format, Provider},
    summarizing::{compact, events, good, good_model, merge, session, settings},
    support::{text_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The request line and the headers.
    pub head: String,
    pub body: Value,
}

/// A reply of a service.
pub enum Reply {
    /// A status, headers and a body.
    Said(u16, Vec<String>, Vec<u8>),
    /// Nothing until the client closes.
    Hang,
    /// A document that does not end.
    Flood,
}

impl Reply {
    pub fn json(value: &Value) -> Self {
        Self::text(200, "application/json", &value.to_string())
    }

    pub fn text(status: u16, kind: &str, text: &str) -> Self {
        Self::Said(status, vec![format!("content-type: {kind}")], text.as_bytes().to_vec())
    }

    fn and(self, header: &str) -> Self {
        match self {
            Self::Said(status, mut headers, body) => {
                headers.push(header.to_owned());
                Self::Said(status, headers, body)
            }
            other => other,
        }
    }
}

type Answers = dyn Fn(&Asked) -> Reply + Send + Sync;

struct Shared {
    stopped: AtomicBool,
    asked: Mutex<Vec<Asked>>,
    answers: Box<Answers>,
}

/// A service on loopback. It has a connection for each request.
pub struct Service {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
}

impl Service {
    pub fn start(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared =
            Arc::new(Shared { stopped: AtomicBool::new(false), asked: Mutex::default(), answers: Box::new(answers) });
        let serving = shared.clone();
        let listener = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = serving.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { shared, address, listener: Some(listener) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _woken = TcpStream::connect(self.address);
        self.listener.take().map(JoinHandle::join);
    }
}

/// Answers one request. A client that went away gets nothing.
fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let asked = Asked { head, body: serde_json::from_slice(&body).ok()? };
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    match (shared.answers)(&asked) {
        Reply::Said(status, headers, body) => {
            let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
            let head = format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\n", body.len());
            stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).ok()?;
            stream.write_all(&body).ok()
        }
        Reply::Hang => reader.read_to_end(&mut Vec::new()).ok().map(drop),
        Reply::Flood => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"summary\": \"").ok()?;
            let piece = vec![b'x'; 1 << 16];
            // 100 MB.
            (0..1_600).try_for_each(|_| stream.write_all(&piece)).ok()
        }
    }
}

/// Settings with this service and a model at the provider.
fn with_service(url: &str, provider: &Provider, more: Value) -> String {
    let mut compaction = json!({"compaction": {"remoteEndpoint": url}});
    merge(&mut compaction, more);
    settings(provider, Format::OpenAiChat, compaction)
}

/// A conversation whose cut is between two turns.
fn whole_turns() -> Vec<Value> {
    let mut messages = turns(20);
    messages.push(user(&text_of(620, "next")));
    messages
}

fn good_service(_: &Asked) -> Reply {
    Reply::json(&json!({"summary": good("by the service"), "shortSummary": "The parser is looked at."}))
}

fn model() -> Provider {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    provider
}

#[test]
fn a_service_writes_the_summary_before_any_model() {
    let (service, provider) = (Service::start(good_service), model());
    let settings = with_service(&service.url("/sum?user=me"), &provider, json!({}));
    let mut messages = whole_turns();
    messages.insert(0, user("The key is sk-ant-api03-0123456789abcdefghijABCDEFGHIJ, keep it."));
    let (mut daemon, session, path) = session(&settings, &messages);
    let answer = compact(&mut daemon, &session, json!({}));
    let result = &answer["result"];
    assert_eq!((&result["method"], &result["model"]), (&json!("remote"), &Value::Null), "{answer:#}");
    assert_eq!(result["rejected"], json!([]));
    assert!(result["summary"].as_str().expect("a text").contains("by the service"));
    assert_eq!(result["shortSummary"], "The parser is looked at.");
    assert!(provider.asked().is_empty(), "no model was asked");

    let asked = service.asked();
    assert_eq!(asked.len(), 1, "the short summary came beside the summary");
    assert!(asked[0].head.starts_with("POST /sum?user=me HTTP/1.1\r\n"), "{}", asked[0].head);
    assert!(!asked[0].head.to_ascii_lowercase().contains("authorization"), "{}", asked[0].head);
    let fields: Vec<_> = asked[0].body.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["systemPrompt", "prompt"]);
    let prompt = asked[0].body["prompt"].as_str().expect("a text");
    assert!(prompt.contains("<conversation>") && prompt.contains("## Goal"), "{prompt}");
    assert!(!prompt.contains("sk-ant-api03"), "{prompt}");

    let told: String = events(&daemon, "summary_chunk").filter_map(|it| it["text"].as_str()).collect();
    assert!(told.contains("by the service"), "{told}");
    let file = std::fs::read_to_string(&path).expect("a file");
    let line = file.lines().rfind(|line| line.contains(r#""type":"compaction""#)).expect("a compaction");
    assert!(line.contains(r#""method":"remote""#), "{line}");
    let usage = file.lines().find(|line| line.contains(r#""type":"usage""#)).expect("a cost");
    assert!(usage.contains(r#""provider":"remote","model":"endpoint""#), "{usage}");
    let spent = daemon.ok("session/status", json!({"sessionId": session}))["spent"].clone();
    assert_eq!(spent["total"]["requests"], 1, "{spent}");
}

#[test]
fn each_fault_of_a_service_is_named_and_the_next_candidate_writes_the_summary() {
    let elsewhere = Service::start(good_service);
    let redirect = format!("location: {}", elsewhere.url("/"));
    let summary = |text: &str| Reply::json(&json!({"summary": text}));
    let page = "<!DOCTYPE html><html><body>Log in</body></html>";
    let tagged = good("x") + "\n</conversation>";
    let error = |status: u16, header: &str| Reply::text(status, "application/json", r#"{"error": "no"}"#).and(header);
    type Fault = (&'static str, Box<Answers>, &'static str, usize);
    let faults: [Fault; 14] = [
        ("a page", Box::new(move |_| Reply::text(200, "text/html", page)), "no answer of such a provider", 1),
        ("a page that says JSON", Box::new(move |_| Reply::text(200, "application/json", page)), "no answer", 1),
        ("a page of a proxy", Box::new(move |_| Reply::text(502, "text/html", page)), "status 502", 4),
        ("silence", Box::new(|_| Reply::Hang), "nothing came for 1 s", 1),
        ("a redirect", Box::new(move |_| Reply::text(307, "text/plain", "").and(&redirect)), "it redirects to", 1),
        ("the prompt", Box::new(move |it| summary(it.body["prompt"].as_str().expect("a text"))), "", 2),
        ("nothing", Box::new(move |_| summary(" \n")), "empty", 2),
        ("another document", Box::new(|_| Reply::json(&json!({"text": "x"}))), "has no `summary`", 1),
        ("half a document", Box::new(|_| Reply::text(200, "application/json", "{\"summary\": \"#")), "not JSON", 1),
        ("100 MB", Box::new(|_| Reply::Flood), "the answer did not end", 1),
        ("our tag", Box::new(move |_| summary(&tagged)), "", 2),
        ("no permission", Box::new(move |_| error(401, "x: y")), "status 401", 1),
        ("a long wait", Box::new(move |_| error(429, "retry-after: 120")), "status 429", 1),
        ("a failure", Box::new(move |_| error(500, "retry-after-ms: 10")), "status 500", 4),
    ];
    for (name, answers, why, requests) in faults {
        let (service, provider) = (Service::start(answers), model());
        let more = json!({"compaction": {"stallSeconds": 1}});
        let (mut daemon, session, _) = session(&with_service(&service.url("/"), &provider, more), &whole_turns());
        let answer = compact(&mut daemon, &session, json!({}));
        let result = &answer["result"];
        assert_eq!((&answer["outcome"], &result["method"]), (&json!("completed"), &json!("llm")), "{name}: {answer:#}");
        let rejected = result["rejected"].as_array().expect("a list");
        assert!(!rejected.is_empty() && rejected.len() <= 2, "{name}: {rejected:?}");
        for rejected in rejected {
            assert_eq!((&rejected["method"], &rejected["model"]), (&json!("remote"), &Value::Null), "{name}");
            assert!(rejected["why"].as_str().expect("a text").contains(why), "{name}: {rejected}");
        }
        assert_eq!(service.asked().len(), requests, "{name}");
    }
    assert!(elsewhere.asked().is_empty(), "a redirect is not followed");
}

#[test]
fn a_service_that_cannot_be_reached_costs_one_candidate() {
    let plain = Service::start(good_service);
    for (url, why) in [
        (plain.url("/").replace("http:", "https:"), ""),
        ("http://no-such-host.invalid/sum".to_owned(), "nobody answers there"),
        ("http://127.0.0.1:9/sum".to_owned(), "nobody answers there"),
    ] {
        let (mut daemon, session, _) = session(
            &json!({"compaction": {"remoteEndpoint": url},
            "tokens": {"estimator": "chars"}, "retry": {"maxRetries": 0}})
            .to_string(),
            &whole_turns(),
        );
        let answer = compact(&mut daemon, &session, json!({}));
        assert_eq!(answer["result"]["method"], "extractive", "{url}: {answer:#}");
        let rejected = &answer["result"]["rejected"];
        assert_eq!((rejected.as_array().map(Vec::len), &rejected[0]["method"]), (Some(1), &json!("remote")), "{url}");
        assert!(rejected[0]["why"].as_str().expect("a text").contains(why), "{url}: {rejected}");
        assert_eq!(rejected[0]["error"]["code"], "provider_error", "{url}");
    }
    assert!(plain.asked().is_empty());
}

#[test]
fn a_secret_of_a_service_is_not_kept() {
    let secret = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ";
    let said = good("by the service") + &format!("\n- the key is {secret}");
    let service =
        Service::start(move |_| Reply::json(&json!({"summary": said, "shortSummary": format!("It is {secret}.")})));
    let provider = model();
    let (mut daemon, session, path) = session(&with_service(&service.url("/"), &provider, json!({})), &whole_turns());
    let answer = compact(&mut daemon, &session, json!({}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    assert!(!std::fs::read_to_string(&path).expect("a file").contains(secret));
    assert!(daemon.events.iter().all(|event| !event.to_string().contains(secret)));
}

#[test]
fn a_summary_that_has_to_be_of_a_model_is_not_asked_of_a_service() {
    let (service, provider) = (Service::start(good_service), model());
    let (mut daemon, session, _) = session(&with_service(&service.url("/"), &provider, json!({})), &whole_turns());
    assert_eq!(compact(&mut daemon, &session, json!({"method": "llm"}))["result"]["method"], "llm");
    assert!(service.asked().is_empty());
}

#[test]
fn a_request_to_a_service_ends_with_its_compaction() {
    let (service, provider) = (Service::start(|_| Reply::Hang), model());
    let (mut daemon, session, _) = session(&with_service(&service.url("/"), &provider, json!({})), &whole_turns());
    let answer = daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "wait": true}));
    let asked = std::time::Instant::now();
    while service.asked().is_empty() {
        assert!(asked.elapsed() < Duration::from_secs(20), "no request came");
        thread::sleep(Duration::from_millis(5));
    }
    daemon.ok("session/cancel", json!({"sessionId": session}));
    assert_eq!(daemon.answer(answer).expect("an answer")["outcome"], "cancelled");
    assert!(provider.asked().is_empty());
}

#[test]
fn a_long_conversation_comes_to_a_service_in_parts() {
    let (service, provider) = (Service::start(good_service), model());
    let mut messages = turns(4);
    messages.extend((0..4).map(|at| user(&text_of(50_000, &format!("part_{at}")))));
    messages.extend(turns(2));
    messages.push(user(&text_of(620, "next")));
    let (mut daemon, session, _) = session(&with_service(&service.url("/"), &provider, json!({})), &messages);
    let answer = compact(&mut daemon, &session, json!({}));
    assert_eq!(answer["result"]["method"], "remote", "{answer:#}");
    let asked = service.asked();
    assert!(asked.len() > 1, "{}", asked.len());
    assert!(asked[1].body["prompt"].as_str().expect("a text").contains("<previous-summary>"));
}
