--- Moving a definition to another file of its package.
local client_of = require('consort.client')

local M = {}

local function visible(text) return vim.fn.strtrans(text) end

--- Asks for the file to which to move the definition at the cursor, and moves the definition there.
function M.ask()
  local client = client_of.need()
  if not client then return end
  local place, is_same_text = client_of.place(client), client_of.text(vim.api.nvim_get_current_buf())
  client_of.execute('moveDestinations', place, function(found)
    local question = {
      prompt = ('Move %s to'):format(visible(found.name)),
      format_item = function(file) return visible(file.path) end,
      kind = 'consort-move',
    }
    vim.ui.select(found.files, question, function(file)
      if not file then return end
      if not is_same_text() then return client_of.fail('not moved: the text has changed meanwhile') end
      local argument = vim.tbl_extend('error', place, { target = file.uri })
      client_of.execute('moveDefinition', argument, function(moved)
        if not moved.applied then return client_of.fail('the definition was not moved') end
        local note = type(moved.note) == 'string' and '. ' .. visible(moved.note) or ''
        client_of.say(('moved %s to %s%s'):format(visible(moved.name), visible(file.path), note))
      end)
    end)
  end, { here = true })
end

return M
