//! The steps of a turn beside the session: to see whether its model can be asked, to ask it, and to have its calls executed.

use super::{blocking::blocking, defect, draft::caught};
use crate::{
    ask::{
        access::ModelAccess,
        client::{Executed, Execution, Unanswered},
        content::Content,
        failed::Failed,
        pool::Pool,
        purpose::Purpose,
        request::{Answered, Limits, Origin, Request, UNLIMITED, Update},
        retry::Policy,
    },
    conversation::{entry::raw, path::Path, spending::Trigger},
    ids::{CallId, ModelRef, OperationId, SessionId},
    log::sealed::Blocking,
    models::candidates::{Candidate, Situation, Way},
    protocol::{errors::Failure, types::PromptMessage},
    provider::{Api, Part, Reasoning, Stop as Stopped, ToolChoice, keys},
    session::{
        core::parts::contexts::Identity,
        state::{View, request::LiveRequest},
        stop::Stop,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::HashSet, future, sync::Arc, task::Poll, time::Duration};

/// A step of a turn.
pub enum TurnOrder {
    /// Whether the model of the session can be asked.
    Route(Box<RouteOrder>),
    /// The model is asked.
    Ask(Box<AskOrder>),
    /// The client executes the tools of these calls, all at once.
    Execute(ExecuteOrder),
}

/// The order to see whether a model can be asked.
pub struct RouteOrder {
    /// The turn.
    pub id: OperationId,
    /// The view on the path.
    pub view: View,
    /// The model; none where the session has none.
    pub model: Option<ModelRef>,
}

/// The order to ask a model.
pub struct AskOrder {
    /// The turn.
    pub id: OperationId,
    /// The view on the path.
    pub view: View,
    /// The path.
    pub path: Path,
    /// Cancels the request.
    pub stop: Stop,
}

/// The order to execute tools.
pub struct ExecuteOrder {
    /// The turn.
    pub id: OperationId,
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// Cancels the requests.
    pub stop: Stop,
}

/// A call of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// The name of the tool.
    pub name: String,
    /// The arguments, as a JSON object.
    pub arguments: Box<RawValue>,
    /// The arguments as the model wrote them, where they are no object. Such a call is not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl TurnOrder {
    /// The turn.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        match self {
            Self::Route(order) => &order.id,
            Self::Ask(order) => &order.id,
            Self::Execute(order) => &order.id,
        }
    }
}

/// A report of a step of a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnReport {
    /// The model can be asked; or the reason why not.
    Routed(Option<Refused>),
    /// A report of the request while it runs.
    Heard(Update),
    /// The model answered, or failed.
    Answered(Box<TurnAnswer>),
    /// A call has its result.
    Executed(CallId, Executed),
}

/// An answer of a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnAnswer {
    /// The assistant message, in pi's form. That of a model that failed is empty and has the error.
    pub message: Box<RawValue>,
    /// The context that it was made for. None where none could be made.
    pub context: Option<String>,
    /// Its stop reason, in pi's form.
    pub stop: String,
    /// Its calls. Those of an answer that was cut off are not to be executed.
    pub calls: Vec<ToolCall>,
    /// The failure.
    pub failed: Option<Refused>,
}

/// The failure of a request to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The model.
    pub model: Option<ModelRef>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// Whether another try may succeed.
    pub retryable: bool,
    /// The text.
    pub what: String,
}

impl From<&Refused> for Failure {
    fn from(refused: &Refused) -> Self {
        let Refused { model, status, retryable, what } = refused.clone();
        let (provider, model) = model.map(|model| (model.provider, model.id)).unzip();
        Self::Provider { provider, model, status, retryable, what }
    }
}

impl From<Failed> for Refused {
    fn from(failed: Failed) -> Self {
        let what = failed.to_string();
        let Failed { model, status, retryable, .. } = failed;
        Self { model, status, retryable, what }
    }
}

