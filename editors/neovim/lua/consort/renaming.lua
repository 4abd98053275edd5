--- Renaming, which Neovim's own client does. It says nothing about other files that it changes.
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

--- Moves the cursor to the name that a code action invented, and begins its renaming.
---@param place {uri: string, position: lsp.Position}
function M.begin(place)
  local client = client_of.need()
  if not client then return end
  local range = { start = place.position, ['end'] = place.position }
  vim.lsp.util.show_document({ uri = place.uri, range = range }, client.offset_encoding, { reuse_win = true, focus = true })
  vim.lsp.buf.rename()
end

return M
