import type { Daemon } from "./daemon.js";
import { AbridgedError, DaemonExited } from "./errors.js";
import type { Envelope, LoadParams, Methods, Seen, Subscription } from "./protocol.js";

/** The state of a session after a restart. */
export interface ReconnectedSession {
  sessionId: string;
  /** `expired`: events may be lost, so the client reads the session again. `lost`: the session is not open any more. */
  status: Subscription | "lost";
  error?: Error;
}

interface OpenSession {
  /** Opens it again. An ephemeral session has none: it exists only in the memory of its daemon. */
  load: LoadParams | undefined;
  isSubscribed: boolean;
  /** The last event that the client has seen. */
  seen: Seen;
}

/** The open sessions of a connection, with what a next daemon needs to open them again. */
export class Sessions {
  readonly #open = new Map<string, OpenSession>();

  /** Learns from a request that succeeded. */
  answered(method: keyof Methods, params: object, result: unknown, epoch: string): void {
    const { sessionId } = (result as { session?: { sessionId: string } } | null)?.session ?? (params as { sessionId: string });
    const open = this.#open.get(sessionId);
    const begin = (load: LoadParams | undefined) => this.#open.set(sessionId, { load, isSubscribed: true, seen: { epoch, seq: 0 } });
    switch (method) {
      case "session/new": // Its model, tools and settings are stored with it.
        return void begin((params as Methods["session/new"]["params"]).ephemeral ? undefined : { sessionId });
      case "session/fork":
        return void begin({ sessionId });
      case "session/load":
        return void (open ?? begin({ ...params }));
      case "session/configure": // The session has these values from now on, and not those of its first load.
        for (const key of Object.keys(params) as (keyof LoadParams)[]) if (key !== "sessionId") delete open?.load?.[key];
        return;
      case "session/subscribe":
      case "session/unsubscribe":
        if (open) open.isSubscribed = method === "session/subscribe";
        return;
      case "session/close":
      case "session/delete":
        this.#open.delete(sessionId);
    }
  }

  seen({ sessionId, epoch, seq }: Envelope): void {
    const open = this.#open.get(sessionId);
    if (open) open.seen = { epoch, seq };
  }

  /** Opens all sessions in another daemon. Fails only where that daemon ends. */
  async reopen(daemon: Daemon): Promise<ReconnectedSession[]> {
    const sessions = await Promise.all([...this.#open].map(([sessionId, session]) => reopen(daemon, sessionId, session)));
    for (const { sessionId, status } of sessions) if (status === "lost") this.#open.delete(sessionId);
    return sessions;
  }
}

async function reopen(daemon: Daemon, sessionId: string, session: OpenSession): Promise<ReconnectedSession> {
  const ask = <M extends keyof Methods>(method: M, params: Methods[M]["params"]) => daemon.request(method, params).answer;
  try {
    if (!session.load) {
      throw new AbridgedError(`The session ${sessionId} was ephemeral and ended with its daemon`, {
        code: "session_lost",
        retryable: false,
      });
    }
    await ask("session/load", session.load);
    if (!session.isSubscribed) {
      await ask("session/unsubscribe", { sessionId });
      return { sessionId, status: "ok" };
    }
    const { status, epoch, seq } = await ask("session/subscribe", { sessionId, after: session.seen });
    session.seen = { epoch, seq };
    return { sessionId, status };
  } catch (error) {
    if (error instanceof DaemonExited) throw error;
    return { sessionId, status: "lost", error: error as Error };
  }
}
