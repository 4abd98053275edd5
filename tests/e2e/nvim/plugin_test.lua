-- nvim --headless -u NONE -i NONE -l plugin_test.lua: the plugin in a real editor, with a real
-- image. Tests of the plugin without a server are in offline_test.lua.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defun double (x)',
  '  (* 2 x))',
  '',
  '(list (double 21) "𝄞")',
  '',
  '(error "no ~a" :way)',
  '',
  '(when (oddp 3)',
  '  (when t (print :odd)))',
})

local _, last_said = T.notifications()
local inline = require('consort.inline')
local function shown()
  local texts = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, inline.namespace, 0, -1, { details = true })) do
    if mark[4].virt_text then table.insert(texts, { mark[2], vim.trim(mark[4].virt_text[1][1]) }) end
  end
  return texts
end
local function float_text()
  local win = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_config(win).relative == '' then return end
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
end
local function to(row, column) vim.api.nvim_win_set_cursor(0, { row, column }) end

vim.lsp.enable('consort')
vim.cmd.edit(file)
local buf = vim.api.nvim_get_current_buf()
T.it('it attaches, and the keys are there', function()
  T.wait('a client', function()
    local client = vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1]
    return client and client.initialized
  end)
  T.eq('Consort: evaluate the form', vim.fn.maparg('<LocalLeader>ee', 'n', false, true).desc)
  T.eq('Consort: the form', vim.fn.maparg('af', 'o', false, true).desc)
end)

T.it('code on the command line is evaluated in the image', function()
  vim.cmd('Consort eval (values (+ 40 2) :b)')
  local text = T.wait('the value', float_text)
  T.eq('⇒ 42\n⇒ :B', text)
  vim.api.nvim_feedkeys('q', 'x', false)
  T.eq(nil, float_text())
end)

T.it('a REPL evaluates over several lines, remembers, and shows the package', function()
  vim.cmd('Consort repl')
  local repl = vim.api.nvim_get_current_buf()
  local function text() return table.concat(vim.api.nvim_buf_get_lines(repl, 0, -1, false), '\n') end
  local function type_in(keys) vim.api.nvim_feedkeys(vim.keycode(keys), 'x!', false) end
  local function append(keys) type_in('A' .. keys .. '<Esc>') end
  append('(list 1')
  append('<CR>2)')
  T.eq(true, text():find('CL-USER> (list 1\n' .. (' '):rep(15) .. '2)', 1, true) ~= nil, text())
  append('<CR>')
  T.wait('the value', function() return text():find('\n(1 2)\nCL-USER> ', 1, true) end, text)
  append('(defpackage :other (:use :cl)) (in-package :other)<CR>')
  T.wait('the package', function() return vim.endswith(text(), '\nOTHER> ') end, text)
  append('(car 1)<CR>')
  T.wait('the error', function() return text():find('TYPE-ERROR', 1, true) and vim.endswith(text(), '\nOTHER> ') end, text)
  append('<C-p><C-p><C-p>')
  T.eq(true, vim.endswith(text(), 'OTHER> (list 1\n' .. (' '):rep(15) .. '2)'), text())
  append('<C-n><C-n><C-n>(in-package :cl-user)<CR>')
  T.wait('the package', function() return vim.endswith(text(), '\nCL-USER> ') end, text)
  vim.cmd('bwipeout! ' .. repl)
  T.eq(buf, vim.api.nvim_get_current_buf())
end)

T.it('in the REPL a name is completed by the server, in the package of the prompt', function()
  vim.cmd('Consort repl')
  local repl = vim.api.nvim_get_current_buf()
  local function text() return table.concat(vim.api.nvim_buf_get_lines(repl, 0, -1, false), '\n') end
  local function type_in(keys) vim.api.nvim_feedkeys(vim.keycode('A' .. keys .. '<Esc>'), 'x!', false) end
  type_in('(defpackage :completing (:use :cl)) (in-package :completing) (defun unheard-of-name () :found) (defun unheard-of-names ())<CR>')
  T.wait('the package', function() return vim.endswith(text(), '\nCOMPLETING> ') end, text)
  -- In the menu <C-n>, <C-p> and <CR> are the menu's.
  type_in('(unheard-of<C-x><C-o><C-n><C-p><CR>')
  T.eq(true, vim.endswith(text(), '\nCOMPLETING> (unheard-of-name'), text())
  type_in(')')
  T.eq(true, vim.endswith(text(), '\nCOMPLETING> (unheard-of-name)'), text())
  type_in('<CR>')
  T.wait('the value', function() return vim.endswith(text(), '\n:FOUND\nCOMPLETING> ') end, text)
  type_in("#'multiple-value-b<C-x><C-o>")
  T.eq(true, vim.endswith(text(), "COMPLETING> #'multiple-value-bind"), text())
  -- Printed text is not completed.
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  local before = text()
  type_in('<C-x><C-o>')
  T.eq(before, text())
  vim.cmd('bwipeout! ' .. repl)
  require('consort.client').execute('eval', { code = '(in-package :cl-user)' })
  T.answered()
end)

