--- The LSP client of a buffer, and the execution of commands by its server.
local M = {}
M.GONE_ON = 'you have moved on since you asked; ask again for the answer'
local start = require('consort.start')
local NO_FILE = 'no file: `:w NAME.lisp`, or use `:Consort scratch`'

local last_root ---@type string?
--- Records the workspace of the file that the person is in.
---@param client vim.lsp.Client
function M.entered(client) last_root = client.root_dir end

--- Returns the workspace of the file that the person was in last; nil if there was none.
---@return string?
function M.last_workspace() return last_root end

--- Returns true if a buffer is of a Lisp file. Neovim attaches a client to such a buffer by itself.
---@param buf integer
local function is_file(buf)
  return vim.bo[buf].filetype == 'lisp' and vim.bo[buf].buftype == '' and vim.api.nvim_buf_get_name(buf) ~= ''
end

--- Returns the workspace of a buffer that is no Lisp file: `b:consort_root`, or the workspace of
--- the last file that the person was in. Returns nil if there was none.
---@param buf integer
---@return string?
local function root_of(buf) return vim.b[buf].consort_root or last_root end

--- Returns the client of a buffer: the attached one, or else, if the buffer is no Lisp file, the
--- client of the buffer's workspace, or the only client if no workspace is known. Returns nil if
--- there is none, because another client would run code in another image.
---@param buf? integer the current buffer by default
---@return vim.lsp.Client?
function M.of(buf)
  buf = buf or 0
  local own = vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1]
  if own or is_file(buf) then return own end
  local all, root = vim.lsp.get_clients({ name = 'consort' }), root_of(buf)
  if not root then return #all == 1 and all[1] or nil end
  return vim.iter(all):find(function(client) return client.root_dir == root end)
end

--- Assigns a buffer to the workspace of the current buffer.
---@param buf integer
function M.belongs(buf)
  local client = M.of()
  vim.b[buf].consort_root = client and client.root_dir
end

--- Returns true if `vim.notify` is Neovim's own, which shows messages in the command line. A plugin
--- that replaces it has more room.
local function on_command_line() return debug.getinfo(vim.notify, 'S').source:find('vim/_editor.lua', 1, true) ~= nil end

