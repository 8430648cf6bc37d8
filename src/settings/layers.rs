//! What lies over the defaults: the global file, a project's file, the environment and a session's own patch, in that
//! order; each value with its source.
//!
//! A layer is checked when it is read, against the same types that are used, so a wrong value names its key and line
//! and never reaches a session.

use super::Settings;
use crate::prompts::Prompts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

/// Where a value comes from.
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layers {
    layers: Arc<Vec<(Source, Value)>>,
    prompts: Arc<Prompts>,
}

/// Settings with the source of each value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sourced {
    /// The settings in force.
    pub settings: Settings,
    /// Where each value that is not a default comes from, by its dotted key.
    pub sources: BTreeMap<String, Source>,
    /// The prompts in force. They are files of their own, and not told.
    #[serde(skip)]
    pub prompts: Arc<Prompts>,
}

/// What is wrong with a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, where it is about one.
    pub file: Option<PathBuf>,
    /// The dotted key; empty where the text is no JSON at all.
    pub key: String,
    /// The line in its file, where it has one.
    pub line: Option<usize>,
    /// What is wrong and what was expected.
    pub what: String,
    /// What follows from it.
    pub flaw: Flaw,
    /// What it is about.
    pub subject: Subject,
}

/// What a problem is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A setting, or a file of them.
    Settings,
    /// A text in the place of a prompt, or a folder of them.
    Prompts,
}

/// What follows from something wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// The layer is not used.
    Broken,
    /// A key nobody knows is left out.
    Unknown,
    /// What a project may not say is left out.
    Untrusted,
}

impl Sourced {
    /// Whether clients see the same settings in both.
    #[must_use]
    pub fn tells_the_same(&self, other: &Self) -> bool {
        self.settings == other.settings && self.sources == other.sources
    }
}

