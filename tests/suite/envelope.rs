//! Frames, requests and answers: what any JSON-RPC client may throw at the daemon.

use crate::support::{Daemon, Home, assistant, run, session_of, text_of, turns, user};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;

fn code(error: &Value) -> (i64, &str) {
    (error["code"].as_i64().expect("a number"), error["data"]["code"].as_str().expect("a code"))
}

#[test]
fn nothing_is_answered_before_initialize_and_it_happens_once() {
    let mut daemon = Daemon::silent(Home::new());
    assert_eq!(code(&daemon.err("ping", json!({}))), (-32010, "not_initialized"));
    assert_eq!(
        code(&daemon.err("initialize", json!({"protocolVersion": 9}))),
        (-32022, "unsupported_protocol_version")
    );
    let answer = daemon.ok("initialize", json!({}));
    assert_eq!(answer["protocolVersion"], 1);
    assert_eq!(answer["serverInfo"]["name"], "abridged");
    assert_eq!(answer["limits"]["maxInboundFrameBytes"], 64 << 20);
    assert!(answer["epoch"].is_string() && answer["dataDir"].is_string());
    assert_eq!(code(&daemon.err("initialize", json!({}))), (-32600, "already_initialized"));
    assert_eq!(daemon.ok("ping", json!({})), json!({}));
}

#[test]
fn ids_come_back_as_they_were_and_others_are_refused() {
    let mut daemon = Daemon::start();
    for id in ["7", "-1", "\"x\"", "\"\"", "123456789012345678901234567890"] {
        daemon.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes());
        let answer = daemon.frame();
        let expected: Value = serde_json::from_str(id).expect("JSON");
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": expected, "result": {}}), "{id}");
    }
    for id in ["null", "1.5", "true", "{}", "[1]"] {
        daemon.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes());
        let answer = daemon.frame();
        assert_eq!(answer["id"], Value::Null, "{id}");
        assert_eq!(code(&answer["error"]), (-32600, "invalid_request"), "{id}");
    }
}

#[test]
fn what_is_no_request_is_answered_and_the_next_one_works() {
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(&[u8], i64)> = vec![
        (b"{not json}\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n", -32700),
        (b"5\n", -32600),
        (b"\"text\"\n", -32600),
        (b"{}\n", -32600),
        (b"{\"id\":1,\"method\":7}\n", -32600),
        (b"{\"id\":1,\"id\":2,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}\n", -32600),
        (b"[]\n", -32600),
    ];
    let mut daemon = Daemon::start();
    for (bytes, expected) in cases {
        daemon.write(bytes);
        let answer = daemon.frame();
        assert_eq!(answer["error"]["code"], expected, "{:.80}", String::from_utf8_lossy(bytes));
        assert_eq!(daemon.ok("ping", json!({})), json!({}));
    }
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    let nested = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    daemon.write(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/append\",\"params\":{{\"sessionId\":{session},\"messages\":[{{\"role\":\"user\",\"content\":\"x\",\"details\":{nested}}}]}}}}\n")
            .as_bytes(),
    );
    let answer = daemon.frame();
    assert_eq!(answer["error"]["data"]["path"], "messages[0]", "too deep for any reader behind us");
    daemon.write(deep.as_bytes());
    let answer = daemon.frame();
    let answer = if answer.is_array() { answer[0].clone() } else { answer };
    assert!([-32700, -32600].contains(&answer["error"]["code"].as_i64().expect("a code")), "{answer}");
    assert_eq!(daemon.ok("ping", json!({})), json!({}));
}

