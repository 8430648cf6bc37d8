// The protocol of abridged, version 1. Made from its types by `abridged schema --out`; do not edit.
//
// Unknown fields may come with every object, and unknown values of a union from a newer daemon: be lenient.
// `_meta` is free on all params, results and events.

/** What a client may ask for: method, params, result. */
export interface Methods {
  /** Begins a connection. Nothing else is answered before it. */
  "initialize": { params: InitializeParams; result: InitializeAnswer };
  /** Ends the work: running operations are cancelled with their end events. `exit` follows. */
  "shutdown": { params: Nothing; result: null };
  /** Answers at once, whatever runs. */
  "ping": { params: Nothing; result: Empty };
  /** This document. */
  "rpc.discover": { params: Nothing; result: AnyJson };
  /** Makes a session. */
  "session/new": { params: NewParams; result: SessionAnswer };
  /** Opens a session where it lies: pi's files of every version, and oh-my-pi's. */
  "session/load": { params: LoadParams; result: LoadAnswer };
  /** The sessions there are, newest first, without opening any. */
  "session/list": { params: ListParams; result: ListAnswer };
  /** Closes a session. What runs in it is cancelled with its end event. */
  "session/close": { params: SessionParams; result: null };
  /** Deletes a session with its file. What runs in it is cancelled with its end event. */
  "session/delete": { params: SessionParams; result: null };
  /** A session, its queue and what runs in it. */
  "session/status": { params: SessionParams; result: StatusAnswer };
  /** Reports what happened in an agent loop of the client's own. On disk when it is answered. */
  "session/append": { params: AppendParams; result: AppendAnswer };
  /** Exactly what a model may be sent now. */
  "session/context": { params: ContextParams; result: ContextAnswer };
  /** The entries of a session, page by page. An entry id is a cursor that lasts. */
  "session/entries": { params: EntriesParams; result: EntriesAnswer };
  /** One entry as it was written, whatever was compacted or pruned since. */
  "session/entry": { params: EntryParams; result: EntryAnswer };
  /** Finds entries by a text they have, over the whole tree, compacted history too. Newest first. */
  "session/search": { params: SearchParams; result: SearchAnswer };
  /** Every entry of a session as a tree, page by page. */
  "session/tree": { params: TreeParams; result: TreeAnswer };
  /** How full the context is, and why it is or is not compacted now. */
  "session/usage": { params: SessionParams; result: UsageAnswer };
  /** Stops what runs. Answered at once, never queued behind it. */
  "session/cancel": { params: CancelParams; result: CancelAnswer };
  /** Condenses the older part of the context. With `dryRun` it only says what it would do. */
  "session/compact": { params: CompactParams; result: CompactAnswer };
  /** Takes back the compaction in force. The context is again what it would be without it, what came later included. */
  "session/undo_compaction": { params: SessionParams; result: UndoAnswer };
  /** Cuts old tool results in the context. The entries stay what they are. */
  "session/prune": { params: PruneParams; result: PruneAnswer };
  /** Keeps an entry, or a text, word for word through every compaction. */
  "session/pin": { params: PinParams; result: EntryIdAnswer };
  /** Takes a pin away. */
  "session/unpin": { params: PinParams; result: EntryIdAnswer };
  /** Gives an entry a name, or takes it away. */
  "session/label": { params: LabelParams; result: EntryIdAnswer };
  /** Changes what is stored with the session: model, system prompt, tools, title. */
  "session/configure": { params: ConfigureParams; result: ConfigureAnswer };
  /** Takes out what waits to be sent to the model. */
  "session/clear_queue": { params: SessionParams; result: Queue };
  /** Writes the session to a file for somewhere else. */
  "session/export": { params: ExportParams; result: ExportAnswer };
  /** Wants a session's events from here on, and those that were missed. Opening a session does this by itself. */
  "session/subscribe": { params: SubscribeParams; result: SubscribeAnswer };
  /** Wants no more events of a session. They are kept all the same, for a later `session/subscribe`. */
  "session/unsubscribe": { params: SessionParams; result: null };
  /** Which models there are and what is known of each, with who said so. */
  "models/list": { params: ModelsListParams; result: ModelsListAnswer };
  /** The settings in force, each with its source. */
  "settings/get": { params: SettingsGetParams; result: Sourced };
  /** Changes settings by a patch in which null takes a value out. Checked before anything is written. */
  "settings/set": { params: SettingsSetParams; result: Sourced };
}

/** What a client may say without being answered. */
export interface ClientNotifications {
  /** Accepted after `initialize`, and not required. */
  "initialized": { params: Nothing };
  /** Ends the process. */
  "exit": { params: Nothing };
  /** Takes a request back, in the words of LSP. */
  "$/cancelRequest": { params: CancelLspParams };
  /** Takes a request back, in the words of ACP. */
  "$/cancel_request": { params: CancelAcpParams };
}

/** What the daemon says unasked. */
export interface ServerNotifications {
  /** An event of a session. */
  "session/event": { params: Envelope };
  /** Events of a session were dropped, because the client read too slowly: look at it afresh. */
  "session/resync_required": { params: ResyncParams };
  /** There are other sessions than before: `session/list` says which. */
  "sessions_changed": { params: SessionsChangedParams };
  /** The settings that hold where no project and no session says otherwise are different now. */
  "settings_changed": { params: Sourced };
  /** Something a person may want to know, about no session in particular. */
  "notice": { params: NoticeParams };
}

/** What the daemon asks of the client: method, params, result. */
export interface ClientRequests {
  /** Asks the client to run a model. Only of one that said so at `initialize`. */
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
  /** The version the client speaks; 1 if omitted. */
  protocolVersion?: number | null;
  /** Who it is. */
  clientInfo?: ClientInfo | null;
  /** The daemon ends when this process does. */
  processId?: number | null;
  /** What it can do. */
  capabilities?: ClientCapabilities | null;
}

/** Who a client is. */
export interface ClientInfo {
  /** Its name. */
  name?: string;
  /** Its version. */
  version?: string;
  /** Its name for people. */
  title?: string | null;
}

/** What a client can do. */
export interface ClientCapabilities {
  /** Which hooks it answers. */
  hooks?: AnyObject | null;
  /** It can execute tools. */
  tools?: AnyObject | null;
  /** It can run model calls. */
  llm?: AnyObject | null;
  /** Which events it wants. */
  events?: EventCapabilities | null;
}

/** Any object. */
export type AnyObject = Record<string, unknown>;

/** Which events a client wants. */
export interface EventCapabilities {
  /** Types it does not want. */
  optOut?: string[];
}

/** The result of `initialize`. */
export interface InitializeAnswer {
  /** The version both speak. */
  protocolVersion: number;
  /** Who we are. */
  serverInfo: ServerInfo;
  /** What we can do. */
  capabilities: ServerCapabilities;
  /** Our limits. */
  limits: Limits;
  /** This life of the daemon: event numbers are unique within it. */
  epoch: string;
  /** Where sessions live. */
  dataDir: string;
}

/** Who we are. */
export interface ServerInfo {
  /** `abridged`. */
  name: string;
  /** Of the program. */
  version: string;
}

/** What we can do. */
export interface ServerCapabilities {
  /** The methods that are answered. */
  methods: string[];
  /** The formats of `session/context`. */
  contextFormats: string[];
  /** How summaries can be made. */
  compactionMethods: string[];
}

