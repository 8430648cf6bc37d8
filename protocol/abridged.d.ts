// The protocol of abridged, version 1. Made from its types by `abridged schema --out`; do not edit.
//
// Unknown fields may come with every object, and unknown values of a union from a newer daemon: be lenient.
// `_meta` is free on all params, results and events.

/** What a client may ask for: method, params, result. */
export interface Methods {
  /** Opens the connection. Every other request before it fails. */
  "initialize": { params: InitializeParams; result: InitializeAnswer };
  /** Cancels running operations, sends their end events, and closes all sessions. `exit` follows. */
  "shutdown": { params: Nothing; result: null };
  /** Answers immediately, independent of running operations. */
  "ping": { params: Nothing; result: Empty };
  /** Returns this document. */
  "rpc.discover": { params: Nothing; result: AnyJson };
  /** Creates a session. */
  "session/new": { params: NewParams; result: SessionAnswer };
  /**
   * Opens a session file of abridged, of any version of pi, or of oh-my-pi, in place. With `readOnly` it also opens a
   * session of Claude Code, Codex, OpenCode or Gemini CLI where it lies.
   */
  "session/load": { params: LoadParams; result: LoadAnswer };
  /**
   * Makes a session of one of Claude Code, Codex, OpenCode or Gemini CLI, and opens it. The original stays as it is.
   */
  "session/import": { params: ImportParams; result: ImportAnswer };
  /** Lists the sessions, newest first, without opening them. */
  "session/list": { params: ListParams; result: ListAnswer };
  /** Closes a session. Running operations are cancelled and send their end events. */
  "session/close": { params: SessionParams; result: null };
  /** Deletes a session with its file. Running operations are cancelled and send their end events. */
  "session/delete": { params: SessionParams; result: null };
  /** Returns a session, its queue and its running operations. */
  "session/status": { params: SessionParams; result: StatusAnswer };
  /** Appends messages of the client's own agent loop. They are on disk when the request is answered. */
  "session/append": { params: AppendParams; result: AppendAnswer };
  /** Returns the context for the next model request. */
  "session/context": { params: ContextParams; result: ContextAnswer };
  /** Returns the entries of a session in pages. An entry id is a cursor that stays valid. */
  "session/entries": { params: EntriesParams; result: EntriesAnswer };
  /** Returns one entry as it was written, also after a compaction or pruning. */
  "session/entry": { params: EntryParams; result: EntryAnswer };
  /** Finds entries by their text in the whole tree, newest first. */
  "session/search": { params: SearchParams; result: SearchAnswer };
  /** Returns every entry of a session as a tree, in pages. */
  "session/tree": { params: TreeParams; result: TreeAnswer };
  /** Returns the fullness of the context and the reason why it is compacted now or not. */
  "session/usage": { params: SessionParams; result: UsageAnswer };
  /** Runs idle maintenance now, independent of its timer and of `compaction.idleEnabled`. */
  "session/run_idle": { params: SessionParams; result: RunIdleAnswer };
  /** Cancels running operations. Answered immediately. */
  "session/cancel": { params: CancelParams; result: CancelAnswer };
  /** Replaces the older part of the context by a summary. With `dryRun` it returns the plan. */
  "session/compact": { params: CompactParams; result: CompactAnswer };
  /**
   * Fits messages of a client that keeps its own history into a window. Nothing is stored. It is cancelled with its
   * request.
   */
  "context/fit": { params: FitParams; result: FitAnswer };
  /**
   * Undoes the compaction in force. The context becomes the one without it, including later messages. A reset is
   * undone as long as nothing follows it.
   */
  "session/undo_compaction": { params: SessionParams; result: UndoAnswer };
  /** Clears the context. Entries before the reset stay in the file, and pins stay in the context. */
  "session/reset": { params: SessionParams; result: ResetAnswer };
  /**
   * Adds a message of the user and runs a turn: the model is asked, and its calls go to the client as `tool/call`,
   * until it answers without calls. While a turn or an operation runs, the message waits in the queue.
   */
  "session/prompt": { params: PromptParams; result: PromptAnswer };
  /** Runs a turn on the context as it stands. */
  "session/continue": { params: SessionParams; result: ContinueAnswer };
  /** Moves to another entry of the tree, on request with a summary of the branch that is left. */
  "session/navigate": { params: NavigateParams; result: NavigateAnswer };
  /** Extracts the knowledge of another session about a question into this one. */
  "session/reference": { params: ReferenceParams; result: ReferenceAnswer };
  /**
   * Begins a new session with a document about this one, which a model writes for the goal. This one stays as it is.
   */
  "session/handoff": { params: HandoffParams; result: HandoffAnswer };
  /** Replaces old tool results in the context by one line each. The entries stay unchanged. */
  "session/prune": { params: PruneParams; result: PruneAnswer };
  /** Pins an entry or a text: every compaction keeps it verbatim. */
  "session/pin": { params: PinParams; result: EntryIdAnswer };
  /** Removes a pin. */
  "session/unpin": { params: PinParams; result: EntryIdAnswer };
  /** Sets or removes the label of an entry. */
  "session/label": { params: LabelParams; result: EntryIdAnswer };
  /** Changes values that are stored with the session: model, system prompt, tools, title. */
  "session/configure": { params: ConfigureParams; result: ConfigureAnswer };
  /**
   * Copies the path to an entry into a new session, compactions included, and opens it. The session itself stays as it
   * is.
   */
  "session/fork": { params: ForkParams; result: ForkAnswer };
  /** Removes and returns the queued messages. */
  "session/clear_queue": { params: SessionParams; result: Queue };
  /** Exports the session to a file. */
  "session/export": { params: ExportParams; result: ExportAnswer };
  /** Subscribes to a session's events, from a given event on. Opening a session subscribes too. */
  "session/subscribe": { params: SubscribeParams; result: SubscribeAnswer };
  /** Unsubscribes from a session's events. They are retained for a later `session/subscribe`. */
  "session/unsubscribe": { params: SessionParams; result: null };
  /** Lists models with their known properties and the source of each. */
  "models/list": { params: ModelsListParams; result: ModelsListAnswer };
  /** Forgets the windows of a model that its providers taught, in all sessions and for good. */
  "models/forget": { params: ModelsForgetParams; result: ModelsForgetAnswer };
  /** Returns the settings in force, each with its source. */
  "settings/get": { params: SettingsGetParams; result: Sourced };
  /** Changes settings by a merge patch in which null removes a value. An invalid patch changes nothing. */
  "settings/set": { params: SettingsSetParams; result: Sourced };
  /** Registers the hooks that the client answers, for every session or for some. It holds for every later request. */
  "hooks/set": { params: HooksSetParams; result: null };
  /**
   * Sets the tools of a session, which are stored with it; without `sessionId`, those of sessions that begin later
   * without tools of their own. In a turn the client executes them as `tool/call`.
   */
  "tools/set": { params: ToolsSetParams; result: null };
}

/** What a client may say without being answered. */
export interface ClientNotifications {
  /** Accepted after `initialize`, and not required. */
  "initialized": { params: Nothing };
  /** Ends the process. */
  "exit": { params: Nothing };
  /** The user is active: restarts the idle timer and cancels running idle maintenance. */
  "session/activity": { params: SessionParams };
  /** Cancels a request, in the form of LSP. */
  "$/cancelRequest": { params: CancelLspParams };
  /** Cancels a request, in the form of ACP. */
  "$/cancel_request": { params: CancelAcpParams };
}

/** What the daemon says unasked. */
export interface ServerNotifications {
  /** An event of a session. */
  "session/event": { params: Envelope };
  /** Events of a session were dropped, because the client read too slowly. The client reads the session again. */
  "session/resync_required": { params: ResyncParams };
  /** The set of sessions has changed: `session/list` returns it. */
  "sessions_changed": { params: SessionsChangedParams };
  /** The settings outside of projects and sessions have changed. */
  "settings_changed": { params: Sourced };
  /** A message for a person that concerns no session. */
  "notice": { params: NoticeParams };
}

/** What the daemon asks of the client: method, params, result. */
export interface ClientRequests {
  /**
   * Asks whether a compaction goes on, is cancelled, or takes the summary of the answer. Sent after the start event,
   * only to a client that registered this hook.
   */
  "hook/session_before_compact": { params: BeforeCompactParams; result: BeforeCompactAnswer };
  /**
   * Asks for a prompt, lines and data for the summary that is about to be written. Sent only to a client that
   * registered this hook.
   */
  "hook/session_compacting": { params: CompactingParams; result: CompactingAnswer };
  /**
   * Asks whether a compaction with this summary is written, is cancelled, or takes the summary of the answer. Sent
   * after every check, only to a client that registered this hook, and not for a summary of a hook.
   */
  "hook/session_compact_draft": { params: CompactDraftParams; result: BeforeCompactAnswer };
  /**
   * Asks whether the leaf moves to another entry, stays, or takes the summary of the answer. Sent before every
   * navigation, only to a client that registered this hook.
   */
  "hook/session_before_tree": { params: BeforeTreeParams; result: BeforeTreeAnswer };
  /**
   * Asks the client to execute a tool, in a turn that the daemon runs. Several calls of one answer are sent at once.
   */
  "tool/call": { params: ToolCallParams; result: ToolCallAnswer };
  /** Asks the client to run a model. Sent only to a client that declared the capability `llm`. */
  "llm/complete": { params: LlmCompleteParams; result: LlmCompleteAnswer };
}

/** The number in `error.code` of each `error.data.code`. */
export interface ErrorNumbers {
  "parse_error": -32700;
  "invalid_request": -32600;
  "already_initialized": -32600;
  "frame_too_large": -32600;
  "method_not_found": -32601;
  "invalid_params": -32602;
  "internal": -32603;
  "request_cancelled": -32800;
  "content_modified": -32801;
  "overloaded": -32001;
  "not_found": -32002;
  "busy": -32003;
  "locked": -32004;
  "nothing_to_compact": -32005;
  "context_overflow": -32007;
  "provider_error": -32008;
  "storage_error": -32009;
  "not_initialized": -32010;
  "unsupported_protocol_version": -32022;
}

/** Every notification, whoever sends it. */
export interface Notifications extends ClientNotifications, ServerNotifications {}

/** Params of `initialize`. */
export interface InitializeParams {
  /** Protocol version of the client. Default: 1. */
  protocolVersion?: number | null;
  /** Name and version of the client. */
  clientInfo?: ClientInfo | null;
  /** Process of the client. The daemon ends when this process has ended. */
  processId?: number | null;
  /** Capabilities of the client. */
  capabilities?: ClientCapabilities | null;
}

/** Name and version of a client. */
export interface ClientInfo {
  /** Name of the client. */
  name?: string;
  /** Version of the client. */
  version?: string;
  /** Name for display. */
  title?: string | null;
}

/** Capabilities of a client. */
export interface ClientCapabilities {
  /**
   * Hooks that the client answers, as by `hooks/set` without `sessionIds`. A wrong part is left out, with a `notice`.
   */
  hooks?: HookRegistration | null;
  /** The client executes tools. */
  tools?: AnyObject | null;
  /** The client runs model requests. */
  llm?: AnyObject | null;
  /** The client asks the model that a context names. */
  modelSwitch?: AnyObject | null;
  /** The client goes on with the session that `session_replaced` names. Automatic maintenance may hand off then. */
  sessionReplaced?: AnyObject | null;
  /** Selection of events. */
  events?: EventCapabilities | null;
}

/** Hooks that a client answers. */
export interface HookRegistration {
  /** The hooks. An empty list: none. */
  events?: HookEvent[];
  /** Time for an answer. Default: 30,000. */
  timeoutMs?: HookTimeout | null;
  /** After a hook that failed. Default: `continue`. */
  onFailure?: OnFailure | null;
}

/** A hook that a client can answer. The request of a hook has the prefix `hook/`, which is accepted here too. */
export type HookEvent =
  /** Asked before a compaction is drafted. It cancels the compaction or supplies the summary. */
  | "session_before_compact"
  /** Asked before a summary is made. It adds context, changes the prompt, and stores data of its own. */
  | "session_compacting"
  /** Asked before a compaction is written. It cancels the compaction or edits the summary. */
  | "session_compact_draft"
  /** Asked before the leaf moves to another branch. It cancels the move or supplies the summary of the branch. */
  | "session_before_tree";

/** The time that a client has for the answer to a hook, in milliseconds: 100 to 600,000. */
export type HookTimeout = number;

/**
 * The way in which an operation goes on after a hook that failed: no answer in time, an error, a wrong answer, or a
 * client that is gone.
 */
export type OnFailure =
  /** As if the hook was not registered. */
  | "continue"
  /** The operation ends with the outcome `cancelled`. */
  | "abort";

/** Any object. */
export type AnyObject = Record<string, unknown>;

/** Selection of events. */
export interface EventCapabilities {
  /** Event types that are not sent. */
  optOut?: string[];
}

/** Result of `initialize`. */
export interface InitializeAnswer {
  /** Protocol version of the connection. */
  protocolVersion: number;
  /** Name and version of the daemon. */
  serverInfo: ServerInfo;
  /** Capabilities of the daemon. */
  capabilities: ServerCapabilities;
  /** Limits of the connection. */
  limits: Limits;
  /** Id of this run of the daemon. Event numbers are unique within it. */
  epoch: string;
  /** Data folder, which holds the sessions. */
  dataDir: string;
}

/** Name and version of the daemon. */
export interface ServerInfo {
  /** Always `abridged`. */
  name: string;
  /** Version of the program. */
  version: string;
}

/** Capabilities of the daemon. */
export interface ServerCapabilities {
  /** Methods that the daemon answers. */
  methods: string[];
  /** Formats of `session/context`. */
  contextFormats: string[];
  /** Methods of a summary. */
  compactionMethods: string[];
}

/** Limits of the connection. */
export interface Limits {
  /** Largest frame that is read, in bytes. A larger frame is skipped. */
  maxInboundFrameBytes: number;
  /** Size below which events and notifications stay, in bytes. */
  softOutboundFrameBytes: number;
  /** Largest number of requests in flight. Further requests are refused. */
  maxInFlightRequests: number;
  /** Largest number of members in a batch. A larger batch is refused whole. */
  maxBatchRequests: number;
}

/** Empty params. */
export type Nothing = Record<string, unknown>;

/** An empty result. */
export type Empty = Record<string, unknown>;

/** Any JSON value. */
export type AnyJson = unknown;

/** Params of `session/new`. */
export interface NewParams {
  /** Working folder of the session; an absolute path. */
  cwd: string;
  /** Title of the session. */
  title?: string | null;
  /** Model of the session. Default: the setting `defaultModel`. */
  model?: ModelRefInput | null;
  /** Thinking level of the model. */
  thinkingLevel?: ThinkingLevel | null;
  /** System prompt. */
  systemPrompt?: string | null;
  /** Tools of the model. */
  tools?: Tools | null;
  /** Path of the session that this session continues. */
  parentSession?: string | null;
  /** Keep the session in memory only. */
  ephemeral?: boolean | null;
  /** Settings of this session. */
  settings?: SettingsInput | null;
  /** Size of the window of the session's model, in tokens, in place of that in `models`. */
  contextWindow?: number | null;
  /** The longest answer of the session's model, in tokens. */
  maxOutputTokens?: number | null;
}

/** A provider's model; also as `"provider/id"`. */
export type ModelRefInput =
  /** A provider's model. */
  | {
      provider: string;
      id: string;
    }
  | string;

/** How much a model thinks. */
export type ThinkingLevel =
  /** It does not think, where it can be told so. */
  | "off"
  /** The least. */
  | "minimal"
  /** Little. */
  | "low"
  /** Some. */
  | "medium"
  /** Much. */
  | "high"
  /** The most that the model has. `max` is the same. */
  | "xhigh"
  /** The most that the model has. */
  | "max";

/**
 * Tools: `{name, description, inputSchema}`, or the form of Anthropic (`input_schema`), of OpenAI (`parameters`, also
 * below `function`) or of Google (`functionDeclarations`). A provider's own tools are refused: the client adds them to
 * the request.
 */
export type Tools = {
  name?: string;
  description?: string;
  /** JSON Schema of the arguments. */
  inputSchema?: Record<string, unknown>;
  /** JSON Schema of the arguments. */
  input_schema?: Record<string, unknown>;
  /** JSON Schema of the arguments. */
  parameters?: Record<string, unknown>;
  function?: Record<string, unknown>;
  functionDeclarations?: Record<string, unknown>[];
  [key: string]: unknown;
}[];

/**
 * All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
 *
 * `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it is
 * allowed
 * there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number outside of its
 * range
 * is not used.
 */
export interface SettingsInput {
  /**
   * `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
   * asked.
   */
  defaultModel?: string | null;
  /** The models. */
  models?: ModelSettingsInput[];
  /** Compaction of sessions. */
  compaction?: CompactionSettingsInput;
  /** Pruning of old tool results. */
  prune?: PruneSettingsInput;
  /** The tools of agents. */
  tools?: ToolSettingsInput;
  /** Summaries of branches that are left. */
  branchSummary?: BranchSummarySettingsInput;
  /** Promotion to a larger model instead of a compaction. */
  contextPromotion?: PromotionSettingsInput;
  /** Retries of transient errors. */
  retry?: RetrySettingsInput;
  /** Redaction of secrets in summaries. */
  redaction?: RedactionSettingsInput;
  /** Estimation of tokens. */
  tokens?: TokenSettingsInput;
  /** Folders whose project settings are trusted. */
  trustedProjects?: string[];
  /**
   * The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
   * daemon
   * starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
   */
  store?: Secret | null;
  /**
   * A command whose first line of output is the password of the store: the program, then its arguments. No shell reads
   * it. It
   * runs for each connection.
   */
  storePasswordCommand?: string[] | null;
}

/** One model. */
export interface ModelSettingsInput {
  /** The provider's name. */
  provider?: string;
  /** The model's name at that provider. */
  id?: string;
  /** The wire format. */
  api?: Api | null;
  /** The base URL, in the form that the provider's own SDK takes. */
  baseUrl?: string | null;
  /** The environment variable with the key. */
  apiKeyEnv?: string | null;
  /** A command whose first line of output is the key: the program, then its arguments. No shell reads it. */
  apiKeyCommand?: string[] | null;
  /** Headers of every request, by name, for proxies. The values are secret. */
  headers?: Record<string, Secret>;
  /** Size of the window, in tokens. */
  contextWindow?: number | null;
  /** The longest answer, in tokens. */
  maxOutputTokens?: number | null;
  /** True for a model that thinks before it answers. Default: the value of the catalog. */
  reasoning?: boolean | null;
  /**
   * Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer
   * of the
   * provider, for the providers `anthropic` and `openai` alone.
   */
  nativeCompaction?: boolean | null;
  /** `"provider/id"` of the larger model for `contextPromotion`. */
  promoteTo?: string | null;
  /** Its prices. Default: those of the catalog. */
  cost?: ModelCost | null;
  /** Overrides of `compaction` for this model. */
  compaction?: CompactionPatch | null;
}

