--- Evaluations of this editor that wait or run. A virtual text at the end of the form's line shows
--- the seconds since the evaluation began and the key that interrupts it. Virtual lines below show
--- the end of the output so far.
require('consort.colours')

local M = {}
local SOON = 300 -- ms before the mark is drawn; shorter evaluations have none
local SECOND = 1000 -- ms
local LINES = 5 -- of output that are shown, the last ones

---@class consort.Run
---@field text string the output so far, at most the last 100000 octets
---@field begun? number the time of the start, in ms as of vim.uv.now(); nil while the form waits
---@field show? fun() draws the mark
---@field gone? fun() removes the mark
---@field printed? fun(text: string) is called with each new piece of output
---@field is_shown? boolean true once the mark has been drawn
---@field timer? uv.uv_timer_t

---@type table<string, consort.Run>
local runs = {}
local count = 0
local namespace = vim.api.nvim_create_namespace('consort.running')

local function begin(run)
  count = count + 1
  local token = ('nvim-%d'):format(count)
  runs[token] = run
  return token
end

--- Registers an evaluation whose output is passed to a function. No mark is drawn.
---@param printed fun(text: string)
---@return string token for `outputToken`
function M.stream(printed) return begin({ text = '', printed = printed }) end

--- Returns the last lines of the output as virtual lines; nil if the output is blank.
local function below(text)
  local lines = vim.split(vim.trim(text), '\n', { plain = true })
  if #lines == 1 and lines[1] == '' then return end
  local shown = {}
  for i = math.max(1, #lines - LINES + 1), #lines do table.insert(shown, { { '  ' .. lines[i], 'ConsortOutput' } }) end
  return shown
end

--- Returns the words that say why a form has not begun to run.
---@return string
local function waits() return vim.g.consort_image == 'starting' and 'waits for the image' or 'queued' end

--- Registers an evaluation, and marks the line of its form until M.done() is called.
---@param buf integer
---@param row integer 0-based
---@return string token for `outputToken`
function M.mark(buf, row)
  -- An extmark is set before anything is drawn, because it moves with the text.
  local mark = vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, {})
  local key = require('consort.maps').key('interrupt')
  local run = { text = '', timer = assert(vim.uv.new_timer()) }
  run.show = function()
    if not vim.api.nvim_buf_is_loaded(buf) then return end
    local at = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, mark, {})[1]
    if not at then return end
    local asks = require('consort.approve').question_key()
    local now = run.begun and ('%d s'):format(math.floor((vim.uv.now() - run.begun) / SECOND)) or waits()
    run.is_shown = true
    mark = vim.api.nvim_buf_set_extmark(buf, namespace, at, 0, {
      id = mark,
      virt_text = { { (' … %s · %s stops%s '):format(now, key, asks and (' · a question waits: %s'):format(asks) or ''), 'ConsortHint' } },
      virt_text_pos = 'eol',
      virt_lines = below(run.text),
    })
  end
  run.gone = function()
    run.timer:stop()
    run.timer:close()
    if vim.api.nvim_buf_is_valid(buf) then vim.api.nvim_buf_del_extmark(buf, namespace, mark) end
  end
  local token = begin(run)
  run.timer:start(SOON, SECOND, vim.schedule_wrap(function()
    if runs[token] then run.show() end
  end))
  return token
end

--- Handles the notification `consort/begun`: the evaluation has begun to run.
function M.on_begun(_, params)
  local run = runs[params.token]
  if not run then return end
  run.begun = vim.uv.now()
  if run.is_shown then run.show() end
end

--- Handles the notification `consort/output`: the evaluation has printed text.
function M.on_output(_, params)
  local run = runs[params.token]
  if not run then return end
  run.text = (run.text .. params.text):sub(-100000) -- the evaluation's result has the whole output
  if run.printed then run.printed(params.text) end
  if run.show then run.show() end
end

--- Adds a line that a person typed as input for running code to the output of all evaluations with
--- a `printed` function. Only input for `consort.eval` is added.
---@param text string
---@param command string the command that runs the code
function M.typed(text, command)
  if command ~= 'consort.eval' then return end
  for _, run in pairs(runs) do
    if run.printed then run.printed(text .. '\n') end
  end
end

--- Returns true if an evaluation has begun to run and has not ended.
---@param token string
---@return boolean
function M.has_begun(token) return vim.tbl_get(runs, token, 'begun') ~= nil end

--- Forgets an evaluation that has ended, and removes its mark.
---@param token string
function M.done(token)
  local run = runs[token]
  runs[token] = nil
  if run and run.gone then run.gone() end
end

M.namespace = namespace
return M
