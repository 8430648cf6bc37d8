/**
 * Compactions of pi and oh-my-pi by abridged. The daemon reads the session and computes the compaction, and the host writes it: this
 * extension writes to no session file. Where the daemon has no result, the host compacts by itself.
 */

import { existsSync } from "node:fs";
import { completeSimple, isContextOverflow } from "@earendil-works/pi-ai/compat";
import type {
  AgentBeforeSettleEvent,
  BoundaryResult,
  ExtensionAPI,
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionEntry,
} from "@earendil-works/pi-coding-agent";
import { type Client, type ClientRequests, connect, findBinary, type Methods } from "abridged-client";

type Model = NonNullable<ExtensionContext["model"]>;
type MessageEntry = Extract<SessionEntry, { type: "message" }>;
type Answer = Extract<MessageEntry["message"], { role: "assistant" }>;
type Params<M extends keyof Methods> = Methods[M]["params"];
type Complete = ClientRequests["llm/complete"];

/** A compaction to be made, of the path that ends with the last entry of `branch`. */
interface Wish {
  branch: SessionEntry[];
  /** Size of the context by the host's count. */
  tokens: number | null | undefined;
  instructions?: string | undefined;
  keepRecentTokens?: number | undefined;
  asksModel: boolean;
  signal?: AbortSignal | undefined;
}

/** The compaction that runs. */
interface Job {
  wish: Wish;
  ctx: ExtensionContext;
  model: Model;
  signal: AbortSignal;
  /** Aborted when the rest of the time is left to an extracted summary. */
  modelTime: AbortSignal;
  /** Usage of the host's model. */
  usage: Answer["usage"] | undefined;
}

interface Compaction {
  summary: string;
  firstKeptEntryId: string | null;
  tokensBefore: number;
  tokensAfter: number;
  details?: unknown;
  usage?: Answer["usage"] | undefined;
  /** The author of the summary, for a person. */
  author: string;
}

const KEY = "abridged";
const PI_SECONDS = 120;
/** oh-my-pi ends a handler after 30 s. */
const OH_MY_PI_SECONDS = 25;
/** The part of the time that a model has. An extracted summary needs about a second of the rest. */
const MODEL_SHARE = 0.8;
/** The model of the sessions in which the daemon reads a refusal. It is forgotten after each. */
const READER = { provider: "abridged-pi", id: "refusal" };

export default function extension(pi: ExtensionAPI): void {
  const compactor = new Compactor(pi);
  pi.on("session_before_compact", (event, ctx) => compactor.beforeCompact(event, ctx));
  pi.on("agent_before_settle", (event, ctx) => compactor.beforeSettle(event, ctx));
  pi.on("message_end", ({ message }) => compactor.noteRefusal(message as MessageEntry["message"]));
  pi.on("turn_end", (_event, ctx) => compactor.showFullness(ctx, ctx.getContextUsage()?.tokens));
  pi.on("session_shutdown", () => compactor.close());
  pi.registerCommand("abridged", {
    description: "Show the size of the context, or choose the author of summaries: /abridged [model|extracted]",
    handler: async (choice, ctx) => ctx.ui.notify(await compactor.command(choice.trim(), ctx), "info"),
  });
}

class Compactor {
  readonly #pi: ExtensionAPI;
  readonly #host: "pi" | "oh-my-pi";
  readonly #seconds: number;
  #asksModel = process.env["ABRIDGED_PI_SUMMARY"] !== "extracted";
  #client: Promise<Client> | undefined;
  #job: Job | undefined;
  /** The newest refusal of this process: oh-my-pi takes refused answers out of the session. */
  #refusal: Answer | undefined;
  /** The window that a refusal has shown, and its model. */
  #served: { model: string; window: number } | undefined;
  /** The request of the user whose turn gets no further rescue. */
  #finished: string | undefined;
  #last = "No compaction so far.";
  #notified: string | undefined;

  constructor(pi: ExtensionAPI) {
    this.#pi = pi;
    // oh-my-pi hands its own exports to an extension, as `pi.pi`.
    this.#host = "pi" in pi ? "oh-my-pi" : "pi";
    const seconds = Number(process.env["ABRIDGED_PI_TIMEOUT"]) || PI_SECONDS;
    this.#seconds = this.#host === "pi" ? seconds : Math.min(seconds, OH_MY_PI_SECONDS);
  }

