--- The buffer `abridged://<session>`: the entries of a session, followed while it grows and paged back on demand.

local Client = require("abridged.client")
local render = require("abridged.render")
local ui = require("abridged.ui")

local PAGE = 50
local EARLIER = "▲ earlier entries: go to this line"
local marks = vim.api.nvim_create_namespace("abridged.transcript")

local M = {}

---@class abridged.Transcript
---@field buffer integer
---@field session_id string
---@field earlier? string Cursor of the page before; nil at the beginning of the session.
---@field last? string The newest entry that is known.
---@field entries table<integer, string> Entries by their extmarks.
---@field pins table<string, boolean> Entries that are pinned.
---@field undone table<string, boolean> Compactions that were undone.
local Transcript = {}
Transcript.__index = Transcript

---@type table<integer, abridged.Transcript>
local by_buffer = {}

--- The transcript of a buffer, if it is one.
---@return abridged.Transcript?
function M.of(buffer) return by_buffer[buffer == 0 and vim.api.nvim_get_current_buf() or buffer] end

--- Shows a whole entry in a window of its own. It is called in a coroutine.
---@param connection abridged.Client
function M.show(connection, session_id, entry_id)
  local entry = connection:await("session/entry", { sessionId = session_id, entryId = entry_id }).entry
  ui.scratch(("abridged://%s/entry/%s"):format(session_id, entry_id), render.whole(entry))
end

--- Makes a buffer a transcript and fills it.
---@param connection abridged.Client
function M.attach(buffer, session_id, connection)
  local self = by_buffer[buffer]
  if not self then
    self = setmetatable({ buffer = buffer, session_id = session_id, client = connection, queue = {} }, Transcript)
    by_buffer[buffer] = self
    local stop = connection:on_session(session_id, function(event, envelope) self:_heard(event, envelope) end)
    local again = connection:on("reconnected", function() self:reload() end)
    local late = connection:on("session/resync_required", function() self:reload() end)
    vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, callback = function()
      by_buffer[buffer] = nil
      for _, off in ipairs({ stop, again, late }) do off() end
    end })
    vim.api.nvim_create_autocmd("CursorMoved", { buffer = buffer, callback = function()
      if self.earlier and not self.busy and vim.fn.line(".") == 1 then self:_queue(function() self:_page_back() end) end
    end })
    vim.keymap.set("n", "<CR>", function()
      local id = self:entry_at_cursor()
      if id then Client.run(function() M.show(connection, session_id, id) end, ui.error) end
    end, { buffer = buffer, desc = "Show the whole entry" })
  end
  for name, value in pairs({ buftype = "nofile", swapfile = false, modifiable = false, filetype = "abridged" }) do
    vim.bo[buffer][name] = value
  end
  vim.b[buffer].abridged_session = session_id
  self:reload()
  return self
end

--- The entry under the cursor.
---@return string?
function Transcript:entry_at_cursor()
  local row = vim.fn.line(".") - 1
  local found = vim.api.nvim_buf_get_extmarks(self.buffer, marks, { row, -1 }, 0, { limit = 1 })[1]
  return found and self.entries[found[1]]
end


--- Reads the newest page again, for example after a move to another branch.
function Transcript:reload()
  self.queue = {}
  self:_queue(function() self:_load() end)
end

--- Shows an error of a change. A daemon that is away comes back, and the transcript is loaded again then.
local function failed(failure)
  if type(failure) == "table" and failure.code == "daemon_exited" then return end
  vim.notify("abridged: the transcript is not complete: " .. tostring(failure), vim.log.levels.ERROR)
end

-- Changes are made one after the other, in the order of their events, since some of them wait for the daemon.

function Transcript:_queue(change)
  if not vim.api.nvim_buf_is_loaded(self.buffer) then return end -- the buffer is filled anew when it is shown again
  table.insert(self.queue, change)
  if self.busy then return end
  self.busy = true
  Client.run(function()
    while self.queue[1] do
      local ok, failure = pcall(table.remove(self.queue, 1))
      if not ok and vim.api.nvim_buf_is_valid(self.buffer) then failed(failure) end
    end
    self.busy = false
  end)
end

function Transcript:_heard(event, envelope)
  if event.type == "tree_changed" then return self:reload() end
  if event.type ~= "entry_appended" then return end
  self:_queue(function()
    local entry = event.entry
    if not entry then
      entry = self.client:await("session/entry", { sessionId = self.session_id, entryId = envelope.entryId }).entry
    end
    self:_append(entry)
  end)
end

--- Reads the facts that mark other entries: pins and undone compactions.
function Transcript:_learn(entry)
  local data = entry.data or {}
  if entry.customType == "abridged.pin" then
    self.pins[data.entryId or entry.id] = true
  elseif entry.customType == "abridged.unpin" then
    self.pins[data.entryId] = nil
  elseif entry.customType == "abridged.undo" and data.compactionEntryId then
    self.undone[data.compactionEntryId] = true
  else
    return false
  end
  return true
end

