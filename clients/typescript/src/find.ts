import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

import { BinaryNotFound } from "./errors.js";

const NAME = process.platform === "win32" ? "abridged.exe" : "abridged";

/**
 * Path of the daemon's binary: the given one, `ABRIDGED_BIN`, that of the platform's package, `abridged` on PATH, or
 * that of cargo. A path that somebody chose is used or refused; no other binary takes its place.
 */
export function findBinary(chosen?: string, env: NodeJS.ProcessEnv = process.env): string {
  const path = (env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const onPath = (name: string) => path.map((folder) => join(folder, name)).find(isProgram);

  const wanted = chosen ?? (env["ABRIDGED_BIN"] || undefined);
  if (wanted !== undefined) {
    const found = /[/\\]/.test(wanted) ? (isProgram(wanted) ? wanted : undefined) : onPath(wanted);
    if (found) return found;
    const by = chosen === undefined ? "ABRIDGED_BIN" : "the option binary";
    throw new BinaryNotFound([`${by}: ${wanted}`], by);
  }

  const carrier = `abridged-${process.platform}-${process.arch}`;
  const cargo = join(homedir(), ".cargo", "bin", NAME);
  const found = carried(carrier) ?? onPath(NAME) ?? (isProgram(cargo) ? cargo : undefined);
  if (found) return found;
  throw new BinaryNotFound([
    "the option binary: not given",
    "ABRIDGED_BIN: not set",
    `the npm package ${carrier}: not installed`,
    `PATH: ${path.join(delimiter) || "empty"}`,
    cargo,
  ]);
}

function carried(carrier: string): string | undefined {
  try {
    const file = createRequire(import.meta.url).resolve(`${carrier}/bin/${NAME}`);
    return isProgram(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
