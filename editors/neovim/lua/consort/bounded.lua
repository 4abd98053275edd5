--- A bound for messages that a program can cause in a loop, such as logpoints.
local M = {}
local MOST = 5 -- the maximum number of messages that are shown of those that follow each other
local MAX_PLACES = 20 -- the maximum number of places whose messages are counted separately
M.QUIET = 500 -- ms without a message, after which they no longer follow each other

---@class consort.Bounded
---@field tell fun(text: string) shows a message, or counts it
---@field over fun() shows the last message, if it was only counted, and the number of others
---@field is_idle fun(): boolean true if no message was shown or counted since the last pause

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
  return { tell = tell, over = over, is_idle = function() return shown == 0 end }
end

---@class consort.BoundedOutputs
---@field tell fun(body: table) shows the text of an 'output' event of a debug adapter, or counts it
---@field over fun() as in consort.Bounded, for all places

--- Returns functions that show the texts of 'output' events, with one bound for each place in a
--- program. The texts of a breakpoint in a loop do not hide those of another breakpoint. Texts
--- without a place, and those of places beyond MAX_PLACES, have one bound together.
---@param show fun(text: string)
---@param rest fun(count: integer): string the message about that number of messages
---@return consort.BoundedOutputs
function M.outputs(show, rest)
  local by_place, others = {}, M.of(show, rest) ---@type table<string, consort.Bounded>, consort.Bounded
  local function bound_of(body)
    local path = (body.source or {}).path
    if not path then return others end
    local place = ('%s:%s:%s'):format(path, body.line, body.column)
    if by_place[place] then return by_place[place] end
    if vim.tbl_count(by_place) >= MAX_PLACES then
      for each, bound in pairs(by_place) do
        if bound.is_idle() then by_place[each] = nil end
      end
    end
    if vim.tbl_count(by_place) >= MAX_PLACES then return others end
    by_place[place] = M.of(show, rest)
    return by_place[place]
  end
  return {
    tell = function(body) bound_of(body).tell(vim.trim(body.output)) end,
    over = function()
      for _, bound in pairs(by_place) do bound.over() end
      others.over()
    end,
  }
end

return M
