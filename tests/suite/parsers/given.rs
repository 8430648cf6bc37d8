//! Messages that a host has in a wire format: what is read is a message of a session, and what is refused names its place.

use super::chunks::choices;
use abridged::{
    conversation::message::Message,
    ids::ModelRef,
    provider::{
        Api, Delivery, Request, codec,
        given::{self, Beside, Invalid, Made, OpenCall},
        turns::{Target, turns},
    },
};
use serde_json::value::RawValue;
use std::borrow::Cow;

const APIS: [Api; 4] = [Api::Anthropic, Api::OpenaiChat, Api::OpenaiResponses, Api::Google];

/// Stop reasons beside an answer: none, and those that mean something everywhere.
const STOPS: [Option<&str>; 4] = [None, Some("length"), Some("aborted"), Some("odd")];

/// A list of messages, each with the usage that stands beside it.
pub fn check(data: &[u8]) {
    let Some(([form, stop], list)) = choices(data) else { return };
    let (api, stop) = (APIS[form % APIS.len()], STOPS[stop % STOPS.len()]);
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(list) else { return };
    let messages: Vec<&str> = items.iter().map(|item| item.get()).collect();
    let usage = (form / APIS.len() % 2 == 1).then(|| items.last().copied()).flatten();
    let error = (form / (2 * APIS.len()) % 2 == 1).then_some("it failed");
    let model = ModelRef::parse("p/m").expect("a model");
    let open = vec![OpenCall { id: "call_1|fc_1".to_owned(), name: "read".to_owned() }];
    let read =
        |messages: &[&str]| given::messages(api, messages, &Beside { usage, stop, error }, Some(&model), open.clone());
    match read(&messages) {
        Ok(made) => are_messages(api, &made, messages.len()),
        Err(Invalid { path, problem }) => {
            assert!(
                path.starts_with("messages[")
                    || ["usage", "stopReason", "errorMessage"].contains(&path.split('.').next().unwrap_or_default()),
                "{path}"
            );
            assert!(!problem.is_empty());
        }
    }
}

fn are_messages(api: Api, made: &[Made], given: usize) {
    assert!(made.windows(2).all(|pair| pair[0].at <= pair[1].at), "in the order in which they were given");
    for Made { at, json } in made {
        assert!(*at < given.max(1));
        assert!(!json.contains(['\n', '\r']), "{json}");
        Message::parse(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    }
    let target = Target { api, provider: "p", model: "m" };
    let turns = turns(made.iter().map(|made| Cow::Borrowed(made.json.as_str())), &target);
    let request = Request { turns, ..Request::default() };
    assert!(codec::encode(api, &request, Delivery::Whole).body.is_object());
}
