//! Results and messages of the user that no model has read and that are too large for the window: the context has as much of them
//! as fits, and a notice names them.

use crate::support::{Daemon, Home, assistant, calls, failed, result, user};
use serde_json::{Value, json};

const WINDOW: u64 = 32_768;

fn session(daemon: &mut Daemon) -> String {
    session_with(daemon, &json!({}))
}

/// A session with these settings of compactions.
fn session_with(daemon: &mut Daemon, compaction: &Value) -> String {
    let model = json!({"provider": "p", "id": "m", "contextWindow": WINDOW});
    let settings =
        json!({"models": [model], "defaultModel": "p/m", "tokens": {"estimator": "chars"}, "compaction": compaction});
    daemon.new_session(json!({"cwd": "/project", "settings": settings}))
}

fn daemon() -> Daemon {
    Daemon::at(Home::new())
}

/// So many numbered lines of 64 bytes, of characters of one, two and four bytes.
fn printed(name: &str, lines: usize) -> String {
    (0..lines).map(|at| format!("{name} {at:08} ä😀 {}\n", "x".repeat(46 - name.len()))).collect()
}

/// A conversation of four turns.
fn turns() -> Vec<Value> {
    (0..4).flat_map(|at| [user(&format!("Request {at}.")), assistant(&printed("answer", 40))]).collect()
}

/// A conversation, and calls whose results no model reads.
fn history(results: &[(&str, usize)]) -> Vec<Value> {
    let mut messages = turns();
    let ids: Vec<&str> = results.iter().map(|(id, _)| *id).collect();
    messages.extend([user("Read all of it."), calls(&ids)]);
    messages.extend(results.iter().map(|(id, lines)| result(id, &printed(id, *lines))));
    messages
}

/// The texts of the results in the context, and its size in tokens by the estimate.
fn shown(daemon: &mut Daemon, session: &str) -> (Vec<String>, u64) {
    shown_of(daemon, session, "toolResult")
}

/// The same for messages of another role. A summary is a message of the user.
fn shown_of(daemon: &mut Daemon, session: &str, role: &str) -> (Vec<String>, u64) {
    let context = daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
    let messages = context["messages"].as_array().expect("messages").iter().filter(|it| it["role"] == role);
    let text = |message: &Value| {
        let content = &message["content"];
        content.as_str().or(content[0]["text"].as_str()).expect("a text").to_owned()
    };
    let texts = messages.map(text).collect();
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    (texts, usage["contextTokens"].as_u64().expect("a size"))
}

/// The details of the notices about shortened messages since a place in the events.
fn notices(daemon: &Daemon, from: usize) -> Vec<String> {
    let events = daemon.events_since(from);
    let of = |(kind, event): &(String, Value)| {
        let is_one = kind == "notice" && event["event"]["code"] == "messages_shortened";
        is_one.then(|| event["event"]["detail"].as_str().expect("a detail").to_owned())
    };
    events.iter().filter_map(of).collect()
}

/// The target of a compaction in this window: 80 % of its threshold, beside the default reserve of a quarter.
const TARGET: u64 = (WINDOW - WINDOW / 4) * 4 / 5;

/// The size up to which a request that alone is over the window fills the context: 90 % of the threshold.
const MOST: u64 = (WINDOW - WINDOW / 4) * 9 / 10;

/// Asserts that the context is full up to its target.
fn assert_full(size: u64, results: u64) {
    assert_full_to(TARGET, size, results);
}

/// Asserts that the context is full up to a size: a step of a level is one in 256, and each text may lose two lines.
fn assert_full_to(most: u64, size: u64, texts: u64) {
    // The safe factor of the estimate is 1.35.
    let least = most - most / 128 - texts * 60;
    assert!((least..=most).contains(&size), "{size} of {most}");
}

/// Asserts that a text has whole lines of `whole` and one note on its middle.
fn assert_lines(text: &str, whole: &str) {
    let known: Vec<&str> = whole.lines().collect();
    let notes: Vec<&str> = text.lines().filter(|line| known.binary_search(line).is_err()).collect();
    assert!(matches!(notes[..], [note] if note.contains("has all of it")), "{notes:?}");
}

/// Asserts that the notes of the cut texts name the sizes that the notice names.
fn assert_sizes(notice: &str, texts: &[String]) {
    let sizes = |text: &str, before: &str, after: &str| -> Vec<String> {
        let parts = text.split(before).skip(1).filter_map(|rest| rest.split_once(after));
        parts.map(|(size, _)| size.to_owned()).collect()
    };
    let noted: Vec<String> = texts.iter().flat_map(|text| sizes(text, "of these ", " tokens was left out")).collect();
    let named: Vec<String> = sizes(notice, " of ", " tokens are left");
    assert!(!noted.is_empty());
    assert_eq!(noted, named, "{notice}");
}

