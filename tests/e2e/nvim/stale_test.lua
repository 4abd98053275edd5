-- nvim --headless -u NONE -i NONE -l stale_test.lua: answers that come late, or in another order
-- than the requests.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')

local S = require('stand_in')
S.use()
local questions, answer, tell, only = S.questions, S.answer, S.tell, S.adapter
local lines, text, floats, drawn, frame, stop, range, ok = S.lines, S.text, S.floats, S.drawn, S.frame, S.stop, S.range, S.ok

local notify = vim.notify
local said, last, forget = T.notifications()
local answers, typed_later = {}, nil
vim.ui.input = function(_, typed)
  if answers[1] == 'LATER' then typed_later = typed else typed(table.remove(answers, 1)) end
end
local choice
vim.ui.select = function(items, _, choose) choose(choice and choice(items)) end

local press = T.press
local function has(part, buf) T.eq(true, text(buf):find(part, 1, true) ~= nil, part .. ' in ' .. text(buf)) end
local function has_not(part, buf) T.eq(nil, text(buf):find(part, 1, true), part .. ' in ' .. text(buf)) end
local function window(...)
  forget()
  return S.window(...)
end

-- The inspector

local function part(name, reference) return { name = name, value = 'of ' .. name, variablesReference = reference or 0 } end
local function inspect(name, reference) require('consort.inspector').open(only, name, 'value of ' .. name, reference, true) end
local function to_part(name) T.eq(true, vim.fn.search('^' .. name .. ' ') > 0, name) end

T.it('the inspector shows the value that was opened last, whose parts come first', function()
  window()
  inspect('one', 1)
  inspect('two', 2)
  answer(2, 'variables', { variables = { part('B') } })
  answer(1, 'variables', { variables = { part('A') } })
  T.eq('two', lines()[1])
  has('B  of B')
  has_not('of A')
end)

T.it('the value that was asked for last is inspected, also when the one before comes after it', function()
  local buf = window('(list 1)')
  vim.cmd('Consort inspect (one)')
  vim.cmd('Consort inspect (two)')
  answer(2, 'eval', { status = 'ok', values = { 'TWO' }, references = { 2 } })
  answer(1, 'eval', { status = 'ok', values = { 'ONE' }, references = { 1 } })
  answer(1, 'inspect', { parts = {}, total = 0 })
  T.eq({}, questions)
  T.eq('Consort: (one) ⇒ ONE', last())
  T.eq('(two)', lines()[1])
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buf))
  -- In the order of the requests, each is shown.
  vim.cmd('Consort inspect (three)')
  answer(1, 'eval', { status = 'ok', values = { 'THREE' }, references = { 3 } })
  answer(1, 'inspect', { parts = {}, total = 0 })
  T.eq('(three)', lines()[1])
end)

T.it('until parts come, the keys are about the value that is shown', function()
  window()
  inspect('one', 1)
  answer(1, 'variables', { variables = { part('A', 10), part('B', 11) } })
  to_part('A')
  press('<CR>')
  to_part('B')
  press('<CR>')
  answer(1, 'variables', { variables = { part('of A') } })
  has('A  of A') -- the last question is about B
  answer(1, 'variables', { variables = { part('D') } })
  T.eq('one › B', lines()[1])
  has('D  of D')
end)

T.it('parts that cannot be read leave what is shown', function()
  window()
  inspect('one', 1)
  answer(1, 'variables', { variables = { part('A', 10) } })
  to_part('A')
  press('<CR>')
  answer(1, 'variables', { variables = { part('B') } })
  press('u')
  answer(1, 'variables', nil, 'no image')
  T.eq('one › A', lines()[1])
  answers = { '7' }
  to_part('B')
  press('s')
  T.eq(10, questions[1].arguments.variablesReference) -- the value that has B
end)

