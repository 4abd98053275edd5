--- The inspector's buffer: the parts of a value, a page at a time, and the way back.
require('consort.colours')
local client_of = require('consort.client')
local shown = require('consort.shown')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.inspector')
local HINT = '<CR> goes into the part · u goes back · s sets the part · g reads anew · q closes'
-- What only values of the image itself have, and not those of a stop.
local MORE = ' · e evaluates · t table · m compares · d definition · v describes'

---@class consort.Inspected
---@field name string
---@field value string
---@field reference integer

---@alias consort.Inspection { buf: integer, adapter: consort.Adapter, path: consort.Inspected[] }
---@type (consort.Inspection | { parts: table[], first: integer })?
local inspector

--- The value at the end of the path.
---@return consort.Inspected
local function current() return inspector.path[#inspector.path] end

local function render()
  local at = current()
  local lines = { shown.line(table.concat(vim.tbl_map(function(one) return one.name end, inspector.path), ' › ')) }
  vim.list_extend(lines, shown.lines(at.value))
  table.insert(lines, '')
  inspector.first = #lines + 1
  for _, part in ipairs(inspector.parts) do table.insert(lines, shown.line(('%s  %s'):format(part.name, part.value))) end
  vim.bo[inspector.buf].modifiable = true
  vim.api.nvim_buf_set_lines(inspector.buf, 0, -1, false, lines)
  vim.bo[inspector.buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(inspector.buf, namespace, 0, -1)
  vim.api.nvim_buf_set_extmark(inspector.buf, namespace, 0, 0, { end_col = #lines[1], hl_group = 'Title' })
  for i, part in ipairs(inspector.parts) do
    local row = inspector.first + i - 2
    vim.api.nvim_buf_set_extmark(inspector.buf, namespace, row, 0, { end_col = math.min(#lines[row + 1], #shown.line(part.name)), hl_group = 'Identifier' })
  end
  vim.api.nvim_buf_set_extmark(inspector.buf, namespace, #lines - 1, 0, { virt_lines = { { { '' } }, { { inspector.adapter.evaluate and HINT .. MORE or HINT, 'ConsortHint' } } } })
end

--- Returns true if the inspector still shows a value, or waits for its parts.
---@param at consort.Inspected
local function is_current(at) return inspector ~= nil and vim.api.nvim_buf_is_valid(inspector.buf) and current() == at end

--- Read the parts of the value at the end of the path. An answer that comes after the person has
--- gone to another value is dropped.
local function read(on_parts)
  local at = current()
  inspector.adapter:request('variables', { variablesReference = at.reference }, function(error, answer)
    if not is_current(at) then return end
    if error then
      if #inspector.path > 1 then table.remove(inspector.path) end
      return client_of.fail(error)
    end
    on_parts(answer.variables)
    render()
  end)
end

local function replace(parts)
  inspector.parts = parts
  local win = vim.fn.bufwinid(inspector.buf)
  if win ~= -1 then vim.schedule(function() pcall(vim.api.nvim_win_set_cursor, win, { inspector.first, 0 }) end) end
end

local function enter()
  local i = vim.api.nvim_win_get_cursor(0)[1] - inspector.first + 1
  local part = inspector.parts[i]
  if not part then return end
  if (part.variablesReference or 0) == 0 then return client_of.say('there is nothing more to see in it') end
  if part.name:match('^%[%d+%.%.%.%]$') then
    -- The next page takes the place of the line that stands for it.
    inspector.adapter:ask('variables', { variablesReference = part.variablesReference }, function(answer)
      if inspector.parts[i] ~= part then return end
      table.remove(inspector.parts, i)
      vim.list_extend(inspector.parts, answer.variables)
      render()
    end)
    return
  end
  table.insert(inspector.path, { name = part.name, value = part.value, reference = part.variablesReference })
  read(replace)
end

local function back()
  if #inspector.path < 2 then return client_of.say('this is the first value') end
  table.remove(inspector.path)
  read(replace)
end

--- Give the part of the cursor's line another value.
local function set()
  local part = inspector.parts[vim.api.nvim_win_get_cursor(0)[1] - inspector.first + 1]
  if not part then return end
  vim.ui.input({ prompt = ('New value of %s, a Lisp form: '):format(shown.line(part.name)) }, function(typed)
    if not typed or vim.trim(typed) == '' then return end
    local reference = inspector.path[#inspector.path].reference
    inspector.adapter:ask('setVariable', { variablesReference = reference, name = part.name, value = typed }, function(answer)
      part.value, part.variablesReference = answer.value, answer.variablesReference
      render()
    end)
  end)
end

--- The part of the cursor's line, or the value itself.
---@return consort.Inspected
local function meant()
  local part = inspector.parts[vim.api.nvim_win_get_cursor(0)[1] - inspector.first + 1]
  if part and (part.variablesReference or 0) ~= 0 then return { name = part.name, value = part.value, reference = part.variablesReference } end
  return inspector.path[#inspector.path]
end

--- Do something that only values of the image itself have.
local function if_it_can(name, run)
  if inspector.adapter[name] then return run() end
  client_of.say('only values that `:Consort inspect` shows have that; `e` in the debugger evaluates in the frame')
end

local function evaluate()
  local at = meant()
  vim.ui.input({ prompt = ('Evaluate on %s, which is *: '):format(shown.line(at.name)) }, function(code)
    if not code or vim.trim(code) == '' then return end
    inspector.adapter:evaluate(at.reference, code, function(value, reference)
      if reference == 0 then return client_of.say('⇒ ' .. value) end
      table.insert(inspector.path, { name = code, value = value, reference = reference })
      read(replace)
    end)
  end)
end

---@type consort.Inspected?
local marked
local function compare()
  local at = meant()
  if not marked then
    marked = at
    return client_of.say(('%s is marked: `m` at another value compares it'):format(at.name))
  end
  local one = marked
  marked = nil
  inspector.adapter:compare(one, at)
end

--- Inspect a value.
---@param adapter consort.Adapter
---@param name string
---@param value string
---@param reference integer as `variables` takes it
function M.open(adapter, name, value, reference)
  if not (inspector and vim.api.nvim_buf_is_valid(inspector.buf)) then
    local buf = vim.api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden = 'wipe'
    vim.bo[buf].modifiable = false
    vim.bo[buf].filetype = 'consort-inspector'
    pcall(vim.api.nvim_buf_set_name, buf, 'consort://inspector')
    inspector = { buf = buf, adapter = adapter, path = {}, parts = {}, first = 1 }
    local function map(key, about, run) vim.keymap.set('n', key, run, { buffer = buf, nowait = true, desc = 'Consort: ' .. about }) end
    map('<CR>', 'go into the part', enter)
    map('u', 'go back', back)
    map('s', 'set the part', set)
    map('e', 'evaluate on the value', function() if_it_can('evaluate', evaluate) end)
    map('t', 'show as a table', function()
      if_it_can('table', function()
        local at = meant()
        inspector.adapter:table(at.name, at.reference)
      end)
    end)
    map('m', 'mark the value, and compare with the marked one', function() if_it_can('compare', compare) end)
    for key, one in pairs({ d = { 'definition', 'go to the definition' }, v = { 'describe', 'describe the value' } }) do
      map(key, one[2], function()
        if_it_can(one[1], function() inspector.adapter[one[1]](inspector.adapter, meant()) end)
      end)
    end
    map('g', 'read anew', function() read(function(parts) inspector.parts = parts end) end)
    map('q', 'close the inspector', function() vim.api.nvim_buf_delete(buf, { force = true }) end)
  end
  inspector.adapter = adapter
  inspector.path = { { name = name, value = value, reference = reference } }
  local win = vim.fn.bufwinid(inspector.buf)
  if win == -1 then
    vim.cmd('botright split')
    vim.api.nvim_win_set_buf(0, inspector.buf)
  else
    vim.api.nvim_set_current_win(win)
  end
  read(replace)
end

return M
