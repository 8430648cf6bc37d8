//! The rate of the simulator, and a long run: `cargo bench --profile dist --features simulator --bench simulator`. A step is one
//! input of a core. Sessions of different seeds know nothing of each other: each thread runs one after the other, and takes the
//! next seed when one ends, until all threads together have made the number of steps.
//!
//! `--steps N` (default 1,000,000) ends the run, `--seed N` (default 0) begins it, `--threads N` (default one for each core)
//! says how many threads run. `--long N` (default 0) runs so many sessions of 2,000 turns instead, from the first seed on.
//! A seed that breaks a rule is printed, and the exit code is 1.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use abridged::simulator::{client, long, seeds, world::Report};
use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Instant,
};

/// Steps of a usual run.
const STEPS: u64 = 1_000_000;

/// Turns of a long session.
const TURNS: u64 = 2_000;

/// Broken rules that end a run.
const MOST_BROKEN: u64 = 20;

/// The value of an option.
fn option(name: &str, usual: u64) -> u64 {
    let value = std::env::args().skip_while(|argument| argument != name).nth(1);
    value.map_or(usual, |value| value.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {value}")))
}

/// The progress of all threads.
struct Progress {
    /// Steps that end the run.
    most: u64,
    steps: AtomicU64,
    next_seed: AtomicU64,
    broken: AtomicU64,
}

impl Progress {
    /// Runs seeds until the run ends.
    fn runs(&self) -> Report {
        let mut all = Report::default();
        while self.steps.load(Relaxed) < self.most && self.broken.load(Relaxed) < MOST_BROKEN {
            let seed = self.next_seed.fetch_add(1, Relaxed);
            match seeds::run(&client::scenario(seed)) {
                Ok(report) => {
                    self.steps.fetch_add(report.steps, Relaxed);
                    all.add(&report);
                }
                Err(violation) => {
                    println!("seed {seed} breaks {violation}");
                    self.broken.fetch_add(1, Relaxed);
                }
            }
        }
        all
    }
}

/// Runs long sessions one after the other.
fn runs_long(seeds: std::ops::Range<u64>) -> ExitCode {
    let mut broken = 0;
    for seed in seeds {
        let started = Instant::now();
        match long::run(seed, TURNS) {
            Ok(long) => println!(
                "seed {seed}: {} answered, {} refused, {} contexts, {} overflows, {} crashes, {} hours, {} steps in {:.1} s",
                long.answered,
                long.refused,
                long.contexts,
                long.overflows,
                long.crashes,
                long.hours,
                long.report.steps,
                started.elapsed().as_secs_f64()
            ),
            Err(violation) => {
                println!("seed {seed} breaks {violation}");
                broken += 1;
            }
        }
    }
    ExitCode::from(u8::from(broken > 0))
}

fn main() -> ExitCode {
    let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
    let (most, first) = (option("--steps", STEPS), option("--seed", 0));
    let threads = option("--threads", cores).max(1);
    // A panic inside of a session is a broken rule, and the world reports it.
    std::panic::set_hook(Box::new(|_| {}));
    let sessions = option("--long", 0);
    if sessions > 0 {
        return runs_long(first..first + sessions);
    }
    let progress =
        Progress { most, steps: AtomicU64::new(0), next_seed: AtomicU64::new(first), broken: AtomicU64::new(0) };
    let mut all = Report::default();
    let started = Instant::now();
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| progress.runs())).collect();
        for thread in running {
            match thread.join() {
                Ok(report) => all.add(&report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let seen =
        |kind: &str| all.seen.iter().filter(|(name, _)| name.starts_with(kind)).map(|(_, count)| count).sum::<u64>();
    let (rate, broken) = (all.steps as f64 / seconds, progress.broken.load(Relaxed));
    println!("{rate:>12.0} steps a second in {threads} threads (goal: 20000)");
    println!("{:>12.0} steps a second in each", rate / threads as f64);
    println!("{:>12} steps in {seconds:.1} s", all.steps);
    println!("{:>12} sessions", progress.next_seed.load(Relaxed) - first);
    println!("{:>12} crashes", seen("crash"));
    println!(
        "{:>12} compactions, {} of them written",
        seen("event compaction_end"),
        seen("event compaction_end completed")
    );
    println!("{broken:>12} broken rules");
    ExitCode::from(u8::from(broken > 0))
}
