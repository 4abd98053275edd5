--- A REPL in a split window, for the editor's own session in the image. <CR> evaluates the text
--- after the prompt when it is complete. The lines above are earlier input and output.
require('consort.colours')
local client_of = require('consort.client')
local frames = require('consort.frames')
local history = require('consort.history')
local running = require('consort.running')

local M = {}

---@class consort.Repl
---@field buf integer
---@field package string
---@field history string[]
---@field at integer position in the history; one past its end: no entry
---@field edited table<integer, string> the edited texts of history entries, by their positions
---@field prompt integer extmark where the input begins
---@field busy? fun() cancels the running evaluation; nil if none is running
---@field entering? table identifies the last request for another package, until its answer

local NAME = 'consort://repl'
---@type consort.Repl?
local repl
---@type table<integer, string> the identity of the image, by client
local images = {}
local has_moved = false -- true if a session that the REPL has left may not be in CL-USER
local namespace = vim.api.nvim_create_namespace('consort.repl')

--- Returns true if no list, string, symbol or comment is open at the end of a text. The image's
--- reader may still refuse the text.
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

--- Inserts text above the input.
local function print_lines(text, group)
  local buf = repl.buf
  local row = input_start()
  local lines = vim.split(text, '\n', { plain = true })
  vim.api.nvim_buf_set_lines(buf, row, row, false, lines)
  if group then
    vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { end_row = row + #lines, end_col = 0, hl_group = group })
  end
end

--- Shows the prompt after the output. Text that was typed while an evaluation ran becomes the
--- input. The current window's cursor keeps its position in that text or above it.
local function prompt()
  local buf = repl.buf
  local text = repl.package .. '> '
  local row = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, repl.prompt, {})[1]
  local typed = row and vim.api.nvim_buf_get_lines(buf, row, -1, false) or { '' }
  row = row or vim.api.nvim_buf_line_count(buf)
  local cursors = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local at = vim.api.nvim_win_get_cursor(win)
    if at[1] > row then
      cursors[win] = { at[1], at[2] + (at[1] == row + 1 and #text or 0) }
    elseif win ~= vim.api.nvim_get_current_win() then
      cursors[win] = { row + #typed, #text + #typed[#typed] }
    end
  end
  typed[1] = text .. typed[1]
  vim.api.nvim_buf_set_lines(buf, row, -1, false, typed)
  vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { end_row = row, end_col = #text, hl_group = 'Title' })
  repl.prompt = vim.api.nvim_buf_set_extmark(buf, namespace, row, #text, { right_gravity = false })
  for win, at in pairs(cursors) do vim.api.nvim_win_set_cursor(win, at) end
end

local function short(package)
  return package == 'COMMON-LISP-USER' and 'CL-USER' or package
end

local MOST = 5000 -- the maximum number of lines of output of an evaluation

--- Returns functions that print output by whole lines. `more` takes a chunk of output. `finish`
--- prints the last line if it has no newline.
local function printer()
  local rest, lines = '', 0
  local function print_some(text)
    lines = lines + select(2, text:gsub('\n', '')) + 1
    if lines <= MOST then
      print_lines(text, 'ConsortPlainOutput')
    elseif lines - 1 <= MOST then
      print_lines('… more than is shown here; <C-c> interrupts', 'ConsortPlainWarn')
    end
  end
  return {
    more = function(chunk)
      local whole, last = (rest .. chunk):match('^(.*)\n([^\n]*)$')
      if not whole then rest = rest .. chunk return end
      rest = last
      print_some(whole)
    end,
    finish = function()
      if vim.trim(rest) ~= '' then print_some(rest) end
      rest = ''
    end,
  }
end

local function evaluate(text)
  local client = client_of.need()
  if not client then return end
  if repl.history[#repl.history] ~= text then
    table.insert(repl.history, text)
    history.add(text)
  end
  repl.at, repl.edited = #repl.history + 1, {}
  local row = vim.api.nvim_buf_line_count(repl.buf)
  vim.api.nvim_buf_set_lines(repl.buf, row, row, false, { '' })
  -- Output is inserted before this mark, which moves down, so that the output stays in order.
  repl.prompt = vim.api.nvim_buf_set_extmark(repl.buf, namespace, row, 0, { right_gravity = true })
  for _, win in ipairs(vim.fn.win_findbuf(repl.buf)) do vim.api.nvim_win_set_cursor(win, { row + 1, 0 }) end -- keeps the output visible
  repl.entering = nil -- its answer is obsolete: the answer to the evaluation has the package
  local here, output = repl, printer()
  local token = running.stream(function(chunk)
    if repl == here then output.more(chunk) end
  end)
  repl.busy = client_of.execute('eval', { code = text, outputToken = token }, function(result)
    running.done(token)
    if repl ~= here then return end
    repl.busy = nil
    output.finish()
    for _, warning in ipairs(result.warnings or {}) do print_lines(('; %s: %s'):format(warning.type, warning.message), 'ConsortPlainWarn') end
    local error = type(result.error) == 'table' and result.error or nil
    if error then
      print_lines(('%s: %s'):format(error.type, error.message), 'ConsortPlainError')
      for i, frame in ipairs(frames.of_program(error.backtrace or {})) do print_lines(('  %d %s'):format(i - 1, frame.text), 'ConsortPlainOutput') end
    elseif result.status ~= 'ok' then
      print_lines('; ' .. result.status, 'ConsortPlainWarn')
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
      running.done(token)
      if repl ~= here then return end
      repl.busy = nil
      output.finish()
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
    if vim.api.nvim_win_get_cursor(0)[1] <= input_start() then
      local last = vim.api.nvim_buf_line_count(0)
      vim.api.nvim_win_set_cursor(0, { last, #vim.fn.getline(last) })
    end
    if vim.fn.mode() ~= 'i' then vim.cmd.startinsert({ bang = true }) end
    vim.api.nvim_feedkeys('\r', 'ni', false) -- inserted before keys typed meanwhile; 'lisp' indents
  end
end

local PATIENCE = 3000 -- ms; Neovim is blocked while it waits for completions

--- The 'omnifunc' of the REPL. The server completes the name before the cursor in the prompt's
--- package.
---@param findstart integer
---@param base string
---@return integer|table
function M.complete(findstart, base)
  local row, column = input_start()
  local at = vim.api.nvim_win_get_cursor(0)
  local line = vim.api.nvim_get_current_line()
  if findstart == 1 then
    local from = at[1] - 1 == row and column or 0
    -- -3 cancels completion, outside of the input and during an evaluation.
    if repl.busy or at[1] - 1 < row or at[2] < from then return -3 end
    return at[2] - #line:sub(from + 1, at[2]):match('[^%s()"\';`,]*$')
  end
  local client = client_of.need()
  if not client then return {} end
  local argument = { text = base, package = repl.package, operator = line:sub(1, at[2]):match('%(%s*$') ~= nil }
  client_of.is_text_locked = true
  local answer, why = client:request_sync('workspace/executeCommand', { command = 'consort.complete', arguments = { argument } }, PATIENCE, repl.buf)
  client_of.is_text_locked = false
  if not answer or answer.err then
    client_of.fail(answer and answer.err.message or 'no answer: ' .. tostring(why))
    return {}
  end
  return vim.tbl_map(function(item) return { word = item.label, menu = item.kind, icase = 1 } end, answer.result.items)
end

local function recall(step)
  local at = math.max(1, math.min(#repl.history + 1, repl.at + step))
  if at == repl.at then return end
  repl.edited[repl.at] = input()
  repl.at = at
  set_input(repl.edited[at] or repl.history[at] or '')
end

local HINT = '; <CR> evaluates a whole form, <C-p> <C-n> recall, <C-x><C-o> completes, <C-c> interrupts'

local function make()
  local old = vim.fn.bufnr(('^%s$'):format(NAME)) -- of `:bdelete`
  if old ~= -1 then vim.api.nvim_buf_delete(old, { force = true }) end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, NAME)
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].syntax = 'lisp'
  vim.bo[buf].lisp = true
  vim.bo[buf].expandtab = true
  repl = { buf = buf, package = 'CL-USER', history = history.read(), at = 1, edited = {}, prompt = 0 }
  repl.at = #repl.history + 1
  local function map(mode, key, action) vim.keymap.set(mode, key, action, { buffer = buf }) end
  vim.bo[buf].omnifunc = "v:lua.require'consort.repl'.complete"
  --- Maps a key that keeps its meaning while a menu of completions is open. The menu may not be
  --- drawn yet when keys are typed ahead, so its state is tested.
  local function map_outside_menu(key, in_menu, action)
    map({ 'i', 'n' }, key, function()
      local completion = vim.fn.complete_info({ 'mode', 'items' })
      if completion.mode == '' or #(completion.items or {}) < 2 then return action() end
      vim.api.nvim_feedkeys(vim.keycode(in_menu), 'ni', false)
    end)
  end
  require('consort.maps').without_text(buf)
  map_outside_menu('<CR>', '<C-y>', enter)
  map_outside_menu('<C-p>', '<C-p>', function() recall(-1) end)
  map_outside_menu('<C-n>', '<C-n>', function() recall(1) end)
  map({ 'i', 'n' }, '<C-c>', function()
    if not repl.busy then return client_of.say('no evaluation of the REPL is running') end
    client_of.execute('interrupt', {}, nil, { buf = buf })
  end)
  vim.api.nvim_create_autocmd('BufUnload', { buffer = buf, callback = function() has_moved, repl = has_moved or repl.package ~= 'CL-USER', nil end })
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { HINT })
  prompt()
end

M.package_here = require('consort.in_package').here

--- Replaces the prompt before the input, whose cursors and selection stay at their texts. Neovim
--- leaves them in their columns.
---@param row integer 0-based
---@param column integer where the input begins
---@param text string
local function replace_prompt(row, column, text)
  local function moved(at) return math.max(0, at - column) + #text end
  local cursors = {}
  for _, win in ipairs(vim.fn.win_findbuf(repl.buf)) do
    local at = vim.api.nvim_win_get_cursor(win)
    if at[1] == row + 1 then cursors[win] = moved(at[2]) end
  end
  local selects = vim.api.nvim_get_current_buf() == repl.buf and vim.api.nvim_get_mode().mode:match('^[vs]$')
  local start = vim.fn.getpos('v')
  vim.api.nvim_buf_set_text(repl.buf, row, 0, row, column, { text })
  for win, to in pairs(cursors) do vim.api.nvim_win_set_cursor(win, { row + 1, to }) end
  if not selects or start[2] ~= row + 1 then return end
  -- The start of a selection is moved when the cursor is there, in Visual mode.
  local switch = selects == 's' and vim.keycode('<C-g>') or ''
  vim.cmd.normal({ switch .. 'o', bang = true })
  vim.api.nvim_win_set_cursor(0, { row + 1, moved(start[3] - 1) })
  vim.cmd.normal({ 'o' .. switch, bang = true })
end

--- Changes the package of the REPL, and shows it in the prompt unless an evaluation is running.
local function show_package(name)
  local row, column = input_start()
  repl.package = short(name)
  if repl.busy then return end
  local text = repl.package .. '> '
  replace_prompt(row, column, text)
  vim.api.nvim_buf_set_extmark(repl.buf, namespace, row, 0, { end_row = row, end_col = #text, hl_group = 'Title' })
  repl.prompt = vim.api.nvim_buf_set_extmark(repl.buf, namespace, row, #text, { right_gravity = false })
end

--- Handles `consort/imageState`. If the image is a new one, input is read in CL-USER again.
function M.on_image_state(_, state, context)
  if state.state ~= 'ready' then return end
  local before = images[context.client_id]
  images[context.client_id] = state.image
  local client = repl and client_of.of(repl.buf)
  if not before or before == state.image or not client or client.id ~= context.client_id then return end
  print_lines('; a new image is running', 'ConsortPlainWarn')
  show_package('COMMON-LISP-USER')
end

client_of.on_end(function(id)
  local client = repl and client_of.of(repl.buf)
  -- The next server begins a new session.
  if repl and (not client or client.id == id) then show_package('COMMON-LISP-USER') end
end)

--- Returns the package of the text at the cursor in a Lisp buffer. Returns nil elsewhere: code is
--- then read in the package of this editor's session.
---@return string?
function M.package_of_file() return vim.bo.filetype == 'lisp' and M.package_here() or nil end

--- Switches the REPL to a package if the image has it. The prompt then shows the package of the
--- session, whether or not it has changed.
---@param name? string nil: the session stays in its package
---@param is_unknown? boolean true if the session may be in another package than the prompt shows
local function enter_package(name, is_unknown)
  if repl.busy then return end
  -- An unanswered earlier request is no reason to wait, because its server may have ended.
  if not is_unknown and (not name or not repl.entering and short(name) == repl.package) then return end
  local here, entering = repl, {}
  repl.entering = entering
  local string = name and '"' .. name:gsub('[\\"]', '\\%0') .. '"' or 'nil'
  local cancel = client_of.execute('eval', { code = ('(consort::enter-package %s)'):format(string) }, function(result)
    if repl ~= here or repl.entering ~= entering then return end -- another package was requested since, or code
    repl.entering = nil
    if result.status == 'ok' and short(result.package) ~= repl.package then show_package(result.package) end
  end, {
    buf = repl.buf,
    on_error = function(error)
      if repl == here and repl.entering == entering then repl.entering = nil end
      client_of.failed(error)
    end,
  })
  if not cancel then repl.entering = nil end
end

--- Moves the REPL to the image of a workspace. Returns false, and shows a message, while code runs
--- in the image of another one. The second value is true if the session there may be in another
--- package than the prompt shows.
---@return boolean is_there
---@return boolean? is_unknown
local function enter_workspace(root)
  local before = vim.b[repl.buf].consort_root
  if before == root then return true end
  if repl.busy then
    client_of.say(('<C-c> interrupts what runs in the image of %s'):format(before))
    return false
  end
  vim.b[repl.buf].consort_root = root
  repl.entering = nil -- its answer is of the other image
  if before then
    print_lines('; the image of ' .. root, 'ConsortPlainWarn')
    show_package('COMMON-LISP-USER')
  end
  has_moved = has_moved or before ~= nil
  return true, has_moved
end

--- Opens the REPL in a split window, or goes to it. Switches it to the image of the current buffer
--- and, from a Lisp buffer, to the package there.
function M.open()
  local client = client_of.need()
  if not client then return end
  local package = vim.bo.filetype == 'lisp' and require('consort.in_package').near() or nil
  if not repl then make() end
  local is_there, is_unknown = enter_workspace(client.root_dir)
  if is_there then enter_package(package, is_unknown) end
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

--- Opens the REPL and appends a call to the input: of the function at the cursor, or of the one
--- whose definition contains the cursor. Selects the name of the first argument, so that what is
--- typed replaces it; without arguments, puts the cursor behind the operator.
function M.call()
  local client = client_of.need()
  if not client then return end
  local package = vim.bo.filetype == 'lisp' and require('consort.in_package').near() or repl and repl.package
  local argument = vim.tbl_extend('error', client_of.place(client), { package = package or nil })
  client_of.execute('callTemplate', argument, function(template)
    M.open()
    if not repl then return end
    local typed = input()
    set_input(typed .. template.text)
    local row, first = vim.api.nvim_buf_line_count(0), template.arguments[1]
    local column = #vim.fn.getline(row) - (first and #template.text - #template.name - 2 or 1)
    vim.cmd.stopinsert()
    vim.schedule(function()
      if not repl or vim.api.nvim_get_current_buf() ~= repl.buf then return end
      if not first then vim.cmd.startinsert() end
      vim.api.nvim_win_set_cursor(0, { row, column })
      local steps = first and vim.fn.strchars(first) - (vim.o.selection == 'exclusive' and 0 or 1)
      if steps then vim.cmd.normal({ 'v' .. (steps > 0 and steps .. 'l' or '') .. vim.keycode('<C-g>'), bang = true }) end
    end)
  end, { here = true })
end

return M
