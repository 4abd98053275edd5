--- The status of a workspace: its image, the host, the clients and the running operations.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

local function megabytes(bytes) return ('%.0f MB'):format(bytes / 2 ^ 20) end

--- Returns the status as lines of text.
---@param status table the answer of consort.status
---@return string[]
function M.lines(status)
  local image, facts = status.image, status.image.facts or {}
  local lines = { 'Workspace  ' .. vim.fn.fnamemodify(status.workspace, ':~') }
  local function add(heading, text) table.insert(lines, ('%-9s  %s'):format(heading, text)) end
  if image.state == 'ready' then
    local heap = facts.dynamic_usage and (', %s of %s used'):format(megabytes(facts.dynamic_usage), megabytes(facts.dynamic_space_size)) or ''
    add('Lisp', ('%s, process %d%s'):format(image.lisp, image.pid, heap))
  else
    local why = image.what or image.reason or (image.state == 'idle' and 'not started yet' or '')
    add('Lisp', image.state .. ': ' .. why)
  end
  add('Consort', ('%s, process %d, %s'):format(status.version, status.host_pid, megabytes(status.host_memory)))
  if status.untrusted then add('Trust', status.untrusted) end
  for i, client in ipairs(status.clients or {}) do
    add(i == 1 and 'Connected' or '', ('%s (%s)'):format(client.name, client.frontend == 'mcp' and 'agent' or 'editor'))
  end
  for i, work in ipairs(#(status.work or {}) > 0 and status.work or { 'nothing' }) do add(i == 1 and 'Running' or '', work) end
  return lines
end

--- Shows the status in a float.
function M.open()
  client_of.execute('status', {}, function(result, _, is_here)
    float.open(M.lines(result), { title = 'Consort', is_here = is_here, hint = 'q closes' })
  end, { latest = 'status' })
end

return M
