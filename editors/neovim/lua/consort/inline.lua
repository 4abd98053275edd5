--- Results of evaluated forms at the ends of their lines, shown until the form is edited.
require('consort.colours')

local escape = require('consort.escaped').escape
local M = {}

local namespace = vim.api.nvim_create_namespace('consort.inline')
-- The maximum and minimum width of a result, in cells. The float shows all of it.
local MAX_WIDTH = 160
local MIN_WIDTH = 12

---@class consort.Shown
---@field result table the answer of the evaluation command
---@field text string the text of the evaluated form
---@field number integer counts the evaluations
---@field label integer the extmark with the virtual text. It begins at the form's end, because
---  virtual text is drawn where its extmark begins.

---@type table<integer, table<integer, consort.Shown>> by buffer and the extmark of the form
local shown = {}

local function one_line(text)
  return (vim.trim(text:gsub('%s*\n%s*', ' ')))
end

--- Returns a text, cut and with an ellipsis if it is wider than CELLS.
---@param text string
---@param cells integer
---@return string
function M.fit(text, cells)
  if vim.fn.strdisplaywidth(text) <= cells then return text end
  local characters = vim.fn.strchars(text)
  while characters > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, characters)) >= cells do characters = characters - 1 end
  return vim.fn.strcharpart(text, 0, characters) .. '…'
end

--- Returns the width in cells between the end of a line and the window's edge, in the narrowest
--- window that shows the line; at least MIN_WIDTH and at most MAX_WIDTH.
---@param buf integer
---@param row integer 0-based
---@return integer
function M.available_width(buf, row)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  local width = MAX_WIDTH
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    width = math.min(width, vim.api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff - vim.fn.strdisplaywidth(line) - 2)
  end
  return math.max(width, MIN_WIDTH)
end

--- Returns a result as one line.
---@param result table
---@return string text
---@return string group the highlight group
function M.summary(result)
  if result.status == 'ok' then
    local values = result.values or {}
    local warned = #(result.warnings or {}) > 0 and '⚠ ' or ''
    return warned .. '⇒ ' .. (#values == 0 and 'no value' or one_line(table.concat(values, ', '))), 'ConsortValue'
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
  pcall(vim.api.nvim_buf_del_extmark, buf, namespace, shown[buf][mark].label)
  shown[buf][mark] = nil
end

--- Removes the results of forms that were edited or deleted.
local function drop_outdated(buf)
  for mark, entry in pairs(shown[buf] or {}) do
    local range = range_of(buf, mark)
    if not range or text_of(buf, range) ~= entry.text then drop(buf, mark) end
  end
end

local function watch(buf)
  if shown[buf] then return end
  shown[buf] = {}
  local group = vim.api.nvim_create_augroup('consort.inline.' .. buf, {})
  -- Reading the file again (`:edit!`) is no change of the text to Neovim.
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'BufReadPost' }, {
    group = group,
    buffer = buf,
    callback = function() drop_outdated(buf) end,
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

local begun = 0
--- Returns the number of an evaluation that begins now.
---@return integer
function M.begun()
  begun = begun + 1
  return begun
end

--- Shows the result of a form: its values at the end of the line, and its output below. The result
--- of an evaluation that began later, at the end of the same line, stays instead.
---@param buf integer
---@param range integer[] the form: { row, column, end row, end column }, rows 0-based, columns in
---  bytes, end exclusive
---@param result table
---@param number? integer from `begun`; that of an evaluation that begins now by default
---@return boolean? is_shown
function M.show(buf, range, result, number)
  number = number or M.begun()
  if not vim.api.nvim_buf_is_loaded(buf) then return end
  local text = text_of(buf, range)
  if not text then return end -- the form is no longer where it was
  watch(buf)
  drop_outdated(buf)
  local there = {}
  for mark, entry in pairs(shown[buf]) do
    if range_of(buf, mark)[3] == range[3] then
      if entry.number > number then return end
      table.insert(there, mark)
    end
  end
  for _, mark in ipairs(there) do drop(buf, mark) end
  local summary, group = M.summary(result)
  local output_lines = {}
  local output = vim.trim((result.stdout or '') .. (result.stderr or ''))
  if output ~= '' then
    local lines = vim.split(output, '\n', { plain = true })
    for i = 1, math.min(#lines, 5) do output_lines[i] = { { '  ' .. escape(lines[i]), 'ConsortOutput' } } end
    if #lines > 5 then output_lines[6] = { { ('  … %d more lines: :Consort result'):format(#lines - 5), 'ConsortOutput' } } end
  end
  local mark = vim.api.nvim_buf_set_extmark(buf, namespace, range[1], range[2], {
    end_row = range[3],
    end_col = range[4],
  })
  local label = vim.api.nvim_buf_set_extmark(buf, namespace, range[3], range[4], {
    virt_text = { { ' ' .. M.fit(escape(summary), M.available_width(buf, range[3])), group } },
    virt_text_pos = 'eol',
    virt_lines = #output_lines > 0 and output_lines or nil,
    hl_mode = 'combine',
  })
  shown[buf][mark] = { result = result, text = text, label = label, number = number }
  return true
end

--- Returns the result that is shown for a form on the line, or nil.
---@param buf integer
---@param row integer 0-based
---@return table? result
function M.at(buf, row)
  for mark, entry in pairs(shown[buf] or {}) do
    local range = range_of(buf, mark)
    if range and range[1] <= row and row <= range[3] then return entry.result end
  end
end

--- Says behind the result of a form that it was not evaluated again. The result must be of an
--- evaluation that began before the cancelled one.
---@param buf integer
---@param range integer[] the form, as for `show`
---@param number integer of the cancelled evaluation, from `begun`
---@return boolean? is_said
function M.cancelled(buf, range, number)
  drop_outdated(buf)
  for mark, entry in pairs(shown[buf] or {}) do
    if entry.number < number and vim.deep_equal(range_of(buf, mark), range) then
      local label = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, entry.label, { details = true })
      vim.api.nvim_buf_set_extmark(buf, namespace, label[1], label[2], {
        id = entry.label,
        virt_text = { label[3].virt_text[1], { '  · cancelled, not evaluated again', 'ConsortHint' } },
        virt_text_pos = 'eol',
        virt_lines = label[3].virt_lines,
        hl_mode = 'combine',
      })
      return true
    end
  end
end

--- Removes the results at the end of a line that are of evaluations that began before another one.
---@param buf integer
---@param row integer 0-based
---@param number integer of the other evaluation, from `begun`
function M.remove_earlier(buf, row, number)
  for mark, entry in pairs(shown[buf] or {}) do
    local range = range_of(buf, mark)
    if range and range[3] == row and entry.number < number then drop(buf, mark) end
  end
end

--- Removes all results from a buffer.
---@param buf integer
function M.clear(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  if shown[buf] then shown[buf] = {} end
end

M.namespace = namespace
return M