/** The wire formats. */
export type Api =
  /** Anthropic's Messages. */
  | "anthropic"
  /** OpenAI's Chat Completions, which most others speak too. */
  | "openai_chat"
  /** OpenAI's Responses. */
  | "openai_responses"
  /** Google's `generateContent`. */
  | "google"
  /** No wire format: the connected client asks the model. */
  | "client";

/** A secret text: as JSON and in a log it is `***`. */
export type Secret = string;

/** Prices of a model, in dollars per million tokens. */
export interface ModelCost {
  /** Input that is not cached. */
  input: number;
  /** Output. */
  output: number;
  /** Input that is read from the prompt cache. Default: a tenth of `input`. */
  cacheRead?: number | null;
  /** Input that is written to the prompt cache. Default: 1.25 × `input` for Anthropic's API, else `input`. */
  cacheWrite?: number | null;
}

/** Keys of `compaction` that differ for one model. */
export interface CompactionPatch {
  /** Compacts automatically. */
  enabled?: boolean;
  /** The action at the threshold. */
  strategy?: Strategy;
  /**
   * Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
   * window.
   */
  reserveTokens?: number | null;
  /** Tokens of the newest messages that stay as they are; 0 keeps none. */
  keepRecentTokens?: number;
  /** Threshold in percent of the window; −1: none. */
  thresholdPercent?: number;
  /** Threshold in tokens; −1: none. */
  thresholdTokens?: number;
  /** Continues a daemon-driven session after a compaction. */
  autoContinue?: boolean;
  /** Allows a compaction between the tool calls of a turn. */
  midTurn?: boolean;
  /**
   * Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
   * allows that of another provider whose models are asked by `openai_responses`.
   */
  remoteEnabled?: boolean;
  /**
   * URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
   * answers it. It is asked before the models and gets no key.
   */
  remoteEndpoint?: string | null;
  /**
   * Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer
   * that reports
   * cached tokens.
   */
  idleEnabled?: boolean;
  /** The smallest context that is compacted while the user is away, in tokens. */
  idleThresholdTokens?: number;
  /** Time without activity after which the user counts as away, in seconds. */
  idleTimeoutSeconds?: number;
  /** Drafts summaries ahead. */
  speculative?: Speculative;
  /** Time without progress of an answer after which the next candidate is asked, in seconds. */
  stallSeconds?: number;
  /** The longest automatic maintenance, in seconds. */
  deadlineSeconds?: number;
  /** The most summaries at the same time, over all sessions. */
  maxConcurrent?: number;
  /**
   * The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
   * are
   * extracted without a model. The file of a project can only make it smaller.
   */
  maxTokensPerHour?: number;
  /** `"provider/id"` of each summarizer, in order. */
  models?: string[];
  /** The layout of a compacted context. */
  style?: Style;
  /** Ends the frame of a summary with a line that names the file of the session, where the whole conversation is. */
  transcriptHint?: boolean;
  /**
   * Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
   * instructions
   * that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000
   * tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
   */
  rehydrate?: boolean;
  /**
   * The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context
   * is over
   * `coldResumeTokens`.
   */
  coldResume?: ColdResumption;
  /** Size over which a context with a cold cache is large, in tokens; −1: half of the threshold. */
  coldResumeTokens?: number;
}

/** The action at the threshold. */
export type Strategy =
  /** The old part is summarized in place. */
  | "context_full"
  /** A new session continues from a handoff document. */
  | "handoff"
  /** No action. */
  | "off";

/** The drafting of summaries ahead. */
export type Speculative =
  /** On, but not for a model on this machine. */
  | "auto"
  /** On or off. */
  | boolean;

/** The layout of a compacted context. */
export type Style =
  /** A summary under headings, then the kept tail. */
  | "structured"
  /** The newest user messages, then the summary. */
  | "recent_user_messages";

/** The action where a session with a cold prompt cache goes on. */
export type ColdResumption =
  /** No action. `session/usage` has the costs all the same. */
  | "off"
  /** A `notice` has the costs, once for each pause: when the session is opened, or when it goes on. */
  | "notice"
  /**
   * A compaction starts when the session goes on: with an appended message, a turn, or a context with `wait`, and not
   * while a call
   * has no result. An opening alone starts none, since it may be for a look.
   */
  | "compact";

/** Compaction of sessions. */
export interface CompactionSettingsInput {
  /** Compacts automatically. */
  enabled?: boolean;
  /** The action at the threshold. */
  strategy?: Strategy;
  /**
   * Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
   * window.
   */
  reserveTokens?: number | null;
  /** Tokens of the newest messages that stay as they are; 0 keeps none. */
  keepRecentTokens?: number;
  /** Threshold in percent of the window; −1: none. */
  thresholdPercent?: number;
  /** Threshold in tokens; −1: none. */
  thresholdTokens?: number;
  /** Continues a daemon-driven session after a compaction. */
  autoContinue?: boolean;
  /** Allows a compaction between the tool calls of a turn. */
  midTurn?: boolean;
  /**
   * Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
   * allows that of another provider whose models are asked by `openai_responses`.
   */
  remoteEnabled?: boolean;
  /**
   * URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
   * answers it. It is asked before the models and gets no key.
   */
  remoteEndpoint?: string | null;
  /**
   * Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer
   * that reports
   * cached tokens.
   */
  idleEnabled?: boolean;
  /** The smallest context that is compacted while the user is away, in tokens. */
  idleThresholdTokens?: number;
  /** Time without activity after which the user counts as away, in seconds. */
  idleTimeoutSeconds?: number;
  /** Drafts summaries ahead. */
  speculative?: Speculative;
  /** Time without progress of an answer after which the next candidate is asked, in seconds. */
  stallSeconds?: number;
  /** The longest automatic maintenance, in seconds. */
  deadlineSeconds?: number;
  /** The most summaries at the same time, over all sessions. */
  maxConcurrent?: number;
  /**
   * The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
   * are
   * extracted without a model. The file of a project can only make it smaller.
   */
  maxTokensPerHour?: number;
  /** `"provider/id"` of each summarizer, in order. */
  models?: string[];
  /** The layout of a compacted context. */
  style?: Style;
  /** Ends the frame of a summary with a line that names the file of the session, where the whole conversation is. */
  transcriptHint?: boolean;
  /**
   * Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
   * instructions
   * that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000
   * tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
   */
  rehydrate?: boolean;
  /**
   * The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context
   * is over
   * `coldResumeTokens`.
   */
  coldResume?: ColdResumption;
  /** Size over which a context with a cold cache is large, in tokens; −1: half of the threshold. */
  coldResumeTokens?: number;
}

/** Pruning of old tool results. */
export interface PruneSettingsInput {
  /** Tokens of the newest results that stay. */
  protectTokens?: number;
  /** The least tokens for which results are pruned. */
  minimumSavings?: number;
  /**
   * Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that reads
   * a file
   * (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A read of a
   * file
   * that a newer one repeats is pruned all the same.
   */
  protectedTools?: string[];
  /**
   * Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at
   * least
   * as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
   */
  cacheSeconds?: number;
}

/** The tools of agents. */
export interface ToolSettingsInput {
  /** Tools that touch files. They come before the built-in ones of common agents. */
  files?: FileTool[];
  /** Tools that hold the todo list. They come before the built-in ones. */
  todo?: string[];
  /** Tools that load a skill, beside the built-in ones. */
  skills?: string[];
}

/** A tool that touches a file. */
export interface FileTool {
  /** The tool's name. */
  tool: string;
  /** The argument with the path. */
  argument: string;
  /** The operation on the file. */
  operation: FileOperation;
}

/** An operation on a file. */
export type FileOperation =
  /** Reads it. */
  | "read"
  /** Makes or replaces it. */
  | "write"
  /** Changes a part of it. */
  | "edit"
  /** Removes it. */
  | "delete";

/** Summaries of branches that are left. */
export interface BranchSummarySettingsInput {
  /** The default of `summarize`. */
  enabled?: boolean;
  /** Tokens that stay free in the summarizer's window. */
  reserveTokens?: number;
}

/** Promotion to a larger model instead of a compaction. */
export interface PromotionSettingsInput {
  /** Switches it on. */
  enabled?: boolean;
}

/** Retries of transient errors. */
export interface RetrySettingsInput {
  /** Switches it on. */
  enabled?: boolean;
  /** The most retries of a request. */
  maxRetries?: number;
  /** The first delay, in milliseconds. */
  baseDelayMs?: number;
  /** The longest delay, in milliseconds. */
  maxDelayMs?: number;
}

/** Redaction of secrets in summaries. */
export interface RedactionSettingsInput {
  /** Switches it on. */
  enabled?: boolean;
}

/** Estimation of tokens. */
export interface TokenSettingsInput {
  /** The estimator. */
  estimator?: EstimatorSetting;
  /** Learns the window that a provider names in an error. */
  learnWindow?: boolean;
}

/** An estimator of tokens. */
export type EstimatorSetting =
  /** The tokenizer. */
  | "auto"
  /** A quarter of the characters, as in pi. */
  | "chars";

/** Result of methods that return one session. */
export interface SessionAnswer {
  /** The session. */
  session: SessionInfo;
}

/** State of a session. */
export interface SessionInfo {
  /** Id of the session. */
  sessionId: SessionId;
  /** Path of the file; null for an ephemeral session. */
  path: string | null;
  /** Working folder. */
  cwd: string;
  /** Title. */
  title: string | null;
  /** Time at which the session was created. */
  createdAt: string;
  /** Time of the last change. */
  updatedAt: string;
  /** Path of the session that this session continues. */
  parentSession: string | null;
  /** Entry at the end of the active path; the parent of the next entry. */
  leafEntryId: EntryId | null;
  /** Number of entries; null until the file is indexed. */
  entryCount: number | null;
  /** Model of the session. */
  model: ModelRef | null;
  /** Thinking level of the model. */
  thinkingLevel: string;
  /** Activity of the session. */
  status: Status;
  /** Fullness of the context. */
  usage: Usage;
}

/** A session: the `id` of its file's header line. */
export type SessionId = string;

/** One line of a session file after the header. */
export type EntryId = string;

/** A provider's model. */
export interface ModelRef {
  provider: string;
  id: string;
}

/** Activity of a session. */
export interface Status {
  /** Kind of activity. */
  type: StatusKind;
  /** Id of the running operation. */
  operationId?: OperationId | null;
  /** Reason of the running operation. */
  reason?: string | null;
}

/** Kinds of activity. */
export type StatusKind =
  /** No operation runs. */
  | "idle"
  /** A turn runs. */
  | "running"
  /** A compaction runs. */
  | "compacting"
  /** A failed request waits for its retry. */
  | "retrying"
  /** A handoff runs. */
  | "handing_off"
  /** A branch summary runs. */
  | "summarizing_branch"
  /** The last turn failed. */
  | "error";

/** One long operation (a compaction, later a handoff, a branch summary) from its start event to its end event. */
export type OperationId = string;

/** Fullness of a context. */
export interface Usage {
  /** Size of the context. */
  contextTokens: number;
  /** Size of the model's window. */
  contextWindow: number | null;
  /** Size of the context in percent of the window; may exceed 100. */
  percent: number | null;
  /** Size above which the context is compacted. */
  thresholdTokens: number | null;
  /** Room that is reserved for the next answer. */
  reserveTokens: number;
  /** Source of `contextTokens`. */
  source: UsageSource;
  /**
   * Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context
   * is near
   * its window.
   */
  autoCompaction: AutoCompaction;
  /** Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`. */
  windowSource: string;
  /** Whether `session/undo_compaction` has a compaction or a reset to undo. */
  canUndo: boolean;
  /** Estimated share of each part of the context. */
  breakdown: Breakdown;
  /** Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good. */
  estimator: string;
  /**
   * Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over
   * `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
   */
  coldResume?: ColdResume | null;
}

/** Source of a context's size. */
export type UsageSource =
  /** The provider's last report, plus an estimate of the entries after it. */
  | "provider"
  /** An estimate of the whole context. */
  | "estimate";

/** Whether automatic compaction acts. On the wire it is true, false or `"resting"`. */
export type AutoCompaction =
  /** It is on or off. */
  | boolean
  /** It is on, and rests after an undo until the context is near its window. */
  | "resting";

/** Estimated share of each part of a context. */
export interface Breakdown {
  /** System prompt. */
  system: number;
  /** Tools. */
  tools: number;
  /** Summary. */
  summary: number;
  /** Messages. */
  messages: number;
}

/**
 * The cost of the next request of a session whose prompt cache is cold. Costs are in dollars, and absent where no
 * price is known
 * or the model is free. They are those of input: the answer costs the same in any case.
 */
export interface ColdResume {
  /** Age of the newest answer, in seconds. */
  ageSeconds: number;
  /** The longest time for which the provider keeps a prompt, in seconds. */
  cacheSeconds: number;
  /** Size of the context, which the next request sends anew. */
  tokens: number;
  /** Estimated size of the context after a compaction. */
  tokensAfter: number;
  /** Cost of the context in the next request. */
  cost?: number | null;
  /** Cost of the context in the next request after a compaction. */
  costAfter?: number | null;
  /** Cost of the compaction, if the model of the session writes the summary. */
  compactionCost?: number | null;
}

/** Params of `session/load`: one of `sessionId` and `path`. */
export interface LoadParams {
  /** Id of a session in the data folder. */
  sessionId?: SessionId | null;
  /** Path of a session file. */
  path?: string | null;
  /** Open without a lock and without the right to write. */
  readOnly?: boolean | null;
  /** Model of the session from here on. */
  model?: ModelRefInput | null;
  /** System prompt. */
  systemPrompt?: string | null;
  /** Tools of the model. */
  tools?: Tools | null;
  /** Settings of this session. */
  settings?: SettingsInput | null;
  /** Size of the window of the session's model, in tokens, in place of that in `models`. */
  contextWindow?: number | null;
  /** The longest answer of the session's model, in tokens. */
  maxOutputTokens?: number | null;
}

/** Result of `session/load`. */
export interface LoadAnswer {
  /** The session. */
  session: SessionInfo;
  /** Whether the whole file is indexed already. */
  indexed: boolean;
  /** Faults found in the file, each with the way it was handled. */
  repairs: Repair[];
}

/** A fault in a session file and the way it was handled. */
export interface Repair {
  /** Kind of the fault, for example `torn_tail` or `corrupt_line`. */
  kind: string;
  /** Line number, counted from 1, for a fault of one line. */
  line?: number | null;
  /** Fault and handling, for a person. */
  detail: string;
}

/** Params of `session/import`. */
export interface ImportParams {
  /**
   * Path of the session of another agent: of its file, or of OpenCode's database with `#` and the id of the session.
   */
  path: string;
  /** Working folder of the session; an absolute path. Default: the one in the file. */
  cwd?: string | null;
  /** Title of the session. Default: the one in the file. */
  title?: string | null;
}

/** Result of `session/import`. */
export interface ImportAnswer {
  /** The new session. It is open, and the client is subscribed to its events. */
  session: SessionInfo;
  /** The origin of the session. */
  origin: Origin;
  /** Parts of the file that are in no entry, by their kind. */
  repairs: Repair[];
}

/** The session of another agent that a session was made of. */
export interface Origin {
  /** The agent that wrote it. */
  agent: Agent;
  /** Its id in that agent. */
  sessionId: string;
  /** Version of the agent, where the file has it. */
  version?: string | null;
  /** The session of the same agent that it was forked from. */
  parentSessionId?: string | null;
  /** Branch of the project's git repository, where the file has it. */
  gitBranch?: string | null;
}

/** A coding agent whose sessions are read. */
export type Agent =
  /** pi. */
  | "pi"
  /** oh-my-pi. */
  | "oh_my_pi"
  /** Claude Code. */
  | "claude_code"
  /** Codex. */
  | "codex"
  /** OpenCode. */
  | "opencode"
  /** Gemini CLI. */
  | "gemini_cli";

/** Params of `session/list`. */
export interface ListParams {
  /** Only sessions with this working folder. */
  cwd?: string | null;
  /** Only sessions with this text in their title, folder or first message. */
  search?: string | null;
  /** `nextCursor` of the page before. */
  cursor?: string | null;
  /** Largest number of sessions. Default: 100. */
  limit?: number | null;
}

/** Result of `session/list`. */
export interface ListAnswer {
  /** Sessions, newest first. */
  sessions: ListedSession[];
  /** Cursor of the next page; null on the last page. */
  nextCursor: string | null;
}

/** A session in a list. */
export interface ListedSession {
  /** Id of the session. */
  sessionId: SessionId;
  /** Path of the file. */
  path: string;
  /** Working folder. */
  cwd: string;
  /**
   * File of the session that it comes from, as its header names it; null where it comes from none. The id of that
   * session where it had no file.
   */
  parentSession: string | null;
  /** Id of the session that it comes from; null where it comes from none, or the name of its file does not tell it. */
  parentSessionId: SessionId | null;
  /** Title. */
  title: string | null;
  /** Beginning of the first user message. */
  preview: string | null;
  /** Time at which the session was created. */
  createdAt: string;
  /** Time of the last change. */
  updatedAt: string;
  /** Number of entries; null until the daemon has indexed the file. */
  entryCount: number | null;
  /** Size of the context in percent of the window; null until the daemon has opened the session. */
  percent: number | null;
  /** Size of the file, in bytes. */
  sizeBytes: number;
  /** Activity; null for a session that is not open in this daemon. */
  status: Status | null;
}

/** Params of a method that needs the session alone. */
export interface SessionParams {
  /** Id of the session. */
  sessionId: SessionId;
}

