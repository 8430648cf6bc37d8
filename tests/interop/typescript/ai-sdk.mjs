// The AI SDK with a model server that has a small window: a loop of many steps fails without fitMessages and finishes with it.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { connect } from "abridged-client";
import { fitMessages } from "abridged-client/ai-sdk";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { z } from "zod";

import { check, refusal } from "./check.mjs";
import { startModel } from "./model.mjs";

const WINDOW = 14_000;
const MAX_OUTPUT = 1000;
const PARTS = 30;
const rule = "Never touch the lock file of the harbour.";
const prompt = `Read all ${PARTS} parts and report. ${rule}`;
const part = (number) =>
  `Part ${number}. ` + `The ship of part ${number} came into the harbour in the morning and left with the tide. `.repeat(45);

const tools = {
  read: tool({ description: "Reads a part.", inputSchema: z.object({ part: z.number() }), execute: ({ part: number }) => part(number) }),
};

/** A model that reads one part after the other, whatever it is sent, and checks that it is sent enough to go on. */
function reader() {
  let next = 1;
  return ({ messages }) => {
    const text = JSON.stringify(messages);
    check(text.includes(rule), `the rule is lost in step ${next}`);
    check(next === 1 || messages.at(-1).content.includes(`Part ${next - 1}.`), `the newest result is lost in step ${next}`);
    if (next > PARTS) return { text: "All parts are read." };
    return { reasoning: `Now part ${next}.`, calls: [{ id: `call-${next}`, name: "read", arguments: { part: next++ } }] };
  };
}

async function run(
  prepareStep,
  { stream = false, window = WINDOW, messages = [{ role: "user", content: prompt }], model: id = "reader" } = {},
) {
  const server = await startModel(window, reader());
  try {
    const model = createOpenAICompatible({ name: "loopback", baseURL: server.baseURL }).chatModel(id);
    const options = {
      model,
      tools,
      messages,
      prepareStep,
      stopWhen: stepCountIs(PARTS + 5),
      maxOutputTokens: MAX_OUTPUT,
      maxRetries: 0,
      instructions: "You report.",
    };
    if (!stream) {
      const result = await generateText(options);
      return { text: result.text, steps: result.steps.length, server, messages: [...messages, ...result.responseMessages] };
    }
    let failure;
    const result = streamText({
      ...options,
      onError: ({ error }) => {
        failure = error;
      },
    });
    await result.consumeStream();
    if (failure) throw failure;
    return { text: await result.text, steps: (await result.steps).length, server };
  } finally {
    await server.close();
  }
}

/** A prepareStep that records what it is given and what it returns. */
function recorded(prepareStep, before = async () => {}) {
  const steps = [];
  const record = async (step) => {
    await before(step);
    const result = await prepareStep(step);
    steps.push({ given: step.messages, returned: result?.messages });
    return result;
  };
  return { steps, record };
}

const options = { contextWindow: WINDOW, maxOutputTokens: MAX_OUTPUT, tools };

export async function loops(home) {
  for (const stream of [false, true]) {
    const refused = await refusal(run(undefined, { stream }));
    check(
      refused.message.includes("maximum context length") && refused.statusCode === 400,
      `without fitMessages the loop ends with ${refused}`,
    );
  }
  let steps = 0;
  for (const stream of [false, true]) steps += (await rescued(stream)).steps;
  await unchanged(home);
  await interrupted();
  await paidOnce();
  await everyPart();
  return steps;
}

async function rescued(stream) {
  const fits = [];
  const { steps, record } = recorded(
    fitMessages({
      ...options,
      onFit: (fit) => fits.push(fit),
      onError: (error) => {
        throw error;
      },
    }),
  );
  const result = await run(record, { stream });
  check(
    result.text === "All parts are read." && result.steps === PARTS + 1,
    `the loop ends after ${result.steps} steps with ${result.text}`,
  );
  check(Math.max(...result.server.requests.map(({ tokens }) => tokens)) + MAX_OUTPUT <= WINDOW, "a request over the window");
  check(fits.length >= 2 && fits.length === steps.filter(({ returned }) => returned).length, `${fits.length} fits`);
  for (const { tokensBefore, tokensAfter, summary, method } of fits) {
    check(tokensAfter < tokensBefore && summary.includes(rule) && method === "extractive", `a fit from ${tokensBefore} to ${tokensAfter}`);
  }
  for (const [index, { given, returned }] of steps.entries()) {
    // What a step returns is what the next one is given, with the messages of the step.
    const carried = steps[index + 1]?.given.slice(0, (returned ?? given).length) ?? [];
    check(
      carried.every((message, at) => message === (returned ?? given)[at]),
      `the messages of step ${index} are not carried forward`,
    );
    if (!returned) continue;
    const kept = returned.filter((message) => given.includes(message));
    check(kept.length === returned.length - 1 && kept.at(-1) === given.at(-1), `other messages than the given ones in step ${index}`);
    check(
      kept.flatMap(({ content }) => content).some(({ type }) => type === "reasoning"),
      `the reasoning is lost in step ${index}`,
    );
  }
  return result;
}

