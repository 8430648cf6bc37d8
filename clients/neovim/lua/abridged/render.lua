--- The lines of an entry in a transcript.

local meter = require("abridged.meter")

local M = {}

local RESULT_LINES, LINE_BYTES = 12, 2000

--- Cuts a line that is too long to be drawn, at a character.
local function short(line)
  if #line <= LINE_BYTES then return line end
  local stop = LINE_BYTES
  while stop > 0 and line:byte(stop + 1) >= 0x80 and line:byte(stop + 1) < 0xC0 do stop = stop - 1 end
  return ("%s… (%d more bytes; <CR> shows the whole entry)"):format(line:sub(1, stop), #line - stop)
end

--- Appends a text, of which at most `limit` lines are shown.
local function add(lines, text, limit)
  local all = vim.split(text:gsub("\n+$", ""), "\n", { plain = true })
  for index, line in ipairs(all) do
    if limit and index > limit then
      return table.insert(lines, ("… %d more lines (<CR> shows the whole entry)"):format(#all - limit))
    end
    table.insert(lines, short(line))
  end
end

local function block_text(block)
  if block.type == "text" then return block.text end
  if block.type == "thinking" then return block.thinking ~= "" and "(thinking) " .. block.thinking or "(hidden thinking)" end
  if block.type == "toolCall" then return ("▸ %s %s"):format(block.name, (vim.json.encode(block.arguments):gsub("\\/", "/"))) end
  if block.type == "image" then return ("(image, %s)"):format(block.mimeType) end
  return ("(%s)"):format(block.type)
end

--- The whole text of a message or of an entry with `content`.
function M.content(message)
  if type(message.content) == "string" then return message.content end
  return table.concat(vim.tbl_map(block_text, message.content or {}), "\n")
end

--- Title and text by the role of a message.
local roles = {
  user = function(message) return "● user", M.content(message) end,
  assistant = function(message)
    local model = message.model and message.model ~= "unknown" and ", " .. message.model or ""
    local failed = message.errorMessage and "\n(" .. message.errorMessage .. ")" or ""
    return "● assistant" .. model, M.content(message) .. failed
  end,
  toolResult = function(message)
    local failed = message.isError and ", failed" or ""
    return ("○ result of %s%s"):format(message.toolName or "a tool", failed), M.content(message), RESULT_LINES
  end,
  bashExecution = function(message) return "○ command", message.command .. "\n" .. (message.output or ""), RESULT_LINES end,
}

--- Title and text by the type of an entry. Other types are not drawn.
local types = {
  message = function(entry)
    local role = roles[entry.message.role]
    if role then return role(entry.message) end
    return "○ " .. entry.message.role, M.content(entry.message), RESULT_LINES
  end,
  compaction = function(entry)
    local own = (entry.preserveData or {}).abridged or {}
    if own.undone then return nil end -- for other programs: the undone compaction is marked where it stands
    local after = entry.tokensAfter and " → " .. meter.tokens(entry.tokensAfter) or ""
    return ("◆ compaction, %s%s tokens"):format(meter.tokens(entry.tokensBefore), after), entry.summary
  end,
  branch_summary = function(entry) return "◆ summary of another branch", entry.summary end,
  custom_message = function(entry)
    if entry.customType == "abridged.carried" then return nil end
    return "○ " .. (entry.customType == "abridged.pin" and "pinned text" or entry.customType), M.content(entry)
  end,
  reset_boundary = function() return "◆ reset: nothing before it is in the context", "" end,
}

--- The local time of a timestamp in UTC, with its day where that is not today.
local function local_time(timestamp)
  local year, month, day, hour, min = (timestamp or ""):match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+)")
  if not year then return nil end
  local now = os.time()
  local offset = os.difftime(now, os.time(os.date("!*t", now)))
  local time = os.time({ year = year, month = month, day = day, hour = hour, min = min }) + offset
  return os.date(os.date("%F", time) == os.date("%F", now) and "%H:%M" or "%F %H:%M", time)
end

--- The lines of an entry, or nil for one that is not drawn.
---@param marks string[] Words for the title, for example `pinned`.
function M.entry(entry, marks)
  local draw = types[entry.type]
  if not draw then return nil end
  local title, text, limit = draw(entry)
  if not title then return nil end
  local lines = { table.concat(vim.list_extend({ title, local_time(entry.timestamp) }, marks), " · ") }
  if text ~= "" then add(lines, text, limit) end
  table.insert(lines, "")
  return lines
end

--- The whole of an entry, as it was written.
function M.whole(entry)
  local draw = types[entry.type]
  local _, text = (draw or function() end)(entry)
  return vim.split(text or vim.json.encode(entry), "\n", { plain = true })
end

return M
