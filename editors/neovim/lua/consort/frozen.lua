--- Frozen failures: reported errors whose stack is kept in a copy of the image. The debugger's
--- buffer shows the stack of one failure.
local client_of = require('consort.client')
local escaped = require('consort.escaped')

local M = {}

--- Opens a frozen failure in the debugger. Without a number, the person chooses one from a list of
--- all, newest first.
---@param number? string the failure's number, in decimal
function M.open(number)
  local client = client_of.need()
  if not client then return end
  local wanted = tonumber(number or '')
  if wanted then return require('consort.debugger').open_failure(client, wanted) end
  client_of.execute('status', {}, function(status)
    local failures = vim.iter(status.failures or {}):rev():totable()
    if #failures == 0 then return client_of.say('no failure is kept') end
    local function line(one) return escaped.line(('%d: %s: %s  (%s, %d s ago)'):format(one.failure, one.type, one.message, one.session, one.seconds)) end
    vim.ui.select(failures, { prompt = 'Failures whose stack is kept', format_item = line }, function(one)
      if one then require('consort.debugger').open_failure(client, one.failure) end
    end)
  end, { here = true })
end

return M
