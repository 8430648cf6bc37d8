// Sessions that the daemon makes, one for each thing that it does to a conversation. Each gives what the rest of the
// test cannot read from the file: texts that must arrive though no message of the context holds them any more, for as long
// as the session lasts (`pinned`) or until the next request (`carried`).

import { photo, picture } from "./pictures.js";

const user = (text, ...blocks) => ({ role: "user", content: blocks.length ? [{ type: "text", text }, ...blocks] : text });

/** An answer as a host sends it that passes on nothing but the text. */
const answer = (text) => ({ role: "assistant", content: [{ type: "text", text }], stopReason: "stop" });

/** An answer that calls `read` once for each id. */
const calls = (...ids) => ({
  role: "assistant", stopReason: "toolUse",
  content: ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: `src/${id}.rs` } })),
});

const result = (toolCallId, text, ...blocks) => ({
  role: "toolResult", toolCallId, toolName: "read", content: [{ type: "text", text }, ...blocks], isError: false,
});

/** A text of so many characters about a part. */
const text = (length, part) => `The ${part} module reads ${part}_value from src/${part}.rs. `.repeat(length / 20).slice(0, length);

/** A turn of a request, a call, its result and an answer; about 300 tokens. */
export const turn = (number) => [
  user(`Request ${number}: look at part_${number}. You must never change part_${number}.lock.`),
  calls(`call${number}`),
  result(`call${number}`, text(900, `part_${number}`)),
  answer(`Part ${number} is fine, because value_${number} is set.`),
];

/** What a scenario may do to its session. */
function hand(daemon, sessionId) {
  const call = (method, params) => daemon.call(method, { sessionId, ...params });
  const append = (...messages) => call("session/append", { messages: messages.flat() });
  const turns = async (from, until) => {
    for (let number = from; number < until; number++) await append(turn(number));
  };
  const compact = async (params) => {
    const { outcome, result, error } = await call("session/compact", { wait: true, ...params });
    if (outcome !== "completed") throw new Error(`a compaction ended as ${outcome}: ${JSON.stringify(error)}`);
    return result;
  };
  // Goes on at the entry of the message with this text.
  const navigate = async (wanted, params) => {
    const targetEntryId = await entryOf({ call }, wanted);
    const { outcome, error } = await call("session/navigate", { targetEntryId, summarize: false, wait: true, ...params });
    if (outcome !== "completed") throw new Error(`a navigation ended as ${outcome}: ${JSON.stringify(error)}`);
  };
  return { call, append, turns, compact, navigate };
}

/** The entry of the message with this text. */
async function entryOf({ call }, wanted) {
  const { messages, entryIds } = await call("session/context", {});
  return entryIds[messages.findIndex((message) => JSON.stringify(message.content).includes(wanted))];
}

