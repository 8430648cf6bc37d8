//! Windows as providers taught them: by limits in their refusals, and by prompts that were cut without an error. A value:
//! each session has a copy, and `windows.rs` has the one that all sessions learn into.

pub(super) mod accepted;
pub mod kept;
mod row;

pub use row::{Accepted, Address, LearnedWindow, Server, WindowOrigin};

use super::ModelRef;
use crate::{ids::SessionId, settings::Settings};
use accepted::AcceptedSizes;
use row::Recorded;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The refusals after which a window counts over a larger one that a host or a setting names.
const CONFIRMED: u32 = 2;

/// The windows that were learned. Cheap to clone. A clone stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct Learned {
    /// By the name of the model: those of each of its servers, the newest last. Servers behind one address may differ.
    rows: Arc<BTreeMap<String, Vec<LearnedWindow>>>,
    /// The largest requests that servers took, in all sessions.
    accepted: AcceptedSizes,
    /// How often a person had the windows of a model forgotten, in this process.
    forgotten: Arc<BTreeMap<String, u64>>,
    /// The session of this copy.
    session: Option<SessionId>,
    /// The size that a model refused without a limit, the prompt that it cut without an error, or a limit that it stated
    /// although it took more in another session. A session knows it for itself.
    seen: Option<(ModelRef, u64)>,
}

/// A change of the windows that were learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// A server showed the window of a model.
    Learned(LearnedWindow),
    /// A server took a request of so many tokens. A smaller window is wrong.
    Accepted(Server, u64),
    /// A person has the windows of a model forgotten.
    Forgotten(ModelRef),
}

/// The windows of one model that were learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taught {
    /// The window that the provider states.
    pub stated: Option<Stated>,
    /// The window that a refusal without a limit, a cut prompt or a doubtful limit shows, in tokens. It counts over no setting.
    pub seen: Option<u64>,
}

/// A window that a provider states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stated {
    /// In tokens.
    pub tokens: u64,
    /// Where it counts.
    pub reach: Reach,
}

/// Where a window that a provider states counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Everywhere: over a larger window that a host or a setting names, too.
    Everywhere,
    /// Only where neither a host nor a setting names a window: one refusal in another session may be wrong.
    WhereNoneIsNamed,
}

impl From<Option<u64>> for Taught {
    fn from(stated: Option<u64>) -> Self {
        Self { stated: stated.map(|tokens| Stated { tokens, reach: Reach::Everywhere }), seen: None }
    }
}

impl Learned {
    /// The copy of a session, in which a window that was learned there counts.
    #[must_use]
    pub fn in_session(self, session: &SessionId) -> Self {
        Self { session: Some(session.clone()), ..self }
    }

    /// The windows of a model under these settings.
    #[must_use]
    pub fn taught(&self, settings: &Settings, model: &ModelRef) -> Taught {
        let stated = self.row(settings, model).map(|row| Stated {
            tokens: row.context_window,
            reach: if self.counts_here(row) { Reach::Everywhere } else { Reach::WhereNoneIsNamed },
        });
        let seen = self.seen.as_ref().filter(|(of, _)| of == model).map(|(_, window)| *window);
        Taught { stated, seen }
    }

    /// The window of a model at the server that the settings name: the newest that counts over a named one in this session,
    /// else the newest.
    #[must_use]
    pub fn row(&self, settings: &Settings, model: &ModelRef) -> Option<&LearnedWindow> {
        // Mostly there is none, and a name costs more than a look.
        if self.rows.is_empty() {
            return None;
        }
        let newest = |counts: &dyn Fn(&LearnedWindow) -> bool| {
            let rows = self.rows_of(settings, model).filter(|row| counts(row));
            rows.last()
        };
        newest(&|row| self.counts_here(row)).or_else(|| newest(&|_| true))
    }

    /// The windows of a model at the server that the settings name, the newest last.
    pub fn rows_of(&self, settings: &Settings, model: &ModelRef) -> impl Iterator<Item = &LearnedWindow> {
        let server = Server::of(settings, model);
        self.of_model(model).iter().filter(move |row| row.base_url.may_be(&server.address))
    }

