// A host with an agent loop of its own: it runs the model and the tools, and abridged keeps the session in the window.
// Usage: node host_loop.mts BASE_URL MODEL WINDOW [ABRIDGED] < requests of the user, one a line
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { AssistantMessage, Block, Message, Methods, SettingsInput } from "../protocol/abridged.d.ts";

const [baseUrl = "", id = "", window, abridged = "abridged"] = process.argv.slice(2);
const model = { provider: "local", id };
const settings: SettingsInput = { models: [{ ...model, api: "openai_chat", baseUrl, contextWindow: Number(window) }] };
const read = { name: "read", inputSchema: { type: "object", properties: { path: { type: "string" } } } };
const daemon = spawn(abridged, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
daemon.on("exit", (code) => process.exit(code ?? 1));
const frames = createInterface({ input: daemon.stdout })[Symbol.asyncIterator]();
let lastId = 0;

/** Sends a request to the daemon and returns its result. The events before the answer are skipped. */
async function call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
  daemon.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params }) + "\n");
  let answer;
  do answer = JSON.parse((await frames.next()).value);
  while (answer.id !== lastId);
  if (answer.error) throw new Error(`${answer.error.data.code}: ${answer.error.message}`);
  return answer.result;
}

/** Sends a request to the provider and returns its answer, or its error, as an assistant message. */
async function ask(request: unknown): Promise<AssistantMessage & { content: Block[] }> {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) };
  const response = await fetch(`${baseUrl}/chat/completions`, post).catch(String);
  if (typeof response === "string" || !response.ok) {
    const errorMessage = typeof response === "string" ? response : `${response.status} ${await response.text()}`;
    return { role: "assistant", content: [], stopReason: "error", errorMessage };
  }
  const { choices: [{ message, finish_reason }], usage } = await response.json();
  const content: Block[] = [{ type: "text", text: message.content ?? "" }];
  for (const { id, function: called } of message.tool_calls ?? [])
    content.push({ type: "toolCall", id, name: called.name, arguments: JSON.parse(called.arguments) });
  const counts = { input: usage.prompt_tokens, output: usage.completion_tokens };
  const stopReason = { tool_calls: "toolUse", length: "length" }[finish_reason as string] ?? "stop";
  return { role: "assistant", content, stopReason, usage: counts };
}

/** Runs the model and its tools until an answer calls no tool, and returns the text of that answer. */
async function turn(request: string): Promise<unknown> {
  for (let messages: Message[] = [{ role: "user", content: request }], again = false; ; ) {
    if (!again) await call("session/append", { sessionId, messages });
    const answer = await ask((await call("session/context", { sessionId, format: "openai_chat" })).body);
    const { next } = await call("session/append", { sessionId, messages: [answer] });
    again = next.type !== "none" && next.willRetry;
    const calls = answer.content.filter((block) => block.type === "toolCall" && !again);
    if (calls.length === 0 && !again) return answer.errorMessage ?? answer.content[0]?.["text"];
    messages = calls.map((it) => ({ role: "toolResult", toolCallId: String(it["id"]), content: "3 lines" }));
  }
}

await call("initialize", { protocolVersion: 1 });
const { sessionId } = (await call("session/new", { cwd: process.cwd(), model, tools: [read], settings })).session;
for await (const line of createInterface({ input: process.stdin }))
  console.log(await turn(line).catch((error) => `no answer: ${error.message}`));
daemon.stdin.end();
