-- nvim --headless -u NONE -i NONE -l offline_test.lua: the plugin without a server: its commands,
-- help and health report, and those of its functions that need no answer of a server.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local plugin = T.plugin(true)

local workspace, file = T.workspace({ '(list 1)' })

local _, last_said = T.notifications()

T.it('without a server a command says how to get one', function()
  vim.cmd('Consort eval (+ 1 2)')
  T.eq(true, last_said():find("vim.lsp.enable('consort')", 1, true) ~= nil, last_said())
end)

T.it('an unknown subcommand is answered with the one that was meant, or those there are', function()
  local all = 'there are answer, apropos, breakpoint, call, callers, changed, clear'
  for name, said in pairs({ evall = 'did you mean `:Consort eval`?', tset = 'did you mean `:Consort test`?', something = all }) do
    vim.cmd('Consort ' .. name)
    T.eq(true, last_said():find(said, 1, true) ~= nil, last_said())
  end
end)

T.it('subcommands and their words are completed', function()
  T.eq({ 'macroexpand', 'macrostep' }, vim.fn.getcompletion('Consort mac', 'cmdline'))
  T.eq({ 'form' }, vim.fn.getcompletion('Consort eval f', 'cmdline'))
end)

T.it('the help documents every subcommand and every key, as they are', function()
  local help = table.concat(vim.fn.readfile(plugin .. '/doc/consort.txt'), '\n')
  for name, subcommand in pairs(require('consort.commands').table) do
    T.eq(true, help:find((':Consort %-12s %s'):format(name, subcommand.about), 1, true) ~= nil, ':Consort ' .. name)
  end
  for _, map in ipairs(require('consort.maps').maps) do
    T.eq(true, help:find(('%-18s %-30s %s'):format(map.keys or '', '<Plug>(consort-' .. map.plug .. ')', map.about), 1, true) ~= nil, map.plug)
  end
  for _, line in ipairs(vim.split(help, '\n')) do T.eq(true, vim.fn.strdisplaywidth(line) <= 100, line) end
  vim.fn.mkdir(workspace .. '/doc', 'p')
  vim.fn.writefile(vim.split(help, '\n'), workspace .. '/doc/consort.txt')
  vim.cmd.helptags(workspace .. '/doc') -- fails on a duplicate tag
  -- The tags are shipped, so that `:help consort` works where nothing runs `:helptags`.
  T.eq(vim.fn.readfile(workspace .. '/doc/tags'), vim.fn.readfile(plugin .. '/doc/tags'), 'doc/tags is what `:helptags editors/neovim/doc` makes')
end)

T.it('every tag that the help names is there, and so are those it is entered by', function()
  local tags = {}
  for _, line in ipairs(vim.fn.readfile(workspace .. '/doc/tags')) do tags[line:match('^[^\t]+')] = true end
  for _, tag in ipairs({ 'consort', 'consort.txt', ':Consort', 'consort-install', 'consort-keys', 'consort-approval', 'consort-trouble' }) do
    T.eq(true, tags[tag], tag)
  end
  local help = table.concat(vim.fn.readfile(plugin .. '/doc/consort.txt'), '\n')
  for tag in help:gmatch('|([%w:()<>+_-]+)|') do
    local found = pcall(vim.cmd.help, { args = { tag }, mods = { silent = true } })
    pcall(vim.cmd.helpclose)
    T.eq(true, tags[tag] or found, '|' .. tag .. '|')
  end
end)

T.it('every command of the chapter about trouble is there', function()
  local help = table.concat(vim.fn.readfile(plugin .. '/doc/consort.txt'), '\n')
  local chapter = help:match('%*consort%-trouble%*(.*)')
  local found = 0
  for name in chapter:gmatch('\n    :(%a+)') do
    found = found + 1
    T.eq(2, vim.fn.exists(':' .. name), name)
  end
  T.eq(true, found > 3, chapter)
end)

