-- nvim --headless -u NONE -i NONE -l repl_test.lua: the REPL's buffer: what is typed there stays,
-- whatever comes meanwhile.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local S = require('stand_in')
S.use()
local questions, answer, lines = S.questions, S.answer, S.lines

local said, last, forget = T.notifications()
local repl = require('consort.repl')
vim.env.XDG_STATE_HOME = vim.fn.tempname()

local buf
local function shown() return lines(buf) end
local function line() return shown()[#shown()] end
local function keys(text) vim.api.nvim_feedkeys(vim.keycode(text), 'x!', false) end
local function value(text, package) return { status = 'ok', values = { text }, warnings = {}, package = package or 'COMMON-LISP-USER' } end
--- Opens an empty REPL, the only window.
local function open()
  if buf and vim.api.nvim_buf_is_valid(buf) then vim.api.nvim_buf_delete(buf, { force = true }) end
  forget()
  S.window('(a)')
  repl.open()
  buf = vim.api.nvim_get_current_buf()
  vim.cmd.only()
  vim.cmd.stopinsert()
end
local function evaluated(code)
  keys(('A%s<CR><Esc>'):format(code))
  answer(1, 'eval', value('1'))
end

T.it('keys that need no Lisp text are there', function()
  open()
  keys('\\g')
  answer(1, 'threads', {})
  T.eq('Consort: nothing is stopped', last())
  keys('\\i')
  answer(1, 'interrupt', { interrupted = 0 })
  T.eq('Consort: nothing was running', last())
end)

T.it('what is typed comes back behind the entries of the history, and so does an entry that was changed', function()
  open()
  keys('A(half<C-n><Esc>')
  T.eq('CL-USER> (half', line())
  keys('A<C-p><Esc>')
  T.eq('CL-USER> (half', line(), 'there is no history')
  open()
  evaluated('(one)')
  evaluated('(two)')
  keys('A(half<C-p><Esc>')
  T.eq('CL-USER> (two)', line())
  keys('A changed<C-p><Esc>')
  T.eq('CL-USER> (one)', line())
  keys('A<C-n><Esc>')
  T.eq('CL-USER> (two) changed', line())
  keys('A<C-n><C-n><Esc>')
  T.eq('CL-USER> (half', line())
  keys('A<C-p><Esc>')
  -- What is evaluated is in the history as it was.
  keys('A<CR><Esc>')
  answer(1, 'eval', value('1'))
  keys('A<C-p><C-p><Esc>')
  T.eq('CL-USER> (two)', line())
  keys('A<C-n><C-n><Esc>')
  T.eq('CL-USER> ', line())
end)

T.it('the cursor stays in what is typed while an evaluation ends, and with a person who reads above', function()
  open()
  keys('A(one)<CR>(typed)<Esc>0ll')
  T.eq('(typed)', line())
  answer(1, 'eval', value('1'))
  T.eq({ 'CL-USER> (typed)', #'CL-USER> ' + 2 }, { line(), vim.fn.col('.') - 1 })
  keys('A<CR><Esc>gg')
  answer(1, 'eval', value('2'))
  T.eq(1, vim.fn.line('.'))
  -- Another window follows the end.
  keys('GA(three)<CR><Esc>')
  local win = vim.api.nvim_get_current_win()
  vim.cmd.new()
  vim.api.nvim_win_set_cursor(win, { 1, 0 })
  answer(1, 'eval', value('3'))
  T.eq(#shown(), vim.api.nvim_win_get_cursor(win)[1])
end)

T.it('a form is gone on with at the prompt, wherever the cursor was', function()
  open()
  keys('A(list 1<Esc>gg')
  local first = shown()[1]
  keys('<CR>2)<Esc>')
  T.eq({ first, 2 }, { shown()[1], vim.fn.line('$') - 1 })
  T.eq('2)', vim.trim(line()))
end)

T.it('an interrupt of nothing says so', function()
  open()
  keys('A<C-c><Esc>')
  T.eq({}, questions)
  T.eq('Consort: no evaluation of the REPL is running', last())
end)

T.it('a buffer that was deleted is made anew', function()
  open()
  vim.cmd('bdelete! ' .. buf)
  repl.open()
  buf = vim.api.nvim_get_current_buf()
  T.eq('CL-USER> ', line())
  vim.cmd.stopinsert()
  evaluated('(again)')
  T.eq('CL-USER> ', line())
end)

T.it('after a restart the prompt names the package of the new image, and what is typed stays', function()
  local function state(image) vim.lsp.config.consort.handlers['consort/imageState'](nil, { state = 'ready', image = image, lisp = 'SBCL' }, { client_id = 1 }) end
  state('one')
  open()
  keys('A(in-package :shop)<CR><Esc>')
  answer(1, 'eval', value('1', 'SHOP'))
  keys('A(half<Esc>')
  state('one')
  T.eq('SHOP> (half', line())
  state('two')
  T.eq({ '; a new image is running', 'CL-USER> (half' }, vim.list_slice(shown(), #shown() - 1))
  -- During an evaluation too.
  keys('0DA(in-package :shop)<CR><Esc>')
  open()
  keys('A(in-package :shop)<CR><Esc>')
  answer(1, 'eval', value('1', 'SHOP'))
  keys('A(loop)<CR><Esc>')
  state('three')
  answer(1, 'eval', nil, { code = 1, message = 'the image has ended' })
  T.eq('CL-USER> ', line())
end)

T.it('code is evaluated also where the history cannot be kept, which is said once', function()
  vim.env.XDG_STATE_HOME = '/dev/null'
  open()
  evaluated('(one)')
  evaluated('(two)')
  T.eq('1', shown()[#shown() - 1])
  T.eq(1, #said)
  T.eq(true, last():find('the history of the REPL is not kept: ', 1, true) ~= nil and last():find('/dev/null', 1, true) ~= nil, last())
end)

T.it('above the first in-package the REPL opens in the package of that', function()
  S.window('; a comment', '(in-package :shop)', '(a)', '(in-package :other)')
  vim.bo.filetype = 'lisp'
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  repl.open()
  vim.cmd.stopinsert()
  T.eq(true, questions[1].arguments.code:find('enter-package "SHOP"', 1, true) ~= nil, vim.inspect(questions))
  answer(1, 'eval', value('1', 'SHOP'))
end)

T.it('what is typed after a call was prepared replaces its first argument', function()
  for template, typed in pairs({ ['(f one two)'] = '(f "hi" two)', ['(f x)'] = '(f "hi")', ['(f)'] = '(f"hi")' }) do
    open()
    S.window('(f)')
    repl.call()
    answer(1, 'callTemplate', { text = template, name = 'f', arguments = vim.split(template:match('^%(f ?(.*)%)$'), ' ', { trimempty = true }) })
    local over
    vim.schedule(function() over = true end)
    T.wait('the next turn', function() return over end)
    keys((template == '(f)' and 'i' or '') .. '"hi"<Esc>')
    T.eq('CL-USER> ' .. typed, line())
  end
end)

T.it('what is typed after the prompt has become longer stands behind it', function()
  open()
  vim.api.nvim_buf_delete(buf, { force = true })
  S.window('(in-package :a-long-package)')
  vim.bo.filetype = 'lisp'
  repl.open()
  buf = vim.api.nvim_get_current_buf()
  function _G.entered() answer(1, 'eval', value('T', 'A-LONG-PACKAGE')) end
  keys('A<Cmd>lua entered()<CR>(+ 1 2)<Esc>')
  T.eq('A-LONG-PACKAGE> (+ 1 2)', line())
end)

T.it('a prepared call stays selected when the prompt becomes longer', function()
  open()
  S.window('(in-package :another-long-one)')
  vim.bo.filetype = 'lisp'
  repl.call()
  answer(1, 'callTemplate', { text = '(f one two)', name = 'f', arguments = { 'one', 'two' } })
  local over
  vim.schedule(function() over = true end)
  T.wait('the next turn', function() return over end)
  answer(1, 'eval', value('T', 'ANOTHER-LONG-ONE'))
  keys('"hi"<Esc>')
  T.eq('ANOTHER-LONG-ONE> (f "hi" two)', line())
end)

T.finish()
