--- abridged in Neovim: sessions of LLM agents with a meter, progress and a transcript.

local Client = require("abridged.client")
local meter = require("abridged.meter")
local progress = require("abridged.progress")
local state = require("abridged.state")
local transcript = require("abridged.transcript")
local ui = require("abridged.ui")

local M = {}

---@class abridged.Options
---@field client abridged.ClientOptions Options of the client: `binary`, `env`, `llm`, `tools`, `hooks`, `capabilities`.
---@field load table Params of each `session/load` of this plugin, for example `{ contextWindow = 200000 }`.
---@field meter_width integer Cells of the bar in the meter.
---@field progress "float"|"notify"|false The display of a compaction that runs.
---@field notify boolean Whether the end of a compaction and notices of the daemon are shown.
M.options = { client = {}, load = {}, meter_width = 8, progress = "float", notify = true }

local client, sessions
local order = {} ---@type string[] The open sessions, the newest one last.

--- The envelope of the newest event, also during the autocommand `User AbridgedEvent` (which has it in `data` since 0.8).
---@type abridged.Envelope?
M.event = nil

local links = {
  AbridgedTitle = "Title", AbridgedResult = "Comment", AbridgedMarker = "WarningMsg", AbridgedMeter = "StatusLine",
  AbridgedMeterFull = "WarningMsg", AbridgedMeterBusy = "Todo", AbridgedMeterOff = "Comment",
}

local function highlight()
  for group, link in pairs(links) do vim.api.nvim_set_hl(0, group, { link = link, default = true }) end
end

highlight()
vim.api.nvim_create_autocmd("ColorScheme", { callback = highlight, desc = "Highlight groups of abridged" })

--- Sets the options. It is optional, and starts no daemon.
---@param options? table A part of `abridged.Options`.
function M.setup(options) M.options = vim.tbl_deep_extend("force", M.options, options or {}) end

local function remove(id)
  order = vim.tbl_filter(function(other) return other ~= id end, order)
end

local function announce(envelope)
  M.event = envelope
  local options = { pattern = "AbridgedEvent", modeline = false }
  if vim.fn.has("nvim-0.8") == 1 then options.data = envelope end
  vim.api.nvim_exec_autocmds("User", options)
end

local function sizes(result) return ("%s → %s tokens"):format(meter.tokens(result.tokensBefore), meter.tokens(result.tokensAfter)) end

--- Messages for a person, by the type of the event.
local messages = {
  compaction_end = function(event)
    if event.outcome == "completed" and event.result then
      ui.info(("compacted, %s. :Abridged undo takes it back"):format(sizes(event.result)))
    elseif event.outcome == "failed" then
      ui.error(("the compaction failed: %s. :Abridged compact tries it again"):format(event.errorMessage or "no reason is known"))
    elseif event.reason == "manual" then
      ui.info("compaction " .. event.outcome .. (event.skippedReason and ": " .. event.skippedReason or ""))
    end
  end,
  session_replaced = function(event) ui.info("the session goes on as another one: :Abridged open " .. event.newSessionId) end,
  notice = function(event)
    local level = event.severity == "error" and vim.log.levels.ERROR or vim.log.levels.WARN
    if event.severity ~= "info" then vim.notify("abridged: " .. event.title, level) end
  end,
}

local function changed(session, envelope)
  if M.options.progress == "float" then
    progress.show(session)
  elseif M.options.progress == "notify" and envelope and envelope.event.type == "compaction_start" then
    ui.info("compacting " .. meter.tokens(envelope.event.tokensBefore) .. " tokens")
  end
  if envelope then
    local message = M.options.notify and messages[envelope.event.type]
    if message then message(envelope.event) end
    announce(envelope)
  end
  vim.cmd("redrawstatus!")
end

--- The client, which is started with the first call. Its daemon is shared by all plugins that use this function.
---@return abridged.Client
function M.client()
  if client and client.state ~= "closed" and client.state ~= "closing" then return client end
  client = Client.start(M.options.client)
  sessions = state.follow(client, changed)
  client:on("opened", function(opened)
    remove(opened.sessionId)
    table.insert(order, opened.sessionId)
  end)
  client:on("closed", function(closed) remove(closed.sessionId) end)
  client:on("exited", function(exited)
    if not exited.restarting and #order > 0 then ui.error(exited.error) end
  end)
  client:on("reconnected", function(reconnected)
    for _, outcome in ipairs(reconnected.sessions) do
      if outcome.status == "lost" then
        remove(outcome.sessionId)
        ui.error(("session %s is closed: %s"):format(outcome.sessionId, tostring(outcome.error)))
      end
    end
    vim.api.nvim_exec_autocmds("User", { pattern = "AbridgedReconnected", modeline = false })
  end)
  return client
end

--- Runs a function in a coroutine. An error that ends it is shown in one line.
---@param body fun()
function M.run(body) Client.run(body, ui.error) end

--- The open sessions.
---@return table<string, abridged.Session>
function M.sessions() return sessions and sessions.sessions or {} end

--- The session of the current buffer (`b:abridged_session`), or the one that was opened last.
---@return abridged.Session?
function M.session()
  local open = M.sessions()
  return open[vim.b.abridged_session] or open[order[#order]]
end

--- The fullness of the current session as a text, for example `ctx 62% ▕████▉   ▏ 124k/200k`. Empty without a session.
function M.meter()
  local session = M.session()
  return session and meter.text(session, M.options.meter_width) or ""
end

--- The same for `'statusline'` and `'winbar'`, with its highlight group.
function M.statusline()
  local session = M.session()
  if not session then return "" end
  return ("%%#%s#%s%%*"):format(meter.highlight(session), (M.meter():gsub("%%", "%%%%")))
end

--- Opens a session by its path or id and shows its transcript.
---@param reference string
---@param options? { read_only?: boolean, show?: boolean }
---@param opened? fun(session: abridged.SessionInfo)
function M.open(reference, options, opened)
  options = options or {}
  local path = vim.fn.fnamemodify(reference, ":p")
  local params = vim.tbl_extend("force", M.options.load, { readOnly = options.read_only })
  params[vim.fn.filereadable(path) == 1 and "path" or "sessionId"] = vim.fn.filereadable(path) == 1 and path or reference
  M.run(function()
    local session = M.client():await("session/load", params).session
    if options.show ~= false then vim.cmd("edit " .. vim.fn.fnameescape("abridged://" .. session.sessionId)) end
    if opened then opened(session) end
  end)
end

--- Fills a buffer `abridged://{id}`: the autocommand `BufReadCmd` calls this.
function M.read_buffer(buffer, name)
  local id = name:match("^abridged://([^/]+)$")
  if not id then return end
  M.run(function()
    if not M.sessions()[id] then
      M.client():await("session/load", vim.tbl_extend("force", M.options.load, { sessionId = id }))
    end
    if vim.api.nvim_buf_is_valid(buffer) then transcript.attach(buffer, id, M.client()) end
  end)
end

--- Ends the daemon. The next call starts it again.
---@param callback? fun()
function M.close(callback)
  if client then return client:close(callback) end
  if callback then vim.schedule(callback) end
end

return M
