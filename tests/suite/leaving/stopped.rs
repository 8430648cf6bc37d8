//! Navigations that do not come to their end: cancelled, overtaken, or killed.

use super::*;
use crate::summarizing::held_model;
use std::time::Duration;

/// A navigation whose model does not answer.
struct Held {
    daemon: Daemon,
    session: String,
    ids: [Value; 6],
    file: PathBuf,
    /// The bytes of the file before the navigation.
    before: Vec<u8>,
    /// The request, and the id of the operation.
    request: u64,
    operation: Value,
}

impl Held {
    fn start(provider: &Provider) -> Self {
        let mut daemon = asking(provider, json!({}));
        let (session, ids) = picture(&mut daemon);
        let file = path_of(&mut daemon, &session);
        let before = std::fs::read(&file).expect("a file");
        let request = begin(&mut daemon, &session, &ids[5], json!({}));
        provider.wait_for(1);
        let operation = daemon.until("branch_summary_start")["params"]["operationId"].clone();
        Self { daemon, session, ids, file, before, request, operation }
    }

    /// Nothing has changed on disk but the costs.
    fn is_unchanged(&mut self) {
        let now = std::fs::read(&self.file).expect("a file");
        assert!(now.starts_with(&self.before), "the bytes of the file stay");
        let more = String::from_utf8(now[self.before.len()..].to_vec()).expect("text");
        let is_cost = |line: &str| line.contains(r#""type":"usage""#);
        assert!(more.lines().all(is_cost), "{more}");
    }

    fn outcomes(&self) -> Vec<Value> {
        let events = self.daemon.events.iter().map(|frame| &frame["params"]["event"]);
        events.filter(|event| event["type"] == "branch_summary_end").map(|event| event["outcome"].clone()).collect()
    }
}

#[test]
fn a_cancel_while_the_model_writes_leaves_everything_as_it_was() {
    for way in ["session/cancel", "all", "$/cancelRequest"] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(|_: &_| Step::hang());
        let mut held = Held::start(&provider);
        let session = held.session.clone();
        match way {
            "$/cancelRequest" => {
                held.daemon.send(&json!({"jsonrpc": "2.0", "method": way, "params": {"id": held.request}}));
                let error = held.daemon.answer(held.request);
                let cancelled = match &error {
                    Ok(answer) => answer["outcome"] == "cancelled",
                    Err(error) => error["code"] == -32800,
                };
                assert!(cancelled, "{error:?}");
            }
            _ => {
                let params = match way {
                    "all" => of(&session),
                    _ => json!({"sessionId": session, "operationId": held.operation}),
                };
                let named = held.daemon.ok("session/cancel", params)["cancelled"].clone();
                assert_eq!(named, json!([{"operationId": held.operation, "kind": "branch_summary"}]));
                let answer = held.daemon.answer(held.request).expect("an answer");
                assert_eq!((&answer["outcome"], &answer["newLeafId"]), (&json!("cancelled"), &held.ids[3]), "{way}");
            }
        }
        provider.wait_for_close(0);
        held.daemon.until("settled");
        assert_eq!(held.outcomes(), [json!("cancelled")], "{way}");
        assert_eq!(leaf(&mut held.daemon, &session), held.ids[3], "{way}");
        held.is_unchanged();
        reopen(&mut held.daemon, &session);
        assert_eq!(leaf(&mut held.daemon, &session), held.ids[3], "{way}");
    }
}

#[test]
fn a_close_or_the_end_of_the_daemon_ends_a_navigation_once_and_moves_nothing() {
    for way in ["session/close", "shutdown", "the end of stdin"] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(|_: &_| Step::hang());
        let mut held = Held::start(&provider);
        match way {
            "session/close" => drop(held.daemon.ok(way, of(&held.session))),
            "shutdown" => drop(held.daemon.ok(way, json!({}))),
            _ => {}
        }
        held.daemon.end();
        assert_eq!(held.outcomes(), [json!("cancelled")], "{way}");
        held.is_unchanged();
        let home = std::mem::replace(&mut held.daemon.home, Home::new());
        let mut daemon = Daemon::at(home);
        let session = daemon.load(&held.file);
        assert_eq!(leaf(&mut daemon, &session), held.ids[3], "{way}");
        assert_eq!(daemon.count("branch_summary_end"), 0, "it has ended before: {way}");
    }
}

