//! abridged from jsonrpsee's client: its own transport, of a child's pipes, one JSON text a line.

use jsonrpsee::core::client::{
    Client, ClientBuilder, ClientT, Error, ReceivedMessage, Subscription, SubscriptionClientT, TransportReceiverT,
    TransportSenderT,
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    env, error, fs, io,
    path::Path,
    process::{self, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex, watch},
    time::timeout,
};

/// The daemon's stdin. Requests go into it, and our answers to the daemon's.
type Stdin = Arc<Mutex<ChildStdin>>;

struct Sender {
    to: Stdin,
    /// The id of the newest request: jsonrpsee keeps it to itself, and who takes a request back must know it.
    newest: watch::Sender<Value>,
}

impl TransportSenderT for Sender {
    type Error = io::Error;

    async fn send(&mut self, mut message: String) -> io::Result<()> {
        let id = serde_json::from_str::<Value>(&message)?["id"].take();
        message.push('\n');
        self.to.lock().await.write_all(message.as_bytes()).await?;
        if !id.is_null() {
            self.newest.send_replace(id);
        }
        Ok(())
    }
}

/// The daemon's stdout. jsonrpsee's client takes a request for a notification and never answers, so the daemon's requests
/// are taken out here.
struct Receiver {
    from: Lines<BufReader<ChildStdout>>,
    to: Stdin,
}

impl TransportReceiverT for Receiver {
    type Error = io::Error;

    async fn receive(&mut self) -> io::Result<ReceivedMessage> {
        loop {
            let line = self.from.next_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let frame: Value = serde_json::from_str(&line)?;
            if frame.get("method").is_none() || frame.get("id").is_none() {
                return Ok(ReceivedMessage::Text(line));
            }
            // In a task of its own: a model takes its time, and more comes meanwhile.
            let to = self.to.clone();
            tokio::spawn(async move {
                let answer = format!("{}\n", answer(&frame).await);
                // A daemon that is gone waits for no answer.
                let _ = to.lock().await.write_all(answer.as_bytes()).await;
            });
        }
    }
}

/// Our answer to a request of the daemon.
async fn answer(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("llm/complete") => {
            let message = complete(&request["params"]).await;
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "message": message } })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "no such request" });
            json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })
        }
    }
}

/// Runs a model; this one writes summaries and nothing else. Usage is left out, as nobody knows it here.
async fn complete(params: &Value) -> Value {
    let text = match params["purpose"].as_str() {
        Some("compaction") => "## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones",
        Some("turn_prefix") => "## Original Request\nThe next step.\n\n## Early Progress\n- begun",
        _ => SHORT,
    };
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }], "stopReason": "stop" })
}

const SHORT: &str = "The first steps are done. More will come.";

/// A daemon of our own.
struct Abridged {
    child: Child,
    client: Client,
    newest: watch::Receiver<Value>,
}

impl Abridged {
    /// Starts it, with its things in `home`, and listens to its events.
    async fn start(home: &Path) -> Result<(Self, Subscription<Value>), Failure> {
        let mut child = Command::new(env::var_os("ABRIDGED_BIN").unwrap_or("abridged".into()))
            .arg("serve")
            .env("ABRIDGED_DATA_DIR", home.join("data"))
            .env("ABRIDGED_CONFIG_DIR", home.join("config"))
            .env("ABRIDGED_DISABLE_AUTOCOMPACT", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the daemon has no pipes".into());
        };
        let (sender, newest) = watch::channel(Value::Null);
        let to = Arc::new(Mutex::new(to));
        let receiver = Receiver { from: BufReader::new(from).lines(), to: to.clone() };
        let client = ClientBuilder::new()
            // A subscription that holds more events than this, because nobody reads them, is closed without a word.
            .max_buffer_capacity_per_subscription(4096)
            .build_with_tokio(Sender { to, newest: sender }, receiver);
        let events = client.subscribe_to_method("session/event").await?;
        let daemon = Self { child, client, newest };
        let info = json!({ "name": "jsonrpsee", "version": "0.26" });
        let hello = json!({ "protocolVersion": 1, "clientInfo": info, "processId": process::id(), "capabilities": { "llm": {} } });
        daemon.call("initialize", hello).await?;
        Ok((daemon, events))
    }

