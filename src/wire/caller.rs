//! Requests to the client, and their answers. Only the caller waits. A request whose caller is gone is cancelled.

use crate::{
    ask::{
        Pending,
        client::{Client, Completion, Executed, Execution, HookCall, LARGEST_ANSWER, LARGEST_RESULT, Unanswered},
        purpose::Purpose,
    },
    protocol::{
        CancelLsp, Method as _,
        requests::{ClientRequest, LlmComplete, LlmCompleteParams, ToolCall, ToolCallAnswer, ToolCallParams},
    },
    text::{faults, values},
    wire::{outbox::Outbox, transport::Ends},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::oneshot;

/// Sends requests to the client.
pub struct Caller {
    outbox: Arc<Outbox>,
    next: AtomicU64,
    gone: AtomicBool,
    waiting: Mutex<HashMap<String, oneshot::Sender<Result<String, Unanswered>>>>,
}

impl Caller {
    /// A caller that sends through this queue.
    #[must_use]
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, next: AtomicU64::new(1), gone: AtomicBool::new(false), waiting: Mutex::default() }
    }

    /// Sends a request and waits for the answer, which has at most `largest` bytes. Where the future is dropped before,
    /// the request is cancelled.
    ///
    /// # Errors
    /// When the client answers with an error or in another form, or the connection is closed.
    pub async fn call<R: ClientRequest>(&self, params: &R::Params, largest: usize) -> Result<R::Answer, Unanswered> {
        let answer = self.ask(R::NAME, &json!(params), largest).await?;
        faults::read(&answer).map_err(Unanswered::Garbled)
    }

    /// Sends the request with this name and waits for its result.
    async fn ask(&self, name: &str, params: &Value, largest: usize) -> Result<String, Unanswered> {
        let id = format!("srv-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        if self.gone.load(Ordering::SeqCst) {
            self.waiting().remove(&id);
            return Err(Unanswered::Gone);
        }
        let asked = Asked { caller: self, id: &id };
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": name, "params": params });
        self.outbox.request(frame.to_string());
        let answer = answer.await.unwrap_or(Err(Unanswered::Gone))?;
        drop(asked);
        if answer.len() > largest {
            return Err(Unanswered::Garbled(format!("it has {} bytes, and {largest} are enough", answer.len())));
        }
        values::check(&answer).map_err(|many| Unanswered::Garbled(many.to_string()))?;
        Ok(answer)
    }

    /// Takes an answer of the client. Returns false where no request with this id waits.
    pub fn answered(&self, id: &RawValue, result: Option<&RawValue>, error: Option<&RawValue>) -> bool {
        let Some(waiting) = self.take(id) else { return false };
        let answer = match (error.filter(|error| error.get() != "null"), result) {
            (Some(error), _) => Err(Unanswered::Error(message_of(error))),
            (None, Some(result)) => Ok(result.get().to_owned()),
            (None, None) => Err(Unanswered::Garbled("neither a result nor an error".to_owned())),
        };
        let _ = waiting.send(answer);
        true
    }

    /// Takes an answer of the client that cannot be read.
    pub fn garbled(&self, id: &RawValue, why: &str) {
        let answer = Err(Unanswered::Garbled(why.to_owned()));
        let _ = self.take(id).map(|waiting| waiting.send(answer));
    }

    /// Takes an answer of the client that was skipped. Returns false where no request waits for it.
    pub fn skipped(&self, frame: &Ends, why: &str) -> bool {
        let mut waiting = self.waiting();
        let id = waiting.keys().find(|id| frame.answer(id)).cloned();
        let answered = id.and_then(|id| waiting.remove(&id));
        answered.map(|waiting| waiting.send(Err(Unanswered::Garbled(why.to_owned())))).is_some()
    }

    fn take(&self, id: &RawValue) -> Option<oneshot::Sender<Result<String, Unanswered>>> {
        let id = serde_json::from_str::<String>(id.get()).ok()?;
        self.waiting().remove(&id)
    }

    /// Ends all waiting requests, because the connection is closed.
    pub fn client_is_gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Result<String, Unanswered>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client for Caller {
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>> {
        let Completion { origin, purpose, system, messages, tools, max_tokens, model, deadline } = completion;
        let (operation_id, turn_id) = match purpose {
            Purpose::Turn => (None, Some(origin.operation)),
            _ => (Some(origin.operation), None),
        };
        let params = LlmCompleteParams {
            session_id: origin.session,
            operation_id,
            turn_id,
            purpose,
            system: system.unwrap_or_default(),
            messages,
            tools: Some(tools).filter(|tools| !tools.is_empty()),
            max_tokens,
            model: Some(model),
            deadline_ms: deadline.and_then(|deadline| u64::try_from(deadline.as_millis()).ok()),
        };
        Box::pin(async move { Ok(self.call::<LlmComplete>(&params, LARGEST_ANSWER).await?.message) })
    }

    fn execute(&self, execution: Execution) -> Pending<'_, Result<Executed, Unanswered>> {
        let Execution { session, turn, call, name, arguments } = execution;
        let params = ToolCallParams {
            session_id: session,
            turn_id: turn,
            tool_call_id: call,
            name,
            arguments,
            deadline_ms: None,
        };
        Box::pin(async move {
            let ToolCallAnswer { content, is_error } = self.call::<ToolCall>(&params, LARGEST_RESULT).await?;
            Ok(Executed { content: json!(content), is_error: is_error == Some(true) })
        })
    }

    fn hook(&self, call: HookCall) -> Pending<'_, Result<Value, Unanswered>> {
        Box::pin(async move {
            let answer = self.ask(call.name, &call.params, LARGEST_ANSWER).await?;
            faults::read(&answer).map_err(Unanswered::Garbled)
        })
    }
}

