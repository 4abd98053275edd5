--- A client of `consort dap`, which speaks the Debug Adapter Protocol over standard streams. One
--- adapter process runs for the image of each workspace, and one for each frozen failure that is
--- open.
local client_of = require('consort.client')

local M = {}

---@class consort.Adapter
---@field root string the directory of the workspace
---@field process vim.SystemObj
---@field seq integer the number of the last request
---@field waiting table<integer, fun(error?: string, body?: table)> callbacks by request number
---@field held? { [1]: string, [2]: table, [3]: function }[] until it is configured, then nil
---@field buffered string received octets that are not a whole message yet
---@field is_over? boolean the program has ended
---@field is_end_told? boolean the end of the program was the last error shown
---@field failure? integer the number of the frozen failure to attach to; nil for the image
---@field is_here fun(): boolean of client.here(), from the start of the adapter
local Adapter = {}
Adapter.__index = Adapter

---@type table<string, consort.Adapter> those attached to images, by workspace
local adapters = {}
---@type table<consort.Adapter, true> those attached to frozen failures
local frozen = {}
---@type table<string, fun(adapter: consort.Adapter, body: table)[]>
local listeners = {}

--- Registers a function that is called for each event with a name, from any adapter. The event
--- 'exited' means that the adapter's process has ended. Adapters that are attached to frozen
--- failures report only 'stopped' and 'exited'.
---@param event string
---@param listener fun(adapter: consort.Adapter, body: table)
function M.on(event, listener)
  listeners[event] = listeners[event] or {}
  table.insert(listeners[event], listener)
end

local function tell(adapter, event, body)
  for _, listener in ipairs(listeners[event] or {}) do listener(adapter, body) end
end

local ENDED = 'the debugger has ended'

function Adapter:send(command, arguments, callback)
  if self.is_over then return callback(ENDED) end
  self.seq = self.seq + 1
  self.waiting[self.seq] = callback
  -- An empty Lua table would be encoded as an array, not as an object.
  if not arguments or vim.tbl_isempty(arguments) then arguments = vim.empty_dict() end
  local text = vim.json.encode({ seq = self.seq, type = 'request', command = command, arguments = arguments })
  self.process:write(('Content-Length: %d\r\n\r\n%s'):format(#text, text))
end

--- Shows the error of a failed request. The end of the program is shown only once, although it
--- makes several requests fail.
---@param error string
---@param is_here fun(): boolean of client.here(), from the request
function Adapter:fail(error, is_here)
  if error == ENDED and self.is_end_told then return end
  self.is_end_told = error == ENDED
  client_of.explain(error, vim.log.levels.ERROR, is_here)
end

--- Sends a request after the adapter has been configured. Without `callback`, an error is shown and
--- the answer is ignored.
---@param command string
---@param arguments? table
---@param callback? fun(error?: string, body?: table)
function Adapter:request(command, arguments, callback)
  local is_here = client_of.here()
  callback = callback or function(error)
    if error then self:fail(error, is_here) end
  end
  if self.held then return table.insert(self.held, { command, arguments, callback }) end
  self:send(command, arguments, callback)
end

--- Sends a request as Adapter:request() does. Calls `done` with the body of the answer, or shows
--- the error.
function Adapter:ask(command, arguments, done)
  local is_here = client_of.here()
  self:request(command, arguments, function(error, body)
    if error then return self:fail(error, is_here) end
    done(body)
  end)
end

function Adapter:receive(message)
  if message.type == 'event' then
    if message.event == 'initialized' then
      self:send('attach', { failure = self.failure }, function(error)
        if not error then return end
        self:fail(error, self.is_here)
        if not self.is_over then self:leave() end
      end)
      self:send('configurationDone', {}, function()
        local held = self.held or {}
        self.held = nil
        for _, one in ipairs(held) do self:send(unpack(one)) end
      end)
    end
    -- Events about breakpoints concern the image, not the frozen failure.
    if self.failure and message.event ~= 'stopped' then return end
    return tell(self, message.event, message.body or {})
  end
  local callback = self.waiting[message.request_seq]
  self.waiting[message.request_seq] = nil
  if not callback then return end
  if message.success then callback(nil, message.body or {}) else callback(message.message or 'it failed') end
end

function Adapter:read(data)
  self.buffered = self.buffered .. data
  while true do
    local length, body = self.buffered:match('^Content%-Length: (%d+)\r\n\r\n()')
    if not length or #self.buffered < body + length - 1 then return end
    local text = self.buffered:sub(body, body + length - 1)
    self.buffered = self.buffered:sub(body + length)
    self:receive(vim.json.decode(text, { luanil = { object = true } }))
  end
end

--- Closes the standard input of the adapter's process, which then disconnects and ends.
function Adapter:leave() self.process:write(nil) end

function Adapter:ended()
  frozen[self] = nil
  if adapters[self.root] == self then adapters[self.root] = nil end
  local waiting = self.waiting
  local held = self.held or {}
  self.waiting, self.held, self.is_over = {}, nil, true
  for _, callback in pairs(waiting) do callback(ENDED) end
  for _, one in ipairs(held) do one[3](ENDED) end
  tell(self, 'exited', {})
end

---@param root string
---@param failure? integer
local function start(root, failure)
  local program = client_of.program()
  if not program then return end
  local adapter = setmetatable({ root = root, seq = 0, waiting = {}, held = {}, buffered = '', failure = failure, is_here = client_of.here() }, Adapter)
  adapter.process = vim.system({ program, 'dap', '--workspace', root }, {
    cwd = root,
    stdin = true,
    stdout = vim.schedule_wrap(function(_, data)
      if data then adapter:read(data) end
    end),
  }, vim.schedule_wrap(function() adapter:ended() end))
  if failure then frozen[adapter] = true else adapters[root] = adapter end
  adapter:send('initialize', { adapterID = 'consort', clientID = 'neovim', linesStartAt1 = true, columnsStartAt1 = true }, function() end)
  return adapter
end

--- Returns the adapter for the image of a language client's workspace, and starts the adapter if it
--- is not running. The client is by default that of the current buffer. Returns nil if there is no
--- client or no program `consort`.
---@param client? vim.lsp.Client
---@return consort.Adapter?
function M.of(client)
  client = client or client_of.need()
  if not client then return end
  local root = client.root_dir or vim.fn.getcwd()
  return adapters[root] or start(root)
end

--- Returns the adapter that is attached to a frozen failure, and starts it if there is none.
--- Returns nil if there is no program `consort`.
---@param client vim.lsp.Client
---@param number integer
---@return consort.Adapter?
function M.failure(client, number)
  local root = client.root_dir or vim.fn.getcwd()
  for adapter in pairs(frozen) do
    if adapter.root == root and adapter.failure == number then return adapter end
  end
  return start(root, number)
end

--- Returns the adapters that are attached to images.
---@return consort.Adapter[]
function M.running() return vim.tbl_values(adapters) end

vim.api.nvim_create_autocmd('VimLeavePre', {
  group = vim.api.nvim_create_augroup('consort.adapter', {}),
  desc = 'End of the debuggers',
  callback = function()
    for _, adapter in pairs(adapters) do adapter:leave() end
    for adapter in pairs(frozen) do adapter:leave() end
  end,
})

return M
