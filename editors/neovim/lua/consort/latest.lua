--- Requests of which the last one counts, as long as it does not fail.
local M = {}

---@class consort.Kind requests that take each other's place
---@field count integer of the requests so far
---@field taken integer the number of the last request whose answer was taken
---@field open table<integer, true> the numbers of the requests without an answer
---@field held? { number: integer, take: fun() } the last answer, while a later request has none

---@type table<string, consort.Kind>
local kinds = {}

--- Counts a request of a kind. The function that is returned is to be called at its end, once: with
--- a function that takes the answer, or without one if the request has failed. An answer that comes
--- before that of a later request is taken if the later ones fail.
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
