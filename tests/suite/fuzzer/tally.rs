//! Counts of a run: methods with the codes of their answers, and events with their outcomes.

use super::record::{Line, Record};
use std::{collections::BTreeMap, fmt};

#[derive(Debug, Default)]
pub struct Tally(BTreeMap<String, usize>);

impl Tally {
    pub fn add(&mut self, record: &Record) {
        for line in record.lines() {
            let Line::Got(frame) = line else {
                if matches!(line, Line::Killed | Line::Ended | Line::Reopened { .. } | Line::Rewritten(..)) {
                    let name = format!("{line:?}");
                    self.count(format!("= {}", name.split([' ', '(']).next().unwrap_or_default()));
                }
                continue;
            };
            let event = &frame["params"]["event"];
            match (event["type"].as_str(), frame["method"].as_str(), record.asked(frame)) {
                (Some(kind), ..) => {
                    let outcome = event["outcome"].as_str().or(event["skippedReason"].as_str()).unwrap_or_default();
                    let reason = event["reason"].as_str().or(event["code"].as_str()).unwrap_or_default();
                    self.count(format!("{kind} {reason} {outcome}"));
                }
                (None, Some(method), _) => self.count(format!("! {method}")),
                (None, None, Some(asked)) => {
                    let code = frame["error"]["data"]["code"].as_str().unwrap_or("ok");
                    self.count(format!("{} {code}", asked.method));
                }
                _ => {}
            }
        }
    }

    fn count(&mut self, name: String) {
        *self.0.entry(name.trim_end().to_owned()).or_default() += 1;
    }

    pub fn of(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, count)| writeln!(f, "{count:>8} {name}"))
    }
}
