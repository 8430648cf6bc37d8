// An extension of pi and oh-my-pi for recordings: a tool of our own, and commands for what their RPC modes cannot do.

export default function (pi) {
  const edits = [];

  const tool = (name, description) => ({
    name, label: name, description,
    parameters: { type: "object", properties: { part: { type: "string", description: "The name of a part." } }, required: ["part"] },
    execute: async (_id, { part }) => ({ content: [{ type: "text", text: `${name} of ${part}: ${`${part} is as it should be. `.repeat(part.startsWith("long") ? 900 : 12)}` }], details: { part } }),
  });
  pi.registerTool(tool("lookup", "Looks a part up in the catalogue."));
  pi.registerTool(tool("measure", "Measures a part."));

  const command = (name, handler) => pi.registerCommand(name, { description: name, handler });
  command("goto", (id, ctx) => ctx.navigateTree(id, { summarize: false }));
  command("goto-with-summary", (id, ctx) => ctx.navigateTree(id, { summarize: true }));
  command("tools", async (names) => pi.setActiveTools(names.split(" ")));
  command("say", async (text) => pi.sendMessage({ customType: "remark", content: text, display: true }));
  // At the end of the next turn, the entry is left out of the context or gets another text.
  command("leave-out", async (targetId) => { edits.push({ type: "context_edit", targetId, replacement: null }); });
  command("shorten", async (targetId) => { edits.push({ type: "context_edit", targetId, replacement: { content: "(shortened)" } }); });
  // A summary of the branch that is left, without asking a model.
  pi.on("session_before_tree", () => ({ summary: { summary: "The branch looked at more parts.", details: { readFiles: [], modifiedFiles: [] } } }));
  pi.on("turn_end", () => edits.length > 0 ? { entries: edits.splice(0) } : undefined);
}
