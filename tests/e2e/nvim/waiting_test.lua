-- nvim --headless -u NONE -i NONE -l waiting_test.lua: what waits for an answer: keys behind other
-- keys, and what is to be free when the server ends without one.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local S = require('stand_in')
local get_clients, get_client_by_id = vim.lsp.get_clients, vim.lsp.get_client_by_id
S.use()
local questions, answer, lines, text, floats, range, press = S.questions, S.answer, S.lines, S.text, S.floats, S.range, T.press

local notify = vim.notify
local said, last, forget = T.notifications()
local function window(...)
  forget()
  return S.window(...)
end
local function at(row, column) vim.api.nvim_win_set_cursor(0, { row, column or 0 }) end

T.it('the line of a form says that a question waits', function()
  local buf = window('(f)')
  local running = require('consort.running')
  local token = running.mark(buf, 0)
  running.on_begun(nil, { token = token })
  local function line() return S.drawn('consort.running', buf)[1] or '' end
  running.on_output(nil, { token = token, text = '' })
  T.eq(true, line():match('stops $') ~= nil, line())
  local done
  coroutine.wrap(function()
    require('consort.prompt').on_request(nil, { message = 'Stop at errors?', actions = { { title = 'Debug' } } }, { client_id = 1 })
    done = true
  end)()
  T.wait('the question', function() return #floats() == 1 end)
  running.on_output(nil, { token = token, text = '' })
  T.eq(true, line():find('stops · a question waits: ', 1, true) ~= nil, line())
  require('consort.approve').answer('Debug')
  T.eq(true, done)
  running.on_output(nil, { token = token, text = '' })
  T.eq(nil, line():find('question', 1, true), line())
  running.done(token)
end)

-- Macro steps

--- Makes a copy of a text with two macro calls, the first of which is expanded.
local function stepper()
  window('(m 1) (m 2) (m 3)')
  at(1, 1)
  require('consort.macrostep').step()
  answer(1, 'macrostep', { expanded = true, omitted = 0, range = range(0, 0, 5), expansion = '(one)' })
  T.eq('(one) (m 2) (m 3)', text())
end
local function expansion(from, words) return { expanded = true, omitted = 0, range = range(0, from, from + 5), expansion = words } end

T.it('a key in the copy waits for the one before, and the cursor stays where the person put it', function()
  stepper()
  at(1, 7)
  press('e')
  at(1, 13)
  press('e')
  answer(1, 'macrostep', expansion(6, '(two)'))
  T.eq({ '(one) (two) (m 3)', 13 }, { text(), vim.fn.col('.') - 1 })
  answer(1, 'macrostep', expansion(12, '(three)'))
  T.eq({ '(one) (two) (three)', 12 }, { text(), vim.fn.col('.') - 1 })
  press('q')
end)

T.it('an expansion is not lost by the next key, and a key begins where the one before has led', function()
  stepper()
  at(1, 7)
  press('en')
  answer(1, 'macrostep', expansion(6, '(expanded to m)'))
  T.eq('(one) (expanded to m) (m 3)', text())
  T.eq({ 'macroCalls', 6 }, { questions[1].what, questions[1].arguments.position.character })
  -- One that fails does not stand before the next.
  press('ece')
  answer(1, 'macroCalls', nil, { code = 1, message = 'no image' })
  answer(1, 'macrostep', { expanded = false })
  T.eq({ '(one) (m 2) (m 3)', 6 }, { text(), questions[1].arguments.position.character })
  -- A person who has gone on is told that keys are left.
  press('n')
  vim.cmd.new()
  answer(1, 'macrostep', expansion(6, '(two)'))
  T.eq({}, questions)
  T.eq(true, last():find('you have moved on', 1, true) ~= nil, last())
  vim.cmd.close()
  T.eq('(one) (two) (m 3)', text())
  -- The server's end is that of the keys too.
  press('en')
  S.end_server()
  press('e')
  T.eq({ 'macrostep' }, vim.tbl_map(function(one) return one.what end, questions))
  press('q')
end)

T.it('a macro call is expanded also when one of another text is expanded after it', function()
  stepper()
  local buf = vim.api.nvim_get_current_buf()
  at(1, 7)
  press('e')
  vim.cmd.new('/another')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { '(n 1)' })
  at(1, 1)
  require('consort.macrostep').step()
  answer(1, 'macrostep', expansion(6, '(two)'))
  answer(1, 'macrostep', expansion(0, '(other)'))
  T.eq({ '(one) (two) (m 3)', '(other)' }, { text(buf), text() })
  press('q')
  vim.cmd.bwipeout({ bang = true })
  press('q')
end)

