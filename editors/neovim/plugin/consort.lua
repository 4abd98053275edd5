-- The command, the maps and what follows the image. No setup() is needed; see :help consort.
if vim.g.loaded_consort then return end
vim.g.loaded_consort = true

vim.api.nvim_create_user_command('Consort', function(context) require('consort.commands').run(context) end, {
  nargs = '*',
  range = true,
  desc = 'Common Lisp in the image that editor and agents share',
  complete = function(...) return require('consort.commands').complete(...) end,
})

require('consort.maps').plugs()

vim.api.nvim_create_autocmd('LspAttach', {
  group = vim.api.nvim_create_augroup('consort', {}),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'consort' and vim.g.consort_maps ~= false then require('consort.maps').defaults(event.buf) end
  end,
})

vim.filetype.add({ extension = { ros = 'lisp', asd = 'lisp', cl = 'lisp' } })
