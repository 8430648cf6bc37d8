//! Settings: their types, defaults and ranges. `layers` says where values come from, `ranges` reads the range that stands
//! beside the field of a number.

pub mod checked;
pub mod files;
pub mod layers;
pub mod patch;
pub mod prompt_files;
pub mod ranges;
pub mod trust;
mod typed;

pub use crate::secret::Secret;
pub use layers::{Flaw, Layers, Problem, Source, Sourced, Subject};

use crate::{ids::ModelRef, provider::Api};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
///
/// `x-project` is the range of a number in the file of a project that is not trusted. With `x-outOfRange: "clamped"` the
/// nearest number of the range is used; any other number outside of its range is not used.
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
    /// The wire format.
    pub api: Option<Api>,
    /// What the provider's own SDK takes.
    pub base_url: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// A command whose first line of output is the key: the program, then its arguments. No shell reads it.
    #[serde(deserialize_with = "command")]
    pub api_key_command: Option<Vec<String>>,
    /// What is sent with every request besides, for proxies, by name. The values are told to nobody.
    #[serde(deserialize_with = "headers")]
    pub headers: BTreeMap<String, Secret>,
    /// Size of the window, in tokens.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub context_window: Option<u64>,
    /// The most it answers, in tokens.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_output_tokens: Option<u64>,
    /// Whether it thinks before it answers. Left out: what the catalog says.
    pub reasoning: Option<bool>,
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
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub reserve_tokens: u64,
    /// What is kept as it is; 0 keeps nothing.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub keep_recent_tokens: u64,
    /// Threshold as a percentage of the window; −1: not used.
    #[schemars(range(min = -1, max = 99), extend("x-outOfRange" = "clamped"))]
    pub threshold_percent: i64,
    /// Threshold in tokens; −1: not used.
    #[schemars(range(min = -1, max = 1_000_000_000), extend("x-project" = within(-1, 10_000_000)))]
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
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(1_000, 10_000_000)))]
    pub idle_threshold_tokens: u64,
    /// How long the user must be away.
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = within(60, 3_600)))]
    pub idle_timeout_seconds: u64,
    /// Whether summaries are made ahead.
    pub speculative: Speculative,
    /// The next candidate is asked after this time without progress of an answer.
    #[schemars(range(min = 1, max = 3_600), extend("x-project" = within(10, 600)))]
    pub stall_seconds: u64,
    /// An automatic maintenance ends after this.
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = within(30, 3_600)))]
    pub deadline_seconds: u64,
    /// Summaries at the same time, over all sessions.
    #[schemars(range(min = 1, max = 64), extend("x-project" = within(1, 4)))]
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
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub protect_tokens: u64,
    /// Not for less than this.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
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
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
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
    /// How often one request is sent again.
    #[schemars(range(min = 0, max = 10), extend("x-project" = within(0, 3)))]
    pub max_retries: u64,
    /// The first wait.
    #[schemars(range(min = 100, max = 600_000), extend("x-project" = within(1_000, 60_000)))]
    pub base_delay_ms: u64,
    /// The longest wait.
    #[schemars(range(min = 100, max = 3_600_000), extend("x-project" = within(1_000, 600_000)))]
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
        layers::merge(&mut value, &Value::Object(self.0.clone()));
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

/// A tighter range for the file of a project that is not trusted, as it stands in the schema.
fn within(minimum: i64, maximum: i64) -> Value {
    serde_json::json!({ "minimum": minimum, "maximum": maximum })
}

fn command<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<String>>, D::Error> {
    match Option::<Vec<String>>::deserialize(reader)? {
        Some(words) if words.first().is_none_or(String::is_empty) => {
            Err(serde::de::Error::custom("no program; expected its name, then its arguments"))
        }
        command => Ok(command),
    }
}

fn headers<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<String, Secret>, D::Error> {
    let headers = BTreeMap::<String, Secret>::deserialize(reader)?;
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    for (name, value) in &headers {
        if name.is_empty() || !name.bytes().all(in_name) {
            return Err(serde::de::Error::custom(format!("{name:?} is no name of a header")));
        }
        // A line break would begin another header.
        if value.reveal().chars().any(|char| char.is_control() && char != '\t') {
            return Err(serde::de::Error::custom(format!("the value of {name} has a line break or the like in it")));
        }
    }
    Ok(headers)
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
