import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

import { AbridgedError, DaemonExited } from "./errors.js";
import type { ClientNotifications, ClientRequests, ErrorObject, Methods, RequestId, ServerNotifications } from "./protocol.js";

const STDERR_KEPT = 4096;
const KILL_AFTER_MS = 3000;

/** A frame of the daemon: an answer, a notification, or a request. */
type Frame = { id?: RequestId; method?: string; params?: unknown; result?: unknown; error?: ErrorObject };

/** The receiver of everything that the daemon sends unasked. */
export interface Receiver {
  notified(method: keyof ServerNotifications, params: unknown): void;
  /** Answers a request of the daemon. What it throws becomes the error of the answer. */
  asked(method: keyof ClientRequests, params: unknown, signal: AbortSignal): Promise<unknown>;
  /** The process has ended. Open requests fail after this call. */
  exited(daemon: Daemon, error: DaemonExited): void;
}

export interface Command {
  binary: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  cwd: string | undefined;
  /** Whether the process of this daemon keeps Node running while no request is open. */
  keepAlive: boolean;
}

/** One process of the daemon: JSON-RPC over its pipes, one JSON text a line. */
export class Daemon {
  /** The reason, once the process has ended. */
  ended: DaemonExited | undefined;
  /** Largest request that the daemon reads. It skips a larger one, and names no id in its answer. */
  maxFrameBytes = Infinity;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #receiver: Receiver;
  readonly #keepAlive: boolean;
  readonly #gone: Promise<void>;
  readonly #open = new Map<RequestId, { resolve(result: unknown): void; reject(error: unknown): void }>();
  readonly #answering = new Map<RequestId, AbortController>();
  readonly #lines: string[] = [];
  #delivering = false;
  #lastId = 0;
  #stderr = "";

  constructor({ binary, args, env, cwd, keepAlive }: Command, receiver: Receiver) {
    this.#receiver = receiver;
    this.#keepAlive = keepAlive;
    // In a process group of its own, the daemon outlives a Ctrl-C that the host handles itself.
    this.#child = spawn(binary, args, { env, cwd, stdio: "pipe", detached: process.platform !== "win32" });
    this.#child.stdin.on("error", () => {}); // The end of the process reports it.
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => this.#log(text));
    const split = lineSplitter((line) => this.#lines.push(line));
    this.#child.stdout.on("data", (chunk: Buffer) => {
      split(chunk);
      if (!this.#delivering) this.#deliver();
    });
    this.#gone = new Promise((resolve) => {
      let drain: NodeJS.Timeout | undefined;
      const end = (cause: string, code: number | null = null, signal: NodeJS.Signals | null = null) => {
        clearTimeout(drain);
        for (const line of this.#lines.splice(0)) this.#receive(line);
        if (!this.ended) this.#fail(new DaemonExited(cause, code, signal, this.#stderr.trim()));
        resolve();
      };
      const exited = (code: number | null, signal: NodeJS.Signals | null) =>
        end(`The daemon (${binary}) ended with ${signal ? `signal ${signal}` : `exit code ${code}`}`, code, signal);
      const place = cwd === undefined ? "" : ` in ${cwd}`;
      this.#child.on("error", (error) => end(`The daemon (${binary}) cannot be started${place}: ${error.message}`));
      this.#child.on("close", exited);
      // A grandchild that inherited the pipes may hold them open after the end of the daemon.
      this.#child.on("exit", (code, signal) => (drain = setTimeout(exited, 200, code, signal)));
    });
    this.#reference();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a request. `id` is for `$/cancelRequest`. */
  request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): { id: number; answer: Promise<Methods[M]["result"]> } {
    const id = ++this.#lastId;
    const answer = new Promise<unknown>((resolve, reject) => {
      if (this.ended) throw this.ended;
      const line = toLine({ id, method, params });
      if (Buffer.byteLength(line) > this.maxFrameBytes) {
        const problem = `${method} has more than ${this.maxFrameBytes} bytes, the limit of the daemon; send the data in smaller parts`;
        throw new AbridgedError(problem, { code: "frame_too_large", retryable: false });
      }
      this.#open.set(id, { resolve, reject });
      this.#reference();
      this.#write(line);
    });
    return { id, answer };
  }

  notify<M extends keyof ClientNotifications>(method: M, params: ClientNotifications[M]["params"]): void {
    this.#write(toLine({ method, params }));
  }

  /** Closes stdin, which ends the daemon in order, and waits for the end of the process. */
  async close(): Promise<void> {
    this.#child.ref();
    this.#child.stdin.end();
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), KILL_AFTER_MS);
    await this.#gone;
    clearTimeout(killer);
  }

  #write(line: string): void {
    if (this.#child.stdin.writable) this.#child.stdin.write(line);
  }

  /** Delivers the frames that have come, in order. Code that awaits an answer runs before the next frame is delivered. */
  #deliver(): void {
    this.#delivering = false;
    for (let line = this.#lines.shift(); line !== undefined; line = this.#lines.shift()) {
      if (this.#receive(line) === "answer") {
        this.#delivering = true;
        setImmediate(() => this.#deliver());
        return;
      }
    }
  }

  #receive(line: string): "answer" | "other" {
    const frame = parsed(line);
    if (!frame) {
      this.#log(`not JSON-RPC: ${line.slice(0, 200)}\n`); // Another program, which says on stdout why it fails.
      return "other";
    }
    const { id, method, params, result, error } = frame;
    if (method === "$/cancelRequest") {
      this.#answering.get((params as { id: RequestId }).id)?.abort();
    } else if (method !== undefined && id !== undefined) {
      void this.#answer(id, method as keyof ClientRequests, params);
    } else if (method !== undefined) {
      this.#receiver.notified(method as keyof ServerNotifications, params);
    } else if (id !== undefined) {
      const open = this.#open.get(id);
      this.#open.delete(id);
      this.#reference();
      if (error) open?.reject(AbridgedError.from(error));
      else open?.resolve(result);
      return "answer";
    }
    return "other";
  }

  async #answer(id: RequestId, method: keyof ClientRequests, params: unknown): Promise<void> {
    const controller = new AbortController();
    this.#answering.set(id, controller);
    try {
      const result = await this.#receiver.asked(method, params, controller.signal);
      this.#write(toLine({ id, result: result ?? null }));
    } catch (error) {
      const code = controller.signal.aborted ? -32800 : -32603;
      this.#write(toLine({ id, error: { code, message: error instanceof Error ? error.message : String(error) } }));
    } finally {
      this.#answering.delete(id);
    }
  }

  #fail(error: DaemonExited): void {
    this.ended = error;
    this.#receiver.exited(this, error);
    for (const controller of this.#answering.values()) controller.abort(error);
    for (const open of this.#open.values()) open.reject(error);
    this.#open.clear();
  }

  #log(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
  }

  /** Holds Node open as long as somebody waits, or always. */
  #reference(): void {
    const hold = this.#keepAlive || this.#open.size > 0;
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr] as { ref?(): void; unref?(): void }[]) {
      if (hold) handle.ref?.();
      else handle.unref?.();
    }
  }
}

function toLine(frame: object): string {
  return `${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`;
}

function parsed(line: string): Frame | undefined {
  try {
    const frame: unknown = JSON.parse(line);
    return typeof frame === "object" && frame !== null ? frame : undefined;
  } catch {
    return undefined;
  }
}

/** Splits chunks of bytes into lines of any length. The bytes of a long line are joined once. */
function lineSplitter(emit: (line: string) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString("utf8");
      parts = [];
      start = end + 1;
      if (line.trim()) emit(line);
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  };
}
