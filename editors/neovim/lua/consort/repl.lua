--- A REPL in a split: the editor's own session in the image. Lines above the prompt are history; what follows it is evaluated when it is whole.
require('consort.colours')
local client_of = require('consort.client')

local M = {}

---@class consort.Repl
---@field buf integer
---@field package string
---@field history string[]
---@field at integer position in the history; one past its end: nothing of it
---@field prompt integer extmark where the input begins
---@field busy? fun() stops what runs

---@type consort.Repl?
local repl
local namespace = vim.api.nvim_create_namespace('consort.repl')

--- Whether text is one or more whole forms, as far as parentheses, strings and comments say; the image's reader has the last word.
---@param text string
---@return boolean
function M.is_whole(text)
  local depth, i, n = 0, 1, #text
  while i <= n do
    local c = text:sub(i, i)
    if c == '\\' then
      i = i + 1
    elseif c == '"' or (c == '|' and text:sub(i - 1, i - 1) ~= '#') then
      local j = i + 1
      while j <= n and text:sub(j, j) ~= c do
        if text:sub(j, j) == '\\' then j = j + 1 end
        j = j + 1
      end
      if j > n then return false end
      i = j
    elseif c == '#' and text:sub(i + 1, i + 1) == '|' then
      local level = 1
      i = i + 2
      while i <= n and level > 0 do
        local two = text:sub(i, i + 1)
        if two == '|#' then level, i = level - 1, i + 1 elseif two == '#|' then level, i = level + 1, i + 1 end
        i = i + 1
      end
      if level > 0 then return false end
      i = i - 1
    elseif c == '#' and text:sub(i + 1, i + 1) == '\\' then
      i = i + 2
    elseif c == ';' then
      i = (text:find('\n', i, true) or n + 1) - 1
    elseif c == '(' then
      depth = depth + 1
    elseif c == ')' then
      depth = depth - 1
    end
    i = i + 1
  end
  return depth <= 0
end

local function input_start()
  local at = vim.api.nvim_buf_get_extmark_by_id(repl.buf, namespace, repl.prompt, {})
  return at[1], at[2]
end

local function input()
  local row, column = input_start()
  return table.concat(vim.api.nvim_buf_get_text(repl.buf, row, column, -1, -1, {}), '\n')
end

local function set_input(text)
  local row, column = input_start()
  vim.api.nvim_buf_set_text(repl.buf, row, column, -1, -1, vim.split(text, '\n', { plain = true }))
  local last = vim.api.nvim_buf_line_count(repl.buf)
  vim.api.nvim_win_set_cursor(0, { last, #vim.fn.getline(last) })
end

--- Text above what is being typed.
local function print_lines(text, group)
  local buf = repl.buf
  local row = input_start()
  local lines = vim.split(text, '\n', { plain = true })
  vim.api.nvim_buf_set_lines(buf, row, row, false, lines)
  if group then
    vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { end_row = row + #lines, end_col = 0, hl_group = group })
  end
end

local function prompt()
  local buf = repl.buf
  local text = repl.package .. '> '
  local last = vim.api.nvim_buf_line_count(buf)
  local line = vim.api.nvim_buf_get_lines(buf, last - 1, last, false)[1]
  local row = last
  if line == '' then row = last - 1 end
  vim.api.nvim_buf_set_lines(buf, row, -1, false, { text })
  vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { end_row = row, end_col = #text, hl_group = 'Title' })
  repl.prompt = vim.api.nvim_buf_set_extmark(buf, namespace, row, #text, { right_gravity = false })
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do vim.api.nvim_win_set_cursor(win, { row + 1, #text }) end
end

local function short(package)
  return package == 'COMMON-LISP-USER' and 'CL-USER' or package
end

local function evaluate(text)
  local client = client_of.need()
  if not client then return end
  table.insert(repl.history, text)
  repl.at = #repl.history + 1
  local row = vim.api.nvim_buf_line_count(repl.buf)
  vim.api.nvim_buf_set_lines(repl.buf, row, row, false, { '' })
  -- What is printed goes above it, and so in its order.
  repl.prompt = vim.api.nvim_buf_set_extmark(repl.buf, namespace, row, 0, { right_gravity = true })
  repl.busy = client_of.execute('eval', { code = text }, function(result)
    if not repl then return end
    repl.busy = nil
    local output = (result.stdout or '') .. (result.stderr or '')
    if vim.trim(output) ~= '' then print_lines(vim.trim(output), 'ConsortPlainOutput') end
    for _, warning in ipairs(result.warnings or {}) do print_lines(('; %s: %s'):format(warning.type, warning.message), 'ConsortPlainWarn') end
    local error = type(result.error) == 'table' and result.error or nil
    if error then
      print_lines(('%s: %s'):format(error.type, error.message), 'ConsortPlainError')
      for i, frame in ipairs(error.backtrace or {}) do print_lines(('  %d %s'):format(i - 1, frame), 'ConsortPlainOutput') end
    elseif #result.values == 0 then
      print_lines('; no value', 'ConsortPlainOutput')
    else
      for _, value in ipairs(result.values) do print_lines(value) end
    end
    repl.package = short(result.package)
    prompt()
  end, {
    buf = repl.buf,
    on_error = function(failure)
      if not repl then return end
      repl.busy = nil
      print_lines(failure.message, 'ConsortPlainError')
      prompt()
    end,
  })
  if not repl.busy then prompt() end
end

local function enter()
  if repl.busy then return client_of.say('an evaluation is running; <C-c> interrupts it') end
  local text = input()
  if vim.trim(text) == '' then return end
  if M.is_whole(text) then
    evaluate(text)
  else
    if vim.fn.mode() ~= 'i' then vim.cmd.startinsert({ bang = true }) end
    vim.api.nvim_feedkeys('\r', 'ni', false) -- before what was typed since; indented by 'lisp'
  end
end

local function recall(step)
  local at = math.max(1, math.min(#repl.history + 1, repl.at + step))
  repl.at = at
  set_input(repl.history[at] or '')
end

local HINT = '; <CR> evaluates a form when it is whole, <C-p> and <C-n> recall, <C-c> interrupts'

local function make()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, 'consort://repl')
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].syntax = 'lisp'
  vim.bo[buf].lisp = true
  vim.bo[buf].expandtab = true
  repl = { buf = buf, package = 'CL-USER', history = {}, at = 1, prompt = 0 }
  local function map(mode, key, action) vim.keymap.set(mode, key, action, { buffer = buf }) end
  map({ 'i', 'n' }, '<CR>', enter)
  map({ 'i', 'n' }, '<C-p>', function() recall(-1) end)
  map({ 'i', 'n' }, '<C-n>', function() recall(1) end)
  map({ 'i', 'n' }, '<C-c>', function()
    if repl.busy then client_of.execute('interrupt', {}, nil, { buf = buf }) end
  end)
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buf, callback = function() repl = nil end })
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { HINT })
  prompt()
end

--- Open the REPL in a split, or go to it.
function M.open()
  if not client_of.need() then return end
  if not repl then make() end
  local win = vim.fn.win_findbuf(repl.buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
  else
    vim.cmd('botright 12split')
    vim.api.nvim_win_set_buf(0, repl.buf)
    vim.wo.number, vim.wo.relativenumber, vim.wo.signcolumn = false, false, 'no'
  end
  vim.cmd.normal({ 'G$', bang = true })
  vim.cmd.startinsert({ bang = true })
end

return M
