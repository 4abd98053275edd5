--- Renaming, as Neovim's own client does it, which says nothing about other files that it changes.
local client_of = require('consort.client')

local M = {}

--- Returns the number of files that a workspace edit changes.
---@param edit lsp.WorkspaceEdit
---@return integer
local function count_of(edit)
  local files = {}
  for uri in pairs(edit.changes or {}) do files[uri] = true end
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.textDocument then files[change.textDocument.uri] = true end
  end
  return vim.tbl_count(files)
end

--- Handles the answer to `textDocument/rename`. The edits of several files are made in buffers that
--- no window may show, and the image has the old name.
function M.on_answer(error, edit, context)
  vim.lsp.handlers['textDocument/rename'](error, edit, context)
  local files = not error and edit and count_of(edit) or 0
  if files < 2 then return end
  client_of.say(('renamed in %d files: `:wall`, then %s in each for the image'):format(files, require('consort.maps').key('changed')))
end

return M
