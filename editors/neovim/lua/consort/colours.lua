--- Highlight groups. A colour scheme or a person may redefine those that are links.
local M = {}

local links = {
  ConsortValue = 'DiagnosticVirtualTextOk',
  ConsortOutput = 'Comment',
  ConsortError = 'DiagnosticVirtualTextError',
  ConsortHint = 'Comment',
  ConsortExpansion = 'DiffAdd',
}

-- Highlights for plain text in a buffer with Lisp syntax highlighting, whose colours they replace.
local plain = { ConsortPlain = 'NormalFloat', ConsortPlainOutput = 'Comment', ConsortPlainError = 'DiagnosticError', ConsortPlainWarn = 'DiagnosticWarn' }

--- Defines the groups for the current colour scheme.
function M.define()
  for group, link in pairs(links) do
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
  for group, link in pairs(plain) do
    local colours = vim.api.nvim_get_hl(0, { name = link, link = false })
    vim.api.nvim_set_hl(0, group, { fg = colours.fg, ctermfg = colours.ctermfg, nocombine = true })
  end
end

M.define()
vim.api.nvim_create_autocmd('ColorScheme', { group = vim.api.nvim_create_augroup('consort.colours', {}), callback = M.define })

return M
