--- The open frames and the cursor of the debugger's buffer at the stops around a nested stop. They
--- are restored when the nested stop is left.
local M = {}

---@class consort.Around
---@field number integer the image's number of the stop
---@field open integer[] the frames that were open, by their numbers
---@field at? integer the frame that the cursor was on

--- Returns the number of a frame, from 0; nil if the stop no longer has it.
---@param stop consort.Stop
function M.number_of(stop, frame)
  for i, each in ipairs(stop.frames) do
    if each == frame then return i - 1 end
  end
end

--- Returns the number of the frame at the cursor in the window of a stop, or nil.
---@param stop consort.Stop
local function frame_at_cursor(stop)
  local win = stop.buf and vim.fn.bufwinid(stop.buf) or -1
  local line = win ~= -1 and stop.lines[vim.api.nvim_win_get_cursor(win)[1]] or {}
  return line.frame and M.number_of(stop, line.frame)
end

--- Puts the cursor on a frame, by its number; on the first one if there is no such frame.
---@param stop consort.Stop
---@param win integer
local function go_to_frame(stop, win, number)
  local first
  for row, line in ipairs(stop.lines) do
    if line.frame then
      first = first or row
      if M.number_of(stop, line.frame) == number then
        first = row
        break
      end
    end
  end
  if first then vim.api.nvim_win_set_cursor(win, { first, 0 }) end
end

--- Makes the next stop of a thread the current one. The open frames at the previous stop are kept
--- if that is around the next one. A stop that was left, as by a step, is not restored.
---@param stop consort.Stop
---@param number? integer
---@param level integer
function M.next(stop, number, level)
  if stop.number and stop.number ~= number and stop.level < level then
    stop.around[stop.level] = { number = stop.number, open = vim.tbl_keys(stop.open), at = frame_at_cursor(stop) }
  end
  for known, around in pairs(stop.around) do
    if known > level or (known == level and around.number ~= number) then stop.around[known] = nil end
  end
  stop.number, stop.level = number, level
end

--- Opens the frames again that were open before stops within this one, with their current values.
---@param stop consort.Stop
---@param win integer
---@param open fun(frame: table, number: integer, shown: fun())
---@param render fun(stop: consort.Stop)
function M.open_again(stop, win, open, render)
  local before = stop.around[stop.level]
  go_to_frame(stop, win, before and before.at)
  for _, number in ipairs(before and before.open or {}) do
    local frame = stop.frames[number + 1]
    if frame then
      open(frame, number, function()
        local at = frame_at_cursor(stop)
        render(stop)
        if at then go_to_frame(stop, win, at) end
      end)
    end
  end
end

return M
