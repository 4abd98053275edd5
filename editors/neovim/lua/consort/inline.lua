--- Values at the end of the line, until the form they are of is edited.
require('consort.colours')

local visible = require('consort.shown').visible
local M = {}

local namespace = vim.api.nvim_create_namespace('consort.inline')
local LIMIT = 160 -- cells at the end of a line; the float has the whole
local LEAST = 12 -- cells that a value gets in any case

---@class consort.Shown
---@field result table the answer of the command
---@field text string the form it is of
---@field drawn integer the extmark at its end: a mark draws where it begins

---@type table<integer, table<integer, consort.Shown>> by buffer and extmark
local shown = {}

local function one_line(text)
  return (vim.trim(text:gsub('%s*\n%s*', ' ')))
end

--- Returns the part of a text that fits into so many cells.
---@param text string
---@param cells integer
---@return string
function M.fit(text, cells)
  if vim.fn.strdisplaywidth(text) <= cells then return text end
  local characters = vim.fn.strchars(text)
  while characters > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, characters)) >= cells do characters = characters - 1 end
  return vim.fn.strcharpart(text, 0, characters) .. '…'
end

--- Cells that are free behind the end of a line, in the narrowest window that shows it.
---@param buf integer
---@param row integer 0-based
---@return integer
function M.room(buf, row)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  local room = LIMIT
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    room = math.min(room, vim.api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff - vim.fn.strdisplaywidth(line) - 2)
  end
  return math.max(room, LEAST)
end

--- Returns the text that is written behind a form.
---@param result table
---@return string text
---@return string group
function M.summary(result)
  if result.status == 'ok' then
    local values = result.values or {}
    return '⇒ ' .. (#values == 0 and 'no value' or one_line(table.concat(values, ', '))), 'ConsortValue'
  end
  local error = result.error
  if type(error) == 'table' then return '✗ ' .. one_line(('%s: %s'):format(error.type, error.message)), 'ConsortError' end
  return '✗ ' .. tostring(result.status), 'ConsortError'
end

local function text_of(buf, range)
  local ok, lines = pcall(vim.api.nvim_buf_get_text, buf, range[1], range[2], range[3], range[4], {})
  return ok and table.concat(lines, '\n') or nil
end

local function range_of(buf, mark)
  local at = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, mark, { details = true })
  if #at == 0 then return end
  return { at[1], at[2], at[3].end_row or at[1], at[3].end_col or at[2] }
end

local function drop(buf, mark)
  pcall(vim.api.nvim_buf_del_extmark, buf, namespace, mark)
  pcall(vim.api.nvim_buf_del_extmark, buf, namespace, shown[buf][mark].drawn)
  shown[buf][mark] = nil
end

--- Take away what is of a text that is gone.
local function sweep(buf)
  for mark, entry in pairs(shown[buf] or {}) do
    local range = range_of(buf, mark)
    if not range or text_of(buf, range) ~= entry.text then drop(buf, mark) end
  end
end

local function watch(buf)
  if shown[buf] then return end
  shown[buf] = {}
  local group = vim.api.nvim_create_augroup('consort.inline.' .. buf, {})
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI' }, {
    group = group,
    buffer = buf,
    callback = function() sweep(buf) end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buf,
    callback = function()
      shown[buf] = nil
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end,
  })
end

--- Show the result of a form. `range`: 0-based rows and byte columns of the form, end exclusive.
---@param buf integer
---@param range integer[] { row, column, end row, end column }
---@param result table
function M.show(buf, range, result)
  if not vim.api.nvim_buf_is_loaded(buf) then return end
  local text = text_of(buf, range)
  if not text then return end -- the form is no longer where it was
  watch(buf)
  for mark in pairs(shown[buf]) do
    local other = range_of(buf, mark)
    if not other or other[3] == range[3] then drop(buf, mark) end
  end
  local summary, group = M.summary(result)
  local below = {}
  local output = vim.trim((result.stdout or '') .. (result.stderr or ''))
  if output ~= '' then
    local lines = vim.split(output, '\n', { plain = true })
    for i = 1, math.min(#lines, 5) do below[i] = { { '  ' .. visible(lines[i]), 'ConsortOutput' } } end
    if #lines > 5 then below[6] = { { ('  … %d more lines: :Consort result'):format(#lines - 5), 'ConsortOutput' } } end
  end
  local mark = vim.api.nvim_buf_set_extmark(buf, namespace, range[1], range[2], {
    end_row = range[3],
    end_col = range[4],
  })
  local drawn = vim.api.nvim_buf_set_extmark(buf, namespace, range[3], range[4], {
    virt_text = { { ' ' .. M.fit(visible(summary), M.room(buf, range[3])), group } },
    virt_text_pos = 'eol',
    virt_lines = #below > 0 and below or nil,
    hl_mode = 'combine',
  })
  shown[buf][mark] = { result = result, text = text, drawn = drawn }
end

--- The result that is shown in a line, if one is.
---@param buf integer
---@param row integer 0-based
---@return table?
function M.at(buf, row)
  for mark, entry in pairs(shown[buf] or {}) do
    local range = range_of(buf, mark)
    if range and range[1] <= row and row <= range[3] then return entry.result end
  end
end

--- Take everything away.
---@param buf integer
function M.clear(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  if shown[buf] then shown[buf] = {} end
end

M.namespace = namespace
return M
