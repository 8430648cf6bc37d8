//! Costs of the sessions of a data folder, in the doctor's report: read from the end of each file, back to the last
//! compaction that carries the costs before it.

use super::compact::grouped;
use crate::{
    conversation::spending::{Spending, Sum},
    log::{header, source::Source},
    protocol::types::SpentSum,
};
use serde::Serialize;
use serde_json::json;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Most bytes that are read of the end of a file.
const OF_EACH: u64 = 64 << 10;

/// Most files that are read, the newest first.
const MOST_FILES: usize = 500;

/// The costs of a data folder.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Costs {
    total: SpentSum,
    purposes: BTreeMap<String, SpentSum>,
    automatic: SpentSum,
    /// Number of sessions that were read.
    sessions: usize,
    /// Number of them whose earlier costs were not read.
    at_least: usize,
    /// Number of older sessions that were not read.
    left_out: usize,
}

impl Costs {
    /// The costs of these files, with their times of modification.
    pub(super) fn of(mut files: Vec<(SystemTime, PathBuf)>) -> Self {
        files.sort_unstable_by_key(|(modified, _)| std::cmp::Reverse(*modified));
        let read: Vec<Spending> = files.iter().take(MOST_FILES).filter_map(|(_, file)| costs(file)).collect();
        let mut purposes: BTreeMap<&str, Sum> = BTreeMap::new();
        for (name, sum) in read.iter().flat_map(|it| &it.purposes) {
            let all = purposes.entry(name).or_default();
            *all = all.plus(*sum);
        }
        let sum = |sums: &mut dyn Iterator<Item = Sum>| sums.fold(Sum::default(), Sum::plus).into();
        Self {
            total: sum(&mut purposes.values().copied()),
            automatic: sum(&mut read.iter().map(|it| it.automatic)),
            purposes: purposes.into_iter().map(|(name, sum)| (name.to_owned(), sum.into())).collect(),
            sessions: read.len(),
            at_least: read.iter().filter(|it| it.is_partial).count(),
            left_out: files.len().saturating_sub(MOST_FILES),
        }
    }

    /// Rows for a person: a row for each purpose, the sums, and the part of the files that was read.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        if self.total.requests == 0 {
            return vec![vec![format!("no model was asked for a summary{}", self.read())]];
        }
        let row = |name: &str, sum: &SpentSum| {
            let requests = if sum.requests == 1 { "request" } else { "requests" };
            let dollars = match sum.dollars {
                Some(dollars) if sum.unpriced > 0 => format!("${dollars:.2} and more"),
                Some(dollars) => format!("${dollars:.2}"),
                None => "no price known".to_owned(),
            };
            let (count, tokens) = (grouped(&json!(sum.requests)), grouped(&json!(sum.total_tokens)));
            vec![name.to_owned(), format!("{count} {requests}"), format!("{tokens} tokens"), dollars]
        };
        let mut rows: Vec<_> = self.purposes.iter().map(|(name, sum)| row(name, sum)).collect();
        rows.push(row("all", &self.total));
        rows.push(row("of it automatic", &self.automatic));
        rows.push(vec![self.read().trim_start_matches(", ").to_owned()]);
        rows
    }

    /// The part of the files that was read.
    fn read(&self) -> String {
        let sessions =
            |count: usize| format!("{} {}", grouped(&json!(count)), if count == 1 { "session" } else { "sessions" });
        let mut text = format!(", as far as the ends of {} say", sessions(self.sessions));
        if self.at_least > 0 {
            text.push_str(&format!("; {} may have more", grouped(&json!(self.at_least))));
        }
        if self.left_out > 0 {
            text.push_str(&format!("; {} not read", grouped(&json!(self.left_out))));
        }
        text
    }
}

/// The costs in the end of a file; none where it is no session.
fn costs(file: &Path) -> Option<Spending> {
    let found = header::peek(file).ok()?;
    Source::open(file.to_owned(), &found).ok()?.costs_of_end(OF_EACH).ok()
}