/** No binary, and no answer in time: the messages stay as they are, and the process is warned once. */
async function unchanged(home) {
  const script = `import { fitMessages } from "abridged-client/ai-sdk";
    const [prepareStep, messages] = [fitMessages({ contextWindow: 1000 }), [{ role: "user", content: "Go on." }]];
    console.log(JSON.stringify([await prepareStep({ messages }) ?? null, await prepareStep({ messages }) ?? null]));`;
  const none = { ...process.env, ABRIDGED_BIN: "", PATH: join(home, "nowhere"), HOME: join(home, "nobody") };
  const said = execFileSync("/bin/sh", ["-c", 'exec "$0" --input-type=module --eval "$1" 2>&1', process.execPath, script], {
    cwd: import.meta.dirname,
    env: none,
  });
  const warnings = said.toString().match(/AbridgedWarning: Messages stay as they are: The program abridged is not installed/g);
  check(said.includes("[null,null]") && warnings?.length === 1, `without a binary: ${said}`);

  const errors = [];
  const late = fitMessages({ ...options, timeoutMs: 1, onError: ({ code }) => errors.push(code) });
  const refused = await refusal(run(late));
  check(refused.statusCode === 400 && errors.length > 5 && errors.every((code) => code === "timed_out"), `without time: ${errors}`);
}

/** The daemon is killed in the middle of a loop, once before and once during a fit. */
async function interrupted() {
  const pids = () =>
    execFileSync("sh", ["-c", `pgrep -P ${process.pid} abridged || true`])
      .toString()
      .split("\n")
      .filter(Boolean)
      .map(Number);
  let killed = 0;
  const errors = [];
  const prepareStep = fitMessages({ ...options, onError: (error) => errors.push(error) });
  const { record } = recorded(prepareStep, async ({ steps }) => {
    if (steps.length !== 8 && steps.length !== 20) return;
    for (const pid of pids()) killed += Number(process.kill(pid, "SIGKILL"));
  });
  const result = await run(record);
  check(
    killed === 2 && errors.length === 0 && result.text === "All parts are read.",
    `${killed} daemons killed: ${errors}, ${result.text}`,
  );
}