impl Problem {
    /// A layer that cannot be used.
    #[must_use]
    pub fn broken(what: String) -> Self {
        Self { file: None, key: String::new(), line: None, what, flaw: Flaw::Broken, subject: Subject::Settings }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

impl Layers {
    /// These layers, the lowest first. Each was checked before.
    #[must_use]
    pub fn of(layers: Vec<(Source, Value)>) -> Self {
        Self { layers: Arc::new(layers), prompts: Arc::default() }
    }

    /// The same with other prompts.
    #[must_use]
    pub fn with_prompts(self, prompts: Prompts) -> Self {
        Self { prompts: Arc::new(prompts), ..self }
    }

    /// The settings in force with a session's own patch over them.
    ///
    /// # Errors
    /// When the patch is wrong.
    pub fn with_session(&self, patch: Option<&Value>) -> Result<Sourced, Problem> {
        let mut value = serde_json::to_value(Settings::default()).unwrap_or_default();
        let mut sources = BTreeMap::new();
        // In a patch null means "back to what it is without me".
        let patch = patch.map(without_nulls);
        if let Some(patch) = &patch {
            let (_, problems) = check(&patch.to_string());
            if let Some(problem) = problems.into_iter().find(|problem| problem.flaw == Flaw::Broken) {
                return Err(Problem { line: None, ..problem });
            }
        }
        let session = patch.as_ref().map(|patch| (Source::Session, patch));
        for (source, layer) in self.layers.iter().map(|(source, layer)| (*source, layer)).chain(session) {
            merge(&mut value, layer);
            mark(layer, "", source, &mut sources);
        }
        let settings = serde_json::from_value(value).map_err(|error| Problem::broken(error.to_string()))?;
        Ok(Sourced { settings, sources, prompts: self.prompts.clone() })
    }

    /// The settings in force where no session says otherwise.
    #[must_use]
    pub fn sourced(&self) -> Sourced {
        // Layers that were checked one by one are right together; if ever they are not, the defaults are.
        let prompts = self.prompts.clone();
        let defaults = |_| Sourced { settings: Settings::default(), sources: BTreeMap::new(), prompts };
        self.with_session(None).unwrap_or_else(defaults)
    }
}

/// The layer of the environment, if it says anything: settings as JSON in `ABRIDGED_SETTINGS`, and the switch.
#[must_use]
pub fn from_environment(environment: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    let text = environment("ABRIDGED_SETTINGS").filter(|text| !text.trim().is_empty());
    let said = text.and_then(|text| {
        let (value, problems) = check(&text);
        for Problem { key, what, .. } in problems {
            tracing::warn!(key, what, "ABRIDGED_SETTINGS");
        }
        value
    });
    match environment("ABRIDGED_DISABLE_AUTOCOMPACT").as_deref() {
        None | Some("" | "0" | "false") => said,
        Some(_) => {
            let mut said = said.unwrap_or_else(|| Value::Object(Map::new()));
            merge(&mut said, &serde_json::json!({ "compaction": { "enabled": false } }));
            Some(said)
        }
    }
}

/// Reads one layer against the types; unknown keys are worth a word, wrong values are fatal.
#[must_use]
pub fn check(text: &str) -> (Option<Value>, Vec<Problem>) {
    let broken = |key: String, line: usize, what: String| {
        let problem = Problem { key, line: Some(line), ..Problem::broken(what) };
        (None, vec![problem])
    };
    let value: Value = match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => return broken(String::new(), 1, "expected an object of settings".to_owned()),
        Err(error) => {
            let what = format!("not JSON: {}", crate::message::without_position(&error.to_string()));
            return broken(String::new(), error.line(), what);
        }
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let read: Result<Settings, _> = serde_ignored::deserialize(tracked, |path| unknown.push(path.to_string()));
    if let Err(error) = read {
        let what = crate::message::without_position(&error.to_string());
        return broken(track.path().to_string(), error.line(), what);
    }
    let unknown = unknown.into_iter().map(|key| {
        // serde_ignored marks an Option it went through with a "?".
        let key = key.replace(".?", "");
        let (line, what) = (line_of(text, &key), "unknown key, ignored".to_owned());
        Problem { key, line, flaw: Flaw::Unknown, ..Problem::broken(what) }
    });
    (Some(value), unknown.collect())
}

/// The line of a dotted key in a text that is JSON.
#[must_use]
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    enum At<'a> {
        Key(&'a str),
        Item(usize),
    }
    let wanted: Vec<&str> = key.split(['.', '[', ']']).filter(|part| !part.is_empty()).collect();
    let is_wanted = |path: &[At<'_>]| {
        let same = |(at, part): (&At<'_>, &&str)| match at {
            At::Key(key) => key == part,
            At::Item(number) => number.to_string() == **part,
        };
        path.len() == wanted.len() && path.iter().zip(&wanted).all(same)
    };
    let mut path: Vec<At<'_>> = Vec::new();
    let mut line = 1;
    let mut key_follows = false;
    let mut chars = text.char_indices();
    while let Some((start, char)) = chars.next() {
        match char {
            '\n' => line += 1,
            '{' => {
                path.push(At::Key(""));
                key_follows = true;
            }
            '[' => path.push(At::Item(0)),
            '}' | ']' => drop(path.pop()),
            ':' => key_follows = false,
            ',' => match path.last_mut() {
                Some(At::Item(number)) => *number += 1,
                _ => key_follows = true,
            },
            '"' => {
                let mut escaped = false;
                let closes = |&(_, char): &(usize, char)| {
                    let closes = char == '"' && !escaped;
                    escaped = char == '\\' && !escaped;
                    closes
                };
                let (end, _) = chars.find(closes)?;
                if let (true, Some(At::Key(key))) = (key_follows, path.last_mut()) {
                    *key = &text[start + 1..end];
                    if is_wanted(&path) {
                        return Some(line);
                    }
                }
            }
            _ => {}
        }
    }
    None
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

/// Notes the source of every value of a layer.
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

    fn problem(text: &str) -> String {
        let (_, problems) = check(text);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_wrong_value_names_its_key_its_line_and_what_was_expected() {
        let found = problem("{\n  \"compaction\": {\n    \"reserveTokens\": \"many\"\n  }\n}");
        assert_eq!(found, "line 3: compaction.reserveTokens: invalid type: string \"many\", expected u64");
        let found = problem("{\n  \"compaction\": { \"thresholdPercent\": 250 } }");
        assert!(found.starts_with("line 2: compaction.thresholdPercent: 250 is no percentage"), "{found}");
        let found = problem("{\n\"models\": [ { \"provider\": \"a\", \"id\": \"b\", \"contextWindow\": 0 } ] }");
        assert!(found.contains("line 2: models[0].contextWindow: 0 tokens"), "{found}");
        assert!(problem("{ \"compaction\": ").starts_with("line 1: not JSON"));
        for (model, expected) in [
            (
                r#""api": "openai""#,
                "line 2: models[0].api: unknown variant `openai`, expected one of `anthropic`, `openai_chat`, \
                 `openai_responses`, `google`, `client`",
            ),
            (
                r#""apiKeyCommand": "pass show key""#,
                "line 2: models[0].apiKeyCommand: invalid type: string \"pass show key\", expected a sequence",
            ),
            (
                r#""apiKeyCommand": []"#,
                "line 2: models[0].apiKeyCommand: no program; expected its name, then its arguments",
            ),
            (
                r#""headers": {"X-Key": "***"}"#,
                "line 2: models[0].headers.X-Key: *** stands for a value that is not told; expected the value itself",
            ),
            (r#""headers": {"X Key": "a"}"#, "line 2: models[0].headers: \"X Key\" is no name of a header"),
            (
                r#""headers": {"X-Key": "hush\nhush"}"#,
                "line 2: models[0].headers: the value of X-Key has a line break or the like in it",
            ),
        ] {
            assert_eq!(problem(&format!("{{ \"models\":\n[ {{ {model} }} ] }}")), expected);
        }
    }

    #[test]
    fn an_unknown_key_is_worth_a_word_and_no_more() {
        let (value, problems) = check("{\"compaction\":\n{\"reserve\":1,\"midTurn\":false}}");
        assert!(value.is_some());
        assert_eq!(problems[0].to_string(), "line 2: compaction.reserve: unknown key, ignored");
        assert_eq!(problems[0].flaw, Flaw::Unknown);
        let nested = problem("{\"models\":[\n{\"id\":\"a\"},\n{\"id\":\"\\\"size\\\": {\",\n\"size\":1}]}");
        assert_eq!(nested, "line 4: models.1.size: unknown key, ignored");
    }

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
        assert_eq!(layer(own, "0"), Some(json!({"compaction": {"models": ["a/b"]}})));
        assert_eq!(layer(own, "1"), Some(json!({"compaction": {"models": ["a/b"], "enabled": false}})));
        assert_eq!(layer("", ""), None);
        assert_eq!(layer("{ broken", ""), None, "what is wrong holds nowhere");
    }

    #[test]
    fn later_layers_win_and_say_so() {
        let global = json!({"compaction": {"reserveTokens": 1, "strategy": "context-full", "speculative": false}});
        let project = json!({"compaction": {"strategy": "off"}});
        let layers = Layers::of(vec![(Source::Global, global), (Source::Project, project)]);
        let patch = json!({"compaction": {"reserveTokens": 2, "keepRecentTokens": null}});
        let sourced = layers.with_session(Some(&patch)).expect("both are right");
        assert_eq!(sourced.settings.compaction.reserve_tokens, 2);
        assert_eq!(sourced.settings.compaction.keep_recent_tokens, 20_000);
        assert_eq!(sourced.settings.compaction.speculative, Speculative::Fixed(false));
        assert_eq!(sourced.sources["compaction.reserveTokens"], Source::Session);
        assert_eq!(sourced.sources["compaction.strategy"], Source::Project);
        assert_eq!(sourced.sources["compaction.speculative"], Source::Global);
        assert!(!sourced.sources.contains_key("compaction.keepRecentTokens"));
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
