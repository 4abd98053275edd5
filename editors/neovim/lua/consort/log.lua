--- The log of the operations in the image and the clients that requested them, the newest last.
local client_of = require('consort.client')
local float = require('consort.float')
local fit = require('consort.inline').fit

local M = {}

local function first_line(text) return vim.split(vim.trim(text or ''), '\n', { plain = true })[1] end

--- Returns the log as lines of at most `cells` cells.
---@param entries table[] the entries in the result of consort.log
---@param cells integer
---@return string[]
function M.lines(entries, cells)
  local lines = {}
  for _, entry in ipairs(entries) do
    local time = (entry.time or ''):match('T(%d%d:%d%d:%d%d)') or ''
    local who = fit((entry.client or ''):gsub('%+.*$', ''), 20)
    local what = first_line(entry.code)
    if what == '' then what = vim.trim((entry.tool or ''):gsub('^consort%.', '') .. ' ' .. (entry.about or '')) end
    local gap = (' '):rep(20 - vim.fn.strdisplaywidth(who))
    table.insert(lines, fit(('%s  %s%s  %s'):format(time, who, gap, what), cells))
    local outcome = first_line(entry.outcome)
    if outcome ~= '' then table.insert(lines, fit((' '):rep(32) .. outcome:gsub('^=> ', '⇒ '), cells)) end
  end
  return lines
end

function M.open()
  client_of.execute('log', {}, function(result, _, is_here)
    local lines = M.lines(result.entries or {}, math.max(40, vim.o.columns - 6))
    if #lines == 0 then lines = { 'Nothing has run yet.' } end
    float.open(lines, { title = 'What ran in the image (UTC)', row = #lines - 1, is_here = is_here, hint = 'q closes' })
  end, { latest = 'log' })
end

return M
