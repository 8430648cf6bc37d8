//! Recordings of the real daemon, replayed: the same answers, the same events and the same file.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{good_model, merge, settings},
    support::*,
};
use abridged::session::recording::{
    Given,
    replay::{Performed, Reach, Replayed, Session, read, replay},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// A daemon of this command, initialized.
fn started(home: Home, command: Command) -> Daemon {
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "test", "version": "0"}}));
    daemon
}

/// A daemon that records into `recording` of its home.
fn recorded(home: Home) -> Daemon {
    let mut command = home.command();
    command.args(["serve", "--record"]).arg(home.path("recording"));
    started(home, command)
}

fn replayed(session: Session) -> Replayed {
    let life = session.opening.life;
    replay(session, &|path| fs::read(path), Instant::now()).unwrap_or_else(|error| panic!("session {life}: {error}"))
}

/// Replays every session of a recording twice. Both replays are the same.
fn replay_all(text: &str) -> Vec<(String, Replayed)> {
    let sessions = read(text).expect("a recording");
    let again = read(text).expect("a recording");
    let each = sessions.into_iter().zip(again).map(|(session, again)| {
        let id = session.opening.session_id.to_string();
        let first = replayed(session);
        assert_eq!(first.hash(), replayed(again).hash(), "two replays of session {id} differ");
        (id, first)
    });
    each.collect()
}

/// The members of batches and other frames, each by itself.
fn flat(frames: &[Value]) -> Vec<Value> {
    let members = |frame: &Value| frame.as_array().cloned().unwrap_or_else(|| vec![frame.clone()]);
    frames.iter().flat_map(members).collect()
}

/// Compares the answers of replays with those that the daemon sent. Returns the number that was compared.
fn same_answers(replays: &[(String, Replayed)], frames: &[Value]) -> usize {
    let sent: BTreeMap<String, &Value> = frames
        .iter()
        .filter(|frame| frame.get("method").is_none())
        .map(|frame| (frame["id"].to_string(), frame))
        .collect();
    let mut compared = 0;
    for (session, replayed) in replays {
        for (ticket, answer) in replayed.answers() {
            let Some(request) = replayed.requests.get(&ticket) else { continue };
            let Some(frame) = request.id.as_ref().and_then(|id| sent.get(id.get())) else { continue };
            let about = || format!("session {session}, {} {:?}", request.method, request.params);
            match answer {
                Given::Result(result) => {
                    let result: Value = serde_json::from_str(result.get()).expect("JSON");
                    assert_eq!(frame.get("result"), Some(&result), "{}: {frame:#}", about());
                }
                Given::Error(error) => {
                    let error: Value = serde_json::from_str(error.get()).expect("JSON");
                    assert_eq!(frame.get("error"), Some(&error), "{}: {frame:#}", about());
                }
                Given::TooLarge(_) => continue,
            }
            compared += 1;
        }
    }
    compared
}

/// An event without its number and its time.
fn bare(entry: Value, operation: Value, event: Value) -> Value {
    json!({"entry": entry, "operation": operation, "event": event})
}

fn events_of(replayed: &Replayed) -> Vec<Value> {
    let event = |performed: &Performed| match performed {
        Performed::Event { entry, operation, event, .. } => Some(bare(json!(entry), json!(operation), event.clone())),
        _ => None,
    };
    replayed.performed.iter().filter_map(event).collect()
}

/// Events of a session with a number, in their order, over all of its openings.
fn numbered(replays: &[(String, Replayed)], session: &str) -> Vec<(Reach, Value)> {
    let of_session = replays.iter().filter(|(id, _)| id == session).flat_map(|(_, replayed)| &replayed.performed);
    let event = |performed: &Performed| match performed {
        Performed::Event { entry, operation, reach, event } if *reach != Reach::Lost => {
            Some((*reach, bare(json!(entry), json!(operation), event.clone())))
        }
        _ => None,
    };
    of_session.filter_map(event).collect()
}

