-- nvim --headless -u NONE -i NONE -l latest_test.lua: of two requests the last one counts, also
-- when the answer to the one before comes after its answer.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local S = require('stand_in')
S.use()
local questions, answer, tell, only = S.questions, S.answer, S.tell, S.adapter
local lines, text, floats, drawn, frame, stop, range, ok = S.lines, S.text, S.floats, S.drawn, S.frame, S.stop, S.range, S.ok

local said, last, forget = T.notifications()
local typed = {}
vim.ui.input = function(_, take) take(table.remove(typed, 1)) end
local asked = {}
vim.ui.select = function(items, options)
  table.insert(asked, options.prompt)
end

local press = T.press
local function window(...)
  forget()
  asked, typed = {}, {}
  return S.window(...)
end
local function at(row, column) vim.api.nvim_win_set_cursor(0, { row, column or 0 }) end

-- Floats, and places

T.it('of two descriptions the last one is shown', function()
  for command, run in pairs({
    describe = function(name) require('consort.views').describe(name) end,
    disassemble = function(name) require('consort.views').disassemble(name) end,
    macroexpand = function() require('consort.views').expand() end,
  }) do
    for _, order in ipairs({ { 2, 1 }, { 1, 1 } }) do
      window('(a)')
      run('one')
      run('two')
      local texts = { { text = 'of one', name = 'ONE', expansion = 'of one' }, { text = 'of two', name = 'TWO', expansion = 'of two' } }
      for _, i in ipairs(order) do answer(i, command, table.remove(texts, i)) end
      T.eq(floats(), { vim.api.nvim_get_current_win() }, command)
      T.eq('of two', text(), command)
      press('q')
      T.eq({}, floats(), command)
    end
  end
end)

