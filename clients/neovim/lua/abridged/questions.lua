--- The questions of the daemon (`llm/complete`, `tool/call`, `hook/…`), which handlers of the client answer.

local errors = require("abridged.errors")

---@class abridged.Signal The cancellation of a question.
---@field cancelled boolean
---@field on_cancel fun(self: abridged.Signal, listener: fun()) Calls the listener when the question is cancelled.

--- Answers a question. A value that is returned is the answer; without one the handler calls `respond` later: with the
--- answer, or with nil and a message. It runs in a coroutine, so `client:await` is allowed. An error that is thrown is
--- answered as an error.
---@alias abridged.Handler fun(params: table, respond: fun(result: any, message?: string), signal: abridged.Signal): any

local M = {}

--- A text is a whole answer to two of the questions.
local from_text = {
  ["llm/complete"] = function(text)
    return { message = { role = "assistant", content = { { type = "text", text = text } }, stopReason = "stop" } }
  end,
  ["tool/call"] = function(text) return { content = text } end,
}

--- Asks a handler. `answer` is called once, with the `result` or the `error` of the response, and never after a cancel.
--- Returns the function that cancels the question.
---@param run fun(body: fun(), failed: fun(failure: any)) Runs the handler in a coroutine.
---@return fun() cancel
function M.ask(method, params, handler, run, answer)
  local signal, listeners, open = { cancelled = false }, {}, true
  function signal.on_cancel(_, listener)
    if signal.cancelled then return listener() end
    table.insert(listeners, listener)
  end
  local function respond(result, message)
    if not open then return end
    open = false
    if message then return answer({ error = { code = -32603, message = tostring(message) } }) end
    if type(result) == "string" and from_text[method] then result = from_text[method](result) end
    answer({ result = result == nil and vim.NIL or result })
  end
  if handler then
    run(function()
      local result = handler(params, respond, signal)
      if result ~= nil then respond(result) end
    end, function(failure) respond(nil, failure) end)
  else
    open = false
    answer({ error = { code = -32601, message = "this client does not answer " .. method } })
  end
  return function()
    if not open then return end
    open, signal.cancelled = false, true
    for _, listener in ipairs(listeners) do errors.protect(listener) end
  end
end

return M
