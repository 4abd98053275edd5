--- The handler of `window/showMessageRequest`: a message of the server with possible answers, such
--- as the question whether to trust the workspace. The question is shown like those of agents, so
--- that a key that the person types for something else does not answer it.
local approve = require('consort.approve')
local escaped = require('consort.escaped')

local M = {}

--- Returns the id of the request that is being handled, which `$/cancelRequest` contains. Neovim
--- does not pass the id to handlers. The function finds the message among the upvalues of its
--- callers. Returns nil if none of them has it.
---@param params table
---@return integer?
local function number_of(params)
  local level = 2
  while true do
    local info = debug.getinfo(level, 'f')
    if not info then return end
    for i = 1, 255 do
      local name, value = debug.getupvalue(info.func, i)
      if not name then break end
      if type(value) == 'table' and rawget(value, 'params') == params then return rawget(value, 'id') end
    end
    level = level + 1
  end
end

--- Asks the question, and returns the chosen action or `vim.NIL`. Neovim runs this handler in a
--- coroutine of its own, which is suspended here until the person answers.
function M.on_request(_, params, context)
  local thread = assert(coroutine.running())
  local actions = params.actions ~= vim.NIL and params.actions or {}
  if #actions == 0 then
    require('consort.client').say(params.message)
    return vim.NIL
  end
  local lines = escaped.lines(vim.trim(params.message))
  local what = lines[1]
  table.insert(lines, '')
  local first, choices, by_title = #lines + 1, {}, {}
  for i, action in ipairs(actions) do
    local key, title = i < 10 and tostring(i) or nil, escaped.line(action.title)
    table.insert(lines, ('%s  %s'):format(key or ' ', title))
    table.insert(choices, { key = key, decision = title, done = title })
    by_title[title] = action
  end
  approve.ask({
    what = what,
    client = context.client_id,
    id = number_of(params),
    choices = choices,
    title = function() return 'Consort asks' end,
    lines = lines,
    first_choice = first,
    keys = function() return ('%s or <CR> in its line answers'):format(#actions == 1 and '1' or '1-' .. math.min(9, #actions)) end,
    answer = function(title) coroutine.resume(thread, by_title[title] or vim.NIL) end,
  })
  return coroutine.yield()
end

--- Handles `$/cancelRequest`: removes the question that no longer needs an answer.
function M.on_cancel(_, params, context)
  approve.over('it was withdrawn', function(question) return question.id ~= nil and question.id == params.id and question.client == context.client_id end)
end

return M
