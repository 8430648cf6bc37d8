import type { FilePart, ImagePart, ModelMessage, ToolResultPart } from "ai";

import type { Block, GivenMessage, Message, ToolResultMessage } from "./protocol.js";

type Part = Exclude<Extract<ModelMessage, { role: "user" | "assistant" }>["content"], string>[number];
type Data = FilePart["data"] | ImagePart["image"];

/** The size of an image stands in the head of its data, and nothing else of it is read. */
const IMAGE_HEAD = 128 * 1024;

/** The messages of the daemon that stand for one message of the AI SDK: one for each tool result, else one. */
export function toDaemon(message: ModelMessage): Message[] {
  switch (message.role) {
    case "system": // Those in front of the conversation go to the daemon as its system prompt.
      return [{ role: "user", content: message.content }];
    case "user":
    case "assistant": {
      const { role, content } = message;
      return [{ role, content: typeof content === "string" ? content : (content as Part[]).flatMap(blocksOf) }];
    }
    case "tool":
      return message.content.flatMap((part) => (part.type === "tool-result" ? [resultOf(part)] : []));
  }
}

/** A summary in front of the kept messages. */
export function toUser(message: GivenMessage): ModelMessage {
  return { role: "user", content: textOf(message) };
}

/** A message that the daemon shortened to fit the window. A shortened text has no files any more; the calls stay. */
export function shortened(original: ModelMessage, changed: GivenMessage[]): ModelMessage {
  if (original.role === "tool") {
    const results = new Map((changed as ToolResultMessage[]).map((result) => [result.toolCallId, result]));
    const content = original.content.map((part) => {
      const result = part.type === "tool-result" ? results.get(part.toolCallId) : undefined;
      if (!result || part.type !== "tool-result") return part;
      return { ...part, output: { type: result.isError ? ("error-text" as const) : ("text" as const), value: textOf(result) } };
    });
    return { ...original, content };
  }
  const text = changed.map(textOf).join("\n");
  if (original.role !== "assistant" || typeof original.content === "string") return { ...original, content: text } as ModelMessage;
  const calls = original.content.filter((part) => part.type === "tool-call");
  return { ...original, content: [{ type: "text", text }, ...calls] };
}

function textOf({ content }: GivenMessage): string {
  if (typeof content === "string") return content;
  return (content as Block[]).flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function blocksOf(part: Part): Block[] {
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }];
    case "reasoning":
      return [{ type: "thinking", thinking: part.text }];
    case "image":
      return fileBlocks(part.image, part.mediaType ?? "image");
    case "file":
      return fileBlocks(part.data, part.mediaType, part.filename);
    case "reasoning-file":
      return fileBlocks(part.data, part.mediaType);
    case "tool-call": {
      const { toolCallId: id, toolName: name, input } = part;
      // The result of a provider's own tool stands in the same message, and no message of a tool follows.
      if (part.providerExecuted) return [{ type: "text", text: `[${name} ${JSON.stringify(input)}]` }];
      const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
      return [{ type: "toolCall", id, name, arguments: isObject ? (input as Record<string, unknown>) : { input } }];
    }
    case "tool-result":
      return [{ type: "text", text: `[result of ${part.toolName}]` }, ...outputBlocks(part.output)];
    default: // Requests of an approval, and parts that only their provider knows, are no text.
      return [];
  }
}

function resultOf({ toolCallId, toolName, output }: ToolResultPart): ToolResultMessage {
  return { role: "toolResult", toolCallId, toolName, isError: output.type.startsWith("error-"), content: outputBlocks(output) };
}

function outputBlocks(output: ToolResultPart["output"]): Block[] {
  switch (output.type) {
    case "text":
    case "error-text":
      return [{ type: "text", text: output.value }];
    case "json":
    case "error-json":
      return [{ type: "text", text: JSON.stringify(output.value) }];
    case "execution-denied":
      return [{ type: "text", text: output.reason ?? "Tool call execution denied." }];
    case "content":
      return output.value.flatMap((item): Block[] => {
        if (item.type === "text") return [{ type: "text", text: item.text }];
        if (item.type === "custom") return [];
        const mediaType = "mediaType" in item && item.mediaType ? item.mediaType : item.type.startsWith("image") ? "image" : "file";
        return fileBlocks("data" in item ? item.data : "url" in item ? new URL(item.url) : {}, mediaType);
      });
  }
}

/** A text is a text. Everything else is counted as an image: by its size, or as one of unknown size. */
function fileBlocks(given: Data, mediaType: string, filename?: string): Block[] {
  if (isTagged(given, "text")) return [{ type: "text", text: (given as { text: string }).text }];
  const bytes = base64(isTagged(given, "data") ? (given as { data: Data }).data : given);
  if (mediaType.startsWith("text") && bytes) return [{ type: "text", text: Buffer.from(bytes, "base64").toString("utf8") }];
  const data = mediaType.startsWith("image") ? bytes.slice(0, IMAGE_HEAD) : "";
  return [
    { type: "text", text: `[${filename ?? "file"}: ${mediaType}]` },
    { type: "image", data, mimeType: mediaType.includes("/") ? mediaType : `${mediaType}/*` },
  ];
}

function isTagged(data: Data, type: string): boolean {
  return typeof data === "object" && (data as { type?: unknown }).type === type;
}

/** The data in base64; empty where only an address or the id of a provider is known. */
function base64(data: Data): string {
  if (data instanceof ArrayBuffer) return Buffer.from(data).toString("base64");
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  const text = data instanceof URL ? data.href : typeof data === "string" ? data : "";
  if (text.startsWith("data:")) return text.slice(text.indexOf(",") + 1);
  return /^[a-z]+:/i.test(text) ? "" : text;
}