--- Shows a message. In the command line, the message is shortened to one line that fits, so that
--- Neovim does not wait for a key. `:messages` has the whole message.
---@param message string
---@param level? integer one of vim.log.levels
function M.say(message, level)
  message = 'Consort: ' .. require('consort.escaped').escape(message)
  local line = vim.trim((message:gsub('%s*\n%s*', ' ')))
  local is_elsewhere = not on_command_line()
  -- Neovim would wait for a key after a second message.
  if not is_elsewhere then vim.cmd.redraw() end
  if is_elsewhere or (line == message and vim.fn.strdisplaywidth(line) <= vim.v.echospace) then
    return vim.notify(message, level or vim.log.levels.INFO)
  end
  local room = math.max(1, vim.v.echospace)
  local more = room > 40 and ' :messages has all' or ''
  local short = require('consort.inline').fit(line, room - #more)
  if short == line then more = '' end
  local group = ({ [vim.log.levels.ERROR] = 'ErrorMsg', [vim.log.levels.WARN] = 'WarningMsg' })[level]
  -- `:messages` has only messages that were shown. Neovim does not wait for a key after a line that
  -- fits and is overwritten.
  for _, part in ipairs(vim.split(message, '\n', { plain = true })) do
    for _, piece in ipairs(require('consort.hints').wrapped(part, room)) do
      vim.api.nvim_echo({ { piece } }, true, {})
      vim.cmd.redraw()
    end
  end
  vim.api.nvim_echo({ { short, group }, { more, 'ConsortHint' } }, false, {})
end

--- Shows a message about a running operation. Returns a function that removes the message, unless
--- another one has been shown in the meantime.
---@param message string
---@return fun() over
function M.doing(message)
  M.say(message)
  local before = vim.fn.execute('messages')
  return function()
    if on_command_line() and vim.fn.execute('messages') == before then vim.api.nvim_echo({ { '' } }, false, {}) end
  end
end

---@param message string
function M.fail(message) M.say(message, vim.log.levels.ERROR) end

--- Shows a message about what is at the cursor, as `say` does. If it is too long for the command
--- line, all of it is also shown beside the cursor until the cursor moves.
---@param message string
---@param level? integer one of vim.log.levels
---@param is_here? fun(): boolean of `here`, from the request. If it returns false, nothing is shown
---  beside the cursor.
function M.explain(message, level, is_here)
  M.say(message, level)
  local text = require('consort.escaped').escape(message)
  local fits = vim.fn.strdisplaywidth('Consort: ' .. text) <= vim.v.echospace and not text:find('\n', 1, true)
  if is_here and not is_here() then return end
  if fits or not on_command_line() or vim.api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= '' then return end
  local lines = {}
  for _, line in ipairs(vim.split(text, '\n', { plain = true })) do vim.list_extend(lines, require('consort.hints').wrapped(line, math.max(20, vim.o.columns - 4))) end
  vim.lsp.util.open_floating_preview(lines, '', { focusable = false, border = vim.o.winborder ~= '' and vim.o.winborder or 'rounded' })
end

--- Shows why a request failed, unless the person has cancelled the request. When the server ends,
--- several requests fail with the same error, which is shown once.
---@param error lsp.ResponseError
function M.failed(error)
  if error.code == vim.lsp.protocol.ErrorCodes.RequestCancelled or error.is_shown then return end
  if error.is_shown == false then error.is_shown = true end
  M.fail(require('consort.systems').package_missing(error) or error.message)
end

--- Returns the program of the language server. Shows a message and returns nil if it is not
--- executable.
---@return string?
function M.program()
  local program = vim.tbl_get(vim.lsp.config, 'consort', 'cmd', 1) or 'consort'
  if vim.fn.executable(program) == 1 then return program end
  M.fail(('the program `%s` is not on PATH; `:checkhealth consort` says what to do'):format(program))
end

--- Returns the client of a buffer, and waits while it starts. Shows a message and returns nil if
--- there is none.
---@param buf? integer
---@return vim.lsp.Client?
function M.need(buf)
  buf = buf or vim.api.nvim_get_current_buf()
  local function ready()
    local client = vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1]
    return client and client.initialized
  end
  local is_enabled = vim.lsp.is_enabled('consort')
  local is_lisp = vim.bo[buf].filetype == 'lisp' and vim.bo[buf].buftype == '' and is_enabled
  if is_lisp and not M.program() then return end
  local failed ---@type string? the workspace whose server has not started
  -- A client attaches to a file some moments after it was opened.
  if is_lisp and is_file(buf) and not ready() then failed = start.of_file(buf, ready) end
  local client = M.of(buf)
  if not client and is_enabled and not is_file(buf) then
    if not M.program() then return end
    client, failed = start.here(root_of(buf))
  end
  if client then
    require('consort.scratch').attach(buf, client)
    return client
  end
  if not is_enabled then
    M.fail("the server is not enabled: put `vim.lsp.enable('consort')` into your init.lua")
  elseif failed then
    start.say_failed(failed)
  else
    M.say('it is still starting', vim.log.levels.WARN)
  end
end

--- Records the current window and buffer. Returns a function that returns true if they are still
--- current and the mode is Normal. Only then may an answer move the cursor or ask a question.
---@return fun(): boolean
function M.here()
  local win, buf = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf()
  return function()
    return vim.api.nvim_get_mode().mode == 'n' and vim.api.nvim_get_current_win() == win and vim.api.nvim_get_current_buf() == buf
  end
end

--- Records the state of a buffer's text. Returns a function that returns true if the text is
--- unchanged. Only then are positions in an answer valid.
---@param buf integer
---@return fun(): boolean
function M.text(buf)
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  return function() return vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_changedtick(buf) == tick end
end

--- Returns true if the server of a client offers a command.
---@param client vim.lsp.Client
---@param command string with `consort.`
---@return boolean
function M.knows(client, command)
  return vim.list_contains(vim.tbl_get(client, 'server_capabilities', 'executeCommandProvider', 'commands') or {}, command)
end

-- Requests

---@class consort.Unanswered
---@field client integer
---@field over fun(error?: lsp.ResponseError, result?: any) called once

---@type consort.Unanswered[] in the order of the requests
local unanswered = {}

--- Executes a command. If the server ends, `done` is called with an error, because Neovim itself
--- calls no handler in that case.
---@param client vim.lsp.Client
---@param name string without `consort.`
---@param argument table
---@param done fun(error?: lsp.ResponseError, result?: any)
---@param buf integer not 0: Neovim sends pending changes first only for a buffer's number
---@return boolean sent
---@return integer? id
function M.request(client, name, argument, done, buf)
  local one = { client = client.id }
  one.over = function(error, result)
    for i, other in ipairs(unanswered) do
      if other == one then
        table.remove(unanswered, i)
        return done(error, result)
      end
    end
  end
  local params = { command = 'consort.' .. name, arguments = { next(argument) == nil and vim.empty_dict() or argument } }
  table.insert(unanswered, one)
  local sent, id = client:request('workspace/executeCommand', params, one.over, buf)
  if not sent then unanswered = vim.tbl_filter(function(other) return other ~= one end, unanswered) end
  return sent, id
