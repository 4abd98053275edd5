--- The definition that an agent asks to replace in the image: the text of the old definition in its
--- file, the difference to the new one, and the command that writes the new one into the file after
--- the person has allowed the call.
local client_of = require('consort.client')
local ranges = require('consort.ranges')

local M = {}

---@class consort.Replaced
---@field file string
---@field old string the text of the definition
---@field new? string the text of the new definition; nil until the person has allowed it

---@type consort.Replaced?
local allowed

--- Returns the lines of a file: those of its loaded buffer, otherwise those on disk.
local function lines_of(file)
  local buf = vim.fn.bufnr(file)
  if buf ~= -1 and vim.api.nvim_buf_is_loaded(buf) then return vim.api.nvim_buf_get_lines(buf, 0, -1, false) end
  local ok, lines = pcall(vim.fn.readfile, file)
  return ok and lines or {}
end

--- Returns the text of an LSP range of a file; nil if the file does not have the range's lines.
local function text_of(file, range, encoding)
  local lines = lines_of(file)
  local first, last = lines[range.start.line + 1], lines[range['end'].line + 1]
  if not first or not last then return end
  local function column(line, position) return vim.str_byteindex(line, encoding, position.character, false) end
  return ranges.text(lines, { range.start.line, column(first, range.start), range['end'].line, column(last, range['end']) })
end

--- Records the versions of all loaded buffers. Returns a function of a file that returns true if
--- the text of its buffer is unchanged since then, or if it had no loaded buffer.
local function texts()
  local same = {}
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) then same[buf] = client_of.text(buf) end
  end
  return function(file)
    local is_same = same[vim.fn.bufnr(file)]
    return not is_same or is_same()
  end
end

--- Returns the last symbol of a name as written, without its package, in lower case.
local function symbol_of(written) return (written:lower():match('([^%s():|]+)[|)%s]*$')) end

--- Returns the operator of the form that a text begins with.
local function operator_of(text) return symbol_of(text:match('^%s*%(%s*([^%s()]+)') or '') end

--- Returns true if a text is a form that defines a function or macro of this name. The image knows
--- only the line in which a definition was evaluated, and another form may stand there by now.
---@param text string
---@param name string as written, `(setf NAME)` included
---@param code string the new definition, whose operator may be one of the person's own
---@return boolean
local function is_definition(text, name, code)
  local operator, rest = operator_of(text), text:match('^%(%s*[^%s()]+%s+(.*)$')
  if not operator or not rest or not operator:match('^def') and operator ~= operator_of(code) then return false end
  local written = rest:match('^%([sS][eE][tT][fF]%s+[^%s()]+%s*%)') or rest:match('^%(?([^%s()]+)')
  local function is_setf(one) return one:lower():match('^%(%s*setf%s') ~= nil end
  return written ~= nil and symbol_of(written) == symbol_of(name) and is_setf(written) == is_setf(name)
end

--- Finds the function or macro that an agent asks to replace with the request `consort/approve`,
--- and calls `on_found`; does not call it if nothing is found. If the person edits the file
--- meanwhile, the positions in the answer are outdated, and the server is asked again.
---@param params table the parameters of `consort/approve`
---@param on_found fun(replaced: consort.Replaced)
function M.find(params, on_found)
  local arguments = type(params.arguments) == 'table' and params.arguments or {}
  local name = arguments['function']
  if params.class ~= 'modify-running-code' or type(name) ~= 'string' or type(arguments.new_code) ~= 'string' then return end
  local client = client_of.of()
  if not client or not client_of.knows(client, 'consort.sourceLocation') then return end
  local is_same_text = texts()
  client:request('workspace/executeCommand', { command = 'consort.sourceLocation', arguments = { { symbol = name, package = arguments.package } } }, function(error, answer)
    if error then return end
    for _, one in ipairs(answer.definitions or {}) do
      if type(one.file) == 'string' and not is_same_text(one.file) then return M.find(params, on_found) end
      local old = type(one.file) == 'string' and type(one.form) == 'table' and text_of(one.file, one.form, client.offset_encoding)
      local kind = one.kind or ''
      if old and (kind:match('function') or kind:match('macro')) and is_definition(old, name, arguments.new_code) then
        return on_found({ file = one.file, old = old })
      end
    end
  end)
end

--- Returns the difference between the old definition and the new one, in unified format without the
--- first `@@` line.
---@param replaced consort.Replaced
---@param code string the new definition
---@return string
function M.difference(replaced, code)
  local difference = vim.diff(replaced.old .. '\n', code .. '\n', { ctxlen = 100 })
  return (difference:gsub('^@@[^\n]*\n', ''):gsub('\n$', ''))
end

--- Keeps a replacement that the person has allowed, for `M.write`. Only the last one is kept.
---@param replaced? consort.Replaced nil if no file has the definition
---@param params table the parameters of `consort/approve`
function M.allow(replaced, params)
  allowed = replaced and vim.tbl_extend('force', replaced, { new = vim.trim(params.arguments.new_code) })
end

--- Replaces the old definition by the one that was allowed last, in the buffer of its file. Does
--- not save the buffer. Fails if the old text is not in the buffer, or is there more than once.
function M.write()
  if not allowed then return client_of.say('nothing to write: no agent has replaced a form of a file') end
  local replaced, name = allowed, vim.fn.fnamemodify(allowed.file, ':t')
  require('consort.goto').line(replaced.file, 1)
  local buf = vim.api.nvim_get_current_buf()
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  local at, to = text:find(replaced.old, 1, true)
  if not at or text:find(replaced.old, at + 1, true) then
    return client_of.fail(('not written: the old definition is no longer in %s as it was'):format(name))
  end
  local function place(offset)
    local before = text:sub(1, offset)
    local rows = select(2, before:gsub('\n', ''))
    return rows, #before - (before:find('\n[^\n]*$') or 0)
  end
  local row, column = place(at - 1)
  local end_row, end_column = place(to)
  vim.api.nvim_buf_set_text(buf, row, column, end_row, end_column, vim.split(replaced.new, '\n', { plain = true }))
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
  allowed = nil
  client_of.say(('written to %s, not saved yet'):format(name))
end

return M
