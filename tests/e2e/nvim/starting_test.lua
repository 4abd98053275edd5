-- nvim --headless -u NONE -i NONE -l starting_test.lua: where a server begins, and what a key does
-- where there is none: buffers without a file, files in no directory, other names, ended servers.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({ '(+ 1 2)' })
local said, last_said, forget = T.notifications()
local inline = require('consort.inline')
local function shown()
  local marks = vim.api.nvim_buf_get_extmarks(0, inline.namespace, 0, -1, { details = true })
  return vim.iter(marks):map(function(mark) return mark[4].virt_text and vim.trim(mark[4].virt_text[1][1]) end):totable()
end
local function client() return vim.lsp.get_clients({ bufnr = 0, name = 'consort' })[1] end
--- Evaluates the form at the cursor by its key, and waits for the value.
local function evaluates(value)
  inline.clear(0)
  T.press('\\ee')
  T.wait(value, function() return vim.list_contains(shown(), '⇒ ' .. value) end, function() return { shown(), last_said() } end)
end

--- Ends the server of the buffer at once.
local function kill()
  local id = T.wait('the client', client).id
  client():stop(true)
  T.wait('the end', function() return vim.lsp.get_client_by_id(id) == nil end)
end

vim.lsp.enable('consort')
vim.fn.chdir(workspace)

T.it('a buffer without a file: the key says at once what to do', function()
  vim.bo.filetype = 'lisp'
  vim.fn.setline(1, '(list 1 2)')
  T.press('\\ee')
  T.eq('Consort: no file: `:w NAME.lisp`, or use `:Consort scratch`', last_said())
end)

T.it('without a Lisp file a command starts the server of the current directory', function()
  for _, one in ipairs(vim.lsp.get_clients()) do one:stop() end
  T.wait('the end of the server', function() return #vim.lsp.get_clients() == 0 end)
  vim.cmd.enew()
  vim.fn.writefile({ '(defsystem "here")' }, workspace .. '/here.asd')
  T.eq({ 'here' }, vim.fn.getcompletion('Consort load ', 'cmdline'))
  forget()
  vim.cmd('Consort scratch')
  T.eq('consort://scratch', vim.api.nvim_buf_get_name(0), last_said())
  T.eq(workspace, T.wait('the client', client).root_dir)
end)

T.it('the scratch buffer has the keys, also where another Lisp buffer was the current one', function()
  vim.cmd('bwipeout! consort://scratch')
  vim.cmd.edit(file)
  T.wait('the client', client)
  vim.cmd('Consort scratch')
  T.wait('the client', client)
  vim.fn.append('$', '(list 3 4)')
  vim.cmd.normal({ 'G', bang = true })
  evaluates('(3 4)')
  -- Also with a server that was started again.
  kill()
  evaluates('(3 4)')
  vim.cmd('bwipeout!')
  vim.cmd.edit({ file, bang = true })
  evaluates('3')
end)

T.it('a buffer that gets a file, and another name, is the document of that', function()
  vim.cmd.enew()
  vim.bo.filetype = 'lisp'
  vim.fn.setline(1, '(list 5 6)')
  vim.cmd.write('first.lisp')
  evaluates('(5 6)')
  vim.cmd.file('second.lisp')
  vim.fn.setline(1, '(list 7 8)')
  evaluates('(7 8)')
  vim.cmd.saveas('third.lisp')
  vim.fn.setline(1, '(list 9 10)')
  evaluates('(9 10)')
end)

T.it('a file in a directory that is not made yet', function()
  local alone = vim.fs.normalize(vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname()))) .. '/alone'
  vim.fn.mkdir(alone)
  vim.cmd.edit({ alone .. '/not/there/new.lisp', bang = true })
  vim.fn.setline(1, '(list 11)')
  evaluates('(11)')
  T.eq(alone, client().root_dir)
  client():stop()
  T.run({ 'consort', 'stop' }, { cwd = alone })
end)

