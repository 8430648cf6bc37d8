// A model server on the loopback device: OpenAI's chat completions, streamed. It refuses a request that is larger than the
// window of its model, as real servers do, and records each body as it came.

import { once } from "node:events";
import { createServer } from "node:http";

/** Tokens of a body's messages, four characters each. */
const sizeOf = ({ messages }) => Math.ceil(JSON.stringify(messages).length / 4);

const textOf = ({ content }) => typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("\n");

/** Whether a request asks for a summary: it has no tools, and OpenCode puts the conversation into tags. */
const isSummary = ({ tools, messages }) => !tools && textOf(messages.at(-1)).includes("<conversation>");

const summary = "## Objective\n- The summary of the loopback model.\n\n## Important Details\n- Never use regular expressions.";

/**
 * Starts the server. `windows` has the window of each model. `script` holds the answers to come: `{text}` or
 * `{call: {name, arguments}}`; without one the model answers a sentence.
 */
export async function startModel(windows) {
  const requests = [];
  const script = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const raw = Buffer.concat(parts).toString("utf8");
    const body = JSON.parse(raw);
    const [size, window] = [sizeOf(body), windows[body.model]];
    const refused = size > window;
    requests.push({ raw, size, refused, model: body.model, isSummary: isSummary(body), text: textOf(body.messages.at(-1)) });
    if (refused) {
      const message = `This model's maximum context length is ${window} tokens. However, your messages resulted in ${size} tokens.`;
      response.writeHead(400, { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message, type: "invalid_request_error", code: "context_length_exceeded" } }));
    }
    const answer = isSummary(body) ? { text: summary } : script.shift() ?? { text: "The loopback model has read it." };
    stream(response, body.model, answer, size);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { baseUrl: `http://127.0.0.1:${server.address().port}/v1`, windows, requests, script, close };
}

function stream(response, model, { text, call }, size) {
  const chunk = (choices, more) =>
    response.write(`data: ${JSON.stringify({ id: "chat-1", object: "chat.completion.chunk", created: 1, model, choices, ...more })}\n\n`);
  const delta = (delta, finish_reason = null) => chunk([{ index: 0, delta, finish_reason }]);
  response.writeHead(200, { "content-type": "text/event-stream" });
  delta({ role: "assistant", content: text ?? "" });
  if (call) {
    const { id, name, arguments: input } = call;
    delta({ tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: JSON.stringify(input) } }] });
  }
  delta({}, call ? "tool_calls" : "stop");
  chunk([], { usage: { prompt_tokens: size, completion_tokens: 20, total_tokens: size + 20 } });
  response.end("data: [DONE]\n\n");
}