#[test]
fn wrong_params_and_methods_are_told_with_what_to_do() {
    let mut daemon = Daemon::start();
    let unknown = daemon.err("session/frobnicate", json!({}));
    assert_eq!(code(&unknown), (-32601, "method_not_found"));
    assert!(unknown["message"].as_str().expect("a text").contains("rpc.discover"));
    for (method, params, path) in [
        ("session/status", json!({}), "sessionId"),
        ("session/status", json!({"sessionId": 7}), "sessionId"),
        ("session/new", json!({}), "cwd"),
        ("session/new", json!({"cwd": "/", "model": "nothing"}), "model"),
        (
            "session/new",
            json!({"cwd": "/", "settings": {"compaction": {"reserveTokens": "many"}}}),
            "settings.compaction.reserveTokens",
        ),
        ("session/compact", json!({"sessionId": "s", "keepRecentTokens": -4}), "keepRecentTokens"),
        ("session/append", json!({"sessionId": "s", "messages": {}}), "messages"),
        ("session/load", json!({}), "sessionId"),
        ("session/load", json!(["x"]), ""),
    ] {
        let error = daemon.err(method, params.clone());
        assert_eq!(code(&error), (-32602, "invalid_params"), "{method} {params}");
        assert_eq!(error["data"]["path"], path, "{method} {params}: {error}");
    }
    let missing = daemon.err("session/status", json!({"sessionId": "s"}));
    assert_eq!(code(&missing), (-32002, "not_found"));
    assert_eq!(missing["data"]["kind"], "session");
    // Neovim's empty table.
    assert_eq!(daemon.ok("session/list", json!([]))["sessions"], json!([]));
    assert_eq!(daemon.ok("ping", json!([])), json!({}));
}

#[test]
fn a_misspelt_param_is_refused_and_other_unknown_ones_are_named_in_the_answer() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/"}));
    let error = daemon.err("session/compact", json!({"sessionId": session, "dryrun": true}));
    assert_eq!((code(&error), &error["data"]["path"]), ((-32602, "invalid_params"), &json!("dryrun")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains("did you mean \"dryRun\"")), "{error}");
    assert_eq!(daemon.count("compaction_start"), 0);
    let status = daemon.ok("session/status", json!({"sessionId": session, "zebra": 1, "_meta": {"dryrun": 1}}));
    assert_eq!(status["_meta"]["ignored"], json!(["zebra"]));
    assert!(status["_meta"]["writes"].is_u64(), "beside the other members: {status}");
    let message = json!({"role": "user", "content": "x", "zebra": 1});
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [message], "giraffe": 2}));
    assert_eq!(answer["_meta"], json!({"ignored": ["giraffe"]}));
    let entries = daemon.ok("session/entries", json!({"sessionId": session, "giraffe": 2}));
    assert_eq!(
        (&entries["_meta"], entries["entries"].as_array().map(Vec::len)),
        (&json!({"ignored": ["giraffe"]}), Some(1))
    );
    assert_eq!(daemon.ok("session/status", json!({"sessionId": session}))["_meta"]["ignored"], Value::Null);
    assert_eq!(daemon.ok("session/close", json!({"sessionId": session, "giraffe": 2})), Value::Null);
    let notice =
        daemon.next_within(std::time::Duration::from_secs(10), |frame| frame["method"] == "notice").expect("a notice");
    assert_eq!(notice["params"]["title"], "Params were ignored");
    assert_eq!(notice["params"]["code"], "params_ignored");
    assert!(notice["params"]["detail"].as_str().is_some_and(|text| text.contains("`giraffe`")), "{notice}");
}

#[test]
fn a_batch_is_answered_together_and_notifications_not_at_all() {
    let mut daemon = Daemon::start();
    daemon.send(&json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "ping"},
        {"jsonrpc": "2.0", "id": "b", "method": "nothing"},
        7,
    ]));
    let answers = daemon.frame();
    let answers = answers.as_array().expect("a batch of answers");
    assert_eq!(answers.len(), 3);
    let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).expect("an answer").clone();
    assert_eq!(of(json!("a"))["result"], json!({}));
    assert_eq!(of(json!("b"))["error"]["code"], -32601);
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    daemon.send(&json!([{"jsonrpc": "2.0", "method": "ping"}]));
    assert_eq!(daemon.ok("ping", json!({})), json!({}), "a batch of notifications has no answer");
}

