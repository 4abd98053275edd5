--- The inspector: a buffer with the parts of a value, a page at a time, and a history of values to
--- go back to.
require('consort.colours')
local client_of = require('consort.client')
local hints = require('consort.hints')
local escaped = require('consort.escaped')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.inspector')
local HINT = '<CR> goes into the part · u goes back · q closes · s sets the part · g reads anew'
-- The additional keys for values of the image. For values of a stopped thread, these keys only show
-- a message.
local MORE = ' · e evaluates · t table · m compares · d definition · v describes'
local HEAD = 5 -- lines of the value itself that are shown above its parts

---@class consort.Inspected
---@field name string
---@field value string
---@field reference integer as `variables` takes it

---@class consort.Page a value in the inspector, the values on the way to it, and its parts
---@field adapter consort.Adapter
---@field path consort.Inspected[] the value is the last one
---@field parts table[]

--- `wanted` is the page whose parts have been requested, else the shown page. Keys that act on a
--- part act on the shown page.
--- `evaluation` identifies the last evaluation on a value. Results of earlier ones are only shown
--- in a message.
---@class consort.InspectorView
---@field buf integer
---@field shown consort.Page
---@field wanted consort.Page
---@field first integer
---@field evaluation? table

---@type consort.InspectorView?
local inspector