/** Result of `session/status`. */
export interface StatusAnswer {
  /** The session. */
  session: SessionInfo;
  /** Queued messages. */
  queue: Queue;
  /** Operations that run. */
  operations: RunningOperation[];
  /** Compactions that wait for the end of the turn. The session is not busy because of them. */
  waiting: WaitingOperation[];
  /** Tokens that models took for work beside the turns. */
  spent: Spent;
  /** The requests for the summary in force. Absent where no model was asked for it. */
  summary?: SummaryStatus | null;
  /** Hooks that the client answers for this session. Absent where there is none. */
  hooks?: HooksInForce | null;
  /** Number of disk operations: `{writes, fsyncs}`. */
  _meta: unknown;
}

/** Messages that wait to be sent to the model. */
export interface Queue {
  /** Messages for the next pause between two tool calls. */
  steering: Queued[];
  /** Messages for the end of the turn. */
  followUp: Queued[];
}

/** A queued message. */
export interface Queued {
  /** Id of the message. */
  id: string;
  /** Text of the message. */
  text: string;
}

/** A running operation. */
export interface RunningOperation {
  /** Id of the operation. */
  operationId: OperationId;
  /** Kind of the operation. */
  kind: OperationName;
  /** Reason of the operation. */
  reason: string;
  /** Time of its start. */
  startedAt: string;
}

/** Kinds of operations. A later version may add some. */
export type OperationName =
  /** The older part of the context becomes a summary. */
  | "compaction"
  /** A failed answer is removed, and the turn gets a context to be repeated with. */
  | "recovery"
  /** Maintenance of a session whose user is away. */
  | "idle"
  /** A summary ahead of the threshold. It has no events. */
  | "speculation"
  /** The leaf moves without a summary. */
  | "navigation"
  /** The leaf moves, and the branch that is left is summarized. */
  | "branch_summary"
  /** Knowledge of another session is extracted. */
  | "reference"
  /** A new session goes on. */
  | "handoff"
  /** A turn of the model. */
  | "turn";

/** An operation that was asked for and waits for its start. */
export interface WaitingOperation {
  /** Id of the operation. `session/cancel` takes it. */
  operationId: OperationId;
  /** Kind of the operation: `compaction`. */
  kind: string;
  /** Reason of the operation. */
  reason: string;
  /** Event for which it waits. */
  when: When;
  /** Time of the request. */
  since: string;
  /** Whether it has instructions for the summary. */
  hasInstructions: boolean;
}

/** Time at which a compaction starts. */
export type When =
  /** Immediately. */
  | "now"
  /**
   * After the next complete answer without calls; immediately, if the turn is over. Until then the compaction is in
   * `waiting` of `session/status`, also after a restart. A second request answers the same id, and its params count.
   */
  | "after_turn";

/**
 * Requests and tokens that models took for work beside the turns of a session: summaries, retries and rejected answers
 * included.
 */
export interface Spent {
  /** All requests. */
  total: SpentSum;
  /** Those by purpose, as `usage` entries name it. */
  purposes: Record<string, SpentSum>;
  /** Those of automatic maintenance, which no client asked for. */
  automatic: SpentSum;
  /** Automatic maintenance of the last hour. */
  lastHour: SpentInHour;
  /** Whether earlier requests may be missing, because the index is not ready. */
  atLeast: boolean;
}

/** A sum of requests. */
export interface SpentSum {
  /** Number of requests that reported a cost. */
  requests: number;
  /** Input that was not cached, in tokens. */
  input: number;
  /** Output, in tokens. */
  output: number;
  /** Input that a provider read from its cache, in tokens. */
  cacheRead: number;
  /** Input that a provider wrote to its cache, in tokens. */
  cacheWrite: number;
  /** All tokens. */
  totalTokens: number;
  /** Cost in dollars of the requests whose prices are known; null where none is. */
  dollars: number | null;
  /** Number of requests whose prices are not known. */
  unpriced: number;
}

/** Automatic maintenance of the last hour. */
export interface SpentInHour {
  /** Tokens. */
  tokens: number;
  /** The most tokens, by `compaction.maxTokensPerHour`; null: no limit. */
  most: number | null;
  /** Tokens that are left; null: no limit. */
  left: number | null;
}

/** The requests for the summary in force. */
export interface SummaryStatus {
  /** Compaction of the summary. */
  entryId: EntryId;
  /** Form of the requests; null where no model wrote the summary, and for a provider's own compaction. */
  form: SummaryForm | null;
  /** Savings by the provider's cache; null where nothing was read from it. */
  saved: Saved | null;
}

/** The form of the requests to a model for a summary. */
export type SummaryForm =
  /** The session's own request, which its provider has in its cache, with the prompt as one more message. */
  | "live_request"
  /** The conversation as a text. */
  | "transcript";

/** Savings of requests by the provider's cache. */
export interface Saved {
  /** Input that was read from the cache, in tokens. */
  tokens: number;
  /**
   * The difference to the price of the same input without a cache, in dollars; null where the prices of the model are
   * not known.
   */
  dollars: number | null;
}

/** The hooks in force of a session. */
export interface HooksInForce {
  /** The hooks. */
  events: HookEvent[];
  /** Time for an answer, in milliseconds. */
  timeoutMs: number;
  /** After a hook that failed. */
  onFailure: OnFailure;
}

/** Params of `session/append`. */
export interface AppendParams {
  /** Id of the session. */
  sessionId: SessionId;
  /**
   * Messages in the order in which they happened. In a provider's format: messages, items or contents of a request,
   * and
   * answers; a message with several tool results becomes several entries.
   */
  messages: GivenMessage[];
  /** Format of the messages. Default: `messages`. */
  format?: MessageFormat | null;
  /** Usage of the answer at the end of messages in a provider's format, in the fields of that provider. */
  usage?: GivenUsage | null;
  /** Stop reason of that answer, as the provider states it; also `error` or `aborted`. */
  stopReason?: string | null;
  /** The provider's error text; the answer failed. With no message, the answer is empty. */
  errorMessage?: string | null;
  /**
   * Parent of the first entry. Default: the leaf; for a tool result whose call is on another branch, the end of that
   * branch, and the leaf stays.
   */
  parentEntryId?: EntryId | null;
  /** Expected leaf. The request fails if another message or compaction follows this entry. */
  expectedLeafId?: EntryId | null;
  /**
   * `contextId` of the context that the answer was made for. Default: the last context in a provider's format or with
   * `wait`, else the path before the answer. A report of a context that was rewritten since counts for nothing. The
   * context
   * of another session is invalid, unless this one is a fork that has its entries.
   */
  contextId?: string | null;
}

/**
 * A message in pi's form. With a provider's `format`: a message, item or content of a request to the provider, the
 * message of its answer, or its whole answer.
 */
export type GivenMessage =
  | Message
  | {
      role?: "user" | "assistant" | "developer" | "tool" | "function" | "model";
      [key: string]: unknown;
    };

/** A message in pi's form, told apart by `role`. Fields that are not named here are kept. */
export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | BashExecutionMessage
  | PythonExecutionMessage
  | CustomMessage
  | HookMessage
  | FileMentionMessage
  | DeveloperMessage
  | SystemMessage
  | BranchSummaryMessage
  | CompactionSummaryMessage;

