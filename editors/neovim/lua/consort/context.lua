--- The buffer, selection and visible lines of the person, sent to the server after a pause. The
--- person's agent gets them from the tool `editor-context`.
local client_of = require('consort.client')

local M = {}
local PAUSE = 200 -- ms
local timer = assert(vim.uv.new_timer())

local function tell()
  local buf = vim.api.nvim_get_current_buf()
  local client = vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1]
  if not client or not client.initialized or not client_of.knows(client, 'consort.editorContext') then return end
  local function position(row, column)
    local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
    return { line = row, character = vim.str_utfindex(line, client.offset_encoding, math.min(column, #line), false) }
  end
  local here = vim.api.nvim_win_get_cursor(0)
  local from, to = { here[1] - 1, here[2] }, { here[1] - 1, here[2] }
  if vim.fn.mode():match('[vV\22]') then
    local mark = vim.fn.getpos('v')
    local other = { mark[2] - 1, mark[3] - 1 }
    if other[1] < from[1] or (other[1] == from[1] and other[2] < from[2]) then from = other else to = other end
    if vim.fn.mode() == 'V' then from[2], to[2] = 0, vim.v.maxcol else to[2] = to[2] + 1 end
  end
  client:request('workspace/executeCommand', {
    command = 'consort.editorContext',
    arguments = {
      {
        uri = vim.uri_from_bufnr(buf),
        selection = { start = position(unpack(from)), ['end'] = position(unpack(to)) },
        visibleRange = { start = position(vim.fn.line('w0') - 1, 0), ['end'] = position(vim.fn.line('w$') - 1, vim.v.maxcol) },
      },
    },
  }, function() end, buf)
end

--- Sends the context after PAUSE without a further call.
function M.moved()
  timer:stop()
  timer:start(PAUSE, 0, vim.schedule_wrap(tell))
end

return M