/** Our limits. */
export interface Limits {
  /** A larger frame is skipped, in bytes. */
  maxInboundFrameBytes: number;
  /** Events and notifications stay under this, in bytes. */
  softOutboundFrameBytes: number;
  /** More requests at once are refused. */
  maxInFlightRequests: number;
  /** A batch with more members is refused whole. */
  maxBatchRequests: number;
}

/** Params of nothing. */
export type Nothing = Record<string, unknown>;

/** An answer of nothing. */
export type Empty = Record<string, unknown>;

/** Any JSON. */
export type AnyJson = unknown;

/** Params of `session/new`. */
export interface NewParams {
  /** The folder it is about. */
  cwd: string;
  /** Its name. */
  title?: string | null;
  /** Its model. */
  model?: ModelRefInput | null;
  /** How much the model thinks. */
  thinkingLevel?: string | null;
  /** What the model is told before everything. */
  systemPrompt?: string | null;
  /** The tools the model is given, as they are sent to it. */
  tools?: unknown[] | null;
  /** The session it comes from. */
  parentSession?: string | null;
  /** Never on disk. */
  ephemeral?: boolean | null;
  /** Settings of its own. */
  settings?: AnyObject | null;
}

/** A provider's model; also as `"provider/id"`. */
export type ModelRefInput =
  /** A provider's model. */
  | {
      provider: string;
      id: string;
    }
  | string;

/** A session. */
export interface SessionAnswer {
  /** The session. */
  session: SessionInfo;
}

