// A model on the loopback device: OpenAI's chat completions, streamed in small pieces.

import { once } from "node:events";
import { createServer } from "node:http";

/** The summary that the model writes. */
export const record = `## Goal
Read the parts one by one.

## Constraints & Preferences
- You must never change a lock file.

## Progress
### Done
- [x] The first parts are read.

## Next Steps
1. Read the next part.`;

const texts = ({ messages }) => messages.map(({ content }) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join(""));

/** The kind of a request: `turn`, or the text that is asked for below the conversation. */
function kindOf(said) {
  if (!/<conversation>|# Conversation/.test(said)) return "turn";
  const asked = said.replace(/<conversation>[^]*<\/conversation>/, "");
  return /## Original Request/.test(asked) ? "prefix" : /two sentences/.test(asked) ? "short" : "record";
}

/**
 * Starts the server. `ways.turn` and `ways.summary` name the way of the coming answers: `write`, `refuse` (the key is not valid) or
 * `hang` (the answer begins and has no end); for one turn `overflow` (the prompt is too long); for one record `ramble` (it is none).
 */
export async function startModel() {
  const ways = { turn: "write", summary: "write" };
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString("utf8"));
    const said = texts(body).at(-1);
    const kind = kindOf(said);
    const way = kind === "turn" ? ways.turn : ways.summary;
    const refuse = (status, error) => response.writeHead(status).end(JSON.stringify({ error }));
    if (way === "refuse") return refuse(401, { message: "The key is not valid." });
    if (way === "overflow") {
      ways.turn = "write";
      return refuse(400, { message: "The prompt is too long.", code: "context_length_exceeded" });
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({
      id: "chat-1", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }],
    })}\n\n`);
    const path = kind === "turn" && body.messages.at(-1).role === "user" && /^read (\S+)/.exec(said)?.[1];
    if (path) {
      const call = { name: "read", arguments: JSON.stringify({ path }) };
      send({ tool_calls: [{ index: 0, id: `call-${body.messages.length}`, type: "function", function: call }] });
      send({}, "tool_calls");
      return response.end("data: [DONE]\n\n");
    }
    const written = {
      turn: `Answer to ${body.messages.length} messages. ${"The model has read this part of it. ".repeat(60)}`,
      prefix: "## Original Request\nRead the next part.", short: "Parts are read. More will come.", record,
    };
    let text = written[kind];
    if (kind === "record" && way === "ramble") {
      ways.summary = "write";
      text = "Here is a poem about the sea, and nothing else.";
    }
    for (const piece of text.match(/[^]{1,60}/g)) send({ content: piece });
    if (way === "hang") return;
    send({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { baseUrl: `http://127.0.0.1:${server.address().port}/v1`, ways, close };
}
