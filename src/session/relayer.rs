//! A session whose settings change while it runs.

use super::{Session, Slot};
use crate::{
    outbox::About,
    protocol::events::{Event, Severity},
    settings::Layers,
};

impl Session {
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
