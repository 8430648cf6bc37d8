// Messages of the two programs, brought to one form: their texts and calls in order, each with the role that a provider
// sees. Images are compared by themselves, because some providers take those of a result from the user alone.

/** How the two programs say that images come from the results before. */
const leadIn = /^(Attached image\(s\) from tool result:|\[The images of the tool results above:\])$/;

/** What oh-my-pi puts before the first message of each request. */
const reminder = /^<system-reminder>\nToday: [^]*?<\/system-reminder>\s*/;

/** A text that a program puts into the user's mouth: a summary in its frame. Each program has words of its own around it. */
const frame = /<summary>\n?([^]*?)\n?<\/summary>/;

const framed = (of, summary) => ({ ...of, frame: summary.trim() });

function parts(of, content) {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content ?? [];
  return blocks.flatMap((block) => {
    switch (block.type) {
      case "text": {
        const text = block.text.replace(leadIn, "").replace(reminder, "");
        const summary = of.role === "user" && frame.exec(text);
        if (summary) return [framed(of, summary[1])];
        return text === "" ? [] : [{ ...of, text }];
      }
      case "toolCall": return [{ call: block.id, name: block.name, arguments: block.arguments }];
      case "image": return [{ image: `${block.mimeType} ${block.data}` }];
      case "image_url": return [{ image: block.image_url.url.replace(/^data:/, "").replace(";base64,", " ") }];
      case "thinking": return [];
      default: return [block];
    }
  });
}

/** A message of a session. What pi calls custom is the user's for a model; failed answers are for nobody. */
export function ofSession({ role, content, summary, stopReason, toolCallId }) {
  if (role === "branchSummary") return [framed({ role: "user" }, summary)];
  if (role === "assistant") return ["error", "aborted"].includes(stopReason) ? [] : parts({ role }, content);
  return parts(role === "toolResult" ? { answers: toolCallId } : { role: "user" }, content);
}

/** A message of a request in the form of OpenAI's chat completions. */
export function ofChat({ role, content, tool_call_id, tool_calls = [] }) {
  const calls = tool_calls.map(({ id, function: { name, arguments: text } }) => ({ call: id, name, arguments: JSON.parse(text) }));
  return [...parts(role === "tool" ? { answers: tool_call_id } : { role }, content), ...calls];
}

/** Fails with the first difference, of the texts and calls or of the images. */
export function same(what, ours, theirs) {
  for (const of of [({ image }) => image === undefined, ({ image }) => image !== undefined]) {
    const [left, right] = [ours, theirs].map((list) => list.filter(of).map((part) => JSON.stringify(part)));
    const at = [...left, "", ...right, ""].findIndex((_, at) => left[at] !== right[at]);
    if (at < 0 || at >= Math.max(left.length, right.length)) continue;
    const shown = (part) => (part ?? "nothing").slice(0, 300);
    throw new Error(`${what} differ at ${at} of ${left.length} and ${right.length}:\n  ours ${shown(left[at])}\n  theirs ${shown(right[at])}`);
  }
}

/** How often a text is in messages. */
export function count(text, messages) {
  return messages.reduce((sum, message) => sum + JSON.stringify(message).split(JSON.stringify(text).slice(1, -1)).length - 1, 0);
}
