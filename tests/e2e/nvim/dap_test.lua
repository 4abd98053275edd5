-- nvim --headless -u NONE -i NONE -l dap_test.lua: the part of the plugin for nvim-dap, without
-- nvim-dap, and with its tables and a client of `consort dap` in its place, which does with stops
-- and frames what nvim-dap's source does. nvim-dap itself is in no registry.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(restart-case (error "no ${file} [x](y)")',
  '  (use-other (other)',
  '    :report "Use another." :interactive (lambda () (list 1))',
  '    (list :other other *package*)))',
  '',
  '(list (/ 5 (- 1 1)))',
})

local said, last, forget = T.notifications()
local function last_said() return last() or '' end

--- A replacement for a session of nvim-dap: its requests over the adapter's standard streams, and
--- its state: the focused thread, the known threads with their frames, and the current frame.
---@param dap table
local function session_of(dap, adapter, config)
  local session = { config = config, adapter = adapter, seq = 0, waiting = {}, events = {}, buffered = '', threads = {}, dirty = {} }
  local function call(listeners, ...)
    for key, listener in pairs(listeners) do
      if listener(...) then listeners[key] = nil end
    end
  end
  local react = {}
  function react.stopped(body)
    local thread = session.threads[body.threadId] or { id = body.threadId, name = 'Unknown' }
    session.threads[thread.id] = thread
    local focus = body.reason ~= 'pause' or body.allThreadsStopped
    if focus and session.stopped_thread_id and session.stopped_thread_id ~= thread.id then
      if dap.defaults[config.type].auto_continue_if_many_stopped then return session:request('continue', { threadId = thread.id }) end
      focus = false
    end
    if focus then session.stopped_thread_id = thread.id end
    thread.stopped = true
    session:request('stackTrace', { threadId = thread.id, startFrame = 0 }, function(error, answer)
      if error then return end
      thread.frames = answer.stackFrames
      local current = vim.iter(thread.frames):find(function(frame) return frame.source end) or thread.frames[1]
      if focus then session.current_frame = current end
    end)
  end
  function react.continued(body)
    if session.stopped_thread_id == body.threadId or body.allThreadsContinued ~= false then session.stopped_thread_id = nil end
    for _, thread in pairs(session.threads) do
      if thread.id == body.threadId or body.allThreadsContinued ~= false then thread.stopped = false end
    end
  end
  local function receive(message)
    if message.type == 'response' then
      local waiting = session.waiting[message.request_seq] or {}
      session.waiting[message.request_seq] = nil
      local error = not message.success and { message = message.message } or nil
      call(dap.listeners.before[message.command], session, error, message.body, waiting.arguments)
      if waiting.callback then waiting.callback(error, message.body) end
      call(dap.listeners.after[message.command], session, error, message.body, waiting.arguments)
    else
      table.insert(session.events, message)
      call(dap.listeners.before['event_' .. message.event], session, message.body)
      if react[message.event] then react[message.event](message.body) end
      call(dap.listeners.after['event_' .. message.event], session, message.body)
    end
  end
  --- Goes on as nvim-dap's keys do: the thread is taken for running at once.
  function session:step(command, arguments)
    local thread = self.threads[self.stopped_thread_id]
    self.stopped_thread_id, thread.stopped = nil, false
    self:request(command, arguments or { threadId = thread.id })
  end
  --- Evaluates as nvim-dap's REPL does: in the current frame.
  function session:evaluate(expression, callback)
    self:request('evaluate', { expression = expression, context = 'repl', frameId = (self.current_frame or {}).id }, callback or function() end)
  end
  session.process = vim.system(vim.list_extend({ adapter.command }, adapter.args), {
    cwd = adapter.options.cwd,
    stdin = true,
    stdout = vim.schedule_wrap(function(_, data)
      session.buffered = session.buffered .. (data or '')
      while true do
        local length, body = session.buffered:match('^Content%-Length: (%d+)\r\n\r\n()')
        if not length or #session.buffered < body + length - 1 then return end
        local text = session.buffered:sub(body, body + length - 1)
        session.buffered = session.buffered:sub(body + length)
        receive(vim.json.decode(text, { luanil = { object = true } }))
      end
    end),
  })
  function session:request(command, arguments, callback)
    self.seq = self.seq + 1
    self.waiting[self.seq] = { callback = callback, arguments = arguments }
    local text = vim.json.encode({ seq = self.seq, type = 'request', command = command, arguments = arguments })
    self.process:write(('Content-Length: %d\r\n\r\n%s'):format(#text, text))
  end
  function session:ask(command, arguments)
    local done, failure, answer
    self:request(command, arguments, function(error, body) done, failure, answer = true, error, body end)
    T.wait('the answer to ' .. command, function() return done end)
    T.eq(nil, failure, command)
    return answer
  end
  function session:event(name) return vim.iter(self.events):find(function(event) return event.event == name end) end
  return session
end

--- The tables of nvim-dap that the plugin writes to, and `run` as far as it uses them.
local function tables()
  local each = { __index = function(tbl, key) return rawget(rawset(tbl, key, {}), key) end }
  local dap = { adapters = {}, configurations = {}, listeners = { before = setmetatable({}, each), after = setmetatable({}, each) } }
  local fallback = { __index = { auto_continue_if_many_stopped = true } }
  dap.defaults = setmetatable({}, { __index = function(tbl, key) return rawget(rawset(tbl, key, setmetatable({}, fallback)), key) end })
  function dap.session() return dap.current end
  function dap.sessions() return dap.others or {} end
  function dap.set_session(session) dap.current = session end
  function dap.run(config, opts)
    dap.last = { config, opts or {} }
    dap.adapters[config.type](function(adapter)
      adapter.enrich_config(config, function(enriched) dap.current = session_of(dap, adapter, enriched) end)
    end, config)
  end
  return dap
end

T.it('without nvim-dap, setup() says what is missing and does nothing', function()
  T.eq(false, require('consort.dap').setup())
  T.eq(1, #said)
  T.eq(vim.log.levels.WARN, said[1][2])
  T.eq(true, last_said():find('nvim-dap', 1, true) ~= nil, last_said())
  require('consort.dap').evaluate()
  require('consort.dap').restarts()
  T.eq(3, #said, 'each says it, and none fails')
end)

local dap = tables()
package.loaded.dap = dap

T.it('setup() registers the adapter and the configurations, once', function()
  local mine = { type = 'other', request = 'launch', name = 'mine' }
  dap.configurations.lisp = { mine }
  T.eq(true, require('consort.dap').setup())
  T.eq(true, require('consort.dap').setup())
  T.eq('function', type(dap.adapters.consort))
  T.eq(mine, dap.configurations.lisp[1])
  T.eq({ 'other', 'consort', 'consort', 'consort', 'consort' }, vim.tbl_map(function(config) return config.type end, dap.configurations.lisp))
  T.eq('function', type(dap.listeners.after.event_stopped.consort))
end)

T.it('a program that is not there is named', function()
  vim.lsp.config('consort', { cmd = { '/nowhere/consort', 'lsp' } })
  dap.adapters.consort(function() error('an adapter of a program that is not there') end, {})
  T.eq(true, last_said():find('/nowhere/consort', 1, true) ~= nil, last_said())
  vim.lsp.config('consort', { cmd = { 'consort', 'lsp' } })
end)

T.it('the package is that of the last in-package above', function()
  local of = require('consort.in_package').after
  T.eq(nil, of({ '(defun f ())', ';; (in-package :no)' }))
  for _, name in ipairs({ ':fixture', '#:fixture', '"FIXTURE"', "'fixture", 'fixture', '|FIXTURE|' }) do
    T.eq('FIXTURE', of({ '(in-package :before)', ('(in-package %s) ; x'):format(name), '(f)' }), name)
  end
  T.eq('A', of({ '(cl:in-package :a)' }))
end)

--- Begins the session that `evaluate` has run, as nvim-dap does.
local function begin()
  local session = dap.current
  session:ask('initialize', { adapterID = 'consort' })
  local config = session.config
  session:ask('launch', { code = config.code, package = config.package, file = config.file, line = config.line })
  session:ask('configurationDone', vim.empty_dict())
  return session
end
--- The content of the session, once its evaluation has ended and it has left.
local function shown(session)
  T.wait('the end of the evaluation', function() return session:event('terminated') end, function() return { session.events, said } end)
  session:request('disconnect', vim.empty_dict())
  T.eq(0, session.process:wait(T.patience).code)
  local texts = {}
  for _, event in ipairs(session.events) do
    if event.event == 'output' then table.insert(texts, event.body.output) end
  end
  return vim.trim(table.concat(texts))
end

T.it('a form is evaluated with the debugger', function()
  vim.lsp.enable('consort')
  vim.cmd.edit(file)
  T.wait('the language server', function() return #vim.lsp.get_clients({ name = 'consort', bufnr = 0 }) == 1 end)
  vim.api.nvim_win_set_cursor(0, { 1, 20 })
  require('consort.dap').evaluate()
  -- A start of the image that takes long is told before.
  T.eq('#<PACKAGE "FIXTURE">', shown(begin()):match('[^\n]*$'))
  T.eq('Consort: #<PACKAGE "FIXTURE">', last_said(), 'the value is told, because no window shows the REPL')
end)

T.it('what was evaluated is evaluated again, as it is then, and no session is ended for it', function()
  vim.api.nvim_buf_set_lines(0, 9, 9, false, { '', '(list 1)' })
  vim.api.nvim_win_set_cursor(0, { 11, 1 })
  require('consort.dap').evaluate()
  T.eq('(1)', shown(begin()))
  local config, options = unpack(dap.last)
  T.eq(true, options.new)
  vim.api.nvim_buf_set_text(0, 10, 6, 10, 7, { '(+ 1 2)' })
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { '', '' })
  vim.api.nvim_win_set_cursor(0, { 3, 1 })
  dap.run(config)
  T.eq({ '(list (+ 1 2))', 'FIXTURE' }, { dap.current.config.code, dap.current.config.package })
  T.eq('(3)', shown(begin()))
  vim.cmd('edit!')
end)

--- The configuration that an adapter gets for one of a launch.json; nil if it is refused.
local function enriched(config)
  local got
  dap.adapters.consort(function(adapter)
    adapter.enrich_config(vim.tbl_extend('error', { type = 'consort', request = 'launch' }, config), function(one) got = one end)
  end, config)
  return got
end

T.it("a launch.json's configurations mean what they mean in VS Code", function()
  vim.api.nvim_win_set_cursor(0, { 9, 10 })
  T.eq({ '(list (/ 5 (- 1 1)))', file, 9 }, { enriched({}).code, enriched({}).file, enriched({}).line })
  T.eq({ '(list (/ 5 (- 1 1)))' }, { enriched({ evaluate = 'top-level' }).code, enriched({ evaluate = 'top-level' }).file })
  T.eq('(/ 5 (- 1 1))', enriched({ evaluate = 'form' }).code)
  T.eq(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), enriched({ evaluate = 'file' }).code)
  T.eq({ '(f)' }, { enriched({ code = '(f)' }).code, enriched({ code = '(f)' }).line })
  T.eq(nil, enriched({ evaluate = 'all' }))
  T.eq('Consort: `evaluate` in a debug configuration is one of form, top-level, selection, file, test', last_said())
end)

T.it('a form that fails stops, and a restart that is chosen lets it go on', function()
  vim.api.nvim_win_set_cursor(0, { 5, 10 })
  forget()
  require('consort.dap').evaluate()
  local session = begin()
  T.eq({ 'dap', '--workspace', workspace }, { unpack(session.process.cmd, 2) })
  T.eq({ 'FIXTURE', '(restart-case (error "no ${file} [x](y)")' }, { session.config.package, vim.split(session.config.code, '\n')[1] })
  T.wait('the stop', function() return session.stopped_thread_id end, function() return session.events end)
  T.eq(true, last_said():find('SIMPLE-ERROR: no ${file} [x](y)', 1, true) ~= nil, last_said())
  local frames = session:ask('stackTrace', { threadId = session.stopped_thread_id }).stackFrames
  T.eq(true, #frames > 0)

  local offered
  vim.ui.select = function(items, options, choose)
    offered = vim.tbl_map(options.format_item, items)
    choose(vim.iter(items):find(function(item) return item.name == 'FIXTURE::USE-OTHER' end))
  end
  vim.ui.input = function(_, typed) typed('(* 6 7)') end
  require('consort.dap').restarts()
  T.wait('the restarts', function() return offered end, function() return said end)
  T.eq({ 'FIXTURE::USE-OTHER: Use another.', 'ABORT: End the evaluation.' }, offered)
  T.eq('(:OTHER 42 #<PACKAGE "FIXTURE">)', shown(session))

  forget()
  require('consort.dap').restarts()
  T.eq('Consort: nothing is stopped', last_said())
end)

T.it('the test at the cursor is run with the debugger, as it stands in the buffer', function()
  local stand_ins = vim.fs.normalize(here .. '/../../../lisp/tests/stand-ins.lisp')
  local tests = workspace .. '/tests.lisp'
  vim.fn.writefile({ '(defpackage :t-tests (:use :cl :rove))', '(in-package :t-tests)', '(deftest sums', '  (ok (= 3 (+ 1 2))))' }, tests)
  dap.run({ type = 'consort', request = 'launch', name = 'load', code = ('(progn (load %q) (load %q) 1)'):format(stand_ins, tests) })
  T.eq(true, shown(begin()):find('1$') ~= nil)
  vim.cmd.edit(tests)
  vim.api.nvim_buf_set_lines(0, 3, 4, false, { '  (ok (= 3 (+ 1 1))))' })
  T.wait('the language server', function() return #vim.lsp.get_clients({ name = 'consort', bufnr = 0 }) == 1 end)
  vim.lsp.buf_request_sync(0, 'textDocument/documentSymbol', { textDocument = vim.lsp.util.make_text_document_params() }, T.patience)
  vim.api.nvim_win_set_cursor(0, { 4, 3 })
  require('consort.dap').evaluate_test()
  local session = begin()
  T.eq({ tests, 4 }, { session.config.file, session.config.line })
  -- A failed check stops the program, too.
  T.wait('the stop at the check', function() return session.stopped_thread_id end, function() return session.events end)
  T.eq(true, last_said():find('A check failed: Expect (= 3 (+ 1 1))', 1, true) ~= nil, last_said())
  session:ask('continue', { threadId = session.stopped_thread_id })
  local text = shown(session)
  T.eq(true, text:find('T-TESTS::SUMS: failed, 1 check', 1, true) ~= nil, text)
  T.eq(true, last_said():find('Consort: T-TESTS::SUMS: failed, 1 check', 1, true) ~= nil, last_said())
  vim.cmd('edit! ' .. file)
end)

T.it('a recording is stepped through, back from where it failed', function()
  vim.api.nvim_win_set_cursor(0, { 9, 5 })
  vim.cmd('Consort record')
  local function float()
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(win).relative ~= '' then return win end
    end
  end
  T.wait('the rows of the recording', float, function() return said end)
  vim.api.nvim_set_current_win(float())
  dap.current = nil
  vim.api.nvim_feedkeys('d', 'mx', false)
  T.wait('the session', function() return dap.current end)
  T.eq(nil, float())
  local session = dap.current
  T.eq({ 'attach', 'number' }, { session.config.request, type(session.config.recording) })
  session:ask('initialize', { adapterID = 'consort' })
  session:ask('attach', { recording = session.config.recording })
  session:ask('configurationDone', vim.empty_dict())
  T.wait('the first moment', function() return session:event('stopped') end, function() return session.events end)
  T.eq(true, session:event('capabilities').body.capabilities.supportsStepBack)
  T.eq('exception', session:event('stopped').body.reason)
  session.events = {}
  session:ask('stepBack', { threadId = 1 })
  T.wait('the moment before', function() return session:event('stopped') end, function() return session.events end)
  T.eq('(- 1 1) => 0', session:event('stopped').body.text)
  T.eq('Consort: (- 1 1) => 0', last_said())
  session:request('disconnect', vim.empty_dict())
  T.eq(0, session.process:wait(T.patience).code)
end)

--- A session that is attached to the image.
local function attached()
  dap.run(require('consort.dap').attach)
  local session = begin()
  forget()
  return session
end
local function leave(session)
  session:request('disconnect', vim.empty_dict())
  T.eq(0, session.process:wait(T.patience).code)
end
local function focused(session, what)
  T.wait(what, function() return session.stopped_thread_id and session.current_frame end, function() return session.events end)
end
--- Chooses the restart of this name at the focused stop, or at the thread of the first choice.
local function restart(name)
  vim.ui.select = function(items, _, choose)
    choose(vim.iter(items):find(function(item) return item.name == name end) or items[1])
  end
  require('consort.dap').restarts()
end

T.it('several threads that stop stay stopped, and each can be left', function()
  local session = attached()
  session:evaluate('(dotimes (i 2) (sb-thread:make-thread (lambda () (list (cerror "Go on." "one of two"))) :name "mine"))')
  T.wait('two stops', function()
    return #require('consort.dap_focus').stopped_threads(session) == 2
  end, function() return session.events end)
  focused(session, 'the focus')
  local threads = vim.tbl_filter(function(thread) return thread.name:find('stopped', 1, true) end, session:ask('threads').threads)
  T.eq(2, #threads, 'nvim-dap continued none of them')
  T.eq(nil, session:event('continued'))
  -- The first one goes on; the second has the only restarts then.
  session:step('continue')
  T.wait('the first one going on', function() return session:event('continued') end, function() return session.events end)
  T.eq(nil, session.current_frame)
  restart('CONTINUE')
  T.wait('the second one going on', function() return #require('consort.dap_focus').stopped_threads(session) == 0 end, function() return { session.events, said } end)
  -- The console evaluates anew, in no frame of before.
  local result
  session:evaluate('(+ 20 22)', function(error, answer) result = error or answer.result end)
  T.wait('the value', function() return result end)
  T.eq('42', result)
  leave(session)
end)

T.it('a continue that is refused leaves the focus at the stop', function()
  local session = attached()
  local outcome
  session:evaluate('(error "no way on")', function(error) outcome = error.message end)
  focused(session, 'the stop')
  local thread, shown_frame = session.stopped_thread_id
  function session:_frame_set(frame) shown_frame = frame end
  session:step('continue')
  T.wait('the focus again', function() return session.stopped_thread_id end, function() return session.events end)
  T.eq({ thread, true, session.current_frame }, { session.stopped_thread_id, session.threads[thread].stopped, shown_frame })
  restart('ABORT')
  T.wait('the end', function() return outcome end, function() return { session.events, said } end)
  leave(session)
end)

T.it('the thread that is paused has the focus', function()
  local session = attached()
  local outcome
  session:evaluate('(loop (sleep 0.01))', function(error) outcome = error.message end)
  local running
  T.wait('the loop', function()
    running = vim.iter(session:ask('threads').threads):find(function(thread) return thread.name:find('evaluation', 1, true) end)
    return running
  end)
  T.eq(true, session.dirty.threads, 'nvim-dap asks again before it offers threads to pause')
  session:ask('pause', { threadId = running.id })
  focused(session, 'the focus of a pause')
  T.eq(running.id, session.stopped_thread_id)
  restart('ABORT')
  T.wait('the end', function() return outcome end, function() return { session.events, said } end)
  leave(session)
end)

T.it('completions replace the name before the cursor, and texts without a file are Lisp', function()
  local session = attached()
  T.eq('lisp', session.adapter.options.source_filetype)
  local text = '(list "é😀" (make-inst'
  local answer = session:ask('completions', { text = text, column = #text + 1 })
  local found = vim.iter(answer.targets):find(function(target) return target.label == 'make-instance' end)
  T.eq({ text:find('make-inst', 1, true) - 1, #'make-inst' }, { found.start, found.length })
  leave(session)
end)

--- Calls the listeners of an event around what nvim-dap does.
local function told(name, session, body, react)
  for _, listener in pairs(dap.listeners.before[name]) do listener(session, body) end
  if react then react() end
  for _, listener in pairs(dap.listeners.after[name]) do listener(session, body) end
end

T.it('the session of the own evaluation is the current one, and the others leave the stop to it', function()
  local function session_at(thread) return { config = { type = 'consort', request = 'launch' }, adapter = { options = { cwd = workspace } }, threads = {}, stopped_thread_id = thread } end
  local mine, other = session_at(7), session_at(nil)
  dap.others, dap.current = { mine, other }, other
  local here, there = { threadId = 7, reason = 'breakpoint', stop = 3, ownEvaluation = true }, { threadId = 7, reason = 'breakpoint', stop = 3 }
  told('event_stopped', mine, here)
  told('event_stopped', other, there, function() dap.current = other end)
  T.eq({ 'breakpoint', 'pause', true }, { here.reason, there.reason, there.isShownElsewhere })
  T.wait('the own session', function() return dap.current == mine end)
  dap.others, dap.current = nil, nil
end)

T.it('a stop in another image does not take the newest own stop away', function()
  local function session_of_image(root) return { config = { type = 'consort', request = 'launch' }, adapter = { options = { cwd = root } }, threads = {} } end
  local first, watcher, second = session_of_image('/a'), session_of_image('/a'), session_of_image('/b')
  dap.others, dap.current = { first, watcher, second }, first
  --- As nvim-dap: a stop makes its session current while the current one is at no stop. The thread
  --- gets the focus only once the threads are there.
  local function stopped(session, stop)
    told('event_stopped', session, stop, function()
      if not (dap.current and dap.current.stopped_thread_id) then dap.current = session end
    end)
  end
  local function turn()
    local over
    vim.schedule(function() over = true end)
    T.wait('the next turn', function() return over end)
  end
  stopped(first, { threadId = 7, reason = 'breakpoint', stop = 1, ownEvaluation = true })
  first.stopped_thread_id = 7
  turn()
  stopped(second, { threadId = 7, reason = 'breakpoint', stop = 1, ownEvaluation = true })
  turn()
  T.eq(true, dap.current == second, 'the newest own stop')
  stopped(watcher, { threadId = 7, reason = 'breakpoint', stop = 1 })
  turn()
  T.eq(true, dap.current == second, 'while its threads are asked for')
  -- A session that the person has chosen stays, and so does one that stops after the own stop.
  dap.current = watcher
  stopped(watcher, { threadId = 8, reason = 'step', stop = 2 })
  turn()
  T.eq(true, dap.current == watcher, 'the chosen one')
  dap.current = second
  told('event_continued', second, { threadId = 7, allThreadsContinued = false })
  stopped(watcher, { threadId = 8, reason = 'step', stop = 3 })
  turn()
  T.eq(true, dap.current == watcher, 'after the own stop')
  dap.others, dap.current = nil, nil
end)

T.it('logpoints in a loop are counted, and the result is told', function()
  forget()
  require('consort.bounded').QUIET = T.patience
  local session = { config = { type = 'consort', request = 'launch' } }
  for i = 1, 300 do told('event_output', session, { category = 'console', output = ('n=%d\n'):format(i) }) end
  told('event_output', session, { category = 'console', output = '300\n' })
  told('event_terminated', session)
  T.eq({ 'n=1', 'n=2', 'n=3', 'n=4', 'n=5', '... and 295 more: `:DapToggleRepl` shows all', '300' }, vim.tbl_map(function(one) return (one[1]:gsub('^Consort: ', '')) end, said))
end)

T.it('the marks of forms that no session uses are removed', function()
  local run, namespace = dap.run, vim.api.nvim_get_namespaces()['consort.dap_code']
  local code, used = require('consort.dap_code'), nil
  dap.run = function(config) used = config.here end
  local function marks() return #vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, {}) end
  vim.api.nvim_win_set_cursor(0, { 1, 20 })
  for _ = 1, 3 do require('consort.dap').evaluate() end
  T.eq(1, marks())
  dap.others = { { config = { type = 'consort', here = used } } }
  for _ = 1, 3 do require('consort.dap').evaluate() end
  T.eq(2, marks())
  local enriched
  code.enrich({ request = 'launch', here = dap.others[1].config.here }, function(config) enriched = config end)
  T.eq('(defpackage :fixture (:use :cl))', enriched.code)
  dap.run, dap.others = run, nil
end)

local function placed(group) return vim.tbl_map(function(sign) return sign.lnum end, vim.fn.sign_getplaced(vim.api.nvim_get_current_buf(), { group = group })[1].signs) end

T.it('a breakpoint that changes keeps the line that its sign has', function()
  vim.fn.sign_define('DapBreakpoint', { text = 'B' })
  local id = vim.fn.sign_place(0, 'dap_breakpoints', 'DapBreakpoint', vim.api.nvim_get_current_buf(), { lnum = 9, priority = 21 })
  vim.api.nvim_buf_set_lines(0, 2, 2, false, { '' })
  T.eq({ 10 }, placed('dap_breakpoints'))
  local session = { config = { type = 'consort' } }
  told('event_breakpoint', session, { reason = 'changed', breakpoint = { id = 1, verified = true } }, function()
    vim.fn.sign_place(id, 'dap_breakpoints', 'DapBreakpoint', vim.api.nvim_get_current_buf(), { lnum = 9, priority = 21 })
  end)
  T.eq({ 10 }, placed('dap_breakpoints'))
  vim.fn.sign_unplace('dap_breakpoints')
  vim.cmd('edit!')
end)

T.it('breakpoints stay at their texts when another program writes the file', function()
  local buf = vim.api.nvim_get_current_buf()
  local set
  dap.others = { { set_breakpoints = function(_, points) set = points end } }
  package.loaded['dap.breakpoints'] = { get = function(of) return { [of] = placed('dap_breakpoints') } end }
  vim.fn.sign_place(0, 'dap_breakpoints', 'DapBreakpoint', buf, { lnum = 9, priority = 21 })
  vim.api.nvim_win_set_cursor(0, { 9, 0 })
  require('consort.breakpoints').toggle()
  local namespace = vim.api.nvim_get_namespaces()['consort.breakpoints']
  local function own() return vim.tbl_map(function(mark) return mark[2] + 1 end, vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, {})) end
  -- The line of the form is beyond the end of the text that is written.
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  vim.fn.writefile({ lines[1], lines[2], lines[9] }, file)
  T.wait('the text on the disk', function() return vim.api.nvim_buf_line_count(0) == 3 end)
  T.eq({ { 3 }, { 3 } }, { placed('dap_breakpoints'), own() })
  T.eq({ [buf] = { 3 } }, set)
  vim.fn.writefile(vim.list_extend({ ';; an agent', ';; was here' }, lines), file)
  T.wait('the text on the disk', function() return vim.api.nvim_buf_line_count(0) == #lines + 2 end)
  T.eq({ { 11 }, { 11 } }, { placed('dap_breakpoints'), own() })
  require('consort.breakpoints').clear()
  vim.fn.sign_unplace('*')
  dap.others = nil
end)

T.it('columns of frames are bytes, as nvim-dap takes them', function()
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'é😀(list)' })
  local frames = { { source = { path = file }, line = 1, column = 4, endLine = 1, endColumn = 8 }, { source = { path = '/not/open' }, line = 1, column = 4 } }
  for _, listener in pairs(dap.listeners.before.stackTrace) do listener({ config = { type = 'consort' } }, nil, { stackFrames = frames }) end
  T.eq({ 7, 11, 4 }, { frames[1].column, frames[1].endColumn, frames[2].column })
end)

T.leave(workspace)
T.finish()
