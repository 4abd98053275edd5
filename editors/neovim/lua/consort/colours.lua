--- Highlight groups: all of them are links that a colour scheme or a person may redefine.
local M = {}

local links = {
  ConsortValue = 'DiagnosticVirtualTextOk',
  ConsortOutput = 'Comment',
  ConsortError = 'DiagnosticVirtualTextError',
  ConsortHint = 'Comment',
  ConsortExpansion = 'DiffAdd',
}

-- Highlights of a report in a buffer with Lisp's syntax colours: they replace the colours beneath.
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
