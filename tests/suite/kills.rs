//! The real binary, killed again and again while it appends and compacts. `ABRIDGED_KILLS=1000` for the long version,
//! `ABRIDGED_PROOF_BINARY` for another binary, `ABRIDGED_SEED` for another run.

use crate::{
    support::{Home, assistant, calls, result, text_of, user},
    wire::{Dice, Peer, cases, number},
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// A session is given up after so many kills, so that the long version measures kills and not a long file.
const KILLS_OF_A_SESSION: u64 = 50;

/// Events that clients received over all runs of the daemon.
struct Told {
    path: PathBuf,
    /// The bytes of the file after the last kill: they stay.
    bytes: Vec<u8>,
    /// Acknowledged entries and what was sent for them.
    entries: HashMap<String, Value>,
    /// Operations that began and did not end, as far as a client saw.
    open: HashSet<String>,
    ended: HashSet<String>,
}

#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    acknowledged: usize,
    unanswered: usize,
    compactions: usize,
    killed_while_compacting: usize,
    /// Ends of starts that died on their way to the client.
    closed_unseen: usize,
    /// Starts that were seen and have no end: the lock did not know of them yet, or the end died on its way.
    never_ended: usize,
    /// Ends that came before the kill and once more after it: the lock still knew of them.
    ended_twice: usize,
    torn: usize,
}

impl Told {
    fn fresh(home: &Home) -> Self {
        let mut peer = Peer::start(home);
        let session = peer.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
        let path = PathBuf::from(session["path"].as_str().expect("a path"));
        peer.end();
        let bytes = fs::read(&path).expect("a file");
        Self { path, bytes, entries: HashMap::new(), open: HashSet::new(), ended: HashSet::new() }
    }

    /// The file is what it was and more, and every acknowledged entry is in it.
    fn check_file(&mut self, tally: &mut Tally) {
        let bytes = fs::read(&self.path).expect("the file is there");
        let whole = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        assert!(bytes.starts_with(&self.bytes[..whole]), "the file changed behind us");
        let torn = &self.bytes[whole..];
        if !torn.is_empty() && !bytes.starts_with(&self.bytes) {
            assert!(torn_files(&self.path).iter().any(|file| file == torn), "a torn line is nowhere");
            tally.torn += 1;
        }
        self.bytes = bytes;
        let lines: HashMap<String, Value> = self
            .bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
            .filter_map(|line| Some((line["id"].as_str()?.to_owned(), line["message"].clone())))
            .collect();
        for (id, message) in &self.entries {
            let written = lines.get(id).unwrap_or_else(|| panic!("the acknowledged entry {id} is not in the file"));
            assert_holds(written, message);
        }
    }
}

/// A stored message has every field that the client sent. Fields that other programs need are added.
fn assert_holds(stored: &Value, sent: &Value) {
    for (key, value) in sent.as_object().expect("a message is an object") {
        assert_eq!(stored.get(key), Some(value), "{key}");
    }
}

fn torn_files(path: &Path) -> Vec<Vec<u8>> {
    beside(path).into_iter().filter(|name| name.contains(".torn")).map(|name| read_beside(path, &name)).collect()
}

fn read_beside(path: &Path, name: &str) -> Vec<u8> {
    fs::read(path.with_file_name(name)).expect("a file")
}

/// Files beside the session file.
fn beside(path: &Path) -> Vec<String> {
    let own = path.file_name().expect("a name").to_string_lossy().into_owned();
    let folder = fs::read_dir(path.parent().expect("a folder")).expect("a folder");
    let names = folder.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&own) && *name != own).collect()
}

/// A request on its way: which it is, and the messages it brings.
struct Sent {
    id: u64,
    messages: Vec<Value>,
}

/// Requests in one piece, as a client in a hurry sends them.
fn storm(dice: &mut Dice, peer: &mut Peer, session: &str, round: u64) -> Vec<Sent> {
    let mut frames = String::new();
    let mut sent = Vec::new();
    for at in 0..6 + dice.below(14) {
        let name = format!("r{round}n{at}");
        let size = 20 + dice.below(300);
        let messages = match dice.below(5) {
            0 => vec![user(&format!("{name}: look at it. You must keep {name}.lock. {}", text_of(size, &name)))],
            1 => vec![calls(&[&name]), result(&name, &text_of(size, &name)), assistant(&text_of(size, &name))],
            2 => vec![assistant(&format!("{name} is done. {}", text_of(size, &name)))],
            3 => vec![user(&format!("{name}?"))],
            _ => {
                let params = json!({"sessionId": session, "keepRecentTokens": dice.below(400)});
                let (id, frame) = peer.request("session/compact", &params.to_string());
                frames.push_str(&frame);
                sent.push(Sent { id, messages: Vec::new() });
                continue;
            }
        };
        let (id, frame) =
            peer.request("session/append", &json!({"sessionId": session, "messages": messages}).to_string());
        frames.push_str(&frame);
        sent.push(Sent { id, messages });
    }
    peer.write(frames.as_bytes());
    sent
}