/** A message of the user. */
export interface UserMessage {
  /** Role of the message. */
  role: "user";
  /** A text, or blocks. */
  content: string | Block[];
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/**
 * A block of a message, told apart by `type`. A block of another type is an `OtherBlock`: in the `default` of a
 * `switch (block.type)`, `const other: OtherBlock = block`.
 */
export type Block = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock;

/** A text. */
export interface TextBlock {
  /** Type of the block. */
  type: "text";
  /** The text. */
  text: string;
  /** Signature of its provider. The provider gets it back unchanged. */
  textSignature?: string | null;
  [key: string]: unknown;
}

/** Thinking of a model. With a signature its provider gets it back unchanged, or not at all. */
export interface ThinkingBlock {
  /** Type of the block. */
  type: "thinking";
  /** The text; empty where the provider hides it. */
  thinking: string;
  /** Signature of its provider, or the hidden thinking. */
  thinkingSignature?: string | null;
  /** Whether the signature holds the thinking, which is hidden. */
  redacted?: boolean | null;
  [key: string]: unknown;
}

/** A call of a tool. */
export interface ToolCallBlock {
  /** Type of the block. */
  type: "toolCall";
  /** Id of the call. The result names it. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** Arguments of the call. */
  arguments: CallArguments;
  /** Signature of its provider. The provider gets it back unchanged. */
  thoughtSignature?: string | null;
  [key: string]: unknown;
}

/** Arguments of a call: an object, as far as the model wrote one. */
export type CallArguments = Record<string, unknown>;

/** An image. */
export interface ImageBlock {
  /** Type of the block. */
  type: "image";
  /** The image, in base64. */
  data: string;
  /** Its type, for example `image/png`. */
  mimeType: string;
  [key: string]: unknown;
}

/** A block of a type that this version does not know. It is passed on. */
export interface OtherBlock {
  /** Type of the block. */
  type: string;
  [key: string]: unknown;
}

/** An answer of a model. */
export interface AssistantMessage {
  /** Role of the message. */
  role: "assistant";
  /** A text, or blocks. */
  content: string | Block[];
  /** API of the provider. */
  api?: string | null;
  /** Provider that answered; `unknown` where nobody said it. */
  provider?: string | null;
  /** Model that answered; `unknown` where nobody said it. */
  model?: string | null;
  /** Tokens that the provider reports. */
  usage?: ReportedUsage | null;
  /** `stop`, `length`, `toolUse`, `error` or `aborted`. */
  stopReason?: string | null;
  /** The provider's text where the request failed. */
  errorMessage?: string | null;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** Tokens of a model request, as its provider reports them. A count that is missing is zero. */
export interface ReportedUsage {
  /** Input that was not cached, in tokens. */
  input?: number | null;
  /** Output, in tokens. */
  output?: number | null;
  /** Input that was read from the provider's cache, in tokens. */
  cacheRead?: number | null;
  /** Input that was written to the provider's cache, in tokens. */
  cacheWrite?: number | null;
  /** All of it, in tokens. */
  totalTokens?: number | null;
  /** Cost in dollars; zeros where the prices are not known. */
  cost?: ReportedCost | null;
  [key: string]: unknown;
}

/** Cost of a model request, in dollars. */
export interface ReportedCost {
  /** Cost of the input. */
  input?: number | null;
  /** Cost of the output. */
  output?: number | null;
  /** Cost of cached input. */
  cacheRead?: number | null;
  /** Cost of writing to the cache. */
  cacheWrite?: number | null;
  /** All of it. */
  total?: number | null;
  [key: string]: unknown;
}

/** A tool result. */
export interface ToolResultMessage {
  /** Role of the message. */
  role: "toolResult";
  /** A text, or blocks. */
  content: string | Block[];
  /** Id of the call that it answers. */
  toolCallId: string;
  /** Name of the tool. */
  toolName?: string | null;
  /** Whether the tool failed. */
  isError?: boolean | null;
  /** Data of the tool for programs. It is not sent to a model. */
  details?: unknown;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** A command that the user ran beside the model. */
export interface BashExecutionMessage {
  /** Role of the message. */
  role: "bashExecution";
  /** The command. */
  command: string;
  /** Its output. */
  output?: string | null;
  /** Its exit code. */
  exitCode?: number | null;
  /** Whether it was cancelled. */
  cancelled?: boolean | null;
  /** Whether the output was cut. */
  truncated?: boolean | null;
  /** Whether it is sent to no model. */
  excludeFromContext?: boolean | null;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** Python code that the user ran beside the model, in files of oh-my-pi. */
export interface PythonExecutionMessage {
  /** Role of the message. */
  role: "pythonExecution";
  /** The code. */
  code: string;
  /** Its output. */
  output?: string | null;
  /** Its exit code. */
  exitCode?: number | null;
  /** Whether it is sent to no model. */
  excludeFromContext?: boolean | null;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** A message of an extension. */
export interface CustomMessage {
  /** Role of the message. */
  role: "custom";
  /** A text, or blocks. */
  content: string | Block[];
  /** Type of the message, which names its owner. */
  customType?: string | null;
  /** Whether a program shows it. */
  display?: boolean | null;
  /** Data of the extension. */
  details?: unknown;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** A message of a hook, in older files of oh-my-pi. */
export interface HookMessage {
  /** Role of the message. */
  role: "hookMessage";
  /** A text, or blocks. */
  content: string | Block[];
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** Files that the user mentions, in files of oh-my-pi. */
export interface FileMentionMessage {
  /** Role of the message. */
  role: "fileMention";
  /** The files. */
  files: {
    /** Path of the file. */
    path?: string | null;
    /** Content of the file. */
    content?: string | null;
    [key: string]: unknown;
  }[];
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** An instruction of an agent, not of the user. */
export interface DeveloperMessage {
  /** Role of the message. */
  role: "developer";
  /** A text, or blocks. */
  content: string | Block[];
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** A change of system prompt and tools that pi stores among the messages. */
export interface SystemMessage {
  /** Role of the message. */
  role: "system";
  /** A text, or blocks. */
  content?: string | Block[] | null;
  /** Texts of the system prompt by their names; null removes one. */
  sections?: Record<string, unknown> | null;
  /** Tools that are added. */
  toolsAdded?: unknown[] | null;
  /** Names of tools that are removed. */
  toolsRemoved?: unknown[] | null;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** A summary of a branch that is stored as a message. */
export interface BranchSummaryMessage {
  /** Role of the message. */
  role: "branchSummary";
  /** The summary. */
  summary: string;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** A summary of a compaction that is stored as a message. */
export interface CompactionSummaryMessage {
  /** Role of the message. */
  role: "compactionSummary";
  /** The summary. */
  summary: string;
  /** Time, in milliseconds since 1970. `session/append` adds it where it is missing. */
  timestamp?: number;
  [key: string]: unknown;
}

/** Format of messages. */
export type MessageFormat =
  /** Messages in pi's form. */
  | "messages"
  /** Anthropic's Messages API. A context is a request body. */
  | "anthropic"
  /** OpenAI's Chat Completions API. A context is a request body. */
  | "openai_chat"
  /** OpenAI's Responses API. A context is a request body. */
  | "openai_responses"
  /** Google's `generateContent`. A context is a request body without the model, which is part of the URL. */
  | "google";

/** `usage` of the answer; in the format `google`, `usageMetadata`. */
export type GivenUsage = Record<string, unknown>;

/** Result of `session/append`. */
export interface AppendAnswer {
  /** Ids of the new entries, in order. */
  entryIds: EntryId[];
  /** Leaf after the append. */
  leafEntryId: EntryId | null;
  /** Fullness of the context after the append. */
  usage: Usage;
  /** Maintenance that follows. */
  next: Next;
}

/** Maintenance that follows an append, or a change of the model. */
export type Next =
  /** No maintenance. */
  | {
      type: "none";
    }
  /** A maintenance operation. Its events follow. */
  | {
      type: "maintenance";
      /** Id of the operation. */
      operationId: OperationId;
      /** Reason of the operation. */
      reason: string;
      /** Whether the client repeats the turn afterwards. */
      willRetry: boolean;
      /** Whether the session continues without input afterwards. */
      willContinue: boolean;
    }
  /** The request fits with a smaller answer. Nothing runs. */
  | {
      type: "retry";
      /** Always true: the client repeats the turn. */
      willRetry: boolean;
      /** Largest answer of the next request, in tokens. The next context carries it. */
      maxOutputTokens: number;
      /** Reason, for a person. */
      why: string;
    };

/** Params of `session/context`. */
export interface ContextParams {
  /** Id of the session. */
  sessionId: SessionId;
  /**
   * Entry at which the path ends. Default: the leaf. The size of a long context of another entry is estimated by
   * characters (`usage.estimator`), unless the context has to fit.
   */
  leafEntryId?: EntryId | null;
  /** Format of the context. Default: `messages`. */
  format?: MessageFormat | null;
  /**
   * Answer after running maintenance has ended. Over the window, and where less than half of the reserve is free for
   * the
   * answer of the model, the request starts the maintenance that is due.
   */
  wait?: boolean | null;
}

/** Result of `session/context`. */
export interface ContextAnswer {
  /** Messages, valid for a provider. Present with the format `messages`. */
  messages?: Message[] | null;
  /** Entry of each message; null for the frame of a summary and for a placeholder message. */
  entryIds?: (EntryId | null)[] | null;
  /** Request body, valid for its provider. Present with the other formats. The client adds the streaming flag. */
  body?: AnyObject | null;
  /**
   * Headers that the body needs beside those of its provider, by name. A client sends them with the body. Absent if
   * the
   * body needs none.
   */
  headers?: Record<string, string> | null;
  /**
   * The reason for which the provider's own compaction is not in the body, as a sentence. Absent where it is, or where
   * there
   * is none of this provider.
   */
  why?: string | null;
  /** Id of the context. `session/append` takes it with the answer that was made for the context. */
  contextId: string;
  /** Fullness of the context. */
  usage: Usage;
  /** Compaction in force. */
  compactionEntryId: EntryId | null;
  /** Model of the context. */
  model: ModelRef | null;
  /** Largest answer that the window and the model leave room for. */
  maxOutputTokens: number | null;
}

/** Params of `session/entries`. */
export interface EntriesParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Cursor: only entries after this one. An entry id, which means the latest entry with that id, or a `nextCursor`. */
  since?: EntryId | null;
  /** Selection of entries. Default: `active`. */
  branch?: Branch | null;
  /** Only entries of these types. */
  types?: string[] | null;
  /** Largest number of entries. Default: 1,000. */
  limit?: number | null;
  /** Approximate largest size of the page, in bytes; at least one entry is returned. Default: 1 MiB. */
  maxBytes?: number | null;
  /**
   * Cursor: only entries before this one, the newest page first, each page in file order. An entry id, a `nextCursor`,
   * or
   * `leaf` for the entries up to the end. Not together with `since`.
   */
  before?: EntryId | null;
}

/** Selection of entries. */
export type Branch =
  /** The active path. */
  | "active"
  /** Every entry, in file order. */
  | "all";

/** Result of `session/entries`. */
export interface EntriesAnswer {
  /** Entries of the page. */
  entries: Entry[];
  /** Leaf of the active path. */
  leafEntryId: EntryId | null;
  /**
   * Cursor of the next page, for `since` or for `before`, whichever the request has; null on the last page. A page
   * with a cursor
   * may be shorter than `limit`.
   */
  nextCursor: EntryId | null;
}

/**
 * An entry of a session file, told apart by `type`, with the fields that this program, pi and oh-my-pi write. A line
 * of another program may have another type or lack fields; it is an `OtherEntry`: in the `default` of a `switch
 * (entry.type)`, `const other: OtherEntry = entry`.
 */
export type Entry =
  | MessageEntry
  | CompactionEntry
  | BranchSummaryEntry
  | CustomMessageEntry
  | CustomEntry
  | ContextEditEntry
  | LabelEntry
  | SessionInfoEntry
  | TitleChangeEntry
  | ModelChangeEntry
  | ThinkingLevelChangeEntry
  | ResetBoundaryEntry
  | UsageEntry
  | ModelUsageEntry;

/** A message of the conversation. */
export interface MessageEntry {
  /** Type of the entry. */
  type: "message";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** The message. */
  message: Message;
}

/** A summary that stands for everything before `firstKeptEntryId`. */
export interface CompactionEntry {
  /** Type of the entry. */
  type: "compaction";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** The summary. */
  summary: string;
  /** Two sentences for a person. */
  shortSummary?: string | null;
  /** First entry that is kept verbatim. Its own id keeps none. */
  firstKeptEntryId?: EntryId | null;
  /** Size of the context before, in tokens. */
  tokensBefore: number;
  /** Size of the context after, in tokens. */
  tokensAfter?: number | null;
  /** Method of the summary, as in `CompactionResult`. */
  method?: string | null;
  /** Lists of files, or the details of a hook. */
  details?: SummaryDetails | null;
  /** Data that programs keep for themselves, by their names. That of this program is under `abridged`. */
  preserveData?: Record<string, unknown> | null;
  /** System prompt and tools at that time. */
  systemMessage?: SystemMessage | null;
  /** Tokens of the summary, in files of pi. */
  usage?: ReportedUsage | null;
  /** oh-my-pi sends no entries up to this one. */
  providerReplayThroughEntryId?: EntryId | null;
  /** Whether a hook or an extension supplied the summary. */
  fromHook?: boolean | null;
  /** Whether a hook or an extension supplied the summary. */
  fromExtension?: boolean | null;
}

/** Lists of files of a summary. A hook may give any JSON value in their place, which is kept as it is. */
export interface SummaryDetails {
  /** Files that were read and not changed. */
  readFiles?: string[] | null;
  /** Files that were changed. */
  modifiedFiles?: string[] | null;
  [key: string]: unknown;
}

/** A summary of a branch that was left. */
export interface BranchSummaryEntry {
  /** Type of the entry. */
  type: "branch_summary";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Leaf of the branch that was left; `root` for none. */
  fromId: string;
  /** The summary. */
  summary: string;
  /** Method of the summary, as in `CompactionResult`. */
  method?: string | null;
  /** Lists of files, or the details of a hook. */
  details?: SummaryDetails | null;
  /** Data that programs keep for themselves, by their names. That of this program is under `abridged`. */
  preserveData?: Record<string, unknown> | null;
  /** Tokens of the summary, in files of pi. */
  usage?: ReportedUsage | null;
  /** Whether a hook or an extension supplied the summary. */
  fromHook?: boolean | null;
  /** Whether a hook or an extension supplied the summary. */
  fromExtension?: boolean | null;
}

/** A message of an extension. Models get it as a message of the user. */
export interface CustomMessageEntry {
  /** Type of the entry. */
  type: "custom_message";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Type of the message, which names its owner. */
  customType: string;
  /** A text, or blocks. */
  content: string | Block[];
  /** Whether a program shows it. */
  display?: boolean | null;
  /** Data of the owner. */
  details?: unknown;
}

/**
 * Data of a program. No model gets it. The line of a broken entry is replaced by one of the type `abridged.corrupt`,
 * whose `parentId` may be missing.
 */
export interface CustomEntry {
  /** Type of the entry. */
  type: "custom";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId?: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Type of the data, which names its owner. */
  customType: string;
  /** The data. */
  data?: unknown;
}

/** Another content for an entry, or none. The entry itself stays in the file. */
export interface ContextEditEntry {
  /** Type of the entry. */
  type: "context_edit";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Entry that is edited. */
  targetId: EntryId;
  /** Content in the place of the entry's; null leaves the entry out. */
  replacement:
    | {
        /** A text, or blocks. */
        content: string | Block[];
        [key: string]: unknown;
      }
    | null;
  /** Mark of an edit for other programs, which changes no context here. */
  abridged?: {
    /** Compaction that carries the edit. */
    compactionEntryId?: EntryId | null;
    [key: string]: unknown;
  } | null;
}

/** A label of an entry. */
export interface LabelEntry {
  /** Type of the entry. */
  type: "label";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Entry that has the label. */
  targetId: EntryId;
  /** The label. Without one it is removed. */
  label?: string | null;
}

/** The title of the session. */
export interface SessionInfoEntry {
  /** Type of the entry. */
  type: "session_info";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** The title. */
  name?: string | null;
}

/** The title of the session, in files of oh-my-pi. */
export interface TitleChangeEntry {
  /** Type of the entry. */
  type: "title_change";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** The title. */
  title?: string | null;
}

/** The model from here on: `provider` and `modelId`, or `model` in files of oh-my-pi. */
export interface ModelChangeEntry {
  /** Type of the entry. */
  type: "model_change";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Provider of the model. */
  provider?: string | null;
  /** Id of the model. */
  modelId?: string | null;
  /** The model as `provider/id`, in files of oh-my-pi. */
  model?: string | null;
}

/** The thinking level from here on. */
export interface ThinkingLevelChangeEntry {
  /** Type of the entry. */
  type: "thinking_level_change";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** The thinking level. */
  thinkingLevel?: string | null;
}

/** A `/clear`: nothing before it is in the context. */
export interface ResetBoundaryEntry {
  /** Type of the entry. */
  type: "reset_boundary";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** System prompt and tools at that time. */
  systemMessage?: SystemMessage | null;
  /** Data that programs keep for themselves, by their names. That of this program is under `abridged`. */
  preserveData?: Record<string, unknown> | null;
}

/** Tokens of a model request beside the turns. */
export interface UsageEntry {
  /** Type of the entry. */
  type: "usage";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Purpose of the request, as in `llm/complete`. */
  purpose?: string | null;
  /** The same for other programs. */
  kind?: string | null;
  /** Reason of the operation that made the request. */
  trigger?: string | null;
  /** Provider that answered. */
  provider?: string | null;
  /** Model that answered. */
  model?: string | null;
  /** Tokens that the provider reports. */
  usage?: ReportedUsage | null;
  /** Operation that made the request. */
  operationId?: string | null;
}

/** The same in files of oh-my-pi. */
export interface ModelUsageEntry {
  /** Type of the entry. */
  type: "model_usage";
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows; null for the first one. */
  parentId: EntryId | null;
  /** Time at which it was written. */
  timestamp: string;
  /** Purpose of the request, as in `llm/complete`. */
  purpose?: string | null;
  /** The same for other programs. */
  kind?: string | null;
  /** Reason of the operation that made the request. */
  trigger?: string | null;
  /** Provider that answered. */
  provider?: string | null;
  /** Model that answered. */
  model?: string | null;
  /** Tokens that the provider reports. */
  usage?: ReportedUsage | null;
  /** Operation that made the request. */
  operationId?: string | null;
}

/** An entry of a type, or with fields, that this version does not know. It is kept, and adds nothing to a context. */
export interface OtherEntry {
  /** Type of the entry. */
  type: string;
  /** Id of the entry. */
  id: EntryId;
  /** Entry that it follows. */
  parentId?: EntryId | null;
  [key: string]: unknown;
}

/** Params of `session/entry`. */
export interface EntryParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the entry. */
  entryId: EntryId;
}

/** Result of `session/entry`. */
export interface EntryAnswer {
  /** The entry as it was written. */
  entry: Entry;
}

/** Params of `session/search`. */
export interface SearchParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Text to find, taken literally; case is ignored. */
  query: string;
  /** `nextCursor` of the page before. */
  cursor?: string | null;
  /** Largest number of matches. Default: 50. */
  limit?: number | null;
}

/** Result of `session/search`. */
export interface SearchAnswer {
  /** Matches, newest first, at most one for each entry. */
  matches: SearchMatch[];
  /** Cursor of the next page; null where the whole session was searched. */
  nextCursor: string | null;
}

/** An entry that contains the text. */
export interface SearchMatch {
  /** Id of the entry. */
  entryId: EntryId;
  /** Role of a message; null for other entries. */
  role: string | null;
  /** Timestamp in the file's own form. */
  timestamp: string;
  /** Whether the entry is on the active path; null until the file is indexed. */
  active: boolean | null;
  /** Text around the first match. */
  snippet: string;
}

/** Params of `session/tree`. */
export interface TreeParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** `nextCursor` of the page before. */
  cursor?: EntryId | null;
  /** Largest number of entries. Default: 1,000. */
  limit?: number | null;
}

/** Result of `session/tree`. */
export interface TreeAnswer {
  /** Entries in file order: a parent precedes its children. */
  nodes: TreeNode[];
  /** Leaf of the active path. */
  leafEntryId: EntryId | null;
  /** Cursor of the next page; null on the last page. */
  nextCursor: EntryId | null;
}

/** An entry of the tree. */
export interface TreeNode {
  /** Id of the entry. */
  id: EntryId;
  /** Id of the parent; null for a root. */
  parentId: EntryId | null;
  /** Type of the entry. */
  type: string;
  /** Type of a `custom` entry or a `custom_message`; null for other entries. */
  customType: string | null;
  /** Role of a message; null for other entries. */
  role: string | null;
  /** Content in one line; of an entry without text its type. */
  preview: string;
  /** Label of the entry. */
  label: string | null;
  /** Timestamp in the file's own form. */
  timestamp: string;
  /** Size of the entry in a context, estimated by its characters. */
  tokens: number;
  /** Whether it is on the active path. */
  active: boolean;
  /** Whether it is in no context of any branch: a marker, a label, a change of a setting. */
  hidden: boolean;
  /** Whether it is a compaction or a reset that does not hold any more. */
  undone: boolean;
}

/** Result of `session/usage`. */
export interface UsageAnswer {
  /** Size of the context. */
  contextTokens: number;
  /** Size of the model's window. */
  contextWindow: number | null;
  /** Size of the context in percent of the window; may exceed 100. */
  percent: number | null;
  /** Size above which the context is compacted. */
  thresholdTokens: number | null;
  /** Room that is reserved for the next answer. */
  reserveTokens: number;
  /** Source of `contextTokens`. */
  source: UsageSource;
  /**
   * Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context
   * is near
   * its window.
   */
  autoCompaction: AutoCompaction;
  /** Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`. */
  windowSource: string;
  /** Whether `session/undo_compaction` has a compaction or a reset to undo. */
  canUndo: boolean;
  /** Estimated share of each part of the context. */
  breakdown: Breakdown;
  /** Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good. */
  estimator: string;
  /**
   * Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over
   * `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
   */
  coldResume?: ColdResume | null;
  /** Sizes that the decision compares. */
  thresholds: Thresholds;
  /** Reason why the context is compacted now or not, for a person. */
  why: string;
  /** The same reason for a program. */
  code: WhyCode;
}

/** Sizes that the decision to compact compares. */
export interface Thresholds {
  /** Size above which the context is compacted. */
  thresholdTokens: number;
  /** Size below which a compaction brings the context. */
  targetTokens: number;
  /** Size of system prompt and tools, which a compaction cannot reduce. */
  fixedOverheadTokens: number;
  /** Largest size of a summary. */
  summaryTokens: number;
  /** Size of the newest messages that are kept verbatim. */
  keepRecentTokens: number;
  /** Ratio of reported to estimated tokens; null before the first report. */
  calibration: number | null;
  /** Estimator: `tiktoken`, or `chars` until its tables are loaded. */
  estimator: string;
}

/** The reason why the context is compacted now or not. A later version may add some. */
export type WhyCode =
  /** The context is over the threshold, and a compaction is due. */
  | "due"
  /** The context is not over the threshold. */
  | "below"
  /** The prompt cache is cold, the context is over `compaction.coldResumeTokens`, and a compaction is due. */
  | "cold"
  /** Automatic compaction is off. */
  | "off"
  /** A compaction was undone on this path, and the context still has room. */
  | "undone"
  /** The images of the context are over their budget, and old ones are due to leave. */
  | "images"
  /** System prompt, tools and pins leave no room for a conversation. */
  | "overhead"
  /** No compaction can meet the threshold, and a higher one stands in. */
  | "unattainable"
  /** There is nothing to summarize yet. */
  | "too_short"
  /** Calls of the newest answer have no result yet. */
  | "calls_open"
  /** The turn goes on, and `compaction.midTurn` is false. */
  | "mid_turn"
  /** The last automatic compaction did not complete. */
  | "resting"
  /** Several maintenances in a row led to no answer. */
  | "no_progress"
  /** A summary is being made ahead. */
  | "ahead";

/** Result of `session/run_idle`. */
export type RunIdleAnswer =
  /** The maintenance has started. Its events follow. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
    }
  /** Nothing starts now. */
  | {
      /** Reason. */
      skipped: IdleSkipped;
    };

/** The reason why no idle maintenance starts. */
export type IdleSkipped =
  /** An operation or another request runs or waits, the session ends, or its file cannot be read. */
  | "busy"
  /** Automatic maintenance is off: `compaction.enabled` is false, or `compaction.strategy` is `off`. */
  | "disabled"
  /** The context is smaller than `compaction.idleThresholdTokens`. */
  | "below_threshold"
  /** A tool call of the newest answer has no result. */
  | "unanswered_call"
  /** The newest message is a request of the user or a tool result: the model is to answer. */
  | "unanswered_message"
  /** A compaction was undone on this path, and the context is not near its window. */
  | "undone"
  /**
   * The last automatic maintenance was cancelled, failed or was skipped. A message of the user, or growth by 5 %, ends
   * that.
   */
  | "resting"
  /** Nothing can be summarized, or the summary would make nothing smaller. */
  | "nothing_to_compact"
  /**
   * Another session has its idle maintenance. This one waits for its turn and starts by itself, if nothing comes
   * between.
   */
  | "queued"
  /** It was cancelled before it started. */
  | "cancelled";

/** Params of `session/cancel`. */
export interface CancelParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Operation to cancel. Default: every operation of the session. */
  operationId?: OperationId | null;
}

/** Result of `session/cancel`. */
export interface CancelAnswer {
  /** Operations that were cancelled. */
  cancelled: Cancelled[];
}

/** A cancelled operation. */
export interface Cancelled {
  /** Id of the operation. A turn has a `turnId` in its place. */
  operationId?: OperationId | null;
  /** Id of the turn. */
  turnId?: OperationId | null;
  /** Kind of the operation. */
  kind: OperationName;
}

/** Params of `session/compact`. */
export interface CompactParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Instructions for the summary: topics to keep above all. */
  instructions?: string | null;
  /** Lines beside the conversation, for the summary. Every request for it has them. */
  context?: string[] | null;
  /** Size of the newest messages that are kept verbatim, without a lower bound. Default: the setting. */
  keepRecentTokens?: number | null;
  /** Method of the summary. Default: the setting. */
  method?: CompactMethod | null;
  /**
   * The model that writes the summary, and no other. Where it writes none, the compaction fails with `provider_error`.
   * Default: the models of the settings, then the session's, then the extracted summary.
   */
  model?: ModelRefInput | null;
  /** With `model`: where it writes no summary, the others follow, and at last the extracted summary. Default: false. */
  fallback?: boolean | null;
  /** Time of the start. Default: `now`. */
  when?: When | null;
  /** Initiator of the request. Default: `user`. An agent is refused below half of the threshold. */
  initiator?: Initiator | null;
  /** Report the plan without writing. */
  dryRun?: boolean | null;
  /**
   * With `dryRun`: makes the summary, too, and asks models for it as the compaction would. It takes its time, and is
   * cancelled
   * with its request.
   */
  draft?: boolean | null;
  /** Answer when the compaction has ended. */
  wait?: boolean | null;
  /**
   * The summary begins a new session, which names this one as its parent. This session stays as it is. Default: false.
   */
  newSession?: boolean | null;
  /** Expected leaf. The request fails if another message or compaction follows this entry. */
  expectedLeafId?: EntryId | null;
  /**
   * Whether the compaction is written. Default: true. False makes the whole result, answers with it at its end, and
   * writes
   * nothing: for a host that applies it itself, also on a read-only session. Hooks are not asked, and it is cancelled
   * with
   * its request.
   */
  apply?: boolean | null;
  /** With `apply: false` or `dryRun`: the entry that the context ends with. Default: the leaf. */
  leafEntryId?: EntryId | null;
}

/** Method of a summary. */
export type CompactMethod =
  /** A summary by a model. The service at `compaction.remoteEndpoint` is not asked. */
  | "llm"
  /** A summary extracted without a model. */
  | "extractive";

/** Initiator of a compaction. */
export type Initiator =
  /** A person. */
  | "user"
  /** The agent itself. */
  | "agent";

/** Result of `session/compact`. The form follows from `wait` and `dryRun`. */
export type CompactAnswer =
  /** The compaction has started. Its events follow. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
    }
  /** With `wait`: the compaction has ended. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
      /** Outcome of the operation. */
      outcome: Outcome;
      /** Compaction that was written. */
      result?: CompactionResult | null;
      /** Session that the summary begins. */
      newSessionId?: SessionId | null;
      /** Error of a failed operation. */
      error?: ErrorData | null;
      /** Text of the error. */
      errorMessage?: string | null;
      /** Reason of a skipped operation. */
      skippedReason?: WhyNothing | null;
    }
  /** With `dryRun`: the plan. */
  | {
      /** Plan of the compaction. */
      preparation: Preparation;
      /** With `draft`: the compaction that would be written. */
      draft?: ShownDraft | null;
    };

/** Outcome of an operation. */
export type Outcome =
  /** The operation completed. */
  | "completed"
  /** The operation failed with an error. */
  | "failed"
  /** The operation was cancelled. */
  | "cancelled"
  /** There was nothing to do. */
  | "skipped";

/** A completed compaction. */
export interface CompactionResult {
  /** Id of the compaction entry; null with `apply: false`. */
  entryId: EntryId | null;
  /** Summary; null where the frame would exceed 60 KiB. `session/entry` returns it whole. */
  summary: string | null;
  /** Two sentences for a person; null like the summary where a hook supplied a long text. */
  shortSummary: string | null;
  /** First entry that is kept verbatim; null where none is. */
  firstKeptEntryId: EntryId | null;
  /** Size of the context before. */
  tokensBefore: number;
  /** Estimated size of the context after. */
  tokensAfter: number;
  /** Lists of files, or the details of a hook; null where the frame would exceed 60 KiB. */
  details: SummaryDetails;
  /** Whether a hook supplied the summary. */
  fromHook: boolean;
  /** Method of the summary. */
  method: SummaryMethod;
  /** Model of the summary; null for a method without a model. */
  model: ModelRef | null;
  /**
   * Form of the requests to the model of the summary; absent for a method without a model, and for a provider's own
   * compaction.
   */
  form?: SummaryForm | null;
  /** Savings by the provider's cache; absent where nothing was read from it. */
  saved?: Saved | null;
  /**
   * Origins of the two parts of a split turn's summary, where they differ: one was extracted, or two models wrote
   * them.
   * `method` and `model` are then those of the part by a model, or of the history.
   */
  parts?: PartOrigins | null;
  /** Candidates that did not become the summary, or a part of it. */
  rejected: Rejected[];
  /** Tokens of all requests to models together; null where none was asked. */
  usage: MessageUsage | null;
  /** Entries that the summary stands for. */
  covered: Extent;
  /** Entries that are kept verbatim. */
  kept: Extent;
  /**
   * Facts that the summary does not have; null for a conversation that is too large to be read again. They stay in the
   * session.
   */
  lost: Lost | null;
  /**
   * Entries that the compaction cuts or summarizes before any model has read them; absent where there are none. Where
   * the
   * frame would exceed 60 KiB, the last ones are left out: the compaction entry has an edit for each entry that is
   * cut.
   */
  shortened?: ShortenedEntry[];
  /**
   * Files and loaded texts to bring back; absent where `compaction.rehydrate` is off, or the frame would exceed 60
   * KiB.
   */
  rehydration?: Rehydrated | null;
}

/** Method of a summary. */
export type SummaryMethod =
  /** A model wrote the summary. */
  | "llm"
  /** A remote endpoint wrote the summary. */
  | "remote"
  /** The provider's own compaction. */
  | "provider_native"
  /** The summary was extracted without a model. */
  | "extractive"
  /** A hook supplied the summary. */
  | "hook";

/** The origins of the parts of a summary, where they differ. */
export interface PartOrigins {
  /** The origin of the whole turns. */
  history: PartOrigin;
  /** The origin of the beginning of the turn whose end is kept. */
  turnPrefix: PartOrigin;
}

/** The origin of a part. The default: extracted without a model. */
export interface PartOrigin {
  /** The method of the part. */
  method: SummaryMethod;
  /** The model that wrote the part; null for a method without a model. */
  model: ModelRef | null;
}

/** A candidate that did not become the summary. */
export interface Rejected {
  /** Method of the candidate. */
  method: SummaryMethod;
  /** Model of the candidate. */
  model: ModelRef | null;
  /** Reason of the rejection. */
  why: string;
  /** Error of the provider, for a candidate that failed with one. */
  error?: ErrorData | null;
}

/** `error.data`: branch on `code`. With `retryable`, the same request may succeed later. */
export type ErrorData =
  /** The frame is not JSON. */
  | {
      code: "parse_error";
      retryable: boolean;
    }
  /** The frame is JSON and not a request. */
  | {
      code: "invalid_request";
      retryable: boolean;
    }
  /** `initialize` was sent twice. */
  | {
      code: "already_initialized";
      retryable: boolean;
    }
  /** The frame exceeds the limit and was skipped. */
  | {
      code: "frame_too_large";
      retryable: boolean;
    }
  /** The method does not exist. */
  | {
      code: "method_not_found";
      retryable: boolean;
    }
  /** The params do not fit the method. */
  | {
      code: "invalid_params";
      retryable: boolean;
      /** Path in the params, for example `messages[1].role`; empty for the params as a whole. */
      path: string;
    }
  /** A defect of the daemon. */
  | {
      code: "internal";
      retryable: boolean;
    }
  /** The client cancelled the request. */
  | {
      code: "request_cancelled";
      retryable: boolean;
    }
  /** The session's leaf is not the expected one. */
  | {
      code: "content_modified";
      retryable: boolean;
      /** Current leaf. */
      leafEntryId: EntryId | null;
    }
  /** Too many requests are in flight. */
  | {
      code: "overloaded";
      retryable: boolean;
      /** Delay before the next try, in milliseconds. */
      retryAfterMs: number;
    }
  /** The named thing does not exist. */
  | {
      code: "not_found";
      retryable: boolean;
      /** Kind of the thing. */
      kind: ThingName;
    }
  /** Another operation runs. */
  | {
      code: "busy";
      retryable: boolean;
      /** Id of that operation. */
      operationId: OperationId;
      /** Kind of that operation. */
      kind: OperationName;
    }
  /** Another process owns the session. */
  | {
      code: "locked";
      retryable: boolean;
      /** Its process id, if the lock names one. */
      pid: number | null;
      /** Its machine, where the session is in a store. */
      host: string | null;
      /** The time since which it owns the session, where that is in a store. */
      since: string | null;
    }
  /** There is nothing to compact. */
  | {
      code: "nothing_to_compact";
      retryable: boolean;
      /** Reason. */
      reason: WhyNothing;
    }
  /** No compaction makes the context small enough. */
  | {
      code: "context_overflow";
      retryable: boolean;
      /** Parts that a compaction cannot reduce. */
      floor: ContextFloor;
      /** Size of the window, in tokens. */
      contextWindow: number;
    }
  /** A model request failed. */
  | {
      code: "provider_error";
      retryable: boolean;
      /** Name of the provider; null for a service of which no model is known. */
      provider: string | null;
      /** Name of the model at the provider; null for such a service. */
      model: string | null;
      /** HTTP status of the response, if there was one. */
      httpStatus: number | null;
    }
  /** An operation on a file or on the store failed, or the session is read-only. */
  | {
      code: "storage_error";
      retryable: boolean;
      /** Path of the file. */
      path: string;
      /** The system's error number, for an error of the operating system. */
      errno: number | null;
    }
  /** The request precedes `initialize`. */
  | {
      code: "not_initialized";
      retryable: boolean;
    }
  /** The protocol version is not supported. */
  | {
      code: "unsupported_protocol_version";
      retryable: boolean;
      /** Supported versions. */
      supported: number[];
    };

/** Kinds of things that a request names. A later version may add some. */
export type ThingName =
  /** A session. */
  | "session"
  /** An entry. */
  | "entry"
  /** A compaction or a reset that could be undone. */
  | "compaction"
  /** A pin. */
  | "pin";

/** Reasons why there is nothing to compact. */
export type WhyNothing =
  /** No message follows the last compaction. */
  | "already_compacted"
  /** Every message is within the part that is kept, or there is none. */
  | "too_short"
  /** The context would not be smaller. */
  | "would_not_shrink"
  /** An agent asked below half of the threshold. */
  | "below_half_threshold"
  /** A compaction waited for the end of the turn, and another compaction, a reset or a handoff came before it. */
  | "superseded";

/** Parts that a compaction cannot reduce, in tokens. */
export interface ContextFloor {
  /** System prompt. */
  system: number;
  /** Tools. */
  tools: number;
  /** Pins. */
  pins: number;
  /** Newest user message and the messages that must stay with it. */
  latestTurn: number;
}

/** Tokens of requests, in the form of a message's `usage`. */
export interface MessageUsage {
  /** Input that was not cached. */
  input: number;
  /** Output. */
  output: number;
  /** Input that was read from the provider's cache. */
  cacheRead: number;
  /** Input that was written to the provider's cache. */
  cacheWrite: number;
  /** All of it. */
  totalTokens: number;
}

/** A part of a context. */
export interface Extent {
  /** Number of its messages. */
  entries: number;
  /** Size of its messages before the compaction, in tokens. */
  tokens: number;
}

/** The facts that are not in a summary, the first of each kind. They stay in the session. */
export interface Lost {
  /** Rules of the user. */
  rules: string[];
  /** Open tasks. */
  todos: string[];
  /** Errors that are not solved. */
  errors: string[];
  /** Files that were changed. */
  files: string[];
}

/** An entry that a compaction cuts or summarizes before any model has read it. */
export interface ShortenedEntry {
  /** The entry. `session/entry` returns it whole. */
  entryId: EntryId;
  /** Size of its message before, in tokens. */
  tokensBefore: number;
  /** Size of its message in the context, in tokens; 0 where it is summarized. */
  tokensAfter: number;
}

/** Files and texts that the summarized part had, and the context has no more, or only in part. */
export interface Rehydrated {
  /**
   * At most five files that are worth reading again: first the changed ones, from the newest change on, then those
   * that were
   * only read, from the newest read on. A file that was removed, or whose newest form is in the kept part, is not
   * among them.
   */
  files: FileToRead[];
  /** Number of the other files that the summarized part read or changed. */
  filesLeftOut: number;
  /**
   * At most twenty skills and instructions that the summarized part loaded and the kept part does not, from the newest
   * on.
   */
  loaded: Loaded[];
  /** Number of the others. */
  loadedLeftOut: number;
}

/** A file that is worth reading again. */
export interface FileToRead {
  /** The file. A relative path of a tool is taken from the session's `cwd`. It is not looked for on the disk. */
  path: string;
  /** The newest use of the file. */
  operation: FileUse;
  /**
   * Size of the file when the session last had it whole, in tokens; null where it never had. The size on the disk may
   * differ.
   */
  tokens: number | null;
  /** The entry with that use: the result of a call. */
  entryId: EntryId;
}

/** The use of a file. */
export type FileUse =
  /** It was made or changed. */
  | "changed"
  /** It was only read. */
  | "read";

/** A skill, or the instructions of a file, that the agent loaded. */
export interface Loaded {
  /** The kind. */
  kind: LoadKind;
  /** The name of the skill, or of the file. */
  name: string;
  /** The file, if the agent named it. */
  path: string | null;
  /** Size of the text as it was loaded, in tokens. */
  tokens: number;
  /** The part of the text that stays in the context. */
  kept: LoadKept;
  /** The entry with the text. */
  entryId: EntryId;
}

/** The kind of a text that an agent loads. */
export type LoadKind =
  /** A skill. */
  | "skill"
  /** The instructions of a file, such as `AGENTS.md`. */
  | "instructions";

/** The part of a loaded text that a compaction keeps. */
export type LoadKept =
  /** All of it, without its secrets. */
  | "whole"
  /** Its beginning and its end. */
  | "clipped"
  /**
   * Nothing: it stood in no tool result, an edit had replaced it, there was no room, or the compaction is not applied.
   */
  | "none";

/** Plan of a compaction. */
export interface Preparation {
  /** First entry that would be kept verbatim; null where none would. */
  firstKeptEntryId: EntryId | null;
  /** Number of messages in whole turns that would be summarized. */
  messagesToSummarize: number;
  /** Number of messages that would be summarized from a turn whose end is kept. */
  turnPrefixMessages: number;
  /** Whether the cut is inside a turn. */
  isSplitTurn: boolean;
  /** Size of the context now. */
  tokensBefore: number;
  /** Upper bound of the context's size after the compaction. */
  tokensAfterEstimate: number;
  /**
   * `would_not_shrink` where a summary of the largest size makes nothing smaller. With such a summary the compaction
   * is skipped,
   * unless it has instructions. Absent where the context becomes smaller.
   */
  warning?: WhyNothing | null;
  /** Summary in force, which would be merged into the new one. */
  previousSummary: string | null;
  /**
   * Number of model requests. Each but the first of a long conversation carries the summary so far, whose length is a
   * guess.
   */
  chunks: number;
  /** Author of the summary. */
  summarizer: Summarizer;
  /** Files of the summarized messages. */
  fileOps: FileOps;
  /** Fingerprint of the plan: equal plans of one session have equal values. */
  planHash: string;
}

/** Author of a summary. */
export type Summarizer =
  /** No model: `"extractive"`. */
  | ExtractiveWord
  /** A model. */
  | ModelRef;

/** The word `extractive`. */
export type ExtractiveWord = "extractive";

/** Files that a conversation touched. */
export interface FileOps {
  /** Files that were read and not changed. */
  read: string[];
  /** Files that were changed. */
  modified: string[];
}

/** A compaction before it is written. */
export interface ShownDraft {
  /** The summary, whole. */
  summary: string;
  /** Two sentences for a person; null where there are none. */
  shortSummary: string | null;
  /** First entry that is kept verbatim; null where none is. */
  firstKeptEntryId: EntryId | null;
  /** Size of the context before. */
  tokensBefore: number;
  /** Size of the context after. */
  tokensAfter: number;
  /** Method of the summary. */
  method: SummaryMethod;
  /** Facts that the summary does not have; null for a conversation that is too large to be read again. */
  lost: Lost | null;
}

/** Params of `context/fit`. */
export interface FitParams {
  /** The messages, oldest first. */
  messages: GivenMessage[];
  /** Format of the messages, in the params and in the result. Default: `messages`. */
  format?: MessageFormat | null;
  /** System prompt beside the messages. */
  system?: string | null;
  /** Tools of the model. */
  tools?: Tools | null;
  /** Model that the messages are for. Default: the setting `defaultModel`. */
  model?: ModelRefInput | null;
  /** Size of its window, in tokens. Default: that of the model. */
  contextWindow?: number | null;
  /** Its longest answer, in tokens. */
  maxOutputTokens?: number | null;
  /**
   * Size of the newest messages that are kept verbatim, in tokens. With it the messages are compacted also where they
   * fit.
   */
  keepRecentTokens?: number | null;
  /** Summary of the messages before the first one. The new summary continues it. */
  previousSummary?: string | null;
  /** Instructions for the summary: topics to keep above all. */
  instructions?: string | null;
}

/** Result of `context/fit`. */
export interface FitAnswer {
  /** Messages that fit the window: the summary in messages of its own, then the kept messages as they were given. */
  messages: GivenMessage[];
  /**
   * The summary; null where nothing was summarized. The next request gives it back as `previousSummary` with the
   * messages
   * from `firstKeptIndex` on. It ends with the newest request of the user, between the tags `<user-message>`, where
   * that is
   * not among the kept messages.
   */
  summary: string | null;
  /** Place of the first kept message among the given ones; their number where none is kept. */
  firstKeptIndex: number;
  /** Size of the context before, with system prompt and tools. */
  tokensBefore: number;
  /** Size of the context after. */
  tokensAfter: number;
  /** Method of the summary; null where nothing was summarized. */
  method: SummaryMethod | null;
  /** Candidates that did not become the summary. */
  rejected: Rejected[];
}

/** Result of `session/undo_compaction`. */
export interface UndoAnswer {
  /** Leaf after the undo. */
  leafEntryId: EntryId | null;
  /** Fullness of the context after the undo. */
  usage: Usage;
}

/** Result of `session/reset`. */
export interface ResetAnswer {
  /** The reset. Nothing before it is in the context, except pins. */
  entryId: EntryId;
  /** Leaf after the reset. */
  leafEntryId: EntryId | null;
  /** Fullness of the context after the reset. */
  usage: Usage;
}

/** Params of `session/prompt`. */
export interface PromptParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** The message: a text, or content blocks in pi's form (`text` and `image`). */
  message: PromptMessage;
  /** Delivery while a turn runs. Default: `follow_up`. */
  behavior?: Behavior | null;
}

/** A message of the user. */
export type PromptMessage =
  /** A text. */
  | string
  /** Content blocks. */
  | PromptBlock[];

/** A block of a message that a client supplies: a text or an image. */
export type PromptBlock = TextBlock | ImageBlock;

/** The delivery of a message while a turn runs. */
export type Behavior =
  /** In the running turn, before its next request to the model. */
  | "steer"
  /** In a turn of its own after the running one. */
  | "follow_up";

/** Result of `session/prompt`. */
export interface PromptAnswer {
  /** Id of the turn that answers the message. */
  turnId: OperationId;
  /** Whether the turn has started. */
  disposition: Disposition;
}

/** The state of a message that was accepted. It is on disk. */
export type Disposition =
  /** Its turn has started. */
  | "started"
  /** It waits in the queue. */
  | "queued";

/** Result of `session/continue`. */
export interface ContinueAnswer {
  /** Id of the turn. */
  turnId: OperationId;
}

/** Params of `session/navigate`. */
export interface NavigateParams {
  /** Id of the session. */
  sessionId: SessionId;
  /**
   * Entry at which the conversation goes on. For a message of the user it goes on before that message, whose text is
   * in
   * the result.
   */
  targetEntryId: EntryId;
  /** Summarize the branch that is left. Default: the setting `branchSummary.enabled`. */
  summarize?: boolean | null;
  /** Topics that the summary keeps above all. At most 65536 bytes. */
  instructions?: string | null;
  /** The instructions take the place of the prompt. Default: false. */
  replaceInstructions?: boolean | null;
  /** Label of the entry with the summary; without a summary, of the target. At most 1024 bytes. */
  label?: string | null;
  /** Answer when the session has moved. */
  wait?: boolean | null;
}

/** Result of `session/navigate`. The form follows from `wait`. */
export type NavigateAnswer =
  /** The navigation has started. Its events follow. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
    }
  /** With `wait`: the navigation has ended. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
      /** Outcome of the operation. */
      outcome: Outcome;
      /** Leaf before; null for a session without entries. */
      oldLeafId: EntryId | null;
      /** Leaf now; null before the first entry. */
      newLeafId: EntryId | null;
      /** Text of the message before which the conversation goes on; null for any other target. */
      editorText: string | null;
      /** Entry with the summary of the branch that was left. */
      summaryEntryId: EntryId | null;
      /** Error of a failed operation. */
      error?: ErrorData | null;
      /** Text of the error. */
      errorMessage?: string | null;
    };

/** Params of `session/reference`. */
export interface ReferenceParams {
  /** Id of the session that receives the extract. */
  sessionId: SessionId;
  /** Id of the session that is read. */
  fromSessionId: SessionId;
  /** The question that the extract answers. Default: everything that helps the conversation of this session. */
  question?: string | null;
  /** Answer when the extract is written. */
  wait?: boolean | null;
}

/** Result of `session/reference`. The form follows from `wait`. */
export type ReferenceAnswer =
  /** The extraction has started. Its events follow. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
    }
  /** With `wait`: the extraction has ended. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
      /** Outcome of the operation. */
      outcome: Outcome;
      /** The `custom_message` with the extract. */
      entryId?: EntryId | null;
      /** Error of a failed operation. */
      error?: ErrorData | null;
      /** Text of the error. */
      errorMessage?: string | null;
    };

/** Params of `session/handoff`. */
export interface HandoffParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Goal of the new session, of at most 8,000 characters. The document is written for it. */
  goal?: string | null;
  /** Topics that the document keeps above all, in at most 8,000 characters. */
  instructions?: string | null;
  /** The model that writes the document, and no other. Default: the session's. */
  model?: ModelRefInput | null;
  /** Return the document without a new session. */
  dryRun?: boolean | null;
  /** The document. No model is asked. */
  document?: string | null;
  /** Save the document as a file beside the new session, too. Default: false. */
  save?: boolean | null;
  /** Answer when the new session is open. */
  wait?: boolean | null;
}