T.it('the cursor goes from macro call to macro call, key by key, unless the person moves it', function()
  stepper()
  local calls = { calls = { range(0, 0, 5), range(0, 6, 11), range(0, 12, 17) } }
  at(1, 7)
  press('np')
  answer(1, 'macroCalls', calls)
  T.eq(12, vim.fn.col('.') - 1)
  answer(1, 'macroCalls', calls)
  T.eq(6, vim.fn.col('.') - 1)
  press('n')
  at(1, 2)
  answer(1, 'macroCalls', calls)
  T.eq(2, vim.fn.col('.') - 1)
  press('q')
end)

T.it('the copy is begun by the step that was requested last', function()
  window('(m 1) (m 2)')
  at(1, 1)
  require('consort.macrostep').step()
  at(1, 7)
  require('consort.macrostep').step()
  answer(1, 'macrostep', expansion(0, '(one)'))
  answer(1, 'macrostep', expansion(6, '(two)'))
  T.eq('(m 1) (two)', text())
  press('q')
end)

-- Results

T.it('a form that is cancelled while it waits leaves the results of other forms', function()
  local buf = window('(a (b))')
  local function shown()
    local found = {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, require('consort.inline').namespace, 0, -1, { details = true })) do
      for _, chunk in ipairs(mark[4].virt_text or {}) do table.insert(found, vim.trim(chunk[1])) end
    end
    return found
  end
  local inner, outer, interrupted = range(0, 3, 6), range(0, 0, 7), 'Interrupted before it began.'
  local function cancelled(at, extra)
    return vim.tbl_extend('force', { code = -32803, message = interrupted, data = { kind = 'interrupted', range = at } }, extra or {})
  end
  at(1, 4)
  require('consort.eval').form()
  answer(1, 'evalForm', S.ok('1', { range = inner }))
  require('consort.eval').form(true)
  answer(1, 'evalForm', nil, cancelled(outer))
  T.eq({ '⇒ 1' }, shown())
  T.eq('Consort: ' .. interrupted, last())
  require('consort.eval').form()
  answer(1, 'evalForm', nil, cancelled(inner))
  T.eq({ '⇒ 1', '· cancelled, not evaluated again' }, shown())
  -- Another form in the place of the one with the result, of the same length.
  vim.api.nvim_buf_set_text(buf, 0, 4, 0, 5, { 'c' })
  require('consort.eval').form()
  answer(1, 'evalForm', nil, cancelled(inner))
  T.eq({}, shown())
  T.eq('Consort: ' .. interrupted, last())
  vim.api.nvim_buf_set_text(buf, 0, 4, 0, 5, { 'b' })
  -- One that was requested before the result that is shown.
  require('consort.eval').form()
  require('consort.eval').form()
  answer(2, 'evalForm', S.ok('3', { range = inner }))
  answer(1, 'evalForm', nil, cancelled(inner))
  T.eq({ '⇒ 3' }, shown())
  -- One that runs may have changed anything.
  require('consort.inline').clear(buf)
  require('consort.eval').form()
  answer(1, 'evalForm', S.ok('2', { range = inner }))
  require('consort.eval').form()
  require('consort.running').on_begun(nil, { token = questions[1].arguments.outputToken })
  answer(1, 'evalForm', nil, cancelled(inner))
  T.eq({ '⇒ 2' }, shown())
end)

