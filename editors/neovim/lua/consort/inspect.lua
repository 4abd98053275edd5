--- `:Consort inspect`: a value of the image in the inspector's buffer, through the language server.
local client_of = require('consort.client')
local float = require('consort.float')
local escaped = require('consort.escaped')

local M = {}
local PAGE = 100 -- parts that are read at a time
local ROWS = 200 -- of a table
local CELL = 40 -- cells of a column

---@class consort.Value
---@field text string
---@field reference integer 0 if it has no parts to show

--- The methods of an adapter that the inspector calls, for values of the image. A reference
--- consists of the value's reference and the number of the first part to read. `parts` maps the
--- value's reference and a part's name to the number of the part.
---@class consort.Values
---@field buf integer
---@field parts table<string, table<string, integer>>
local Values = {}
Values.__index = Values

local function parts_of(reference, start) return reference ~= 0 and { reference = reference, start = start } or 0 end

---@param reference { reference: integer, start: integer }
---@param callback fun(error?: string, answer?: table)
function Values:variables(reference, callback)
  local argument = { reference = reference.reference, start = reference.start, count = PAGE }
  client_of.execute('inspect', argument, function(answer)
    local variables = {}
    local numbers = reference.start == 0 and {} or self.parts[reference.reference] or {}
    for i, part in ipairs(answer.parts) do
      local name = type(part.key) == 'table' and part.key.text or part.label
      numbers[name] = numbers[name] or reference.start + i - 1
      local value = part.missing and ('<%s>'):format(part.value.text) or part.value.text
      table.insert(variables, { name = name, value = value, variablesReference = parts_of(part.value.reference, 0) })
    end
    self.parts[reference.reference] = numbers
    local next_one = reference.start + #answer.parts
    if #answer.parts > 0 and next_one < answer.total then
      table.insert(variables, { name = ('[%d...]'):format(next_one), value = ('%d more'):format(answer.total - next_one), variablesReference = parts_of(reference.reference, next_one) })
    end
    callback(nil, { variables = variables })
  end, { buf = self.buf, on_error = function(error) callback(error.message) end })
end

--- Returns the first value of an evaluation; nil, after a message, if it has none.
local function first(answer)
  if type(answer.error) == 'table' then return client_of.fail(('%s: %s'):format(answer.error.type, answer.error.message)) end
  local value = (answer.values or {})[1]
  if not value then client_of.fail(answer.status == 'ok' and 'it has no value' or 'it did not end: ' .. tostring(answer.status)) end
  return value
end

function Values:set(arguments, callback)
  local reference = arguments.variablesReference.reference
  local part = (self.parts[reference] or {})[arguments.name]
  if not part then return callback('the part is no longer there') end
  client_of.execute('inspectSet', { reference = reference, part = part, code = arguments.value }, function(answer)
    local value = first(answer)
    if value then callback(nil, { value = value.text, variablesReference = parts_of(value.reference, 0) }) end
  end, { buf = self.buf, on_error = function(error) callback(error.message) end })
end

--- Answers the requests that the inspector sends to a debug adapter.
function Values:request(command, arguments, callback)
  if command == 'variables' then return self:variables(arguments.variablesReference, callback) end
  if command == 'setVariable' then return self:set(arguments, callback) end
  callback('the inspector has no ' .. command)
end

function Values:ask(command, arguments, done)
  self:request(command, arguments, function(error, answer)
    if error then return client_of.fail(error) end
    done(answer)
  end)
end

--- Evaluates code on a value, which is `*` in it.
---@param done fun(value: string, reference: any)
function Values:evaluate(reference, code, done)
  client_of.execute('inspectEval', { reference = reference.reference, code = code }, function(answer)
    local value = first(answer)
    if value then done(value.text, parts_of(value.reference, 0)) end
  end, { buf = self.buf })
end

