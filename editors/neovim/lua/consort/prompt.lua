--- `window/showMessageRequest`: a message of the server with answers, such as the question whether
--- to trust the workspace. It is shown as the questions of agents are, so that no key answers it
--- that the person types for something else.
local approve = require('consort.approve')
local shown = require('consort.shown')

local M = {}

--- Returns the number of the request that is being handled, which `$/cancelRequest` names. Neovim
--- passes it to no handler: it is in the message, which a function further up holds; nil if none
--- does.
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

--- Server requests are handled in a coroutine of their own, which waits here for the person.
function M.on_request(_, params, context)
  local thread = assert(coroutine.running())
  local actions = params.actions ~= vim.NIL and params.actions or {}
  if #actions == 0 then
    require('consort.client').say(params.message)
    return vim.NIL
  end
  local lines = shown.lines(vim.trim(params.message))
  local what = lines[1]
  table.insert(lines, '')
  local first, choices, by_title = #lines + 1, {}, {}
  for i, action in ipairs(actions) do
    local key, title = i < 10 and tostring(i) or nil, shown.line(action.title)
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

--- `$/cancelRequest`: no answer is needed.
function M.on_cancel(_, params, context)
  approve.over('it was withdrawn', function(question) return question.id ~= nil and question.id == params.id and question.client == context.client_id end)
end

return M
