// The example agent under the official SDK of the Agent Client Protocol: a compaction is seen from its start to its end, whatever
// the end, and a session that is loaded shows the same conversation again.
//
// node main.js AGENT: the path of acp_agent.py.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Editor, shown, textOf } from "./editor.js";
import { record, startModel } from "./model.js";

const [agent] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "abridged-acp-"));
const editors = [];
process.on("exit", () => {
  for (const { child } of editors) child.kill();
  rmSync(home, { recursive: true, force: true });
});

const model = await startModel();
const folders = { ABRIDGED_DATA_DIR: join(home, "data"), ABRIDGED_CONFIG_DIR: join(home, "config") };
mkdirSync(folders.ABRIDGED_CONFIG_DIR);
writeFileSync(join(folders.ABRIDGED_CONFIG_DIR, "settings.json"), JSON.stringify({
  models: [{ provider: "loopback", id: "reader", api: "openai_chat", baseUrl: model.baseUrl, contextWindow: 8000, maxOutputTokens: 1000 }],
  compaction: { keepRecentTokens: 1500 },
}));
writeFileSync(join(home, "part.txt"), "The lock file stays.\n");

async function open(capabilities) {
  const command = ["python3", agent, "loopback/reader", process.env.ABRIDGED_BIN ?? "abridged"];
  const editor = new Editor(command, { ...process.env, ...folders }, capabilities);
  editors.push(editor);
  const { protocolVersion, agentCapabilities } = await editor.initialize();
  assert.equal(protocolVersion, 1);
  assert(agentCapabilities.loadSession);
  return editor;
}

const isStart = (update) => update.sessionUpdate === "compaction_update" && update.status === "in_progress";
const isPiece = (update) => update.sessionUpdate === "compaction_summary_chunk";
const isAnswer = (update) => update.sessionUpdate === "agent_message_chunk";
const isUsage = (update) => update.sessionUpdate === "usage_update";

/** Sends prompts until a compaction has begun and ended; returns the reason for which the last one stopped. */
async function promptUntilCompacted(editor, sessionId) {
  const before = editor.compactions.size;
  for (let number = 1; number <= 20; number++) {
    const stopReason = await editor.prompt(sessionId, `This is part ${number}.`);
    if (editor.compactions.size > before) return stopReason;
  }
  assert.fail("twenty prompts and no compaction");
}

const everything = { session: { compaction: {}, notices: {} } };
const first = await open(everything);
const { sessionId } = await first.call("session/new", { cwd: home, mcpServers: [] });

// A call that the user allows, and one that is not allowed.
assert.equal(await first.prompt(sessionId, "read part.txt"), "end_turn");
first.choice = "reject_once";
assert.equal(await first.prompt(sessionId, "read other.txt"), "end_turn");
const calls = shown(first).filter(({ rawInput }) => rawInput);
assert.deepEqual(calls.map(({ status, rawInput }) => [rawInput.path, status]), [["part.txt", "completed"], ["other.txt", "failed"]]);
assert.equal(calls[0].content[0].content.text, "The lock file stays.\n");

// A compaction at the threshold. The first try of its summary is no summary, and its pieces give way to those of the second.
model.ways.summary = "ramble";
assert.equal(await promptUntilCompacted(first, sessionId), "end_turn");
const { status, summary, pieces, resets, written } = first.compaction;
assert.equal(status, "completed");
assert(pieces >= 2 && resets >= 1, `${pieces} pieces, ${resets} resets`);
assert.equal(written, record);
assert(textOf(summary).includes("never change a lock file") && textOf(summary).includes("read other.txt"), textOf(summary));
const sizes = first.transcript.filter(isUsage).map(({ used }) => used);
assert(sizes.at(-1) < sizes.at(-2) / 2 && first.transcript.findLast(isUsage).size === 8000, `sizes: ${sizes}`);

// One in a turn whose prompt the provider refused as too long. The turn is repeated, and answered.
for (let number = 1; number <= 3; number++) await first.prompt(sessionId, `This is part ${number}.`);
model.ways.turn = "overflow";
const known = first.compactions.size;
assert.equal(await first.prompt(sessionId, "Is this too long?"), "end_turn");
assert(first.compactions.size > known && first.compaction.status === "completed", "the refused turn was not compacted");
assert(first.transcript.some(({ sessionUpdate, title }) => sessionUpdate === "notice" && title.includes("leaves the context (overflow)")));
assert(shown(first).at(-1).text.startsWith("Answer to "), "the refused turn has no answer");