/// Compares the events of replays with those that the daemon sent, by their numbers. An event that a later subscription got
/// again is compared again. Returns the number that was compared.
fn same_events(replays: &[(String, Replayed)], frames: &[Value]) -> usize {
    let sessions: BTreeSet<&str> = replays.iter().map(|(session, _)| session.as_str()).collect();
    let mut compared = 0;
    for session in sessions {
        let expected = numbered(replays, session);
        let of_session = |frame: &&Value| frame["method"] == "session/event" && frame["params"]["sessionId"] == session;
        let mut sent: BTreeMap<usize, Value> = BTreeMap::new();
        for params in frames.iter().filter(of_session).map(|frame| &frame["params"]) {
            let number = usize::try_from(params["seq"].as_u64().expect("a number")).expect("a small number");
            let event = bare(params["entryId"].clone(), params["operationId"].clone(), params["event"].clone());
            // A daemon that was killed may have sent more than it recorded.
            if let Some((_, expected)) = expected.get(number - 1) {
                assert_eq!(&event, expected, "event {number} of session {session}");
                compared += 1;
            }
            sent.insert(number, event);
        }
        // A daemon that was killed may have recorded more than it sent, or less.
        if replays.iter().filter(|(id, _)| id == session).all(|(_, replayed)| replayed.end.is_some()) {
            let missing =
                |(at, (reach, _)): &(usize, &(Reach, Value))| *reach == Reach::Sent && !sent.contains_key(&(at + 1));
            let missing: Vec<_> = expected.iter().enumerate().filter(missing).collect();
            assert!(missing.is_empty(), "session {session} sent nothing of {missing:#?}");
            let more: Vec<_> = sent.range(expected.len() + 1..).collect();
            assert!(more.is_empty(), "session {session} sent more than {} events: {more:#?}", expected.len());
        }
    }
    compared
}

/// Ends a daemon and compares its recording with everything that it sent, and with the files of its sessions.
fn compare(mut daemon: Daemon, answers: &mut Vec<Value>) -> Vec<(String, Replayed)> {
    daemon.end();
    let text = fs::read_to_string(daemon.home.path("recording")).expect("a recording");
    let replays = replay_all(&text);
    let mut frames = flat(&daemon.events);
    frames.append(answers);
    assert!(same_answers(&replays, &frames) > 0);
    same_events(&replays, &frames);
    let files: Vec<Option<PathBuf>> =
        read(&text).expect("a recording").into_iter().map(|session| session.opening.file).collect();
    let mut last: BTreeMap<PathBuf, &Replayed> = BTreeMap::new();
    for (file, (_, replayed)) in files.into_iter().zip(&replays) {
        last.extend(file.map(|file| (file, replayed)));
    }
    for (file, replayed) in last {
        let real = fs::read(&file).expect("a file");
        let played = replayed.file.as_ref().expect("a file");
        assert!(real == *played, "{} differs:\n{}\n---\n{}", file.display(), lossy(&real), lossy(played));
    }
    replays
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A client that keeps every answer for the comparison.
struct Client {
    daemon: Daemon,
    answers: Vec<Value>,
}

impl Client {
    fn new(home: Home) -> Self {
        Self { daemon: recorded(home), answers: Vec::new() }
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.daemon.begin(method, params);
        self.answer(id)
    }

    fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.daemon.answer(id);
        self.answers.push(match &answer {
            Ok(result) => json!({"id": id, "result": result}),
            Err(error) => json!({"id": id, "error": error}),
        });
        answer
    }

    fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method} failed: {error:#}"))
    }

    /// A new session. Returns its id.
    fn new_session(&mut self, params: Value) -> Value {
        self.ok("session/new", params)["session"]["sessionId"].clone()
    }

    /// Opens a file. Returns the id of its session.
    fn load(&mut self, params: Value) -> Value {
        self.ok("session/load", params)["session"]["sessionId"].clone()
    }

    /// Ends the daemon. Returns the text of its recording.
    fn recording(&mut self) -> String {
        self.daemon.end();
        fs::read_to_string(self.daemon.home.path("recording")).expect("a recording")
    }

    fn compare(mut self) -> Vec<(String, Replayed)> {
        compare(self.daemon, &mut self.answers)
    }
}

