--- The debugger's buffer, similar to that of SLIME: the condition, the numbered restarts, and the
--- frames of a stopped thread.
require('consort.colours')
local adapters = require('consort.adapter')
local around = require('consort.debugger_around')
local client_of = require('consort.client')
local float = require('consort.float')
local render = require('consort.debugger_lines').render
local escaped = require('consort.escaped')
local sources = require('consort.debugger_source')
local number_of = around.number_of

local M = {}
local MOMENT = 150 -- ms from `continued` to closing the buffer; the thread may stop again in it
local HEIGHT = 0.4 -- of the screen
local LEVELS = 200 -- the maximum number of frames that are shown

---@class consort.Stop a stopped thread
---@field adapter consort.Adapter
---@field thread integer
---@field serial integer distinguishes this stop from an earlier one of the same thread
---@field shown? integer the serial of the stop that the buffer shows
---@field text string
---@field restarts? table[]
---@field frames? table[]
---@field number? integer the image's number of the stop
---@field level? integer
---@field around table<integer, consort.Around> by the levels of the stops around this one
---@field open table<integer, table[]> the variables of open frames, by the frame's number, from 0
---@field opening table<integer, table> the last request for the variables of a frame, by its number
---@field buf? integer
---@field lines consort.Line[]
---@field quitting? boolean true while all stops of the thread are being aborted
---@field is_stepped? boolean true if the stop is at a breakpoint or after a step

---@type consort.Stop[] the oldest first
local stops = {}
local serial = 0
---@type table<consort.Adapter, table<integer, true>> the threads to show when they stop, by number,
---  because each image numbers its own
local awaited = {}
---@type { root: string, number: integer, is_here: fun(): boolean }? the failure requested last
local requested_failure

local function find(adapter, thread)
  for i, stop in ipairs(stops) do
    if stop.adapter == adapter and stop.thread == thread then return stop, i end
  end
end

--- Returns a function that returns true while the thread is still at its current stop.
---@param stop consort.Stop
---@return fun(): boolean
local function still_at(stop)
  local at = stop.serial
  return function() return stop.serial == at and find(stop.adapter, stop.thread) == stop end
end

-- Keys

--- Returns the restart, frame or variable that the cursor's line shows; an empty table if none.
---@param stop consort.Stop
---@return consort.Line
local function here(stop) return stop.lines[vim.api.nvim_win_get_cursor(0)[1]] or {} end

--- Returns the frame of the cursor's line; the innermost frame if that line has none.
---@param stop consort.Stop
local function frame_here(stop) return here(stop).frame or (stop.frames or {})[1] end

local function no_frame() client_of.say('put the cursor on a frame') end

--- Sends a request about the thread of a stop.
local function at_stop(stop, command, arguments)
  local is_here = client_of.here()
  stop.adapter:ask(command, vim.tbl_extend('keep', arguments or {}, { threadId = stop.thread }), function(answer)
    -- A frozen failure does not continue. The answer has the result of trying the request.
    if answer.tried then float.open(escaped.lines(answer.tried.result), { title = 'Tried', is_here = is_here, hint = 'q closes' }) end
  end)
end

--- Asks the person for a text. `done` is called with it if the thread is still at the stop.
---@param stop consort.Stop
---@param title string
---@param done fun(typed: string)
local function input(stop, title, done)
  local is_there = still_at(stop)
  vim.ui.input({ prompt = title }, function(typed)
    if not typed then return end
    -- Spaces at the end are kept, because `#\ ` is a character. Only spaces alone mean no text.
    if is_there() then return done(vim.trim(typed) == '' and '' or typed) end
    client_of.fail('that stop was left meanwhile' .. (vim.trim(typed) == '' and '' or '; not used: ' .. typed))
  end)
end

--- Asks as `input` does, and ignores an empty text.
local function ask(stop, title, done)
  input(stop, title, function(typed)
    if typed ~= '' then done(typed) end
  end)
