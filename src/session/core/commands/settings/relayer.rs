//! The settings of a session as others ask for and change them.

use crate::{
    protocol::{
        errors::Failure,
        events::{Event, Severity},
        notices::NoticeCode,
    },
    session::{core::base::Base, state::SessionData},
    settings::{Layers, Problem, patch::patched},
    wire::outbox::About,
};
use serde_json::Value;

/// A client's patch of settings that is wrong.
#[must_use]
pub fn wrong_patch(problem: Problem) -> Failure {
    let path = if problem.key.is_empty() { "patch".to_owned() } else { format!("patch.{}", problem.key) };
    Failure::params(path, problem.what)
}

impl SessionData {
    /// With a patch over its settings, in which null takes a key out: what its entry should say from here on.
    ///
    /// # Errors
    /// When the patch is wrong, by its key.
    pub fn patched(&self, patch: &Value) -> Result<Self, Failure> {
        let settings = patched(self.settings.as_ref(), patch).map_err(wrong_patch)?;
        Ok(Self { settings: Some(settings), ..self.clone() })
    }
}

/// Takes new layers from here on. What runs goes on with what it began with.
pub(in crate::session::core) fn relayer(base: &mut Base, layers: Layers) {
    let event = match base.state.relayer(layers) {
        Ok(None) => return,
        Ok(Some(sourced)) => {
            Event::SettingsChanged { settings: Box::new(sourced.settings.clone()), sources: sourced.sources.clone() }
        }
        Err(problem) => Event::Notice {
            severity: Severity::Error,
            code: NoticeCode::SettingsConflict,
            title: "New settings do not go with those of this session; the old ones hold".to_owned(),
            detail: Some(problem.to_string()),
        },
    };
    base.effects.emit(About::default(), event);
    if base.state.history().is_asleep() {
        return;
    }
    base.count();
    if !base.work.is_in_front() {
        base.send_usage();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_changes_the_settings_of_a_session_and_nothing_else() {
        let before = SessionData {
            system_prompt: Some("be kind".to_owned()),
            settings: Some(json!({"prune": {"minimumSavings": 1}, "defaultModel": "a/b"})),
            ..SessionData::default()
        };
        let after = before.patched(&json!({"prune": null, "compaction": {"reserveTokens": 2}})).expect("right");
        assert_eq!(after.settings, Some(json!({"defaultModel": "a/b", "compaction": {"reserveTokens": 2}})));
        assert_eq!(after.system_prompt, before.system_prompt);
        let wrong = before.patched(&json!({"prune": {"minimumSavings": -1}})).expect_err("wrong");
        assert_eq!(wrong.data().rest["path"], "patch.prune.minimumSavings");
    }
}
