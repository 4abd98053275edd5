--- Frames of a backtrace.
local M = {}

---@class consort.Frame a frame as in docs/protocol.md
---@field text string
---@field name? string
---@field role 'program'|'signal'|'standard'|'internal'
---@field file? string
---@field line? integer

--- Returns the frames from the first one of the program on. Those above it, such as that of
--- `ERROR`, add nothing to the message.
---@param frames consort.Frame[]
---@return consort.Frame[]
function M.of_program(frames)
  for i, frame in ipairs(frames) do
    if frame.role ~= 'signal' and frame.role ~= 'internal' then return vim.list_slice(frames, i) end
  end
  return frames -- there are no other frames to show
end

return M