/** Result of `session/handoff`. The form follows from `wait` and `dryRun`. */
export type HandoffAnswer =
  /** The handoff has started. Its events follow. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
    }
  /** With `wait`: the handoff has ended. */
  | {
      /** Id of the operation. */
      operationId: OperationId;
      /** Outcome of the operation. */
      outcome: Outcome;
      /** The session that goes on. */
      newSessionId?: SessionId | null;
      /** The document. */
      document?: string | null;
      /** File with the document, if `save` asked for one. */
      savedPath?: string | null;
      /** Error of a failed operation. */
      error?: ErrorData | null;
      /** Text of the error. */
      errorMessage?: string | null;
    }
  /** With `dryRun`: the document. */
  | {
      /** The document. */
      document: string;
    };

/** Params of `session/prune`. */
export interface PruneParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Size of the newest tool results that stay whole, in tokens. Default: the setting. */
  protectTokens?: number | null;
  /** Smallest saving that is worth a change, in tokens. Default: the setting. */
  minimumSavings?: number | null;
  /** Report the effect without writing. */
  dryRun?: boolean | null;
}

/** Result of `session/prune`. */
export interface PruneAnswer {
  /** Entries whose content is replaced by one line. */
  entryIds: EntryId[];
  /** Estimated saving, in tokens. */
  tokensSaved: number;
}

