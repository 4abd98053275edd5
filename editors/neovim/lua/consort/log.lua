--- What ran in the image, and by whom.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

function M.open()
  client_of.execute('log', {}, function(result)
    local lines = {}
    for _, entry in ipairs(result.entries or {}) do
      local function first(text) return vim.split(vim.trim(text or ''), '\n', { plain = true })[1] end
      local time = (entry.time or ''):match('T(%d%d:%d%d:%d%d)') or ''
      table.insert(lines, ('%s  %-24s %-16s %s'):format(time, entry.client, entry.tool, first(entry.code)))
      if entry.outcome then table.insert(lines, (' '):rep(10) .. first(entry.outcome)) end
    end
    if #lines == 0 then lines = { 'Nothing has run yet.' } end
    float.open(lines, { title = 'What ran in the image', hint = 'q closes' })
  end)
end

return M