#[test]
fn a_recorded_dialogue_replays_with_the_same_answers_events_and_file() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::server_error(), Step::rate_limited(0)]);
    provider.otherwise(|asked: &Asked| good_model(asked));
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let mut client = Client::new(home);
    let session = client.new_session(json!({"cwd": "/project", "title": "A title", "systemPrompt": "Be kind."}));
    let of = |mut more: Value| {
        merge(&mut more, json!({"sessionId": session}));
        more
    };
    // Pipelined: the appends become one write or several.
    let pipelined: Vec<u64> = turns(12)
        .into_iter()
        .map(|message| client.daemon.begin("session/append", of(json!({"messages": [message]}))))
        .collect();
    for id in pipelined {
        client.answer(id).expect("appended");
    }
    let written = client.ok("session/compact", of(json!({"keepRecentTokens": 600, "wait": true})));
    assert_eq!(written["result"]["method"], "llm", "{written:#}");
    client.ok("session/context", of(json!({})));
    client.ok("session/context", of(json!({"format": "anthropic"})));
    let pinned = client.ok("session/pin", of(json!({"text": "Never touch the lock."})));
    client.ok("session/undo_compaction", of(json!({})));
    client.ok("session/configure", of(json!({"systemPrompt": "Be brief.", "title": "Another"})));
    client.ok("settings/set", of(json!({"scope": "session", "patch": {"compaction": {"keepRecentTokens": 700}}})));
    client.ok("settings/get", of(json!({})));
    client.ok("models/list", of(json!({})));
    client.ok("session/unpin", of(json!({"entryId": pinned["entryId"]})));
    client.ok("session/compact", of(json!({"dryRun": true})));
    client.ok("session/compact", of(json!({"method": "extractive", "keepRecentTokens": 600, "wait": true})));
    client.call("session/append", of(json!({"messages": []}))).expect_err("no messages");
    client.ok("hooks/set", json!({"events": ["session_before_tree"], "timeoutMs": 200}));
    client.call("session/label", of(json!({"entryId": "none", "label": "x"}))).expect_err("no entry");
    for method in ["session/status", "session/usage", "session/tree", "session/entries", "session/cancel"] {
        client.ok(method, of(json!({})));
    }
    client.ok("session/search", of(json!({"query": "part_3"})));
    client.ok("session/close", of(json!({})));
    let again = client.ok("session/load", json!({"sessionId": session}));
    assert_eq!(again["session"]["sessionId"], session);
    client.ok("session/append", of(json!({"messages": [user("after the reload")]})));
    client.ok("session/load", json!({"sessionId": session}));
    client.ok("session/close", of(json!({})));
    let replays = client.compare();
    assert_eq!(replays.len(), 2, "one for each opening");
    let (_, first) = &replays[0];
    let answers = first.answers().into_iter().filter(|(ticket, _)| first.requests[ticket].method == "session/status");
    let shown = |answer: &Given| matches!(answer, Given::Result(it) if it.get().contains(r#""timeoutMs":200"#));
    assert!(answers.map(|(_, answer)| answer).any(shown), "the replayed session has the hooks");
    assert!(events_of(&replays[0].1).iter().any(|event| event["event"]["type"] == "retry_start"));
}

#[test]
fn the_events_of_subscriptions_replay() {
    let mut client = Client::new(Home::new());
    let session = client.new_session(json!({"cwd": "/", "ephemeral": true}));
    let of = |mut more: Value| {
        merge(&mut more, json!({"sessionId": session}));
        more
    };
    let append = |client: &mut Client, text: &str| {
        client.ok("session/append", of(json!({"messages": [user(text)]})));
    };
    append(&mut client, "The first.");
    let seen = client.ok("session/subscribe", of(json!({})));
    client.ok("session/unsubscribe", of(json!({})));
    append(&mut client, "Not seen.");
    let after = json!({"epoch": seen["epoch"], "seq": seen["seq"]});
    let missed = client.ok("session/subscribe", of(json!({"after": after})));
    assert!(missed["replayed"].as_u64() > Some(0), "{missed:#}");
    append(&mut client, "Seen.");
    client.ok("session/subscribe", of(json!({"after": after})));
    client.ok("session/unsubscribe", of(json!({})));
    append(&mut client, "Never seen.");
    client.ok("session/close", of(json!({})));
    let replays = client.compare();
    let reach = |text: &str| {
        let events = numbered(&replays, &replays[0].0);
        let event = events
            .iter()
            .find(|(_, event)| event["event"]["type"] == "entry_appended" && event.to_string().contains(text));
        event.expect("an event").0
    };
    assert_eq!(
        ["The first.", "Not seen.", "Seen.", "Never seen."].map(reach),
        [Reach::Sent, Reach::Kept, Reach::Sent, Reach::Kept]
    );
}

/// The comparison fails where the events after a subscription are others.
#[test]
fn an_event_behind_a_subscription_is_compared() {
    let mut client = Client::new(Home::new());
    let session = client.new_session(json!({"cwd": "/", "ephemeral": true}));
    client.ok("session/subscribe", json!({"sessionId": session}));
    client.ok("session/append", json!({"sessionId": session, "messages": [user("A last word.")]}));
    client.ok("session/close", json!({"sessionId": session}));
    let replays = replay_all(&client.recording());
    let frames = flat(&client.daemon.events);
    assert!(same_events(&replays, &frames) > 0);
    let fails = |frames: &[Value]| std::panic::catch_unwind(|| same_events(&replays, frames)).is_err();
    let is_entry = |frame: &Value| frame["params"]["event"]["type"] == "entry_appended";
    let others: Vec<Value> = frames.iter().filter(|frame| !is_entry(frame)).cloned().collect();
    assert!(others.len() < frames.len() && fails(&others), "an event is missing");
    let mut changed = frames.clone();
    let entry = changed.iter_mut().find(|frame| is_entry(frame)).expect("an event");
    entry["params"]["event"]["entry"]["message"]["content"] = json!("Another word.");
    assert!(fails(&changed), "an event is another one");
}

#[test]
fn a_cancelled_and_a_failing_summary_replay() {
    let provider = Provider::start(Format::OpenAiChat);
    // Both parts of the first summary fail.
    provider.script([Step::unauthorized(), Step::unauthorized(), Step::hang()]);
    provider.otherwise(|asked: &Asked| good_model(asked));
    let home = Home::new();
    home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
    let path = session_of(&home, "s", &turns(16));
    let mut client = Client::new(home);
    let session = client.load(json!({"path": path}));
    let compact = json!({"sessionId": session, "keepRecentTokens": 600, "wait": true});
    let failed = client.ok("session/compact", compact.clone());
    assert_eq!(failed["result"]["method"], "extractive", "{failed:#}");
    client.ok("session/undo_compaction", json!({"sessionId": session}));
    let hanging = client.daemon.begin("session/compact", compact.clone());
    provider.wait_for(3);
    let waiting = client.daemon.begin("session/compact", compact.clone());
    client.ok("session/append", json!({"sessionId": session, "messages": [user("meanwhile")]}));
    client.ok("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.answer(hanging).expect("an answer")["outcome"], "cancelled");
    let _ = client.answer(waiting);
    let by_id = client.daemon.begin("session/context", json!({"sessionId": session, "wait": true}));
    client.daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": by_id}}));
    let _ = client.answer(by_id);
    client.ok("session/compact", compact);
    client.ok("session/close", json!({"sessionId": session}));
    client.compare();
}

#[test]
fn references_and_results_of_another_branch_replay() {
    let mut client = Client::new(Home::new());
    let path = session_of(&client.daemon.home, "s", &turns(3));
    let (session, other) = (client.load(json!({"path": path})), client.daemon.new_session(json!({"cwd": "/other"})));
    client.ok("session/append", json!({"sessionId": other, "messages": [user("Open it."), calls(&["c1"])]}));
    client.ok("session/navigate", json!({"sessionId": session, "targetEntryId": "e3", "wait": true}));
    client.ok("session/append", json!({"sessionId": session, "messages": [result("call2", "late"), user("Go on.")]}));
    for from in [other.as_str(), "nowhere", "s"] {
        let params = json!({"sessionId": session, "fromSessionId": from, "question": "Which?", "wait": true});
        let request = client.daemon.begin("session/reference", params);
        let _ = client.answer(request);
    }
    client.compare();
}

#[test]
fn a_second_writer_and_a_reload_replay() {
    let home = Home::new();
    let path = session_of(&home, "shared", &turns(6));
    let mut client = Client::new(home);
    let session = client.load(json!({"path": path}));
    let line = |id: &str, parent: &str, text: &str| {
        format!(
            "{}\n",
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": user(text)})
        )
    };
    let write = |text: &str| {
        let mut file = OpenOptions::new().append(true).open(&path).expect("a file");
        file.write_all(text.as_bytes()).expect("it is written");
    };
    let theirs = line("x1", "e23", "from elsewhere");
    write(&theirs[..20]);
    write(&theirs[20..]);
    client.ok("session/append", json!({"sessionId": session, "messages": [user("mine")]}));
    write(&line("x2", "e3", "a branch of theirs"));
    client.ok("session/append", json!({"sessionId": session, "messages": [user("mine, too")]}));
    // Half a line that stays: the next write ends it.
    write("{\"type\":\"message\",\"id\":\"x3\"");
    client.ok("session/append", json!({"sessionId": session, "messages": [user("behind half a line")]}));
    client.ok("session/append", json!({"sessionId": session, "messages": [user("a branch")], "parentEntryId": "e3"}));
    client.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    client.ok("session/tree", json!({"sessionId": session}));
    client.ok("session/close", json!({"sessionId": session}));
    client.compare();
}

#[test]
fn files_of_other_forms_and_ephemeral_sessions_replay() {
    let home = Home::new();
    let text = |name: &str, text: &str| {
        let path = home.path(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let lines: String =
        std::iter::once(header("torn")).chain(entries(&turns(2))).map(|line| format!("{line}\n")).collect();
    let torn = text("torn.jsonl", &format!("{lines}{{\"type\":\"mess"));
    let open = text("open.jsonl", lines.replace("\"torn\"", "\"open\"").trim_end());
    let old = [json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/project"})]
        .into_iter()
        .chain(
            turns(2)
                .into_iter()
                .map(|message| json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": message})),
        )
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let old = text("old.jsonl", &old);
    let broken = text("broken.jsonl", &format!("{}\u{0}\n{{broken\n", lines.replace("\"torn\"", "\"broken\"")));
    let mut bytes = fs::read(&broken).expect("a file");
    bytes.extend_from_slice(b"\xff\xfe\n");
    fs::write(&broken, bytes).expect("a file");
    let mut client = Client::new(home);
    for path in [&torn, &open, &old, &broken] {
        let session = client.load(json!({"path": path}));
        client.ok("session/append", json!({"sessionId": session, "messages": [user("one"), assistant("two")]}));
        client.ok("session/append", json!({"sessionId": session, "messages": [user("three")]}));
        client.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
        client.ok("session/entries", json!({"sessionId": session}));
        client.ok("session/close", json!({"sessionId": session}));
    }
    let session = client.new_session(json!({"cwd": "/", "ephemeral": true, "title": "gone"}));
    client.ok("session/append", json!({"sessionId": session, "messages": turns(6)}));
    client.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    client.ok("session/undo_compaction", json!({"sessionId": session}));
    let read_only = client.load(json!({"path": torn, "readOnly": true}));
    client.call("session/append", json!({"sessionId": read_only, "messages": [user("no")]})).expect_err("read-only");
    client.ok("session/context", json!({"sessionId": read_only}));
    client.compare();
}

#[test]
fn a_recording_ends_where_it_was_cut() {
    let mut client = Client::new(Home::new());
    let session = client.new_session(json!({"cwd": "/"}));
    for message in turns(3) {
        client.ok("session/append", json!({"sessionId": session, "messages": [message]}));
    }
    let text = client.recording();
    let whole = replay_all(&text).remove(0).1;
    let places = (1..text.len()).step_by(text.len() / 40).filter(|place| text.is_char_boundary(*place));
    for place in places {
        for (_, replayed) in replay_all(&text[..place]) {
            let (events, all) = (events_of(&replayed), events_of(&whole));
            assert_eq!(events, all[..events.len()]);
        }
    }
    let other = text.replacen("\"version\":1,", "\"version\":2,", 1);
    let error = read(&other).expect_err("another version").to_string();
    assert_eq!(error, "the recording has version 2, and this program replays version 1");
    let broken = text.replacen("{\"input\"", "{\"other\"", 1);
    assert!(read(&broken).expect_err("an invalid line").to_string().starts_with("line 2 of the recording is invalid"));
}

/// Runs `serve --record` with a file that cannot be made. Returns the text on stderr.
fn refused(file: &Path) -> String {
    let mut command = Home::new().command();
    command.args(["serve", "--record"]).arg(file);
    let (code, out, err) = run(command);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    err
}

#[test]
fn a_recording_that_cannot_be_made_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    fs::write(home.path("there"), "mine").expect("a file");
    assert!(refused(&home.path("there")).contains("there is something of this name already"));
    assert_eq!(fs::read_to_string(home.path("there")).expect("a file"), "mine");
    assert!(refused(&home.path("no/folder")).contains("the recording cannot be made"));
    let mut client = Client::new(home);
    client.ok("session/new", json!({"cwd": "/"}));
    client.daemon.end();
    let mode = fs::metadata(client.daemon.home.path("recording")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_recording_ends_where_the_disk_is_full_and_the_session_goes_on() {
    let home = Home::new();
    let mut command = Command::new("sh");
    let plain = home.command();
    command.args(["-c", "ulimit -f 64; exec \"$0\" serve --record \"$1\" 2>/dev/full"]);
    command.arg(plain.get_program()).arg(home.path("recording"));
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut daemon = started(home, command);
    let session = daemon.ok("session/new", json!({"cwd": "/", "ephemeral": true}))["session"]["sessionId"].clone();
    let notice = (0..400).find_map(|_| {
        let message = user(&text_of(400, "filler"));
        daemon.ok("session/append", json!({"sessionId": session, "messages": [message]}));
        daemon.events.iter().find(|frame| frame["method"] == "notice").cloned()
    });
    // A busy machine may write the recording later than it answers.
    let notice = notice.unwrap_or_else(|| {
        loop {
            let frame = daemon.frame();
            if frame["method"] == "notice" {
                break frame;
            }
        }
    });
    assert_eq!(notice["params"]["title"], "The recording has ended");
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("It goes on.")]}));
    let text = fs::read_to_string(daemon.home.path("recording")).expect("a recording");
    assert!(events_of(&replay_all(&text)[0].1).len() > 5);
}

/// A generator of random numbers for histories (Lehmer's, with the constants of `minstd_rand`).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        usize::try_from(self.0).expect("a small number") % most
    }
}

/// A random history of one session, recorded at `recording`.
fn random_history(seed: u64, recording: &Path) {
    let provider = Provider::start(Format::OpenAiResponses);
    provider.otherwise(|asked: &Asked| good_model(asked));
    let home = Home::new();
    home.settings(&settings(&provider, Format::OpenAiResponses, json!({"retry": {"baseDelayMs": 1}})));
    let path = session_of(&home, "random", &turns(3));
    let mut command = home.command();
    command.env("ABRIDGED_RECORD", recording);
    let mut daemon = started(home, command);
    daemon.load(&path);
    let mut random = Random(seed);
    let mut pipelined = Vec::new();
    for step in 0..60 {
        let old = format!("e{}", random.below(12));
        let mut params = json!({"sessionId": "random"});
        let (method, more) = match random.below(16) {
            0 => {
                let line = json!({"type": "message", "id": format!("x{step}"), "parentId": old, "timestamp": "", "message": user("theirs")});
                let mut file = OpenOptions::new().append(true).open(&path).expect("a file");
                file.write_all(format!("{line}\n").as_bytes()).expect("it is written");
                continue;
            }
            1 => ("session/append", json!({"messages": [user("a branch")], "parentEntryId": old})),
            2 => ("session/compact", json!({"keepRecentTokens": 100 + random.below(900)})),
            3 => ("session/compact", json!({"keepRecentTokens": 200, "wait": true, "method": "extractive"})),
            4 => ("session/undo_compaction", json!({})),
            5 => ("session/pin", json!({"entryId": old})),
            6 => ("session/pin", json!({"text": format!("Pinned at {step}.")})),
            7 => (
                "session/configure",
                json!({"systemPrompt": format!("Prompt {step}."), "title": format!("Title {step}")}),
            ),
            8 => ("session/cancel", json!({})),
            9 => ("session/tree", json!({"limit": 5})),
            10 => ("session/context", json!({"wait": true})),
            11 => ("session/prune", json!({})),
            12 => {
                provider.script([if random.below(2) == 0 { Step::server_error() } else { Step::overflow() }]);
                continue;
            }
            13 if step % 2 == 0 => {
                pipelined.push(daemon.begin("session/close", params.clone()));
                params = json!({});
                ("session/load", json!({"path": path}))
            }
            _ => {
                let turn = turns(12 + step).split_off(4 * (11 + step));
                ("session/append", json!({"messages": turn}))
            }
        };
        merge(&mut params, more);
        pipelined.push(daemon.begin(method, params));
        if random.below(3) == 0 {
            pipelined.drain(..).for_each(|id| drop(daemon.answer(id)));
        }
    }
    pipelined.drain(..).for_each(|id| drop(daemon.answer(id)));
    daemon.end();
}

/// Whether the client read a session's events too slowly, so that they cannot be compared one by one.
fn is_interrupted(session: &str, frames: &[Value]) -> bool {
    let resync =
        |frame: &Value| frame["method"] == "session/resync_required" && frame["params"]["sessionId"] == session;
    frames.iter().any(resync)
}

/// Random histories replay. With `ABRIDGED_REPLAY` the recording of that path is compared, or each one of that folder, with
/// the frames beside it.
#[test]
fn recordings_of_random_histories_replay() {
    let own = tempfile::tempdir().expect("a folder");
    let given = std::env::var_os("ABRIDGED_REPLAY").map(PathBuf::from);
    let recordings: Vec<PathBuf> = match given {
        Some(folder) if folder.is_dir() => {
            let files = fs::read_dir(folder).expect("a folder").flatten().map(|file| file.path());
            files.filter(|path| path.extension().is_none()).collect()
        }
        Some(file) => vec![file],
        None => (1..=3)
            .map(|seed| {
                let recording = own.path().join(format!("seed-{seed}"));
                random_history(seed, &recording);
                recording
            })
            .collect(),
    };
    let mut failed = Vec::new();
    let (mut answers, mut events) = (0, 0);
    for recording in &recordings {
        let compared = std::panic::catch_unwind(|| {
            let text = lossy(&fs::read(recording).expect("a recording"));
            let lines = fs::read_to_string(recording.with_extension("frames")).unwrap_or_default();
            let frames: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let (mut replays, frames) = (replay_all(&text), flat(&frames));
            let answers = same_answers(&replays, &frames);
            let interrupted: Vec<String> = replays
                .iter()
                .filter(|(session, _)| frames.is_empty() || is_interrupted(session, &frames))
                .map(|(session, _)| session.clone())
                .collect();
            replays.retain(|(session, _)| !interrupted.contains(session));
            (answers, same_events(&replays, &frames))
        });
        match compared {
            Ok(compared) => (answers, events) = (answers + compared.0, events + compared.1),
            Err(_) => failed.push(recording),
        }
    }
    eprintln!("{} recordings, {answers} answers and {events} events", recordings.len());
    assert!(failed.is_empty(), "{} of {} recordings differ: {failed:#?}", failed.len(), recordings.len());
    assert!(answers > 0 || std::env::var_os("ABRIDGED_REPLAY").is_some());
}

#[test]
fn no_key_and_no_header_is_in_a_recording() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| good_model(asked));
    let home = Home::new();
    let mut own: Value = serde_json::from_str(&settings(&provider, Format::Anthropic, json!({}))).expect("JSON");
    own["models"][0]["headers"] = json!({"x-gateway": "hush-header"});
    own["models"][0]["apiKeyEnv"] = json!("RECORDED_KEY");
    home.settings(&own.to_string());
    let mut command = home.command();
    command.env("ABRIDGED_RECORD", home.path("recording")).env("RECORDED_KEY", "hush-key");
    let mut daemon = started(home, command);
    let patch = json!({"models": [{"provider": "test", "id": "other", "headers": {"x-other": "hush-client"}}]});
    let session = daemon.ok("session/new", json!({"cwd": "/", "ephemeral": true}))["session"]["sessionId"].clone();
    daemon.ok("session/append", json!({"sessionId": session, "messages": turns(16)}));
    let done = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "wait": true}));
    assert_eq!(done["result"]["method"], "llm", "{done:#}");
    let _ = daemon.call("settings/set", json!({"scope": "global", "sessionId": session, "patch": patch}));
    daemon.end();
    let text = fs::read_to_string(daemon.home.path("recording")).expect("a recording");
    assert!(text.contains("masked-") && !text.contains("hush-"), "a secret is in the recording");
    replay_all(&text);
}

