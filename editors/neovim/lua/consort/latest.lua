--- Requests of which only the last one that has not failed counts.
local M = {}

---@class consort.Kind requests that replace each other
---@field count integer the number of requests so far
---@field taken integer the number of the last request whose answer was used
---@field open table<integer, true> the numbers of the requests without an answer
---@field held? { number: integer, take: fun() } the last answer, while a later request has none

---@type table<string, consort.Kind>
local kinds = {}

--- Counts a request of a kind. Returns a function to call once at the request's end: with a
--- function that handles the answer, or without one if the request has failed. The answer of an
--- earlier request is used if the later requests fail.
---@param name string
---@return fun(take?: fun()) over
function M.begun(name)
  local kind = kinds[name] or { count = 0, taken = 0, open = {} }
  kinds[name] = kind
  kind.count = kind.count + 1
  local mine = kind.count
  kind.open[mine] = true
  return function(take)
    kind.open[mine] = nil
    if take and mine > math.max(kind.taken, kind.held and kind.held.number or 0) then kind.held = { number = mine, take = take } end
    local held = kind.held
    if not held or vim.iter(pairs(kind.open)):any(function(number) return number > held.number end) then return end
    kind.held, kind.taken = nil, held.number
    held.take()
  end
end

return M
