--- Lines of input for running Lisp code. The person enters each in `vim.ui.input`.
---
--- A request for a line may come while the person types. The prompt is opened after a pause without
--- keys, so that it does not receive the keys that are being typed.
local client_of = require('consort.client')

local M = {}

local PAUSE = 300 -- ms without a key

---@class consort.Wanted
---@field params table the parameters of consort/input
---@field client integer
---@field answer fun(result: table|userdata) to be called once; vim.NIL: the person gave no line
---@field over? boolean true if the code no longer waits for the line

---@type consort.Wanted[]
local queue = {}
---@type consort.Wanted?
local current
local last_key = 0
local namespace = vim.api.nvim_create_namespace('consort.input')

local ask

local function next_question()
  if current or #queue == 0 then return end
  -- An open command line or prompt is not interrupted.
  if vim.uv.now() - last_key < PAUSE or vim.api.nvim_get_mode().mode:match('^[cr]') then return vim.defer_fn(next_question, PAUSE) end
  vim.on_key(nil, namespace)
  current = table.remove(queue, 1)
  ask(current)
end

ask = function(wanted)
  local prompt = require('consort.escaped').escape(wanted.params.prompt or '')
  if vim.trim(prompt) == '' then prompt = 'Lisp reads a line: ' end
  if not prompt:match('%s$') then prompt = prompt .. ' ' end
  vim.ui.input({ prompt = prompt }, function(text)
    if current == wanted then current = nil end
    vim.api.nvim_echo({ { '' } }, false, {}) -- removes the question from the command line
    if wanted.over then
      if text and text ~= '' then client_of.say('the code no longer reads input; not used: ' .. text, vim.log.levels.WARN) end
      return vim.schedule(next_question)
    end
    wanted.answer(text and { text = text } or vim.NIL)
    if text then require('consort.running').typed(text, wanted.params.command) end
    vim.schedule(next_question)
  end)
end

--- Handles `consort/input`. Each request runs in its own coroutine, which waits here for the
--- person's line.
function M.on_request(_, params, context)
  local thread = assert(coroutine.running())
  table.insert(queue, { params = params, client = context.client_id, answer = function(result) coroutine.resume(thread, result) end })
  vim.on_key(function() last_key = vim.uv.now() end, namespace)
  last_key = vim.uv.now()
  vim.defer_fn(next_question, PAUSE)
  return coroutine.yield()
end

--- Ends requests for lines without the person's answer.
---@param is_meant fun(wanted: consort.Wanted): boolean true for the requests to end
local function over(is_meant)
  for _, wanted in ipairs(vim.tbl_filter(is_meant, queue)) do
    queue = vim.tbl_filter(function(other) return other ~= wanted end, queue)
    wanted.answer(vim.NIL)
  end
  -- Neovim's own `vim.ui.input` uses the command line, which can be closed here. The input window
  -- of a plugin stays until the person answers; a message then says that the answer is not used.
  if not current or not is_meant(current) then return end
  current.over = true
  current.answer(vim.NIL)
  if vim.fn.getcmdtype() == '@' then vim.api.nvim_input('<C-c>') end
end

--- Handles `consort/inputOver`: the code no longer waits for the line.
function M.on_over(_, params, context)
  -- Each server numbers its requests separately.
  over(function(wanted) return wanted.client == context.client_id and wanted.params.id == params.id end)
end

client_of.on_end(function(client)
  over(function(wanted) return wanted.client == client end)
end)

return M