/** A session as clients see it. */
export interface SessionInfo {
  /** Its id. */
  sessionId: SessionId;
  /** Its file; null for an ephemeral one. */
  path: string | null;
  /** The folder it is about. */
  cwd: string;
  /** Its name. */
  title: string | null;
  /** When it began. */
  createdAt: string;
  /** When it last changed. */
  updatedAt: string;
  /** The session it comes from. */
  parentSession: string | null;
  /** The entry the next one follows. */
  leafEntryId: EntryId | null;
  /** How many entries there are; null until indexed. */
  entryCount: number | null;
  /** Its model. */
  model: ModelRef | null;
  /** How much the model thinks. */
  thinkingLevel: string;
  /** What it is doing. */
  status: Status;
  /** How full it is. */
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

/** What a session is doing. */
export interface Status {
  /** In a word. */
  type: StatusKind;
  /** What runs. */
  operationId?: OperationId | null;
  /** Why. */
  reason?: string | null;
}

/** What a session is doing, in a word. */
export type StatusKind =
  /** Nothing. */
  | "idle"
  /** A turn. */
  | "running"
  /** A compaction. */
  | "compacting"
  /** Waiting to try again. */
  | "retrying"
  /** A handoff. */
  | "handing_off"
  /** A summary of a branch. */
  | "summarizing_branch"
  /** It ended badly. */
  | "error";

/** One long operation (a compaction, later a handoff, a branch summary) from its start event to its end event. */
export type OperationId = string;

/** How full a context is. */
export interface Usage {
  /** Tokens in the context. */
  contextTokens: number;
  /** Size of the window. */
  contextWindow: number | null;
  /** Of the window, 0 to 100 and over. */
  percent: number | null;
  /** Over this it is compacted. */
  thresholdTokens: number | null;
  /** Room kept for the next answer. */
  reserveTokens: number;
  /** Who counted. */
  source: UsageSource;
  /** Whether it is compacted by itself. */
  autoCompaction: boolean;
  /** Who said how large the window is: `setting`, `learned`, `catalog` or `default`. */
  windowSource: string;
  /** Where the tokens are. */
  breakdown: Breakdown;
  /**
   * How the estimated part was counted: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good.
   */
  estimator: string;
}

/** Who counted. */
export type UsageSource =
  /** The provider's last report, with an estimate of what came since. */
  | "provider"
  /** An estimate of everything. */
  | "estimate";

/** Where the tokens of a context are, estimated. */
export interface Breakdown {
  /** The system prompt. */
  system: number;
  /** The tools. */
  tools: number;
  /** The summary. */
  summary: number;
  /** The messages. */
  messages: number;
}

/** Params of `session/load`: one of `sessionId` and `path`. */
export interface LoadParams {
  /** A session of the data folder. */
  sessionId?: SessionId | null;
  /** A session file anywhere. */
  path?: string | null;
  /** Only to look at: no lock, no write. */
  readOnly?: boolean | null;
  /** Its model from here on. */
  model?: ModelRefInput | null;
  /** What the model is told before everything. */
  systemPrompt?: string | null;
  /** The tools the model is given, as they are sent to it. */
  tools?: unknown[] | null;
  /** Settings of its own. */
  settings?: AnyObject | null;
}

/** A loaded session. */
export interface LoadAnswer {
  /** The session. */
  session: SessionInfo;
  /** Whether all of the file is known already. */
  indexed: boolean;
  /** What was not as it should be, and is carried on with. */
  repairs: Repair[];
}

/** Something in a file that was not as it should be. */
export interface Repair {
  /** For example `torn_tail` or `corrupt_line`. */
  kind: string;
  /** The line, from one, where it is about one. */
  line?: number | null;
  /** What was found, and what was done about it. */
  detail: string;
}

/** Params of `session/list`. */
export interface ListParams {
  /** Only those about this folder. */
  cwd?: string | null;
  /** Only those with this in their title, folder or first message. */
  search?: string | null;
  /** Where the page before ended. */
  cursor?: string | null;
  /** At most so many; 100 if omitted. */
  limit?: number | null;
}

/** The result of `session/list`. */
export interface ListAnswer {
  /** Newest first. */
  sessions: ListedSession[];
  /** For the next page. */
  nextCursor: string | null;
}

/** A session in a list. */
export interface ListedSession {
  /** Its id. */
  sessionId: SessionId;
  /** Its file. */
  path: string;
  /** The folder it is about. */
  cwd: string;
  /** Its name. */
  title: string | null;
  /** How its first user message begins. */
  preview: string | null;
  /** When it last changed. */
  updatedAt: string;
  /** Size of the file. */
  sizeBytes: number;
  /** What it is doing, if it is open here. */
  status: Status | null;
}

/** A session. */
export interface SessionParams {
  /** Which. */
  sessionId: SessionId;
}

/** The result of `session/status`. */
export interface StatusAnswer {
  /** The session. */
  session: SessionInfo;
  /** Messages that wait for their turn. */
  queue: Queue;
  /** What runs. */
  operations: RunningOperation[];
  /** How often the disk was touched: `{writes, fsyncs}`. */
  _meta: unknown;
}

/** Messages that wait for their turn. */
export interface Queue {
  /** For between two tool calls. */
  steering: Queued[];
  /** For the end of the turn. */
  followUp: Queued[];
}

/** A message that waits. */
export interface Queued {
  /** Its id. */
  id: string;
  /** Its text. */
  text: string;
}

/** Something that runs. */
export interface RunningOperation {
  /** Its id. */
  operationId: OperationId;
  /** What it is. */
  kind: string;
  /** Why it runs. */
  reason: string;
  /** Since when. */
  startedAt: string;
}

/** Params of `session/append`. */
export interface AppendParams {
  /** To which session. */
  sessionId: SessionId;
  /** What happened, in order. */
  messages: Message[];
  /** Behind this entry instead of the leaf. */
  parentEntryId?: EntryId | null;
  /** Only if this is still the leaf, or nothing that matters came since. */
  expectedLeafId?: EntryId | null;
}

/** A message in pi's form. Fields that are not named here are kept. */
export type Message =
  /** What the user said. */
  | {
      role: "user";
      /** A text, or blocks. */
      content: string | Block[];
      /** When, in milliseconds since 1970; filled in where it is missing. */
      timestamp?: number;
      [key: string]: unknown;
    }
  /** An answer of a model. */
  | {
      role: "assistant";
      /** A text, or blocks. */
      content: string | Block[];
      /** Who answered. */
      provider?: string | null;
      /** The model that answered. */
      model?: string | null;
      /** What the provider said it cost: `{input, output, cacheRead, cacheWrite, totalTokens}`, in tokens. */
      usage?: Record<string, unknown> | null;
      /** `stop`, `length`, `toolUse`, `error` or `aborted`. */
      stopReason?: string | null;
      /** The provider's text where it failed. */
      errorMessage?: string | null;
      /** When, in milliseconds since 1970; filled in where it is missing. */
      timestamp?: number;
      [key: string]: unknown;
    }
  /** What a tool returned. */
  | {
      role: "toolResult";
      /** The call it answers. */
      toolCallId: string;
      /** A text, or blocks. */
      content: string | Block[];
      /** The tool. */
      toolName?: string | null;
      /** Whether the tool failed. */
      isError?: boolean | null;
      /** When, in milliseconds since 1970; filled in where it is missing. */
      timestamp?: number;
      [key: string]: unknown;
    }
  /** A command the user ran beside the model. */
  | {
      role: "bashExecution";
      /** The command. */
      command: string;
      /** What it printed. */
      output?: string | null;
      /** Its exit code. */
      exitCode?: number | null;
      /** Not for the model. */
      excludeFromContext?: boolean | null;
      /** When, in milliseconds since 1970; filled in where it is missing. */
      timestamp?: number;
      [key: string]: unknown;
    }
  /** A message of an extension. */
  | {
      role: "custom";
      /** A text, or blocks. */
      content: string | Block[];
      /** When, in milliseconds since 1970; filled in where it is missing. */
      timestamp?: number;
      [key: string]: unknown;
    }
  /** An instruction by an agent, not by the user. */
  | {
      role: "developer";
      /** A text, or blocks. */
      content: string | Block[];
      /** When, in milliseconds since 1970; filled in where it is missing. */
      timestamp?: number;
      [key: string]: unknown;
    };

/**
 * A block of a message: `text {text}`, `thinking {thinking, thinkingSignature?}`, `toolCall {id, name, arguments}`,
 * `image {data, mimeType}`. Others are passed on.
 */
export interface Block {
  type: string;
  [key: string]: unknown;
}

/** The result of `session/append`. */
export interface AppendAnswer {
  /** The new entries, in order. */
  entryIds: EntryId[];
  /** The leaf now. */
  leafEntryId: EntryId | null;
  /** How full the context is now. */
  usage: Usage;
  /** What the daemon does about it. */
  next: Next;
}

/** What the daemon does after an append. */
export type Next =
  /** Nothing. */
  | {
      type: "none";
    }
  /** It makes room; its events follow. */
  | {
      type: "maintenance";
      /** What runs. */
      operationId: OperationId;
      /** Why. */
      reason: string;
      /** Whether the turn should be tried again afterwards. */
      willRetry: boolean;
    };

/** Params of `session/context`. */
export interface ContextParams {
  /** Of which session. */
  sessionId: SessionId;
  /** At this entry instead of the leaf. */
  leafEntryId?: EntryId | null;
  /** In which form; `messages` if omitted. */
  format?: ContextFormat | null;
  /** Waits for running maintenance to end. Starts nothing. */
  wait?: boolean | null;
}

/** The form of a context. */
export type ContextFormat =
  /** pi's messages. */
  | "messages"
  /** A request of Anthropic's Messages. */
  | "anthropic"
  /** A request of OpenAI's Chat Completions. */
  | "openai_chat"
  /** A request of OpenAI's Responses. */
  | "openai_responses"
  /** A request of Google's `generateContent`. The model's name is in its address, so not in the body. */
  | "google";

/** The result of `session/context`. */
export interface ContextAnswer {
  /** The messages, valid for a provider; with the format `messages`. */
  messages?: Message[] | null;
  /** The entry of each message; null for the frame of a summary and for a message that stands in for a missing one. */
  entryIds?: (EntryId | null)[] | null;
  /**
   * The body of a request to the model, valid for its provider; with the other formats. Whether the answer is streamed
   * is not said in it.
   */
  body?: AnyObject | null;
  /** How full it is. */
  usage: Usage;
  /** The compaction it is seen through. */
  compactionEntryId: EntryId | null;
  /** The model it is for. */
  model: ModelRef | null;
}

/** Params of `session/entries`. */
export interface EntriesParams {
  /** Of which session. */
  sessionId: SessionId;
  /** Only those after this one. */
  since?: EntryId | null;
  /** `active` if omitted. */
  branch?: Branch | null;
  /** Only of these types. */
  types?: string[] | null;
  /** At most so many; 1,000 if omitted. */
  limit?: number | null;
  /** At most about so many bytes, but at least one entry; 1 MiB if omitted. */
  maxBytes?: number | null;
}

/** Which entries. */
export type Branch =
  /** The path to the leaf. */
  | "active"
  /** Every one, in the order of the file. */
  | "all";

/** The result of `session/entries`. */
export interface EntriesAnswer {
  /** The page. */
  entries: Entry[];
  /** The leaf. */
  leafEntryId: EntryId | null;
  /** For the next page, as `since`; null where this is the last. */
  nextCursor: EntryId | null;
}

/** An entry of a session file in pi's third version. What else stands in it depends on its type. */
export interface Entry {
  /** What it is: `message`, `compaction`, `custom`, … */
  type: string;
  /** Its id. */
  id: string;
  /** The entry it follows. */
  parentId: string | null;
  /** When it was written. */
  timestamp?: string;
  [key: string]: unknown;
}

/** Params of `session/entry`. */
export interface EntryParams {
  /** Of which session. */
  sessionId: SessionId;
  /** Which. */
  entryId: EntryId;
}

/** The result of `session/entry`. */
export interface EntryAnswer {
  /** The entry. */
  entry: Entry;
}

/** Params of `session/search`. */
export interface SearchParams {
  /** In which session. */
  sessionId: SessionId;
  /** What is looked for, as it stands; case makes no difference. */
  query: string;
  /** At most so many matches; 50 if omitted. */
  limit?: number | null;
}

/** The result of `session/search`. */
export interface SearchAnswer {
  /** Newest first, one for each entry. */
  matches: SearchMatch[];
}

/** An entry with what was looked for. */
export interface SearchMatch {
  /** The entry. */
  entryId: EntryId;
  /** What stands around the first place. */
  snippet: string;
}

/** Params of `session/tree`. */
export interface TreeParams {
  /** Of which session. */
  sessionId: SessionId;
  /** Where the page before ended. */
  cursor?: EntryId | null;
  /** At most so many; 1,000 if omitted. */
  limit?: number | null;
}

/** The result of `session/tree`. */
export interface TreeAnswer {
  /** The entries in the order of the file: a parent stands before its children. */
  nodes: TreeNode[];
  /** The leaf. */
  leafEntryId: EntryId | null;
  /** For the next page; null where this is the last. */
  nextCursor: EntryId | null;
}

/** An entry in a tree. */
export interface TreeNode {
  /** Its id. */
  id: EntryId;
  /** What it follows; null for a root. */
  parentId: EntryId | null;
  /** Its type. */
  type: string;
  /** Of a message, whose it is. */
  role: string | null;
  /** What it says, in a line. */
  preview: string;
  /** Its name. */
  label: string | null;
  /** When it was written, in the file's own form. */
  timestamp: string;
}

/** The result of `session/usage`. */
export interface UsageAnswer {
  /** Tokens in the context. */
  contextTokens: number;
  /** Size of the window. */
  contextWindow: number | null;
  /** Of the window, 0 to 100 and over. */
  percent: number | null;
  /** Over this it is compacted. */
  thresholdTokens: number | null;
  /** Room kept for the next answer. */
  reserveTokens: number;
  /** Who counted. */
  source: UsageSource;
  /** Whether it is compacted by itself. */
  autoCompaction: boolean;
  /** Who said how large the window is: `setting`, `learned`, `catalog` or `default`. */
  windowSource: string;
  /** Where the tokens are. */
  breakdown: Breakdown;
  /**
   * How the estimated part was counted: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good.
   */
  estimator: string;
  /** What is compared with what. */
  thresholds: Thresholds;
  /** Why it is or is not compacted now, for a person. */
  why: string;
}

/** What is compared with what. */
export interface Thresholds {
  /** Over this it is compacted. */
  thresholdTokens: number;
  /** A compaction aims below this. */
  targetTokens: number;
  /** System prompt and tools: no compaction makes them smaller. */
  fixedOverheadTokens: number;
  /** The largest summary. */
  summaryTokens: number;
  /** What is kept as it is. */
  keepRecentTokens: number;
  /** Reported over estimated tokens; null before any report. */
  calibration: number | null;
  /** By what tokens are estimated: `tiktoken`, or `chars` until its tables are loaded. */
  estimator: string;
}

/** Params of `session/cancel`. */
export interface CancelParams {
  /** In which session. */
  sessionId: SessionId;
  /** Only this one. */
  operationId?: OperationId | null;
}

/** The result of `session/cancel`. */
export interface CancelAnswer {
  /** What was stopped. */
  cancelled: Cancelled[];
}

/** Something that was stopped. */
export interface Cancelled {
  /** Its id. */
  operationId: OperationId;
  /** What it was. */
  kind: string;
}

/** Params of `session/compact`. */
export interface CompactParams {
  /** Which session. */
  sessionId: SessionId;
  /** What to keep above all. */
  instructions?: string | null;
  /** Tokens kept as they are; taken as it is. */
  keepRecentTokens?: number | null;
  /** How the summary is made. */
  method?: CompactMethod | null;
  /** `now` if omitted. */
  when?: When | null;
  /** `user` if omitted. An agent is refused below half of the threshold. */
  initiator?: Initiator | null;
  /** Only says what it would do. */
  dryRun?: boolean | null;
  /** Answers at the end. */
  wait?: boolean | null;
  /** Only if this is still the leaf, or nothing that matters came since. */
  expectedLeafId?: EntryId | null;
}

/** How a summary is made. */
export type CompactMethod =
  /** By a model. */
  | "llm"
  /** Without one. */
  | "extractive";

/** When a compaction begins. */
export type When =
  /** At once. */
  | "now"
  /** When the running turn has ended. */
  | "after_turn";

/** Who wants a compaction. */
export type Initiator =
  /** A person. */
  | "user"
  /** The model itself. */
  | "agent";

/** The result of `session/compact`, by what was asked for. */
export type CompactAnswer =
  /** It runs; its events follow. */
  | {
      /** Its id. */
      operationId: OperationId;
    }
  /** With `wait`: it ended. */
  | {
      /** Its id. */
      operationId: OperationId;
      /** How. */
      outcome: Outcome;
      /** What was written. */
      result?: CompactionResult | null;
      /** Why it failed. */
      error?: ErrorData | null;
    }
  /** With `dryRun`: what it would do. */
  | {
      /** The plan. */
      preparation: Preparation;
    };

/** How something ended. */
export type Outcome =
  /** As it should. */
  | "completed"
  /** With an error. */
  | "failed"
  /** Somebody stopped it. */
  | "cancelled"
  /** There was nothing to do. */
  | "skipped";

/** A finished compaction. */
export interface CompactionResult {
  /** Its entry. */
  entryId: EntryId;
  /** The summary; null where the frame would pass 60 KiB: read the entry. */
  summary: string | null;
  /** Two sentences for a person. */
  shortSummary: string | null;
  /** The first entry that is kept; null where nothing is. */
  firstKeptEntryId: EntryId | null;
  /** Size of the context before. */
  tokensBefore: number;
  /** Size of the context after, estimated. */
  tokensAfter: number;
  /** The files, or anything of a hook's. */
  details: unknown;
  /** Whether a hook made it. */
  fromHook: boolean;
  /** How the summary was made. */
  method: SummaryMethod;
  /** By which model. */
  model: ModelRef | null;
  /** Every candidate that did not become the summary. */
  rejected: Rejected[];
}

/** How a summary was made. */
export type SummaryMethod =
  /** By a model. */
  | "llm"
  /** By an endpoint. */
  | "remote"
  /** By the provider's own compaction. */
  | "provider_native"
  /** Without a model. */
  | "extractive"
  /** By a hook. */
  | "hook";

/** A candidate that did not become the summary. */
export interface Rejected {
  /** How it was made. */
  method: SummaryMethod;
  /** By which model. */
  model: ModelRef | null;
  /** Why not. */
  why: string;
  /** The provider's error, where it was one. */
  error?: ErrorData | null;
}

/** `error.data`: branch on `code`. `retryable` says whether the same request may work later. */
export type ErrorData =
  /** Not JSON. */
  | {
      code: "parse_error";
      retryable: boolean;
    }
  /** JSON, but no request. */
  | {
      code: "invalid_request";
      retryable: boolean;
    }
  /** A second `initialize`. */
  | {
      code: "already_initialized";
      retryable: boolean;
    }
  /** A frame over the limit; it was skipped. */
  | {
      code: "frame_too_large";
      retryable: boolean;
    }
  /** No such method. */
  | {
      code: "method_not_found";
      retryable: boolean;
    }
  /** Params that are not what the method takes. */
  | {
      code: "invalid_params";
      retryable: boolean;
      /** Where in the params, for example `messages[1].role`; empty for all of them. */
      path: string;
    }
  /** A defect of the daemon. */
  | {
      code: "internal";
      retryable: boolean;
    }
  /** The client took the request back. */
  | {
      code: "request_cancelled";
      retryable: boolean;
    }
  /** The session is not what the client thinks it is. */
  | {
      code: "content_modified";
      retryable: boolean;
      /** Its leaf now. */
      leafEntryId: EntryId | null;
    }
  /** Too many requests at once. */
  | {
      code: "overloaded";
      retryable: boolean;
      /** When to try again. */
      retryAfterMs: number;
    }
  /** No such thing. */
  | {
      code: "not_found";
      retryable: boolean;
      /** What is not there: `session` or `entry`. */
      kind: string;
    }
  /** Something runs already. */
  | {
      code: "busy";
      retryable: boolean;
      /** What runs. */
      operationId: OperationId;
      /** What it is. */
      kind: string;
    }
  /** Another process has the session. */
  | {
      code: "locked";
      retryable: boolean;
      /** Which, if it said so. */
      pid: number | null;
    }
  /** There is nothing to compact. */
  | {
      code: "nothing_to_compact";
      retryable: boolean;
      /** Why. */
      reason: WhyNothing;
    }
  /** Nothing makes the context small enough. */
  | {
      code: "context_overflow";
      retryable: boolean;
      /** What no compaction makes smaller. */
      floor: ContextFloor;
      /** Size of the window, in tokens. */
      contextWindow: number;
    }
  /** A model did not answer. */
  | {
      code: "provider_error";
      retryable: boolean;
      /** The provider's name. */
      provider: string;
      /** The model's name there. */
      model: string;
      /** The HTTP status, where there was one. */
      httpStatus: number | null;
    }
  /** The disk refused, or the session is read-only. */
  | {
      code: "storage_error";
      retryable: boolean;
      /** Which file. */
      path: string;
      /** The system's number of the error, if it was the system. */
      errno: number | null;
    }
  /** Something before `initialize`. */
  | {
      code: "not_initialized";
      retryable: boolean;
    }
  /** Another version of the protocol. */
  | {
      code: "unsupported_protocol_version";
      retryable: boolean;
      /** The versions that are spoken here. */
      supported: number[];
    };

/** Why there is nothing to compact. */
export type WhyNothing =
  /** Nothing came since the last compaction. */
  | "already_compacted"
  /** All of it is kept. */
  | "too_short"
  /** An agent asked too early. */
  | "below_half_threshold";

/** What no compaction makes smaller, in tokens. */
export interface ContextFloor {
  /** The system prompt. */
  system: number;
  /** The tools. */
  tools: number;
  /** What is pinned. */
  pins: number;
  /** The newest user message and what must stay with it. */
  latestTurn: number;
}

/** What a compaction would do. */
export interface Preparation {
  /** The first entry that would be kept; null where nothing would. */
  firstKeptEntryId: EntryId | null;
  /** Messages of whole turns that would be summarized. */
  messagesToSummarize: number;
  /** Messages of the turn whose end would be kept. */
  turnPrefixMessages: number;
  /** Whether the cut would fall inside a turn. */
  isSplitTurn: boolean;
  /** Size of the context now. */
  tokensBefore: number;
  /** Size of the context after, at the most. */
  tokensAfterEstimate: number;
  /** The summary that would go into the new one. */
  previousSummary: string | null;
  /** Requests to a model that it would take. */
  chunks: number;
  /** Who would write the summary. */
  summarizer: Summarizer;
  /** The files. */
  fileOps: FileOps;
  /** Equal for two plans that would do the same to the same session. */
  planHash: string;
}

/** Who writes a summary. */
export type Summarizer =
  /** Nobody: `"extractive"`. */
  | ExtractiveWord
  /** A model. */
  | ModelRef;

/** The word `extractive`. */
export type ExtractiveWord = "extractive";

/** Files. */
export interface FileOps {
  /** Read and not changed. */
  read: string[];
  /** Changed. */
  modified: string[];
}

/** The result of `session/undo_compaction`. */
export interface UndoAnswer {
  /** The leaf. */
  leafEntryId: EntryId | null;
  /** How full the context is now. */
  usage: Usage;
}

/** Params of `session/prune`. */
export interface PruneParams {
  /** In which session. */
  sessionId: SessionId;
  /** The newest results of this size stay, in tokens; the setting if omitted. */
  protectTokens?: number | null;
  /** Nothing is done for less than this, in tokens; the setting if omitted. */
  minimumSavings?: number | null;
  /** Only says what would be done. */
  dryRun?: boolean | null;
}

/** The result of `session/prune`. */
export interface PruneAnswer {
  /** The entries that give way to a line about them. */
  entryIds: EntryId[];
  /** What that frees, estimated. */
  tokensSaved: number;
}

/** Params of `session/pin` and `session/unpin`: an entry, or a text. */
export interface PinParams {
  /** In which session. */
  sessionId: SessionId;
  /** An entry of the conversation. */
  entryId?: EntryId | null;
  /** A text, which becomes a message of its own. */
  text?: string | null;
}

/** The id of one entry. */
export interface EntryIdAnswer {
  /** Of `session/label` the entry that gives the name; of `session/pin` and `session/unpin` what is or was pinned. */
  entryId: EntryId;
}

/** Params of `session/label`. */
export interface LabelParams {
  /** In which session. */
  sessionId: SessionId;
  /** What is named. */
  targetEntryId: EntryId;
  /** Its name; null takes it away. */
  label?: string | null;
}

/** Params of `session/configure`. What is left out stays, null clears. */
export interface ConfigureParams {
  /** Which session. */
  sessionId: SessionId;
  /** Its model from here on. It cannot be cleared: null is refused. */
  model?: ModelRefInput | null;
  /** How much the model thinks from here on; null: `off`. */
  thinkingLevel?: string | null;
  /** What the model is told before everything. */
  systemPrompt?: string | null;
  /** The tools the model is given, as they are sent to it. */
  tools?: unknown[] | null;
  /** Its name. */
  title?: string | null;
}

/** The result of `session/configure`. */
export interface ConfigureAnswer {
  /** The session. */
  session: SessionInfo;
  /** What the daemon does about it. */
  next: Next;
}

/** Params of `session/export`. */
export interface ExportParams {
  /** Which session. */
  sessionId: SessionId;
  /** In which form. */
  format: ExportFormat;
  /** A file that is not there yet; a relative one is under the session's folder. */
  path: string;
}

/** The form of an export. */
export type ExportFormat =
  /** A session file that pi and abridged open, with every entry. */
  | "jsonl"
  /** The conversation for people: the path to the leaf, from its beginning. */
  | "markdown";

/** The result of `session/export`. */
export interface ExportAnswer {
  /** The file. */
  path: string;
}

/** Params of `session/subscribe`. */
export interface SubscribeParams {
  /** Which session's events. */
  sessionId: SessionId;
  /** The last event that was seen: what is kept since follows again. */
  after?: Seen | null;
}

/** An event, by its place. */
export interface Seen {
  /** In which life of the daemon. */
  epoch: string;
  /** Its number. */
  seq: number;
}

/** The result of `session/subscribe`. */
export interface SubscribeAnswer {
  /** This life of the daemon. */
  epoch: string;
  /** The number of the last event. */
  seq: number;
  /** Whether nothing durable was missed. */
  status: Subscription;
  /** So many events follow again, in order, with their old numbers. */
  replayed: number;
  /** The session now; null where the events that follow say all of it. */
  snapshot: StatusAnswer | null;
}

/** Whether a client that was away knows everything again. */
export type Subscription =
  /** It does, with the events that follow. */
  | "ok"
  /** Some events are gone for good: begin with the snapshot. */
  | "expired";

/** Params of `models/list`. */
export interface ModelsListParams {
  /** As this session sees them, with its own model. */
  sessionId?: SessionId | null;
}

/** The result of `models/list`. */
export interface ModelsListAnswer {
  /** Those of the settings in their order, then those that are only used. */
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
  /** Where it is asked, without what would let somebody in. */
  baseUrl: string | null;
  /** The environment variable with the key. Its value is never told. */
  apiKeyEnv: string | null;
  /** Size of the window, in tokens. */
  contextWindow: Known;
  /** The most it answers, in tokens; null where nobody said. */
  maxOutputTokens: Known | null;
  /** `"provider/id"` of a larger model to go to. */
  promoteTo: string | null;
  /** Whether sessions without a model of their own use it. */
  default: boolean;
}

/** The wire formats. */
export type Api =
  /** Anthropic's Messages. */
  | "anthropic"
  /** OpenAI's Chat Completions, which most others speak too. */
  | "openai_chat"
  /** OpenAI's Responses. */
  | "openai_responses"
  /** Google's Gemini. */
  | "google"
  /** None: the connected client asks the model. */
  | "client";

/** A value and who said so. */
export interface Known {
  /** The value. */
  value: number;
  /** Who said so. */
  source: KnownBy;
}

/** Who said so. */
export type KnownBy =
  /** Nobody: it is a cautious guess. */
  | "default"
  /** The catalog of known models. */
  | "catalog"
  /** The provider itself, when it was asked for more than it takes. */
  | "learned"
  /** The global settings file. */
  | "global"
  /** The project's settings file. */
  | "project"
  /** An environment variable. */
  | "environment"
  /** The session's own settings. */
  | "session";

/** Params of `settings/get`. */
export interface SettingsGetParams {
  /** As they are in force for this session. */
  sessionId?: SessionId | null;
}

/** Settings with the source of each value. */
export interface Sourced {
  /** The settings in force. */
  settings: Settings;
  /** Where each value that is not a default comes from, by its dotted key. */
  sources: Record<string, Source>;
}

/**
 * All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
 *
 * `x-project` is the range of a number in the file of a project that is not trusted. With `x-outOfRange: "clamped"`
 * the
 * nearest number of the range is used; any other number outside of its range is not used.
 */
export interface Settings {
  /** `"provider/id"` of the model for sessions whose own is not configured. */
  defaultModel: string | null;
  /** Models and what is known of them. */
  models: ModelSettings[];
  /** When and how a session is compacted. */
  compaction: CompactionSettings;
  /** When old tool results are cut. */
  prune: PruneSettings;
  /** What the tools of an agent do. */
  tools: ToolSettings;
  /** Summaries of branches that are left. */
  branchSummary: BranchSummarySettings;
  /** Going to a larger model instead of compacting. */
  contextPromotion: PromotionSettings;
  /** Repeating what failed for a moment. */
  retry: RetrySettings;
  /** Keeping secrets out of summaries. */
  redaction: RedactionSettings;
  /** How tokens are estimated. */
  tokens: TokenSettings;
  /** Folders whose project settings are trusted. */
  trustedProjects: string[];
}

/** One model. */
export interface ModelSettings {
  /** The provider's name. */
  provider: string;
  /** The model's name at that provider. */
  id: string;
  /** The wire format. */
  api: Api | null;
  /** What the provider's own SDK takes. */
  baseUrl: string | null;
  /** The environment variable with the key. */
  apiKeyEnv: string | null;
  /** A command whose first line of output is the key: the program, then its arguments. No shell reads it. */
  apiKeyCommand: string[] | null;
  /** What is sent with every request besides, for proxies, by name. The values are told to nobody. */
  headers: Record<string, Secret>;
  /** Size of the window, in tokens. */
  contextWindow: number | null;
  /** The most it answers, in tokens. */
  maxOutputTokens: number | null;
  /** Whether it thinks before it answers. Left out: what the catalog says. */
  reasoning: boolean | null;
  /** `"provider/id"` of a larger model to go to. */
  promoteTo: string | null;
  /** Overrides of `compaction` for this model. */
  compaction: CompactionSettings | null;
}

/** A text that is told to nobody: as JSON and in a log it is `***`. */
export type Secret = string;

/** When and how a session is compacted. */
export interface CompactionSettings {
  /** Whether it happens by itself. */
  enabled: boolean;
  /** What is done. */
  strategy: Strategy;
  /** Room kept for the next answer. */
  reserveTokens: number;
  /** What is kept as it is; 0 keeps nothing. */
  keepRecentTokens: number;
  /** Threshold as a percentage of the window; −1: not used. */
  thresholdPercent: number;
  /** Threshold in tokens; −1: not used. */
  thresholdTokens: number;
  /** Whether a daemon-driven session goes on by itself afterwards. */
  autoContinue: boolean;
  /** Whether it may happen between the tool calls of a turn. */
  midTurn: boolean;
  /** Whether a remote endpoint may be used. */
  remoteEnabled: boolean;
  /** Where summaries are made remotely. */
  remoteEndpoint: string | null;
  /** Whether it happens when the user is away. */
  idleEnabled: boolean;
  /** Not below this. */
  idleThresholdTokens: number;
  /** How long the user must be away. */
  idleTimeoutSeconds: number;
  /** Whether summaries are made ahead. */
  speculative: Speculative;
  /** The next candidate is asked after this time without progress of an answer. */
  stallSeconds: number;
  /** An automatic maintenance ends after this. */
  deadlineSeconds: number;
  /** Summaries at the same time, over all sessions. */
  maxConcurrent: number;
  /** `"provider/id"`s to summarize with, in order. */
  models: string[];
  /** The shape of what is kept. */
  style: Style;
}

/** What is done when a session is full. */
export type Strategy =
  /** The old part is summarized in place. */
  | "context_full"
  /** A new session goes on from a document. */
  | "handoff"
  /** Nothing. */
  | "off";

/** Whether summaries are made ahead. */
export type Speculative =
  /** On, but not for a model on this machine. */
  | "auto"
  /** As said. */
  | boolean;

/** The shape of what is kept. */
export type Style =
  /** A summary under headings, then the kept tail. */
  | "structured"
  /** The newest user messages, then the summary. */
  | "recent_user_messages";

/** When old tool results are cut. */
export interface PruneSettings {
  /** The newest results of this size stay. */
  protectTokens: number;
  /** Not for less than this. */
  minimumSavings: number;
  /** Tools whose results always stay. */
  protectedTools: string[];
}

/** What the tools of an agent do. */
export interface ToolSettings {
  /** Tools that touch files, before the known ones of common agents. */
  files: FileTool[];
  /** Tools that hold the todo list, before the known ones. */
  todo: string[];
}

/** A tool that touches a file. */
export interface FileTool {
  /** The tool's name. */
  tool: string;
  /** The argument with the path. */
  argument: string;
  /** What it does to the file. */
  operation: FileOperation;
}

/** What is done to a file. */
export type FileOperation =
  /** It is only looked at. */
  | "read"
  /** It is made or replaced. */
  | "write"
  /** It is changed. */
  | "edit"
  /** It is removed. */
  | "delete";

/** Summaries of branches that are left. */
export interface BranchSummarySettings {
  /** What an omitted `summarize` means. */
  enabled: boolean;
  /** Room kept in the summarizer's window. */
  reserveTokens: number;
}

/** Going to a larger model instead of compacting. */
export interface PromotionSettings {
  /** Whether it is done. */
  enabled: boolean;
}

/** Repeating what failed for a moment. */
export interface RetrySettings {
  /** Whether it is done. */
  enabled: boolean;
  /** How often one request is sent again. */
  maxRetries: number;
  /** The first wait. */
  baseDelayMs: number;
  /** The longest wait. */
  maxDelayMs: number;
}

/** Keeping secrets out of summaries. */
export interface RedactionSettings {
  /** Whether it is done. */
  enabled: boolean;
}

/** How tokens are estimated. */
export interface TokenSettings {
  /** By what. */
  estimator: EstimatorSetting;
  /** Whether a window that a provider names in an error is believed. */
  learnWindow: boolean;
}

/** By what tokens are estimated. */
export type EstimatorSetting =
  /** The tokenizer. */
  | "auto"
  /** A quarter of the characters, as the peers count. */
  | "chars";

/** Where a value comes from. */
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
  /** Where it is changed. */
  scope: Scope;
  /** Of which session, or of which session's project. With scope `global`, for whom the answer is. */
  sessionId?: SessionId | null;
  /** What is changed. null takes a value out, so that what lies below it holds. */
  patch: AnyObject;
}

