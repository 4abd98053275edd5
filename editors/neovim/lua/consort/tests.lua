--- Runs of the test at the cursor or of a system's tests. Failures go to the quickfix list and to
--- their lines.
local client_of = require('consort.client')
local inline = require('consort.inline')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.tests')
local LENS = 22 -- cells that are left for other text at the line's end, such as a code lens

-- Failures are shown at the ends of their lines.
vim.diagnostic.config({
  virtual_text = {
    format = function(diagnostic)
      local line = vim.trim(diagnostic.message:gsub('%s*\n%s*', ' '))
      return inline.fit(line, math.max(20, inline.available_width(diagnostic.bufnr, diagnostic.lnum) - LENS))
    end,
  },
}, namespace)

--- Shows the outcomes of a run.
---@param result table
---@param is_last? boolean false if a later run is shown: only the outcome is said
function M.report(result, is_last)
  local items, by_buffer, failed, skipped = {}, {}, 0, 0
  for _, test in ipairs(result.tests or {}) do
    if test.status == 'skipped' then
      skipped = skipped + 1
    elseif test.status ~= 'passed' then
      failed = failed + 1
      local failures = test.failures and #test.failures > 0 and test.failures or { { message = test.status } }
      for _, failure in ipairs(failures) do
        local text = require('consort.shown').line(('%s: %s'):format(test.name, (failure.message or test.status)))
        table.insert(items, { filename = test.file, lnum = test.line, text = text, type = 'E' })
        if test.file and test.line then
          local buf = vim.fn.bufadd(test.file)
          by_buffer[buf] = by_buffer[buf] or {}
          table.insert(by_buffer[buf], { lnum = test.line - 1, col = 0, message = failure.message or test.status, severity = vim.diagnostic.severity.ERROR, source = 'test' })
        end
      end
    end
  end
  if is_last ~= false then
    vim.diagnostic.reset(namespace)
    for buf, diagnostics in pairs(by_buffer) do vim.diagnostic.set(namespace, buf, diagnostics) end
    vim.fn.setqflist({}, ' ', { title = 'Consort tests', items = items })
    if failed > 0 then
      vim.cmd('botright copen')
      vim.cmd.wincmd('p')
    end
  end
  local total = #(result.tests or {})
  if failed > 0 then
    client_of.say(total == 1 and 'the test failed' or ('%d of %d tests failed'):format(failed, total), vim.log.levels.WARN)
  elseif skipped > 0 then
    client_of.say(total == 1 and 'the test was skipped' or ('%d of %d tests passed, %d skipped'):format(total - skipped, total, skipped))
  elseif total == 0 then
    client_of.say('no test was run', vim.log.levels.WARN)
  else
    client_of.say(total == 1 and 'the test passed' or ('all %d tests passed'):format(total))
  end
end

local runs, reported = 0, 0 -- the number of runs that were begun, and the last one that is shown

---@param command string
---@param argument table
local function begin(command, argument)
  client_of.say('testing ...')
  runs = runs + 1
  local mine = runs
  client_of.execute(command, argument, function(result)
    -- One that was begun later, but failed or has not ended, has nothing to show instead.
    M.report(result, mine > reported)
    reported = math.max(reported, mine)
  end)
end

--- Runs the test of a code lens.
---@param command lsp.Command
function M.run_lens(command) begin('runTestAtPoint', vim.tbl_extend('force', command.arguments[1], { show = false })) end

--- Runs the test at the cursor, or those of a system.
---@param system? string
function M.run(system)
  local client = client_of.need()
  if not client then return end
  if system then begin('runTests', { system = system }) else begin('runTestAtPoint', client_of.place(client)) end
end

return M