  /** Makes the host's compaction: by hand, at the threshold, or after a refusal. */
  async beforeCompact(event: SessionBeforeCompactEvent, ctx: ExtensionContext): Promise<SessionBeforeCompactResult | undefined> {
    const { branchEntries: branch, customInstructions: instructions, signal } = event;
    const { tokensBefore: tokens, settings } = event.preparation;
    const { keepRecentTokens } = settings;
    const made = await this.#compact({ branch, tokens, instructions, keepRecentTokens, asksModel: this.#asksModel, signal }, ctx);
    if (!made) {
      this.#finished = requestOf(branch);
      return signal.aborted ? { cancel: true } : undefined;
    }
    const { summary, tokensBefore, details, usage } = made;
    // The hosts take null for a compaction that keeps nothing, and their types do not say so.
    const firstKeptEntryId = made.firstKeptEntryId as string;
    return { compaction: { summary, firstKeptEntryId, tokensBefore, details, ...(usage && { usage }) } };
  }

  /**
   * Rescues a refused turn that pi gives up: pi compacts no context that is smaller than its `keepRecentTokens`, and repeats a turn only
   * once. The user cannot abort this handler, so it asks no model. oh-my-pi has no such event.
   */
  async beforeSettle({ outcome }: AgentBeforeSettleEvent, ctx: ExtensionContext): Promise<BoundaryResult | undefined> {
    const branch = ctx.sessionManager.getBranch();
    const refused = branch.findLast(isAnswer);
    const request = requestOf(branch);
    if (outcome !== "error" || !refused || !isRefusal(refused.message) || request === this.#finished) return undefined;
    this.#finished = request;
    const made = await this.#compact({ branch, tokens: ctx.getContextUsage()?.tokens, asksModel: false }, ctx);
    if (!made) return undefined;
    const { summary, firstKeptEntryId, details } = made;
    const compaction = { type: "compaction", summary, firstKeptEntryId, details } as const;
    const omission = { type: "context_edit", targetId: refused.id, replacement: null } as const;
    const isOmitted = branch.some((entry) => entry.type === "context_edit" && entry.targetId === refused.id);
    return { entries: isOmitted ? [compaction] : [omission, compaction], continue: true };
  }

  noteRefusal(message: MessageEntry["message"]): void {
    if (message.role === "assistant" && isRefusal(message)) this.#refusal = message;
  }

  /** Shows how full the served window is. The host's own display has the window of its catalog. */
  showFullness(ctx: ExtensionContext, tokens: number | null | undefined): void {
    const { model } = ctx;
    const window = this.#served?.model === nameOf(model) ? this.#served.window : model?.contextWindow;
    ctx.ui.setStatus(KEY, tokens && window ? `abridged: ${percent(tokens, window)} of ${Math.round(window / 1000)}k` : undefined);
  }

  /** The text of `/abridged`. */
  async command(choice: string, ctx: ExtensionContext): Promise<string> {
    if (choice === "model" || choice === "extracted") this.#asksModel = choice === "model";
    else if (choice !== "") return `/abridged ${choice} is unknown; use /abridged, /abridged model or /abridged extracted`;
    const author = this.#asksModel
      ? `Summaries: by ${nameOf(ctx.model)}, extracted where it fails. /abridged extracted asks no model.`
      : "Summaries: extracted, without a model. /abridged model lets the model write them.";
    if (choice !== "") return author;
    try {
      const usage = await this.#usage(await this.#connect(), ctx);
      return [`abridged is ${findBinary()}`, ...usage, author, this.#last].join("\n");
    } catch (error) {
      return `${textOf(error)}\n${this.#host} compacts by itself.`;
    }
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.close();
  }

  /** The compaction that the daemon computes. A failure is shown, and gives undefined. */
  async #compact(wish: Wish, ctx: ExtensionContext): Promise<Compaction | undefined> {
    const { model } = ctx;
    if (!model) return undefined;
    const started = performance.now();
    const time = AbortSignal.timeout(this.#seconds * 1000);
    const modelTime = AbortSignal.timeout(this.#seconds * 1000 * MODEL_SHARE);
    const signal = wish.signal ? AbortSignal.any([wish.signal, time]) : time;
    const job: Job = { wish, ctx, model, signal, modelTime, usage: undefined };
    this.#job = job;
    ctx.ui.setStatus(KEY, "abridged: compacting");
    try {
      const client = await unlessAborted(this.#connect(), signal);
      const window = await this.#window(wish, model, client, signal);
      const file = fileOf(ctx);
      const made = file ? await this.#ofFile(file, window, job, client) : await this.#ofMemory(window, job, client);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      this.#last = `Last compaction: ${count(made.tokensBefore)} to ${count(made.tokensAfter)} tokens in ${seconds} s, ${made.author}.`;
      this.#notified = undefined;
      this.showFullness(ctx, made.tokensAfter);
      return made;
    } catch (error) {
      ctx.ui.setStatus(KEY, undefined);
      const cause = time.aborted ? `no result within ${this.#seconds} s; ABRIDGED_PI_TIMEOUT sets the seconds` : textOf(error);
      // A cause that stays, such as a missing binary, is shown once.
      if (!wish.signal?.aborted && cause !== this.#notified) {
        this.#notified = cause;
        ctx.ui.notify(`abridged: ${cause}\n${this.#host} compacts by itself.`, "warning");
      }
      return undefined;
    } finally {
      this.#job = undefined;
    }
  }

  /** Of a session with a file. The daemon gets no right to write to it. */
  async #ofFile(path: string, contextWindow: number | undefined, job: Job, client: Client): Promise<Compaction> {
    const { wish, signal } = job;
    const { instructions, keepRecentTokens } = wish;
    // As a setting and not as a param of the call, the number gives way to the window and to messages that no model has read.
    const settings = { compaction: defined({ keepRecentTokens }) };
    const load = { path, readOnly: true, settings, ...this.#surroundings(job.ctx, job.model), ...defined({ contextWindow }) };
    const { sessionId } = (await client.call("session/load", load, { signal })).session;
    try {
      const params: Params<"session/compact"> = {
        sessionId,
        apply: false,
        wait: true,
        ...defined({ leafEntryId: wish.branch.at(-1)?.id, instructions }),
        ...(!wish.asksModel && { method: "extractive" }),
      };
      const answer = await client.call("session/compact", params, { signal });
      if (!("outcome" in answer) || answer.result?.summary == null) {
        throw new Error(("errorMessage" in answer && answer.errorMessage) || "the compaction has no result");
      }
      const { summary, firstKeptEntryId, tokensBefore, tokensAfter, details } = answer.result;
      return { summary, firstKeptEntryId, tokensBefore, tokensAfter, details, usage: job.usage, author: authorOf(answer.result) };
    } finally {
      client.call("session/close", { sessionId }).catch(() => {});
    }
  }

  /** Of a session without a file: its messages are fitted, and nothing is stored. */
  async #ofMemory(contextWindow: number | undefined, job: Job, client: Client): Promise<Compaction> {
    const { instructions, keepRecentTokens: keep = Infinity, branch } = job.wish;
    // pi's default is larger than a small window.
    const keepRecentTokens = Math.min(keep, Math.floor((contextWindow ?? Infinity) / 4));
    const { previousSummary, kept } = contextOf(branch);
    const { systemPrompt: system, ...surroundings } = this.#surroundings(job.ctx, job.model);
    const fit: Params<"context/fit"> = {
      ...surroundings,
      ...defined({ system, previousSummary, instructions, contextWindow }),
      ...(keepRecentTokens < Infinity && { keepRecentTokens }),
      messages: kept.map(({ message }) => message as Params<"context/fit">["messages"][number]),
    };
    const answer = await client.fit(fit, { signal: job.signal });
    if (answer.summary === null) throw new Error("the context fits and has nothing to summarize");
    const { summary, tokensBefore, tokensAfter } = answer;
    const firstKeptEntryId = kept[answer.firstKeptIndex]?.id ?? null;
    return { summary, firstKeptEntryId, tokensBefore, tokensAfter, usage: job.usage, author: authorOf(answer) };
  }

  /** The parts of a request beside its messages. */
  #surroundings(ctx: ExtensionContext, model: Model) {
    const active = new Set(this.#pi.getActiveTools());
    const tools = this.#pi.getAllTools().filter(({ name }) => active.has(name));
    return {
      model: { provider: model.provider, id: model.id },
      maxOutputTokens: model.maxTokens,
      // oh-my-pi has its prompt in parts.
      systemPrompt: [ctx.getSystemPrompt()].flat().join("\n\n"),
      tools: tools.map(({ name, description, parameters }) => ({ name, description, inputSchema: { ...parameters } })),
    };
  }

  /**
   * The window that the server enforces. The newest refusal of the model states it, or bounds it by its own size. A larger answer after the
   * refusal takes it back.
   */
  async #window({ branch, tokens }: Pick<Wish, "branch" | "tokens">, model: Model, client: Client, signal?: AbortSignal) {
    // oh-my-pi has null for an unknown window.
    const known = model.contextWindow || undefined;
    const isOfModel = (answer: Answer) => answer.provider === model.provider && answer.model === model.id;
    const answers = branch.filter(isAnswer).map(({ message }) => message).filter(isOfModel);
    const noted = this.#refusal && isOfModel(this.#refusal) ? [this.#refusal] : [];
    const refusal = [...answers.filter(isRefusal), ...noted].at(-1);
    this.#served = undefined;
    if (!refusal) return known;
    const later = answers.filter(({ timestamp, stopReason }) => timestamp > refusal.timestamp && stopReason !== "error");
    const taken = Math.max(0, ...later.map(({ usage }) => usage.input + usage.cacheRead + usage.cacheWrite));
    const bound = (await this.#stated(refusal, known, client, signal)) ?? (later.length === 0 ? tokens : undefined);
    if (bound == null || bound >= (known ?? Infinity) || bound < taken) return known;
    this.#served = { model: nameOf(model), window: bound };
    return bound;
  }

  /** The window that a refusal states, in the words of its provider. The daemon reads them in a session of two messages. */
  async #stated(refusal: Answer, known: number | undefined, client: Client, signal?: AbortSignal): Promise<number | undefined> {
    const reader = { cwd: process.cwd(), ephemeral: true, model: READER, ...defined({ contextWindow: known }) };
    const { sessionId } = (await client.call("session/new", reader, { signal })).session;
    const answer = { ...refusal, provider: READER.provider, model: READER.id };
    const messages = [{ role: "user", content: "…" }, answer] as Params<"session/append">["messages"];
    const { usage } = await client.call("session/append", { sessionId, messages }, { signal });
    await client.call("session/close", { sessionId }, { signal });
    await client.call("models/forget", { model: READER }, { signal });
    return usage.windowSource === "learned" ? (usage.contextWindow ?? undefined) : undefined;
  }

  /** Runs the host's model for the daemon. After an error the daemon extracts the summary. */
  async #complete({ system, messages, tools, maxTokens, model: asked }: Complete["params"], cancelled: AbortSignal): Promise<Complete["result"]> {
    const job = this.#job;
    if (!job?.wish.asksModel) throw new Error("no model is to be asked");
    const registry = job.ctx.modelRegistry;
    const model = (asked && registry.find(asked.provider, asked.id)) ?? job.model;
    const context = {
      messages: messages.map((message) => ({ timestamp: Date.now(), ...message })) as never[],
      ...(tools && { tools: tools.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema ?? {} })) }),
    };
    const options = { maxTokens, signal: AbortSignal.any([cancelled, job.modelTime]), cacheRetention: "none" as const };
    let answer: Answer;
    if (this.#host === "pi") {
      answer = await registry.streamSimple(model, { systemPrompt: system, ...context }, options).result();
    } else {
      const auth = await registry.getApiKeyAndHeaders(model);
      if (!auth.ok) throw new Error(auth.error);
      const { apiKey, headers } = auth;
      answer = await completeSimple(model, { systemPrompt: [system] as never, ...context }, { ...options, ...defined({ apiKey, headers }) });
    }
    if (job.modelTime.aborted) throw new Error(`${nameOf(model)} does not end in time`);
    job.usage = sum(job.usage, answer.usage);
    return { message: answer as Complete["result"]["message"] };
  }

  /** The daemon. It starts at the first use, and again after its end. */
  #connect(): Promise<Client> {
    this.#client ??= this.#start().catch((error) => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  async #start(): Promise<Client> {
    const client = await connect({
      clientInfo: { name: "abridged-pi", version: "0.1.0", title: this.#host },
      llm: (params, { signal }) => this.#complete(params, signal),
      timeoutMs: this.#seconds * 1000,
      restart: false,
      keepAlive: false,
    });
    client.on("exit", () => {
      this.#client = undefined;
    });
    client.onEvent(({ event }) => {
      if (event.type !== "compaction_progress") return;
      this.#job?.ctx.ui.setStatus(KEY, `abridged: ${event.stage} ${Math.round(event.share * 100)} %`);
    });
    return client;
  }

  /** The size of the context, and why it is or is not over its threshold. */
  async #usage(client: Client, ctx: ExtensionContext): Promise<string[]> {
    const { model } = ctx;
    const path = fileOf(ctx);
    if (!model || !path) return [`The session has no ${model ? "file" : "model"} yet, so that its size is not known.`];
    const known = await this.#window({ branch: ctx.sessionManager.getBranch(), tokens: ctx.getContextUsage()?.tokens }, model, client);
    const load = { path, readOnly: true, ...this.#surroundings(ctx, model), ...defined({ contextWindow: known }) };
    const { sessionId } = (await client.call("session/load", load)).session;
    const { breakdown, contextTokens, contextWindow, why } = await client.call("session/usage", { sessionId });
    await client.call("session/close", { sessionId });
    const window = contextWindow ?? known ?? 0;
    const parts = Object.entries(breakdown).map(([part, tokens]) => `${part} ${count(tokens)}`);
    const refused = this.#served ? `, as a refusal shows; the model's entry says ${model.contextWindow?.toLocaleString("en") ?? "nothing"}` : "";
    return [
      `Context: ${count(contextTokens)} tokens, ${percent(contextTokens, window)} of the window (${parts.join(", ")})`,
      `Window: ${count(window)} tokens${refused}`,
      // The rest says that a session which is loaded to be read is not compacted there.
      `${why.replace(/(, but the session was loaded with readOnly|\. Switched off:).*$/s, ".")} ${this.#host} starts each compaction.`,
    ];
  }
}