local approve = require('consort.approve')
local function question()
  return vim.iter(vim.api.nvim_list_wins()):find(function(win) return vim.api.nvim_win_get_config(win).relative ~= '' end)
end
local function asked_for(id, answered)
  coroutine.wrap(function()
    answered(approve.on_request(nil, { id = id, client = 'agent 1', tool = 'code_replace_function', what = 'Replace F', code = '(defun f ())' }, {}))
  end)()
  return T.wait('the question', question)
end

T.it('a question of the server for approval is asked with the code, and takes no key until the person goes there', function()
  local answer
  local here = vim.api.nvim_get_current_win()
  local win = asked_for(7, function(given) answer = given end)
  T.eq(here, vim.api.nvim_get_current_win())
  T.eq('Replace F\n\n(defun f ())', table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false), '\n'))
  vim.api.nvim_feedkeys(vim.keycode(':echo 1<CR>ggGjk1<Esc>'), 'x', false)
  T.eq(nil, answer)
  vim.api.nvim_feedkeys(vim.keycode('<LocalLeader>a'), 'xm', false)
  T.eq(win, vim.api.nvim_get_current_win())
  vim.api.nvim_feedkeys('s', 'xm', false)
  T.wait('the answer', function() return answer end)
  T.eq({ decision = 'allow-session' }, answer)
  T.eq(here, vim.api.nvim_get_current_win())
  T.eq(nil, question())
end)

T.it('a question is answered by a command too, and the next one needs a key of its own', function()
  local answers = {}
  local win = asked_for(1, function(given) answers[1] = given.decision end)
  asked_for(2, function(given) answers[2] = given.decision end)
  vim.api.nvim_win_close(win, true) -- closing the window gives no answer
  win = T.wait('the question again', function() return question() ~= win and question() end)
  vim.cmd('Consort answer perhaps')
  T.eq(true, last_said():find('there are allow, allow-session and deny', 1, true) ~= nil, last_said())
  vim.cmd('Consort answer allow')
  T.eq('allow', T.wait('an answer', function() return answers[1] end))
  T.wait('the next question', function() return question() ~= win and question() end)
  vim.cmd('Consort answer deny')
  T.eq('deny', T.wait('an answer', function() return answers[2] end))
  T.eq(nil, question())
  vim.cmd('Consort answer')
  T.eq(true, last_said():find('no agent waits', 1, true) ~= nil, last_said())
end)

T.it('the key to a question is there in every buffer while it waits, and stays in Lisp buffers', function()
  local answer
  local function key(buf) return vim.api.nvim_buf_call(buf, function() return vim.fn.maparg('<LocalLeader>a', 'n') end) end
  local notes = vim.api.nvim_create_buf(true, false)
  T.eq('', key(notes))
  asked_for(9, function(given) answer = given end)
  T.eq('<Plug>(consort-answer)', key(notes))
  local late = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_call(late, function() require('consort.maps').defaults(late) end)
  approve.on_over(nil, { id = 9 }, {})
  T.wait('its end', function() return answer end)
  T.eq('', key(notes))
  T.eq('<Plug>(consort-answer)', key(late))
  vim.cmd(('bwipeout! %d %d'):format(notes, late))
end)

