--- Questions to the person, shown one at a time in a float that opens without the focus. A question
--- is about an agent's call, with its code, or comes from consort.prompt.
---
--- A question may come while the person types. Therefore the float reads no keys until the person
--- moves the cursor into it with a key that has no other use (`<LocalLeader>a`).
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

---@class consort.Choice
---@field key? string the key that chooses it in the float; nil for none
---@field decision string the answer that is sent
---@field done string the message after the choice

---@class consort.Question
---@field what string one line that names the question in messages
---@field client integer
---@field choices consort.Choice[]
---@field title fun(): string
---@field lines string[] the text in the float
---@field keys fun(): string the text about its keys, shown while the float has the cursor
---@field answer fun(decision?: string) to be called once; nil: the person gave no answer
---@field params? table the parameters of consort/approve; nil for consort.prompt's questions
---@field words? integer the number of lines before the empty line and the code, with `params`
---@field first_choice? integer the line of the first choice, if each choice has a line
---@field id? integer the number of consort.prompt's request; nil with `params`
---@field over? boolean true if the question was withdrawn, so that an answer would be too late
---@field replaced? consort.Replaced the definition in a file that the code would replace

---@class consort.Asked
---@field question consort.Question
---@field win? integer
---@field back? integer the window from which the person moved into the float
---@field side 'top'|'bottom'

---@type consort.Question[]
local queue = {}
---@type consort.Asked?
local current

local KEY = '<LocalLeader>a'
local approvals = {
  { key = 'a', decision = 'allow', done = 'allowed' },
  { key = 's', decision = 'allow-session', done = 'allowed for this session' },
  { key = 'd', decision = 'deny', done = 'denied' },
}
local MARGIN = 2 -- lines above or below the cursor's line that the float does not cover

local group = vim.api.nvim_create_augroup('consort.approve', {})
local next_question, open

-- Position of the float

--- Returns the number of screen lines above the status line and the command line.
local function screen_lines() return vim.o.lines - vim.o.cmdheight - 1 end

--- Returns the side of the screen for the float, away from the cursor. The present side is kept as
--- long as the float covers nothing near the cursor, because a float that moves is hard to read.
---@param side 'top'|'bottom' the present side
---@param height integer the float's height with its borders
---@param row integer the cursor's line on the screen, from 0
---@param lines integer the number of lines of the screen
---@return 'top'|'bottom'
function M.side(side, height, row, lines)
  if side == 'top' and row < height + MARGIN then return 'bottom' end
  if side == 'bottom' and row >= lines - height - MARGIN then return 'top' end
  return side
end

--- Returns the maximum height of the float, without borders, while the cursor is outside: with the
--- borders and the margin, half of the screen.
local function room() return math.max(1, math.floor(screen_lines() / 2) - 2 - MARGIN) end

local function cursor_row() return vim.fn.win_screenpos(0)[1] + vim.fn.winline() - 2 end

local function focused() return current and current.win == vim.api.nvim_get_current_win() end

local function hint()
  if focused() then return (' %s · q back to the text '):format(current.question.keys()) end
  local mode = vim.api.nvim_get_mode().mode
  return (' %s%s answers '):format(mode:match('^n') and '' or '<Esc> ', require('consort.maps').key('answer'))
end

--- Updates the float's position, height and hint for the present position of the cursor.
local function place()
  if not (current and current.win and vim.api.nvim_win_is_valid(current.win)) then return end
  local all = vim.api.nvim_win_text_height(current.win, {}).all
  local height = math.min(all, focused() and math.max(1, screen_lines() - 2) or room())
  if not focused() then current.side = M.side(current.side, height + 2, cursor_row(), screen_lines()) end
  local footer = { { hint(), 'ConsortPlain' } }
  if all > height then table.insert(footer, { ('· %d more lines '):format(all - height), 'ConsortError' }) end
  vim.api.nvim_win_set_config(current.win, {
    relative = 'editor',
    row = current.side == 'top' and 0 or math.max(0, screen_lines() - height - 2),
    col = math.max(0, math.floor((vim.o.columns - vim.api.nvim_win_get_width(current.win) - 2) / 2)),
    height = height,
    footer = footer,
  })
end

-- Answers

local everywhere = false -- true while the key is mapped in all buffers

