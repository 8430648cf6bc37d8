//! Usage as hosts really report it, right and wrong, over 40 turns with and without compactions: nothing that a user saw
//! leaves the context for a number, and the size of the context stays near the truth.

mod dialect;
mod honest;
mod host;
mod material;
mod measured;
mod row;
mod rows;
mod truth;

use crate::{
    support::{Daemon, at_once, user},
    wire::is_whole,
};
use row::{Deserves, Room, Row};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Mutex, time::Duration};

/// The longest wait for the tokenizer.
const LONG: Duration = Duration::from_secs(60);

/// A daemon whose tokenizer is loaded.
fn warm() -> Daemon {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    daemon.append(&session, &[user("Begin.")]);
    let is_loaded = |frame: &Value| frame["params"]["event"]["usage"]["estimator"] == "o200k_base";
    let is_loaded = daemon.events.iter().any(is_loaded) || daemon.next_within(LONG, is_loaded).is_some();
    assert!(is_loaded, "nothing is counted");
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.events.clear();
    daemon
}

/// The compactions of honest hosts in the narrow window, by their counts and habits.
static TWINS: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// The compactions of the honest host with the counts and habits of a row. Rows of several tests have the same ones.
fn compactions_of_twin(daemon: &mut Option<Daemon>, row: &Row, like: String) -> usize {
    let known = TWINS.lock().expect("a lock").get(&like).copied();
    known.unwrap_or_else(|| {
        let compactions = host::run(daemon, &honest::twin(row), &like, Room::Narrow).compactions;
        TWINS.lock().expect("a lock").insert(like, compactions);
        compactions
    })
}

/// The windows of a row by its place in its table. In a run that is not whole few rows have both, and three of four after the eighth
/// none, because the reports of a table have one sort of fault. The first eight rows have more, so that every rule about rewritten
/// contexts is still held. Only a wide window is sure to show that a server cuts prompts.
fn rooms(at: usize, row: &Row) -> &'static [Room] {
    match at % 3 {
        _ if is_whole() || at == 0 => &[Room::Wide, Room::Narrow],
        1 if at < 8 => &[Room::Wide, Room::Narrow],
        _ if at >= 8 && !at.is_multiple_of(4) && row.deserves != Deserves::Window => &[],
        2 if row.deserves != Deserves::Window => &[Room::Narrow],
        _ => &[Room::Wide],
    }
}

/// Runs these rows in windows of both sizes, several after each other in one daemon, and returns the faults of the daemon.
fn faults(rows: &[Row]) -> Vec<String> {
    let faults = Mutex::new(Vec::new());
    let rows: Vec<(usize, &Row)> = rows.iter().enumerate().collect();
    at_once(rows.chunks(rows.len().div_ceil(2).max(1)), |rows| {
        let mut daemon = Some(warm());
        for (at, row) in rows {
            for room in rooms(*at, row).iter().copied() {
                let like = format!("{:?} {:?} {room:?}", row.counts, row.habits);
                let honest = match room {
                    Room::Wide => 0,
                    Room::Narrow => compactions_of_twin(&mut daemon, row, like),
                };
                let measured = host::run(&mut daemon, row, row.name, room);
                let found = measured.faults(row, room, honest);
                if !found.is_empty() {
                    let told = found.join("; ");
                    let told = format!("{} by {} ({}; {room:?}): {told}", row.name, row.program, row.source);
                    faults.lock().expect("a lock").push(told);
                }
            }
        }
    });
    faults.into_inner().expect("a lock")
}

fn all_are_right(rows: &[Row]) {
    let faults = faults(rows);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_report_without_the_cache_changes_nothing() {
    all_are_right(&rows::without_the_cache());
}

#[test]
fn a_report_that_counts_twice_changes_nothing() {
    all_are_right(&rows::counted_twice());
}

#[test]
fn a_report_of_several_requests_changes_nothing() {
    all_are_right(&rows::sums());
}

#[test]
fn a_report_without_a_count_changes_nothing() {
    all_are_right(&rows::empty_and_strange());
}

#[test]
fn a_right_report_in_another_form_is_believed() {
    all_are_right(&rows::right_ones());
}

/// The tables of the tokenizer are loaded while these sessions run. Sizes by characters are too low to tell such reports from an
/// overhead, so they may be believed. They are judged again by the tokenizer before anything starts.
#[test]
fn a_daemon_that_counts_characters_at_first_does_nothing_for_a_wrong_report() {
    let rows = [rows::sums()[0], rows::counted_twice()[0], rows::without_the_cache()[5]];
    at_once(rows, |row| {
        let measured = host::run(&mut Some(Daemon::start()), &row, row.name, Room::Wide);
        assert_eq!(measured.effects(), Vec::<&str>::new(), "{} by {}", row.name, row.program);
    });
}

#[test]
fn an_honest_host_is_believed() {
    all_are_right(&honest::rows());
}
