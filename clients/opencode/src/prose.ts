import type { Message, Part, ToolPart } from "@opencode-ai/sdk";
import type { FitAnswer } from "abridged-client";

/** A message of OpenCode, as its hooks get it. */
export interface Entry {
  info: Message;
  parts: Part[];
}

/** OpenCode cuts each tool result of a compaction's input to this length. */
const RESULT_CHARS = 2000;

type Block = Record<string, unknown> & { type?: string; text?: string; id?: string };
type Given = Record<string, unknown> & { role: "user" | "assistant" | "toolResult"; content: Block[] };

/** Messages for `context/fit`, and for each of them the index of the entry that it comes from. */
export interface Prose {
  messages: Given[];
  owners: number[];
}

/**
 * The text that OpenCode makes of the entries for its summarizer, in messages: sizes are those of the real request. A file
 * is one line, and a long tool result is cut.
 */
export function toProse(entries: Entry[]): Prose {
  const messages: Given[] = [];
  const owners: number[] = [];
  entries.forEach((entry, owner) => {
    const made = entry.info.role === "user" ? ofUser(entry.parts) : ofAssistant(entry.parts);
    messages.push(...made);
    owners.push(...made.map(() => owner));
  });
  return { messages, owners };
}

function ofUser(parts: Part[]): Given[] {
  const texts = parts.flatMap((part) => (part.type === "text" && !part.ignored && part.text ? [part.text] : []));
  const files = parts.flatMap((part) => (part.type === "file" ? [attached(part)] : []));
  const text = [...texts, ...files].join("\n");
  return text ? [{ role: "user", content: [{ type: "text", text }] }] : [];
}

function ofAssistant(parts: Part[]): Given[] {
  const content: Block[] = [];
  const results: Given[] = [];
  for (const part of parts) {
    if (part.type === "text" && part.text) content.push({ type: "text", text: part.text });
    if (part.type === "reasoning" && part.text) content.push({ type: "thinking", thinking: part.text });
    if (part.type !== "tool") continue;
    const { callID: id, tool: name, state } = part;
    content.push({ type: "toolCall", id, name, arguments: state.input });
    const isError = state.status !== "completed";
    results.push({ role: "toolResult", toolCallId: id, toolName: name, isError, content: [{ type: "text", text: resultOf(state) }] });
  }
  return content.length > 0 ? [{ role: "assistant", content }, ...results] : [];
}

function resultOf(state: ToolPart["state"]): string {
  if (state.status === "error") return state.error;
  if (state.status !== "completed") return "";
  if (state.time.compacted) return "[Old tool result content cleared]";
  const text = [state.output, ...(state.attachments ?? []).map(attached)].join("\n");
  return text.length <= RESULT_CHARS ? text : `${text.slice(0, RESULT_CHARS)}\n[truncated]`;
}

const attached = ({ mime, filename }: { mime: string; filename?: string }) => `[Attached ${mime}: ${filename ?? "file"}]`;

/**
 * The entries that hold the answer of `context/fit`: the summary as a message of the user, then the kept entries. An entry
 * that the daemon did not shorten is the same object.
 */
export function fromProse(entries: Entry[], { messages, owners }: Prose, { messages: fitted, firstKeptIndex }: FitAnswer): Entry[] {
  const kept = messages.length - firstKeptIndex;
  const frames = fitted.slice(0, fitted.length - kept) as Given[];
  const returned = fitted.slice(fitted.length - kept) as Given[];
  const firstOwner = owners[firstKeptIndex] ?? entries.length;

  const rest = entries.slice(firstOwner).map((entry, at) => {
    const own = owners.flatMap((owner, index) => (owner === firstOwner + at ? [index] : []));
    const shortened = own.map((index) => returned[index - firstKeptIndex]).filter((message) => message !== undefined);
    const same = own.every((index, n) => textOf(messages[index]!) === textOf(shortened[n]));
    return same ? entry : { info: entry.info, parts: shorten(entry.parts, shortened) };
  });
  return [...frames.map((frame) => framed(entries, frame)), ...rest];
}

/** Content without what the daemon adds, to tell whether it shortened a message. */
function textOf(message: Given | undefined): string {
  if (!message) return "";
  const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  return JSON.stringify(blocks.map(({ type, text, thinking, id, arguments: input }) => [type, text, thinking, id, input]));
}

/** A message of the summary, as a text of the user. */
function framed(entries: Entry[], { content }: Given): Entry {
  const { info } = entries.find((entry) => entry.info.role === "user") ?? entries[0]!;
  const text = content.map((block) => block.text ?? "").join("\n");
  const { id: messageID, sessionID } = info;
  const part: Part = { id: `prt_abridged_${messageID}`, messageID, sessionID, type: "text", synthetic: true, text };
  return { info: { ...info, role: "user" } as Message, parts: [part] };
}

/** The parts of an entry with the texts, arguments and results that the daemon shortened. */
function shorten(parts: Part[], messages: Given[]): Part[] {
  const first = parts[0];
  if (!first) return parts;
  const { messageID, sessionID } = first;
  const text = (value: string, n: number): Part => ({ id: `${first.id}_${n}`, messageID, sessionID, type: "text", text: value });
  const results = new Map(messages.map((message) => [message["toolCallId"], message.content]));
  return messages.filter(({ role }) => role !== "toolResult").flatMap(({ content }) => content).flatMap((block, n): Part[] => {
    if (block.type === "text") return [text(block.text ?? "", n)];
    const tool = parts.find((part) => part.type === "tool" && part.callID === block.id) as ToolPart | undefined;
    if (block.type !== "toolCall" || !tool) return [];
    const result = (results.get(block.id) ?? []).map(({ text }) => text ?? "").join("\n");
    const input = block["arguments"] as ToolPart["state"]["input"];
    const state = tool.state.status === "error" ? { ...tool.state, input, error: result } : { ...tool.state, input, output: result };
    return [{ ...tool, state } as ToolPart];
  });
}
