// oh-my-pi from its published packages, which are too large for every run: OH_MY_PI names the folder with its node_modules.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** oh-my-pi under a home of its own, with one model at `baseUrl`, and these settings of its compaction. */
export function installOhMyPi(home, baseUrl, compaction = {}) {
  const modules = join(process.env.OH_MY_PI, "node_modules");
  const agent = join(home, ".omp", "agent");
  mkdirSync(agent, { recursive: true });
  const model = { id: "loopback", name: "Loopback", input: ["text", "image"], contextWindow: 200_000, maxTokens: 4096 };
  const provider = { baseUrl, api: "openai-completions", apiKey: "none", models: [model] };
  // JSON is YAML too.
  writeFileSync(join(agent, "models.yml"), JSON.stringify({ providers: { local: provider } }));
  const settings = {
    startup: { checkUpdate: false, quiet: true, setupWizard: false }, compaction: { keepRecentTokens: 300, methodOrder: ["soft"], ...compaction },
    setupVersion: 99, images: { autoResize: false }, memory: { backend: "off" },
  };
  writeFileSync(join(agent, "config.yml"), JSON.stringify(settings));
  const env = {
    PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR ?? "/tmp", LANG: "C.UTF-8", TERM: "xterm-256color",
    DO_NOT_TRACK: "1",
  };
  const cli = join(modules, "@oh-my-pi/pi-coding-agent/dist/cli.js");
  const common = ["--model", "local/loopback", "--no-extensions", "--no-skills", "--no-rules", "--no-lsp", "--no-title"];
  const buns = ["x64", "aarch64"].map((kind) => join(modules, `@oven/bun-linux-${kind}/bin/bun`));
  const command = [buns.find(existsSync) ?? "bun", cli, ...common];
  return { command, env, settles: "agent_end", open: (path) => ["--resume", path], blobs: join(agent, "blobs") };
}
