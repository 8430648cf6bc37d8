//! Whether the server answers, and since when it does not.

#![expect(clippy::disallowed_methods, reason = "the time of an outage")]

use super::{PATIENCE, lock};
use crate::log::store::server::Fault;
use std::{
    sync::{Mutex, OnceLock},
    time::{Duration, Instant},
};

/// Whether the server answers.
#[derive(Default)]
pub(super) struct Health {
    away: Mutex<Option<Away>>,
    pub(super) tell: OnceLock<Tells>,
}

struct Away {
    since: Instant,
    told: bool,
    why: String,
}

/// A function that learns of outages.
type Tells = Box<dyn Fn(&Outage) + Send + Sync>;

/// News about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outage {
    /// It does not answer, for this reason.
    Begun(String),
    /// It answers again.
    Over,
}

impl Health {
    /// Keeps whether a statement was answered. A refusal is an answer; a connection that was made is none.
    pub(super) fn saw<T>(&self, answer: &Result<T, Fault>) {
        match answer {
            Err(fault @ (Fault::Away(_) | Fault::Cut(_))) => self.fails(fault),
            _ => self.answers(),
        }
    }

    /// The reason of the outage.
    pub(super) fn reason(&self) -> Fault {
        let away = lock(&self.away);
        Fault::Away(away.as_ref().map_or_else(|| "it does not answer".to_owned(), |away| away.why.clone()))
    }

    /// Whether the server did not answer last.
    pub(super) fn is_away(&self) -> bool {
        lock(&self.away).is_some()
    }

    /// Refuses a request where the server has been away for so long that none waits for it.
    pub(super) fn gate(&self) -> Result<(), Fault> {
        if self.is_hopeless() { Err(self.reason()) } else { Ok(()) }
    }

    fn answers(&self) {
        let ended = lock(&self.away).take();
        if ended.is_some_and(|away| away.told) {
            self.tell(&Outage::Over);
        }
    }

    pub(super) fn fails(&self, fault: &Fault) {
        /// Shorter outages are no news.
        const WORTH_TELLING: Duration = Duration::from_secs(2);
        let mut away = lock(&self.away);
        let away = away.get_or_insert_with(|| Away { since: Instant::now(), told: false, why: String::new() });
        away.why = reason(fault);
        if !away.told && away.since.elapsed() > WORTH_TELLING {
            away.told = true;
            self.tell(&Outage::Begun(reason(fault)));
        }
    }

    /// The server did not answer for so long.
    pub(super) fn was_silent(&self, longest: Duration, fault: &Fault) {
        let since = Instant::now().checked_sub(longest).unwrap_or_else(Instant::now);
        lock(&self.away).get_or_insert(Away { since, told: false, why: String::new() });
        self.fails(fault);
    }

    pub(super) fn is_hopeless(&self) -> bool {
        lock(&self.away).as_ref().is_some_and(|away| away.since.elapsed() > PATIENCE)
    }

    fn tell(&self, outage: &Outage) {
        if let Some(tell) = self.tell.get() {
            tell(outage);
        }
    }
}

fn reason(fault: &Fault) -> String {
    match fault {
        Fault::Away(why) | Fault::Cut(why) | Fault::Refused { why, .. } => why.clone(),
        other => format!("{other:?}"),
    }
}
