//! `settings/get`, `settings/set` and `models/list` of a session.

use crate::{
    models::catalog::catalog,
    protocol::{
        SettingsSet,
        errors::Failure,
        events::Event,
        types::{ModelsListAnswer, SettingsSetParams},
    },
    session::{
        Session,
        edit::{EditMethod, NotStaged, Staged},
        state::State,
    },
    settings::Sourced,
};
use serde_json::Value;

impl Session {
    /// The settings in force for the session.
    #[must_use]
    pub fn settings(&self) -> &Sourced {
        self.state.settings()
    }

    /// The working folder of the session.
    #[must_use]
    pub fn cwd(&self) -> &str {
        self.state.cwd()
    }

    /// The models that the session may use.
    #[must_use]
    pub fn models(&self) -> ModelsListAnswer {
        let model = self.state.model(self.state.path());
        ModelsListAnswer {
            models: catalog(self.state.settings(), &|model| self.state.learned.window(model), model.as_ref()),
        }
    }
}

/// The scope `session`: the patch of the session's own settings is stored with it.
impl EditMethod for SettingsSet {
    fn stage(state: &State, params: &SettingsSetParams) -> Result<Staged, NotStaged> {
        let mut staged = Staged::default();
        let data = state.data().patched(&Value::Object(params.patch.0.clone()))?;
        if data.settings != state.data().settings {
            staged.add_custom(state, "session", serde_json::to_value(data).unwrap_or_default())?;
        }
        Ok(staged)
    }

    fn answer(session: &Session, _: &Staged) -> Result<Sourced, Failure> {
        Ok(session.settings().clone())
    }

    fn event(state: &State, _: &Staged) -> Option<Event> {
        Some(Event::SettingsChanged {
            settings: Box::new(state.settings().settings.clone()),
            sources: state.settings().sources.clone(),
        })
    }
}