T.it('every subcommand of the list can be completed, and has its <Plug> map', function()
  local names = vim.fn.getcompletion('Consort ', 'cmdline')
  for _, name in ipairs({ 'eval', 'macroexpand', 'profile', 'reload', 'undo', 'describe', 'disassemble', 'trace', 'repl', 'restart', 'interrupt', 'log', 'test', 'hints' }) do
    T.eq(true, vim.list_contains(names, name), name)
  end
  T.eq({ 'buffer', 'comment', 'cursor', 'form', 'region', 'top' }, vim.fn.sort(vim.fn.getcompletion('Consort eval ', 'cmdline')))
  local plugs = {}
  for _, map in ipairs(require('consort.maps').maps) do plugs[map.plug] = true end
  for _, name in ipairs(names) do
    -- `eval` and `structure` have one map for each of their words.
    local there = plugs[name] or vim.iter(plugs):any(function(plug) return vim.startswith(plug, name .. '-') end)
    T.eq(true, there or name == 'structure', name)
  end
  for name in pairs(plugs) do
    T.eq(true, vim.iter({ 'n', 'x', 'o' }):any(function(mode) return vim.fn.maparg('<Plug>(consort-' .. name .. ')', mode) ~= '' end), name)
  end
end)

T.it('a backtrace begins with the program\'s own frame', function()
  local of_program = require('consort.frames').of_program
  local function frame(name, role) return { text = '(' .. name .. ')', name = name, role = role } end
  local function names(...) return vim.iter(of_program({ ... })):map(function(one) return one.name end):totable() end
  local price, error = frame('SHOP:PRICE', 'program'), frame('ERROR', 'signal')
  T.eq({ 'SHOP:PRICE', 'ERROR' }, names(error, frame('SB-KERNEL:ASSERT-ERROR', 'internal'), price, error))
  T.eq({ '/', 'SHOP:PRICE' }, names(frame('/', 'standard'), price))
  T.eq({ 'ERROR' }, names(error))
end)

T.it('each line of a report that shows a frame is known', function()
  local frame = { text = '(SHOP:PRICE "a\\nb")', name = 'SHOP:PRICE', role = 'program' }
  local lines, shown = require('consort.eval').report({
    status = 'error', values = {}, warnings = {}, stdout = '  0  (NOT:A-FRAME)', stderr = '',
    error = { type = 'ERROR', message = 'two\n  0  (lines)', backtrace = { frame } },
  })
  T.eq('  0  ' .. frame.text, lines[3])
  T.eq({ [3] = frame }, shown)
end)

T.it('a question stands where the cursor is not, and stays there as long as it can', function()
  local side = require('consort.approve').side
  T.eq('top', side('top', 8, 20, 30))
  T.eq('bottom', side('top', 8, 5, 30))
  T.eq('bottom', side('bottom', 8, 15, 30)) -- both sides are free
  T.eq('top', side('bottom', 8, 25, 30))
end)

T.it('a value that does not fit ends in an ellipsis, by its width on the screen', function()
  local fit = require('consort.inline').fit
  T.eq('abc', fit('abc', 3))
  T.eq('ab…', fit('abcd', 3))
  T.eq('漢…', fit('漢字漢字', 4))
  T.eq('é𝄞…', fit('é𝄞é𝄞', 3))
end)

T.it('without its key an action is named by its command', function()
  local key = require('consort.maps').key
  vim.cmd('enew')
  T.eq({ ':Consort eval buffer', ':Consort undo' }, { key('eval-buffer'), key('undo') })
end)

T.it('the outcome of a run of tests counts those that were skipped', function()
  local function said(...)
    require('consort.tests').report({ tests = vim.iter({ ... }):map(function(status) return { name = 'T', status = status, failures = {} } end):totable() })
    return last_said():gsub('^[Cc]onsort: ', '')
  end
  T.eq('all 2 tests passed', said('passed', 'passed'))
  T.eq('1 of 2 tests passed, 1 skipped', said('passed', 'skipped'))
  T.eq('the test was skipped', said('skipped'))
  T.eq('no test was run', said())
end)

