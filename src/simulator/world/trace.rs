//! The inputs and effects of a run: in words for its trace, counted and hashed for its report.

use super::World;
use crate::{
    protocol::errors::Failure,
    session::{
        core::Input,
        effects::{Answer, Effect, TicketNumber},
        jobs::Job,
        log_work::LogWork,
    },
};
use memchr::memmem;
use std::{borrow::Cow, hash::Hash as _};

/// The field of an event that says how its operation ended.
const OUTCOME: &str = "\"outcome\":\"";

impl World<'_> {
    /// Adds an effect to the report.
    pub(super) fn note(&mut self, effect: &Effect) {
        let kind: Cow<'static, str> = match effect {
            Effect::Record(operations) => {
                operations.len().hash(&mut self.hasher);
                "record".into()
            }
            Effect::Publish(_) => "publish".into(),
            Effect::Emit(about, event) => {
                about.entry.hash(&mut self.hasher);
                about.operation.hash(&mut self.hasher);
                let json = serde_json::to_string(event).unwrap_or_default();
                json.hash(&mut self.hasher);
                let kind = json.split('"').nth(3).unwrap_or_default();
                let outcome = memmem::find(json.as_bytes(), OUTCOME.as_bytes()).map(|at| &json[at + OUTCOME.len()..]);
                let outcome = outcome.and_then(|rest| rest.split('"').next());
                format!("event {kind} {}", outcome.unwrap_or_default()).into()
            }
            Effect::Answer(request, answer) => return self.note_answer(*request, answer),
            Effect::Log(work) => format!("log {}", name(work)).into(),
            Effect::Read(..) => "read".into(),
            Effect::Open(_) => "open".into(),
            Effect::Start(job) => match **job {
                Job::Count(_) => "count".into(),
                Job::Index(..) => "index".into(),
                Job::Plan(_) => "plan".into(),
                Job::Draft(_) => "draft".into(),
                Job::Transfer(_) => "transfer".into(),
                Job::Turn(_) => "turn".into(),
                Job::Source(_) => "source".into(),
                Job::Found(..) => "found".into(),
            },
            Effect::Teach(_) => "teach".into(),
            Effect::Share(_) => "share".into(),
            Effect::Subscribe(..) => "subscribe".into(),
            Effect::Unsubscribe(_) => "unsubscribe".into(),
            Effect::HandOver(_) => "hand over".into(),
            Effect::Fork(..) => "fork".into(),
            Effect::IdleTurn(turning) => format!("idle turn {turning:?}").into(),
        };
        self.count(&kind);
    }

    /// Adds an answer to the report.
    pub(super) fn note_answer(&mut self, request: TicketNumber, answer: &Answer) {
        request.hash(&mut self.hasher);
        let method = self.view.open.get(&request).copied().unwrap_or_default();
        let result = match answer {
            Answer::Result(result) => {
                result.get().hash(&mut self.hasher);
                "ok".into()
            }
            Answer::Pieces(pieces) => {
                pieces.len().hash(&mut self.hasher);
                "ok".into()
            }
            Answer::Failed(failure) => {
                failure.to_string().hash(&mut self.hasher);
                code(failure)
            }
        };
        self.count(&format!("{method} {result}"));
    }

    fn count(&mut self, kind: &str) {
        kind.hash(&mut self.hasher);
        match self.report.seen.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.report.seen.insert(kind.to_owned(), 1)),
        }
    }
}