T.it('a value that was evaluated is not gone to when the person is elsewhere by then', function()
  window()
  inspect('one', 1)
  answer(1, 'variables', { variables = { part('A', 10) } })
  answers = { '(f *)' }
  press('e')
  inspect('two', 2)
  answer(2, 'variables', { variables = { part('B') } })
  answer(1, 'evaluate', '42', 20)
  T.eq({}, questions)
  T.eq('two', lines()[1])
  T.eq('Consort: ⇒ 42', last())
end)

T.it('a part that is set while the value is read anew is read once more', function()
  window()
  inspect('one', 1)
  answer(1, 'variables', { variables = { part('A', 10) } })
  answers = { '7' }
  to_part('A')
  press('s')
  press('g')
  answer(2, 'variables', { variables = { part('A', 10) } })
  answer(1, 'setVariable', { value = '7', variablesReference = 0 })
  answer(1, 'variables', { variables = { { name = 'A', value = '7', variablesReference = 0 } } })
  has('A  7')
end)

T.it('the inspector that was closed stays closed', function()
  window()
  inspect('one', 1)
  press('q')
  answer(1, 'variables', { variables = { part('A') } })
  T.eq(0, #vim.tbl_filter(function(win) return vim.bo[vim.api.nvim_win_get_buf(win)].filetype == 'consort-inspector' end, vim.api.nvim_list_wins()))
end)

-- Breakpoints

T.it('breakpoints stay at their lines when one goes before the answer', function()
  local buf = window('(a)', '(b)', '(c)', '(d)')
  local breakpoints = require('consort.breakpoints')
  local function toggle(row)
    vim.api.nvim_win_set_cursor(0, { row, 0 })
    breakpoints.toggle()
  end
  toggle(1)
  toggle(3)
  toggle(1)
  answer(1, 'setBreakpoints', { breakpoints = { { id = 1, verified = true, line = 1 } } })
  answer(1, 'setBreakpoints', { breakpoints = { { id = 1, verified = true, line = 1 }, { id = 2, verified = true, line = 3 } } })
  T.eq({ '2:○' }, drawn('consort.breakpoints', buf))
  answer(1, 'setBreakpoints', { breakpoints = { { id = 2, verified = true, line = 3 } } })
  T.eq({ '2:●' }, drawn('consort.breakpoints', buf))
end)

T.it('a temporary breakpoint that could not be set is gone', function()
  local buf = window('(a)', '(b)')
  stop(8, { frame(1, nil, 1) })
  local debugger = vim.api.nvim_get_current_buf()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buf))
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  require('consort.breakpoints').run_to_cursor()
  answer(1, 'threads', { threads = {} })
  T.eq({ '1:◇' }, drawn('consort.breakpoints', buf))
  answer(1, 'setBreakpoints', nil, 'The image does not answer.')
  T.eq({}, drawn('consort.breakpoints', buf))
  T.eq({}, questions) -- the thread does not continue
  T.eq('Consort: The image does not answer.', last())
  vim.api.nvim_buf_delete(debugger, { force = true })
  tell('exited', {})
end)

T.it('a breakpoint stays at its text when lines come above it before the answer', function()
  local buf = window('(a)', '(b)')
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  require('consort.breakpoints').toggle()
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '(new)', '(new)' })
  answer(1, 'setBreakpoints', { breakpoints = { { id = 3, verified = true, line = 2 } } })
  T.eq({ '3:●' }, drawn('consort.breakpoints', buf))
end)

