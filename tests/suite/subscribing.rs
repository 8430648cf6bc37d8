//! Events for those who were away.

use crate::support::*;
use serde_json::{Value, json};

fn seqs(daemon: &Daemon) -> Vec<u64> {
    daemon.events.iter().filter_map(|frame| frame["params"]["seq"].as_u64()).collect()
}

#[test]
fn missed_events_come_again_in_order_with_their_numbers() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "missed", &turns(6));
    let session = daemon.load(&path);
    let epoch = daemon.ok("session/subscribe", json!({"sessionId": session}));
    assert_eq!((epoch["status"].as_str(), epoch["replayed"].as_u64()), (Some("ok"), Some(0)));
    assert_eq!(epoch["snapshot"]["session"]["sessionId"], json!(session));
    let epoch = epoch["epoch"].clone();
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    let durable: Vec<Value> =
        daemon.events.iter().filter(|frame| frame["params"]["durable"] == true).cloned().collect();
    assert!(durable.len() > 4);
    daemon.events.clear();
    let after = json!({"epoch": epoch, "seq": durable[1]["params"]["seq"]});
    let answer = daemon.ok("session/subscribe", json!({"sessionId": session, "after": after}));
    assert_eq!((answer["status"].as_str(), &answer["snapshot"]), (Some("ok"), &Value::Null));
    assert_eq!(answer["replayed"], json!(durable.len() - 2));
    daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(daemon.events, durable[2..]);
    for after in [json!({"epoch": "another", "seq": 1}), json!({"epoch": epoch, "seq": 99_999})] {
        let answer = daemon.ok("session/subscribe", json!({"sessionId": session, "after": after}));
        assert_eq!((answer["status"].as_str(), answer["replayed"].as_u64()), (Some("expired"), Some(0)));
        assert!(answer["snapshot"]["session"]["leafEntryId"].is_string());
    }
}

#[test]
fn who_wants_no_events_gets_none_and_may_have_them_later() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "muted", &turns(1));
    let session = daemon.load(&path);
    daemon.append(&session, &[user("heard")]);
    daemon.ok("session/unsubscribe", json!({"sessionId": session}));
    let last = *seqs(&daemon).last().expect("events");
    let epoch = daemon.events[0]["params"]["epoch"].clone();
    daemon.events.clear();
    daemon.append(&session, &[user("unheard")]);
    daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(seqs(&daemon), Vec::<u64>::new());
    let answer = daemon.ok("session/subscribe", json!({"sessionId": session, "after": {"epoch": epoch, "seq": last}}));
    assert_eq!((answer["status"].as_str(), answer["replayed"].as_u64()), (Some("ok"), Some(1)));
    daemon.ok("session/status", json!({"sessionId": session}));
    let event = &daemon.events[0]["params"];
    assert_eq!(event["event"]["entry"]["message"]["content"][0]["text"], "unheard");
    daemon.append(&session, &[user("heard again")]);
    daemon.ok("session/status", json!({"sessionId": session}));
    let numbers = seqs(&daemon);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

/// It writes for as long as it likes: the session goes on, other sessions are served, and the client is whole again.
#[test]
fn a_client_that_stops_reading_stalls_nothing_and_is_whole_again() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "slow", &turns(1));
    // Four million tokens in one session: a compaction would add an entry to those that are counted.
    let load = json!({"path": path, "settings": {"compaction": {"enabled": false}}});
    let session = daemon.ok("session/load", load)["session"]["sessionId"].as_str().expect("an id").to_owned();
    daemon.pause();
    let text = text_of(5_000, "long");
    let requests: Vec<u64> = (0..100)
        .map(|_| daemon.begin("session/append", json!({"sessionId": session, "messages": vec![user(&text); 8]})))
        .collect();
    daemon.resume();
    let mut entries = 0;
    for request in requests {
        entries += daemon.answer(request).expect("it is on disk")["entryIds"].as_array().expect("ids").len();
    }
    assert_eq!(entries, 800);
    daemon.ok("session/status", json!({"sessionId": session}));
    let dropped = daemon.events.iter().find(|frame| frame["method"] == "session/resync_required").cloned();
    let numbers = seqs(&daemon);
    match dropped {
        None => assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "nothing is missing"),
        Some(resync) => {
            let after = json!({"epoch": resync["params"]["epoch"], "seq": 0});
            let answer = daemon.ok("session/subscribe", json!({"sessionId": session, "after": after}));
            assert_eq!(answer["status"], "expired", "eight megabytes are more than is kept");
            assert_eq!(answer["snapshot"]["session"]["entryCount"], 804);
        }
    }
    let last = numbers.last().copied().expect("events");
    daemon.append(&session, &[user("after")]);
    daemon.ok("session/status", json!({"sessionId": session}));
    assert!(seqs(&daemon).last() > Some(&last));
}
