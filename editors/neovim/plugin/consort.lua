-- The command, the key maps and the autocommands of the plugin. No setup() is needed; see :help
-- consort.
if vim.g.loaded_consort then return end
vim.g.loaded_consort = true

vim.api.nvim_create_user_command('Consort', function(context) require('consort.commands').run(context) end, {
  nargs = '*',
  range = true,
  desc = 'Common Lisp in the image that editor and agents share',
  complete = function(...) return require('consort.commands').complete(...) end,
})

require('consort.maps').define_plug_maps()

local group = vim.api.nvim_create_augroup('consort', {})

-- The keys are mapped before the server is ready. A key that is pressed early waits for the server,
-- or shows what is missing.
vim.api.nvim_create_autocmd('FileType', {
  group = group,
  pattern = 'lisp',
  desc = 'Keys of Lisp buffers',
  callback = function(event)
    if vim.g.consort_maps ~= false and vim.bo[event.buf].buftype == '' and vim.lsp.is_enabled('consort') then
      require('consort.maps').defaults(event.buf)
    end
  end,
})

vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  desc = 'Keys of Lisp buffers; where the person is',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if not client or client.name ~= 'consort' then return end
    if vim.g.consort_maps ~= false then require('consort.maps').defaults(event.buf) end -- also if the server was enabled later
    if vim.g.consort_lenses ~= false and client:supports_method('textDocument/codeLens', event.buf) then
      require('consort.lsp').follow_lenses(event.buf)
    end
    vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'BufEnter', 'WinScrolled' }, {
      group = vim.api.nvim_create_augroup('consort.context.' .. event.buf, {}),
      buffer = event.buf,
      callback = function(moved)
        if moved.event == 'BufEnter' then require('consort.client').entered(client) end
        require('consort.context').moved()
      end,
    })
    if vim.api.nvim_get_current_buf() == event.buf then require('consort.client').entered(client) end
    require('consort.context').moved()
    if vim.g.consort_strict == true then require('consort.strict').use(event.buf) end
    require('consort.indent').use(event.buf)
    require('consort.disk').follow(event.buf)
    require('consort.differences').follow(client, event.buf)
  end,
})

--- Opens the document of a buffer that has no server.
---@param buf integer
local function open_document(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].filetype ~= 'lisp' then return end
  if not vim.lsp.is_enabled('consort') or require('consort.start').has_failed(buf) then return end
  -- Setting the filetype makes Neovim attach a server.
  if #vim.lsp.get_clients({ bufnr = buf, name = 'consort' }) == 0 then vim.bo[buf].filetype = 'lisp' end
end

-- The server identifies a document by its name. A buffer with a new name is therefore another
-- document at once, not only when it is saved.
vim.api.nvim_create_autocmd('BufFilePre', {
  group = group,
  desc = 'The document of the old name is closed',
  callback = function(event)
    for _, client in ipairs(vim.lsp.get_clients({ bufnr = event.buf, name = 'consort' })) do
      if vim.tbl_get(client, 'attached_buffers', event.buf) then
        vim.lsp.buf_detach_client(event.buf, client.id)
        -- If Neovim refuses the name, there is no BufFilePost.
        vim.schedule(function() open_document(event.buf) end)
      end
    end
  end,
})

-- `:write NAME` in a buffer without a name has no BufFilePost.
vim.api.nvim_create_autocmd({ 'BufFilePost', 'BufWritePost' }, {
  group = group,
  nested = true,
  desc = 'The document of the new name is opened',
  callback = function(event) open_document(event.buf) end,
})

vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  desc = 'End of what waits for a server that has ended, for configurations with another on_exit',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if not client or client.name ~= 'consort' or not client:is_stopped() then return end
    -- When the scheduled function runs, Neovim has removed the client.
    vim.schedule(function() require('consort.client').ended(client.id) end)
  end,
})

vim.filetype.add({ extension = { ros = 'lisp', asd = 'lisp', cl = 'lisp' } })