/// A step of a turn, with everything that it works with.
pub struct TurnJob {
    /// The session.
    pub session: SessionId,
    /// The order.
    pub order: TurnOrder,
    /// Access to models.
    pub access: Arc<ModelAccess>,
    /// Makes the proof that a thread of the pool may wait for the disk.
    pub may_block: fn() -> Blocking,
}

/// Receives the reports of a step.
pub type Tell<'a> = &'a (dyn Fn(TurnReport) + Send + Sync);

/// Runs a step of a turn, and reports its result. Dropping the future cancels its requests.
pub async fn run(job: TurnJob, pool: &dyn Pool, tell: Tell<'_>) {
    let TurnJob { session, order, access, may_block } = job;
    match order {
        TurnOrder::Route(order) => {
            let routed = candidate(&order.view, order.model.as_ref(), &access);
            // The message is in the session: another prompt would be a second one.
            let refused = routed.err().map(|refused| Refused {
                what: format!("{}; the session keeps the message, and session/continue sends it later", refused.what),
                ..refused
            });
            tell(TurnReport::Routed(refused));
        }
        TurnOrder::Ask(order) => {
            let AskOrder { id, view, path, stop } = *order;
            let asking = Asking { session, id, access: &access, may_block, pool, tell };
            let asked = stop.unless_requested(caught(asking.ask(view, path))).await;
            if let Some(asked) = asked {
                let failed = || Box::new(failed(None, defect_of_turn(), None, 0));
                tell(TurnReport::Answered(asked.unwrap_or_else(failed)));
            }
        }
        TurnOrder::Execute(ExecuteOrder { id, calls, stop }) => {
            let execute = async |ToolCall { id: call, name, arguments, .. }: ToolCall| {
                let execution =
                    Execution { session: session.clone(), turn: id.clone(), call: call.clone(), name, arguments };
                let result = result(access.routes.client.execute(execution).await);
                tell(TurnReport::Executed(call, result));
            };
            let mut running: Vec<_> = calls.into_iter().map(|call| Box::pin(execute(call))).collect();
            let all = future::poll_fn(|context| {
                running.retain_mut(|call| call.as_mut().poll(context).is_pending());
                if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            });
            let _ = stop.unless_requested(all).await;
        }
    }
}

fn defect_of_turn() -> Refused {
    Refused { model: None, status: None, retryable: false, what: defect().to_string() }
}

/// The way to ask a model in a turn.
///
/// # Errors
/// When the session has none, or it cannot be asked.
fn candidate(view: &View, model: Option<&ModelRef>, access: &ModelAccess) -> Result<Candidate, Refused> {
    let refused = |model: Option<ModelRef>, what: String| Refused { model, status: None, retryable: false, what };
    let Some(model) = model else {
        let what = "the session has no model; give it one by session/configure, or set a defaultModel in the settings";
        return Err(refused(None, what.to_owned()));
    };
    let situation = Situation {
        settings: view.settings(),
        session: Some(model),
        former: None,
        client_runs_models: access.client_runs_models(),
        is_set: &keys::is_set,
        learned: &view.learned,
    };
    situation
        .candidate(model)
        .map_err(|unfit| refused(Some(model.clone()), format!("{} cannot be asked: {}", unfit.model, unfit.why)))
}

/// The tools for a request that asks a model.
struct Asking<'a> {
    session: SessionId,
    id: OperationId,
    access: &'a Arc<ModelAccess>,
    may_block: fn() -> Blocking,
    pool: &'a dyn Pool,
    tell: Tell<'a>,
}

/// A request that is to be sent.
struct Ready {
    request: Request,
    context: String,
}

