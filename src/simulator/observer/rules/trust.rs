//! The belief of a session: nothing that it is told takes a delivered answer from the context, teaches a window that nobody
//! meant, or ends a conversation that fits.

use super::super::{Rule, Verdict, file::File, requests::Asked, require};
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::outline::{Outline, Role},
    },
    ids::EntryId,
    log::Access,
    protocol::{errors::Failure, types::Usage},
    session::{effects::Answer, log_work::LogWork},
    simulator::{
        lies::exchanges::{self, Exchange},
        lies::{Beyond, Truth},
    },
};

/// The largest size of a context beside its estimate, in percent, where a true report came, and before any.
const AFTER_REPORTS: u64 = 115;
const BEFORE_REPORTS: u64 = 135;
/// The smallest window that is learned, in tokens.
const SMALLEST_WINDOW: u64 = 1_024;
/// The smallest context: the message of the user is clipped to 2,000 tokens, the ledger has 500, and frames, ends of elided
/// results and calls take the rest.
const LEAST_CONTEXT: u64 = 3_500;

/// The truth about a provider, and what was told of it.
#[derive(Debug, Default)]
pub struct Trust {
    truth: Option<Truth>,
    /// Windows that refusals stated, in tokens.
    stated: Vec<u64>,
    /// Whether a report or a refusal was wrong.
    has_lied: bool,
    /// Whether a true report came.
    has_reported: bool,
    /// Whether the session owns its file.
    writes: bool,
}

impl Trust {
    /// The provider has a truth of its own.
    pub fn knows(&mut self, truth: Truth) {
        self.truth = Some(truth);
    }

    /// A life begins.
    pub fn opens(&mut self, access: Access) {
        self.writes = access == Access::Write;
    }

    /// A request of the host ended, and the daemon is about to be told of it.
    pub fn exchanged(&mut self, exchange: Exchange) {
        let Some(truth) = self.truth else { return };
        self.stated.extend(exchange.stated);
        self.has_lied |= exchange.lies || exchange.stated.is_some_and(|stated| stated != truth.window);
        self.has_reported |= exchange.reports && !exchange.lies;
    }

    /// A window is learned, or in force as a learned one.
    pub fn learns(&self, window: u64) -> Verdict {
        let Some(truth) = self.truth else { return Ok(()) };
        // A server that cuts prompts reports its window.
        let shown = truth.beyond == Beyond::Cuts && window <= truth.window && window >= truth.window / 100 * 95;
        let meant = self.stated.contains(&window) || shown;
        require(meant && window >= SMALLEST_WINDOW, Rule::NoWindowFromALie, || {
            format!("{window} tokens are learned; {:?} were stated of {truth:?}", self.stated)
        })
    }

    /// The window in force.
    pub fn measured(&self, usage: Option<&Usage>) -> Verdict {
        match usage.filter(|usage| usage.window_source == "learned").and_then(|usage| usage.context_window) {
            Some(window) => self.learns(window),
            None => Ok(()),
        }
    }

    /// Work is given to the log: it takes no answer from the context that the user may have seen.
    pub fn writes(&self, work: &LogWork, file: &File) -> Verdict {
        let LogWork::Append(work) = work else { return Ok(()) };
        let mut removed = Vec::new();
        for entry in &work.entries {
            match &entry.body {
                Body::ContextEdit(edit) if edit.replacement.is_none() => removed.push(edit.target_id.clone()),
                Body::Compaction(body) => {
                    let edits = body.preserved().map(|kept| kept.edits.as_slice()).unwrap_or_default();
                    let nothing = edits.iter().filter(|edit| edit.replacement.is_none());
                    removed.extend(nothing.map(|edit| edit.target_id.clone()));
                }
                _ => {}
            }
        }
        let entry = |id: &EntryId| file.newest(id).and_then(|place| file.entry(place));
        let delivered = removed.iter().find(|id| entry(id).is_some_and(|entry| is_delivered(entry)));
        require(delivered.is_none(), Rule::NoDeliveredAnswerLeaves, || {
            format!("{:?} leaves the context", delivered.and_then(entry).map(|entry| entry.line().to_owned()))
        })
    }

    /// A context is answered: it fits the window of a provider that tells the truth.
    pub fn gives(&self, asked: &Asked, answer: &Answer) -> Verdict {
        let Some(truth) = self.truth.filter(|_| !self.has_lied) else { return Ok(()) };
        if !exchanges::is_for_a_model(&asked.params) {
            return Ok(());
        }
        let Some(context) = exchanges::value(answer) else { return Ok(()) };
        let told = context["usage"]["contextWindow"].as_u64();
        if told.is_none_or(|told| told > truth.window) {
            return Ok(());
        }
        let (percent, untold) = if self.has_reported { (AFTER_REPORTS, 0) } else { (BEFORE_REPORTS, truth.untold) };
        let (size, most) = (truth.tokens(&context) + truth.untold, truth.window * percent / 100 + untold);
        require(size <= most, Rule::FitsTheTrueWindow, || {
            format!("request {} is answered with {size} tokens for {truth:?}: {}", asked.number, context["usage"])
        })
    }

    /// A context is refused because it is over the window: nothing would make it fit. `may_end`: whether maintenance is off,
    /// or a recovery has used up its attempts.
    pub fn refuses(&self, asked: &Asked, failure: &Failure, may_end: bool, file: &File) -> Verdict {
        let (Some(truth), Failure::OverWindow { floor, .. }) = (self.truth, failure) else { return Ok(()) };
        if may_end || !self.writes || !exchanges::is_for_a_model(&asked.params) {
            return Ok(());
        }
        let overhead = truth.untold * BEFORE_REPORTS / 100;
        let asks = file.chain().find(|entry| entry.is_from(Role::User));
        let asks = asks.map_or(0, |entry| entry.pinned_text().chars().count() as u64 / 4 * BEFORE_REPORTS / 100);
        let least = overhead + asks.min(LEAST_CONTEXT - 1_500) + 1_500;
        require(least > floor.window / 100 * 80, Rule::OverflowOnlyWhereNothingFits, || {
            format!("request {} is refused with {floor:?}; {least} tokens would be enough", asked.number)
        })
    }
}

/// Whether an entry is an answer that the user may have seen: whole, or cut outside of a call.
fn is_delivered(entry: &Entry) -> bool {
    let cut_in_a_call = |outline: &Outline| outline.cut_off && !outline.calls.is_empty();
    entry.outline().is_some_and(|outline| {
        outline.role == Role::Assistant
            && !outline.failed
            && !outline.empty
            && (!outline.silent || !outline.calls.is_empty())
            && !cut_in_a_call(outline)
    })
}
