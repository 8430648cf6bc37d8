//! The facts of a session, and whether they are as the row deserves.

use super::{
    row::{Deserves, Room, Row},
    truth::Exchange,
};
use serde_json::Value;
use std::collections::HashSet;

/// The error that is allowed after a true report of the model, over the true size.
const WITH: f64 = 0.15;
/// The same in a session whose first report after a compaction is wrong and near the estimate. It counts until the next one
/// contradicts it.
const WITH_A_NEAR_LIE: f64 = 0.20;
/// The error that is allowed without one.
const WITHOUT: f64 = 0.35;

/// The largest error of `usage.contextTokens`.
#[derive(Debug, Default)]
struct Worst {
    /// The error over the true size.
    share: f64,
    turn: usize,
    told: u64,
    truth: u64,
}

impl Worst {
    fn told(&self) -> String {
        format!("{} instead of {} tokens in turn {}", self.told, self.truth, self.turn)
    }
}

/// The facts of a session.
#[derive(Debug, Default)]
pub struct Measured {
    /// The window that the host states.
    window: u64,
    /// The largest error after a true report of the model.
    informed: Worst,
    /// The largest error before it.
    blind: Worst,
    is_informed: bool,
    /// Contexts that hold a part of unknown size. Nothing measures them.
    unknown: usize,
    /// Whether each report was believed.
    believed: Vec<bool>,
    /// Contexts over the window of the provider.
    over: usize,
    /// Contexts that were made for another window.
    other_windows: usize,
    /// The ids of the answers.
    answers: HashSet<String>,
    /// Answers that left the context without a compaction.
    left: usize,
    pub compactions: usize,
    recoveries: usize,
    /// Notices that a report is not believed.
    not_believed: usize,
}

impl Measured {
    pub fn new(row: &Row, room: Room) -> Self {
        let unknown = usize::from(row.counts.unannounced > 0) * row.patience();
        Self { window: row.window(room), unknown, ..Self::default() }
    }

    /// Takes a context that was handed out, and its true size.
    pub fn sent(&mut self, turn: usize, truth: u64, context: &Value) {
        /// Smaller contexts are measured as if they had this size, in tokens.
        const LEAST: u64 = 2_000;
        let told = context["usage"]["contextTokens"].as_u64().expect("a number");
        let share = told.abs_diff(truth) as f64 / truth.max(LEAST) as f64;
        let worst = if self.is_informed { &mut self.informed } else { &mut self.blind };
        self.other_windows += usize::from(context["usage"]["contextWindow"] != self.window);
        if self.unknown > 0 {
            self.unknown -= 1;
            return;
        }
        self.over += usize::from(truth > self.window);
        if share > worst.share {
            *worst = Worst { share, turn, told, truth };
        }
    }

    /// Takes a report of a prompt, its true size, the answer to it, and the size of the session behind it.
    pub fn reported(&mut self, exchange: &Exchange, prompt: u64, appended: &Value) {
        let near = |told: u64, truth: u64| told.abs_diff(truth) <= truth / 25 + 100;
        let is_cut = exchange.read < exchange.prompt;
        self.is_informed = prompt.abs_diff(exchange.prompt) * 50 <= exchange.prompt || self.is_informed && !is_cut;
        let size = appended["usage"]["contextTokens"].as_u64().expect("a number");
        self.believed.push(near(size, prompt + exchange.output));
    }

    /// The next contexts have a part of unknown size, or are counted by another model.
    pub fn forget(&mut self, unknown: usize) {
        self.is_informed = false;
        self.unknown = unknown;
    }

    /// Takes the events of the session.
    pub fn saw(&mut self, events: &[Value]) {
        for frame in events {
            let event = &frame["params"]["event"];
            match event["type"].as_str() {
                Some("compaction_start") => self.compactions += 1,
                Some("recovery_start") => self.recoveries += 1,
                Some("entry_appended") => self.appended(&event["entry"]),
                Some("notice") if event["code"] == "usage_not_believed" => self.not_believed += 1,
                _ => {}
            }
        }
    }

