--- The input history of the REPL, kept from one Neovim session to the next. The file is in Neovim's
--- state directory, and each line is a JSON string.
local M = {}
local MOST = 500

local function file() return vim.fn.stdpath('state') .. '/consort-repl-history' end

--- Returns the newest entries, at most MOST, with the oldest first. Removes older entries from the
--- file when it has more than 2 * MOST.
---@return string[]
function M.read()
  local ok, lines = pcall(vim.fn.readfile, file())
  if not ok then return {} end
  local entries = {}
  for _, line in ipairs(vim.list_slice(lines, math.max(1, #lines - MOST + 1))) do
    local whole, entry = pcall(vim.json.decode, line)
    if whole and type(entry) == 'string' then table.insert(entries, entry) end
  end
  if #lines > 2 * MOST then pcall(vim.fn.writefile, vim.tbl_map(vim.json.encode, entries), file()) end
  return entries
end

local is_told = false -- true after the message that the history cannot be written

--- Appends an entry. If the file cannot be written, a message says so once.
---@param entry string
function M.add(entry)
  local path = file()
  local fresh = vim.uv.fs_stat(path) == nil
  local ok, why = pcall(function()
    vim.fn.mkdir(vim.fs.dirname(path), 'p')
    vim.fn.writefile({ vim.json.encode(entry) }, path, 'a')
  end)
  if ok and fresh then vim.uv.fs_chmod(path, 384) end -- 0600
  if ok or is_told then return end
  is_told = true
  require('consort.client').say(('the history of the REPL is not kept: %s. Its file is %s'):format(tostring(why):gsub('^.-Vim:', ''), path), vim.log.levels.WARN)
end

return M