#[test]
fn messages_that_come_while_the_model_writes_stop_the_move() {
    let provider = Provider::start(Format::Anthropic);
    let (release, model) = held_model();
    provider.otherwise(model);
    let mut held = Held::start(&provider);
    let session = held.session.clone();
    let newer = say(&mut held.daemon, &session, user("One more thing."), None);
    drop(release);
    let answer = held.daemon.answer(held.request).expect("an answer");
    assert_eq!(answer["outcome"], "failed", "{answer:#}");
    assert_eq!(answer["error"]["code"], "content_modified");
    assert_eq!((&answer["newLeafId"], &answer["summaryEntryId"]), (&newer, &Value::Null));
    held.daemon.until("settled");
    assert_eq!(held.outcomes(), [json!("failed")]);
    let events = held.daemon.events_since(0);
    let told = event(&events, "branch_summary_end")["errorMessage"].as_str().expect("a text");
    assert!(told.contains("then send the request again"), "{told}");
    assert_eq!(leaf(&mut held.daemon, &session), newer);
    assert!(lines(&mut held.daemon, &session, "branch_summary").is_empty());
    assert_eq!(lines(&mut held.daemon, &session, "usage").len(), 1, "the request has its cost all the same");
}

#[test]
fn a_second_navigation_and_a_compaction_wait_for_the_end_of_the_first() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|_: &_| Step::hang());
    let mut held = Held::start(&provider);
    let session = held.session.clone();
    let target = held.ids[0].clone();
    for (method, params) in [
        ("session/navigate", json!({"sessionId": session, "targetEntryId": target})),
        ("session/compact", of(&session)),
    ] {
        let error = held.daemon.err(method, params);
        assert_eq!((&error["data"]["code"], &error["data"]["operationId"]), (&json!("busy"), &held.operation));
    }
    let status = held.daemon.ok("session/status", of(&session));
    assert_eq!(status["session"]["status"]["type"], "summarizing_branch", "{status:#}");
}

#[test]
fn a_navigation_that_a_kill_interrupts_ends_at_the_next_load_and_the_leaf_is_the_old_one() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|_: &_| Step::hang());
    let held = Held::start(&provider);
    let mut daemon = held.daemon.restarted();
    let session = daemon.load(&held.file);
    let end = daemon.until("branch_summary_end");
    assert_eq!(
        (&end["params"]["event"]["outcome"], &end["params"]["operationId"]),
        (&json!("failed"), &held.operation)
    );
    assert_eq!(leaf(&mut daemon, &session), held.ids[3]);
    assert_eq!(std::fs::read(&held.file).expect("a file"), held.before);
    reopen(&mut daemon, &session);
    assert!(
        daemon
            .next_within(Duration::from_millis(200), |frame| frame["params"]["event"]["type"] == "branch_summary_end")
            .is_none()
    );
    assert_eq!(daemon.count("branch_summary_end"), 1, "once");
}

/// A kill between the write and the events leaves the summary in the file and the operation in the lock.
#[test]
fn a_navigation_that_a_kill_interrupts_behind_its_write_has_moved() {
    let provider = Provider::start(Format::Anthropic);
    let (release, model) = held_model();
    provider.otherwise(model);
    let mut held = Held::start(&provider);
    let lock = held.file.with_file_name(format!("{}.lock", held.file.file_name().expect("a name").to_string_lossy()));
    let running = std::fs::read(&lock).expect("a lock");
    drop(release);
    let answer = held.daemon.answer(held.request).expect("an answer");
    held.daemon.until("settled");
    held.daemon.kill();
    std::fs::write(&lock, running).expect("a lock");
    let mut daemon = held.daemon.restarted();
    let session = daemon.load(&held.file);
    let end = daemon.until("branch_summary_end");
    assert_eq!(
        (&end["params"]["event"]["outcome"], &end["params"]["operationId"]),
        (&json!("failed"), &held.operation)
    );
    assert_eq!(leaf(&mut daemon, &session), answer["newLeafId"]);
}