#[test]
fn a_result_larger_than_the_window_fills_its_target_and_a_notice_names_it() {
    let mut daemon = daemon();
    let session = session(&mut daemon);
    let whole = printed("log", 6_000);
    let answer = daemon.append(&session, &history(&[("log", 6_000)]));
    assert_eq!(answer["next"]["type"], "maintenance", "{answer:#}");
    let (texts, size) = shown(&mut daemon, &session);
    assert_full(size, 1);
    assert_lines(&texts[0], &whole);
    daemon.until("settled");
    let [notice] = &notices(&daemon, 0)[..] else { panic!("one notice") };
    let entry = answer["entryIds"].as_array().expect("ids").last().expect("one").as_str().expect("an id").to_owned();
    assert!(notice.contains(&entry) && notice.contains("session/entry"), "{notice}");
    assert_sizes(notice, &texts);
    let stored = daemon.ok("session/entry", json!({"sessionId": session, "entryId": entry}));
    assert!(stored.to_string().contains(&json!(whole).to_string()), "the session has all of it");
    // A recovery needs less, and cuts the whole text again.
    let from = daemon.kinds().len();
    let answer = daemon.append(&session, &[failed("prompt is too long: 26000 tokens > 20000 maximum")]);
    assert_eq!(answer["next"]["willRetry"], true, "{answer:#}");
    let (smaller, _) = shown(&mut daemon, &session);
    assert!(smaller[0].len() < texts[0].len() && smaller[0].len() > 15_000, "{}", smaller[0].len());
    assert_lines(&smaller[0], &whole);
    daemon.until("settled");
    assert_eq!(notices(&daemon, from).len(), 1);
}

#[test]
fn five_results_of_one_batch_share_the_window() {
    let mut daemon = daemon();
    let session = session(&mut daemon);
    let results = [("a", 6_000), ("b", 3_000), ("c", 6_000), ("d", 6_000), ("e", 8)];
    daemon.append(&session, &history(&results));
    let (texts, size) = shown(&mut daemon, &session);
    assert_full(size, 4);
    let sizes: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
    assert!(sizes[..4].iter().all(|it| it.abs_diff(sizes[0]) < 200), "{sizes:?}");
    assert_eq!(texts[4], printed("e", 8));
    for ((name, lines), text) in results[..4].iter().zip(&texts) {
        assert_lines(text, &printed(name, *lines));
    }
    daemon.until("settled");
    let [notice] = &notices(&daemon, 0)[..] else { panic!("one notice") };
    assert_eq!(notice.matches("tokens are left").count(), 4, "{notice}");
}

#[test]
fn a_compaction_by_a_client_and_a_recovery_fill_their_targets() {
    let mut daemon = daemon();
    let session = session_with(&mut daemon, &json!({"enabled": false}));
    daemon.append(&session, &history(&[("log", 6_000)]));
    let compacted = daemon.ok("session/compact", json!({"sessionId": session, "wait": true}));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    let (texts, size) = shown(&mut daemon, &session);
    assert_full(size, 1);
    assert_lines(&texts[0], &printed("log", 6_000));
    assert_eq!(notices(&daemon, 0).len(), 1);

    let session = self::session(&mut daemon);
    let from = daemon.kinds().len();
    let mut messages = history(&[("log", 1_000)]);
    messages.push(failed("prompt is too long: 40000 tokens > 20000 maximum"));
    let answer = daemon.append(&session, &messages);
    assert_eq!(answer["next"]["willRetry"], true, "{answer:#}");
    let (texts, size) = shown(&mut daemon, &session);
    assert!(texts[0].len() > 15_000 && size <= TARGET, "{} and {size}", texts[0].len());
    assert_lines(&texts[0], &printed("log", 1_000));
    daemon.until("settled");
    assert_eq!(notices(&daemon, from).len(), 1);
}

/// A conversation, and messages of the user in a row: two of so many lines, a small one, and an answer that failed between them.
fn in_a_row(lines: usize) -> Vec<Value> {
    let mut messages = turns();
    let large = ["first", "second"].map(|name| user(&printed(name, lines)));
    let [first, second] = large;
    messages.extend([first, failed("The connection was lost."), user("Compare both."), second]);
    messages
}

/// Asserts that the newest messages of the user are those of `in_a_row`, both large ones cut to one length.
fn assert_in_a_row(texts: &[String], lines: usize) {
    let [.., first, small, second] = texts else { panic!("{} messages", texts.len()) };
    assert_eq!(small, "Compare both.");
    assert!(first.chars().count().abs_diff(second.chars().count()) < 200, "{} and {}", first.len(), second.len());
    assert!(first.len() > 15_000, "{}", first.len());
    for (name, text) in [("first", first), ("second", second)] {
        assert_lines(text, &printed(name, lines));
    }
}

