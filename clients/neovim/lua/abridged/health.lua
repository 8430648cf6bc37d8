--- `:checkhealth abridged`.

local process = require("abridged.process")

local M = {}

-- The names have no prefix since Neovim 0.10.
local health = vim.health or require("health")
local start, ok, warn = health.start or health.report_start, health.ok or health.report_ok, health.warn or health.report_warn
local fail, info = health.error or health.report_error, health.info or health.report_info

local INSTALL = { "cargo install abridged", "or name it: require('abridged').setup({ binary = '/path/to/abridged' })" }

function M.check()
  start("abridged")
  local abridged = require("abridged")
  if vim.fn.has("nvim-0.7.2") == 1 then
    ok("Neovim is 0.7.2 or later")
  else
    fail("Neovim is older than 0.7.2", { "install a newer Neovim" })
  end
  local path, missing = process.find(abridged.options.client.binary)
  if not path then return fail(tostring(missing), INSTALL) end
  ok("the daemon is " .. path)
  local version = vim.trim(vim.fn.system({ path, "--version" }))
  if vim.v.shell_error ~= 0 then return fail(path .. " --version fails: " .. version, INSTALL) end
  ok("its version is " .. version)

  local client, answer, failure, answered = abridged.client(), nil, nil, false
  client:call("session/list", { limit = 1000 }, function(problem, result)
    failure, answer, answered = problem, result, true
  end)
  vim.wait(10000, function() return answered end, 10)
  if not answered then return fail("the daemon does not answer within ten seconds", { "run: abridged doctor" }) end
  if failure then return fail("the handshake fails: " .. tostring(failure), { "run: abridged doctor" }) end
  ok(("the handshake succeeds: protocol %d of %s"):format(client.server.protocolVersion, client.server.serverInfo.version))
  info(("data folder: %s, %d sessions"):format(client.server.dataDir, #answer.sessions))
  if client.options.llm then
    ok("summaries can be written by a model of this Neovim (llm)")
  else
    info("no model of this Neovim writes summaries; `abridged doctor` lists the models that the daemon asks itself")
  end
  for _, session in pairs(abridged.sessions()) do
    if session.offline then warn("session " .. session.id .. " is offline", { "restart Neovim, or open it again" }) end
  end
end

return M