end

local function invoke(stop, restart)
  if not restart then return client_of.say('there is no such restart') end
  local function go(arguments) at_stop(stop, 'consort/invokeRestart', { stop = restart.stop, index = restart.index, name = restart.name, arguments = arguments }) end
  if not restart.arguments then return go() end
  input(stop, ('Value of %s, a Lisp form (none: empty): '):format(escaped.line(restart.name or restart.report)), function(typed)
    go(typed ~= '' and { typed } or nil)
  end)
end

--- Fetches the variables of a frame. `found` is not called if the thread has left the stop in the
--- meantime.
---@param found fun(variables: table[])
local function with_variables(stop, frame, found)
  local is_there = still_at(stop)
  stop.adapter:ask('scopes', { frameId = frame.id }, function(answer)
    if not is_there() then return end
    stop.adapter:ask('variables', { variablesReference = answer.scopes[1].variablesReference }, function(variables)
      if is_there() and stop.buf and vim.api.nvim_buf_is_valid(stop.buf) then found(variables.variables) end
    end)
  end)
end

--- Shows the local variables of a frame below its line, with their current values.
---@param show? fun() shows the buffer; `render` of the stop by default
local function open_frame(stop, frame, number, show)
  local mine = {}
  stop.opening[number] = mine
  with_variables(stop, frame, function(variables)
    if stop.opening[number] ~= mine then return end -- closed or requested again meanwhile
    stop.opening[number] = nil
    stop.open[number] = variables
    if show then show() else render(stop) end
  end)
end

--- Shows the local variables of a frame below its line, or removes them if they are shown.
local function toggle(stop, frame)
  local number = number_of(stop, frame)
  if not number then return end
  if stop.open[number] then
    stop.open[number], stop.opening[number] = nil, nil
    return render(stop)
  end
  open_frame(stop, frame, number)
end

--- Shows the source of a frame in a window other than the debugger's.
---@param done? fun() afterwards, in that window
local function source(stop, frame, done)
  sources.show(stop.adapter, frame, { is_there = still_at(stop), values = function(found) with_variables(stop, frame, found) end, done = done })
end

--- Shows the source position of the innermost frame at a breakpoint or after a step, if the cursor
--- is in the debugger's window. The cursor stays there.
---@param win integer
local function follow(stop, win)
  local frame = stop.frames[1]
  if not stop.is_stepped or vim.api.nvim_get_current_win() ~= win or vim.api.nvim_get_mode().mode ~= 'n' then return end
  -- A form that is no longer in its file is shown only on request.
  if not frame or not frame.source or frame.line == 0 or frame.source.origin then return end
  source(stop, frame, function()
    if vim.api.nvim_win_is_valid(win) then vim.api.nvim_set_current_win(win) end
  end)
end

local function eval(stop)
  local frame = frame_here(stop)
  if not frame then return no_frame() end
  ask(stop, ('Evaluate in %s: '):format(escaped.line(frame.name)), function(code)
    local is_here = client_of.here()
    -- An error in the evaluation is a new stop, which this buffer shows. The answer comes when that
    -- stop has been left.
    stop.adapter:ask('evaluate', { expression = code, frameId = frame.id, context = 'repl' }, function(answer)
      local lines = escaped.lines(answer.result)
      if #lines == 1 then client_of.say('⇒ ' .. lines[1]) else float.open(lines, { title = 'Value', is_here = is_here, filetype = 'lisp', hint = 'q closes' }) end
    end)
  end)
end

