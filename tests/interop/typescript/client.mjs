// The client against a real daemon: calls, errors, events, callbacks, restarts, and the end.

import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { AbridgedError, BinaryNotFound, connect, DaemonExited, fit } from "abridged-client";

import { check, isAlive, refusal } from "./check.mjs";

const summary = "## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones";
const turn = (number) => [
  { role: "user", content: `What is step ${number}?` },
  { role: "assistant", content: `Step ${number}: Größe, 東京 and 🚢 stay as they are.\u2028 `.repeat(12), stopReason: "stop" },
];
const next = (client, event) =>
  new Promise((resolve) => {
    const stop = client.on(event, (params) => {
      stop();
      resolve(params);
    });
  });

export async function callsAndErrors(home) {
  const client = await connect({ clientInfo: { name: "test", version: "1" } });
  check(client.info.serverInfo.name === "abridged" && client.info.protocolVersion === 1, "the handshake has no result");
  const { session } = await client.call("session/new", { cwd: home, contextWindow: 100_000 });
  check(session.usage.contextWindow === 100_000, "the params do not arrive");

  const missing = await refusal(client.call("session/status", { sessionId: "nowhere" }));
  check(missing instanceof AbridgedError && missing.code === "not_found" && missing.data.kind === "session", `not_found is ${missing}`);
  check(missing.rpcCode === -32002 && missing.retryable === false && missing.message.includes("session/load"), "the fields of an error");
  check(missing.stack.includes("client.mjs"), "the stack of an error does not name the call");
  const typo = await refusal(client.call("session/compact", { sessionId: session.sessionId, dryrun: true }));
  check(typo.code === "invalid_params" && typo.data.path === "dryrun", `a misspelt param is ${JSON.stringify(typo.data)}`);

  // Code that awaits an answer runs before the events that follow it, so a listener that it adds misses none.
  const { session: other } = await client.call("session/new", { cwd: home });
  const events = [];
  client.onEvent((params) => events.push(params));
  const { entryIds } = await client.call("session/append", { sessionId: other.sessionId, messages: turn(1) });
  check(events.length === 0, "an event came before the answer that introduces it");
  const settled = [];
  const failing = client.onEvent(() => {
    failing();
    throw new Error("a listener that fails");
  });
  const warned = once(process, "warning");
  const stop = client.onEvent(({ event }) => settled.push(event.type), { sessionId: session.sessionId });
  for (let number = 0; number < 60; number++) await client.call("session/append", { sessionId: session.sessionId, messages: turn(number) });
  const { outcome } = await client.call("session/compact", { sessionId: session.sessionId, keepRecentTokens: 1000, wait: true });
  check(outcome === "completed" && settled.at(-1) === "settled", `the compaction ended with ${outcome}, ${settled.at(-1)}`);
  check((await warned)[0].detail.includes("Error: a listener that fails"), "the error of a listener is not reported");
  stop();
  const before = settled.length;
  await client.call("session/append", { sessionId: session.sessionId, messages: turn(60) });
  await client.call("ping");
  check(settled.length === before, "a listener that was removed is called");
  const seen = events.filter(({ sessionId }) => sessionId === session.sessionId).map(({ seq }) => seq);
  check(
    seen.every((seq, index) => seq === seen[0] + index),
    "the events are not in order",
  );
  check(
    events.some(({ entryId }) => entryId === entryIds[0]),
    "an event of another session did not come",
  );

  const large = "The wind blows. ".repeat(330_000);
  const { session: wide } = await client.call("session/new", { cwd: home, contextWindow: 10_000_000 });
  await client.call("session/append", { sessionId: wide.sessionId, messages: [{ role: "user", content: large }] });
  const { messages } = await client.call("session/context", { sessionId: wide.sessionId });
  check(
    large.length > 5_000_000 &&
      [messages[0].content]
        .flat()
        .map((block) => block.text ?? block)
        .join("") === large,
    "a line of 5 MB",
  );

  const tooLarge = await refusal(
    client.call("session/append", { sessionId: wide.sessionId, messages: [{ role: "user", content: "x".repeat(68_000_000) }] }),
  );
  check(tooLarge.code === "frame_too_large" && tooLarge.message.includes("session/append"), `a request over the limit is ${tooLarge}`);

  const { pid } = client;
  await client.close();
  check(!isAlive(pid), "the daemon outlives close()");
  check((await refusal(client.call("ping"))).code === "closed", "a call after close()");
  return events.length;
}

