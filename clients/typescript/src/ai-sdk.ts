import { createHash } from "node:crypto";

import { asSchema, type Instructions, type ModelMessage, type ToolSet } from "ai";

import { shortened, toDaemon, toUser } from "./ai-messages.js";
import type { Client } from "./client.js";
import { fit } from "./fit.js";
import type { FitAnswer, FitParams, Message } from "./protocol.js";

export interface FitMessagesOptions {
  /** Window of the model, in tokens. */
  contextWindow: number;
  /** Longest answer of the model, in tokens. */
  maxOutputTokens?: number;
  /** Model that the messages are for, as `provider/id` or as an object. It chooses the tokenizer and the summarizer. */
  model?: FitParams["model"];
  /** Tools of the call. They are sent with each request, so they count. */
  tools?: ToolSet;
  /** Size of the newest messages that are kept verbatim, in tokens. Default: a share of the window. */
  keepRecentTokens?: number;
  /** Instructions for the summary: topics to keep above all. */
  summaryInstructions?: string;
  /** Time for a fit, in milliseconds. Default: 120,000. */
  timeoutMs?: number;
  /** Connection to use. Default: one that all calls of this process share. */
  client?: Pick<Client, "fit">;
  /** Called after messages became a summary. */
  onFit?: (fitted: Omit<FitAnswer, "messages">) => void;
  /** Called when messages stay as they are, because the fit failed. Default: one warning of the process. */
  onError?: (error: unknown) => void;
}

/** The part of a step that the function reads. */
interface Step {
  messages: ModelMessage[];
  instructions?: Instructions | undefined;
}

/** A summary that a former step paid for. */
interface Covered {
  summary: string;
  /** Digest of the conversation that the summary covers. */
  digest: string;
  /** Whether the messages that it was found by are the summary itself. */
  isSummary: boolean;
}

const SUMMARIES_KEPT = 64;
let hasWarned = false;

/**
 * A `prepareStep` that fits the messages into the window. Kept messages are the same objects; the older ones become a
 * summary in front of them. Where the daemon fails, the messages stay as they are.
 */
export function fitMessages(options: FitMessagesOptions): (step: Step) => Promise<{ messages: ModelMessage[] } | undefined> {
  const memory = new Map<string, Covered>();
  return async (step) => {
    try {
      return await fitStep(step, options, memory);
    } catch (error) {
      if (options.onError) options.onError(error);
      else if (!hasWarned) {
        hasWarned = true;
        process.emitWarning(`Messages stay as they are: ${(error as Error).message}`, { type: "AbridgedWarning" });
      }
      return undefined;
    }
  };
}

async function fitStep({ messages, instructions }: Step, options: FitMessagesOptions, memory: Map<string, Covered>) {
  const { tools, keepRecentTokens, client = { fit }, timeoutMs = 120_000 } = options;
  const afterSystem = messages.findIndex(({ role }) => role !== "system");
  const head = messages.slice(0, afterSystem === -1 ? messages.length : afterSystem);
  const body = messages.slice(head.length);
  const forms = body.map(toDaemon);

  // `place` comes back with each kept message. A summary has none.
  const { known, at } = recall(memory, forms);
  const given = forms.slice(at).flatMap((form, index) => form.map((message) => ({ ...message, place: at + index })));
  const params: FitParams = {
    format: "messages",
    messages: given,
    system: [...texts(instructions), ...head.map(({ content }) => content)].join("\n\n"),
    contextWindow: options.contextWindow,
    maxOutputTokens: options.maxOutputTokens ?? null,
    model: options.model ?? null,
    tools: tools ? await definitions(tools) : null,
    instructions: options.summaryInstructions ?? null,
    previousSummary: known?.summary ?? null,
  };
  let answer = await client.fit(params, { timeoutMs });
  // With `keepRecentTokens` the daemon compacts messages that fit, too.
  if (answer.method !== null && keepRecentTokens !== undefined) answer = await client.fit({ ...params, keepRecentTokens }, { timeoutMs });
  if (answer.summary === null || (answer.method === null && known?.isSummary)) return undefined;

  const sent = new Set(given.map((message) => JSON.stringify(message)));
  const returned = answer.messages as { place?: number }[];
  const changed = returned.filter((message) => message.place !== undefined && !sent.has(JSON.stringify(message)));
  const summary = returned.filter(({ place }) => place === undefined).map(toUser);
  const firstKept = given[answer.firstKeptIndex]?.place ?? body.length;
  const kept = body.slice(firstKept).map((message, index) => {
    const own = changed.filter(({ place }) => place === firstKept + index);
    return own.length > 0 ? shortened(message, own) : message;
  });

  const digest = digestOf(known?.digest ?? "", forms.slice(at, firstKept));
  remember(memory, digest, { summary: answer.summary, digest, isSummary: false });
  remember(memory, digestOf("", summary.map(toDaemon)), { summary: answer.summary, digest, isSummary: true });
  if (answer.method !== null) {
    const { messages: _, ...fitted } = answer;
    options.onFit?.(fitted);
  }
  return { messages: [...head, ...summary, ...kept] };
}

/**
 * The newest summary that covers the beginning of the messages, and the place after it. It is found by itself in a later
 * step of the same run, and by the messages that it covers in a run that begins with the whole history again.
 */
function recall(memory: Map<string, Covered>, forms: Message[][]): { known?: Covered; at: number } {
  let found: { known?: Covered; at: number } = { at: 0 };
  let digest = "";
  // The newest message is never among them.
  for (let index = 0; memory.size > 0 && index < forms.length - 1; index++) {
    digest = digestOf(digest, [forms[index]!]);
    const known = memory.get(digest);
    if (known) found = { known, at: index + 1 };
  }
  return found;
}

function remember(memory: Map<string, Covered>, digest: string, covered: Covered): void {
  memory.delete(digest);
  memory.set(digest, covered);
  for (const oldest of memory.keys()) {
    if (memory.size <= SUMMARIES_KEPT) break;
    memory.delete(oldest);
  }
}

/** A digest of a conversation that goes on from another digest. */
function digestOf(before: string, forms: Message[][]): string {
  return forms.reduce((digest, form) => createHash("sha256").update(digest).update(JSON.stringify(form)).digest("hex"), before);
}

function texts(instructions: Instructions | undefined): string[] {
  if (instructions === undefined) return [];
  return [instructions].flat().map((part) => (typeof part === "string" ? part : part.content));
}

async function definitions(tools: ToolSet): Promise<NonNullable<FitParams["tools"]>> {
  const functions = Object.entries(tools).filter(([, tool]) => tool.type !== "provider");
  return Promise.all(
    functions.map(async ([name, { description, inputSchema }]) => ({
      name,
      description: typeof description === "string" ? description : "",
      inputSchema: (await asSchema(inputSchema).jsonSchema) as Record<string, unknown>,
    })),
  );
}