/** Where settings are changed. */
export type Scope =
  /** In the global settings file. */
  | "global"
  /** In the settings file of the session's folder. */
  | "project"
  /** In the session. */
  | "session";

/** Params of `$/cancelRequest`. */
export interface CancelLspParams {
  /** The request's id. */
  id: unknown;
}

/** Params of `$/cancel_request`. */
export interface CancelAcpParams {
  /** The request's id. */
  requestId: unknown;
}

/** The params of `session/event`. */
export interface Envelope {
  /** In which session. */
  sessionId: SessionId;
  /** In which life of the daemon. */
  epoch: string;
  /** Its number: no gap within a session and epoch. */
  seq: number;
  /** When. */
  ts: string;
  /** Whether it is kept for replay. */
  durable: boolean;
  /** About which entry. */
  entryId?: EntryId | null;
  /** Of which operation. */
  operationId?: OperationId | null;
  /** What happened. */
  event: SessionEvent;
}

/** What a client is told without having asked. */
export type SessionEvent =
  /** An entry is on disk. A large one is announced by its type alone; its id is in the envelope. */
  | {
      type: "entry_appended";
      /** The entry. */
      entry?: Entry | null;
      /** Its type, where it is too large to be sent along. */
      entryType?: string | null;
    }
  /** A compaction begins. */
  | {
      type: "compaction_start";
      /** Why. */
      reason: CompactionReason;
      /** What is done. */
      strategy: CompactionStrategy;
      /** Size of the context now. */
      tokensBefore: number;
      /** Size of the window. */
      contextWindow: number;
      /** Over this it is compacted. */
      thresholdTokens: number;
      /** Whether the turn is tried again afterwards. */
      willRetry: boolean;
    }
  /** How far it is. */
  | {
      type: "compaction_progress";
      /** At what. */
      stage: Stage;
      /** Steps done of this stage. */
      done: number;
      /** Steps of this stage. */
      total: number;
    }
  /** A piece of the summary. */
  | {
      type: "summary_chunk";
      /** Which part of it. */
      source: ChunkSource;
      /** Which try: pieces of an earlier one are void. */
      attempt: number;
      /** The piece. */
      text: string;
    }
  /** A request to a model failed and is sent again after a while. */
  | {
      type: "retry_start";
      /** What it is for. */
      source: RetrySource;
      /** Which try again this will be, from 1. */
      attempt: number;
      /** So many there are at most. */
      maxAttempts: number;
      /** After how long. */
      delayMs: number;
      /** Why it failed. */
      error: ErrorData;
      /** The same for a person. */
      errorMessage: string;
    }
  /** How that went. Exactly one for each start. */
  | {
      type: "retry_end";
      /** What it is for. */
      source: RetrySource;
      /** Whether there was an answer. */
      success: boolean;
      /** Which try again it was. */
      attempt: number;
      /** Why it failed. */
      error?: ErrorData | null;
      /** The same for a person. */
      errorMessage?: string | null;
    }
  /** A compaction ended. Exactly one for each start. */
  | {
      type: "compaction_end";
      /** Why it ran. */
      reason: CompactionReason;
      /** How it ended. */
      outcome: Outcome;
      /** What was written. */
      result?: CompactionResult | null;
      /** Where a handoff went. */
      newSessionId?: SessionId | null;
      /** Why it failed. */
      error?: ErrorData | null;
      /** The same for a person. */
      errorMessage?: string | null;
      /** Why there was nothing to do. */
      skippedReason?: string | null;
      /** Whether the turn is tried again now. */
      willRetry: boolean;
      /** Whether the session goes on by itself now. */
      willContinue: boolean;
      /** How long it took. */
      durationMs: number;
      /** How full the context is now. */
      usage: Usage;
    }
  /** How full the context is now. */
  | {
      type: "usage_updated";
      /** The whole value. */
      usage: Usage;
    }
  /** What the session is doing now. */
  | {
      type: "status_changed";
      /** The whole value. */
      status: Status;
    }
  /** Old tool results gave way to a line about each. */
  | {
      type: "pruned";
      /** Which. */
      entryIds: EntryId[];
      /** What that frees, estimated. */
      tokensSaved: number;
      /** Why. */
      why: string;
    }
  /** Every entry is known now: what needs that does not wait any more. */
  | {
      type: "index_ready";
      /** How many there are. */
      entryCount: number;
      /** The session's name. */
      title: string | null;
      /** What was odd about the file, beyond what `session/load` has said. */
      repairs: Repair[];
    }
  /** The settings in force for this session are different now. */
  | {
      type: "settings_changed";
      /** All of them. */
      settings: Settings;
      /** Where each value that is not a default comes from, by its dotted key. */
      sources: Record<string, Source>;
    }
  /** Something a person may want to know. */
  | {
      type: "notice";
      /** How much. */
      severity: Severity;
      /** In a line. */
      title: string;
      /** In more. */
      detail?: string | null;
    }
  /** Nothing will run any more without input. */
  | {
      type: "settled";
      /** Whether somebody stopped it. */
      aborted: boolean;
    };

