//! Random clients of the real binary: requests that make sense, requests that are only valid, and broken ones; models and
//! hooks that misbehave; both framings; kills; session files with broken lines. Every answer, event and file is held
//! against rules that know nothing of the daemon.
//!
//! `ABRIDGED_FUZZ_SECONDS=600 cargo test --test suite fuzzer` for a long run, `ABRIDGED_SEED=7` for one case. A failure
//! prints its seed, the steps that are enough for it, what was sent and said, and the rule.

mod answering;
mod case;
mod draw;
mod known;
mod link;
mod record;
mod requests;
mod rules;
mod spoiling;
mod tally;

use crate::wire::number;
use case::{Ended, all_steps, run};
use record::Broken;
use std::{
    env, fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tally::Tally;

/// Cases of a plain `cargo test`.
const CASES: u64 = 3;

/// Steps of a case: enough for several compactions of a session.
const STEPS: u64 = 60;

/// Cases at the same time. Most of their time goes into waiting.
const CLIENTS: usize = 4;

/// Time for runs of a failing case with fewer steps.
const SHRINKING: Duration = Duration::from_secs(90);

#[test]
fn every_rule_holds_for_random_clients() {
    let next = AtomicU64::new(number("ABRIDGED_SEED", 1));
    let one = env::var_os("ABRIDGED_SEED").is_some();
    let seconds = env::var_os("ABRIDGED_FUZZ_SECONDS").map(|_| number("ABRIDGED_FUZZ_SECONDS", 0));
    let steps = number("ABRIDGED_FUZZ_STEPS", STEPS);
    let (begin, first) = (Instant::now(), next.load(Ordering::Relaxed));
    let goes_on = |seed: u64| match seconds {
        Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
        None => seed < first + if one { 1 } else { CASES },
    };
    let tally = Mutex::new(Tally::default());
    crate::support::at_once(0..CLIENTS, |_| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !goes_on(seed) {
                return;
            }
            let ended = run(seed, &all_steps(steps));
            if let Some(broken) = &ended.broken {
                report(seed, &ended, broken, steps);
            }
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(&ended.record);
        }
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    eprintln!("{tally}");
    for met in ["session/append ok", "session/context ok", "session/load ok", "= Ended"] {
        assert!(one || tally.of(met) > 0, "there was no {met}");
    }
}

/// Panics with the shortest list of steps that was found.
fn report(seed: u64, ended: &Ended, broken: &Broken, steps: u64) -> ! {
    let all = all_steps(steps);
    let (shorter, left) = shrunk(seed, all[..ended.steps].to_vec(), broken);
    let ended = shorter.as_ref().unwrap_or(ended);
    let broken = ended.broken.as_ref().unwrap_or(broken);
    let path = env::temp_dir().join(format!("abridged-fuzzer-{seed}.log"));
    let _ = fs::write(&path, ended.record.whole());
    panic!("{broken}\nABRIDGED_SEED={seed}, steps {left:?}\n{}every line: {}", ended.record.shown(), path.display());
}

/// Leaves steps out as long as the same rule is broken.
fn shrunk(seed: u64, mut steps: Vec<u64>, broken: &Broken) -> (Option<Ended>, Vec<u64>) {
    let mut shortest = None;
    let end = Instant::now() + SHRINKING;
    let mut piece = steps.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + piece).min(steps.len()));
            let ended = run(seed, &fewer);
            if ended.broken.as_ref().is_some_and(|found| found.rule == broken.rule) {
                fewer.truncate(ended.steps);
                (steps, shortest) = (fewer, Some(ended));
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    (shortest, steps)
}
