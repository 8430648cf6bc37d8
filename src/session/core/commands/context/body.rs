//! `session/context` in a provider's format: the request body without the options of its delivery.

use crate::{
    conversation::{
        context::{self, native::NativeForm},
        path::Path,
    },
    ids::SessionId,
    log::{blobs::Reading, sealed::Blocking},
    models::{self, ModelRef},
    protocol::{errors::Failure, types::Usage},
    provider::{
        Api, Cache, Delivery, Effort, Reasoning, Request, Turn, codec,
        turns::{Target, turns},
    },
    session::{effects::Answer, state::View},
    settings::Settings,
    wire::transport::Piece,
};
use serde_json::json;

/// Answers with the request for a path, as a `ContextAnswer`.
pub(super) fn answer(view: &View, path: &Path, session: &SessionId, api: Api, blocking: &Blocking) -> Answer {
    let Some(model) = view.model(path) else {
        let what =
            "a request needs a model; give the session one by session/configure, or a defaultModel in the settings";
        return Answer::Failed(Failure::params("format", what));
    };
    let context = context::build(path, view.prompts());
    let usage = Usage::from(&view.measure(path));
    let compaction = context.compaction().cloned();
    // Each step drops the one before: a context may have a hundred megabytes, and each step holds all of it.
    let mut images = Reading::of(view.blobs(), blocking);
    let target = Target { api, provider: &model.provider, model: &model.id };
    // The provider reads its own history better than the summary.
    let native = context.native(&model.provider).filter(|_| api == Api::OpenaiResponses);
    let history = native.map(|native| native.history().items().to_vec()).unwrap_or_default();
    let messages = native.map_or_else(|| context.messages(), NativeForm::messages);
    let turns = turns(messages.iter().map(|message| images.resolve(message.json())), &target);
    let request = Request { history, ..request(view, path, session, &model, turns, &usage) };
    drop(context);
    let body = codec::encode(api, &request, Delivery::Whole).body;
    drop(request);
    let text = body.to_string();
    drop(body);
    let most = view.max_output(&usage, Some(&model));
    let rest = json!({ "usage": usage, "compactionEntryId": compaction, "model": model, "maxOutputTokens": most });
    let rest = rest.to_string();
    Answer::Pieces(vec![
        Piece::Text("{\"body\":".to_owned()),
        Piece::Text(text),
        Piece::Text(format!(",{}", &rest[1..])),
    ])
}

fn request(
    view: &View,
    path: &Path,
    session: &SessionId,
    model: &ModelRef,
    turns: Vec<Turn>,
    usage: &Usage,
) -> Request {
    let limit = models::output_limit(view.settings(), Some(model)).and_then(|_| view.max_output(usage, Some(model)));
    Request {
        model: models::dialects::model(&model.id),
        system: view.instructions().system_prompt().map(str::to_owned),
        turns,
        tools: view.instructions().tools().map(<[_]>::to_vec).unwrap_or_default(),
        max_tokens: limit,
        ceiling: view.max_output(usage, Some(model)),
        reasoning: reasoning(view.settings(), model, &view.thinking_level(path)),
        cache: Cache::Prefix(session.to_string()),
        ..Request::default()
    }
}

/// The reasoning that a session's thinking level asks for; none of a model that is known not to reason.
fn reasoning(settings: &Settings, model: &ModelRef, level: &str) -> Reasoning {
    let thinks = models::reasoning(settings, model);
    match level {
        _ if thinks == Some(false) => Reasoning::Unsaid,
        "off" if thinks == Some(true) => Reasoning::Off,
        "minimal" => Reasoning::Effort(Effort::Minimal),
        "low" => Reasoning::Effort(Effort::Low),
        "medium" => Reasoning::Effort(Effort::Medium),
        "high" => Reasoning::Effort(Effort::High),
        // oh-my-pi says `max`.
        "xhigh" | "max" => Reasoning::Effort(Effort::Highest),
        _ => Reasoning::Unsaid,
    }
}
