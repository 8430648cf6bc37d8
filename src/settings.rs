//! Settings: their types, defaults and ranges. `layers` merges the sources of values; `ranges` reads the range beside
//! the field of a number.

pub mod alone;
pub mod checked;
pub mod files;
pub mod known;
pub mod layers;
pub mod limits;
pub mod masked;
mod models;
pub mod patch;
pub mod problem;
pub mod prompt_files;
pub mod ranges;
pub mod sources;
mod switches;
pub mod trust;
mod typed;

pub use crate::redact::secret::Secret;
pub use layers::{Layers, Source, Sourced};
pub use limits::{Limits, TokenLimit};
pub use models::Models;
pub use problem::{Flaw, Problem, Subject};

use crate::{
    conversation::tokens::Estimator,
    ids::ModelRef,
    log::store::address::Address,
    provider::{Api, http::is_address},
    redact::Secrets,
    redact::secret::{MASK, without_value},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap};

/// All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
///
/// `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it is allowed
/// there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number outside of its range
/// is not used.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
    /// asked.
    pub default_model: Option<String>,
    /// The models.
    #[schemars(with = "Vec<ModelSettings>")]
    pub models: Models,
    /// Compaction of sessions.
    pub compaction: CompactionSettings,
    /// Pruning of old tool results.
    pub prune: PruneSettings,
    /// The tools of agents.
    pub tools: ToolSettings,
    /// Summaries of branches that are left.
    pub branch_summary: BranchSummarySettings,
    /// Promotion to a larger model instead of a compaction.
    pub context_promotion: PromotionSettings,
    /// Retries of transient errors.
    pub retry: RetrySettings,
    /// Redaction of secrets in summaries.
    pub redaction: RedactionSettings,
    /// Estimation of tokens.
    pub tokens: TokenSettings,
    /// Folders whose project settings are trusted.
    pub trusted_projects: Vec<String>,
    /// The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the daemon
    /// starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
    #[serde(deserialize_with = "store")]
    pub store: Option<Secret>,
    /// A command whose first line of output is the password of the store: the program, then its arguments. No shell reads it. It
    /// runs for each connection.
    #[serde(deserialize_with = "command")]
    pub store_password_command: Option<Vec<String>>,
    /// The limits that a client states for the model of the session. No file of settings has them.
    #[serde(skip)]
    pub stated: Limits,
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
    /// The base URL, in the form that the provider's own SDK takes.
    pub base_url: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// A command whose first line of output is the key: the program, then its arguments. No shell reads it.
    #[serde(deserialize_with = "command")]
    pub api_key_command: Option<Vec<String>>,
    /// Headers of every request, by name, for proxies. The values are secret.
    #[serde(deserialize_with = "headers")]
    pub headers: BTreeMap<String, Secret>,
    /// Size of the window, in tokens.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub context_window: Option<u64>,
    /// The longest answer, in tokens.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_output_tokens: Option<u64>,
    /// True for a model that thinks before it answers. Default: the value of the catalog.
    pub reasoning: Option<bool>,
    /// Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer of the
    /// provider, for the providers `anthropic` and `openai` alone.
    pub native_compaction: Option<bool>,
    /// `"provider/id"` of the larger model for `contextPromotion`.
    pub promote_to: Option<String>,
    /// Its prices. Default: those of the catalog.
    pub cost: Option<ModelCost>,
    /// Overrides of `compaction` for this model.
    pub compaction: Option<CompactionPatch>,
}

/// Prices of a model, in dollars per million tokens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ModelCost {
    /// Input that is not cached.
    #[schemars(range(min = 0, max = 100_000))]
    pub input: f64,
    /// Output.
    #[schemars(range(min = 0, max = 100_000))]
    pub output: f64,
    /// Input that is read from the prompt cache. Default: a tenth of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub cache_read: Option<f64>,
    /// Input that is written to the prompt cache. Default: 1.25 × `input` for Anthropic's API, else `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub cache_write: Option<f64>,
}

/// A checked patch of `compaction` for one model.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
#[serde(transparent)]
pub struct CompactionPatch(Map<String, Value>);

