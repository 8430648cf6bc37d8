--- The drawing of a session's tree, as lines.

local M = {}

--- Groups the visible nodes by their nearest visible parent; 0 is the root.
local function children_of(nodes)
  local parents, children = {}, { [0] = {} }
  for _, node in ipairs(nodes) do
    local parent = parents[node.parentId or 0] or 0
    parents[node.id] = node.hidden and parent or node.id
    if not node.hidden then
      children[node.id] = {}
      table.insert(children[parent], node)
    end
  end
  return children
end

local function describe(node, leaf)
  local kind = node.role or node.customType or node.type
  local label = node.label and (" [%s]"):format(node.label) or ""
  local undone = node.undone and " (undone)" or ""
  local preview = vim.fn.strcharpart(node.preview, 0, 60)
  return ("%s %s%s: %s%s"):format(node.id == leaf and "◉" or node.active and "●" or "○", kind, undone, preview, label)
end

--- Draws the nodes of `session/tree`. Entries of one branch are below each other; a branch that begins is indented.
---@param nodes abridged.TreeNode[]
---@return string[] lines
---@return string[] ids The entry of each line.
---@return integer? at The line of the newest entry of the active path.
function M.draw(nodes)
  local children, lines, ids, leaf, at = children_of(nodes), {}, {}, nil, nil
  for _, node in ipairs(nodes) do
    if node.active and not node.hidden then leaf = node.id end
  end
  local function chain(node, indent)
    while node do
      table.insert(lines, indent .. describe(node, leaf))
      table.insert(ids, node.id)
      if node.id == leaf then at = #lines end
      local following = children[node.id]
      if #following > 1 then
        for index, branch in ipairs(following) do
          table.insert(lines, indent .. (index < #following and "├╮" or "╰╮"))
          table.insert(ids, branch.id)
          chain(branch, indent .. (index < #following and "│ " or "  "))
        end
        return
      end
      node = following[1]
    end
  end
  for _, root in ipairs(children[0]) do chain(root, "") end
  return lines, ids, at
end

return M