    /// Whether a window counts over a larger one that a host or a setting names: it was taught in this session, or twice.
    fn counts_here(&self, row: &LearnedWindow) -> bool {
        row.refusals >= CONFIRMED || row.session.is_some() && row.session == self.session
    }

    /// The windows of a model at all of its servers.
    #[must_use]
    pub fn of_model(&self, model: &ModelRef) -> &[LearnedWindow] {
        self.rows.get(&model.to_string()).map_or(&[], Vec::as_slice)
    }

    /// The largest request that a server took, in tokens, in this session or another one.
    #[must_use]
    pub fn accepted(&self, server: &Server) -> Option<u64> {
        self.accepted.largest(&server.model, &server.address)
    }

    /// The largest requests that servers took.
    #[must_use]
    pub(super) fn all_accepted(&self) -> &[Accepted] {
        self.accepted.all()
    }

    /// Windows with the largest requests that servers took.
    #[must_use]
    pub(super) fn with_accepted(self, accepted: impl IntoIterator<Item = Accepted>) -> Self {
        Self { accepted: accepted.into_iter().collect(), ..self }
    }

    /// Whether both have the same windows, whatever sizes were accepted.
    #[must_use]
    pub(super) fn has_windows_of(&self, other: &Self) -> bool {
        self.rows == other.rows && self.forgotten == other.forgotten
    }

    /// All windows, by the names of their models.
    pub fn all(&self) -> impl Iterator<Item = &LearnedWindow> {
        self.rows.values().flatten()
    }

    /// Makes a change. Returns true if something is different then. A number that can be no window is ignored.
    pub fn apply(&mut self, change: &Change) -> bool {
        match change {
            Change::Learned(row) => self.learn(row.clone()),
            Change::Accepted(server, tokens) => {
                let is_larger = plausible(*tokens) && self.accepted.grow(server, *tokens);
                self.disprove(server, *tokens) || is_larger
            }
            Change::Forgotten(model) => self.forget(model),
        }
    }

    /// The windows after these changes.
    #[must_use]
    pub(super) fn with(mut self, changes: &[Change]) -> Self {
        for change in changes {
            self.apply(change);
        }
        self
    }

    /// A window below a size that the server took is wrong, unless the server cuts its prompts to it now.
    ///
    /// A window that is taught again is confirmed. Another one stands beside it: both may be true, for two servers behind one
    /// address. In one session the newest statement takes the place of the one before.
    fn learn(&mut self, row: LearnedWindow) -> bool {
        if !plausible(row.context_window) {
            return false;
        }
        match row.origin {
            WindowOrigin::Saturation => self.accepted.bound(&row.model, &row.base_url, row.context_window),
            WindowOrigin::Refusal => {
                let largest = self.accepted.largest(&row.model, &row.base_url);
                if largest.is_some_and(|largest| largest > row.context_window) {
                    return false;
                }
            }
        }
        // A stated window counts for more than one that was seen.
        self.seen.take_if(|(of, _)| *of == row.model);
        let rows = Arc::make_mut(&mut self.rows).entry(row.model.to_string()).or_default();
        let mut refusals = row.refusals;
        rows.retain(|known| {
            let is_same = known.is_same(&row);
            if is_same {
                refusals = refusals.saturating_add(known.refusals);
            }
            let is_replaced = known.base_url.may_be(&row.base_url)
                && known.refusals < CONFIRMED
                && (known.session.is_none() || known.session == row.session);
            !(is_same || is_replaced)
        });
        rows.push(LearnedWindow { refusals, ..row });
        keep_newest(rows);
        true
    }

    fn disprove(&mut self, server: &Server, accepted: u64) -> bool {
        let seen = self.seen.take_if(|(of, window)| *of == server.model && accepted > *window);
        let wrong = |row: &LearnedWindow| row.base_url.may_be(&server.address) && accepted > row.context_window;
        let any = self.of_model(&server.model).iter().any(wrong);
        if any {
            self.retain(&server.model, |row| !wrong(row));
        }
        any || seen.is_some()
    }

