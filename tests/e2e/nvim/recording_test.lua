-- nvim --headless -u NONE -i NONE -l recording_test.lua: a recording's float, key by key, with a
-- real image and no other plugin.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defun half (x)',
  '  (/ x 2))',
  '',
  '(defun halves (list)',
  '  (let ((sum 0))',
  '    (dolist (x list sum)',
  '      (setf sum (+ sum (half x))))))',
  '',
  '(halves (list 4 6))',
  '',
  '(halves (list 4 :odd))',
})

local said = T.notifications()
local answers = {}
vim.ui.input = function(_, typed) typed(table.remove(answers, 1)) end

local press = T.press
local function to(row)
  vim.api.nvim_set_current_win(vim.fn.bufwinid(vim.fn.bufnr(file)))
  vim.api.nvim_win_set_cursor(0, { row, 999 })
end
local function float()
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(win).relative ~= '' then return win, vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false) end
  end
end
local function text() return table.concat(select(2, float()) or {}, '\n') end
--- The float that was gone into last: each answer has a float of its own.
local seen
--- Waits until another float has PART, and goes into it.
local function shows(part)
  T.wait(part, function() return float() and float() ~= seen and text():find(part, 1, true) end, function() return { text(), said } end)
  seen = float()
  vim.api.nvim_set_current_win(seen)
end
--- Waits for another float with PART in the first line, which names the moment that it is about.
local function moment(part)
  shows(part)
  T.eq(true, select(2, float())[1]:find(part, 1, true) ~= nil, text())
end
local function record(row)
  to(row)
  vim.cmd('Consort record')
end

vim.lsp.enable('consort')
vim.cmd.edit(file)
T.wait('the client', function() return require('consort.client').of() end)

T.it('a form is recorded: its calls with arguments and results', function()
  to(12)
  vim.cmd('Consort eval cursor')
  T.wait('the value', function()
    return vim.iter(vim.api.nvim_buf_get_extmarks(0, require('consort.inline').namespace, 0, -1, { details = true })):any(function(mark)
      return mark[4].virt_text and mark[4].virt_text[1][1]:find('5', 1, true)
    end)
  end, function() return said end)
  record(12)
  shows('(fixture::half 6) => 3')
  T.eq(true, text():find('⇒ 5', 1, true) ~= nil, text())
  T.eq(true, text():find('(fixture::halves (4 6)) => 5', 1, true) ~= nil, text())
end)

T.it('keys ask for values, histories and moments, and step', function()
  answers = { '(half x)', 'sum', '(> sum 2)' }
  press('v')
  shows('(half x) => 3')
  press('h')
  shows('= 5')
  press('w')
  shows('(setf sum (+ sum (half x))) => 5')
  press('s')
  shows('SUM = 5')
  press('<lt>')
  moment('(+ sum (half x)) => 5')
  press('>')
  moment('(setf sum (+ sum (half x))) => 5')
end)

T.it('<CR> goes to the source of the row', function()
  press('t')
  shows('(fixture::half 6) => 3')
  vim.fn.search('(fixture::half 6)')
  press('<CR>')
  T.wait('the source', function() return vim.fn.bufnr(file) == vim.api.nvim_get_current_buf() end)
  T.eq(4, vim.api.nvim_win_get_cursor(0)[1])
end)

T.it('of a form that fails, the error is shown, with its variables', function()
  record(14)
  shows('(/ x 2) signals')
  T.eq(true, text():find('X = :odd', 1, true) ~= nil, text())
  press('q')
  T.eq(nil, (float()))
end)

--- Waits until the image does, or does not, wait for a call, as WANTED says.
local function waits(wanted)
  local answer
  T.wait('the wait for a call: ' .. tostring(wanted), function()
    if answer == nil then
      answer = false
      require('consort.client').execute('eval', { code = '(let ((it consort::*awaited*)) (and it (eq (consort::awaited-state it) :waiting)))' }, function(result) answer = result.values[1] end)
    end
    if answer == false then return false end
    if (answer == 'T') == wanted then return true end
    answer = nil
    return false
  end, function() return said end)
end

T.it('the next call of a function in the image is recorded', function()
  to(4)
  vim.cmd('Consort record next fixture::half')
  waits(true)
  require('consort.client').execute('eval', { code = '(fixture::half 8)' })
  shows('(fixture::half 8) => 4')
  T.eq(true, text():find('in the image, in the thread', 1, true) ~= nil, text())
  press('q')
end)

T.it('the wait for a call is cancelled', function()
  to(4)
  vim.api.nvim_win_set_cursor(0, { 4, 8 })
  vim.cmd('Consort record next') -- the name at the cursor
  waits(true)
  vim.cmd('Consort record cancel')
  waits(false)
  T.answered()
  T.eq(nil, (float()))
end)

T.leave(workspace)
T.finish()
