//! Planted faults that are seen from outside of a session. The world tampers with requests and inputs on their way into the
//! core and with effects on their way out, as the planted fault says. A fault of a decision is planted where the decision is.

mod answers;
mod events;
mod work;

use crate::{
    ask::request::Update,
    ids::EntryId,
    protocol::{
        errors::{Failure, Nothing},
        events::RecoveryAction,
    },
    session::{
        core::{Core, Input, command::Command},
        effects::{Effect, TicketNumber},
        fault::{self, Fault},
        jobs::progress::Progress,
    },
    summary::model::writer::Step,
};
pub(super) use answers::answer;
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

/// The open requests with their methods.
pub(super) type Requests = BTreeMap<TicketNumber, &'static str>;

/// Requests that write entries which are neither messages nor compactions.
const EDITS: [&str; 8] = [
    "session/configure",
    "session/label",
    "session/pin",
    "session/prune",
    "session/reset",
    "session/undo_compaction",
    "session/unpin",
    "settings/set",
];

/// The input whose effects come next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum During {
    #[default]
    Other,
    /// The session was opened.
    Opening,
    /// `session/cancel`
    Cancel,
    /// A draft was made.
    Drafted,
}

/// Tampers with a session.
#[derive(Default)]
pub(super) struct Tampering {
    during: During,
    /// Number of the operations in the newest record.
    open: usize,
    /// Whether work on the log runs.
    log_is_out: bool,
    /// Inputs that the core gets later than it should.
    late: VecDeque<Input>,
    /// The action of the newest recovery.
    recovers_by: Option<RecoveryAction>,
    /// The leaf before the newest write, and the one before that.
    leaves: [Option<EntryId>; 2],
}

impl Tampering {
    /// The session was opened. Its first effects come next.
    pub fn opens(&mut self) {
        *self = Self { during: During::Opening, ..Self::default() };
    }

    /// The input that the core gets, if it gets one now.
    pub fn input(&mut self, input: Input, requests: &Requests) -> Option<Input> {
        let Some(fault) = fault::current() else { return Some(input) };
        self.log_is_out &= !matches!(input, Input::Log(..));
        self.during = match &input {
            Input::Cancel(..) => During::Cancel,
            Input::Drafted(_, Ok(_)) => During::Drafted,
            _ => During::Other,
        };
        let method = |request| requests.get(request).copied().unwrap_or_default();
        match (fault, &input) {
            (Fault::CancelledAppendWritten, Input::RequestCancelled(request))
                if method(request) == "session/append" => {}
            (Fault::CancelledContextAnswered, Input::RequestCancelled(request))
                if method(request) == "session/context" => {}
            (Fault::CancelledEditWritten, Input::RequestCancelled(request)) if EDITS.contains(&method(request)) => {}
            (Fault::CostDropped, Input::Reported(_, Progress::Summary(Step::Request(_, Update::Spent(_))))) => {}
            (Fault::AtStakeForgotten, Input::Reported(_, Progress::Summary(Step::Request(_, Update::AtStake(_))))) => {}
            (Fault::CancelQueues, Input::Cancel(..)) if self.log_is_out => self.late.push_back(input),
            (Fault::CloseWaits, Input::Command(Command::Close, _)) if self.open > 0 => self.late.push_back(input),
            (Fault::HookCancelSkips, Input::Drafted(id, Err(Failure::Cancelled))) => {
                return Some(Input::Drafted(id.clone(), Err(Failure::NothingToCompact(Nothing::WouldNotShrink))));
            }
            (Fault::AheadOfHooks, Input::Hooks(_)) => {}
            _ => return Some(input),
        }
        None
    }

    /// The next input that the core should have had before, and that nobody else sees.
    pub fn late_input(&mut self) -> Option<Input> {
        let comes = match fault::current()? {
            Fault::CancelQueues => !self.log_is_out,
            Fault::CloseWaits => self.open == 0,
            _ => true,
        };
        if comes { self.late.pop_front() } else { None }
    }

    /// The effects of an input that are performed. `core`: none where it has ended.
    pub fn effects(&mut self, mut effects: Vec<Effect>, requests: &Requests, core: Option<&Core>) -> Vec<Effect> {
        let Some(fault) = fault::current() else { return effects };
        let during = std::mem::take(&mut self.during);
        for effect in &effects {
            match effect {
                Effect::Record(operations) => self.open = operations.len(),
                Effect::Log(work) => {
                    self.log_is_out = true;
                    self.note_leaf(work);
                }
                _ => {}
            }
        }
        match during {
            During::Opening => events::of_a_crash(fault, &mut effects),
            _ => events::tamper(fault, &mut effects, &mut self.recovers_by),
        }
        answers::tamper(fault, &mut effects, requests, core);
        work::tamper(fault, &mut effects, self.leaves[1].as_ref(), core);
        match fault {
            Fault::HeldStays if during == During::Cancel => {
                effects.retain(|effect| !answers::is_of(effect, requests, |method| method == "session/context"));
            }
            Fault::IdleTurnAssumed => self.late.extend(work::assumed_turn(&mut effects)),
            Fault::AheadAnnounced if during == During::Drafted => {
                effects.extend(core.map(|core| events::usage(core.state().usage())));
            }
            _ => {}
        }
        effects
    }
}

/// The params that a session gets of a request.
pub(super) fn params<'a>(method: &str, params: &'a Value) -> Cow<'a, Value> {
    let left_out: &[&str] = match (fault::current(), method) {
        (Some(Fault::ExpectedLeafIgnored), "session/append") => &["expectedLeafId"],
        (Some(Fault::StaleCompacted), "session/compact") => &["expectedLeafId"],
        (Some(Fault::LimitsForgotten), "session/configure") => &["contextWindow", "maxOutputTokens"],
        (Some(Fault::ContextNotHeld), "session/context") => &["wait"],
        (Some(Fault::OverWindow), "session/context") => &["wait", "format"],
        _ => return Cow::Borrowed(params),
    };
    let mut params = params.clone();
    if let Value::Object(fields) = &mut params {
        fields.retain(|name, _| !left_out.contains(&name.as_str()));
    }
    Cow::Owned(params)
}