    fn forget(&mut self, model: &ModelRef) -> bool {
        self.seen.take_if(|(of, _)| of == model);
        self.retain(model, |_| false);
        self.accepted.forget(model);
        *Arc::make_mut(&mut self.forgotten).entry(model.to_string()).or_default() += 1;
        true
    }

    fn retain(&mut self, model: &ModelRef, stays: impl Fn(&LearnedWindow) -> bool) {
        let (rows, name) = (Arc::make_mut(&mut self.rows), model.to_string());
        if let Some(of_model) = rows.get_mut(&name) {
            of_model.retain(stays);
            if of_model.is_empty() {
                rows.remove(&name);
            }
        }
    }

    /// Learns the window of a model, for this session alone, from a size that it refused, a prompt that it cut, or a limit
    /// below a size that another session got through.
    pub fn see(&mut self, model: &ModelRef, window: u64) {
        if plausible(window) {
            self.seen = Some((model.clone(), window));
        }
    }

    /// Takes the windows that all sessions have.
    pub fn update(&mut self, shared: Self) {
        let seen = self.seen.take().filter(|(of, _)| {
            let of = of.to_string();
            shared.forgotten.get(&of) == self.forgotten.get(&of)
        });
        *self = Self { session: self.session.take(), seen, ..shared };
    }

    /// The models of which the other one has no window.
    pub(super) fn models_missing_in(&self, other: &Self) -> Vec<ModelRef> {
        let missing = self.rows.iter().filter(|(name, _)| !other.rows.contains_key(*name));
        missing.filter_map(|(_, rows)| Some(rows.first()?.model.clone())).collect()
    }

    /// The windows of a file, with what this process knows beside it.
    #[must_use]
    pub(super) fn beside(self, process: &Self) -> Self {
        Self { rows: self.rows, accepted: self.accepted, ..process.clone() }
    }
}

impl FromIterator<LearnedWindow> for Learned {
    /// Windows that were learned before, the newest last. A number that can be no window is left out.
    fn from_iter<T: IntoIterator<Item = LearnedWindow>>(rows: T) -> Self {
        let mut by_model: BTreeMap<String, Vec<LearnedWindow>> = BTreeMap::new();
        for mut row in rows.into_iter().filter(|row| plausible(row.context_window)) {
            let of_model = by_model.entry(row.model.to_string()).or_default();
            of_model.retain(|known| {
                let is_same = known.is_same(&row);
                if is_same {
                    row.refusals = row.refusals.max(known.refusals);
                }
                !is_same
            });
            of_model.push(row);
            keep_newest(of_model);
        }
        Self { rows: Arc::new(by_model), ..Self::default() }
    }
}

impl From<Learned> for Recorded {
    fn from(learned: Learned) -> Self {
        Self::Rows {
            windows: learned.all().cloned().collect(),
            forgotten: (*learned.forgotten).clone(),
            accepted: learned.all_accepted().to_vec(),
        }
    }
}

impl From<Recorded> for Learned {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::Rows { windows, forgotten, accepted } => {
                Self { forgotten: Arc::new(forgotten), ..windows.into_iter().collect() }.with_accepted(accepted)
            }
            Recorded::Tokens(tokens) => {
                tokens.iter().filter_map(|(name, tokens)| LearnedWindow::before_2(name, *tokens)).collect()
            }
        }
    }
}

/// Drops the oldest windows of a model beyond a bound. Those that one refusal taught go first.
fn keep_newest(rows: &mut Vec<LearnedWindow>) {
    /// Most windows of a model. Each session that is refused with a number of its own adds one.
    const MOST: usize = 16;
    while rows.len() > MOST {
        let oldest = rows.iter().position(|row| row.refusals < CONFIRMED).unwrap_or(0);
        rows.remove(oldest);
    }
}

/// Whether a number can be a window that an agent works in, in tokens. A smaller one would leave a session stuck, on the
/// word of one server.
fn plausible(window: u64) -> bool {
    (1_024..=20_000_000).contains(&window)
}

#[cfg(test)]
mod tests;
