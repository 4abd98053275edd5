-- nvim --headless -u NONE -i NONE -l macrostep_test.lua: the macro stepper, key by key, with a real
-- image.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defmacro twice (form) `(progn ,form (when t ,form)))',
  '',
  '(defun f (x)',
  '  (list "𝄞" (twice (print x))',
  '        (unless x 1)))',
})
for i = 1, 60 do vim.fn.writefile({ ';; line ' .. i }, file, 'a') end

local said, last_said, clear = T.notifications()
local macrosteps = require('consort.macrosteps')
local press = T.press
local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end
local function is_copy() return vim.startswith(vim.api.nvim_buf_get_name(0), 'consort-macrostep://') end
local function shows(part)
  T.wait(part, function() return is_copy() and text():find(part, 1, true) end, function() return { vim.api.nvim_buf_get_name(0), text():sub(1, 600), said } end)
end
--- Puts the cursor on the first of these words.
local function to(words)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(words, 1, true)
    if column then return vim.api.nvim_win_set_cursor(0, { row, column - 1 }) end
  end
  error(words .. ' is not there')
end
local function under() return vim.api.nvim_get_current_line():sub(vim.api.nvim_win_get_cursor(0)[2] + 1) end
local function marked()
  local namespace = vim.api.nvim_get_namespaces()['consort.macrostep']
  return vim.tbl_map(function(one)
    return table.concat(vim.api.nvim_buf_get_text(0, one[2], one[3], one[4].end_row, one[4].end_col, {}), '\n')
  end, vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }))
end

T.it('expansions stand in the places of their forms, and are taken back', function()
  local function put(steps, form, expansion)
    local start = steps.text:find(form, 1, true) - 1
    return macrosteps.expanded(steps, start, start + #form, expansion)
  end
  local function back(steps, words) return (macrosteps.collapsed(steps, steps.text:find(words, 1, true) - 1)) end
  local steps = put(put(put(macrosteps.begun('(a (m 1) (m 2))'), '(m 1)', '(progn (n 1)\n 2)'), '(m 2)', '(two)'), '(n 1)', '(inner n)')
  T.eq('(a (progn (inner n)\n 2) (two))', steps.text)
  T.eq('(n 1)', macrosteps.innermost(steps, steps.text:find('inner')).before)
  T.eq('(a (progn (n 1)\n 2) (two))', back(steps, 'inner').text)
  local outer = back(steps, 'progn')
  T.eq('(a (m 1) (two))', outer.text)
  T.eq(nil, back(outer, 'a'))
  T.eq('(a (m 1) (m 2))', back(outer, 'two').text)
  -- An expansion in a form that is expanded is there again when that is taken back.
  local again = back(put(put(macrosteps.begun('x (m (n))'), '(n)', '(nn 1)'), '(m (nn 1))', '(progn)'), 'progn')
  T.eq('x (m (n))', back(again, '1').text)
  -- A whole expansion that is expanded again.
  local whole = put(put(macrosteps.begun('(m)'), '(m)', '(n)'), '(n)', '(o 1)')
  T.eq('(m)', back(back(whole, 'o'), 'n').text)
end)

T.it('places of a text are rows and columns, and offsets', function()
  local lines = 'a\n𝄞b\n\nc'
  for _, one in ipairs({ { 0, 0, 0 }, { 1, 0, 1 }, { 2, 1, 0 }, { 6, 1, 4 }, { 7, 1, 5 }, { 8, 2, 0 }, { 9, 3, 0 }, { 10, 3, 1 } }) do
    T.eq({ one[2], one[3] }, { macrosteps.place(lines, one[1]) })
    T.eq(one[1], macrosteps.offset(lines, one[2], one[3]))
  end
  T.eq(1, macrosteps.offset(lines, 0, math.huge))
  T.eq(#lines, macrosteps.offset(lines, 9, 0))
  T.eq('a  b "c d"', macrosteps.expanded(macrosteps.begun('a\r\rb (m)'), 5, 8, '"c\rd"').text)
end)

T.it('the next and the previous macro call are found by line and character', function()
  local calls = vim.tbl_map(function(one) return { start = { line = one[1], character = one[2] } } end, { { 0, 1 }, { 0, 8 }, { 0, 12 }, { 1, 4 }, { 3, 0 } })
  local function found(line, character, forward)
    local start = macrosteps.neighbour(calls, { line = line, character = character }, forward)
    return start and { start.line, start.character }
  end
  T.eq({ { 0, 12 }, { 0, 1 } }, { found(0, 8, true), found(0, 8, false) })
  T.eq({ { 1, 4 }, { 0, 12 } }, { found(0, 12, true), found(1, 4, false) })
  T.eq({ { 3, 0 }, { 1, 4 } }, { found(2, 1, true), found(2, 1, false) })
  T.eq({ nil, nil }, { found(3, 0, true), found(0, 1, false) })
end)

vim.lsp.enable('consort')
vim.cmd.edit(workspace .. '/other.lisp')
vim.cmd.edit(file)
local original = vim.api.nvim_get_current_buf()
T.wait('the client', function() return require('consort.client').of(original) end)
vim.cmd('Consort eval buffer')
T.wait('the macro', function() return #vim.api.nvim_buf_get_extmarks(0, require('consort.inline').namespace, 0, -1, {}) > 0 end)
vim.cmd('Consort clear')

-- The person's state: unsaved text, a buffer that goes when no window shows it, options of the
-- window, an alternate file.
vim.o.hidden = false
vim.api.nvim_buf_set_lines(original, 8, 9, false, { '(twice (unsaved))' })
vim.bo[original].bufhidden = 'wipe'
vim.wo.number = true
vim.wo.foldenable = true
local unsaved = text()

T.it('the macro call around the cursor is expanded in a copy', function()
  vim.api.nvim_win_set_height(0, 12)
  vim.cmd.normal({ '2\5', bang = true })
  to('print x')
  press('<LocalLeader>ms')
  shows('(progn (print x)')
  T.eq('(progn', under():sub(1, 6))
  T.eq(true, text():find('(list "𝄞" (progn (print x) (when t (print x)))\n', 1, true) ~= nil, text())
  T.eq({ '(progn (print x) (when t (print x)))' }, marked())
  T.eq({ false, false, 'nofile', 'wipe' }, { vim.bo.modifiable, vim.bo.modified, vim.bo.buftype, vim.bo.bufhidden })
  T.eq({}, vim.lsp.get_clients({ bufnr = 0 }))
  T.eq({ true, false }, { vim.wo.number, vim.wo.foldenable })
  T.eq(true, vim.wo.winbar:find('q goes back', 1, true) ~= nil)
  -- The text is as it was.
  T.eq(unsaved, table.concat(vim.api.nvim_buf_get_lines(original, 0, -1, false), '\n'))
end)

T.it('a form in the expansion is expanded in turn, and other forms of the text', function()
  press('n')
  T.wait('the next macro call', function() return under():sub(1, 7) == '(when t' end, under)
  press('e')
  shows('(if t')
  T.eq(2, #marked())
  to('unless x')
  press('e')
  shows('(if x')
  T.eq(3, #marked())
  -- Also what is not saved, in another top-level form.
  to('(twice (unsaved')
  press('e')
  shows('(progn (unsaved)')
  T.eq(4, #marked())
  clear()
  to('(progn (unsaved)')
  press('p')
  T.wait('the message', function() return #said > 0 and last_said():find('no macro call is before this', 1, true) end, function() return said end)
end)

T.it('what calls no macro within the expansion is told, and nothing around it is expanded', function()
  local before = text()
  clear()
  to('print x')
  press('e')
  T.wait('the message', function() return #said > 0 and last_said():find('no macro is called there', 1, true) end, function() return said end)
  T.eq(before, text())
end)

T.it('collapsing takes back the innermost expansion at the cursor', function()
  to('(if t')
  press('c')
  T.eq(true, text():find('(when t (print x))', 1, true) ~= nil, text())
  T.eq('(when t', under():sub(1, 7))
  to('(progn (print')
  press('c')
  T.eq(true, text():find('(twice (print x))', 1, true) ~= nil, text())
  T.eq(2, #marked())
  to('defun f')
  press('c')
  T.eq(true, last_said():find('no expansion is there', 1, true) ~= nil, last_said())
end)

T.it('quitting shows the text again, with everything as it was', function()
  press('q')
  T.eq({ original, 'print x))', unsaved }, { vim.api.nvim_get_current_buf(), under(), text() })
  T.eq(3, vim.fn.line('w0'))
  T.eq({ 'wipe', true }, { vim.bo.bufhidden, vim.bo.modified })
  T.eq({ true, true, '' }, { vim.wo.number, vim.wo.foldenable, vim.wo.winbar })
  T.eq('other.lisp', vim.fn.fnamemodify(vim.fn.bufname('#'), ':t'))
  T.eq({}, vim.iter(vim.api.nvim_list_bufs()):filter(function(buf) return vim.api.nvim_buf_get_name(buf):find('consort-macrostep', 1, true) ~= nil end):totable())
end)

T.it('without a macro call no copy is made', function()
  clear()
  to('"𝄞"')
  vim.cmd('Consort macrostep')
  T.wait('the message', function() return #said > 0 and last_said():find('no macro is called there', 1, true) end, function() return said end)
  T.eq(original, vim.api.nvim_get_current_buf())
end)

T.it('a macro that fails is told', function()
  local done
  require('consort.client').execute('eval', { code = '(defmacro fixture::failing () (error "no way"))' }, function() done = true end)
  T.wait('the macro', function() return done end)
  vim.api.nvim_buf_set_lines(original, 9, 10, false, { '(failing)' })
  to('(failing')
  vim.cmd('Consort macrostep')
  T.wait('the error', function() return last_said():find('no way', 1, true) end, function() return said end)
  T.eq(original, vim.api.nvim_get_current_buf())
end)

T.it('a copy that is left otherwise leaves nothing behind', function()
  to('unless x')
  vim.cmd('Consort macrostep')
  shows('(if x')
  vim.cmd.buffer({ 'other.lisp' })
  T.wait('the end of the copy', function()
    return not vim.iter(vim.api.nvim_list_bufs()):any(function(buf) return vim.api.nvim_buf_get_name(buf):find('consort-macrostep', 1, true) ~= nil end)
  end)
  -- Unsaved text is there still.
  T.eq({ true, 'wipe', true }, { vim.api.nvim_buf_is_loaded(original), vim.bo[original].bufhidden, vim.bo[original].modified })
  vim.cmd.buffer(original)
  T.eq('', vim.wo.winbar)
end)

T.leave(workspace)
T.finish()
