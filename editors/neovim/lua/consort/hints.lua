--- Texts that are wrapped at the width of their window: the keys of a buffer, and long messages in
--- it.
require('consort.colours')

local M = {}
local SEPARATOR = ' · '

local group = vim.api.nvim_create_augroup('consort.hints', {})

--- Returns the width for text in the narrowest window that shows a buffer; that of the screen if
--- none does.
---@param buf integer
---@return integer cells
function M.width(buf)
  local width = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    width = math.min(width, vim.api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
  end
  return math.max(1, width)
end

--- Joins parts with a separator into lines of at most that width, where each part has room.
local function joined(parts, separator, width)
  local lines = {}
  for i, part in ipairs(parts) do
    local longer = i > 1 and lines[#lines] .. separator .. part
    if longer and vim.fn.strdisplaywidth(longer) <= width then lines[#lines] = longer else table.insert(lines, part) end
  end
  return lines
end

--- Returns keys, with ` · ` between them, as lines.
---@param keys string
---@param width integer
---@return string[]
function M.keys(keys, width) return joined(vim.split(keys, SEPARATOR, { plain = true }), SEPARATOR, width) end

--- Returns a line of a message as lines, broken between words; within a word that is wider.
---@param line string
---@param width integer
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

--- Shows keys below the last line of a buffer.
---@param buf integer
---@param namespace integer
---@param keys string
function M.show(buf, namespace, keys)
  local below = { { { '' } } }
  for _, line in ipairs(M.keys(keys, M.width(buf))) do table.insert(below, { { line, 'ConsortHint' } }) end
  vim.api.nvim_buf_set_extmark(buf, namespace, vim.api.nvim_buf_line_count(buf) - 1, 0, { virt_lines = below })
end

--- Draws a buffer again whenever the width of its windows has changed, as long as it exists.
---@param buf integer
---@param draw fun()
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