T.it('the source of an installed library is in the image from which it was opened', function()
  vim.cmd.edit(file)
  T.wait('the client', client)
  local from = client().root_dir
  local library = vim.fs.dirname(workspace) .. '/quicklisp/dists/one/library.lisp'
  vim.fn.mkdir(vim.fs.dirname(library), 'p')
  vim.fn.writefile({ '(defsystem "library")' }, vim.fs.dirname(library) .. '/library.asd')
  vim.fn.writefile({ '(+ 3 4)' }, library)
  vim.cmd.edit(library)
  evaluates('7')
  T.eq({ from, 1 }, { client().root_dir, #vim.lsp.get_clients({ name = 'consort' }) })
  vim.cmd('bwipeout!')
  -- Where the person comes from nowhere, it is a workspace like any other.
  require('consort.client').entered({})
  T.eq(vim.fs.dirname(library), require('consort.start').workspace_of_file(library))
  vim.fn.delete(vim.fs.dirname(workspace) .. '/quicklisp', 'rf')
  vim.cmd.edit(file)
end)

T.it('the REPL is in the image of the file that it was opened from', function()
  local other = vim.fs.dirname(workspace) .. '/other'
  vim.fn.mkdir(other .. '/.git', 'p')
  local function says(directory)
    vim.api.nvim_feedkeys(vim.keycode('A(sb-posix:getcwd)<CR><Esc>'), 'x!', false)
    local wanted = ('"%s"'):format(directory)
    T.wait(wanted, function() return vim.fn.getline(vim.fn.line('$') - 1) == wanted end, function() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end)
  end
  for _, directory in ipairs({ workspace, other, workspace }) do
    vim.cmd.edit({ directory .. '/fixture.lisp', bang = true })
    T.wait('the client', client)
    T.press('\\s')
    vim.cmd.stopinsert()
    says(directory)
    -- Also when another workspace was visited meanwhile.
    vim.cmd.wincmd('p')
    vim.cmd.edit({ (directory == other and workspace or other) .. '/fixture.lisp', bang = true })
    T.wait('the client', client)
    vim.cmd.wincmd('p')
    says(directory)
    vim.cmd.close()
  end
  vim.iter(vim.lsp.get_clients()):find(function(one) return one.root_dir == other end):stop()
  T.run({ 'consort', 'stop' }, { cwd = other })
end)

T.it('the prompt of the REPL names the package that each image reads in', function()
  local other = vim.fs.dirname(workspace) .. '/other'
  local function visit(directory)
    vim.cmd.edit({ directory .. '/fixture.lisp', bang = true })
    T.press('\\s')
    vim.cmd.stopinsert()
  end
  local function prompts(package)
    T.wait(package, function() return vim.fn.getline('$'):find('^' .. package .. '> ') end, function() return vim.fn.getline('$') end)
  end
  visit(other)
  vim.api.nvim_feedkeys(vim.keycode('A(defpackage :there (:use :cl)) (in-package :there)<CR><Esc>'), 'x!', false)
  prompts('THERE')
  vim.cmd.close()
  visit(workspace)
  prompts('CL%-USER')
  vim.cmd.close()
  visit(other)
  prompts('THERE')
  -- Also in a new buffer.
  vim.cmd('bwipeout!')
  visit(other)
  prompts('THERE')
  vim.cmd.close()
  vim.iter(vim.lsp.get_clients()):find(function(one) return one.root_dir == other end):stop()
  T.wait('the end', function() return #vim.lsp.get_clients() == 1 end)
  T.run({ 'consort', 'stop' }, { cwd = other })
end)

T.it('what differs from the image: nothing, in a file that was loaded and in one that never was', function()
  local function says()
    forget()
    vim.cmd('Consort changed')
    local wanted = [[Consort: nothing differs; a file that was never loaded needs \eb]]
    T.wait(wanted, function() return last_said() == wanted end, last_said)
  end
  vim.cmd.edit({ file, bang = true })
  T.wait('the client', client)
  says()
  vim.fn.setline(1, '(defun loaded () 1)')
  T.press('\\eb')
  T.answered()
  says()
  vim.cmd.edit({ bang = true })
end)

local function name_of(path) return vim.fs.dirname(workspace) .. '/' .. path end
local function command(...) vim.lsp.config('consort', { cmd = { ... } }) end
local function all() return vim.lsp.get_clients({ name = 'consort', _uninitialized = true }) end

T.it('a server that was ended is started again by a key, in each of its buffers', function()
  vim.cmd.edit({ workspace .. '/second.lisp', bang = true })
  vim.fn.setline(1, '(+ 10 2)')
  T.wait('the client', client)
  vim.cmd.edit({ file, bang = true })
  evaluates('3')
  kill()
  evaluates('3')
  vim.cmd.buffer({ workspace .. '/second.lisp', bang = true })
  evaluates('12')
end)

T.it('a name that is refused leaves the buffer with its server', function()
  vim.cmd.edit({ file, bang = true })
  T.wait('the client', client)
  T.eq(false, (pcall(vim.cmd.file, workspace .. '/second.lisp')))
  T.wait('the client', client)
  evaluates('3')
end)

T.it('the REPL of a workspace whose server has ended is not in the image of another one', function()
  local other = name_of('other')
  vim.cmd.edit({ other .. '/fixture.lisp', bang = true })
  T.press('\\s')
  vim.cmd.stopinsert()
  vim.api.nvim_feedkeys(vim.keycode('A(defpackage :there (:use :cl)) (in-package :there)<CR><Esc>'), 'x!', false)
  T.wait('the package', function() return vim.fn.getline('$'):find('^THERE> ') end, function() return vim.fn.getline('$') end)
  vim.iter(all()):find(function(one) return one.root_dir == other end):stop(true)
  T.wait('the new session', function() return #all() == 1 and vim.fn.getline('$'):find('^CL%-USER> ') end, function() return vim.fn.getline('$') end)
  vim.api.nvim_feedkeys(vim.keycode('A(sb-posix:getcwd)<CR><Esc>'), 'x!', false)
  T.wait(other, function() return vim.fn.getline(vim.fn.line('$') - 1) == ('"%s"'):format(other) end, function() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end)
  vim.cmd.close()
end)

T.it('a server that cannot start: the key says so, and is of no other workspace', function()
  vim.cmd.edit({ name_of('other') .. '/fixture.lisp', bang = true })
  vim.fn.setline(1, '(list 12 13)')
  evaluates('(12 13)')
  command('false')
  kill()
  forget()
  T.press('\\ee')
  T.eq('Consort: the server ended at its start: `:checkhealth consort`', last_said())
  T.eq(nil, require('consort.client').of())
  command('consort', 'lsp')
end)

--- The shell's commands of a server that answers the first request with an error.
local refusing = (function()
  local answer = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no place for it"}}'
  return ("head -c 20 >/dev/null; printf 'Content-Length: %d\\r\\n\\r\\n%%s' '%s'; "):format(#answer, answer)
end)()

T.it('a server that refuses to start: the key says its reason, and nothing waits for it', function()
  command('sh', '-c', refusing .. 'exec sleep 600')
  forget()
  T.press('\\ee')
  T.eq('Consort: the server did not start: no place for it', last_said())
  T.wait('its end', function() return vim.iter(all()):all(function(one) return one.initialized end) end)
  vim.cmd.enew({ bang = true })
  vim.b.consort_root = name_of('other')
  forget()
  vim.cmd('Consort status')
  T.eq('Consort: the server did not start: no place for it', last_said())
  T.wait('its end', function() return vim.iter(all()):all(function(one) return one.initialized end) end)
  command('consort', 'lsp')
  vim.cmd.edit({ name_of('other') .. '/fixture.lisp', bang = true })
end)

T.it('the reason of a server that refuses to start is told as that of its workspace', function()
  local wanted, refused = vim.fn.tempname(), vim.fn.tempname()
  local function until_there(path) return ("until [ -e '%s' ]; do sleep 0.05; done; "):format(path) end
  -- Nobody waits for the server of the other workspace, which ends once its answer has been read.
  command('sh', '-c', until_there(wanted) .. ("trap 'touch \"%s\"; exit' TERM; "):format(refused) .. refusing .. 'while :; do sleep 0.05; done')
  for _, one in ipairs(all()) do one:stop(true) end
  T.wait('the end', function() return #all() == 0 end)
  vim.cmd.edit({ name_of('other') .. '/fixture.lisp', bang = true })
  T.wait('the start', function() return #all() == 1 end)
  command('sh', '-c', ("touch '%s'; "):format(wanted) .. until_there(refused) .. 'exit 1')
  forget()
  vim.cmd.edit({ file, bang = true })
  T.press('\\ee')
  T.eq('Consort: the server ended at its start: `:checkhealth consort`', last_said())
  local of_other = ('Consort: the server of %s did not start: no place for it'):format(vim.fn.fnamemodify(name_of('other'), ':~'))
  T.eq(true, vim.iter(said):any(function(one) return one[1] == of_other end), said)
  command('consort', 'lsp')
end)

T.it('a server that could not start leaves the other names of other workspaces', function()
  vim.cmd.edit({ file, bang = true })
  T.wait('the client', client)
  vim.cmd.saveas(workspace .. '/third-name.lisp')
  T.wait('the client', client)
end)

T.it('a server that could not start is started by the next key', function()
  vim.cmd.edit({ name_of('other') .. '/fixture.lisp', bang = true })
  vim.fn.setline(1, '(list 12 13)')
  evaluates('(12 13)')
  T.run({ 'consort', 'stop' }, { cwd = name_of('other') })
end)

T.it('a start that was not waited for is told as that, and is not made a second time', function()
  local function stop_all()
    for _, one in ipairs(all()) do one:stop(true) end
    T.wait('the end', function() return #all() == 0 end)
  end
  --- Returns what is said when CTRL-C is pressed while FN waits.
  local function interrupted(fn)
    local wait = vim.wait
    vim.wait = function() return false, -2 end
    forget()
    local ok, why = pcall(fn)
    vim.wait = wait
    return ok and last_said() or why
  end
  vim.cmd.edit({ file, bang = true })
  T.wait('the client', client)
  vim.cmd.enew({ bang = true })
  stop_all()
  command('sleep', '600')
  local told = {}
  for _ = 1, 2 do table.insert(told, interrupted(function() vim.cmd('Consort status') end)) end
  vim.cmd.edit({ workspace .. '/fourth.lisp', bang = true })
  T.wait('the file', function() return vim.tbl_get(all(), 1, 'attached_buffers', vim.api.nvim_get_current_buf()) end)
  table.insert(told, interrupted(function() T.press('\\ee') end))
  local count = #all()
  stop_all()
  command('consort', 'lsp')
  local starting = 'Consort: it is still starting'
  T.eq({ starting, starting, starting }, told)
  T.eq(1, count)
end)

T.leave(workspace)
T.finish()
