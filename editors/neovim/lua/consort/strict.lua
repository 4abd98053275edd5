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

--- Returns the parts of the lines of a blockwise operator, the last line first: the row and the
--- byte columns, 0-based, end exclusive. A line that ends before the block has an empty part.
---@return integer[][]
local function block()
  local parts = {}
  for _, pair in ipairs(vim.fn.getregionpos(vim.fn.getpos("'["), vim.fn.getpos("']"), { type = '\22' })) do
    local row, from, to = pair[1][2], pair[1][3] - 1, pair[2][3] - 1
    if from < 0 then
      table.insert(parts, 1, { row - 1, 0, 0 })
    else
      -- The last column is within the last character.
      local line = vim.fn.getline(row)
      local last = to + vim.str_utf_start(line, to + 1)
      table.insert(parts, 1, { row - 1, from, last + #vim.fn.strpart(line, last, 1, true) })
    end
  end
  return parts
end

--- Deletes the parts of the lines in a block, each strictly. The register gets all of them.
local function delete_block()
  local top, texts = nil, {}
  for _, part in ipairs(block()) do
    local row, from, to = unpack(part)
    local done, text = false, ''
    if to > from then done, text = delete('deleteForward', { row, from, row, to }) end
    if done == nil then break end -- after a message
    table.insert(texts, 1, text or '')
    top = { row + 1, from }
  end
  if #texts > 0 then vim.fn.setreg(register, texts, 'b') end
  if top then vim.api.nvim_win_set_cursor(0, top) end
end

--- Deletes the text of a motion or selection, as the 'operatorfunc' of `d`.
---@param kind 'line'|'char'|'block'
function M.operator(kind)
  local from, to = vim.api.nvim_buf_get_mark(0, '['), vim.api.nvim_buf_get_mark(0, ']')
  local count = vim.api.nvim_buf_line_count(0)
  if kind == 'block' then return delete_block() end
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
