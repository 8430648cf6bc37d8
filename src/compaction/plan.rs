//! The plan of a compaction.

pub mod cut;
#[cfg(test)]
mod tests;
mod window;

pub use window::{unread, unread_ids};

use super::{
    ahead,
    rehydrate::{Rehydrated, Rehydration, Seen},
    style::Messages,
};
use crate::{
    conversation::{
        context,
        entry::{CarriedCalibration, CarriedLoad, CarriedMessage, CarriedTodos, ContextEdit, Entry, carried_data},
        message::outline::Role,
        path::Path,
        tokens::{Estimator, Scale},
    },
    ids::EntryId,
    models::Budget,
    prompts::Prompts,
    settings::Settings,
    summary::{span::Span, todo},
};
use cut::{Cut, Kind, before, cut};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};
use window::Window;
pub(super) use window::unread_requests;

/// The demands on a compaction.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// Size of the kept tail, in tokens.
    pub keep: u64,
    /// Whether the request named that size. It then applies without a lower bound.
    pub explicit: bool,
    /// The scale of the session.
    pub scale: Scale,
    /// The parts of the window.
    pub budget: Budget,
    /// Size of the context now, in tokens.
    pub tokens_before: u64,
    /// The size up to which a context may stay whole, in tokens. Of a larger one less is kept than demanded, if there is no
    /// other cut. With 0 the context has to change.
    pub may_stay: u64,
    /// Whether the compaction is made even where it makes nothing smaller: the request has instructions.
    pub insists: bool,
}

/// The reason why the kept part cannot begin at an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCut {
    /// The entry is not on the path, or an earlier compaction covers it.
    #[error("it is not among the messages of the context")]
    NotInContext,
    /// The entry is a tool result.
    #[error("it is a tool result, which stays with its call")]
    Result,
    /// An answer before the entry waits for results.
    #[error("a call before it still waits for its result")]
    OpenCall,
    /// No message precedes the entry.
    #[error("no message precedes it")]
    First,
}

/// The plan of a compaction. It is valid as long as the entries that it covers are unchanged.
#[derive(Debug, Clone)]
pub struct Plan {
    path: Path,
    /// Place on the path of the first entry that may be summarized: the kept tail of the previous compaction.
    start: usize,
    cut: Cut,
    /// Pinned entries, which are kept verbatim and not summarized.
    pinned: Arc<HashSet<EntryId>>,
    calibrations: Arc<[CarriedCalibration]>,
    /// The messages of the user in front of the summary, in the style that has some.
    messages: Option<Messages>,
    /// The data of other programs that the previous compaction carries.
    carried_data: Arc<Map<String, Value>>,
    todos: todo::Rules,
    /// The files and loaded texts of the path, where they are to come back.
    rehydration: Option<Rehydration>,
    /// The estimate of the context before, and its estimator, once it was asked for. Plans of one path share it.
    estimate_before: Arc<OnceLock<(Estimator, u64)>>,
    /// The demands.
    pub demand: Demand,
    /// The frames around the summary and the carried message.
    pub prompts: Arc<Prompts>,
}

/// The reason why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingToDo {
    /// No message follows the last compaction.
    AlreadyCompacted,
    /// There is no message.
    Empty,
    /// All messages are kept.
    TooShort,
    /// The result would not be smaller.
    WouldNotShrink,
    /// An agent asks below half of the threshold.
    BelowHalfThreshold,
}

