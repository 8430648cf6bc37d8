// Compacts a session file, with two hooks: one stops compactions while a file FILE.hold exists, the other one adds notes.
// Usage: node hooks.mts FILE [ABRIDGED]; the notes are the lines of FILE.notes
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { ClientRequests, Methods } from "../protocol/abridged.d.ts";

type Hook<M extends keyof ClientRequests> =
  (params: ClientRequests[M]["params"], signal: AbortSignal) => Promise<ClientRequests[M]["result"]>;
type Hooks = { [M in keyof ClientRequests]?: Hook<M> };

const [path = "", abridged = "abridged"] = process.argv.slice(2);

const hooks: Hooks = {
  async "hook/session_before_compact"({ reason }) {
    if (existsSync(`${path}.hold`)) return { action: "cancel", reason: `${path}.hold exists (${reason})` };
    return { action: "continue" };
  },
  async "hook/session_compacting"(_, signal) {
    const notes = await readFile(`${path}.notes`, { encoding: "utf8", signal });
    return { context: notes.split("\n") };
  },
};

const daemon = spawn(abridged, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map<unknown, (frame: any) => void>();
const asked = new Map<unknown, AbortController>();
let lastId = 0;
daemon.on("exit", (code) => process.exit(code ?? 1));
const send = (frame: object) => daemon.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...frame }) + "\n");

/** Sends a request to the daemon and returns its result. */
async function call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
  const id = ++lastId;
  send({ id, method, params });
  const { result, error } = await new Promise<any>((resolve) => waiting.set(id, resolve));
  if (error) throw new Error(`${error.data.code}: ${error.message}`);
  return result;
}

/** Answers a request of the daemon, which may take it back. With an error the compaction goes on without the hook. */
async function answer({ id, method, params }: { id: string; method: keyof Hooks; params: never }) {
  const taken = new AbortController();
  asked.set(id, taken);
  try {
    const hook = hooks[method] as Hook<never> | undefined;
    if (!hook) throw new Error(`there is no ${method}`);
    send({ id, result: await hook(params, taken.signal) });
  } catch (error) {
    send({ id, error: { code: -32603, message: String(error) } });
  }
  asked.delete(id);
}

createInterface({ input: daemon.stdout }).on("line", (line) => {
  const frame = JSON.parse(line);
  if (frame.method === "$/cancelRequest") asked.get(frame.params.id)?.abort();
  else if (frame.method && frame.id) void answer(frame);
  else if (frame.id) waiting.get(frame.id)?.(frame);
});

await call("initialize", { capabilities: { hooks: { events: Object.keys(hooks) as never, timeoutMs: 5000 } } });
const { sessionId } = (await call("session/load", { path })).session;
const end = await call("session/compact", { sessionId, keepRecentTokens: 2000, wait: true }).catch(String);
if (typeof end === "string") console.log("refused", end);
else if ("outcome" in end) console.log(end.outcome, JSON.stringify(end.result ?? end.error ?? null));
daemon.stdin.end();