#[test]
fn content_length_frames_are_answered_in_kind() {
    let home = Home::new();
    let mut child = home.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut to = child.stdin.take().expect("a pipe");
    for body in
        [r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}"#, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#]
    {
        write!(to, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the daemon reads");
    }
    write!(to, "nonsense\r\n\r\n").expect("the daemon reads");
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    assert_eq!(child.wait().expect("an end").code(), Some(0), "a broken header ends the connection");
    let mut rest = out.as_str();
    let mut ids = Vec::new();
    while let Some(after) = rest.strip_prefix("Content-Length: ") {
        let (length, body) = after.split_once("\r\n\r\n").expect("a header ends");
        let (frame, tail) = body.split_at(length.parse().expect("a number"));
        let frame: Value = serde_json::from_str(frame).expect("JSON");
        ids.push((frame["id"].clone(), frame["error"]["code"].clone()));
        rest = tail;
    }
    assert_eq!(rest, "");
    assert_eq!(ids, [(json!(1), Value::Null), (json!(2), Value::Null), (Value::Null, json!(-32700))]);
    // The peer can also say so beforehand.
    let mut command = home.command();
    command.args(["serve", "--framing", "ndjson"]);
    let mut daemon = Daemon::of(Home::new(), command);
    daemon.write(b"letters\n");
    assert_eq!(daemon.frame()["error"]["code"], -32700);
}

#[test]
fn what_was_read_before_the_end_is_answered_and_the_end_comes_soon() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    let messages = json!([{"role": "user", "content": "hello"}]);
    let ids: Vec<u64> =
        (0..100).map(|_| daemon.begin("session/append", json!({"sessionId": session, "messages": messages}))).collect();
    // The last frame has no newline: it is one all the same.
    daemon.write(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    let (status, took) = daemon.end();
    assert!(status.success());
    assert!(took.as_secs() < 2, "{took:?}");
    for id in ids {
        assert!(daemon.events.iter().any(|frame| frame["id"] == id && frame["result"]["entryIds"].is_array()), "{id}");
    }
    assert!(daemon.events.iter().any(|frame| frame["id"] == "last"));
}

/// A client that begins to read late still gets what it asked for.
#[test]
fn large_answers_reach_a_client_that_reads_late() {
    let home = Home::new();
    let path = session_of(&home, "late", &turns(2_000));
    let mut child = home.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut to = child.stdin.take().expect("a pipe");
    for (id, method, params) in [
        (1, "initialize", json!({})),
        (2, "session/load", json!({"path": path})),
        (3, "session/context", json!({"sessionId": "late"})),
        (4, "session/context", json!({"sessionId": "late"})),
    ] {
        writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).expect("it reads");
    }
    drop(to);
    std::thread::sleep(std::time::Duration::from_millis(700));
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    let ids: Vec<Value> =
        out.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole frames")["id"].clone()).collect();
    for id in 1..=4 {
        assert!(ids.contains(&json!(id)), "{id} is missing: {ids:?}");
    }
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

#[test]
fn half_a_frame_at_the_end_is_told() {
    let mut daemon = Daemon::start();
    daemon.write(br#"{"jsonrpc":"2.0","id":1,"#);
    assert!(daemon.end().0.success());
    assert_eq!(daemon.events.last().expect("an answer")["error"]["code"], -32700);
}

#[test]
fn shutdown_is_answered_and_exit_ends_the_process() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    assert_eq!(daemon.ok("shutdown", json!({})), Value::Null);
    assert_eq!(code(&daemon.err("session/status", json!({"sessionId": session}))), (-32600, "invalid_request"));
    daemon.send(&json!({"jsonrpc": "2.0", "method": "exit"}));
    assert_eq!(daemon.wait().code(), Some(0));

    let mut daemon = Daemon::start();
    daemon.send(&json!({"jsonrpc": "2.0", "method": "exit"}));
    assert_eq!(daemon.wait().code(), Some(1), "exit without shutdown");
}

#[test]
fn a_signal_ends_the_daemon_in_order() {
    let mut daemon = Daemon::start();
    daemon.ok("session/new", json!({"cwd": "/project"}));
    let killed = std::process::Command::new("kill").args(["-TERM", &daemon.pid().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    assert_eq!(daemon.wait().code(), Some(0));
}

/// Something that takes longer than the daemon waits for it, and a person who does not want to wait.
#[test]
fn a_second_signal_ends_the_daemon_at_once() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "slow", &[user(&text_of(900_000, "slow")), assistant("ok"), user("on")]);
    let session = daemon.load(&path);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1}));
    let pid = daemon.pid().to_string();
    let signal = || std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
    assert!(signal().success());
    std::thread::sleep(std::time::Duration::from_millis(100));
    signal();
    daemon.wait();
    assert!(!daemon.kinds().contains(&"compaction_end".to_owned()), "nothing was waited for");
    let lock = std::fs::read_to_string(path.with_extension("jsonl.lock")).expect("what ran is noted");
    assert!(lock.contains("operationId"), "the next owner closes it: {lock}");
}

