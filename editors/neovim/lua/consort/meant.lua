--- The suggestion for a misspelt word.
local M = {}
local NEAR = 2 -- edits

--- Returns the number of letters that must be inserted, removed, replaced or exchanged with their
--- neighbour to make one word from the other.
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local rows = {}
  for i = 0, #a do
    rows[i] = { [0] = i }
    for j = 1, #b do
      if i == 0 then
        rows[0][j] = j
      else
        local is_same = a:byte(i) == b:byte(j)
        local least = math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (is_same and 0 or 1))
        if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then least = math.min(least, rows[i - 2][j - 2] + 1) end
        rows[i][j] = least
      end
    end
  end
  return rows[#a][#b]
end

--- Returns the nearest of several words, if it is near enough to be meant.
---@param word string
---@param words string[]
---@return string?
function M.word(word, words)
  local nearest, least = nil, NEAR + 1
  for _, one in ipairs(words) do
    local count = distance(word, one)
    if count < least then nearest, least = one, count end
  end
  return nearest
end

return M
