//! Tampering with records, with jobs and with work on the log.

use super::Tampering;
use crate::{
    conversation::entry::{Body, Entry},
    ids::EntryId,
    models::learned::{Address, Change, LearnedWindow, Server, WindowOrigin},
    protocol::{events::Event, types::HookEvent},
    session::{
        core::{Core, Input},
        effects::{Effect, IdleTurn, Turning},
        fault::Fault,
        hooks::Hooks,
        jobs::Job,
        log_work::{AppendWork, LogWork},
        stop::Stop,
    },
    wire::outbox::About,
};
use serde_json::{Value, json};
use std::sync::Arc;

impl Tampering {
    /// Records the leaf before a write.
    pub(super) fn note_leaf(&mut self, work: &LogWork) {
        if let LogWork::Append(work) = work
            && work.leaf != self.leaves[0]
        {
            let before = std::mem::replace(&mut self.leaves[0], work.leaf.clone());
            self.leaves[1] = before;
        }
    }
}

/// `older`: an entry before the leaf.
pub(super) fn tamper(fault: Fault, effects: &mut Vec<Effect>, older: Option<&EntryId>, core: Option<&Core>) {
    match fault {
        Fault::StartNotRecorded => {
            effects.retain(|effect| !matches!(effect, Effect::Record(operations) if !operations.is_empty()));
        }
        Fault::RecordStays => {
            effects.retain(|effect| !matches!(effect, Effect::Record(operations) if operations.is_empty()));
        }
        Fault::IdleTurnKept => effects.retain(|effect| !matches!(effect, Effect::IdleTurn(Turning::Leave))),
        Fault::ReportLearned => {
            let learned = core.and_then(|core| effects.iter().find_map(|effect| report(effect, core)));
            effects.extend(learned.map(|row| Effect::Teach(Change::Learned(row))));
        }
        _ => effects.iter_mut().for_each(|effect| match effect {
            Effect::Record(operations) if fault == Fault::InsideNotRecorded => {
                operations.iter_mut().for_each(|operation| operation.inside.clear());
            }
            Effect::Start(job) => alter_job(fault, job),
            Effect::Log(LogWork::Append(work)) => alter_write(fault, work, older),
            _ => {}
        }),
    }
}

fn alter_job(fault: Fault, job: &mut Job) {
    match (fault, job) {
        (Fault::JobGoesOn, Job::Draft(order)) => order.stop = Stop::default(),
        (Fault::JobGoesOn, Job::Transfer(order)) => order.stop = Stop::default(),
        (Fault::JobOfUnstarted, Job::Plan(order)) => order.stop = Stop::default(),
        (Fault::TailNamed, Job::Plan(order)) => order.request.keep_recent_tokens = Some(1),
        (Fault::HookAssumed, Job::Draft(order)) => {
            if let Some(order) = &mut order.hooks {
                let Hooks { mut events, timeout, on_failure } = (*order.hooks).clone();
                events.insert(HookEvent::SessionCompacting);
                order.hooks = Arc::new(Hooks { events, timeout, on_failure });
            }
        }
        _ => {}
    }
}

fn alter_write(fault: Fault, work: &mut AppendWork, older: Option<&EntryId>) {
    let leaf = work.leaf.clone();
    match fault {
        Fault::ForgottenEntry if work.continues => {
            if let Some((entry, older)) = work.entries.first_mut().zip(older) {
                move_below(entry, older);
            }
        }
        Fault::SummaryOnBranch => {
            let summary = work.entries.iter_mut().find(|entry| matches!(entry.body, Body::BranchSummary(_)));
            if let Some((entry, leaf)) = summary.zip(leaf) {
                move_below(entry, &leaf);
            }
        }
        _ => {}
    }
}

/// Gives an entry another parent.
fn move_below(entry: &mut Arc<Entry>, parent: &EntryId) {
    let Ok(mut line) = serde_json::from_str::<Value>(entry.line()) else { return };
    line["parentId"] = json!(parent);
    if let Ok(moved) = Entry::parse(line.to_string().into()) {
        *entry = Arc::new(moved);
    }
}

/// A window that nobody stated, of the size in a report.
fn report(effect: &Effect, core: &Core) -> Option<LearnedWindow> {
    let Effect::Log(LogWork::Append(work)) = effect else { return None };
    let window =
        work.entries.iter().filter_map(|entry| entry.outline()?.usage).map(|usage| usage.prompt_tokens()).max()?;
    let model = core.state().model(core.state().path())?;
    let server = Server { model, address: Address::Unknown };
    Some(LearnedWindow::undated(server, window.max(1), WindowOrigin::Saturation))
}

/// Announces entries before their write.
pub(super) fn announce_before_write(effects: &mut Vec<Effect>) {
    let before = |effect: Effect| {
        let entries = match &effect {
            Effect::Log(LogWork::Append(work)) => work.entries.clone(),
            _ => Vec::new(),
        };
        let announced = entries.into_iter().map(|entry| {
            let about = About { entry: Some(entry.id.clone()), ..About::default() };
            Effect::Emit(about, Event::EntryAppended { entry: None, entry_type: Some(entry.kind.clone()) })
        });
        announced.chain([effect]).collect::<Vec<_>>()
    };
    *effects = std::mem::take(effects).into_iter().flat_map(before).collect();
}

/// The turn that a session assumes to have instead of asking for it.
pub(super) fn assumed_turn(effects: &mut Vec<Effect>) -> Option<Input> {
    let asks = effects.iter().position(|effect| matches!(effect, Effect::IdleTurn(Turning::Ask)))?;
    effects.remove(asks);
    Some(Input::IdleTurn(IdleTurn::Comes))
}
