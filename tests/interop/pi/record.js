// Records what pi or oh-my-pi writes and what it then sends: node record.js pi|oh-my-pi FOLDER. Each NAME.jsonl is a
// session file as the program left it. NAME.sent.json has the system prompt, the tools and the messages of its next
// request, without the prompt that caused the request, and `frames` for messages that the program makes of a summary:
// of those only the summary is recorded. What oh-my-pi adds to each request and never stores is left out.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { startModel } from "./model.js";
import { installOhMyPi } from "./oh-my-pi.js";
import { installPi, startRpc } from "./pi.js";
import { photo, picture } from "./pictures.js";

const [which, into, ...wanted] = process.argv.slice(2);
// The files name their folder: one that means nothing.
const home = "/tmp/abridged-recording";
rmSync(home, { recursive: true, force: true });
const cwd = join(home, "project");
mkdirSync(cwd, { recursive: true });
const model = await startModel();
const extension = ["--extension", new URL("./extension.js", import.meta.url).pathname, "--system-prompt", "You look after the parts of a machine."];
const program = which === "pi"
  ? { ...installPi(home, model.baseUrl), args: [...extension, "--no-builtin-tools", "--session-dir", join(home, "sessions")] }
  : { ...installOhMyPi(home, model.baseUrl), args: [...extension, "--tools=lookup,measure"] };

const lookup = (...parts) => ({ calls: parts.map((part, at) => ({ id: `call_${part}_${at}`, name: "lookup", arguments: { part } })) });

/** A request that the model answers after looking a part up. */
async function turn({ prompt }, number, images) {
  model.script.push(lookup(`part${number}`), { text: `Part ${number} is as it should be.` });
  await prompt(`Request ${number}: look at part ${number}. Never touch part ${number} itself.`, images);
}

async function turns(rpc, from, until) {
  for (let number = from; number <= until; number++) await turn(rpc, number);
}

/** A request with so many lines. Its tool answers with more text than an archive keeps. */
async function longTurn({ prompt }, number, lines) {
  const list = Array.from({ length: lines }, (_, at) => `Item ${number}-${at}: part ${at} belongs to shelf ${at * 7}.`);
  model.script.push(lookup(`long${number}`), { text: `List ${number} is as it should be.` });
  await prompt(`Request ${number}: compare this list.\n${list.join("\n")}`);
}

const fileOf = async ({ ask }) => (await ask("get_state")).sessionFile;