/// Compaction of sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    /// Compacts automatically.
    pub enabled: bool,
    /// The action at the threshold.
    pub strategy: Strategy,
    /// Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller window.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub reserve_tokens: Option<u64>,
    /// Tokens of the newest messages that stay as they are; 0 keeps none.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub keep_recent_tokens: u64,
    /// Threshold in percent of the window; −1: none.
    #[schemars(range(min = -1, max = 99), extend("x-outOfRange" = "clamped", "x-project" = within(25, 99)))]
    pub threshold_percent: i64,
    /// Threshold in tokens; −1: none.
    #[schemars(range(min = -1, max = 1_000_000_000), extend("x-project" = within(8_000, 10_000_000)))]
    pub threshold_tokens: i64,
    /// Continues a daemon-driven session after a compaction.
    pub auto_continue: bool,
    /// Allows a compaction between the tool calls of a turn.
    pub mid_turn: bool,
    /// Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
    /// allows that of another provider whose models are asked by `openai_responses`.
    pub remote_enabled: bool,
    /// URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
    /// answers it. It is asked before the models and gets no key.
    #[serde(deserialize_with = "address")]
    pub remote_endpoint: Option<String>,
    /// Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer that reports
    /// cached tokens.
    pub idle_enabled: bool,
    /// The smallest context that is compacted while the user is away, in tokens.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(8_000, 10_000_000)))]
    pub idle_threshold_tokens: u64,
    /// Time without activity after which the user counts as away, in seconds.
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = within(60, 3_600)))]
    pub idle_timeout_seconds: u64,
    /// Drafts summaries ahead.
    pub speculative: Speculative,
    /// Time without progress of an answer after which the next candidate is asked, in seconds.
    #[schemars(range(min = 1, max = 3_600), extend("x-project" = within(10, 600)))]
    pub stall_seconds: u64,
    /// The longest automatic maintenance, in seconds.
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = within(30, 3_600)))]
    pub deadline_seconds: u64,
    /// The most summaries at the same time, over all sessions.
    #[schemars(range(min = 1, max = 64), extend("x-project" = within(1, 4)))]
    pub max_concurrent: u64,
    /// The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries are
    /// extracted without a model. The file of a project can only make it smaller.
    #[schemars(range(min = -1, max = 1_000_000_000))]
    pub max_tokens_per_hour: i64,
    /// `"provider/id"` of each summarizer, in order.
    pub models: Vec<String>,
    /// The layout of a compacted context.
    pub style: Style,
    /// Ends the frame of a summary with a line that names the file of the session, where the whole conversation is.
    pub transcript_hint: bool,
    /// Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and instructions
    /// that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000
    /// tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
    pub rehydrate: bool,
    /// The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context is over
    /// `coldResumeTokens`.
    pub cold_resume: ColdResumption,
    /// Size over which a context with a cold cache is large, in tokens; −1: half of the threshold.
    #[schemars(range(min = -1, max = 1_000_000_000), extend("x-project" = within(8_000, 10_000_000)))]
    pub cold_resume_tokens: i64,
}

/// The action where a session with a cold prompt cache goes on.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ColdResumption {
    /// No action. `session/usage` has the costs all the same.
    Off,
    /// A `notice` has the costs, once for each pause: when the session is opened, or when it goes on.
    #[default]
    Notice,
    /// A compaction starts when the session goes on: with an appended message, a turn, or a context with `wait`, and not while a call
    /// has no result. An opening alone starts none, since it may be for a look.
    Compact,
}

/// The action at the threshold.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The old part is summarized in place.
    #[default]
    #[serde(alias = "context-full")]
    ContextFull,
    /// A new session continues from a handoff document.
    Handoff,
    /// No action.
    Off,
}

/// The layout of a compacted context.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A summary under headings, then the kept tail.
    #[default]
    Structured,
    /// The newest user messages, then the summary.
    RecentUserMessages,
}

/// The drafting of summaries ahead.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(untagged)]
pub enum Speculative {
    /// On, but not for a model on this machine.
    #[default]
    #[serde(with = "auto")]
    #[schemars(schema_with = "auto::schema")]
    Auto,
    /// On or off.
    Fixed(bool),
}

