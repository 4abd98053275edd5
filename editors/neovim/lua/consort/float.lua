--- Floating windows at the cursor: what is too long for the end of a line.
local M = {}

---@class consort.Float
---@field title string
---@field filetype? string
---@field focus? boolean the cursor goes in; true by default
---@field keys? table<string, fun(buf: integer)> normal mode
---@field hint? string what the keys do

---@param lines string[]
---@return integer
local function widest(lines)
  local width = 1
  for _, line in ipairs(lines) do width = math.max(width, vim.fn.strdisplaywidth(line)) end
  return width
end

--- Show text; `q` and `<Esc>` close it.
---@param text string|string[]
---@param options consort.Float
---@return integer buf
---@return integer win
function M.open(text, options)
  local lines = type(text) == 'string' and vim.split(text, '\n', { plain = true }) or text
  ---@cast lines string[]
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  local room = { columns = math.max(20, vim.o.columns - 4), lines = math.max(3, vim.o.lines - 6) }
  local width = math.min(room.columns, math.max(widest(lines), #options.title + 2, #(options.hint or '') + 2))
  local win = vim.api.nvim_open_win(buf, options.focus ~= false, {
    relative = 'cursor',
    row = 1,
    col = 0,
    width = width,
    height = math.min(room.lines, #lines),
    border = vim.o.winborder ~= '' and vim.o.winborder or 'rounded',
    style = 'minimal',
    title = ' ' .. options.title .. ' ',
    footer = options.hint and (' ' .. options.hint .. ' ') or nil,
  })
  vim.wo[win].wrap = false
  if options.filetype then
    -- Only its colours: no language client is to be started for what is no file.
    pcall(function() vim.bo[buf].syntax = options.filetype end)
  end
  local function map(key, action) vim.keymap.set('n', key, action, { buffer = buf, nowait = true }) end
  local function close()
    if vim.api.nvim_win_is_valid(win) then vim.api.nvim_win_close(win, true) end
  end
  map('q', close)
  map('<Esc>', close)
  for key, action in pairs(options.keys or {}) do
    map(key, function() action(buf) end)
  end
  return buf, win
end

--- Other text in an open float.
---@param buf integer
---@param text string
function M.replace(buf, text)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(text, '\n', { plain = true }))
  vim.bo[buf].modifiable = false
end

return M
