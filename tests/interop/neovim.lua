-- abridged from Neovim, by the client that its language servers use: nvim --clean --headless -c 'luafile neovim.lua'

local rpc = require('vim.lsp.rpc')

--- Starts a daemon; `on_event` is called with the params of each `session/event`, in their order, and `complete` runs a
--- model for the params of `llm/complete`.
local function start(on_event, complete, on_exit, env)
  local program = vim.env.ABRIDGED_BIN or 'abridged'
  local dispatchers = {
    notification = function(method, params)
      if method == 'session/event' then on_event(params) end
    end,
    -- What is returned is the answer, so the editor stands still until it is there. An error is a table with a code of
    -- LSP's; after it the daemon goes on without us.
    server_request = function(method, params)
      if method ~= 'llm/complete' then
        return nil, rpc.rpc_response_error(vim.lsp.protocol.ErrorCodes.MethodNotFound)
      end
      return { message = complete(params) }
    end,
    on_exit = on_exit,
  }
  -- Since 0.10 the program and its arguments are one list.
  if vim.fn.has('nvim-0.10') == 1 then
    return rpc.start({ program, 'serve' }, dispatchers, { env = env })
  end
  return rpc.start(program, { 'serve' }, dispatchers, { env = env })
end

--- Waits in a coroutine, so that the editor goes on meanwhile: `begin` is given what ends the wait, and with what.
local function await(begin)
  local this = coroutine.running()
  begin(function(...) assert(coroutine.resume(this, ...)) end)
  return coroutine.yield()
end

--- Sends a request and waits for its answer.
local function call(daemon, method, params)
  local err, result = await(function(done) daemon.request(method, params, done) end)
  if err then error(method .. ': ' .. err.message, 0) end
  return result
end

--- A question and its answer, as a host with its own agent loop reports them.
local function turn(number)
  local text = ('Step %d: Größe, 東京 and 🚢 stay as they are. '):format(number):rep(10)
  if number == 50 then text = ('x'):rep(45000) end
  local usage = { input = 100 * number, output = 50, cacheRead = 0, cacheWrite = 0, totalTokens = 100 * number + 50 }
  return {
    { role = 'user', content = ('What is step %d?'):format(number) },
    { role = 'assistant', content = { { type = 'text', text = text } }, usage = usage, stopReason = 'stop' },
  }
end

local summaries = {
  compaction = '## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones',
  turn_prefix = '## Original Request\nThe next step.\n\n## Early Progress\n- begun',
  short_summary = 'The first steps are done. More will come.',
}

