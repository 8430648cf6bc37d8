--- The progress of operations, in one line at the upper right, while it lasts.

local meter = require("abridged.meter")

local M = {}

local windows = {}

local function close(id)
  local open = windows[id]
  windows[id] = nil
  if open and vim.api.nvim_win_is_valid(open.window) then vim.api.nvim_win_close(open.window, true) end
  if open and vim.api.nvim_buf_is_valid(open.buffer) then vim.api.nvim_buf_delete(open.buffer, { force = true }) end
end

--- Shows the operation of a session, or removes its line where there is none.
---@param session abridged.Session
function M.show(session)
  if not session.operation then return close(session.id) end
  if vim.fn.getcmdwintype() ~= "" then return end -- no window may be opened beside the command-line window
  local text = (" abridged: %s%s "):format(meter.progress(session.operation, 12), meter.remaining(session.operation))
  local open = windows[session.id]
  local shown = open and vim.api.nvim_win_is_valid(open.window)
  if not shown then
    open = { buffer = vim.api.nvim_create_buf(false, true), row = vim.tbl_count(windows) + 1 }
    windows[session.id] = open
  end
  vim.api.nvim_buf_set_lines(open.buffer, 0, -1, false, { text })
  local place = { relative = "editor", anchor = "NE", row = open.row, col = vim.o.columns, height = 1 }
  place.width = math.min(vim.fn.strdisplaywidth(text), vim.o.columns)
  if shown then return vim.api.nvim_win_set_config(open.window, place) end
  place.style, place.focusable, place.noautocmd = "minimal", false, true
  open.window = vim.api.nvim_open_win(open.buffer, false, place)
  vim.bo[open.buffer].bufhidden = "wipe"
end

return M
