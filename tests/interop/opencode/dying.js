// A daemon that is killed in the middle of `context/fit`.

import { writeFileSync } from "node:fs";

/** Writes a program to `file` that runs the daemon and kills it the first `times` times; gives its path. */
export function dyingDaemon(daemon, file, times) {
  writeFileSync(file, `#!${process.execPath}
const { spawn } = require("node:child_process");
const { appendFileSync, readFileSync } = require("node:fs");
const { createInterface } = require("node:readline");
const deaths = ${JSON.stringify(`${file}.deaths`)};
const daemon = spawn(${JSON.stringify(daemon)}, process.argv.slice(2), { stdio: ["pipe", "inherit", "inherit"] });
daemon.on("exit", (code) => process.exit(code ?? 137));
createInterface({ input: process.stdin }).on("line", (line) => {
  daemon.stdin.write(line + "\\n");
  if (!line.includes("context/fit")) return;
  appendFileSync(deaths, ".");
  if (readFileSync(deaths, "utf8").length <= ${times}) daemon.kill("SIGKILL");
}).on("close", () => daemon.stdin.end());
`, { mode: 0o755 });
  return file;
}
