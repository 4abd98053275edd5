-- A small harness for `nvim -l`: exits non-zero when a test failed, ends with `N passed, N failed`.
local T = {}
local passed, failed = 0, 0

--- Fail unless GOT equals WANT, tables by their contents.
function T.eq(want, got, what)
  if not vim.deep_equal(want, got) then
    error(('%s: want %s, got %s'):format(what or 'not equal', vim.inspect(want), vim.inspect(got)), 2)
  end
end

--- Run the event loop until FN returns something true, and return that. DESCRIBE, if given, tells what was seen instead.
function T.wait(what, fn, describe)
  local result
  if not vim.wait(tonumber(vim.env.CONSORT_TEST_PATIENCE or 60000), function() result = fn() return result end, 10) then
    error('timed out waiting for ' .. what .. (describe and ': ' .. vim.inspect(describe()) or ''), 2)
  end
  return result
end

function T.it(name, fn)
  local ok, err = xpcall(fn, debug.traceback)
  if ok then
    passed = passed + 1
    io.write('ok   ', name, '\n')
  else
    failed = failed + 1
    io.write('FAIL ', name, '\n', tostring(err), '\n')
  end
end

function T.finish()
  io.write(('%d passed, %d failed\n'):format(passed, failed))
  vim.cmd('cquit ' .. ((failed == 0 and passed > 0) and 0 or 1))
end

return T