// One that fails: no model fulfils the wishes. The session goes on.
model.ways.summary = "refuse";
await first.prompt(sessionId, "This is one more part.");
assert.equal(await first.prompt(sessionId, "/compact in one sentence"), "end_turn");
assert.equal(first.compaction.status, "failed");
assert(first.compaction.error.includes("The key is not valid."), first.compaction.error);
assert.deepEqual(first.compaction.summary, []);

// Two that are cancelled: by hand, while a model writes, and at the threshold after a turn. The next message compacts.
model.ways.summary = "hang";
for (const [run, moment] of [[() => first.prompt(sessionId, "/compact"), isPiece], [() => promptUntilCompacted(first, sessionId), isStart]]) {
  const [stopReason] = await Promise.all([run(), first.next(moment).then(() => first.cancel(sessionId))]);
  assert.equal(stopReason, "cancelled");
  assert.equal(first.compaction.status, "cancelled");
}
model.ways.summary = "write";
assert.equal(await promptUntilCompacted(first, sessionId), "end_turn");
assert.equal(first.compaction.status, "completed");

// A turn that is cancelled while the model answers, and one whose provider refuses.
model.ways.turn = "hang";
const cancelling = first.next(isAnswer).then(() => first.cancel(sessionId));
assert.equal(await first.prompt(sessionId, "Never mind."), "cancelled");
await cancelling;
model.ways.turn = "refuse";
await assert.rejects(first.prompt(sessionId, "Is there a key?"), ({ data }) => data.code === "provider_error");
model.ways.turn = "write";
assert.equal(await first.prompt(sessionId, "And now?"), "end_turn");
await assert.rejects(first.call("session/load", { sessionId: "none", cwd: home, mcpServers: [] }), { code: -32002 });
await assert.rejects(first.agent.request("session/fork", {}), { code: -32601 });
const { sessions } = await first.call("session/list", { cwd: home });
assert.deepEqual(sessions.map((session) => session.sessionId), [sessionId]);
const transcript = shown(first);

// A cancel directly after the prompt, when the turn has begun or not. The next prompt is answered.
const { sessionId: other } = await first.call("session/new", { cwd: home, mcpServers: [] });
model.ways.turn = "hang";
const [stopReason] = await Promise.all([first.prompt(other, "Never mind that."), first.cancel(other)]);
assert.equal(stopReason, "cancelled");
model.ways.turn = "write";
assert.equal(await first.prompt(other, "And now?"), "end_turn");
await first.close();

// Another agent loads the session: the same messages, calls and compactions come, in the same order.
const second = await open(everything);
await second.call("session/load", { sessionId, cwd: home, mcpServers: [] });
assert.deepEqual(shown(second), transcript);
const completed = [...first.compactions.values()].filter(({ status }) => status === "completed").length;
assert.deepEqual([...second.compactions.values()].map(({ status, pieces }) => [status, pieces]), Array(completed).fill(["completed", 0]));
await promptUntilCompacted(second, sessionId);
assert.equal(second.compaction.status, "completed");
await second.close();

// An editor that knows neither compactions nor notices sees a tool call, and nothing of the notice that no model wrote the summary.
model.ways.summary = "refuse";
const old = await open({});
const plain = await old.call("session/new", { cwd: home, mcpServers: [] });
const isCard = (update) => update.sessionUpdate === "tool_call" && update.title === "Compact the context";
for (let number = 1; !old.transcript.some(isCard); number++) {
  assert(number <= 20, "twenty prompts and no compaction");
  await old.prompt(plain.sessionId, `This is part ${number}.`);
}
const card = shown(old).find(({ title }) => title === "Compact the context");
assert.equal(card.status, "completed");
assert(card.content[0].content.text.includes("This is part 1."), card.content[0].content.text);
await old.close();

await model.close();
const ends = [first, second].flatMap(({ compactions }) => [...compactions.values()].map((compaction) => compaction.status));
console.log(`acp: ok, ${first.transcript.length} updates, compactions: ${ends.join(", ")}`);