    fn appended(&mut self, entry: &Value) {
        let id = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        match entry["type"].as_str() {
            Some("message") if entry["message"]["role"] == "assistant" => drop(self.answers.insert(id("id"))),
            // Other messages leave the context, too: a compaction replaces a text that an earlier one carried.
            Some("context_edit") => self.left += usize::from(self.answers.contains(&id("targetId"))),
            _ => {}
        }
    }

    /// Takes the last context. Without a compaction it has every answer.
    pub fn ended(mut self, answers: &[String], context: &Value) -> Self {
        if self.compactions == 0 {
            let text = context["messages"].to_string();
            self.left += answers.iter().filter(|answer| !text.contains(answer.as_str())).count();
        }
        self
    }

    /// The longest series of reports that were not believed.
    fn longest_doubt(&self) -> usize {
        self.believed.split(|believed| *believed).map(<[bool]>::len).max().unwrap_or_default()
    }

    /// The effects of the reports on the session, beside its sizes.
    pub fn effects(&self) -> Vec<&'static str> {
        let effects = [
            ("answers left the context", self.left),
            ("a recovery ran", self.recoveries),
            ("a compaction ran", self.compactions),
            ("a window was learned", self.other_windows),
        ];
        effects.into_iter().filter(|(_, times)| *times > 0).map(|(effect, _)| effect).collect()
    }

    /// The faults of the daemon in this session. `honest` is the number of compactions of a host that reports the truth.
    pub fn faults(&self, row: &Row, room: Room, honest: usize) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |right: bool, fault: String| {
            if !right {
                faults.push(fault);
            }
        };
        check(self.left == 0, format!("{} answers left the context", self.left));
        check(self.recoveries == 0, format!("{} recoveries", self.recoveries));
        let most = match row.deserves {
            Deserves::Near => WITHOUT,
            Deserves::Disbelief | Deserves::Notice | Deserves::Caution if room == Room::Narrow => WITH_A_NEAR_LIE,
            _ => WITH,
        };
        check(self.informed.share <= most, format!("after a true report {}", self.informed.told()));
        check(self.blind.share <= WITHOUT, format!("without a true report {}", self.blind.told()));
        let (believed, all) = (self.believed.iter().filter(|it| **it).count(), self.believed.len());
        let is_last_believed = self.believed.last() == Some(&true);
        let told = format!("{believed} of {all} reports are believed, {} in a row are not", self.longest_doubt());
        check(
            match row.deserves {
                Deserves::Belief => believed == all,
                Deserves::Near => self.longest_doubt() <= 2,
                Deserves::BeliefAfter(most) => self.longest_doubt() <= most && is_last_believed,
                Deserves::Caution | Deserves::Window => true,
                Deserves::Disbelief | Deserves::Notice => believed == 0,
            },
            told,
        );
        let noticed = match row.deserves {
            Deserves::Notice => 1..=1,
            Deserves::Caution | Deserves::Disbelief | Deserves::Window => 0..=1,
            _ => 0..=0,
        };
        check(noticed.contains(&self.not_believed), format!("{} notices", self.not_believed));
        if row.deserves == Deserves::Window {
            // A narrow session may never get to the limit of the server.
            check(self.other_windows > 0 || room == Room::Narrow, "no window is learned".to_owned());
        } else {
            check(self.other_windows == 0, format!("another window in {} contexts", self.other_windows));
            check(self.over == 0 || row.deserves == Deserves::Near, format!("{} contexts over the window", self.over));
            let most = if room == Room::Wide { 0 } else { 2 };
            let told = format!("{} compactions, {honest} with true reports", self.compactions);
            check(self.compactions.abs_diff(honest) <= most, told);
        }
        faults
    }
}
