import type { Hooks, Plugin, PluginInput, PluginModule } from "@opencode-ai/plugin";
import { connect, DaemonExited, type GivenMessage } from "abridged-client";

import { type Entry, fromProse, toProse } from "./prose.js";
import { type Model, roomOf, windowOf } from "./windows.js";

type Host = PluginInput["client"];

/** Tokens of OpenCode's own instructions in the request of a compaction, with a margin for those of later versions. */
const INSTRUCTIONS = 1500;
const TIMEOUT_MS = 30_000;

/** Settings of the daemon: OpenCode's model writes the summary, so the daemon asks no model. */
const NO_MODELS = JSON.stringify({ defaultModel: null, models: [], compaction: { models: [], remoteEndpoint: null } });

/** The texts that plugins add to the request of a compaction. OpenCode reads them after the last hook. */
interface Additions {
  context: string[];
  prompt?: string;
}

/** A compaction whose messages are still to be fitted. */
interface Compaction {
  messages: Entry[];
  sessionID: string;
  additions: Additions;
}

const server: Plugin = async ({ client: host }, options = {}) => {
  const binary = options["binary"] as string | undefined;
  const timeoutMs = (options["timeoutMs"] as number | undefined) ?? TIMEOUT_MS;
  /** Compactions that have begun, by session. */
  const begun = new Map<string, Additions>();
  /** The model that each session asked last, and the newest refusal of each model as too long. */
  const asked = new Map<string, string>();
  const refusals = new Map<string, string>();
  let summarizer: string | undefined;

  /** Replaces the messages of a compaction where the model that summarizes them has no room for them. */
  async function fit({ messages, sessionID, additions }: Compaction): Promise<string | undefined> {
    const started = performance.now();
    const { data: history } = await host.session.messages({ path: { id: sessionID }, throwOnError: true });
    const model = await modelOf(host, history, summarizer);
    const client = await connect({
      ...(binary !== undefined && { binary }),
      clientInfo: { name: "abridged-opencode", version: "0.1.0" },
      env: { ABRIDGED_SETTINGS: NO_MODELS },
      timeoutMs,
      restart: false,
    });
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const window = await windowOf(client, model, refusals.get(nameOf(model)), { signal });
      if (window === undefined) return undefined;
      const prose = toProse(messages);
      const answer = await client.fit({
        format: "messages",
        messages: prose.messages as GivenMessage[],
        system: [additions.prompt ?? previousSummary(history), ...additions.context].join("\n"),
        contextWindow: Math.max(roomOf(model, window) - INSTRUCTIONS, 1),
      }, { signal });
      if (answer.method === null) return undefined;
      messages.splice(0, messages.length, ...fromProse(messages, prose, answer));
      const { tokensBefore, tokensAfter } = answer;
      const ms = Math.round(performance.now() - started);
      return `the input of the compaction is fitted to ${nameOf(model)}: ${tokensBefore} → ${tokensAfter} tokens in ${ms} ms`;
    } finally {
      await client.close();
    }
  }

  return guarded(host, {
    async config(config) {
      summarizer = config.agent?.["compaction"]?.model;
    },

    async "chat.params"({ sessionID, model }) {
      asked.set(sessionID, nameOf({ providerID: model.providerID, modelID: model.id }));
      begun.delete(sessionID);
    },

    async event({ event }) {
      if (event.type !== "session.error") return;
      const { sessionID, error } = event.properties;
      const model = asked.get(sessionID ?? "");
      const refusal = textOfRefusal(error);
      if (model !== undefined && refusal !== undefined) refusals.set(model, refusal);
    },

    async "experimental.session.compacting"({ sessionID }, additions) {
      begun.set(sessionID, additions);
    },

    // Ordinary requests pass here, too. They are left as they are: OpenCode compacts a session whose request is refused.
    async "experimental.chat.messages.transform"(_, { messages }) {
      const sessionID = messages[0]?.info.sessionID ?? "";
      const additions = begun.get(sessionID);
      if (!additions) return;
      begun.delete(sessionID);
      const compaction = { messages, sessionID, additions };
      const done = await fit(compaction).catch((error) => {
        if (error instanceof DaemonExited) return fit(compaction);
        throw error;
      });
      if (done) await report(host, "info", done);
    },
  });
};

export default { id: "abridged", server } satisfies PluginModule;

const nameOf = ({ providerID, modelID }: { providerID: string; modelID: string }) => `${providerID}/${modelID}`;

/** The hooks, with their errors reported: an error that leaves a hook ends OpenCode's request or compaction. */
function guarded(host: Host, hooks: Hooks): Hooks {
  const guard = (hook: (...inputs: unknown[]) => Promise<void>) => (...inputs: unknown[]) =>
    hook(...inputs).catch((error) => {
      const why = error instanceof Error ? error.message : String(error);
      return report(host, "warn", `${why}\nOpenCode goes on with its own input`);
    });
  return Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, guard(hook)]));
}

/** The model that writes the summary: that of the agent `compaction`, else that of the newest message of the user. */
async function modelOf(host: Host, history: Entry[], summarizer: string | undefined): Promise<Model> {
  const { data } = await host.config.providers({ throwOnError: true });
  const user = history.findLast(({ info }) => info.role === "user")?.info;
  const chosen = summarizer ?? (user?.role === "user" ? nameOf(user.model) : "");
  const [providerID = "", ...rest] = chosen.split("/");
  const modelID = rest.join("/");
  const model = data.providers.find(({ id }) => id === providerID)?.models[modelID];
  if (!model) throw new Error(`OpenCode has no limits for the model ${chosen}`);
  return { providerID, modelID, limit: model.limit };
}

/** The summary of the last compaction, which OpenCode repeats in its instructions. */
function previousSummary(history: Entry[]): string {
  const compacted = history.findLast(({ info }) => info.role === "assistant" && info.summary && info.finish && !info.error);
  return (compacted?.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The provider's text of a refusal as too long. The error is missing in the published types. */
function textOfRefusal(error: { name: string; data: object } | undefined): string | undefined {
  if (error?.name !== "ContextOverflowError") return undefined;
  const { message, responseBody } = error.data as { message: string; responseBody?: string };
  return [message, responseBody].filter(Boolean).join("\n");
}

/** Writes a line to OpenCode's log and shows it in the terminal. A failure of either is no failure of the compaction. */
async function report(host: Host, level: "info" | "warn", text: string): Promise<void> {
  const message = `abridged: ${text}`;
  const ways = [
    () => host.app.log({ body: { service: "abridged", level, message } }),
    () => host.tui.showToast({ body: { message, variant: level === "warn" ? "warning" : level } }),
  ];
  await Promise.allSettled(ways.map(async (way) => way()));
}