/// Plans a compaction of a path. With `Estimator::Tiktoken` it may count for a while.
///
/// # Errors
/// When there is nothing to compact.
pub fn plan(path: Path, demand: Demand, prompts: Arc<Prompts>) -> Result<Plan, NothingToDo> {
    let too_large = !demand.explicit && demand.tokens_before > demand.may_stay;
    // After a compaction only messages that came while it was made, or another model, make a context too large.
    if !too_large && !anything_new(&path) {
        return Err(if path.compaction().is_some() { NothingToDo::AlreadyCompacted } else { NothingToDo::Empty });
    }
    let start = path.first_kept();
    let window = Window::of(&path[start..]);
    let steps = window.steps(demand.scale.estimator());
    let (mut keep, stays) = (kept_tail(&demand), window.stays(&demand));
    let cut_at = |keep| cut(&steps, keep, stays);
    let cut = cut_at(keep);
    let pinned = Arc::new(path.pins().iter().map(|pin| pin.entry.clone()).collect());
    let carried_data = Arc::new(path.compaction().map(|place| carried_data(&path[place])).unwrap_or_default());
    // In a small window the todo list gets a sixth of the room.
    let sixth = demand.scale.fitting(demand.budget.available()) as usize / 2;
    let todos = todo::Rules::default().within(sixth);
    let mut plan = Plan {
        path,
        start,
        cut,
        pinned,
        calibrations: Arc::default(),
        messages: None,
        carried_data,
        todos,
        rehydration: None,
        estimate_before: Arc::default(),
        demand,
        prompts,
    };
    while plan.summarized().is_empty() {
        match (too_large, keep) {
            (true, 1..) => keep /= 2,
            // Edits make a context small enough that has nothing to summarize. `decide::Why::TooShort` has the same bound.
            (true, 0) if demand.tokens_before > ahead::waits_beyond(&demand.budget) || demand.may_stay == 0 => break,
            _ => return Err(NothingToDo::TooShort),
        }
        plan.cut = cut_at(keep);
    }
    Ok(plan)
}

/// Whether an entry of the context follows the compaction in force.
#[must_use]
fn anything_new(path: &Path) -> bool {
    let since = path.compaction().map_or(0, |place| place + 1);
    path[since..].iter().any(|entry| entry.in_context())
}

/// The estimate of the kept tail, in tokens: the demanded size, and no more than fits beside the summary.
fn kept_tail(demand: &Demand) -> u64 {
    if demand.explicit {
        return demand.keep;
    }
    let fits = demand.budget.available().saturating_sub(demand.budget.summary_cap());
    // An empty tail is only for a request that asks for it.
    demand.scale.fitting(demand.keep.min(fits)).max(u64::from(demand.keep > 0))
}

impl Plan {
    /// The same plan, whose compaction carries these calibrations.
    #[must_use]
    pub fn carrying(self, calibrations: Vec<CarriedCalibration>) -> Self {
        Self { calibrations: calibrations.into(), ..self }
    }

    /// The same plan with the todo tools and the redaction of these settings.
    #[must_use]
    pub fn reading_todos(self, settings: &Settings) -> Self {
        Self { todos: self.todos.of(settings), ..self }
    }

    /// The same plan, whose todo list has its shortest form.
    #[must_use]
    pub fn with_short_todos(&self) -> Self {
        Self { todos: self.todos.clone().within(0), ..self.clone() }
    }

    /// The open tasks of the agent at the end of a path.
    #[must_use]
    pub fn todos(&self, path: &Path) -> Option<CarriedTodos> {
        todo::open_tasks(path, &self.todos)
    }

    /// The same plan, whose compaction carries messages of the user in front of its summary.
    #[must_use]
    pub fn carrying_messages(self, messages: Option<Messages>) -> Self {
        Self { messages, ..self }
    }

    /// The same plan with fewer messages of the user in front of the summary; `None` without any that could be fewer.
    #[must_use]
    pub fn with_fewer_messages(&self) -> Option<Self> {
        let fewer = self.messages.as_ref()?.fewer()?;
        Some(Self { messages: Some(fewer), ..self.clone() })
    }

    /// The messages of the user in front of the summary.
    #[must_use]
    pub fn user_messages(&self) -> Vec<CarriedMessage> {
        let is_pinned = |id: &EntryId| self.pinned.contains(id);
        let of = |messages: &Messages| messages.before(self.first_kept(), self.demand.scale, &is_pinned);
        self.messages.as_ref().map(of).unwrap_or_default()
    }

    /// The same plan, whose compaction brings files and loaded texts back.
    #[must_use]
    pub fn rehydrating(self, rehydration: Option<Rehydration>) -> Self {
        Self { rehydration, ..self }
    }

    /// The skills and instructions that the compaction carries, oldest first.
    #[must_use]
    pub fn loaded(&self) -> Vec<CarriedLoad> {
        self.rehydration.as_ref().map(|it| it.carried(self.seen())).unwrap_or_default()
    }

    /// The same plan with fewer loaded texts. `None` without any.
    #[must_use]
    pub fn with_less_loaded(&self) -> Option<Self> {
        let less = self.rehydration.as_ref()?.less(self.seen())?;
        Some(Self { rehydration: Some(less), ..self.clone() })
    }

    /// The same plan, whose compaction carries no loaded texts.
    #[must_use]
    pub fn with_nothing_loaded(&self) -> Self {
        Self { rehydration: self.rehydration.as_ref().map(Rehydration::nothing), ..self.clone() }
    }

