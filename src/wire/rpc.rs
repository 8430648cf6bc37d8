//! JSON-RPC 2.0 over frames: dispatches each request of a frame and answers it exactly once.
//!
//! Methods are in jsonrpsee's table. A handler does not wait: it passes its `Reply` to the task that will have the
//! answer, and that task puts it into the outbox, in its place among the events. So requests begin in the order of the
//! wire, and no event overtakes an answer.

mod listing;
mod params;
mod reply;

use self::{
    params::UnknownKeys,
    reply::{Batch, Sink, Ticket, To},
};
pub use self::{
    params::{Read, read_params},
    reply::{Kept, Reply, Shared},
};
use crate::{
    protocol::{CancelAcp, CancelLsp, Exit, Initialize, Initialized, Method, Ping, SessionCancel, errors::Failure},
    wire::{caller::Caller, outbox::Outbox, transport::Ends},
};
use jsonrpsee::{
    Extensions, MethodCallback, RpcModule,
    types::{Id, Params},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

/// The most requests in flight. More are refused.
pub const MOST_IN_FLIGHT: usize = 256;

/// A batch with more members is refused whole: more requests than this could not be in flight.
pub const MOST_IN_BATCH: usize = MOST_IN_FLIGHT;

/// Notifications that wait for nothing, and the one that ends the process.
const NEVER_DROPPED: [&str; 5] = [Initialized::NAME, Exit::NAME, Ping::NAME, CancelLsp::NAME, CancelAcp::NAME];

/// Methods that are exempt from the limit of requests in flight.
const NEVER_REFUSED: [&str; 4] = [Ping::NAME, SessionCancel::NAME, CancelLsp::NAME, CancelAcp::NAME];

/// Whether replies carry the requests that they answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requests {
    Dropped,
    Kept,
}

/// Decides by the method whether a request is handled now.
type Gate = Box<dyn Fn(&str) -> Result<(), Failure> + Send + Sync>;

/// The methods of a connection, over a context they share.
pub struct Service<C> {
    context: Arc<C>,
    module: RpcModule<()>,
    shared: Arc<Shared>,
    caller: Arc<Caller>,
    gate: Gate,
    requests: Requests,
}

/// Carries a reply through jsonrpsee's table to its handler.
#[derive(Clone)]
struct Slot(Arc<Mutex<Option<Reply>>>);

