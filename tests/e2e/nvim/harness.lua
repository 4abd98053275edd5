-- A small harness for `nvim -l`: exits non-zero when a test failed, ends with `N passed, N failed`.
-- $ONLY, a Lua pattern, selects the tests whose names match, and all tests before the first of
-- them, because tests use the buffers that earlier ones have left.
local T = {}
local passed, failed = 0, 0
local only = vim.env.ONLY ~= '' and vim.env.ONLY or nil
local reached = false
local part = vim.fn.fnamemodify(arg[0], ':t:r')

--- The time limit for something that must come, in milliseconds.
T.patience = tonumber(vim.env.CONSORT_TEST_PATIENCE or 120000)

--- Fails unless GOT equals WANT, tables by their contents.
function T.eq(want, got, what)
  if not vim.deep_equal(want, got) then
    error(('%s: want %s, got %s'):format(what or 'not equal', vim.inspect(want), vim.inspect(got)), 2)
  end
end

--- Runs the event loop until FN returns something true, and returns that. DESCRIBE, if given,
--- returns the state to report in a failure.
function T.wait(what, fn, describe)
  local result
  if not vim.wait(T.patience, function() result = fn() return result end, 10) then
    error(('waited %d s in vain for %s%s'):format(T.patience / 1000, what, describe and ': ' .. vim.inspect(describe()) or ''), 2)
  end
  return result
end

--- Runs a program to its end; returns its output.
function T.run(command, options)
  local done = vim.system(command, vim.tbl_extend('force', { text = true }, options or {})):wait(T.patience)
  if done.signal ~= 0 then error(('%s was ended by signal %d: %s'):format(table.concat(command, ' '), done.signal, done.stderr or ''), 2) end
  return done
end

--- Puts the plugin on the runtimepath, and reads its commands if COMMANDS is true: `-l` runs before
--- plugins are loaded and files have types. Evaluations report errors instead of stopping, unless
--- ON_ERROR says otherwise. Returns the plugin's path.
function T.plugin(commands, on_error)
  local plugin = vim.fs.normalize(vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p'))) .. '/../../../editors/neovim')
  vim.opt.runtimepath:prepend(plugin)
  vim.o.swapfile = false
  vim.lsp.config('consort', { settings = { consort = { debug = { on_error = on_error or 'report' } } } })
  vim.cmd('filetype on')
  if commands then vim.cmd.source(plugin .. '/plugin/consort.lua') end
  return plugin
end

--- Makes a workspace with a file of LINES; returns the paths of both.
function T.workspace(lines)
  local workspace = vim.fs.normalize(vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname()))) .. '/workspace'
  vim.fn.mkdir(workspace .. '/.git', 'p')
  local file = workspace .. '/fixture.lisp'
  vim.fn.writefile(lines, file)
  return workspace, file
end

--- Types KEYS, in the notation of mappings, and runs what they are mapped to.
function T.press(keys) vim.api.nvim_feedkeys(vim.keycode(keys), 'mx', false) end

--- Records the calls of `vim.notify` from now on. Returns the list of { message, level }, a
--- function that returns the last message, and one that empties the list.
function T.notifications()
  local said = {}
  vim.notify = function(message, level) table.insert(said, { message, level }) end
  return said, function() return (said[#said] or {})[1] end, function()
    for i in ipairs(said) do said[i] = nil end
  end
end

--- Waits until no command of the plugin is without an answer.
function T.answered()
  local function outstanding()
    local found = {}
    for _, client in ipairs(vim.lsp.get_clients()) do
      for _, request in pairs(client.requests) do
        if request.method == 'workspace/executeCommand' then table.insert(found, request) end
      end
    end
    return found
  end
  T.wait('the answers', function() return #outstanding() == 0 end, outstanding)
end

--- Sends a request to the language server, and waits for its answer.
function T.ask(client, method, params, buf)
  local answer, why = client:request_sync(method, params, T.patience, buf)
  if not answer then error(('%s was not answered in %d s: %s'):format(method, T.patience / 1000, tostring(why)), 2) end
  return answer
end

function T.it(name, fn)
  local chosen = not only or name:find(only) ~= nil
  if reached and not chosen then return end
  reached = reached or (only ~= nil and chosen)
  local ok, err = xpcall(fn, debug.traceback)
  if ok then
    passed = passed + 1
    io.write('ok   ', name, '\n')
  else
    failed = failed + 1
    io.write('FAIL ', name, '\n', tostring(err), '\n')
    local messages = vim.trim(vim.fn.execute('messages'))
    if messages ~= '' then io.write('messages: ', messages:sub(-2000), '\n') end
    io.write(('alone: CONSORT_BIN=$PWD/target/debug/consort scripts/isolated tests/e2e/nvim/run.sh %s "%s"\n'):format(part, (name:gsub('%W', '.'))))
  end
end

--- Stops the language clients and the workspace's host, and removes the workspace.
function T.leave(workspace)
  for _, client in ipairs(vim.lsp.get_clients()) do client:stop() end
  T.wait('the clients to stop', function() return #vim.lsp.get_clients() == 0 end)
  T.run({ 'consort', 'stop' }, { cwd = workspace })
  vim.fn.delete(workspace, 'rf')
end

function T.finish()
  io.write(('%d passed, %d failed\n'):format(passed, failed))
  vim.cmd('cquit ' .. ((failed == 0 and passed > 0) and 0 or 1))
end

return T
