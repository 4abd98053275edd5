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

--- Returns the range that a range of an earlier text has in the present text. Lines may have been
--- added or removed above it, and text in the same lines may have been changed if the range's
--- columns stay the same. Returns nil if the text of the range has changed or has moved to other
--- columns.
---@param range integer[]
---@param before string[] the lines of the earlier text
---@param now string[] the lines of the present text
---@return integer[]?
function M.moved(range, before, now)
  local function joined(lines) return table.concat(lines, '\n') .. '\n' end
  local by = 0
  for _, hunk in ipairs(vim.diff(joined(before), joined(now), { result_type = 'indices' })) do
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

return M
