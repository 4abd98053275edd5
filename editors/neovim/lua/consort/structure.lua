--- Structural editing by the server's `consort.structure`, and text objects for lists.
local client_of = require('consort.client')

local M = {}
local PATIENCE = 2000 -- ms; Neovim is blocked while it waits for an answer

--- Executes a command of the server and waits for the result. Returns nil, after a message, if the
--- request failed.
---@param command string
---@param argument table
---@return any result
local function now(client, command, argument)
  -- The real number of the buffer, and not 0: for 0, pending changes would not be sent first.
  local buf = vim.api.nvim_get_current_buf()
  local answer, why = client:request_sync('workspace/executeCommand', { command = 'consort.' .. command, arguments = { argument } }, PATIENCE, buf)
  if not answer then return client_of.fail('no answer: ' .. tostring(why)) end
  if answer.err then return client_of.fail(answer.err.message) end
  return answer.result
end

--- Moves the cursor to an LSP position.
local function set_cursor(client, position)
  local line = vim.api.nvim_buf_get_lines(0, position.line, position.line + 1, false)[1] or ''
  local column = vim.str_byteindex(line, client.offset_encoding, position.character, false)
  vim.api.nvim_win_set_cursor(0, { position.line + 1, column })
end

--- Returns the cursor's position for actions on a list. If the cursor is on an opening parenthesis,
--- the position is after it: in Vim such a cursor counts as inside the list, while the LSP position
--- of the cursor would be before the list.
---@param client vim.lsp.Client
---@return { uri: string, position: lsp.Position } place
---@return boolean moved true if the position is one character after the cursor
local function inside(client)
  local place = client_of.place(client)
  local column = vim.api.nvim_win_get_cursor(0)[2] + 1
  local line = vim.api.nvim_get_current_line()
  local moved = line:sub(column, column) == '(' and line:sub(math.max(1, column - 2), column - 1) ~= '#\\'
  if moved then place.position.character = place.position.character + 1 end
  return place, moved
end

-- The actions on the list around the cursor. All others act on the form at the cursor.
local list_actions = { slurpForward = true, slurpBackward = true, barfForward = true, barfBackward = true, splice = true }