T.it('a question that is over is taken away', function()
  local answer
  asked_for(8, function(given) answer = given end)
  vim.api.nvim_feedkeys(vim.keycode('<LocalLeader>a'), 'xm', false)
  approve.on_over(nil, { id = 8 }, {})
  T.wait('its end', function() return answer end)
  T.eq({ decision = 'deny' }, answer)
  T.eq(1, #vim.api.nvim_list_wins())
end)

T.it('health says what is well', function()
  vim.cmd('checkhealth consort')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  vim.cmd('bwipeout!')
  for _, want in ipairs({ 'the language server is enabled', 'attached, workspace ' .. workspace, 'found no problem' }) do
    T.eq(true, text:find(want, 1, true) ~= nil, text)
  end
end)

T.it('a form of a package that is not there yet says what to do', function()
  to(4, 1)
  vim.cmd('Consort eval top')
  T.wait('the message', function() return (last_said() or ''):find('no package FIXTURE yet', 1, true) end, last_said)
  to(1, 1)
  vim.cmd('Consort eval top')
  T.wait('the package', function() return vim.deep_equal({ { 0, '⇒ #<PACKAGE "FIXTURE">' } }, shown()) end, shown)
  vim.cmd('Consort clear')
end)

T.it('the value of a form stands where it ends, until it is edited', function()
  to(4, 1)
  vim.cmd('Consort eval top')
  T.wait('the definition', function() return vim.deep_equal({ { 4, '⇒ DOUBLE' } }, shown()) end, shown)
  to(7, 0)
  vim.cmd('Consort eval form')
  T.wait('the value', function() return vim.deep_equal({ { 4, '⇒ DOUBLE' }, { 6, '⇒ (42 "𝄞")' } }, shown()) end, shown)
  vim.api.nvim_buf_set_text(buf, 6, 7, 6, 7, { ' ' })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = buf })
  T.eq({ { 4, '⇒ DOUBLE' } }, shown())
  vim.cmd('silent undo')
  vim.cmd('Consort clear')
  T.eq({}, shown())
end)

T.it('on a closing parenthesis the form that it closes is evaluated', function()
  to(7, 16)
  T.eq(')', vim.fn.getline(7):sub(17, 17))
  vim.cmd('Consort eval form')
  T.wait('the value', function() return vim.deep_equal({ { 6, '⇒ 42' } }, shown()) end, shown)
  vim.cmd('Consort clear')
end)

T.it('the operator evaluates what a motion or a text object is', function()
  to(7, 8)
  vim.api.nvim_feedkeys(vim.keycode('<Plug>(consort-eval-operator)af'), 'x', false)
  T.wait('the value', function() return vim.deep_equal({ { 6, '⇒ 42' } }, shown()) end, shown)
  vim.cmd('Consort clear')
  to(7, 0)
  vim.api.nvim_feedkeys(vim.keycode('<Plug>(consort-eval-operator)_'), 'x', false)
  T.wait('the value of the line', function() return vim.deep_equal({ { 6, '⇒ (42 "𝄞")' } }, shown()) end, shown)
  vim.cmd('Consort clear')
end)

T.it('an error stands there too, with its backtrace a key away', function()
  to(9, 0)
  vim.cmd('Consort eval form')
  T.wait('the error', function() return vim.deep_equal({ { 8, '✗ SIMPLE-ERROR: no WAY' } }, shown()) end, shown)
  vim.cmd('Consort result')
  local text = T.wait('the report', float_text)
  T.eq(true, vim.startswith(text, 'SIMPLE-ERROR: no WAY\n  0  (ERROR '), text)
  vim.api.nvim_feedkeys('q', 'x', false)
  vim.cmd('Consort clear')
end)

T.it('macroexpansion goes further and back', function()
  to(11, 1)
  vim.cmd('Consort macroexpand')
  local function flat() return ((float_text() or ''):gsub('%s+', ' ')) end
  local function expect_text(what, want) T.wait(what, function() return flat() == want end, flat) end
  expect_text('the expansion', '(if (oddp 3) (when t (print :odd)))')
  to(2, vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]:find('(', 1, true) - 1)
  vim.api.nvim_feedkeys('+', 'x', false)
  expect_text('one more step', '(if (oddp 3) (if t (print :odd)))')
  vim.api.nvim_feedkeys('-', 'x', false)
  expect_text('the step before', '(if (oddp 3) (when t (print :odd)))')
  vim.api.nvim_feedkeys('q', 'x', false)
end)

