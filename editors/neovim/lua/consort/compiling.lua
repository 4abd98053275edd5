--- `:Consort compile`: compiles the form or the file, and loads it if all of it compiles.
local client_of = require('consort.client')

local M = {}
M.CHOICES = { 'form', 'file', 'debug', 'anyway' }

--- Returns the message about a form or a file that was loaded.
---@param report table
---@param file string the path of the file, which is left out
local function said(report, file)
  local what = report.what:gsub(vim.pesc(file), (vim.fs.basename(file):gsub('%%', '%%%%')))
  local text = ('compiled %s: %d redefined, %d new'):format(what, #report.redefined, #report.new)
  for _, list in ipairs({ { 'errors', 'loaded with errors' }, { 'warnings', 'warnings' }, { 'stale', 'old code is still in' } }) do
    local items = report[list[1]] or {}
    local texts = vim.tbl_map(function(item) return type(item) == 'table' and item.message or item end, items)
    if #items > 0 then text = ('%s\n%s: %s'):format(text, list[2], table.concat(texts, '; ')) end
  end
  return text
end

--- Returns the place and the reason of a failed compilation. The place comes first, because the
--- command line may cut the end of the message.
local function why(error)
  local data = error.data
  local reason = type(data.message) == 'string' and vim.trim(data.message)
  local at = type(data.location) == 'table' and data.location or {}
  if not reason or not at.line then return reason and ('%s: %s'):format(error.message, reason) or error.message end
  local file = at.file and vim.fs.basename(at.file) .. ':' or 'line '
  return ('%s%d%s: %s'):format(file, at.line, at.column and ':' .. at.column or '', reason)
end

--- Compiles and loads the top-level form at the cursor, or the file.
---@param words? string words of CHOICES: `file` for the whole file; `debug` to compile with
---  `(debug 3)`; `anyway` to load forms that do not compile, too
function M.compile(words)
  local client = client_of.need()
  if not client then return end
  local chosen = {}
  for _, word in ipairs(vim.split(words or '', '%s+', { trimempty = true })) do
    if not vim.list_contains(M.CHOICES, word) then
      return client_of.fail(('`:Consort compile` takes %s, and not %s'):format(table.concat(M.CHOICES, ', '), word))
    end
    chosen[word] = true
  end
  local what = client_of.place(client)
  if chosen.file then what = { uri = what.uri } end
  what.debug, what.anyway = chosen.debug, chosen.anyway
  local file = vim.api.nvim_buf_get_name(0)
  require('consort.undo').reload(chosen.file and 'compileFile' or 'compileForm', what, function(report) client_of.say(said(report, file)) end, {
    on_error = function(error)
      local refused = type(error.data) == 'table' and error.data.type == 'COMPILATION_ERROR'
      if not refused then return client_of.failed(error) end
      if chosen.anyway then return client_of.fail(why(error)) end
      local anyway = ('\n`:Consort compile %sanyway` loads it all the same'):format(chosen.file and 'file ' or '')
      client_of.fail(why(error) .. (error.data.unreadable and '' or anyway))
    end,
  })
end

return M
