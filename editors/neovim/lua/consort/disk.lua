--- Reads a file again as soon as an agent or another program has written it, if its buffer has no
--- unsaved changes.
---
--- Neovim itself checks a file only when it gets the focus, or when the person enters or writes the
--- buffer. By then the person may have edited the old text.
local client_of = require('consort.client')

local M = {}
local PAUSE = 50 -- ms; so that a file that is written in several steps is read once

---@type table<string, { watch: uv.uv_fs_event_t, timer: uv.uv_timer_t }> by directory
local watches = {}
---@type table<integer, string> by buffer: the directory that is watched for it
local followed = {}

local group = vim.api.nvim_create_augroup('consort.disk', {})

--- Returns a function that moves a buffer's breakpoints to the lines that their texts have now.
--- When Neovim reads a file again, it leaves signs in the lines of the same numbers.
---@param buf integer
---@return fun()
local function breakpoints_of(buf)
  local moves = {}
  for _, kind in ipairs({ 'consort.breakpoints', 'consort.dap_breakpoints' }) do
    moves[#moves + 1] = require(kind).keep(buf)
  end
  if #moves == 0 then return function() end end
  local before = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  return function()
    local line_now = require('consort.ranges').lines_moved(before, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
    for _, move in ipairs(moves) do move(line_now) end
  end
end

--- Reads a buffer again if its file has changed and 'autoread' is set. Leaves a buffer with unsaved
--- changes as it is; when the person writes it, Neovim asks for confirmation.
---@param buf integer
function M.look(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].modified or not vim.o.autoread or vim.bo[buf].buftype ~= '' then return end
  local name = vim.api.nvim_buf_get_name(buf)
  -- A file that was removed may be written again soon, so `checktime` must not warn about it.
  if vim.uv.fs_stat(name) == nil then return end
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local keep = breakpoints_of(buf)
  vim.cmd.checktime(buf)
  if vim.api.nvim_buf_get_changedtick(buf) == tick then return end
  keep()
  if vim.fn.bufwinid(buf) ~= -1 then
    client_of.say(('%s was written by another program, and is read again'):format(vim.fn.fnamemodify(name, ':t')))
  end
end

--- Ends the following of a buffer, and the watch of its directory if no other buffer needs it.
local function unfollow(buf)
  local directory = followed[buf]
  followed[buf] = nil
  if directory and not vim.list_contains(vim.tbl_values(followed), directory) and watches[directory] then
    watches[directory].watch:close()
    watches[directory].timer:close()
    watches[directory] = nil
  end
end

--- Keeps the breakpoints of a buffer that is being unloaded at their texts, if the same command
--- (`:edit!`) reads the file again.
local function keep_at_reading(buf)
  local keep = breakpoints_of(buf)
  local id = vim.api.nvim_create_autocmd('BufReadPost', {
    buffer = buf,
    once = true,
    callback = vim.schedule_wrap(keep), -- once the buffer has its server again
  })
  vim.schedule(function() pcall(vim.api.nvim_del_autocmd, id) end)
end

--- Reads a buffer again, by `M.look`, whenever its file is written. Watches the directory and not
--- the file, because a watch of a file ends when another file is renamed to its name.
---@param buf integer
function M.follow(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if followed[buf] or name == '' or vim.bo[buf].buftype ~= '' then return end
  local directory = vim.uv.fs_realpath(vim.fs.dirname(name))
  if not directory then return end
  followed[buf] = directory
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufFilePost' }, {
    group = group,
    buffer = buf,
    callback = function(event)
      unfollow(buf)
      if event.event == 'BufFilePost' then return M.follow(buf) end -- the buffer's file has a new name
      keep_at_reading(buf)
    end,
  })
  if watches[directory] then return end
  local timer = assert(vim.uv.new_timer())
  local watch = assert(vim.uv.new_fs_event())
  local started = watch:start(directory, {}, function(error)
    if error then return end
    timer:start(PAUSE, 0, vim.schedule_wrap(function()
      for one, where in pairs(followed) do
        if where == directory then M.look(one) end
      end
    end))
  end)
  if started then
    watches[directory] = { watch = watch, timer = timer }
  else -- the directory cannot be watched; Neovim's own checks remain
    watch:close()
    timer:close()
  end
end

return M