const isAnswer = (entry: SessionEntry): entry is MessageEntry & { message: Answer } =>
  entry.type === "message" && entry.message.role === "assistant";

const isRefusal = (answer: Answer): boolean => answer.stopReason === "error" && isContextOverflow(answer);

/** The newest message of the user. */
const requestOf = (branch: SessionEntry[]): string | undefined =>
  branch.findLast((entry) => entry.type === "message" && entry.message.role === "user")?.id;

/** The session's file, once the host has written it. */
function fileOf({ sessionManager }: ExtensionContext): string | undefined {
  const file = sessionManager.getSessionFile();
  return file !== undefined && existsSync(file) ? file : undefined;
}

/** The context of a path: the summary, and the messages that follow it with the ids of their entries. */
function contextOf(branch: SessionEntry[]): { previousSummary: string | undefined; kept: { id: string; message: object }[] } {
  const at = branch.findLastIndex(({ type }) => type === "compaction");
  const previous = branch[at]?.type === "compaction" ? branch[at] : undefined;
  const first = branch.findIndex(({ id }) => id === previous?.firstKeptEntryId);
  const edits = new Map(branch.flatMap((entry) => (entry.type === "context_edit" ? [[entry.targetId, entry.replacement] as const] : [])));
  const kept = branch.flatMap((entry, index) => {
    const message = messageOf(entry);
    const edit = edits.get(entry.id);
    const isKept = index > at || (first >= 0 && index >= first);
    return message && isKept && edit !== null ? [{ id: entry.id, message: { ...message, ...edit } }] : [];
  });
  return { previousSummary: previous?.summary, kept };
}

