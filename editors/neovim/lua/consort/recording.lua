--- Recordings of execution. The form at the cursor or a test is run once and recorded in a copy of
--- the image; or the next call of a function is recorded in the image itself. A float shows the
--- rows of a query of the recording, and has keys for further queries.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

local HINT = '<CR> source, s moment, > < step, t calls, e error, v values, h history, w when, q closes'
local DEBUGGER = ', d nvim-dap'

---@class consort.Recorded
---@field number integer
---@field buf integer the buffer in which the recording was started, for further queries
---@field event? integer the number of the event that is shown

local function counted(number, what) return ('%d %s%s'):format(number, what, number == 1 and '' or 's') end

--- Returns the lines that show the answer to a query, and the row of the answer by line number,
--- 1-based. Lines without a row have no entry.
---@param answer table
---@param head? string[] lines to put before the rows
---@return string[] lines
---@return table<integer, table> rows
function M.lines(answer, head)
  local lines, rows = vim.list_extend({}, head or {}), {}
  for _, row in ipairs(answer.rows or {}) do
    local indent = ('  '):rep(math.min(row.depth or 0, 30))
    local value = row.value and (row.kind == 'variable' and ' = ' or ' ') .. row.value or ''
    table.insert(lines, indent .. row.text .. value)
    rows[#lines] = row
  end
  if (answer.total or 0) == 0 then table.insert(lines, 'No event of the recording matches.') end
  local shown = (answer.start or 0) + #(answer.rows or {})
  if shown < (answer.total or 0) then table.insert(lines, ('... %d of %d'):format(#answer.rows, answer.total)) end
  if (answer.failed or 0) > 0 then table.insert(lines, ('The condition failed at %d moments, first with %s'):format(answer.failed, answer.failure or '')) end
  return lines, rows
end

--- Closes the float and goes to the source location of a row.
local function go(row)
  if not row or type(row.position) ~= 'table' or not row.file or row.file == '' then return client_of.say('this row has no place in a file') end
  vim.api.nvim_win_close(0, true)
  require('consort.goto').line(row.file, row.position[1])
end

---@param recorded consort.Recorded
---@param answer table
---@param head? string[]
---@param title string
---@param is_here fun(): boolean
local function show(recorded, answer, head, title, is_here)
  local lines, rows = M.lines(answer, head)
  local first = math.huge
  for line in pairs(rows) do first = math.min(first, line) end
  local asked, wanted = 0, nil -- `wanted`: the event that the last query asked for, if any
  local function ask(query, argument)
    local win = vim.api.nvim_get_current_win()
    asked = asked + 1
    local mine = asked
    wanted = query == 'event' and argument.event or nil
    client_of.execute('recordingQuery', vim.tbl_extend('error', { recording = recorded.number, query = query }, argument or {}), function(result, _, is_still_here)
      -- The answer is dropped if the float has been closed or a later query has been made.
      if mine ~= asked or not vim.api.nvim_win_is_valid(win) then return end
      local is_there = is_still_here()
      vim.api.nvim_win_close(win, true)
      show(vim.tbl_extend('force', recorded, { event = result.answer.event }), result.answer, nil, ('Recording %d: %s'):format(recorded.number, argument and argument.of or query), function() return is_there end)
    end, {
      buf = recorded.buf,
      on_error = function(error)
        if mine == asked then wanted = nil end
        client_of.failed(error)
      end,
    })
  end
  local function ask_of(query, prompt)
    vim.ui.input({ prompt = prompt }, function(of)
      if of and of ~= '' then ask(query, { of = of }) end
    end)
  end
  local function row() return rows[vim.api.nvim_win_get_cursor(0)[1]] end
  local function step(by)
    local one = row()
    local event = wanted or recorded.event or one and one.event
    if not event or event + by < 0 then return client_of.say('this row has no event') end
    ask('event', { event = event + by })
  end
  local debugger = require('consort.dap')
  local with_debugger = debugger.is_set_up()
  float.open(lines, {
    title = title,
    is_here = is_here,
    row = first < math.huge and first - 1 or nil,
    hint = with_debugger and HINT .. DEBUGGER or HINT,
    keys = {
      d = with_debugger and function()
        vim.api.nvim_win_close(0, true)
        debugger.step_through(recorded.number)
      end or nil,
      ['<CR>'] = function() go(row()) end,
      s = function()
        local one = row()
        if one and one.event then ask('event', { event = one.event }) else client_of.say('this row has no event') end
      end,
      ['>'] = function() step(1) end,
      ['<'] = function() step(-1) end,
      t = function() ask('tree') end,
      e = function() ask('error') end,
      v = function() ask_of('values', 'Values of the expression: ') end,
      h = function() ask_of('history', 'History of the variable: ') end,
      w = function() ask_of('when', 'Find when this form became true: ') end,
    },
  })
end

local waiting ---@type fun()? cancels the request that waits for the next call

--- Cancels the request that waits for the next call of a function.
local function cancel()
  if not waiting then return client_of.say('not waiting for a call') end
  waiting()
  waiting = nil
  client_of.say('stopped waiting for the call')
end

--- Records the form at the cursor or, if a name is given, the test with that name. With `next`,
--- records the next call of the function at the cursor, and with `next NAME`, that of NAME. With
--- `cancel`, stops waiting for a call.
---@param what? string the name of a test, 'next', 'next NAME' or 'cancel'
function M.record(what)
  if what == 'cancel' then return cancel() end
  local client = client_of.need()
  if not client then return end
  local buf = vim.api.nvim_get_current_buf()
  local place = client_of.place(client)
  local call = what and (what == 'next' and vim.fn.expand('<cword>') or what:match('^next%s+(%S.*)$'))
  if call == '' then return client_of.say('there is no name at the cursor') end
  if call and waiting then return client_of.say('a call is waited for: `:Consort record cancel` ends that') end
  local argument = call and { call = call, uri = place.uri, position = place.position }
    or what and what ~= '' and { test = what, uri = place.uri, position = place.position }
    or { uri = place.uri, position = place.position }
  local over = client_of.doing(call and ('waiting for the next call of %s; `:Consort record cancel` ends it'):format(call) or 'recording ...')
  local ends
  local options = call and {
    on_error = function(error)
      if waiting ~= ends then return end -- cancelled; another request may wait now
      waiting = nil
      client_of.failed(error)
    end,
  }
  ends = client_of.execute('record', argument, function(result, _, is_here)
    if call and waiting == ends then waiting = nil end
    over()
    local recording = result.recording
    local outcome = recording.outcome or {}
    local failure = type(outcome.error) == 'table' and ('%s: %s'):format(outcome.error.type, outcome.error.message)
    if recording.recording == 0 then return float.open(result.text, { title = 'Not recorded', is_here = is_here, hint = 'q closes' }) end
    local head = {
      failure or '⇒ ' .. table.concat(outcome.values or {}, ', '),
      ('%s, %s; %s'):format(
        counted(recording.events, 'event'),
        counted(recording.calls, 'call'),
        type(recording.call) == 'table' and ('in the image, in the thread %s'):format(recording.call.thread) or 'the image is as it was'
      ),
      '',
    }
    show({ number = recording.recording, buf = buf, event = failure and recording.answer.event or nil }, recording.answer, head, ('Recording %d'):format(recording.recording), is_here)
  end, options)
  if call then waiting = ends end
end

return M