    /// The cut, for what comes back over it.
    fn seen(&self) -> Seen<'_> {
        let scale = self.demand.scale;
        let replaced = scale.size(self.span().replaced(scale.estimator()));
        Seen { cut: self.first_kept(), pinned: &self.pinned, replaced, scale }
    }

    /// The files and loaded texts that a client is told to bring back, after these edits of kept entries. `newer` follows the path
    /// and is kept.
    #[must_use]
    pub fn rehydrated(&self, edits: &[ContextEdit], newer: &[Arc<Entry>]) -> Option<Rehydrated> {
        self.rehydration.as_ref().map(|it| it.rehydrated(self.seen(), edits, self.path.len(), newer))
    }

    /// The calibrations that the compaction carries.
    #[must_use]
    pub fn calibrations(&self) -> &[CarriedCalibration] {
        &self.calibrations
    }

    /// The path that the plan was made for.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the path with one of the same entries, which were read again, or with none while they are not needed.
    pub fn set_path(&mut self, path: Path) {
        self.path = path;
        self.estimate_before = Arc::default();
    }

    /// The estimate of the context before the compaction, in tokens. It is made once: every comparison of a draft asks for it.
    #[must_use]
    pub fn estimate_before(&self) -> u64 {
        let estimator = self.demand.scale.estimator();
        let estimate = || context::build(&self.path, &self.prompts).tokens(estimator);
        match self.estimate_before.get_or_init(|| (estimator, estimate())) {
            (of, tokens) if *of == estimator => *tokens,
            _ => estimate(),
        }
    }

    /// The previous compaction, whose summary is merged into the new one.
    #[must_use]
    pub fn previous(&self) -> Option<&Arc<Entry>> {
        self.path.compaction().map(|place| &self.path[place])
    }

    /// The entries of whole turns that are summarized.
    #[must_use]
    pub fn history(&self) -> &[Arc<Entry>] {
        &self.path[self.start..self.start + self.cut.history_end()]
    }

    /// The entries of the turn whose end is kept.
    #[must_use]
    pub fn turn_prefix(&self) -> &[Arc<Entry>] {
        &self.path[self.start + self.cut.history_end()..self.first_kept()]
    }

    /// The kept entries.
    #[must_use]
    pub fn kept(&self) -> &[Arc<Entry>] {
        &self.path[self.first_kept()..]
    }

    /// The messages that are summarized, history and turn prefix.
    #[must_use]
    pub fn summarized(&self) -> Vec<&Arc<Entry>> {
        self.span().messages()
    }

    /// The part of the path that is summarized.
    #[must_use]
    pub fn span(&self) -> Span<'_> {
        Span::of(self.history())
            .with_turn_prefix(self.turn_prefix())
            .continuing(self.previous())
            .followed_by(self.kept())
            .without(&self.pinned)
    }

    /// Whether an entry is pinned.
    #[must_use]
    pub fn is_pinned(&self, entry: &Entry) -> bool {
        self.pinned.contains(&entry.id)
    }

    /// Place on the path of the first kept entry.
    #[must_use]
    pub fn first_kept(&self) -> usize {
        self.start + self.cut.at()
    }

    /// The first kept entry; `None` if no entry is kept.
    #[must_use]
    pub fn first_kept_id(&self) -> Option<&EntryId> {
        self.path.get(self.first_kept()).map(|entry| &entry.id)
    }

    /// Whether the cut is inside a turn.
    #[must_use]
    pub fn splits_a_turn(&self) -> bool {
        !self.turn_prefix().is_empty()
    }

    /// The newest user message, if it is before the cut and no message in front of the summary.
    #[must_use]
    pub fn carried(&self) -> Option<CarriedMessage> {
        if self.messages.is_some() {
            return None;
        }
        let found = context::newest_user_message_before(&self.path, self.first_kept(), self.path.len());
        // The message that an earlier compaction carries may precede all entries of this path.
        let carried = found.or_else(|| {
            let kept_user = self.kept().iter().any(|entry| entry.is_from(Role::User));
            let carried = self.path.newest_carried_message().filter(|_| !kept_user);
            carried.cloned()
        });
        // In a small window it gets a third of the room; a token has at least three characters of prose.
        let third = self.demand.scale.fitting(self.demand.budget.available());
        carried.map(|it| CarriedMessage { text: context::clip_carried(&it.text, third as usize), ..it })
    }

    /// Size of the kept messages, in tokens.
    #[must_use]
    pub fn kept_tokens(&self) -> u64 {
        let sum = self
            .kept()
            .iter()
            .filter(|entry| entry.is_conversation())
            .map(|entry| u64::from(entry.tokens(self.demand.scale.estimator())))
            .sum();
        self.demand.scale.size(sum)
    }

    /// The plan with a smaller tail of about `keep` estimated tokens.
    #[must_use]
    pub fn keeping(&self, keep: u64) -> Self {
        let window = Window::of(&self.path[self.start..]);
        let cut = cut(&window.steps(self.demand.scale.estimator()), keep, window.stays(&self.demand));
        Self { cut, ..self.clone() }
    }

    /// The plan with the least tail: the entries that stay in any case.
    #[must_use]
    pub fn keeping_least(&self) -> Self {
        let window = Window::of(&self.path[self.start..]);
        let cut = cut(&window.steps(self.demand.scale.estimator()), 0, window.must_stay(&self.demand));
        Self { cut, ..self.clone() }
    }

    /// The plan that summarizes about the older half of the kept messages of the user that no model has read. `None` where the
    /// request named the size of the tail, or only the newest message is kept.
    #[must_use]
    pub fn keeping_fewer_unread(&self) -> Option<Self> {
        let window = Window::of(&self.path[self.start..]);
        let at = window.fewer_requests(self.cut.at()).filter(|_| !self.demand.explicit)?;
        Some(Self { cut: before(&window.steps(self.demand.scale.estimator()), at), ..self.clone() })
    }

    /// The messages of the user that no model has read and of which the context has only a summary, although the request did not
    /// name the size of the tail.
    #[must_use]
    pub fn summarized_unread(&self) -> Vec<&Arc<Entry>> {
        let window = &self.path[self.start..];
        let mut requests = if self.demand.explicit { Vec::new() } else { unread_requests(window) };
        requests.retain(|place| *place < self.cut.at());
        if requests.is_empty() {
            return Vec::new();
        }
        let carried: Vec<CarriedMessage> = self.user_messages().into_iter().chain(self.carried()).collect();
        let carried: HashSet<&EntryId> = carried.iter().map(|it| &it.entry_id).collect();
        let is_shown = |entry: &Entry| self.is_pinned(entry) || carried.contains(&entry.id);
        requests.iter().map(|place| &window[*place]).filter(|entry| !is_shown(entry)).collect()
    }

    /// The plan with a tail that begins at an entry.
    ///
    /// # Errors
    /// When the tail cannot begin there.
    pub fn keeping_from(&self, entry: &EntryId) -> Result<Self, NoCut> {
        let window = Window::of(&self.path[self.start..]);
        let steps = window.steps(self.demand.scale.estimator());
        let place = self.path.position(entry).and_then(|place| place.checked_sub(self.start));
        let named = place.ok_or(NoCut::NotInContext)?;
        let at = (named..steps.len()).find(|place| steps[*place].kind != Kind::Metadata).ok_or(NoCut::NotInContext)?;
        match steps[at].kind {
            Kind::Compaction | Kind::Metadata => return Err(NoCut::NotInContext),
            Kind::ToolResult => return Err(NoCut::Result),
            Kind::TurnStart | Kind::Message => {}
        }
        if window.pending().is_some_and(|pending| pending < at) {
            return Err(NoCut::OpenCall);
        }
        let plan = Self { cut: before(&steps, at), ..self.clone() };
        if plan.summarized().is_empty() { Err(NoCut::First) } else { Ok(plan) }
    }

    /// The data of other programs that the previous compaction carries. The compaction carries it on.
    #[must_use]
    pub fn carried_data(&self) -> &Map<String, Value> {
        &self.carried_data
    }

    /// Whether another plan of the same path keeps the same entries.
    #[must_use]
    pub fn cuts_like(&self, other: &Self) -> bool {
        self.cut == other.cut
    }

    /// Fingerprint of the plan: two plans with the same effect on the same path have the same one.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut digest = Sha256::new();
        for entry in self.path.iter().filter(|entry| !entry.is_marker()) {
            digest.update(entry.id.as_str());
            digest.update([0]);
        }
        digest.update(format!("{}/{}/{}", self.start, self.cut.at(), self.cut.history_end()));
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}