/// Pruning of old tool results.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PruneSettings {
    /// Tokens of the newest results that stay.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub protect_tokens: u64,
    /// The least tokens for which results are pruned.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub minimum_savings: u64,
    /// Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that reads a file
    /// (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A read of a file
    /// that a newer one repeats is pruned all the same.
    pub protected_tools: Vec<String>,
    /// Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at least
    /// as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = within(1, 3_600)))]
    pub cache_seconds: u64,
}

/// The tools of agents.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSettings {
    /// Tools that touch files. They come before the built-in ones of common agents.
    pub files: Vec<FileTool>,
    /// Tools that hold the todo list. They come before the built-in ones.
    pub todo: Vec<String>,
    /// Tools that load a skill, beside the built-in ones.
    pub skills: Vec<String>,
}

/// A tool that touches a file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FileTool {
    /// The tool's name.
    pub tool: String,
    /// The argument with the path.
    pub argument: String,
    /// The operation on the file.
    pub operation: FileOperation,
}

/// An operation on a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FileOperation {
    /// Reads it.
    Read,
    /// Makes or replaces it.
    Write,
    /// Changes a part of it.
    Edit,
    /// Removes it.
    Delete,
}

/// Summaries of branches that are left.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummarySettings {
    /// The default of `summarize`.
    pub enabled: bool,
    /// Tokens that stay free in the summarizer's window.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = within(0, 10_000_000)))]
    pub reserve_tokens: u64,
}

/// Promotion to a larger model instead of a compaction.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PromotionSettings {
    /// Switches it on.
    pub enabled: bool,
}

/// Retries of transient errors.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct RetrySettings {
    /// Switches it on.
    pub enabled: bool,
    /// The most retries of a request.
    #[schemars(range(min = 0, max = 10), extend("x-project" = within(0, 3)))]
    pub max_retries: u64,
    /// The first delay, in milliseconds.
    #[schemars(range(min = 100, max = 600_000), extend("x-project" = within(1_000, 60_000)))]
    pub base_delay_ms: u64,
    /// The longest delay, in milliseconds.
    #[schemars(range(min = 100, max = 3_600_000), extend("x-project" = within(1_000, 600_000)))]
    pub max_delay_ms: u64,
}

/// Redaction of secrets in summaries.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct RedactionSettings {
    /// Switches it on.
    pub enabled: bool,
}

/// Estimation of tokens.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenSettings {
    /// The estimator.
    pub estimator: EstimatorSetting,
    /// Learns the window that a provider names in an error.
    pub learn_window: bool,
}

/// An estimator of tokens.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EstimatorSetting {
    /// The tokenizer.
    #[default]
    Auto,
    /// A quarter of the characters, as in pi.
    Chars,
}

impl From<EstimatorSetting> for Estimator {
    fn from(setting: EstimatorSetting) -> Self {
        match setting {
            EstimatorSetting::Auto => Self::Tiktoken,
            EstimatorSetting::Chars => Self::Chars,
        }
    }
}

/// Whether the settings let a session compact itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// It compacts itself.
    On,
    /// `compaction.enabled` is false, or `ABRIDGED_DISABLE_AUTOCOMPACT` is set.
    Disabled,
    /// `compaction.strategy` is `off`.
    StrategyOff,
}

impl CompactionSettings {
    /// The most tokens of automatic maintenance for each hour, if they are limited.
    #[must_use]
    pub fn ceiling(&self) -> Option<u64> {
        u64::try_from(self.max_tokens_per_hour).ok()
    }

    /// Whether a session compacts itself.
    #[must_use]
    pub fn switch(&self) -> Switch {
        match self.strategy {
            _ if !self.enabled => Switch::Disabled,
            Strategy::Off => Switch::StrategyOff,
            _ => Switch::On,
        }
    }
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: Strategy::default(),
            reserve_tokens: None,
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
            max_tokens_per_hour: -1,
            models: Vec::new(),
            style: Style::default(),
            transcript_hint: true,
            rehydrate: false,
            cold_resume: ColdResumption::default(),
            cold_resume_tokens: -1,
        }
    }
}