T.it('the reason of a refused breakpoint is shown beside the cursor only where the person asked', function()
  local replaced, counts = vim.notify, {}
  vim.notify = notify
  for _, is_gone in ipairs({ false, true }) do
    window('(a)')
    require('consort.breakpoints').toggle()
    if is_gone then vim.cmd.vsplit() end
    answer(1, 'setBreakpoints', { breakpoints = { { id = 5, verified = false, message = ('because '):rep(20) } } })
    table.insert(counts, #floats())
    require('consort.breakpoints').clear()
  end
  vim.notify = replaced
  window()
  T.eq({ 1, 0 }, counts)
end)

-- The debugger

T.it('values of one frame do not come beside those of another', function()
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(f x)', '', '(g y)' }, file)
  window()
  stop(1, { frame(1, file, 1), frame(2, file, 3) })
  local debugger = vim.api.nvim_get_current_win()
  local function source(name)
    vim.api.nvim_set_current_win(debugger)
    vim.fn.search(name)
    press('v')
  end
  source('frame 1')
  source('frame 2')
  local function variable(name) return { variables = { { name = name, value = '1', evaluateName = name } } } end
  answer(1, 'scopes', { scopes = { { variablesReference = 1 } } })
  answer(1, 'scopes', { scopes = { { variablesReference = 2 } } })
  answer(2, 'variables', variable('y'))
  answer(1, 'variables', variable('x'))
  T.eq({ '2:  y = 1' }, drawn('consort.debugger', vim.fn.bufnr(file)))
  tell('exited', {})
end)

T.it('what is typed for a stop that was left goes nowhere', function()
  window()
  stop(2, { frame(1, '/none', 1) })
  vim.fn.search('frame 1')
  answers = { 'LATER' }
  press('R')
  tell('stopped', { threadId = 2, reason = 'exception', text = 'another stop' })
  S.drop()
  typed_later('42')
  T.eq({}, questions)
  T.eq('Consort: that stop was left meanwhile; not used: 42', last())
  answers = {}
  tell('exited', {})
end)

T.it('the source of a frame is not shown to a person who has gone on', function()
  local buf, win = window('(mine)')
  stop(3, { vim.tbl_extend('force', frame(1, nil, 1), { source = { sourceReference = 4, name = 'f' } }) })
  vim.fn.search('frame 1')
  press('v')
  vim.api.nvim_set_current_win(win)
  answer(1, 'source', { content = '(theirs)' })
  T.eq(buf, vim.api.nvim_get_current_buf())
  T.eq(win, vim.api.nvim_get_current_win())
  tell('exited', {})
end)

T.it('an end of a thread that failed does not abort its next stop', function()
  window()
  stop(5, { frame(1, nil, 1) })
  press('q')
  answer(1, 'terminateThreads', nil, 'The image does not answer.')
  T.eq('The image does not answer.', (last():gsub('^Consort: ', '')))
  tell('stopped', { threadId = 5, reason = 'exception', text = 'its next stop' })
  T.eq(true, #questions > 0 and questions[1].what ~= 'terminateThreads', vim.inspect(questions))
  tell('exited', {})
end)

T.it('a stop of another image, of a thread with the same number, is not shown', function()
  window()
  local other = setmetatable({ root = '/other' }, getmetatable(only))
  require('consort.debugger').on_stopped(nil, { thread = 6 }, { client_id = 1 })
  S.adapter = other
  require('consort.debugger').on_stopped(nil, { thread = 6 }, { client_id = 1 })
  S.adapter = only
  for _, adapter in ipairs({ only, other }) do
    tell('stopped', { threadId = 6, reason = 'exception', text = 'at ' .. adapter.root }, adapter)
    answer(1, 'consort/restarts', { restarts = {} })
    answer(1, 'stackTrace', { stackFrames = {} })
    has('at ' .. adapter.root)
    tell('exited', {}, adapter)
  end
end)

-- Evaluation

T.it('a value comes beside its form when lines were written above it', function()
  local buf = window('(a)', '(b)', '(c)')
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  require('consort.eval').form()
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '(new)' })
  vim.api.nvim_buf_set_lines(buf, -1, -1, false, { '(new)' })
  answer(1, 'evalForm', ok('42', { range = range(1, 0, 3) }))
  T.eq({ '2: ⇒ 42' }, drawn('consort.inline', buf))
end)

T.it('the value of a form that was edited is said', function()
  local buf = window('(a)', '(b)', '(c)')
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  require('consort.eval').form()
  vim.api.nvim_buf_set_lines(buf, 1, 2, false, { '(edited)' })
  answer(1, 'evalForm', ok('42', { range = range(1, 0, 3) }))
  T.eq({}, drawn('consort.inline', buf))
  T.eq('Consort: ⇒ 42', last())
end)