export async function cancelsAndCallbacks(home) {
  const asked = [];
  let mode = "answer";
  const client = await connect({
    llm: async (params, { signal }) => {
      asked.push({ purpose: params.purpose, signal });
      if (mode === "fail") throw new Error("the model of the test is out");
      if (mode === "hang") await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return { message: { role: "assistant", content: [{ type: "text", text: summary }], stopReason: "stop" } };
    },
    hooks: { session_compacting: () => ({ context: ["The hook was here."] }) },
  });
  const open = async () => {
    const { session } = await client.call("session/new", { cwd: home, model: "editor/writer", contextWindow: 16_384 });
    for (let number = 0; number < 20; number++)
      await client.call("session/append", { sessionId: session.sessionId, messages: turn(number) });
    return { sessionId: session.sessionId, keepRecentTokens: 500, wait: true };
  };
  const hooks = [];
  client.onEvent(({ event }) => event.type === "hook_end" && hooks.push(`${event.hook} ${event.outcome}`));
  const { result } = await client.call("session/compact", await open());
  check(
    result.method === "llm" && result.summary.includes("Go through the steps."),
    `no summary of the callback: ${JSON.stringify(result)}`,
  );
  check(hooks.join().includes("session_compacting ok"), `the hook ended with ${hooks}`);

  mode = "fail";
  const failed = (await client.call("session/compact", await open())).result;
  check(
    failed.method === "extractive" && JSON.stringify(failed.rejected).includes("the model of the test is out"),
    "the error of a callback is lost",
  );

  mode = "hang";
  const compact = await open();
  const cancel = new AbortController();
  const ended = new Promise((resolve) => client.onEvent(({ event }) => event.type === "compaction_end" && resolve(event.outcome), compact));
  asked.length = 0;
  const compacting = refusal(client.call("session/compact", compact, { signal: cancel.signal }));
  while (asked.length === 0) await new Promise(setImmediate);
  cancel.abort();
  check((await compacting).name === "AbortError", "a call that was cancelled does not fail");
  check((await ended) === "cancelled", "the daemon did not cancel the compaction");
  const { signal } = asked[0];
  if (!signal.aborted) await once(signal, "abort", { signal: AbortSignal.timeout(5000) }); // `$/cancelRequest` follows the end
  check((await refusal(client.call("ping", {}, { signal: cancel.signal }))).name === "AbortError", "a call with an aborted signal");
  const late = await refusal(client.call("session/compact", await open(), { timeoutMs: 50 }));
  check(late.code === "timed_out" && late.message.includes("session/compact"), `a timeout is ${late}`);
  await client.close();
}

export async function restarts(home) {
  const client = await connect();
  const open = async (params) => (await client.call("session/new", { cwd: home, ...params })).session;
  const settings = { compaction: { keepRecentTokens: 4321 } };
  const [kept, configured, ephemeral, closed] = [
    await open({ contextWindow: 17_000, settings }),
    await open({ contextWindow: 18_000 }),
    await open({ ephemeral: true }),
    await open({}),
  ];
  const path = join(home, "elsewhere.jsonl");
  writeFileSync(
    path,
    JSON.stringify({ type: "session", version: 3, id: "elsewhere", timestamp: "2026-01-01T00:00:00.000Z", cwd: home }) + "\n",
  );
  const { session: loaded } = await client.call("session/load", { path, contextWindow: 19_000 });
  await client.call("session/configure", { sessionId: loaded.sessionId, contextWindow: 20_000 });
  await client.call("session/append", { sessionId: kept.sessionId, messages: turn(1) });
  await client.call("session/close", { sessionId: closed.sessionId });

  const [exited, reconnected] = [next(client, "exit"), next(client, "reconnected")];
  const { pid } = client;
  // An append without an answer: whether it was stored is unknown, so the client does not repeat it.
  const lost = refusal(
    client.call("session/append", { sessionId: kept.sessionId, messages: [{ role: "user", content: "x".repeat(3_000_000) }] }),
  );
  // A call that is made in answer to the failure waits for the next daemon.
  const waiting = lost.then(() => client.call("session/status", { sessionId: kept.sessionId }));
  process.kill(pid, "SIGKILL");
  const error = await lost;
  check(error instanceof DaemonExited && error.signal === "SIGKILL" && error.exitCode === null, `an open call fails with ${error}`);
  const { session } = await waiting;
  check(session.sessionId === kept.sessionId && session.usage.contextWindow === 17_000, "a session is not opened again");
  check((await exited).willRestart, "the exit is not reported");
  const statuses = Object.fromEntries((await reconnected).sessions.map(({ sessionId, status }) => [sessionId, status]));
  check(client.pid !== pid && isAlive(client.pid), "there is no new daemon");
  check(
    statuses[kept.sessionId] === "expired" && statuses[configured.sessionId] === "expired" && statuses[ephemeral.sessionId] === "lost",
    `the sessions are ${JSON.stringify(statuses)}`,
  );
  check(!(closed.sessionId in statuses) && Object.keys(statuses).length === 4, "other sessions are opened again");
  const { settings: inForce } = await client.call("settings/get", { sessionId: kept.sessionId });
  check(inForce.compaction.keepRecentTokens === 4321, "the settings of a session are lost");
  const { session: again } = await client.call("session/status", { sessionId: loaded.sessionId });
  check(again.path === path && again.usage.contextWindow === 20_000, `a configured session is as it was loaded: ${JSON.stringify(again)}`);
  const event = new Promise((resolve) => client.onEvent(resolve, { sessionId: configured.sessionId }));
  await client.call("session/append", { sessionId: configured.sessionId, messages: turn(2) });
  check((await event).epoch === client.info.epoch, "a session that was opened again has no events");
  await client.close();
}