T.it('what the callers of a definition are is told of both', function()
  window('(a)')
  require('consort.views').callers('one')
  require('consort.views').callers('two')
  answer(1, 'recompileCallers', { text = 'of one', name = 'ONE' })
  answer(1, 'recompileCallers', { text = 'of two', name = 'TWO' })
  T.eq(2, #floats())
end)

T.it('the definition that was requested last is gone to, in the same text too', function()
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(defun f ())', '(defun g ())', '(list)' }, file)
  window()
  vim.cmd.edit(file)
  at(3)
  require('consort.views').go_to('f')
  require('consort.views').go_to('g')
  answer(2, 'sourceLocation', { definitions = { { file = file, line = 2 } } })
  answer(1, 'sourceLocation', { definitions = { { file = file, line = 1 } } })
  T.eq(2, vim.fn.line('.'))
  T.eq({}, said)
end)

T.it('the list is of the references that were requested last, and so is a question', function()
  window('(a)', '(b)')
  local function found(name) return { name = name, kinds = { 'calls' }, references = { { kind = 'calls', uri = 'file:///none.lisp', range = range(0, 0, 1) } } } end
  require('consort.names').references('calls')
  require('consort.names').references('calls')
  answer(1, 'references', found('ONE'))
  answer(1, 'references', found('TWO'))
  T.eq('TWO: calls', vim.fn.getqflist({ title = true }).title)
  vim.cmd.cclose()

  window('(a)', '(b)')
  require('consort.undefine').ask()
  require('consort.moving').ask()
  answer(2, 'moveDestinations', { name = 'F', files = {} })
  answer(1, 'removable', { name = 'F', parts = {} })
  T.eq({ 'Move F to' }, asked)
end)

T.it('the answer to the earlier request counts when the later one fails, before it or after it', function()
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(defun f ())', '(defun g ())', '(list)' }, file)
  local found = { definitions = { { file = file, line = 2 } } }
  local no = { code = 1, message = 'no definition is there' }
  local views = require('consort.views')
  for _, fails_first in ipairs({ true, false }) do
    window()
    vim.cmd.edit({ file, bang = true })
    at(3)
    views.go_to('g')
    require('consort.moving').ask()
    if fails_first then answer(2, 'moveDestinations', nil, no) end
    answer(1, 'sourceLocation', found)
    T.eq(fails_first and 2 or 3, vim.fn.line('.'))
    if not fails_first then answer(1, 'moveDestinations', nil, no) end
    T.eq(2, vim.fn.line('.'))
    T.eq('Consort: no definition is there', last())
  end
  -- A person who has gone on is told.
  views.go_to('g')
  require('consort.moving').ask()
  answer(1, 'sourceLocation', found)
  vim.cmd.new()
  answer(1, 'moveDestinations', nil, no)
  T.eq(true, last():find('you have moved on', 1, true) ~= nil, last())

  window('(a)')
  views.describe('one')
  views.describe('two')
  answer(1, 'describe', { text = 'of one', name = 'ONE' })
  T.eq({}, floats())
  answer(1, 'describe', nil, no)
  T.eq('of one', text())
  press('q')
end)

T.it('of two texts about inspected values the last one is shown', function()
  window('(a)')
  vim.cmd('Consort inspect (one)')
  answer(1, 'eval', { status = 'ok', values = { 'ONE' }, references = { 1 } })
  answer(1, 'inspect', { parts = {}, total = 0 })
  press('vt')
  answer(2, 'inspectTable', { columns = {}, rows = {}, total = 0 })
  answer(1, 'inspectDescribe', { text = 'described', error = vim.NIL })
  T.eq(1, #floats())
  T.eq('(one), 0 of 0 rows', lines()[1])
  press('q')
end)

-- Evaluation and tests

T.it('the value of the last evaluation stays beside its form, and that of the one before is said', function()
  local buf = window('(a)', '(b)')
  local eval = require('consort.eval')
  eval.form()
  eval.form()
  answer(2, 'evalForm', ok('2', { range = range(0, 0, 3) }))
  answer(1, 'evalForm', ok('1', { range = range(0, 0, 3) }))
  T.eq({ '0: ⇒ 2' }, drawn('consort.inline', buf))
  T.eq('Consort: ⇒ 1', last())
  -- In the order of the requests, each is shown.
  eval.form()
  answer(1, 'evalForm', ok('3', { range = range(0, 0, 3) }))
  T.eq({ '0: ⇒ 3' }, drawn('consort.inline', buf))
end)

T.it('failures at their lines are those of the last run of tests', function()
  local buf, win = window('(test a)', '(test b)')
  local file = vim.fn.tempname() .. '.lisp'
  local tests = require('consort.tests')
  local function outcome(name, status, line) return { tests = { { name = name, status = status, file = file, line = line, failures = { { message = name } } } } } end
  local function failures() return vim.tbl_map(function(item) return item.text end, vim.fn.getqflist()) end
  local function marks() return vim.tbl_map(function(one) return one.message end, vim.diagnostic.get()) end
  tests.run()
  tests.run()
  answer(2, 'runTestAtPoint', outcome('B', 'failed', 2))
  answer(1, 'runTestAtPoint', outcome('A', 'passed', 1))
  T.eq({ { 'B: B' }, { 'B' } }, { failures(), marks() })
  T.eq('Consort: the test passed', last())
  vim.cmd.cclose()
  tests.run()
  answer(1, 'runTestAtPoint', outcome('A', 'passed', 1))
  T.eq({ {}, {} }, { failures(), marks() })
  T.eq({ buf, win }, { vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win() })
  -- A later run that fails has nothing to show instead.
  tests.run()
  tests.run()
  answer(2, 'runTestAtPoint', nil, { code = 1, message = 'no test is there' })
  answer(1, 'runTestAtPoint', outcome('A', 'failed', 1))
  T.eq({ { 'A: A' }, { 'A' } }, { failures(), marks() })
  vim.cmd.cclose()
end)

T.it('what differs is loaded once by two commands', function()
  window('(a)', '(b)')
  local load = require('consort.differences').load
  local found = { forms = { { range = range(0, 0, 3) } } }
  load()
  load()
  answer(1, 'differences', found)
  answer(1, 'differences', found)
  answer(1, 'evalRegion', ok('1', { range = range(0, 0, 3) }))
  answer(1, 'differences', { forms = {} })
  T.eq({}, questions)
  T.eq('Consort: 1 form evaluated', last())
  load()
  answer(1, 'differences', nil, { code = 1, message = 'no image' })
  T.eq('Consort: no image', last())
end)

T.it('what differs is loaded of two texts, and a person who has gone on is told', function()
  local buf = window('(a)', '(b)')
  local load = require('consort.differences').load
  local found = { forms = { { range = range(0, 0, 3) } } }
  load()
  answer(1, 'differences', found)
  vim.cmd.new()
  load()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buf))
  answer(1, 'evalRegion', ok('1', { range = range(0, 0, 3) }))
  answer(2, 'differences', { forms = {} })
  T.eq('Consort: 1 form evaluated', last())
  answer(1, 'differences', found)
  T.eq({}, questions)
  T.eq(true, last():find('then you moved on', 1, true) ~= nil, last())
end)