-- The end of a longer message, which says what to do, is only in `:messages`.
T.it('the messages of the plugin fit a terminal of 80 columns', function()
  local count = 0
  for _, file in ipairs(vim.fn.glob(plugin .. '/lua/consort/*.lua', false, true)) do
    for text in table.concat(vim.fn.readfile(file), '\n'):gmatch("say%(%(?'([^'\n]*)'") do
      count = count + 1
      -- Neovim keeps 12 columns for the keys of an unfinished command.
      T.eq(true, vim.fn.strdisplaywidth('Consort: ' .. text) <= 80 - 12, text)
    end
  end
  T.eq(true, count > 50, tostring(count))
  local names = require('consort.systems').names
  require('consort.systems').names = function() return { 'telegraph' } end
  local said = require('consort.systems').package_missing({ code = 1, message = 'Package TELEGRAPH not found', data = { kind = 'package-not-found' } })
  require('consort.systems').names = names
  local step = 'no package TELEGRAPH yet: :Consort load telegraph, or '
  T.eq(true, vim.startswith(said or '', step), said)
  T.eq(true, vim.fn.strdisplaywidth('Consort: ' .. step .. '\\eb') <= 80 - 12, said)
end)

T.it('both errors about a package that is not there yet say what to do', function()
  for _, message in ipairs({ 'The package SHOP does not exist yet.', 'Package SHOP not found' }) do
    local said = require('consort.systems').package_missing({ code = 1, message = message, data = { kind = 'package-not-found' } })
    T.eq(true, vim.startswith(said or '', 'no package SHOP yet: '), said)
  end
end)

T.it('a package that is not there yet is loaded by the system of the file', function()
  local namespace = vim.api.nvim_create_namespace('offline')
  local told = { lnum = 0, col = 0, code = 'system-not-loaded', message = 'not loaded', user_data = { lsp = { data = { system = 'shop/tests' } } } }
  vim.diagnostic.set(namespace, 0, { told })
  local said = require('consort.systems').package_missing({ code = 1, message = 'Package SHOP-TESTS not found', data = { kind = 'package-not-found' } })
  vim.diagnostic.reset(namespace, 0)
  T.eq(true, vim.startswith(said or '', 'no package SHOP-TESTS yet: :Consort load shop/tests, or '), said)
end)

T.it('a run without tests says why', function()
  require('consort.tests').report({ status = 'error', tests = {}, error = { type = 'SYSTEM-NOT-FOUND', message = 'There is no system "nope".' } })
  T.eq('Consort: no test was run: There is no system "nope".', last_said())
end)

T.it('a word that is no choice of a subcommand is answered with those there are', function()
  for command, want in pairs({
    ['structure'] = '`:Consort structure` takes slurpForward, slurpBackward,',
    ['structure foo'] = 'moveUp, moveDown, and not foo',
    ['macroexpand foo'] = '`:Consort macroexpand` takes one, step, full, compiler, and not foo',
    ['profile foo'] = '`:Consort profile` takes cpu, time, alloc, and not foo',
    ['references foo'] = 'specializes, mentions, and not foo',
  }) do
    vim.cmd('Consort ' .. command)
    T.eq(true, last_said():find(want, 1, true) ~= nil, last_said())
  end
end)

T.it('keys and messages are broken into lines by the width of their window', function()
  local hints = require('consort.hints')
  T.eq({ '0 restart · a abort', 'q quit' }, hints.keys('0 restart · a abort · q quit', 24))
  T.eq({ 'one two', 'three' }, hints.wrapped('one two three', 10))
  T.eq({ 'x', '漢字漢', '字 y' }, hints.wrapped('x 漢字漢字 y', 6))
  T.eq({ '  as it is ' }, hints.wrapped('  as it is ', 20))
end)

T.it('a float whose text is replaced has room for wrapped lines', function()
  local float = require('consort.float')
  local buf, win = float.open({ 'short' }, { title = 'A float' })
  float.replace(buf, ('long '):rep(vim.o.columns))
  T.eq(true, vim.api.nvim_win_get_height(win) >= 5, vim.api.nvim_win_get_height(win))
  vim.api.nvim_win_close(win, true)
end)

T.it('systems are found in a definition of them', function()
  T.eq({ 'shop', 'shop/tests', 'b.c' }, require('consort.systems').defined('(defsystem "shop")\n(asdf:defsystem #:shop/tests)\n( defsystem :B.C)'))
end)

