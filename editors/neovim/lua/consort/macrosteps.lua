--- The text of a macro stepper. Expansions replace forms, also within other expansions, and can be
--- undone. Offsets count bytes of the text from 0. Ends are exclusive.
local M = {}

---@class consort.Placed an expansion, and the text that it replaced
---@field start integer
---@field stop integer
---@field before string
---@field hidden consort.Placed[] the expansions within the replaced text, with offsets in that text

---@class consort.Steps
---@field text string
---@field placed consort.Placed[] an expansion precedes those within it

--- Replaces carriage returns by spaces, because they end lines for the server but not in Neovim.
local function lines(text) return (text:gsub('\r', ' ')) end

--- Returns the text of a stepper that has no expansion yet.
---@param text string
---@return consort.Steps
function M.begun(text) return { text = lines(text), placed = {} } end

--- Returns the offset of a row and a column. A column past its line's end means the line's end.
---@param row integer 0-based
---@param column integer
---@return integer
function M.offset(text, row, column)
  local start = 1
  for _ = 1, row do
    local break_at = text:find('\n', start, true)
    if not break_at then return #text end
    start = break_at + 1
  end
  local stop = text:find('\n', start, true) or #text + 1
  return math.min(start - 1 + column, stop - 1)
end

--- Returns the row and the column of an offset.
---@param offset integer
---@return integer row 0-based
---@return integer column
function M.place(text, offset)
  local row, start = 0, 1
  while true do
    local break_at = text:find('\n', start, true)
    if not break_at or break_at > offset then return row, offset - start + 1 end
    row, start = row + 1, break_at + 1
  end
end

--- Returns a copy of an expansion, moved by BY bytes and lengthened by LONGER bytes.
local function moved(one, by, longer)
  return { start = one.start + by, stop = one.stop + by + (longer or 0), before = one.before, hidden = one.hidden }
end

--- Divides expansions by a range whose text grows by BY bytes. Returns the expansions around and
--- beside the range, adjusted, and the expansions inside it, unchanged. An expansion with the same
--- range counts as around it.
local function split_placed(placed, start, stop, by)
  local others, inside = {}, {}
  for _, one in ipairs(placed) do
    if one.start <= start and stop <= one.stop then
      table.insert(others, moved(one, 0, by))
    elseif start <= one.start and one.stop <= stop then
      table.insert(inside, one)
    else
      table.insert(others, moved(one, one.start >= stop and by or 0))
    end
  end
  return others, inside
end

--- Returns the text in which an expansion replaces the form from START to STOP.
---@param steps consort.Steps
---@return consort.Steps
function M.expanded(steps, start, stop, expansion)
  expansion = lines(expansion)
  local placed, inside = split_placed(steps.placed, start, stop, #expansion - (stop - start))
  local hidden = vim.tbl_map(function(one) return moved(one, -start) end, inside)
  table.insert(placed, { start = start, stop = start + #expansion, before = steps.text:sub(start + 1, stop), hidden = hidden })
  return { text = steps.text:sub(1, start) .. expansion .. steps.text:sub(stop + 1), placed = placed }
end

--- Returns the innermost expansion at an offset; nil if there is none.
---@param steps consort.Steps
---@return consort.Placed?
function M.innermost(steps, offset)
  local found
  for _, one in ipairs(steps.placed) do
    if one.start <= offset and offset <= one.stop and (not found or one.stop - one.start <= found.stop - found.start) then found = one end
  end
  return found
end

--- Returns the text in which the innermost expansion at an offset is undone, and that expansion;
--- nil and an empty table if no expansion is there.
---@param steps consort.Steps
---@return consort.Steps?
---@return consort.Placed
function M.collapsed(steps, offset)
  local last = M.innermost(steps, offset)
  if not last then return nil, {} end
  local kept = vim.tbl_filter(function(one) return one ~= last end, steps.placed)
  local placed = split_placed(kept, last.start, last.stop, #last.before - (last.stop - last.start))
  for _, one in ipairs(last.hidden) do table.insert(placed, moved(one, last.start)) end
  return { text = steps.text:sub(1, last.start) .. last.before .. steps.text:sub(last.stop + 1), placed = placed }, last
end

local function before(one, other) return one.line < other.line or (one.line == other.line and one.character < other.character) end

--- Returns the start of the next or the previous range; nil if there is none. The ranges must be in
--- the order of the text.
---@param calls lsp.Range[]
---@param position lsp.Position
---@param forward boolean
---@return lsp.Position?
function M.neighbour(calls, position, forward)
  local found
  for _, call in ipairs(calls) do
    if forward and before(position, call.start) then return call.start end
    if not forward and before(call.start, position) then found = call.start end
  end
  return found
end

return M
