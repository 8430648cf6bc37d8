//! `session/configure`: the values that are stored with a session.

use crate::{
    conversation::entry::Stamps,
    models::ModelRef,
    protocol::{
        SessionConfigure,
        errors::Failure,
        events::{Event, ModelChange},
        types::{ConfigureAnswer, ConfigureParams},
    },
    session::{
        core::{
            Core,
            edit::{EditMethod, NotStaged, Staged},
        },
        state::State,
    },
    settings::Limits,
};
use serde_json::Value;

impl EditMethod for SessionConfigure {
    fn stage(state: &State, params: &ConfigureParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let mut staged = Staged::default();
        if params.model.is_some() || params.context_window.is_some() {
            staged.before = Some(Box::new(state.model_in_force()));
        }
        if let Some(model) = &params.model {
            let Some(model) = model else {
                let what = "a model cannot be taken away, only another one chosen";
                return Err(Failure::params("model", what).into());
            };
            staged.add(state, stamps, "model_change", &model_fields(model))?;
        }
        if let Some(level) = &params.thinking_level {
            let level = level.as_deref().unwrap_or("off");
            staged.add(state, stamps, "thinking_level_change", &[("thinkingLevel", level.into())])?;
        }
        if let Some(title) = &params.title {
            staged.add(state, stamps, "session_info", &[("name", title.as_deref().unwrap_or_default().into())])?;
        }
        let limits = params.context_window.is_some() || params.max_output_tokens.is_some();
        if params.system_prompt.is_some() || params.tools.is_some() || limits {
            let mut data = state.data().clone();
            if let Some(prompt) = &params.system_prompt {
                data.system_prompt.clone_from(prompt);
            }
            if let Some(tools) = &params.tools {
                data.tools.clone_from(tools);
            }
            if limits {
                data.limits = limits_of(state, params);
            }
            staged.add_custom(state, stamps, "session", serde_json::to_value(data).unwrap_or_default())?;
        }
        Ok(staged)
    }

    fn answer(core: &Core, staged: &Staged) -> Result<ConfigureAnswer, Failure> {
        Ok(ConfigureAnswer { session: core.state.info(core.status()), next: staged.next.clone() })
    }

    fn event(state: &State, staged: &Staged) -> Option<Event> {
        let from = staged.before.as_ref()?.model.clone();
        let to = state.model(state.path()).filter(|to| from.as_ref() != Some(to))?;
        Some(Event::ModelChanged { from, to, reason: ModelChange::User })
    }
}

/// The limits of the model that the session has from here on.
fn limits_of(state: &State, params: &ConfigureParams) -> Option<Limits> {
    let model = match &params.model {
        Some(Some(model)) => state.model_with(model),
        _ => state.model(state.path()),
    };
    let before = state.data().limits.clone().filter(|limits| limits.model == model);
    let mut limits = before.unwrap_or(Limits { model, ..Limits::default() });
    if let Some(window) = params.context_window {
        limits.context_window = window;
    }
    if let Some(output) = params.max_output_tokens {
        limits.max_output_tokens = output;
    }
    Some(limits).filter(|limits| !limits.is_empty())
}

/// Fields of a `model_change`: pi has provider and model in two fields, oh-my-pi in one.
#[must_use]
pub fn model_fields(model: &ModelRef) -> [(&'static str, Value); 3] {
    let (provider, id) = (model.provider.as_str(), model.id.as_str());
    [("provider", provider.into()), ("modelId", id.into()), ("model", format!("{provider}/{id}").into())]
}
