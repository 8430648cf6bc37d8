// Sessions of the daemon under pi: read by its reader, shown by its terminal, gone on with in its RPC mode, and loaded by
// the daemon again. The same, but for the reader, under oh-my-pi with --oh-my-pi. Nothing leaves the loopback device. Other
// arguments are names of the sessions that are wanted.

import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { count, ofChat, ofSession, same } from "./compare.js";
import { startDaemon } from "./daemon.js";
import { isSummary, startModel } from "./model.js";
import { installOhMyPi } from "./oh-my-pi.js";
import { installPi, readByPi, showInTerminal, startRpc } from "./pi.js";
import { picture } from "./pictures.js";
import { make, scenarios, turn } from "./scenarios.js";

const home = mkdtempSync(join(tmpdir(), "abridged-pi-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const cwd = join(home, "project");
mkdirSync(cwd);
writeFileSync(join(cwd, "notes.txt"), "The notes say: forty-two.\n");

/** The variables of a daemon whose models are those at `baseUrl`. */
function daemonOf(baseUrl) {
  const config = join(home, "config");
  mkdirSync(config, { recursive: true });
  const models = [["loopback", 200_000], ["small", 8_000]].map(([id, contextWindow]) =>
    ({ provider: "local", id, api: "openai_chat", baseUrl, contextWindow }));
  writeFileSync(join(config, "settings.json"), JSON.stringify({ defaultModel: "local/loopback", models }));
  const folders = { ABRIDGED_DATA_DIR: join(home, "data"), ABRIDGED_CONFIG_DIR: config };
  return { PATH: process.env.PATH, HOME: home, ABRIDGED_DISABLE_AUTOCOMPACT: "1", ...folders };
}

function check(holds, what) {
  if (!holds) throw new Error(what);
}

/** Whether pi's entry is a frame: a summary, or a text that the summary's frame of the daemon repeats. */
const isFrame = ({ type, customType }) => type === "compaction" || customType === "abridged.carried";

/** Whether an entry is a line of the daemon that no client sees. */
const isMarker = (entry) => {
  const { type, customType, preserveData } = entry;
  const ours = preserveData?.abridged;
  return (type === "custom" && customType.startsWith("abridged.")) || type === "usage" || customType === "abridged.carried" ||
    (type === "context_edit" && entry.abridged !== undefined) || (type === "compaction" && (ours?.undone || ours?.reset));
};

/** pi's leaf is the daemon's, or a line of the daemon right behind it. */
async function sameLeaf({ path, leafEntryId }) {
  const { branch } = await readByPi(path);
  const leaf = branch.findLast((entry) => !isMarker(entry))?.id ?? null;
  check(leaf === leafEntryId, `the leaf is ${leafEntryId}, and pi's is ${leaf}`);
}

/** The parts of the daemon's context that are an entry's own, each with that entry. */
const partsOf = ({ messages, entryIds, compactionEntryId }) => messages.flatMap((message, at) => {
  const id = entryIds[at];
  return id === null || id === compactionEntryId ? [] : ofSession(message).map((part) => ({ id, ...part }));
});

/** Parts without the entries that they come from. */
const anonymous = (parts) => parts.map(({ id, ...part }) => part);

/**
 * pi's reader makes the same messages of the file, but for the frames; what must arrive arrives once. Gives the parts that
 * pi must send, and whether a part that it sends is none of a frame.
 */
async function readByReader(path, context, arriving = []) {
  const { entries, messages } = await readByPi(path);
  const [frames, own] = [true, false].map((wanted) => entries.filter(({ sourceEntry }) => isFrame(sourceEntry) === wanted));
  const theirs = own.flatMap(({ sourceEntry: { id }, messages }) =>
    messages.filter(({ role }) => role !== "system").flatMap(ofSession).map((part) => ({ id, ...part })));
  same("the messages", partsOf(context), theirs);
  for (const text of arriving) {
    const [here, there] = [context.messages, messages].map((messages) => count(text, messages));
    check(here === 1 && there === 1, `${JSON.stringify(text)} is ${here} times in our context and ${there} times in pi's`);
  }
  const told = ({ text, frame }) => text ?? frame;
  const framed = frames.flatMap(({ llm }) => llm).flatMap(ofSession).map(told);
  return { expected: anonymous(theirs), isOwn: (part) => !framed.includes(told(part)) };
}

/** The same for oh-my-pi, which has no reader that Node can run and knows no edits: elided results arrive whole. */
async function readByRules(path, context) {
  const lines = readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const whole = (message, at) => {
    const { message: stored } = lines.find(({ id }) => id === context.entryIds[at]) ?? {};
    return message.role === "toolResult" && stored ? stored : message;
  };
  const carried = lines.filter(({ customType }) => customType === "abridged.carried").map(({ content }) => content);
  const expected = anonymous(partsOf({ ...context, messages: context.messages.map(whole) }));
  const compacted = lines.filter(({ type }) => type === "compaction").map(({ summary }) => summary.trim());
  return { expected, isOwn: ({ text, frame }) => !carried.includes(text) && !compacted.includes(frame) };
}

/** The program goes on in RPC mode; gives the last request of its model. */
async function goesOn(program, model, made, { expected, isOwn }) {
  const rpc = await startRpc(program, cwd, program.open(made.path));
  try {
    const { sessionName } = await rpc.ask("get_state");
    check((sessionName ?? null) === program.titleOf(made), `the title is ${sessionName}`);
    const { totalMessages } = await rpc.ask("get_session_stats");
    check(totalMessages > 0, "no messages are counted");
    const { messages } = await rpc.ask("get_messages");
    const sent = messages.filter(({ role }) => role !== "compactionSummary").flatMap(ofSession);
    same("the messages in RPC", expected, sent.filter(isOwn));

    const from = model.requests.length;
    model.script.push({ calls: [{ id: "notes", name: "read", arguments: { path: "notes.txt" } }] }, { text: "The notes say forty-two." });
    const last = await rpc.prompt("Go on: what do the notes say?", [picture]);
    check(last?.stopReason === "stop", `the prompt ended with ${JSON.stringify(last)}`);
    const asked = model.requests.slice(from);
    check(asked.length === 2 && !asked.some(isSummary), `the model was asked ${asked.length} times`);
    const before = asked[0].messages.slice(0, -1).filter(({ role }) => role !== "system");
    same("the messages in the request", expected, before.flatMap(ofChat).filter(isOwn));
    return asked[1];
  } finally {
    await rpc.end();
  }
}

/** The program's terminal opens the file and shows its last text. */
async function shows(program, made) {
  const copy = join(home, `terminal-${made.name.replace(/\W/g, "-")}.jsonl`);
  copyFileSync(made.path, copy);
  const texts = made.context.messages.filter(({ role }) => role === "assistant").flatMap(ofSession).map(({ text }) => text);
  await showInTerminal(program, cwd, program.open(copy), texts.findLast((text) => text));
}

/**
 * The daemon loads what was written behind: the same messages, and of pi its system prompt and its tools. Then it goes on
 * itself, and the program would too.
 */
async function comesBack(program, daemon, made, request) {
  const { session: { sessionId }, repairs } = await daemon.call("session/load", { path: made.path });
  check(repairs.length === 0, `the daemon repairs ${JSON.stringify(repairs)}`);
  const context = await daemon.call("session/context", { sessionId });
  await program.read(made.path, context, made.arriving);
  const texts = context.messages.slice(-4).flatMap(ofSession).filter(({ text }) => text).map(({ text }) => text.trim());
  const wanted = ["Go on: what do the notes say?", "The notes say: forty-two.", "The notes say forty-two."];
  check(wanted.every((text, at) => texts[at]?.includes(text)), `the last messages are ${texts}`);
  const { body } = await daemon.call("session/context", { sessionId, format: "openai_chat" });
  const [ours, theirs] = [body, request].map(({ messages, tools }) => {
    const shapes = tools?.map(({ function: { name, description, parameters } }) => [name, description, parameters]);
    return JSON.stringify([messages.find(({ role }) => role === "system")?.content, shapes]);
  });
  const differ = `the system prompt and tools differ:\n  ours ${ours.slice(0, 200)}\n  theirs ${theirs.slice(0, 200)}`;
  check(!program.storesPrompt || made.prompted || ours === theirs, differ);

  await daemon.call("session/append", { sessionId, messages: [20, 21, 22].flatMap(turn) });
  await program.read(made.path, await daemon.call("session/context", { sessionId }), made.arriving);
  const { outcome } = await daemon.call("session/compact", { sessionId, keepRecentTokens: 300, wait: true });
  check(outcome === "completed", `the compaction behind it ended as ${outcome}`);
  await program.read(made.path, await daemon.call("session/context", { sessionId }), made.pinned);
  await daemon.call("session/close", { sessionId });
}

const [options, wanted] = [true, false].map((option) => process.argv.slice(2).filter((word) => word.startsWith("--") === option));
const model = await startModel();
const name = options.includes("--oh-my-pi") ? "oh-my-pi" : "pi";
const program = name === "pi"
  ? { ...installPi(home, model.baseUrl), read: readByReader, storesPrompt: true, titleOf: ({ title }) => title }
  : { ...installOhMyPi(home, model.baseUrl), read: readByRules, storesPrompt: false, titleOf: ({ titled }) => titled };
// oh-my-pi knows no edits, so it sends a result that pi leaves out.
const knows = (scenario) => name === "pi" || scenario !== "results that no call waits for";
const isWanted = (scenario) => wanted.length === 0 || wanted.includes(scenario);
const names = Object.keys(scenarios).filter((scenario) => knows(scenario) && isWanted(scenario));
const daemon = await startDaemon(daemonOf(model.baseUrl));
const failures = [];
for (const scenario of names) {
  try {
    const made = await make(daemon, cwd, scenario);
    const view = await program.read(made.path, made.context, made.arriving);
    if (program.storesPrompt) await sameLeaf(made);
    await shows(program, made);
    await comesBack(program, daemon, made, await goesOn(program, model, made, view));
  } catch ({ message }) {
    model.script.length = 0;
    failures.push(`${scenario}: ${message.slice(0, 2000)}`);
  }
}
check((await daemon.end()) === 0, "the daemon did not end well");
await model.close();
for (const failure of failures) console.error(failure);
if (failures.length > 0) throw new Error(`${failures.length} of ${names.length} sessions failed under ${name}`);
console.log(`${name}: ok, ${names.length} sessions read, shown and gone on with`);
