//! The actions of clients and of the surroundings of a session, as data. A failing run is a scenario that can be written to
//! a file, made smaller and committed. Entries, requests and operations are named by their order, never by their ids.

mod tree;

pub use tree::{Navigating, Target};

use super::{
    hooks::{Hooking, Registered},
    lies::{Told, Truth},
    script::Script,
};
use crate::session::effects::Sent;
use serde::{Deserialize, Serialize};

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    /// Decides ids, delays and the order of results.
    pub seed: u64,
    /// The session and its surroundings at first.
    pub setup: Setup,
    /// The actions in their order.
    pub actions: Vec<Action>,
}

/// A session before the first action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Setup {
    /// Rights on the file.
    pub rights: Rights,
    /// Entries in the file.
    pub history: u32,
    /// Decides these entries.
    pub history_seed: u64,
    /// Time at which the index is built.
    pub indexed: Indexed,
    /// Estimator of tokens.
    pub counts: Counts,
    /// Window of the session's model, in tokens.
    pub window: u64,
    /// `compaction.keepRecentTokens` of the settings.
    pub keep_recent: u64,
    /// Number of models of the settings. The first is the session's.
    pub models: u32,
    /// Way of the models.
    pub way: Way,
    /// Answers of the models.
    pub script: Script,
    /// Whether the settings name a larger model for the session's.
    pub promotes: bool,
    /// Whether the client asks the model that a context names.
    pub switches: bool,
    /// The settings of idle maintenance.
    pub idle: Idle,
    /// `compaction.maxTokensPerHour` of the settings, if it is set.
    pub ceiling: Option<u64>,
    /// `compaction.speculative` of the settings.
    pub ahead: Ahead,
    /// Prices of the models.
    pub prices: Prices,
    /// Hooks of the client.
    pub hooks: Hooking,
    /// The provider of the session's model and its host, where they have a truth of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
    /// Whether the lines are in a database. A full disk and a failed fsync are lost connections then, and no other program writes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
}

/// `compaction.speculative`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ahead {
    /// `"auto"`
    #[default]
    Auto,
    /// `true`
    On,
    /// `false`
    Off,
}

/// Prices of the models in the settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prices {
    /// None.
    #[default]
    Unknown,
    /// Those of input, output and the cache.
    Listed,
    /// Those of input and output.
    WithoutCache,
    /// Zero.
    Free,
}

/// The settings of idle maintenance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Idle {
    /// `compaction.idleTimeoutSeconds`. Zero is off.
    pub seconds: u64,
    /// `compaction.idleThresholdTokens`, in tokens.
    pub threshold: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            rights: Rights::Write,
            history: 0,
            history_seed: 0,
            indexed: Indexed::Later,
            counts: Counts::Chars,
            window: 16_000,
            keep_recent: 1_000,
            models: 1,
            way: Way::Provider,
            script: Script::default(),
            promotes: false,
            switches: false,
            idle: Idle::default(),
            ceiling: None,
            ahead: Ahead::Auto,
            prices: Prices::Unknown,
            hooks: Hooking::default(),
            truth: None,
            stored: false,
        }
    }
}

/// Rights with which a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    /// The file is owned.
    Write,
    /// The file is read and followed.
    Read,
    /// There is no file.
    Ephemeral,
}

/// Time at which the index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Indexed {
    /// At the opening.
    AtOnce,
    /// When it is needed, or the session is idle.
    Later,
}

/// Estimator of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// A quarter of the characters.
    Chars,
    /// The tokenizer, whose tables are loaded by the first count.
    Tokenizer,
}

/// Way to the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// At their provider.
    Provider,
    /// By the client.
    Client,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The session handles so many inputs, as long as it has some without waiting.
    Steps(u32),
    /// The time passes, in milliseconds.
    Wait(u64),
    /// A request. The session handles nothing before the next action.
    Send(Request, Sent),
    /// `session/cancel`.
    Cancel(WhichOperation),
    /// `$/cancelRequest` of an open request, counted from the newest.
    CancelRequest(u32),
    /// The settings below the session's own.
    Layers(Tuning),
    /// `hooks/set` of the session.
    Hooks(Registered),
    /// Another session learned the window of the session's model, in tokens.
    WindowLearned(u64),
    /// Bytes that the other sessions keep in memory.
    AwakeElsewhere(u64),
    /// Other sessions have idle maintenance for so many milliseconds when this one asks for its turn next.
    OthersIdle(u64),
    /// The file was touched.
    FileTouched,
    /// Another program writes to the file.
    Other(OtherWrite),
    /// The disk has room for so many bytes only.
    Room(u32),
    /// The disk has room again.
    MakeRoom,
    /// The next fsync fails.
    FailSync(Unsynced),
    /// The next read of entries that are not in memory fails.
    FailRead,
    /// The next work on the log ends in a panic.
    PanicLog(PanicAt),
    /// The time passes, in milliseconds, and the session handles nothing meanwhile.
    Stall(u64),
    /// The time of day jumps, in milliseconds.
    WallJumps(i64),
    /// The daemon asks the session to end when it is idle.
    Finish,
    /// The daemon asks the session to end now.
    Stop,
    /// The process is killed after so many effects, and the session is opened again.
    Crash(u32),
    /// The process is killed in the next append, which leaves this number of bytes, and the session is opened again.
    Tear(u32),
    /// A session that has ended is opened again.
    Open(Rights),
}