/** A daemon that does not come up again: the client gives up and says why. */
export async function givesUp(home) {
  const [once, broken] = [join(home, "once"), join(home, "broken")];
  const binary = process.env.ABRIDGED_BIN;
  writeFileSync(
    broken,
    `#!/bin/sh\n[ -e '${once}' ] && { echo 'the disk is on fire' >&2; exit 3; }\ntouch '${once}'\nexec '${binary}' "$@"\n`,
  );
  chmodSync(broken, 0o755);
  const client = await connect({ binary: broken });
  const exits = [];
  const over = new Promise((resolve) =>
    client.on("exit", (exit) => {
      exits.push(exit);
      if (!exit.willRestart) resolve(exit);
    }),
  );
  const first = next(client, "exit");
  process.kill(client.pid, "SIGKILL");
  check((await first).error.signal === "SIGKILL", "the first end");
  const waiting = refusal(client.call("ping"));
  const { error } = await over;
  check(exits.length === 6, `it was started ${exits.length - 1} times`);
  check(
    error.exitCode === 3 && error.stderr === "the disk is on fire" && error.message.includes("the disk is on fire"),
    `the end is ${error}`,
  );
  check((await waiting) === error && (await refusal(client.call("ping"))) === error, "calls wait for nothing");
  await client.close();

  const never = await refusal(connect({ binary: broken }));
  check(never instanceof DaemonExited && never.exitCode === 3, `a daemon that never starts is ${never}`);
}

/** Each process ends by itself, and so does its daemon. */
export async function leavesNothing(home) {
  const run = (script, env = {}) =>
    promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: import.meta.dirname,
      env: { ...process.env, ...env },
      timeout: 20_000,
    });

  const none = { ABRIDGED_BIN: "", PATH: join(home, "nowhere"), HOME: join(home, "nobody") };
  const script = `import { connect } from "abridged-client";
    await connect().catch((error) => console.log(JSON.stringify([error.name, error.message, error.places])));`;
  const [name, message, places] = JSON.parse((await run(script, none)).stdout);
  check(
    name === "BinaryNotFound" && message.includes("cargo install abridged") && message.includes("ABRIDGED_BIN"),
    `a missing binary is ${message}`,
  );
  check(
    places.length === 5 && places.some((place) => place.includes(none.PATH)) && places.some((place) => place.includes(none.HOME)),
    `the places are ${places}`,
  );
  const wrong = await refusal(connect({ binary: join(home, "nowhere") }));
  check(wrong instanceof BinaryNotFound && wrong.places.length === 1, "another binary takes the place of a chosen one");

  // The shared daemon holds the process open for a call, and for nothing else.
  const shared = `import { fit } from "abridged-client"; import { execFileSync } from "node:child_process";
    const fitted = await fit({ messages: [{ role: "user", content: "Go on." }], contextWindow: 16384 });
    console.log(JSON.stringify([fitted.messages.length, execFileSync("pgrep", ["-P", String(process.pid), "abridged"]).toString().trim()]));`;
  const [length, pid] = JSON.parse((await run(shared)).stdout);
  check(length === 1, "fit() in a process of its own");
  for (const deadline = Date.now() + 5000; isAlive(Number(pid)); await new Promise((resolve) => setTimeout(resolve, 20)))
    check(Date.now() < deadline, "the shared daemon outlives its process");

  // Calls of one process share a daemon. A call whose daemon ends is made again.
  const long = { role: "user", content: "The wind blows. ".repeat(1000) };
  const answers = await Promise.all([1, 2, 3].map(() => fit({ messages: [long], contextWindow: 100_000 })));
  check(new Set(answers.map(({ tokensBefore }) => tokensBefore)).size === 1, "calls at the same time");
}
