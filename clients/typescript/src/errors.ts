import type { ErrorCode, ErrorObject } from "./protocol.js";

/** Codes of errors that come from the client itself. */
export type ClientErrorCode = "binary_not_found" | "daemon_exited" | "timed_out" | "closed" | "session_lost";

/** An error of the daemon or of the client. Programs branch on `code`; `message` names the cause and the next step. */
export class AbridgedError extends Error {
  /** `error.data.code` of the daemon, or a code of the client. */
  readonly code: ErrorCode | ClientErrorCode;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** All fields of `error.data`: `ErrorOf<"busy">` is their type for one code. */
  readonly data: Record<string, unknown>;
  /** Error number of JSON-RPC, for errors of the daemon. */
  readonly rpcCode: number | undefined;

  constructor(message: string, data: { code: ErrorCode | ClientErrorCode; retryable: boolean }, rpcCode?: number) {
    super(message);
    this.name = new.target.name;
    this.code = data.code;
    this.retryable = data.retryable;
    this.data = { ...data };
    this.rpcCode = rpcCode;
  }

  /** The error of a response. */
  static from({ code, message, data }: ErrorObject): AbridgedError {
    return new AbridgedError(message, data, code);
  }
}

/** The daemon ended while calls were open, could not be started, or did not stay alive. */
export class DaemonExited extends AbridgedError {
  /** Exit code; null where a signal ended the daemon, and where it did not start. */
  readonly exitCode: number | null;
  /** Signal that ended the daemon. */
  readonly signal: NodeJS.Signals | null;
  /** The last 4 KiB of its log. */
  readonly stderr: string;

  constructor(cause: string, exitCode: number | null, signal: NodeJS.Signals | null, stderr: string) {
    super(stderr ? `${cause}; its last lines:\n${stderr}` : cause, { code: "daemon_exited", retryable: true });
    this.exitCode = exitCode;
    this.signal = signal;
    this.stderr = stderr;
  }
}

/** There is no binary to start. */
export class BinaryNotFound extends AbridgedError {
  /** The places that were looked at, in their order. */
  readonly places: string[];

  /** `named` is the setting that names the only place that counts. */
  constructor(places: string[], named?: string) {
    const install = `cargo install abridged, or npm install abridged-${process.platform}-${process.arch}`;
    const list = places.map((place) => `\n  - ${place}`).join("");
    const advice = named
      ? ` where ${named} says. Correct ${named}, or leave it out after an installation (${install}).`
      : `. Install it (${install}), or set ABRIDGED_BIN to its path.`;
    super(`The program abridged is not installed${advice} Looked at:${list}`, {
      code: "binary_not_found",
      retryable: false,
    });
    this.places = places;
  }
}
