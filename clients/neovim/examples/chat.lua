--- A chat for any OpenAI-compatible server, in which abridged keeps the context. Put it on the 'runtimepath' as
--- lua/chat.lua, then: require("chat").setup({ url = "http://localhost:11434/v1", model = "qwen3:8b", window = 16384 })
--- and :Chat How do the tests go?

local abridged = require("abridged")
local uv = vim.uv or vim.loop

local M = { options = {} }

--- Asks the server for an answer to a body of Chat Completions. The callback gets an error or the response.
---@param callback fun(failure: string?, response: table?)
function M.complete(body, callback)
  body.model = M.options.model
  local stdin, stdout, parts = uv.new_pipe(false), uv.new_pipe(false), {}
  local arguments = { "--silent", "--show-error", "--json", "@-", M.options.url .. "/chat/completions" }
  if vim.env.API_KEY then vim.list_extend(arguments, { "--header", "Authorization: Bearer " .. vim.env.API_KEY }) end
  local started, problem = uv.spawn("curl", { args = arguments, stdio = { stdin, stdout, nil } }, function() end)
  if not started then return callback("curl does not start: " .. problem) end
  stdout:read_start(vim.schedule_wrap(function(_, chunk)
    if chunk then return table.insert(parts, chunk) end
    stdout:close()
    local ok, response = pcall(vim.json.decode, table.concat(parts), { luanil = { object = true } })
    if ok and response.choices then return callback(nil, response) end
    callback(ok and response.error and response.error.message or "no answer of " .. M.options.url)
  end))
  stdin:write(vim.json.encode(body), function() stdin:close() end)
end

--- The same in a coroutine. The session gets a refusal as an answer, since the daemon may make room for a next try.
local function answer(body)
  local this = coroutine.running()
  M.complete(body, vim.schedule_wrap(function(...) coroutine.resume(this, ...) end))
  return coroutine.yield()
end

--- Writes a summary for the daemon, by the same model.
local function summarize(params, respond)
  local messages = { { role = "system", content = params.system } }
  for _, message in ipairs(params.messages) do
    table.insert(messages, { role = message.role, content = message.content[1].text })
  end
  M.complete({ messages = messages, max_tokens = params.maxTokens }, function(failure, response)
    if failure then return respond(nil, failure) end
    respond(response.choices[1].message.content)
  end)
end

function M.setup(options)
  M.options = options
  M.complete = options.complete or M.complete
  abridged.setup({ client = { llm = summarize } })
  vim.api.nvim_create_user_command("Chat", function(command) M.send(command.args) end, { nargs = "+" })
end

--- Sends a message of the user, and appends the answer. `done` gets the text of the answer.
---@param done? fun(text: string)
function M.send(text, done)
  local client = abridged.client()
  abridged.run(function()
    if not M.session then
      local params = { cwd = vim.fn.getcwd(), model = { provider = "chat", id = M.options.model } }
      params.contextWindow = M.options.window
      M.session = client:await("session/new", params).session.sessionId
      vim.cmd("edit abridged://" .. M.session) -- the transcript follows by itself
    end
    local function report(messages, facts)
      local params = { sessionId = M.session, format = "openai_chat", messages = messages }
      return client:await("session/append", vim.tbl_extend("error", params, facts or {})).next
    end
    report({ { role = "user", content = text } })
    while true do
      local context = client:await("session/context", { sessionId = M.session, format = "openai_chat", wait = true })
      local failure, response = answer(context.body)
      local choice = response and response.choices[1]
      local next_step = choice
          and report({ choice.message }, { usage = response.usage, stopReason = choice.finish_reason, contextId = context.contextId })
        or report({}, { errorMessage = failure, contextId = context.contextId })
      if not next_step.willRetry then
        if failure then error(failure, 0) end
        return done and done(choice.message.content)
      end
    end
  end)
end

return M
