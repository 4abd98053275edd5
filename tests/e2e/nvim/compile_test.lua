-- nvim --headless -u NONE -i NONE -l compile_test.lua: a form and a file that are compiled and
-- loaded, and the page about their package, with a real image and no other plugin.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl) (:export #:good))',
  '(in-package :fixture)',
  '(defmacro quality (&environment env)',
  "  (second (assoc 'debug (funcall (intern \"DECLARATION-INFORMATION\" :sb-cltl2) 'optimize env))))",
  '(defun good () (list :good (quality)))',
  '(defun bad () (let ((x 1 2)) x))',
})
local said, last, forget = T.notifications()
local function compile(words, part)
  forget()
  vim.cmd('Consort compile ' .. words)
  T.wait(part, function() return (last() or ''):find(part, 1, true) end, function() return said end)
end
local function evaluates(code, value)
  local got
  require('consort.client').execute('eval', { code = code }, function(result) got = (result.values or {})[1] or vim.inspect(result) end)
  T.wait('the value of ' .. code, function() return got end)
  T.eq(value, got)
end

vim.lsp.enable('consort')
vim.cmd.edit(file)
T.wait('the client', function() return require('consort.client').of() end)

T.it('a file that does not compile is loaded anyway when the person says so', function()
  evaluates('(progn (require :sb-cltl2) :there)', ':THERE')
  compile('file', '`:Consort compile file anyway` loads it all the same')
  evaluates('(find-package :fixture)', 'NIL')
  compile('file anyway', 'loaded with errors: ')
  evaluates('(handler-case (fixture::bad) (error () (fixture::good)))', '(:GOOD 1)')
end)

T.it('a text that cannot be read is refused with the reason, and is not offered to be loaded', function()
  for form, reason in pairs({
    ['(defun worse (x'] = 'fixture.lisp:7:14: This list is never closed; 2 `)` are missing here.',
    ['(defun worse (x) (nope:foo x))'] = 'fixture.lisp:7:19: Package NOPE does not exist.',
  }) do
    vim.fn.append(6, form)
    vim.api.nvim_win_set_cursor(0, { 7, 2 })
    compile('', reason)
    T.eq(nil, last():find('anyway', 1, true), last())
    vim.fn.deletebufline('%', 7)
  end
  vim.fn.append(0, '(list 1))')
  compile('file', 'fixture.lisp:1:9: This `)` closes nothing: there is one too many.')
  T.eq(nil, last():find('anyway', 1, true), last())
  vim.fn.deletebufline('%', 1)
  vim.api.nvim_win_set_cursor(0, { 6, 3 })
  compile('', 'fixture.lisp:6:21: The LET binding spec (X 1 2) is malformed.')
  T.eq(true, last():find('`:Consort compile anyway` loads it all the same', 1, true) ~= nil, last())
end)

T.it('a form is compiled for debugging', function()
  vim.api.nvim_win_set_cursor(0, { 5, 3 })
  compile('debug', '1 redefined')
  evaluates('(fixture::good)', '(:GOOD 3)')
  compile('', '1 redefined')
  evaluates('(fixture::good)', '(:GOOD 1)')
  compile('what', 'takes form, file, debug, anyway, and not what')
end)

T.it('the documentation of a package is a page', function()
  evaluates('(setf (documentation (quote fixture::good) (quote function)) "Always good.")', '"Always good."')
  vim.cmd('Consort manual')
  local function page()
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
      if vim.api.nvim_win_get_config(win).relative ~= '' then return table.concat(lines, '\n') end
    end
    return ''
  end
  T.wait('the page', function() return page():find('(good)  [function]\n    Always good.', 1, true) end, function() return { page(), said } end)
  forget()
  vim.cmd('Consort manual no-such-thing')
  T.wait('that there is none', function() return (last() or ''):find('There is no package no-such-thing', 1, true) end, function() return said end)
end)

T.leave(workspace)
T.finish()
