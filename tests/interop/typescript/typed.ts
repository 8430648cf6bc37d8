// A program of a user, compiled and never run. A line under `@ts-expect-error` that compiles is an error itself.

import { AbridgedError, BinaryNotFound, connect, DaemonExited, type EventOf, fit } from "abridged-client";
import { fitMessages } from "abridged-client/ai-sdk";
import { generateText, type LanguageModel, stepCountIs, ToolLoopAgent, tool } from "ai";
import { z } from "zod";

declare const model: LanguageModel;

const client = await connect({
  llm: async ({ purpose, messages }, { signal }) => {
    signal.throwIfAborted();
    return { message: { role: "assistant", content: `${purpose}: ${messages.length}`, stopReason: "stop" } };
  },
  tools: ({ name }) => ({ content: name, isError: false }),
  hooks: { session_before_compact: ({ reason }) => (reason === "idle" ? { action: "cancel" } : { action: "continue" }) },
});
const { session } = await client.call("session/new", { cwd: "/", contextWindow: 16_384 });
const text: string = session.sessionId;
const stop: () => void = client.onEvent(({ event }) => {
  if (event.type === "compaction_end") completed(event);
});
client.on("reconnected", ({ sessions }) => sessions.map(({ sessionId, status }) => `${sessionId} ${status}`));
client.on("exit", ({ error, willRestart }) => [error.exitCode, error.stderr, willRestart]);
client.on("session/resync_required", ({ dropped }) => dropped + 1);
client.notify("session/activity", { sessionId: text });
await client.call("ping");
await client.call("session/list", {}, { signal: AbortSignal.timeout(1000), timeoutMs: 500 });
const context: number | null = client.info.limits.maxInFlightRequests;

function completed({ outcome }: EventOf<"compaction_end">): void {
  if (outcome === "completed") stop();
}

try {
  await fit({ format: "openai_chat", contextWindow: 16_384, messages: [{ role: "user", content: "Go on." }] });
} catch (error) {
  if (error instanceof BinaryNotFound) console.log(error.places.length);
  else if (error instanceof DaemonExited) console.log(error.exitCode, error.stderr);
  else if (error instanceof AbridgedError && error.code === "busy") console.log(error.retryable, error.rpcCode, context);
}

const tools = {
  read: tool({ description: "Reads a part.", inputSchema: z.object({ part: z.number() }), execute: ({ part }) => `${part}` }),
};
const prepareStep = fitMessages({ contextWindow: 16_384, maxOutputTokens: 4096, model: "openai/gpt-5", tools });
await generateText({ model, tools, prompt: "Read.", stopWhen: stepCountIs(9), prepareStep });
await generateText({
  model,
  tools,
  prompt: "Read.",
  prepareStep: async (step) => ({ ...(await prepareStep(step)), toolChoice: "auto" }),
});
new ToolLoopAgent({ model, tools, prepareStep });

// @ts-expect-error: there is no such method
await client.call("session/create", { cwd: "/" });
// @ts-expect-error: params that the method needs are missing
await client.call("session/new");
// @ts-expect-error: a param of another type
await client.call("session/new", { cwd: 1 });
// @ts-expect-error: the result has no such field
(await client.call("session/new", { cwd: "/" })).sessionId;
// @ts-expect-error: there is no such event
client.on("reconnect", () => {});
// @ts-expect-error: the window is missing
fitMessages({ maxOutputTokens: 4096 });
