--- The package of the text at the cursor.
local M = {}

local LINES = 3 -- of an IN-PACKAGE form that are read

--- Returns the string that begins at a quotation mark, without its escapes. Returns nil if it has
--- no end.
---@param text string
---@return string?
local function string_at(text)
  local name, i = '', 2
  while i <= #text do
    local c = text:sub(i, i)
    if c == '"' then return name end
    if c == '\\' then
      i = i + 1
      c = text:sub(i, i)
    end
    name, i = name .. c, i + 1
  end
end

--- Returns the name of the symbol at the start of a text, as the reader makes it: in upper case
--- except for escaped characters, and without a package prefix. Returns nil if there is none.
---@param text string
---@return string?
local function symbol_at(text)
  local name, i, is_escaped = '', 1, false
  while i <= #text do
    local c = text:sub(i, i)
    if c == '|' then
      is_escaped = not is_escaped
    elseif c == '\\' then
      i = i + 1
      name = name .. text:sub(i, i)
    elseif is_escaped then
      name = name .. c
    elseif c == ':' then
      name = ''
    elseif c:find('[%s()"\';`,]') then
      break
    else
      name = name .. c:upper()
    end
    i = i + 1
  end
  return name ~= '' and name or nil
end

--- Returns the package of the text at the cursor: that of the last IN-PACKAGE form at or above the
--- cursor's line. Returns nil if there is none.
---@return string?
function M.here()
  for row = vim.api.nvim_win_get_cursor(0)[1], 1, -1 do
    if vim.fn.getline(row):lower():find('^%(%s*[%a-]*:?:?in%-package%f[%s%z]') then
      local text = table.concat(vim.fn.getline(row, row + LINES - 1), '\n')
      local designator = text:match('^%(%s*%S+%s+(.*)$') or ''
      if designator:sub(1, 1) == '"' then return string_at(designator) end
      return symbol_at((designator:gsub('^#:', '')))
    end
  end
end

return M
