//! The layers over the defaults: the global file, a project's file, the environment and a session's own patch, in that
//! order; each value with its source.
//!
//! A layer is checked when it is read, against the types of the settings, so an invalid value is reported with its key
//! and line and never reaches a session.

use super::{
    Settings,
    checked::{Checked, all_valid, check},
    masked,
    problem::Problem,
};
use crate::prompts::Prompts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

/// The source of a value.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Built in.
    Default,
    /// The global `settings.json`.
    Global,
    /// The project's `.abridged/settings.json`.
    Project,
    /// An environment variable.
    Environment,
    /// The session's own.
    Session,
}

/// The layers that lie over the defaults, the lowest first. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layers {
    layers: Arc<Vec<(Source, Value)>>,
    prompts: Arc<Prompts>,
}

/// Settings with the source of each value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sourced {
    /// The settings in force.
    #[serde(serialize_with = "masked::serialize")]
    pub settings: Settings,
    /// The source of each value that is not a default, by its dotted key.
    pub sources: BTreeMap<String, Source>,
    /// The prompts in force. They come from files of their own and are not sent to clients.
    #[serde(skip)]
    pub prompts: Arc<Prompts>,
}

impl Sourced {
    /// Returns true where clients see the same settings in both.
    #[must_use]
    pub fn tells_the_same(&self, other: &Self) -> bool {
        self.settings == other.settings && self.sources == other.sources
    }
}

impl Layers {
    /// These layers, the lowest first. Each was checked before.
    #[must_use]
    pub fn of(layers: Vec<(Source, Value)>) -> Self {
        Self { layers: Arc::new(layers), prompts: Arc::default() }
    }

    /// The same with each layer changed.
    #[must_use]
    pub fn changed(&self, change: impl Fn(&mut Value)) -> Self {
        let mut layers = (*self.layers).clone();
        layers.iter_mut().for_each(|(_, layer)| change(layer));
        Self { layers: Arc::new(layers), prompts: self.prompts.clone() }
    }

    /// The same with other prompts.
    #[must_use]
    pub fn with_prompts(self, prompts: Prompts) -> Self {
        Self { prompts: Arc::new(prompts), ..self }
    }

    /// The settings in force with a session's own patch over them.
    ///
    /// # Errors
    /// When the patch is invalid.
    pub fn with_session(&self, patch: Option<&Value>) -> Result<Sourced, Problem> {
        static DEFAULTS: LazyLock<Value> =
            LazyLock::new(|| serde_json::to_value(Settings::default()).unwrap_or_default());
        let mut value = DEFAULTS.clone();
        let mut sources = BTreeMap::new();
        // In a patch null means "back to what it is without me".
        let patch = match patch.map(without_nulls) {
            // A number may have been clamped.
            Some(patch) => Some(all_valid(&patch)?),
            None => None,
        };
        let session = patch.as_ref().map(|patch| (Source::Session, patch));
        for (source, layer) in self.layers.iter().map(|(source, layer)| (*source, layer)).chain(session) {
            let layer = match source {
                Source::Project => &without_looser_ceiling(layer, &value),
                _ => layer,
            };
            merge(&mut value, layer);
            mark(layer, "", source, &mut sources);
        }
        let mut settings: Settings =
            serde_json::from_value(value).map_err(|error| Problem::broken(error.to_string()))?;
        // The environment is over the files, also over the models in them.
        let source = |key: &str| sources.get(key).copied();
        if !settings.compaction.enabled
            && source("compaction.enabled") == Some(Source::Environment)
            && source("models") != Some(Source::Session)
        {
            settings.models.change(|models| {
                let own = models.iter_mut().filter_map(|model| model.compaction.as_mut());
                own.for_each(|compaction| compaction.without("enabled"));
            });
        }
        Ok(Sourced { settings, sources, prompts: self.prompts.clone() })
    }

    /// The settings in force without a session's patch.
    #[must_use]
    pub fn sourced(&self) -> Sourced {
        // Layers that are valid one by one are valid together; otherwise the defaults are used.
        let prompts = self.prompts.clone();
        let defaults = |_| Sourced { settings: Settings::default(), sources: BTreeMap::new(), prompts };
        self.with_session(None).unwrap_or_else(defaults)
    }
}

/// The layer of a project without a ceiling of tokens that is higher than the one below it, or none.
fn without_looser_ceiling<'a>(layer: &'a Value, below: &Value) -> Cow<'a, Value> {
    let ceiling = |value: &Value| Some(value.pointer(CEILING)?.as_i64().filter(|most| *most >= 0).unwrap_or(i64::MAX));
    match (ceiling(layer), ceiling(below)) {
        (Some(project), Some(below)) if project > below => Cow::Owned(without_ceiling(layer.clone())),
        _ => Cow::Borrowed(layer),
    }
}

/// The place of the ceiling of tokens in a layer.
const CEILING: &str = "/compaction/maxTokensPerHour";

/// A layer without its ceiling of tokens.
#[must_use]
pub fn without_ceiling(mut layer: Value) -> Value {
    if let Some(compaction) = layer.pointer_mut("/compaction").and_then(Value::as_object_mut) {
        compaction.shift_remove("maxTokensPerHour");
    }
    layer
}

/// The variable with settings as JSON.
const VARIABLE: &str = "ABRIDGED_SETTINGS";

