//! `session/context` in a provider's format: the request body without the options of its delivery.

use crate::{
    compaction::native::Unsent,
    conversation::path::Path,
    ids::SessionId,
    log::sealed::Blocking,
    protocol::errors::Failure,
    provider::{Api, Delivery, Encoded, codec},
    session::{
        core::parts::contexts::Identity,
        effects::Answer,
        state::{View, request::LiveRequest},
    },
    wire::transport::Piece,
};
use serde_json::json;

/// Answers with the request for a path, as a `ContextAnswer`.
pub(super) fn answer(view: &View, path: &Path, session: &SessionId, api: Api, blocking: &Blocking) -> Answer {
    whole(view, path, session, api, blocking).map_or_else(Answer::Failed, Answer::Pieces)
}

fn whole(view: &View, path: &Path, session: &SessionId, api: Api, blocking: &Blocking) -> Result<Vec<Piece>, Failure> {
    let Some(model) = view.model(path) else {
        let what =
            "a request needs a model; give the session one by session/configure, or a defaultModel in the settings";
        return Err(Failure::params("format", what));
    };
    let LiveRequest { request, usage, compaction, unsent, .. } =
        view.live_request(path, session, &model, api, blocking)?;
    let Encoded { body, headers, .. } = codec::encode(api, &request, Delivery::Whole);
    drop(request);
    blocking.go_on()?;
    let text = body.to_string();
    drop(body);
    let most = view.max_output(path, &usage, Some(&model)).tokens;
    let id = Identity::of(path, Some(model.clone())).to_string();
    let mut rest = json!({ "contextId": id, "usage": usage, "compactionEntryId": compaction, "model": model, "maxOutputTokens": most });
    if !headers.is_empty() {
        rest["headers"] = headers.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    }
    if let Some(unsent) = unsent.filter(|unsent| *unsent != Unsent::OtherProvider) {
        rest["why"] = unsent.sentence().into();
    }
    let rest = rest.to_string();
    Ok(vec![Piece::Text("{\"body\":".to_owned()), Piece::Text(text), Piece::Text(format!(",{}", &rest[1..]))])
}
