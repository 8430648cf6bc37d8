//! Scenarios from seeds: their runs, and the smallest form of one that fails.

use super::{
    action::Scenario,
    client::{self, lying},
    found::Found,
    observer::{Observer, Violation},
    world::{Report, World},
};

/// The scenario of a seed. In a share of all someone lies.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    if lying::lies(seed) { lying::scenario(seed) } else { client::scenario(seed) }
}

/// Runs a scenario.
///
/// # Errors
/// When it breaks a rule.
pub fn run(scenario: &Scenario) -> Result<Report, Violation> {
    World::run(scenario, &mut Observer::default())
}

/// The smallest form of a failing scenario, with its trace.
#[must_use]
pub fn found(scenario: &Scenario, violation: Violation) -> (Found, String) {
    let found = Found::smallest(scenario, violation, &mut |scenario| run(scenario).err());
    let trace = World::traced(&found.scenario, &mut Observer::default()).join("\n");
    (found, trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        session::{
            effects::Sent,
            fault::{self, Fault},
        },
        simulator::{
            action::{Action, Compacting, Request, Said, Setup},
            client,
            script::Script,
            tests::is_whole,
        },
    };
    use std::{collections::BTreeSet, env, fs, path::Path, thread};

    /// Seeds of a whole run.
    const SEEDS: u64 = 200;

    /// Seeds of a usual run.
    const SOME_SEEDS: u64 = 60;
    const SOME_SEEDS_WITH_TURNS: u64 = 20;

    /// Broken rules that are made small and printed. A search takes up to some minutes.
    const MOST_SEARCHES: usize = 3;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

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
        for seed in 0..10 {
            let scenario = client::scenario(seed);
            assert_eq!(run(&scenario), run(&scenario), "seed {seed}");
        }
        assert_ne!(run(&client::scenario(1)).map(|it| it.hash), run(&client::scenario(2)).map(|it| it.hash));
    }

    /// The same variables name the seeds of sessions whose client lets the daemon run turns.
    #[test]
    fn no_seed_with_turns_breaks_a_rule() {
        let scenario = client::turning::scenario;
        let (first, count) = (variable("ABRIDGED_SIM_SEED"), variable("ABRIDGED_SIM_SEEDS"));
        if let (Some(seed), None) = (first, count) {
            eprintln!("{}", World::traced(&scenario(seed), &mut Observer::of_turns()).join("\n"));
        }
        let usual = if first.is_some() { 1 } else { if is_whole() { SEEDS / 2 } else { SOME_SEEDS_WITH_TURNS } };
        let first = first.unwrap_or_default();
        let (mut all, mut failed) = (Report::default(), 0);
        for seed in first..first + count.unwrap_or(usual) {
            match World::run(&scenario(seed), &mut Observer::of_turns()) {
                Ok(report) => all.add(&report),
                Err(violation) => {
                    eprintln!("seed {seed}: {violation}");
                    failed += 1;
                }
            }
        }
        assert_eq!(failed, 0, "seeds failed");
        if usual > 1 {
            let seen = |name: &str| all.seen.keys().any(|it| it.starts_with(name));
            assert!(seen("event turn_end") && seen("event tool_end") && seen("crash"), "{:#?}", all.seen);
        }
    }

    /// `ABRIDGED_SIM_SEEDS` is the number of seeds, `ABRIDGED_SIM_SEED` the first of them. One alone is traced.
    #[test]
    fn no_seed_breaks_a_rule() {
        let seeds = match (variable("ABRIDGED_SIM_SEED"), variable("ABRIDGED_SIM_SEEDS")) {
            (Some(seed), None) => {
                eprintln!("{}", World::traced(&scenario(seed), &mut Observer::default()).join("\n"));
                seed..seed + 1
            }
            (first, count) => {
                let first = first.unwrap_or_default();
                let usual = if is_whole() { SEEDS } else { SOME_SEEDS };
                first..first + count.unwrap_or(usual)
            }
        };
        let count = thread::available_parallelism().map_or(1, usize::from);
        let part = |first: usize| {
            let (mut all, mut failed) = (Report::default(), Vec::new());
            for scenario in seeds.clone().skip(first).step_by(count).map(scenario) {
                match run(&scenario) {
                    Ok(report) => all.add(&report),
                    Err(violation) => failed.push((scenario, violation)),
                }
            }
            (all, failed)
        };
        let (mut all, mut failed) = (Report::default(), Vec::new());
        thread::scope(|scope| {
            let parts: Vec<_> = (0..count).map(|first| scope.spawn(move || part(first))).collect();
            for part in parts {
                let (report, violations) = part.join().expect("no panic");
                all.add(&report);
                failed.extend(violations);
            }
        });
        failed.sort_by_key(|(scenario, _)| scenario.seed);
        eprintln!("{} steps: {:#?}", all.steps, all.seen);
        for (scenario, violation) in &failed {
            eprintln!("seed {}: {violation}", scenario.seed);
        }
        // Seeds that break one rule mostly have one cause.
        let mut rules = BTreeSet::new();
        for (scenario, violation) in
            failed.iter().filter(|(_, violation)| rules.insert(violation.rule)).take(MOST_SEARCHES)
        {
            eprintln!("{}", report(scenario, violation, &root().join("target/simulator")));
        }
        assert!(failed.is_empty(), "{} seeds failed", failed.len());
    }

    /// Finds the smallest form of a failing scenario and writes its file. Returns the text for a person.
    fn report(scenario: &Scenario, violation: &Violation, folder: &Path) -> String {
        let (found, trace) = found(scenario, violation.clone());
        let file = folder.join(found.file_name());
        fs::create_dir_all(folder).and_then(|()| fs::write(&file, found.text())).expect("a file");
        format!("{trace}\n{found}file: {}\nIn tests/simulator it becomes a test.\n", file.display())
    }

    #[test]
    fn a_planted_fault_is_printed_made_small_and_replays_from_its_file() {
        let planted = fault::plant(Fault::NoUsageBeforeEnd);
        let broken = |scenario: Scenario| run(&scenario).err().map(|violation| (scenario, violation));
        let (scenario, violation) = (0..100).map(client::scenario).find_map(broken).expect("a seed that fails");
        assert_eq!(run(&client::scenario(scenario.seed)), Err(violation.clone()), "the seed repeats");

        let folder = tempfile::tempdir().expect("a folder");
        let text = report(&scenario, &violation, folder.path());
        let file = fs::read_dir(folder.path()).expect("a folder").next().expect("a file").expect("a file").path();
        let found = Found::parse(&fs::read_to_string(&file).expect("a text")).expect("a file");
        let Scenario { seed, setup, actions } = &found.scenario;
        assert!(*seed == scenario.seed && actions.len() <= 6 && setup.script == Script::default(), "{text}");
        let named = format!("{:?}", violation.rule);
        for part in [
            format!("seed {seed} breaks {named}: "),
            format!("again: ABRIDGED_SIM_SEED={seed} cargo test --lib simulator::seeds\n"),
            format!("{} of its {} actions break it", actions.len(), scenario.actions.len()),
            format!("file: {}\n", file.display()),
        ] {
            assert!(text.contains(&part), "{part} in {text}");
        }
        assert!(actions.iter().all(|action| text.contains(&format!("  {action:?}\n"))), "{text}");

        let again = run(&found.scenario).expect_err("the file replays");
        assert!(text.contains(&format!("breaks {again}\n")) && again.rule == violation.rule, "{again} in {text}");
        drop(planted);
        assert_eq!(run(&found.scenario).err(), None, "without the fault the file passes");
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