/** The message of an entry in pi's form; none for a system message, whose text is given beside the messages. */
function messageOf(entry: SessionEntry): object | undefined {
  if (entry.type === "message") return entry.message.role === "system" ? undefined : entry.message;
  if (entry.type === "branch_summary") return { role: "user", content: entry.summary };
  if (entry.type !== "custom_message") return undefined;
  const { customType, content, display } = entry;
  return { role: "custom", customType, content, display };
}

function authorOf({ method, rejected }: { method: string | null; rejected: { why: string }[] }): string {
  return method === "extractive" ? ["extracted", ...rejected.map(({ why }) => why)].join("; ") : "by a model";
}

/** The sum of two usages, field by field. */
function sum<T extends object>(one: T | undefined, other: T): T {
  const fields = Object.entries(other).map(([name, value]) => {
    const before = one?.[name as keyof T];
    return [name, typeof value === "number" ? value + ((before as number | undefined) ?? 0) : sum(before as object | undefined, value)];
  });
  return Object.fromEntries(fields) as T;
}

/** The fields that have a value. */
function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: NonNullable<T[K]> };
}

/** The result of the work, or the reason of an earlier abort. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  return Promise.race([work, aborted]);
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const nameOf = (model: Model | undefined): string => (model ? `${model.provider}/${model.id}` : "the model");
const count = (tokens: number): string => tokens.toLocaleString("en");
const percent = (tokens: number, window: number): string => `${Math.round((100 * tokens) / window)} %`;
