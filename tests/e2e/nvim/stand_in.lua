-- Stands in for the language server and the debug adapter: answers requests when a test says so.
-- `use` puts it in their places.
local T = require('harness')
local M = {}

--- The requests without an answer: { the method, its arguments, the function that takes the answer
--- }.
M.questions = {}
local function question(what, arguments, take) table.insert(M.questions, { what = what, arguments = arguments, take = take }) end

--- Answers the I-th of the requests without an answer.
function M.answer(i, what, ...)
  local one = table.remove(M.questions, i)
  T.eq(what, one and one.what)
  one.take(...)
end

--- Drops the requests without an answer.
function M.drop()
  for i in ipairs(M.questions) do M.questions[i] = nil end
end

local Adapter = { root = '/' }
Adapter.__index = Adapter
function Adapter:request(command, arguments, callback)
  question(command, arguments, function(body, error) (callback or function() end)(error, body) end)
end
function Adapter:ask(command, arguments, done)
  question(command, arguments, function(body) done(body) end)
end
function Adapter:evaluate(_, code, done)
  question('evaluate', { code = code }, done)
end
M.adapter = setmetatable({}, Adapter)

local listeners = {}
--- Sends an event of the debug adapter, or of one at a frozen failure.
function M.tell(event, body, adapter)
  for _, listener in ipairs(listeners[event]) do listener(adapter or M.adapter, body) end
end

--- The adapters at frozen failures, by number.
M.frozen = {}

local client = { id = 1, name = 'consort', initialized = true, offset_encoding = 'utf-16', root_dir = '/' }
function client:request(_, params, handler)
  question(params.command:gsub('^consort%.', ''), params.arguments[1], function(result, error) handler(error, result) end)
  return true, 1
end
function client:cancel_request() end
function client:is_stopped() return self.stopped == true end

--- Ends the language server, which answers nothing any more; another one is there afterwards.
function M.end_server()
  client.stopped = true
  vim.api.nvim_exec_autocmds('LspDetach', { group = 'consort', data = { client_id = client.id } })
  local is_over
  vim.schedule(function() is_over = true end)
  T.wait('the end of the server', function() return is_over end)
  client.stopped = nil
  M.drop()
end

--- Puts the replacements in place, and reads the plugin.
function M.use()
  package.loaded['consort.adapter'] = {
    of = function() return M.adapter end,
    failure = function(_, number) M.frozen[number] = setmetatable({ failure = number }, Adapter) end,
    on = function(event, listener)
      listeners[event] = listeners[event] or {}
      table.insert(listeners[event], listener)
    end,
  }
  vim.lsp.get_clients = function() return { client } end
  vim.lsp.get_client_by_id = function() return client end
  T.plugin(true)
  require('consort.client').knows = function() return true end
end

function M.lines(buf) return vim.api.nvim_buf_get_lines(buf or 0, 0, -1, false) end
function M.text(buf) return table.concat(M.lines(buf), '\n') end
function M.floats() return vim.tbl_filter(function(win) return vim.api.nvim_win_get_config(win).relative ~= '' end, vim.api.nvim_list_wins()) end

local windows = 0
--- Makes a window with this text, the only one; returns its buffer and window.
function M.window(...)
  vim.cmd('silent! only!')
  windows = windows + 1
  vim.cmd({ cmd = 'edit', args = { ('/stand-in-%d'):format(windows) }, bang = true, mods = { silent = true } })
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { ... })
  vim.bo.modified = false
  M.drop()
  return vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()
end

--- Returns the texts that a namespace draws in a buffer, by their rows.
function M.drawn(namespace, buf)
  local found = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, vim.api.nvim_create_namespace(namespace), 0, -1, { details = true })) do
    if mark[4].virt_text then table.insert(found, ('%d:%s'):format(mark[2], mark[4].virt_text[1][1])) end
    if mark[4].sign_text then table.insert(found, ('%d:%s'):format(mark[2], vim.trim(mark[4].sign_text))) end
  end
  return found
end

--- A frame of a stopped thread.
function M.frame(id, file, line) return { id = id, name = 'frame ' .. id, line = line, column = 1, endLine = line, endColumn = 4, source = { path = file, name = 'f' } } end

--- Stops a thread of an evaluation of this editor.
function M.stop(thread, frames)
  require('consort.debugger').on_stopped(nil, { thread = thread }, { client_id = 1 })
  M.tell('stopped', { threadId = thread, reason = 'exception', text = 'stopped ' .. thread })
  M.answer(#M.questions, 'consort/restarts', { restarts = {} })
  M.answer(#M.questions, 'stackTrace', { stackFrames = frames })
end

function M.range(line, from, to) return { start = { line = line, character = from }, ['end'] = { line = line, character = to } } end
function M.ok(value, extra) return vim.tbl_extend('force', { status = 'ok', values = { value } }, extra or {}) end

return M