#[test]
fn messages_of_the_user_in_a_row_share_the_window_at_the_threshold_and_in_a_recovery() {
    let mut daemon = daemon();
    let session = session(&mut daemon);
    let answer = daemon.append(&session, &in_a_row(3_000));
    assert_eq!(answer["next"]["type"], "maintenance", "{answer:#}");
    let (texts, size) = shown_of(&mut daemon, &session, "user");
    assert_in_a_row(&texts, 3_000);
    assert_full_to(MOST, size, 2);
    daemon.until("settled");
    let [notice] = &notices(&daemon, 0)[..] else { panic!("one notice") };
    assert_eq!(notice.matches("tokens are left").count(), 2, "{notice}");
    assert_sizes(notice, &texts);
    let ids = answer["entryIds"].as_array().expect("ids").iter().rev();
    let ids: Vec<&str> = ids.map(|id| id.as_str().expect("an id")).collect();
    assert!(notice.contains(ids[0]) && notice.contains(ids[3]), "{notice}");
    let from = daemon.kinds().len();
    let answer = daemon.append(&session, &[failed("prompt is too long: 26000 tokens > 20000 maximum")]);
    assert_eq!(answer["next"]["willRetry"], true, "{answer:#}");
    let (smaller, _) = shown_of(&mut daemon, &session, "user");
    assert_in_a_row(&smaller, 3_000);
    assert!(smaller[smaller.len() - 1].len() < texts[texts.len() - 1].len());
    daemon.until("settled");
    assert_eq!(notices(&daemon, from).len(), 1);
}

#[test]
fn messages_of_the_user_in_a_row_stay_in_a_compaction_by_a_client_that_names_no_tail() {
    let mut daemon = daemon();
    let session = session_with(&mut daemon, &json!({"enabled": false}));
    daemon.append(&session, &in_a_row(3_000));
    let compacted = daemon.ok("session/compact", json!({"sessionId": session, "wait": true}));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    let (texts, _) = shown_of(&mut daemon, &session, "user");
    assert_in_a_row(&texts, 3_000);
    assert_eq!(notices(&daemon, 0).len(), 1);
}

#[test]
fn a_compaction_that_only_cuts_messages_says_that_nothing_was_summarized() {
    let mut daemon = daemon();
    let session = session_with(&mut daemon, &json!({"enabled": false}));
    daemon.append(&session, &["first", "second"].map(|name| user(&printed(name, 3_000))));
    let compacted = daemon.ok("session/compact", json!({"sessionId": session, "wait": true}));
    let result = &compacted["result"];
    assert_eq!(result["shortened"].as_array().map(Vec::len), Some(2), "{compacted:#}");
    let summary = result["summary"].as_str().expect("a text");
    assert!(summary.starts_with("No message was summarized"), "{summary:?}");
}

#[test]
fn messages_in_a_row_leave_half_of_the_reserve_free_for_the_answer() {
    let mut daemon = daemon();
    let session = session(&mut daemon);
    let most = WINDOW - WINDOW / 8;
    let mut largest_left = 0;
    for at in 0..40 {
        let answer = daemon.append(&session, &[user(&printed(&format!("message {at:02}"), 60))]);
        let (texts, size) = shown_of(&mut daemon, &session, "user");
        let stay = texts.iter().filter(|text| text.starts_with("message ")).count();
        assert!(size <= most && stay == at + 1, "{size} of {most} with {stay} messages");
        match answer["next"]["type"].as_str() {
            Some("none") => largest_left = largest_left.max(size),
            _ => assert!(size < most - most / 20, "{size}"),
        }
    }
    assert!((WINDOW * 3 / 4..=most).contains(&largest_left), "{largest_left}");
    assert!(!notices(&daemon, 0).is_empty());
}

#[test]
fn the_result_of_a_compaction_names_every_message_that_it_shortens() {
    let mut daemon = daemon();
    let session = session(&mut daemon);
    let messages: Vec<Value> = (0..30).map(|at| user(&printed(&format!("message {at:02}"), 120))).collect();
    let answer = daemon.append(&session, &messages);
    let end = daemon.until("compaction_end");
    daemon.until("settled");
    let shortened = end["params"]["event"]["result"]["shortened"].as_array().expect("a list");
    let ids: Vec<&Value> = shortened.iter().map(|it| &it["entryId"]).collect();
    assert_eq!(ids, answer["entryIds"].as_array().expect("ids").iter().collect::<Vec<_>>());
    assert!(shortened.iter().all(|it| it["tokensAfter"].as_u64() < it["tokensBefore"].as_u64()), "{shortened:?}");
    let [notice] = &notices(&daemon, 0)[..] else { panic!("one notice") };
    assert!(notice.contains(" and 10 more, which the result"), "{notice}");
}
