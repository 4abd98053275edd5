-- nvim --headless -u NONE -i NONE -l inspect_test.lua: values in the inspector's buffer and traced
-- calls, key by key, with a real image and no other plugin.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defvar *goods* (list (list :name "a" :price 1) (list :name "b" :price 2)))',
  '(defvar *others* (list (list :name "a" :price 1) (list :name "c" :price 2)))',
  '(defun inner (x) (list x))',
  '(defun outer (x) (append (inner x) (inner (1+ x))))',
  '',
  '(list :long (loop for i below 250 collect i))',
  '',
  '(outer 3)',
  '(defclass good () ((name :initform "a")))',
  '(defmethod describe-object ((good good) stream) (format stream "a good thing~%"))',
})

local said, last = T.notifications()
local answers = {}
vim.ui.input = function(_, typed) typed(table.remove(answers, 1)) end
local choice
vim.ui.select = function(items, _, choose)
  choose(vim.iter(items):find(function(item) return item.name == choice end))
end

local press = T.press
--- Goes to the line of the value itself.
local function top() vim.api.nvim_win_set_cursor(0, { 1, 0 }) end
local function to(row)
  vim.api.nvim_set_current_win(vim.fn.bufwinid(vim.fn.bufnr(file)))
  vim.api.nvim_win_set_cursor(0, { row, 0 })
end
--- The lines of the window whose buffer is of a file type.
local function lines_of(filetype)
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    local buf = vim.api.nvim_win_get_buf(win)
    if vim.bo[buf].filetype == filetype then return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n'), win end
  end
  return ''
end
local function inspector() return (lines_of('consort-inspector')) end
local function shows(part)
  T.wait(part, function() return inspector():find(part, 1, true) end, function() return { inspector(), said } end)
  vim.api.nvim_set_current_win(select(2, lines_of('consort-inspector')))
end
local function float()
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(win).relative ~= '' then return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false), '\n'), win end
  end
  return ''
end
--- Waits for a float with all the parts, and closes it.
local function floats(...)
  local parts = { ... }
  T.wait(parts[1], function()
    local text = float()
    return vim.iter(parts):all(function(part) return text:find(part, 1, true) ~= nil end)
  end, function() return { (float()), said } end)
  vim.api.nvim_win_close(select(2, float()), true)
end
local function value_in(row)
  local result = require('consort.inline').at(vim.fn.bufnr(file), row - 1)
  return result and (result.values or {})[1]
end

vim.lsp.enable('consort')
vim.cmd.edit(file)
T.wait('the client', function() return require('consort.client').of() end)
for _, row in ipairs({ 1, 2, 4, 5, 6, 7, 9, 12, 13 }) do
  to(row)
  vim.cmd('Consort eval top')
  T.wait('the value of line ' .. row, function() return value_in(row) end, function() return said end)
end

T.it('the result of a line is inspected, into its parts and a page further', function()
  to(9)
  vim.cmd('Consort inspect')
  shows('0  :LONG')
  vim.fn.search('^1 ')
  press('<CR>')
  shows('99  99')
  vim.fn.search('more$')
  press('<CR>')
  shows('199  199')
  press('u')
  shows('0  :LONG')
end)

T.it('the value of code is a table, is evaluated on, and gets another part', function()
  to(4)
  vim.cmd('Consort inspect *goods*')
  shows('0  (:NAME "a" :PRICE 1)')
  top()
  press('t')
  floats('   name  price', '0  "a"   1', '1  "b"   2')
  answers = { '(mapcar #\'fourth *)', '(list :name "z" :price 9)' }
  vim.api.nvim_set_current_win(select(2, lines_of('consort-inspector')))
  top()
  press('e')
  shows('0  1')
  press('u')
  shows('0  (:NAME "a" :PRICE 1)')
  vim.fn.search('^0 ')
  press('s')
  shows('0  (:NAME "z" :PRICE 9)')
  answers = { '(list :name "a" :price 1)' }
  press('s')
  shows('0  (:NAME "a" :PRICE 1)')
end)

