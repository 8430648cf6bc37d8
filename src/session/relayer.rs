//! The settings of a session as others ask for and change them.

use super::{Session, Slot};
use crate::{
    models::catalog::catalog,
    outbox::About,
    protocol::{
        events::{Event, Severity},
        types::ModelsListAnswer,
    },
    settings::Layers,
};

impl Session {
    /// The models as this session sees them.
    pub(super) fn models(&self) -> ModelsListAnswer {
        let model = self.state.model(self.state.path());
        ModelsListAnswer { models: catalog(self.state.settings(), model.as_ref()) }
    }

    /// Takes new layers from here on. What runs goes on with what it began with.
    pub(super) fn relayer(&mut self, layers: Layers) {
        let event = match self.state.relayer(layers) {
            Ok(None) => return,
            Ok(Some(sourced)) => Event::SettingsChanged {
                settings: Box::new(sourced.settings.clone()),
                sources: sourced.sources.clone(),
            },
            Err(problem) => Event::Notice {
                severity: Severity::Error,
                title: "New settings do not go with those of this session; the old ones hold".to_owned(),
                detail: Some(problem.to_string()),
            },
        };
        self.emitter.emit(About::default(), &event);
        self.count();
        if matches!(self.slot, Slot::Free) {
            self.tell_usage(self.state.measure(self.state.path()).usage);
        }
    }
}
