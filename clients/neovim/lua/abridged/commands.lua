--- The command `:Abridged`.

local abridged = require("abridged")
local meter = require("abridged.meter")
local transcript = require("abridged.transcript")
local tree = require("abridged.tree")
local ui = require("abridged.ui")

local M = {}

--- The current session; without one, an error that says how to open one.
local function current()
  local session = abridged.session()
  if not session then error("no session is open. :Abridged sessions lists them, and :Abridged open {path} opens one", 0) end
  return session
end

--- Sends a request about the current session.
local function ask(method, params)
  return abridged.client():await(method, vim.tbl_extend("error", { sessionId = current().id }, params or {}))
end

--- Shows a choice and waits for it.
local function choose(items, options)
  local this = coroutine.running()
  vim.ui.select(items, options, vim.schedule_wrap(function(item) coroutine.resume(this, item) end))
  return coroutine.yield()
end

--- The selected text of a command with a range: of the last visual selection, or whole lines.
local function selection(command)
  local first, last = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local visual = first[2] == command.line1 and last[2] == command.line2
  if not visual or vim.fn.visualmode() ~= "v" then
    return table.concat(vim.api.nvim_buf_get_lines(0, command.line1 - 1, command.line2, false), "\n")
  end
  local line = vim.api.nvim_buf_get_lines(0, last[2] - 1, last[2], false)[1]
  -- The last character may have several bytes.
  local stop = math.min(last[3], #line)
  stop = stop + #(line:sub(stop + 1):match("^[\128-\191]*"))
  return table.concat(vim.api.nvim_buf_get_text(0, first[2] - 1, first[3] - 1, last[2] - 1, stop, {}), "\n")
end

--- The entries that are pinned, with the beginning of their texts.
local function pins()
  local found, cursor = {}, nil
  repeat
    local page = ask("session/entries", { types = { "custom", "custom_message" }, since = cursor })
    for _, entry in ipairs(page.entries) do
      local id = (entry.data or {}).entryId or entry.id
      if entry.customType == "abridged.pin" then found[id] = true end
      if entry.customType == "abridged.unpin" then found[id] = nil end
    end
    cursor = page.nextCursor
  until not cursor
  return vim.tbl_map(function(id)
    local entry = ask("session/entry", { entryId = id }).entry
    local text = require("abridged.render").content(entry.message or entry)
    return { id = id, text = vim.fn.strcharpart((text:gsub("%s+", " ")), 0, 70) }
  end, vim.tbl_keys(found))
end

--- The params of `pin` and `unpin`: the selection, or the entry under the cursor.
local function target(command)
  if command.range > 0 then return { text = selection(command) } end
  local shown = transcript.of(0)
  local id = shown and shown:entry_at_cursor()
  return id and { entryId = id }
end

local subcommands = {}

subcommands.open = {
  help = "{path|id}: open a session; with a bang for reading only",
  complete = function(lead)
    local ids = vim.tbl_filter(function(id) return vim.startswith(id, lead) end, vim.tbl_keys(abridged.sessions()))
    return vim.list_extend(ids, vim.fn.getcompletion(lead, "file"))
  end,
  run = function(argument, command)
    if argument == "" then error("a path or an id is missing: :Abridged open {path|id}; :Abridged sessions lists the sessions", 0) end
    abridged.open((argument:gsub("\\ ", " ")), { read_only = command.bang or nil })
  end,
}

subcommands.sessions = {
  help = "[text]: choose a session among the stored ones",
  run = function(argument)
    local list = abridged.client():await("session/list", { search = argument ~= "" and argument or nil }).sessions
    if #list == 0 then return ui.info("no session is stored. :Abridged open {path} opens a file") end
    local chosen = choose(list, {
      prompt = "Session",
      kind = "abridged_session",
      format_item = function(session)
        local title = session.title or session.preview or session.sessionId
        local percent = session.percent and ("%3.0f%%"):format(session.percent) or "   ?"
        local cwd = vim.fn.pathshorten(vim.fn.fnamemodify(session.cwd, ":~"))
        local facts = ("%s  %s  %s  "):format(session.updatedAt:sub(1, 10), percent, cwd)
        local room = vim.o.columns - vim.fn.strdisplaywidth(facts) - 6 -- the choice has a number before it
        return facts .. vim.fn.strcharpart((title:gsub("%s+", " ")), 0, math.max(room, 20))
      end,
    })
    if chosen then abridged.open(chosen.path) end
  end,
}

subcommands.compact = {
  help = "[instructions]: summarize the older part of the context",
  run = function(argument) ask("session/compact", { instructions = argument ~= "" and argument or nil }) end,
}

subcommands.undo = {
  help = "take the last compaction back",
  run = function()
    local usage = ask("session/undo_compaction").usage
    ui.info(("the compaction is undone; the context has %s tokens"):format(meter.tokens(usage.contextTokens)))
  end,
}

subcommands.pin = {
  help = "keep the entry under the cursor, or the selection",
  run = function(_, command)
    local pinned = target(command)
    if not pinned then error("no entry is under the cursor; go to one in the transcript, or select a text", 0) end
    ask("session/pin", pinned)
    ui.info("pinned")
  end,
}

subcommands.unpin = {
  help = "remove a pin: of the entry, the selection, or a choice",
  run = function(_, command)
    local pinned, all = target(command), pins()
    local is_pinned = vim.tbl_map(function(pin) return pin.id end, all)
    if not pinned or (pinned.entryId and not vim.tbl_contains(is_pinned, pinned.entryId)) then
      if #all == 0 then error("nothing is pinned in this session", 0) end
      local chosen = choose(all, { prompt = "Remove the pin of", format_item = function(pin) return pin.text end })
      if not chosen then return end
      pinned = { entryId = chosen.id }
    end
    ask("session/unpin", pinned)
    ui.info("the pin is removed")
  end,
}

subcommands.why = {
  help = "show the sizes, and why it is compacted now or not",
  run = function()
    local session, usage = current().id, ask("session/usage")
    local lines = { usage.why, "" }
    local function size(name, tokens) table.insert(lines, ("%-16s %8s"):format(name, tokens and meter.tokens(tokens) or "–")) end
    size("context", usage.contextTokens)
    for _, part in ipairs({ "system", "tools", "summary", "messages" }) do size("  " .. part, usage.breakdown[part]) end
    size("threshold", usage.thresholdTokens)
    size("window", usage.contextWindow)
    table.insert(lines, "")
    table.insert(lines, ("window from: %s; size from: %s"):format(usage.windowSource, usage.source))
    ui.scratch("abridged://" .. session .. "/why", lines)
  end,
}

subcommands.tree = {
  help = "draw the tree of the session; <CR> shows an entry",
  run = function()
    local session, nodes, cursor = current().id, {}, nil
    repeat
      local page = ask("session/tree", { cursor = cursor })
      vim.list_extend(nodes, page.nodes)
      cursor = page.nextCursor
    until not cursor
    local lines, ids, at = tree.draw(nodes)
    local buffer = ui.scratch("abridged://" .. session .. "/tree", lines)
    vim.b[buffer].abridged_session = session
    vim.wo.wrap = false
    if at then vim.api.nvim_win_set_cursor(0, { at, 0 }) end
    vim.keymap.set("n", "<CR>", function()
      local id = ids[vim.fn.line(".")]
      abridged.run(function() transcript.show(abridged.client(), session, id) end)
    end, { buffer = buffer, desc = "Show the whole entry" })
  end,
}

subcommands.cancel = {
  help = "stop the operation that runs",
  run = function()
    if #ask("session/cancel").cancelled == 0 then ui.info("nothing runs in this session") end
  end,
}

subcommands.close = {
  help = "close the session",
  run = function()
    local id = current().id
    ask("session/close")
    local buffer = vim.fn.bufnr("^abridged://" .. id .. "$")
    if buffer ~= -1 then vim.api.nvim_buf_delete(buffer, { force = true }) end
  end,
}

local function names()
  local all = vim.tbl_keys(subcommands)
  table.sort(all)
  return all
end

--- Shows the subcommands with their meaning.
local function list()
  for _, name in ipairs(names()) do
    vim.api.nvim_echo({ { (":Abridged %-9s"):format(name), "Statement" }, { subcommands[name].help } }, false, {})
  end
end

--- Runs `:Abridged {subcommand} {argument}`. Without a subcommand it lists them.
function M.run(command)
  local name, argument = command.args:match("^(%S*)%s*(.-)%s*$")
  if name == "" then return list() end
  local subcommand = subcommands[name]
  abridged.run(function()
    if subcommand then return subcommand.run(argument, command) end
    error(("there is no :Abridged %s; there are: %s"):format(name, table.concat(names(), ", ")), 0)
  end)
end

--- Completes the subcommands and their arguments.
function M.complete(lead, line)
  local name = line:match("^%S*%s+(%S+)%s")
  if name then
    local complete = (subcommands[name] or {}).complete
    return complete and complete(lead) or {}
  end
  return vim.tbl_filter(function(other) return vim.startswith(other, lead) end, names())
end

return M
