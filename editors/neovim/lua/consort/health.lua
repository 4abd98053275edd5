--- `:checkhealth consort`
local M = {}

function M.check()
  local health = vim.health
  health.start('Consort')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.11 or newer is needed', { 'Install a newer Neovim' })
  end
  local command = vim.tbl_get(vim.lsp.config, 'consort', 'cmd', 1) or 'consort'
  if vim.fn.executable(command) == 0 then
    health.error(('the program `%s` is not on PATH'):format(command), {
      'Build it: `make install` in the Consort repository, or `cargo install --path server`',
      "Or say where it is: vim.lsp.config('consort', { cmd = { '/path/to/consort', 'lsp' } })",
    })
    return
  end
  local doctor = vim.system({ command, 'doctor' }, { text = true }):wait()
  for line in vim.gsplit(vim.trim(doctor.stdout .. doctor.stderr), '\n', { plain = true }) do health.info(line) end
  if doctor.code == 0 then
    health.ok('`consort doctor` found no problem')
  else
    health.error('`consort doctor` found a problem', { 'Follow the advice in the lines above' })
  end
  if vim.lsp.is_enabled('consort') then
    health.ok('the language server is enabled')
  else
    health.warn('the language server is not enabled', { "Put vim.lsp.enable('consort') into your init.lua" })
  end
  local clients = vim.lsp.get_clients({ name = 'consort' })
  if #clients == 0 then
    health.info('the language server is attached to no buffer; open a Lisp file')
  end
  for _, client in ipairs(clients) do health.ok(('attached, workspace %s'):format(client.root_dir)) end
end

return M