impl<C: Send + Sync + 'static> Service<C> {
    /// A service without methods.
    pub fn new(
        context: Arc<C>,
        outbox: Arc<Outbox>,
        caller: Arc<Caller>,
        gate: impl Fn(&str) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::new(outbox));
        Self { context, module: RpcModule::new(()), shared, caller, gate: Box::new(gate), requests: Requests::Dropped }
    }

    /// Keeps each request with its reply, for a recording.
    pub fn keep_requests(&mut self) {
        self.requests = Requests::Kept;
    }

    /// The requests that wait for their answers.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Adds a method. Its handler must not block.
    pub fn method<M: Method>(&mut self, handle: fn(&Arc<C>, M::Params, Reply)) {
        let call = move |params: Params<'_>, (): &(), extensions: &Extensions| {
            let Some(slot) = extensions.get::<Slot>() else {
                return;
            };
            let context = extensions.get::<Arc<C>>().expect("every call carries its context");
            let reply = slot.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(mut reply) = reply else { return };
            let keys = if M::NAME == Initialize::NAME { UnknownKeys::Exempt } else { UnknownKeys::Checked };
            match params::read::<M::Params>(params.as_str(), keys) {
                Ok(Read { params, unknown }) => {
                    reply.ignored(M::NAME, unknown);
                    handle(context, params, reply);
                }
                Err(failure) => reply.fail(&failure),
            }
        };
        self.module.register_method(M::NAME, call).expect("each method is registered once");
    }

    /// The names of the methods, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.module.method_names().collect();
        names.sort_unstable();
        names
    }

    /// Handles one frame. Every request in it is answered, also in an invalid frame.
    pub fn frame(&self, bytes: &[u8]) {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.trim_start_matches('\u{feff}').trim(),
            Err(error) => {
                return self.refuse(None, &Failure::Parse(format!("the frame is not UTF-8 ({error})")));
            }
        };
        if !text.starts_with('[') {
            return self.request(text, &|| Sink::Single);
        }
        match serde_json::from_str::<Members<'_>>(text) {
            Err(error) => self.refuse(None, &Failure::Parse(error.to_string())),
            Ok(Members::Some(requests)) if requests.is_empty() => {
                self.refuse(None, &Failure::InvalidRequest("a batch must not be empty".to_owned()));
            }
            Ok(Members::TooMany(count)) => {
                let what = format!("a batch has at most {MOST_IN_BATCH} members, not {count}; send several batches");
                self.refuse(None, &Failure::InvalidRequest(what));
            }
            Ok(Members::Some(requests)) => {
                let batch = Arc::new(Batch::new(self.shared.clone()));
                for request in requests {
                    self.request(request.get(), &|| Sink::Batch(batch.clone()));
                }
            }
        }
    }

    /// Takes in that an answer of the client was skipped. Returns false where the frame is no answer that is waited for.
    pub fn is_skipped_answer(&self, frame: &Ends, failure: &Failure) -> bool {
        self.caller.skipped(frame, &failure.to_string())
    }

    /// Answers a message that is no request with an error, with its id or null.
    pub fn refuse(&self, id: Option<&RawValue>, failure: &Failure) {
        self.refuse_to(id, failure, Sink::Single);
    }

    fn refuse_to(&self, id: Option<&RawValue>, failure: &Failure, sink: Sink) {
        let id = id.unwrap_or(RawValue::NULL).to_owned();
        self.shared.outbox.expect_answer();
        let to = Some(To { id, sink, rpc: self.shared.clone() });
        Reply { to, ticket: Arc::default(), _counted: None, kept: None, ignored: None }.fail(failure);
    }

    fn request(&self, text: &str, sink: &dyn Fn() -> Sink) {
        if text.starts_with('[') {
            // Inside a batch; serde would read it as a request whose fields have no names.
            let what = "a request is an object with a method and an id".to_owned();
            return self.refuse_to(None, &Failure::InvalidRequest(what), sink());
        }
        let frame: Frame<'_> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) if error.is_data() => {
                let why = crate::text::faults::plain(&error);
                let found: Found<'_> = serde_json::from_str(text).unwrap_or_default();
                let id = found.id.filter(|id| is_id(id));
                if !found.has_method && found.has_answer {
                    tracing::warn!(%why, "an answer of the client cannot be read");
                    return id.into_iter().for_each(|id| self.caller.garbled(id, &why));
                }
                // A client waits for this id, where there is one.
                let what = format!("a request is an object with a method and an id ({why})");
                return self.refuse_to(id, &Failure::InvalidRequest(what), sink());
            }
            Err(error) => return self.refuse_to(None, &Failure::Parse(error.to_string()), sink()),
        };
        let id = match frame.id {
            Some(id) if !is_id(id) => {
                let what = "an id is a string or an integer; leave it out of a notification".to_owned();
                return self.refuse_to(None, &Failure::InvalidRequest(what), sink());
            }
            id => id,
        };
        if frame.jsonrpc.is_some_and(|version| version != "2.0") {
            return self.refuse_to(id, &Failure::InvalidRequest("`jsonrpc` must be \"2.0\"".to_owned()), sink());
        }
        let Some(method) = frame.method else {
            // A message with neither is an answer too, where a caller waits for its id.
            let waited_for = id.is_some_and(|id| self.caller.answered(id, frame.result, frame.error));
            if waited_for || frame.result.is_some() || frame.error.is_some() {
                return;
            }
            return self.refuse_to(id, &Failure::InvalidRequest("`method` is missing".to_owned()), sink());
        };
        self.call(&method, frame.params, id, sink);
    }

    fn call(&self, method: &str, params: Option<&RawValue>, id: Option<&RawValue>, sink: &dyn Fn() -> Sink) {
        let ticket = Arc::<Ticket>::default();
        let counted = match id {
            None if !NEVER_DROPPED.contains(&method) => match self.shared.count_notification() {
                None => return self.shared.dropped(method),
                counted => counted,
            },
            _ => None,
        };
        let to = id.map(|id| {
            self.shared.outbox.expect_answer();
            To { id: id.to_owned(), sink: sink(), rpc: self.shared.clone() }
        });
        let kept = (self.requests == Requests::Kept).then(|| {
            let (id, params) = (id.map(ToOwned::to_owned), params.map(ToOwned::to_owned));
            Box::new(Kept { id, method: method.to_owned(), params })
        });
        tracing::debug!(method, id = id.map(RawValue::get), "request");
        let reply = Reply { to, ticket: ticket.clone(), _counted: counted, kept, ignored: None };
        if id.is_some() && self.shared.outbox.in_flight() > MOST_IN_FLIGHT && !NEVER_REFUSED.contains(&method) {
            return reply.fail(&Failure::Overloaded { retry_after_ms: 50 });
        }
        if let Err(failure) = (self.gate)(method) {
            return reply.fail(&failure);
        }
        let Some(MethodCallback::Sync(callback)) = self.module.method(method) else {
            return reply.fail(&Failure::MethodNotFound(method.to_owned()));
        };
        if let Some(id) = id {
            self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.get().to_owned(), ticket);
        }
        let slot = Slot(Arc::new(Mutex::new(Some(reply))));
        let mut extensions = Extensions::new();
        extensions.insert(slot.clone());
        extensions.insert(self.context.clone());
        let params = Params::new(params.map(RawValue::get));
        // A panic drops the reply, and a dropped reply answers.
        let called = catch_unwind(AssertUnwindSafe(|| callback(Id::Null, params, usize::MAX, extensions)));
        if called.is_err() {
            tracing::error!(method, "a handler panicked");
        }
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// The members of a frame that cannot be read otherwise, the last one of each name. The others are not kept: there may be
/// millions.
#[derive(Default)]
struct Found<'a> {
    id: Option<&'a RawValue>,
    has_method: bool,
    has_answer: bool,
}