/// A model that writes its summary for about a tenth of a second.
fn slow_model(asked: &crate::provider::Asked) -> Step {
    good_model(asked).pieces(20).drip(5)
}

/// The session after a navigation that something interrupted: it has moved with its summary, or nothing has changed.
fn is_whole(daemon: &mut Daemon, session: &str, ids: &[Value; 6], about: &str) -> bool {
    let summaries = lines(daemon, session, "branch_summary");
    let at = leaf(daemon, session);
    let there = context(daemon, session).concat();
    match summaries.as_slice() {
        [] => {
            assert_eq!(at, ids[3], "{about}");
            assert!(there.contains("D: the lexer") && !there.contains("F: the printer"), "{about}: {there}");
            false
        }
        [summary] => {
            assert_eq!((&at, &summary["parentId"]), (&summary["id"], &ids[5]), "{about}");
            assert!(there.contains("F: the printer") && there.contains("Fix the parser"), "{about}: {there}");
            true
        }
        more => panic!("{about}: {more:#?}"),
    }
}

#[test]
fn a_cancel_at_any_moment_moves_all_or_nothing_and_each_start_has_one_end() {
    let provider = Provider::start(Format::Anthropic);
    let mut daemon = asking(&provider, json!({}));
    // The first model never ends, and the last one is awaited, so that both ends are seen on every machine.
    for millis in [Some(0), Some(1), Some(5), Some(20), Some(60), Some(100), Some(120), Some(140), Some(160), None] {
        provider.otherwise(if millis == Some(0) { |_: &crate::provider::Asked| Step::hang() } else { slow_model });
        let (session, ids) = picture(&mut daemon);
        let request = begin(&mut daemon, &session, &ids[5], json!({}));
        match millis {
            Some(millis) => std::thread::sleep(Duration::from_millis(millis)),
            None => drop(daemon.until("branch_summary_end")),
        }
        daemon.ok("session/cancel", of(&session));
        let answer = daemon.answer(request).unwrap_or_else(|error| panic!("{millis:?}: {error:#}"));
        daemon.until("settled");
        let about = format!("{millis:?} ms, {}", answer["outcome"]);
        assert_eq!((daemon.count("branch_summary_start"), daemon.count("branch_summary_end")), (1, 1), "{about}");
        let moved = is_whole(&mut daemon, &session, &ids, &about);
        assert_eq!((answer["outcome"] == "completed", answer["newLeafId"] == ids[3]), (moved, !moved), "{about}");
        reopen(&mut daemon, &session);
        assert_eq!(is_whole(&mut daemon, &session, &ids, &about), moved, "{about}");
        match millis {
            Some(0) => assert!(!moved, "the model hangs"),
            Some(_) => {}
            None => assert!(moved, "the cancel comes behind the end"),
        }
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_session_and_the_start_gets_its_end() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(slow_model);
    let mut daemon = asking(&provider, json!({}));
    for millis in [0, 5, 60, 110, 130, 150, 170, 600] {
        let (session, ids) = picture(&mut daemon);
        let file = path_of(&mut daemon, &session);
        begin(&mut daemon, &session, &ids[5], json!({}));
        std::thread::sleep(Duration::from_millis(millis));
        daemon.kill();
        daemon.wait();
        let ends = |daemon: &Daemon| (daemon.count("branch_summary_start"), daemon.count("branch_summary_end"));
        let before = ends(&daemon);
        daemon = daemon.restarted();
        let session = daemon.load(&file);
        // An answer that comes behind the events of the load.
        daemon.ok("session/status", of(&session));
        let about = format!("{millis} ms: {before:?} and {:?}", ends(&daemon));
        assert!(before.1 + ends(&daemon).1 >= before.0 && ends(&daemon).1 <= 1, "{about}");
        is_whole(&mut daemon, &session, &ids, &about);
        daemon.events.clear();
        reopen(&mut daemon, &session);
        daemon.ok("session/status", of(&session));
        assert_eq!(ends(&daemon), (0, 0), "{about}");
    }
}
