// A client of the daemon: one JSON object a line over its pipes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Starts a daemon with these variables, and greets it. */
export async function startDaemon(env) {
  const child = spawn(process.env.ABRIDGED_BIN ?? "abridged", ["serve"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  let last = 0;
  createInterface({ input: child.stdout, crlfDelay: Infinity }).on("line", (line) => {
    const frame = JSON.parse(line);
    const waits = waiting.get(frame.id);
    if (!waits) return;
    waiting.delete(frame.id);
    if (frame.error) waits.reject(new Error(`${waits.method}: ${JSON.stringify(frame.error)}`));
    else waits.resolve(frame.result);
  });
  child.on("exit", (code) => {
    for (const { method, reject } of waiting.values()) reject(new Error(`${method}: the daemon ended with ${code}`));
  });
  const call = (method, params) => new Promise((resolve, reject) => {
    last += 1;
    waiting.set(last, { method, resolve, reject });
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
  });
  const end = async () => {
    const exited = once(child, "exit");
    child.stdin.end();
    const [code] = await exited;
    return code;
  };
  await call("initialize", { protocolVersion: 1, clientInfo: { name: "pi-interop", version: "1" } });
  return { call, end };
}
