//! A model named on the command line: whether it can be asked, and the settings under which it is asked first.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use crate::{
    daemon::Places,
    models::{
        ModelRef,
        candidates::{Candidate, Situation},
        learned::Learned,
    },
    provider::{Api, KeySource, address::without_credentials, keys},
    settings::{ModelSettings, Settings, files::SettingsFiles},
};
use serde_json::{Value, json};
use std::path::Path;

/// A model named on the command line.
#[derive(Debug, Clone)]
pub struct Named {
    /// Which.
    pub model: ModelRef,
    /// Where it is asked, if not where everybody knows.
    pub base_url: Option<String>,
    /// The wire format, if not the one everybody knows.
    pub api: Option<Api>,
}

/// A model that can be asked.
pub(super) struct Chosen {
    /// How.
    pub(super) candidate: Candidate,
    /// The models of the settings with what was said of this one. Holds secrets: not to be printed.
    pub(super) models: Vec<Value>,
}

impl Named {
    /// Reads `"provider/id"`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse_model(text: &str) -> Result<ModelRef, String> {
        ModelRef::parse(text).ok_or_else(|| "write provider/id, such as ollama/qwen3:8b".to_owned())
    }

    /// With the settings that hold for sessions about a folder.
    ///
    /// # Errors
    /// When it cannot be asked: why, and what to do.
    pub(super) fn choose(&self, folder: &Path) -> Result<Chosen, String> {
        let places = Places::from_environment()?;
        let mut files = SettingsFiles::read(places.settings(), &|name| std::env::var(name).ok());
        self.choose_from(files.read_project(folder).sourced().settings)
    }

    fn choose_from(&self, mut settings: Settings) -> Result<Chosen, String> {
        let Named { model, base_url, api } = self;
        let at = settings.models.place(model);
        let mut set = at.map(|at| settings.models.change(|models| models.remove(at))).unwrap_or_else(|| {
            ModelSettings { provider: model.provider.clone(), id: model.id.clone(), ..ModelSettings::default() }
        });
        set.base_url = base_url.clone().or(set.base_url);
        set.api = api.or(set.api);
        settings.models.change(|models| models.insert(0, set));
        let candidate = Situation {
            former: None,
            settings: &settings,
            session: None,
            client_runs_models: false,
            is_set: &keys::is_set,
            learned: &Learned::default(),
        }
        .candidate(model);
        let candidate = candidate.map_err(|unfit| format!("{} cannot be asked: {}", unfit.model, unfit.why))?;
        Ok(Chosen { candidate, models: settings.models.iter().map(spelled_out).collect() })
    }
}

impl Chosen {
    /// In a line: which, where and with which key.
    pub(super) fn told(&self) -> String {
        let Candidate { model, way, .. } = &self.candidate;
        match way.endpoint() {
            Some(endpoint) => {
                format!("{model} at {}, {}", without_credentials(&endpoint.base_url), key(&endpoint.key))
            }
            None => format!("{model} by the client"),
        }
    }
}

/// Where a key is, in words. The arguments after the name of a program may be secrets themselves.
pub(super) fn key(source: &KeySource) -> String {
    match source {
        KeySource::None => "no key".to_owned(),
        KeySource::Variable(name) => format!("key from {name}"),
        KeySource::Command(command) => match command.as_slice() {
            [program] => format!("key from the command {program}"),
            [program, ..] => format!("key from the command {program} …"),
            [] => "key from a command".to_owned(),
        },
    }
}

/// A model's settings for another process: with its secrets, and without an order of summarizers of its own, which would
/// count for more than what is said on the command line.
fn spelled_out(set: &ModelSettings) -> Value {
    let mut value = serde_json::to_value(set).unwrap_or_default();
    for (name, secret) in &set.headers {
        value["headers"][name] = json!(secret.reveal());
    }
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
        if let Some(own) = fields.get_mut("compaction").and_then(Value::as_object_mut) {
            own.shift_remove("models");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(settings: Value, named: &Named) -> Result<Chosen, String> {
        named.choose_from(serde_json::from_value(settings).expect("settings"))
    }

    fn named(model: &str, base_url: Option<&str>) -> Named {
        Named { model: ModelRef::parse(model).expect("a model"), base_url: base_url.map(str::to_owned), api: None }
    }

    #[test]
    fn what_is_said_lies_over_what_is_set() {
        let settings = json!({
            "models": [
                {"provider": "a", "id": "b"},
                {"provider": "p", "id": "m", "baseUrl": "http://old", "headers": {"X": "hush"},
                 "compaction": {"models": ["a/b"], "reserveTokens": 9}},
            ],
            "compaction": {"models": ["a/b", "p/m"]},
        });
        let chosen = chosen(settings, &named("p/m", Some("http://me:hush@new/v1?key=hush"))).expect("it can be asked");
        assert_eq!(chosen.models.len(), 2);
        let own = &chosen.models[0];
        assert_eq!(own["headers"]["X"], "hush", "the other process sends it");
        assert_eq!(own["compaction"], json!({"reserveTokens": 9}));
        assert_eq!(chosen.told(), "p/m at http://new/v1, no key");
    }

    #[test]
    fn a_model_on_this_machine_needs_nothing_and_an_unknown_one_an_address() {
        let local = chosen(json!({}), &named("ollama/qwen3:8b", None)).expect("it is known");
        assert_eq!(local.told(), "ollama/qwen3:8b at http://127.0.0.1:11434/v1, no key");
        let refused = chosen(json!({}), &named("nobody/knows", None)).err().expect("it is not");
        assert!(refused.starts_with("nobody/knows cannot be asked: nothing says where"), "{refused}");
        assert!(chosen(json!({}), &named("nobody/knows", Some("http://h/v1"))).is_ok());
    }

    #[test]
    fn a_key_is_told_by_where_it_is() {
        let command = |words: &[&str]| KeySource::Command(words.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(key(&command(&["pass", "show", "hush"])), "key from the command pass …");
        assert_eq!(key(&command(&["my-key"])), "key from the command my-key");
        assert_eq!(key(&KeySource::Variable("K".into())), "key from K");
    }
}