T.it('a form that is refused leaves no earlier value at its line', function()
  local buf = window('(a) (b)', '(c)')
  local function shown() return vim.tbl_map(vim.trim, S.drawn('consort.inline', buf)) end
  local function evaluate(row, column, ...)
    at(row, column)
    require('consort.eval').form()
    answer(1, 'evalForm', ...)
  end
  local refused = { code = -32803, message = 'The package SHOP is not loaded.', data = { kind = 'package-not-found' } }
  evaluate(1, 1, S.ok('1', { range = range(0, 0, 3) }))
  evaluate(2, 1, S.ok('2', { range = range(1, 0, 3) }))
  evaluate(1, 5, nil, refused)
  T.eq({ '1: ⇒ 2' }, shown())
  -- A value of an evaluation that began later stays.
  at(1, 1)
  require('consort.eval').form()
  require('consort.eval').form()
  answer(2, 'evalForm', S.ok('3', { range = range(0, 0, 3) }))
  answer(1, 'evalForm', nil, refused)
  T.eq({ '0: ⇒ 3', '1: ⇒ 2' }, shown())
  -- Lines that come above meanwhile move the place.
  at(2, 1)
  require('consort.eval').form()
  vim.api.nvim_buf_set_lines(buf, 0, 0, false, { '' })
  answer(1, 'evalForm', nil, refused)
  T.eq({ '1: ⇒ 3' }, shown())
end)

-- The end of a server

