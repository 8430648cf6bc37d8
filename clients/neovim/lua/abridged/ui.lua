--- Messages and windows.

local M = {}

--- Next steps for errors whose message names methods of the protocol and no command.
local steps = {
  locked = "Close the other program, or read the session with :Abridged! open {path}",
  not_found = "See :Abridged sessions",
  nothing_to_compact = "See :Abridged why",
  busy = "Wait for its end, or stop it with :Abridged cancel",
  binary_not_found = "See :checkhealth abridged",
  daemon_exited = "See :checkhealth abridged",
}

--- Shows an error in one line, with what to do next.
function M.error(failure)
  local step = type(failure) == "table" and steps[failure.code]
  local line = tostring(failure):gsub("%s*\n%s*", " ")
  vim.notify("abridged: " .. line .. (step and ". " .. step or ""), vim.log.levels.ERROR)
end

function M.info(line) vim.notify("abridged: " .. line, vim.log.levels.INFO) end

--- Shows lines in a buffer that cannot be changed, in a split of its own. `q` closes it.
---@return integer buffer
function M.scratch(name, lines)
  local buffer = vim.fn.bufnr("^" .. name .. "$")
  if buffer == -1 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable, vim.bo[buffer].bufhidden = false, "wipe"
  if vim.fn.bufwinid(buffer) == -1 then
    vim.cmd(("botright %dsplit"):format(math.max(math.min(#lines + 1, math.floor(vim.o.lines / 2)), 1)))
    vim.api.nvim_win_set_buf(0, buffer)
    vim.wo.linebreak = true
  end
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer, desc = "Close" })
  return buffer
end

return M
