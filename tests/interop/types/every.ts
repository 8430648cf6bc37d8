// Every method, notification, request to the client, event, error, entry, message and block, checked and never run. A union
// that gets a member, or a table that gets a name, fails to compile here until it is used.

import type {
  AssistantMessage,
  Block,
  ClientNotifications,
  ClientRequests,
  Entry,
  ErrorData,
  Message,
  Methods,
  OtherBlock,
  OtherEntry,
  ReportedUsage,
  ServerNotifications,
  SessionEvent,
  SettingsPatch,
  SummaryDetails,
} from "../../../protocol/abridged.d.ts";

const sessionId = "0123456789abcdef";
const message: Message = { role: "user", content: [{ type: "text", text: "Look." }, { type: "image", data: "AAAA", mimeType: "image/png" }] };
const tool = { name: "read", description: "Reads.", inputSchema: { type: "object" } };
const patch: SettingsPatch = { compaction: { enabled: null, thresholdPercent: 80 }, defaultModel: null };

/** The params of each method. */
export const params: { [M in keyof Methods]: Methods[M]["params"] } = {
  "initialize": { protocolVersion: 1, capabilities: { hooks: { events: ["session_before_compact"] }, llm: {}, events: { optOut: [] } } },
  "shutdown": {},
  "ping": {},
  "rpc.discover": {},
  "session/new": { cwd: "/", thinkingLevel: "high", tools: [tool], settings: { compaction: { enabled: false } }, contextWindow: 8_000 },
  "session/load": { path: "/a.jsonl", readOnly: true },
  "session/import": { path: "/a.jsonl", title: "A title" },
  "session/list": { cwd: "/", limit: 10 },
  "session/close": { sessionId },
  "session/delete": { sessionId },
  "session/status": { sessionId },
  "session/append": { sessionId, messages: [message, { role: "model", parts: [{ text: "Hi." }] }], format: "google", usage: { promptTokenCount: 3 } },
  "session/context": { sessionId, format: "anthropic", wait: true },
  "session/entries": { sessionId, before: "leaf", branch: "active", types: ["message"] },
  "session/entry": { sessionId, entryId: "e" },
  "session/search": { sessionId, query: "port" },
  "session/tree": { sessionId },
  "session/usage": { sessionId },
  "session/run_idle": { sessionId },
  "session/cancel": { sessionId },
  "session/compact": { sessionId, when: "after_turn", method: "extractive", model: "p/m", initiator: "agent" },
  "context/fit": { messages: [message], format: "messages", contextWindow: 8_000 },
  "session/undo_compaction": { sessionId },
  "session/reset": { sessionId },
  "session/prompt": { sessionId, message: [{ type: "text", text: "Go." }], behavior: "steer" },
  "session/continue": { sessionId },
  "session/navigate": { sessionId, targetEntryId: "e", summarize: true },
  "session/reference": { sessionId, fromSessionId: sessionId },
  "session/handoff": { sessionId, goal: "Go on." },
  "session/prune": { sessionId, dryRun: true },
  "session/pin": { sessionId, text: "Never push." },
  "session/unpin": { sessionId, entryId: "e" },
  "session/label": { sessionId, targetEntryId: "e", label: null },
  "session/configure": { sessionId, title: "A title", model: { provider: "p", id: "m" } },
  "session/fork": { sessionId, position: "before" },
  "session/clear_queue": { sessionId },
  "session/export": { sessionId, format: "markdown", path: "/a.md" },
  "session/subscribe": { sessionId, after: { epoch: "e", seq: 1 } },
  "session/unsubscribe": { sessionId },
  "models/list": {},
  "models/forget": { model: "p/m" },
  "settings/get": { sessionId },
  "settings/set": { scope: "global", patch },
  "hooks/set": { events: ["session_compacting"], onFailure: "abort", timeoutMs: 1_000 },
  "tools/set": { tools: [tool] },
};