    /// Sends a request and waits for its result.
    async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        self.client.request(method, params.as_object().cloned().unwrap_or_default()).await
    }

    /// Sends a request and takes it back at once. Dropping its future would tell the daemon nothing.
    async fn call_and_take_back(&self, method: &str, params: Value) -> Result<Value, Error> {
        let mut newest = self.newest.clone();
        newest.mark_unchanged();
        let take_back = async {
            newest.changed().await.map_err(|_| Error::Custom("the daemon is gone".to_owned()))?;
            let id = newest.borrow().clone();
            self.client.notification("$/cancelRequest", serde_json::Map::from_iter([("id".to_owned(), id)])).await
        };
        let (answer, taken_back) = tokio::join!(self.call(method, params), take_back);
        taken_back.and(answer)
    }

    /// Asks it to go, and waits until it has.
    async fn end(mut self) -> Result<process::ExitStatus, Failure> {
        self.call("shutdown", json!({})).await?;
        self.client.notification("exit", serde_json::Map::new()).await?;
        Ok(self.child.wait().await?)
    }
}

type Failure = Box<dyn error::Error>;

/// The events so far, and those to come.
struct Events {
    seen: Vec<Value>,
    next: Subscription<Value>,
}

impl Events {
    /// Reads on to the end of this operation. Answers and events come by ways of their own, so it may be there already.
    async fn end_of(&mut self, operation: &Value) -> Result<Value, Failure> {
        let ends = |params: &&Value| params["event"]["type"] == "compaction_end" && params["operationId"] == *operation;
        loop {
            if let Some(end) = self.seen.iter().find(ends) {
                return Ok(end["event"].clone());
            }
            self.seen.push(self.next.next().await.ok_or("the events ended")??);
        }
    }

    /// All of them, when the daemon is gone.
    async fn all(mut self) -> Result<Vec<Value>, Failure> {
        while let Some(event) = self.next.next().await {
            self.seen.push(event?);
        }
        Ok(self.seen)
    }
}

/// A question and its answer, as a host with its own agent loop reports them.
fn turn(number: usize) -> [Value; 2] {
    let text = match number {
        50 => "x".repeat(45_000),
        _ => format!("Step {number}: Größe, 東京 and 🚢 stay as they are. ").repeat(10),
    };
    let (input, total) = (100 * number, 100 * number + 50);
    let usage = json!({ "input": input, "output": 50, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total });
    let content = json!([{ "type": "text", "text": text }]);
    [
        json!({ "role": "user", "content": format!("What is step {number}?") }),
        json!({ "role": "assistant", "content": content, "usage": usage, "stopReason": "stop" }),
    ]
}

/// A message whose tokens take a while to count. A compaction waits for that: long enough to change one's mind.
fn large() -> [Value; 1] {
    [json!({ "role": "user", "content": "Größe, 東京, 🚢\n".repeat(200_000) })]
}

async fn interop(home: &Path) -> Result<usize, Failure> {
    let (daemon, events) = Abridged::start(home).await?;
    let mut events = Events { seen: Vec::new(), next: events };
    let session = daemon.call("session/new", json!({ "cwd": home })).await?["session"]["sessionId"].take();
    for number in 0..80 {
        daemon.call("session/append", json!({ "sessionId": session, "messages": turn(number) })).await?;
    }

    // Cancelled by its session: the cancel is sent right behind it.
    daemon.call("session/append", json!({ "sessionId": session, "messages": large() })).await?;
    let (compacting, cancelling) = tokio::try_join!(
        daemon.call("session/compact", json!({ "sessionId": session })),
        daemon.call("session/cancel", json!({ "sessionId": session })),
    )?;
    let cancelled = json!([{ "operationId": compacting["operationId"], "kind": "compaction" }]);
    check(cancelling["cancelled"] == cancelled, "the cancel found something else")?;
    let end = events.end_of(&compacting["operationId"]).await?;
    check(end["outcome"] == "cancelled", "a cancelled compaction went on")?;

    // Cancelled by taking the request back: it ends with the normal answer of a compaction that was cancelled, or,
    // where it had not begun, with an error.
    daemon.call("session/append", json!({ "sessionId": session, "messages": large() })).await?;
    let taken_back = daemon.call_and_take_back("session/compact", json!({ "sessionId": session, "wait": true })).await;
    check(
        match &taken_back {
            Ok(answer) => answer["outcome"] == "cancelled",
            Err(Error::Call(error)) => error.code() == -32800,
            Err(_) => false,
        },
        &format!("what was taken back ended with {taken_back:?}"),
    )?;

    // Done: the answer gives the id, the end is an event.
    let mut appended = Value::Null;
    for number in 80..100 {
        appended = daemon.call("session/append", json!({ "sessionId": session, "messages": turn(number) })).await?;
    }
    check(appended["usage"]["contextTokens"].as_u64() >= Some(9950), "the provider's count is not taken over")?;
    let compact = json!({ "sessionId": session, "keepRecentTokens": 2000 });
    let operation = daemon.call("session/compact", compact).await?["operationId"].take();
    let end = events.end_of(&operation).await?;
    check(end["outcome"] == "completed", &format!("the compaction ended with {end}"))?;
    let context = daemon.call("session/context", json!({ "sessionId": session })).await?;
    check(context["compactionEntryId"] == end["result"]["entryId"], "the context is not the compacted one")?;
    let newest = context["messages"].as_array().and_then(|messages| messages.last());
    check(newest.map(|it| &it["content"]) == Some(&turn(99)[1]["content"]), "the newest answer is not as it was")?;

    // A file from elsewhere opens where it lies.
    let path = home.join("elsewhere.jsonl");
    let timestamp = "2026-01-01T00:00:00.000Z";
    let head = json!({ "type": "session", "version": 3, "id": "elsewhere", "timestamp": timestamp, "cwd": home });
    fs::write(&path, format!("{head}\n"))?;
    let other = daemon.call("session/load", json!({ "path": path })).await?["session"]["sessionId"].take();
    daemon.call("session/append", json!({ "sessionId": other, "messages": turn(1) })).await?;

    // A session whose model only we can run: its summary is asked of us.
    let new = json!({ "cwd": home, "model": "editor/writer" });
    let ours = daemon.call("session/new", new).await?["session"]["sessionId"].take();
    for number in 0..20 {
        daemon.call("session/append", json!({ "sessionId": ours, "messages": turn(number) })).await?;
    }
    let compact = json!({ "sessionId": ours, "keepRecentTokens": 1000, "wait": true });
    let answer = daemon.call("session/compact", compact).await?;
    let result = &answer["result"];
    check(result["method"] == "llm" && result["rejected"] == json!([]), &format!("no summary of ours: {result}"))?;
    let summary = result["summary"].as_str().unwrap_or_default();
    check(summary.contains("Go through the steps."), &format!("another summary than ours: {summary}"))?;
    check(result["shortSummary"] == SHORT, "another short one")?;

    check(daemon.end().await?.success(), "the daemon did not end well")?;
    let events = events.all().await?;
    check_events(&events, &session, &[&operation, &answer["operationId"]])?;
    Ok(events.len())
}