--- Inspects the variable of the cursor's line, or else the value of an expression that the person
--- types.
local function inspect(stop)
  local inspector, variable, frame = require('consort.inspector'), here(stop).variable, frame_here(stop)
  local function open(name, value, reference, focus, request)
    if (reference or 0) == 0 then return client_of.say(('%s = %s: this value has no parts'):format(name, value)) end
    inspector.open(stop.adapter, name, value, reference, focus, request)
  end
  if variable then return open(variable.name, variable.value, variable.variablesReference, true) end
  ask(stop, 'Inspect the value of: ', function(code)
    local is_here, is_there, request = client_of.here(), still_at(stop), inspector.asked()
    stop.adapter:ask('evaluate', { expression = code, frameId = frame and frame.id, context = 'watch' }, function(answer)
      if is_there() then return open(code, answer.result, answer.variablesReference, is_here(), request) end
      client_of.say(('%s = %s'):format(escaped.line(code), escaped.line(answer.result)))
    end)
  end)
end

--- Sets the local variable of the cursor's line.
local function set(stop)
  local variable, frame = here(stop).variable, here(stop).frame
  if not variable then return client_of.say('put the cursor on a local') end
  local number = number_of(stop, frame)
  ask(stop, ('New value of %s, a Lisp form: '):format(escaped.line(variable.name)), function(code)
    local is_there = still_at(stop)
    stop.adapter:ask('scopes', { frameId = frame.id }, function(answer)
      local arguments = { variablesReference = answer.scopes[1].variablesReference, name = variable.name, value = code }
      stop.adapter:ask('setVariable', arguments, function()
        -- The variables are fetched again, because the frame may have been closed and opened in the
        -- meantime.
        if is_there() and stop.open[number] then open_frame(stop, frame, number) end
      end)
    end)
  end)
end

local function return_from(stop)
  local frame = frame_here(stop)
  if not frame then return no_frame() end
  ask(stop, ('Return from %s the value of: '):format(escaped.line(frame.name)), function(code)
    at_stop(stop, 'consort/return', { frameId = frame.id, code = code })
  end)
end

--- Aborts the stop. Disconnects if the stop is a frozen failure.
local function abort(stop)
  if stop.adapter.failure then return stop.adapter:leave() end
  at_stop(stop, 'terminateThreads', { threadIds = { stop.thread } })
end

--- Aborts the stops of a thread, the innermost one first, until none is left.
local function quit(stop)
  if stop.adapter.failure then return abort(stop) end
  stop.quitting = true
  stop.adapter:request('terminateThreads', { threadIds = { stop.thread } }, function(error)
    if not error then return end
    -- The request failed, so later stops of the thread are not aborted.
    stop.quitting = nil
    client_of.fail(error)
  end)
end

--- Moves the cursor to the next or previous line that shows a restart, a frame or a variable.
local function move(stop, by)
  local row = vim.api.nvim_win_get_cursor(0)[1] + by
  while stop.lines[row] and not next(stop.lines[row]) do row = row + by end
  if stop.lines[row] then vim.api.nvim_win_set_cursor(0, { row, 0 }) end
end

---@param stop consort.Stop
local function keys(stop)
  local function map(key, about, run) vim.keymap.set('n', key, run, { buffer = stop.buf, nowait = true, desc = 'Consort: ' .. about }) end
  for digit = 0, 9 do
    map(tostring(digit), ('restart %d'):format(digit), function()
      invoke(stop, vim.iter(stop.restarts or {}):find(function(restart) return restart.index == digit end))
    end)
  end
  local function open()
    local line = here(stop)
    if line.restart then return invoke(stop, line.restart) end
    if line.variable then return inspect(stop) end
    if line.frame then return toggle(stop, line.frame) end
    client_of.say('put the cursor on a restart, a frame or a variable')
  end
  map('<CR>', 'invoke the restart, open the frame, inspect the variable', open)
  map('<Tab>', 'open the frame or fold it', function()
    if here(stop).frame then toggle(stop, here(stop).frame) else no_frame() end
  end)
  map('v', 'source of the frame', function() source(stop, frame_here(stop)) end)
  map('e', 'evaluate in the frame', function() eval(stop) end)
  map('i', 'inspect', function() inspect(stop) end)
  map('=', 'set the local', function() set(stop) end)
  map('r', 'restart the frame', function()
    local frame = frame_here(stop)
    if frame then stop.adapter:request('restartFrame', { frameId = frame.id }) else no_frame() end
  end)
  map('R', 'return from the frame', function() return_from(stop) end)
  map('c', 'continue', function() at_stop(stop, 'continue') end)
  map('s', 'step into', function() at_stop(stop, 'stepIn') end)
  map('x', 'step over', function() at_stop(stop, 'next') end)
  map('o', 'step out', function() at_stop(stop, 'stepOut') end)
  map('a', 'abort', function() abort(stop) end)
  map('q', 'quit', function() quit(stop) end)
  require('consort.maps').without_text(stop.buf, true)
  map('n', 'next frame', function() move(stop, 1) end)
  map('p', 'frame before', function() move(stop, -1) end)
