--- Deletion that leaves lists, strings and comments intact: `vim.g.consort_strict`.
local M = {}

local function delete(...) return require('consort.structure').delete(...) end

--- Deletes as many characters as the count before the key says, for `x` and `X`. Stops at the start
--- and at the end of the line.
local function characters(action)
  local register = vim.v.register
  for _ = 1, vim.v.count1 do
    if action == 'deleteForward' and vim.fn.col('.') >= vim.fn.col('$') then return end
    if action == 'deleteBackward' and vim.fn.col('.') == 1 then return end
    if not delete(action, nil, register) then return end
  end
end

local register = '"'

--- Deletes the text of a motion or selection, as the 'operatorfunc' of `d`.
---@param kind 'line'|'char'|'block'
function M.operator(kind)
  local from, to = vim.api.nvim_buf_get_mark(0, '['), vim.api.nvim_buf_get_mark(0, ']')
  local count = vim.api.nvim_buf_line_count(0)
  if kind == 'line' then
    if to[1] < count then
      delete('deleteForward', { from[1] - 1, 0, to[1], 0 }, register)
    else
      local last = vim.fn.getline(to[1])
      delete('deleteForward', { from[1] - 1, 0, to[1] - 1, #last }, register)
    end
  else
    local line = vim.fn.getline(to[1])
    local length = #vim.fn.strpart(line, to[2], 1, true)
    delete('deleteForward', { from[1] - 1, from[2], to[1] - 1, to[2] + math.max(1, length) }, register)
  end
end

--- Returns the function of an expression mapping that calls `M.operator` by the keys `g@...`.
local function operate(keys)
  return function()
    register = vim.v.register
    vim.o.operatorfunc = "v:lua.require'consort.strict'.operator"
    return keys
  end
end

--- Maps the keys that delete, such as `x`, `d` and `<BS>`, to strict deletion in a buffer.
---@param buf integer
function M.use(buf)
  local function map(mode, keys, about, run, expr)
    vim.keymap.set(mode, keys, run, { buffer = buf, expr = expr, desc = 'Consort: ' .. about })
  end
  map('n', 'x', 'delete characters strictly', function() characters('deleteForward') end)
  map('n', 'X', 'delete characters before strictly', function() characters('deleteBackward') end)
  map('n', 'D', 'delete to the end of the line or list', function() require('consort.structure').act('killLine', vim.v.register) end)
  map('n', 'd', 'delete strictly', operate('g@'), true)
  map('n', 'dd', 'delete lines strictly', operate('g@_'), true)
  map('x', 'd', 'delete strictly', operate('g@'), true)
  map('x', 'x', 'delete strictly', operate('g@'), true)
  map('i', '<BS>', 'delete the character before strictly', function() delete('deleteBackward') end)
  map('i', '<C-h>', 'delete the character before strictly', function() delete('deleteBackward') end)
  map('i', '<Del>', 'delete the character strictly', function() delete('deleteForward') end)
end

return M