T.it('a form that runs is marked where its text is', function()
  local buf = window('(a)', '(b)')
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  require('consort.eval').form()
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '(new)' })
  T.wait('the mark', function() return drawn('consort.running', buf)[1] end)
  T.eq('2:', drawn('consort.running', buf)[1]:sub(1, 2))
  answer(1, 'evalForm', ok('42', { range = range(1, 0, 3) }))
  T.eq({}, drawn('consort.running', buf))
end)

-- Forms that differ

T.it('what differs is not loaded from the lines of another text', function()
  local buf = window('(a)', '(b)', '(c)')
  require('consort.differences').load()
  answer(1, 'differences', { forms = { { range = range(0, 0, 3) }, { range = range(2, 0, 3) } } })
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, {})
  answer(1, 'evalRegion', ok('1', { range = range(0, 0, 3) }))
  T.eq({}, questions)
  T.eq('Consort: 1 form evaluated, then you moved on: `:Consort changed` goes on', last())
end)

T.it('of a buffer that the server does not know nothing is said unless it is asked about', function()
  local buf = window('(a)')
  local client, knows, names = vim.lsp.get_clients()[1], require('consort.client').knows, nil
  client.attached_buffers = { [buf] = true }
  require('consort.client').knows = function() return false end
  require('consort.differences').files(function(found) names = found end)
  T.eq({}, names)
  T.eq({}, said)
  require('consort.differences').load()
  T.eq('Consort: this is no Lisp file that the server has; `:Consort changed` is for those', last())
  require('consort.client').knows, client.attached_buffers = knows, nil
end)

T.it('the tracing of a package is begun and ended by its name', function()
  window('(a)')
  for _, command in ipairs({ 'trace', 'untrace' }) do
    vim.cmd('Consort ' .. command .. ' in shop')
    T.eq({ package = 'shop' }, questions[1].arguments)
    answer(1, command, { text = 'done' })
  end
end)

T.it('marks are those of the newest image', function()
  local buf = window('(a)', '(b)')
  local function asked() return vim.iter(questions):filter(function(one) return one.what == 'differences' end):totable() end
  require('consort.differences').schedule_update()
  T.wait('a question', function() return #asked() == 1 end)
  require('consort.differences').schedule_update()
  T.wait('another question', function() return #asked() == 2 end)
  answer(2, 'differences', { forms = {} })
  answer(1, 'differences', { forms = { { range = range(0, 0, 3) } } })
  T.eq({}, drawn('consort.differences', buf))
end)

-- Expansions, recordings, traced calls

local function expansion(code) return { expansion = code, expanded = true } end

T.it('an expansion that was gone back from is not shown', function()
  window('(a)')
  require('consort.views').expand()
  answer(1, 'macroexpand', expansion('(one)'))
  press('+')
  answer(1, 'macroexpand', expansion('(two)'))
  press('+')
  press('-')
  answer(1, 'macroexpand', expansion('(three)'))
  T.eq('(one)', text())
  press('q')
end)

T.it('an expansion that was closed is not opened again', function()
  window('(a)')
  require('consort.views').expand()
  answer(1, 'macroexpand', expansion('(one)'))
  press('+')
  press('q')
  answer(1, 'macroexpand', expansion('(two)'))
  T.eq({}, floats())
end)

T.it('an expansion of a text that was edited goes no further', function()
  local buf = window('(a)')
  require('consort.views').expand()
  answer(1, 'macroexpand', expansion('(one)'))
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '(new)' })
  press('+')
  T.eq({}, questions)
  T.eq('Consort: the text has changed since it was expanded; expand it again', last())
  press('q')
end)

