//! Settings: a global file, the environment and a session's own patch, in that order; each value with its source.
//!
//! A layer is checked when it is read, against the same types that are used, so a wrong value names its key and line
//! and never reaches a session.

use crate::models::ModelRef;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::Path};

/// All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// `"provider/id"` of the model for sessions whose own is not configured.
    pub default_model: Option<String>,
    /// Models and what is known of them.
    pub models: Vec<ModelSettings>,
    /// When and how a session is compacted.
    pub compaction: CompactionSettings,
    /// When old tool results are cut.
    pub prune: PruneSettings,
    /// What the tools of an agent do.
    pub tools: ToolSettings,
    /// Summaries of branches that are left.
    pub branch_summary: BranchSummarySettings,
    /// Going to a larger model instead of compacting.
    pub context_promotion: PromotionSettings,
    /// Repeating what failed for a moment.
    pub retry: RetrySettings,
    /// Keeping secrets out of summaries.
    pub redaction: RedactionSettings,
    /// How tokens are estimated.
    pub tokens: TokenSettings,
    /// Folders whose project settings are trusted.
    pub trusted_projects: Vec<String>,
}

/// One model.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// The provider's name.
    pub provider: String,
    /// The model's name at that provider.
    pub id: String,
    /// The wire format: `anthropic`, `openai_chat`, `openai_responses`, `google` or `client`.
    pub api: Option<String>,
    /// What the provider's own SDK takes.
    pub base_url: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// Size of the window, in tokens.
    #[serde(deserialize_with = "positive")]
    pub context_window: Option<u64>,
    /// The most it answers, in tokens.
    #[serde(deserialize_with = "positive")]
    pub max_output_tokens: Option<u64>,
    /// `"provider/id"` of a larger model to go to.
    pub promote_to: Option<String>,
    /// Overrides of `compaction` for this model.
    #[schemars(with = "Option<CompactionSettings>")]
    pub compaction: Option<CompactionPatch>,
}

/// What a model overrides of `compaction`: a checked patch.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
#[serde(transparent)]
pub struct CompactionPatch(Map<String, Value>);

/// When and how a session is compacted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    /// Whether it happens by itself.
    pub enabled: bool,
    /// What is done.
    pub strategy: Strategy,
    /// Room kept for the next answer.
    pub reserve_tokens: u64,
    /// What is kept as it is; 0 keeps nothing.
    pub keep_recent_tokens: u64,
    /// Threshold as a percentage of the window; −1: not used.
    #[serde(deserialize_with = "percent")]
    pub threshold_percent: i64,
    /// Threshold in tokens; −1: not used.
    pub threshold_tokens: i64,
    /// Whether a daemon-driven session goes on by itself afterwards.
    pub auto_continue: bool,
    /// Whether it may happen between the tool calls of a turn.
    pub mid_turn: bool,
    /// Whether a remote endpoint may be used.
    pub remote_enabled: bool,
    /// Where summaries are made remotely.
    pub remote_endpoint: Option<String>,
    /// Whether it happens when the user is away.
    pub idle_enabled: bool,
    /// Not below this.
    pub idle_threshold_tokens: u64,
    /// How long the user must be away.
    #[serde(deserialize_with = "idle_seconds")]
    pub idle_timeout_seconds: u64,
    /// Whether summaries are made ahead.
    pub speculative: Speculative,
    /// Without a byte for so long, the next candidate is asked.
    pub stall_seconds: u64,
    /// An automatic maintenance ends after this.
    pub deadline_seconds: u64,
    /// Summaries at the same time, over all sessions.
    pub max_concurrent: u64,
    /// `"provider/id"`s to summarize with, in order.
    pub models: Vec<String>,
    /// The shape of what is kept.
    pub style: Style,
}

/// What is done when a session is full.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The old part is summarized in place.
    #[default]
    #[serde(alias = "context-full")]
    ContextFull,
    /// A new session goes on from a document.
    Handoff,
    /// Nothing.
    Off,
}

/// The shape of what is kept.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A summary under headings, then the kept tail.
    #[default]
    Structured,
    /// The newest user messages, then the summary.
    RecentUserMessages,
}

/// Whether summaries are made ahead.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(untagged)]
pub enum Speculative {
    /// On, but not for a model on this machine.
    #[default]
    #[serde(with = "auto")]
    #[schemars(schema_with = "auto::schema")]
    Auto,
    /// As said.
    Fixed(bool),
}

/// When old tool results are cut.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PruneSettings {
    /// The newest results of this size stay.
    pub protect_tokens: u64,
    /// Not for less than this.
    pub minimum_savings: u64,
    /// Tools whose results always stay.
    pub protected_tools: Vec<String>,
}

/// What the tools of an agent do.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSettings {
    /// Tools that touch files, before the known ones of common agents.
    pub files: Vec<FileTool>,
    /// Tools that hold the todo list, before the known ones.
    pub todo: Vec<String>,
}