-- Recordings

T.it('each key goes one moment further, also before the answer to the one before', function()
  window('(a)')
  local function rows(event) return { answer = { rows = { { text = 'moment', event = event } }, total = 1, start = 0, event = event } } end
  require('consort.recording').record()
  answer(1, 'record', { recording = vim.tbl_extend('force', { recording = 1, events = 9, calls = 1, outcome = { values = { '1' } } }, rows(4)) })
  press('>>')
  T.eq({ 5, 6 }, vim.tbl_map(function(one) return one.arguments.event end, questions))
  answer(1, 'recordingQuery', rows(5))
  answer(1, 'recordingQuery', rows(6))
  press('<lt>')
  T.eq(5, questions[1].arguments.event)
  -- After one that failed the keys are about the moment that is shown.
  answer(1, 'recordingQuery', nil, { code = 1, message = 'no image' })
  press('>')
  T.eq(7, questions[1].arguments.event)
  press('q')
end)

-- The REPL

T.it('the REPL is in the package that it was opened from last', function()
  local repl = require('consort.repl')
  local _, win = window('(in-package :one)', '(f)', '(in-package :two)', '(g)')
  vim.bo.filetype = 'lisp'
  local function open(row)
    vim.api.nvim_set_current_win(win)
    at(row)
    repl.open()
    vim.cmd.stopinsert()
  end
  local function prompt() return lines(vim.fn.bufnr('consort://repl'))[2] end
  open(2)
  open(4)
  answer(2, 'eval', { status = 'ok', values = {}, package = 'TWO' })
  answer(1, 'eval', { status = 'ok', values = {}, package = 'ONE' })
  T.eq('TWO> ', prompt())
  -- The same when the last one is that of the prompt.
  open(2)
  open(4)
  answer(1, 'eval', { status = 'ok', values = {}, package = 'ONE' })
  answer(1, 'eval', { status = 'ok', values = {}, package = 'TWO' })
  T.eq('TWO> ', prompt())
  T.eq({}, questions)
  -- Code that was entered since counts too.
  open(2)
  vim.api.nvim_feedkeys(vim.keycode('A(in-package :cl)<CR><Esc>'), 'x!', false)
  answer(2, 'eval', { status = 'ok', values = { '1' }, warnings = {}, package = 'CL' })
  answer(1, 'eval', { status = 'ok', values = {}, package = 'ONE' })
  T.eq('CL> ', lines(vim.fn.bufnr('consort://repl'))[4])
  -- A server that has ended does not answer.
  open(2)
  S.drop()
  open(2)
  answer(1, 'eval', { status = 'ok', values = {}, package = 'ONE' })
  T.eq('ONE> ', lines(vim.fn.bufnr('consort://repl'))[4])
  vim.cmd('bwipeout! ' .. vim.fn.bufnr('consort://repl'))
end)

-- The inspector

local function part(name, reference) return { name = name, value = 'of ' .. name, variablesReference = reference or 0 } end
local function inspect(parts)
  window()
  require('consort.inspector').open(only, 'one', 'value of one', 1, true)
  answer(1, 'variables', { variables = parts })
end

T.it('the value that was evaluated last is gone to, and the one before is said', function()
  inspect({ part('A', 10) })
  typed = { '(f *)', '(g *)' }
  press('ee')
  answer(1, 'evaluate', '1', 20)
  T.eq('Consort: ⇒ 1', last())
  answer(1, 'evaluate', '2', 21)
  T.eq(21, questions[1].arguments.variablesReference)
  answer(1, 'variables', { variables = {} })
  T.eq('one › (g *)', lines()[1])
  press('q')
end)

T.it('a part that was set twice is read once more when the first answer comes last', function()
  inspect({ part('A') })
  typed = { '7', '8' }
  vim.fn.search('^A ')
  press('ss')
  answer(2, 'setVariable', { value = '8', variablesReference = 0 })
  answer(1, 'setVariable', { value = '7', variablesReference = 0 })
  T.eq(true, text():find('A  8', 1, true) ~= nil, text())
  answer(1, 'variables', { variables = { { name = 'A', value = '8', variablesReference = 0 } } })
  T.eq({}, questions)
  press('q')
end)

-- The debugger

