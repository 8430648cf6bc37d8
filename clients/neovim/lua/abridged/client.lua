--- A client of the daemon: it starts `abridged serve`, sends requests, and delivers events and questions in their order.
---
--- The daemon is started again after an unexpected exit, and the sessions that were open are loaded again. Callbacks run
--- on Neovim's main loop, where its whole API is allowed.

local uv = vim.uv or vim.loop
local errors = require("abridged.errors")
local Process = require("abridged.process")
local questions = require("abridged.questions")

local HANDSHAKE_MS, KILL_AFTER_MS = 10000, 3000
local RESTARTS, RESTART_WINDOW_MS, FIRST_DELAY_MS, LONGEST_DELAY_MS = 5, 60000, 100, 5000

---@class abridged.ClientOptions
---@field binary? string Path of the daemon. Default: the places of `Process.find`.
---@field env? table<string, string> Variables beside those of Neovim.
---@field name? string Name of the client, for the daemon's log.
---@field version? string
---@field llm? abridged.Handler Answers `llm/complete` with `{message}`, or with a text.
---@field tools? abridged.Handler Answers `tool/call` with `{content, isError?}`, or with a text.
---@field hooks? table<string, abridged.Handler> Handlers by the name of the hook, for example `session_before_compact`.
---@field capabilities? table Other capabilities, for example `{ events = { optOut = { "message_delta" } } }`.

---@class abridged.Client: abridged.Calls
local Client = {}
Client.__index = Client

---@class abridged.Call A request without an answer so far.
local Call = {}
Call.__index = Call

--- Continues a coroutine, and reports the error that ends it.
local function resume(thread, ...)
  local ok, failure = coroutine.resume(thread, ...)
  if not ok then errors.report(debug.traceback(thread, tostring(failure))) end
end

--- Runs a function in a coroutine, where `client:await` is allowed. `failed` gets the error that ends it.
---@param body fun()
---@param failed? fun(failure: any)
function Client.run(body, failed)
  resume(coroutine.create(function()
    local ok, failure = pcall(body)
    if not ok then (failed or errors.report)(failure) end
  end))
end

--- Starts a daemon. A failure of the start is the error of each call, and the event `exited`.
---@param options? abridged.ClientOptions
---@return abridged.Client
function Client.start(options)
  local self = setmetatable({ options = options or {}, state = "starting" }, Client)
  self.next_id, self.calls, self.waiting, self.questions = 1, {}, {}, {}
  self.listeners, self.sessions, self.opened, self.restarts, self.on_closed = {}, {}, 0, {}, {}
  self.inbox, self.first, self.last = {}, 1, 0
  self:_spawn()
  return self
end

--- Calls a listener with the params of each notification of the daemon (`session/event`, `sessions_changed`, `notice`,
--- `session/resync_required`, `settings_changed`), and of the local events `exited {error, restarting}`,
--- `reconnected {sessions}`, `opened {sessionId, session?}` and `closed {sessionId}`. Returns a function that removes it.
---@return fun()
function Client:on(name, listener)
  self.listeners[name] = self.listeners[name] or {}
  table.insert(self.listeners[name], listener)
  return function()
    self.listeners[name] = vim.tbl_filter(function(other) return other ~= listener end, self.listeners[name])
  end
end

--- Calls a listener with each event of one session and its envelope. Returns a function that removes it.
---@param listener fun(event: abridged.SessionEvent, envelope: abridged.Envelope)
---@return fun()
function Client:on_session(session_id, listener)
  return self:on("session/event", function(envelope)
    if envelope.sessionId == session_id then listener(envelope.event, envelope) end
  end)
end

function Client:_emit(name, params)
  for _, listener in ipairs(self.listeners[name] or {}) do errors.protect(listener, params) end
end

-- Requests.

--- Sends a request. The callback gets an error or the result, never before this function returns. A request that is made
--- while the daemon starts waits for it.
---@param callback? fun(failure: abridged.Error?, result: any)
---@param options? { timeout_ms?: integer }
---@return abridged.Call
function Client:call(method, params, callback, options)
  local call = setmetatable({ client = self, method = method, params = params, callback = callback }, Call)
  options = options or {}
  if options.timeout_ms then call:_limit(options.timeout_ms) end
  if self.state == "down" and self:_may_restart() then
    self.state = "starting"
    table.insert(self.restarts, uv.now())
    self:_spawn()
  end
  if self.state == "ready" or options.now then
    self:_send(call)
  elseif self.state == "starting" or self.state == "restarting" then
    table.insert(self.waiting, call)
  else
    local failure = self.state == "down" and self.failure or errors.new("closed", "the client is closed; start another one")
    self:_post(function() call:_finish(failure) end)
  end
  return call
end

--- Sends a request and waits for its result in a coroutine. A failure is thrown as an `abridged.Error`.
---@param options? { timeout_ms?: integer }
function Client:await(method, params, options)
  local this = coroutine.running()
  if not this then error("await is called outside of a coroutine; use Client.run(function() … end)", 2) end
  self:call(method, params, function(failure, result) resume(this, failure, result) end, options)
  local failure, result = coroutine.yield()
  if failure then error(failure, 0) end
  return result
