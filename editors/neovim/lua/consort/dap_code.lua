--- The code, or the place of the test, that is put into a configuration of nvim-dap.
local client_of = require('consort.client')
local package_after = require('consort.in_package').after
local structure = require('consort.structure')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.dap_code')
local NO_FORM = 'put the cursor into a form'
local VALUES = { 'form', 'top-level', 'selection', 'file', 'test' }

---@class consort.Marked
---@field buf integer
---@field mark? integer an extmark
---@field fields? { code: string, package?: string }

--- What `M.here` marked, by number: a form with its fields, a selection without a mark, or a test.
---@type table<integer, consort.Marked>
local marked = {}
local count = 0

--- Removes all marks but those of the given numbers.
---@param used table<integer, true>
local function forget(used)
  for number, one in pairs(marked) do
    if not used[number] then
      if one.mark and vim.api.nvim_buf_is_valid(one.buf) then vim.api.nvim_buf_del_extmark(one.buf, namespace, one.mark) end
      marked[number] = nil
    end
  end
end

--- Returns the code in a range of a buffer, and its package.
local function in_range(buf, range)
  local code = table.concat(vim.api.nvim_buf_get_text(buf, range[1], range[2], range[3], range[4], {}), '\n')
  return { code = code, package = package_after(vim.api.nvim_buf_get_lines(buf, 0, range[1], false)) }
end

--- Returns the selected text in Visual mode, with its package; nil in another mode.
local function selected()
  local mode = vim.fn.mode()
  if not mode:match('^[vV\22]') then return end
  local from, to = vim.fn.getpos('v'), vim.fn.getpos('.')
  local code = table.concat(vim.fn.getregion(from, to, { type = mode }), '\n')
  return { code = code, package = package_after(vim.api.nvim_buf_get_lines(0, 0, math.min(from[2], to[2]) - 1, false)) }
end

--- Returns the code that a configuration evaluates, with its package, and the range of a form.
--- Returns nil, after a message, if there is none.
---@param what string 'form', 'top-level' or 'selection'
---@return { code: string, package?: string }?
---@return integer[]? range nil for a selection
local function form(what)
  local chosen = what ~= 'form' and selected() or nil
  if chosen then return chosen end
  local around = what == 'top-level' and structure.top_level or structure.innermost
  local range = around()
  if range == nil then client_of.say(NO_FORM, vim.log.levels.WARN) end
  if range then return in_range(0, range), range end
end

--- Returns true if a buffer has a file; otherwise says that tests need one.
local function has_file(buf)
  if vim.api.nvim_buf_get_name(buf) ~= '' and vim.bo[buf].buftype == '' then return true end
  client_of.say('only a test in a file can be debugged', vim.log.levels.WARN)
end

--- Marks what is at the cursor, for `M.enrich`. The mark is kept until the next one is made, and
--- while a session uses it.
---@param what string 'top-level' or 'test'
---@param used table<integer, true> the numbers that sessions use
---@return integer? number nil, after a message, if there is nothing
function M.here(what, used)
  local buf, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local fields, range = nil, { row, 0, row, 0 }
  if what ~= 'test' then
    fields, range = form(what)
    if not fields then return end
  elseif not has_file(buf) then
    return
  end
  forget(used)
  local ends = range and { end_row = range[3], end_col = range[4] }
  local mark = range and vim.api.nvim_buf_set_extmark(buf, namespace, range[1], range[2], ends)
  count = count + 1
  marked[count] = { buf = buf, mark = mark, fields = fields }
  return count
end

--- Returns the fields for what was marked, as it is now, or as it was if its buffer has it no
--- longer. Returns nil for a test whose buffer is gone.
local function fields_of_mark(one)
  local is_there = one.mark and vim.api.nvim_buf_is_loaded(one.buf)
  local row, column, details = unpack(is_there and vim.api.nvim_buf_get_extmark_by_id(one.buf, namespace, one.mark, { details = true }) or {})
  if not one.fields then return row and { file = vim.api.nvim_buf_get_name(one.buf), line = row + 1 } or nil end
  local now = row and in_range(one.buf, { row, column, details.end_row, details.end_col })
  return now and now.code:match('%S') and now or one.fields
end

--- Returns the fields for what is at the cursor; nil, after a message, if there is nothing.
---@param what? string the `evaluate` of the configuration
local function fields_at_cursor(what)
  local buf = vim.api.nvim_get_current_buf()
  local place = { file = vim.api.nvim_buf_get_name(buf), line = vim.api.nvim_win_get_cursor(0)[1] }
  if what == 'test' then return has_file(buf) and place or nil end
  if what == 'file' or what == 'buffer' then return { code = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n') } end
  if what ~= nil and not vim.list_contains(VALUES, what) then
    return client_of.fail(('`evaluate` in a debug configuration is one of %s'):format(table.concat(VALUES, ', ')))
  end
  local fields, range = form(what or 'top-level')
  -- Without `evaluate`, a test at the cursor is run. The host finds out whether there is one.
  if fields and what == nil and range and place.file ~= '' and vim.bo[buf].buftype == '' then return vim.tbl_extend('error', fields, place) end
  return fields
end

--- Puts the code, or the place of the test, into a configuration that names neither. nvim-dap has
--- expanded variables such as `${file}` before, and thus expands none in the code.
---@param config table
---@param on_config fun(config: table)
function M.enrich(config, on_config)
  if config.request ~= 'launch' or config.code or config.test or config.file then return on_config(config) end
  local one = marked[config.here]
  local fields = one and fields_of_mark(one) or not one and fields_at_cursor(config.evaluate) or nil
  if one and not fields then client_of.say('the test is in no buffer any more', vim.log.levels.WARN) end
  if fields then on_config(vim.tbl_extend('keep', {}, config, fields)) end
end

return M