/// Bytes after the last fsync, when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsynced {
    /// They are in the file.
    Kept,
    /// They are gone.
    Lost,
}

/// A place in the work on the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanicAt {
    /// Before it does anything.
    Begin,
    /// When it is done.
    End,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichOperation {
    /// All.
    All,
    /// A known one, counted from the newest.
    Newest(u32),
    /// A missing one.
    Unknown,
}

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The last leaf that the client was told.
    Leaf,
    /// A known one, counted from the newest.
    Newest(u32),
    /// A known one, counted from the oldest.
    Oldest(u32),
    /// A missing one.
    Unknown,
}

/// A change of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tuning {
    /// The settings of the setup.
    None,
    /// `compaction.keepRecentTokens`.
    KeepRecent(u64),
    /// The window of the session's model, in tokens.
    Window(u64),
    /// `compaction.thresholdPercent`.
    ThresholdPercent(i64),
    /// `compaction.enabled: false`.
    NoCompaction,
    /// No model at all.
    NoModels,
    /// An invalid value. Only `settings/set` sends it.
    Invalid,
    /// `compaction.strategy: "off"`.
    StrategyOff,
    /// `compaction.midTurn: false`.
    NoMidTurn,
    /// `contextPromotion.enabled: false`.
    NoPromotion,
    /// `tokens.learnWindow: false`.
    NoLearning,
    /// `compaction.speculative`.
    Ahead(Ahead),
}

/// Writing by another program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OtherWrite {
    /// Whole entries, each after the one before.
    Entries {
        /// Parent of the first.
        parent: Which,
        /// Their content.
        messages: Vec<Said>,
    },
    /// Whole entries right before the session's next append.
    Race {
        /// Parent of the first.
        parent: Which,
        /// Their content.
        messages: Vec<Said>,
    },
    /// The beginning of an entry after the leaf, in percent of its line.
    Half(u8),
    /// The rest of it.
    Rest,
    /// Bytes that are no entry, on a line of their own.
    Garbage,
}

/// A request to the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// `session/append`
    Append {
        /// The messages.
        messages: Vec<Said>,
        /// `parentEntryId`
        parent: Option<Which>,
        /// `expectedLeafId`
        expected: Option<Which>,
    },
    /// `session/compact`
    Compact(Compacting),
    /// `session/undo_compaction`
    Undo,
    /// `session/reset`
    Reset,
    /// `session/pin`
    Pin(Pinned),
    /// `session/unpin`
    Unpin(Pinned),
    /// `session/label`, with a label or null
    Label(Which, Option<u32>),
    /// `session/prune`
    Prune {
        /// `protectTokens`
        protect: Option<u64>,
        /// `minimumSavings`
        minimum: Option<u64>,
        /// `dryRun`
        dry_run: Option<bool>,
    },
    /// `session/configure`
    Configure(Configured),
    /// `settings/set` of the session
    Set(Tuning),
    /// `settings/get`
    Settings,
    /// `session/context`
    Context {
        /// `leafEntryId`
        leaf: Option<Which>,
        /// `format`
        format: Option<Format>,
        /// `wait`
        wait: Option<bool>,
    },
    /// `session/entries`
    Entries {
        /// `since`
        since: Option<Which>,
        /// `branch: "all"`
        all: bool,
        /// `limit`
        limit: Option<u32>,
    },
    /// `session/entry`
    Entry(Which),
    /// `session/tree`
    Tree(Option<Which>),
    /// `session/search`
    Search(u32),
    /// `session/usage`
    Usage,
    /// `session/status`
    Status,
    /// `session/subscribe`
    Subscribe,
    /// `session/unsubscribe`
    Unsubscribe,
    /// `session/clear_queue`
    ClearQueue,
    /// `session/activity`
    Activity,
    /// `session/run_idle`
    RunIdle,
    /// `session/load` of the open session
    Load,
    /// `settings/set` of the project, which the daemon answers
    HandOver,
    /// `session/close`
    Close,
    /// `session/navigate`
    Navigate(Navigating),
    /// `session/prompt`
    Prompt {
        /// Whether it steers a turn that runs.
        steers: bool,
    },
    /// `session/continue`
    Continue,
}