/** Each message is summarized once: by a later step from the summary, by a later run from the messages. */
async function paidOnce() {
  const asked = [];
  const client = await connect({
    llm: async ({ purpose, messages }) => {
      if (purpose !== "short_summary") asked.push(JSON.stringify(messages));
      const text = {
        compaction: `## Goal\nRead all parts.\n\n## Constraints & Preferences\n- ${rule}\n\n## Progress\n- Summary ${asked.length}.`,
        turn_prefix: `## Original Request\n${prompt}\n\n## Early Progress\n- Summary ${asked.length}.`,
        short_summary: "Some parts are read.",
      }[purpose];
      return { message: { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" } };
    },
  });
  const fits = [];
  const prepareStep = fitMessages({
    ...options,
    model: "editor/writer",
    client,
    onFit: (fit) => fits.push(fit),
    onError: (error) => {
      throw error;
    },
  });
  const { messages } = await run(prepareStep);
  check(
    fits.length >= 2 && fits.every(({ method }) => method === "llm"),
    `the summaries are ${JSON.stringify(fits.map(({ method, rejected }) => [method, rejected]))}`,
  );
  const summarized = (number) => asked.filter((request) => request.includes(`The ship of part ${number} came`)).length;
  check(summarized(1) === 1 && summarized(12) === 1, `part 1 is summarized ${summarized(1)} times, and part 12 ${summarized(12)} times`);
  check(asked[1].includes("Summary 1."), "the second summary does not go on from the first");

  // The next turn begins with the whole history again.
  const before = asked.length;
  const history = [...structuredClone(messages), { role: "user", content: "And now?" }];
  const next = await prepareStep({ messages: history });
  check(
    asked.length === before && next.messages[0].content.includes(`Summary ${before}.`),
    `the history is summarized ${asked.length - before} times more`,
  );
  check(next.messages.at(-1).content === "And now?" && next.messages.length < messages.length, "the messages of the next turn");

  // A call that ends where the summary ends keeps its newest message.
  const covered = history.slice(0, history.indexOf(next.messages[1]));
  const again = await prepareStep({ messages: covered });
  check((again?.messages ?? covered).at(-1) === covered.at(-1), "the newest message became a summary");
  await client.close();
}

/** Parts of all kinds are counted, and kept messages with them are the same objects. */
async function everyPart() {
  // The head of an image of 500 by 500 pixels.
  const image = new Uint8Array(Buffer.from("89504e470d0a1a0a0000000d49484452000001f4000001f40806000000", "hex"));
  const old = Array.from({ length: 12 }, (_, index) => [
    { role: "user", content: part(index) },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "Yes." },
      ],
    },
  ]).flat();
  const output = (type, value) => ({ type: "tool-result", toolCallId: type, toolName: "read", output: { type, value } });
  const newest = [
    {
      role: "user",
      content: [
        { type: "text", text: "Look." },
        { type: "image", image, mediaType: "image/png" },
        { type: "file", data: new URL("https://example.com/ship.png"), mediaType: "image/png" },
        { type: "file", data: Buffer.from("Ships and tides.").toString("base64"), mediaType: "text/plain", filename: "log.txt" },
        { type: "file", data: { type: "data", data: image }, mediaType: "application/pdf", filename: "map.pdf" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Five reads.", providerOptions: { loopback: { signature: "s" } } },
        ...["text", "json", "content", "error-text", "error-json"].map((toolCallId) => ({
          type: "tool-call",
          toolCallId,
          toolName: "read",
          input: { part: 1 },
        })),
        { type: "tool-call", toolCallId: "search", toolName: "web_search", input: { query: "tides" }, providerExecuted: true },
        { type: "tool-result", toolCallId: "search", toolName: "web_search", output: { type: "json", value: ["high"] } },
        { type: "tool-approval-request", approvalId: "a", toolCallId: "text" },
      ],
    },
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: "a", approved: true }] },
    {
      role: "tool",
      content: [
        output("text", "One."),
        output("json", { two: [2] }),
        output("error-text", "Three."),
        output("error-json", { four: 4 }),
        output("content", [
          { type: "text", text: "Five." },
          { type: "file", data: { type: "data", data: "AAAA" }, mediaType: "image/png" },
        ]),
      ],
    },
    { role: "assistant", content: "Done." },
    { role: "user", content: "And now?" },
  ];
  const system = [{ role: "system", content: "You report." }];
  const asked = [];
  const daemon = await connect();
  const client = {
    fit: (params, options) => {
      asked.push(params);
      return daemon.fit(params, options);
    },
  };
  const onError = (error) => {
    throw error;
  };
  const prepareStep = fitMessages({ ...options, client, onError });
  const { messages } = await prepareStep({ messages: [...system, ...old, ...newest], instructions: [{ role: "system", content: rule }] });
  check(
    messages[0] === system[0] && messages[1].role === "user" && messages[1].content.includes("<summary>"),
    "the system message and the summary",
  );
  check(
    newest.every((message, index) => message === messages.at(index - newest.length)),
    "the newest messages are not the same",
  );
  check(messages.length < old.length && old.includes(messages[2]), "too many or too few messages are kept");
  const blocks = asked[0].messages.flatMap(({ content }) => content);
  const calls = blocks.filter(({ type }) => type === "toolCall").map(({ id }) => id);
  const answered = asked[0].messages.filter(({ role }) => role === "toolResult").map(({ toolCallId }) => toolCallId);
  check(calls.length === 5 && calls.every((id) => answered.includes(id)), `the calls ${calls} have the results ${answered}`);
  check(
    blocks.some(({ text }) => text?.includes("tides")) && blocks.some(({ text }) => text?.includes("high")),
    "a provider's own tool is lost",
  );

  const [many, few] = await Promise.all(
    [undefined, 1000].map((keepRecentTokens) =>
      fitMessages({ ...options, keepRecentTokens, client, onError })({ messages: [...old, ...old] }),
    ),
  );
  check(
    few.messages.length < many.messages.length && few.messages.at(-1) === old.at(-1),
    `${few.messages.length} and ${many.messages.length} messages are kept`,
  );

  // Messages that fit stay. Each part adds to the size of the same messages without it.
  const size = async (message) => {
    let size;
    const client = {
      fit: (params, options) =>
        daemon.fit(params, options).then((answer) => {
          size = answer.tokensBefore;
          return answer;
        }),
    };
    check(
      (await fitMessages({ contextWindow: 100_000, client, onError })({ messages: [...old, message] })) === undefined,
      "messages that fit",
    );
    return size;
  };
  const empty = await size({ role: "user", content: "" });
  const expected = [
    [1, 20],
    [300, 400],
    [1000, 2000],
    [1, 20],
    [1000, 2000],
  ];
  for (const [index, [least, most]] of expected.entries()) {
    const more = (await size({ role: "user", content: [newest[0].content[index]] })) - empty;
    check(least <= more && more <= most, `part ${index} of a message counts ${more} tokens`);
  }
  check((await size({ role: "assistant", content: [{ type: "reasoning", text: part(1) }] })) - empty > 500, "reasoning is not counted");

  // One result that is larger than the window is shortened; its call and the other result stay.
  const reads = {
    role: "assistant",
    content: ["a", "b"].map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "read", input: { part: 1 } })),
  };
  const results = {
    role: "tool",
    content: ["a", "b"].map((toolCallId) => ({
      type: "tool-result",
      toolCallId,
      toolName: "read",
      output: { type: "text", value: toolCallId === "a" ? part(1).repeat(30) : "Short." },
    })),
  };
  const large = await prepareStep({ messages: [{ role: "user", content: prompt }, reads, results] });
  const [summary, call, result] = large.messages;
  check(
    large.messages.length === 3 && summary.role === "user" && call === reads,
    `a large result: ${JSON.stringify(large.messages).slice(0, 300)}`,
  );
  check(
    result.content[0].output.value.length < 60_000 && result.content[0].toolCallId === "a" && result.content[1] === results.content[1],
    "the results",
  );
  await daemon.close();
}
