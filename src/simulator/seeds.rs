//! Scenarios from seeds: their runs, and the smallest form of one that fails.

use super::{
    action::{Action, Scenario},
    observer::{Observer, Violation},
    shrink::Search,
    world::{Report, World},
};

/// The most runs of a search for a smaller scenario.
const MOST_RUNS: u32 = 3_000;

/// Runs a scenario.
///
/// # Errors
/// When it breaks a rule.
pub fn run(scenario: &Scenario) -> Result<Report, Violation> {
    World::run(scenario, &mut Observer::default())
}

/// The smallest scenario that the search finds for the broken rule.
#[must_use]
pub fn smallest(scenario: &Scenario, violation: &Violation) -> Scenario {
    let with = |actions: &[Action]| Scenario { actions: actions.to_vec(), ..scenario.clone() };
    let breaks = |scenario: &Scenario| run(scenario).is_err_and(|found| found.rule == violation.rule);
    let mut search = Search::of(MOST_RUNS);
    let mut fails = |actions: &[Action]| breaks(&with(actions));
    let actions = search.smallest(scenario.actions.clone(), &Action::simpler, &mut fails);
    search.simplest(with(&actions), &Scenario::simpler, &mut |simpler: &Scenario| breaks(simpler))
}

/// Describes a failing scenario in its smallest form, with the file to commit.
#[must_use]
pub fn described(scenario: &Scenario, violation: &Violation) -> String {
    let smallest = smallest(scenario, violation);
    let trace = World::traced(&smallest, &mut Observer::default()).join("\n");
    let json = serde_json::to_string_pretty(&smallest).unwrap_or_default();
    let seed = scenario.seed;
    format!("seed {seed}: {violation}\n{trace}\nThe smallest scenario, for tests/simulator/NAME.json:\n{json}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        session::effects::Sent,
        simulator::{
            action::{Compacting, Request, Said, Setup},
            client,
        },
    };
    use std::{env, fs, path::Path};

    /// Seeds of a usual run.
    const SEEDS: u64 = 200;

    fn variable(name: &str) -> Option<u64> {
        env::var(name).ok()?.parse().ok()
    }

    #[test]
    fn a_calm_session() {
        let append = Request::Append { messages: vec![Said::User(2_000)], parent: None, expected: None };
        let mut actions = Vec::new();
        for _ in 0..10 {
            actions.extend([Action::Send(append.clone(), Sent::Alone), Action::Wait(100)]);
        }
        let compact = Request::Compact(Compacting::default());
        actions.extend([Action::Send(compact, Sent::Alone), Action::Wait(60_000)]);
        let scenario = Scenario { seed: 1, setup: Setup::default(), actions };
        let report = run(&scenario).unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!(report.seen.get("session/append ok"), Some(&10), "{:#?}", report.seen);
        assert_eq!(report.seen.get("event compaction_end completed"), Some(&1), "{:#?}", report.seen);
    }

    #[test]
    fn the_same_seed_gives_the_same_effects() {
        for seed in 0..20 {
            let scenario = client::scenario(seed);
            assert_eq!(run(&scenario), run(&scenario), "seed {seed}");
        }
        assert_ne!(run(&client::scenario(1)).map(|it| it.hash), run(&client::scenario(2)).map(|it| it.hash));
    }

    /// `ABRIDGED_SIM_SEEDS` is the number of seeds, `ABRIDGED_SIM_SEED` one of them.
    #[test]
    fn no_seed_breaks_a_rule() {
        let seeds = match variable("ABRIDGED_SIM_SEED") {
            Some(seed) => {
                eprintln!("{}", World::traced(&client::scenario(seed), &mut Observer::default()).join("\n"));
                seed..seed + 1
            }
            None => 0..variable("ABRIDGED_SIM_SEEDS").unwrap_or(SEEDS),
        };
        let (mut all, mut failed) = (Report::default(), Vec::new());
        for seed in seeds {
            let scenario = client::scenario(seed);
            match run(&scenario) {
                Ok(report) => all.add(&report),
                Err(violation) => {
                    eprintln!("seed {seed}: {violation}");
                    failed.push((scenario, violation));
                }
            }
        }
        eprintln!("{} steps: {:#?}", all.steps, all.seen);
        if let Some((scenario, violation)) = failed.first() {
            eprintln!("{}", described(scenario, violation));
        }
        assert!(failed.is_empty(), "{} seeds failed", failed.len());
    }

    /// The runs that failed once.
    #[test]
    fn found() {
        for file in
            fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator")).into_iter().flatten().flatten()
        {
            let text = fs::read_to_string(file.path()).expect("a text");
            let scenario: Scenario = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            if let Err(violation) = run(&scenario) {
                panic!("{file:?}: {violation}\n{}", World::traced(&scenario, &mut Observer::default()).join("\n"));
            }
        }
    }

    #[test]
    fn a_scenario_goes_through_a_file() {
        for seed in 0..50 {
            let scenario = client::scenario(seed);
            let text = serde_json::to_string(&scenario).expect("a text");
            assert_eq!(serde_json::from_str::<Scenario>(&text).expect("a scenario"), scenario, "seed {seed}");
        }
    }
}
