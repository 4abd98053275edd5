--- Text that is wrapped at the width of its window: hints that list the keys of a buffer, and
--- long messages in a buffer.
require('consort.colours')

local M = {}
local SEPARATOR = ' · '

local group = vim.api.nvim_create_augroup('consort.hints', {})

--- Returns the width that text has in the narrowest window that shows a buffer, or the width of the
--- screen if no window shows it.
---@param buf integer
---@return integer cells at least 1
function M.width(buf)
  local width = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    width = math.min(width, vim.api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
  end
  return math.max(1, width)
end

--- Joins parts with a separator into lines of at most a width. A part that is wider than that gets
--- a line of its own.
local function joined(parts, separator, width)
  local lines = {}
  for i, part in ipairs(parts) do
    local longer = i > 1 and lines[#lines] .. separator .. part
    if longer and vim.fn.strdisplaywidth(longer) <= width then lines[#lines] = longer else table.insert(lines, part) end
  end
  return lines
end

--- Breaks a text of key hints into lines, between the hints.
---@param keys string the hints, with ` · ` between them
---@param width integer cells
---@return string[]
function M.keys(keys, width) return joined(vim.split(keys, SEPARATOR, { plain = true }), SEPARATOR, width) end

--- Breaks a line of a message into lines, between words, and within words that are wider than a
--- line.
---@param line string
---@param width integer cells
---@return string[]
function M.wrapped(line, width)
  if vim.fn.strdisplaywidth(line) <= width then return { line } end
  local words = {}
  for _, word in ipairs(vim.split(line, ' ', { plain = true })) do
    while vim.fn.strdisplaywidth(word) > width do
      local n = vim.fn.strchars(word)
      while n > 1 and vim.fn.strdisplaywidth(vim.fn.strcharpart(word, 0, n)) > width do n = n - 1 end
      table.insert(words, vim.fn.strcharpart(word, 0, n))
      word = vim.fn.strcharpart(word, n)
    end
    table.insert(words, word)
  end
  return joined(words, ' ', width)
end

--- Shows key hints as virtual lines below the last line of a buffer, after an empty line.
---@param buf integer
---@param namespace integer
---@param keys string the hints, with ` · ` between them
function M.show(buf, namespace, keys)
  local below = { { { '' } } }
  for _, line in ipairs(M.keys(keys, M.width(buf))) do table.insert(below, { { line, 'ConsortHint' } }) end
  vim.api.nvim_buf_set_extmark(buf, namespace, vim.api.nvim_buf_line_count(buf) - 1, 0, { virt_lines = below })
end

--- Calls a function whenever the value of `M.width` for a buffer has changed, until the buffer is
--- deleted.
---@param buf integer
---@param draw fun() draws the buffer again
function M.follow(buf, draw)
  local width = M.width(buf)
  vim.api.nvim_create_autocmd({ 'WinResized', 'VimResized', 'BufWinEnter' }, {
    group = group,
    callback = function()
      if not vim.api.nvim_buf_is_valid(buf) then return true end
      local now = M.width(buf)
      if now == width then return end
      width = now
      draw()
    end,
  })
end

return M
