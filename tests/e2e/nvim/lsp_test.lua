-- nvim --headless -u NONE -i NONE -l lsp_test.lua
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin()

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defun greet (name greeting)',
  '  "𝄞 is outside the BMP"',
  '  (list "𝄞é" (no-such-function name)))',
})

local function diagnostics()
  local seen = {}
  for _, d in ipairs(vim.diagnostic.get(0)) do
    table.insert(seen, { d.lnum, d.col, d.end_lnum, d.end_col, d.code })
  end
  table.sort(seen, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  return seen
end
local published -- the version of the text that the last diagnostics are of
local publish = vim.lsp.handlers['textDocument/publishDiagnostics']
vim.lsp.handlers['textDocument/publishDiagnostics'] = function(err, result, context)
  if result.uri == vim.uri_from_fname(file) then published = result.version end
  return publish(err, result, context)
end
--- Waits for these diagnostics of the text as it is now.
local function expect(want)
  T.wait('diagnostics ' .. vim.inspect(want), function()
    return published == vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()] and vim.deep_equal(want, diagnostics())
  end, function() return { published, diagnostics() } end)
end
local function line(n) return vim.api.nvim_buf_get_lines(0, n, n + 1, false)[1] end
-- The position of TEXT on line N: Neovim counts bytes, so this holds in whichever encoding was
-- agreed on.
local function at(n, text, code)
  local first, last = line(n):find(text, 1, true)
  return { n, first - 1, n, last, code }
end

local exit_code
local shown = {}
vim.lsp.config('consort', {
  on_exit = function(code) exit_code = code end,
  settings = { consort = { eval = { timeout_s = 45 } } },
  handlers = { ['window/showMessage'] = function(_, params) table.insert(shown, params.message) end },
})
vim.lsp.enable('consort')
vim.cmd.edit(file)
local buf = vim.api.nvim_get_current_buf()
local client

T.it('the client attaches to the workspace', function()
  T.eq('lisp', vim.bo.filetype)
  client = T.wait('a client', function() return vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1] end)
  T.wait('initialization', function() return client.initialized end)
  T.eq(workspace, client.root_dir)
  T.eq('consort', client.server_info.name:lower())
end)

T.it('diagnostics lie on the names they mean', function()
  expect({ at(3, 'greeting', 'unused-variable'), at(5, 'no-such-function', 'undefined-function') })
end)

T.it('the limits of a person\'s own configuration are taken, also higher ones', function()
  T.eq({}, vim.tbl_filter(function(message) return message:find('timeout_s', 1, true) ~= nil end, shown))
end)

T.it('severities are those of the compiler', function()
  local severity = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do severity[d.code] = d.severity end
  T.eq(vim.diagnostic.severity.WARN, severity['undefined-function'])
  T.eq(true, severity['unused-variable'] >= vim.diagnostic.severity.WARN)
end)

T.it('an edit takes its diagnostic away, and moves the others', function()
  vim.api.nvim_buf_set_lines(buf, 5, 6, false, { '  (list "𝄞é" (identity name)))' })
  expect({ at(3, 'greeting', 'unused-variable') })
  vim.api.nvim_buf_set_lines(buf, 2, 2, false, { ';; a new line with 𝄞 in it' })
  expect({ at(4, 'greeting', 'unused-variable') })
end)

T.it('a missing parenthesis marks the form that is open, and nothing else breaks', function()
  vim.api.nvim_buf_set_lines(buf, 6, 7, false, { '  (list "𝄞é" (identity name))', '', '(defun after () (also-missing))' })
  T.wait('both findings', function()
    local codes = {}
    for _, d in ipairs(vim.diagnostic.get(buf)) do codes[d.code] = d end
    return codes['undefined-function'] and codes['undefined-function'].lnum == 8 and vim.iter(vim.diagnostic.get(buf)):any(function(d)
      return d.severity == vim.diagnostic.severity.ERROR and d.lnum == 4
    end)
  end, diagnostics)
end)

T.it('nothing stale remains after a burst of edits', function()
  for i = 1, 40 do
    vim.api.nvim_buf_set_lines(buf, 3, -1, false, { ('(defun burst-%d () (missing-%d))'):format(i, i) })
    vim.wait(5) -- the event loop runs, as between keystrokes
  end
  vim.api.nvim_buf_set_lines(buf, 3, -1, false, { '(defun calm () (list 1 2))' })
  expect({})
  -- Those of the structure come first; the answer to a request has those of the compiler too.
  local all = T.ask(client, 'textDocument/diagnostic', { textDocument = { uri = vim.uri_from_bufnr(buf) } }, buf)
  T.eq({ nil, {} }, { all.err, all.result.items })
  T.eq({}, diagnostics())
end)

T.it('consort.eval evaluates in the image', function()
  local answer = T.ask(client, 'workspace/executeCommand', {
    command = 'consort.eval',
    arguments = { { code = '(format nil "~r" 42)', package = 'CL-USER' } },
  }, buf)
  T.eq(nil, answer.err)
  T.eq('"forty-two"', answer.result.values[1])
end)

T.it('a host that is killed is replaced, and nobody has to do anything', function()
  local function host()
    local status = T.run({ 'consort', 'status', '--json' }, { cwd = workspace })
    return status.code == 0 and vim.json.decode(status.stdout).host_pid
  end
  vim.api.nvim_buf_set_lines(buf, 3, -1, false, { '(defun lasting () (missing-still))' })
  expect({ at(3, 'missing-still', 'undefined-function') })
  local before = T.wait('the host', host)
  local published = 0
  local publish = vim.lsp.handlers['textDocument/publishDiagnostics']
  client.handlers['textDocument/publishDiagnostics'] = function(err, result, context)
    published = published + #result.diagnostics
    return publish(err, result, context)
  end
  vim.uv.kill(before, 'sigkill')
  T.wait('diagnostics of another host', function() return published > 0 end, diagnostics)
  client.handlers['textDocument/publishDiagnostics'] = nil
  expect({ at(3, 'missing-still', 'undefined-function') })
  T.eq(false, T.wait('another host', host) == before)
  T.eq(client.id, vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1].id)
  vim.api.nvim_buf_set_lines(buf, 3, -1, false, { '(defun lasting () 1)' })
  expect({})
end)

T.it('closing the buffer clears its diagnostics', function()
  vim.api.nvim_buf_set_lines(buf, 3, -1, false, { '(defun again () (missing-again))' })
  T.wait('a diagnostic', function() return #vim.diagnostic.get(buf) == 1 end, diagnostics)
  local cleared = false
  local publish = vim.lsp.handlers['textDocument/publishDiagnostics']
  client.handlers['textDocument/publishDiagnostics'] = function(err, result, context)
    if result.uri == vim.uri_from_fname(file) and #result.diagnostics == 0 then cleared = true end
    return publish(err, result, context)
  end
  vim.lsp.buf_detach_client(buf, client.id)
  T.wait('an empty publication', function() return cleared end)
end)

T.it('the client stops in good order', function()
  client:stop()
  T.wait('its exit', function() return exit_code end)
  T.eq(0, exit_code)
  T.wait('no client', function() return #vim.lsp.get_clients() == 0 end)
end)

T.run({ 'consort', 'stop' }, { cwd = workspace })
vim.fn.delete(workspace, 'rf')
T.finish()
