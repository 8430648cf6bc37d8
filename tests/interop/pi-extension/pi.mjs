// pi from its published packages, in RPC mode, with a home of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** pi's program under a home of its own, with one model at `baseUrl`. It sends nothing anywhere else. */
export function installPi(cli, home, baseUrl, { contextWindow = 200_000, compaction = {} } = {}) {
  const agent = join(home, "agent");
  mkdirSync(agent, { recursive: true });
  const model = { id: "loopback", name: "Loopback", input: ["text"], contextWindow, maxTokens: 2048 };
  const provider = { baseUrl, api: "openai-completions", apiKey: "none", models: [model] };
  writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { local: provider } }));
  const settings = {
    defaultProvider: "local", defaultModel: "loopback", defaultThinkingLevel: "off", quietStartup: true,
    enableInstallTelemetry: false, lastChangelogVersion: "99.0.0", compaction, retry: { enabled: false },
  };
  writeFileSync(join(agent, "settings.json"), JSON.stringify(settings));
  const env = {
    PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR ?? "/tmp", LANG: "C.UTF-8",
    PI_CODING_AGENT_DIR: agent, PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0",
  };
  const args = ["--model", "local/loopback", "--offline", "--no-extensions", "--no-skills", "--no-context-files",
    "--no-prompt-templates", "--no-approve", "--mode", "rpc"];
  return { program: process.execPath, args: [cli, ...args], env };
}

/**
 * Starts pi. `ask` sends a command and gives its `data`; `prompt` waits for the end of the run and gives its last message; `next` waits for
 * a frame. `frames` has all frames but answers, in order.
 */
export function startPi({ program, args, env }, cwd, more, variables = {}) {
  const child = spawn(program, [...args, ...more], { cwd, env: { ...env, ...variables }, stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data) => { errors = (errors + data).slice(-4000); });
  const frames = [];
  const waiting = new Map();
  const watchers = new Set();
  let last = 0;
  createInterface({ input: child.stdout, crlfDelay: Infinity }).on("line", (line) => {
    const frame = JSON.parse(line);
    if (frame.type !== "response") {
      frames.push(frame);
      for (const watcher of watchers) watcher(frame);
      return;
    }
    const { resolve, reject } = waiting.get(frame.id);
    waiting.delete(frame.id);
    if (frame.success) resolve(frame.data);
    else reject(new Error(`${frame.command}: ${frame.error}`));
  });
  child.on("exit", (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`pi ended with ${code}: ${errors}`));
  });
  const ask = (type, params = {}) => new Promise((resolve, reject) => {
    last += 1;
    waiting.set(`r${last}`, { resolve, reject });
    child.stdin.write(`${JSON.stringify({ id: `r${last}`, type, ...params })}\n`);
  });
  const next = (wanted) => new Promise((resolve) => {
    const watcher = (frame) => {
      if (!wanted(frame)) return;
      watchers.delete(watcher);
      resolve(frame);
    };
    watchers.add(watcher);
  });
  const prompt = async (message) => {
    const settled = next(({ type }) => type === "agent_settled");
    await ask("prompt", { message });
    await settled;
    return frames.findLast(({ type }) => type === "agent_end").messages.at(-1);
  };
  const end = async () => {
    const exited = once(child, "exit");
    child.stdin.end();
    await exited;
  };
  return { ask, prompt, next, frames, end, kill: () => child.kill("SIGKILL") };
}

/** The entries of a session file. */
export const entriesOf = (path) => readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
