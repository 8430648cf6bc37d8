//! `cargo bench --features simulator --bench simulator`: the rate of the simulator, and a long run. Sessions of one seed after
//! the other run in one thread until the number of steps is reached. A step is one input of a core.
//!
//! `--steps N` (default 1,000,000) ends the run, `--seed N` (default 0) begins it. A seed that breaks a rule is printed, and the
//! exit code is 1.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use abridged::simulator::{client, seeds, world::Report};
use std::{process::ExitCode, time::Instant};

/// Steps of a usual run.
const STEPS: u64 = 1_000_000;

/// Broken rules that end a run.
const MOST_BROKEN: u64 = 20;

/// The value of an option.
fn option(name: &str, usual: u64) -> u64 {
    let value = std::env::args().skip_while(|argument| argument != name).nth(1);
    value.map_or(usual, |value| value.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {value}")))
}

fn main() -> ExitCode {
    let (most, first) = (option("--steps", STEPS), option("--seed", 0));
    // A panic inside of a session is a broken rule, and the world reports it.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut all, mut broken, mut seed) = (Report::default(), 0, first);
    let started = Instant::now();
    while all.steps < most && broken < MOST_BROKEN {
        match seeds::run(&client::scenario(seed)) {
            Ok(report) => all.add(&report),
            Err(violation) => {
                println!("seed {seed} breaks {violation}");
                broken += 1;
            }
        }
        seed += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    let seen =
        |kind: &str| all.seen.iter().filter(|(name, _)| name.starts_with(kind)).map(|(_, count)| count).sum::<u64>();
    println!("{:>12.0} steps a second (goal: 20000)", all.steps as f64 / seconds);
    println!("{:>12} steps in {seconds:.1} s", all.steps);
    println!("{:>12} sessions", seed - first);
    println!("{:>12} crashes", seen("crash"));
    println!(
        "{:>12} compactions, {} of them written",
        seen("event compaction_end"),
        seen("event compaction_end completed")
    );
    println!("{broken:>12} broken rules");
    ExitCode::from(u8::from(broken > 0_u64))
}
