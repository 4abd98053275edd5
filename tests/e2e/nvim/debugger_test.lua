-- nvim --headless -u NONE -i NONE -l debugger_test.lua: the debugger's buffer, key by key, with a
-- real image and no other plugin.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true, 'ask')

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defun half (x)',
  '  (let ((y (list x (* 2 x))))',
  '    (list (restart-case (error "no half of ~a" y)',
  '      (use-other (value) :report "Use another." :interactive (lambda () (list 1)) (list :used value))) (first y))))',
  '',
  '(let ((k 21)) (list :got (half k)))',
  '',
  '(defun sum (n)',
  '  (let ((total 0))',
  '    (dotimes (i n total)',
  '      (incf total i))))',
  '',
  '(list :sum (sum 3))',
  '',
  '(with-simple-restart (continue "Go on.") (break "a break"))',
  '',
  '(progn (sb-thread:make-thread (lambda () (restart-case (error "no thread") (go-on () (list :went)))) :name "worker") :started)',
})

local said, last, forget = T.notifications()
local function last_said() return last() or '' end
local asked, answers = {}, {}
--- Replaces `vim.ui.input`: answers its prompts in turn with `answers`.
vim.ui.input = function(options, typed)
  table.insert(asked, options.prompt)
  typed(table.remove(answers, 1))
end
local function question()
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(win).relative ~= '' then return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false), '\n') end
  end
end

local press = T.press
local function to(row)
  vim.api.nvim_set_current_win(vim.fn.bufwinid(vim.fn.bufnr(file)))
  vim.api.nvim_win_set_cursor(0, { row, 0 })
end
local function debugger()
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    local buf = vim.api.nvim_win_get_buf(win)
    if vim.bo[buf].filetype == 'consort-debugger' then return win, vim.api.nvim_buf_get_lines(buf, 0, -1, false) end
  end
end
local function text() return table.concat(select(2, debugger()) or {}, '\n') end
--- Evaluates the form of a row, which has no value until then.
local function evaluate(row)
  to(row)
  vim.cmd('Consort clear')
  vim.cmd('Consort eval top')
end
local function stop(row)
  evaluate(row)
  T.wait('the debugger', function() return debugger() and text():find('Frames:', 1, true) end, function() return { said, question() } end)
  vim.api.nvim_set_current_win((debugger()))
end
--- The value beside a form of the file.
local function value(row)
  local marks = vim.api.nvim_buf_get_extmarks(vim.fn.bufnr(file), require('consort.inline').namespace, { row - 1, 0 }, { row - 1, -1 }, { details = true })
  for _, mark in ipairs(marks) do
    if mark[4].virt_text then return vim.trim(mark[4].virt_text[1][1]) end
  end
end
local function has_value(row, wanted)
  T.wait('the value ' .. wanted, function() return (value(row) or ''):find(wanted, 1, true) end, function() return { value(row), said, text() } end)
  T.wait('the end of the debugger', function() return not debugger() end, text)
end
--- Puts the debugger's cursor on the first line that contains PART.
local function on(part)
  local _, lines = debugger()
  for row, line in ipairs(lines or {}) do
    if line:find(part, 1, true) then return vim.api.nvim_win_set_cursor(0, { row, 0 }) end
  end
  error(('no line has %s: %s'):format(part, text()))
end
local function line_comes(part)
  T.wait('a line with ' .. part, function() return text():find(part, 1, true) end, text)
end