impl Asking<'_> {
    async fn ask(&self, view: View, path: Path) -> Box<TurnAnswer> {
        let now = self.access.routes.clock.timestamp_ms();
        let model = view.model(&path);
        let candidate = match candidate(&view, model.as_ref(), self.access) {
            Ok(candidate) => candidate,
            Err(refused) => return Box::new(failed(model.as_ref(), refused, None, now)),
        };
        let (api, model) = (api_of(&candidate), candidate.model.clone());
        let ready = match self.ready(view, path, candidate).await {
            Ok(ready) => ready,
            Err(failure) => {
                let what = failure.to_string();
                let refused = Refused { model: Some(model.clone()), status: None, retryable: false, what };
                return Box::new(failed(Some(&model), refused, None, now));
            }
        };
        let Ready { request, context } = ready;
        let asked = self.access.routes.ask(&request, &|update| (self.tell)(TurnReport::Heard(update))).await;
        let now = self.access.routes.clock.timestamp_ms();
        Box::new(match asked {
            Ok(answered) => answer(answered, api, &model, context, now),
            Err(error) => failed(Some(&model), error.into(), Some(context), now),
        })
    }

    /// The request for a path. Its context is made in the pool.
    async fn ready(&self, view: View, path: Path, candidate: Candidate) -> Result<Ready, Failure> {
        let (session, may_block) = (self.session.clone(), self.may_block);
        let origin = Origin { session: session.clone(), operation: self.id.clone(), trigger: Trigger::Manual };
        blocking(self.pool, move || {
            let settings = view.settings();
            let (retry, stall) = (&settings.retry, Duration::from_secs(settings.compaction.stall_seconds));
            // A person may not be there, and no other model answers. A second silence is no accident, and may cost the request again.
            let retry = Policy {
                silences: 1,
                unreached: u32::MAX,
                ..Policy::of(retry, Duration::from_millis(retry.max_delay_ms))
            };
            let (api, model) = (api_of(&candidate), candidate.model.clone());
            let LiveRequest { request, usage, .. } = view.live_request(&path, &session, &model, api, &may_block())?;
            let room = candidate.window.saturating_sub(usage.context_tokens);
            let most = match (request.max_tokens.or(request.ceiling), &candidate.way) {
                (Some(most), _) => most,
                // A client is told a number in any case.
                (None, Way::Client) => room.max(1),
                (None, _) => UNLIMITED,
            };
            let (reasoning, cache, output) = (request.reasoning, request.cache.clone(), request.ceiling);
            let candidate = Candidate { output, thinks: reasoning != Reasoning::Unsaid, ..candidate };
            let limits =
                Limits { stall, client: None, until: None, input: usage.context_tokens, quota: None, tokens: None };
            let context = Identity::of(&path, Some(model)).to_string();
            let request = Request {
                purpose: Purpose::Turn,
                origin,
                candidate,
                content: Content::live(request),
                tool_choice: ToolChoice::Auto,
                max_tokens: most,
                reasoning,
                cache,
                retry,
                limits,
            };
            Ok(Ready { request, context })
        })
        .await
    }
}

fn api_of(candidate: &Candidate) -> Api {
    candidate.way.endpoint().map_or(Api::Client, |endpoint| endpoint.api)
}

/// An answer of a model. Each of its calls has an id of its own.
fn answer(answered: Answered, api: Api, model: &ModelRef, context: String, now: i64) -> TurnAnswer {
    let mut answer = answered.answer;
    let mut seen = HashSet::new();
    for part in &mut answer.parts {
        if let Part::Call { id, .. } = part {
            let first = id.clone();
            let mut again = 2;
            while id.is_empty() || !seen.insert(id.clone()) {
                *id = format!("{first}-{again}");
                again += 1;
            }
        }
    }
    let call = |part: &Part| match part {
        Part::Call { id, name, arguments, .. } => {
            let is_object = serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
            let read = RawValue::from_string(arguments.clone()).ok().filter(|_| is_object);
            let unreadable = read.is_none().then(|| arguments.clone());
            let arguments = read.unwrap_or_else(|| raw(&json!({})));
            Some(ToolCall { id: id.as_str().into(), name: name.clone(), arguments, unreadable })
        }
        _ => None,
    };
    let calls = answer.parts.iter().filter_map(call).collect();
    let message = answer.message(api.pi_name().unwrap_or(api.name()), &model.provider, &model.id, now);
    let refused = match &answer.stop {
        Stopped::Refused(_) => {
            let what = message["errorMessage"].as_str().unwrap_or_default().to_owned();
            Some(Refused { model: Some(model.clone()), status: None, retryable: false, what })
        }
        _ => None,
    };
    let stop = message["stopReason"].as_str().unwrap_or_default().to_owned();
    TurnAnswer { message: raw(&message), context: Some(context), stop, calls, failed: refused }
}