/** Why a compaction runs. */
export type CompactionReason =
  /** Somebody asked for it. */
  | "manual"
  /** The context is over its threshold. */
  | "threshold"
  /** The provider refused the context as too long. */
  | "overflow"
  /** The answer was cut off. */
  | "incomplete"
  /** The user is away. */
  | "idle"
  /** The new model has a smaller window. */
  | "model_switch";

/** What is done. */
export type CompactionStrategy =
  /** The old part is summarized in place. */
  | "context_full"
  /** A new session goes on from a document. */
  | "handoff";

/** What a compaction is at. */
export type Stage =
  /** Old results are cut. */
  | "pruning"
  /** A client is asked. */
  | "hook"
  /** The summary is made. */
  | "summarizing"
  /** What would result is measured. */
  | "checking"
  /** It is written. */
  | "writing";

/** Which part of a summary. */
export type ChunkSource =
  /** The whole turns. */
  | "history"
  /** The beginning of the turn whose end is kept. */
  | "turn_prefix"
  /** A branch. */
  | "branch"
  /** A handoff's document. */
  | "handoff";

/** What a request to a model is for that is sent again. */
export type RetrySource =
  /** A turn. */
  | "turn"
  /** A summary of whole turns. */
  | "history"
  /** A summary of the beginning of a turn. */
  | "turn_prefix"
  /** Two sentences for a person. */
  | "short_summary"
  /** A summary of a branch. */
  | "branch"
  /** A handoff's document. */
  | "handoff";

