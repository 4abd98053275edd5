-- nvim --headless -u NONE -i NONE -l telling_test.lua: commands and keys that find nothing to do,
-- or whose work came to nothing, say so, and typed text that is not used is named.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local S = require('stand_in')
S.use()
local questions, answer, lines, range = S.questions, S.answer, S.lines, S.range
local client = vim.lsp.get_clients()[1]

local said, last, forget = T.notifications()
local typed
vim.ui.input = function(_, take) typed = take end
local function window(...)
  forget()
  typed = nil
  return S.window(...)
end

T.it('breakpoints that are removed are counted', function()
  window('(a)', '(b)')
  vim.cmd('Consort breakpoint none')
  T.eq('Consort: no breakpoint is set', last())
  vim.cmd('Consort breakpoint')
  vim.cmd('Consort breakpoint none')
  S.drop()
  T.eq('Consort: 1 breakpoint removed', last())
end)

T.it('messages of breakpoints in a loop are counted, and the last one is shown', function()
  require('consort.bounded').QUIET = T.patience -- the stop ends them
  window('(a)')
  local function output(i) S.tell('output', { category = 'console', output = ('condition %d failed\n'):format(i) }) end
  for i = 1, 300 do output(i) end
  T.eq({ 5, 'Consort: condition 5 failed' }, { #said, last() })
  S.tell('stopped', { threadId = 9, reason = 'step' })
  T.eq({ 7, 'Consort: ... and 294 more such messages', 'Consort: condition 300 failed' }, { #said, said[6][1], last() })
  output(301)
  T.eq('Consort: condition 301 failed', last())
  -- Without a stop, a pause ends them.
  require('consort.bounded').QUIET = 1
  forget()
  for i = 1, 7 do output(i) end
  T.wait('the rest', function() return last() == 'Consort: condition 7 failed' end, function() return said end)
end)

T.it('messages of a breakpoint in a loop do not hide those of another breakpoint or image', function()
  require('consort.bounded').QUIET = T.patience -- the stops end them
  window('(a)')
  local other = setmetatable({}, { __index = S.adapter })
  local function output(text, line, adapter)
    S.tell('output', { category = 'console', output = text, line = line, column = 1, source = { path = '/a.lisp' } }, adapter)
  end
  for i = 1, 300 do output(('n=%d'):format(i), 1) end
  T.eq({ 5, 'Consort: n=5' }, { #said, last() })
  output('condition failed', 2)
  T.eq('Consort: condition failed', last())
  output('n=1', 1, other)
  T.eq({ 7, 'Consort: n=1' }, { #said, last() })
  -- Loops at more places than are counted separately stay bounded.
  for line = 3, 100 do
    for i = 1, 10 do output(('line %d: %d'):format(line, i), line) end
  end
  T.eq(7 + 18 * 5 + 5, #said)
  forget()
  S.tell('stopped', { threadId = 9, reason = 'step' }, other)
  T.eq({}, said)
  S.tell('stopped', { threadId = 9, reason = 'step' })
  local found = vim.tbl_map(function(one) return one[1] end, said)
  T.eq({ true, true }, { vim.list_contains(found, 'Consort: ... and 294 more such messages'), vim.list_contains(found, 'Consort: n=300') })
  -- After the stop, other places have their own bounds.
  forget()
  for i = 1, 10 do output(('late %d'):format(i), 99) end
  output('early', 3)
  T.eq({ 6, 'Consort: early' }, { #said, last() })
  S.tell('stopped', { threadId = 9, reason = 'step' })
  S.drop()
end)

T.it('the keys of Lisp texts are none of the single keys of the debugger and the inspector', function()
  window('(a)')
  S.stop(4, { S.frame(1, '/none.lisp', 1) })
  local debugger = vim.api.nvim_get_current_buf()
  local prompted = {}
  local input = vim.ui.input
  vim.ui.input = function(options) table.insert(prompted, options.prompt) end
  for keys, about in pairs({ ['\\ee'] = 'evaluate the form', ['\\r'] = 'record the form', ['\\p'] = 'profile the form' }) do
    T.press(keys)
    T.eq(('Consort: %s is for Lisp texts: %s'):format(keys, about), last())
  end
  T.press('\\a')
  T.eq('Consort: no agent waits for an answer', last())
  T.press('\\i')
  answer(1, 'interrupt', { interrupted = 0 })
  T.eq({ {}, {}, debugger }, { S.questions, prompted, vim.api.nvim_get_current_buf() })
  vim.ui.input = input
  require('consort.inspector').open(S.adapter, 'one', 'value', 1, true)
  answer(1, 'variables', { variables = {} })
  T.press('\\v')
  T.eq('Consort: \\v is for Lisp texts: inspect the result or the name', last())
  T.press('q')
  S.tell('continued', { threadId = 4 })
  T.wait('the end of the stop', function() return #vim.fn.win_findbuf(debugger) == 0 end)
  S.drop()
end)

T.it('keys that have another mapping keep it in the debugger and the inspector', function()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.keymap.set('n', '\\l', '<Nop>')
  vim.keymap.set('n', '\\ix', '<Nop>')
  vim.keymap.set('n', '\\a', '<Nop>', { desc = 'Consort: answer the question of an agent' })
  local function mapped(keys)
    local there = vim.api.nvim_buf_call(buf, function() return vim.fn.maparg(keys, 'n', false, true) end)
    return { there.buffer, there.nowait }
  end
  for _ = 1, 2 do
    require('consort.maps').without_text(buf, true)
    T.eq({ { 0, 0 }, { 1, 0 }, { 1, 1 }, { 1, 1 } }, vim.tbl_map(mapped, { '\\l', '\\i', '\\a', '\\ee' }))
  end
  for _, keys in ipairs({ '\\l', '\\ix', '\\a' }) do vim.keymap.del('n', keys) end
  vim.api.nvim_buf_delete(buf, { force = true })
end)

T.it('a test that the image has from a buffer fails at its place there', function()
  local buf = window('(first)', '', '(test second', '  (is nil))')
  vim.api.nvim_win_set_cursor(0, { 4, 3 })
  vim.cmd('Consort test')
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '; above' })
  answer(1, 'runTestAtPoint', { tests = { { name = 'SECOND', status = 'failed', failures = { { message = 'NIL was not true' } } } } })
  local items = vim.fn.getqflist()
  T.eq({ 1, buf, 4 }, { #items, items[1].bufnr, items[1].lnum })
  T.eq({ 3 }, vim.tbl_map(function(one) return one.lnum end, vim.diagnostic.get(buf)))
  vim.cmd.cclose()
  vim.diagnostic.reset()
  S.drop()
end)

T.it('a run of a test that is refused leaves no mark of its place', function()
  local buf = window('(test first)')
  vim.cmd('Consort test')
  local function marks() return #vim.api.nvim_buf_get_extmarks(buf, vim.api.nvim_get_namespaces()['consort.tests.places'], 0, -1, {}) end
  T.eq(1, marks())
  answer(1, 'runTestAtPoint', nil, { code = -32803, message = 'no test is here' })
  T.eq({ 0, 'Consort: no test is here' }, { marks(), last() })
end)

T.it('keys in the inspector say where they are to be pressed', function()
  window()
  require('consort.inspector').open(S.adapter, 'one', 'value', 1, true)
  answer(1, 'variables', { variables = { { name = 'A', value = 'of A', variablesReference = 0 } } })
  for _, key in ipairs({ '<CR>', 's' }) do
    forget()
    vim.cmd('1')
    T.press(key)
    T.eq('Consort: put the cursor on a part', last(), key)
  end
  T.press('q')
end)

T.it('keys in the debugger say what is missing, and what was typed for a stop that was left', function()
  window()
  S.stop(1, {})
  vim.cmd('1')
  T.press('<CR>')
  T.eq('Consort: put the cursor on a restart, a frame or a variable', last())
  for _, key in ipairs({ '<Tab>', 'e', 'R', 'r' }) do
    forget()
    T.press(key)
    T.eq('Consort: put the cursor on a frame', last(), key)
  end
  S.tell('continued', { threadId = 1 })
  T.wait('the end of the stop', function() return vim.bo.filetype ~= 'consort-debugger' end)
  S.drop()
  S.stop(2, { S.frame(1, '/none.lisp', 1) })
  T.press('e')
  S.tell('continued', { threadId = 2 })
  T.wait('the end of the stop', function() return vim.bo.filetype ~= 'consort-debugger' end)
  typed('(long-form)')
  T.eq('Consort: that stop was left meanwhile; not used: (long-form)', last())
end)

T.it('a structural edit or a text object that finds nothing says so, and one that fails says why', function()
  window('(a)')
  local reply
  client.request_sync = function() return reply.answer, reply.why end
  reply = { answer = { result = { edits = {}, selection = range(0, 1, 1) } } }
  vim.cmd('Consort structure slurpForward')
  T.eq('Consort: slurpForward finds nothing to do here', last())
  vim.cmd('Consort structure')
  T.eq(true, last():find('`:Consort structure` takes slurpForward, ', 1, true) ~= nil, last())
  reply = { answer = { result = {} } }
  require('consort.structure').select(false)
  T.eq('Consort: no list is around the cursor', last())
  for why, one in pairs({ ['no answer: timeout'] = { why = 'timeout' }, ['it is not open'] = { answer = { err = { message = 'it is not open' } } } }) do
    reply = one
    require('consort.structure').select(false)
    T.eq('Consort: ' .. why, last())
  end
  client.request_sync = nil
end)

T.it('what differs is not looked for in silence where the server does not have the text', function()
  window('text')
  local get_clients = vim.lsp.get_clients
  vim.lsp.get_clients = function(filter) return filter and filter.bufnr and {} or { client } end
  vim.cmd('Consort changed')
  vim.lsp.get_clients = get_clients
  T.eq({}, questions)
  T.eq('Consort: this is no Lisp file that the server has; `:Consort changed` is for those', last())
end)

T.it('a value that was not written as a comment is said, with the reason', function()
  window('(a)')
  vim.cmd('Consort eval comment')
  answer(1, 'evalToComment', { status = 'ok', values = { '42' }, applied = true, reason = vim.NIL })
  T.eq({}, said)
  vim.cmd('Consort eval comment')
  answer(1, 'evalToComment', { status = 'ok', values = { '42' }, applied = false, reason = 'The text was changed meanwhile.' })
  T.eq({ { 'Consort: ⇒ 42. It was not written: The text was changed meanwhile.', vim.log.levels.WARN } }, said)
end)

T.it('an interrupt that found nothing says so', function()
  window('(a)')
  for count, wanted in pairs({ [0] = 'nothing was running', [2] = '2 interrupted' }) do
    vim.cmd('Consort interrupt')
    answer(1, 'interrupt', { interrupted = count })
    T.eq('Consort: ' .. wanted, last())
  end
end)

T.it('a line that is typed when the code reads no longer is named', function()
  window('(a)')
  local input, got = require('consort.input'), {}
  coroutine.wrap(function() table.insert(got, input.on_request(nil, { id = 1, prompt = 'x' }, { client_id = 1 })) end)()
  T.wait('the question', function() return typed end)
  input.on_over(nil, { id = 1 }, { client_id = 1 })
  typed('my line')
  T.eq('Consort: the code no longer reads input; not used: my line', last())
end)

T.it('a file that is opened in a float is shown in the window below', function()
  local _, below = window('(a)')
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(one)', '(two)' }, file)
  require('consort.float').open('value', { title = 'Value' })
  vim.cmd('edit +2 ' .. file)
  T.wait('the end of the float', function() return #S.floats() == 0 end)
  T.eq({ below, file, { 2, 0 } }, { vim.api.nvim_get_current_win(), vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0) })
end)

T.it('a file that is opened in a float is shown in the window from which the float was entered', function()
  local _, first = window('(a)')
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(one)' }, file)
  local _, win = require('consort.float').open('value', { title = 'Value', focus = false })
  vim.cmd.vsplit()
  local second = vim.api.nvim_get_current_win()
  vim.api.nvim_set_current_win(win)
  vim.cmd.edit(file)
  T.wait('the end of the float', function() return #S.floats() == 0 end)
  T.eq({ second, file }, { vim.api.nvim_get_current_win(), vim.api.nvim_buf_get_name(0) })
  T.eq(true, vim.api.nvim_win_get_buf(first) ~= vim.api.nvim_get_current_buf())
end)

T.it('a file that is opened in a float is shown in a new window where the one below keeps its text', function()
  local file = vim.fn.tempname() .. '.lisp'
  vim.fn.writefile({ '(one)', '(two)' }, file)
  for name, prepare in pairs({
    winfixbuf = function(_, below) vim.wo[below].winfixbuf = true end,
    modified = function(buf)
      vim.o.hidden = false
      vim.bo[buf].modified = true
    end,
    closed = function(_, below) vim.schedule(function() vim.api.nvim_win_close(below, true) end) end,
  }) do
    local buf, below = window('(a)')
    vim.cmd.new()
    vim.api.nvim_set_current_win(below)
    require('consort.float').open('value', { title = 'Value' })
    prepare(buf, below)
    vim.cmd('edit +2 ' .. file)
    T.wait('the end of the float', function() return #S.floats() == 0 end)
    T.eq({ file, { 2, 0 } }, { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0) }, name)
    T.eq({ 3 - (name == 'closed' and 1 or 0), name ~= 'closed' }, { #vim.api.nvim_list_wins(), vim.fn.bufwinid(buf) == below }, name)
    vim.o.hidden = true
    vim.bo[buf].modified = false
    vim.wo.winfixbuf = false
    if name ~= 'closed' then vim.wo[below].winfixbuf = false end
  end
end)

T.it('tracing and removal at the operator of a definition are for its name', function()
  local function position(line, column, command)
    window(line)
    vim.api.nvim_win_set_cursor(0, { 1, column })
    vim.cmd('Consort ' .. command)
    return questions[1].arguments.position.character
  end
  for _, command in ipairs({ 'trace', 'undefine' }) do
    T.eq(7, position('(defun shop:price (item) item)', 0, command))
    T.eq(10, position('(cl:defun price (item) item)', 4, command))
    T.eq(13, position('(defun (setf price) (v x) v)', 3, command))
    T.eq(12, position('(defstruct (point) x)', 1, command))
    for line, column in pairs({ ['(defun price (item) item)'] = 9, ['(price 1)'] = 2, ['  (defer price)'] = 4 }) do
      T.eq(column, position(line, column, command), line)
    end
  end
  window('(price)')
  vim.cmd('Consort untrace')
  T.eq({}, questions[1].arguments)
  vim.cmd('Consort trace in SHOP')
  T.eq({ package = 'SHOP' }, questions[2].arguments)
end)

T.it('a name that is renamed in several files leads to saving them and to the image', function()
  window('(f)')
  local function edited(...)
    forget()
    local edit = { newText = 'g', range = range(0, 1, 2) }
    local changes = {}
    for _, buf in ipairs({ ... }) do
      table.insert(changes, { textDocument = { uri = vim.uri_from_bufnr(buf) }, edits = { edit } })
    end
    vim.lsp.config.consort.handlers['textDocument/rename'](nil, { documentChanges = changes }, { client_id = 1, method = 'textDocument/rename' })
  end
  local one, other = vim.api.nvim_get_current_buf(), vim.fn.bufadd('/stand-in-other')
  vim.fn.bufload(other)
  vim.api.nvim_buf_set_lines(other, 0, -1, false, { '(f 1)' })
  edited(one, other)
  T.eq({ { '(g)' }, { '(g 1)' } }, { lines(one), lines(other) })
  T.eq('Consort: renamed in 2 files: `:wall`, then :Consort changed in each for the image', last())
  edited(one)
  T.eq({}, said)
  vim.lsp.config.consort.handlers['textDocument/rename']({ code = 1, message = 'not that one' }, nil, { client_id = 1, method = 'textDocument/rename' })
  T.eq({ true, 1 }, { last():find('not that one', 1, true) ~= nil, #said })
  vim.api.nvim_buf_delete(other, { force = true })
end)

T.it('a compilation is told with the name of the file, not its path', function()
  window('(f)')
  vim.cmd('Consort compile')
  local name = vim.api.nvim_buf_get_name(0)
  local log = vim.iter(questions):find(function(one) return one.what == 'compileForm' end)
  log.take({ what = 'code of ' .. name, redefined = { 'F' }, new = {} })
  T.eq(('Consort: compiled code of %s: 1 redefined, 0 new'):format(vim.fs.basename(name)), last())
end)

T.it('the buffer of traced calls opens at the first call', function()
  window('(f)')
  require('consort.traced').open()
  local value = { text = '1', reference = 1 }
  local call = { name = 'F', call = 1, parent = vim.NIL, outcome = 'returned', arguments = {}, values = { value } }
  answer(1, 'tracedCalls', { names = { 'F' }, calls = { call } })
  T.eq({ 3, 0 }, vim.api.nvim_win_get_cursor(0))
  vim.cmd('1')
  require('consort.traced').open()
  answer(1, 'tracedCalls', { names = { 'F' }, calls = { call, vim.tbl_extend('force', call, { call = 2 }) } })
  T.eq({ 1, 0 }, vim.api.nvim_win_get_cursor(0), 'a person who has moved')
  T.press('q')
  S.drop()
end)

T.it('a scratch buffer that was deleted is made anew', function()
  window('(a)')
  local scratch = require('consort.scratch')
  local attach = vim.lsp.buf_attach_client
  vim.lsp.buf_attach_client = function() return true end
  scratch.open()
  vim.cmd('bdelete! ' .. vim.fn.bufnr('consort://scratch'))
  scratch.open()
  vim.lsp.buf_attach_client = attach
  T.eq('(in-package #:cl-user)', lines()[2])
end)

T.it('running to a line says when the stop was left', function()
  window('(a)')
  S.stop(3, { S.frame(1, '/none.lisp', 1) })
  vim.cmd.wincmd('p')
  vim.cmd('Consort cursor')
  answer(1, 'threads', {})
  S.tell('continued', { threadId = 3 })
  T.wait('the end of the stop', function() return #vim.fn.win_findbuf(vim.fn.bufnr('consort://debugger/3')) == 0 end)
  answer(1, 'setBreakpoints', { breakpoints = { { id = 1, verified = true, line = 1 } } })
  T.eq('Consort: that stop was left meanwhile; nothing was continued', last())
end)

T.finish()
