if vim.g.loaded_abridged then return end
vim.g.loaded_abridged = true

-- Modules are loaded with the first use.
vim.api.nvim_create_user_command("Abridged", function(command) require("abridged.commands").run(command) end, {
  nargs = "*",
  bang = true,
  range = true,
  desc = "Sessions of LLM agents: open, sessions, compact, undo, pin, unpin, why, tree, cancel, close",
  complete = function(lead, line) return require("abridged.commands").complete(lead, line) end,
})

vim.api.nvim_create_autocmd("BufReadCmd", {
  pattern = "abridged://*",
  desc = "Show the transcript of a session",
  callback = function(read) require("abridged").read_buffer(read.buf, read.match) end,
})