--- Returns the text that edits remove, without white space around it.
local function taken(client, edits)
  local texts = {}
  for _, edit in ipairs(edits) do
    local function column(position)
      local line = vim.api.nvim_buf_get_lines(0, position.line, position.line + 1, false)[1] or ''
      return math.min(#line, vim.str_byteindex(line, client.offset_encoding, position.character, false))
    end
    local from, to = edit.range.start, edit.range['end']
    table.insert(texts, table.concat(vim.api.nvim_buf_get_text(0, from.line, column(from), to.line, column(to), {}), '\n'))
  end
  return vim.trim(table.concat(texts))
end

--- Performs one of the server's actions (docs/protocol.md, `consort.structure`) at the cursor. The
--- text that `killSexp` and `killLine` remove is put into the register, as by `d`.
---@param action string
---@param register? string the unnamed register by default
---@return boolean? done whether there was something to do; nil, after a message, on a failure
function M.act(action, register)
  local client = client_of.need()
  if not client then return end
  local place, moved = client_of.place(client), false
  if list_actions[action] then place, moved = inside(client) end
  local result = now(client, 'structure', { uri = place.uri, position = place.position, action = action })
  if not result then return end
  local edits = result.edits or {}
  -- If there is nothing to do, the server returns no edits and the position that was sent.
  local done = #edits > 0 or result.selection ~= nil and not vim.deep_equal(result.selection.start, place.position)
  if #edits > 0 then
    if action == 'killSexp' or action == 'killLine' then vim.fn.setreg(register or '"', taken(client, edits)) end
    vim.lsp.util.apply_text_edits(edits, vim.api.nvim_get_current_buf(), client.offset_encoding)
  end
  if result.selection then
    local start = result.selection.start
    if moved and start.character > 0 and action ~= 'splice' then start.character = start.character - 1 end
    set_cursor(client, start)
  end
  if not done then client_of.say(action .. ' finds nothing to do here') end
  return done
end

--- Deletes a range of the buffer, or the character after or before the cursor. Lists, strings and
--- comments stay intact.
---@param action 'deleteForward'|'deleteBackward'
---@param range? integer[] row, column, end row, end column: 0-based bytes, end exclusive
---@param register? string the register for the deleted text; by default none gets it
---@return boolean? done whether something was deleted; nil, after a message, on a failure
---@return string? text that was deleted
function M.delete(action, range, register)
  local client = client_of.need()
  if not client then return end
  local place = client_of.place(client)
  local function position(row, column)
    local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ''
    return { line = row, character = vim.str_utfindex(line, client.offset_encoding, math.min(column, #line), false) }
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  range = range or { row - 1, column, row - 1, column }
  local selection = { start = position(range[1], range[2]), ['end'] = position(range[3], range[4]) }
  local result = now(client, 'structure', { uri = place.uri, selection = selection, action = action })
  if not result then return end
  local edits, text = result.edits or {}, nil
  if #edits > 0 then
    text = taken(client, edits)
    if register then vim.fn.setreg(register, text) end
    vim.lsp.util.apply_text_edits(edits, vim.api.nvim_get_current_buf(), client.offset_encoding)
  end
  if result.selection then set_cursor(client, result.selection.start) end
  return #edits > 0, text
end

---@type { action: string, count: integer, register: string, fresh: boolean }
local last = { action = '', count = 1, register = '"', fresh = false }

--- Performs the last action of `M.key`, as the 'operatorfunc' for its key and for `.`. A count
--- before `.` replaces the count of the key.
function M.again()
  if not last.fresh and vim.v.count > 0 then last.count = vim.v.count end
  last.fresh = false
  for _ = 1, last.count do
    if not M.act(last.action, last.register) then return end
  end
end

--- Performs an action as often as the count before the key says, and lets `.` repeat it.
---@param action string
function M.key(action)
  last = { action = action, count = vim.v.count1, register = vim.v.register, fresh = true }
  vim.o.operatorfunc = "v:lua.require'consort.structure'.again"
  vim.api.nvim_feedkeys('g@l', 'ni', false)
end

--- Returns the range of a list around the cursor, by `textDocument/selectionRange`. Returns nil if
--- there is no such list, and false, after a message, if the request failed.
---@param client vim.lsp.Client
---@param count integer the number of the list: 1 is the innermost; math.huge is the outermost
---@return integer[]? range row, column, end row, end column: 0-based bytes, end exclusive
local function list_around(client, count)
  local place = inside(client)
  local answer, why = client:request_sync('textDocument/selectionRange', {
    textDocument = { uri = place.uri },
    positions = { place.position },
  }, PATIENCE, vim.api.nvim_get_current_buf())
  if not answer then return false, client_of.fail('no answer: ' .. tostring(why)) end
  if answer.err then return false, client_of.fail(answer.err.message) end
  local node = answer.result and answer.result[1]
  local last
  while node do
    local range = node.range
    local function bytes(position)
      local line = vim.api.nvim_buf_get_lines(0, position.line, position.line + 1, false)[1] or ''
      return math.min(#line, vim.str_byteindex(line, client.offset_encoding, position.character, false))
    end
    local r = { range.start.line, bytes(range.start), range['end'].line, bytes(range['end']) }
    -- The range of the whole text ends in the line after the last, which the buffer does not have.
    local within = r[3] < vim.api.nvim_buf_line_count(0)
    local text = within and table.concat(vim.api.nvim_buf_get_text(0, r[1], r[2], r[3], r[4], {}), '\n') or ''
    if text:match('^%(.*%)$') and not vim.deep_equal(r, last) then
      last = r
      count = count - 1
      if count == 0 then return r end
    end
    node = node.parent
  end
  return count == math.huge and last or nil
end

--- Returns the range of the top-level list around the cursor.
---@return integer[]? range as `list_around` returns it
function M.top_level()
  local client = client_of.need()
  return client and list_around(client, math.huge)
end

--- Returns the range of the innermost list around the cursor.
---@return integer[]? range as `list_around` returns it
function M.innermost()
  local client = client_of.need()
  return client and list_around(client, 1)
end

--- Selects the list around the cursor (`af`), or its contents (`if`). With a count, selects an
--- outer list.
---@param inner boolean true for the contents
function M.select(inner)
  local client = client_of.need()
  local range = client and list_around(client, vim.v.count1)
  if range == nil and client then client_of.say('no list is around the cursor') end
  if not range then return end
  local row, column, end_row, end_column = unpack(range)
  if inner then
    column, end_column = column + 1, end_column - 1
    if row == end_row and column >= end_column then return end -- ()
  end
  if vim.fn.mode():match('[vV\22]') then vim.cmd.normal({ '\27', bang = true }) end
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
  vim.cmd.normal({ 'v', bang = true })
  if end_column == 0 then
    vim.api.nvim_win_set_cursor(0, { end_row, math.max(0, #vim.fn.getline(end_row) - 1) })
  else
    vim.api.nvim_win_set_cursor(0, { end_row + 1, end_column - 1 })
  end
end

return M
