--- The form of a frame in its source: shown in a window other than the debugger's, highlighted,
--- with the values of its variables.
local client_of = require('consort.client')
local escaped = require('consort.escaped')

local M = {}
local namespace = vim.api.nvim_create_namespace('consort.debugger')

local marked ---@type table? the frame whose source was shown last
local marked_buf ---@type integer? the buffer with its form
local requested ---@type table? the frame whose source was requested last

--- Highlights the form of a frame in the current window's buffer.
local function mark(frame)
  if marked_buf and vim.api.nvim_buf_is_loaded(marked_buf) then vim.api.nvim_buf_clear_namespace(marked_buf, namespace, 0, -1) end
  marked, marked_buf = frame, vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_clear_namespace(0, namespace, 0, -1)
  if not frame.endLine then return end
  local function position(line, column)
    local row = math.min(line, vim.api.nvim_buf_line_count(0)) - 1
    local text = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ''
    return row, vim.str_byteindex(text, 'utf-16', math.max(0, column - 1), false)
  end
  local row, column = position(frame.line, frame.column)
  local last, to = position(frame.endLine, frame.endColumn)
  vim.api.nvim_buf_set_extmark(0, namespace, row, column, { end_row = last, end_col = to, hl_group = 'Visual' })
end

--- Shows the values of a frame's variables in the buffer with its source, unless another frame's
--- source was shown meanwhile.
---@param values fun(found: fun(variables: table[]))
local function show_values(frame, values, buf, row)
  local is_same_text = client_of.text(buf)
  values(function(variables)
    if marked == frame and is_same_text() then require('consort.frame_values').put(buf, namespace, row, variables) end
  end)
end

---@class consort.FrameSource
---@field is_there fun(): boolean true while the program is at the frame
---@field values fun(found: fun(variables: table[])) fetches the frame's variables
---@field done? fun() afterwards, in the window of the source

--- Shows the source of a frame.
---@param adapter consort.Adapter
---@param frame table?
---@param options consort.FrameSource
function M.show(adapter, frame, options)
  if not frame or not frame.source or frame.line == 0 then
    local origin = frame and frame.source and frame.source.origin
    return client_of.say(origin and ('%s: %s'):format(escaped.line(frame.source.name), origin) or 'the source of that frame is not known')
  end
  if frame.source.origin then client_of.say(('%s: %s'):format(escaped.line(frame.source.name), frame.source.origin), vim.log.levels.WARN) end
  local own, is_here = vim.api.nvim_get_current_win(), client_of.here()
  requested = frame
  local function other(text)
    -- A window that shows the file is used. A REPL, a terminal or a list keeps its window.
    if text or vim.fn.bufwinid(vim.fn.bufadd(frame.source.path)) == -1 then
      vim.cmd.wincmd('p')
      local is_kept = vim.bo.buftype ~= '' and not vim.b.consort_source or vim.wo.winfixbuf
      if vim.api.nvim_get_current_win() == own or is_kept then
        vim.api.nvim_set_current_win(own)
        vim.cmd('aboveleft split')
      end
    end
    if text then
      local buf = vim.api.nvim_create_buf(false, true)
      vim.b[buf].consort_source = true
      vim.api.nvim_buf_set_lines(buf, 0, -1, false, escaped.lines(text))
      vim.bo[buf].bufhidden = 'wipe'
      vim.bo[buf].syntax = 'lisp'
      vim.api.nvim_win_set_buf(0, buf)
      vim.api.nvim_win_set_cursor(0, { math.min(frame.line, vim.api.nvim_buf_line_count(buf)), 0 })
    else
      require('consort.goto').line(frame.source.path, frame.line)
    end
    local row = vim.api.nvim_win_get_cursor(0)[1] - 1
    local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ''
    local column = math.min(#line, vim.str_byteindex(line, 'utf-16', math.max(0, (frame.column or 1) - 1), false))
    vim.api.nvim_win_set_cursor(0, { row + 1, column })
    mark(frame)
    show_values(frame, options.values, vim.api.nvim_get_current_buf(), row)
    if options.done then options.done() end
  end
  if frame.source.path then return other() end
  adapter:ask('source', { sourceReference = frame.source.sourceReference, source = frame.source }, function(answer)
    if requested == frame and is_here() and options.is_there() then other(answer.content) end
  end)
end

--- Removes the highlighted form and the values.
function M.clear()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) then vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1) end
  end
end

return M
