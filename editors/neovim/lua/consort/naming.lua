--- The renaming of a name that a code action invented.
local M = {}

--- Moves the cursor to the name and begins its renaming.
---@param place {uri: string, position: lsp.Position}
function M.rename(place)
  local client = require('consort.client').need()
  if not client then return end
  local range = { start = place.position, ['end'] = place.position }
  vim.lsp.util.show_document({ uri = place.uri, range = range }, client.offset_encoding, { reuse_win = true, focus = true })
  vim.lsp.buf.rename()
end

return M
