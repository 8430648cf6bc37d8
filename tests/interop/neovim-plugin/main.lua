-- The plugin for Neovim against a daemon: nvim --clean --headless -c 'luafile main.lua' -c 'cquit 1'
-- The daemon is that of ABRIDGED_BIN, or `abridged` on the PATH.

local uv = vim.uv or vim.loop
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local root = vim.fn.fnamemodify(here, ":h:h:h")
local plugin = root .. "/clients/neovim"
vim.opt.runtimepath:prepend(plugin)
vim.cmd("runtime plugin/abridged.lua")
vim.o.columns, vim.o.lines = 80, 24

local Client, Process = require("abridged.client"), require("abridged.process")
local checks = 0

local function check(condition, failure, ...)
  checks = checks + 1
  if not condition then error(failure .. (select("#", ...) > 0 and ": " .. vim.inspect(...) or ""), 2) end
end

local function equal(found, expected, of)
  check(vim.deep_equal(found, expected), ("%s: %s in place of %s"):format(of, vim.inspect(found), vim.inspect(expected)))
end

--- Waits until a condition holds, and returns its value.
local function wait_for(what, condition)
  local value
  local done = vim.wait(15000, function()
    value = condition()
    return value
  end, 5)
  check(done, "waited in vain for " .. what)
  return value
end

--- Runs a body in a coroutine to its end, and returns its results; an error of it is thrown here.
local function run(body)
  local finished, ok, results = false, nil, nil
  coroutine.wrap(function()
    results = { pcall(body) }
    ok, finished = table.remove(results, 1), true
  end)()
  wait_for("the end of a coroutine", function() return finished end)
  if not ok then error(results[1], 0) end
  return unpack(results)
end

--- Returns the error that a body ends with.
local function fails(body)
  local ok, failure = pcall(run, body)
  check(not ok, "no error")
  return failure
end

-- Messages and choices of the user are recorded in the place of being shown.
local said, choices = {}, {}
vim.notify = function(text, level) table.insert(said, { text = text, level = level }) end
vim.ui.select = function(items, options, on_choice)
  local lines = vim.tbl_map(options.format_item, items)
  table.insert(choices, lines)
  on_choice(items[1], 1)
end

local function heard(pattern)
  for _, message in ipairs(said) do
    if message.text:find(pattern) then return message end
  end
end

local function wait_heard(pattern)
  return wait_for("the message " .. pattern, function() return heard(pattern) end)
end

--- A command, of which everything that was said before is forgotten.
local function command(line)
  said = {}
  vim.cmd(line)
end

local home = vim.fn.tempname()
vim.fn.mkdir(home, "p")
local env = { ABRIDGED_DATA_DIR = home .. "/data", ABRIDGED_CONFIG_DIR = home .. "/config", ABRIDGED_DISABLE_AUTOCOMPACT = "1" }
local daemon = assert(Process.find())

local function turn(number, words)
  return {
    { role = "user", content = ("What is step %d?"):format(number) },
    { role = "assistant", content = ("Step %d: "):format(number) .. ("Größe and 東京 stay. "):rep(words or 10), stopReason = "stop" },
  }
end

local function lines_of(buffer) return vim.api.nvim_buf_get_lines(buffer, 0, -1, false) end

local function has_line(buffer, pattern)
  for number, line in ipairs(lines_of(buffer)) do
    if line:find(pattern) then return number, line end
  end
end

--- The text of the line that shows the progress, if there is one.
local function progress_line()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative == "editor" then
      check(vim.api.nvim_win_get_width(window) <= 80, "the progress is wider than the screen")
      return lines_of(vim.api.nvim_win_get_buf(window))[1]
    end
  end
end

local tests = {}
local function test(name, body) table.insert(tests, { name = name, body = body }) end

test("types.lua is made from the schema", function()
  local types = dofile(plugin .. "/scripts/types.lua")
  local written = table.concat(vim.fn.readfile(types.target), "\n") .. "\n"
  check(types.text() == written, "types.lua is not fresh; its header in scripts/types.lua says how to write it")
end)