T.it('a format string is expanded as the compiler does it, and what has neither is said', function()
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { '(format nil "~a!" 1)' })
  to(13, 1)
  vim.cmd('Consort macroexpand compiler')
  local text = T.wait('the expansion', float_text)
  T.eq(true, text:find("#'(lambda", 1, true) ~= nil and text:find('(princ ', 1, true) ~= nil, text)
  vim.api.nvim_feedkeys('q', 'x', false)
  vim.cmd('silent undo')
  to(7, 1)
  vim.cmd('Consort macroexpand compiler')
  T.wait('the word', function() return (last_said() or ''):find('no compiler macro and no format string', 1, true) end, last_said)
end)

T.it('a whole buffer has its value at its last line', function()
  vim.cmd('Consort clear')
  vim.cmd('Consort eval buffer')
  T.wait('the error of line 9', function() return vim.deep_equal({ { 11, '✗ SIMPLE-ERROR: no WAY' } }, shown()) end, shown)
  vim.cmd('Consort clear')
  vim.cmd('1,7Consort eval')
  T.wait('the value', function() return vim.deep_equal({ { 6, '⇒ (42 "𝄞")' } }, shown()) end, shown)
  vim.cmd('Consort clear')
end)

T.it('semantic tokens are shown by Neovim itself', function()
  local function types(row, column)
    local tokens = vim.lsp.semantic_tokens.get_at_pos(buf, row, column) or {}
    return vim.tbl_map(function(token) return token.type end, tokens)
  end
  -- DOUBLE in `(list (double 21) ...)`, which the image knows as a function.
  T.wait('the token', function() return vim.list_contains(types(6, 8), 'function') end, function() return types(6, 8) end)
end)

T.it('code lenses are shown by Neovim itself, and run', function()
  vim.api.nvim_buf_set_lines(buf, -1, -1, false, { '', '(fiveam:test a-test (fiveam:is (= 1 2)))' })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = buf })
  local lenses = T.wait('a lens', function()
    local lenses = vim.lsp.codelens.get(buf)
    return #lenses > 0 and lenses
  end)
  T.eq('consort.runTestAtPoint', lenses[1].command.command)
  T.eq(13, lenses[1].range.start.line)
  vim.cmd('silent undo')
end)

T.it('inlay hints are put on and off, where the server has them', function()
  local client = vim.lsp.get_clients({ name = 'consort' })[1]
  vim.cmd('Consort hints')
  if client:supports_method('textDocument/inlayHint', buf) then
    T.eq(true, vim.lsp.inlay_hint.is_enabled({ bufnr = buf }))
    vim.cmd('Consort hints')
    T.eq(false, vim.lsp.inlay_hint.is_enabled({ bufnr = buf }))
  else
    T.eq(true, last_said():find('gives no inlay hints', 1, true) ~= nil, last_said())
  end
end)

