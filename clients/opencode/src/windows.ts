import type { CallOptions, Client } from "abridged-client";

/** A model of OpenCode with its limits, in tokens. */
export interface Model {
  providerID: string;
  modelID: string;
  limit: { context: number; input?: number; output: number };
}

/** OpenCode never asks for a longer answer, and for this one where the limit of a model is unknown. */
const LONGEST_ANSWER = 32_000;

/**
 * Tokens that the input of a request may have. An answer's limit of more than half of the window is no wish for such an
 * answer, but an unset or wrong value.
 */
export function roomOf({ limit }: Model, window: number): number {
  const answer = Math.min(limit.output || LONGEST_ANSWER, LONGEST_ANSWER);
  const room = window - (answer <= window / 2 ? answer : Math.floor(window / 4));
  return limit.input ? Math.min(limit.input, room) : room;
}

/**
 * The window that the model's server has: the configured one, or a smaller one that a refusal named. The daemon reads
 * the text of a refusal and remembers the window for later runs. Undefined where no window is known.
 */
export async function windowOf(
  client: Client,
  { providerID, modelID, limit }: Model,
  refusal: string | undefined,
  options: CallOptions,
): Promise<number | undefined> {
  const { session } = await client.call("session/new", {
    cwd: process.cwd(),
    model: { provider: providerID, id: modelID },
    ephemeral: true,
    contextWindow: limit.context || null,
    settings: { compaction: { enabled: false } },
  }, options);
  let { usage } = session;
  if (refusal !== undefined) {
    const failed = { role: "assistant" as const, content: [], provider: providerID, model: modelID, stopReason: "error", errorMessage: refusal };
    const messages = [{ role: "user" as const, content: "…" }, failed];
    ({ usage } = await client.call("session/append", { sessionId: session.sessionId, messages }, options));
  }
  return limit.context || usage.windowSource === "learned" ? usage.contextWindow ?? undefined : undefined;
}