/** The entry whose message has this text. */
async function entryOf(rpc, text) {
  const lines = readFileSync(await fileOf(rpc), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  return lines.find((entry) => JSON.stringify(entry.message?.content ?? "").includes(text)).id;
}

const command = ({ ask }, text) => ask("prompt", { message: text });

const both = {
  "tools-and-images": async (rpc) => {
    model.script.push({ text: "A red point, and noise." });
    await rpc.prompt("What is in these pictures?", [picture, photo]);
    model.script.push({ text: "I look at both.", ...lookup("left", "right") }, { text: "Both are as they should be." });
    await rpc.prompt("Look at the left and the right part.");
    await rpc.ask("bash", { command: "echo forty-two" });
    await turn(rpc, 1);
  },
  "compacted": async (rpc) => {
    await turns(rpc, 1, 5);
    await rpc.ask("compact");
    await turn(rpc, 6);
  },
  "compacted-twice": async (rpc) => {
    await turns(rpc, 1, 5);
    await rpc.ask("compact", { customInstructions: "Keep the numbers." });
    await turns(rpc, 6, 9);
    await rpc.ask("compact");
  },
  "branched": async (rpc) => {
    await turns(rpc, 1, 3);
    await command(rpc, `/goto ${await entryOf(rpc, "Part 1 is as it should be.")}`);
    await turn(rpc, 4);
  },
  "branched-with-a-summary": async (rpc) => {
    await turns(rpc, 1, 3);
    await command(rpc, `/goto-with-summary ${await entryOf(rpc, "Part 1 is as it should be.")}`);
    await turn(rpc, 4);
  },
  "compacted-and-undone": async (rpc) => {
    await turns(rpc, 1, 5);
    const before = await entryOf(rpc, "Part 5 is as it should be.");
    await rpc.ask("compact");
    await turn(rpc, 6);
    await command(rpc, `/goto ${before}`);
    await turn(rpc, 7);
  },
  "said-by-an-extension": async (rpc) => {
    await turn(rpc, 1);
    await command(rpc, "/say The parts were counted yesterday.");
    await turn(rpc, 2);
  },
  "failed": async (rpc) => {
    await turn(rpc, 1);
    model.script.push({ status: 400 });
    await rpc.prompt("This one is refused.");
    await turn(rpc, 2);
  },
};

const alone = {
  "pi": {
    "tools-changed": async (rpc) => {
      await command(rpc, "/tools lookup");
      await turn(rpc, 1);
      await command(rpc, "/tools measure");
      model.script.push({ text: "I can measure now." });
      await rpc.prompt("What can you do?");
    },
    "tools-changed-and-compacted": async (rpc) => {
      await command(rpc, "/tools lookup");
      await turns(rpc, 1, 3);
      await command(rpc, "/tools lookup measure");
      await turns(rpc, 4, 5);
      await rpc.ask("compact");
      await turn(rpc, 6);
    },
    "edited": async (rpc) => {
      await turns(rpc, 1, 2);
      await command(rpc, `/leave-out ${await entryOf(rpc, "Part 1 is as it should be.")}`);
      await command(rpc, `/shorten ${await entryOf(rpc, "lookup of part2")}`);
      await turn(rpc, 3);
    },
  },
  "oh-my-pi": {
    // The archive of a short conversation has no pictures.
    "archived": async (rpc) => {
      await longTurn(rpc, 1, 10);
      await turn(rpc, 2);
      await rpc.ask("compact");
      await turn(rpc, 3);
    },
    "archived-with-pictures": async (rpc) => {
      await longTurn(rpc, 1, 650);
      await turn(rpc, 2);
      await rpc.ask("compact");
      await turn(rpc, 3);
    },
  },
};

const textOf = ({ content }) => typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("");

/** A message as it is recorded. */
function recorded(message) {
  const summary = message.role === "user" && /<summary>\n?([^]*?)\n?<\/summary>/.exec(textOf(message));
  if (summary) return { frame: summary[1] };
  if (message.role !== "user" || typeof message.content === "string") return message;
  const own = ({ text }) => !/^<system-reminder>\nToday: /.test(text);
  return { ...message, content: message.content.filter(own) };
}

mkdirSync(into, { recursive: true });
const named = ([name]) => wanted.length === 0 || wanted.includes(name);
for (const [name, steps] of Object.entries({ ...both, ...alone[which] }).filter(named)) {
  if (name.startsWith("archived")) installOhMyPi(home, model.baseUrl, { methodOrder: ["snapcompact"] });
  const rpc = await startRpc(program, cwd, program.args);
  await steps(rpc);
  cpSync(await fileOf(rpc), join(into, `${name}.jsonl`));
  await rpc.prompt("Is this the next request?");
  await rpc.end();
  const { messages, tools } = model.requests.at(-1);
  const said = messages.slice(0, -1).map(recorded);
  // oh-my-pi's file has neither its system prompt nor its tools.
  const sent = which === "pi" ? { tools, messages: said } : { messages: said.filter(({ role }) => role !== "system") };
  writeFileSync(join(into, `${name}.sent.json`), `${JSON.stringify(sent, null, 1)}\n`);
  console.log(`${name}: ${readFileSync(join(into, `${name}.jsonl`), "utf8").split("\n").length - 1} lines, ${said.length} messages`);
}
if (program.blobs && existsSync(program.blobs)) {
  // Beside each there is one that has its kind in its name.
  cpSync(program.blobs, join(into, "blobs"), { recursive: true, filter: (path) => !/\.\w+$/.test(basename(path)) });
}
await model.close();
rmSync(home, { recursive: true, force: true });