/// The answer of a model that failed.
fn failed(model: Option<&ModelRef>, refused: Refused, context: Option<String>, now: i64) -> TurnAnswer {
    let mut message = json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": refused.what,
        "timestamp": now});
    if let Some(model) = model {
        message["provider"] = model.provider.as_str().into();
        message["model"] = model.id.as_str().into();
    }
    TurnAnswer { message: raw(&message), context, stop: "error".to_owned(), calls: Vec::new(), failed: Some(refused) }
}

/// The result of a tool, whatever the client answered: the model is told what is wrong with it.
fn result(answered: Result<Executed, Unanswered>) -> Executed {
    match answered.map(|executed| (checked(&executed.content), executed)) {
        Ok((Ok(()), executed)) => executed,
        Ok((Err(what), _)) => Executed::failed(format!("the result of the tool cannot be read: {what}")),
        Err(unanswered) => Executed::failed(unanswered.to_string()),
    }
}

/// Whether the content of a result is a text, or blocks of text and images.
fn checked(content: &Value) -> Result<(), String> {
    match serde_json::from_value::<PromptMessage>(content.clone()) {
        Ok(message) => message.check(),
        Err(_) => Err("its content is no text and no array of blocks".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{conversation::message::Usage, provider::Answer};

    fn call(id: &str) -> Part {
        Part::Call { id: id.into(), name: "read".into(), arguments: "{}".into(), signature: None }
    }

    #[test]
    fn each_call_of_an_answer_has_an_id_of_its_own() {
        let parts = vec![call("a"), call("a"), call(""), call("a")];
        let made = Answer { parts, stop: Stopped::ToolUse, ..Answer::default() };
        let answered = Answered { answer: made, cost: Usage::default(), limit: None };
        let model = ModelRef::parse("p/m").expect("a model");
        let made = answer(answered, Api::Anthropic, &model, "c".to_owned(), 1);
        let ids: Vec<&str> = made.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a-2", "-2", "a-3"]);
        let message: Value = serde_json::from_str(made.message.get()).expect("a message");
        let written: Vec<&str> =
            message["content"].as_array().expect("blocks").iter().filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(written, ids);
        assert_eq!(
            (message["stopReason"].as_str(), message["api"].as_str()),
            (Some("toolUse"), Some("anthropic-messages"))
        );
    }

    #[test]
    fn a_result_of_the_wrong_shape_tells_the_model_what_is_wrong() {
        let of = |content: Value| result(Ok(Executed { content, is_error: false }));
        let image = |data: &str| json!([{"type": "image", "data": data, "mimeType": "image/png"}]);
        for right in [json!("done"), json!([{"type": "text", "text": "done"}]), json!([]), image("aGk=")] {
            assert!(!of(right.clone()).is_error, "{right}");
        }
        for wrong in
            [json!(7), json!([{"type": "text"}]), json!([{"type": "toolCall"}]), json!([1]), json!(null), image("???")]
        {
            let told = of(wrong.clone());
            assert!(told.is_error && told.content.to_string().contains("cannot be read"), "{wrong}: {told:?}");
        }
        let gone = result(Err(Unanswered::Gone));
        assert!(gone.is_error && gone.content.to_string().contains("the client is gone"));
    }
}
