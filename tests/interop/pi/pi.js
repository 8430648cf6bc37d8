// pi from its published packages: its session reader, its RPC mode and its terminal.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pty from "@lydell/node-pty";
import terminals from "@xterm/headless";

const cli = new URL("./node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js", import.meta.url).pathname;

/** pi under a home of its own, with one model at `baseUrl`. It sends nothing anywhere else. */
export function installPi(home, baseUrl) {
  const agent = join(home, "pi-agent");
  mkdirSync(agent, { recursive: true });
  const model = { id: "loopback", name: "Loopback", input: ["text", "image"], contextWindow: 200_000, maxTokens: 4096 };
  const provider = { baseUrl, api: "openai-completions", apiKey: "none", models: [model] };
  writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { local: provider } }));
  const settings = {
    defaultProvider: "local", defaultModel: "loopback", defaultThinkingLevel: "off", quietStartup: true,
    enableInstallTelemetry: false, lastChangelogVersion: "99.0.0", compaction: { keepRecentTokens: 300 },
  };
  writeFileSync(join(agent, "settings.json"), JSON.stringify(settings));
  const env = {
    PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR ?? "/tmp", LANG: "C.UTF-8", TERM: "xterm-256color",
    PI_CODING_AGENT_DIR: agent, PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0",
  };
  const common = ["--model", "local/loopback", "--offline", "--no-extensions", "--no-skills", "--no-context-files",
    "--no-prompt-templates", "--no-approve"];
  return { command: [process.execPath, cli, ...common], env, settles: "agent_settled", open: (path) => ["--session", path] };
}

/**
 * A session file as pi's own reader has it: the messages of its context, the same by entry, also in the form that a
 * provider gets, and the entries from the root to its leaf.
 */
export async function readByPi(path) {
  const { SessionManager, buildSessionProjection, convertToLlm } = await import("@earendil-works/pi-coding-agent");
  const manager = SessionManager.open(path);
  const { entries } = buildSessionProjection(manager.getEntries(), manager.getLeafId());
  const { messages } = manager.buildSessionContext();
  return { messages, branch: manager.getBranch(), entries: entries.map((entry) => ({ ...entry, llm: convertToLlm(entry.messages) })) };
}

/** pi, or oh-my-pi, in RPC mode. `ask` sends a command and gives its `data`; `prompt` waits for the end of the run. */
export async function startRpc({ command: [program, ...common], env, settles }, cwd, args) {
  const child = spawn(program, [...common, "--mode", "rpc", ...args], { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data) => { errors = (errors + data).slice(-4000); });
  const waiting = new Map();
  const watchers = new Set();
  let last = 0;
  createInterface({ input: child.stdout, crlfDelay: Infinity }).on("line", (line) => {
    const frame = JSON.parse(line);
    if (frame.type !== "response") {
      for (const watcher of watchers) watcher(frame);
      return;
    }
    const waits = waiting.get(frame.id);
    if (!waits) return;
    waiting.delete(frame.id);
    if (frame.success) waits.resolve(frame.data);
    else waits.reject(new Error(`${frame.command}: ${frame.error}`));
  });
  child.on("exit", (code) => {
    for (const { type, reject } of waiting.values()) reject(new Error(`${type}: the program ended with ${code}: ${errors}`));
  });
  const ask = (type, params = {}) => new Promise((resolve, reject) => {
    last += 1;
    waiting.set(`r${last}`, { type, resolve, reject });
    child.stdin.write(`${JSON.stringify({ id: `r${last}`, type, ...params })}\n`);
  });
  // The last message of the run that a prompt starts.
  const prompt = async (message, images) => {
    const settled = new Promise((resolve) => {
      let last;
      const watcher = (frame) => {
        if (frame.type === "agent_end") last = frame.messages.at(-1);
        if (frame.type !== settles) return;
        watchers.delete(watcher);
        resolve(last);
      };
      watchers.add(watcher);
    });
    await ask("prompt", { message, images });
    const last = await settled;
    while ((await ask("get_state")).isStreaming) await new Promise(setImmediate);
    return last;
  };
  const end = async () => {
    const exited = once(child, "exit");
    child.stdin.end();
    await exited;
  };
  return { ask, prompt, end };
}

/**
 * The program's terminal on a screen of its own, until the screen shows `text` and then what is typed. Fails where the
 * program ends before that, or does not show it in time.
 */
export async function showInTerminal({ command: [program, ...common], env }, cwd, args, text) {
  const [cols, rows] = [120, 200];
  const screen = new terminals.Terminal({ cols, rows, scrollback: 20_000, allowProposedApi: true });
  const child = pty.spawn(program, [...common, ...args], { cols, rows, cwd, env, name: "xterm-256color" });
  const shown = () => {
    const { active } = screen.buffer;
    return Array.from({ length: active.length }, (_, at) => active.getLine(at).translateToString(true)).join("\n");
  };
  try {
    await new Promise((resolve, reject) => {
      const fail = (why) => reject(new Error(`the terminal ${why}:\n${shown().replace(/\n{2,}/g, "\n").slice(-1500)}`));
      const waiting = [text, "typed by hand"];
      const late = setTimeout(() => fail(`does not show ${JSON.stringify(waiting[0])}`), 30_000);
      screen.onData((data) => child.write(data));
      child.onData((data) => screen.write(data, () => {
        if (waiting.length === 0 || !shown().replace(/\s+/g, " ").includes(waiting[0])) return;
        waiting.shift();
        if (waiting.length > 0) return child.write(waiting[0]);
        clearTimeout(late);
        resolve();
      }));
      child.onExit(({ exitCode }) => screen.write("", () => {
        clearTimeout(late);
        fail(`ended with ${exitCode}`);
      }));
    });
  } finally {
    child.kill("SIGKILL");
    screen.dispose();
  }
}
