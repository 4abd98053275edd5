--- What an agent may do only when the person lets it: the question, one at a time, with the code in a float.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

---@class consort.Question
---@field params table of consort/approve
---@field until_ integer when it is too late, seconds of the epoch
---@field answer fun(decision: string) once
---@field over? boolean an answer would come too late

---@type consort.Question[]
local queue = {}
---@type { question: consort.Question, win?: integer }?
local current

local choices = {
  { decision = 'allow', label = 'Allow', done = 'allowed' },
  { decision = 'allow-session', label = 'Allow for this session', done = 'allowed for this session' },
  { decision = 'deny', label = 'Deny', done = 'denied' },
  { label = 'Read the code first' },
}
local FREE = #choices + 3 -- lines at the bottom of the screen for Neovim's own vim.ui.select, which draws over what is there

local next_question, ask

local function present(text) return text and text ~= vim.NIL and text ~= '' end

---@param choice? { decision: string, done: string }
local function finish(choice)
  local asked = current
  current = nil
  if asked then
    if asked.win and vim.api.nvim_win_is_valid(asked.win) then vim.api.nvim_win_close(asked.win, true) end
    choice = choice or choices[3]
    asked.question.answer(choice.decision)
    vim.schedule(function()
      vim.cmd.redraw() -- what asked is gone from the screen, and no key is needed to go on
      if not asked.question.over then client_of.say(('%s: %s'):format(choice.done, asked.question.params.what)) end
    end)
  end
  vim.schedule(next_question)
end

--- What is shown, and how many of its lines are words.
local function text_of(params)
  local lines = { params.what:sub(1, 1):upper() .. params.what:sub(2) }
  if present(params.file) then table.insert(lines, 'in ' .. vim.fn.fnamemodify(params.file, ':~:.')) end
  local words = #lines
  if present(params.code) then
    table.insert(lines, '')
    vim.list_extend(lines, vim.split(params.code, '\n', { plain = true }))
  end
  return lines, words
end

local function open()
  local params = current.question.params
  local lines, words = text_of(params)
  local back = vim.api.nvim_get_current_win()
  local function again()
    if vim.api.nvim_win_is_valid(back) then vim.api.nvim_set_current_win(back) end
    ask()
  end
  local more = #queue > 0 and ('; %d more to answer'):format(#queue) or ''
  _, current.win = float.open(lines, {
    title = ('%s asks, until %s%s'):format(present(params.client) and params.client or 'An agent', os.date('%H:%M:%S', current.question.until_), more),
    hint = 'tool ' .. params.tool,
    filetype = 'lisp',
    plain = { { 0, words - 1 } },
    top = FREE,
    focus = false,
    keys = { q = again, ['<Esc>'] = again, ['<CR>'] = again },
  })
  if vim.api.nvim_win_text_height(current.win, {}).all > vim.api.nvim_win_get_height(current.win) then
    vim.api.nvim_win_set_config(current.win, { footer = { { ' there is more: choose "Read the code first" ', 'ConsortError' } } })
  end
  vim.cmd.redraw()
end

--- Neovim's own vim.ui.select lets nothing else happen until a key is pressed: the key comes when the time is over.
local function end_in_time(question)
  if not debug.getinfo(vim.ui.select, 'S').source:find('vim/ui.lua', 1, true) then return function() end end
  local timer = assert(vim.uv.new_timer())
  timer:start(math.max(0, question.until_ - os.time()) * 1000, 0, function()
    question.over = true
    vim.api.nvim_input('<Esc>')
  end)
  return function()
    timer:stop()
    timer:close()
  end
end

ask = function()
  if not current then return end
  local question = current.question
  if not (current.win and vim.api.nvim_win_is_valid(current.win)) then open() end
  local stop = end_in_time(question)
  vim.ui.select(choices, {
    prompt = question.params.what .. '?',
    kind = 'consort_approval',
    format_item = function(choice) return choice.label end,
  }, function(choice)
    stop()
    if not current or current.question ~= question then return end
    if choice and not choice.decision then
      vim.api.nvim_set_current_win(current.win)
      vim.api.nvim_win_set_config(current.win, { footer = { { ' <CR> goes back to the question ', 'ConsortHint' } } })
    else
      finish(choice)
    end
  end)
end

next_question = function()
  if current then return end
  local question = table.remove(queue, 1)
  while question and question.over do question = table.remove(queue, 1) end
  if not question then return end
  current = { question = question }
  open()
  -- A key that was meant for the text must not answer.
  if vim.api.nvim_get_mode().mode == 'n' then return ask() end
  client_of.say('an agent asks; go to Normal mode to answer')
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n',
    once = true,
    callback = vim.schedule_wrap(function()
      if current and current.question == question then ask() end
    end),
  })
end

--- `consort/approve`. Server requests are handled in a coroutine of their own, which waits here for the person.
function M.on_request(_, params)
  local thread = assert(coroutine.running())
  table.insert(queue, {
    params = params,
    until_ = os.time() + (params.deadlineSeconds or 120),
    answer = function(decision) coroutine.resume(thread, { decision = decision }) end,
  })
  vim.schedule(next_question)
  return coroutine.yield()
end

--- `consort/approvalOver`: somebody else answered, the time is up, or the agent has gone.
function M.on_over(_, params)
  local function over(question)
    question.over = true
    client_of.say(('no answer is needed any more (%s): %s'):format(params.reason or 'it is over', question.params.what))
  end
  for _, question in ipairs(queue) do
    if question.params.id == params.id and not question.over then
      over(question)
      question.answer('deny')
    end
  end
  if current and current.question.params.id == params.id then
    over(current.question)
    finish()
  end
end

return M
