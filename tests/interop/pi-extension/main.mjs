// The extension of clients/pi in pi itself: main.mjs CLI... runs each case under each of these programs of pi. ABRIDGED_PI is the extension,
// installed with its dependencies, and ABRIDGED_BIN is the daemon. The model server enforces a window of 14k tokens.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answer, startModel, summary } from "./model.mjs";
import { startPi } from "./pi.mjs";

const extension = process.env.ABRIDGED_PI;
const WINDOW = 14_000;
const home = mkdtempSync(join(tmpdir(), "abridged-pi-extension-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));

const text = "The harbour of the old town has a crane that lifts boxes from ships and puts them on trains to the mountains. ";
const report = (part) => `Report of part ${part}. ${text.repeat(32)}`;
const question = "What is the value of the newest part?";

const entriesOf = (path) => readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const compactionsOf = (path) => entriesOf(path).filter(({ type }) => type === "compaction");
const textOf = ({ content }) => content.map((block) => block.text).join("");
const ofType = (wanted) => ({ type }) => type === wanted;
const noticesOf = ({ frames }) => frames.filter(({ method }) => method === "notify").map(({ message }) => message);
const statusesOf = ({ frames }) => frames.filter(({ method }) => method === "setStatus").map(({ statusText }) => statusText);

/** A session of 27k tokens, grown by pi while its server took all of it. */
async function grow(cli, folder, cwd) {
  const model = await startModel();
  const pi = startPi(cli, folder, cwd, { baseUrl: model.baseUrl, args: [] });
  for (let part = 0; part < 27; part += 1) assert.equal(textOf(await pi.prompt(report(part))), answer);
  const { sessionFile } = await pi.ask("get_state");
  await pi.end();
  await model.close();
  assert(model.requests.at(-1).input > 24_000);
  return sessionFile;
}

/** Runs a case: pi with the extension, a copy of the grown session and a server whose window is 14k tokens. */
async function withPi({ cli, cwd, grown }, options, run) {
  const folder = mkdtempSync(join(home, "case-"));
  const path = join(folder, "session.jsonl");
  copyFileSync(grown, path);
  const model = await startModel();
  model.limits.window = options.window ?? WINDOW;
  const args = [...(options.plain ? [] : ["-e", extension]), ...(options.inMemory ? ["--no-session"] : ["--session", path])];
  const folders = { ABRIDGED_DATA_DIR: join(folder, "data"), ABRIDGED_CONFIG_DIR: join(folder, "config") };
  const env = { ABRIDGED_BIN: process.env.ABRIDGED_BIN, ...folders, ...options.env };
  const pi = startPi(cli, folder, cwd, { baseUrl: model.baseUrl, args, env, compaction: { keepRecentTokens: 3000 }, ...options.pi });
  try {
    return await run({ pi, model, path, folder });
  } finally {
    await pi.end();
    await model.close();
  }
}

/** The end of the compaction that `starts` begins. */
async function compactionOf(pi, starts) {
  const ended = pi.next(ofType("compaction_end"));
  const [end, failure] = await Promise.all([ended, starts().then(() => undefined, (error) => error)]);
  return { ...end, failure };
}

/** A program that starts the daemon and writes its process id. */
function noting(folder) {
  const program = join(folder, "abridged");
  const pids = join(folder, "pids");
  writeFileSync(program, `#!/bin/sh\necho $$ >>'${pids}'\nexec '${process.env.ABRIDGED_BIN}' "$@"\n`);
  chmodSync(program, 0o755);
  return { program, pidsOf: () => readFileSync(pids, "utf8").trim().split("\n").map(Number) };
}

const isAlive = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** The time from the refusal of the turn to its repetition. */
function recoveryOf(requests) {
  const turns = requests.filter(({ isSummary }) => !isSummary);
  const refused = turns.findIndex(({ status }) => status === 400);
  assert.deepEqual(turns.slice(refused).map(({ status }) => status), [400, 200]);
  return Math.round(turns[refused + 1].time - turns[refused].time);
}

const extracted = { ABRIDGED_PI_SUMMARY: "extracted" };

const cases = {
  async "plain pi is stuck"(under) {
    await withPi(under, { plain: true }, async ({ pi, path }) => {
      const { stopReason } = await pi.prompt(question);
      assert.equal(stopReason, "error");
      const { errorMessage } = pi.frames.findLast(ofType("compaction_end"));
      assert.match(errorMessage, /^Context overflow recovery failed: Summarization failed: 400/);
      await assert.rejects(pi.ask("compact"), /Summarization failed: 400/);
      assert.deepEqual(compactionsOf(path), []);
    });
  },

  async "the same session is rescued without a model"(under) {
    return withPi(under, { env: extracted }, async ({ pi, model, path }) => {
      const before = readFileSync(path, "utf8");
      assert.equal(textOf(await pi.prompt(question)), answer);
      const [compaction, ...more] = compactionsOf(path);
      assert.deepEqual(more, []);
      assert.equal(compaction.fromHook, true);
      assert.match(compaction.summary, /Report of part 0/);
      assert(model.requests.every(({ isSummary }) => !isSummary), "a model was asked");
      assert(statusesOf(pi).includes("abridged: compacting"));
      assert.match(statusesOf(pi).at(-1), /^abridged: \d+ % of 14k$/);
      assert(readFileSync(path, "utf8").startsWith(before));
      assert(entriesOf(path).every(({ customType }) => !customType?.startsWith("abridged")), "the daemon wrote to the session");
      return `recovered in ${recoveryOf(model.requests)} ms`;
    });
  },

  async "the same session is rescued by the host's model"(under) {
    return withPi(under, {}, async ({ pi, model, path }) => {
      assert.equal(textOf(await pi.prompt(question)), answer);
      const [compaction] = compactionsOf(path);
      assert.equal(compaction.fromHook, true);
      assert.equal(compaction.summary, summary);
      const asked = model.requests.filter(({ isSummary }) => isSummary);
      assert(asked.length > 1 && asked.every(({ status }) => status === 200), "the requests for the summary do not fit");
      assert.equal(compaction.usage.input, model.requests.filter(({ isSummary, text }) => isSummary || /two sentences/.test(text))
        .reduce((sum, { input }) => sum + input, 0));
      return `by its model in ${recoveryOf(model.requests)} ms`;
    });
  },

  async "a refusal without a number"(under) {
    return withPi(under, { env: extracted }, async ({ pi, model }) => {
      model.limits.statesWindow = false;
      // The turn fits after one compaction or two: each refusal bounds the window by its own size.
      assert.equal(textOf(await pi.prompt(question)), answer);
      assert(model.requests.at(-1).input < WINDOW);
    });
  },

  async "a context that pi finds too small to compact"(under) {
    const pi = { compaction: { keepRecentTokens: 20_000 } };
    await withPi(under, { plain: true, pi }, async ({ pi, path }) => {
      await pi.prompt(question);
      assert.equal((await pi.prompt(question)).stopReason, "error");
      await assert.rejects(pi.ask("compact"), /session too small/);
      assert.equal(compactionsOf(path).length, 1);
    });
    return withPi(under, { pi, env: extracted }, async ({ pi, model, path }) => {
      assert.equal(textOf(await pi.prompt(question)), answer);
      while (compactionsOf(path).length < 3) assert.equal(textOf(await pi.prompt(report(27))), answer);
      const settled = pi.frames.filter(ofType("entry_appended")).filter(({ entry }) => entry.type === "compaction");
      assert.equal(settled.length, 2);
      assert(model.requests.filter(({ status }) => status === 400).length >= 3);
      assert.deepEqual(noticesOf(pi), []);
    });
  },

  async "a compaction at the threshold"(under) {
    const pi = { contextWindow: 40_000, compaction: { keepRecentTokens: 3000, reserveTokens: 12_000 } };
    return withPi(under, { window: Infinity, pi, env: extracted }, async ({ pi, model, path }) => {
      for (let part = 27; compactionsOf(path).length === 0; part += 1) assert.equal(textOf(await pi.prompt(report(part))), answer);
      assert.equal(pi.frames.find(ofType("compaction_start")).reason, "threshold");
      assert.match(compactionsOf(path)[0].summary, /Report of part 0/);
      const full = model.requests.at(-1).input;
      assert.equal(textOf(await pi.prompt(question)), answer);
      assert(model.requests.at(-1).input < full / 2);
    });
  },

  async "a compaction by hand, with instructions, and another one"(under) {
    return withPi(under, { window: Infinity }, async ({ pi, model, path }) => {
      const end = await compactionOf(pi, () => pi.ask("compact", { customInstructions: "Keep the colour of the crane." }));
      assert.equal(end.reason, "manual");
      assert.equal(end.result.summary, summary);
      assert(model.requests.some(({ text }) => text.includes("Keep the colour of the crane.")));
      for (let part = 27; part < 33; part += 1) await pi.prompt(report(part));
      await pi.ask("compact");
      const [first, second] = compactionsOf(path);
      assert(first.fromHook && second.fromHook);
      assert(model.requests.at(-1).input < 14_000);
      const ids = entriesOf(path).map(({ id }) => id);
      assert(ids.indexOf(second.firstKeptEntryId) > ids.indexOf(first.firstKeptEntryId));
    });
  },

  async "a session in memory"(under) {
    return withPi(under, { inMemory: true, window: Infinity, env: extracted }, async ({ pi, model, folder }) => {
      const grow = async (from) => {
        for (let part = from; part < from + 27; part += 1) await pi.prompt(part === 0 ? `The password is swordfish. ${report(0)}` : report(part));
      };
      await grow(0);
      model.limits.window = WINDOW;
      assert.equal(textOf(await pi.prompt(question)), answer);
      model.limits.window = Infinity;
      await grow(27);
      model.limits.window = WINDOW;
      assert.equal(textOf(await pi.prompt(question)), answer);
      const { messages } = await pi.ask("get_messages");
      // The second summary goes on from the first one.
      assert.match(messages.find(({ role }) => role === "compactionSummary").summary, /swordfish[^]*Report of part/);
      assert.equal(pi.frames.filter(ofType("compaction_end")).length, 2);
      assert(!existsSync(join(folder, "data", "sessions")) || readdirSync(join(folder, "data", "sessions")).length === 0);
    });
  },

  async "the program is missing"(under) {
    return withPi(under, { window: Infinity, env: { ABRIDGED_BIN: "/nowhere/abridged" } }, async ({ pi, path }) => {
      await pi.ask("compact");
      for (let part = 27; part < 33; part += 1) await pi.prompt(report(part));
      await pi.ask("compact");
      assert.deepEqual(compactionsOf(path).map(({ fromHook }) => fromHook ?? false), [false, false]);
      const [notice, ...more] = noticesOf(pi);
      assert.match(notice, /The program abridged is not installed[^]*cargo install abridged[^]*pi compacts by itself/);
      assert.deepEqual(more, []);
      await pi.ask("prompt", { message: "/abridged" });
      assert.match(noticesOf(pi).at(-1), /cargo install abridged/);
    });
  },

  async "the daemon is killed during a compaction"(under) {
    const { program, pidsOf } = noting(mkdtempSync(join(home, "noting-")));
    return withPi(under, { window: Infinity, env: { ABRIDGED_BIN: program } }, async ({ pi, model, path }) => {
      model.limits.holdsSummaries = true;
      model.events.once("request", () => {
        model.limits.holdsSummaries = false;
        process.kill(pidsOf()[0], "SIGKILL");
      });
      await pi.ask("compact");
      assert.equal(compactionsOf(path)[0].fromHook ?? false, false);
      assert.match(noticesOf(pi).join(), /^abridged: [^]*pi compacts by itself/);
      for (let part = 27; part < 33; part += 1) await pi.prompt(report(part));
      await pi.ask("compact");
      assert.equal(compactionsOf(path)[1].fromHook, true);
      await pi.end();
      assert.equal(pidsOf().length, 2);
      assert.deepEqual(pidsOf().filter(isAlive), []);
    });
  },

  async "the user aborts a compaction"(under) {
    return withPi(under, {}, async ({ pi, model, path }) => {
      model.limits.holdsSummaries = true;
      model.events.on("request", ({ isSummary }) => isSummary && pi.ask("abort"));
      const dropped = once(model.events, "dropped");
      await pi.prompt(question);
      await dropped;
      assert.equal(pi.frames.findLast(ofType("compaction_end")).aborted, true);
      assert.deepEqual(compactionsOf(path), []);
      assert.deepEqual(noticesOf(pi), []);
      model.limits.holdsSummaries = false;
      model.events.removeAllListeners("request");
      assert.equal(textOf(await pi.prompt(question)), answer);
    });
  },

  async "the model does not answer in time"(under) {
    return withPi(under, { env: { ABRIDGED_PI_TIMEOUT: "8" } }, async ({ pi, model, path }) => {
      model.limits.holdsSummaries = true;
      assert.equal(textOf(await pi.prompt(question)), answer);
      assert.match(compactionsOf(path)[0].summary, /Report of part 0/);
      await pi.ask("prompt", { message: "/abridged" });
      assert.match(noticesOf(pi).at(-1), /Last compaction: .* extracted; local\/loopback: .*does not end in time/);
    });
  },

  async "the daemon does not answer in time"(under) {
    const program = join(mkdtempSync(join(home, "mute-")), "abridged");
    writeFileSync(program, "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
    const env = { ABRIDGED_BIN: program, ABRIDGED_PI_TIMEOUT: "1" };
    return withPi(under, { window: Infinity, env }, async ({ pi, path }) => {
      await pi.ask("compact");
      assert.equal(compactionsOf(path)[0].fromHook ?? false, false);
      assert.match(noticesOf(pi).join(), /no result within 1 s; ABRIDGED_PI_TIMEOUT/);
    });
  },

  async "/abridged"(under) {
    return withPi(under, {}, async ({ pi, model }) => {
      const says = async (message) => {
        await pi.ask("prompt", { message });
        return noticesOf(pi).at(-1);
      };
      assert.match(await says("/abridged"), /Context: [\d,]+ tokens, \d+ % of the window[^]*Window: 200,000 tokens\n/);
      assert.match(await says("/abridged extracted"), /extracted, without a model/);
      await pi.prompt(question);
      assert(model.requests.every(({ isSummary }) => !isSummary));
      const after = await says("/abridged");
      assert.match(after, /Window: 14,000 tokens, as a refusal shows; the model's entry says 200,000/);
      assert.match(after, /Last compaction: [\d,]+ to [\d,]+ tokens in [\d.]+ s, extracted/);
      assert.match(await says("/abridged model"), /by local\/loopback/);
      assert.match(await says("/abridged please"), /unknown/);
    });
  },
};

const done = [];
for (const cli of process.argv.slice(2)) {
  const folder = mkdtempSync(join(home, "pi-"));
  const cwd = join(folder, "project");
  mkdirSync(cwd);
  const env = { PATH: process.env.PATH, HOME: folder, PI_OFFLINE: "1" };
  const version = execFileSync(process.execPath, [cli, "--version"], { env }).toString().trim();
  const under = { cli, cwd, grown: await grow(cli, folder, cwd) };
  const said = [];
  for (const [name, run] of Object.entries(cases)) {
    const started = performance.now();
    const late = setTimeout(() => {
      console.error(`pi ${version}: ${name}: no end after a minute`);
      process.exit(1);
    }, 60_000);
    try {
      said.push(await run(under));
    } catch (error) {
      console.error(`pi ${version}: ${name}:`, error);
      process.exit(1);
    }
    clearTimeout(late);
    console.error(`pi ${version}: ${name}: ${Math.round(performance.now() - started)} ms`);
  }
  done.push(`pi ${version} ${said.filter(Boolean).join(", ")}`);
}
assert(done.length > 0, "name a program of pi");
console.log(`pi-extension: ok, ${Object.keys(cases).length} cases; ${done.join("; ")}`);
