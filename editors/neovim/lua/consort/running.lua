--- Evaluations of this editor that wait or run: a mark beside the form, with the seconds and the
--- key that stops it, and the output so far.
require('consort.colours')

local M = {}
local SOON = 300 -- ms; what takes less needs no mark
local SECOND = 1000
local LINES = 5 -- of what was printed

---@class consort.Run
---@field text string what was printed
---@field begun? number when it began; nil while it waits
---@field show? fun() draws it
---@field printed? fun(text: string) takes what is printed
---@field is_shown? boolean its mark is drawn
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

--- Begins a run whose output is passed to a function.
---@param printed fun(text: string)
---@return string token for `outputToken`
function M.stream(printed) return begin({ text = '', printed = printed }) end

--- Returns the last lines that were printed, as virtual lines below the form.
local function below(text)
  local lines = vim.split(vim.trim(text), '\n', { plain = true })
  if #lines == 1 and lines[1] == '' then return end
  local shown = {}
  for i = math.max(1, #lines - LINES + 1), #lines do table.insert(shown, { { '  ' .. lines[i], 'ConsortOutput' } }) end
  return shown
end

--- Says what a form waits for.
---@return string
local function waits() return vim.g.consort_image == 'starting' and 'waits for the image' or 'queued' end

--- Marks a line as the one whose form waits, and then runs.
---@param buf integer
---@param row integer 0-based
---@return string token for `outputToken`
function M.mark(buf, row)
  -- The mark moves with its text, also before anything is drawn.
  local mark = vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, {})
  local key = require('consort.maps').key('interrupt')
  local run = { text = '', timer = assert(vim.uv.new_timer()) }
  run.show = function()
    if not vim.api.nvim_buf_is_loaded(buf) then return end
    local at = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, mark, {})[1]
    if not at then return end
    local now = run.begun and ('%d s'):format(math.floor((vim.uv.now() - run.begun) / SECOND)) or waits()
    run.is_shown = true
    mark = vim.api.nvim_buf_set_extmark(buf, namespace, at, 0, {
      id = mark,
      virt_text = { { (' … %s · %s stops '):format(now, key), 'ConsortHint' } },
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

--- `consort/begun`
function M.on_begun(_, params)
  local run = runs[params.token]
  if not run then return end
  run.begun = vim.uv.now()
  if run.is_shown then run.show() end
end

--- `consort/output`
function M.on_output(_, params)
  local run = runs[params.token]
  if not run then return end
  run.text = (run.text .. params.text):sub(-100000) -- the result has all of it
  if run.printed then run.printed(params.text) end
  if run.show then run.show() end
end

--- Shows a line that a person typed for running code among its output.
---@param text string
---@param command string the command that runs the code
function M.typed(text, command)
  if command ~= 'consort.eval' then return end
  for _, run in pairs(runs) do
    if run.printed then run.printed(text .. '\n') end
  end
end

--- Returns true once an evaluation runs.
---@param token string
---@return boolean
function M.has_begun(token) return vim.tbl_get(runs, token, 'begun') ~= nil end

--- Removes the mark of an evaluation that has ended.
---@param token string
function M.done(token)
  local run = runs[token]
  runs[token] = nil
  if run and run.gone then run.gone() end
end

M.namespace = namespace
return M
