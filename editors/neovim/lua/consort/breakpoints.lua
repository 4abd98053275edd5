--- The breakpoints of this editor. Each is a sign that moves with its text, and a breakpoint in the
--- image, which is set through `consort dap`.
local adapters = require('consort.adapter')
local client_of = require('consort.client')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.breakpoints')

---@class consort.Breakpoint
---@field mark integer the extmark with the sign
---@field condition? string Lisp code; the breakpoint stops only if its value is true
---@field once? boolean true if the breakpoint is removed at the next stop
---@field id? integer the `id` in the debug adapter's answer
---@field verified? boolean the `verified` in the answer; nil before the first answer
---@field message? string the `message` in the answer

---@type table<integer, consort.Breakpoint[]> by buffer
local breakpoints = {}
---@type table<integer, fun(error?: string)[]> by buffer: the functions to call on the answer to its
---  last request
local asked = {}
---@type table<integer, fun(): boolean> by buffer: whether its text is that of its last request
local is_text_sent = {}

--- Returns the line of a breakpoint's sign, 1-based; nil if the sign is gone.
local function line_of(buf, one)
  local mark = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, one.mark, {})
  return mark[1] and mark[1] + 1
end

--- Sets or moves the sign of a breakpoint. The line is 1-based.
local function sign(buf, one, line)
  one.mark = vim.api.nvim_buf_set_extmark(buf, namespace, line - 1, 0, {
    id = one.mark,
    sign_text = one.once and '◇' or one.condition and '◆' or one.verified and '●' or '○',
    sign_hl_group = one.verified and 'DiagnosticSignError' or 'DiagnosticSignWarn',
  })
end

--- Applies the debug adapter's answer about a breakpoint. Moves the sign to the line of the answer
--- if the breakpoint is verified and the text is unchanged.
---@param is_same_text? boolean true if the text is unchanged, so that the answer's line holds
local function apply_answer(buf, one, answer, is_same_text)
  one.id, one.verified, one.message = answer.id, answer.verified, answer.message
  local line = answer.verified and is_same_text and answer.line or line_of(buf, one)
  if line and line <= vim.api.nvim_buf_line_count(buf) then sign(buf, one, line) end
end

--- Sends all breakpoints of a buffer, at the lines of their signs. Each request replaces the
--- earlier ones, so their answers are ignored, and the answer to the last request completes them,
--- too.
---@param buf integer
---@param done? fun(error?: string) called after the answer to this request or a later one, with the
---  error if that failed
local function send(buf, done)
  local client = client_of.of(buf)
  local adapter = client and adapters.of(client)
  if not adapter then return end
  local wanted, sent = breakpoints[buf] or {}, {}
  for _, one in ipairs(wanted) do table.insert(sent, { line = line_of(buf, one), condition = one.condition }) end
  local source, is_same_text = { path = vim.api.nvim_buf_get_name(buf) }, client_of.text(buf)
  local mine = vim.list_extend({ done }, asked[buf] or {})
  asked[buf], is_text_sent[buf] = mine, is_same_text
  adapter:request('setBreakpoints', { source = source, breakpoints = sent }, function(error, answer)
    if not vim.api.nvim_buf_is_valid(buf) or asked[buf] ~= mine then return end
    asked[buf] = nil
    if error then
      client_of.fail(error)
    else
      for i, one in ipairs(wanted) do apply_answer(buf, one, answer.breakpoints[i] or {}, is_same_text()) end
    end
    for _, each in ipairs(mine) do each(error) end
  end)
end

--- Sets a breakpoint at the cursor's line, or removes the one there. With a condition, replaces the
--- one there.
---@param condition? string Lisp code; the breakpoint stops only if its value is true
function M.toggle(condition)
  local buf, is_here = vim.api.nvim_get_current_buf(), client_of.here()
  if not client_of.need(buf) then return end
  local line = vim.api.nvim_win_get_cursor(0)[1]
  breakpoints[buf] = breakpoints[buf] or {}
  local wanted = breakpoints[buf]
  for i, one in ipairs(wanted) do
    if line_of(buf, one) == line then
      vim.api.nvim_buf_del_extmark(buf, namespace, one.mark)
      table.remove(wanted, i)
      if not condition then return send(buf) end
      break
    end
  end
  local one = { condition = condition }
  sign(buf, one, line)
  table.insert(wanted, one)
  send(buf, function(error)
    if not error and one.verified == false and one.message then client_of.explain(one.message, vim.log.levels.WARN, is_here) end
  end)
end