local function recorded(rows) return { answer = { rows = rows, total = #rows, start = 0 } } end

T.it('of two questions about a recording the last one is answered', function()
  window('(a)')
  require('consort.recording').record()
  answer(1, 'record', { recording = vim.tbl_extend('force', { recording = 1, events = 1, calls = 1, outcome = { values = { '1' } } }, recorded({ { text = 'call' } })) })
  press('t')
  press('e')
  answer(1, 'recordingQuery', recorded({ { text = 'tree' } }))
  answer(1, 'recordingQuery', recorded({ { text = 'error' } }))
  T.eq('error', text())
  press('q')
end)

T.it('the end of a wait for a call does not end the next one', function()
  window('(a)')
  local record = require('consort.recording').record
  record('next one')
  record('cancel')
  record('next two')
  answer(1, 'record', nil, { code = vim.lsp.protocol.ErrorCodes.RequestCancelled, message = 'cancelled' })
  record('cancel')
  T.eq('Consort: stopped waiting for the call', last())
end)

T.it('traced calls are forgotten also while they are being read', function()
  window('(a)')
  require('consort.traced').open()
  press('x')
  answer(1, 'tracedCalls', { names = { 'F' }, calls = {} })
  T.eq(true, questions[1].arguments.clear)
  press('q')
end)

T.it('a long value leaves room for its parts, and its table is asked for wherever the cursor is', function()
  window('(a)')
  local asked
  local adapter = setmetatable({ table = function(_, name, reference) asked = { name, reference } end }, { __index = only })
  require('consort.inspector').open(adapter, 'result', ('line\n'):rep(17) .. 'last', 1, true)
  answer(1, 'variables', { variables = { part('A', 2) } })
  T.eq({ 'result', 'line', 'line', 'line', 'line', '… 14 more lines', '', 'A  of A' }, lines())
  to_part('A')
  press('t')
  T.eq({ 'result', 1 }, asked)
  press('q')
  S.drop()
end)

-- A file that is read again

T.it('`:edit!` leaves no result at another form, and breakpoints stay at their texts', function()
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(one)', '(two)', '(three)' }, file)
  window()
  vim.cmd.edit(file)
  local buf = vim.api.nvim_get_current_buf()
  require('consort.disk').follow(buf)
  local inline = require('consort.inline')
  inline.show(buf, { 0, 0, 0, 5 }, ok('1'))
  vim.api.nvim_buf_set_lines(buf, 2, 3, false, { '(four)' })
  inline.show(buf, { 2, 0, 2, 6 }, ok('4'))
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  require('consort.breakpoints').toggle()
  answer(1, 'setBreakpoints', { breakpoints = { { id = 1, verified = true, line = 2 } } })
  vim.fn.sign_define('DapBreakpoint', { text = 'B' })
  vim.fn.sign_place(0, 'dap_breakpoints', 'DapBreakpoint', buf, { lnum = 2, priority = 21 })
  vim.fn.writefile({ '; new', '; new', '(one)', '(two)', '(three)' }, file)
  vim.cmd('silent edit!')
  T.eq({}, drawn('consort.inline', buf))
  local function signs() return vim.tbl_map(function(sign) return sign.lnum end, vim.fn.sign_getplaced(buf, { group = 'dap_breakpoints' })[1].signs) end
  T.wait('the breakpoints', function() return vim.deep_equal({ '3:●' }, drawn('consort.breakpoints', buf)) end, function() return drawn('consort.breakpoints', buf) end)
  T.eq({ 4 }, signs())
  answer(1, 'setBreakpoints', { breakpoints = { { id = 1, verified = true, line = 4 } } })
  vim.fn.sign_unplace('dap_breakpoints')
  require('consort.breakpoints').clear()
  S.drop()
end)

-- A definition that is replaced, or moved

T.it('the definition that would be replaced is that of the text as it is', function()
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(defun f ())', '(defun g ())' }, file)
  window()
  vim.cmd.edit(file)
  local found
  local params = { class = 'modify-running-code', arguments = { ['function'] = 'g', new_code = '(defun g () 1)' } }
  require('consort.replacing').find(params, function(replaced) found = replaced end)
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { '; new' })
  local function definition(line) return { definitions = { { kind = 'function', file = file, form = range(line, 0, 12) } } } end
  answer(1, 'sourceLocation', definition(1))
  T.eq(nil, found)
  answer(1, 'sourceLocation', definition(2))
  T.eq('(defun g ())', found.old)
end)

T.it('a form that does not define the function is not taken for its definition', function()
  local file = vim.fn.tempname() .. '.lisp'
  local function found(form, name, code)
    vim.fn.writefile({ form }, file)
    local old
    local arguments = { ['function'] = name, new_code = code or '(defun f () 1)' }
    require('consort.replacing').find({ class = 'modify-running-code', arguments = arguments }, function(replaced) old = replaced.old end)
    answer(1, 'sourceLocation', { definitions = { { kind = 'function', file = file, form = range(0, 0, #form) } } })
    return old
  end
  window()
  for _, form in ipairs({ '(f "SK")', '(list f)', '(defun g () (f))', '(defstruct p f)', '(defvar *f* (f))', '(defun (setf f) (v x) v)' }) do
    T.eq(nil, found(form, 'pkg::f'), form)
  end
  T.eq(nil, found('(defun f (x) x)', '(setf f)'))
  for name, form in pairs({
    ['pkg::f'] = '(defun f () 0)', F = '(DEFUN f () 0)', ['|f|'] = '(defun |f| () 0)', ['(setf pkg:f)'] = '(cl:defun (setf f) (v x) v)',
    ['pkg:g'] = '(define-command (g :key 1) () 0)', f = '(defmacro pkg::f () 0)',
  }) do
    T.eq(form, found(form, name), form)
  end
  T.eq('(command h ())', found('(command h ())', 'h', '(command h () 1)'))
end)

T.it('a replacement without a definition in a file is not written in place of an earlier one', function()
  window('(defun f () 0)')
  local params = { arguments = { new_code = '(defun f () 1)' } }
  require('consort.replacing').allow({ file = vim.api.nvim_buf_get_name(0), old = '(defun f () 0)' }, params)
  require('consort.replacing').allow(nil, params)
  require('consort.replacing').write()
  T.eq({ '(defun f () 0)' }, S.lines())
  T.eq('Consort: nothing to write: no agent has replaced a form of a file', last())
end)

T.it('a definition is not moved out of a text that has changed', function()
  local buf = window('(defun f ())')
  choice = function(items)
    vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '(defun g ())' })
    return items[1]
  end
  require('consort.moving').ask()
  answer(1, 'moveDestinations', { name = 'F', files = { { path = 'b.lisp', uri = 'file:///b.lisp' } } })
  T.eq({}, questions)
  T.eq('Consort: not moved: the text has changed meanwhile', last())
end)

-- The cursor

T.it('a float takes the cursor only of a person who is where they asked', function()
  local _, win = window('(a)')
  require('consort.views').describe('car')
  answer(1, 'describe', { name = 'CAR', text = 'first' })
  T.eq(floats(), { vim.api.nvim_get_current_win() })
  press('q')
  require('consort.views').describe('car')
  vim.cmd.vsplit()
  local other = vim.api.nvim_get_current_win()
  answer(1, 'describe', { name = 'CAR', text = 'first' })
  T.eq(other, vim.api.nvim_get_current_win())
  T.eq(1, #floats())
  T.eq('Consort: CAR: CTRL-W w goes into it', last())
  vim.api.nvim_win_close(floats()[1], true)
  vim.api.nvim_win_close(other, true)
  T.eq(win, vim.api.nvim_get_current_win())
end)

T.it('nobody who has gone on is asked, or taken to another place', function()
  for _, run in ipairs({
    function() require('consort.views').go_to('f') end,
    function() require('consort.names').references('calls') end,
    function() require('consort.undefine').ask() end,
    function() require('consort.frozen').open() end,
    function() require('consort.repl').call() end,
  }) do
    local buf = window('(a)')
    run()
    vim.cmd.vsplit()
    local win = vim.api.nvim_get_current_win()
    local one = table.remove(questions, 1)
    one.take({ definitions = { { file = '/none.lisp', line = 1 } } })
    T.eq({ buf, win }, { vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win() })
    T.eq('Consort: you have moved on since you asked; ask again for the answer', last())
  end
end)

T.finish()
