-- nvim --headless -u NONE -i NONE -l dap_test.lua: the part of the plugin for nvim-dap, without
-- nvim-dap, and with its tables and a client of `consort dap` in its place. nvim-dap itself is in
-- no registry.
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

--- A replacement for a session of nvim-dap: its requests over the adapter's standard streams.
local function session_of(adapter, config, on_event)
  local session = { config = config, seq = 0, waiting = {}, events = {}, buffered = '' }
  local function receive(message)
    if message.type == 'response' then
      local callback = session.waiting[message.request_seq]
      session.waiting[message.request_seq] = nil
      if callback then callback(not message.success and { message = message.message } or nil, message.body) end
    else
      table.insert(session.events, message)
      if message.event == 'stopped' then session.stopped_thread_id = message.body.threadId end
      if message.event == 'continued' then session.stopped_thread_id = nil end
      on_event(session, message)
    end
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
    self.waiting[self.seq] = callback
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
  function dap.session() return dap.current end
  function dap.run(config)
    dap.adapters[config.type](function(adapter)
      adapter.enrich_config(config, function(enriched)
        dap.current = session_of(adapter, enriched, function(session, message)
          for _, listener in pairs(dap.listeners.after['event_' .. message.event]) do listener(session, message.body) end
        end)
      end)
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
  local of = require('consort.dap').package
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
  T.eq('#<PACKAGE "FIXTURE">', shown(begin()))
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

T.leave(workspace)
T.finish()