--- Returns a function that moves the breakpoints of a buffer from their present lines and sets them
--- anew; nil if there are none.
---@param buf integer
---@return fun(line_now: fun(line: integer): integer)?
function M.keep(buf)
  local kept = vim.tbl_map(function(one) return { one, line_of(buf, one) } end, breakpoints[buf] or {})
  if #kept == 0 then return end
  return function(line_now)
    for _, each in ipairs(kept) do
      local one, line = unpack(each)
      if line and vim.list_contains(breakpoints[buf] or {}, one) then sign(buf, one, line_now(line)) end
    end
    send(buf)
  end
end

--- Removes the breakpoints of `M.run_to_cursor` from a buffer, but not from the image.
---@param buf integer
---@return boolean is_changed
local function drop_temporary(buf)
  local wanted = breakpoints[buf] or {}
  local others = vim.iter(wanted):filter(function(one) return not one.once end):totable()
  if #others == #wanted or not vim.api.nvim_buf_is_valid(buf) then return false end
  for _, one in ipairs(wanted) do
    if one.once then vim.api.nvim_buf_del_extmark(buf, namespace, one.mark) end
  end
  breakpoints[buf] = others
  return true
end

--- Continues the newest stop up to the cursor's line, with a breakpoint that is removed at the next
--- stop. Does not continue if the breakpoint cannot be set.
function M.run_to_cursor()
  local buf, is_here = vim.api.nvim_get_current_buf(), client_of.here()
  if not client_of.need(buf) then return end
  local line, is_same_text = vim.api.nvim_win_get_cursor(0)[1], client_of.text(buf)
  require('consort.debugger').newest(function(continue)
    if not is_same_text() then return client_of.fail('the text has changed meanwhile') end
    breakpoints[buf] = breakpoints[buf] or {}
    local wanted = breakpoints[buf]
    for _, one in ipairs(wanted) do
      if line_of(buf, one) == line and not one.condition then return continue() end
    end
    local one = { once = true }
    sign(buf, one, line)
    table.insert(wanted, one)
    send(buf, function(error)
      if error then return drop_temporary(buf) end -- the request has set nothing
      if one.verified then return continue() end
      M.remove_temporary()
      client_of.explain(one.message or 'nothing stops in this line', vim.log.levels.WARN, is_here)
    end)
  end)
end

--- Removes the breakpoints of `M.run_to_cursor`.
function M.remove_temporary()
  for buf in pairs(breakpoints) do
    if drop_temporary(buf) then send(buf) end
  end
end

--- Removes all breakpoints, and shows how many there were.
function M.clear()
  local count = 0
  for buf, wanted in pairs(breakpoints) do
    if vim.api.nvim_buf_is_valid(buf) and #wanted > 0 then
      vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
      count = count + #wanted
      breakpoints[buf] = {}
      send(buf)
    end
  end
  client_of.say(count == 0 and 'no breakpoint is set' or ('%d breakpoint%s removed'):format(count, count == 1 and '' or 's'))
end

-- The adapter sends this event after a definition was evaluated or loaded again, or after the image
-- was restarted.
adapters.on('breakpoint', function(_, body)
  local answer = body.breakpoint or {}
  for buf, wanted in pairs(breakpoints) do
    local own = vim.api.nvim_buf_is_valid(buf) and answer.source and answer.source.path == vim.api.nvim_buf_get_name(buf)
    for _, one in ipairs(own and wanted or {}) do
      -- After an edit, the sign has moved with its text, but the line in the event refers to the
      -- text before the edit.
      if one.id == answer.id then apply_answer(buf, one, answer, is_text_sent[buf] and is_text_sent[buf]()) end
    end
  end
end)

adapters.on('stopped', M.remove_temporary)

local outputs = setmetatable({}, { __mode = 'k' }) ---@type table<consort.Adapter, consort.BoundedOutputs>
local function rest(count) return ('... and %d more such messages'):format(count) end
adapters.on('output', function(adapter, body)
  if body.category ~= 'console' or not body.output then return end
  outputs[adapter] = outputs[adapter] or require('consort.bounded').outputs(client_of.say, rest)
  outputs[adapter].tell(body)
end)
adapters.on('stopped', function(adapter)
  if outputs[adapter] then outputs[adapter].over() end
end)

local group = vim.api.nvim_create_augroup('consort.breakpoints', {})
vim.api.nvim_create_autocmd('BufWritePost', {
  group = group,
  desc = 'Breakpoints at the lines where their signs are now',
  callback = function(event)
    if #(breakpoints[event.buf] or {}) > 0 then send(event.buf) end
  end,
})
vim.api.nvim_create_autocmd('BufWipeout', {
  group = group,
  callback = function(event) breakpoints[event.buf], asked[event.buf], is_text_sent[event.buf] = nil, nil, nil end,
})

return M
