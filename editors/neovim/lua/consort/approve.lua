--- What an agent may do only when the person lets it: the question, one at a time, with the code in a float.
local float = require('consort.float')

local M = {}

---@class consort.Question
---@field params table of consort/approve
---@field answer fun(decision: string) once
---@field over? boolean an answer would come too late

---@type consort.Question[]
local queue = {}
---@type { question: consort.Question, win: integer }?
local current

local choices = {
  { decision = 'allow', label = 'Allow' },
  { decision = 'allow-session', label = 'Allow for this session' },
  { decision = 'deny', label = 'Deny' },
}

local next_question

local function finish(decision)
  local asked = current
  current = nil
  if asked then
    if vim.api.nvim_win_is_valid(asked.win) then vim.api.nvim_win_close(asked.win, true) end
    asked.question.answer(decision or 'deny')
  end
  vim.schedule(next_question)
end

local function text_of(params)
  local lines = { ('%s wants to use %s: %s'):format(params.client or 'An agent', params.tool, params.what) }
  if params.file and params.file ~= vim.NIL then table.insert(lines, 'File: ' .. params.file) end
  if params.code and params.code ~= vim.NIL then
    table.insert(lines, '')
    vim.list_extend(lines, vim.split(params.code, '\n', { plain = true }))
  end
  return lines
end

next_question = function()
  if current then return end
  local question = table.remove(queue, 1)
  while question and question.over do question = table.remove(queue, 1) end
  if not question then return end
  local more = #queue > 0 and (', %d more waiting'):format(#queue) or ''
  local _, win = float.open(text_of(question.params), {
    title = ('An agent asks (%d s to answer%s)'):format(question.params.deadlineSeconds or 120, more),
    filetype = 'lisp',
    focus = false,
  })
  current = { question = question, win = win }
  vim.cmd.redraw()
  vim.ui.select(choices, {
    prompt = question.params.what .. '?',
    kind = 'consort_approval',
    format_item = function(choice) return choice.label end,
  }, function(choice)
    if current and current.question == question then finish(choice and choice.decision) end
  end)
end

--- `consort/approve`. Server requests are handled in a coroutine of their own, which waits here for the person.
function M.on_request(_, params)
  local thread = assert(coroutine.running())
  table.insert(queue, {
    params = params,
    answer = function(decision)
      vim.schedule(function() coroutine.resume(thread, { decision = decision }) end)
    end,
  })
  vim.schedule(next_question)
  return coroutine.yield()
end

--- `consort/approvalOver`: somebody else answered, the time is up, or the agent has gone.
function M.on_over(_, params)
  for _, question in ipairs(queue) do
    if question.params.id == params.id and not question.over then
      question.over = true
      question.answer('deny')
    end
  end
  if current and current.question.params.id == params.id then
    current.question.over = true
    finish()
  end
end

return M
