import { setTimeout as sleep } from "node:timers/promises";

import { type Command, Daemon, type Receiver } from "./daemon.js";
import { AbridgedError, DaemonExited } from "./errors.js";
import { findBinary } from "./find.js";
import type {
  ClientCapabilities,
  ClientInfo,
  ClientNotifications,
  ClientRequests,
  Envelope,
  FitAnswer,
  FitParams,
  HookEvent,
  InitializeAnswer,
  Methods,
  ServerNotifications,
} from "./protocol.js";
import { type ReconnectedSession, Sessions } from "./sessions.js";

const HANDSHAKE_MS = 30_000;
const RESTARTS_A_MINUTE = 5;
const FIRST_RESTART_MS = 100;

/** A function that answers a request of the daemon. The signal is aborted when nobody waits for the answer any more. */
export type Callback<M extends keyof ClientRequests> = (
  params: ClientRequests[M]["params"],
  context: { signal: AbortSignal },
) => Promise<ClientRequests[M]["result"]> | ClientRequests[M]["result"];

export interface ConnectOptions {
  /** Path or name of the binary. Default: the first one that is found. */
  binary?: string;
  /** Arguments. Default: `["serve"]`. */
  args?: string[];
  /** Variables to add to the environment of this process. */
  env?: NodeJS.ProcessEnv;
  /** Working folder of the daemon. */
  cwd?: string;
  /** Name and version of the program that uses the client. */
  clientInfo?: ClientInfo;
  /** Capabilities beside those that follow from the callbacks; `hooks` may hold `timeoutMs` and `onFailure`. */
  capabilities?: ClientCapabilities;
  /** Runs a model for the daemon. */
  llm?: Callback<"llm/complete">;
  /** Executes a tool in a turn that the daemon runs. */
  tools?: Callback<"tool/call">;
  /** Hooks, by their names. */
  hooks?: { [H in HookEvent]?: Callback<`hook/${H}`> };
  /** Time for each call, in milliseconds. Default: no limit, because a summary may take minutes. */
  timeoutMs?: number;
  /** Whether a daemon that ended unexpectedly is started again. Default: true. */
  restart?: boolean;
  /** Whether the connection keeps Node running until `close`. Default: true. With false, only open calls do. */
  keepAlive?: boolean;
}

export interface CallOptions {
  /** Cancels the call in the daemon, too. */
  signal?: AbortSignal | undefined;
  /** Time for the answer, in milliseconds. Default: that of the connection. */
  timeoutMs?: number | undefined;
}

/** Events of a client: those of the connection, and its own. */
export interface ClientEvents extends Omit<{ [M in keyof ServerNotifications]: ServerNotifications[M]["params"] }, "session/event"> {
  /** A new daemon runs, and the sessions are open again. Hooks and tools that calls have set are not. */
  reconnected: { sessions: ReconnectedSession[] };
  /** The daemon ended without `close`. */
  exit: { error: DaemonExited; willRestart: boolean };
}

/** The arguments of `call`: params may be left out where none is required. */
export type CallInput<M extends keyof Methods> = {} extends Methods[M]["params"]
  ? [params?: Methods[M]["params"], options?: CallOptions]
  : [params: Methods[M]["params"], options?: CallOptions];

/** Starts a daemon and opens the connection. */
export function connect(options: ConnectOptions = {}): Promise<Client> {
  return Client.connect(options);
}

/** A connection to one daemon. It outlives the process of the daemon: after a crash, calls wait for the next one. */
export class Client {
  readonly #options: ConnectOptions;
  readonly #command: Command;
  readonly #receiver: Receiver;
  readonly #listeners = new Map<string, Set<(params: never) => void>>();
  readonly #sessions = new Sessions();
  readonly #closing = new AbortController();
  #current: Daemon | undefined;
  /** The next daemon, while one is being started. */
  #ready: Promise<Daemon>;
  #restarts: number[] = [];
  #info!: InitializeAnswer;

