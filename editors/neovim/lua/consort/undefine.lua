--- Removes a definition of a name from the image, after the person has chosen and confirmed it.
local client_of = require('consort.client')

local M = {}

--- Returns a definition as one line. `part.lost` is the reason why an undo would not restore all
--- of it.
local function line_of(part) return vim.fn.strtrans(part.text) .. (type(part.lost) == 'string' and (' (%s)'):format(part.lost) or '') end

--- Asks which definition of the name at the cursor to remove, and for confirmation; then removes
--- it.
function M.ask()
  local client = client_of.need()
  if not client then return end
  client_of.execute('removable', client_of.place_of_name(client), function(found)
    vim.ui.select(found.parts, { prompt = 'Remove from the image', format_item = line_of, kind = 'consort-undefine' }, function(part)
      if not part then return end
      local question = { prompt = ('Remove the %s? '):format(line_of(part)), format_item = tostring, kind = 'consort-undefine' }
      vim.ui.select({ 'no', 'remove' }, question, function(answer)
        if answer ~= 'remove' then return end
        local method = type(found.method) == 'table' and found.method or nil
        require('consort.undo').reload('undefine', { name = found.name, method = method, parts = { part.key } }, function(report)
          client_of.say(#report.gone > 0 and 'removed: ' .. vim.fn.strtrans(table.concat(report.gone, ', ')) or 'nothing was removed')
        end)
      end)
    end)
  end, { here = true })
end

return M