end

--- Returns the window of a stop, and opens one if there is none.
---@param stop consort.Stop
---@param focus boolean true: the cursor goes to the window if the mode is Normal
local function window(stop, focus)
  if not (stop.buf and vim.api.nvim_buf_is_valid(stop.buf)) then
    stop.buf = vim.api.nvim_create_buf(false, true)
    vim.b[stop.buf].consort_root = stop.adapter.root
    vim.bo[stop.buf].bufhidden = 'hide'
    vim.bo[stop.buf].modifiable = false
    vim.bo[stop.buf].filetype = 'consort-debugger'
    pcall(vim.api.nvim_buf_set_name, stop.buf, stop.adapter.failure and ('consort://failure/%d'):format(stop.adapter.failure) or ('consort://debugger/%d'):format(stop.thread))
    keys(stop)
  end
  local win = vim.fn.bufwinid(stop.buf)
  -- Keys that a person types into a text must not go to the debugger, where a digit invokes a
  -- restart.
  local enter = vim.api.nvim_get_mode().mode == 'n' and vim.fn.getcmdwintype() == ''
  if win == -1 then
    local height = math.max(8, math.floor(vim.o.lines * HEIGHT))
    win = vim.api.nvim_open_win(stop.buf, false, { split = 'below', win = -1, height = height })
    vim.wo[win].number, vim.wo[win].relativenumber, vim.wo[win].wrap = false, false, false
    vim.wo[win].winfixheight = true
  end
  if not focus then return win end
  if enter then vim.api.nvim_set_current_win(win) else client_of.say('stopped; `:Consort debugger` goes there', vim.log.levels.WARN) end
  return win
end

--- Fetches the restarts and frames of a stop, and shows them. The cursor goes to the debugger's
--- window if `is_here` returns true. Without `is_here`, the cursor goes there the first time that
--- the stop is shown.
---@param stop consort.Stop
---@param is_here? fun(): boolean from `client.here`
local function show(stop, is_here)
  local at, current = stop.serial, still_at(stop)
  stop.adapter:ask('consort/restarts', { threadId = stop.thread }, function(answer)
    if not current() then return end
    stop.restarts = answer.restarts
    stop.adapter:ask('stackTrace', { threadId = stop.thread, startFrame = 0, levels = LEVELS }, function(found)
      if not current() then return end
      -- A stop may be announced twice, by a DAP event and an LSP notification. The second time, the
      -- open frames and the cursor are kept.
      local again = stop.shown == at and stop.buf ~= nil
      stop.frames, stop.open, stop.shown = found.stackFrames, again and stop.open or {}, at
      if not again then stop.opening = {} end
      local focus = not again
      if is_here then focus = is_here() end
      local win = window(stop, focus)
      render(stop)
      if again then return end
      around.open_again(stop, win, function(frame, number, opened) open_frame(stop, frame, number, opened) end, render)
      vim.api.nvim_win_call(win, function() vim.fn.winrestview({ topline = 1 }) end)
      follow(stop, win)
    end)
  end)
end

local function close(stop)
  if stop.buf and vim.api.nvim_buf_is_valid(stop.buf) then vim.api.nvim_buf_delete(stop.buf, { force = true }) end
  stop.buf = nil
  sources.clear()