end

--- True while a completion function waits for an answer. Neovim then allows no new windows and no
--- changes of text.
M.is_text_locked = false

M.ENDED = 'the server has ended; `:edit` starts it again'
local at_end = {} ---@type fun(client: integer)[]

--- Registers a function that is called when a server ends, before its requests fail.
---@param run fun(client: integer)
function M.on_end(run) table.insert(at_end, run) end

--- Calls the functions registered by `on_end`, and fails all unanswered requests of a client whose
--- server has ended.
---@param client integer
function M.ended(client)
  if vim.v.exiting ~= vim.NIL then return end
  local error = { code = vim.lsp.protocol.ErrorCodes.InternalError, message = M.ENDED, is_shown = false }
  for _, run in ipairs(at_end) do run(client) end
  for _, one in ipairs(vim.list_slice(unanswered)) do
    if one.client == client then one.over(error) end
  end
end

--- Returns true if a request failed because its server ended without an answer.
---@param error lsp.ResponseError
---@return boolean
function M.has_ended(error) return error.is_shown ~= nil end

---@class consort.Options
---@field buf? integer
---@field on_error? fun(error: lsp.ResponseError, client: vim.lsp.Client) instead of showing it
---@field here? boolean drops the answer, with a message, if the window, buffer or mode has changed;
---  of several requests with `here`, only the answer of the last one that succeeds is used
---@field latest? string of several requests with this word, only the answer of the last one that
---  succeeds is used

--- Executes `consort.NAME` with one argument.
---@param name string
---@param argument table
---@param on_result? fun(result: any, client: vim.lsp.Client, is_here: fun(): boolean)
---@param options? consort.Options
---@return fun()? cancel cancels the request; nil if it was not sent
function M.execute(name, argument, on_result, options)
  options = options or {}
  local client = M.need(options.buf)
  if not client then return end
  if argument.uri == vim.uri_from_fname('') then return M.fail(NO_FILE) end
  if not M.knows(client, 'consort.' .. name) then
    M.fail(('this version of the program `consort` has no consort.%s; install the newest one'):format(name))
    return
  end
  local is_here = M.here()
  local kind = options.latest or options.here and 'here'
  local over = kind and require('consort.latest').begun(kind) or function(take)
    if take then take() end
  end
  local sent, id = M.request(client, name, argument, function(error, result)
    if error then
      (options.on_error or M.failed)(error, client)
      return over()
    end
    over(function()
      if options.here and not is_here() then
        M.say(M.GONE_ON)
      elseif on_result then
        on_result(result, client, is_here)
      end
    end)
  end, options.buf or vim.api.nvim_get_current_buf())
  if not sent then
    M.fail(M.ENDED)
    over()
    return
  end
  return function() client:cancel_request(id) end
end

--- Returns the cursor's position in the current buffer, in the form in which commands take it.
---@param client vim.lsp.Client
---@return { uri: string, position: lsp.Position }
function M.place(client)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  return { uri = params.textDocument.uri, position = params.position }
end

--- Returns the position of the name that a top-level definition defines if the cursor is before
--- that name in its line, such as at `defun`; otherwise the cursor's position, as `place` does.
---@param client vim.lsp.Client
---@return { uri: string, position: lsp.Position }
function M.place_of_name(client)
  local place, line = M.place(client), vim.api.nvim_get_current_line()
  local operator = '^%([^%s():]-:?:?[dD][eE][fF][^%s():]*%s+'
  local name = line:match(operator .. '%([sS][eE][tT][fF]%s+()') or line:match(operator .. '%(?()')
  if name and vim.api.nvim_win_get_cursor(0)[2] < name - 1 then place.position.character = vim.str_utfindex(line, client.offset_encoding, name - 1, false) end
  return place
end

--- Returns the last visual selection as an LSP range.
---@param client vim.lsp.Client
---@return lsp.Range
function M.selection(client)
  return vim.lsp.util.make_given_range_params(nil, nil, 0, client.offset_encoding).range
end

return M