T.it('a profile is a table and a tree, in which a function that calls itself is one line', function()
  local function node(name, percent, children) return { ['function'] = name, percent = percent, samples = percent, own = 0, children = children } end
  local lines, functions = require('consort.views').profile_lines({
    profile = {
      status = 'ok', mode = 'cpu', samples = 100, seconds = 1, bytes = 0, values = { '3' },
      rows = { { ['function'] = '(SETF F)', samples = 100, self_percent = 100, cumulative_percent = 100, inclusive_percent = 100 } },
      tree = { node('F', 100, { node('F', 60, { node('F', 50, { node('G', 50, {}) }) }), node('H', 0.1, {}) }) },
    },
  })
  T.eq({ '1.00 s, 100 samples', '⇒ 3', '', '  self   total  function', '100.0%  100.0%  (SETF F)', '', 'Calls', '100.0%  ' .. ('█'):rep(20) .. '  F', ' 50.0%  ' .. ('█'):rep(10) .. (' '):rep(10) .. '    G' }, lines)
  T.eq({ [5] = '(SETF F)', [8] = 'F', [9] = 'G' }, functions)
end)

T.it('without the program and without Lisp, health says what to install', function()
  local path = vim.env.PATH
  local function health()
    vim.cmd('silent checkhealth consort')
    local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    vim.cmd('bwipeout!')
    return text
  end
  vim.env.PATH = workspace
  vim.lsp.enable('consort')
  vim.cmd('noautocmd edit ' .. file .. ' | set filetype=lisp')
  vim.cmd('Consort eval form')
  T.eq(true, last_said():find('`consort` is not on PATH; `:checkhealth consort`', 1, true) ~= nil, last_said())
  vim.cmd('bwipeout!')
  vim.lsp.enable('consort', false)
  T.eq(true, health():find('the program `consort` is not on PATH', 1, true) ~= nil)
  local consort = vim.fn.fnamemodify(vim.fn.exepath(vim.fn.split(path, ':')[1] .. '/consort'), ':p:h')
  vim.env.PATH = consort
  local text = health()
  vim.env.PATH = path
  for _, want in ipairs({ 'apt install sbcl', '`consort doctor` found a problem', 'the language server is not enabled' }) do
    T.eq(true, text:find(want, 1, true) ~= nil, text)
  end
end)

T.it('the package of a text is that of its last IN-PACKAGE', function()
  local function package_of(...)
    vim.cmd.enew({ bang = true })
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { ... })
    vim.cmd('$')
    return require('consort.repl').package_here()
  end
  for line, name in pairs({
    ['(in-package shop)'] = 'SHOP',
    ['(in-package :shop)'] = 'SHOP',
    ['(in-package #:shop)'] = 'SHOP',
    ['(in-package KEYWORD:shop)'] = 'SHOP',
    ['(CL:IN-PACKAGE "shop")'] = 'shop',
    ['( in-package :shop )'] = 'SHOP',
    ['(in-package :|My Shop|)'] = 'My Shop',
    ['(in-package #:my\\-shop)'] = 'MY-SHOP',
    ['(in-package "a \\"shop\\"")'] = 'a "shop"',
    ['(in-package :shop);'] = 'SHOP',
  }) do
    T.eq(name, package_of(line, '(list)'), line)
  end
  T.eq('SHOP', package_of('(in-package', '  :shop)', '(list)'))
  T.eq('SHOP', package_of('(in-package :shop)', ';; (in-package :other)', '(in-packages :other)'))
  T.eq(nil, package_of('(list)'))
end)

T.it('the REPL knows when what is typed is whole', function()
  local is_whole = require('consort.repl').is_whole
  for _, text in ipairs({ '1', '(a)', '(a "(")', '(a #\\( b)', '(a |(| b)', '(a) ; (', '(a #| ( #| |# |# b)', 'a)', '(a \\( b)', '"a\\"b"' }) do
    T.eq(true, is_whole(text), text)
  end
  for _, text in ipairs({ '(a', '"a', '(a ")', '(a ; )', '#| a', '|a', '(a #\\) b', '#| #| |#', '"a\\"' }) do
    T.eq(false, is_whole(text), text)
  end
end)

T.finish()
