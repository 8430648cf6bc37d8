// A model server on the loopback device: OpenAI's chat completions, streamed and whole. It records each request.

import { createServer } from "node:http";
import { once } from "node:events";

const summary = `## Goal
Look at each part and report its value.

## Constraints & Preferences
- You must never change a lock file.

## Progress
### Done
- [x] The first parts were read.

### In Progress
- [ ] The next part.

## Key Decisions
- **Order**: the parts are read by number.

## Next Steps
1. Read the next part.

## Critical Context
- Each part has one value.`;

/** The texts of a request, in order. */
const textsOf = (body) => body.messages.flatMap(({ content }) =>
  typeof content === "string" ? [content] : (content ?? []).map((block) => block.text ?? ""));

/**
 * The answer of a model that follows no script: a summary where one is asked for, else one sentence. A request for a
 * summary brings the conversation inside of tags.
 */
function unscripted(body) {
  if (!isSummary(body)) return { text: "The loopback model has read it." };
  const data = /<(conversation|previous-summary)>[^]*?<\/\1>/g;
  const asked = textsOf(body).join("\n").replace(data, "");
  if (/at most two sentences/.test(asked)) return { text: "The first parts are read. The next one follows." };
  if (/## Original Request/.test(asked)) return { text: "## Original Request\nThe next part.\n\n## Early Progress\n- It was begun." };
  return { text: summary };
}

/** Starts the server. `script` holds the answers to come: `{text}`, `{calls: [{id, name, arguments}]}`, both, or the `{status}` of an error. */
export async function startModel() {
  const requests = [];
  const script = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    if (!request.url.endsWith("/chat/completions")) return response.writeHead(404).end();
    const body = JSON.parse(Buffer.concat(parts).toString("utf8"));
    requests.push(body);
    const answer = (isSummary(body) ? undefined : script.shift()) ?? unscripted(body);
    if (answer.status) return response.writeHead(answer.status).end(JSON.stringify({ error: { message: "The loopback model refuses this." } }));
    const input = Math.ceil(JSON.stringify(body.messages).length / 4);
    const output = Math.ceil((answer.text ?? JSON.stringify(answer.calls)).length / 4);
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    if (body.stream) stream(response, body.model, answer, usage);
    else whole(response, body.model, answer, usage);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${server.address().port}/v1`;
  const close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return { baseUrl, requests, script, close };
}

/** Whether a request asks for a summary and not for the next answer of a conversation. */
export const isSummary = (body) => /<conversation>|# Conversation/.test(textsOf(body).at(-1) ?? "");

const calls = (answer) => answer.calls?.map((call, index) => ({
  index, id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.arguments) },
}));

const reason = (answer) => answer.calls ? "tool_calls" : "stop";

function stream(response, model, answer, usage) {
  const chunk = (choices, more) =>
    response.write(`data: ${JSON.stringify({ id: "chat-1", object: "chat.completion.chunk", created: 1, model, choices, ...more })}\n\n`);
  const delta = (delta, finish_reason = null) => chunk([{ index: 0, delta, finish_reason }]);
  response.writeHead(200, { "content-type": "text/event-stream" });
  delta({ role: "assistant", content: answer.text ?? "" });
  for (const call of calls(answer) ?? []) delta({ tool_calls: [call] });
  delta({}, reason(answer));
  chunk([], { usage });
  response.end("data: [DONE]\n\n");
}

function whole(response, model, answer, usage) {
  const message = { role: "assistant", content: answer.text ?? null, tool_calls: calls(answer) };
  const choices = [{ index: 0, message, finish_reason: reason(answer) }];
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ id: "chat-1", object: "chat.completion", created: 1, model, choices, usage }));
}
