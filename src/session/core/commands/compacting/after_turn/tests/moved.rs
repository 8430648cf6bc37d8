//! Moves to another path while a compaction waits for the end of the turn: by navigation, append or undo.

use super::{ask, assistant, done, finish_all, id_of, session, started, waiting};
use crate::{
    protocol::{SessionNavigate, SessionUndoCompaction, types::Outcome},
    session::{
        core::{
            command::CommandMethod as _,
            held::{Held, line, log_work, message, messages, outcomes},
        },
        log_work::LogWork,
    },
};
use serde_json::json;

/// Does what is due up to a write of this kind, which is written. The process dies after it.
fn dies_after(mut held: Held, kind: &str) -> Held {
    loop {
        let work = log_work(held.turn()).expect("work on the log");
        let is_it = match &work {
            LogWork::Append(work) => work.entries.iter().any(|entry| entry.line().contains(kind)),
            LogWork::Undo(_) => kind == "abridged.undo",
            _ => false,
        };
        held.back(work);
        if is_it {
            return held.reopened();
        }
    }
}

fn navigate(held: &mut Held, number: u64, target: &str) {
    let params = json!({"sessionId": "held", "targetEntryId": target});
    held.send(number, SessionNavigate::command(serde_json::from_value(params).expect("params")));
}

#[test]
fn a_move_says_in_its_own_write_that_a_compaction_waits_no_more_where_the_new_path_has_it() {
    let mut lines = messages();
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    lines.push(line("call", Some("e39"), "message", json!({"message": assistant(call, "toolUse")})));
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": "x", "timestamp": 1});
    lines.push(line("result", Some("call"), "message", json!({ "message": result })));
    let mut held = Held::of(&lines, u64::MAX);
    ask(&mut held, 1, json!({}));
    navigate(&mut held, 2, "branch");
    finish_all(&mut held);
    held.cancel(3);
    assert_eq!(outcomes(&finish_all(&mut held)), [Outcome::Cancelled]);
    navigate(&mut held, 4, "result");
    let held = dies_after(held, "abridged.leaf");
    assert_eq!(held.core.state().path().visible_leaf(), Some(&"result".into()));
    assert_eq!(waiting(&held), [""; 0]);
}

#[test]
fn a_late_result_on_the_branch_that_was_left_ends_no_turn_here() {
    let mut lines = messages();
    lines.push(line("done", Some("e39"), "message", json!({ "message": done() })));
    lines.push(message("asked", Some("done")));
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    lines.push(line("call", Some("asked"), "message", json!({"message": assistant(call, "toolUse")})));
    let mut held = Held::of(&lines, u64::MAX);
    let id = id_of(&ask(&mut held, 1, json!({})), 1);
    navigate(&mut held, 2, "done");
    assert_eq!(started(&finish_all(&mut held)), 0);
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": "x", "timestamp": 1});
    held.append_with(3, json!({ "messages": [result] }));
    assert_eq!(started(&finish_all(&mut held)), 0);
    assert_eq!((waiting(&held), held.core.state().path().visible_leaf()), (vec![id], Some(&"done".into())));
}

#[test]
fn a_move_takes_a_compaction_that_waits_along_in_its_own_write() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({})), 1);
    navigate(&mut held, 2, "branch");
    assert_eq!(waiting(&dies_after(held, "abridged.leaf")), [id]);
    // Without an index the path of an append is known where its parent is in memory.
    for indexed_below in [0, u64::MAX] {
        let mut held = Held::indexed_below(indexed_below);
        let id = id_of(&ask(&mut held, 1, json!({})), 1);
        held.append_with(2, json!({"parentEntryId": "e20"}));
        assert_eq!(waiting(&dies_after(held, "go on")), [id], "{indexed_below}");
    }
}

#[test]
fn an_undo_says_in_its_own_write_that_a_compaction_waits_no_more() {
    let mut lines = messages();
    let data = json!({"operationId": "op-before", "since": "2026-01-01T00:00:00Z", "params": {"sessionId": "held"}});
    let fields = json!({"customType": "abridged.after_turn", "data": data});
    lines.push(line("waits", Some("e39"), "custom", fields));
    let fields = json!({"summary": "of another program", "firstKeptEntryId": null, "tokensBefore": 100});
    lines.push(line("c1", Some("waits"), "compaction", fields));
    lines.push(message("later", Some("c1")));
    let mut held = Held::of(&lines, u64::MAX);
    assert_eq!(waiting(&held), [""; 0], "the other program has dropped it");
    held.edit::<SessionUndoCompaction>(1, json!({}));
    assert_eq!(waiting(&dies_after(held, "abridged.undo")), [""; 0]);
}