end

--- Fits messages of a client that keeps its own history into a window. Nothing is stored.
---@param params abridged.FitParams
---@param callback fun(failure: abridged.Error?, result: abridged.FitAnswer?)
---@return abridged.Call
function Client:fit(params, callback) return self:call("context/fit", params, callback) end

--- Sends a notification. It is dropped while no daemon runs.
function Client:notify(method, params)
  if self.process then self.process:write({ method = method, params = params or vim.empty_dict() }) end
end

--- Takes the request back. Its callback gets the answer all the same: the normal one, or `request_cancelled`.
function Call:cancel()
  if self.done then return end
  if self.id then return self.client:notify("$/cancelRequest", { id = self.id }) end
  self:_finish(errors.new("request_cancelled", self.method .. " was cancelled before it was sent"))
end

function Call:_limit(timeout_ms)
  self.timer = uv.new_timer()
  self.timer:start(timeout_ms, 0, vim.schedule_wrap(function()
    if self.id then self:cancel() end
    self:_finish(errors.new("timeout", ("no answer to %s within %d ms"):format(self.method, timeout_ms), { retryable = true }))
  end))
end

function Call:_finish(failure, result)
  if self.done then return end
  self.done = true
  if self.timer then self.timer:close() end
  if self.callback then errors.protect(self.callback, failure, result) end
end

function Client:_send(call)
  if call.done then return end
  call.id, self.next_id = self.next_id, self.next_id + 1
  self.calls[call.id] = call
  self.process:write({ id = call.id, method = call.method, params = call.params or vim.empty_dict() })
end

function Client:_fail_waiting(failure)
  local waiting = self.waiting
  self.waiting = {}
  for _, call in ipairs(waiting) do call:_finish(failure) end
end

-- Start, exit and restart.

function Client:_spawn()
  local path, failure = Process.find(self.options.binary)
  if not path then return self:_down(failure) end
  local process
  process, failure = Process.start(path, self.options.env, function(line)
    self:_post(function() self:_line(line) end)
  end, function()
    self:_post(function() self:_exited(process) end)
  end)
  if not process then return self:_down(failure) end
  self.process = process
  self:_handshake(process)
end

function Client:_handshake(process)
  local options = self.options
  local capabilities = { llm = options.llm and vim.empty_dict(), tools = options.tools and vim.empty_dict() }
  capabilities.hooks = options.hooks and { events = vim.tbl_keys(options.hooks) }
  local params = {
    protocolVersion = 1,
    clientInfo = { name = options.name or "abridged.nvim", version = options.version or "0.1.0" },
    processId = vim.fn.getpid(),
    capabilities = vim.tbl_deep_extend("force", capabilities, options.capabilities or {}),
  }
  Client.run(function()
    self.server = self:await("initialize", params, { now = true, timeout_ms = HANDSHAKE_MS })
    local sessions = self.was_ready and self:_reload(process)
    if self.state == "closing" then return end
    self.state, self.was_ready = "ready", true
    if sessions then self:_emit("reconnected", { sessions = sessions }) end
    local waiting = self.waiting
    self.waiting = {}
    for _, call in ipairs(waiting) do self:_send(call) end
  end, function(failure)
    -- Here a daemon runs that cannot be used. One that ended is handled by its exit.
    process.refused = failure
    process:kill()
  end)
end

--- Loads the sessions again that were open, in the order in which they were opened.
function Client:_reload(process)
  local sessions, outcomes = vim.tbl_values(self.sessions), {}
  table.sort(sessions, function(one, other) return one.number < other.number end)
  for _, session in ipairs(sessions) do
    local outcome = { sessionId = session.id, status = "lost" }
    if session.ephemeral then
      outcome.error = errors.new("not_found", "the session was in memory only and ended with the daemon", { kind = "session" })
    else
      local ok, answer = pcall(function()
        self:await("session/load", session.load, { now = true })
        return self:await("session/subscribe", { sessionId = session.id, after = session.seen }, { now = true })
      end)
      if not ok and process.closed then error(answer, 0) end
      outcome.status = ok and answer.status or "lost"
      outcome[ok and "snapshot" or "error"] = ok and answer.snapshot or answer
    end
    if outcome.status == "lost" then self.sessions[session.id] = nil end
    table.insert(outcomes, outcome)
  end
  return outcomes
end

