-- Found through 'runtimepath' by vim.lsp.enable('consort'), Neovim 0.11 or newer.

--- The workspace: what a coding agent that is started in the project has too, so that both share one image.
local function root_dir(buffer, on_dir)
  on_dir(
    vim.fs.root(buffer, { 'consort.toml', '.git' })
      or vim.fs.root(buffer, function(name) return name:match('%.asd$') ~= nil end)
      or vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
  )
end

---@type vim.lsp.Config
return {
  cmd = { 'consort', 'lsp' },
  filetypes = { 'lisp' },
  root_dir = root_dir,
}
