--- Macro expansions step by step in the place of their forms: in a copy of the buffer, which the
--- window shows instead. The buffer itself is never changed, and the copy belongs to no file.
require('consort.colours')

local client_of = require('consort.client')
local macrosteps = require('consort.macrosteps')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.macrostep')
local group = vim.api.nvim_create_augroup('consort.macrostep', {})
local SCHEME = 'consort-macrostep://'
local HINT = 'macro steps: e expands, c collapses, n and p go to macro calls, q goes back'

-- Options of the window that make the copy look like the text.
local LOOK = { 'number', 'relativenumber', 'numberwidth', 'signcolumn', 'foldcolumn', 'wrap', 'linebreak', 'breakindent', 'list', 'cursorline' }
-- Options that the window has only while it shows the copy.
local OWN = { winbar = ' ' .. HINT, foldenable = false }

---@class consort.Copy
---@field original integer
---@field bufhidden string the original's own
---@field win integer the person's window
---@field view table its view of the original
---@field options table<string, any> the window's own values of the options in OWN
---@field tick integer the copy's changedtick after the last step
---@field steps consort.Steps
---@field keys consort.CopyKey[] the key whose answer is awaited, and the keys pressed since

---@alias consort.CopyKey fun(copy: consort.Copy, buf: integer, over: consort.KeyOver)
---@alias consort.KeyOver fun(has_ended?: boolean) true if the server has ended without an answer

---@type table<integer, consort.Copy>
local copies = {}

local function get(win, option) return vim.api.nvim_get_option_value(option, { scope = 'local', win = win }) end
local function set(win, option, value) vim.api.nvim_set_option_value(option, value, { scope = 'local', win = win }) end

--- Shows a buffer in a window, without changing the alternate file and the jump list.
local function show(win, buf)
  vim.api.nvim_win_call(win, function() vim.cmd(('keepalt keepjumps buffer %d'):format(buf)) end)
end

-- Positions of LSP, and offsets in a text

local function line_of(text, row)
  local start = macrosteps.offset(text, row, 0)
  return text:sub(start + 1, macrosteps.offset(text, row, math.huge))
end

local function position_of(client, text, offset)
  local row, column = macrosteps.place(text, offset)
  return { line = row, character = vim.str_utfindex(line_of(text, row), client.offset_encoding, column, false) }
end

local function offset_of(client, text, position)
  local line = line_of(text, position.line)
  return macrosteps.offset(text, position.line, vim.str_byteindex(line, client.offset_encoding, position.character, false))
end

local function cursor(text)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return macrosteps.offset(text, row - 1, column)
end

local function to(text, offset)
  local row, column = macrosteps.place(text, offset)
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
end

-- Display

local function mark(buf, steps)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for depth, one in ipairs(steps.placed) do
    local row, column = macrosteps.place(steps.text, one.start)
    local end_row, end_column = macrosteps.place(steps.text, one.stop)
    vim.api.nvim_buf_set_extmark(buf, namespace, row, column, { end_row = end_row, end_col = end_column, hl_group = 'ConsortExpansion', priority = 150 + math.min(depth, 49) })
  end
end