function Client:_exited(process)
  self.process = nil
  local said = vim.trim(process.stderr)
  local message = ("the daemon ended (exit code %d, signal %d)"):format(process.code, process.signal)
  local data = { exitCode = process.code, signal = process.signal, stderr = said }
  local failure = process.refused or errors.new("daemon_exited", message .. (said ~= "" and ": " .. said or ""), data)
  local closing, calls, asked = self.state == "closing", self.calls, self.questions
  self.calls, self.questions = {}, {}
  if not closing then self.state = "restarting" end
  for _, cancel in pairs(asked) do cancel() end
  for _, call in pairs(calls) do call:_finish(failure) end
  if closing then return self:_end() end
  if not self.was_ready or not self:_may_restart() then return self:_down(failure) end
  local delay = math.min(FIRST_DELAY_MS * 2 ^ #self.restarts, LONGEST_DELAY_MS)
  table.insert(self.restarts, uv.now())
  vim.defer_fn(function()
    if self.state == "restarting" then self:_spawn() end
  end, delay)
  self:_emit("exited", { error = failure, restarting = true })
end

--- Whether the daemon may be started again: five times in a minute.
function Client:_may_restart()
  local now = uv.now()
  self.restarts = vim.tbl_filter(function(time) return now - time < RESTART_WINDOW_MS end, self.restarts)
  return #self.restarts < RESTARTS
end

--- No daemon runs until a call is made that may start it again.
function Client:_down(failure)
  self.state, self.failure = "down", failure
  self:_post(function()
    self:_fail_waiting(failure)
    self:_emit("exited", { error = failure, restarting = false })
  end)
end

--- Ends the daemon in order, and kills it after three seconds. The callback is called after its end.
---@param callback? fun()
function Client:close(callback)
  table.insert(self.on_closed, callback)
  if self.state == "closing" then return end
  local ready = self.state == "ready"
  self.state = "closing"
  if not self.process then
    return self:_post(function() self:_end() end)
  end
  if ready then
    self:_send(setmetatable({ client = self, method = "shutdown" }, Call))
    self:notify("exit")
  end
  self.process:stop(KILL_AFTER_MS)
end

function Client:_end()
  self.state = "closed"
  self:_fail_waiting(errors.new("closed", "the client was closed"))
  local callbacks = self.on_closed
  self.on_closed = {}
  for _, callback in ipairs(callbacks) do errors.protect(callback) end
end

-- Frames.

--- Has a function run on the main loop, after everything that came before. A function that waits inside of another one
--- (`vim.wait`) leaves the order as it is.
function Client:_post(action)
  self.last = self.last + 1
  self.inbox[self.last] = action
  vim.schedule(function()
    while self.first <= self.last do
      local next_action = self.inbox[self.first]
      self.inbox[self.first], self.first = nil, self.first + 1
      errors.protect(next_action)
    end
  end)
end

function Client:_line(line)
  local ok, frame = pcall(vim.json.decode, line, { luanil = { object = true } })
  if not ok or type(frame) ~= "table" then
    errors.report("a line of the daemon is no JSON: " .. line:sub(1, 200))
  elseif frame.method and frame.id then
    self:_asked(frame)
  elseif frame.method then
    self:_told(frame.method, frame.params)
  elseif frame.id then
    self:_answered(frame)
  else
    errors.report("the daemon refused a frame: " .. frame.error.message)
  end
end

function Client:_answered(frame)
  local call = self.calls[frame.id]
  self.calls[frame.id] = nil
  if not call then return end
  if frame.error then
    local data = frame.error.data or {}
    return call:_finish(errors.new(data.code or "internal", frame.error.message, data, frame.error.code))
  end
  self:_track(call.method, call.params, frame.result)
  call:_finish(nil, frame.result)
end

function Client:_told(method, params)
  if method == "$/cancelRequest" then
    local cancel = self.questions[params.id]
    return cancel and cancel()
  end
  if method == "session/event" then
    local session, id = self.sessions[params.sessionId], params.event.newSessionId
    if session then session.seen = { epoch = params.epoch, seq = params.seq } end
    if id and not self.sessions[id] then self:_opened(id) end
  end
  self:_emit(method, params)
end

function Client:_asked(frame)
  local id, method, options, process = frame.id, frame.method, self.options, self.process
  local handlers = { ["llm/complete"] = options.llm, ["tool/call"] = options.tools }
  local handler = handlers[method] or (options.hooks or {})[method:match("^hook/(.*)")]
  local answered = false
  local cancel = questions.ask(method, frame.params, handler, Client.run, function(answer)
    answered = true
    if self.process == process then self.questions[id] = nil end
    process:write(vim.tbl_extend("error", { id = id }, answer))
  end)
  if not answered then self.questions[id] = cancel end
end

--- Remembers the sessions that are open, with what loads them again.
function Client:_track(method, params, result)
  if method == "session/close" or method == "session/delete" then
    self.sessions[params.sessionId] = nil
    self:_emit("closed", { sessionId = params.sessionId })
  elseif method == "session/new" or method == "session/load" or method == "session/fork" then
    self:_opened(result.session.sessionId, result.session, method == "session/load" and params or nil)
  end
end

function Client:_opened(id, info, load)
  if not self.sessions[id] then
    self.opened = self.opened + 1
    local ephemeral = info ~= nil and info.path == nil
    self.sessions[id] = { id = id, number = self.opened, load = load or { sessionId = id }, ephemeral = ephemeral }
  end
  self:_emit("opened", { sessionId = id, session = info })
end

return Client