/** How much a notice matters. */
export type Severity =
  /** To know. */
  | "info"
  /** To look at. */
  | "warning"
  /** To do something about. */
  | "error";

/** Params of `session/resync_required`. */
export interface ResyncParams {
  /** Which session. */
  sessionId: SessionId;
  /** In which life of the daemon. */
  epoch: string;
  /** The number of its newest event. */
  lastSeq: number;
  /** How many events were dropped. */
  dropped: number;
}

/** Params of `sessions_changed`. */
export interface SessionsChangedParams {
  /** The files that came, went, or were first written to by another program. */
  paths: string[];
}

/** Params of `notice`. */
export interface NoticeParams {
  /** How much it matters. */
  severity: Severity;
  /** In a line. */
  title: string;
  /** In more. */
  detail?: string | null;
}

/** Params of `llm/complete`. */
export interface LlmCompleteParams {
  /** For which session. */
  sessionId: SessionId;
  /** Of which operation. */
  operationId: OperationId;
  /** What the answer is for. */
  purpose: Purpose;
  /** What the model is told before everything. */
  system: string;
  /** The conversation, in pi's shapes. */
  messages: unknown[];
  /** The tools it knows; it must not call them. */
  tools?: unknown[] | null;
  /** The most it may answer, in tokens. */
  maxTokens: number;
  /** Which model; the client's choice where it is left out. */
  model?: ModelRef | null;
  /** An answer after so many milliseconds is too late; null: whenever. */
  deadlineMs: number | null;
}

