// The npm package abridged-client, installed as a user installs it: node main.mjs [ROOT]
//
// ROOT is the repository; `npm ci` in this folder comes first. ABRIDGED_BIN names the daemon.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { check } from "./check.mjs";

const here = import.meta.dirname;
const root = resolve(process.argv[2] ?? join(here, "../../.."));
const home = mkdtempSync(join(tmpdir(), "abridged-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));

const config = join(home, "config");
process.env.ABRIDGED_DATA_DIR = join(home, "data");
process.env.ABRIDGED_CONFIG_DIR = config;
mkdirSync(config);
const writer = { provider: "editor", id: "writer", api: "client", contextWindow: 100_000, maxOutputTokens: 4096 };
writeFileSync(join(config, "settings.json"), JSON.stringify({ models: [writer] }));

install();
compile();
const { callsAndErrors, cancelsAndCallbacks, givesUp, leavesNothing, restarts } = await import("./client.mjs");
const events = await callsAndErrors(home);
await cancelsAndCallbacks(home);
await restarts(home);
await givesUp(home);
await leavesNothing(home);
const { loops } = await import("./ai-sdk.mjs");
const steps = await loops(home);
console.log(`typescript: ok, ${events} events, ${steps} steps`);

/** Packs the package in a copy of its folder, so that nothing is written to the repository, and installs the tarball here. */
function install() {
  const copy = join(home, "repository");
  const files = ["src", "package.json", "tsconfig.json", "README.md"].map((name) => `clients/typescript/${name}`);
  for (const path of [...files, "protocol/abridged.d.ts", "LICENSE-APACHE", "LICENSE-MIT"])
    cpSync(join(root, path), join(copy, path), { recursive: true });
  rmSync(join(copy, "clients/typescript/src/protocol.ts"), { force: true });
  symlinkSync(join(here, "node_modules"), join(copy, "node_modules"));
  npm(join(copy, "clients/typescript"), "pack", "--pack-destination", home);
  // The binary is that of ABRIDGED_BIN, so the packages that carry one are left out.
  npm(
    here,
    "install",
    "--no-save",
    "--offline",
    "--omit=optional",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    join(home, "abridged-client-0.1.0.tgz"),
  );
}

function npm(cwd, ...args) {
  execFileSync("npm", ["--loglevel=error", ...args], { cwd, stdio: ["ignore", "ignore", "inherit"] });
}

/** Compiles the program of a user, and those of its README, by the rules of Node and by those of bundlers. */
function compile() {
  const readme = readFileSync(join(root, "clients/typescript/README.md"), "utf8");
  const programs = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, text], index) => {
    const file = join(home, `readme-${index}.mts`);
    writeFileSync(file, `declare function ask(...about: unknown[]): Promise<import("abridged-client").AssistantMessage>;\n${text}`);
    return file;
  });
  check(programs.length === 3, `the README has ${programs.length} programs`);
  symlinkSync(join(here, "node_modules"), join(home, "node_modules"));
  for (const [module, resolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ]) {
    const flags = [
      "--strict",
      "--noEmit",
      "--skipLibCheck",
      "--target",
      "es2022",
      "--types",
      "node",
      "--typeRoots",
      join(here, "node_modules/@types"),
      "--module",
      module,
      "--moduleResolution",
      resolution,
    ];
    execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), ...flags, join(here, "typed.ts"), ...programs], {
      cwd: here,
      stdio: ["ignore", 2, 2],
    });
  }
}
