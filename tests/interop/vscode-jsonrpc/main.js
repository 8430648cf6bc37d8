// abridged from vscode-jsonrpc, the library of VS Code's language clients: Content-Length frames on node.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as rpc from "vscode-jsonrpc/node";

/**
 * Starts a daemon; `onEvent` is called with the params of each `session/event`, in their order, and `complete` runs a
 * model for the params of `llm/complete`.
 */
async function start(onEvent, complete, env) {
  // stderr is the daemon's log. A pipe that nobody reads would fill up and stop it, so it goes where ours goes.
  const child = spawn(process.env.ABRIDGED_BIN ?? "abridged", ["serve"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(child.stdout), new rpc.StreamMessageWriter(child.stdin));
  connection.onNotification("session/event", onEvent);
  // May return a promise. What it throws is answered as an error, and the daemon goes on without us. The second argument
  // is a token that is cancelled when nobody waits any more.
  connection.onRequest("llm/complete", async (params, _token) => ({ message: await complete(params) }));
  connection.listen();
  const clientInfo = { name: "vscode-jsonrpc", version: "1" };
  const hello = { protocolVersion: 1, clientInfo, processId: process.pid, capabilities: { llm: {} } };
  await connection.sendRequest("initialize", hello);
  return { child, connection };
}

/** Asks it to go, and waits until it has. */
async function end({ child, connection }) {
  const exited = once(child, "exit");
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  const [code] = await exited;
  connection.dispose();
  return code;
}

/** A question and its answer, as a host with its own agent loop reports them. */
function turn(number) {
  const text = number === 50 ? "x".repeat(45_000) : `Step ${number}: Größe, 東京 and 🚢 stay as they are. `.repeat(10);
  const usage = { input: 100 * number, output: 50, cacheRead: 0, cacheWrite: 0, totalTokens: 100 * number + 50 };
  const answer = { role: "assistant", content: [{ type: "text", text }], usage, stopReason: "stop" };
  return [{ role: "user", content: `What is step ${number}?` }, answer];
}

const summaries = {
  compaction: "## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones",
  turn_prefix: "## Original Request\nThe next step.\n\n## Early Progress\n- begun",
  short_summary: "The first steps are done. More will come.",
};

/** Runs a model; this one writes summaries and nothing else. */
async function complete({ purpose, model, system, messages }) {
  check(model.provider === "editor" && model.id === "writer", `another model is asked: ${model.provider}/${model.id}`);
  const said = messages[0].content[0].text;
  check(said.includes("Step 1: ") || purpose !== "compaction", "the conversation does not come with the request");
  // What the provider reported; left out where nobody knows. Much less than was sent would mean that it was cut.
  const input = Math.floor((system + said).length / 3);
  const usage = { input, output: 40, cacheRead: 0, cacheWrite: 0, totalTokens: input + 40 };
  return { role: "assistant", content: [{ type: "text", text: summaries[purpose] }], usage, stopReason: "stop" };
}

// Its tokens take a while to count, and a compaction waits for that: long enough to change one's mind.
const large = { role: "user", content: "Größe, 東京, 🚢\n".repeat(200_000) };

async function main(home) {
  const events = [];
  const ends = new Map(); // operationId → what is called at its end
  const endOf = (operationId) => new Promise((resolve) => ends.set(operationId, resolve));
  const onEvent = (params) => {
    events.push(params);
    if (params.event.type === "compaction_end") ends.get(params.operationId)?.(params.event);
  };

  const folders = { ABRIDGED_DATA_DIR: join(home, "data"), ABRIDGED_CONFIG_DIR: join(home, "config") };
  const daemon = await start(onEvent, complete, { ...process.env, ...folders, ABRIDGED_DISABLE_AUTOCOMPACT: "1" });
  // An undefined token would count as a second parameter, and the two would be sent as an array: so none is passed on.
  const call = (method, params, ...token) => daemon.connection.sendRequest(method, params, ...token);
  const { session: { sessionId } } = await call("session/new", { cwd: home });
  for (let number = 0; number < 80; number++) {
    await call("session/append", { sessionId, messages: turn(number) });
  }

  // Cancelled by its session: the cancel is sent right behind it. The library hands on one message at a time and lets
  // what awaits it run before the next, so `endOf` is in time for the end event of the answer's operation.
  await call("session/append", { sessionId, messages: [large] });
  const compacting = call("session/compact", { sessionId }).then(async ({ operationId }) => {
    return { operationId, end: await endOf(operationId) };
  });
  const { cancelled } = await call("session/cancel", { sessionId });
  const stopped = await compacting;
  check(cancelled.length === 1 && cancelled[0].operationId === stopped.operationId, "the cancel found something else");
  check(stopped.end.outcome === "cancelled", "a cancelled compaction went on");

  // Cancelled by taking the request back: the token sends $/cancelRequest. The answer is the normal one of a
  // compaction that was cancelled, or, where it had not begun, the error -32800.
  await call("session/append", { sessionId, messages: [large] });
  const source = new rpc.CancellationTokenSource();
  const waiting = call("session/compact", { sessionId, wait: true }, source.token);
  source.cancel();
  const outcome = await waiting.then((answer) => answer.outcome, (error) => error.code);
  check(outcome === "cancelled" || outcome === -32800, `a compaction that was taken back ended with ${outcome}`);

  // Done: the answer gives the id, the end is an event.
  let appended;
  for (let number = 80; number < 100; number++) {
    appended = await call("session/append", { sessionId, messages: turn(number) });
  }
  check(appended.usage.contextTokens >= 9950, "the provider's count is not taken over");
  const { operationId } = await call("session/compact", { sessionId, keepRecentTokens: 2000 });
  const completed = await endOf(operationId);
  check(completed.outcome === "completed", `the compaction ended with ${JSON.stringify(completed)}`);
  const context = await call("session/context", { sessionId });
  check(context.compactionEntryId === completed.result.entryId, "the context is not the compacted one");
  const newest = context.messages.at(-1);
  check(newest.content[0].text === turn(99)[1].content[0].text, "the newest answer is not as it was");

  // A file from elsewhere opens where it lies.
  const path = join(home, "elsewhere.jsonl");
  const head = { type: "session", version: 3, id: "elsewhere", timestamp: "2026-01-01T00:00:00.000Z", cwd: home };
  writeFileSync(path, JSON.stringify(head) + "\n");
  const { session: other } = await call("session/load", { path });
  await call("session/append", { sessionId: other.sessionId, messages: turn(1) });

  // A session whose model only we can run: its summary is asked of us.
  const ours = (await call("session/new", { cwd: home, model: "editor/writer" })).session.sessionId;
  for (let number = 0; number < 20; number++) {
    await call("session/append", { sessionId: ours, messages: turn(number) });
  }
  const answer = await call("session/compact", { sessionId: ours, keepRecentTokens: 1000, wait: true });
  const { method, summary, shortSummary, rejected } = answer.result;
  check(method === "llm" && rejected.length === 0, `no summary of ours: ${JSON.stringify(answer.result)}`);
  check(summary.includes("Go through the steps."), `another summary than ours: ${summary}`);
  check(shortSummary === summaries.short_summary, `another short one: ${shortSummary}`);
  const { entries: spent } = await call("session/entries", { sessionId: ours, types: ["usage"] });
  check(spent.some(({ purpose }) => purpose === "compaction"), "its cost is not noted");

  check((await end(daemon)) === 0, "the daemon did not end well");
  checkEvents(events, sessionId, [operationId, answer.operationId]);
  console.log(`vscode-jsonrpc: ok, ${events.length} events`);
}

function checkEvents(events, sessionId, completed) {
  const last = new Map();
  const open = new Set();
  const ends = [];
  for (const { sessionId, epoch, seq, operationId, event } of events) {
    const key = `${sessionId} ${epoch}`;
    check(seq === (last.get(key) ?? seq - 1) + 1, `a gap before event ${seq} of ${key}`);
    last.set(key, seq);
    if (event.type === "compaction_start") open.add(operationId);
    if (event.type !== "compaction_end") continue;
    check(open.delete(operationId), `an end without its start, or a second one, of ${operationId}`);
    ends.push(event.outcome === "completed" ? operationId : event.outcome);
  }
  check(open.size === 0, "a start without an end");
  check(last.size === 3, `events of three sessions, not of ${last.size}`);
  // The request that was taken back ends as cancelled, or never began.
  const right = [1, 2].map((cancelled) => [...Array(cancelled).fill("cancelled"), ...completed].join());
  check(right.includes(ends.join()), `the compactions ended as ${ends}`);
  const types = events.filter((params) => params.sessionId === sessionId).map((params) => params.event.type);
  check(types.slice(-2).join() === "status_changed,settled", `the last events are ${types.slice(-2)}`);
  const whole = events.filter(({ event }) => event.entry?.message?.content?.[0]?.text === "x".repeat(45_000));
  check(whole.length === 1, "45,000 characters did not come as a whole");
  const announced = events.filter(({ event }) => event.type === "entry_appended" && !event.entry);
  check(announced.length === 2, "the large messages are not announced by their type alone");
}

function check(holds, what) {
  if (!holds) throw new Error(`vscode-jsonrpc: ${what}`);
}

const home = mkdtempSync(join(tmpdir(), "abridged-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
await main(home);