export const told: { [M in keyof ClientNotifications]: ClientNotifications[M]["params"] } = {
  "initialized": {},
  "exit": {},
  "session/activity": { sessionId },
  "$/cancelRequest": { id: 1 },
  "$/cancel_request": { requestId: "a" },
};

type Readers = { [M in keyof Methods]: (result: Methods[M]["result"]) => unknown };

/** A look into the result of each method. */
export const results: Readers = {
  "initialize": (it) => it.limits.maxInFlightRequests + it.capabilities.methods.length,
  "shutdown": (it: null) => it,
  "ping": (it) => Object.keys(it),
  "rpc.discover": (it) => it,
  "session/new": (it) => it.session.usage.breakdown.tools,
  "session/load": (it) => it.repairs.map((repair) => repair.line?.toFixed()),
  "session/import": (it) => [it.origin.agent, it.origin.version?.length, it.repairs.length],
  "session/list": (it) => it.sessions.map((session) => session.percent?.toFixed(1)),
  "session/close": (it: null) => it,
  "session/delete": (it: null) => it,
  "session/status": (it) => it.spent.total.dollars?.toFixed(2) ?? it.operations[0]?.kind,
  "session/append": (it) => (it.next.type === "retry" ? it.next.maxOutputTokens : it.entryIds.length),
  "session/context": (it) => it.messages?.map(said) ?? it.body,
  "session/entries": (it) => it.entries.map(line),
  "session/entry": (it) => line(it.entry),
  "session/search": (it) => it.matches.map((match) => match.snippet),
  "session/tree": (it) => it.nodes.map((node) => node.preview),
  "session/usage": (it) => it.why.length,
  "session/run_idle": (it) => ("skipped" in it ? it.skipped : it.operationId),
  "session/cancel": (it) => it.cancelled.map((one) => one.operationId ?? one.turnId),
  "session/compact": (it) => ("preparation" in it ? it.preparation.chunks : "outcome" in it ? files(it.result?.details) : it.operationId),
  "context/fit": (it) => it.messages.length + it.firstKeptIndex,
  "session/undo_compaction": (it) => it.usage.contextTokens,
  "session/reset": (it) => it.entryId,
  "session/prompt": (it) => it.disposition === "queued",
  "session/continue": (it) => it.turnId,
  "session/navigate": (it) => it.operationId,
  "session/reference": (it) => it.operationId,
  "session/handoff": (it) => ("document" in it ? it.document : it),
  "session/prune": (it) => it.tokensSaved,
  "session/pin": (it) => it.entryId,
  "session/unpin": (it) => it.entryId,
  "session/label": (it) => it.entryId,
  "session/configure": (it) => it.next.type,
  "session/fork": (it) => it.editorText?.length,
  "session/clear_queue": (it) => it.steering.concat(it.followUp),
  "session/export": (it) => it.path,
  "session/subscribe": (it) => it.snapshot?.session.title,
  "session/unsubscribe": (it: null) => it,
  "models/list": (it) => it.models.length,
  "models/forget": (it) => it.forgotten.length,
  "settings/get": (it) => it.settings.compaction.enabled && it.sources["compaction.enabled"],
  "settings/set": (it) => it.settings.prune.protectTokens.toFixed(),
  "hooks/set": (it: null) => it,
  "tools/set": (it: null) => it,
};

type Answers = { [M in keyof ClientRequests]: (params: ClientRequests[M]["params"]) => ClientRequests[M]["result"] };

/** An answer to each request of the daemon. */
export const answers: Answers = {
  "hook/session_before_compact": (it) =>
    it.reason === "manual" ? { action: "continue" } : { action: "replace", compaction: { summary: "S", details: [1] } },
  "hook/session_compacting": (it) => ({ context: [it.reason] }),
  "hook/session_compact_draft": (it) => (it.draft.summary === "" ? { action: "cancel", reason: "empty" } : { action: "continue" }),
  "hook/session_before_tree": (it) => ({ action: "continue", label: it.targetEntryId }),
  "tool/call": (it) => ({ content: [{ type: "text", text: String(it.arguments["path"]) }], isError: false }),
  "llm/complete": (it) => {
    const text = it.messages.map(said).concat(it.tools?.map((one) => `${one.name}: ${one.description}`) ?? []);
    const message: AssistantMessage = {
      role: "assistant",
      content: [{ type: "thinking", thinking: it.system, thinkingSignature: "s" }, { type: "text", text: text.join("\n") }],
      stopReason: it.purpose === "turn" ? "toolUse" : "stop",
      usage: { input: it.maxTokens, output: 1 },
    };
    return { message };
  },
};