impl Default for PruneSettings {
    fn default() -> Self {
        Self {
            protect_tokens: 40_000,
            minimum_savings: 20_000,
            protected_tools: vec!["skill".to_owned(), "read".to_owned()],
            cache_seconds: 300,
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

impl RedactionSettings {
    /// Whether secrets are removed from texts.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        if self.enabled { Secrets::Redacted } else { Secrets::Sent }
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
    /// The `compaction` settings for a model: its own ones over the general ones.
    #[must_use]
    pub fn compaction_for(&self, model: Option<&ModelRef>) -> CompactionSettings {
        let patch = model.and_then(|model| self.model(model)).and_then(|model| model.compaction.as_ref());
        match patch {
            Some(patch) => patch.over(&self.compaction),
            None => self.compaction.clone(),
        }
    }

    /// The model that a host or a file names, configured or not, else the default. A host asks its model by itself.
    #[must_use]
    pub fn model_or_default(&self, named: Option<ModelRef>) -> Option<ModelRef> {
        named.or_else(|| self.model_by_default())
    }

    /// The model of `defaultModel`.
    #[must_use]
    pub fn model_by_default(&self) -> Option<ModelRef> {
        self.default_model.as_deref().and_then(ModelRef::parse)
    }

    /// The configuration of a model.
    #[must_use]
    pub fn model(&self, model: &ModelRef) -> Option<&ModelSettings> {
        self.models.find(model)
    }
}

impl CompactionSettings {
    /// The tokens that stay free for the next answer in this window.
    #[must_use]
    pub fn reserve(&self, window: u64) -> u64 {
        /// The reserve of the peers.
        const USUAL: u64 = 16_384;
        self.reserve_tokens.unwrap_or(USUAL.min(window / 4)).min(window / 2)
    }
}

impl CompactionPatch {
    /// Takes out a key.
    fn without(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// The value of `remoteEnabled`, if it is set.
    #[must_use]
    pub fn remote_enabled(&self) -> Option<bool> {
        self.0.get("remoteEnabled")?.as_bool()
    }

    fn over(&self, base: &CompactionSettings) -> CompactionSettings {
        let mut value = serde_json::to_value(base).unwrap_or_default();
        layers::merge(&mut value, &Value::Object(self.0.clone()));
        serde_json::from_value(value).unwrap_or_else(|_| base.clone())
    }
}

impl JsonSchema for CompactionPatch {
    fn schema_name() -> Cow<'static, str> {
        "CompactionPatch".into()
    }

    /// The keys of `compaction`, none of them required.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = CompactionSettings::json_schema(generator);
        schema.remove("required");
        schema.insert("description".to_owned(), "Keys of `compaction` that differ for one model.".into());
        schema
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
    match Option::<Vec<String>>::deserialize(reader).map_err(without_value)? {
        Some(words) if words.first().is_none_or(String::is_empty) => {
            Err(serde::de::Error::custom("no program; expected its name, then its arguments"))
        }
        // Settings that are read, changed and written back would otherwise lose the arguments.
        Some(words) if words.iter().any(|word| word == MASK) => {
            Err(serde::de::Error::custom("*** stands for an argument that is not told; expected the argument itself"))
        }
        command => Ok(command),
    }
}

/// The text of the error has no password.
fn store<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Secret>, D::Error> {
    let url = Option::<String>::deserialize(reader).map_err(without_value)?;
    if url.as_deref() == Some(MASK) {
        return Err(serde::de::Error::custom(
            "*** stands for an address that is not told; expected the address itself",
        ));
    }
    if let Some(url) = &url {
        url.parse::<Address>().map_err(serde::de::Error::custom)?;
    }
    Ok(url.map(Secret::from))
}

/// The text of the error does not repeat the URL: a key may stand in it.
fn address<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    let url = Option::<String>::deserialize(reader)?;
    let no_address = |what| serde::de::Error::custom(format!("no address of a server ({what}); expected a URL"));
    url.as_deref().map_or(Ok(()), is_address).map_err(no_address)?;
    Ok(url)
}

fn headers<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<String, Secret>, D::Error> {
    let headers = BTreeMap::<String, Secret>::deserialize(reader).map_err(without_value)?;
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