--- Shows other steps in the copy by one edit. They differ from the current ones from START to STOP.
local function apply(buf, steps, start, stop)
  local copy = copies[buf]
  local replacement = steps.text:sub(start + 1, stop + #steps.text - #copy.steps.text)
  local row, column = macrosteps.place(copy.steps.text, start)
  local end_row, end_column = macrosteps.place(copy.steps.text, stop)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_text(buf, row, column, end_row, end_column, vim.split(replacement, '\n', { plain = true }))
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  copy.steps = steps
  copy.tick = vim.api.nvim_buf_get_changedtick(buf)
  mark(buf, steps)
end

--- Returns the copy in the current window, and its buffer; nil if another program has changed the
--- copy.
local function here()
  local buf = vim.api.nvim_get_current_buf()
  local copy = copies[buf]
  if not copy then return end
  if copy.tick ~= vim.api.nvim_buf_get_changedtick(buf) then return client_of.fail('this copy was changed; q goes back to your text') end
  return copy, buf
end

-- Steps

---@param copy consort.Copy
local function take_key(copy, buf)
  copy.keys[1](copy, buf, function(has_ended)
    table.remove(copy.keys, 1)
    if has_ended then copy.keys = {} end -- the next key would wait for a new server
    if copies[buf] ~= copy or #copy.keys == 0 then return end
    if vim.api.nvim_get_current_buf() == buf and here() then return take_key(copy, buf) end
    copy.keys = {}
    client_of.say(client_of.GONE_ON)
  end)
end

--- Handles a key in the copy of the current window. Keys can come faster than answers. Each waits
--- for the previous one, and begins at the place to which that one moved the cursor.
---@param key consort.CopyKey calls `over` once
local function press(key)
  local copy, buf = here()
  if not copy then return end
  table.insert(copy.keys, key)
  if #copy.keys == 1 then take_key(copy, buf) end
end

--- Executes a command about a text. `over` is called at the end, whatever the outcome.
---@param command string
---@param argument table
---@param done fun(answer: table)
---@param over consort.KeyOver
---@param options consort.Options
local function execute(command, argument, done, over, options)
  local function on_error(error)
    client_of.failed(error)
    over(client_of.has_ended(error))
  end
  local sent = client_of.execute(command, argument, function(answer)
    if type(answer.error) == 'table' then client_of.fail(('%s: %s'):format(answer.error.type, answer.error.message)) else done(answer) end
    over()
  end, vim.tbl_extend('error', options, { on_error = on_error }))
  if not sent then over() end
end

--- Requests one step at an offset of a text. `on_step` gets the next steps, and the range of the
--- form that was expanded; `over` is called at the end, whatever the outcome.
---@param original integer
---@param steps consort.Steps
---@param offset integer
---@param on_step fun(steps: consort.Steps, start: integer, stop: integer)
---@param over consort.KeyOver
---@param latest? string as of client.execute()
local function ask(original, steps, offset, on_step, over, latest)
  local client = client_of.need(original)
  if not client then return over() end
  local text = steps.text
  local around = macrosteps.innermost(steps, offset)
  local argument = {
    uri = vim.uri_from_bufnr(original),
    text = text,
    position = position_of(client, text, offset),
    within = around and { start = position_of(client, text, around.start), ['end'] = position_of(client, text, around.stop) } or nil,
  }
  execute('macrostep', argument, function(result)
    if not result.expanded then return client_of.say('no macro is called there') end
    if result.omitted > 0 then return client_of.fail('the expansion is too long to be shown in the place of its form; `:Consort macroexpand` shows its beginning') end
    local start, stop = offset_of(client, text, result.range.start), offset_of(client, text, result.range['end'])
    on_step(macrosteps.expanded(steps, start, stop, result.expansion), start, stop)
  end, over, { buf = original, latest = latest })
end

---@type consort.CopyKey
local function expand(copy, buf, over)
  local asked, at = copy.steps, vim.api.nvim_win_get_cursor(0)
  ask(copy.original, asked, cursor(asked.text), function(steps, start, stop)
    -- The answer is of no use if the text has changed since.
    if copies[buf] ~= copy or copy.steps ~= asked or copy.tick ~= vim.api.nvim_buf_get_changedtick(buf) then return end
    local is_there = vim.api.nvim_get_current_buf() == buf and vim.deep_equal(vim.api.nvim_win_get_cursor(0), at)
    apply(buf, steps, start, stop)
    if is_there then to(steps.text, start) end
  end, over)
end

---@type consort.CopyKey
local function collapse(copy, buf, over)
  local steps, last = macrosteps.collapsed(copy.steps, cursor(copy.steps.text))
  if steps then
    apply(buf, steps, last.start, last.stop)
    to(steps.text, last.start)
  else
    client_of.say('no expansion is there')
  end
  over()
end

---@param forward boolean
---@return consort.CopyKey
local function go(forward)
  return function(copy, buf, over)
    local client = client_of.need(copy.original)
    if not client then return over() end
    local asked, at = copy.steps, vim.api.nvim_win_get_cursor(0)
    local text = asked.text
    local position = position_of(client, text, cursor(text))
    local argument = { uri = vim.uri_from_bufnr(copy.original), text = text, position = position }
    execute('macroCalls', argument, function(result)
      -- The person has moved on, or has moved the cursor.
      if vim.api.nvim_get_current_buf() ~= buf or copy.steps ~= asked or not vim.deep_equal(vim.api.nvim_win_get_cursor(0), at) then return end
      local found = macrosteps.neighbour(result.calls, position, forward)
      if not found then return client_of.say(('no macro call is %s this in the top-level form'):format(forward and 'after' or 'before')) end
      to(text, offset_of(client, text, found))
    end, over, { buf = copy.original })
  end
end

--- Expands the macro call at the cursor of the copy.
function M.expand() press(expand) end

--- Reverts the innermost expansion at the cursor.
function M.collapse() press(collapse) end

--- Goes to the next or previous macro call of the top-level form.
---@param forward boolean
function M.go(forward) press(go(forward)) end

-- Beginning and end

--- Ends the stepper of a copy. Its windows show the original again, the person's window at its
--- former place.
---@param buf integer
local function quit(buf)
  local copy = copies[buf]
  if not copy then return end
  if not vim.api.nvim_buf_is_valid(copy.original) then
    client_of.say('the text of these macro steps is gone')
    return vim.api.nvim_buf_delete(buf, { force = true })
  end
  vim.bo[buf].bufhidden = 'hide'
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    show(win, copy.original)
    for option, value in pairs(copy.options) do set(win, option, value) end
    if win == copy.win then vim.api.nvim_win_call(win, function() vim.fn.winrestview(copy.view) end) end
  end
  vim.api.nvim_buf_delete(buf, { force = true })
end

function M.quit() quit(vim.api.nvim_get_current_buf()) end

local function name_of(original)
  local name = vim.api.nvim_buf_get_name(original)
  return SCHEME .. (name ~= '' and name or original)
end

--- Makes the copy of a buffer, with a text that has no expansions yet.
local function make(original, steps)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, name_of(original))
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].swapfile = false
  vim.bo[buf].undolevels = -1
  vim.bo[buf].tabstop = vim.bo[original].tabstop
  vim.bo[buf].iskeyword = vim.bo[original].iskeyword
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(steps.text, '\n', { plain = true }))
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  -- Sets the syntax only: a filetype would start a language client for a buffer without a file.
  pcall(function() vim.bo[buf].syntax = 'lisp' end)
  local keys = {
    e = M.expand,
    c = M.collapse,
    n = function() M.go(true) end,
    p = function() M.go(false) end,
    q = M.quit,
  }
  for key, action in pairs(keys) do vim.keymap.set('n', key, action, { buffer = buf, nowait = true }) end
  return buf