function Transcript:_load()
  local page = self.client:await("session/entries", { sessionId = self.session_id, before = "leaf", limit = PAGE })
  self.entries, self.known, self.pins, self.undone = {}, {}, {}, {}
  local cursor
  repeat
    local facts = self.client:await("session/entries", {
      sessionId = self.session_id, types = { "custom", "custom_message" }, since = cursor,
    })
    for _, entry in ipairs(facts.entries) do self:_learn(entry) end
    cursor = facts.nextCursor
  until not cursor
  self.earlier, self.last = page.nextCursor, nil
  for _, entry in ipairs(page.entries) do
    self.known[entry.id], self.last = true, entry.id
  end
  vim.api.nvim_buf_clear_namespace(self.buffer, marks, 0, -1)
  self:_set(0, -1, self.earlier and { EARLIER } or {})
  self:_draw(page.entries, -1)
  self:_follow(vim.fn.win_findbuf(self.buffer))
end

--- Puts the page before at the beginning. The cursors at the first line go to the entry that was the first one.
function Transcript:_page_back()
  local drawn = 0
  while self.earlier and drawn == 0 do
    local page = self.client:await("session/entries", { sessionId = self.session_id, before = self.earlier, limit = PAGE })
    self.earlier = page.nextCursor
    drawn = self:_draw(page.entries, 1)
  end
  local first = drawn + 2
  if not self.earlier then
    self:_set(0, 1, {})
    first = first - 1
  end
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    if vim.api.nvim_win_get_cursor(window)[1] == 1 then vim.api.nvim_win_set_cursor(window, { first, 0 }) end
  end
end

--- Adds an entry that follows the newest one. Another one belongs to another branch, so the path is read again.
function Transcript:_append(entry)
  if not self.known or self.known[entry.id] then return end
  if self.last and entry.parentId ~= self.last then return self:_load() end
  self.known[entry.id], self.last = true, entry.id
  local at_end = self:_at_end()
  if self:_learn(entry) and entry.type == "custom" then
    local data = entry.data or {}
    self:_redraw_title(data.entryId or data.compactionEntryId)
  end
  self:_draw({ entry }, -1)
  self:_follow(at_end)
end

-- Drawing.

function Transcript:_set(first, last, lines)
  local options = vim.bo[self.buffer]
  options.modifiable = true
  vim.api.nvim_buf_set_lines(self.buffer, first, last, false, lines)
  options.modifiable, options.modified = false, false
end

function Transcript:_marks_of(id)
  return vim.list_extend(self.pins[id] and { "pinned" } or {}, self.undone[id] and { "undone" } or {})
end

--- Draws entries at a row; -1 is the end. Returns the number of lines.
function Transcript:_draw(entries, row)
  local lines, titles = {}, {}
  for _, entry in ipairs(entries) do
    local drawn = render.entry(entry, self:_marks_of(entry.id))
    if drawn then
      table.insert(titles, { row = #lines, id = entry.id })
      vim.list_extend(lines, drawn)
    end
  end
  if #lines == 0 then return 0 end
  local count = vim.api.nvim_buf_line_count(self.buffer)
  local empty = count == 1 and vim.api.nvim_buf_get_lines(self.buffer, 0, 1, false)[1] == ""
  local first = row >= 0 and row or empty and 0 or count
  self:_set(first, empty and 1 or first, lines)
  for _, title in ipairs(titles) do self:_mark(first + title.row, title.id) end
  return #lines
end

function Transcript:_mark(row, id, replaced)
  local title = vim.api.nvim_buf_get_lines(self.buffer, row, row + 1, false)[1]
  local group = title:find("^◆") and "AbridgedMarker" or title:find("^○") and "AbridgedResult" or "AbridgedTitle"
  local options = { id = replaced, end_col = #title, hl_group = group }
  self.entries[vim.api.nvim_buf_set_extmark(self.buffer, marks, row, 0, options)] = id
end

--- Draws the title of an entry again, whose pin or undo has changed.
function Transcript:_redraw_title(id)
  for mark, entry_id in pairs(self.entries) do
    if entry_id == id then
      local row = vim.api.nvim_buf_get_extmark_by_id(self.buffer, marks, mark, {})[1]
      local title = vim.api.nvim_buf_get_lines(self.buffer, row, row + 1, false)[1]
      title = title:gsub(" · pinned", ""):gsub(" · undone", "")
      self:_set(row, row + 1, { table.concat(vim.list_extend({ title }, self:_marks_of(id)), " · ") })
      return self:_mark(row, id, mark)
    end
  end
end

--- The windows whose cursor is at the end.
function Transcript:_at_end()
  local count = vim.api.nvim_buf_line_count(self.buffer)
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] >= count - 1
  end, vim.fn.win_findbuf(self.buffer))
end

--- Moves the cursors of windows to the end.
function Transcript:_follow(windows)
  local count = vim.api.nvim_buf_line_count(self.buffer)
  for _, window in ipairs(windows) do
    vim.api.nvim_win_set_cursor(window, { count, 0 })
  end
end

return M
