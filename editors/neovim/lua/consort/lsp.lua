--- Inlay hints and code lenses, which Neovim's own LSP client shows only when they are enabled.
local client_of = require('consort.client')

local M = {}

--- Switches the inlay hints of the current buffer on or off.
function M.hints()
  local client = client_of.need()
  if not client then return end
  local buf = vim.api.nvim_get_current_buf()
  if not client:supports_method('textDocument/inlayHint', buf) then
    return client_of.fail('this version of the program `consort` gives no inlay hints; install the newest one')
  end
  local on = not vim.lsp.inlay_hint.is_enabled({ bufnr = buf })
  vim.lsp.inlay_hint.enable(on, { bufnr = buf })
  client_of.say(on and 'inlay hints are shown' or 'inlay hints are not shown')
end

--- Runs the code lens of the cursor's line. If there are several, Neovim asks for one.
function M.lens()
  if client_of.need() then vim.lsp.codelens.run() end
end

--- Shows the code lenses of a buffer. Requests them now, and whenever the buffer is entered,
--- changed or written.
---@param buf integer
function M.follow_lenses(buf)
  local function refresh() vim.lsp.codelens.refresh({ bufnr = buf }) end
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged', 'BufWritePost' }, {
    group = vim.api.nvim_create_augroup('consort.lenses.' .. buf, {}),
    buffer = buf,
    callback = refresh,
  })
  refresh()
end

return M
