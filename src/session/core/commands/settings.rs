//! `settings/get`, `settings/set` and `models/list` of a session.

pub mod relayer;

use crate::{
    conversation::entry::Stamps,
    models::catalog::catalog,
    protocol::{
        SettingsSet,
        errors::Failure,
        events::Event,
        types::{ModelsListAnswer, SettingsSetParams},
    },
    session::{
        core::{
            command::Command,
            edit::{EditMethod, NotStaged, Staged},
        },
        state::State,
    },
    settings::Sourced,
};
use serde_json::Value;

/// `settings/get` of a session.
#[must_use]
pub fn settings() -> Command {
    Command::with(|core, ticket| ticket.ok(core.base.state.settings()))
}

/// `models/list` of a session.
#[must_use]
pub fn models() -> Command {
    Command::with(|core, ticket| ticket.ok(&models_of(&core.base.state)))
}

/// The models that the session may use.
fn models_of(state: &State) -> ModelsListAnswer {
    let model = state.model(state.path());
    ModelsListAnswer { models: catalog(state.settings(), &state.learned, model.as_slice()) }
}

/// The scope `session`: the patch of the session's own settings is stored with it.
impl EditMethod for SettingsSet {
    fn stage(state: &State, params: &SettingsSetParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let mut staged = Staged::default();
        let data = state.data().patched(&Value::Object(params.patch.0.clone()))?;
        if data.settings != state.data().settings {
            staged.add_custom(state, stamps, "session", serde_json::to_value(data).unwrap_or_default())?;
        }
        Ok(staged)
    }

    fn answer(state: &State, _: &Staged) -> Result<Sourced, Failure> {
        Ok(Sourced::clone(state.settings()))
    }

    fn event(state: &State, _: &Staged) -> Option<Event> {
        Some(Event::SettingsChanged {
            settings: Box::new(state.settings().settings.clone()),
            sources: state.settings().sources.clone(),
        })
    }
}
