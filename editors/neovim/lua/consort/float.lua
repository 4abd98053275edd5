--- Floating windows, for text that is too long for the end of a line.
require('consort.colours')

local escaped = require('consort.escaped')
local M = {}
local namespace = vim.api.nvim_create_namespace('consort.float')

---@class consort.Float
---@field title string
---@field filetype? string the filetype whose syntax highlighting the text gets
---@field plain? integer[][] rows of prose instead of code: { first, last }, 0-based and inclusive
---@field focus? boolean true, the default, to move the cursor into the float
---@field is_here? fun(): boolean of client.here(); false: opens at the top, without the focus
---@field top? boolean true for the top of the screen; at the cursor by default
---@field wide? integer the minimum width in cells, limited by the screen
---@field row? integer the row of the cursor at first, 0-based
---@field keys? table<string, fun(buf: integer)> further Normal mode mappings of the buffer
---@field hint? string a text about the keys, in the lower border

--- Returns the width of the widest line in cells, at least 1.
---@param lines string[]
---@return integer
local function widest(lines)
  local width = 1
  for _, line in ipairs(lines) do width = math.max(width, vim.fn.strdisplaywidth(line)) end
  return width
end

--- Returns the position and the height of a float at the cursor, as options of nvim_open_win. The
--- float is below the cursor's line, or above the line if there is too little room below and more
--- above. The line stays visible.
local function at_cursor(height)
  local row = vim.fn.win_screenpos(0)[1] + vim.fn.winline() - 2 -- 0-based
  local below = vim.o.lines - vim.o.cmdheight - row - 4 -- without the cursor's line, 2 borders and a status line
  local above = row - 2
  if height <= below or below >= above then
    return { relative = 'cursor', row = 1, col = 0, height = math.max(1, math.min(height, below)) }
  end
  return { relative = 'cursor', anchor = 'SW', row = 0, col = 0, height = math.max(1, math.min(height, above)) }
end

--- Returns the position and the height of a float at the top of the screen, as options of
--- nvim_open_win.
local function at_top(height, width)
  local room = vim.o.lines - vim.o.cmdheight - 3
  return { relative = 'editor', row = 0, col = math.max(0, math.floor((vim.o.columns - width - 2) / 2)), height = math.max(1, math.min(height, room)) }
end

--- Returns the number of screen rows that the lines take in a window of `width` cells that wraps.
local function rows_of(lines, width)
  local rows = 0
  for _, line in ipairs(lines) do rows = rows + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width)) end
  return rows
end

--- Shows a buffer in a window, or in a new window if that one is gone or cannot leave its buffer:
--- with 'winfixbuf' or, without 'hidden', with unsaved changes.
---@param win integer
---@param buf integer
---@return integer win the window that shows the buffer
local function show_in(win, buf)
  local is_valid = vim.api.nvim_win_is_valid(win)
  if is_valid and pcall(vim.api.nvim_win_set_buf, win, buf) then return win end
  return vim.api.nvim_open_win(buf, false, { split = 'above', win = is_valid and win or -1 })
end

--- Shows a buffer that a person opens in a float (`:edit`) in the window below instead: the one
--- from which the float was entered.
---@param buf integer the float's own
---@param win integer the float
---@param below integer the window that was current before the float
local function move_others_below(buf, win, below)
  vim.api.nvim_create_autocmd('WinEnter', {
    buffer = buf,
    callback = function()
      local left = vim.fn.win_getid(vim.fn.winnr('#'))
      if left ~= 0 and vim.api.nvim_win_get_config(left).relative == '' then below = left end
    end,
  })
  vim.api.nvim_create_autocmd('BufWinLeave', {
    buffer = buf,
    once = true,
    callback = vim.schedule_wrap(function()
      if not vim.api.nvim_win_is_valid(win) then return end
      local other, cursor = vim.api.nvim_win_get_buf(win), vim.api.nvim_win_get_cursor(win)
      if other == buf then return end
      local shows = show_in(below, other)
      vim.api.nvim_set_current_win(shows)
      vim.api.nvim_win_close(win, true)
      vim.api.nvim_win_set_cursor(shows, cursor)
    end),
  })
end

--- Opens a float with text. The keys `q` and `<Esc>` close it, unless `options.keys` has them.
---@param text string|string[]
---@param options consort.Float
---@return integer buf
---@return integer win
function M.open(text, options)
  local lines = escaped.lines(text)
  local title = escaped.line(options.title)
  local late = options.is_here and not options.is_here()
  local hint = options.hint and escaped.line(options.hint)
  local buf = vim.api.nvim_create_buf(false, true)
  require('consort.client').belongs(buf)
  vim.bo[buf].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  local width = math.max(widest(lines), vim.fn.strdisplaywidth(title) + 2, vim.fn.strdisplaywidth(hint or '') + 2, options.wide or 0)
  width = math.min(math.max(20, vim.o.columns - 4), width)
  local height = rows_of(lines, width)
  local here = vim.api.nvim_get_current_win()
  local function place(rows) return (options.top or late) and at_top(rows, width) or at_cursor(rows) end
  local config = vim.tbl_extend('error', place(height), {
    width = width,
    border = vim.o.winborder ~= '' and vim.o.winborder or 'rounded',
    style = 'minimal',
    title = ' ' .. title .. ' ',
    footer = hint and { { ' ' .. hint .. ' ', 'ConsortHint' } } or nil,
  })
  local win = vim.api.nvim_open_win(buf, options.focus ~= false and not late, config)
  move_others_below(buf, win, here)
  vim.wo[win].wrap = true
  vim.wo[win].linebreak = true
  vim.wo[win].breakindent = true
  -- Lines that are broken between words may take more rows.
  local rows = vim.api.nvim_win_text_height(win, {}).all
  if rows > height then
    vim.api.nvim_win_call(here, function() vim.api.nvim_win_set_config(win, place(rows)) end)
  end
  if options.row then vim.api.nvim_win_set_cursor(win, { math.min(#lines, options.row + 1), 0 }) end
  if options.filetype then
    -- Only the syntax is set: a filetype would start a language client for a buffer without a file.
    pcall(function() vim.bo[buf].syntax = options.filetype end)
  end
  for _, rows in ipairs(options.plain or {}) do
    if rows[2] >= rows[1] then
      vim.api.nvim_buf_set_extmark(buf, namespace, rows[1], 0, { end_row = rows[2], end_col = #lines[rows[2] + 1], hl_group = 'ConsortPlain' })
    end
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
  if late then require('consort.client').say(('%s: CTRL-W w goes into it'):format(title)) end
  return buf, win
end

--- Replaces the text of an open float. The height is adapted, and the width is increased if needed.
---@param buf integer
---@param text string
function M.replace(buf, text)
  local lines = escaped.lines(text)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  local win = vim.fn.bufwinid(buf)
  if win == -1 then return end
  local width = math.min(math.max(20, vim.o.columns - 4), math.max(widest(lines), vim.api.nvim_win_get_width(win)))
  vim.api.nvim_win_set_config(win, { width = width })
  vim.api.nvim_win_set_config(win, { height = math.max(1, math.min(vim.api.nvim_win_text_height(win, {}).all, vim.o.lines - 6)) })
end

return M