fn check_events(events: &[Value], session: &Value, completed: &[&Value]) -> Result<(), Failure> {
    let mut last = HashMap::new();
    let mut open = HashSet::new();
    let mut ends = Vec::new();
    for params in events {
        let (event, operation) = (&params["event"], params["operationId"].as_str());
        let seq = params["seq"].as_u64().ok_or("an event without a number")?;
        let before = last.insert((params["sessionId"].as_str(), params["epoch"].as_str()), seq);
        check(before.is_none_or(|before| seq == before + 1), &format!("a gap before {params}"))?;
        match event["type"].as_str() {
            Some("compaction_start") => check(open.insert(operation), "two starts")?,
            Some("compaction_end") => {
                check(open.remove(&operation), &format!("an end without its start, or a second one: {params}"))?;
                ends.push(event["outcome"].as_str().unwrap_or_default());
                check(
                    (event["outcome"] == "completed") == completed.contains(&&params["operationId"]),
                    "the wrong one ended",
                )?;
            }
            _ => {}
        }
    }
    check(open.is_empty(), "a start without an end")?;
    check(last.len() == 3, "events of three sessions are there")?;
    // The request that was taken back ends as cancelled, or never began.
    let outcomes = ends.join(" ");
    let right =
        ["cancelled completed completed", "cancelled cancelled completed completed"].contains(&outcomes.as_str());
    check(right, &format!("they ended as {outcomes}"))?;
    let of_session = events.iter().rev().filter(|params| params["sessionId"] == *session);
    let types: Vec<_> = of_session.map(|params| &params["event"]["type"]).take(2).collect();
    check(types == ["settled", "status_changed"], &format!("the last events are {types:?}"))?;
    let text = |params: &Value| params["event"]["entry"]["message"]["content"][0]["text"].clone();
    let whole = events.iter().filter(|params| text(params) == "x".repeat(45_000));
    check(whole.count() == 1, "45,000 characters did not come as a whole")?;
    let appended = events.iter().map(|params| &params["event"]).filter(|event| event["type"] == "entry_appended");
    let announced = appended.filter(|event| event.get("entry").is_none());
    check(announced.count() == 2, "the large messages are not announced by their type alone")
}

fn check(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let home = env::temp_dir().join(format!("abridged-{}", process::id()));
    let result = match fs::create_dir(&home) {
        Ok(()) => timeout(Duration::from_secs(60), interop(&home)).await.unwrap_or_else(|late| Err(late.into())),
        Err(error) => Err(error.into()),
    };
    let _ = fs::remove_dir_all(&home);
    match result {
        Ok(events) => println!("jsonrpsee: ok, {events} events"),
        Err(failure) => {
            eprintln!("jsonrpsee: {failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