T.it('an expression that is evaluated does not replace a variable that was inspected since', function()
  window()
  stop(1, { frame(1, nil, 1) })
  local debugger = vim.api.nvim_get_current_win()
  vim.fn.search('frame 1')
  press('<CR>')
  answer(1, 'scopes', { scopes = { { variablesReference = 1 } } })
  answer(1, 'variables', { variables = { part('X', 5) } })
  typed = { '(f x)' }
  press('i')
  vim.fn.search('X = ')
  press('i')
  answer(2, 'variables', { variables = {} })
  T.eq('X', lines()[1])
  answer(1, 'evaluate', { result = 'A', variablesReference = 6 })
  T.eq({}, questions)
  T.eq('X', lines()[1])
  vim.api.nvim_set_current_win(debugger)
  tell('exited', {})
end)

T.it('a frame that was folded stays folded, and its variables are the newest', function()
  window()
  stop(2, { frame(1, nil, 1) })
  vim.fn.search('frame 1')
  press('<CR><CR>')
  answer(1, 'scopes', { scopes = { { variablesReference = 1 } } })
  answer(1, 'scopes', { scopes = { { variablesReference = 1 } } })
  answer(2, 'variables', { variables = { { name = 'X', value = '2', variablesReference = 0 } } })
  answer(1, 'variables', { variables = { { name = 'X', value = '1', variablesReference = 0 } } })
  T.eq(true, text():find('X = 2', 1, true) ~= nil, text())
  -- Folded while they are read again, after a variable was set.
  typed = { '3' }
  vim.fn.search('X = 2')
  press('=')
  answer(1, 'scopes', { scopes = { { variablesReference = 1 } } })
  answer(1, 'setVariable', {})
  press('<Tab>')
  answer(1, 'scopes', { scopes = { { variablesReference = 1 } } })
  answer(1, 'variables', { variables = { { name = 'X', value = '3', variablesReference = 0 } } })
  T.eq(nil, text():find('X = ', 1, true), text())
  tell('exited', {})
end)

T.it('the source of the frame that was chosen last is shown', function()
  window('(mine)')
  local function without_file(id) return vim.tbl_extend('force', frame(id, nil, 1), { source = { sourceReference = id, name = 'f' } }) end
  stop(3, { without_file(1), without_file(2) })
  for _, name in ipairs({ 'frame 1', 'frame 2' }) do
    vim.fn.search(name)
    press('v')
  end
  answer(1, 'source', { content = '(one)' })
  answer(1, 'source', { content = '(two)' })
  T.eq('(two)', text())
  tell('exited', {})
end)

