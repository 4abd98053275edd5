--- A bound for messages that a program can cause in a loop, such as logpoints.
local M = {}
local MOST = 5 -- the maximum number of messages that are shown of those that follow each other
M.QUIET = 500 -- ms without a message, after which they no longer follow each other

---@class consort.Bounded
---@field tell fun(text: string) shows a message, or counts it
---@field over fun() shows the last message, if it was only counted, and the number of others

--- Returns functions that show messages, at most MOST without a pause. Of further messages, the
--- number and the last one are shown when there is a pause, or at the end.
---@param show fun(text: string)
---@param rest fun(count: integer): string the message about that number of messages
---@return consort.Bounded
function M.of(show, rest)
  local shown, counted, last = 0, 0, nil
  local timer ---@type uv.uv_timer_t?
  local function over()
    if timer then
      timer:stop()
      timer:close()
    end
    local text, others = last, counted - 1
    shown, counted, last, timer = 0, 0, nil, nil
    if not text then return end
    if others > 0 then show(rest(others)) end
    show(text)
  end
  local function tell(text)
    shown = shown + 1
    if shown <= MOST then
      show(text)
    else
      counted, last = counted + 1, text
    end
    timer = timer or assert(vim.uv.new_timer())
    timer:start(M.QUIET, 0, vim.schedule_wrap(over))
  end
  return { tell = tell, over = over }
end

return M
