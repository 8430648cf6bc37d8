--- The errors of the client and of the daemon.

---@class abridged.Error A failed request. `tostring` gives the message.
---@field code string The daemon's `error.data.code`, or `binary_not_found`, `daemon_exited`, `timeout`, `closed`.
---@field message string Cause and next step, for a person.
---@field retryable boolean Whether the same request may succeed later.
---@field rpc_code? integer The number of JSON-RPC.
---@field data table All fields of `error.data`.
local Error = {}
Error.__index = Error
function Error.__tostring(failure) return failure.message end

local M = {}

--- Makes an error with a code.
---@return abridged.Error
function M.new(code, message, data, rpc_code)
  data = vim.tbl_extend("keep", data or {}, { code = code, retryable = false })
  return setmetatable({ code = code, message = message, retryable = data.retryable, data = data, rpc_code = rpc_code }, Error)
end

--- Shows an error of a listener or of a callback. It ends neither the reader nor the other listeners.
function M.report(failure) vim.notify("abridged: " .. tostring(failure), vim.log.levels.ERROR) end

--- Calls a function and reports its error.
function M.protect(callback, ...)
  local arguments, count = { ... }, select("#", ...)
  xpcall(function() callback(unpack(arguments, 1, count)) end, function(failure)
    M.report(type(failure) == "string" and debug.traceback(failure) or failure)
  end)
end

return M