end

-- Events

adapters.on('stopped', function(adapter, body)
  local stop = find(adapter, body.threadId)
  if not stop then
    stop = { adapter = adapter, thread = body.threadId, around = {}, open = {}, opening = {}, lines = {}, text = '', serial = 0 }
    table.insert(stops, stop)
  end
  around.next(stop, body.stop, body.level or 1)
  stop.is_stepped = body.reason == 'breakpoint' or body.reason == 'step'
  serial = serial + 1
  stop.serial = serial
  stop.text = table.concat(vim.iter({ body.description, body.text }):flatten():totable(), ': ')
  if body.reason == 'exception' and body.text then stop.text = body.text end
  if (body.level or 1) > 1 then stop.text = ('[level %d] %s'):format(body.level, stop.text) end
  if stop.quitting then return quit(stop) end
  if adapter.failure then
    show(stop, function() return requested_failure ~= nil and requested_failure.root == adapter.root and requested_failure.number == adapter.failure and requested_failure.is_here() end)
  elseif vim.tbl_get(awaited, adapter, stop.thread) or stop.buf then
    if awaited[adapter] then awaited[adapter][stop.thread] = nil end
    show(stop)
  end
end)

adapters.on('continued', function(adapter, body)
  local stop = find(adapter, body.threadId)
  if not stop then return end
  local is_there = still_at(stop)
  local function over()
    if not is_there() then return end
    table.remove(stops, select(2, find(adapter, body.threadId)))
    close(stop)
  end
  if stop.quitting then over() else vim.defer_fn(over, MOMENT) end
end)

adapters.on('exited', function(adapter)
  for i = #stops, 1, -1 do
    if stops[i].adapter == adapter then close(table.remove(stops, i)) end
  end
  awaited[adapter] = nil
end)

--- Handles `consort/stopped`, the notification that an evaluation of this editor has stopped.
function M.on_stopped(_, params, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if not client then return end
  local adapter = adapters.of(client)
  if not adapter then return end
  local stop = find(adapter, params.thread)
  if stop then return show(stop) end
  awaited[adapter] = awaited[adapter] or {}
  awaited[adapter][params.thread] = true
end

--- Opens a frozen failure in the debugger's buffer.
---@param client vim.lsp.Client
---@param number integer
function M.open_failure(client, number)
  local mine = { root = client.root_dir or vim.fn.getcwd(), number = number, is_here = client_of.here() }
  requested_failure = mine
  for _, stop in ipairs(stops) do
    if stop.adapter.root == mine.root and stop.adapter.failure == number then return show(stop, function() return requested_failure == mine and mine.is_here() end) end
  end
  adapters.failure(client, number)
end

--- Calls `found` with the newest stop of the workspace, or shows a message if nothing is stopped.
---@param adapter consort.Adapter
---@param found fun(stop: consort.Stop)
local function with_newest(adapter, found)
  -- The answer to `threads` comes after the events for the current stops.
  adapter:ask('threads', {}, function()
    local newest = vim.iter(stops):filter(function(stop) return stop.adapter == adapter end):last()
    if newest then found(newest) else client_of.say('nothing is stopped') end
  end)
end

--- Goes to the debugger, at the newest stop of the workspace.
function M.open()
  local adapter = adapters.of()
  local is_here = client_of.here()
  if adapter then with_newest(adapter, function(stop) show(stop, is_here) end) end
end

--- Calls `found` with a function that makes the newest stop of the workspace continue.
---@param found fun(continue: fun())
function M.newest(found)
  local adapter = adapters.of()
  if adapter then
    with_newest(adapter, function(stop)
      local is_there = still_at(stop)
      found(function()
        if is_there() then at_stop(stop, 'continue') else client_of.fail('that stop was left meanwhile; nothing was continued') end
      end)
    end)
  end
end

return M