T.it('who refers to a name is in the quickfix list, by kind and by calls', function()
  local function found()
    return vim.tbl_map(function(item) return { item.lnum, item.col, item.text } end, vim.fn.getqflist())
  end
  to(7, 8)
  vim.cmd('Consort references calls')
  T.wait('the calls', function() return vim.deep_equal({ { 7, 8, 'calls: (list (double 21) "𝄞")' } }, found()) end, found)
  vim.cmd.cclose()
  vim.fn.setqflist({})
  vim.cmd('Consort hierarchy callers')
  T.wait('the callers', function() return #found() == 1 and found()[1][1] == 7 end, found)
  vim.cmd.cclose()
end)

T.it('the page about a name is opened', function()
  local open, opened = vim.ui.open, nil
  vim.ui.open = function(url) opened = url end
  to(7, 1)
  vim.cmd('Consort hyperspec')
  T.wait('the page', function() return opened and vim.endswith(opened, 'Body/a_list.htm') end, function() return opened or last_said() end)
  vim.ui.open = open
end)

T.it('on an opening parenthesis the cursor is in its list', function()
  to(7, 6)
  vim.cmd.normal('yaf')
  T.eq('(double 21)', vim.fn.getreg('"'))
  vim.cmd('Consort structure slurpForward')
  T.eq('(list (double 21 "𝄞"))', vim.fn.getline(7))
  T.eq({ 7, 6 }, vim.api.nvim_win_get_cursor(0))
  vim.cmd('Consort structure barfForward')
  T.eq('(list (double 21) "𝄞")', vim.fn.getline(7))
end)

T.it('text objects take the form and what is in it', function()
  to(7, 8)
  vim.cmd.normal('yaf')
  T.eq('(double 21)', vim.fn.getreg('"'))
  vim.cmd.normal('yif')
  T.eq('double 21', vim.fn.getreg('"'))
  vim.cmd.normal('y2af')
  T.eq('(list (double 21) "𝄞")', vim.fn.getreg('"'))
  vim.cmd.normal('y9af') -- fewer forms than nine enclose the cursor
  T.eq('', vim.fn.getreg('"'))
end)

T.it('structure is edited by the server\'s scanner', function()
  to(7, 8)
  vim.cmd('Consort structure slurpForward')
  T.eq('(list (double 21 "𝄞"))', vim.fn.getline(7))
  vim.cmd('Consort structure barfForward')
  T.eq('(list (double 21) "𝄞")', vim.fn.getline(7))
end)

T.it('with the strict keys a deletion leaves lists and strings whole', function()
  require('consort.strict').use(vim.api.nvim_get_current_buf())
  local function press(keys) vim.api.nvim_feedkeys(vim.keycode(keys), 'mtx', false) end
  local before = vim.fn.getline(7)
  local row = vim.api.nvim_win_get_cursor(0)[1]
  to(7, 6) -- on the second parenthesis
  press('x')
  T.eq('(list (double 21) "𝄞")', vim.fn.getline(7))
  T.eq({ 7, 7 }, vim.api.nvim_win_get_cursor(0))
  press('x')
  T.eq('(list (ouble 21) "𝄞")', vim.fn.getline(7))
  press('D')
  T.eq('(list () "𝄞")', vim.fn.getline(7))
  T.eq('ouble 21', vim.fn.getreg('"'))
  press('x')
  T.eq('(list  "𝄞")', vim.fn.getline(7))
  press('d0')
  T.eq('( "𝄞")', vim.fn.getline(7))
  press('A<BS><BS><BS><Esc>')
  T.eq('( "")', vim.fn.getline(7))
  -- A block: in each of its lines the columns of the block, and what is beside them stays.
  vim.api.nvim_buf_set_lines(0, 6, 7, false, { '(a bb "é𝄞 c" d)', '(', '(x yy (list c) d)' })
  to(7, 3)
  press('<C-v>jjld')
  T.eq({ '(a  "é𝄞 c" d)', '(', '(x  (list c) d)' }, vim.fn.getline(7, 9))
  T.eq({ 7, 3 }, vim.api.nvim_win_get_cursor(0))
  T.eq({ { 'bb', '', 'yy' }, '\0222' }, { vim.fn.getreg('"', 1, true), vim.fn.getregtype('"') })
  press('<C-v>jj$d')
  T.eq({ '(a )', '(', '(x )' }, vim.fn.getline(7, 9))
  vim.cmd.undo()
  T.eq({ '(a  "é𝄞 c" d)', '(', '(x  (list c) d)' }, vim.fn.getline(7, 9))
  vim.api.nvim_buf_set_lines(0, 6, 9, false, { before })
  vim.api.nvim_win_set_cursor(0, { row, 0 })
  for _, keys in ipairs({ 'x', 'X', 'D', 'd', 'dd' }) do vim.keymap.del('n', keys, { buffer = true }) end
  for _, keys in ipairs({ 'x', 'd' }) do vim.keymap.del('x', keys, { buffer = true }) end
  for _, keys in ipairs({ '<BS>', '<C-h>', '<Del>' }) do vim.keymap.del('i', keys, { buffer = true }) end
end)

T.it('what uses the definition at the cursor is named, compiled or left alone', function()
  vim.cmd('Consort eval (defun fixture::double (x) (* 2 x))')
  T.wait('the definition', float_text, last_said)
  vim.api.nvim_feedkeys('q', 'x', false)
  to(5, 3)
  vim.cmd('Consort callers')
  T.wait('the float', float_text, last_said)
  T.eq(true, float_text():find('Nothing that uses double was compiled again', 1, true) ~= nil, float_text())
  T.eq(true, float_text():find(':7: list', 1, true) ~= nil, float_text())
  vim.api.nvim_feedkeys('q', 'x', false)
end)

T.it('what a name stands for is removed after two questions, and put back', function()
  local select, asked = vim.ui.select, {}
  vim.ui.select = function(items, options, choose)
    table.insert(asked, options.prompt)
    choose(#asked == 1 and items[1] or 'remove')
  end
  to(4, 8)
  vim.cmd('Consort undefine')
  T.wait('the removal', function() return last_said():find('removed: function FIXTURE::DOUBLE', 1, true) end, last_said)
  T.eq({ 'Remove from the image', 'Remove the function FIXTURE::DOUBLE? ' }, asked)
  vim.ui.select = select
  vim.cmd('Consort undo')
  T.wait('the undo', function() return last_said():find('undone: function of FIXTURE::DOUBLE; there again: function FIXTURE::DOUBLE', 1, true) end, last_said)
  vim.cmd('Consort eval (fixture::double 4)')
  T.eq('⇒ 8', T.wait('the value', float_text, last_said))
  vim.api.nvim_feedkeys('q', 'x', false)
end)

T.it('a call of the function at the cursor is typed into the REPL', function()
  to(7, 8)
  vim.cmd('Consort call')
  local function line() return vim.bo.filetype ~= 'lisp' and vim.api.nvim_get_current_line() or '' end
  T.wait('the call', function() return line():find('(double x)', 1, true) end, line)
  vim.api.nvim_feedkeys(vim.keycode('<C-c><Esc>'), 'x!', false)
  vim.cmd('bwipeout! ' .. vim.api.nvim_get_current_buf())
  T.eq(buf, vim.api.nvim_get_current_buf())
end)

T.it('symbols are found by a part of their names, and one is described', function()
  local select, asked = vim.ui.select, nil
  vim.ui.select = function(items, options, choose)
    asked = options.format_item(items[1])
    choose(items[1])
  end
  vim.cmd('Consort apropos hash-table-rehash-siz')
  local text = T.wait('the description', float_text, last_said)
  vim.ui.select = select
  T.eq(true, asked:find('hash-table-rehash-size', 1, true) ~= nil, asked)
  T.eq(true, text:find('HASH-TABLE-REHASH-SIZE', 1, true) ~= nil, text)
  vim.api.nvim_feedkeys('q', 'x', false)
end)

T.it('a scratch buffer is in the package of the file, evaluates, and stays', function()
  to(7, 1)
  vim.cmd('Consort scratch')
  local scratch = vim.api.nvim_get_current_buf()
  T.eq('(in-package #:fixture)', vim.fn.getline(2))
  vim.api.nvim_buf_set_lines(scratch, 3, -1, false, { '(double 4)' })
  to(4, 9)
  vim.cmd('Consort eval form')
  T.wait('the value', function()
    return vim.iter(shown()):any(function(one) return one[2]:find('8', 1, true) ~= nil end)
  end, function() return { shown(), last_said() } end)
  vim.cmd.close()
  T.eq(buf, vim.api.nvim_get_current_buf())
  vim.cmd('Consort scratch')
  T.eq({ scratch, '(double 4)' }, { vim.api.nvim_get_current_buf(), vim.fn.getline(4) })
  vim.cmd('bwipeout! ' .. scratch)
end)

T.it('a definition is moved to another file of its package', function()
  local other = workspace .. '/other.lisp'
  vim.fn.writefile({ '(in-package :fixture)', '', '(defun first-there () 1)' }, other)
  local select, asked = vim.ui.select, nil
  vim.ui.select = function(items, options, choose)
    asked = options.format_item(items[1])
    choose(items[1])
  end
  to(4, 8)
  vim.cmd('Consort move')
  T.wait('the move', function() return last_said():find('moved double to other.lisp', 1, true) end, last_said)
  vim.ui.select = select
  T.eq('other.lisp', asked)
  T.eq({ '(in-package :fixture)', '', '(list (double 21) "𝄞")' }, vim.api.nvim_buf_get_lines(buf, 1, 4, false))
  local moved = vim.api.nvim_buf_get_lines(vim.fn.bufnr(other), 0, -1, false)
  T.eq({ '(in-package :fixture)', '', '(defun first-there () 1)', '', '(defun double (x)', '  (* 2 x))' }, moved)
end)

T.run({ vim.env.CONSORT_BIN, 'stop' }, { cwd = workspace })
T.finish()