export const scenarios = {
  "messages without usage": async ({ append }) => {
    await append(user("Where is the config read?"), answer("In src/config.rs."));
    await append(user("And written?"), answer("Nowhere yet."));
  },

  "tool calls": async ({ append, turns }) => {
    await turns(0, 2);
    await append(user("Look at both."), calls("left", "right"), result("right", "right is empty"), result("left", "left is full"));
    await append(answer("Only left has something."));
  },

  "results that no call waits for": async ({ call, append, turns }) => {
    await append(user("Look at it."), calls("lost"));
    await call("session/reset", {});
    await append(result("lost", "behind the reset"));
    await turns(0, 1);
    await append(user("Again."), calls("twice"), result("twice", "the first"), result("twice", "the second"));
    await append({ ...calls("stopped"), stopReason: "aborted" }, result("stopped", "of an aborted answer"));
    await append(user("And now?"), answer("Now it is fine."));
  },

  "images": async ({ append }) => {
    await append(user("What is in this picture?", picture, photo), answer("A red point."));
    await append(user("Look at the file."), calls("photo"), result("photo", "Read image file", picture), answer("The same point."));
  },

  "compacted by a model": async ({ turns, compact }) => {
    await turns(0, 8);
    const { method } = await compact({ keepRecentTokens: 700, method: "llm" });
    if (method !== "llm") throw new Error(`the summary comes from ${method}`);
  },

  "compacted without a model": async ({ turns, compact }) => {
    await turns(0, 8);
    await compact({ keepRecentTokens: 700, method: "extractive" });
  },

  "compacted and gone on": async ({ turns, compact }) => {
    await turns(0, 8);
    await compact({ keepRecentTokens: 700 });
    await turns(8, 10);
  },

  "compactions in a chain": async ({ turns, compact }) => {
    for (let round = 0; round < 3; round++) {
      await turns(round * 5, round * 5 + 5);
      await compact({ keepRecentTokens: 500, method: round === 1 ? "extractive" : "llm" });
    }
    await turns(15, 16);
  },

  "a turn split, its request carried": async ({ append, turns, compact }) => {
    await turns(0, 3);
    await append(user("Look at all of the parts, one after the other, and keep to the order of their numbers."));
    for (let number = 0; number < 8; number++) await append(calls(`step${number}`), result(`step${number}`, text(900, `step_${number}`)));
    await append(answer("All of the steps are done."));
    await compact({ keepRecentTokens: 700 });
    return { carried: ["keep to the order of their numbers"] };
  },

  "pruned": async ({ call, turns }) => {
    await turns(0, 10);
    const { entryIds } = await call("session/prune", { protectTokens: 600, minimumSavings: 100 });
    // `read` is a protected tool unless settings say otherwise.
    if (entryIds.length === 0) throw new Error("nothing was pruned");
  },

  "elided to fit a small window": async ({ append, turns, compact, call }) => {
    await turns(0, 3);
    await append(user("Read the log."), calls("log"), result("log", text(40_000, "log")));
    await compact({ keepRecentTokens: 300 });
    await append(answer("The log is long."));
    const { messages } = await call("session/context", {});
    if (JSON.stringify(messages).length > 30_000) throw new Error("nothing was elided");
  },

  "undone": async ({ call, turns, compact }) => {
    await turns(0, 6);
    await compact({ keepRecentTokens: 500 });
    await call("session/undo_compaction", {});
  },

  "undone, and gone on": async ({ call, turns, compact }) => {
    await turns(0, 6);
    await compact({ keepRecentTokens: 500 });
    await call("session/undo_compaction", {});
    await turns(6, 8);
  },

  "undone with messages behind the compaction": async ({ call, turns, compact }) => {
    await turns(0, 6);
    await compact({ keepRecentTokens: 500 });
    await turns(6, 8);
    await call("session/undo_compaction", {});
  },

  "undone twice in a chain": async ({ call, turns, compact }) => {
    await turns(0, 6);
    await compact({ keepRecentTokens: 500 });
    await turns(6, 10);
    await compact({ keepRecentTokens: 500 });
    await call("session/undo_compaction", {});
    await call("session/undo_compaction", {});
    await turns(10, 11);
  },

  "pins compacted away": async (it) => {
    await it.turns(0, 2);
    await it.call("session/pin", { text: "Deploys happen on Tuesdays only." });
    await it.call("session/pin", { entryId: await entryOf(it, "Request 1:") });
    await it.turns(2, 8);
    await it.compact({ keepRecentTokens: 700 });
    return { pinned: ["Deploys happen on Tuesdays only.", "Request 1: look at part_1."] };
  },

  "pins kept": async (it) => {
    await it.turns(0, 6);
    await it.call("session/pin", { text: "Deploys happen on Tuesdays only." });
    await it.call("session/pin", { entryId: await entryOf(it, "Request 5:") });
    await it.compact({ keepRecentTokens: 700 });
    await it.turns(6, 7);
    return { pinned: ["Deploys happen on Tuesdays only.", "Request 5: look at part_5."] };
  },

  "an unpinned text": async (it) => {
    await it.turns(0, 2);
    const { entryId } = await it.call("session/pin", { text: "Deploys happen on Tuesdays only." });
    await it.turns(2, 6);
    await it.compact({ keepRecentTokens: 500 });
    await it.call("session/unpin", { entryId });
    await it.turns(6, 8);
    await it.compact({ keepRecentTokens: 500 });
  },

  "titled from its start": async ({ turns }) => {
    await turns(0, 1);
  },

  "labelled and titled": async (it) => {
    await it.turns(0, 3);
    await it.call("session/label", { targetEntryId: await entryOf(it, "Request 1:"), label: "second" });
    await it.call("session/configure", { title: "The parts", thinkingLevel: "low" });
    return { title: "The parts" };
  },

  "another branch": async (it) => {
    await it.turns(0, 3);
    const parentEntryId = await entryOf(it, "value_0 is set");
    await it.call("session/append", { parentEntryId, messages: [user("Rather go on from here."), answer("From the first part, then.")] });
  },

  "navigated": async (it) => {
    await it.turns(0, 4);
    await it.navigate("value_1 is set", { label: "behind the second part" });
  },

  "navigated to a request": async (it) => {
    await it.turns(0, 4);
    await it.navigate("Request 2:");
  },

  "navigated there and back": async (it) => {
    await it.turns(0, 4);
    const back = await entryOf(it, "value_3 is set");
    await it.navigate("value_1 is set");
    await it.append(user("Rather this."), answer("This, then."));
    await it.call("session/navigate", { targetEntryId: back, summarize: false, wait: true });
  },

  "navigated with a summary": async (it) => {
    await it.turns(0, 4);
    await it.navigate("value_1 is set", { summarize: true, label: "carried over" });
  },

  "navigated away from a compaction": async (it) => {
    await it.turns(0, 8);
    const before = await entryOf(it, "value_2 is set");
    await it.call("session/pin", { text: "Deploys happen on Tuesdays only." });
    await it.turns(8, 9);
    await it.compact({ keepRecentTokens: 500 });
    await it.turns(9, 10);
    await it.call("session/navigate", { targetEntryId: before, summarize: false, wait: true });
  },

  "navigated behind a compaction": async (it) => {
    await it.turns(0, 2);
    await it.call("session/pin", { entryId: await entryOf(it, "Request 1:") });
    await it.turns(2, 8);
    await it.compact({ keepRecentTokens: 500 });
    await it.turns(8, 10);
    await it.navigate("value_8 is set");
    return { pinned: ["Request 1: look at part_1."] };
  },

  "forked": async (it) => {
    await it.turns(0, 4);
    await it.call("session/label", { targetEntryId: await entryOf(it, "Request 1:"), label: "second" });
    return { fork: { entryId: await entryOf(it, "Request 3:") } };
  },

  "forked behind a compaction": async (it) => {
    await it.turns(0, 2);
    await it.call("session/pin", { entryId: await entryOf(it, "Request 1:") });
    await it.turns(2, 8);
    await it.compact({ keepRecentTokens: 500 });
    await it.turns(8, 10);
    const pinned = ["Request 1: look at part_1."];
    return { pinned, fork: { entryId: await entryOf(it, "value_8 is set"), position: "at" } };
  },

  "forked before a compaction": async (it) => {
    await it.turns(0, 8);
    const entryId = await entryOf(it, "Request 5:");
    await it.compact({ keepRecentTokens: 500 });
    return { fork: { entryId } };
  },

  "reset": async ({ call, turns }) => {
    await turns(0, 4);
    await call("session/pin", { text: "Deploys happen on Tuesdays only." });
    await call("session/reset", {});
    await turns(4, 6);
    return { pinned: ["Deploys happen on Tuesdays only."] };
  },

  "with a system prompt and tools": async ({ turns, call }) => {
    const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
    await call("session/configure", { systemPrompt: "You look at parts.", tools: [{ name: "read", description: "Reads a file.", inputSchema }] });
    await turns(0, 2);
    return { prompted: true };
  },
};

/** Makes a session; gives its file, its context and what must arrive. */
export async function make(daemon, cwd, name) {
  const small = name.includes("small window") ? { model: "local/small" } : {};
  const settings = { prune: { protectedTools: [] } };
  // oh-my-pi reads no title that comes later.
  const titled = name.includes("from its start") ? "Named at once" : null;
  const { session } = await daemon.call("session/new", { cwd, settings, ...small, title: titled ?? undefined });
  const { sessionId, path } = session;
  const it = hand(daemon, sessionId);
  const made = (await scenarios[name](it)) ?? {};
  const { pinned = [], carried = [], title = titled, prompted = false, fork } = made;
  const forked = fork && (await it.call("session/fork", fork)).session;
  const end = forked ? hand(daemon, forked.sessionId) : it;
  const context = await end.call("session/context", {});
  const { session: { leafEntryId } } = await end.call("session/status", {});
  await it.call("session/close", {});
  if (forked) await end.call("session/close", {});
  const arriving = [...pinned, ...carried];
  return { name, path: forked?.path ?? path, context, leafEntryId, pinned, arriving, title, titled, prompted };
}
