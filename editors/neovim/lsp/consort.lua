-- Found through 'runtimepath' by vim.lsp.enable('consort'), Neovim 0.11 or newer.
---@type vim.lsp.Config
return {
  cmd = { 'consort', 'lsp' },
  filetypes = { 'lisp' },
  root_markers = { 'consort.toml', '.git' },
}
