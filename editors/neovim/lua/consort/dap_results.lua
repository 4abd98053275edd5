--- How an evaluation with nvim-dap ended: nvim-dap shows it in its REPL only, which may not be open.
local client_of = require('consort.client')

local M = {}

--- Returns true if a window shows nvim-dap's REPL.
local function is_repl_open()
  return vim.iter(vim.api.nvim_list_wins()):any(function(win) return vim.bo[vim.api.nvim_win_get_buf(win)].filetype == 'dap-repl' end)
end

--- Returns the text of a result: that of code is the adapter's last output, that of a test the last
--- line that the program printed, with the indented lines after it.
local function text_of(config, body)
  local lines = vim.split(vim.trim(body.output), '\n', { plain = true })
  if body.category ~= 'stdout' then return table.concat(lines, '\n') end
  if not config.test and not config.file then return end
  local first = #lines
  while first > 1 and lines[first]:match('^%s') do first = first - 1 end
  return table.concat(lines, '\n', first)
end

--- Registers the listeners of this module for all sessions of a type.
---@param dap table the module of nvim-dap
---@param kind string the type, as in a configuration of nvim-dap
function M.follow(dap, kind)
  local last = setmetatable({}, { __mode = 'k' }) ---@type table<table, table> by session: its last output
  dap.listeners.after.event_output[kind] = function(session, body)
    local is_log = body.source ~= nil
    if (session.config or {}).type == kind and not is_log then last[session] = body end
  end
  dap.listeners.after.event_terminated[kind] = function(session)
    local body = last[session]
    last[session] = nil
    if not body or session.config.request ~= 'launch' or is_repl_open() then return end
    local text = text_of(session.config, body)
    if text then client_of.say(text, body.category == 'stderr' and vim.log.levels.ERROR or nil) end
  end
end

return M