#[test]
fn the_daemon_ends_with_the_process_it_was_told_of() {
    let mut parent = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let mut daemon = Daemon::silent(Home::new());
    daemon.ok("initialize", json!({"processId": parent.id()}));
    daemon.ok("session/new", json!({"cwd": "/project"}));
    parent.kill().and_then(|()| parent.wait()).expect("sleep can be killed");
    assert_eq!(daemon.wait().code(), Some(0), "stdin is still open");
}

/// The daemon in a shell that sets a limit of open files first.
fn limited(home: &Home, limit: &str) -> std::process::Command {
    let mut shell = std::process::Command::new("sh");
    let direct = home.command();
    shell.args(["-c", &format!("{limit}; exec \"$0\" serve")]).arg(direct.get_program());
    shell.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
    let home = Home::new();
    let command = limited(&home, "ulimit -Sn 64; ulimit -Hn 400");
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({}));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).expect("limits");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    assert_eq!(files.split_whitespace().nth(3), Some("400"), "{files}");
    // More sessions than the soft limit had descriptors for.
    for _ in 0..100 {
        daemon.ok("session/new", json!({"cwd": "/p"}));
    }
}

#[test]
fn too_few_open_files_are_told_and_no_panic() {
    let home = Home::new();
    for limit in ["8", "20", "47"] {
        let (code, _, err) = run(limited(&home, &format!("ulimit -n {limit}")));
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains("ulimit -n") && !err.contains("panicked"), "{err}");
    }
    let (code, _, err) = run(limited(&home, "ulimit -n 48"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn pipelined_requests_run_in_the_order_of_the_wire() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    let mut ids = Vec::new();
    let mut sent = String::new();
    for at in 0..200 {
        let id = 1_000 + at;
        ids.push(id);
        let params = json!({"sessionId": session, "messages": [{"role": "user", "content": format!("message {at}")}]});
        sent.push_str(&format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "session/append", "params": params})
        ));
    }
    daemon.write(sent.as_bytes());
    let mut answered = Vec::new();
    while answered.len() < ids.len() {
        let frame = daemon.frame();
        if let Some(id) = frame["id"].as_u64() {
            answered.push(id);
        }
    }
    assert_eq!(answered, ids);
    let page = daemon.ok("session/entries", json!({"sessionId": session}));
    let texts: Vec<&str> = page["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .filter_map(|entry| entry["message"]["content"].as_str())
        .collect();
    assert_eq!(texts, (0..200).map(|at| format!("message {at}")).collect::<Vec<_>>());
}

#[test]
fn too_much_at_once_is_refused_and_pings_and_cancels_are_not() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "busy", &turns(400));
    let session = daemon.load(&path);
    let mut sent = String::new();
    for id in 1_000..1_700 {
        let params = json!({"sessionId": session, "keepRecentTokens": 2_000, "wait": true});
        sent.push_str(&format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "session/compact", "params": params})
        ));
    }
    sent.push_str(&format!("{}\n", json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"})));
    daemon.write(sent.as_bytes());
    let mut answers = Vec::new();
    while answers.len() < 701 {
        let frame = daemon.frame();
        if frame.get("method").is_none() {
            answers.push(frame);
        }
    }
    let ping = answers.iter().find(|answer| answer["id"] == "ping").expect("an answer");
    assert_eq!(ping["result"], json!({}));
    let known = [Value::Null, json!("busy"), json!("overloaded"), json!("nothing_to_compact")];
    for answer in &answers {
        assert!(known.contains(&answer["error"]["data"]["code"]), "{answer}");
    }
}
