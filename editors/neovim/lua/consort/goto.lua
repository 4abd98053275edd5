--- Jumps to lines of files.
local M = {}

--- Moves the cursor to a line of a file, in a window of this tab page that shows the file, or else
--- in the current window. Unsaved changes in that window do not prevent the jump.
---@param file string
---@param line integer 1-based
function M.line(file, line)
  local buf = vim.fn.bufadd(file)
  vim.cmd.normal({ "m'", bang = true }) -- so that CTRL-O goes back
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 then
    vim.api.nvim_set_current_win(win)
  else
    -- Without 'hidden', a window cannot leave a buffer with unsaved changes.
    if vim.bo.modified and not vim.o.hidden and vim.bo.bufhidden == '' then vim.cmd.split() end
    vim.bo[buf].buflisted = true
    vim.api.nvim_win_set_buf(0, buf)
  end
  vim.api.nvim_win_set_cursor(0, { math.max(1, math.min(line, vim.api.nvim_buf_line_count(0))), 0 })
  vim.cmd.normal({ 'zz', bang = true })
end

return M
