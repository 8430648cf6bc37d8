// The hooks without OpenCode: what they keep, and that no error leaves them.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { dyingDaemon } from "./dying.js";

const sessionID = "ses_1";
const chosen = { providerID: "loopback", modelID: "small" };
const long = (subject, lines) => Array.from({ length: lines }, (_, line) => `${subject}, line ${line}: ${(line * 7919) % 1009}.`).join("\n");

/** The messages of a session: requests with a file, answers with reasoning, tool calls that succeed, fail and were aborted. */
function conversation(turns) {
  return Array.from({ length: turns }, (_, turn) => {
    const [user, assistant] = [`msg_${turn}_1`, `msg_${turn}_2`];
    const part = (messageID, n, more) => ({ id: `prt_${turn}_${n}`, messageID, sessionID, ...more });
    const tool = (n, state) => part(assistant, n, {
      type: "tool", callID: `call_${turn}_${n}`, tool: "read", state: { input: { filePath: `part-${n}.rs` }, time: { start: 1, end: 2 }, ...state },
    });
    return [
      { info: { id: user, sessionID, role: "user", agent: "build", model: chosen, time: { created: turn } }, parts: [
        part(user, 1, { type: "text", text: `Go on with part ${turn}. ${long("The request", 40)}` }),
        part(user, 2, { type: "file", mime: "image/png", filename: "plan.png", url: "data:image/png;base64,AAAA" }),
      ] },
      { info: { id: assistant, sessionID, role: "assistant", parentID: user, ...chosen, time: { created: turn } }, parts: [
        part(assistant, 3, { type: "step-start" }),
        part(assistant, 4, { type: "reasoning", text: "I read the file first.", time: { start: 1 } }),
        tool(5, { status: "completed", output: long("The file", 60), title: "", metadata: {} }),
        tool(6, { status: "error", error: "The file does not exist." }),
        tool(7, { status: "running" }),
        part(assistant, 8, { type: "text", text: `Part ${turn} is read. ${long("The answer", 40)}` }),
      ] },
    ];
  }).flat();
}

/** OpenCode's client, as far as the plugin uses it. */
function fakeHost(history, said, more = {}) {
  const models = { small: { limit: { context: 8_000, output: 500 } } };
  return {
    session: { messages: async () => ({ data: history }) },
    config: { providers: async () => ({ data: { providers: [{ id: "loopback", models }] } }) },
    app: { log: async ({ body }) => void said.push(body.message) },
    tui: { showToast: async () => {} },
    ...more,
  };
}

/** Runs the hooks of one compaction on the messages. */
async function compact(plugin, client, options, messages, context = []) {
  const hooks = await plugin.server({ client }, options);
  await hooks.config({});
  await hooks["experimental.session.compacting"]({ sessionID }, { context });
  await hooks["experimental.chat.messages.transform"]({}, { messages });
  return hooks;
}

export async function checkHooks(folder, { daemon, home, check }) {
  const { default: plugin } = await import(pathToFileURL(join(folder, "dist", "index.js")).href);
  process.env.ABRIDGED_DATA_DIR = join(home, "hooks-data");
  process.env.ABRIDGED_CONFIG_DIR = join(home, "hooks-config");
  const working = { binary: daemon };

  const history = conversation(12);
  const fitted = [...history];
  const hooks = await compact(plugin, fakeHost(history, []), working, fitted);
  const [first, ...kept] = fitted;
  check(/<summary>/.test(first.parts[0].text), "the first message is no summary");
  check(kept.length > 1 && kept.length < history.length, `${kept.length} of ${history.length} messages are kept`);
  check(kept.every((entry, at) => entry === history[history.length - kept.length + at]), "a kept message is not the same object");

  // The texts of another plugin need room, and so does the summary of an earlier compaction.
  const crowded = [...history];
  await compact(plugin, fakeHost(history, []), working, crowded, [long("Another plugin", 150)]);
  const summary = { info: { ...history[1].info, summary: true, finish: "stop" }, parts: [{ type: "text", text: long("The summary", 150) }] };
  const repeated = [...history];
  await compact(plugin, fakeHost([summary, ...history], []), working, repeated);
  for (const { length } of [crowded, repeated]) {
    check(length > 1 && length < fitted.length, `${length} messages beside a long text, and ${fitted.length} without it`);
  }

  const ordinary = [...history];
  await hooks["experimental.chat.messages.transform"]({}, { messages: ordinary });
  check(ordinary.every((entry, at) => entry === history[at]), "a request after the compaction is changed");

  // The newest messages alone are larger than the window: they are shortened, and calls keep their results.
  const failed = conversation(2);
  failed[3].parts = failed[3].parts.slice(2, 4);
  failed[3].parts[1].state.error = long("The error", 3000);
  const pasted = conversation(2).slice(0, 3);
  pasted[2].parts[0].text = long("The paste", 3000);
  for (const huge of [failed, pasted]) {
    const [before, shortened] = [JSON.stringify(huge), [...huge]];
    await compact(plugin, fakeHost(huge, []), working, shortened);
    check(JSON.stringify(huge) === before, "the messages of the host are changed");
    const texts = shortened.at(-1).parts.map(({ text, callID, state }) => [callID, text ?? state.output ?? state.error]);
    const wanted = huge === failed ? [["call_1_5", "The file, line 0"], ["call_1_6", "The error, line 0"]] : [[undefined, "The paste, line 0"]];
    const same = wanted.every(([id, start], at) => texts[at]?.[0] === id && texts[at][1].startsWith(start) && texts[at][1].length < 20_000);
    check(same && texts.length === wanted.length, `the newest message is ${JSON.stringify(texts)}`);
  }

  // A daemon that dies once is started again.
  const again = [...history];
  const dying = dyingDaemon(daemon, join(home, "dies-once"), 1);
  await compact(plugin, fakeHost(history, []), { binary: dying }, again);
  check(again.length < history.length, "the messages are not fitted by the second daemon");
  check(readFileSync(`${dying}.deaths`, "utf8") === "..", "the first daemon is not killed");

  const broken = async () => { throw new Error("The client is broken."); };
  const failing = {
    "a client that throws": [{ session: { messages: broken } }, working],
    "a client whose log throws, too": [{ session: { messages: broken }, app: { log: broken }, tui: { showToast: broken } }, working],
    "a client that throws at once": [{ session: undefined, app: undefined, tui: undefined }, working],
    "an unknown model": [{ config: { providers: async () => ({ data: { providers: [] } }) } }, working],
    "no binary": [{}, { binary: join(home, "nowhere") }],
    "a program that is no daemon": [{}, { binary: "/bin/true" }],
    "a program that says nothing": [{}, { binary: "/bin/cat", timeoutMs: 300 }],
    "options of a wrong type": [{}, { binary: 1, timeoutMs: "soon" }],
  };
  for (const [name, [more, options]] of Object.entries(failing)) {
    const messages = [...history];
    const said = [];
    await compact(plugin, fakeHost(history, said, more), options, messages);
    check(messages.length === history.length && messages.every((entry, at) => entry === history[at]), `${name}: the messages are changed`);
    check("app" in more || said.length === 1, `${name}: the log has ${said.length} lines`);
  }

  // Another version of OpenCode may call with other inputs.
  for (const hook of Object.values(hooks)) await hook(undefined, undefined);
}