/// A tool that touches a file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FileTool {
    /// The tool's name.
    pub tool: String,
    /// The argument with the path.
    pub argument: String,
    /// What it does to the file.
    pub operation: FileOperation,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FileOperation {
    /// It is only looked at.
    Read,
    /// It is made or replaced.
    Write,
    /// It is changed.
    Edit,
    /// It is removed.
    Delete,
}

/// Summaries of branches that are left.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummarySettings {
    /// What an omitted `summarize` means.
    pub enabled: bool,
    /// Room kept in the summarizer's window.
    pub reserve_tokens: u64,
}

/// Going to a larger model instead of compacting.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PromotionSettings {
    /// Whether it is done.
    pub enabled: bool,
}

/// Repeating what failed for a moment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct RetrySettings {
    /// Whether it is done.
    pub enabled: bool,
    /// How often.
    pub max_retries: u64,
    /// The first wait.
    pub base_delay_ms: u64,
    /// The longest wait.
    pub max_delay_ms: u64,
}

/// Keeping secrets out of summaries.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct RedactionSettings {
    /// Whether it is done.
    pub enabled: bool,
}

/// How tokens are estimated.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenSettings {
    /// By what.
    pub estimator: EstimatorSetting,
    /// Whether a window that a provider names in an error is believed.
    pub learn_window: bool,
}

/// By what tokens are estimated.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EstimatorSetting {
    /// The tokenizer.
    #[default]
    Auto,
    /// A quarter of the characters, as the peers count.
    Chars,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: Strategy::default(),
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            threshold_percent: -1,
            threshold_tokens: -1,
            auto_continue: true,
            mid_turn: true,
            remote_enabled: true,
            remote_endpoint: None,
            idle_enabled: false,
            idle_threshold_tokens: 200_000,
            idle_timeout_seconds: 300,
            speculative: Speculative::default(),
            stall_seconds: 90,
            deadline_seconds: 900,
            max_concurrent: 2,
            models: Vec::new(),
            style: Style::default(),
        }
    }
}

impl Default for PruneSettings {
    fn default() -> Self {
        Self {
            protect_tokens: 40_000,
            minimum_savings: 20_000,
            protected_tools: vec!["skill".to_owned(), "read".to_owned()],
        }
    }
}

impl Default for BranchSummarySettings {
    fn default() -> Self {
        Self { enabled: false, reserve_tokens: 16_384 }
    }
}

impl Default for PromotionSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { enabled: true, max_retries: 3, base_delay_ms: 2_000, max_delay_ms: 60_000 }
    }
}

impl Default for RedactionSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for TokenSettings {
    fn default() -> Self {
        Self { estimator: EstimatorSetting::default(), learn_window: true }
    }
}

impl Settings {
    /// The `compaction` settings for a model: its own over the general ones.
    #[must_use]
    pub fn compaction_for(&self, model: Option<&ModelRef>) -> CompactionSettings {
        let patch = model.and_then(|model| self.model(model)).and_then(|model| model.compaction.as_ref());
        match patch {
            Some(patch) => patch.over(&self.compaction),
            None => self.compaction.clone(),
        }
    }

    /// What is configured of a model.
    #[must_use]
    pub fn model(&self, model: &ModelRef) -> Option<&ModelSettings> {
        self.models.iter().find(|it| it.provider == model.provider && it.id == model.id)
    }
}

impl CompactionPatch {
    fn over(&self, base: &CompactionSettings) -> CompactionSettings {
        let mut value = serde_json::to_value(base).unwrap_or_default();
        merge(&mut value, &Value::Object(self.0.clone()));
        serde_json::from_value(value).unwrap_or_else(|_| base.clone())
    }
}

impl<'de> Deserialize<'de> for CompactionPatch {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(reader)?;
        serde_json::from_value::<CompactionSettings>(Value::Object(map.clone())).map_err(serde::de::Error::custom)?;
        Ok(Self(map))
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Built in.
    Default,
    /// The global `settings.json`.
    Global,
    /// An environment variable.
    Environment,
    /// The session's own.
    Session,
}

/// The layers that lie over the defaults.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    layers: Vec<(Source, Value)>,
}

/// Settings with the source of each value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sourced {
    /// The settings in force.
    pub settings: Settings,
    /// Where each value that is not a default comes from, by its dotted key.
    pub sources: BTreeMap<String, Source>,
}

