//! Summaries ahead of the threshold: one at a time, beside no compaction, without effect before their compaction, and never
//! spliced in where something that they cover was changed.

use super::{Rule, Verdict, names::named, require};
use crate::{
    compaction::draft::Draft,
    conversation::entry::{Body, Entry},
    ids::{EntryId, OperationId},
    protocol::{events::Event, notices::NoticeCode},
    session::{effects::Effect, stop::Stop},
};
use std::{collections::HashMap, sync::Arc};

/// The summary that was begun last.
#[derive(Debug)]
struct Begun {
    id: OperationId,
    stop: Stop,
    /// Whether its draft was made, or cannot be made.
    is_ready: bool,
    /// Whether its job was stopped in an earlier input. The effects of an input are seen after all that it does.
    is_stopped: bool,
    drafted: Option<Drafted>,
}

/// A draft that was made.
#[derive(Debug)]
struct Drafted {
    /// The first entry that it keeps.
    first_kept: Option<EntryId>,
}

/// A compaction whose summary was begun before it.
#[derive(Debug)]
struct Spliced {
    was_ready: bool,
    drafted: Option<Drafted>,
}

/// The effects of an input that reports a summary that is made ahead.
#[derive(Debug, Default)]
struct Report {
    /// The first event or answer.
    shown: Option<String>,
    /// Whether an operation starts.
    starts: bool,
}

/// Summaries ahead of the threshold, in a life of a session.
#[derive(Debug, Default)]
pub struct Ahead {
    begun: Option<Begun>,
    /// Compactions whose summary was begun ahead.
    spliced: HashMap<OperationId, Spliced>,
    /// The input that is handled, if it reports such a summary.
    report: Option<Report>,
}

impl Ahead {
    /// A summary begins. `running`: the operation that runs.
    pub fn begins(&mut self, id: &OperationId, stop: &Stop, running: Option<&OperationId>) -> Verdict {
        let other = self.running().or(running);
        require(other.is_none(), Rule::OneAhead, || format!("{id:?} begins ahead while {other:?} runs"))?;
        self.begun =
            Some(Begun { id: id.clone(), stop: stop.clone(), is_ready: false, is_stopped: false, drafted: None });
        Ok(())
    }

    /// The summary that is being made.
    pub fn running(&self) -> Option<&OperationId> {
        self.begun.as_ref().filter(|begun| !begun.is_ready && !begun.is_stopped).map(|begun| &begun.id)
    }

    /// Whether a summary was made, or is being made, and may be spliced in.
    pub fn may_serve(&self, id: &OperationId) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.id == *id && !begun.is_stopped)
    }

    /// Whether there is a summary that may be spliced in.
    pub fn has_one(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| !begun.is_stopped)
    }

    /// A plan was made, or cannot be made.
    pub fn planned(&mut self, id: &OperationId) {
        self.report = self.running().is_some_and(|running| running == id).then(Report::default);
    }

    /// A draft was made, or cannot be made.
    pub fn drafted(&mut self, id: &OperationId, draft: Option<&Draft>) {
        self.report = self.running().is_some_and(|running| running == id).then(Report::default);
        let Some(begun) = self.begun.as_mut().filter(|begun| begun.id == *id) else { return };
        begun.is_ready = true;
        begun.drafted = draft.map(|draft| Drafted { first_kept: draft.plan.first_kept_id().cloned() });
    }

    /// An effect of an input.
    pub fn performs(&mut self, effect: &Effect) {
        let Some(report) = &mut self.report else { return };
        match effect {
            Effect::Emit(_, Event::CompactionStart { .. }) => report.starts = true,
            Effect::Emit(_, Event::Notice { code: NoticeCode::SpeculationRests, .. }) => {}
            Effect::Emit(..) | Effect::Answer(..) => {
                report.shown.get_or_insert_with(|| named(effect));
            }
            _ => {}
        }
    }

    /// An input was handled.
    pub fn after_input(&mut self) -> Verdict {
        self.begun.iter_mut().for_each(|begun| begun.is_stopped = begun.stop.requested());
        let Some(Report { shown, starts }) = self.report.take() else { return Ok(()) };
        require(shown.is_none() || starts, Rule::AheadIsQuiet, || {
            format!("{shown:?} follows a summary that is made ahead")
        })
    }

    /// An operation starts.
    pub fn starts(&mut self, id: &OperationId, event: &Event) -> Verdict {
        let Some(begun) = self.begun.take_if(|begun| begun.id == *id) else { return Ok(()) };
        self.spliced.insert(begun.id, Spliced { was_ready: begun.is_ready, drafted: begun.drafted });
        let Event::CompactionStart { tokens_before, threshold_tokens, .. } = event else { return Ok(()) };
        require(tokens_before > threshold_tokens, Rule::SplicedWhenDue, || {
            format!("{id:?} begins at {tokens_before} of {threshold_tokens} tokens")
        })
    }

    /// Whether the summary of a compaction was begun before it.
    pub fn was_begun(&self, id: &OperationId) -> bool {
        self.spliced.contains_key(id)
    }

    /// Whether a compaction began with a summary that was ready.
    pub fn is_spliced(&self, id: &OperationId) -> bool {
        self.spliced.get(id).is_some_and(|spliced| spliced.was_ready)
    }

    /// A compaction entry was written for a path with these entries, `newer` ones after the plan.
    pub fn completed(
        &self,
        id: &OperationId,
        plan: &[EntryId],
        first_kept: &EntryId,
        newer: &[&Arc<Entry>],
    ) -> Verdict {
        if !self.is_spliced(id) {
            return Ok(());
        }
        let cut = plan.iter().position(|it| it == first_kept).unwrap_or(plan.len());
        let is_covered = |target: &str| plan[..cut].iter().any(|id| id.as_str() == target);
        let changed = newer.iter().find(|entry| match &entry.body {
            Body::ContextEdit(edit) => is_covered(edit.target_id.as_str()),
            _ => {
                let pin = entry.ours("pin").or_else(|| entry.ours("unpin"));
                pin.is_some_and(|pin| pin["entryId"].as_str().is_some_and(is_covered))
            }
        });
        require(changed.is_none(), Rule::SplicedUnchanged, || {
            format!("{id:?} begins with a summary from before {changed:?}")
        })
    }

    /// The entry of a compaction was written for a path with these entries. It keeps what the draft keeps that was ready at
    /// its start.
    pub fn written(&self, id: &OperationId, plan: &[EntryId], first_kept: Option<&EntryId>) -> Verdict {
        let ready = self.spliced.get(id).filter(|spliced| spliced.was_ready);
        let Some(drafted) = ready.and_then(|spliced| spliced.drafted.as_ref()) else { return Ok(()) };
        // Where the draft keeps none of its entries, the first of the newer ones is kept.
        let planned = first_kept.filter(|first| plan.contains(first));
        require(drafted.first_kept.as_ref() == planned, Rule::SplicedAsDrafted, || {
            format!("{id:?} keeps {first_kept:?}, and the draft {:?}", drafted.first_kept)
        })
    }

    /// The process dies.
    pub fn crashed(&mut self) {
        (self.begun, self.report) = (None, None);
    }
}
