--- The texts for the fullness of a context and the progress of an operation.

local M = {}

local EIGHTHS = { "▏", "▎", "▍", "▌", "▋", "▊", "▉" }

--- A bar of so many cells. Where these characters have two cells it is of ASCII.
function M.bar(share, width)
  share = math.max(0, math.min(1, share))
  if vim.o.ambiwidth == "double" then
    local full = math.floor(share * width + 0.5)
    return "[" .. ("#"):rep(full) .. ("-"):rep(width - full) .. "]"
  end
  local eighths = math.floor(share * width * 8 + 0.5)
  local text = ("█"):rep(math.floor(eighths / 8)) .. (EIGHTHS[eighths % 8] or "")
  return "▕" .. text .. (" "):rep(width - math.ceil(eighths / 8)) .. "▏"
end

--- A count of tokens in at most four characters: `732`, `4.0k`, `124k`, `1.2M`.
function M.tokens(count)
  if count < 1000 then return ("%d"):format(count) end
  if count < 9950 then return ("%.1fk"):format(count / 1000) end
  if count < 999500 then return ("%.0fk"):format(count / 1000) end
  return ("%.1fM"):format(count / 1e6)
end

--- The progress of an operation: `compacting 40% ▕███▏    ▏`.
---@param operation abridged.Operation
function M.progress(operation, width)
  if not operation.share then return operation.title end
  return ("%s %d%% %s"):format(operation.title, operation.share * 100, M.bar(operation.share, width))
end

--- The time that is left, for example ` about 12 s`; empty where it is unknown.
---@param operation abridged.Operation
function M.remaining(operation)
  return operation.remaining_ms and (" about %d s"):format(math.ceil(operation.remaining_ms / 1000)) or ""
end

--- The fullness of a session: `ctx 62% ▕████▉   ▏ 124k/200k`.
---@param session abridged.Session
function M.text(session, width)
  if session.offline then return "ctx offline" end
  local usage = session.usage
  if not usage then return "ctx …" end
  local size = M.tokens(usage.contextTokens)
  if usage.contextWindow then size = size .. "/" .. M.tokens(usage.contextWindow) end
  if session.operation then return M.progress(session.operation, width) .. " " .. size end
  if not usage.percent then return "ctx " .. size end
  return ("ctx %.0f%% %s %s"):format(usage.percent, M.bar(usage.percent / 100, width), size)
end

--- The highlight group of a session in a statusline.
---@param session abridged.Session
function M.highlight(session)
  local usage = session.usage
  if session.offline or not usage then return "AbridgedMeterOff" end
  if session.operation then return "AbridgedMeterBusy" end
  local near = usage.thresholdTokens and usage.contextTokens >= 0.9 * usage.thresholdTokens
  return near and "AbridgedMeterFull" or "AbridgedMeter"
end

return M
