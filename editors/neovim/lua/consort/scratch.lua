--- A buffer for trying code. It is Lisp that the language server knows, and has no file. It exists
--- until Neovim ends, even if no window shows it.
local client_of = require('consort.client')

local M = {}

local NAME = 'consort://scratch'
---@type integer?
local scratch

--- Returns the name of a package as it is written after IN-PACKAGE.
local function designator(name)
  local plain = name:match('^[%w%-%.+*/]+$')
  return plain and '#:' .. name:lower() or '"' .. name:gsub('[\\"]', '\\%0') .. '"'
end

--- Attaches the scratch buffer to its client, or to one that was started again, because only
--- buffers of files are attached automatically.
---@param buf integer
---@param client vim.lsp.Client
function M.attach(buf, client)
  if buf ~= scratch or #vim.lsp.get_clients({ bufnr = buf, name = 'consort' }) > 0 then return end
  vim.b[buf].consort_root = client.root_dir
  vim.lsp.buf_attach_client(buf, client.id)
end

local function make(package)
  local old = vim.fn.bufnr(('^%s$'):format(NAME)) -- left by `:bdelete`
  if old ~= -1 then vim.api.nvim_buf_delete(old, { force = true }) end
  local buf = vim.api.nvim_create_buf(true, true)
  vim.api.nvim_buf_set_name(buf, NAME)
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  vim.bo[buf].filetype = 'lisp'
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, {
    ';;; Code to try; it is in no file, and goes when Neovim ends.',
    ('(in-package %s)'):format(designator(package)),
    '',
    '',
  })
  vim.api.nvim_create_autocmd('BufUnload', { buffer = buf, callback = function() scratch = nil end })
  return buf
end

--- Opens the scratch buffer in a split, or goes to it. A new one has the package of the file that
--- the person leaves.
function M.open()
  local client = client_of.need()
  if not client then return end
  local package = vim.bo.filetype == 'lisp' and require('consort.repl').package_here() or 'CL-USER'
  local is_new = not (scratch and vim.api.nvim_buf_is_valid(scratch))
  local win = not is_new and vim.fn.win_findbuf(scratch)[1]
  if win then return vim.api.nvim_set_current_win(win) end
  if is_new then scratch = make(package) end
  M.attach(scratch, client)
  vim.cmd('botright 12split')
  vim.api.nvim_win_set_buf(0, scratch)
  if is_new then vim.cmd.normal({ 'G', bang = true }) end
end

return M