#[test]
fn no_key_in_an_address_a_command_or_a_refused_patch_is_in_a_recording() {
    let home = Home::new();
    let of = |word: &str| {
        json!({
            "models": [{"provider": "local", "id": "qwen", "baseUrl": format!("https://me:{word}@127.0.0.1/v1?key={word}"),
                "apiKeyCommand": ["print-key", word]}],
            "compaction": {"remoteEndpoint": format!("http://127.0.0.1:9/sum?token={word}")},
        })
    };
    home.settings(&of("hush-file").to_string());
    let mut command = home.command();
    command.env("ABRIDGED_RECORD", home.path("recording"));
    let mut daemon = started(home, command);
    let session = daemon.ok("session/new", json!({"cwd": "/"}))["session"]["sessionId"].clone();
    let mut set =
        |patch: Value| daemon.call("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
    for refused in [
        json!({"models": [{"provider": "a", "id": "b", "headers": ["hush-header"]}]}),
        json!({"models": [{"provider": "a", "id": "b", "headers": {"x": ["hush-header"]}}]}),
        json!({"models": {"headers": {"x": "hush-header"}}}),
        json!({"models": [{"provider": "a", "id": "b", "apiKeyCommand": "hush-command"}]}),
        json!({"compaction": {"remoteEndpoint": ["hush-address"]}}),
    ] {
        assert!(set(refused.clone()).is_err(), "{refused}");
    }
    daemon.end();
    let text = fs::read_to_string(daemon.home.path("recording")).expect("a recording");
    let lines = text.lines().filter(|line| line.contains("hush-")).collect::<Vec<_>>();
    assert!(text.contains("masked-") && lines.is_empty(), "a secret is in the recording: {lines:#?}");
    replay_all(&text);
}

/// The comparison fails where a replay differs in one id or one time.
#[test]
fn a_changed_recording_replays_in_another_way() {
    let mut client = Client::new(Home::new());
    let session = client.new_session(json!({"cwd": "/"}));
    for message in turns(1) {
        client.ok("session/append", json!({"sessionId": session, "messages": [message]}));
    }
    let text = client.recording();
    let replays = replay_all(&text);
    assert_eq!(same_answers(&replays, &client.answers), 4);
    let opening: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let seed = format!("\"seed\":{}", opening["opened"]["seed"]);
    let later = regex::Regex::new(r#""wall":"\d{4}"#).expect("a pattern");
    for changed in [text.replace(&seed, "\"seed\":1"), later.replace_all(&text, "\"wall\":\"2000").into_owned()] {
        assert_ne!(changed, text);
        let others = replay_all(&changed);
        assert_ne!(others[0].1.hash(), replays[0].1.hash());
        assert_ne!(others[0].1.file, replays[0].1.file);
        let compared = std::panic::catch_unwind(|| same_answers(&others, &client.answers));
        assert_eq!(compared.is_err(), changed.contains("\"seed\":1,"), "only ids are in these answers");
    }
}
