--- Writes lua/abridged/types.lua from protocol/schema.json:
--- nvim --clean --headless -c 'lua dofile("clients/neovim/scripts/types.lua").write()' -c 'qall!'

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local protocol, target = here .. "/../../../protocol/", here .. "/../lua/abridged/types.lua"

local M = {}

local function read(path) return vim.json.decode(table.concat(vim.fn.readfile(path), "\n")) end

local function sorted(map)
  local keys = vim.tbl_keys(map)
  table.sort(keys)
  return keys
end

--- The description of a schema in one line.
local function words(schema)
  local text = type(schema.description) == "string" and schema.description or ""
  return (text:gsub("%s*\n%s*", " "))
end

local primitives = { string = "string", integer = "integer", number = "number", boolean = "boolean", null = "nil" }

--- A member of a union of objects is named by its tag.
local function tag_of(schema, number)
  for _, name in ipairs({ "type", "code", "action", "role" }) do
    local member = (schema.properties or {})[name]
    if member and member.const then return member.const end
  end
  return tostring(number)
end

--- Objects inside of others become classes of their own, which are written before them.
local function writer()
  local lines = {}
  local type_of, class

  local function union(schemas, name)
    local members, seen = {}, {}
    for number, schema in ipairs(schemas) do
      local member = type_of(schema, name .. "." .. tag_of(schema, number))
      if not seen[member] then table.insert(members, member) end
      seen[member] = true
    end
    return table.concat(members, "|")
  end

  function type_of(schema, name)
    if schema["$ref"] then return "abridged." .. schema["$ref"]:match("[^/]+$") end
    if schema.const ~= nil then return ("%q"):format(schema.const) end
    if schema.enum then return table.concat(vim.tbl_map(function(value) return ("%q"):format(value) end, schema.enum), "|") end
    if schema.oneOf or schema.anyOf then return union(schema.oneOf or schema.anyOf, name) end
    local kinds = type(schema.type) == "table" and schema.type or { schema.type }
    local names = vim.tbl_map(function(kind)
      if kind == "array" then
        local item = type_of(schema.items or {}, name)
        return (item:find("|", 1, true) and "(%s)[]" or "%s[]"):format(item)
      end
      if kind ~= "object" then return primitives[kind] end
      if schema.properties then return class(schema, name) end
      local values = schema.additionalProperties
      return type(values) == "table" and ("table<string, %s>"):format(type_of(values, name)) or "table"
    end, kinds)
    return #names > 0 and table.concat(names, "|") or "any"
  end

  function class(schema, name)
    local required, fields = {}, {}
    for _, member in ipairs(schema.required or {}) do required[member] = true end
    for _, member in ipairs(sorted(schema.properties)) do
      local property = schema.properties[member]
      local kind = type_of(property, name .. "." .. member)
      local optional = not required[member] or kind:find("%f[%w]nil%f[%W]")
      kind = kind:gsub("|nil%f[%W]", "")
      table.insert(fields, vim.trim(("---@field %s%s %s %s"):format(member, optional and "?" or "", kind, words(property))))
    end
    table.insert(lines, "")
    table.insert(lines, vim.trim(("---@class abridged.%s %s"):format(name, words(schema))))
    vim.list_extend(lines, fields)
    return "abridged." .. name
  end

  local function definition(schema, name)
    if schema.properties then return class(schema, name) end
    local kind = type_of(schema, name)
    table.insert(lines, "")
    if words(schema) ~= "" then table.insert(lines, "--- " .. words(schema)) end
    table.insert(lines, ("---@alias abridged.%s %s"):format(name, kind))
  end
  return lines, definition
end

--- The text of types.lua.
function M.text()
  local schema = read(protocol .. "schema.json")
  local lines, definition = writer()
  vim.list_extend(lines, {
    "---@meta",
    "-- The types of the protocol, for LuaLS. Made from protocol/schema.json by scripts/types.lua; do not edit.",
    "--",
    "-- Unknown fields may come with every object, and unknown values of a union from a newer daemon.",
  })
  for _, name in ipairs(sorted(schema["$defs"])) do definition(schema["$defs"][name], name) end
  vim.list_extend(lines, { "", "---@class abridged.Calls The requests by their methods." })
  for _, method in ipairs(read(protocol .. "openrpc.json").methods) do
    local of = schema.properties[method.name].properties
    local function named(part) return part["$ref"] and "abridged." .. part["$ref"]:match("[^/]+$") or "nil" end
    local forms = of.result and {
      "---@field call fun(self: abridged.Client, method: %q, params?: %s, "
        .. "callback?: fun(failure: abridged.Error?, result: %s), options?: table): abridged.Call",
      "---@field await fun(self: abridged.Client, method: %q, params?: %s, options?: table): %s",
    } or { "---@field notify fun(self: abridged.Client, method: %q, params?: %s)" }
    for _, form in ipairs(forms) do
      table.insert(lines, form:format(method.name, named(of.params), of.result and named(of.result)))
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

function M.write() vim.fn.writefile(vim.split(vim.trim(M.text()), "\n"), target) end

M.target = target

return M
