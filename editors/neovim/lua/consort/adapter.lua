--- A client of `consort dap`: the Debug Adapter Protocol over a program's standard streams. There
--- is one for each workspace.
local client_of = require('consort.client')

local M = {}

---@class consort.Adapter
---@field root string
---@field process vim.SystemObj
---@field seq integer
---@field waiting table<integer, fun(error?: string, body?: table)>
---@field held? { [1]: string, [2]: table, [3]: function }[] requests until it is configured
---@field buffered string
---@field is_over? boolean the program has ended
---@field is_end_told? boolean the person knows that it has ended
---@field failure? integer the frozen failure that it is attached to instead of the image
local Adapter = {}
Adapter.__index = Adapter

---@type table<string, consort.Adapter>
local adapters = {}
---@type table<consort.Adapter, true> those attached to frozen failures
local frozen = {}
---@type table<string, fun(adapter: consort.Adapter, body: table)[]>
local listeners = {}

--- Registers a function for all adapters' events of a name. The event 'exited' means that the
--- program has ended.
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
  -- An empty table would be an array.
  if not arguments or vim.tbl_isempty(arguments) then arguments = vim.empty_dict() end
  local text = vim.json.encode({ seq = self.seq, type = 'request', command = command, arguments = arguments })
  self.process:write(('Content-Length: %d\r\n\r\n%s'):format(#text, text))
end

--- Shows why a request failed. The end of the program, by which several requests fail, is shown
--- once.
function Adapter:fail(error)
  if error == ENDED and self.is_end_told then return end
  self.is_end_told = error == ENDED
  client_of.fail(error)
end

--- Sends a request once the adapter is configured. Without `callback` a failure is shown.
---@param command string
---@param arguments? table
---@param callback? fun(error?: string, body?: table)
function Adapter:request(command, arguments, callback)
  callback = callback or function(error)
    if error then self:fail(error) end
  end
  if self.held then return table.insert(self.held, { command, arguments, callback }) end
  self:send(command, arguments, callback)
end

--- Sends a request; `done` gets the answer, and a failure is shown.
function Adapter:ask(command, arguments, done)
  self:request(command, arguments, function(error, body)
    if error then return self:fail(error) end
    done(body)
  end)
end

function Adapter:receive(message)
  if message.type == 'event' then
    if message.event == 'initialized' then
      self:send('attach', { failure = self.failure }, function(error)
        if not error then return end
        self:fail(error)
        if not self.is_over then self:leave() end
      end)
      self:send('configurationDone', {}, function()
        local held = self.held or {}
        self.held = nil
        for _, one in ipairs(held) do self:send(unpack(one)) end
      end)
    end
    -- Events of breakpoints are about the image, not about the frozen failure.
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

--- Disconnects.
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
  local adapter = setmetatable({ root = root, seq = 0, waiting = {}, held = {}, buffered = '', failure = failure }, Adapter)
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

--- Returns the adapter of a language client's workspace, and starts it if it does not run. The
--- client is the current buffer's by default.
---@param client? vim.lsp.Client
---@return consort.Adapter?
function M.of(client)
  client = client or client_of.need()
  if not client then return end
  local root = client.root_dir or vim.fn.getcwd()
  return adapters[root] or start(root)
end

--- Returns the adapter at a frozen failure: a new one, unless one is attached to the failure
--- already.
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
