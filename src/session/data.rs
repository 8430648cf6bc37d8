//! Data of a session that one entry stores: system prompt, tools, settings, limits of the model.

use crate::{
    conversation::{
        instructions::{Given, Instructions},
        path::Path,
    },
    log::names::is_cached,
    models::ModelRef,
    protocol::types::LoadParams,
    settings::{Layers, Limits, Problem, Sourced, TokenLimit},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Data that an `abridged.session` entry stores.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionData {
    /// System prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    /// Settings of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
    /// Limits of the session's model.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "valid")]
    pub limits: Option<Limits>,
}

/// Invalid limits in a file are none, and the other data stay.
fn valid<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Limits>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(reader)?).ok())
}

impl SessionData {
    /// Data that a client gives at `session/load`.
    #[must_use]
    pub fn given(params: &LoadParams) -> Self {
        Self {
            system_prompt: params.system_prompt.clone(),
            tools: params.tools.clone().map(|tools| tools.0),
            settings: params.settings.clone().map(|object| Value::Object(object.0)),
            limits: Self::stated(params.context_window, params.max_output_tokens),
        }
    }

    /// Limits as a client states them at the opening. The model is still to be said.
    #[must_use]
    pub fn stated(context_window: Option<TokenLimit>, max_output_tokens: Option<TokenLimit>) -> Option<Limits> {
        Some(Limits { model: None, context_window, max_output_tokens }).filter(|limits| !limits.is_empty())
    }

    /// Limits without a model hold for this one from here on.
    pub fn hold_for(&mut self, model: impl FnOnce() -> Option<ModelRef>) {
        if let Some(limits) = &mut self.limits
            && limits.model.is_none()
        {
            limits.model = model();
        }
    }

    /// The settings in force with these data, in a session with this file.
    pub(super) fn in_force(&self, layers: &Layers, file: Option<&std::path::Path>) -> Result<Sourced, Problem> {
        let mut sourced = layers.with_session(self.settings.as_ref())?;
        // A cache file may lack lines, and has another path on each machine.
        let file = file.filter(|file| sourced.settings.compaction.transcript_hint && !is_cached(file));
        if let Some(file) = file {
            sourced.prompts = Arc::new((*sourced.prompts).clone().with_transcript(file));
        }
        sourced.settings.stated = self.limits.clone().unwrap_or_default();
        Ok(sourced)
    }

    /// Whether every field is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.system_prompt.is_none() && self.tools.is_none() && self.settings.is_none() && self.limits.is_none()
    }

    /// These data over older ones.
    #[must_use]
    pub fn over(self, before: Self) -> Self {
        Self {
            system_prompt: self.system_prompt.or(before.system_prompt),
            tools: self.tools.or(before.tools),
            settings: self.settings.or(before.settings),
            limits: match (self.limits, before.limits) {
                (Some(limits), Some(before)) => Some(limits.over(before)),
                (limits, before) => limits.or(before),
            },
        }
    }

    /// System prompt and tools, where the path declares none.
    #[must_use]
    pub fn instructions(&self, path: &Path) -> Instructions {
        let given = Given { system_prompt: self.system_prompt.clone(), tools: self.tools.clone() };
        Instructions::new(given, &path.system_prompt())
    }
}

/// Fields of a `model_change`: pi has provider and model in two fields, oh-my-pi in one.
#[must_use]
pub fn model_fields(model: &ModelRef) -> [(&'static str, Value); 3] {
    let (provider, id) = (model.provider.as_str(), model.id.as_str());
    [("provider", provider.into()), ("modelId", id.into()), ("model", format!("{provider}/{id}").into())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn data(json: Value) -> SessionData {
        serde_json::from_value(json).expect("data")
    }

    #[test]
    fn invalid_limits_leave_the_other_data() {
        for limits in [json!({"contextWindow": 0}), json!("8000")] {
            let read = data(json!({"systemPrompt": "be brief", "limits": limits}));
            assert_eq!((read.system_prompt.as_deref(), read.limits), (Some("be brief"), None));
        }
    }

    #[test]
    fn limits_without_a_model_hold_for_the_one_at_the_opening() {
        let model = |text: &str| ModelRef::parse(text);
        for (limits, of) in [
            (json!({"contextWindow": 8_000}), "p/m"),
            (json!({"model": "p/stated", "contextWindow": 8_000}), "p/stated"),
        ] {
            let mut held = data(json!({ "limits": limits }));
            held.hold_for(|| model("p/m"));
            assert_eq!(held.limits.and_then(|limits| limits.model), model(of));
        }
    }

    #[test]
    fn a_client_that_states_no_limit_states_none() {
        assert_eq!(SessionData::stated(None, None), None);
        let params = |params: Value| SessionData::given(&serde_json::from_value(params).expect("params"));
        let limits = params(json!({"path": "/s.jsonl", "contextWindow": 8_000, "maxOutputTokens": 500})).limits;
        assert_eq!(limits, serde_json::from_value(json!({"contextWindow": 8_000, "maxOutputTokens": 500})).ok());
        assert!(params(json!({"path": "/s.jsonl"})).is_empty());
        assert!(!params(json!({"path": "/s.jsonl", "maxOutputTokens": 500})).is_empty());
    }
}
