-- nvim --headless -u NONE -i NONE -l install_test.lua: every way of installing the plugin that
-- Neovim itself has, each in an editor of its own.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local plugin = vim.fs.normalize(vim.uv.fs_realpath(here .. '/../../../editors/neovim'))
local place = vim.fs.normalize(vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname()))) .. '/install'

-- Returns the messages of an editor about the plugin that it was started with. INIT is its
-- init.lua; ARRANGE puts files into its data directory.
local function started(name, init, arrange)
  local root = place .. '/' .. name
  local env = {}
  for _, kind in ipairs({ 'config', 'data', 'state', 'cache' }) do
    env['XDG_' .. kind:upper() .. '_HOME'] = root .. '/' .. kind
    vim.fn.mkdir(root .. '/' .. kind .. '/nvim', 'p')
  end
  vim.fn.writefile(vim.split(init, '\n'), root .. '/config/nvim/init.lua')
  if arrange then arrange(root .. '/data/nvim') end
  local probe = [[lua
    local config = vim.lsp.config.consort
    io.stdout:write(vim.json.encode({
      command = vim.fn.exists(':Consort'), enabled = vim.lsp.is_enabled('consort'), cmd = config and config.cmd, filetypes = config and config.filetypes,
      plug = vim.fn.maparg('<Plug>(consort-eval-form)', 'n') ~= '' or vim.fn.mapcheck('<Plug>(consort-eval-form)', 'n') ~= '',
      help = #vim.fn.getcompletion('consort-keys', 'help'),
      asd = vim.filetype.match({ filename = 'a.asd' }), health = #vim.api.nvim_get_runtime_file('lua/consort/health.lua', true),
    }))]]
  local done = T.run({ vim.env.NVIM or 'nvim', '--headless', '-i', 'NONE', '+' .. probe:gsub('\n', ' '), '+qa!' }, { env = env })
  local ok, answer = pcall(vim.json.decode, done.stdout)
  if not ok then error(done.stdout .. done.stderr) end
  T.eq('', vim.trim(done.stderr), 'what it says on the way')
  return answer
end
local all = { command = 2, enabled = true, cmd = { 'consort', 'lsp' }, filetypes = { 'lisp' }, plug = true, asd = 'lisp', health = 1, help = 1 }

T.it('on the runtimepath', function()
  T.eq(all, started('path', ("vim.opt.runtimepath:append('%s')\nvim.lsp.enable('consort')"):format(plugin)))
end)

T.it('as a package', function()
  T.eq(all, started('package', "vim.lsp.enable('consort')", function(data)
    vim.fn.mkdir(data .. '/site/pack/consort/start', 'p')
    assert(vim.uv.fs_symlink(plugin, data .. '/site/pack/consort/start/consort'))
  end))
end)

-- As lazy.nvim and packer do: on the runtimepath after init.lua has begun, and its plugin/ sourced
-- by hand.
T.it('by a plugin manager that puts it there and sources it', function()
  T.eq(all, started('manager', ([[
    vim.opt.runtimepath:prepend('%s')
    vim.cmd.source('%s/plugin/consort.lua')
    vim.lsp.enable('consort')]]):format(plugin, plugin)))
end)

if vim.pack then
  T.it('with vim.pack, from a repository', function()
    local repository = place .. '/repository'
    vim.fn.mkdir(repository, 'p')
    local function run(...)
      local done = T.run({ ... }, { cwd = repository })
      T.eq(0, done.code, done.stderr)
    end
    run('cp', '-r', plugin .. '/.', repository)
    run('git', 'init', '--quiet')
    run('git', 'add', '--all')
    run('git', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--message=a')
    T.eq(all, started('pack', ("vim.pack.add({ { src = 'file://%s' } }, { confirm = false })\nvim.lsp.enable('consort')"):format(repository)))
  end)
end

vim.fn.delete(place, 'rf')
T.finish()
