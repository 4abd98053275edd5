--- Frames of a backtrace.
local M = {}

---@class consort.Frame what docs/protocol.md says of a frame
---@field text string
---@field name? string
---@field role 'program'|'signal'|'standard'|'internal'
---@field file? string
---@field line? integer

--- The frames from the program's own on. Those above it, `ERROR` and its like, say what the message
--- says already.
---@param frames consort.Frame[]
---@return consort.Frame[]
function M.of_program(frames)
  for i, frame in ipairs(frames) do
    if frame.role ~= 'signal' and frame.role ~= 'internal' then return vim.list_slice(frames, i) end
  end
  return frames -- there is no other to show
end

return M