/** What a model is asked for. */
export type Purpose =
  /** To go on with the conversation. */
  | "turn"
  /** A summary of whole turns. */
  | "compaction"
  /** A summary of the beginning of a turn. */
  | "turn_prefix"
  /** Two sentences for a person. */
  | "short_summary"
  /** A summary of a branch. */
  | "branch_summary"
  /** A document for another session. */
  | "handoff";

/** The answer to `llm/complete`. */
export interface LlmCompleteAnswer {
  /** An assistant message, with `usage` where it is known and `stopReason`. */
  message: unknown;
}

/** The error of an answer. */
export interface ErrorObject {
  /** JSON-RPC's number. */
  code: number;
  /** What happened and what to do next, for a person. */
  message: string;
  /** What to branch on. */
  data: ErrorData;
}

/**
 * All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
 *
 * `x-project` is the range of a number in the file of a project that is not trusted. With `x-outOfRange: "clamped"`
 * the
 * nearest number of the range is used; any other number outside of its range is not used.
 */
export interface SettingsInput {
  /** `"provider/id"` of the model for sessions whose own is not configured. */
  defaultModel?: string | null;
  /** Models and what is known of them. */
  models?: ModelSettingsInput[];
  /** When and how a session is compacted. */
  compaction?: CompactionSettingsInput;
  /** When old tool results are cut. */
  prune?: PruneSettingsInput;
  /** What the tools of an agent do. */
  tools?: ToolSettingsInput;
  /** Summaries of branches that are left. */
  branchSummary?: BranchSummarySettingsInput;
  /** Going to a larger model instead of compacting. */
  contextPromotion?: PromotionSettingsInput;
  /** Repeating what failed for a moment. */
  retry?: RetrySettingsInput;
  /** Keeping secrets out of summaries. */
  redaction?: RedactionSettingsInput;
  /** How tokens are estimated. */
  tokens?: TokenSettingsInput;
  /** Folders whose project settings are trusted. */
  trustedProjects?: string[];
}

