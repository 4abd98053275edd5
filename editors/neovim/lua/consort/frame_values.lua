--- Values of a frame's variables, shown at the ends of the lines that name the variables in the
--- frame's definition.
local escaped = require('consort.escaped')

local M = {}
local WIDTH = 60 -- the maximum number of characters of the values at one line

--- Returns a text with each byte except line breaks replaced by a space.
local function blank(text) return (text:gsub('[^\n]', ' ')) end

--- Returns for each line of a Lisp text the names in it, in lower case and without duplicates.
--- Names in strings and comments, keywords and lambda list keywords are left out.
---@param text string
---@return string[][]
function M.names(text)
  local code = text:gsub('#\\.[%w-]*', blank):gsub('|[^|]*|', blank):gsub('\\"', blank)
  code = code:gsub('"[^"]*"', blank):gsub('"[^"]*$', blank):gsub(';[^\n]*', blank)
  local lines = {}
  for _, line in ipairs(vim.split(code, '\n')) do
    local names, seen = {}, {}
    for name in line:gmatch("[^%s()\"'`,|]+") do
      name = name:gsub('^#', ''):lower()
      if name ~= '' and not name:find('^[:&]') and not seen[name] then
        seen[name] = true
        table.insert(names, name)
      end
    end
    table.insert(lines, names)
  end
  return lines
end

--- Returns the row, 0-based, at which the definition around a row begins: the nearest row at or
--- above it whose first character is `(`. Returns the given row if there is none.
local function beginning(buf, row)
  for at = row, 0, -1 do
    if vim.api.nvim_buf_get_lines(buf, at, at + 1, false)[1]:sub(1, 1) == '(' then return at end
  end
  return row
end

--- Shows the values of a frame's variables in a buffer, in the lines from the beginning of the
--- definition to a row.
---@param buf integer
---@param namespace integer
---@param row integer 0-based, the row of the frame's place
---@param variables table[] objects `Variable` of the Debug Adapter Protocol
function M.put(buf, namespace, row, variables)
  local values = {}
  for _, variable in ipairs(variables) do
    -- A variable that the compiler did not keep has no evaluateName, and its value is a sentence
    -- that says so.
    if variable.evaluateName then values[variable.name:lower()] = escaped.line(variable.value) end
  end
  local first = beginning(buf, row)
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, first, row + 1, false), '\n')
  for i, names in ipairs(M.names(text)) do
    local found = vim.iter(names):filter(function(name) return values[name] end)
    local words = found:map(function(name) return ('%s = %s'):format(name, values[name]) end):join(', ')
    if vim.fn.strchars(words) > WIDTH then words = vim.fn.strcharpart(words, 0, WIDTH - 1) .. '…' end
    if words ~= '' then
      vim.api.nvim_buf_set_extmark(buf, namespace, first + i - 1, 0, { virt_text = { { '  ' .. words, 'ConsortHint' } }, hl_mode = 'combine' })
    end
  end
end

return M