end

--- Shows the copy of a buffer in a window, and takes the first step in it.
local function begin(win, original, first, steps, start, stop)
  for buf, copy in pairs(copies) do
    if copy.original == original then quit(buf) end
  end
  local buf = make(original, first)
  local copy = { original = original, bufhidden = vim.bo[original].bufhidden, win = win, view = vim.fn.winsaveview(), options = {}, keys = {}, steps = first, tick = vim.api.nvim_buf_get_changedtick(buf) }
  local look = {}
  for _, option in ipairs(LOOK) do look[option] = get(win, option) end
  for option in pairs(OWN) do copy.options[option] = get(win, option) end
  copies[buf] = copy
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buf,
    callback = function()
      copies[buf] = nil
      if vim.api.nvim_buf_is_valid(original) then vim.bo[original].bufhidden = copy.bufhidden end
    end,
  })
  -- Keeps the original loaded while no window shows it.
  vim.bo[original].bufhidden = 'hide'
  local shown, why = pcall(show, win, buf)
  if not shown then
    vim.api.nvim_buf_delete(buf, { force = true })
    return client_of.fail(('this window cannot show the copy: %s'):format(why))
  end
  for option, value in pairs(look) do set(win, option, value) end
  for option, value in pairs(OWN) do set(win, option, value) end
  vim.fn.winrestview(copy.view)
  apply(buf, steps, start, stop)
  to(steps.text, start)
end

--- Expands the macro call at the cursor, in a copy that is made for it unless the cursor is in one.
function M.step()
  local original, win = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()
  if copies[original] then return M.expand() end
  if not client_of.need(original) then return end
  local is_same_text = client_of.text(original)
  local first = macrosteps.begun(table.concat(vim.api.nvim_buf_get_lines(original, 0, -1, false), '\n'))
  ask(original, first, cursor(first.text), function(...)
    if vim.api.nvim_get_current_win() ~= win or vim.api.nvim_get_current_buf() ~= original then return client_of.say(client_of.GONE_ON) end
    if not is_same_text() then return client_of.say('the text has changed meanwhile') end
    begin(win, original, first, ...)
  end, function() end, 'macrostep ' .. original)
end

return M
