// OpenCode itself, as a server without a terminal, in a home of its own. Nothing is asked for outside of the loopback device.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const START_MS = 30_000;
const ANSWER_MS = 60_000;
const REPORT_MS = 20_000;

/** The binary of OpenCode, in the package of this platform; undefined where there is none. */
export function binaryOfOpenCode(modules) {
  const binary = join(modules, `opencode-${process.platform}-${process.arch}`, "bin", "opencode");
  return existsSync(binary) ? binary : undefined;
}

/** Variables of an OpenCode in `home`. Its npm finds no registry. */
function environment(home, config) {
  const xdg = Object.fromEntries(["DATA", "CONFIG", "STATE", "CACHE"].map((name) => [`XDG_${name}_HOME`, join(home, name.toLowerCase())]));
  const off = ["AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "PROJECT_CONFIG"].map((name) => [`OPENCODE_DISABLE_${name}`, "1"]);
  return {
    PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR ?? "/tmp", ...xdg, ...Object.fromEntries(off), OPENCODE_CONFIG: config,
    npm_config_registry: "http://127.0.0.1:9", npm_config_fetch_retries: "0",
    ABRIDGED_DATA_DIR: join(home, "abridged-data"), ABRIDGED_CONFIG_DIR: join(home, "abridged-config"),
  };
}

/** Starts OpenCode. `limits` are the limits of the models as its user configured them; `plugin` is an entry of its setting. */
export async function startOpenCode({ binary, home, project, baseUrl, limits, plugin }) {
  mkdirSync(home, { recursive: true });
  const config = join(home, "opencode.json");
  const models = Object.fromEntries(Object.entries(limits).map(([id, limit]) => [id, { name: id, tool_call: true, limit }]));
  const provider = { loopback: { npm: "@ai-sdk/openai-compatible", options: { baseURL: baseUrl, apiKey: "none" }, models } };
  const plugins = plugin ? [plugin] : [];
  writeFileSync(config, JSON.stringify({ share: "disabled", enabled_providers: ["loopback"], permission: "allow", provider, plugin: plugins }));

  const started = { cwd: project, env: environment(home, config), stdio: ["ignore", "pipe", "pipe"] };
  const child = spawn(binary, ["serve", "--port", "0", "--print-logs"], started);
  const ended = once(child, "exit");
  process.on("exit", () => child.kill("SIGKILL"));
  let said = "";
  child.stdout.setEncoding("utf8");
  child.stderr.setEncoding("utf8").on("data", (text) => { said += text; });
  const reports = () => said.split("\n").slice(0, -1).filter((line) => line.includes("abridged: "));
  const url = await new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`OpenCode does not start: ${said}`));
    const timer = setTimeout(fail, START_MS);
    child.on("exit", fail);
    let output = "";
    child.stdout.on("data", (text) => {
      output += text;
      const [, url] = /listening on (http\S+)/.exec(output) ?? [];
      if (url) { clearTimeout(timer); resolve(url); }
    });
  });

  async function call(method, path, body) {
    const response = await fetch(url + path, {
      method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body), signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  return {
    fork: async (id) => (await call("POST", `/session/${id}/fork`, {})).id,
    newSession: async () => (await call("POST", "/session", { title: "The parser of dates" })).id,
    /** Sends a prompt; gives the last message of the model. */
    prompt: (id, modelID, text) =>
      call("POST", `/session/${id}/message`, { model: { providerID: "loopback", modelID }, parts: [{ type: "text", text }] }),
    compact: (id, modelID) => call("POST", `/session/${id}/summarize`, { providerID: "loopback", modelID }),
    /** The lines of the plugin in OpenCode's log. */
    reports,
    /** The lines after the first `seen` ones; OpenCode writes them a moment later. */
    async newReports(seen) {
      const signal = AbortSignal.timeout(REPORT_MS);
      while (reports().length <= seen) await once(child.stderr, "data", { signal });
      return reports().slice(seen);
    },
    async end() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