/** One model. */
export interface ModelSettingsInput {
  /** The provider's name. */
  provider?: string;
  /** The model's name at that provider. */
  id?: string;
  /** The wire format. */
  api?: Api | null;
  /** What the provider's own SDK takes. */
  baseUrl?: string | null;
  /** The environment variable with the key. */
  apiKeyEnv?: string | null;
  /** A command whose first line of output is the key: the program, then its arguments. No shell reads it. */
  apiKeyCommand?: string[] | null;
  /** What is sent with every request besides, for proxies, by name. The values are told to nobody. */
  headers?: Record<string, Secret>;
  /** Size of the window, in tokens. */
  contextWindow?: number | null;
  /** The most it answers, in tokens. */
  maxOutputTokens?: number | null;
  /** Whether it thinks before it answers. Left out: what the catalog says. */
  reasoning?: boolean | null;
  /** `"provider/id"` of a larger model to go to. */
  promoteTo?: string | null;
  /** Overrides of `compaction` for this model. */
  compaction?: CompactionSettingsInput | null;
}

/** When and how a session is compacted. */
export interface CompactionSettingsInput {
  /** Whether it happens by itself. */
  enabled?: boolean;
  /** What is done. */
  strategy?: Strategy;
  /** Room kept for the next answer. */
  reserveTokens?: number;
  /** What is kept as it is; 0 keeps nothing. */
  keepRecentTokens?: number;
  /** Threshold as a percentage of the window; −1: not used. */
  thresholdPercent?: number;
  /** Threshold in tokens; −1: not used. */
  thresholdTokens?: number;
  /** Whether a daemon-driven session goes on by itself afterwards. */
  autoContinue?: boolean;
  /** Whether it may happen between the tool calls of a turn. */
  midTurn?: boolean;
  /** Whether a remote endpoint may be used. */
  remoteEnabled?: boolean;
  /** Where summaries are made remotely. */
  remoteEndpoint?: string | null;
  /** Whether it happens when the user is away. */
  idleEnabled?: boolean;
  /** Not below this. */
  idleThresholdTokens?: number;
  /** How long the user must be away. */
  idleTimeoutSeconds?: number;
  /** Whether summaries are made ahead. */
  speculative?: Speculative;
  /** The next candidate is asked after this time without progress of an answer. */
  stallSeconds?: number;
  /** An automatic maintenance ends after this. */
  deadlineSeconds?: number;
  /** Summaries at the same time, over all sessions. */
  maxConcurrent?: number;
  /** `"provider/id"`s to summarize with, in order. */
  models?: string[];
  /** The shape of what is kept. */
  style?: Style;
}

/** When old tool results are cut. */
export interface PruneSettingsInput {
  /** The newest results of this size stay. */
  protectTokens?: number;
  /** Not for less than this. */
  minimumSavings?: number;
  /** Tools whose results always stay. */
  protectedTools?: string[];
}

/** What the tools of an agent do. */
export interface ToolSettingsInput {
  /** Tools that touch files, before the known ones of common agents. */
  files?: FileTool[];
  /** Tools that hold the todo list, before the known ones. */
  todo?: string[];
}

/** Summaries of branches that are left. */
export interface BranchSummarySettingsInput {
  /** What an omitted `summarize` means. */
  enabled?: boolean;
  /** Room kept in the summarizer's window. */
  reserveTokens?: number;
}

/** Going to a larger model instead of compacting. */
export interface PromotionSettingsInput {
  /** Whether it is done. */
  enabled?: boolean;
}

/** Repeating what failed for a moment. */
export interface RetrySettingsInput {
  /** Whether it is done. */
  enabled?: boolean;
  /** How often one request is sent again. */
  maxRetries?: number;
  /** The first wait. */
  baseDelayMs?: number;
  /** The longest wait. */
  maxDelayMs?: number;
}

/** Keeping secrets out of summaries. */
export interface RedactionSettingsInput {
  /** Whether it is done. */
  enabled?: boolean;
}

/** How tokens are estimated. */
export interface TokenSettingsInput {
  /** By what. */
  estimator?: EstimatorSetting;
  /** Whether a window that a provider names in an error is believed. */
  learnWindow?: boolean;
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