--- Maps the key in all buffers, also in those that are not Lisp, or removes that mapping. A
--- mapping of the person's own is not replaced.
local function keys_everywhere(on)
  local raw = vim.keycode(KEY)
  local taken = vim.iter(vim.api.nvim_get_keymap('n')):any(function(map) return map.lhsraw == raw end)
  if on and not everywhere and not taken and vim.g.consort_maps ~= false then
    vim.keymap.set('n', KEY, '<Plug>(consort-answer)', { remap = true, desc = 'Consort: answer the question of an agent' })
    everywhere = true
  elseif not on and everywhere then
    pcall(vim.keymap.del, 'n', KEY)
    everywhere = false
  end
end

--- Closes the float and answers the question.
---@param choice? consort.Choice nil: the person gave no answer
local function finish(choice)
  local asked = current
  current = nil
  vim.api.nvim_clear_autocmds({ group = group })
  keys_everywhere(false)
  if asked then
    if asked.win and vim.api.nvim_win_is_valid(asked.win) then
      local back = asked.win == vim.api.nvim_get_current_win() and asked.back
      vim.api.nvim_win_close(asked.win, true)
      if back and vim.api.nvim_win_is_valid(back) then vim.api.nvim_set_current_win(back) end
    end
    local params, done = asked.question.params, choice and choice.done
    if choice and params and choice.decision ~= 'deny' and params.class == 'modify-running-code' then
      local ways = {}
      if require('consort.undo').allow(params, asked.question.client) then
        table.insert(ways, require('consort.maps').key('undo') .. ' undoes')
      end
      require('consort.replacing').allow(asked.question.replaced, params)
      if asked.question.replaced then
        table.insert(ways, ':Consort write puts it into ' .. vim.fs.basename(asked.question.replaced.file))
      end
      if #ways > 0 then done = ('%s (%s)'):format(done, table.concat(ways, ', ')) end
    end
    asked.question.answer(choice and choice.decision)
    vim.schedule(function()
      vim.cmd.redraw() -- removes the float first, so that the message does not wait for a key
      if done and not asked.question.over then client_of.say(('%s: %s'):format(done, asked.question.what)) end
    end)
  end
  vim.schedule(next_question)
end

--- Returns the decisions of the current question, or those of an agent's question if none is open.
---@return string[]
function M.decisions()
  return vim.tbl_map(function(choice) return choice.decision end, current and current.question.choices or approvals)
end

--- Answers the current question, or moves the cursor into its float.
---@param decision? string the decision of one of its choices; nil: moves the cursor
function M.answer(decision)
  if not current then return client_of.say('no agent waits for an answer') end
  if decision then
    for _, choice in ipairs(current.question.choices) do
      if choice.decision == decision then return finish(choice) end
    end
    return client_of.fail(('there is no answer `%s`; there are %s'):format(decision, (table.concat(M.decisions(), ', '):gsub(', ([^,]*)$', ' and %1'))))
  end
  if not focused() then
    -- A float that `:only` or `:quit` closed may not have been opened again yet.
    if not vim.api.nvim_win_is_valid(current.win) then open() end
    current.back = vim.api.nvim_get_current_win()
    vim.api.nvim_set_current_win(current.win)
  end
  place()
end

--- Returns the key of an open question of the server, which an evaluation may wait for; nil if none
--- is open.
---@return string?
function M.question_key() return current and not current.question.params and require('consort.maps').key('answer') or nil end

-- The question

local function leave()
  if current and current.back and vim.api.nvim_win_is_valid(current.back) then
    vim.api.nvim_set_current_win(current.back)
  else
    vim.cmd.wincmd('p')
  end
  place()
end

