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

--- Returns the package that an IN-PACKAGE form at the start of a line names, if there is one, and
--- true if there is such a form.
---@param lines string[]
---@param at integer the index of the line
---@return string? name
---@return boolean is_there
local function package_in(lines, at)
  if not lines[at]:lower():find('^%(%s*[%a-]*:?:?in%-package%f[%s%z]') then return nil, false end
  local text = table.concat(lines, '\n', at, math.min(at + LINES - 1, #lines))
  local designator = text:match('^%(%s*%S+%s+(.*)$') or ''
  if designator:sub(1, 1) == '"' then return string_at(designator), true end
  return symbol_at((designator:gsub('^#:', ''):gsub("^'", ''))), true
end

--- Returns the package of the first IN-PACKAGE form in the lines from `first` to `last`.
---@param lines string[]
---@param first integer
---@param last integer
---@param step integer 1 or -1
---@return string?
local function first_in(lines, first, last, step)
  for at = first, last, step do
    local name, is_there = package_in(lines, at)
    if is_there then return name end
  end
end

--- Returns the package in force after some lines, which the last IN-PACKAGE form in them names.
---@param lines string[]
---@return string?
function M.after(lines) return first_in(lines, #lines, 1, -1) end

--- Returns the lines of the current buffer, and the index of the cursor's line.
local function lines_at_cursor() return vim.api.nvim_buf_get_lines(0, 0, -1, false), vim.api.nvim_win_get_cursor(0)[1] end

--- Returns the package of the text at the cursor: that of the last IN-PACKAGE form at or above the
--- cursor's line. Returns nil if there is none.
---@return string?
function M.here()
  local lines, row = lines_at_cursor()
  return first_in(lines, row, 1, -1)
end

--- Returns the package of the text at the cursor, or that of the first IN-PACKAGE form below the
--- cursor. Returns nil if there is none.
---@return string?
function M.near()
  local lines, row = lines_at_cursor()
  return first_in(lines, row, 1, -1) or first_in(lines, row + 1, #lines, 1)
end

return M