/** Params of `session/pin` and `session/unpin`: an entry or a text. */
export interface PinParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Entry of the conversation. */
  entryId?: EntryId | null;
  /** Text to pin; it becomes a message. */
  text?: string | null;
}

/** Result of methods that return one entry's id. */
export interface EntryIdAnswer {
  /** `session/label`: the entry that holds the label. `session/pin` and `session/unpin`: the pinned entry. */
  entryId: EntryId;
}

/** Params of `session/label`. */
export interface LabelParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Entry to label. */
  targetEntryId: EntryId;
  /** Label, of at most 1024 bytes; null removes it. */
  label?: string | null;
}

/** Params of `session/configure`. A missing field stays unchanged, null clears it. */
export interface ConfigureParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Model from here on. Null is refused: a model cannot be cleared. */
  model?: ModelRefInput | null;
  /** Thinking level from here on; null for `off`. */
  thinkingLevel?: ThinkingLevel | null;
  /** System prompt. */
  systemPrompt?: string | null;
  /** Tools of the model. */
  tools?: Tools | null;
  /** Title of the session. */
  title?: string | null;
  /**
   * Size of the window of the session's model, in tokens, in place of that in `models`; null clears it. It belongs to
   * the
   * model: another model has its own.
   */
  contextWindow?: number | null;
  /** The longest answer of the session's model, in tokens; null clears it. */
  maxOutputTokens?: number | null;
}

/** Result of `session/configure`. */
export interface ConfigureAnswer {
  /** State of the session. */
  session: SessionInfo;
  /** Maintenance that follows. */
  next: Next;
}

/** Params of `session/fork`. Without `entryId` the fork has the whole path to the leaf. */
export interface ForkParams {
  /** Id of the session. */
  sessionId: SessionId;
  /**
   * Entry at which the fork ends; on any branch. A marker is refused. `at` refuses a tool result that is not the last
   * one
   * of its batch.
   */
  entryId?: EntryId | null;
  /** Whether the fork ends before that entry or with it. Default: `before`. Without `entryId` it is `at` the leaf. */
  position?: ForkPosition | null;
  /** Working folder of the fork; an absolute path. Default: that of the session. */
  cwd?: string | null;
}

/** The end of a fork. */
export type ForkPosition =
  /** The entry and everything behind it stay behind. */
  | "before"
  /** The entry comes along. */
  | "at";

/** Result of `session/fork`. */
export interface ForkAnswer {
  /** The new session. It is open, and the client is subscribed to its events. */
  session: SessionInfo;
  /**
   * Text of the user's message, or of the `custom_message`, before which the fork ends; null where it ends elsewhere.
   */
  editorText: string | null;
}

/** Params of `session/export`. */
export interface ExportParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Format of the export. */
  format: ExportFormat;
  /** Path of the new file. A relative path is below the session's working folder. An existing file is refused. */
  path: string;
}

/** Format of an export. */
export type ExportFormat =
  /** A session file with every entry, for pi and abridged. */
  | "jsonl"
  /** The active path as Markdown, for a person. */
  | "markdown";

/** Result of `session/export`. */
export interface ExportAnswer {
  /** Path of the file. */
  path: string;
}

/** Params of `session/subscribe`. */
export interface SubscribeParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Last event that the client has seen. Retained events after it are sent again. */
  after?: Seen | null;
}

/** Position of an event. */
export interface Seen {
  /** Run of the daemon. */
  epoch: string;
  /** Number of the event. */
  seq: number;
}

/** Result of `session/subscribe`. */
export interface SubscribeAnswer {
  /** Id of this run of the daemon. */
  epoch: string;
  /** Number of the last event. */
  seq: number;
  /** Whether every durable event after `after` is retained. */
  status: Subscription;
  /** Number of events that are sent again, in order and with their old numbers. */
  replayed: number;
  /** State of the session; null where the events that follow are complete. */
  snapshot: StatusAnswer | null;
}

/** Completeness of a subscription. */
export type Subscription =
  /** The events that follow are complete. */
  | "ok"
  /** Some events are lost. The snapshot replaces them. */
  | "expired";

/** Params of `models/list`. */
export interface ModelsListParams {
  /** Session whose own model is listed too. */
  sessionId?: SessionId | null;
}

/** Result of `models/list`. */
export interface ModelsListAnswer {
  /** Models of the settings in their order, then other models in use. */
  models: ListedModel[];
}

/** A model and what is known of it. */
export interface ListedModel {
  /** The provider's name. */
  provider: string;
  /** The model's name at that provider. */
  id: string;
  /** The wire format. */
  api: Api | null;
  /** The base URL, without credentials. */
  baseUrl: string | null;
  /** The environment variable with the key. Its value is never sent. */
  apiKeyEnv: string | null;
  /** Size of the window, in tokens. */
  contextWindow: Known;
  /** The output limit, in tokens; null where it is unknown. */
  maxOutputTokens: Known | null;
  /** The prices; null where they are unknown. */
  cost: KnownCost | null;
  /** `"provider/id"` of a larger model to go to. */
  promoteTo: string | null;
  /** Whether sessions without a model of their own use this model. */
  default: boolean;
  /** The windows that its servers taught, whether they count or not. `models/forget` clears them. */
  learned: LearnedWindow[];
}

/** A value and its source. */
export interface Known {
  /** The value. */
  value: number;
  /** The source. */
  source: KnownBy;
}

/** The source of a value. */
export type KnownBy =
  /** No source: a cautious default. */
  | "default"
  /** The catalog of known models. */
  | "catalog"
  /** The provider, in an error about a request that was too long. */
  | "learned"
  /** The global settings file. */
  | "global"
  /** The project's settings file. */
  | "project"
  /** An environment variable. */
  | "environment"
  /** The session's own settings. */
  | "session";

/** Prices in dollars per million tokens, and their source. */
export interface KnownCost {
  /** Input that is not cached. */
  input: number;
  /** Output. */
  output: number;
  /** Input that is read from the prompt cache; null where it is unknown. */
  cacheRead: number | null;
  /** Input that is written to the prompt cache; null where it is unknown, or costs as much as input. */
  cacheWrite: number | null;
  /** The source. */
  source: KnownBy;
}

/** A window that a provider taught. */
export interface LearnedWindow {
  /** The model. */
  model: ModelRef;
  /**
   * The `baseUrl` of its server in the settings, without credentials; null where they name none. Absent where an older
   * version learned it: then it counts for every server of the model.
   */
  baseUrl?: string | null;
  /** Size of the window, in tokens. */
  contextWindow: number;
  /** The evidence for it. */
  origin: WindowOrigin;
  /** Time of the last evidence; null where an older version learned it. */
  learnedAt: string | null;
  /**
   * Number of times that it was taught. From the second one on it counts over a larger window that a host or a setting
   * names, in every session.
   */
  refusals: number;
  /** The session in which it was taught last. It counts over a named window there from the beginning. */
  session: SessionId | null;
}

/** The evidence for a window. */
export type WindowOrigin =
  /** A refusal that states the limit. */
  | "refusal"
  /** A server read less of its prompts than it was sent, without an error. */
  | "saturation";

/** Params of `models/forget`. */
export interface ModelsForgetParams {
  /** The model. */
  model: ModelRefInput;
}

/** Result of `models/forget`. */
export interface ModelsForgetAnswer {
  /**
   * The windows that were forgotten, one for each server of the model. Empty where none was learned. A bound that a
   * session keeps for itself, from a refusal without a limit, is forgotten, too, and is not listed.
   */
  forgotten: LearnedWindow[];
}

/** Params of `settings/get`. */
export interface SettingsGetParams {
  /** Session whose effective settings are returned. Default: the settings outside of sessions. */
  sessionId?: SessionId | null;
}

/** Settings with the source of each value. */
export interface Sourced {
  /** The settings in force. */
  settings: Settings;
  /** The source of each value that is not a default, by its dotted key. */
  sources: Record<string, Source>;
}

/**
 * All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
 *
 * `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it is
 * allowed
 * there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number outside of its
 * range
 * is not used.
 */
export interface Settings {
  /**
   * `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
   * asked.
   */
  defaultModel: string | null;
  /** The models. */
  models: ModelSettings[];
  /** Compaction of sessions. */
  compaction: CompactionSettings;
  /** Pruning of old tool results. */
  prune: PruneSettings;
  /** The tools of agents. */
  tools: ToolSettings;
  /** Summaries of branches that are left. */
  branchSummary: BranchSummarySettings;
  /** Promotion to a larger model instead of a compaction. */
  contextPromotion: PromotionSettings;
  /** Retries of transient errors. */
  retry: RetrySettings;
  /** Redaction of secrets in summaries. */
  redaction: RedactionSettings;
  /** Estimation of tokens. */
  tokens: TokenSettings;
  /** Folders whose project settings are trusted. */
  trustedProjects: string[];
  /**
   * The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
   * daemon
   * starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
   */
  store: Secret | null;
  /**
   * A command whose first line of output is the password of the store: the program, then its arguments. No shell reads
   * it. It
   * runs for each connection.
   */
  storePasswordCommand: string[] | null;
}

/** One model. */
export interface ModelSettings {
  /** The provider's name. */
  provider: string;
  /** The model's name at that provider. */
  id: string;
  /** The wire format. */
  api: Api | null;
  /** The base URL, in the form that the provider's own SDK takes. */
  baseUrl: string | null;
  /** The environment variable with the key. */
  apiKeyEnv: string | null;
  /** A command whose first line of output is the key: the program, then its arguments. No shell reads it. */
  apiKeyCommand: string[] | null;
  /** Headers of every request, by name, for proxies. The values are secret. */
  headers: Record<string, Secret>;
  /** Size of the window, in tokens. */
  contextWindow: number | null;
  /** The longest answer, in tokens. */
  maxOutputTokens: number | null;
  /** True for a model that thinks before it answers. Default: the value of the catalog. */
  reasoning: boolean | null;
  /**
   * Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer
   * of the
   * provider, for the providers `anthropic` and `openai` alone.
   */
  nativeCompaction: boolean | null;
  /** `"provider/id"` of the larger model for `contextPromotion`. */
  promoteTo: string | null;
  /** Its prices. Default: those of the catalog. */
  cost: ModelCost | null;
  /** Overrides of `compaction` for this model. */
  compaction: CompactionPatch | null;
}

/** Compaction of sessions. */
export interface CompactionSettings {
  /** Compacts automatically. */
  enabled: boolean;
  /** The action at the threshold. */
  strategy: Strategy;
  /**
   * Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
   * window.
   */
  reserveTokens: number | null;
  /** Tokens of the newest messages that stay as they are; 0 keeps none. */
  keepRecentTokens: number;
  /** Threshold in percent of the window; −1: none. */
  thresholdPercent: number;
  /** Threshold in tokens; −1: none. */
  thresholdTokens: number;
  /** Continues a daemon-driven session after a compaction. */
  autoContinue: boolean;
  /** Allows a compaction between the tool calls of a turn. */
  midTurn: boolean;
  /**
   * Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
   * allows that of another provider whose models are asked by `openai_responses`.
   */
  remoteEnabled: boolean;
  /**
   * URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
   * answers it. It is asked before the models and gets no key.
   */
  remoteEndpoint: string | null;
  /**
   * Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer
   * that reports
   * cached tokens.
   */
  idleEnabled: boolean;
  /** The smallest context that is compacted while the user is away, in tokens. */
  idleThresholdTokens: number;
  /** Time without activity after which the user counts as away, in seconds. */
  idleTimeoutSeconds: number;
  /** Drafts summaries ahead. */
  speculative: Speculative;
  /** Time without progress of an answer after which the next candidate is asked, in seconds. */
  stallSeconds: number;
  /** The longest automatic maintenance, in seconds. */
  deadlineSeconds: number;
  /** The most summaries at the same time, over all sessions. */
  maxConcurrent: number;
  /**
   * The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
   * are
   * extracted without a model. The file of a project can only make it smaller.
   */
  maxTokensPerHour: number;
  /** `"provider/id"` of each summarizer, in order. */
  models: string[];
  /** The layout of a compacted context. */
  style: Style;
  /** Ends the frame of a summary with a line that names the file of the session, where the whole conversation is. */
  transcriptHint: boolean;
  /**
   * Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
   * instructions
   * that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000
   * tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
   */
  rehydrate: boolean;
  /**
   * The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context
   * is over
   * `coldResumeTokens`.
   */
  coldResume: ColdResumption;
  /** Size over which a context with a cold cache is large, in tokens; −1: half of the threshold. */
  coldResumeTokens: number;
}

/** Pruning of old tool results. */
export interface PruneSettings {
  /** Tokens of the newest results that stay. */
  protectTokens: number;
  /** The least tokens for which results are pruned. */
  minimumSavings: number;
  /**
   * Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that reads
   * a file
   * (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A read of a
   * file
   * that a newer one repeats is pruned all the same.
   */
  protectedTools: string[];
  /**
   * Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at
   * least
   * as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
   */
  cacheSeconds: number;
}

/** The tools of agents. */
export interface ToolSettings {
  /** Tools that touch files. They come before the built-in ones of common agents. */
  files: FileTool[];
  /** Tools that hold the todo list. They come before the built-in ones. */
  todo: string[];
  /** Tools that load a skill, beside the built-in ones. */
  skills: string[];
}

/** Summaries of branches that are left. */
export interface BranchSummarySettings {
  /** The default of `summarize`. */
  enabled: boolean;
  /** Tokens that stay free in the summarizer's window. */
  reserveTokens: number;
}

/** Promotion to a larger model instead of a compaction. */
export interface PromotionSettings {
  /** Switches it on. */
  enabled: boolean;
}

/** Retries of transient errors. */
export interface RetrySettings {
  /** Switches it on. */
  enabled: boolean;
  /** The most retries of a request. */
  maxRetries: number;
  /** The first delay, in milliseconds. */
  baseDelayMs: number;
  /** The longest delay, in milliseconds. */
  maxDelayMs: number;
}

/** Redaction of secrets in summaries. */
export interface RedactionSettings {
  /** Switches it on. */
  enabled: boolean;
}

/** Estimation of tokens. */
export interface TokenSettings {
  /** The estimator. */
  estimator: EstimatorSetting;
  /** Learns the window that a provider names in an error. */
  learnWindow: boolean;
}

/** The source of a value. */
export type Source =
  /** Built in. */
  | "default"
  /** The global `settings.json`. */
  | "global"
  /** The project's `.abridged/settings.json`. */
  | "project"
  /** An environment variable. */
  | "environment"
  /** The session's own. */
  | "session";

/** Params of `settings/set`. */
export interface SettingsSetParams {
  /** Scope of the change. */
  scope: Scope;
  /** Session that the scope refers to. With scope `global`: the session whose effective settings are returned. */
  sessionId?: SessionId | null;
  /** JSON merge patch. Null removes a value, so that the value of the next layer applies. */
  patch: SettingsPatch;
}

/** Scope of a change. */
export type Scope =
  /** The global settings file. */
  | "global"
  /** The settings file of the session's working folder. */
  | "project"
  /** The session. */
  | "session";

