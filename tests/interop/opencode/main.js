// The plugin in OpenCode itself, headless, against a model on the loopback device that enforces its window. A session that
// OpenCode alone cannot compact goes on; all that fits is sent byte for byte as without the plugin.
//
// Usage: node main.js [FOLDER OF THE REPOSITORY]

import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildPlugin } from "./build.js";
import { dyingDaemon } from "./dying.js";
import { checkHooks } from "./hooks.js";
import { binaryOfOpenCode, startOpenCode } from "./host.js";
import { startModel } from "./model.js";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(process.argv[2] ?? join(here, "..", "..", ".."));
const modules = join(here, "node_modules");
const daemon = process.env.ABRIDGED_BIN;
const binary = binaryOfOpenCode(modules);

const rule = "Never use regular expressions.";
const turns = 6;
/** Windows of the server, and the limits that the user configured: those of `mistaken` are too large. */
const windows = { large: 200_000, small: 14_000, mistaken: 14_000 };
const limits = {
  large: { context: 200_000, output: 8_000 },
  small: { context: 14_000, output: 1_000 },
  mistaken: { context: 64_000, output: 8_000 },
};

const home = mkdtempSync(join(tmpdir(), "abridged-opencode-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const project = join(home, "project");
mkdirSync(project);

function check(holds, failure) {
  if (!holds) throw new Error(failure);
}

/** A long text of which every line is different. */
const about = (subject, lines) => Array.from({ length: lines }, (_, line) => `Line ${line} of ${subject} is ${(line * 7919) % 1009}.`).join("\n");

/** A conversation of about 27k tokens with the large model: requests, tool calls with results, answers. */
async function talk(opencode, model) {
  const id = await opencode.newSession();
  for (let turn = 0; turn < turns; turn++) {
    const filePath = join(project, `part-${turn}.txt`);
    writeFileSync(filePath, about(`the file of part ${turn}`, 120));
    model.script.push({ call: { id: `read-${turn}`, name: "read", arguments: { filePath } } }, { text: about(`the answer about part ${turn}`, 180) });
    const request = turn === 0 ? `Write the parser of dates. ${rule}` : `Go on with part ${turn}.`;
    const { info } = await opencode.prompt(id, "large", `${request}\n${about(`the request of part ${turn}`, 180)}`);
    check(!info.error, `turn ${turn} fails: ${JSON.stringify(info.error)}`);
  }
  return id;
}

/** Starts OpenCode and its model; both hold the conversation, and a small session that was compacted without need. */
async function begin(name, plugin) {
  const model = await startModel(windows);
  const opencode = await startOpenCode({ binary, home: join(home, name), project, baseUrl: model.baseUrl, limits, plugin });
  const id = await talk(opencode, model);
  const size = model.requests.at(-1).size;
  const short = await opencode.newSession();
  for (const text of ["Say a word.", "Say another one."]) await opencode.prompt(short, "large", text);
  await opencode.compact(short, "large");
  const bodies = model.requests.map(({ raw }) => raw);
  check(model.requests.filter(({ isSummary }) => isSummary).length === 1, "the small session is not compacted");
  return { id, size, bodies, model, opencode, plugin };
}

/** The user of a fork of the conversation switches to another model; gives what became of it. */
async function switchTo(modelID, { id, model, opencode, plugin }) {
  const [requests, lines] = [model.requests.length, opencode.reports().length];
  const fork = await opencode.fork(id);
  const started = performance.now();
  const { info, parts } = await opencode.prompt(fork, modelID, "What is the next step?");
  const ms = Math.round(performance.now() - started);
  const { info: later } = await opencode.prompt(fork, info.error ? "large" : modelID, "Go on.");
  check(!later.error, `the prompt after it fails: ${JSON.stringify(later.error)}`);
  const reports = plugin ? await opencode.newReports(lines) : [];
  return { error: info.error, parts, ms, requests: model.requests.slice(requests), reports };
}

const isStuck = ({ error }) => error?.name === "ContextOverflowError" && error.data.message.includes("too large to compact");

/** OpenCode fails as it does alone, and its log names the cause once. */
function fallsBack(name, run, cause) {
  check(isStuck(run), `${name}: OpenCode does not go on with its own input: ${JSON.stringify(run.error)}`);
  check(run.reports.length === 1 && run.reports[0].includes(cause), `${name}: the log does not say ${cause} once: ${run.reports}`);
  check(run.reports[0].includes("OpenCode goes on with its own input"), `${name}: the log does not say what happens: ${run.reports}`);
}

/** The session goes on, and the model wrote the summary from an input that has the rule and the newest messages. */
function isRescued(name, run) {
  check(!run.error, `${name}: the prompt fails: ${JSON.stringify(run.error)}`);
  check(run.parts.some(({ text }) => text === "The loopback model has read it."), `${name}: no answer`);
  const summaries = run.requests.filter(({ isSummary }) => isSummary);
  check(summaries.length > 0 && !summaries.some(({ refused }) => refused), `${name}: the model refuses a request for a summary`);
  const [{ text, size }] = summaries;
  const [, record = ""] = /<summary>\n([^]*?)\n<\/summary>/.exec(text) ?? [];
  check(record.includes(rule), `${name}: the record of the older messages lacks the rule:\n${record}`);
  check(!text.includes("Line 170 of the request of part 0 is"), `${name}: the older messages are whole`);
  check(text.includes("Line 170 of the request of part "), `${name}: no newer message is whole`);
  check(run.reports.length > 0 && run.reports.every((line) => /tokens in \d+ ms/.test(line)), `${name}: the log says ${run.reports}`);
  return { size, text };
}

/** Each kept tool call is beside its result. */
function pairsHold(text) {
  const pairs = [...text.matchAll(/^\[Assistant tool call\]: read\(.*part-(\d+)\.txt"}\)\n\[Tool result\]: .*part-(\d+)\.txt/gm)];
  check(pairs.length > 0 && pairs.every(([, call, result]) => call === result), "the calls and results do not match");
  check(pairs.length * 2 === [...text.matchAll(/^\[(Assistant tool call|Tool result)\]/gm)].length, "a call or a result is alone");
}

function install(program) {
  rmSync(join(home, "daemon"), { force: true });
  if (program) symlinkSync(program, join(home, "daemon"));
}

check(daemon && existsSync(daemon), "ABRIDGED_BIN names no binary");
check(binary, `no OpenCode for ${process.platform}-${process.arch} in ${modules}`);
const folder = buildPlugin(root, modules, home);
await checkHooks(folder, { daemon, home, check });

const alone = await begin("alone");
const stuck = await switchTo("small", alone);
check(isStuck(stuck), `OpenCode alone does not fail: ${JSON.stringify(stuck.error)}`);
await alone.opencode.end();
await alone.model.close();

install(daemon);
const helped = await begin("helped", [pathToFileURL(folder).href, { binary: join(home, "daemon") }]);
check(alone.bodies.length === helped.bodies.length, `${helped.bodies.length} requests with the plugin, ${alone.bodies.length} without`);
const different = alone.bodies.findIndex((body, at) => body !== helped.bodies[at]);
check(different === -1, `request ${different} differs:\n${alone.bodies[different]}\n${helped.bodies[different]}`);
check(helped.opencode.reports().length === 0, `the plugin reports ${helped.opencode.reports()}`);

install(undefined);
fallsBack("no binary", await switchTo("small", helped), "is not installed");
install(dyingDaemon(daemon, join(home, "dies"), Infinity));
fallsBack("a daemon that dies", await switchTo("small", helped), "ended with");
install(daemon);
const rescued = await switchTo("small", helped);
const { size, text } = isRescued("a smaller model", rescued);
pairsHold(text);
isRescued("a window that is smaller than configured", await switchTo("mistaken", helped));
await helped.opencode.end();
await helped.model.close();

const { size: refused } = stuck.requests.find(({ isSummary }) => isSummary);
const [done] = /fitted to .* ms/.exec(rescued.reports[0]);
const facts = [
  `a session of ${helped.size} tokens goes on in a window of ${windows.small}`,
  `request for the summary ${refused} → ${size} tokens`,
  `${done}, ${rescued.ms} ms to the next answer`,
  `${alone.bodies.length} requests that fit are the same bytes`,
];
console.log(`opencode: ok, ${facts.join("; ")}`);