/// Params of `session/compact`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compacting {
    /// Whether the answer comes at the end.
    pub wait: Option<bool>,
    /// Whether only the plan is wanted.
    pub dry_run: Option<bool>,
    /// Method of the summary.
    pub method: Option<Method>,
    /// Size of the newest messages that are kept.
    pub keep_recent_tokens: Option<u64>,
    /// Whether there are instructions.
    pub instructions: Option<u32>,
    /// Expected leaf.
    pub expected: Option<Which>,
    /// Whether an agent asks.
    pub by_agent: bool,
    /// Whether it is to start after the turn.
    pub after_turn: bool,
    /// Whether the summary begins a new session.
    pub new_session: bool,
}

/// Method of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A model.
    Llm,
    /// No model.
    Extractive,
}

/// A pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinned {
    /// An entry.
    Entry(Which),
    /// The text of this number, of so many characters.
    Text(u32, u32),
}

/// A change by `session/configure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Configured {
    /// The model of this number.
    Model(u32),
    /// No model, which is invalid.
    NoModel,
    /// A thinking level, or none.
    Thinking(Option<u32>),
    /// A title, or none.
    Title(Option<u32>),
    /// A system prompt of so many characters, or none.
    Prompt(Option<u32>),
    /// So many tools.
    Tools(u32),
    /// Model, title and prompt.
    All(u32),
    /// The window of the model, in tokens, or the usual one.
    Window(Option<u64>),
    /// The longest answer of the model, in tokens, or the usual one.
    Output(Option<u64>),
    /// Nothing.
    Nothing,
}

/// Format of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// pi's messages.
    Messages,
    /// Anthropic's body.
    Anthropic,
    /// OpenAI's chat body.
    OpenaiChat,
    /// OpenAI's responses body.
    OpenaiResponses,
    /// Google's body.
    Google,
}

/// A message. Texts have so many characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// A user message.
    User(u32),
    /// An answer.
    Answer(u32, Reported),
    /// An answer that was cut off by its limit.
    CutOff(u32, Reported),
    /// A failed answer.
    Failed(Error, Reported),
    /// An aborted answer.
    Aborted(u32),
    /// An answer with so many calls.
    Calls(u32, Reported),
    /// The result of an open call, counted from the newest.
    Result(u32, u32),
    /// The result of a call that does not exist.
    Stray(u32),
    /// A user message with an image.
    Image(u32),
    /// A message of an extension.
    Custom(u32),
    /// A message of a developer.
    Developer(u32),
    /// An execution.
    Execution(u32),
    /// An answer with signed thinking.
    Thinking(u32, Reported),
    /// An invalid message.
    Invalid(u32),
    /// The answer of a provider that counts the context that was given last.
    Provided(Provider),
    /// The end of the newest request to a provider with a truth of its own.
    Told(Told),
    /// An answer that was cut off inside a call.
    CutCall(Reported),
    /// An answer that was cut off before its first word.
    CutEmpty(Reported),
    /// An answer of another model.
    OfAnother(u32, Reported),
    /// A user message with so many images and no text.
    Images(u32),
}

/// A provider that enforces its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Provider {
    /// Its window, in tokens.
    pub window: u64,
    /// Its count, in percent of that of the session.
    pub percent: u32,
    /// The window that its refusal states. None if it states none.
    pub states: Option<u64>,
}

/// Usage that an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reported {
    /// None.
    Nothing,
    /// Zeros.
    Zero,
    /// This input, in tokens.
    Input(u64),
    /// A total that has nothing to do with its parts.
    Total(u64),
    /// The largest numbers.
    Absurd,
    /// Negative numbers, which are invalid.
    Negative,
    /// An input of so many percent of the window.
    Percent(u32),
    /// 10^15 tokens.
    Huge,
    /// This input, in tokens. Nine tenths of it were read from the cache.
    Cached(u64),
}

/// Error of a failed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// Too long.
    Overflow,
    /// Too long for a window of so many tokens.
    OverflowOf(u64),
    /// Rate limit.
    Throttled,
    /// An error of the network.
    Broken,
    /// Rate limit of tokens.
    ThrottledTokens,
    /// Too many bytes.
    TooManyBytes,
    /// A text that no provider sends.
    Unknown,
}