/** A JSON merge patch of settings. Null removes a value. */
export interface SettingsPatch {
  /**
   * `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
   * asked.
   */
  defaultModel?:
    /**
     * `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
     * asked.
     */
    | string | null
    | null;
  /** The models. */
  models?:
    /** The models. */
    | ModelSettingsInput[]
    | null;
  /** Compaction of sessions. */
  compaction?:
    | {
        /** Compacts automatically. */
        enabled?:
          /** Compacts automatically. */
          | boolean
          | null;
        /** The action at the threshold. */
        strategy?:
          /** The action at the threshold. */
          | Strategy
          | null;
        /**
         * Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a
         * smaller window.
         */
        reserveTokens?:
          /**
           * Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a
           * smaller window.
           */
          | number | null
          | null;
        /** Tokens of the newest messages that stay as they are; 0 keeps none. */
        keepRecentTokens?:
          /** Tokens of the newest messages that stay as they are; 0 keeps none. */
          | number
          | null;
        /** Threshold in percent of the window; −1: none. */
        thresholdPercent?:
          /** Threshold in percent of the window; −1: none. */
          | number
          | null;
        /** Threshold in tokens; −1: none. */
        thresholdTokens?:
          /** Threshold in tokens; −1: none. */
          | number
          | null;
        /** Continues a daemon-driven session after a compaction. */
        autoContinue?:
          /** Continues a daemon-driven session after a compaction. */
          | boolean
          | null;
        /** Allows a compaction between the tool calls of a turn. */
        midTurn?:
          /** Allows a compaction between the tool calls of a turn. */
          | boolean
          | null;
        /**
         * Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it
         * also
         * allows that of another provider whose models are asked by `openai_responses`.
         */
        remoteEnabled?:
          /**
           * Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it
           * also
           * allows that of another provider whose models are asked by `openai_responses`.
           */
          | boolean
          | null;
        /**
         * URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary,
         * shortSummary?}`
         * answers it. It is asked before the models and gets no key.
         */
        remoteEndpoint?:
          /**
           * URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary,
           * shortSummary?}`
           * answers it. It is asked before the models and gets no key.
           */
          | string | null
          | null;
        /**
         * Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an
         * answer that reports
         * cached tokens.
         */
        idleEnabled?:
          /**
           * Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after
           * an answer that reports
           * cached tokens.
           */
          | boolean
          | null;
        /** The smallest context that is compacted while the user is away, in tokens. */
        idleThresholdTokens?:
          /** The smallest context that is compacted while the user is away, in tokens. */
          | number
          | null;
        /** Time without activity after which the user counts as away, in seconds. */
        idleTimeoutSeconds?:
          /** Time without activity after which the user counts as away, in seconds. */
          | number
          | null;
        /** Drafts summaries ahead. */
        speculative?:
          /** Drafts summaries ahead. */
          | Speculative
          | null;
        /** Time without progress of an answer after which the next candidate is asked, in seconds. */
        stallSeconds?:
          /** Time without progress of an answer after which the next candidate is asked, in seconds. */
          | number
          | null;
        /** The longest automatic maintenance, in seconds. */
        deadlineSeconds?:
          /** The longest automatic maintenance, in seconds. */
          | number
          | null;
        /** The most summaries at the same time, over all sessions. */
        maxConcurrent?:
          /** The most summaries at the same time, over all sessions. */
          | number
          | null;
        /**
         * The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic
         * summaries are
         * extracted without a model. The file of a project can only make it smaller.
         */
        maxTokensPerHour?:
          /**
           * The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic
           * summaries are
           * extracted without a model. The file of a project can only make it smaller.
           */
          | number
          | null;
        /** `"provider/id"` of each summarizer, in order. */
        models?:
          /** `"provider/id"` of each summarizer, in order. */
          | string[]
          | null;
        /** The layout of a compacted context. */
        style?:
          /** The layout of a compacted context. */
          | Style
          | null;
        /**
         * Ends the frame of a summary with a line that names the file of the session, where the whole conversation is.
         */
        transcriptHint?:
          /**
           * Ends the frame of a summary with a line that names the file of the session, where the whole conversation
           * is.
           */
          | boolean
          | null;
        /**
         * Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
         * instructions
         * that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most
         * 5,000
         * tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
         */
        rehydrate?:
          /**
           * Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
           * instructions
           * that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at
           * most 5,000
           * tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
           */
          | boolean
          | null;
        /**
         * The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose
         * context is over
         * `coldResumeTokens`.
         */
        coldResume?:
          /**
           * The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose
           * context is over
           * `coldResumeTokens`.
           */
          | ColdResumption
          | null;
        /** Size over which a context with a cold cache is large, in tokens; −1: half of the threshold. */
        coldResumeTokens?:
          /** Size over which a context with a cold cache is large, in tokens; −1: half of the threshold. */
          | number
          | null;
      }
    | null;
  /** Pruning of old tool results. */
  prune?:
    | {
        /** Tokens of the newest results that stay. */
        protectTokens?:
          /** Tokens of the newest results that stay. */
          | number
          | null;
        /** The least tokens for which results are pruned. */
        minimumSavings?:
          /** The least tokens for which results are pruned. */
          | number
          | null;
        /**
         * Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that
         * reads a file
         * (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A
         * read of a file
         * that a newer one repeats is pruned all the same.
         */
        protectedTools?:
          /**
           * Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool
           * that reads a file
           * (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A
           * read of a file
           * that a newer one repeats is pruned all the same.
           */
          | string[]
          | null;
        /**
         * Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and
         * at least
         * as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
         */
        cacheSeconds?:
          /**
           * Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and
           * at least
           * as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
           */
          | number
          | null;
      }
    | null;
  /** The tools of agents. */
  tools?:
    | {
        /** Tools that touch files. They come before the built-in ones of common agents. */
        files?:
          /** Tools that touch files. They come before the built-in ones of common agents. */
          | FileTool[]
          | null;
        /** Tools that hold the todo list. They come before the built-in ones. */
        todo?:
          /** Tools that hold the todo list. They come before the built-in ones. */
          | string[]
          | null;
        /** Tools that load a skill, beside the built-in ones. */
        skills?:
          /** Tools that load a skill, beside the built-in ones. */
          | string[]
          | null;
      }
    | null;
  /** Summaries of branches that are left. */
  branchSummary?:
    | {
        /** The default of `summarize`. */
        enabled?:
          /** The default of `summarize`. */
          | boolean
          | null;
        /** Tokens that stay free in the summarizer's window. */
        reserveTokens?:
          /** Tokens that stay free in the summarizer's window. */
          | number
          | null;
      }
    | null;
  /** Promotion to a larger model instead of a compaction. */
  contextPromotion?:
    | {
        /** Switches it on. */
        enabled?:
          /** Switches it on. */
          | boolean
          | null;
      }
    | null;
  /** Retries of transient errors. */
  retry?:
    | {
        /** Switches it on. */
        enabled?:
          /** Switches it on. */
          | boolean
          | null;
        /** The most retries of a request. */
        maxRetries?:
          /** The most retries of a request. */
          | number
          | null;
        /** The first delay, in milliseconds. */
        baseDelayMs?:
          /** The first delay, in milliseconds. */
          | number
          | null;
        /** The longest delay, in milliseconds. */
        maxDelayMs?:
          /** The longest delay, in milliseconds. */
          | number
          | null;
      }
    | null;
  /** Redaction of secrets in summaries. */
  redaction?:
    | {
        /** Switches it on. */
        enabled?:
          /** Switches it on. */
          | boolean
          | null;
      }
    | null;
  /** Estimation of tokens. */
  tokens?:
    | {
        /** The estimator. */
        estimator?:
          /** The estimator. */
          | EstimatorSetting
          | null;
        /** Learns the window that a provider names in an error. */
        learnWindow?:
          /** Learns the window that a provider names in an error. */
          | boolean
          | null;
      }
    | null;
  /** Folders whose project settings are trusted. */
  trustedProjects?:
    /** Folders whose project settings are trusted. */
    | string[]
    | null;
  /**
   * The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
   * daemon
   * starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
   */
  store?:
    /**
     * The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
     * daemon
     * starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
     */
    | Secret | null
    | null;
  /**
   * A command whose first line of output is the password of the store: the program, then its arguments. No shell reads
   * it. It
   * runs for each connection.
   */
  storePasswordCommand?:
    /**
     * A command whose first line of output is the password of the store: the program, then its arguments. No shell
     * reads it. It
     * runs for each connection.
     */
    | string[] | null
    | null;
}

/** Params of `hooks/set`. */
export interface HooksSetParams {
  /** The hooks that the client answers, in place of those registered before. An empty list removes the registration. */
  events: HookEvent[];
  /**
   * Sessions, open or not. They use this registration instead of the default one. Default: the default registration,
   * which is for every session without one of its own.
   */
  sessionIds?: SessionIds | null;
  /** Time for an answer. Default: 30,000. */
  timeoutMs?: HookTimeout | null;
  /** After a hook that failed. Default: `continue`. */
  onFailure?: OnFailure | null;
}

/** The sessions of a registration. */
export type SessionIds = SessionId[];

/** Params of `tools/set`. */
export interface ToolsSetParams {
  /** Id of the session. Default: all sessions that begin later. */
  sessionId?: SessionId | null;
  /** The tools. Each has a schema of its arguments. */
  tools: Tools;
}

/** Params of `$/cancelRequest`. */
export interface CancelLspParams {
  /** Id of the request. */
  id: unknown;
}

/** Params of `$/cancel_request`. */
export interface CancelAcpParams {
  /** Id of the request. */
  requestId: unknown;
}

/** Params of `session/event`. */
export interface Envelope {
  /** Session of the event. */
  sessionId: SessionId;
  /** Run of the daemon. */
  epoch: string;
  /** Number of the event, without gaps within a session and epoch. */
  seq: number;
  /** Time of the event. */
  ts: string;
  /** Whether the event is retained for `session/subscribe`. */
  durable: boolean;
  /** Entry that the event is about. */
  entryId?: EntryId | null;
  /** Operation that the event is about. */
  operationId?: OperationId | null;
  /** Turn that the event is about. */
  turnId?: OperationId | null;
  /** The event. */
  event: SessionEvent;
}

/** Event of a session. */
export type SessionEvent =
  /** An entry is on disk. An entry that exceeds a frame is announced by its type; its id is in the envelope. */
  | {
      type: "entry_appended";
      /** The entry. */
      entry?: Entry | null;
      /** Type of an entry that is not sent along. */
      entryType?: string | null;
    }
  /** A compaction has started. */
  | {
      type: "compaction_start";
      /** Reason of the compaction. */
      reason: CompactionReason;
      /** Strategy of the compaction. */
      strategy: CompactionStrategy;
      /** Size of the context. */
      tokensBefore: number;
      /** Size of the window. */
      contextWindow: number;
      /** Size above which the context is compacted. */
      thresholdTokens: number;
      /** Whether the turn is repeated afterwards. */
      willRetry: boolean;
    }
  /** Progress of a compaction. Steps of a stage and the share never fall, also where another model begins anew. */
  | {
      type: "compaction_progress";
      /** Current stage. */
      stage: Stage;
      /** Finished steps of the stage. While the summary is made, its requests. */
      done: number;
      /** Steps of the stage. */
      total: number;
      /** Part of the whole compaction that is done, from 0 to 1. */
      share: number;
      /** Model that writes the summary now. */
      model?: ModelRef | null;
      /**
       * Time until the summary is made, in milliseconds, from the time of the requests before. Absent before the first
       * one is
       * done.
       */
      remainingMs?: number | null;
    }
  /** A piece of a summary that is being written. */
  | {
      type: "summary_chunk";
      /** Part of the summary. */
      source: ChunkSource;
      /**
       * Number of the chunk of the conversation that the text adds, from 1. Each chunk rewrites the text of the
       * source, so
       * the newest `part` and `attempt` hold the whole text.
       */
      part: number;
      /** Number of the try of this chunk, from 1. Pieces of earlier tries are void. */
      attempt: number;
      /** Text of the piece. */
      text: string;
    }
  /** A model request failed and is sent again after a delay. */
  | {
      type: "retry_start";
      /** Purpose of the request. */
      source: RetrySource;
      /** Number of the retry, from 1. */
      attempt: number;
      /** Largest number of retries. */
      maxAttempts: number;
      /** Delay, in milliseconds. */
      delayMs: number;
      /** Error of the failed request. */
      error: ErrorData;
      /** The same error for a person. */
      errorMessage: string;
    }
  /** Result of a retry. Each `retry_start` has exactly one. */
  | {
      type: "retry_end";
      /** Purpose of the request. */
      source: RetrySource;
      /** Whether the request was answered. */
      success: boolean;
      /** Number of the retry. */
      attempt: number;
      /** Error of a failed retry. */
      error?: ErrorData | null;
      /** The same error for a person. */
      errorMessage?: string | null;
    }
  /** A compaction has ended. Each `compaction_start` has exactly one. */
  | {
      type: "compaction_end";
      /** Reason of the compaction. */
      reason: CompactionReason;
      /** Outcome. */
      outcome: Outcome;
      /** The compaction that was written. */
      result?: CompactionResult | null;
      /** Session that the summary begins, or that continues after a handoff. */
      newSessionId?: SessionId | null;
      /** Error of a failed compaction. */
      error?: ErrorData | null;
      /** The same error for a person. */
      errorMessage?: string | null;
      /** Reason of a skipped compaction. */
      skippedReason?: WhyNothing | null;
      /** Whether the turn is repeated now. */
      willRetry: boolean;
      /** Whether the session continues without input. */
      willContinue: boolean;
      /** Duration, in milliseconds. */
      durationMs: number;
      /** Fullness of the context. */
      usage: Usage;
    }
  /** A turn that failed is being repaired. The compactions of the recovery have its id. */
  | {
      type: "recovery_start";
      /** Reason of the recovery. */
      reason: RecoveryReason;
      /** The answer that leaves the context. */
      removedEntryId?: EntryId | null;
      /** Remedy. */
      action: RecoveryAction;
    }
  /** The end of a recovery. */
  | {
      type: "recovery_end";
      /** Outcome. */
      outcome: RecoveryOutcome;
      /** Whether the turn is to be repeated with the context as it is now. */
      willRetry: boolean;
      /** Error of a failed recovery. */
      error?: ErrorData | null;
      /** The same error for a person. */
      errorMessage?: string | null;
    }
  /** Idle maintenance has started. The status of the session stays `idle`, and the compaction inside has its id. */
  | {
      type: "idle_start";
      /** Size of the context. */
      contextTokens: number;
      /** Time since the last activity, in seconds. */
      idleSeconds: number;
    }
  /**
   * Idle maintenance has ended. Each `idle_start` has exactly one, after the `compaction_end`, which names the error
   * of
   * one that failed. Activity cancels it.
   */
  | {
      type: "idle_end";
      /** Outcome. */
      outcome: Outcome;
      /** Reason of skipped maintenance, as in `compaction_end`. */
      skippedReason?: WhyNothing | null;
    }
  /** The summary of a branch has started. The session moves to another branch after it. */
  | {
      type: "branch_summary_start";
      /** Leaf of the branch that is left. */
      oldLeafId: EntryId | null;
      /** Entry to which the session moves. */
      targetEntryId: EntryId;
      /** Newest entry of both branches. */
      commonAncestorId: EntryId | null;
      /** Number of entries that are left. */
      entryCount: number;
    }
  /**
   * The summary of a branch has ended. Each `branch_summary_start` has exactly one. Nothing has changed, if it did not
   * complete.
   */
  | {
      type: "branch_summary_end";
      /** Outcome. */
      outcome: Outcome;
      /** Entry with the summary. */
      summaryEntryId?: EntryId | null;
      /** Error of a failed summary. */
      error?: ErrorData | null;
      /** The same error for a person. */
      errorMessage?: string | null;
    }
  /** The session has moved to another branch. */
  | {
      type: "tree_changed";
      /** Leaf before. */
      oldLeafId: EntryId | null;
      /** Leaf now. */
      newLeafId: EntryId | null;
      /** Entry with the summary of the branch that was left. */
      summaryEntryId?: EntryId | null;
      /** Label of the entry with the summary, or of the target. */
      label?: string | null;
    }
  /** A handoff has started. */
  | {
      type: "handoff_start";
      /** Goal of the new session. */
      goal?: string | null;
    }
  /** A handoff has ended. Each `handoff_start` has exactly one. Without `newSessionId` there is no new session. */
  | {
      type: "handoff_end";
      /** Outcome. */
      outcome: Outcome;
      /** The session that goes on. It is open. */
      newSessionId?: SessionId | null;
      /** Error of a failed handoff. */
      error?: ErrorData | null;
      /** The same error for a person. */
      errorMessage?: string | null;
    }
  /**
   * Another session goes on in the place of this one, which stays as it is. It is the last event of a handoff, also
   * after
   * `settled`.
   */
  | {
      type: "session_replaced";
      /** The session that goes on. */
      newSessionId: SessionId;
      /** Reason. */
      reason: ReplacementReason;
    }
  /** The session has another model. */
  | {
      type: "model_changed";
      /** The model before. */
      from: ModelRef | null;
      /** The model now. */
      to: ModelRef;
      /** Reason of the change. */
      reason: ModelChangeReason;
    }
  /** The fullness of the context has changed. */
  | {
      type: "usage_updated";
      /** The whole value. */
      usage: Usage;
    }
  /** The activity of the session has changed. */
  | {
      type: "status_changed";
      /** The whole value. */
      status: Status;
    }
  /** Old tool results were replaced by one line each. */
  | {
      type: "pruned";
      /** Entries of these results. */
      entryIds: EntryId[];
      /** Estimated saving, in tokens. */
      tokensSaved: number;
      /** Reason of the pruning. */
      why: string;
    }
  /** A hook of the client is called. */
  | {
      type: "hook_start";
      /** Hook. */
      hook: HookEvent;
    }
  /** A hook has ended. Each `hook_start` has exactly one. */
  | {
      type: "hook_end";
      /** Hook. */
      hook: HookEvent;
      /** Outcome. */
      outcome: HookOutcome;
      /** Time that it took, in milliseconds. */
      durationMs: number;
      /** Reason of a cancel or of an error. */
      errorMessage?: string | null;
    }
  /** The index is complete. Requests that need it no longer wait. */
  | {
      type: "index_ready";
      /** Number of entries. */
      entryCount: number;
      /** Title of the session. */
      title: string | null;
      /** Faults of the file that `session/load` has not reported. */
      repairs: Repair[];
    }
  /** A turn has started. Its id is the `turnId` of the envelope. */
  | {
      type: "turn_start";
    }
  /** The end of a turn. Each `turn_start` has exactly one. */
  | {
      type: "turn_end";
      /** Outcome: `completed`, `failed` or `cancelled`. */
      outcome: Outcome;
      /** The stop reason of the last answer; null for a turn without one. */
      stopReason: string | null;
      /** Fullness of the context. */
      usage: Usage;
      /** Error of a failed turn. */
      error?: ErrorData | null;
      /** The same error for a person. */
      errorMessage?: string | null;
    }
  /** A piece of the answer that a model is writing. The entry after it has the whole answer. */
  | {
      type: "message_delta";
      /** Place of the content block in the message. */
      contentIndex: number;
      /** Kind of the block. */
      kind: DeltaKind;
      /** The piece. */
      text: string;
    }
  /** The client is asked to execute a tool. */
  | {
      type: "tool_start";
      /** Id of the call. */
      toolCallId: CallId;
      /** Name of the tool. */
      name: string;
      /** Arguments of the call. */
      arguments: CallArguments;
    }
  /** A call has its result. Each `tool_start` has exactly one. */
  | {
      type: "tool_end";
      /** Id of the call. */
      toolCallId: CallId;
      /** Whether the tool failed. */
      isError: boolean;
    }
  /** The queue of messages has changed. */
  | {
      type: "queue_changed";
      /** The whole queue. */
      queue: Queue;
    }
  /** The settings in force for the session have changed. */
  | {
      type: "settings_changed";
      /** All settings. */
      settings: Settings;
      /** Source of each value that is not a default, by its dotted key. */
      sources: Record<string, Source>;
    }
  /** A message for a person. */
  | {
      type: "notice";
      /** Severity. */
      severity: Severity;
      /** Its subject, for programs. */
      code: NoticeCode;
      /** Message in one line. */
      title: string;
      /** Further details. */
      detail?: string | null;
    }
  /** Nothing runs without new input. */
  | {
      type: "settled";
      /** Whether the last operation was cancelled. */
      aborted: boolean;
    };

