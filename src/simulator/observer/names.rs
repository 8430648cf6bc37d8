//! Names of effects for a person.

use crate::session::effects::Effect;

/// The name of an effect.
pub fn named(effect: &Effect) -> String {
    match effect {
        Effect::Record(_) => "a record".to_owned(),
        Effect::Publish(status) => format!("the published {:?}", status.kind),
        Effect::Emit(_, event) => event.kind().to_owned(),
        Effect::Answer(request, _) => format!("the answer of {request}"),
        Effect::Log(_) => "work on the log".to_owned(),
        Effect::Read(request, _) => format!("the read for {request}"),
        Effect::Start(_) => "a job".to_owned(),
        Effect::Open(_) => "an open gate".to_owned(),
        Effect::Teach(_) => "a learned window".to_owned(),
        Effect::Share(_) => "the shared size".to_owned(),
        Effect::Subscribe(request, ..) | Effect::Unsubscribe(request) => format!("the subscription of {request}"),
        Effect::HandOver(request) => format!("the handover of {request}"),
        Effect::Fork(request, _) => format!("the fork for {request}"),
        Effect::IdleTurn(turning) => format!("the turn for idle maintenance: {turning:?}"),
    }
}