/// An input in words.
pub fn input(input: &Input) -> String {
    match input {
        Input::Command(_, ticket) => format!("request {}", ticket.number()),
        Input::Cancel(which, ticket) => format!("cancel {which:?} by {}", ticket.number()),
        Input::RequestCancelled(request) => format!("request {request} is cancelled"),
        Input::Layers(_) => "layers".to_owned(),
        Input::Windows(_) => "windows".to_owned(),
        Input::Hooks(hooks) => format!("hooks {:?}", hooks.events),
        Input::FileTouched => "file touched".to_owned(),
        Input::Finish => "finish".to_owned(),
        Input::Stop => "stop".to_owned(),
        Input::Turn => "turn".to_owned(),
        Input::Tick => "tick".to_owned(),
        Input::Log(..) => "log".to_owned(),
        Input::Answered => "answered".to_owned(),
        Input::Indexed(_) => "indexed".to_owned(),
        Input::Planned(id, result) => format!("planned {id}, {:?}", result.as_ref().err()),
        Input::Reported(id, _) => format!("reported {id}"),
        Input::Drafted(id, result) => format!("drafted {id}, {:?}", result.as_ref().err()),
        Input::Turned(id, report) => format!("turn {id}: {}", serde_json::json!(report)),
        Input::Transferred(id, result) => format!("text for {id}, {:?}", result.as_ref().err()),
        Input::Sourced(id, result) => format!("source for {id}, {:?}", result.as_ref().err()),
        Input::Founded(id, result) => format!("founded for {id}, {:?}", result.as_ref().err()),
        Input::Counted => "counted".to_owned(),
        Input::IdleTurn(turn) => format!("idle turn {turn:?}"),
    }
}

/// An effect in words.
pub fn effect(effect: &Effect) -> String {
    let words = match effect {
        Effect::Record(operations) => {
            format!("record {:?}", operations.iter().map(|it| &it.operation_id).collect::<Vec<_>>())
        }
        Effect::Publish(status) => format!("publish {status:?}"),
        Effect::Emit(about, event) => {
            let event = serde_json::to_string(event).unwrap_or_default();
            format!("event {:?} {:?} {event}", about.entry, about.operation)
        }
        Effect::Answer(request, answer) => format!("answer {request}: {}", self::answer(answer)),
        Effect::Log(LogWork::Append(work)) => {
            format!("log append {:?}", work.entries.iter().map(|it| &it.id).collect::<Vec<_>>())
        }
        Effect::Log(work) => format!("log {}", name(work)),
        Effect::Read(request, _) => format!("read {request}"),
        Effect::Open(_) => "open".to_owned(),
        Effect::Start(job) => match &**job {
            Job::Count(_) => "count".to_owned(),
            Job::Index(..) => "index".to_owned(),
            Job::Plan(order) => format!("plan {}", order.id),
            Job::Draft(order) => format!("draft {}", order.id),
            Job::Transfer(order) => format!("transfer {}", order.id),
            Job::Turn(order) => format!("turn {}", order.id()),
            Job::Source(order) => format!("source {} for {}", order.from, order.id),
            Job::Found(id, founding) => format!("found {} for {id}", founding.id()),
        },
        Effect::Teach(change) => format!("teach {change:?}"),
        Effect::Share(bytes) => format!("share {bytes}"),
        Effect::Subscribe(request, ..) => format!("subscribe {request}"),
        Effect::Unsubscribe(request) => format!("unsubscribe {request}"),
        Effect::HandOver(request) => format!("hand over {request}"),
        Effect::Fork(request, forking) => format!("fork {} for {request}", forking.id()),
        Effect::IdleTurn(turning) => format!("idle turn {turning:?}"),
    };
    words.chars().take(300).collect()
}

/// An answer in words.
pub fn answer(answer: &Answer) -> String {
    let words = match answer {
        Answer::Result(result) => result.get().to_owned(),
        Answer::Pieces(_) => "pieces".to_owned(),
        Answer::Failed(failure) => format!("{} {failure}", code(failure)),
    };
    words.chars().take(200).collect()
}

/// The name of work on the log.
fn name(work: &LogWork) -> &'static str {
    match work {
        LogWork::Append(_) => "append",
        LogWork::Undo(_) => "undo",
        LogWork::Wake(..) => "wake",
        LogWork::CatchUp(..) => "catch up",
        LogWork::Fetch(_) => "fetch",
        LogWork::Index(_) => "rest of the index",
    }
}

/// The code of an error.
fn code(failure: &Failure) -> String {
    let data = serde_json::to_value(failure.data()).unwrap_or_default();
    data["code"].as_str().unwrap_or_default().to_owned()
}