/// The layer of the environment: settings as JSON in `ABRIDGED_SETTINGS`, and the switch
/// `ABRIDGED_DISABLE_AUTOCOMPACT`. Its value is none where neither is set.
#[must_use]
pub fn from_environment(environment: &dyn Fn(&str) -> Option<String>) -> Checked {
    let text = environment(VARIABLE).filter(|text| !text.trim().is_empty());
    let mut layer = text.map_or(Checked { value: None, problems: Vec::new() }, |text| check(&text, None));
    for problem in &mut layer.problems {
        problem.file = Some(VARIABLE.into());
    }
    match environment("ABRIDGED_DISABLE_AUTOCOMPACT").as_deref() {
        None | Some("" | "0" | "false") => {}
        Some(_) => {
            let value = layer.value.get_or_insert_with(|| Value::Object(Map::new()));
            merge(value, &serde_json::json!({ "compaction": { "enabled": false } }));
        }
    }
    layer
}

pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Lays `over` on `base`: objects key by key, anything else replaced.
pub(super) fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(slot) => merge(slot, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Records the source of every value of a layer.
fn mark(layer: &Value, at: &str, source: Source, sources: &mut BTreeMap<String, Source>) {
    match layer {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                mark(value, &path, source, sources);
            }
        }
        Value::Null => {}
        _ => {
            sources.insert(at.to_owned(), source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{models::ModelRef, settings::Speculative};
    use serde_json::json;

    #[test]
    fn the_environment_holds_settings_and_the_switch() {
        let layer = |settings: &str, switch: &str| {
            from_environment(&|name| match name {
                "ABRIDGED_SETTINGS" => Some(settings.to_owned()),
                "ABRIDGED_DISABLE_AUTOCOMPACT" => Some(switch.to_owned()),
                _ => None,
            })
        };
        let own = r#"{"compaction": {"models": ["a/b"]}}"#;
        let value = |settings: &str, switch: &str| layer(settings, switch).value;
        assert_eq!(value(own, "0"), Some(json!({"compaction": {"models": ["a/b"]}})));
        assert_eq!(value(own, "1"), Some(json!({"compaction": {"models": ["a/b"], "enabled": false}})));
        assert_eq!(layer("", ""), Checked { value: None, problems: vec![] });
        let broken = layer("{ broken", "");
        assert_eq!(broken.value, None);
        assert!(broken.problems[0].to_string().starts_with("ABRIDGED_SETTINGS: line 1: not JSON"), "{broken:?}");
    }

    #[test]
    fn later_layers_win_and_say_so() {
        let global = json!({"compaction": {"reserveTokens": 1, "strategy": "context-full", "speculative": false}});
        let project = json!({"compaction": {"strategy": "off"}});
        let layers = Layers::of(vec![(Source::Global, global), (Source::Project, project)]);
        let patch = json!({"compaction": {"reserveTokens": 2, "keepRecentTokens": null}});
        let sourced = layers.with_session(Some(&patch)).expect("both are right");
        assert_eq!(sourced.settings.compaction.reserve_tokens, Some(2));
        assert_eq!(sourced.settings.compaction.keep_recent_tokens, 20_000);
        assert_eq!(sourced.settings.compaction.speculative, Speculative::Fixed(false));
        assert_eq!(sourced.sources["compaction.reserveTokens"], Source::Session);
        assert_eq!(sourced.sources["compaction.strategy"], Source::Project);
        assert_eq!(sourced.sources["compaction.speculative"], Source::Global);
        assert!(!sourced.sources.contains_key("compaction.keepRecentTokens"));
    }

    #[test]
    fn a_project_only_lowers_the_ceiling_of_tokens() {
        let ceiling = |global: Option<i64>, project: i64, session: Option<i64>| {
            let layer = |most: i64| json!({"compaction": {"maxTokensPerHour": most, "midTurn": false}});
            let mut layers: Vec<_> = global.map(|most| (Source::Global, layer(most))).into_iter().collect();
            layers.push((Source::Project, layer(project)));
            let sourced = Layers::of(layers).with_session(session.map(layer).as_ref()).expect("settings");
            assert!(!sourced.settings.compaction.mid_turn, "the other values of the project stay");
            (sourced.settings.compaction.ceiling(), sourced.sources.get("compaction.maxTokensPerHour").copied())
        };
        for (global, project, session, expected) in [
            (None, 500, None, (Some(500), Some(Source::Project))),
            (None, -1, None, (None, Some(Source::Project))),
            (Some(800), 500, None, (Some(500), Some(Source::Project))),
            (Some(800), 800, None, (Some(800), Some(Source::Project))),
            (Some(800), 0, None, (Some(0), Some(Source::Project))),
            (Some(800), 900, None, (Some(800), Some(Source::Global))),
            (Some(800), -1, None, (Some(800), Some(Source::Global))),
            (Some(-1), 900, None, (Some(900), Some(Source::Project))),
            // A client decides for its session.
            (Some(800), 500, Some(900), (Some(900), Some(Source::Session))),
        ] {
            assert_eq!(ceiling(global, project, session), expected, "{global:?} {project} {session:?}");
        }
    }

    #[test]
    fn a_model_may_have_its_own_threshold() {
        let patch = json!({"models": [{"provider": "p", "id": "m", "compaction": {"thresholdPercent": 80}}]});
        let settings = Layers::default().with_session(Some(&patch)).expect("right").settings;
        let model = ModelRef { provider: "p".into(), id: "m".into() };
        assert_eq!(settings.compaction_for(Some(&model)).threshold_percent, 80);
        assert_eq!(settings.compaction_for(None).threshold_percent, -1);
    }
}
