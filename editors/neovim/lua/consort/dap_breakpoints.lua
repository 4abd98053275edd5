--- The signs of nvim-dap's breakpoints, which stay in the lines of their texts.
local M = {}
local GROUP = 'dap_breakpoints'

---@return { id: integer, lnum: integer, name: string, group: string, priority: integer }[]
local function signs_of(buf) return (vim.fn.sign_getplaced(buf, { group = GROUP })[1] or {}).signs or {} end

local function place(buf, sign, line) vim.fn.sign_place(sign.id, sign.group, sign.name, buf, { lnum = line, priority = sign.priority }) end

--- Returns a function that moves the signs of a buffer from their present lines, also those of
--- stops, and has nvim-dap's sessions set the breakpoints anew; nil if there are none.
---@param buf integer
---@return fun(line_now: fun(line: integer): integer)?
function M.keep(buf)
  local all = (vim.fn.sign_getplaced(buf, { group = '*' })[1] or {}).signs or {}
  local signs = vim.tbl_filter(function(sign) return sign.group == GROUP or sign.name == 'DapStopped' end, all)
  if #signs == 0 then return end
  return function(line_now)
    for _, sign in ipairs(signs) do place(buf, sign, line_now(sign.lnum)) end
    local dap = package.loaded.dap
    local set = dap and dap.sessions and require('dap.breakpoints').get(buf)
    for _, session in pairs(set and dap.sessions() or {}) do session:set_breakpoints(set) end
  end
end

--- Registers the listeners of this module for all sessions of a type. When the adapter reports a
--- breakpoint's change, nvim-dap puts the sign into the line in which the breakpoint was set, which
--- edits may have moved since.
---@param dap table the module of nvim-dap
---@param kind string the type, as in a configuration of nvim-dap
function M.follow(dap, kind)
  local before = {} ---@type table<integer, table<integer, integer>> by buffer and sign: the line
  dap.listeners.before.event_breakpoint[kind] = function(session)
    before = {}
    if (session.config or {}).type ~= kind then return end
    for _, one in ipairs(vim.fn.sign_getplaced()) do
      before[one.bufnr] = {}
      for _, sign in ipairs(signs_of(one.bufnr)) do before[one.bufnr][sign.id] = sign.lnum end
    end
  end
  dap.listeners.after.event_breakpoint[kind] = function()
    for buf, lines in pairs(before) do
      for _, sign in ipairs(signs_of(buf)) do
        if lines[sign.id] and lines[sign.id] ~= sign.lnum then place(buf, sign, lines[sign.id]) end
      end
    end
  end
end

return M
