--- Ranges of a text, as rows and byte columns: { row, column, end row, end column }.
local M = {}

--- Returns the text of a range; empty where the text has no such lines.
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

--- Returns the new place of a range of a text after edits above and below its lines, or before or
--- after it in its lines; nil if the range itself was edited, or moved within its lines.
---@param range integer[]
---@param before string[]
---@param now string[]
---@return integer[]?
function M.moved(range, before, now)
  local function joined(lines) return table.concat(lines, '\n') .. '\n' end
  local by = 0
  for _, hunk in ipairs(vim.diff(joined(before), joined(now), { result_type = 'indices' })) do
    local start, removed, _, added = unpack(hunk)
    local first = removed == 0 and start or start - 1 -- what is added comes behind that line
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