---@param page consort.Page
---@return consort.Inspected
local function value_of(page) return page.path[#page.path] end

---@param page consort.Page
local function is_shown(page) return inspector.shown == page and vim.api.nvim_buf_is_valid(inspector.buf) end

--- Returns true unless the inspector was closed, or another value was requested.
---@param page consort.Page
local function is_wanted(page) return vim.api.nvim_buf_is_valid(inspector.buf) and value_of(inspector.wanted) == value_of(page) end

local function render()
  local page = inspector.shown
  local lines = { escaped.line(table.concat(vim.tbl_map(function(one) return one.name end, page.path), ' › ')) }
  local head = escaped.lines(value_of(page).value)
  vim.list_extend(lines, #head > HEAD and vim.list_slice(head, 1, HEAD - 1) or head)
  if #head > HEAD then table.insert(lines, ('… %d more lines'):format(#head - HEAD + 1)) end
  table.insert(lines, '')
  inspector.first = #lines + 1
  for _, part in ipairs(page.parts) do table.insert(lines, escaped.line(('%s  %s'):format(part.name, part.value))) end
  vim.bo[inspector.buf].modifiable = true
  vim.api.nvim_buf_set_lines(inspector.buf, 0, -1, false, lines)
  vim.bo[inspector.buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(inspector.buf, namespace, 0, -1)
  vim.api.nvim_buf_set_extmark(inspector.buf, namespace, 0, 0, { end_col = #lines[1], hl_group = 'Title' })
  for i, part in ipairs(page.parts) do
    local row = inspector.first + i - 2
    vim.api.nvim_buf_set_extmark(inspector.buf, namespace, row, 0, { end_col = math.min(#lines[row + 1], #escaped.line(part.name)), hl_group = 'Identifier' })
  end
  hints.show(inspector.buf, namespace, page.adapter.evaluate and HINT .. MORE or HINT)
end

--- Shows the value at the end of a path, once its parts have arrived. The answer is dropped if the
--- person has gone to another page meanwhile.
---@param adapter consort.Adapter
---@param path consort.Inspected[]
---@param at_first boolean the cursor goes to the first part
local function show(adapter, path, at_first)
  local mine, page = inspector, { adapter = adapter, path = path }
  mine.wanted = page
  adapter:request('variables', { variablesReference = value_of(page).reference }, function(error, answer)
    if inspector ~= mine or mine.wanted ~= page or not vim.api.nvim_buf_is_valid(mine.buf) then return end
    if error then
      mine.wanted = mine.shown
      return client_of.fail(error)
    end
    page.parts = answer.variables
    mine.shown = page
    render()
    local win = vim.fn.bufwinid(mine.buf)
    if at_first and win ~= -1 then vim.schedule(function() pcall(vim.api.nvim_win_set_cursor, win, { mine.first, 0 }) end) end
  end)
end

--- Returns the part of the cursor's line and its index; nil if the line has no part.
local function part_here()
  local i = vim.api.nvim_win_get_cursor(0)[1] - inspector.first + 1
  return inspector.shown.parts[i], i
end

--- Returns the path of a page with a value appended.
local function further(page, value) return vim.list_extend(vim.list_slice(page.path), { value }) end

local function enter()
  local page, part, i = inspector.shown, part_here()
  if not part then return client_of.say('put the cursor on a part') end
  if (part.variablesReference or 0) == 0 then return client_of.say('this value has no parts') end
  if part.name:match('^%[%d+%.%.%.%]$') then
    -- The parts of the next page replace the line that stands for it.
    page.adapter:ask('variables', { variablesReference = part.variablesReference }, function(answer)
      if not is_shown(page) or page.parts[i] ~= part then return end
      table.remove(page.parts, i)
      vim.list_extend(page.parts, answer.variables)
      render()
    end)
    return
  end
  show(page.adapter, further(page, { name = part.name, value = part.value, reference = part.variablesReference }), true)
end

local function back()
  local page = inspector.wanted
  if #page.path < 2 then return client_of.say('this is the first value') end
  show(page.adapter, vim.list_slice(page.path, 1, #page.path - 1), true)
end

local function read_anew() show(inspector.wanted.adapter, inspector.wanted.path, false) end

--- Sets the part of the cursor's line to another value.
local function set()
  local page, part = inspector.shown, part_here()
  if not part then return client_of.say('put the cursor on a part') end
  vim.ui.input({ prompt = ('New value of %s, a Lisp form: '):format(escaped.line(part.name)) }, function(typed)
    if not typed or vim.trim(typed) == '' then return end
    part.last = typed
    page.adapter:ask('setVariable', { variablesReference = value_of(page).reference, name = part.name, value = typed }, function(answer)
      -- The part was set again meanwhile, and this answer may be the later one.
      if part.last ~= typed then return is_wanted(page) and read_anew() end
      part.value, part.variablesReference = answer.value, answer.variablesReference
      if is_shown(page) then render() end
      -- The value was read again meanwhile, perhaps before the part was set.
      if inspector.wanted ~= page and is_wanted(page) then read_anew() end
    end)
  end)
end

--- Returns the part of the cursor's line, or the shown value if that line has no part with parts of
--- its own.
---@return consort.Inspected
local function meant()
  local part = part_here()
  if part and (part.variablesReference or 0) ~= 0 then return { name = part.name, value = part.value, reference = part.variablesReference } end
  return value_of(inspector.shown)
end

--- Calls `run` if the adapter of the shown value has the method NAME. Otherwise shows a message.
--- Only the adapters of values of the image have all methods.
local function if_supported(name, run)
  if inspector.shown.adapter[name] then return run() end
  client_of.say('only in `:Consort inspect`; in the debugger, `e` evaluates')
end

local function evaluate()
  local page, at = inspector.shown, meant()
  vim.ui.input({ prompt = ('Evaluate on %s, which is *: '):format(escaped.line(at.name)) }, function(code)
    if not code or vim.trim(code) == '' then return end
    local mine = {}
    inspector.evaluation = mine
    page.adapter:evaluate(at.reference, code, function(value, reference)
      if reference == 0 or not is_wanted(page) or inspector.evaluation ~= mine then return client_of.say('⇒ ' .. value) end
      show(page.adapter, further(page, { name = code, value = value, reference = reference }), true)
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
  inspector.shown.adapter:compare(one, at)
end

local asked, opened = 0, 0
--- Returns a new number for a request whose answer will be passed to `open`.
---@return integer
function M.asked()
  asked = asked + 1
  return asked
end

--- Inspects a value. If the value was requested before the one that was opened last, its answer has
--- come late, and it is only shown in a message.
---@param adapter consort.Adapter
---@param name string
---@param value string
---@param reference integer as `variables` takes it
---@param focus boolean the cursor goes to it
---@param number? integer from `asked`; a new number by default
function M.open(adapter, name, value, reference, focus, number)
  number = number or M.asked()
  if number < opened then return client_of.say(('%s ⇒ %s'):format(name, value)) end
  opened = number
  local path = { { name = name, value = value, reference = reference } }
  if not (inspector and vim.api.nvim_buf_is_valid(inspector.buf)) then
    local buf = vim.api.nvim_create_buf(false, true)
    client_of.belongs(buf)
    vim.bo[buf].bufhidden = 'wipe'
    vim.bo[buf].modifiable = false
    vim.bo[buf].filetype = 'consort-inspector'
    pcall(vim.api.nvim_buf_set_name, buf, 'consort://inspector')
    local page = { adapter = adapter, path = path, parts = {} }
    inspector = { buf = buf, shown = page, wanted = page, first = 1 }
    local function map(key, about, run) vim.keymap.set('n', key, run, { buffer = buf, nowait = true, desc = 'Consort: ' .. about }) end
    map('<CR>', 'go into the part', enter)
    map('u', 'go back', back)
    map('s', 'set the part', set)
    map('e', 'evaluate on the value', function() if_supported('evaluate', evaluate) end)
    map('t', 'show as a table', function()
      if_supported('table', function()
        local at = value_of(inspector.shown)
        inspector.shown.adapter:table(at.name, at.reference)
      end)
    end)
    map('m', 'mark the value, and compare with the marked one', function() if_supported('compare', compare) end)
    for key, one in pairs({ d = { 'definition', 'go to the definition' }, v = { 'describe', 'describe the value' } }) do
      map(key, one[2], function()
        if_supported(one[1], function() inspector.shown.adapter[one[1]](inspector.shown.adapter, meant()) end)
      end)
    end
    hints.follow(buf, function()
      if inspector.buf == buf then render() end
    end)
    require('consort.maps').without_text(buf, true)
    map('g', 'read anew', read_anew)
    map('q', 'close the inspector', function() vim.api.nvim_buf_delete(buf, { force = true }) end)
  end
  local win = vim.fn.bufwinid(inspector.buf)
  if win == -1 then win = vim.api.nvim_open_win(inspector.buf, false, { split = 'below', win = -1 }) end
  if focus then vim.api.nvim_set_current_win(win) else client_of.say(('%s is in the inspector'):format(name)) end
  show(adapter, path, true)
end

return M
