-- nvim --headless -u NONE -i NONE -l frozen_test.lua: a frozen failure in the debugger's buffer,
-- with a real image and no other plugin.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
T.plugin(true)

local workspace, file = T.workspace({
  '(defpackage :fixture (:use :cl))',
  '(in-package :fixture)',
  '',
  '(defun third-of (x)',
  '  (restart-case (error "no third of ~a" x)',
  '    (use-instead (y) :report "Use another." :interactive (lambda () (list 1)) (list :third (/ y 3)))))',
})

local said = T.notifications()
local answers = {}
vim.ui.input = function(_, typed) typed(table.remove(answers, 1)) end
vim.ui.select = function(items, options, chosen)
  said[#said + 1] = options.format_item(items[1])
  chosen(items[1])
end

local press = T.press
local function buffer()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_name(buf):find('consort://failure/', 1, true) then return buf end
  end
end
local function text()
  local buf = buffer()
  return buf and table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n') or ''
end
local function shows(part)
  T.wait(part, function() return text():find(part, 1, true) end, function() return { text(), said } end)
end

vim.lsp.enable('consort')
vim.cmd.edit(file)
T.wait('the client', function() return require('consort.client').of() end)

T.it('a failure is listed, and opens with its restarts and frames', function()
  vim.cmd('Consort eval buffer')
  -- A busy machine may not let the image be copied at once, so it fails until a failure is
  -- kept. The answer of each request is waited for before the next one is sent.
  local asked, status
  T.wait('the failure', function()
    if not asked then
      asked = true
      require('consort.client').execute('eval', { code = '(fixture::third-of 84)' }, function()
        require('consort.client').execute('status', {}, function(answer) asked, status = false, answer end)
      end)
    end
    return status and #(status.failures or {}) > 0
  end, function() return { said, status } end)
  vim.cmd('Consort failure')
  shows('THIRD-OF')
  T.eq(true, text():find('no third of 84', 1, true) ~= nil, text())
  T.eq(true, text():find('0: [FIXTURE::USE-INSTEAD] Use another.', 1, true) ~= nil, text())
end)

T.it('a restart is tried: its answer is what would have come', function()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer()))
  answers = { '84' }
  press('0')
  local function tried()
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      local lines = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false), '\n')
      if vim.api.nvim_win_get_config(win).relative ~= '' and lines:find('=> (:THIRD 28)', 1, true) then return win end
    end
  end
  T.wait('what would have come', tried, function() return { text(), said } end)
  vim.api.nvim_win_close(tried(), true)
end)

T.it('what goes on is refused, and q leaves it as it is', function()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer()))
  press('c')
  T.wait('the refusal', function() return vim.inspect(said):find('the program itself has continued', 1, true) end, function() return said end)
  press('q')
  T.wait('the end of the buffer', function() return not buffer() end, function() return { text(), said } end)
end)

T.leave(workspace)
T.finish()