test("the client stays below 400 lines", function()
  check(#vim.fn.readfile(plugin .. "/lua/abridged/client.lua") < 400, "client.lua is too long")
end)

test("a missing binary", function()
  local client = Client.start({ binary = "/nowhere/abridged" })
  local failure = fails(function() client:await("ping") end)
  equal({ failure.code, failure.retryable }, { "binary_not_found", false }, "the error")
  check(tostring(failure):find("/nowhere/abridged", 1, true), "the place is not named", failure.message)
  check(tostring(failure):find("cargo install abridged", 1, true), "the next step is not named", failure.message)
  local closed = false
  client:close(function() closed = true end)
  wait_for("the close without a daemon", function() return closed end)
end)

test("calls, errors, cancels and the order of events", function()
  local asked = {}
  local client = Client.start({
    env = env,
    llm = function(params, respond)
      table.insert(asked, params.purpose)
      vim.schedule(function() respond("## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones") end)
    end,
    hooks = {
      session_before_compact = function(params)
        table.insert(asked, params.reason)
        return { action = "continue" }
      end,
      session_compacting = function(_, respond)
        vim.defer_fn(function() respond({ context = { "the harbour matters" } }) end, 1)
      end,
      session_compact_draft = function() error("this hook has a defect") end,
    },
  })
  local order, seen = {}, {}
  client:on("session/event", function() error("this listener has a defect") end)
  client:on("session/event", function(envelope) table.insert(seen, envelope) end)
  client:call("ping", nil, function() table.insert(order, "answer") end)
  table.insert(order, "call")
  local session = run(function() return client:await("session/new", { cwd = home, model = "editor/writer" }).session.sessionId end)
  equal(order, { "call", "answer" }, "a callback came before its call returned")

  local failure = fails(function() client:await("session/nothing", {}) end)
  equal({ failure.code, failure.rpc_code, failure.retryable }, { "method_not_found", -32601, false }, "the error of a method")
  failure = fails(function() client:await("session/status", { sessionId = "none" }) end)
  equal({ failure.code, failure.data.kind }, { "not_found", "session" }, "the error of a session")

  for number = 1, 20 do
    run(function() client:await("session/append", { sessionId = session, messages = turn(number) }) end)
  end
  local ended = run(function()
    return client:await("session/compact", { sessionId = session, keepRecentTokens = 100, wait = true })
  end)
  equal({ ended.outcome, ended.result.method }, { "completed", "llm" }, "the compaction")
  check(ended.result.summary:find("Go through the steps.", 1, true), "the summary is another one", ended.result.summary)
  check(vim.tbl_contains(asked, "manual") and vim.tbl_contains(asked, "compaction"), "hook and model were not asked", asked)
  local hooks = {}
  for number, envelope in ipairs(seen) do
    equal(envelope.seq, number, "the number of an event")
    if envelope.event.type == "hook_end" then hooks[envelope.event.hook] = envelope.event end
  end
  equal(hooks.session_before_compact.outcome, "ok", "the hook that returns its answer")
  equal(hooks.session_compacting.outcome, "ok", "the hook that responds later")
  check(hooks.session_compact_draft.errorMessage:find("this hook has a defect", 1, true), "the error of a hook is lost", hooks)
  check(heard("this listener has a defect"), "the error of a listener is not shown")

  -- Bytes of a buffer that are no UTF-8, in a text with characters that are.
  local entries = run(function()
    local message = { role = "user", content = "a\255é\237\160\128東\240\159\154\162\192" }
    client:await("session/append", { sessionId = session, messages = { message } })
    return client:await("session/entries", { sessionId = session, before = "leaf", limit = 1 }).entries
  end)
  equal(entries[1].message.content, "a\239\191\189é\239\191\189\239\191\189\239\191\189東\240\159\154\162\239\191\189", "the text")

  local large = ("0123456789"):rep(500000)
  local entry = run(function()
    local id = client:await("session/append", { sessionId = session, messages = { { role = "user", content = large } } }).entryIds[1]
    return client:await("session/entry", { sessionId = session, entryId = id }).entry
  end)
  check(entry.message.content == large, "a line of 5 MB does not come as it was")

  local messages = turn(1, 400)
  vim.list_extend(messages, turn(2, 400))
  local fitted = run(function()
    local this = coroutine.running()
    client:fit({ messages = messages, contextWindow = 3000, keepRecentTokens = 100 }, function(...) coroutine.resume(this, ...) end)
    local problem, answer = coroutine.yield()
    check(not problem, "nothing fits", problem)
    return answer
  end)
  check(fitted.tokensAfter < fitted.tokensBefore and fitted.summary, "it does not become smaller", fitted)

  local closed = false
  client:close(function() closed = true end)
  wait_for("the end of the daemon", function() return closed end)
  equal(fails(function() client:await("ping") end).code, "closed", "a call after the end")
end)

test("a turn of the daemon: tools, a cancel, a timeout", function()
  local cancelled, held = false, nil
  local client = Client.start({
    env = env,
    llm = function(params, _, signal)
      local last = params.messages[#params.messages]
      if last.role == "toolResult" then return "It says: " .. last.content[1].text end
      if vim.inspect(last):find("wait", 1, true) then
        held = true
        signal:on_cancel(function() cancelled = true end)
        return
      end
      local call = { type = "toolCall", id = "c1", name = "read", arguments = { path = "a.txt" } }
      return { message = { role = "assistant", content = { call }, stopReason = "toolUse" } }
    end,
    tools = function(params) return params.name .. " of " .. params.arguments.path end,
  })
  local tools = { { name = "read", description = "Reads a file.", inputSchema = { type = "object" } } }
  local session = run(function()
    return client:await("session/new", { cwd = home, model = "editor/writer", tools = tools }).session.sessionId
  end)
  local ends = {}
  client:on_session(session, function(event)
    if event.type == "turn_end" then table.insert(ends, event.outcome) end
  end)
  run(function() client:await("session/prompt", { sessionId = session, message = "Read it." }) end)
  wait_for("the end of the turn", function() return ends[1] end)
  local entries = run(function() return client:await("session/entries", { sessionId = session, types = { "message" } }).entries end)
  equal(entries[#entries].message.content[1].text, "It says: read of a.txt", "the answer after the tool")

  run(function() client:await("session/prompt", { sessionId = session, message = "Now wait." }) end)
  wait_for("the question", function() return held end)
  run(function() client:await("session/cancel", { sessionId = session }) end)
  wait_for("the cancel of the question", function() return cancelled end)
  equal(wait_for("the cancelled turn", function() return ends[2] end), "cancelled", "the second turn")

  -- A compaction whose model never answers ends only with its request.
  held, cancelled = nil, false
  run(function()
    for number = 1, 20 do client:await("session/append", { sessionId = session, messages = turn(number) }) end
    client:await("session/append", { sessionId = session, messages = { { role = "user", content = "wait" } } })
  end)
  local compact = { sessionId = session, keepRecentTokens = 1, wait = true }
  local failure = fails(function() client:await("session/compact", compact, { timeout_ms = 300 }) end)
  equal({ failure.code, failure.retryable }, { "timeout", true }, "the error of a timeout")
  wait_for("an idle session", function()
    return run(function() return client:await("session/status", { sessionId = session }) end).session.status.type == "idle"
  end)
  local answer
  local call = client:call("session/compact", compact, function(problem, result) answer = problem or result end)
  call:cancel()
  wait_for("the answer to a cancelled request", function() return answer end)
  check(answer.code == "request_cancelled" or answer.outcome == "cancelled", "it was not cancelled", answer)
  local closed = false
  client:close(function() closed = true end)
  wait_for("the end", function() return closed end)
end)

test("a session in memory ends with its daemon, and others are loaded again", function()
  local client, reconnected = Client.start({ env = env }), nil
  client:on("reconnected", function(params) reconnected = params.sessions end)
  local memory, stored, tokens = run(function()
    local memory = client:await("session/new", { cwd = home, ephemeral = true }).session.sessionId
    local stored = client:await("session/new", { cwd = home, contextWindow = 9000 }).session.sessionId
    client:await("session/append", { sessionId = stored, messages = turn(1) })
    return memory, stored, client:await("session/status", { sessionId = stored }).session.usage.contextTokens
  end)
  client.process:kill()
  wait_for("the restart", function() return reconnected end)
  equal({ reconnected[1].sessionId, reconnected[1].status, reconnected[1].error.code }, { memory, "lost", "not_found" }, "the first")
  equal({ reconnected[2].sessionId, reconnected[2].status }, { stored, "expired" }, "the second")
  local usage = reconnected[2].snapshot.session.usage
  equal(usage.contextWindow, 9000, "the window after the restart")
  check(usage.contextTokens > 0 and math.abs(usage.contextTokens - tokens) < tokens, "the size after the restart", { usage, tokens })
  equal(fails(function() client:await("session/status", { sessionId = memory }) end).code, "not_found", "a call to the lost session")
  local seen = {}
  client:on_session(stored, function(event) table.insert(seen, event.type) end)
  run(function() client:await("session/append", { sessionId = stored, messages = turn(2) }) end)
  wait_for("the events go on", function() return vim.tbl_contains(seen, "entry_appended") end)
  local closed = false
  client:close(function() closed = true end)
  wait_for("the end", function() return closed end)
end)

test("a daemon that keeps on ending", function()
  -- The first start is the real one. All others end at once.
  local script, marker = home .. "/unstable", home .. "/started"
  vim.fn.writefile({
    "#!/bin/sh",
    ('if [ -e "%s" ]; then echo "the disk is full" >&2; exit 3; fi'):format(marker),
    ('touch "%s"'):format(marker),
    ('exec "%s" "$@"'):format(daemon),
  }, script)
  uv.fs_chmod(script, 493)
  local client = Client.start({ binary = script, env = env })
  local exits = {}
  client:on("exited", function(exited) table.insert(exits, exited) end)
  run(function() client:await("session/new", { cwd = home, ephemeral = true }) end)
  client.process:kill()
  wait_for("the first exit", function() return exits[1] end)
  check(exits[1].restarting and exits[1].error.data.signal == 9, "the kill is not told", exits[1])
  local failure = fails(function() client:await("ping") end)
  equal({ failure.code, failure.data.exitCode, failure.data.stderr }, { "daemon_exited", 3, "the disk is full" }, "the error")
  equal(#exits, 6, "the number of exits: one kill and five starts in a minute")
  check(not exits[6].restarting, "it is started for ever")
  client:close()
end)

-- From here on the plugin itself, with one daemon.

local abridged = require("abridged")
local held = {} -- questions of the daemon for its model, which the tests answer
local session, buffer, path

local function answer_held()
  for _, respond in ipairs(held) do respond("## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones") end
  held = {}
end

test("a missing binary is one clear line", function()
  abridged.setup({ client = { binary = "/nowhere/abridged" } })
  command("Abridged sessions")
  local message = wait_heard("the daemon is not installed")
  check(not message.text:find("\n") and message.text:find(":checkhealth abridged", 1, true), "the line", message.text)
  vim.cmd("checkhealth abridged")
  check(has_line(0, "the daemon is not installed"), "the health check does not say so", lines_of(0))
  vim.cmd("bwipeout!")
  abridged.close()
  abridged.setup({ client = { binary = daemon, env = env, llm = function(_, respond) table.insert(held, respond) end } })
end)

test("without a session", function()
  command("Abridged compact")
  wait_heard("no session is open")
  equal(abridged.meter(), "", "the meter without a session")
  command("Abridged nonsense")
  wait_heard("there is no :Abridged nonsense; there are: cancel, close, compact")
  command("Abridged open /nowhere.jsonl")
  wait_heard("there is no session /nowhere.jsonl")
end)

test("completion", function()
  local list = vim.split(vim.trim(vim.fn.execute("Abridged")), "\n")
  equal(#list, 10, "the number of subcommands")
  for _, line in ipairs(list) do check(line:find("^:Abridged %l+ ") and #line < 80, "a line of the list", line) end
  equal(vim.fn.getcompletion("Abridged un", "cmdline"), { "undo", "unpin" }, "the subcommands")
  vim.fn.writefile({}, home .. "/some.jsonl")
  equal(vim.fn.getcompletion("Abridged open " .. home .. "/so", "cmdline"), { home .. "/some.jsonl" }, "the files")
end)

test("a file opens in place, and the meter has its numbers", function()
  path = home .. "/elsewhere.jsonl"
  local head = { type = "session", version = 3, id = "elsewhere", timestamp = "2026-01-01T00:00:00.000Z", cwd = home }
  vim.fn.writefile({ vim.json.encode(head) }, path)
  abridged.setup({ load = { model = "editor/writer", contextWindow = 16384 } })
  command("Abridged open " .. path)
  wait_for("the transcript", function() return vim.fn.bufname("%") == "abridged://elsewhere" and vim.b.abridged_session end)
  session, buffer = "elsewhere", vim.api.nvim_get_current_buf()
  check(not vim.bo.modifiable and vim.bo.filetype == "abridged", "the buffer is no transcript")
  local question, message = { role = "user", content = ("word "):rep(10000) }, turn(1)[2]
  message.usage = { input = 10000, output = 158, cacheRead = 0, cacheWrite = 0, totalTokens = 10158 }
  local events = {}
  vim.api.nvim_create_autocmd("User", { pattern = "AbridgedEvent", callback = function(fired)
    check(vim.fn.has("nvim-0.8") == 0 or fired.data.seq == abridged.event.seq, "the autocommand has other data")
    table.insert(events, abridged.event.event.type)
  end })
  run(function() abridged.client():await("session/append", { sessionId = session, messages = { question, message } }) end)
  wait_for("the update of the meter", function() return abridged.session().usage.source == "provider" end)
  equal(abridged.session().usage.contextTokens, 10071, "the input that the provider reported, and the answer")
  equal(abridged.meter(), "ctx 62% ▕████▉   ▏ 10k/16k", "the meter")
  equal(abridged.statusline(), "%#AbridgedMeter#ctx 62%% ▕████▉   ▏ 10k/16k%*", "the meter for a statusline")
  equal(vim.fn.luaeval("vim.api.nvim_eval_statusline(\"%{v:lua.require'abridged'.meter()}\", {}).str"), abridged.meter(), "the line")
  command("Abridged open " .. path) -- a second time
  wait_for("the transcript again", function() return vim.fn.line("$") > 3 end)
  equal({ said, vim.api.nvim_get_current_buf() }, { {}, buffer }, "an open session")
  check(vim.tbl_contains(events, "entry_appended") and vim.tbl_contains(events, "usage_updated"), "the autocommands", events)
end)

--- Goes to the first line until the whole session is there. Returns the number of pages.
local function page_back()
  local pages = 0
  while has_line(buffer, "^▲ earlier") do
    pages = pages + 1
    check(pages < 20, "the pages do not end")
    local before = vim.fn.line("$")
    vim.cmd("normal! gg")
    vim.cmd("doautocmd CursorMoved")
    wait_for("an earlier page", function() return vim.fn.line("$") > before end)
    check(vim.fn.line(".") > 1, "the cursor does not stay at its entry")
  end
  return pages
end

test("the transcript follows and pages back", function()
  run(function()
    for number = 2, 121 do abridged.client():await("session/append", { sessionId = session, messages = turn(number) }) end
  end)
  wait_for("the newest entry", function() return has_line(buffer, "Step 121: ") end)
  check(has_line(buffer, "^● user · %d%d:%d%d$") and has_line(buffer, "^● assistant"), "no roles")
  equal(vim.fn.line("."), vim.fn.line("$"), "the cursor does not follow")
  vim.cmd("normal! gg")
  local place = vim.fn.line(".")
  run(function() abridged.client():await("session/append", { sessionId = session, messages = turn(122) }) end)
  wait_for("the newest entry", function() return has_line(buffer, "Step 122: ") end)
  equal(vim.fn.line("."), place, "a cursor that is elsewhere moves")

  vim.cmd("edit")
  wait_for("the newest page alone", function() return has_line(buffer, "Step 122: ") and has_line(buffer, "^▲ earlier") end)
  check(not has_line(buffer, "Step 1: "), "more than a page was read")
  local pages = page_back()
  check(pages >= 3, "everything came in few pages", pages)
  local order = {}
  for _, line in ipairs(lines_of(buffer)) do
    local number = line:match("^Step (%d+): ")
    if number then table.insert(order, tonumber(number)) end
  end
  equal(#order, 122, "the number of answers")
  for place_of, number in ipairs(order) do equal(number, place_of, "the order of the entries") end
end)

test("a whole entry, and one that is cut", function()
  local output = table.concat(vim.tbl_map(function(number) return "line " .. number end, vim.fn.range(1, 40)), "\n")
  local call = { type = "toolCall", id = "c1", name = "bash", arguments = { command = "seq 40" } }
  run(function()
    abridged.client():await("session/append", { sessionId = session, messages = {
      { role = "user", content = "Count." },
      { role = "assistant", content = { call }, stopReason = "toolUse" },
      { role = "toolResult", toolCallId = "c1", toolName = "bash", content = output, isError = false },
      { role = "assistant", content = ("x"):rep(60000), stopReason = "stop" },
    } })
  end)
  wait_for("the result", function() return has_line(buffer, "^○ result of bash") end)
  check(has_line(buffer, "^▸ bash {"), "the call is not drawn")
  local cut = has_line(buffer, "^… 28 more lines")
  check(cut, "the result is not cut")
  wait_for("an entry that is announced by its type alone", function() return has_line(buffer, "^x+… %(58000 more bytes") end)
  vim.api.nvim_win_set_cursor(0, { cut, 0 })
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<CR>", true, false, true), "x", false)
  wait_for("the whole entry", function() return vim.fn.bufname("%"):find("/entry/") end)
  equal(#lines_of(0), 40, "the lines of the whole entry")
  vim.cmd("close")
end)

test("progress is shown, and a cancel ends it", function()
  equal(progress_line(), nil, "the progress before")
  command("Abridged compact keep the step numbers")
  wait_for("the question for a summary", function() return held[1] end)
  local line = wait_for("the progress", progress_line)
  check(line:find("^ abridged: compacting %d+%% ▕") and vim.fn.strdisplaywidth(line) <= 80, "the progress", line)
  check(abridged.meter():find("^compacting %d+%% ▕"), "the meter of a compaction", abridged.meter())
  vim.cmd("Abridged cancel")
  wait_heard("compaction cancelled")
  equal(progress_line(), nil, "the progress after the end")
  check(abridged.meter():find("^ctx "), "the meter after the end", abridged.meter())
  held = {}
end)

--- Compacts by the command to the end.
local function compact()
  command("Abridged compact")
  wait_for("the question for a summary", function() return held[1] end)
  wait_for("the end of the compaction", function()
    answer_held()
    return heard("compacted, ")
  end)
end

test("pins survive a compaction, and an undo brings everything back", function()
  local first = has_line(buffer, "^What is step 3%?$")
  vim.api.nvim_win_set_cursor(0, { first, 0 })
  command("Abridged pin")
  wait_heard("^abridged: pinned$")
  wait_for("the mark of the pin", function() return lines_of(buffer)[first - 1]:find(" · pinned$") end)

  vim.cmd("new")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { "Never touch é.lock here.", "other" })
  vim.cmd("normal! 0vf.f.") -- from the first character to the end of the sentence
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<Esc>", true, false, true), "x", false)
  command("'<,'>Abridged pin")
  wait_heard("^abridged: pinned$")
  vim.cmd("bwipeout!")
  wait_for("the pinned text", function() return has_line(buffer, "^○ pinned text · .* · pinned$") end)
  check(has_line(buffer, "^Never touch é%.lock here%.$"), "the selection is another text")

  local before = abridged.session().usage.contextTokens
  compact()
  check(heard("compacted, [%d.k]+ → [%d.k]+ tokens%. :Abridged undo takes it back"), "the message", said)
  equal(progress_line(), nil, "the progress after the end")
  wait_for("the marker", function() return has_line(buffer, "^◆ compaction, [%d.k]+ → [%d.k]+ tokens") end)
  local after = abridged.session().usage
  check(after.contextTokens < before, "the context is not smaller", after)
  local context = run(function() return vim.inspect(abridged.client():await("session/context", { sessionId = session }).messages) end)
  check(context:find("What is step 3?", 1, true) and context:find("Never touch é.lock here.", 1, true), "the pins are lost", context)
  check(not context:find("What is step 4?", 1, true), "nothing was compacted")

  -- A compaction that messages follow stays where it is. One at the end leaves the path.
  run(function() abridged.client():await("session/append", { sessionId = session, messages = turn(200) }) end)
  command("Abridged undo")
  wait_heard("the compaction is undone")
  wait_for("the mark of the undo", function() return has_line(buffer, "^◆ compaction, .* · undone$") end)
  compact()
  wait_for("the second marker", function() return has_line(buffer, "^◆ compaction, .* tokens · %d%d:%d%d$") end)
  command("Abridged undo")
  wait_heard("the compaction is undone")
  wait_for("a transcript without it", function() return not has_line(buffer, "^◆ compaction, .* tokens · %d%d:%d%d$") end)
  check(has_line(buffer, "^◆ compaction, .* · undone$"), "the first marker is lost")
  wait_for("the meter after the undo", function() return abridged.session().usage.contextTokens > after.contextTokens end)
  command("Abridged undo")
  wait_heard("there is no compaction on this branch that could be undone")

  page_back()
  first = has_line(buffer, "^What is step 3%?$")
  check(lines_of(buffer)[first - 1]:find(" · pinned$"), "the pin is not marked after a reload")
  vim.api.nvim_win_set_cursor(0, { first, 0 })
  command("Abridged unpin")
  wait_heard("the pin is removed")
  wait_for("the title without a mark", function() return not lines_of(buffer)[first - 1]:find("pinned") end)
  choices = {}
  vim.api.nvim_win_set_cursor(0, { first + 5, 0 })
  command("Abridged unpin") -- nothing is pinned at the cursor: there is a choice
  wait_heard("the pin is removed")
  equal(choices, { { "Never touch é.lock here." } }, "the choice of pins")
  command("Abridged unpin")
  wait_heard("nothing is pinned in this session")
end)

test("why and tree", function()
  vim.cmd("Abridged why")
  wait_for("the reason", function() return vim.fn.bufname("%"):find("/why$") end)
  check(has_line(0, "^The context has %d+ tokens"), "no sentence", lines_of(0))
  check(has_line(0, "^window +16k$") and has_line(0, "^threshold +%d+k$"), "no sizes", lines_of(0))
  vim.cmd("close")

  local nodes = run(function() return abridged.client():await("session/entries", { sessionId = session, limit = 6 }).entries end)
  run(function()
    abridged.client():await("session/append", { sessionId = session, parentEntryId = nodes[2].id, messages = turn(900) })
  end)
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
  vim.cmd("Abridged tree")
  wait_for("the tree", function() return vim.fn.bufname("%"):find("/tree$") end)
  check(has_line(0, "^├╮$") and has_line(0, "^╰╮$"), "no branches", vim.list_slice(lines_of(0), 1, 12))
  check(has_line(0, "^│ ○ user: What is step 3%?"), "the branch that was left", vim.list_slice(lines_of(0), 1, 12))
  local number = has_line(0, "^  ◉ assistant: Step 900: ")
  check(number, "the leaf", vim.list_slice(lines_of(0), -5, -1))
  vim.api.nvim_win_set_cursor(0, { number, 0 })
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<CR>", true, false, true), "x", false)
  wait_for("the entry", function() return vim.fn.bufname("%"):find("/entry/") end)
  check(has_line(0, "^Step 900: "), "another entry", lines_of(0))
  vim.cmd("bwipeout! | bwipeout!")
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
  wait_for("the transcript of the new branch", function() return has_line(buffer, "Step 900: ") and not has_line(buffer, "Step 122: ") end)
end)

test("a daemon that is killed during a compaction", function()
  local failure, reconnected
  abridged.client():on("reconnected", function(params) reconnected = params end)
  run(function()
    for number = 1, 30 do abridged.client():await("session/append", { sessionId = session, messages = turn(number, 150) }) end
  end)
  command("Abridged compact")
  wait_for("the question for a summary", function() return held[1] end)
  wait_for("the progress", progress_line)
  local context = { sessionId = session, wait = true } -- it waits for the end of the compaction
  abridged.client():call("session/context", context, function(problem) failure = problem end)
  run(function() abridged.client():await("ping") end)
  local pid = abridged.client().process.handle:get_pid()
  uv.kill(pid, "sigkill")
  wait_for("the end of the open request", function() return failure end)
  equal({ failure.code, failure.data.signal }, { "daemon_exited", 9 }, "the open request")
  equal(abridged.meter(), "ctx offline", "the meter without a daemon")
  equal(progress_line(), nil, "the progress without a daemon")

  -- This call waits for the new daemon.
  local status = run(function() return abridged.client():await("session/status", { sessionId = session }) end)
  check(abridged.client().process.handle:get_pid() ~= pid, "it is the old daemon")
  equal(status.operations, {}, "the operations of the new daemon")
  wait_for("the event", function() return reconnected end)
  equal({ #reconnected.sessions, reconnected.sessions[1].sessionId, reconnected.sessions[1].status }, { 1, session, "expired" }, "the report")
  wait_for("the meter of what the daemon has", function()
    local usage = run(function() return abridged.client():await("session/usage", { sessionId = session }) end)
    local share = ("^ctx %.0f%%%% "):format(usage.percent)
    return usage.contextTokens == abridged.session().usage.contextTokens and abridged.meter():find(share)
  end)
  wait_heard("the compaction failed: ")
  equal(progress_line(), nil, "the progress after the restart")
  held = {}
  run(function() abridged.client():await("session/append", { sessionId = session, messages = turn(31) }) end)
  wait_for("the transcript goes on", function() return has_line(buffer, "^Step 31: ") end)
  local _, count = table.concat(lines_of(buffer), "\n"):gsub("\nStep 31: ", "")
  equal(count, 1, "the number of copies of an entry after the restart")
end)

test("the list of sessions", function()
  local title = "A session with a title"
  run(function()
    local other = abridged.client():await("session/new", { cwd = home, title = title }).session.sessionId
    abridged.client():await("session/append", { sessionId = other, messages = turn(1) })
  end)
  choices = {}
  command("Abridged sessions " .. title)
  wait_for("the transcript of the choice", function() return vim.fn.bufname("%"):find("^abridged://") and has_line(0, "Step 1: ") end)
  check(#choices[1] == 1 and choices[1][1]:find(title, 1, true), "the list", choices)
  check(vim.fn.strdisplaywidth(choices[1][1]) <= 76, "a line that is wider than the screen", choices[1][1])
  vim.cmd("Abridged close")
  wait_for("the close", function() return not vim.fn.bufname("%"):find("^abridged://[^e]") end)
end)

test("the program in the README", function()
  local readme = table.concat(vim.fn.readfile(plugin .. "/README.md"), "\n")
  local program = readme:match("```lua\n(local abridged = .-)```")
  local printed
  local run_program = setfenv(assert(loadstring(program)), setmetatable({ print = function(text) printed = text end }, { __index = _G }))
  run_program()
  wait_for("its output", function() return printed end)
  check(printed:find('content = "Hello"', 1, true), "another context", printed)
  equal(vim.b.abridged_session, abridged.session().id, "the session of the buffer")
end)

test("health", function()
  vim.cmd("checkhealth abridged")
  check(has_line(0, "its version is abridged %d"), "no version", lines_of(0))
  check(has_line(0, "the handshake succeeds: protocol 1 of %d"), "no handshake", lines_of(0))
  vim.cmd("bwipeout!")
end)

test("the example of a chat", function()
  local closed = false
  abridged.close(function() closed = true end)
  wait_for("the end of the daemon", function() return closed end)
  vim.opt.runtimepath:append(home)
  vim.fn.mkdir(home .. "/lua")
  vim.fn.writefile(vim.fn.readfile(plugin .. "/examples/chat.lua"), home .. "/lua/chat.lua")
  env.ABRIDGED_DISABLE_AUTOCOMPACT = ""
  abridged.setup({ client = { env = env } })
  local chat, requests, refused = require("chat"), {}, false
  -- A model of 4,096 tokens that refuses what is longer, and writes summaries.
  chat.setup({ model = "tiny", window = 4096, complete = function(body, callback)
    local size, last = #vim.json.encode(body.messages) / 4, body.messages[#body.messages]
    table.insert(requests, size)
    if size > 4096 then
      refused = true
      return callback("This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.")
    end
    local summary = body.messages[1].role == "system"
    local text = summary and "## Goal\nTalk about harbours.\n\n## Progress\n### Done\n- [x] some answers" or "Rotterdam. " .. ("word "):rep(300)
    local response = { choices = { { message = { role = "assistant", content = text }, finish_reason = "stop" } } }
    check(last.role ~= "assistant", "the request ends with an answer")
    vim.schedule(function() callback(nil, response) end)
  end })
  for number = 1, 14 do
    local text
    chat.send("Name a harbour, please. " .. number, function(answer) text = answer end)
    wait_for("an answer", function() return text or heard("^abridged: .*maximum") end)
    check(text and text:find("^Rotterdam"), "the answer", said)
  end
  local usage = abridged.session().usage
  check(usage.contextTokens < 4096, "the context is over the window", usage)
  local query = { sessionId = chat.session, types = { "compaction" } }
  local entries = run(function() return abridged.client():await("session/entries", query).entries end)
  check(#entries > 0 and not refused, "nothing was compacted, or a request was refused", { #entries, refused, requests })
  check(entries[1].summary:find("Talk about harbours.", 1, true), "the summary is not by the model of the chat", entries[1].summary)
  wait_for("the transcript", function() return has_line(0, "^Name a harbour, please%. 14$") end)
end)

local function main()
  for _, one in ipairs(tests) do
    local ok, failure = xpcall(one.body, function(failure)
      return type(failure) == "string" and debug.traceback(failure, 2) or tostring(failure)
    end)
    if not ok then error(("neovim-plugin: %s: %s\nmessages: %s"):format(one.name, failure, vim.inspect(said)), 0) end
  end
  -- The daemon ends with its input.
  local client, closed = abridged.client(), false
  local pid = client.process.handle:get_pid()
  client:close(function() closed = true end)
  wait_for("the end of the daemon", function() return closed end)
  check(uv.kill(pid, 0) ~= 0, "the daemon still runs")
end

local ok, failure = pcall(main)
vim.fn.delete(home, "rf")
if ok then
  io.stdout:write(("neovim-plugin: ok, %d tests, %d checks\n"):format(#tests, checks))
else
  io.stderr:write(failure, "\n")
end
vim.cmd(ok and "qall!" or "cquit 1")
