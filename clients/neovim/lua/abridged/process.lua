--- The process of the daemon: its program, its pipes, and the lines that go through them.

local uv = vim.uv or vim.loop
local errors = require("abridged.errors")

local STDERR_BYTES = 4096

---@class abridged.Process
---@field code? integer Exit code, after the end.
---@field signal? integer
---@field stderr string The last 4 KiB that the daemon wrote to stderr.
local Process = {}
Process.__index = Process

--- Returns the path of the daemon, or nil and an error that names the places. A place that is named (`binary`,
--- `ABRIDGED_BIN`) is the only one.
---@return string? path
---@return abridged.Error? failure
function Process.find(binary)
  local named = binary or vim.env.ABRIDGED_BIN
  local carried = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h") .. "/bin/abridged"
  local places = { carried, "abridged", vim.fn.fnamemodify("~/.cargo/bin/abridged", ":p") }
  if named then places = { named:find("/") and vim.fn.fnamemodify(named, ":p") or named } end
  for index, place in ipairs(places) do
    local path = vim.fn.exepath(place)
    if path ~= "" then return path end
    if place == "abridged" then places[index] = "PATH" end
  end
  local message = ("the daemon is not installed; looked at %s. Run: cargo install abridged"):format(table.concat(places, ", "))
  return nil, errors.new("binary_not_found", message, { places = places })
end

--- Collects chunks and calls `on_line` with each whole line. A line of many megabytes is joined once.
local function splitter(on_line)
  local parts = {}
  return function(chunk)
    local from, stop = 1, chunk:find("\n", 1, true)
    while stop do
      table.insert(parts, chunk:sub(from, stop - 1))
      on_line(table.concat(parts))
      parts, from, stop = {}, stop + 1, chunk:find("\n", stop + 1, true)
    end
    if from <= #chunk then table.insert(parts, chunk:sub(from)) end
  end
end

--- Starts `abridged serve`. `on_line` and `on_exit` run outside of the main loop. The exit comes after the last line.
---@return abridged.Process? process
---@return abridged.Error? failure
function Process.start(path, env, on_line, on_exit)
  local self = setmetatable({ stderr = "" }, Process)
  self.pipes = { uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false) }
  local variables, open = {}, 3
  for name, value in pairs(vim.tbl_extend("force", vim.fn.environ(), env or {})) do
    table.insert(variables, name .. "=" .. value)
  end
  -- The exit is known before everything that the daemon wrote is read: the end of both pipes belongs to it.
  local function ended()
    open = open - 1
    if open > 0 then return end
    self:_close()
    on_exit()
  end
  local options = { args = { "serve" }, stdio = self.pipes, env = variables, hide = true }
  local handle, problem = uv.spawn(path, options, function(code, signal)
    self.code, self.signal = code, signal
    ended()
  end)
  if not handle then
    self:_close()
    return nil, errors.new("binary_not_found", ("%s does not start: %s"):format(path, problem), { places = { path } })
  end
  self.handle = handle
  local on_chunk = splitter(on_line)
  self.pipes[2]:read_start(function(_, chunk)
    if not chunk then return ended() end
    on_chunk(chunk)
  end)
  self.pipes[3]:read_start(function(_, chunk)
    if not chunk then return ended() end
    self.stderr = (self.stderr .. chunk):sub(-STDERR_BYTES)
  end)
  return self
end

function Process:_close()
  self.closed = true
  for _, handle in ipairs(vim.list_extend({ self.handle }, self.pipes)) do handle:close() end
end

--- The length of the character of UTF-8 at a place; nil where there is none.
local function character(text, at)
  local first, second = text:byte(at, at + 1)
  local length = first < 0xC2 and 0 or first < 0xE0 and 2 or first < 0xF0 and 3 or first < 0xF5 and 4 or 0
  local least = first == 0xE0 and 0xA0 or first == 0xF0 and 0x90 or 0x80
  local most = first == 0xED and 0x9F or first == 0xF4 and 0x8F or 0xBF
  local whole = length > 0 and second and second >= least and second <= most
  return whole and text:find("^" .. ("[\128-\191]"):rep(length - 1), at + 1) and length or nil
end

--- Replaces bytes that are no UTF-8, which a buffer may hold and the daemon refuses.
local function as_utf8(text)
  return (text:gsub("[\128-\255]+", function(run)
    local parts, at = {}, 1
    while at <= #run do
      local length = character(run, at)
      table.insert(parts, length and run:sub(at, at + length - 1) or "\239\191\189")
      at = at + (length or 1)
    end
    return table.concat(parts)
  end))
end

--- Writes a frame as a line. After the end of the process it goes nowhere.
function Process:write(frame)
  frame.jsonrpc = "2.0"
  if not self.closed then self.pipes[1]:write(as_utf8(vim.json.encode(frame)) .. "\n") end
end

--- Ends the input of the daemon, which ends with it, and kills it after a time.
function Process:stop(after_ms)
  if self.closed then return end
  self.pipes[1]:shutdown()
  vim.defer_fn(function() self:kill() end, after_ms)
end

function Process:kill()
  if not self.closed then self.handle:kill("sigkill") end
end

return Process