vim.lsp.enable('consort')
vim.cmd.edit(file)
T.wait('the language server', function() return #vim.lsp.get_clients({ name = 'consort', bufnr = 0 }) == 1 end)
for _, row in ipairs({ 1, 4, 11 }) do
  evaluate(row)
  T.wait('a definition', function() return value(row == 4 and 7 or row == 11 and 14 or row) end, function() return said end)
end

T.it('the first error asks', function()
  evaluate(9)
  T.wait('the question', question)
  T.eq(true, question():find('debug.on_error', 1, true) ~= nil, question())
  vim.cmd('Consort answer Debug')
  T.wait('the debugger', function() return debugger() and text():find('Frames:', 1, true) end, function() return said end)
  vim.api.nvim_set_current_win((debugger()))
  press('q')
  has_value(9, 'no half of (21 42)')
end)

T.it('from then on errors stop without a question: condition, restarts, frames', function()
  stop(9)
  T.eq(nil, question())
  local lines = select(2, debugger())
  T.eq('SIMPLE-ERROR: no half of (21 42)', lines[1])
  line_comes(' 0: [FIXTURE::USE-OTHER] Use another. (takes a value)')
  line_comes(' 1: [ABORT] End the evaluation.')
  line_comes(' 0: FIXTURE::HALF  fixture.lisp:6')
  line_comes(' 1: top-level form  fixture.lisp:9')
end)

T.it('<CR> opens a frame to its locals and folds it', function()
  on('FIXTURE::HALF')
  press('<CR>')
  line_comes('Y = (21 42)')
  on('FIXTURE::HALF')
  press('<Tab>')
  T.wait('the fold', function() return not text():find('Y = (21 42)', 1, true) end, text)
  press('<Tab>')
  line_comes('X = 21')
  -- A second report of the same stop.
  on('X = 21')
  local win = debugger()
  local buf, row = vim.api.nvim_win_get_buf(win), vim.api.nvim_win_get_cursor(win)[1]
  local before = vim.api.nvim_buf_get_changedtick(buf)
  vim.cmd('Consort debugger')
  T.wait('the frames again', function() return vim.api.nvim_buf_get_changedtick(buf) > before end, text)
  T.eq(true, text():find('X = 21', 1, true) ~= nil, text())
  T.eq(row, vim.api.nvim_win_get_cursor(win)[1])
end)

T.it('v shows the form of the frame', function()
  on('top-level form')
  press('v')
  T.wait('the source', function() return vim.api.nvim_buf_get_name(0) == file end, function() return { vim.api.nvim_buf_get_name(0), said } end)
  T.eq({ 9, #'(let ((k 21)) (list :got ' }, vim.api.nvim_win_get_cursor(0))
  vim.api.nvim_set_current_win((debugger()))
end)

T.it('the values of its variables stand at the ends of the lines', function()
  on('FIXTURE::HALF')
  press('v')
  local ns = vim.api.nvim_get_namespaces()['consort.debugger']
  local function values()
    local marks = vim.api.nvim_buf_get_extmarks(vim.fn.bufnr(file), ns, 0, -1, { details = true })
    return vim.iter(marks):filter(function(mark) return mark[4].virt_text end):map(function(mark) return { mark[2] + 1, vim.trim(mark[4].virt_text[1][1]) } end):totable()
  end
  T.wait('the values', function() return #values() > 0 end, function() return { said, text() } end)
  T.eq({ { 4, 'x = 21' }, { 5, 'y = (21 42), x = 21' }, { 6, 'y = (21 42)' } }, values())
  vim.api.nvim_set_current_win((debugger()))
end)

T.it('names are none of strings and comments', function()
  local text = '(defun f (x) "a\nb x" (list :k y #\\x) ; x\n  #\'z |x|)'
  T.eq({ { 'defun', 'f', 'x' }, { 'list', 'y' }, { 'z' } }, require('consort.frame_values').names(text))
end)

T.it('e evaluates in the frame', function()
  on('FIXTURE::HALF')
  forget()
  answers = { '(list (second y) x)' }
  press('e')
  T.wait('the value', function() return last_said():find('(42 21)', 1, true) end, function() return { said, asked } end)
end)

T.it('an error in code at a stop is a stop of its own', function()
  -- Its other frame is open too, and has the cursor.
  line_comes('Y = (21 42)')
  on('top-level form')
  press('<CR>')
  line_comes('K = ')
  forget()
  answers = { '(car 7)' }
  press('e')
  T.wait('the inner stop', function() return text():find('[level 2]', 1, true) and text():find('TYPE-ERROR', 1, true) end, text)
  press('a')
  T.wait('the error', function() return last_said():find('TYPE-ERROR', 1, true) end, function() return said end)
  T.wait('the outer stop', function() return text():find('SIMPLE-ERROR: no half', 1, true) == 1 and text():find(' 0: FIXTURE::HALF', 1, true) end, text)
  -- The frames that were open are open again.
  line_comes('Y = (21 42)')
  line_comes('K = ')
  T.eq(' 1: top-level form  fixture.lisp:9', vim.api.nvim_get_current_line())
end)

T.it('what was open is kept for the stops around the present one, however many steps there were', function()
  local around = require('consort.debugger_around')
  local stop = { around = {}, frames = {}, lines = {}, open = { [0] = {}, [2] = {} } }
  local function kept() return vim.tbl_map(function(each) return each.number end, stop.around) end
  for number = 1, 50 do
    around.next(stop, number, 1)
  end
  T.eq({}, kept())
  for number = 51, 60 do
    around.next(stop, number, 2)
  end
  T.eq({ 50 }, kept())
  around.next(stop, 61, 3)
  T.eq({ 50, 60 }, kept())
  around.next(stop, 50, 1)
  T.eq({ { number = 50, open = { 0, 2 } } }, stop.around)
  around.next(stop, 62, 1)
  T.eq({}, kept())
end)

T.it('i inspects a local, part by part, and goes back', function()
  on('Y = (21 42)')
  press('i')
  local function inspected() return vim.bo.filetype == 'consort-inspector' and table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end
  T.wait('the inspector', function() return inspected() and inspected():find('1  42', 1, true) end, inspected)
  answers = { "(list :a (list 'b \"c\"))" }
  press('q')
  vim.api.nvim_set_current_win((debugger()))
  on('FIXTURE::HALF')
  press('i')
  T.wait('another value', function() return inspected() and inspected():find('1  (FIXTURE::B "c")', 1, true) end, inspected)
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(0), 0 })
  press('<CR>')
  T.wait('its part', function() return inspected():find('1  "c"', 1, true) end, inspected)
  press('u')
  T.wait('the value again', function() return inspected():find('0  :A', 1, true) end, inspected)
  press('q')
  vim.api.nvim_set_current_win((debugger()))
end)

T.it('= sets a local, and s a part', function()
  on('X = 21')
  answers = { '(+ x 1)' }
  press('=')
  line_comes('X = 22')
  on('Y = (21 42)')
  press('i')
  T.wait('the inspector', function() return vim.bo.filetype == 'consort-inspector' end)
  T.wait('its parts', function() return vim.fn.search('^0  21') > 0 end)
  answers = { '(* 7 (second *))' }
  press('s')
  T.wait('the part', function() return vim.fn.search('^0  294') > 0 end, function() return { vim.api.nvim_buf_get_lines(0, 0, -1, false), said } end)
  answers = { '21' }
  press('s')
  T.wait('the part of before', function() return vim.fn.search('^0  21') > 0 end)
  press('q')
  vim.api.nvim_set_current_win((debugger()))
end)

T.it('a digit invokes a restart with the value that is typed', function()
  answers = { '(* 6 7)' }
  press('0')
  has_value(9, '(:GOT ((:USED 42) 21))')
end)

T.it('R returns from a frame', function()
  stop(9)
  on('FIXTURE::HALF')
  answers = { ':returned' }
  press('R')
  has_value(9, '(:GOT :RETURNED)')
end)

T.it('r restarts a frame, of the function that was mended meanwhile', function()
  stop(9)
  local definition = vim.api.nvim_buf_get_lines(vim.fn.bufnr(file), 3, 7, false)
  vim.api.nvim_buf_set_lines(vim.fn.bufnr(file), 3, 7, false, { '(defun half (x)', '  (/ x 2))', '', '' })
  evaluate(4)
  T.wait('the mended function', function() return (value(5) or ''):find('HALF', 1, true) end, function() return { value(5), said } end)
  to(1)
  vim.cmd('Consort debugger')
  T.wait('the debugger', function() return vim.bo.filetype == 'consort-debugger' end, function() return said end)
  on('FIXTURE::HALF')
  press('r')
  has_value(9, '(:GOT 21/2)')
  vim.api.nvim_buf_set_lines(vim.fn.bufnr(file), 3, 7, false, definition)
  evaluate(4)
  T.wait('the function of before', function() return (value(7) or ''):find('HALF', 1, true) end, function() return { value(7), said } end)
end)

T.it('c continues, a aborts, q quits', function()
  stop(18)
  line_comes('a break')
  press('c')
  has_value(18, '⇒ NIL')
  stop(9)
  press('a')
  has_value(9, 'no half of (21 42)')
end)

T.it('a breakpoint has a sign, stops there, and steps show the value', function()
  to(14)
  press('<LocalLeader>b')
  local function signs()
    local ns = vim.api.nvim_get_namespaces()['consort.breakpoints']
    return vim.tbl_map(function(mark) return { mark[2] + 1, vim.trim(mark[4].sign_text) } end, vim.api.nvim_buf_get_extmarks(vim.fn.bufnr(file), ns, 0, -1, { details = true }))
  end
  T.wait('the breakpoint in force', function() return vim.deep_equal(signs(), { { 14, '●' } }) end, function() return { signs(), said } end)
  stop(16)
  line_comes('Stopped at a breakpoint')
  line_comes('FIXTURE::SUM')
  -- The form is shown, and the cursor stays in the debugger's window.
  T.wait('the form at the breakpoint', function()
    local win = vim.fn.bufwinid(vim.fn.bufnr(file))
    local marks = vim.api.nvim_buf_get_extmarks(vim.fn.bufnr(file), vim.api.nvim_get_namespaces()['consort.debugger'], 0, -1, { details = true })
    return win ~= -1 and vim.api.nvim_win_get_cursor(win)[1] == 14 and vim.iter(marks):any(function(mark) return mark[4].hl_group == 'Visual' and mark[2] == 13 end)
  end)
  T.eq((debugger()), vim.api.nvim_get_current_win())
  on('FIXTURE::SUM')
  press('<CR>')
  line_comes('I = 0')
  press('c')
  T.wait('the next turn', function() return debugger() and not text():find('I = 0', 1, true) end, text)
  on('FIXTURE::SUM')
  press('<CR>')
  line_comes('I = 1')
  to(14)
  press('<LocalLeader>b')
  T.eq({}, signs())
  -- The sign goes before the breakpoint.
  local adapter = require('consort.adapter').running()[1]
  T.wait('the end of the breakpoint', function() return next(adapter.waiting) == nil end)
  vim.api.nvim_set_current_win((debugger()))
  press('x')
  T.wait('a step', function() return text():find('Stopped after a step', 1, true) end, text)
  press('c')
  has_value(16, '(:SUM 3)')
end)

T.it('a program goes on to the line of the cursor', function()
  stop(18)
  line_comes('a break')
  to(14)
  press('<LocalLeader>B')
  has_value(18, '⇒ NIL')
  local ns = vim.api.nvim_get_namespaces()['consort.breakpoints']
  local function signs() return #vim.api.nvim_buf_get_extmarks(vim.fn.bufnr(file), ns, 0, -1, {}) end
  T.eq(1, signs())
  stop(16)
  line_comes('Stopped at a breakpoint')
  T.wait('no sign', function() return signs() == 0 end, signs)
  vim.api.nvim_set_current_win((debugger()))
  press('c')
  has_value(16, '(:SUM 3)')
  -- Nothing is stopped.
  to(14)
  forget()
  press('<LocalLeader>B')
  T.wait('the reason', function() return last_said():find('nothing is stopped', 1, true) end, last_said)
end)

T.it('a thread that a form started stops under its name, and goes on by a restart', function()
  stop(20)
  T.eq('SIMPLE-ERROR: no thread (in the thread worker)', select(2, debugger())[1])
  line_comes(' 0: [FIXTURE::GO-ON]')
  T.wait('the value of the form', function() return (value(20) or ''):find(':STARTED', 1, true) end, function() return { value(20), said } end)
  press('0')
  T.wait('the end of the debugger', function() return not debugger() end, text)
end)

for _, client in ipairs(vim.lsp.get_clients()) do client:stop() end
T.wait('the clients to stop', function() return #vim.lsp.get_clients() == 0 end)
for _, adapter in ipairs(require('consort.adapter').running()) do adapter.process:write(nil) end
T.wait('the debugger to end', function() return #require('consort.adapter').running() == 0 end)
T.run({ 'consort', 'stop' }, { cwd = workspace })
vim.fn.delete(workspace, 'rf')
T.finish()