/** Reason of a compaction. */
export type CompactionReason =
  /** A request of the client. */
  | "manual"
  /** The context exceeds the threshold. */
  | "threshold"
  /** The provider rejected the context as too long. */
  | "overflow"
  /** The answer was cut off. */
  | "incomplete"
  /** The session was idle. */
  | "idle"
  /** The new model has a smaller window. */
  | "model_switch";

/** Strategy of a compaction. */
export type CompactionStrategy =
  /** The older messages are replaced by a summary. */
  | "context_full"
  /** A new session continues from a document. */
  | "handoff";

/** Stage of a compaction. */
export type Stage =
  /** Old tool results are cut. */
  | "pruning"
  /** A hook of the client is called. */
  | "hook"
  /** The summary is written. */
  | "summarizing"
  /** The resulting context is measured. */
  | "checking"
  /** The compaction is written to the file. */
  | "writing";

/** Part of a summary. */
export type ChunkSource =
  /** Whole turns. */
  | "history"
  /** Beginning of a turn whose end is kept. */
  | "turn_prefix"
  /** Summary of a branch. */
  | "branch"
  /** Document of a handoff. */
  | "handoff";

/** Purpose of a model request. */
export type RetrySource =
  /** A turn. */
  | "turn"
  /** Summary of whole turns. */
  | "history"
  /** Summary of the beginning of a turn. */
  | "turn_prefix"
  /** Two sentences for a person. */
  | "short_summary"
  /** Summary of a branch. */
  | "branch"
  /** Document of a handoff. */
  | "handoff";

/** Reason of a recovery. */
export type RecoveryReason =
  /** The provider rejected the context as too long. */
  | "overflow"
  /** The answer was cut off. */
  | "incomplete";

/** Remedy of a recovery. */
export type RecoveryAction =
  /** The session moves to a larger model. */
  | "promote_model"
  /** The context is compacted. */
  | "compact"
  /** A new session continues from a document. */
  | "handoff"
  /** The turn is repeated as it is. */
  | "retry";

/** Outcome of a recovery. */
export type RecoveryOutcome =
  /** There is a context to repeat the turn with. */
  | "recovered"
  /** There is none. */
  | "failed"
  /** The recovery was cancelled. */
  | "cancelled";

/** Reason for which another session goes on. */
export type ReplacementReason = "handoff";

/** Reason of a change of the model. */
export type ModelChangeReason =
  /** The context needs a larger window. */
  | "promotion"
  /** The model before cannot be asked. */
  | "fallback"
  /** A request of the client. */
  | "user"
  /** The session goes on at an entry where another model was in force. */
  | "restore";

/** Outcome of a hook. */
export type HookOutcome =
  /** The operation goes on. */
  | "ok"
  /** The hook cancelled the operation, or the operation ended before the answer. */
  | "cancelled"
  /** The operation takes the summary of the hook. */
  | "replaced"
  /** The client did not answer in time. */
  | "timeout"
  /**
   * The client answered with an error, or with a summary that is not used. Also where the process that asked ended
   * before
   * the answer.
   */
  | "error";

/** Kind of a content block. */
export type DeltaKind =
  /** Text. */
  | "text"
  /** Reasoning. */
  | "thinking"
  /** Arguments of a tool call, as JSON. */
  | "tool_call";

/**
 * A tool call, as the model named it. Not unique within a session: some models number their calls from zero each time.
 */
export type CallId = string;

/** Severity of a notice. */
export type Severity =
  /** Information. */
  | "info"
  /** A problem that needs attention. */
  | "warning"
  /** A failure that needs action. */
  | "error";

/**
 * The subject of a notice, for programs. The names are stable. A later version may add some, so a reader takes a
 * notice with another code
 * for one that it has no action for.
 */
export type NoticeCode =
  /** Reported token counts cannot be true. The estimate counts in their place. */
  | "usage_not_believed"
  /** A provider taught a window that is smaller than the one that the host, a setting or the catalog names. */
  | "window_learned"
  /** A refusal states a limit below a request that the same server took. The limit does not count. */
  | "window_doubted"
  /**
   * The file of learned windows cannot be read, or cannot be written. The windows of earlier runs are unknown, or
   * those of this
   * run are forgotten at its end.
   */
  | "windows_not_kept"
  /** The prompt cache is cold and the context is large: the next request pays for all of it. */
  | "cold_resume"
  /** The output limit of the next requests is lower, because a provider refused a larger one. */
  | "output_limited"
  /** The provider seems to have cut the prompt. */
  | "prompt_cut"
  /** An answer reached the output limit. Its text stays in the context. */
  | "answer_cut_off"
  /**
   * A compaction cut messages that no model has read, because they have no room in the window. The session keeps them
   * whole.
   */
  | "messages_shortened"
  /** A summary lost details: it is one of many, or no model wrote it. */
  | "quality_may_degrade"
  /** Summaries ahead of the threshold pause, because some came to nothing. */
  | "speculation_rests"
  /** Automatic compaction, which rested after an undo, acts again. */
  | "auto_compaction_resumes"
  /** Automatic maintenance spent the tokens of an hour. Its summaries are extracted. */
  | "token_ceiling_reached"
  /** The strategy is `handoff`, and automatic compaction summarizes in place. */
  | "handoff_not_automatic"
  /** A handoff became a compaction, because no model wrote a document. */
  | "handoff_compacted"
  /** No model wrote the document of a handoff. It is extracted. */
  | "document_extracted"
  /** A handoff failed. */
  | "handoff_failed"
  /** A navigation failed. */
  | "navigation_failed"
  /** No model wrote the summary of a branch. It is extracted. */
  | "branch_summary_extracted"
  /** The summary of a branch has no room in the window. */
  | "branch_not_summarized"
  /** A reference failed or was cancelled. */
  | "reference_failed"
  /** No model wrote the extract of a reference. It consists of passages. */
  | "reference_extracted"
  /** An operation of another version was interrupted. */
  | "operation_interrupted"
  /** Another program wrote to the session at the same time, and some messages are a branch of their own. */
  | "session_branched"
  /** The file of the session was changed and cannot be read on. */
  | "file_changed"
  /** The costs of model requests could not be stored. */
  | "costs_not_recorded"
  /** The start or the end of the wait for the end of a turn could not be stored. */
  | "after_turn_not_recorded"
  /** Smaller messages could not be stored, so the context is as large as before. */
  | "context_not_reduced"
  /** The removal of a failed answer could not be stored. */
  | "failed_answer_kept"
  /** The store does not answer. Appends are refused until it does. */
  | "store_away"
  /** The store answers again. */
  | "store_back"
  /** New settings contradict those of the session. */
  | "settings_conflict"
  /** A settings file cannot be read. */
  | "settings_broken"
  /** A setting has a wrong value. */
  | "setting_invalid"
  /** A setting is out of its range. */
  | "setting_clamped"
  /** A setting is not known. */
  | "setting_unknown"
  /** A project sets what only a trusted project may set. */
  | "setting_untrusted"
  /** A prompt file cannot be used. */
  | "prompt_invalid"
  /** A prompt file has a name that no prompt has. */
  | "prompt_unknown"
  /** A project has prompts, which only a trusted project may have. */
  | "prompt_untrusted"
  /** A part of `capabilities.hooks` is wrong. */
  | "hooks_invalid"
  /** A request had params that its method does not know. */
  | "params_ignored"
  /** Notifications of the client were dropped. */
  | "notifications_dropped"
  /** The recording of the connection has ended. */
  | "recording_ended"
  /** The trace of the connection has ended. */
  | "trace_ended";

/** Params of `session/resync_required`. */
export interface ResyncParams {
  /** Session whose events were dropped. */
  sessionId: SessionId;
  /** Run of the daemon. */
  epoch: string;
  /** Number of the session's newest event. */
  lastSeq: number;
  /** Number of dropped events. */
  dropped: number;
}

/** Params of `sessions_changed`. */
export interface SessionsChangedParams {
  /** Files that were created, deleted, or first written by another program. */
  paths: string[];
}

/** Params of `notice`. */
export interface NoticeParams {
  /** Severity. */
  severity: Severity;
  /** Its subject, for programs. */
  code: NoticeCode;
  /** Message in one line. */
  title: string;
  /** Further details. */
  detail?: string | null;
}

/** Params of `hook/session_before_compact`. */
export interface BeforeCompactParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the operation. */
  operationId: OperationId;
  /** Reason of the compaction. */
  reason: CompactionReason;
  /** Whether the turn is repeated after the compaction. */
  willRetry: boolean;
  /** Instructions of the request: topics to keep above all. */
  instructions?: string | null;
  /** Plan of the compaction. */
  preparation: HookPreparation;
  /** Time after which the answer is ignored, in milliseconds. */
  deadlineMs: number | null;
}

/**
 * Plan of a compaction, as a hook receives it. `session/entries` and `session/entry` return the messages, also during
 * the
 * hook.
 */
export interface HookPreparation {
  /** First entry that would be kept verbatim; null where none would. */
  firstKeptEntryId: EntryId | null;
  /** Size of the context now. */
  tokensBefore: number;
  /** Whether the cut is inside a turn. */
  isSplitTurn: boolean;
  /** Summary in force, which the new one has to cover. */
  previousSummary: string | null;
  /** Messages in whole turns that would be summarized. */
  messagesToSummarize: MessageRange;
  /** Messages that would be summarized from a turn whose end is kept. */
  turnPrefixMessages: MessageRange;
  /** Files of the summarized messages. */
  fileOps: FileOps;
  /** Data that the previous compaction carries for other programs and hooks. */
  previousPreserveData?: AnyObject | null;
  /** Settings in force. */
  settings: CompactionSettings;
}

/** Messages that follow each other on the path. */
export interface MessageRange {
  /** First message; null where there is none. */
  firstEntryId: EntryId | null;
  /** Last message; null where there is none. */
  lastEntryId: EntryId | null;
  /** Number of messages. */
  count: number;
}

/** Answer of `hook/session_before_compact`. Null is `continue`. */
export type BeforeCompactAnswer =
  /** The compaction goes on. */
  | {
      action: "continue";
    }
  /** The compaction ends with the outcome `cancelled`. */
  | {
      action: "cancel";
      /** Reason, for the end event of the hook. */
      reason?: string | null;
    }
  /** The compaction takes this summary. No model is asked. */
  | {
      action: "replace";
      /** The compaction. */
      compaction: SuppliedCompaction;
    };

/** A compaction that a hook supplies. */
export interface SuppliedCompaction {
  /** Summary of everything before the first kept entry. */
  summary: string;
  /** Two sentences for a person. */
  shortSummary?: string | null;
  /** First entry that stays verbatim. Default: the one of the preparation. */
  firstKeptEntryId?: EntryId | null;
  /** Any JSON. It is stored as it is and never read for files. */
  details?: unknown;
  /** Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available. */
  preserveData?: AnyObject | null;
}

/** Params of `hook/session_compacting`. */
export interface CompactingParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the operation. */
  operationId: OperationId;
  /** Reason of the compaction. */
  reason: CompactionReason;
  /** Data that the previous compaction carries for other programs and hooks. */
  previousPreserveData?: AnyObject | null;
  /** Time after which the answer is ignored, in milliseconds. */
  deadlineMs: number | null;
}

/** Answer of `hook/session_compacting`. Null changes nothing. */
export interface CompactingAnswer {
  /** Prompt for the summary. Default: the prompt in force. */
  prompt?: string | null;
  /** Lines beside the conversation. Every request for the summary has them. */
  context?: string[] | null;
  /** Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available. */
  preserveData?: AnyObject | null;
}

/** Params of `hook/session_compact_draft`. */
export interface CompactDraftParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the operation. */
  operationId: OperationId;
  /** Reason of the compaction. */
  reason: CompactionReason;
  /** The draft. */
  draft: ShownDraft;
  /** Time after which the answer is ignored, in milliseconds. */
  deadlineMs: number | null;
}

/** Params of `hook/session_before_tree`. */
export interface BeforeTreeParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the operation. */
  operationId: OperationId;
  /** Entry to which the leaf moves. */
  targetEntryId: EntryId;
  /** Leaf now; null for a session without entries. */
  oldLeafId: EntryId | null;
  /** Newest entry of both branches; null where they have none in common. */
  commonAncestorId: EntryId | null;
  /** Entries of the branch that is left, after the common ancestor. */
  entriesToSummarize: MessageRange;
  /** Whether a summary of the branch was asked for. A summary of the answer is used only then. */
  userWantsSummary: boolean;
  /** Instructions of the request: topics to keep above all. */
  instructions?: string | null;
  /** Time after which the answer is ignored, in milliseconds. */
  deadlineMs: number | null;
}

/** Answer of `hook/session_before_tree`. Null is `continue`. */
export type BeforeTreeAnswer =
  /** The leaf moves. */
  | {
      action: "continue";
      /** Instructions for the summary. Default: those of the request. */
      instructions?: string | null;
      /** Whether the instructions take the place of the prompt. Default: the choice of the request. */
      replaceInstructions?: boolean | null;
      /** Label of the entry with the summary. Default: that of the request. */
      label?: string | null;
    }
  /** The leaf stays. */
  | {
      action: "cancel";
      /** Reason, for the end event of the hook. */
      reason?: string | null;
    }
  /** The leaf moves with this summary. No model is asked. */
  | {
      action: "replace";
      /** The summary. */
      summary: SuppliedBranchSummary;
      /** Label of the entry with the summary. Default: that of the request. */
      label?: string | null;
    };

/** The summary of a branch that a hook supplies. */
export interface SuppliedBranchSummary {
  /** Summary of the branch that is left. */
  summary: string;
  /** Any JSON. It is stored as it is and never read for files. */
  details?: unknown;
}

/** Params of `tool/call`. */
export interface ToolCallParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the turn. */
  turnId: OperationId;
  /** Id of the call. */
  toolCallId: CallId;
  /** Name of the tool. */
  name: string;
  /** Arguments of the call. */
  arguments: CallArguments;
  /** Null: a tool may take any time. The request is cancelled with its turn. */
  deadlineMs: number | null;
}

/** Result of `tool/call`. */
export interface ToolCallAnswer {
  /** Content blocks, or a text. */
  content: PromptMessage;
  /** Whether the tool failed. */
  isError?: boolean | null;
}

/** Params of `llm/complete`. */
export interface LlmCompleteParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the operation; absent for a turn. */
  operationId?: OperationId | null;
  /** Id of the turn; absent for any other purpose. */
  turnId?: OperationId | null;
  /** Purpose of the answer. */
  purpose: Purpose;
  /** System prompt. */
  system: string;
  /** Messages, in pi's form. */
  messages: Message[];
  /** Tools of the conversation. The model may call them in a turn, and in nothing else. */
  tools?: ToolDefinition[] | null;
  /** Largest answer, in tokens. */
  maxTokens: number;
  /** Model to ask. Default: the client's choice. */
  model?: ModelRef | null;
  /** Time after which the answer is ignored, in milliseconds; null for no limit. */
  deadlineMs: number | null;
}

/** Purpose of a model request. */
export type Purpose =
  /** Continuation of the conversation. */
  | "turn"
  /** Summary of whole turns. */
  | "compaction"
  /** Summary of the beginning of a turn. */
  | "turn_prefix"
  /** Two sentences for a person. */
  | "short_summary"
  /** Summary of a branch. */
  | "branch_summary"
  /** Document for another session. */
  | "handoff";

/** A tool in the form of this protocol. */
export interface ToolDefinition {
  /** Name of the tool. */
  name: string;
  /** Description for the model. */
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema?: Record<string, unknown> | null;
  [key: string]: unknown;
}

/** Result of `llm/complete`. */
export interface LlmCompleteAnswer {
  /** An assistant message with `stopReason`, and with `usage` where it is known. */
  message: AssistantMessage;
}

/** Error of a response. */
export interface ErrorObject {
  /** JSON-RPC's error number. */
  code: number;
  /** Cause and next step, for a person. */
  message: string;
  /** Fields for a program. */
  data: ErrorData;
}

/** The event of one type: `EventOf<"compaction_end">`. */
export type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

/** What `error.data.code` may be. */
export type ErrorCode = ErrorData["code"];

/** The `error.data` of one code: `ErrorOf<"busy">`. */
export type ErrorOf<C extends ErrorCode> = Extract<ErrorData, { code: C }>;

/** An id of a request; it is echoed with its type. */
export type RequestId = string | number;

/** A request. */
export interface Request<M extends keyof Methods = keyof Methods> {
  jsonrpc?: "2.0";
  id: RequestId;
  method: M;
  params: Methods[M]["params"];
}

/** A notification to the daemon. */
export interface ClientNotification<M extends keyof ClientNotifications = keyof ClientNotifications> {
  jsonrpc?: "2.0";
  method: M;
  params: ClientNotifications[M]["params"];
}

/** The answer to a request: told from the others by its `id`, good from bad by `error`. */
export type Answer<M extends keyof Methods = keyof Methods> =
  | { jsonrpc: "2.0"; id: RequestId; result: Methods[M]["result"]; error?: undefined }
  | { jsonrpc: "2.0"; id: RequestId | null; error: ErrorObject; result?: undefined };

/** What the daemon sends unasked: told apart by `method`. */
export type ServerNotification = {
  [M in keyof ServerNotifications]: {
    jsonrpc: "2.0";
    id?: undefined;
    method: M;
    params: ServerNotifications[M]["params"];
  };
}[keyof ServerNotifications];

/** Any line of the daemon's; the answers to a batch come as an array. */
export type ServerFrame = Answer | Answer[] | ServerNotification;
