//! A failing run, made small for a person: the broken rule, the fewest actions, and the file with which it becomes a test.

use super::{
    action::Scenario,
    observer::Violation,
    shrink::Search,
    simpler::{simpler, simpler_setup},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the files.
const VERSION: u32 = 1;

/// The most runs of one search. Most searches end after a few hundred.
const MOST_RUNS: u32 = 3_000;

/// A scenario that broke a rule, as it is kept in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Found {
    /// The version of the file.
    version: u32,
    /// The rule.
    rule: String,
    /// The facts with which the rule was broken.
    detail: String,
    /// Number of actions before the search.
    actions_before: usize,
    /// Runs of the search.
    runs: u32,
    /// The smallest scenario that the search found.
    pub scenario: Scenario,
}

impl Found {
    /// The smallest scenario that breaks the same rule. `run` gives the rule that a scenario breaks. The scenario keeps its
    /// seed, so that the remaining results arrive as before.
    pub fn smallest(
        scenario: &Scenario,
        violation: Violation,
        run: &mut dyn FnMut(&Scenario) -> Option<Violation>,
    ) -> Self {
        let mut broken = violation;
        let mut breaks = |candidate: &Scenario| match run(candidate) {
            Some(violation) if violation.rule == broken.rule => {
                broken = violation;
                true
            }
            _ => false,
        };
        let mut search = Search::of(MOST_RUNS);
        let mut small = scenario.clone();
        // The first actions may build what a simpler setup has at once, and actions may serve a part of the setup.
        for _ in 0..2 {
            let Scenario { seed, setup, actions } = small;
            let actions = search.smallest(actions, &simpler, &mut |actions| {
                breaks(&Scenario { seed, setup: setup.clone(), actions: actions.to_vec() })
            });
            let setup = search.simplest(setup, &simpler_setup, &mut |setup| {
                breaks(&Scenario { seed, setup: setup.clone(), actions: actions.clone() })
            });
            small = Scenario { seed, setup, actions };
        }
        Self {
            version: VERSION,
            rule: format!("{:?}", broken.rule),
            detail: broken.detail,
            actions_before: scenario.actions.len(),
            runs: search.runs(),
            scenario: small,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When the text is not of this version.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match found.version {
            VERSION => Ok(found),
            other => Err(format!("version {other}, where {VERSION} is known")),
        }
    }

    /// The text of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).unwrap_or_else(|error| unreachable!("no map has other keys: {error}"));
        text.push('\n');
        text
    }

    /// The name of its file: the rule and the seed.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.json", self.rule_name(), self.scenario.seed)
    }

    /// The rule as a part of the name of a file: `EndedOnce` is `ended-once`.
    #[must_use]
    pub fn rule_name(&self) -> String {
        let mut name = String::new();
        for char in self.rule.chars() {
            if char.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(char.to_ascii_lowercase());
        }
        name
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, detail, actions_before, runs, scenario, .. } = self;
        let Scenario { seed, setup, actions } = scenario;
        writeln!(f, "seed {seed} breaks {rule}: {detail}")?;
        writeln!(f, "again: ABRIDGED_SIM_SEED={seed} cargo test --lib simulator::seeds")?;
        writeln!(f, "{} of its {actions_before} actions break it, found in {runs} runs:", actions.len())?;
        writeln!(f, "  {setup:?}")?;
        actions.iter().try_for_each(|action| writeln!(f, "  {action:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        session::effects::Sent,
        simulator::{
            action::{Action, Compacting, Request, Setup},
            client,
            observer::{Observer, Rule},
            world::World,
        },
    };
    use std::{fs, path::Path};

    /// The runs that failed once.
    #[test]
    fn found_scenarios_pass() {
        for file in
            fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator")).into_iter().flatten().flatten()
        {
            let text = fs::read_to_string(file.path()).expect("a text");
            let found = Found::parse(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            assert!(file.file_name().to_string_lossy().starts_with(found.rule_name().as_str()), "{file:?}: {found}");
            if let Err(violation) = World::run(&found.scenario, &mut Observer::default()) {
                let trace = World::traced(&found.scenario, &mut Observer::default()).join("\n");
                panic!("{trace}\n{file:?}: {violation}\n{found}");
            }
        }
    }

    #[test]
    fn a_file_is_named_after_its_rule_and_seed() {
        let violation = Violation { rule: Rule::OneCompaction, detail: String::new() };
        let found = Found::smallest(&client::scenario(12), violation, &mut |_| None);
        assert_eq!(found.file_name(), "one-compaction-12.json");
    }

    #[test]
    fn another_rule_is_another_failure() {
        let compact = Action::Send(Request::Compact(Compacting::default()), Sent::Alone);
        let actions = vec![Action::Wait(5), compact.clone(), Action::Stop];
        let scenario = Scenario { seed: 3, setup: Setup::default(), actions };
        // Without the compaction another rule is broken.
        let mut run = |scenario: &Scenario| {
            let rule = if scenario.actions.contains(&compact) { Rule::Answered } else { Rule::World };
            Some(Violation { rule, detail: String::new() })
        };
        let violation = run(&scenario).expect("a violation");
        assert_eq!(Found::smallest(&scenario, violation, &mut run).scenario.actions, [compact]);
    }

    #[test]
    fn a_file_of_another_version_is_refused() {
        let (scenario, violation) = (client::scenario(1), Violation::of_world("a test"));
        let found = Found::smallest(&scenario, violation, &mut |_| None);
        assert_eq!(found.scenario, scenario, "no smaller one fails");
        let text = found.text();
        assert_eq!(Found::parse(&text), Ok(found));
        assert!(Found::parse(&text.replace("\"version\": 1", "\"version\": 2")).is_err());
        assert!(Found::parse(&text.replace("\"rule\"", "\"rules\"")).is_err());
    }
}
