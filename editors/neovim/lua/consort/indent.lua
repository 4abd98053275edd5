--- 'indentexpr', with which Enter, `o`, `=` and `gq` indent like the server, which knows the macros
--- of the image.
local client_of = require('consort.client')

local M = {}
local PATIENCE = 300 -- ms; a key cannot wait longer, and Vim's own indentation is better than none

--- Returns the number of cells by which a line must be indented.
---@param lnum integer 1-based
---@return integer
function M.of(lnum)
  local buf = vim.api.nvim_get_current_buf()
  local client = vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1]
  if not client or not client.initialized or not client:supports_method('textDocument/onTypeFormatting', buf) then return vim.fn.lispindent(lnum) end
  local line = vim.api.nvim_buf_get_lines(buf, lnum - 1, lnum, false)[1] or ''
  local space = line:match('^%s*')
  local answer = client:request_sync('textDocument/onTypeFormatting', {
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    position = { line = lnum - 1, character = #space },
    ch = '\n',
    options = { tabSize = vim.bo.tabstop, insertSpaces = vim.bo.expandtab },
  }, PATIENCE, buf)
  if not answer or answer.err or not answer.result then return vim.fn.lispindent(lnum) end
  for _, edit in ipairs(answer.result) do
    local range = edit.range
    if range.start.line == lnum - 1 and range['end'].line == lnum - 1 then
      local after = line:sub(1, range.start.character) .. edit.newText .. line:sub(range['end'].character + 1)
      return vim.fn.strdisplaywidth(after:match('^%s*'))
    end
  end
  return vim.fn.strdisplaywidth(space) -- the current indentation is right
end

--- Sets 'indentexpr' in a buffer that has none.
---@param buf integer
function M.use(buf)
  if vim.bo[buf].indentexpr ~= '' then return end
  vim.bo[buf].indentexpr = "v:lua.require'consort.indent'.of(v:lnum)"
  vim.bo[buf].indentkeys = '!^F,o,O'
  vim.bo[buf].lispoptions = 'expr:1' -- otherwise 'lisp' would indent instead of 'indentexpr'
end

return M