--- Runs a model; this one writes summaries and nothing else.
local function complete(params)
  assert(params.model.provider == 'editor' and params.model.id == 'writer', 'another model is asked')
  local said = params.messages[1].content[1].text
  assert(said:find('Step 1: ', 1, true) or params.purpose ~= 'compaction', 'the conversation does not come')
  -- What the provider reported; left out where nobody knows. Much less than was sent would mean that it was cut.
  local input = math.floor(#(params.system .. said) / 4)
  local usage = { input = input, output = 40, cacheRead = 0, cacheWrite = 0, totalTokens = input + 40 }
  local content = { { type = 'text', text = summaries[params.purpose] } }
  return { role = 'assistant', content = content, usage = usage, stopReason = 'stop' }
end

-- Its tokens take a while to count, and a compaction waits for that: long enough to change one's mind.
local large = { role = 'user', content = ('Größe, 東京, 🚢\n'):rep(200000) }

local function check(holds, what)
  if not holds then error('neovim: ' .. what, 0) end
end

local function check_events(events, session, completed)
  local last, open, ends, sessions = {}, {}, {}, 0
  local types, whole, announced = {}, 0, 0
  for _, params in ipairs(events) do
    local key, event = params.sessionId .. ' ' .. params.epoch, params.event
    if not last[key] then sessions = sessions + 1 end
    check(params.seq == (last[key] or params.seq - 1) + 1, ('a gap before event %d of %s'):format(params.seq, key))
    last[key] = params.seq
    if event.type == 'compaction_start' then
      open[params.operationId] = true
    elseif event.type == 'compaction_end' then
      check(open[params.operationId], 'an end without its start, or a second one, of ' .. params.operationId)
      open[params.operationId] = nil
      table.insert(ends, event.outcome)
      check(event.outcome ~= 'completed' or completed[params.operationId], 'another compaction was completed')
    end
    if params.sessionId == session then table.insert(types, event.type) end
    local content = event.entry and event.entry.message and event.entry.message.content
    if type(content) == 'table' and content[1].text == ('x'):rep(45000) then whole = whole + 1 end
    if event.type == 'entry_appended' and not event.entry then announced = announced + 1 end
  end
  check(vim.tbl_isempty(open), 'a start without an end')
  check(sessions == 3, ('events of three sessions, not of %d'):format(sessions))
  -- The request that was taken back ends as cancelled, or never began.
  local outcomes = table.concat(ends, ' ')
  local right = { ['cancelled completed completed'] = true, ['cancelled cancelled completed completed'] = true }
  check(right[outcomes], 'they ended as ' .. outcomes)
  check(types[#types - 1] == 'status_changed' and types[#types] == 'settled', 'the last event is ' .. types[#types])
  check(whole == 1, '45,000 characters did not come as a whole')
  check(announced == 2, 'the large messages are not announced by their type alone')
end

local function main(home, on_exit)
  local events, on_end = {}, {}
  local function on_event(params)
    table.insert(events, params)
    local ended = params.event.type == 'compaction_end' and on_end[params.operationId]
    if ended then ended(params.event) end
  end
  -- Answers and events are scheduled in the order they came: who asks for an end right after the answer is in time.
  local function end_of(operation)
    return await(function(done) on_end[operation] = done end)
  end

  local env = { ABRIDGED_DATA_DIR = home .. '/data', ABRIDGED_CONFIG_DIR = home .. '/config' }
  env.ABRIDGED_DISABLE_AUTOCOMPACT = '1'
  local daemon = start(on_event, complete, vim.schedule_wrap(function(code) on_exit(code) end), env)
  local info = { name = 'neovim', version = tostring(vim.version()) }
  -- An empty table has no kind and is sent as []; it is taken as {}.
  local hello = { protocolVersion = 1, clientInfo = info, processId = vim.fn.getpid(), capabilities = { llm = {} } }
  call(daemon, 'initialize', hello)
  call(daemon, 'ping', {}) -- sent as [], for an empty table has no kind; it is taken as {}
  local session = call(daemon, 'session/new', { cwd = home }).session.sessionId
  for number = 0, 79 do
    call(daemon, 'session/append', { sessionId = session, messages = turn(number) })
  end

  -- Cancelled by its session: the cancel is sent right behind it.
  call(daemon, 'session/append', { sessionId = session, messages = { large } })
  local compacting
  daemon.request('session/compact', { sessionId = session }, function(_, result) compacting = result.operationId end)
  local cancelled = call(daemon, 'session/cancel', { sessionId = session }).cancelled
  check(#cancelled == 1, 'the cancel found nothing')
  check(end_of(cancelled[1].operationId).outcome == 'cancelled', 'a cancelled compaction went on')
  check(compacting == cancelled[1].operationId, 'the cancel found something else')

  -- Cancelled by taking the request back. Neovim keeps the error of a request that was cancelled to itself: the
  -- callback is called only if the answer is the normal one. The last function is called whatever the answer is.
  call(daemon, 'session/append', { sessionId = session, messages = { large } })
  local answer
  await(function(replied)
    local params = { sessionId = session, wait = true }
    local function answered(_, result) answer = result end
    local _, id = daemon.request('session/compact', params, answered, replied)
    daemon.notify('$/cancelRequest', { id = id })
  end)
  local status = call(daemon, 'session/status', { sessionId = session })
  check(status.session.status.type == 'idle' and #status.operations == 0, 'what was taken back goes on')
  check(not answer or answer.outcome == 'cancelled', 'what was taken back did not end as cancelled')

  -- Done: the answer gives the id, the end is an event.
  local appended
  for number = 80, 99 do
    appended = call(daemon, 'session/append', { sessionId = session, messages = turn(number) })
  end
  check(appended.usage.contextTokens >= 9950, "the provider's count is not taken over")
  local operation = call(daemon, 'session/compact', { sessionId = session, keepRecentTokens = 2000 }).operationId
  local completed = end_of(operation)
  check(completed.outcome == 'completed', 'the compaction ended with ' .. vim.inspect(completed))
  local context = call(daemon, 'session/context', { sessionId = session })
  check(context.compactionEntryId == completed.result.entryId, 'the context is not the compacted one')
  local newest = context.messages[#context.messages]
  check(newest.content[1].text == turn(99)[2].content[1].text, 'the newest answer is not as it was')

  -- A file from elsewhere opens where it lies.
  local path = home .. '/elsewhere.jsonl'
  local head = { type = 'session', version = 3, id = 'elsewhere', timestamp = '2026-01-01T00:00:00.000Z', cwd = home }
  vim.fn.writefile({ vim.json.encode(head) }, path)
  local other = call(daemon, 'session/load', { path = path }).session.sessionId
  call(daemon, 'session/append', { sessionId = other, messages = turn(1) })

  -- A session whose model only we can run: its summary is asked of us.
  local ours = call(daemon, 'session/new', { cwd = home, model = 'editor/writer' }).session.sessionId
  for number = 0, 19 do
    call(daemon, 'session/append', { sessionId = ours, messages = turn(number) })
  end
  local wrote = call(daemon, 'session/compact', { sessionId = ours, keepRecentTokens = 1000, wait = true })
  local result = wrote.result
  check(result.method == 'llm' and #result.rejected == 0, 'no summary of ours: ' .. vim.inspect(result))
  check(result.summary:find('Go through the steps.', 1, true), 'another summary than ours: ' .. result.summary)
  check(result.shortSummary == summaries.short_summary, 'another short one')
  local spent = call(daemon, 'session/entries', { sessionId = ours, types = { 'usage' } }).entries
  check(#spent >= 2, 'its cost is not noted')

  call(daemon, 'shutdown')
  local code = await(function(done)
    on_exit = done
    daemon.notify('exit')
  end)
  check(code == 0, 'the daemon did not end well')
  check_events(events, session, { [operation] = true, [wrote.operationId] = true })
  io.stdout:write(('neovim: ok, %d events\n'):format(#events))
end

local home, finished, ok, failure = vim.fn.tempname(), false, nil, nil
vim.fn.mkdir(home, 'p')
local function finish(...) finished, ok, failure = true, ... end
-- Callbacks of requests that are open when the daemon ends are never called.
local function on_exit(code) finish(false, ('neovim: the daemon ended with %d'):format(code)) end
coroutine.wrap(function() finish(pcall(main, home, on_exit)) end)()
vim.wait(60000, function() return finished end, 10)
vim.fn.delete(home, 'rf')
if not ok then io.stderr:write((failure or 'neovim: not finished in time'), '\n') end
vim.cmd(ok and 'qall!' or 'cquit 1')
