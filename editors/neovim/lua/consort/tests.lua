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

--- Returns the outcome of a run in a sentence, and its level.
---@param result table
---@return string outcome
---@return integer? level
local function outcome(result)
  local total, failed, skipped = #(result.tests or {}), 0, 0
  for _, test in ipairs(result.tests or {}) do
    if test.status == 'skipped' then
      skipped = skipped + 1
    elseif test.status ~= 'passed' then
      failed = failed + 1
    end
  end
  local error = type(result.error) == 'table' and result.error.message
  if error then return (total == 0 and 'no test was run: ' or 'the run of the tests ended early: ') .. error, vim.log.levels.ERROR end
  if failed > 0 then return total == 1 and 'the test failed' or ('%d of %d tests failed'):format(failed, total), vim.log.levels.WARN end
  if skipped > 0 then return total == 1 and 'the test was skipped' or ('%d of %d tests passed, %d skipped'):format(total - skipped, total, skipped) end
  if total == 0 then return 'no test was run', vim.log.levels.WARN end
  return total == 1 and 'the test passed' or ('all %d tests passed'):format(total)
end

--- Shows the outcomes of a run.
---@param result table
---@param is_last? boolean false if a later run is shown. Only a message shows the outcome then.
---@param unsaved? string[] the files whose unsaved changes were not tested
---@param place? { file: string, line: integer } of the only test, if the answer has no file of it
function M.report(result, is_last, unsaved, place)
  local items, by_buffer = {}, {}
  for _, test in ipairs(result.tests or {}) do
    if place and not test.file and #result.tests == 1 then test = vim.tbl_extend('force', test, place) end
    if test.status ~= 'skipped' and test.status ~= 'passed' then
      local failures = test.failures and #test.failures > 0 and test.failures or { { message = test.status } }
      for _, failure in ipairs(failures) do
        local text = require('consort.escaped').line(('%s: %s'):format(test.name, (failure.message or test.status)))
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
    if #items > 0 then
      vim.cmd('botright copen')
      vim.cmd.wincmd('p')
    end
  end
  local text, level = outcome(result)
  client_of.say(text .. require('consort.systems').without(unsaved), level)
end

local runs, reported = 0, 0 -- the number of runs that were begun, and the last one that is shown

---@param command string
---@param argument table
---@param unsaved? string[]
---@param place_now? fun(): { file: string, line: integer }? from place_of
local function begin(command, argument, unsaved, place_now)
  client_of.say('testing ...')
  runs = runs + 1
  local mine = runs
  --- Returns the place of the test, and removes its mark.
  local function place() return place_now and place_now() end
  local cancel = client_of.execute(command, argument, function(result)
    -- A later run that failed or has not ended has no results to show instead.
    M.report(result, mine > reported, unsaved, place())
    reported = math.max(reported, mine)
    -- A run of a system has loaded the saved files.
    if unsaved or result.success ~= false then return end
    require('consort.differences').files(function(files)
      if #files == 0 or mine ~= runs then return end
      local text, level = outcome(result)
      local newer = #files == 1 and '%s; %s is newer than the image: %s in it' or '%s; %s are newer than the image: %s in each'
      client_of.say(newer:format(text, table.concat(files, ', '), require('consort.maps').key('changed')), level)
    end)
  end, {
    on_error = function(error)
      place()
      client_of.failed(error)
    end,
  })
  if not cancel then place() end
end

local places = vim.api.nvim_create_namespace('consort.tests.places')

--- Marks the start of the top-level form around a line. Returns a function that returns the place
--- where it is then, and removes the mark. The image does not know the file of a test that was
--- evaluated in its buffer.
---@param buf integer
---@param row integer 0-based
---@return fun(): { file: string, line: integer }?
local function place_of(buf, row)
  while row > 0 and not (vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''):match('^%(') do row = row - 1 end
  local mark = vim.api.nvim_buf_set_extmark(buf, places, row, 0, {})
  return function()
    if not vim.api.nvim_buf_is_valid(buf) then return end
    local at = vim.api.nvim_buf_get_extmark_by_id(buf, places, mark, {})[1]
    vim.api.nvim_buf_del_extmark(buf, places, mark)
    return at and { file = vim.api.nvim_buf_get_name(buf), line = at + 1 }
  end
end

--- Runs the test at a position of a buffer.
---@param argument { uri: string, position: lsp.Position }
local function run_at(argument)
  local buf = vim.uri_to_bufnr(argument.uri)
  begin('runTestAtPoint', argument, nil, vim.api.nvim_buf_is_loaded(buf) and place_of(buf, argument.position.line) or nil)
end

--- Runs the test of a code lens.
---@param command lsp.Command
function M.run_lens(command) run_at(vim.tbl_extend('force', command.arguments[1], { show = false })) end

--- Runs the test at the cursor, or those of a system.
---@param system? string
function M.run(system)
  local client = client_of.need()
  if not client then return end
  if system then begin('runTests', { system = system }, require('consort.systems').unsaved()) else run_at(client_of.place(client)) end
end

return M