/// What is wrong with a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The dotted key; empty where the text is no JSON at all.
    pub key: String,
    /// The line in its file, where it has one.
    pub line: Option<usize>,
    /// What is wrong and what was expected.
    pub what: String,
    /// The layer is not used because of it; otherwise it is only worth a word.
    pub fatal: bool,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    /// The global file and the environment. A layer that is wrong is left out; what is wrong with it is the second
    /// value.
    #[must_use]
    pub fn load(global: &Path, environment: &dyn Fn(&str) -> Option<String>) -> (Self, Vec<Problem>) {
        let mut layers = Self::default();
        let mut problems = Vec::new();
        match std::fs::read_to_string(global) {
            Ok(text) => {
                let (value, found) = check(&text);
                problems.extend(found);
                layers.layers.extend(value.map(|value| (Source::Global, value)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => problems.push(Problem {
                key: String::new(),
                line: None,
                what: format!("cannot be read ({error}); check its permissions"),
                fatal: true,
            }),
        }
        match environment("ABRIDGED_DISABLE_AUTOCOMPACT").as_deref() {
            None | Some("" | "0" | "false") => {}
            Some(_) => {
                let off = serde_json::json!({ "compaction": { "enabled": false } });
                layers.layers.push((Source::Environment, off));
            }
        }
        (layers, problems)
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
            if let Some(problem) = problems.into_iter().find(|problem| problem.fatal) {
                return Err(Problem { line: None, ..problem });
            }
        }
        let session = patch.as_ref().map(|patch| (Source::Session, patch));
        for (source, layer) in self.layers.iter().map(|(source, layer)| (*source, layer)).chain(session) {
            merge(&mut value, layer);
            mark(layer, "", source, &mut sources);
        }
        let settings = serde_json::from_value(value).map_err(|error| Problem {
            key: String::new(),
            line: None,
            what: error.to_string(),
            fatal: true,
        })?;
        Ok(Sourced { settings, sources })
    }
}

/// Reads one layer against the types; unknown keys are worth a word, wrong values are fatal.
fn check(text: &str) -> (Option<Value>, Vec<Problem>) {
    let mut problems = Vec::new();
    let value: Value = match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => {
            let what = "expected an object of settings".to_owned();
            problems.push(Problem { key: String::new(), line: Some(1), what, fatal: true });
            return (None, problems);
        }
        Err(error) => {
            let what = format!("not JSON: {}", crate::message::without_position(&error.to_string()));
            problems.push(Problem { key: String::new(), line: Some(error.line()), what, fatal: true });
            return (None, problems);
        }
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let read: Result<Settings, _> = serde_ignored::deserialize(tracked, |path| unknown.push(path.to_string()));
    if let Err(error) = read {
        let what = crate::message::without_position(&error.to_string());
        problems.push(Problem { key: track.path().to_string(), line: Some(error.line()), what, fatal: true });
        return (None, problems);
    }
    problems.extend(unknown.into_iter().map(|key| {
        let what = "unknown key, ignored".to_owned();
        // serde_ignored marks an Option it went through with a "?".
        Problem { key: key.replace(".?", ""), line: None, what, fatal: false }
    }));
    (Some(value), problems)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

/// Lays `over` on `base`: objects key by key, anything else replaced.
fn merge(base: &mut Value, over: &Value) {
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

fn percent<'de, D: Deserializer<'de>>(reader: D) -> Result<i64, D::Error> {
    match i64::deserialize(reader)? {
        value @ -1..=100 => Ok(value),
        other => Err(serde::de::Error::custom(format!("{other} is no percentage; expected -1 (off) or 1 to 99"))),
    }
}

fn idle_seconds<'de, D: Deserializer<'de>>(reader: D) -> Result<u64, D::Error> {
    match u64::deserialize(reader)? {
        value @ 1..=86_400 => Ok(value),
        other => Err(serde::de::Error::custom(format!("{other} seconds; expected 1 to 86400"))),
    }
}

fn positive<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    match Option::<u64>::deserialize(reader)? {
        Some(0) => {
            Err(serde::de::Error::custom("0 tokens; expected at least 1, or leave the key out if it is unknown"))
        }
        // Far above any model, and far below where sums of windows would overflow.
        Some(tokens @ 1_000_000_001..) => {
            Err(serde::de::Error::custom(format!("{tokens} tokens; expected at most 1,000,000,000")))
        }
        value => Ok(value),
    }
}

mod auto {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str("auto")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<(), D::Error> {
        match String::deserialize(reader)?.as_str() {
            "auto" => Ok(()),
            other => Err(serde::de::Error::custom(format!("`{other}`; expected \"auto\", true or false"))),
        }
    }

    pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "const": "auto" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    }

    #[test]
    fn an_unknown_key_is_worth_a_word_and_no_more() {
        let (value, problems) = check(r#"{"compaction":{"reserve":1,"midTurn":false}}"#);
        assert!(value.is_some());
        assert_eq!(problems[0].to_string(), "compaction.reserve: unknown key, ignored");
        assert!(!problems[0].fatal);
    }

    #[test]
    fn later_layers_win_and_say_so() {
        let global = json!({"compaction": {"reserveTokens": 1, "strategy": "context-full", "speculative": false}});
        let layers = Layers { layers: vec![(Source::Global, global)] };
        let patch = json!({"compaction": {"reserveTokens": 2, "keepRecentTokens": null}});
        let sourced = layers.with_session(Some(&patch)).expect("both are right");
        assert_eq!(sourced.settings.compaction.reserve_tokens, 2);
        assert_eq!(sourced.settings.compaction.keep_recent_tokens, 20_000);
        assert_eq!(sourced.settings.compaction.speculative, Speculative::Fixed(false));
        assert_eq!(sourced.sources["compaction.reserveTokens"], Source::Session);
        assert_eq!(sourced.sources["compaction.strategy"], Source::Global);
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