  /** Starts a daemon and opens the connection. */
  static async connect(options: ConnectOptions): Promise<Client> {
    const client = new Client(options);
    client.#current = await client.#ready;
    return client;
  }

  private constructor(options: ConnectOptions) {
    const env = { ...process.env, ...options.env };
    this.#options = options;
    this.#command = {
      binary: findBinary(options.binary, env),
      args: options.args ?? ["serve"],
      env,
      cwd: options.cwd,
      keepAlive: options.keepAlive ?? true,
    };
    this.#receiver = {
      notified: (method, params) => this.#notified(method, params),
      asked: (method, params, signal) => this.#asked(method, params, signal),
      exited: (daemon, error) => this.#exited(daemon, error),
    };
    this.#ready = this.#spawn();
  }

  /** Result of `initialize`, of the daemon that runs now. */
  get info(): InitializeAnswer {
    return this.#info;
  }

  /** Process id of the daemon that runs now. */
  get pid(): number | undefined {
    return this.#current?.pid;
  }

  /** Sends a request and returns its result. Waits for a daemon that is being started again. */
  async call<M extends keyof Methods>(method: M, ...[given, options]: CallInput<M>): Promise<Methods[M]["result"]> {
    const params = (given ?? {}) as Methods[M]["params"];
    const site: { stack?: string } = {};
    Error.captureStackTrace(site, this.call);
    let isOver = false;
    let cancel = () => {};
    const send = async () => {
      const daemon = await this.#ready;
      if (isOver) throw closed();
      const { id, answer } = daemon.request(method, params);
      cancel = () => daemon.notify("$/cancelRequest", { id });
      const result = await answer;
      this.#sessions.answered(method, params, result, this.#info.epoch);
      return result;
    };
    if (this.#closing.signal.aborted) throw closed();
    try {
      return await within(send(), method, { timeoutMs: this.#options.timeoutMs, ...options }, () => cancel());
    } catch (error) {
      // An error of the daemon is made where its answer is read; the caller looks for the call.
      if (error instanceof AbridgedError && error.rpcCode !== undefined) error.stack = `${error}${site.stack?.replace(/^.*/, "")}`;
      throw error;
    } finally {
      isOver = true;
    }
  }

  /** Sends a notification. It is lost where no daemon runs. */
  notify<M extends keyof ClientNotifications>(method: M, params: ClientNotifications[M]["params"]): void {
    this.#current?.notify(method, params);
  }

  /** Fits messages into a window: `context/fit`. */
  fit(params: FitParams, options?: CallOptions): Promise<FitAnswer> {
    return this.call("context/fit", params, options);
  }

  /** Listens to the events of all sessions, or of one, in their order. Returns a function that ends it. */
  onEvent(listener: (params: Envelope) => void, { sessionId }: { sessionId?: string } = {}): () => void {
    return this.#listen("session/event", (params: Envelope) => {
      if (sessionId === undefined || params.sessionId === sessionId) listener(params);
    });
  }

  /** Listens to one kind of event of the connection. Returns a function that ends it. */
  on<E extends keyof ClientEvents>(event: E, listener: (params: ClientEvents[E]) => void): () => void {
    return this.#listen(event, listener);
  }

  /** Ends the daemon and waits for its end. Open calls are answered or fail; later ones fail. */
  async close(): Promise<void> {
    this.#closing.abort();
    const daemon = await this.#ready.catch(() => this.#current);
    await daemon?.close();
  }

  async #spawn(): Promise<Daemon> {
    const { llm, tools, hooks = {}, capabilities = {}, clientInfo, timeoutMs } = this.#options;
    const events = Object.keys(hooks) as HookEvent[];
    const daemon = new Daemon(this.#command, this.#receiver);
    const hello = daemon.request("initialize", {
      protocolVersion: 1,
      clientInfo: clientInfo ?? { name: "abridged-client" },
      processId: process.pid,
      capabilities: {
        ...(llm && { llm: {} }),
        ...(tools && { tools: {} }),
        ...capabilities,
        ...((events.length > 0 || capabilities.hooks) && { hooks: { events, ...capabilities.hooks } }),
      },
    });
    try {
      this.#info = await within(hello.answer, "initialize", { timeoutMs: timeoutMs ?? HANDSHAKE_MS });
      daemon.maxFrameBytes = this.#info.limits.maxInboundFrameBytes;
      return daemon;
    } catch (error) {
      await daemon.close();
      throw error;
    }
  }

  /** Runs before the open calls of the daemon fail, so that a call made in answer to such a failure waits. */
  #exited(daemon: Daemon, error: DaemonExited): void {
    if (daemon !== this.#current || this.#closing.signal.aborted) return;
    this.#current = undefined;
    this.#ready = this.#restart(error);
    this.#ready.catch(() => {});
  }

  async #restart(error: DaemonExited): Promise<Daemon> {
    for (;;) {
      this.#restarts = this.#restarts.filter((time) => time > Date.now() - 60_000);
      const willRestart = this.#options.restart !== false && this.#restarts.length < RESTARTS_A_MINUTE;
      this.#emit("exit", { error, willRestart });
      if (!willRestart) throw error;
      const pause = FIRST_RESTART_MS * 2 ** this.#restarts.length;
      this.#restarts.push(Date.now());
      await sleep(pause, undefined, { signal: this.#closing.signal }).catch(() => {
        throw closed();
      });
      try {
        const daemon = await this.#spawn();
        const sessions = await this.#sessions.reopen(daemon);
        if (daemon.ended) throw daemon.ended;
        this.#current = daemon;
        this.#emit("reconnected", { sessions });
        return daemon;
      } catch (cause) {
        error = cause instanceof DaemonExited ? cause : new DaemonExited(`The daemon does not start again: ${cause}`, null, null, "");
      }
    }
  }

  #notified(method: keyof ServerNotifications, params: unknown): void {
    if (method === "session/event") this.#sessions.seen(params as Envelope);
    this.#emit(method, params);
  }

  async #asked(method: keyof ClientRequests, params: unknown, signal: AbortSignal): Promise<unknown> {
    const { llm, tools, hooks } = this.#options;
    const callback = method === "llm/complete" ? llm : method === "tool/call" ? tools : hooks?.[method.replace(/^hook\//, "") as HookEvent];
    if (!callback) throw new Error(`this client has no callback for ${method}`);
    return (callback as (params: unknown, context: { signal: AbortSignal }) => unknown)(params, { signal });
  }

  #listen<P>(event: string, listener: (params: P) => void): () => void {
    // Each subscription is a function of its own, so that one listener may be added twice.
    const own = (params: P) => listener(params);
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(own));
    return () => void listeners.delete(own);
  }

  #emit(event: string, params: unknown): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        listener(params as never);
      } catch (error) {
        const detail = (error instanceof Error && error.stack) || String(error);
        process.emitWarning(`A listener of ${event} failed`, { type: "AbridgedWarning", detail });
      }
    }
  }
}

/** Settles with the work, or rejects at the abort of the signal or after the time; then it calls `giveUp`. */
function within<T>(work: Promise<T>, method: string, { signal, timeoutMs }: CallOptions, giveUp = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (reason: unknown) => {
      giveUp();
      reject(reason);
    };
    const abort = () => fail(signal?.reason);
    const late = () =>
      fail(
        new AbridgedError(`${method} has no answer after ${timeoutMs} ms; give it a longer timeoutMs`, {
          code: "timed_out",
          retryable: true,
        }),
      );
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    });
    if (signal?.aborted) abort();
  });
}

function closed(): AbridgedError {
  return new AbridgedError("The client is closed; connect() opens a new one", { code: "closed", retryable: false });
}