/// A request that waits for its answer.
struct Asked<'a> {
    caller: &'a Caller,
    id: &'a str,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        // An answered request is not in the map any more.
        if self.caller.waiting().remove(self.id).is_some() {
            self.caller.outbox.notify(CancelLsp::NAME, json!({ "id": self.id }));
        }
    }
}

/// The message of an error object.
fn message_of(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Object {
        message: String,
    }
    serde_json::from_str::<Object>(error.get()).map_or_else(|_| error.get().to_owned(), |object| object.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ask::{purpose::Purpose, request::Origin},
        conversation::spending::Trigger,
        ids::ModelRef,
        wire::transport::Chosen,
    };
    use std::{
        task::{Context, Waker},
        time::Duration,
    };

    fn completion(tools: Vec<Value>, deadline: Option<Duration>) -> Completion {
        Completion {
            origin: Origin { session: "s".into(), operation: "o".into(), trigger: Trigger::Threshold },
            purpose: Purpose::Compaction,
            system: None,
            messages: Vec::new(),
            tools,
            max_tokens: 100,
            model: ModelRef::parse("some/model").expect("a model"),
            deadline,
        }
    }

    /// The frames that were sent until now. No more follow.
    fn sent(outbox: &Outbox) -> Vec<Value> {
        outbox.close();
        let mut sent = Vec::new();
        outbox.write_to(&mut sent, &Chosen::default());
        let lines = String::from_utf8(sent).expect("UTF-8");
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn dropping_a_request_sends_its_cancellation() {
        let outbox = Arc::new(Outbox::new());
        let caller = Caller::new(outbox.clone());
        let mut asking = caller.complete(completion(Vec::new(), Some(Duration::from_millis(1_500))));
        assert!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(asking);
        let frames = sent(&outbox);
        let methods: Vec<_> = frames.iter().filter_map(|frame| frame["method"].as_str()).collect();
        assert_eq!(methods, ["llm/complete", "$/cancelRequest"]);
        assert_eq!(frames[0]["id"], frames[1]["params"]["id"]);
        assert_eq!(frames[0]["params"]["deadlineMs"], 1_500);
        assert!(frames[0]["params"].get("tools").is_none(), "{frames:#?}");
    }

    #[test]
    fn an_answer_with_more_values_than_the_limit_is_garbled() {
        let caller = Caller::new(Arc::new(Outbox::new()));
        let mut context = Context::from_waker(Waker::noop());
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        let answer = format!(r#"{{"message": [{}0]}}"#, "0,".repeat(values::MOST));
        assert!(answer.len() < LARGEST_ANSWER);
        let mut asking = caller.complete(completion(Vec::new(), None));
        assert!(asking.as_mut().poll(&mut context).is_pending());
        assert!(caller.answered(&raw(r#""srv-1""#), Some(&raw(&answer)), None));
        let answered = asking.as_mut().poll(&mut context);
        assert!(
            matches!(&answered, std::task::Poll::Ready(Err(Unanswered::Garbled(why))) if why.contains("300000 values"))
        );
        assert_eq!(message_of(&raw(r#"{"code": 1, "message": "no"}"#)), "no");
        assert_eq!(message_of(&raw(r#"[1]"#)), "[1]");
    }

    #[test]
    fn an_answered_request_is_not_cancelled() {
        let outbox = Arc::new(Outbox::new());
        let caller = Caller::new(outbox.clone());
        let tools = vec![json!({"name": "read"})];
        let mut asking = caller.complete(completion(tools.clone(), None));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asking.as_mut().poll(&mut context).is_pending());
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        assert!(caller.answered(&raw(r#""srv-1""#), Some(&raw(r#"{"message": {"role": "assistant"}}"#)), None));
        let message = json!({"role": "assistant"});
        assert_eq!(asking.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(message)));
        drop(asking);
        let frames = sent(&outbox);
        assert_eq!((frames.len(), &frames[0]["params"]["tools"]), (1, &json!(tools)));
        assert_eq!(frames[0]["params"]["deadlineMs"], Value::Null);
    }
}
