// A model server on the loopback device: OpenAI's chat completions, with a window that it enforces in a provider's words.

import { createServer } from "node:http";
import { EventEmitter, once } from "node:events";

/** The summary that the model writes. */
export const summary = `## Goal
Read every part of the machine and report its value.

## Constraints & Preferences
- Never change a lock file.

## Progress
### Done
- [x] The first parts were read.

### In Progress
- [ ] The newest part.

## Key Decisions
- **Order**: the parts are read by number.

## Next Steps
1. Read the next part.

## Critical Context
- Each part has one value.`;

export const answer = "The value of the part is 42.";

const textOf = ({ content }) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("\n");

/** pi and the daemon ask for a summary with the conversation as data, in the newest message. */
const isSummary = ({ messages }) => /<conversation>|# Conversation/.test(textOf(messages.at(-1)));

/** The size of a request, at four characters a token. */
const tokensOf = ({ messages, tools = [] }) => Math.ceil(JSON.stringify([messages, tools]).length / 4);

/**
 * Starts the server. `requests` has each request with its size, time and status. A request that is larger than `limits.window`, with the room
 * for its answer, is refused. While `limits.holdsSummaries` is true, a request for a summary gets no answer. `events` tells of each `request`,
 * and of each one that its client has `dropped`.
 */
export async function startModel() {
  const limits = { window: Infinity, statesWindow: true, holdsSummaries: false };
  const requests = [];
  const events = new EventEmitter();
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString("utf8"));
    const input = tokensOf(body);
    const output = body.max_completion_tokens ?? body.max_tokens ?? 0;
    const fits = input + output <= limits.window;
    const asked = { text: JSON.stringify(body.messages), input, isSummary: isSummary(body), status: fits ? 200 : 400, time: performance.now() };
    requests.push(asked);
    response.on("close", () => response.writableEnded || events.emit("dropped", asked));
    events.emit("request", asked);
    if (!fits) refuse(response, limits, input, output);
    else if (!(limits.holdsSummaries && asked.isSummary)) reply(response, body, asked.isSummary ? summary : answer, input);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { baseUrl: `http://127.0.0.1:${server.address().port}/v1`, limits, requests, events, close };
}

function refuse(response, { window, statesWindow }, input, output) {
  const message = statesWindow
    ? `This model's maximum context length is ${window} tokens. However, you requested ${input + output} tokens ` +
      `(${input} in the messages, ${output} in the completion). Please reduce the length of the messages or completion.`
    : "Your input exceeds the context window of this model. Please adjust your input and try again.";
  response.writeHead(400, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error", code: "context_length_exceeded" } }));
}

function reply(response, { model, stream }, text, input) {
  const output = Math.ceil(text.length / 4);
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const about = { id: "chat-1", created: 1, model };
  response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
  if (!stream) {
    const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
    response.end(JSON.stringify({ ...about, object: "chat.completion", choices, usage }));
    return;
  }
  const send = (more) => response.write(`data: ${JSON.stringify({ ...about, object: "chat.completion.chunk", ...more })}\n\n`);
  send({ choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  send({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}