impl<'de> Deserialize<'de> for Found<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Found<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
                let mut found = Found::default();
                while let Some(name) = object.next_key::<Cow<'de, str>>()? {
                    let value: &RawValue = object.next_value()?;
                    match &*name {
                        "id" => found.id = Some(value),
                        "method" => found.has_method = true,
                        "result" | "error" => found.has_answer = true,
                        _ => {}
                    }
                }
                Ok(found)
            }
        }
        reader.deserialize_map(Object)
    }
}

/// The members of a batch, up to the limit.
enum Members<'a> {
    Some(Vec<&'a RawValue>),
    /// More members than the limit, and their number. The batch gets one answer.
    TooMany(usize),
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Batch;
        impl<'de> Visitor<'de> for Batch {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch of requests")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = items.next_element::<&RawValue>()? {
                    if members.len() == MOST_IN_BATCH {
                        let mut count = MOST_IN_BATCH + 1;
                        while items.next_element::<IgnoredAny>()?.is_some() {
                            count += 1;
                        }
                        return Ok(Members::TooMany(count));
                    }
                    members.push(member);
                }
                Ok(Members::Some(members))
            }
        }
        reader.deserialize_seq(Batch)
    }
}

/// Reads a member that may be `null`, which differs from a missing one.
fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(reader).map(Some)
}

