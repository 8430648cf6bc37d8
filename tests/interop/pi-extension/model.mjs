// A model server on the loopback device: OpenAI's chat completions, with a window that it enforces in a provider's words.

import { createServer } from "node:http";
import { once } from "node:events";

/** The summary that the model writes. Its first line tells it from an extracted one. */
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

const textOf = ({ content }) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("\n");

/** A request for a summary: pi's and the daemon's both bring the conversation as data, in the newest message. */
const isSummary = (body) => /<conversation>|# Conversation/.test(textOf(body.messages.at(-1)));

/** The size of a request, at four characters a token. */
const tokensOf = ({ messages, tools = [] }) => Math.ceil(JSON.stringify([messages, tools]).length / 4);

/**
 * Starts the server. `requests` records each request with its size and its status. `limits.window` refuses what is larger, room for the
 * answer included. While `limits.holdsSummaries` is true, a request for a summary gets no answer, and `held` counts them.
 */
export async function startModel() {
  const limits = { window: Infinity, holdsSummaries: false };
  const requests = [];
  const arrivals = new Set();
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString("utf8"));
    const input = tokensOf(body);
    const output = body.max_completion_tokens ?? body.max_tokens ?? 0;
    const fits = input + output <= limits.window;
    const asked = { body, input, isSummary: isSummary(body), status: fits ? 200 : 400 };
    requests.push(asked);
    for (const arrived of arrivals) arrived(asked);
    if (!fits) {
      const message = `This model's maximum context length is ${limits.window} tokens. However, you requested ${input + output} tokens ` +
        `(${input} in the messages, ${output} in the completion). Please reduce the length of the messages or completion.`;
      response.writeHead(400, { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message, type: "invalid_request_error", code: "context_length_exceeded" } }));
    }
    if (limits.holdsSummaries && asked.isSummary) return undefined;
    return answer(response, body, asked.isSummary ? summary : "The value of the part is 42.", input);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const nextSummary = () => new Promise((resolve) => {
    const arrived = (asked) => {
      if (!asked.isSummary) return;
      arrivals.delete(arrived);
      resolve(asked);
    };
    arrivals.add(arrived);
  });
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { baseUrl: `http://127.0.0.1:${server.address().port}/v1`, limits, requests, nextSummary, close };
}

function answer(response, { model, stream }, text, input) {
  const output = Math.ceil(text.length / 4);
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const about = { id: "chat-1", created: 1, model };
  response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
  if (!stream) {
    const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
    return response.end(JSON.stringify({ ...about, object: "chat.completion", choices, usage }));
  }
  const send = (more) => response.write(`data: ${JSON.stringify({ ...about, object: "chat.completion.chunk", ...more })}\n\n`);
  send({ choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  send({ choices: [], usage });
  return response.end("data: [DONE]\n\n");
}
