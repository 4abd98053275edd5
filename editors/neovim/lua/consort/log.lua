--- What ran in the image, and by whom.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

function M.open()
  client_of.execute('log', {}, function(result)
    local lines = {}
    for _, entry in ipairs(result.entries or {}) do
      local text = entry.code or entry.what or ''
      local first = vim.split(vim.trim(text), '\n', { plain = true })[1]
      table.insert(lines, ('%s  %-20s %-16s %s'):format(entry.at or '', entry.by or '', entry.how or '', first))
      if entry.outcome then table.insert(lines, '    ' .. vim.split(entry.outcome, '\n', { plain = true })[1]) end
    end
    if #lines == 0 then lines = { 'Nothing has run yet.' } end
    float.open(lines, { title = 'What ran in the image', hint = 'q closes' })
  end)
end

return M