/// One life of a daemon: what the last one left is put in order, then it is killed in the middle of work.
fn live_and_die(dice: &mut Dice, told: &mut Told, home: &Home, round: u64, tally: &mut Tally) {
    let mut peer = Peer::start(home);
    let loaded = peer.ok("session/load", json!({"path": told.path}));
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    let answered_at = peer.said.len();
    // Answered by the session itself, behind everything it had to say first.
    peer.ok("session/status", json!({"sessionId": session}));
    check_ends(told, &peer, answered_at, tally);
    told.check_file(tally);

    let sent = storm(dice, &mut peer, &session, round);
    wait_for_the_moment(dice, &mut peer, sent.len());
    peer.kill();

    for Sent { id, messages } in sent {
        match peer.answered(id) {
            Some(Ok(answer)) => {
                let ids = answer["entryIds"].as_array().map(Vec::as_slice).unwrap_or_default();
                tally.acknowledged += ids.len();
                told.entries.extend(ids.iter().map(|id| id.as_str().expect("an id").to_owned()).zip(messages));
            }
            Some(Err(_)) => {}
            None => tally.unanswered += 1,
        }
    }
    for event in &peer.said[answered_at..] {
        let id = event["params"]["operationId"].as_str().unwrap_or_default().to_owned();
        match event["params"]["event"]["type"].as_str() {
            Some("compaction_start") => drop(told.open.insert(id)),
            Some("compaction_end") if told.open.remove(&id) => {
                tally.compactions += usize::from(event["params"]["event"]["outcome"] == "completed");
                told.ended.insert(id);
            }
            _ => {}
        }
    }
    tally.kills += 1;
}

/// Any moment: while appends are answered, while a compaction is made, or when all is done.
fn wait_for_the_moment(dice: &mut Dice, peer: &mut Peer, requests: usize) {
    let compacting = dice.below(3) > 0;
    // A compaction waits for the token tables of its process.
    let patience = Duration::from_millis(if compacting { 1_000 } else { 20 });
    let begun = |peer: &Peer| peer.events("compaction_start").next().is_some();
    while compacting && !begun(peer) && peer.hear_within(patience) {}
    let until = peer.said.len() + dice.below(if compacting { 24 } else { 4 * requests });
    let patience = Duration::from_millis(*dice.pick(&[5, 20, 500]));
    while peer.said.len() < until && peer.hear_within(patience) {}
    if dice.below(2) == 0 {
        std::thread::sleep(Duration::from_micros(dice.roll() % 6_000));
    }
}

/// Each start event that a client received has one end.
fn check_ends(told: &mut Told, peer: &Peer, answered_at: usize, tally: &mut Tally) {
    let kind = |frame: &Value| frame["params"]["event"]["type"] == "compaction_end";
    assert!(!peer.said[..answered_at].iter().any(kind), "an end overtook the answer to session/load");
    let ends: Vec<&Value> = peer.said[answered_at..].iter().filter(|frame| kind(frame)).collect();
    let ids: Vec<&str> = ends.iter().filter_map(|end| end["params"]["operationId"].as_str()).collect();
    assert_eq!(ids.len(), ends.len());
    for end in &ends {
        assert_eq!(end["params"]["event"]["outcome"], "failed", "{end}");
        assert_eq!(end["params"]["epoch"], peer.said[0]["result"]["epoch"], "{end}");
    }
    match told.open.drain().collect::<Vec<_>>()[..] {
        // The lock may know of a start that died on its way to the client.
        [] => {
            assert!(ids.len() <= 1, "{ids:?}");
            tally.closed_unseen += ids.len();
        }
        [ref open] => {
            tally.killed_while_compacting += 1;
            if ids.is_empty() {
                tally.never_ended += 1;
            } else {
                assert_eq!(ids, [open], "the start that was seen has one end");
            }
        }
        ref many => panic!("two compactions ran at once: {many:?}"),
    }
    for id in ids {
        tally.ended_twice += usize::from(!told.ended.insert(id.to_owned()));
    }
}

/// The last life: nothing runs, nothing is left lying about, and every acknowledged entry can be asked for.
fn settle(told: &mut Told, home: &Home, tally: &mut Tally) {
    let mut peer = Peer::start(home);
    let loaded = peer.ok("session/load", json!({"path": told.path}));
    let session = loaded["session"]["sessionId"].clone();
    let answered_at = peer.said.len();
    peer.ok("session/status", json!({"sessionId": session}));
    check_ends(told, &peer, answered_at, tally);
    peer.ok("session/append", json!({"sessionId": session, "messages": [user("the last one")]}));
    told.check_file(tally);
    for (id, message) in &told.entries {
        let entry = peer.ok("session/entry", json!({"sessionId": session, "entryId": id}));
        assert_holds(&entry["entry"]["message"], message);
    }
    peer.ok("session/close", json!({"sessionId": session}));
    let litter: Vec<String> = beside(&told.path).into_iter().filter(|name| !name.contains(".jsonl.torn")).collect();
    assert_eq!(litter, Vec::<String>::new());
    peer.end();
}

#[test]
fn a_daemon_that_is_killed_keeps_every_promise_it_made() {
    let home = Home::new();
    // The tables of a tokenizer take each new process a while, and decide nothing here.
    home.settings(r#"{"tokens": {"estimator": "chars"}}"#);
    let seed = number("ABRIDGED_SEED", 3);
    let kills = u64::from(cases("ABRIDGED_KILLS", 5, 10));
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    let mut told = Told::fresh(&home);
    for round in 1..=kills {
        live_and_die(&mut dice, &mut told, &home, round, &mut tally);
        if round % KILLS_OF_A_SESSION == 0 || round == kills {
            settle(&mut told, &home, &mut tally);
            told = Told::fresh(&home);
        }
    }
    eprintln!("seed {seed}: {tally:?}");
    assert!(tally.acknowledged > 0);
    assert_eq!(tally.never_ended, 0, "a start was told that nobody ended");
}