T.it('what waits for a server is free at its end', function()
  local buf = window('(a)')
  local ended = 'Consort: the server has ended; `:edit` starts it again'
  local running = require('consort.running')
  require('consort.eval').form()
  require('consort.views').describe('one')
  T.eq(1, #vim.api.nvim_buf_get_extmarks(buf, running.namespace, 0, -1, {}))
  S.end_server()
  T.eq({}, vim.api.nvim_buf_get_extmarks(buf, running.namespace, 0, -1, {}))
  T.eq({ { ended, vim.log.levels.ERROR } }, said)
  -- The REPL evaluates again.
  require('consort.repl').open()
  local repl = vim.fn.bufnr('consort://repl')
  local function enter() vim.api.nvim_feedkeys(vim.keycode('A1<CR><Esc>'), 'x!', false) end
  enter()
  S.end_server()
  T.eq({ 'the server has ended; `:edit` starts it again', 'CL-USER> ' }, vim.list_slice(lines(repl), 3))
  enter()
  answer(1, 'eval', { status = 'ok', values = { '1' }, warnings = {}, package = 'COMMON-LISP-USER' })
  T.eq({ '1', 'CL-USER> ' }, vim.list_slice(lines(repl), 5))
  vim.cmd('bwipeout! ' .. repl)
  -- A call is not waited for any more.
  window('(a)')
  require('consort.recording').record('next f')
  S.end_server()
  require('consort.recording').record('next f')
  T.eq('record', questions[1] and questions[1].what)
  S.end_server()
  -- The inspector's keys are about the value that is shown.
  window('(a)')
  vim.cmd('Consort inspect (one)')
  answer(1, 'eval', { status = 'ok', values = { 'ONE' }, references = { 1 } })
  answer(1, 'inspect', { parts = { { label = 'A', value = { text = 'of A', reference = 10 } } }, total = 1 })
  vim.fn.search('^A ')
  press('<CR>')
  S.end_server()
  press('g')
  T.eq(1, questions[1].arguments.reference)
  press('q')
end)

T.it('questions of a server are over at its end', function()
  window('(a)')
  local decisions, answers = {}, {}
  local function from_server(client, handler, params, got)
    coroutine.wrap(function() table.insert(got, handler(nil, params, { client_id = client })) end)()
  end
  local approve = require('consort.approve')
  for id, client in ipairs({ 1, 1, 2 }) do
    from_server(client, approve.on_request, { id = id, what = 'change f', class = 'evaluate', deadlineSeconds = 60 }, decisions)
  end
  T.wait('the question', function() return #floats() == 1 end)
  from_server(1, require('consort.input').on_request, { id = 1, prompt = 'x' }, answers)
  S.end_server()
  T.eq({ { decision = 'deny' }, { decision = 'deny' } }, decisions)
  T.eq({ vim.NIL }, answers)
  T.wait('the question of the other server', function() return #floats() == 1 end)
  -- Each server counts its own.
  approve.on_over(nil, { id = 3 }, { client_id = 1 })
  approve.answer('allow')
  T.eq('allow', decisions[3].decision)
  T.eq({}, floats())
  local input = require('consort.input')
  from_server(2, input.on_request, { id = 1, prompt = 'x' }, answers)
  input.on_over(nil, { id = 1 }, { client_id = 1 })
  T.eq(1, #answers)
  input.on_over(nil, { id = 1 }, { client_id = 2 })
  T.eq(2, #answers)
end)

T.it('the end of another server leaves the keys in the copy', function()
  stepper()
  at(1, 7)
  press('en')
  require('consort.client').ended(2)
  answer(1, 'macrostep', expansion(6, '(two)'))
  answer(1, 'macroCalls', { calls = {} })
  press('q')
end)

T.it('what waits for a server is free at its end also when the last buffer of it is closed', function()
  window('(a)')
  local stand_ins = { vim.lsp.get_clients, vim.lsp.get_client_by_id }
  vim.lsp.get_clients, vim.lsp.get_client_by_id = get_clients, get_client_by_id
  local function server(dispatchers)
    local count, is_over = 0, false
    return {
      request = function(method, _, take)
        count = count + 1
        if method == 'initialize' then take(nil, { capabilities = {} }) end
        return true, count
      end,
      notify = function() return true end,
      is_closing = function() return is_over end,
      terminate = function()
        is_over = true
        dispatchers.on_exit(0, 15)
      end,
    }
  end
  local failure
  local ok, why = pcall(function()
    local id = assert(vim.lsp.start(vim.tbl_extend('force', vim.lsp.config.consort, { cmd = server, root_dir = '/' }), { attach = false }))
    local client = assert(vim.lsp.get_client_by_id(id))
    require('consort.client').request(client, 'eval', {}, function(error) failure = error end, vim.api.nvim_get_current_buf())
    client:stop(true)
    T.wait('the error', function() return failure end)
    T.eq(nil, vim.lsp.get_client_by_id(id))
  end)
  vim.lsp.get_clients, vim.lsp.get_client_by_id = unpack(stand_ins)
  if not ok then error(why, 0) end
  T.eq('the server has ended; `:edit` starts it again', failure.message)
end)

T.it('a request to a debugger that has ended is answered', function()
  window('(mine)')
  local system, finish = vim.system, nil
  vim.system = function(_, _, on_exit)
    finish = on_exit
    return { write = function() end }
  end
  local real = loadfile(vim.api.nvim_get_runtime_file('lua/consort/adapter.lua', false)[1])()
  local adapter = real.of(vim.lsp.get_clients()[1])
  vim.system = system
  local errors = {}
  local function request() adapter:request('variables', {}, function(error) table.insert(errors, error) end) end
  request() -- it waits until the debugger is configured
  for _ = 1, 2 do adapter:ask('threads', nil, error) end
  finish({})
  T.wait('the end', function() return #errors == 1 end)
  request()
  T.eq({ 'the debugger has ended', 'the debugger has ended' }, errors)
  T.eq({ { 'Consort: the debugger has ended', vim.log.levels.ERROR } }, said)
end)

-- The message line

T.it('what is being done is removed from the message line, and not what was said since', function()
  local echo, cleared, replacement = vim.api.nvim_echo, 0, vim.notify
  vim.notify = notify
  vim.api.nvim_echo = function(chunks, ...)
    if #chunks == 1 and chunks[1][1] == '' then cleared = cleared + 1 end
    return echo(chunks, ...)
  end
  local ok, why = pcall(function()
    for _, other in ipairs({ false, true }) do
      window('(a)')
      require('consort.views').profile()
      if other then vim.cmd.echomsg('"another message"') end
      answer(1, 'profileForm', { text = 'nothing' })
      T.eq(1, cleared, 'profile')
      press('q')
      window('(a)')
      require('consort.recording').record()
      if other then vim.cmd.echomsg('"another message"') end
      answer(1, 'record', { text = 'nothing', recording = { recording = 0 } })
      T.eq(other and 1 or 2, cleared, 'record')
      press('q')
      cleared = 1
    end
  end)
  vim.api.nvim_echo, vim.notify = echo, replacement
  io.stderr:write('\n') -- ends the last message's line
  if not ok then error(why, 0) end
end)

T.finish()
