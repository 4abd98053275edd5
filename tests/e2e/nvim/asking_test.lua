-- nvim --headless -u NONE -i NONE -l asking_test.lua: messages of the server with answers, with a
-- real image: whether evaluations are to stop at errors. `hostile` has the one about trust.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true, 'ask')

local workspace, file = T.workspace({ '(list 1)', '(car 1)' })
local said, last = T.notifications()

vim.lsp.enable('consort')
vim.cmd.edit(file)
local client = T.wait('the client', function() return require('consort.client').of() end)
local buf, win = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()

local function float()
  return vim.iter(vim.api.nvim_list_wins()):find(function(one) return vim.api.nvim_win_get_config(one).relative ~= '' end)
end
local function text(of) return table.concat(vim.api.nvim_buf_get_lines(of, 0, -1, false), '\n') end
local function footer(of) return vim.iter(vim.api.nvim_win_get_config(of).footer):map(function(part) return part[1] end):join('') end
--- Types KEYS and runs what they are mapped to; a mode that they enter is left at their end.
local function type_in(keys) vim.api.nvim_feedkeys(vim.keycode(keys), 'xm', false) end

--- Evaluates the form that fails, and waits for the question.
local function fail()
  vim.api.nvim_win_set_cursor(win, { 2, 0 })
  vim.cmd('Consort eval form')
  return T.wait('the question', float, function() return said end)
end

--- Sends a message with answers as the server does; returns the place of what is answered.
local function from_server(titles)
  local got = {}
  local actions = vim.tbl_map(function(title) return { title = title } end, titles)
  coroutine.wrap(function()
    got.answer = client.handlers['window/showMessageRequest'](nil, { type = 2, message = 'One of ' .. #titles .. '?', actions = actions }, { client_id = client.id })
  end)()
  return got
end

T.it('a message with answers takes no key that is typed into the text', function()
  local question = fail()
  T.eq(win, vim.api.nvim_get_current_win())
  T.eq(true, text(vim.api.nvim_win_get_buf(question)):find('^TYPE%-ERROR: .*Stop at errors') ~= nil, text(vim.api.nvim_win_get_buf(question)))
  T.eq(true, text(vim.api.nvim_win_get_buf(question)):find('\n1  Debug\n2  Report', 1, true) ~= nil, text(vim.api.nvim_win_get_buf(question)))
  T.eq(' \\a answers ', footer(question))
  type_in('1GO(defun f (x)<CR>1<CR>2<CR><Esc>')
  T.eq(true, vim.startswith(text(buf), '(defun f (x)\n'), text(buf))
  T.eq(true, text(buf):find('\n *1\n *2\n') ~= nil, text(buf))
  type_in('1G2j1G<CR>q<Esc>')
  T.eq(true, vim.api.nvim_win_is_valid(question))
  vim.cmd('silent undo 0')
  vim.bo.modified = false
end)

T.it('in Insert mode the question says how it is answered', function()
  local hint
  vim.keymap.set('i', '<F9>', function() hint = footer(float()) end)
  type_in('ix<F9><Esc>')
  T.eq(' <Esc> \\a answers ', hint)
  vim.cmd('silent undo')
end)

T.it('a message with answers is taken away when the server needs none any more', function()
  local question = T.wait('the question', float)
  vim.cmd('Consort interrupt')
  T.wait('the end of the question', function() return not vim.api.nvim_win_is_valid(question) end, function() return said end)
  T.eq(nil, float())
  T.answered()
end)

T.it('a message with answers is answered in its float', function()
  local question = fail()
  type_in('<LocalLeader>a')
  T.eq(question, vim.api.nvim_get_current_win())
  T.eq(' 1-2 or <CR> in its line answers · q back to the text ', footer(question))
  type_in('3')
  T.eq(question, vim.api.nvim_get_current_win())
  type_in('2')
  T.eq(win, vim.api.nvim_get_current_win())
  T.answered()
  -- The answer counts for the next error.
  vim.cmd('Consort eval form')
  T.answered()
  T.eq(nil, float())
end)

T.it('a long question is broken between words, and all of it is in the float', function()
  vim.o.columns = 60
  coroutine.wrap(function()
    client.handlers['window/showMessageRequest'](nil, { type = 2, message = ('abcdefghijkl '):rep(20), actions = { { title = 'Yes' } } }, { client_id = client.id })
  end)()
  local question = T.wait('the question', float)
  vim.cmd.redraw()
  local row, column = unpack(vim.api.nvim_win_get_position(question))
  local width, height = vim.api.nvim_win_get_width(question), vim.api.nvim_win_get_height(question)
  local shown = {}
  for at = row + 2, row + 1 + height do
    local cells = {}
    for cell = column + 2, column + 1 + width do table.insert(cells, vim.fn.screenstring(at, cell)) end
    table.insert(shown, vim.trim(table.concat(cells)))
  end
  local text = table.concat(shown, '\n')
  T.eq(20, select(2, text:gsub('abcdefghijkl', '')), text)
  T.eq(true, text:find('\n1  Yes$') ~= nil, text)
  type_in('<LocalLeader>a1')
  T.eq(nil, float())
  vim.o.columns = 80
end)

T.it('messages with any number of answers are asked in their order', function()
  local titles = {}
  for i = 1, 12 do table.insert(titles, 'Answer ' .. i) end
  local first, second = from_server(titles), from_server({ 'Yes' })
  T.wait('the first', float)
  vim.cmd('Consort answer allow')
  T.eq(true, last():find('there is no answer `allow`; there are Answer 1, ', 1, true) ~= nil, last())
  type_in('<LocalLeader>a')
  vim.fn.search('Answer 11')
  type_in('<CR>')
  T.eq({ title = 'Answer 11' }, T.wait('the answer', function() return first.answer end))
  T.eq(nil, second.answer)
  T.wait('the second', float)
  T.eq(win, vim.api.nvim_get_current_win())
  T.eq({ 'Yes' }, vim.fn.getcompletion('Consort answer ', 'cmdline'))
  vim.cmd('Consort answer Yes')
  T.eq({ title = 'Yes' }, T.wait('the answer', function() return second.answer end))
  T.eq(vim.NIL, from_server({}).answer)
  T.eq('Consort: One of 0?', last())
end)

T.it('a message with answers is over at the end of the server', function()
  local got = from_server({ 'Yes', 'No' })
  T.wait('the question', float)
  require('consort.client').ended(client.id)
  T.eq(vim.NIL, T.wait('an answer', function() return got.answer end))
  T.wait('the end of the question', function() return not float() end)
end)

T.leave(workspace)
T.finish()