open = function()
  vim.api.nvim_clear_autocmds({ group = group })
  local asked = assert(current)
  local question = asked.question
  local buf, compared
  --- Switches between the question's text and the difference from the old definition.
  local function compare()
    local replaced = question.replaced
    if not replaced then return client_of.say('nothing to compare with: no file has the definition') end
    compared = not compared
    float.replace(buf, compared and require('consort.replacing').difference(replaced, question.params.code) or table.concat(question.lines, '\n'))
    vim.bo[buf].syntax = compared and 'diff' or 'lisp'
    place()
  end
  local keys = { q = leave, ['<Esc>'] = leave, c = question.params and compare or nil }
  for _, choice in ipairs(question.choices) do
    if choice.key then keys[choice.key] = function() finish(choice) end end
  end
  if question.first_choice then
    keys['<CR>'] = function()
      local choice = question.choices[vim.api.nvim_win_get_cursor(0)[1] - question.first_choice + 1]
      if choice then finish(choice) else client_of.say('put the cursor on the line of an answer') end
    end
  end
  local more = #queue > 0 and ('; %d more to answer'):format(#queue) or ''
  buf, asked.win = float.open(question.lines, {
    title = question.title() .. more,
    hint = hint(),
    wide = #' a allow · s allow for this session · d deny · c compare · q back to the text · 1000 more lines ',
    filetype = question.params and 'lisp' or nil,
    plain = question.params and { { 0, question.words - 1 } } or nil,
    top = true,
    focus = false,
    keys = keys,
  })
  place()
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'WinEnter', 'BufEnter', 'WinScrolled', 'VimResized' }, {
    group = group,
    callback = place,
  })
  -- `:only` and `:quit` close the float without an answer. The float is then opened again.
  vim.api.nvim_create_autocmd('WinClosed', {
    group = group,
    pattern = tostring(asked.win),
    callback = vim.schedule_wrap(function()
      if current == asked and not vim.api.nvim_win_is_valid(asked.win) then open() end
    end),
  })
  vim.cmd.redraw()
end

next_question = function()
  if current then return end
  if client_of.is_text_locked then return vim.defer_fn(next_question, 100) end
  -- In the command-line window no other window can be opened.
  if vim.fn.getcmdwintype() ~= '' then
    vim.api.nvim_create_autocmd('CmdwinLeave', { group = group, once = true, callback = vim.schedule_wrap(next_question) })
    return
  end
  local question = table.remove(queue, 1)
  while question and question.over do question = table.remove(queue, 1) end
  if not question then return end
  current = { question = question, side = 'top' }
  keys_everywhere(true)
  open()
  if not question.params then return end
  require('consort.replacing').find(question.params, function(replaced)
    question.replaced = replaced
    place()
  end)
end

--- Adds a question to the queue. The question is shown after the earlier ones.
---@param question consort.Question
function M.ask(question)
  table.insert(queue, question)
  vim.schedule(next_question)
end

-- The questions of agents

local function present(text) return text and text ~= vim.NIL and text ~= '' end

--- Returns the lines to show, and the number of lines before the empty line and the code.
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

--- Handles `consort/approve`. Each request runs in its own coroutine, which waits here for the
--- person's answer.
function M.on_request(_, params, context)
  local thread = assert(coroutine.running())
  local ends = os.date('%H:%M:%S', os.time() + (params.deadlineSeconds or 120))
  local lines, words = text_of(params)
  local question
  question = {
    params = params,
    what = params.what,
    client = context.client_id,
    choices = approvals,
    title = function() return ('%s asks, until %s'):format(present(params.client) and params.client or 'An agent', ends) end,
    lines = lines,
    words = words,
    keys = function() return 'a allow · s allow for this session · d deny' .. (question.replaced and ' · c compare' or '') end,
    answer = function(decision) coroutine.resume(thread, { decision = decision or 'deny' }) end,
  }
  M.ask(question)
  return coroutine.yield()
end

--- Ends questions without the person's answer.
---@param reason string the reason, for a message
---@param is_meant fun(question: consort.Question): boolean true for the questions to end
function M.over(reason, is_meant)
  local function tell(question)
    question.over = true
    client_of.say(('no answer is needed any more (%s): %s'):format(reason, question.what))
  end
  for _, question in ipairs(queue) do
    if is_meant(question) and not question.over then
      tell(question)
      question.answer()
    end
  end
  if current and is_meant(current.question) then
    tell(current.question)
    finish()
  end
end

--- Handles `consort/approvalOver`: another client answered, the time is up, or the agent has
--- disconnected.
function M.on_over(_, params, context)
  -- Each server numbers its questions separately.
  M.over(params.reason or 'it is over', function(question)
    return question.client == context.client_id and question.params ~= nil and question.params.id == params.id
  end)
end

client_of.on_end(function(client)
  M.over('the server has ended', function(question) return question.client == client end)
end)

return M
