// A small client, checked and never run: what a client author would write must be accepted by the compiler, and what
// is wrong must not be. A line under `@ts-expect-error` that compiles is an error itself.

import type {
  Answer,
  ClientNotifications,
  ErrorCode,
  ErrorData,
  ErrorNumbers,
  EventOf,
  Message,
  Methods,
  Notifications,
  ServerFrame,
  ServerNotification,
  SessionEvent,
  SettingsInput,
} from "../../../protocol/abridged.d.ts";

declare function write(line: string): void;
declare function answerTo(id: number): Promise<unknown>;

let last = 0;

async function call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
  const id = ++last;
  write(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  const answer = (await answerTo(id)) as Answer<M>;
  if (answer.error) throw new Failed(answer.error.message, answer.error.data);
  return answer.result;
}

function tell<M extends keyof ClientNotifications>(method: M, params: ClientNotifications[M]["params"]): void {
  write(JSON.stringify({ jsonrpc: "2.0", method, params }));
}

class Failed extends Error {
  constructor(message: string, readonly data: ErrorData) {
    super(message);
  }
}

// Requests: what may be left out may be left out, and what an answer always has is there.
export async function session(): Promise<string> {
  const hello = await call("initialize", { protocolVersion: 1, clientInfo: { name: "check" } });
  tell("initialized", {});
  const dataDir: string = hello.dataDir;
  const created = await call("session/new", { cwd: dataDir, model: "local/qwen", settings: {} });
  await call("session/new", { cwd: "/", model: { provider: "local", id: "qwen" }, title: null });
  const id = created.session.sessionId;
  const window: number | null = created.session.usage.contextWindow;
  const messages: Message[] = [
    { role: "user", content: "Hello.", myOwnField: 1 },
    { role: "assistant", content: [{ type: "text", text: "Hi." }], stopReason: "stop", usage: { input: 3, output: 2 } },
    { role: "toolResult", toolCallId: "c", content: "out", isError: false },
  ];
  const appended = await call("session/append", { sessionId: id, messages });
  if (appended.next.type === "maintenance") console.log(appended.next.operationId, window);
  const context = await call("session/context", { sessionId: id, wait: true });
  for (const message of context.messages ?? []) {
    if (message.role === "bashExecution") console.log(message.command.length);
  }
  const compacted = await call("session/compact", { sessionId: id, wait: true, keepRecentTokens: 1_000 });
  if ("preparation" in compacted) console.log(compacted.preparation.planHash);
  else if ("outcome" in compacted) console.log(compacted.outcome === "completed", compacted.result?.summary);
  else console.log(compacted.operationId);
  const nothing: null = await call("session/close", { sessionId: id });
  return `${nothing}`;
}

// Frames: an event is told from an answer by its method, and its payload by its type.
export function hear(frame: ServerFrame): void {
  if (Array.isArray(frame)) return frame.forEach(hear);
  if ("method" in frame) return told(frame);
  if (frame.error) return failed(frame.error.data);
  console.log(frame.id, frame.result);
}

function told(frame: ServerNotification): void {
  switch (frame.method) {
    case "session/event":
      return happened(frame.params.sessionId, frame.params.event);
    case "session/resync_required":
      return console.log(frame.params.lastSeq + frame.params.dropped);
    case "notice":
      return console.log(frame.params.severity === "warning", frame.params.title, frame.params.detail?.length);
  }
}

function happened(sessionId: string, event: SessionEvent): void {
  switch (event.type) {
    case "entry_appended":
      return console.log(sessionId, event.entry?.id ?? event.entryType);
    case "compaction_progress":
      return console.log(event.done / event.total, event.stage === "summarizing");
    case "summary_chunk":
      return console.log(event.part + event.attempt, event.text.length);
    case "compaction_end":
      return ended(event);
    default:
      return console.log(event.type);
  }
}

function ended(event: EventOf<"compaction_end">): void {
  console.log(event.outcome, event.result?.tokensAfter, event.usage.contextTokens.toFixed());
  // @ts-expect-error: an end has no text
  console.log(event.text);
}

// Errors: the code says what comes with it.
function failed(error: ErrorData): void {
  switch (error.code) {
    case "busy":
      return console.log(error.operationId, error.kind);
    case "nothing_to_compact":
      return console.log(error.reason === "too_short");
    case "context_overflow":
      return console.log(error.floor.latestTurn, error.contextWindow);
    default:
      return console.log(error.retryable);
  }
}

export const busy: ErrorNumbers["busy"] = -32003;
export const code: ErrorCode = "nothing_to_compact";
export const settings: SettingsInput = { compaction: { thresholdPercent: 80 } };
export type Heard = Notifications["session/event"]["params"];

export function wrong(): void {
  // @ts-expect-error: there is no such method
  void call("session/frobnicate", {});
  // @ts-expect-error: cwd is missing
  void call("session/new", {});
  // @ts-expect-error: nobody knows this field
  void call("session/compact", { sessionId: "s", keepRecent: 1 });
  // @ts-expect-error: no role of a message
  const message: Message = { role: "robot", content: "Beep." };
  // @ts-expect-error: a request, not a notification
  tell("ping", {});
  // @ts-expect-error: no code of ours
  const unknown: ErrorCode = "teapot";
  console.log(message, unknown);
}
