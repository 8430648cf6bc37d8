// An editor that speaks ACP by its official SDK and is stricter than it: each frame of the agent is checked against the stable
// schema of ACP v1, and each update of a compaction against the rules of the protocol.

import * as acp from "@agentclientprotocol/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";

const schema = createRequire(import.meta.url).resolve("@agentclientprotocol/sdk/schema/v1/schema.json");
const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(JSON.parse(readFileSync(schema, "utf8")), "acp");

/** Fails unless a value has this type of the schema. */
function checkType(name, value) {
  const validate = ajv.getSchema(`acp#/$defs/${name}`);
  assert(validate(value), `no ${name}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`);
}

const answers = {
  "initialize": "InitializeResponse", "session/new": "NewSessionResponse", "session/load": "LoadSessionResponse",
  "session/list": "ListSessionsResponse", "session/prompt": "PromptResponse",
};

/** The SDK writes errors of handlers into its log. Here they end the program. */
const strictly = (handler) => ({ params }) => {
  try {
    return handler(params);
  } catch (error) {
    setImmediate(() => { throw error; });
    throw error;
  }
};

export class Editor {
  /** All updates, and the user's prompts among them in the form of the replay. */
  transcript = [];
  /** Compactions by their ids: `{status, summary, error, pieces, resets, written}`. */
  compactions = new Map();
  /** The choice for each permission that is asked for. */
  choice = "allow_once";
  #raw = [];
  #sessions = new Set();
  #taken = 0;
  #waiting = [];

  constructor(command, env, capabilities) {
    this.capabilities = capabilities;
    this.child = spawn(command[0], command.slice(1), { env, stdio: ["pipe", "pipe", "inherit"] });
    const { readable, writable } = acp.ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(this.child.stdout));
    const record = new TransformStream({
      transform: (frame, controller) => {
        if (frame.result?.sessionId) this.#sessions.add(frame.result.sessionId);
        if (frame.method === "session/update") this.#raw.push({ ...frame.params, isKnown: this.#sessions.has(frame.params.sessionId) });
        controller.enqueue(frame);
      },
    });
    this.agent = acp.client()
      .onNotification("session/update", strictly((params) => this.#take(params)))
      .onRequest("session/request_permission", strictly((params) => this.#permit(params)))
      .connect({ readable: readable.pipeThrough(record), writable }).agent;
  }

  async call(method, params) {
    if (method === "session/load") this.#sessions.add(params.sessionId);
    const answer = await this.agent.request(method, params);
    checkType(answers[method], answer);
    return answer;
  }

  initialize() {
    return this.call("initialize", { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: this.capabilities });
  }

  /** Sends a prompt and returns the reason for which it stops. At its end no compaction is open. */
  async prompt(sessionId, text) {
    const content = { type: "text", text };
    if (!text.startsWith("/")) this.transcript.push({ sessionUpdate: "user_message_chunk", content });
    const { stopReason } = await this.call("session/prompt", { sessionId, prompt: [content] });
    for (const [id, { status }] of this.compactions) assert.notEqual(status, "in_progress", `${id} is open after the prompt`);
    return stopReason;
  }

  cancel(sessionId) {
    return this.agent.notify("session/cancel", { sessionId });
  }

  /** The next update for which the function is true. */
  next(passes) {
    return new Promise((resolve) => this.#waiting.push({ passes, resolve }));
  }

  /** The newest compaction. */
  get compaction() {
    return [...this.compactions.values()].at(-1);
  }

  #take(params) {
    const { isKnown, ...raw } = this.#raw[this.#taken++];
    assert.deepEqual(params, raw, "the SDK knows this update in another form, or dropped the one before");
    assert(isKnown, "an update precedes the answer that names its session");
    checkType("SessionNotification", params);
    const { update } = params;
    this.transcript.push(update);
    if (update.sessionUpdate.startsWith("compaction_")) this.#compact(update);
    assert(update.sessionUpdate !== "notice" || this.capabilities.session?.notices, "a notice for an editor that shows none");
    this.#waiting = this.#waiting.filter(({ passes, resolve }) => !passes(update) || resolve(update));
  }

  #compact({ sessionUpdate, compactionId: id, status, summary, error, content }) {
    assert(this.capabilities.session?.compaction, "a compaction for an editor that shows none");
    const known = this.compactions.get(id);
    const compaction = known ?? { summary: [], pieces: 0, resets: 0 };
    assert(!known || known.status === "in_progress", `${id} changes after its end`);
    this.compactions.set(id, compaction);
    if (sessionUpdate === "compaction_summary_chunk") {
      assert(known, `a piece of a summary precedes the start of ${id}`);
      compaction.summary.push(content);
      compaction.pieces += 1;
      return;
    }
    assert(["in_progress", "completed", "failed", "cancelled"].includes(status), `the status ${status} is none of the protocol`);
    assert(!summary?.length || status === "completed", `a summary of a compaction that is ${status}`);
    assert(error == null || status === "failed", `an error of a compaction that is ${status}`);
    if (summary !== undefined) {
      if (status === "in_progress") compaction.resets += 1;
      compaction.written = textOf(compaction.summary);
      compaction.summary = summary ?? [];
    }
    assert(/^(in_progress|completed)$/.test(status) || !compaction.summary.length, `pieces of a summary stay in one that is ${status}`);
    Object.assign(compaction, { status, error });
  }

  #permit(params) {
    checkType("RequestPermissionRequest", params);
    const call = this.transcript.findLast((update) => update.sessionUpdate === "tool_call");
    assert.equal(call?.toolCallId, params.toolCall.toolCallId, "a permission for a call that was not shown");
    return { outcome: { outcome: "selected", optionId: this.choice } };
  }

  /** Closes the connection, after which the agent ends by itself. */
  async close() {
    const exited = once(this.child, "exit");
    this.child.stdin.end();
    const [code] = await exited;
    assert.equal(code, 0, "the agent did not end well");
    assert.equal(this.#taken, this.#raw.length, "the SDK dropped updates");
  }
}

export const textOf = (blocks) => blocks.map((block) => block.text).join("");

/** A transcript as a reader of the editor sees it: messages, calls with their results, and compactions that are in force. */
export function shown({ transcript, compactions }) {
  const items = new Map();
  for (const update of transcript) {
    const { sessionUpdate: kind, toolCallId, compactionId, messageId, content } = update;
    if (kind.endsWith("_message_chunk")) {
      const id = messageId && kind !== "user_message_chunk" ? messageId : items.size;
      items.set(id, { kind, text: (items.get(id)?.text ?? "") + content.text });
    } else if (kind.startsWith("tool_call")) {
      const { title, status, rawInput } = { ...items.get(toolCallId), ...update };
      items.set(toolCallId, { title, status, rawInput, content: content ?? items.get(toolCallId)?.content });
    } else if (kind.startsWith("compaction_") && compactions.get(compactionId).status === "completed") {
      items.set(compactionId, { kind: "compaction", text: textOf(compactions.get(compactionId).summary) });
    }
  }
  return [...items.values()];
}
