// pi from its published packages, in RPC mode, under a home of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program and its files for one model at `baseUrl`. pi sends nothing anywhere else. */
function install(cli, home, { baseUrl, contextWindow = 200_000, compaction = {} }) {
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
  const args = [cli, "--model", "local/loopback", "--offline", "--no-extensions", "--no-skills", "--no-context-files",
    "--no-prompt-templates", "--no-approve", "--mode", "rpc"];
  return { args, env };
}

/**
 * Starts pi. `ask` sends a command and gives its `data`. `prompt` gives the last message of the run that it starts. `next` waits for a frame.
 * `frames` has all frames but the answers to commands.
 */
export function startPi(cli, home, cwd, options) {
  const { args, env } = install(cli, home, options);
  const child = spawn(process.execPath, [...args, ...options.args], { cwd, env: { ...env, ...options.env }, stdio: ["pipe", "pipe", "pipe"] });
  const kill = () => child.kill("SIGKILL");
  process.on("exit", kill);
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
    process.off("exit", kill);
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
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.stdin.end();
    const late = setTimeout(kill, 5000);
    await exited;
    clearTimeout(late);
  };
  return { ask, prompt, next, frames, end };
}