type Heard = { [N in keyof ServerNotifications]: (params: ServerNotifications[N]["params"]) => unknown };

export const heard: Heard = {
  "session/event": (it) => event(it.event),
  "session/resync_required": (it) => it.dropped,
  "sessions_changed": (it) => it.paths.length,
  "settings_changed": (it) => it.settings.prune.protectTokens.toFixed(),
  "notice": (it) => it.title,
};

/** A line of a transcript for each entry. */
export function line(entry: Entry): string {
  switch (entry.type) {
    case "message":
      return said(entry.message);
    case "compaction":
      return `${entry.tokensBefore.toFixed()} → ${entry.tokensAfter?.toFixed()}: ${entry.summary.trim()} ${files(entry.details)}`;
    case "branch_summary":
      return `${entry.fromId}: ${entry.summary.trim()} ${files(entry.details)}`;
    case "custom_message":
      return content(entry.content) + entry.customType.length.toFixed();
    case "custom":
      return `${entry.customType}: ${JSON.stringify(entry.data)}`;
    case "context_edit":
      return entry.replacement ? content(entry.replacement.content) : `${entry.targetId} is left out`;
    case "label":
      return `${entry.targetId}: ${entry.label?.trim() ?? "no label"}`;
    case "session_info":
      return entry.name?.trim() ?? "";
    case "title_change":
      return entry.title?.trim() ?? "";
    case "model_change":
      return entry.model ?? `${entry.provider}/${entry.modelId}`;
    case "thinking_level_change":
      return entry.thinkingLevel ?? "off";
    case "reset_boundary":
      return entry.timestamp;
    case "usage":
    case "model_usage":
      return `${entry.purpose ?? entry.kind} by ${entry.provider}/${entry.model}: ${tokens(entry.usage)}`;
    default: {
      const other: OtherEntry = entry;
      return `${other.type} ${other.id} ${String(other["anything"])}`;
    }
  }
}

function said(message: Message): string {
  switch (message.role) {
    case "user":
    case "custom":
    case "hookMessage":
    case "developer":
      return content(message.content);
    case "assistant":
      return message.errorMessage ?? `${content(message.content)} ${message.stopReason} ${tokens(message.usage)}`;
    case "toolResult":
      return `${message.toolCallId.trim()} ${message.isError === true} ${content(message.content)}`;
    case "bashExecution":
      return `${message.command.trim()} ${message.exitCode?.toFixed()} ${message.output?.trim()}`;
    case "pythonExecution":
      return message.code.trim();
    case "fileMention":
      return message.files.map((file) => file.path?.trim()).join();
    case "system":
      return content(message.content ?? "");
    case "branchSummary":
    case "compactionSummary":
      return message.summary.trim();
    default: {
      const none: never = message;
      return none;
    }
  }
}

function content(content: string | Block[]): string {
  return typeof content === "string" ? content.trim() : content.map(block).join("\n");
}

function block(block: Block): string {
  switch (block.type) {
    case "text":
      return block.text.trim();
    case "thinking":
      return block.redacted ? "" : block.thinking.trim() + (block.thinkingSignature?.length ?? 0).toFixed();
    case "toolCall":
      return `${block.id.trim()} ${block.name.trim()} ${Object.keys(block.arguments).join()}`;
    case "image":
      return `${block.mimeType.trim()} ${block.data.length.toFixed()}`;
    default: {
      const other: OtherBlock = block;
      return other.type.trim() + String(other["anything"]);
    }
  }
}

