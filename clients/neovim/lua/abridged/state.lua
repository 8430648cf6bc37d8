--- The state of the sessions that a client has open, kept up to date by its events.

local M = {}

---@class abridged.Operation An operation that runs.
---@field id? string
---@field title string For example `compacting`.
---@field share? number The part that is done, from 0 to 1.
---@field remaining_ms? integer

---@class abridged.Session
---@field id string
---@field info? abridged.SessionInfo
---@field usage? abridged.Usage
---@field status? abridged.Status
---@field operation? abridged.Operation
---@field offline boolean Whether the daemon is away.

---@class abridged.State
---@field sessions table<string, abridged.Session>
local State = {}
State.__index = State

---@param client abridged.Client
---@param changed fun(session: abridged.Session, envelope?: abridged.Envelope) Called after each change of a session.
---@return abridged.State
function M.follow(client, changed)
  local self = setmetatable({ sessions = {}, changed = changed }, State)
  client:on("opened", function(opened) self:_update(opened.sessionId, opened.session) end)
  client:on("closed", function(closed) self.sessions[closed.sessionId] = nil end)
  client:on("session/event", function(envelope) self:_apply(envelope) end)
  client:on("exited", function() self:_offline() end)
  client:on("reconnected", function(reconnected)
    for _, outcome in ipairs(reconnected.sessions) do self:_reconnected(outcome) end
  end)
  -- After lost events the whole value is read again.
  client:on("session/resync_required", function(lost)
    client:call("session/status", { sessionId = lost.sessionId }, function(_, status)
      if status then self:_snapshot(status) end
    end)
  end)
  return self
end

--- Takes over what an answer says about a session.
function State:_update(id, info)
  local session = self.sessions[id] or { id = id, offline = false }
  self.sessions[id] = session
  if info then session.info, session.usage, session.status = info, info.usage, info.status end
  self.changed(session)
end

local titles = { compaction = "compacting", handoff = "handing off", branch_summary = "summarizing", turn = "answering" }

--- Takes over the answer of `session/status`.
function State:_snapshot(status)
  local id = status.session.sessionId
  local running
  for _, operation in ipairs(status.operations) do
    if titles[operation.kind] then running = { id = operation.operationId, title = titles[operation.kind] } end
  end
  local session = self.sessions[id] or { id = id }
  self.sessions[id] = session
  session.operation, session.offline = running, false
  self:_update(id, status.session)
end

function State:_offline()
  for _, session in pairs(self.sessions) do
    session.offline, session.operation = true, nil
    self.changed(session)
  end
end

function State:_reconnected(outcome)
  local session = self.sessions[outcome.sessionId]
  if outcome.status == "lost" then
    self.sessions[outcome.sessionId] = nil
  elseif outcome.snapshot then
    return self:_snapshot(outcome.snapshot)
  end
  if session then
    session.offline = outcome.status == "lost"
    self.changed(session)
  end
end

--- The changes of a session by the type of the event.
local changes = {
  compaction_start = function(session, _, envelope)
    session.operation = { id = envelope.operationId, title = titles.compaction, share = 0 }
  end,
  compaction_progress = function(session, event)
    if session.operation then session.operation.share, session.operation.remaining_ms = event.share, event.remainingMs end
  end,
  compaction_end = function(session, event) session.operation, session.usage = nil, event.usage end,
  handoff_start = function(session, _, envelope) session.operation = { id = envelope.operationId, title = titles.handoff } end,
  handoff_end = function(session) session.operation = nil end,
  branch_summary_start = function(session, _, envelope)
    session.operation = { id = envelope.operationId, title = titles.branch_summary }
  end,
  branch_summary_end = function(session) session.operation = nil end,
  usage_updated = function(session, event) session.usage = event.usage end,
  status_changed = function(session, event) session.status = event.status end,
}

function State:_apply(envelope)
  local session, change = self.sessions[envelope.sessionId], changes[envelope.event.type]
  if not session then return end
  if change then change(session, envelope.event, envelope) end
  self.changed(session, envelope)
end

return M