T.it('a stop that is told twice takes the cursor once', function()
  local _, win = window('(mine)')
  stop(4, { frame(1, nil, 1) })
  T.eq('consort-debugger', vim.bo.filetype)
  vim.api.nvim_set_current_win(win)
  local debugger = require('consort.debugger')
  debugger.on_stopped(nil, { thread = 4 }, { client_id = 1 })
  answer(#questions, 'consort/restarts', { restarts = {} })
  answer(#questions, 'stackTrace', { stackFrames = { frame(1, nil, 1) } })
  T.eq(win, vim.api.nvim_get_current_win())
  -- By its command it takes the cursor again, of a person who has not gone on.
  for _, gone_on in ipairs({ true, false }) do
    S.drop()
    vim.api.nvim_set_current_win(win)
    debugger.open()
    answer(1, 'threads', {})
    if gone_on then vim.cmd.split() end
    local before = vim.api.nvim_get_current_win()
    answer(1, 'consort/restarts', { restarts = {} })
    answer(1, 'stackTrace', { stackFrames = { frame(1, nil, 1) } })
    T.eq(gone_on, vim.api.nvim_get_current_win() == before)
    if gone_on then vim.cmd.close() end
  end
  tell('exited', {})
end)

T.it('the condition and the keys of the debugger are broken into lines by the width of its window', function()
  window('(error "x")')
  local words = vim.trim(('word '):rep(40))
  require('consort.debugger').on_stopped(nil, { thread = 8 }, { client_id = 1 })
  S.tell('stopped', { threadId = 8, reason = 'exception', text = words })
  answer(1, 'consort/restarts', { restarts = { { index = 0, name = 'ABORT', report = 'End.' } } })
  answer(1, 'stackTrace', { stackFrames = { frame(1, '/f.lisp', 1) } })
  local buf = vim.fn.bufnr('consort://debugger/8')
  local function below()
    local found = {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, -1, 0, -1, { details = true })) do
      for _, line in ipairs(mark[4].virt_lines or {}) do table.insert(found, line[1][1]) end
    end
    return found
  end
  local function fits(width)
    for _, line in ipairs(vim.list_extend(below(), lines(buf))) do T.eq(true, vim.fn.strdisplaywidth(line) <= width, line) end
    T.eq(true, table.concat(below(), ' · '):find('q quit', 1, true) ~= nil, table.concat(below(), '|'))
    T.eq(words, table.concat(vim.list_slice(lines(buf), 1, vim.fn.index(lines(buf), '')), ' '))
  end
  local win = vim.fn.bufwinid(buf)
  fits(80)
  T.eq(true, below()[2]:find('^0%-9 restart · a abort · q quit · ') ~= nil, below()[2])
  local at = vim.fn.getbufoneline(buf, vim.api.nvim_win_get_cursor(win)[1])
  vim.api.nvim_set_current_win(win)
  vim.cmd('vsplit | enew | vertical resize 40 | wincmd p')
  vim.api.nvim_exec_autocmds('WinResized', {}) -- Neovim tells it from its main loop only
  fits(vim.api.nvim_win_get_width(win))
  T.eq(true, vim.api.nvim_win_get_width(win) < 60)
  T.eq(at, vim.fn.getbufoneline(buf, vim.api.nvim_win_get_cursor(win)[1]))
  S.tell('exited', {})
  -- The inspector's keys too.
  vim.cmd('silent! only!')
  require('consort.inspector').open(S.adapter, 'x', 'value', 1, true)
  answer(#S.questions, 'variables', { variables = {} })
  buf = vim.fn.bufnr('consort://inspector')
  for _, line in ipairs(below()) do T.eq(true, vim.fn.strdisplaywidth(line) <= 80, line) end
  T.eq(true, table.concat(below(), ' · '):find('v describes', 1, true) ~= nil, table.concat(below(), '|'))
end)

T.it('of two frozen failures the one that was requested last takes the cursor', function()
  window('(mine)')
  for _, number in ipairs({ 7, 8 }) do vim.cmd('Consort failure ' .. number) end
  for _, number in ipairs({ 8, 7 }) do
    tell('stopped', { threadId = 1, reason = 'exception', text = 'failure' }, S.frozen[number])
    answer(1, 'consort/restarts', { restarts = {} })
    answer(1, 'stackTrace', { stackFrames = { frame(1, nil, 1) } })
    T.eq('consort://failure/8', vim.fn.bufname())
  end
  T.eq(true, vim.fn.bufwinid('consort://failure/7') ~= -1)
  -- The same of those that are open.
  vim.cmd('Consort failure 7')
  vim.cmd('Consort failure 8')
  for i = 2, 1, -1 do
    answer(i, 'consort/restarts', { restarts = {} })
    answer(i, 'stackTrace', { stackFrames = { frame(1, nil, 1) } })
  end
  T.eq('consort://failure/8', vim.fn.bufname())
  -- Each workspace counts its own failures.
  local seventh = S.frozen[7]
  require('consort.debugger').open_failure({ root_dir = '/other' }, 7)
  T.eq({}, S.questions)
  S.frozen[7] = seventh
  for _, number in ipairs({ 7, 8 }) do tell('exited', {}, S.frozen[number]) end
end)

T.it('nvim-dap asks for a restart once', function()
  window('(mine)')
  local sent = {}
  local session = { config = { type = 'consort' }, stopped_thread_id = 1 }
  function session:request(_, _, done) table.insert(sent, done) end
  package.loaded.dap = { session = function() return session end }
  local restarts = require('consort.dap').restarts
  restarts()
  restarts()
  sent[1](nil, { restarts = {} })
  T.eq({}, asked)
  sent[2](nil, { restarts = {} })
  T.eq({ 'Restart' }, asked)
  package.loaded.dap = nil
end)

T.it('a breakpoint is told of where its line was before an edit, and stays at its text', function()
  local buf = window('(a)', '(b)', '(c)', '(d)')
  vim.api.nvim_buf_set_name(buf, vim.fn.tempname() .. '.lisp')
  local function told(line) tell('breakpoint', { breakpoint = { id = 1, verified = true, line = line, source = { path = vim.api.nvim_buf_get_name(buf) } } }) end
  at(2)
  require('consort.breakpoints').toggle()
  answer(1, 'setBreakpoints', { breakpoints = { { id = 1, verified = true, line = 2 } } })
  told(3)
  T.eq({ '2:●' }, drawn('consort.breakpoints', buf))
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '(new)' })
  told(2)
  T.eq({ '3:●' }, drawn('consort.breakpoints', buf))
  require('consort.breakpoints').clear()
end)

T.finish()
