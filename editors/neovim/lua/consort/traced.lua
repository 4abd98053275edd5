--- A buffer that shows the calls of traced functions as a tree. While a window shows the buffer,
--- the calls are requested again each second.
require('consort.colours')
local client_of = require('consort.client')
local escaped = require('consort.escaped')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.traced')
local TICK = 1000 -- ms
local PAGE = 1000 -- the maximum number of calls that are shown
local DEEPEST = 30 -- levels of indentation
local HINT = '<CR> inspects an argument or a value · x forgets the calls · q closes'

---@class consort.TracedView
---@field buf integer
---@field origin integer the buffer whose language client gets the requests
---@field lines table<integer, table> calls by line, 1-based
---@field text string[] the lines of the buffer
---@field timer? uv.uv_timer_t
---@field asking? boolean a request is in progress
---@field clearing? boolean the calls are to be cleared once the request in progress is answered

---@type consort.TracedView?
local view

local function texts(values)
  return vim.tbl_map(function(value) return value.text end, values)
end

--- Returns the lines that show an answer to `consort.tracedCalls`, each call indented below the
--- call that made it, and the calls by line, 1-based.
---@param answer table
---@return string[] lines
---@return table<integer, table> calls
function M.lines(answer)
  local lines, calls, depths = {}, {}, {}
  table.insert(lines, #answer.names == 0 and 'Nothing is traced: `:Consort trace NAME` begins it' or 'Traced: ' .. table.concat(answer.names, ', '))
  table.insert(lines, '')
  for _, call in ipairs(answer.calls) do
    local parent = type(call.parent) == 'number' and depths[call.parent]
    local depth = parent and parent + 1 or 0
    depths[call.call] = depth
    local ending = ({ open = '…', left = 'left by a non-local exit' })[call.outcome] or '⇒ ' .. (#call.values == 0 and 'no values' or table.concat(texts(call.values), ' ; '))
    local form = ('(%s)'):format(table.concat(vim.list_extend({ call.name }, texts(call.arguments)), ' '))
    table.insert(lines, escaped.line(('  '):rep(math.min(depth, DEEPEST)) .. form .. ' ' .. ending))
    calls[#lines] = call
  end
  return lines, calls
end

local function draw(answer)
  local lines, calls = M.lines(answer)
  view.lines = calls
  if vim.deep_equal(lines, view.text) then return end
  view.text = lines
  vim.bo[view.buf].modifiable = true
  vim.api.nvim_buf_set_lines(view.buf, 0, -1, false, lines)
  vim.bo[view.buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(view.buf, namespace, 0, -1)
  vim.api.nvim_buf_set_extmark(view.buf, namespace, 0, 0, { end_col = #lines[1], hl_group = 'Title' })
  -- The cursor is at the first call from the start, unless the person has moved it.
  local win, first = vim.fn.bufwinid(view.buf), calls[3] and 3
  if first and not view.had_calls and win ~= -1 and vim.api.nvim_win_get_cursor(win)[1] == 1 then vim.api.nvim_win_set_cursor(win, { first, 0 }) end
  view.had_calls = view.had_calls or first ~= nil
  vim.api.nvim_buf_set_extmark(view.buf, namespace, #lines - 1, 0, { virt_lines = { { { '' } }, { { HINT, 'ConsortHint' } } } })
end

local function read(clear)
  local mine = view
  if not mine then return end
  if mine.asking then
    mine.clearing = mine.clearing or clear
    return
  end
  if not vim.api.nvim_buf_is_valid(mine.origin) or not vim.lsp.get_clients({ name = 'consort' })[1] then return end
  mine.asking = true
  local function over()
    mine.asking = nil
    if mine.clearing and view == mine then
      mine.clearing = nil
      read(true)
    end
  end
  local cancel = client_of.execute('tracedCalls', { count = PAGE, clear = clear or nil }, function(answer)
    over()
    if view ~= mine or not vim.api.nvim_buf_is_valid(mine.buf) then return end
    if clear then answer.calls = {} end
    draw(answer)
  end, { buf = mine.origin, on_error = over })
  if not cancel then over() end
end

local function inspect()
  local call = view.lines[vim.api.nvim_win_get_cursor(0)[1]]
  if not call then return client_of.say('put the cursor on a call') end
  local values, origin = {}, view.origin
  for i, value in ipairs(call.arguments) do table.insert(values, { name = ('argument %d'):format(i), value = value }) end
  for i, value in ipairs(call.values) do table.insert(values, { name = ('value %d'):format(i), value = value }) end
  local function open(choice)
    if choice then require('consort.inspect').show(origin, choice.name, choice.value.text, choice.value.reference, true) end
  end
  if #values == 1 then return open(values[1]) end
  vim.ui.select(values, { prompt = 'Inspect', format_item = function(one) return escaped.line(('%s: %s'):format(one.name, one.value.text)) end, kind = 'consort-value' }, open)
end

local function close()
  if not view then return end
  if view.timer then
    view.timer:stop()
    view.timer:close()
  end
  view = nil
end

--- Opens the buffer of traced calls in a new window, or enters the window that shows it.
function M.open()
  if not client_of.need() then return end
  if view and vim.api.nvim_buf_is_valid(view.buf) and vim.fn.bufwinid(view.buf) ~= -1 then
    vim.api.nvim_set_current_win(vim.fn.bufwinid(view.buf))
    return read()
  end
  close()
  local origin = vim.api.nvim_get_current_buf()
  local buf = vim.api.nvim_create_buf(false, true)
  client_of.belongs(buf)
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].modifiable = false
  vim.bo[buf].filetype = 'consort-traced'
  pcall(vim.api.nvim_buf_set_name, buf, 'consort://traced')
  view = { buf = buf, origin = origin, lines = {}, text = {} }
  vim.cmd('botright split')
  vim.api.nvim_win_set_buf(0, buf)
  vim.wo.wrap = false
  local function map(key, about, run) vim.keymap.set('n', key, run, { buffer = buf, nowait = true, desc = 'Consort: ' .. about }) end
  map('<CR>', 'inspect an argument or a value', inspect)
  map('x', 'forget the calls', function() read(true) end)
  map('q', 'close the traced calls', function() vim.api.nvim_buf_delete(buf, { force = true }) end)
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buf, once = true, callback = close })
  view.timer = vim.uv.new_timer()
  view.timer:start(TICK, TICK, vim.schedule_wrap(function()
    if view and vim.fn.bufwinid(view.buf) ~= -1 then read() end
  end))
  read()
end

return M
