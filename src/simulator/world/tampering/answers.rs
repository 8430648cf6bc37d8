//! Tampering with answers.

use super::{EDITS, Requests};
use crate::{
    protocol::{errors::Failure, events::Event, types::CancelAnswer},
    session::{
        core::Core,
        effects::{Answer, Effect, TicketNumber},
        fault::{self, Fault},
    },
    wire::transport::Piece,
};

/// More tokens than any window has.
const ENDLESS: &str = "\"maxOutputTokens\":1000000000000,\"before\":";

/// Whether an effect answers a request of such a method.
pub(super) fn is_of(effect: &Effect, requests: &Requests, is_meant: impl Fn(&str) -> bool) -> bool {
    matches!(effect, Effect::Answer(request, _) if requests.get(request).is_some_and(|method| is_meant(method)))
}

fn is_announced(effect: &Effect) -> bool {
    matches!(effect, Effect::Emit(_, Event::EntryAppended { .. }))
}

/// `core`: none where it has ended.
pub(super) fn tamper(fault: Fault, effects: &mut Vec<Effect>, requests: &Requests, core: Option<&Core>) {
    let is_append = |effect: &Effect| is_of(effect, requests, |method| method == "session/append");
    match fault {
        Fault::EventBeforeAnswer => {
            for at in 1..effects.len() {
                if matches!(effects[at - 1], Effect::Answer(..)) && is_announced(&effects[at]) {
                    effects.swap(at - 1, at);
                }
            }
        }
        Fault::NotAnnounced => {
            let first = (1..effects.len()).find(|at| is_append(&effects[at - 1]) && is_announced(&effects[*at]));
            if let Some(first) = first {
                effects.remove(first);
            }
        }
        Fault::AppendsReversed => reverse(effects, is_append),
        Fault::UsageNotSent => {
            let answer = effects.iter().position(is_append);
            let is_usage = |effect: &Effect| matches!(effect, Effect::Emit(_, Event::UsageUpdated { .. }));
            if let Some(usage) = answer.and_then(|at| effects.iter().skip(at).position(is_usage).map(|it| at + it)) {
                effects.remove(usage);
            }
        }
        Fault::NeverAnswered => effects.retain(|effect| !is_of(effect, requests, |method| EDITS.contains(&method))),
        Fault::AnsweredTwice => {
            let twice = |effect: Effect| match &effect {
                Effect::Answer(request, _) => vec![Effect::Answer(*request, Answer::ok(&())), effect],
                _ => vec![effect],
            };
            *effects = std::mem::take(effects).into_iter().flat_map(twice).collect();
        }
        Fault::CancelNamesNothing => {
            for effect in effects {
                if is_of(effect, requests, |method| method == "session/cancel")
                    && let Effect::Answer(_, answer) = effect
                {
                    *answer = Answer::ok(&CancelAnswer { cancelled: Vec::new() });
                }
            }
        }
        Fault::OutputUnlimited => {
            for effect in effects {
                if let Effect::Answer(request, given) = effect {
                    let before = std::mem::replace(given, Answer::Pieces(Vec::new()));
                    *given = answer(*request, before, requests);
                }
            }
        }
        Fault::OverflowAssumed => {
            if let Some(core) = core {
                refuse_contexts(effects, requests, core);
            }
        }
        _ => {}
    }
}

/// Refuses contexts over the threshold as if they were over the window.
fn refuse_contexts(effects: &mut [Effect], requests: &Requests, core: &Core) {
    let (state, fullness) = (core.state(), core.state().measure());
    if fullness.context_tokens <= fullness.budget.threshold {
        return;
    }
    for effect in effects {
        if let Effect::Read(request, _) | Effect::Answer(request, Answer::Result(_) | Answer::Pieces(_)) = effect
            && requests.get(request).is_some_and(|method| *method == "session/context")
        {
            let failure = Failure::OverWindow { floor: fullness.floor(state.path()), why: "it is planted".to_owned() };
            *effect = Effect::Answer(*request, Answer::Failed(failure));
        }
    }
}

/// Reverses the appends of a write: their answers, each with the entries that it announces.
fn reverse(effects: &mut Vec<Effect>, is_append: impl Fn(&Effect) -> bool) {
    let Some(first) = effects.iter().position(&is_append) else { return };
    let rest = effects.split_off(first);
    let mut appends: Vec<Vec<Effect>> = Vec::new();
    let mut after = Vec::new();
    for effect in rest {
        match appends.last_mut() {
            _ if after.is_empty() && is_append(&effect) => appends.push(vec![effect]),
            Some(append) if after.is_empty() && is_announced(&effect) => append.push(effect),
            _ => after.push(effect),
        }
    }
    effects.extend(appends.into_iter().rev().flatten().chain(after));
}

/// The answer to a request that a read of the session answers.
pub(in super::super) fn answer(request: TicketNumber, answer: Answer, requests: &Requests) -> Answer {
    let is_context = requests.get(&request).is_some_and(|method| *method == "session/context");
    match answer {
        Answer::Pieces(mut pieces) if is_context && fault::planted(Fault::OutputUnlimited) => {
            if let Some(Piece::Text(end)) = pieces.last_mut() {
                *end = end.replace("\"maxOutputTokens\":", ENDLESS);
            }
            Answer::Pieces(pieces)
        }
        answer => answer,
    }
}
