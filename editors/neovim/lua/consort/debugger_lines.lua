--- The lines of the debugger's buffer.
require('consort.colours')
local hints = require('consort.hints')
local escaped = require('consort.escaped')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.debugger')
local HINT = '0-9 restart · a abort · q quit · <CR> opens · v source · e eval · c continue · r restart frame · R return · i inspect'

---@class consort.Line the restart, frame or variable that a line of the buffer shows
---@field restart? table
---@field frame? table
---@field variable? table

--- Shows a stop in its buffer, as it is now.
---@param stop consort.Stop
function M.render(stop)
  local lines, about, marks = {}, {}, {}
  local win, width = vim.fn.bufwinid(stop.buf), hints.width(stop.buf)
  local function add(text, what, group)
    table.insert(lines, escaped.line(text))
    about[#lines] = what or {}
    if group then table.insert(marks, { #lines - 1, group }) end
  end
  for _, line in ipairs(escaped.lines(stop.text)) do
    for _, part in ipairs(hints.wrapped(line, width)) do add(part, nil, 'ConsortPlainError') end
  end
  local moved = #lines - (stop.head or #lines)
  stop.head = #lines
  add('')
  add('Restarts:', nil, 'Title')
  for _, restart in ipairs(stop.restarts or {}) do
    local takes = restart.arguments and ' (takes a value)' or ''
    add(('%2d: [%s] %s%s'):format(restart.index, restart.name or '', restart.report, takes), { restart = restart })
  end
  add('')
  add('Frames:', nil, 'Title')
  for number, frame in ipairs(stop.frames or {}) do
    local place = frame.source and frame.line > 0 and ('  %s:%d'):format(frame.source.name or '', frame.line) or ''
    add(('%2d: %s%s'):format(number - 1, frame.name, place), { frame = frame }, frame.presentationHint == 'subtle' and 'ConsortHint' or nil)
    local variables = stop.open[number - 1]
    if variables and #variables == 0 then add('      no variables are known', { frame = frame }, 'ConsortHint') end
    for _, variable in ipairs(variables or {}) do
      add(('      %s = %s'):format(variable.name, variable.value), { frame = frame, variable = variable })
    end
  end
  stop.lines = about
  local at = win ~= -1 and vim.api.nvim_win_get_cursor(win)
  vim.bo[stop.buf].modifiable = true
  vim.api.nvim_buf_set_lines(stop.buf, 0, -1, false, lines)
  vim.bo[stop.buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(stop.buf, namespace, 0, -1)
  for _, mark in ipairs(marks) do
    vim.api.nvim_buf_set_extmark(stop.buf, namespace, mark[1], 0, { end_col = #lines[mark[1] + 1], hl_group = mark[2] })
  end
  hints.show(stop.buf, namespace, HINT)
  -- The cursor stays at its restart or frame when the condition above has another number of lines.
  if at and moved ~= 0 then vim.api.nvim_win_set_cursor(win, { math.min(#lines, math.max(1, at[1] + moved)), at[2] }) end
  if stop.follows == stop.buf then return end
  stop.follows = stop.buf
  local buf = stop.buf
  hints.follow(buf, function()
    if stop.buf == buf then M.render(stop) end
  end)
end

return M
