-- nvim --headless -u NONE -i NONE -l undo_test.lua: `:Consort undo` undoes the reload that the
-- person was told of, and asks when there is a newer one.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
package.path = here .. '/?.lua;' .. package.path
local T = require('harness')
local S = require('stand_in')
S.use()
local questions, answer, press = S.questions, S.answer, T.press

local said, last, forget = T.notifications()
local prompts, choose = {}, nil
vim.ui.select = function(_, options, chosen)
  table.insert(prompts, options.prompt)
  choose = chosen
end

local log, image = {}, 0
local function now()
  local seconds, micros = vim.uv.gettimeofday()
  return os.date('!%Y-%m-%dT%H:%M:%S', seconds) .. ('.%03dZ'):format(math.floor(micros / 1000))
end
--- Adds an entry to the log that the stand-in answers with.
local function entry(tool, more)
  local one = {
    number = #log + 1, tool = tool, frontend = tool:find('^consort') and 'lsp' or 'mcp', status = 'ok', client = 'agent 1', time = now(),
  }
  table.insert(log, vim.tbl_extend('force', one, more or {}))
end
local function answer_log(since)
  local at = since or 0
  T.eq(since, questions[1] and questions[1].arguments.since)
  answer(1, 'log', { last = #log, entries = vim.list_slice(log, at + 1) })
end

--- Begins a test with another image: the person was told of nothing.
local function window()
  forget()
  log, prompts, choose, image = {}, {}, nil, image + 1
  S.window('(defun f ())')
  vim.lsp.config.consort.handlers['consort/imageState'](nil, { state = 'ready', image = tostring(image) }, { client_id = 1 })
end
local function report(what, more)
  return vim.tbl_extend('force', { what = what, redefined = { 'function ' .. what }, new = {}, gone = {}, stale = {}, not_undone = {} }, more or {})
end
--- A reload of this editor, of which the person is told.
local function compiled(what)
  local before = now()
  T.wait('the next millisecond', function() return now() ~= before end)
  vim.cmd('Consort compile')
  entry('consort.compileForm', { client = 'Neovim' })
  answer(1, 'compileForm', report(what))
end
--- The undo that was requested ends.
local function undone(what, more)
  T.eq('undoReload', questions[1] and questions[1].what, vim.inspect({ prompts, said }))
  entry('consort.undoReload', { client = 'Neovim' })
  answer(1, 'undoReload', report(what, more))
end
local function has(part, words) T.eq(true, (words or ''):find(part, 1, true) ~= nil, ('%s in %s'):format(part, tostring(words))) end

--- An agent's call that the person allows.
local function allowed(tool, arguments)
  local approve = require('consort.approve')
  coroutine.wrap(function()
    approve.on_request(nil, { id = 1, client = 'agent 1', tool = tool, class = 'modify-running-code', what = 'Replace G', arguments = arguments }, { client_id = 1 })
  end)()
  T.wait('the question', function() return #S.floats() == 1 end)
  approve.answer('allow')
  T.wait('the message', function() return (last() or ''):find('Replace G', 1, true) end, last)
end

T.it('the own reload that is the newest is undone, and named; once more, the one before', function()
  window()
  compiled('F')
  compiled('G')
  entry('code_compile_string', { status = 'error' })
  entry('evaluate-lisp')
  for _, what in ipairs({ 'G', 'F' }) do
    vim.cmd('Consort undo')
    answer_log()
    undone(what)
    T.eq(('Consort: undone: %s; put back: function %s'):format(what, what), last())
  end
  T.eq({}, prompts)
  -- Nothing is left: the server says so.
  vim.cmd('Consort undo')
  answer_log()
  answer(1, 'undoReload', nil, { code = 1, message = 'There is no reload to undo' })
  T.eq('Consort: There is no reload to undo', last())
end)

T.it('what an agent has reloaded since is not undone without a question that names it', function()
  for _, answers in ipairs({ 'no', 'undo it' }) do
    window()
    compiled('F')
    entry('code_replace_function', { about = 'g', client = 'Claude Code 2.1+x' })
    vim.cmd('Consort undo')
    answer_log()
    T.eq({}, questions)
    has('The newest reload is code_replace_function g by Claude Code 2.1 at ', prompts[1])
    has('it is newer than F (function F). Undo it?', prompts[1])
    choose(answers)
    if answers == 'no' then
      T.eq({}, questions)
    else
      answer_log(2)
      undone('G')
      has('undone: G; put back: function G', last())
      -- Then the person's own is the newest again.
      vim.cmd('Consort undo')
      answer_log()
      undone('F')
      T.eq(1, #prompts)
    end
  end
end)

T.it('nothing is undone when something comes while the question waits', function()
  window()
  entry('code_replace_function', { about = 'g' })
  vim.cmd('Consort undo')
  answer_log()
  has('it was not reported to you', prompts[1])
  entry('consort.compileFile', { client = 'Another editor' })
  choose('undo it')
  answer_log(1)
  T.eq({}, questions)
  has('nothing was undone, as there was compileFile by Another editor at ', last())
end)

T.it('an own reload that somebody has undone is not undone again', function()
  window()
  compiled('F')
  compiled('G')
  entry('code_undo', { client = 'agent 2' })
  vim.cmd('Consort undo')
  answer_log()
  has('G (function G) was undone by agent 2', prompts[1])
  choose('no')
  -- The one before is the newest now.
  vim.cmd('Consort undo')
  answer_log()
  undone('F')
  T.eq(1, #prompts)
end)

T.it('own commands that have changed nothing, or failed, do not count', function()
  window()
  compiled('F')
  vim.cmd('Consort reload shop')
  entry('consort.reloadSystem', { client = 'Neovim' })
  answer(1, 'reloadSystem', report('shop', { redefined = {} }))
  vim.cmd('Consort compile')
  entry('consort.compileForm', { client = 'Neovim' })
  answer(1, 'compileForm', nil, { code = 1, message = 'it does not load' })
  vim.cmd('Consort undo')
  answer_log()
  undone('F')
end)

T.it('what an agent was allowed is undone when it is the newest, and nothing else is', function()
  window()
  compiled('F')
  allowed('code_replace_function', { ['function'] = 'g' })
  has('undoes', last())
  -- The call has not ended.
  vim.cmd('Consort undo')
  answer_log()
  has('Replace G has not ended, or never began', prompts[1])
  choose(nil)

  window()
  allowed('code_replace_function', { ['function'] = 'g' })
  entry('code_replace_function', { about = 'g' })
  vim.cmd('Consort undo')
  answer_log()
  undone('G')
  has('undone: G (agent 1); put back', last())

  window()
  compiled('F')
  allowed('code_replace_function', { ['function'] = 'g' })
  entry('code_replace_function', { about = 'g', status = 'error' })
  vim.cmd('Consort undo')
  answer_log()
  has('Replace G has failed', prompts[1])

  -- A later call of the same kind is another one.
  window()
  allowed('code_replace_function', { ['function'] = 'g' })
  entry('code_replace_function', { about = 'g' })
  entry('code_replace_function', { about = 'g' })
  vim.cmd('Consort undo')
  answer_log()
  has('it is newer than Replace G', prompts[1])
end)

T.it('an allowed call that reloads nothing is not said to be undone by a key', function()
  for _, tool in ipairs({ 'code_undo', 'set-breakpoints' }) do
    window()
    allowed(tool, {})
    T.eq('Consort: allowed: Replace G', last())
  end
end)

T.it('a new image has none of the reloads of before', function()
  window()
  compiled('F')
  local entries = log
  window()
  log = entries
  vim.cmd('Consort undo')
  answer_log()
  has('it was not reported to you', prompts[1])
end)

T.it('what could not be put back is said, and so is a reload that came in the moment before', function()
  window()
  compiled('F')
  vim.cmd('Consort undo')
  answer_log()
  undone('H', { not_undone = { 'the structure S keeps its new layout' } })
  has('undone: H; put back: function H; could not be put back: the structure S keeps its new layout; and not F (function F)', last())
  T.eq(vim.log.levels.WARN, said[#said][2])
  -- An entry of the other one, with which the log explains itself.
  table.insert(log, #log, { number = 0, tool = 'code_replace_function', status = 'ok', client = 'agent 1', time = log[#log].time })
  vim.cmd('Consort undo')
  answer_log()
  undone('F')
end)

T.it('a second undo waits for the first, and a person who has gone on is asked nothing', function()
  window()
  compiled('F')
  vim.cmd('Consort undo')
  vim.cmd('Consort undo')
  T.eq(1, #questions)
  has('an undo is under way', last())
  answer_log()
  vim.cmd('Consort undo')
  T.eq(1, #questions)
  undone('F')

  window()
  entry('code_replace_function')
  vim.cmd('Consort undo')
  vim.cmd.new()
  answer_log()
  T.eq({}, prompts)
  has('you have moved on', last())
  -- The end of the server leaves the command usable.
  vim.cmd('Consort undo')
  S.end_server()
  vim.cmd('Consort undo')
  T.eq('log', questions[1].what)
end)

T.it('a code action that loads a system says when that is loaded', function()
  S.window('(in-package :shop)')
  vim.lsp.config.consort.commands['consort.loadSystem']({ arguments = { { system = 'shop' } } })
  answer(1, 'loadSystem', { loaded = true })
  T.eq('Consort: shop is loaded', last())
end)

T.it('a load that the compiler made fail shows its warnings, the serious ones first', function()
  S.window('(in-package :shop)')
  vim.cmd('Consort load shop')
  local warnings = { { type = 'STYLE-WARNING', message = 'X is never used.' }, { type = 'WARNING', message = 'SHOP also exports\n  (SHOP:OLD)' } }
  local failed = { loaded = false, status = 'error', values = {}, warnings = warnings, stderr = '; file: shop.lisp\n' }
  failed.error = { type = 'COMPILE-FILE-ERROR', message = 'COMPILE-FILE-ERROR while compiling shop.lisp', backtrace = {} }
  answer(1, 'loadSystem', failed)
  T.eq({
    'shop was not loaded: COMPILE-FILE-ERROR while compiling shop.lisp', '',
    'WARNING: SHOP also exports', '  (SHOP:OLD)', 'STYLE-WARNING: X is never used.', '', '; file: shop.lisp',
  }, S.lines())
  T.press('q')
  -- A text that cannot be read gives no warning.
  vim.cmd('Consort load shop')
  answer(1, 'loadSystem', vim.tbl_extend('force', failed, { warnings = {} }))
  T.eq({ 'shop was not loaded: COMPILE-FILE-ERROR while compiling shop.lisp', '', '; file: shop.lisp' }, S.lines())
  T.press('q')
  -- Any other error has the frames of the program, if there are any.
  local function frame(text, name) return { text = text, name = name, role = 'program' } end
  local function failed_in(...)
    vim.cmd('Consort load shop')
    answer(1, 'loadSystem', vim.tbl_extend('force', failed, { warnings = {}, error = { type = 'E', message = 'no', backtrace = { ... } } }))
  end
  local form, load = frame('((SB-C::TOP-LEVEL-FORM (OPEN-SHOP)))'), frame('(LOAD #P"shop.fasl")', 'LOAD')
  failed_in(frame('(OPEN-SHOP)', 'OPEN-SHOP'), form, load)
  T.eq({ 'E: no', '  0  (OPEN-SHOP)' }, S.lines())
  T.press('q')
  failed_in(form, load)
  T.eq({ '(in-package :shop)' }, S.lines())
end)

T.it('an extraction ends in the renaming of the name that it invented', function()
  local buf = S.window('(defun é (x)', '  (let ((part (g x))) part))')
  local renamed, rename
  vim.lsp.buf.rename, rename = function() renamed = vim.api.nvim_win_get_cursor(0) end, vim.lsp.buf.rename
  local place = { uri = vim.uri_from_bufnr(buf), position = { line = 1, character = 9 } }
  vim.lsp.config.consort.commands['_consort.rename']({ arguments = { place } })
  vim.lsp.buf.rename = rename
  T.eq({ 2, 9 }, renamed)
end)

T.finish()
