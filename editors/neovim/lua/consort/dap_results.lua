--- Texts of the adapter that nvim-dap shows in its REPL only, which may not be open: how an
--- evaluation ended, logpoints, conditions of breakpoints that failed, a slow start of the image.
local bounded = require('consort.bounded')
local client_of = require('consort.client')

local M = {}

local function rest(count) return ('... and %d more: `:DapToggleRepl` shows all'):format(count) end

--- Returns true if a window shows nvim-dap's REPL.
local function is_repl_open()
  return vim.iter(vim.api.nvim_list_wins()):any(function(win) return vim.bo[vim.api.nvim_win_get_buf(win)].filetype == 'dap-repl' end)
end

--- Returns the text of a result that is no text of the adapter's own: an error, or the outcome of a
--- test, which is the last line that was printed, with the indented lines after it.
local function text_of(config, body)
  if body.category == 'stderr' then return vim.trim(body.output) end
  if body.category ~= 'stdout' or not config.test and not config.file then return end
  local lines = vim.split(vim.trim(body.output), '\n', { plain = true })
  local first = #lines
  while first > 1 and lines[first]:match('^%s') do first = first - 1 end
  return table.concat(lines, '\n', first)
end

--- Registers the listeners of this module for all sessions of a type.
---@param dap table the module of nvim-dap
---@param kind string the type, as in a configuration of nvim-dap
function M.follow(dap, kind)
  local last = setmetatable({}, { __mode = 'k' }) ---@type table<table, table> by session: its last output
  local told = setmetatable({}, { __mode = 'k' }) ---@type table<table, consort.BoundedOutputs> by session
  dap.listeners.after.event_output[kind] = function(session, body)
    if (session.config or {}).type ~= kind then return end
    last[session] = body
    if body.category ~= 'console' or is_repl_open() then return end
    told[session] = told[session] or bounded.outputs(client_of.say, rest)
    told[session].tell(body)
  end
  --- Ends the messages of a session before the message that comes next.
  local function over(session)
    if told[session] then told[session].over() end
  end
  dap.listeners.before.event_stopped[kind .. '.results'] = over
  dap.listeners.after.event_terminated[kind] = function(session)
    over(session)
    local body = last[session]
    last[session] = nil
    if not body or session.config.request ~= 'launch' or is_repl_open() then return end
    local text = text_of(session.config, body)
    if text then client_of.say(text, body.category == 'stderr' and vim.log.levels.ERROR or nil) end
  end
end

return M