---@param name string
---@param answer table
---@return string[]
function M.table_lines(name, answer)
  local inline = require('consort.inline')
  local rows = { vim.list_extend({ '' }, vim.tbl_map(string.lower, answer.columns)) }
  for _, row in ipairs(answer.rows) do
    local cells = { row.label }
    for i = 1, #answer.columns do
      local cell = row.cells[i]
      table.insert(cells, type(cell) == 'table' and cell.text or '')
    end
    table.insert(rows, cells)
  end
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      row[i] = inline.fit(escaped.line(cell), CELL)
      widths[i] = math.max(widths[i] or 0, vim.fn.strdisplaywidth(row[i]))
    end
  end
  local lines = { ('%s, %d of %d rows'):format(escaped.line(name), #answer.rows, answer.total), '' }
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do table.insert(cells, cell .. (' '):rep(widths[i] - vim.fn.strdisplaywidth(cell))) end
    table.insert(lines, (table.concat(cells, '  '):gsub('%s+$', '')))
  end
  return lines
end

--- Shows a value as a table.
function Values:table(name, reference)
  client_of.execute('inspectTable', { reference = reference.reference, count = ROWS }, function(answer, _, is_here)
    float.open(M.table_lines(name, answer), { title = 'Table', is_here = is_here, hint = 'q closes' })
  end, { buf = self.buf, latest = 'value' })
end

---@param answer table
---@return string[]
function M.comparison_lines(one, other, answer)
  local lines = { '- ' .. escaped.line(one), '+ ' .. escaped.line(other), '' }
  if #answer.differences == 0 then table.insert(lines, 'They have the same parts.') end
  for _, found in ipairs(answer.differences) do
    table.insert(lines, #found.path == 0 and 'The values themselves' or escaped.line(table.concat(found.path, ' › ')))
    table.insert(lines, '  - ' .. escaped.line(found.one.text))
    table.insert(lines, '  + ' .. escaped.line(found.other.text))
  end
  if answer.partial then table.insert(lines, 'The values are too large to be compared whole: there may be more.') end
  return lines
end

--- Shows how two values differ.
---@param one { name: string, value: string, reference: any }
---@param other { name: string, value: string, reference: any }
function Values:compare(one, other)
  client_of.execute('inspectCompare', { reference = one.reference.reference, other = other.reference.reference }, function(answer, _, is_here)
    local function named(value) return ('%s = %s'):format(value.name, value.value) end
    float.open(M.comparison_lines(named(one), named(other), answer), { title = 'Differences', is_here = is_here, hint = 'q closes' })
  end, { buf = self.buf, latest = 'value' })
end

--- Goes to the definition of a value, in a window beside the inspector's. If there are several
--- definitions, the person chooses one.
---@param at consort.Inspected
function Values:definition(at)
  local client = client_of.need()
  if not client then return end
  client_of.execute('inspectDefinition', { reference = at.reference.reference }, function(answer)
    local found = answer.definitions
    if #found == 0 then return client_of.say(('%s is from no file that can be read'):format(escaped.line(at.name))) end
    local function go(one)
      if not one then return end
      local beside = vim.fn.bufwinid(self.buf)
      if beside ~= -1 then
        vim.api.nvim_set_current_win(beside)
      else
        vim.cmd('aboveleft split')
      end
      vim.lsp.util.show_document({ uri = one.uri, range = one.range }, client.offset_encoding, { focus = true })
    end
    if #found == 1 then return go(found[1]) end
    local function named(one) return escaped.line(('%s %s'):format(one.kind, one.name)) end
    vim.ui.select(found, { prompt = 'Definition', format_item = named }, go)
  end, { buf = self.buf, here = true })
end

--- Shows what DESCRIBE prints about a value.
---@param at consort.Inspected
function Values:describe(at)
  client_of.execute('inspectDescribe', { reference = at.reference.reference }, function(answer, _, is_here)
    if type(answer.error) == 'string' and answer.text == '' then return client_of.fail(answer.error) end
    local lines = escaped.lines(answer.text)
    if type(answer.error) == 'string' then table.insert(lines, escaped.line('; It did not end: ' .. answer.error)) end
    float.open(lines, { title = 'Description', is_here = is_here, hint = 'q closes' })
  end, { buf = self.buf, latest = 'value' })
end

--- Shows a value of the image in the inspector's buffer.
---@param buf integer the buffer whose language client is used
---@param focus boolean true to move the cursor to it
---@param number? integer from the inspector's `asked`
function M.show(buf, name, text, reference, focus, number)
  if (reference or 0) == 0 then return client_of.say(('%s = %s: this value has no parts'):format(name, text)) end
  require('consort.inspector').open(setmetatable({ buf = buf, parts = {} }, Values), name, text, parts_of(reference, 0), focus, number)
end

--- Inspects the value of code. Without code, inspects the result that is shown in this line, or
--- otherwise the value of the name at the cursor.
---@param code? string
function M.open(code)
  local client = client_of.need()
  if not client then return end
  local buf = vim.api.nvim_get_current_buf()
  if not code or code == '' then
    local result = require('consort.inline').at(buf, vim.api.nvim_win_get_cursor(0)[1] - 1)
    local reference = result and (result.references or {})[1]
    if result and result.status == 'ok' and (result.values or {})[1] then return M.show(buf, 'result', result.values[1], reference, true) end
    code = vim.fn.expand('<cword>')
  end
  if vim.trim(code) == '' then return client_of.say('no name is at the cursor: `:Consort inspect CODE`') end
  local number = require('consort.inspector').asked()
  client_of.execute('eval', vim.tbl_extend('force', client_of.place(client), { code = code, package = require('consort.repl').package_of_file() }), function(result, _, is_here)
    if type(result.error) == 'table' then return client_of.fail(('%s: %s'):format(result.error.type, result.error.message)) end
    if not (result.values or {})[1] then return client_of.say('it has no value') end
    M.show(buf, code, result.values[1], (result.references or {})[1], is_here(), number)
  end)
end

return M