T.it('two values are compared', function()
  to(4)
  vim.cmd('Consort inspect (identity *goods*)')
  shows('(identity *goods*)\n')
  top()
  press('m')
  to(5)
  vim.cmd('Consort inspect *others*')
  shows('1  (:NAME "c" :PRICE 2)')
  top()
  press('m')
  floats('1 › 1', '  - "b"', '  + "c"')
end)

T.it('a value is described, and its definition gone to', function()
  to(4)
  vim.cmd("Consort inspect (list (make-instance 'good) #'inner 'price)")
  shows('0  #<GOOD NAME "a">')
  vim.fn.search('^0 ')
  press('v')
  floats('a good thing')
  press('d')
  T.wait('the class', function() return vim.api.nvim_get_current_buf() == vim.fn.bufnr(file) and vim.fn.line('.') == 12 end, function() return { vim.fn.line('.'), said } end)
  vim.api.nvim_set_current_win(select(2, lines_of('consort-inspector')))
  vim.fn.search('^1 ')
  press('d')
  T.wait('the function', function() return vim.api.nvim_get_current_buf() == vim.fn.bufnr(file) and vim.fn.line('.') == 6 end, function() return { vim.fn.line('.'), said } end)
  -- A list is from no file.
  vim.api.nvim_set_current_win(select(2, lines_of('consort-inspector')))
  top()
  press('d')
  T.wait('that there is none', function() return (last() or ''):find('from no file', 1, true) end, function() return said end)
end)

T.it('what fails is said', function()
  to(4)
  vim.cmd('Consort inspect (car 1)')
  T.wait('the error', function() return (last() or ''):find('TYPE-ERROR', 1, true) end, function() return said end)
  vim.cmd('Consort inspect 42')
  T.wait('that it is all', function() return (last() or ''):find('has no parts', 1, true) end, function() return said end)
end)

T.it('traced calls are a tree, live, with values to inspect', function()
  to(11)
  vim.cmd('Consort trace in fixture')
  T.wait('the trace', function() return (last() or ''):find('traced', 1, true) end, function() return said end)
  vim.cmd('Consort traced')
  local function traced() return (lines_of('consort-traced')) end
  T.wait('the names', function() return traced():find('fixture::outer', 1, true) end, function() return { traced(), said } end)
  to(11)
  vim.cmd('Consort eval top')
  T.wait('the calls', function()
    return traced():find('(fixture::outer 3) ⇒ (3 4)\n  (fixture::inner 3) ⇒ (3)\n  (fixture::inner 4) ⇒ (4)', 1, true)
  end, function() return { traced(), said } end)
  vim.api.nvim_set_current_win(select(2, lines_of('consort-traced')))
  vim.fn.search('fixture::outer 3')
  choice = 'value 1'
  press('<CR>')
  shows('1  4')
  vim.api.nvim_set_current_win(select(2, lines_of('consort-traced')))
  press('x')
  T.wait('no calls', function() return not traced():find('(fixture::outer 3)', 1, true) end, traced)
  press('q')
  T.eq('', traced())
  vim.cmd('Consort untrace')
  T.wait('the end of the trace', function() return (last() or ''):find('Not traced any more', 1, true) end, function() return said end)
end)

T.it('code and names that are typed are read in the package of the file', function()
  to(11)
  vim.cmd('Consort eval (inner 5)')
  floats('⇒ (5)')
  vim.cmd('Consort describe outer')
  floats('FIXTURE::OUTER\n  [symbol]')
  vim.cmd('Consort disassemble outer')
  floats('disassembly for FIXTURE::OUTER')
  vim.cmd('Consort callers inner')
  floats('fixture.lisp:7: function outer')
  vim.cmd('Consort inspect (list *goods* 7)')
  shows('1  7')
  to(11)
  vim.cmd('Consort trace inner')
  T.wait('the trace', function() return (last() or ''):lower():find('fixture::inner', 1, true) end, function() return said end)
  vim.cmd('Consort untrace inner')
  T.wait('its end', function() return (last() or ''):find('Not traced any more', 1, true) end, function() return said end)
  -- Above the IN-PACKAGE nothing says which package is meant.
  to(1)
  vim.cmd('Consort eval (package-name *package*)')
  floats('⇒ "COMMON-LISP-USER"')
end)

T.leave(workspace)
T.finish()
