// A model server on the loopback device with a window: OpenAI's chat completions, streamed and whole. A request over the
// window is refused, as providers do.

import { createServer } from "node:http";
import { once } from "node:events";

/** Tokens of a request, as this provider counts them. */
export const tokensOf = (body) => Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4);

/** Starts the server. `answer(body)` returns `{text?, reasoning?, calls?: [{id, name, arguments}]}`. */
export async function startModel(window, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString("utf8"));
    const tokens = tokensOf(body);
    requests.push({ body, tokens });
    const problem =
      tokens + (body.max_tokens ?? 0) > window
        ? `This model's maximum context length is ${window} tokens, not ${tokens}.`
        : unanswered(body);
    if (problem)
      return response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: problem } }));
    const { text = null, reasoning, calls } = await answer(body);
    const message = {
      role: "assistant",
      content: text,
      reasoning_content: reasoning,
      tool_calls: calls?.map((call, index) => ({
        index,
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      })),
    };
    const usage = { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 };
    const finish_reason = calls ? "tool_calls" : "stop";
    const frame = { id: "chat-1", created: 1, model: body.model };
    if (!body.stream) {
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify({ ...frame, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage }));
    }
    const chunk = (choices, more) =>
      response.write(`data: ${JSON.stringify({ ...frame, object: "chat.completion.chunk", choices, ...more })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    chunk([{ index: 0, delta: message, finish_reason: null }]);
    chunk([{ index: 0, delta: {}, finish_reason }], { usage });
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { baseURL, requests, close };
}

/** The problem of a request whose calls and results do not belong together. */
function unanswered({ messages }) {
  const open = new Set();
  for (const { role, tool_calls = [], tool_call_id } of messages) {
    if (role === "tool" && !open.delete(tool_call_id)) return `The result of ${tool_call_id} has no call.`;
    if (role !== "tool" && open.size > 0) return `The call ${[...open]} has no result.`;
    for (const { id } of tool_calls) open.add(id);
  }
  return open.size > 0 ? `The call ${[...open]} has no result.` : undefined;
}
