-- nvim --headless -u NONE -i NONE -l shown_test.lua: text of agents, files and the image is shown
-- as plain text everywhere in the plugin.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
vim.opt.runtimepath:prepend(vim.fs.normalize(here .. '/../../../editors/neovim'))
local nasty = vim.json.decode(table.concat(vim.fn.readfile(here .. '/../../fixtures/nasty.json'), '\n'))
-- Characters that act in statuslines, Vim script and Lua.
vim.list_extend(nasty, { '%{execute("quit")}%#Error#%=%<', '" | quit', "'..os.exit()..'", '<C-r>=1<CR>', '\\<Esc>:q<CR>' })

local notify = vim.notify
local said = {}
vim.notify = function(message) table.insert(said, message) end

--- Fails if a text has a control or invisible character. Characters that Neovim itself escapes do
--- not count.
local function harmless(text)
  for _, char in ipairs(vim.fn.split(text, '\\zs')) do
    local point = vim.fn.char2nr(char, true)
    local acts = point < 32 and point ~= 9 or point >= 0x7f and point < 0xa0
    local hides = vim.list_contains({ 0x202e, 0x2066, 0x2069, 0x200b, 0xfeff, 0x2060, 0xad, 0xe0041, 0x2028 }, point)
    if acts or hides then error(('U+%04X in %s'):format(point, vim.inspect(text)), 2) end
  end
end

T.it('text of others in floating windows', function()
  local float = require('consort.float')
  for _, text in ipairs(nasty) do
    local buf, win = float.open({ text, text }, { title = text, hint = text })
    local config = vim.api.nvim_win_get_config(win)
    for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do harmless(line) end
    for _, part in ipairs(vim.list_extend(vim.deepcopy(config.title), config.footer)) do harmless(part[1]) end
    float.replace(buf, text)
    for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do harmless(line) end
    vim.api.nvim_win_close(win, true)
  end
end)

T.it('values, output and errors beside the code', function()
  local inline = require('consort.inline')
  for _, text in ipairs(nasty) do
    local buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { '(f)' })
    for _, result in ipairs({
      { status = 'ok', values = { text }, error = nil },
      { status = 'error', values = {}, error = { type = text, message = text, backtrace = { text } } },
    }) do
      inline.show(buf, { 0, 0, 0, 3 }, vim.tbl_extend('error', { stdout = text, stderr = text, warnings = {}, package = text }, result))
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, inline.namespace, 0, -1, { details = true })) do
        for _, part in ipairs(mark[4].virt_text or {}) do harmless(part[1]) end
        for _, line in ipairs(mark[4].virt_lines or {}) do harmless(line[1][1]) end
      end
    end
  end
end)

T.it('messages and the list of failed tests', function()
  for _, text in ipairs(nasty) do
    require('consort.client').say(text)
    harmless((said[#said]:gsub('\n', '')))
  end
  T.eq(#nasty, #said, 'messages')
end)

T.it('a message that does not fit is whole in :messages', function()
  local replaced = vim.notify
  vim.notify = notify
  vim.cmd.messages('clear')
  local long = ('a word '):rep(vim.o.columns)
  require('consort.client').say(long .. 'last\nand a second line')
  vim.notify = replaced
  local messages = vim.fn.execute('messages')
  T.eq(true, messages:gsub('%s+', ' '):find('Consort: ' .. long .. 'last and a second line', 1, true) ~= nil, messages)
end)

T.it('a long message about what is at the cursor is shown there until the cursor moves', function()
  local replaced = vim.notify
  vim.notify = notify
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two' })
  local function floats() return vim.tbl_filter(function(win) return vim.api.nvim_win_get_config(win).relative ~= '' end, vim.api.nvim_list_wins()) end
  require('consort.client').explain('short')
  require('consort.client').explain(('because '):rep(20), vim.log.levels.WARN, function() return false end)
  T.eq({}, floats())
  require('consort.client').explain(('because '):rep(20) .. 'of this', vim.log.levels.WARN)
  vim.notify = replaced
  T.eq(1, #floats())
  local shown = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(floats()[1]), 0, -1, false), ' ')
  T.eq(('because '):rep(20) .. 'of this', shown)
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  vim.api.nvim_exec_autocmds('CursorMoved', {})
  T.wait('the end of the float', function() return #floats() == 0 end)
end)

T.finish()
