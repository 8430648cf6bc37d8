//! The context of an entry that is not the leaf.

use crate::support::*;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn the_size_of_a_long_context_elsewhere_is_estimated_unless_it_has_to_fit() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "contextWindow": 1_000_000}));
    let first = daemon.append(&session, &[user("One."), assistant("Two.")])["entryIds"].clone();
    let long = daemon.append(&session, &[user(&text_of(60_000, "long")), assistant("Read.")])["entryIds"].clone();
    daemon.append(&session, &[user("Three.")]);
    let estimator = |daemon: &mut Daemon, more: Value| {
        let mut params = json!({"sessionId": session});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let usage = daemon.ok("session/context", params)["usage"].clone();
        assert!(usage["contextTokens"].as_u64().is_some_and(|tokens| tokens > 0), "{usage:#}");
        usage["estimator"].as_str().expect("an estimator").to_owned()
    };
    // The tables of the tokenizer are loaded, and every entry is counted.
    let counted = |frame: &Value| frame["params"]["event"]["usage"]["estimator"] == "o200k_base";
    let is_counted =
        daemon.events.iter().any(counted) || daemon.next_within(Duration::from_secs(60), counted).is_some();
    assert!(is_counted, "nothing is counted");
    assert_eq!(estimator(&mut daemon, json!({"leafEntryId": first[1]})), "o200k_base");
    assert_eq!(estimator(&mut daemon, json!({"leafEntryId": long[1]})), "chars");
    assert_eq!(estimator(&mut daemon, json!({"leafEntryId": long[1], "wait": true})), "o200k_base");
}