/// A string, or an integer of any size.
fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    text.starts_with('"') || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{reply::MOST_NOTIFICATIONS, *};

    /// A method whose handler panics, and one that forgets its reply.
    struct Broken<const FORGETS: bool>;
    impl Method for Broken<true> {
        const NAME: &'static str = "forgets";
        type Params = crate::protocol::types::Nothing;
        type Answer = ();
    }
    impl Method for Broken<false> {
        const NAME: &'static str = "panics";
        type Params = crate::protocol::types::Nothing;
        type Answer = ();
    }

    #[test]
    fn a_panic_and_a_lost_reply_are_answered_and_the_next_request_too() {
        let outbox = Arc::new(Outbox::new());
        let mut service = Service::new(Arc::new(()), outbox.clone(), Arc::new(Caller::new(outbox.clone())), |_| Ok(()));
        service.method::<Broken<false>>(|_, _, _reply| panic!("on purpose"));
        service.method::<Broken<true>>(|_, _, reply| drop(reply));
        service.method::<crate::protocol::Ping>(|_, _, reply| reply.ok(&crate::protocol::types::Empty {}));
        for method in ["panics", "forgets", "ping"] {
            service.frame(format!(r#"{{"jsonrpc":"2.0","id":"{method}","method":"{method}"}}"#).as_bytes());
        }
        outbox.close();
        let mut out = Vec::new();
        outbox.write_to(&mut out, &crate::wire::transport::Chosen::default());
        let answers: Vec<serde_json::Value> =
            String::from_utf8_lossy(&out).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let codes: Vec<_> = answers.iter().map(|it| (it["id"].as_str(), it["error"]["code"].as_i64())).collect();
        assert_eq!(codes, [(Some("panics"), Some(-32603)), (Some("forgets"), Some(-32603)), (Some("ping"), None)]);
        assert_eq!(outbox.in_flight(), 0);
    }

    /// A method whose replies are kept by the test.
    struct Kept;
    impl Method for Kept {
        const NAME: &'static str = "kept";
        type Params = crate::protocol::types::Nothing;
        type Answer = ();
    }

    type Replies = Mutex<Vec<Reply>>;

    /// A service whose method `kept` keeps its replies.
    fn keeping() -> (Arc<Outbox>, Arc<Replies>, Service<Replies>) {
        let (outbox, kept) = (Arc::new(Outbox::new()), Arc::new(Mutex::new(Vec::new())));
        let caller = Arc::new(Caller::new(outbox.clone()));
        let mut service = Service::new(kept.clone(), outbox.clone(), caller, |_| Ok(()));
        service.method::<Kept>(|kept, _, reply| kept.lock().expect("a list").push(reply));
        service.method::<crate::protocol::Ping>(|_, _, reply| reply.ok(&crate::protocol::types::Empty {}));
        (outbox, kept, service)
    }

    /// Everything that was sent.
    fn sent(outbox: &Outbox) -> Vec<serde_json::Value> {
        outbox.close();
        let mut out = Vec::new();
        outbox.write_to(&mut out, &crate::wire::transport::Chosen::default());
        String::from_utf8_lossy(&out).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn so_many_requests_are_in_flight_and_no_more() {
        let (outbox, kept, service) = keeping();
        let ask = |id: usize, method: &str| {
            service.frame(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#).as_bytes());
        };
        (0..256).for_each(|id| ask(id, "kept"));
        assert_eq!(kept.lock().expect("a list").len(), 256);
        ask(256, "kept");
        ask(257, "ping");
        assert_eq!(kept.lock().expect("a list").len(), 256);
        drop(service);
        kept.lock().expect("a list").drain(..).for_each(|reply| reply.ok(&()));
        let answers = sent(&outbox);
        assert_eq!(answers.len(), 258);
        assert_eq!((&answers[0]["id"], &answers[0]["error"]["data"]["code"]), (&256.into(), &"overloaded".into()));
        assert_eq!((&answers[1]["id"], &answers[1]["error"]), (&257.into(), &serde_json::Value::Null));
        assert!(answers[2..].iter().all(|answer| answer["error"].is_null()));
    }

    #[test]
    fn so_many_notifications_wait_and_the_client_is_told_once_of_those_dropped() {
        let (outbox, kept, service) = keeping();
        let notify = || service.frame(br#"{"jsonrpc":"2.0","method":"kept"}"#);
        (0..MOST_NOTIFICATIONS + 3).for_each(|_| notify());
        assert_eq!(kept.lock().expect("a list").len(), MOST_NOTIFICATIONS);
        // A finished notification makes room for another.
        kept.lock().expect("a list").pop();
        notify();
        notify();
        assert_eq!(kept.lock().expect("a list").len(), MOST_NOTIFICATIONS);
        let notices = sent(&outbox);
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert_eq!(notices[0]["params"]["title"], "Notifications were dropped");
    }

    #[test]
    fn a_batch_has_so_many_members_and_no_more() {
        let (outbox, _, service) = keeping();
        let batch = |count: usize, member: &str| format!("[{}]", vec![member; count].join(","));
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        service.frame(batch(MOST_IN_BATCH, ping).as_bytes());
        service.frame(batch(MOST_IN_BATCH, "1").as_bytes());
        service.frame(batch(MOST_IN_BATCH + 1, ping).as_bytes());
        service.frame(batch(500_000, "1").as_bytes());
        service.frame(format!("{},]", batch(MOST_IN_BATCH + 1, "1").trim_end_matches(']')).as_bytes());
        assert_eq!(outbox.in_flight(), 2 * MOST_IN_BATCH + 3);
        let answers = sent(&outbox);
        let codes: Vec<_> =
            answers.iter().map(|it| (it.as_array().map(Vec::len), it["error"]["code"].as_i64())).collect();
        let whole = (Some(MOST_IN_BATCH), None);
        assert_eq!(codes, [whole, whole, (None, Some(-32600)), (None, Some(-32600)), (None, Some(-32700))]);
        let said = answers[3]["error"]["message"].as_str().expect("a text");
        assert!(said.contains("at most 256 members, not 500000"), "{said}");
        assert_eq!(outbox.in_flight(), 0);
    }

    #[test]
    fn ids_are_strings_and_integers_of_any_size() {
        let id = |text: &str| is_id(&RawValue::from_string(text.to_owned()).expect("JSON"));
        for good in ["1", "-1", "\"x\"", "\"\"", "123456789012345678901234567890"] {
            assert!(id(good), "{good}");
        }
        for bad in ["null", "1.5", "true", "{}", "[1]", "1e3"] {
            assert!(!id(bad), "{bad}");
        }
    }
}
