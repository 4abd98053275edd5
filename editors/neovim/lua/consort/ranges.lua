--- Ranges of a text: { row, column, end row, end column }. Rows and columns are 0-based, columns
--- are in bytes, and the end column is exclusive.
local M = {}

--- Returns the text of a range. Returns the empty string if the text does not have these lines.
---@param lines string[] of the whole text
---@param range integer[]
---@return string
function M.text(lines, range)
  local part = vim.list_slice(lines, range[1] + 1, range[3] + 1)
  if #part == 0 then return '' end
  part[#part] = part[#part]:sub(1, range[4])
  part[1] = part[1]:sub(range[2] + 1)
  return table.concat(part, '\n')
end

--- Returns the hunks of the difference of two texts, as `vim.diff` does.
---@param before string[]
---@param now string[]
---@return integer[][]
local function hunks_of(before, now)
  local function joined(lines) return table.concat(lines, '\n') .. '\n' end
  return vim.diff(joined(before), joined(now), { result_type = 'indices' }) --[=[@as integer[][]]=]
end

--- Returns the range that a range of an earlier text has in the present text. Lines may have been
--- added or removed above it, and text in the same lines may have been changed if the range's
--- columns stay the same. Returns nil if the text of the range has changed or has moved to other
--- columns.
---@param range integer[]
---@param before string[] the lines of the earlier text
---@param now string[] the lines of the present text
---@return integer[]?
function M.moved(range, before, now)
  local by = 0
  for _, hunk in ipairs(hunks_of(before, now)) do
    local start, removed, _, added = unpack(hunk)
    -- If no lines are removed, `start` is the line after which lines are added.
    local first = removed == 0 and start or start - 1
    if first > range[3] then break end
    if first + removed > range[1] then
      local place = { range[1] + by, range[2], range[3] + by, range[4] }
      if removed ~= added or M.text(before, range) ~= M.text(now, place) then return end
    end
    by = by + added - removed
  end
  return { range[1] + by, range[2], range[3] + by, range[4] }
end

--- Returns a function from the lines of an earlier text to those of the present text, 1-based. A
--- line that was changed is mapped to the line that is in its place.
---@param before string[] the lines of the earlier text
---@param now string[] the lines of the present text
---@return fun(line: integer): integer
function M.lines_moved(before, now)
  local hunks = hunks_of(before, now)
  return function(line)
    local by = 0
    for _, hunk in ipairs(hunks) do
      local start, removed, start_now, added = unpack(hunk)
      local first = removed == 0 and start + 1 or start
      if line < first then break end
      if line < first + removed then
        return math.max(1, math.min(#now, start_now + math.min(line - first, math.max(0, added - 1))))
      end
      by = by + added - removed
    end
    return line + by
  end
end

return M