function files(details: SummaryDetails | null | undefined): string {
  return [...(details?.readFiles ?? []), ...(details?.modifiedFiles ?? [])].map((file) => file.trim()).join();
}

function tokens(usage: ReportedUsage | null | undefined): string {
  return `${((usage?.input ?? 0) + (usage?.output ?? 0)).toFixed()} for ${usage?.cost?.total?.toFixed(4)}`;
}

/** A line for each event. */
export function event(event: SessionEvent): unknown {
  switch (event.type) {
    case "entry_appended":
      return event.entry ? line(event.entry) : event.entryType?.trim();
    case "compaction_start":
      return event.contextWindow - event.tokensBefore;
    case "compaction_progress":
      return event.share.toFixed(2);
    case "summary_chunk":
    case "message_delta":
      return event.text.trim();
    case "compaction_end":
      return event.result ? files(event.result.details) : event.skippedReason;
    case "retry_start":
      return failure(event.error);
    case "retry_end":
      return event.success;
    case "recovery_start":
      return event.action;
    case "recovery_end":
      return event.outcome === "recovered";
    case "idle_start":
      return event.idleSeconds.toFixed();
    case "idle_end":
      return event.skippedReason;
    case "branch_summary_start":
      return event.entryCount.toFixed();
    case "branch_summary_end":
      return event.summaryEntryId;
    case "tree_changed":
      return event.newLeafId;
    case "handoff_start":
      return event.goal;
    case "handoff_end":
      return event.newSessionId;
    case "session_replaced":
      return event.newSessionId.trim();
    case "model_changed":
      return event.to.provider.trim();
    case "usage_updated":
      return event.usage.contextTokens.toFixed();
    case "status_changed":
      return event.status.type === "idle";
    case "pruned":
      return event.tokensSaved.toFixed();
    case "hook_start":
      return event.hook;
    case "hook_end":
      return event.durationMs.toFixed();
    case "index_ready":
      return event.entryCount.toFixed();
    case "turn_start":
      return "a turn";
    case "turn_end":
      return event.stopReason;
    case "tool_start":
      return Object.keys(event.arguments);
    case "tool_end":
      return event.isError === true;
    case "queue_changed":
      return event.queue.steering.length;
    case "settings_changed":
      return event.settings.compaction.enabled;
    case "notice":
      return event.code;
    case "settled":
      return event.aborted === true;
    default: {
      const none: never = event;
      return none;
    }
  }
}

function failure(error: ErrorData): unknown {
  switch (error.code) {
    case "invalid_params":
      return error.path.trim();
    case "content_modified":
      return error.leafEntryId;
    case "overloaded":
      return error.retryAfterMs.toFixed();
    case "not_found":
      return error.kind;
    case "busy":
      return error.operationId.trim();
    case "locked":
      return error.pid?.toFixed();
    case "nothing_to_compact":
      return error.reason;
    case "context_overflow":
      return error.floor.tools.toFixed();
    case "provider_error":
      return error.httpStatus?.toFixed();
    case "storage_error":
      return error.path.trim();
    case "unsupported_protocol_version":
      return error.supported;
    case "parse_error":
    case "invalid_request":
    case "already_initialized":
    case "frame_too_large":
    case "method_not_found":
    case "internal":
    case "request_cancelled":
    case "not_initialized":
      return error.retryable;
    default: {
      const none: never = error;
      return none;
    }
  }
}

export function wrong(entry: Entry, block: Block): void {
  // @ts-expect-error: the type of the entry is not known here
  console.log(entry.summary);
  // @ts-expect-error: a text has no arguments
  if (block.type === "text") console.log(block.arguments.path);
  // @ts-expect-error: no block has this type
  const text: Block = { type: "txet", text: "Hi." };
  // @ts-expect-error: a setting is nested
  const settings: SettingsPatch = { "compaction.enabled": false };
  // @ts-expect-error: no level has this name
  const level: Methods["session/new"]["params"] = { cwd: "/", thinkingLevel: "hgh" };
  console.log(text, settings, level);
}
