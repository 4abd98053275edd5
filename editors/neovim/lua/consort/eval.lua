--- Evaluation of code in buffers, with the value shown at the end of the form.
local client_of = require('consort.client')
local float = require('consort.float')
local frames = require('consort.frames')
local inline = require('consort.inline')
local ranges = require('consort.ranges')
local running = require('consort.running')

local M = {}

--- Converts an LSP range to rows and byte columns, and removes the white space at its end. A range
--- of whole lines ends at the start of the next line, but its value is shown beside its last line.
---@param lines string[] the lines of the text
---@param range lsp.Range
---@param encoding string
---@return integer[] { row, column, end row, end column }, 0-based, end exclusive
local function bytes(lines, range, encoding)
  local function line(row) return lines[row + 1] or '' end
  local function column(position)
    return vim.str_byteindex(line(position.line), encoding, position.character, false)
  end
  local first, from = range.start.line, column(range.start)
  local last, to = range['end'].line, column(range['end'])
  if last >= #lines then
    last = #lines - 1
    to = #line(last)
  end
  local function trimmed() return #line(last):sub(1, to):gsub('%s+$', '') end
  while last > first and trimmed() == 0 do
    last = last - 1
    to = #line(last)
  end
  return { first, from, last, trimmed() }
end

--- Returns the complete result as lines, for a float or a register, and the frames in these lines.
---@param result table
---@return string[] lines
---@return table<integer, consort.Frame> frames by line, 1-based
function M.report(result)
  local lines, shown = {}, {}
  local function add(text) vim.list_extend(lines, vim.split(text, '\n', { plain = true })) end
  for _, value in ipairs(result.values or {}) do add('⇒ ' .. value) end
  if result.status == 'ok' and #(result.values or {}) == 0 then add('no value') end
  local error = type(result.error) == 'table' and result.error or nil
  if error then
    add(('%s: %s'):format(error.type, error.message))
    for i, frame in ipairs(frames.of_program(error.backtrace or {})) do
      shown[#lines + 1] = frame
      add(('%3d  %s'):format(i - 1, frame.text))
    end
  end
  for _, warning in ipairs(result.warnings or {}) do add(('%s: %s'):format(warning.type, warning.message)) end
  for _, stream in ipairs({ 'stdout', 'stderr' }) do
    local text = vim.trim(result[stream] or '')
    if text ~= '' then
      add('')
      add(text)
    end
  end
  local timing = type(result.timing) == 'table' and result.timing or nil
  if timing then
    add('')
    add(('%.3f ms (processor time: %.3f ms, garbage collection: %.3f ms); %d bytes allocated'):format(timing.real_ms, timing.run_ms, timing.gc_ms, timing.bytes))
  end
  return lines, shown
end

--- Closes the float and goes to the definition of a frame's function.
---@param frame? consort.Frame
local function follow(frame)
  local name = frame and frame.name
  if type(name) ~= 'string' then return client_of.say('put the cursor on a call: a numbered line') end
  vim.api.nvim_win_close(0, true)
  require('consort.views').go_to(name)
end

--- Shows the complete result in a float.
---@param result table
---@param is_here? fun(): boolean as in consort.Float
function M.show_report(result, is_here)
  local failed = result.status ~= 'ok'
  local lines, shown = M.report(result)
  local rows = vim.tbl_keys(shown)
  local first_frame = #rows > 0 and math.min(unpack(rows)) - 1 or nil
  float.open(lines, {
    title = failed and 'Error' or 'Value',
    is_here = is_here,
    filetype = 'lisp',
    plain = type(result.error) == 'table' and { { 0, (first_frame or #lines) - 1 } } or nil,
    row = first_frame,
    hint = first_frame and '<CR> goes to the function, y copies, q closes' or 'y copies, q closes',
    keys = {
      ['<CR>'] = first_frame and function() follow(shown[vim.api.nvim_win_get_cursor(0)[1]]) end or nil,
      y = function()
        vim.fn.setreg('"', table.concat(failed and lines or result.values or {}, '\n'))
        client_of.say('copied')
      end,
    },
  })
end

--- Returns true if a row (0-based) of a buffer is visible in any window.
local function in_sight(buf, row)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    if info.topline <= row + 1 and row + 1 <= info.botline then return true end
  end
  return false
end

--- Executes a command on text of this buffer, marks the cursor's line while it runs, and shows the
--- value at the end of the text. If the text was edited or evaluated again meanwhile, the value is
--- shown as a message.
---@param command string
---@param argument table
---@param done? fun(result: table)
local function run(command, argument, done)
  local buf, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local before, number = vim.api.nvim_buf_get_lines(buf, 0, -1, false), inline.begun()
  argument.outputToken = running.mark(buf, row)
  --- Returns the current place of a range of the text; nil if that is unknown after edits.
  local function place(range, client)
    local now = range and vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    return now and ranges.moved(bytes(before, range, client.offset_encoding), before, now) or nil
  end
  local cancel = client_of.execute(command, argument, function(result, client)
    running.done(argument.outputToken)
    if not result.range then return client_of.say((inline.summary(result))) end
    local range = place(result.range, client)
    local is_shown = range and inline.show(buf, range, result, number)
    -- A value in a row that no window shows is also shown as a message.
    if not is_shown or not in_sight(buf, range[3]) then client_of.say((inline.summary(result)), result.status ~= 'ok' and vim.log.levels.ERROR or nil) end
    if done then done(result) end
  end, {
    buf = buf,
    on_error = function(error, client)
      local data = error.data or {}
      local is_interrupted = data.kind == 'interrupted' or error.code == vim.lsp.protocol.ErrorCodes.RequestCancelled
      -- An evaluation that had not begun changed nothing, and the form's earlier value still holds.
      local is_cancelled = data.kind == 'interrupted' and not running.has_begun(argument.outputToken)
      running.done(argument.outputToken)
      local range = is_cancelled and place(data.range, client)
      if range and inline.cancelled(buf, range, number) then return end
      local position = argument.position
      local refused = not is_interrupted and place(argument.range or position and { start = position, ['end'] = position }, client)
      -- An earlier value there would look like the answer.
      if refused then inline.remove_earlier(buf, refused[3], number) end
      client_of.failed(error)
    end,
  })
  if not cancel then running.done(argument.outputToken) end
end

--- Returns the column of the opening parenthesis of a call if the cursor is on the call's operator;
--- nil otherwise. The form at the cursor is then the call, and not the operator as a variable. A
--- quoted list is no call, and a name like `*this*` is no operator.
---@param line string
---@param column integer the byte column of the cursor, 1-based
---@return integer? column in bytes, 1-based
local function call_at(line, column)
  local before = line:sub(1, column - 1)
  local open = before:match('^.*()%([^%s()\'"`,;|]*$')
  local name = open and line:sub(open + 1):match('^[^%s()\'"`,;|]+')
  if not name or open + #name < column or name:match('^%*.*%*$') or before:sub(1, open - 1):match("['`#\\(]$") then return end
  return open
end

--- Returns the position of the form to evaluate. On the operator of a call, the position is that of
--- its opening parenthesis. On a closing parenthesis, the position is behind it, so that
--- the form that ends there is evaluated. Elsewhere the position is the cursor's.
local function place_of_form(client)
  local place = client_of.place(client)
  local column = vim.api.nvim_win_get_cursor(0)[2] + 1
  local line = vim.api.nvim_get_current_line()
  local call = call_at(line, column)
  if call then
    place.position.character = vim.str_utfindex(line, client.offset_encoding, call - 1, false)
    return place
  end
  if line:sub(column, column) == ')' and line:sub(math.max(1, column - 2), column - 1) ~= '#\\' then
    place.position.character = place.position.character + 1
  end
  return place
end

--- Evaluates the innermost form at the cursor, or the top-level form around it.
---@param top? boolean true for the top-level form
function M.form(top)
  local client = client_of.need()
  if not client then return end
  local place = place_of_form(client)
  run('evalForm', { uri = place.uri, position = place.position, topLevel = top or nil })
end

--- Evaluates the last visual selection. If FIRST and LAST are given and are not its first and last
--- lines, evaluates the lines FIRST to LAST instead.
---@param first? integer 1-based
---@param last? integer 1-based, inclusive
function M.region(first, last)
  local client = client_of.need()
  if not client then return end
  local range = client_of.selection(client)
  if first and last and (first ~= vim.fn.line("'<") or last ~= vim.fn.line("'>")) then
    range = { start = { line = first - 1, character = 0 }, ['end'] = { line = last, character = 0 } }
    if last == vim.api.nvim_buf_line_count(0) then
      local text = vim.fn.getline(last)
      range['end'] = { line = last - 1, character = vim.str_utfindex(text, client.offset_encoding, #text, false) }
    end
  end
  run('evalRegion', { uri = client_of.place(client).uri, range = range })
end

--- Evaluates a range of the current buffer.
---@param range lsp.Range
---@param done fun(result: table)
function M.range(range, done)
  run('evalRegion', { uri = vim.uri_from_bufnr(0), range = range }, done)
end

--- The function of 'operatorfunc': evaluates the text of a motion.
---@param kind 'char'|'line'|'block'
function M.evaluate_motion(kind)
  local client = client_of.need()
  if not client then return end
  local first, last = vim.api.nvim_buf_get_mark(0, '['), vim.api.nvim_buf_get_mark(0, ']')
  if kind == 'line' then
    first[2], last[2] = 0, math.max(0, #vim.fn.getline(last[1]) - 1)
  end
  local range = vim.lsp.util.make_given_range_params(first, last, 0, client.offset_encoding).range
  run('evalRegion', { uri = client_of.place(client).uri, range = range })
end

--- Starts the evaluation operator, which waits for a motion or a text object.
function M.operator()
  vim.o.operatorfunc = "v:lua.require'consort.eval'.evaluate_motion"
  vim.api.nvim_feedkeys('g@', 'ni', false)
end

--- Evaluates the buffer.
function M.buffer()
  local client = client_of.need()
  if not client then return end
  run('evalBuffer', { uri = client_of.place(client).uri })
end

--- Evaluates the top-level forms from the start of the buffer up to the cursor.
function M.to_cursor()
  local client = client_of.need()
  if client then run('evalToCursor', place_of_form(client)) end
end

--- Evaluates the form and writes its value after it as a comment.
function M.to_comment()
  local client = client_of.need()
  if not client then return end
  client_of.execute('evalToComment', place_of_form(client), function(result)
    if result.applied ~= false then return end
    local reason = type(result.reason) == 'string' and result.reason or 'the edit could not be applied'
    client_of.say(('%s. It was not written: %s'):format((inline.summary(result)), reason), vim.log.levels.WARN)
  end)
end

--- Evaluates code that a person has typed, and shows the result in a float.
---@param code string
function M.code(code)
  client_of.execute('eval', { code = code, package = require('consort.repl').package_of_file() }, function(result, _, is_here) M.show_report(result, is_here) end)
end

--- Shows the complete result of the form in the cursor's line.
function M.result()
  local result = inline.at(vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1)
  if result then
    M.show_report(result)
  else
    client_of.say('no result is shown in this line')
  end
end

return M
