--- Evaluation, with its value where the form ends.
local client_of = require('consort.client')
local float = require('consort.float')
local inline = require('consort.inline')

local M = {}

--- An LSP range as rows and byte columns.
---@param buf integer
---@param range lsp.Range
---@param encoding string
---@return integer[]
local function bytes(buf, range, encoding)
  local function column(position)
    local line = vim.api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1] or ''
    return math.min(#line, vim.str_byteindex(line, encoding, position.character, false))
  end
  return { range.start.line, column(range.start), range['end'].line, column(range['end']) }
end

--- The whole of a result, for a float or a register.
---@param result table
---@return string[]
function M.report(result)
  local lines = {}
  local function add(text) vim.list_extend(lines, vim.split(text, '\n', { plain = true })) end
  for _, value in ipairs(result.values or {}) do add('⇒ ' .. value) end
  if result.status == 'ok' and #(result.values or {}) == 0 then add('no value') end
  local error = type(result.error) == 'table' and result.error or nil
  if error then
    add(('%s: %s'):format(error.type, error.message))
    for i, frame in ipairs(error.backtrace or {}) do add(('%3d  %s'):format(i - 1, frame)) end
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
    add(('%.3f ms real, %.3f ms run, %.3f ms in the collector, %d bytes'):format(timing.real_ms, timing.run_ms, timing.gc_ms, timing.bytes))
  end
  return lines
end

--- The definition of what a line of a backtrace calls.
local function follow(buf)
  local name = vim.api.nvim_get_current_line():match('^%s*%d+%s+%(+([^%s()]+)')
  if not name then return end
  vim.api.nvim_win_close(0, true)
  require('consort.views').go_to(name)
end

---@param result table
function M.show_report(result)
  local failed = result.status ~= 'ok'
  float.open(M.report(result), {
    title = failed and 'Error' or 'Value',
    filetype = 'lisp',
    hint = failed and '<CR> goes to a function, q closes' or 'y copies, q closes',
    keys = {
      ['<CR>'] = follow,
      y = function()
        vim.fn.setreg('"', table.concat(result.values or {}, '\n'))
        client_of.say('copied')
      end,
    },
  })
end

local function shower(buf)
  return function(result, client)
    if result.range then
      inline.show(buf, bytes(buf, result.range, client.offset_encoding), result)
    else
      client_of.say((inline.summary(result)))
    end
  end
end

--- Evaluate the innermost form at the cursor, or the top-level one.
---@param top? boolean
function M.form(top)
  local client = client_of.need()
  if not client then return end
  local place = client_of.place(client)
  client_of.execute('evalForm', { uri = place.uri, position = place.position, topLevel = top or nil }, shower(vim.api.nvim_get_current_buf()))
end

--- Evaluate the last visual selection.
function M.region()
  local client = client_of.need()
  if not client then return end
  local argument = { uri = client_of.place(client).uri, range = client_of.selection(client) }
  client_of.execute('evalRegion', argument, shower(vim.api.nvim_get_current_buf()))
end

function M.buffer()
  local client = client_of.need()
  if not client then return end
  client_of.execute('evalBuffer', { uri = client_of.place(client).uri }, shower(vim.api.nvim_get_current_buf()))
end

--- Evaluate the form and write its value behind it as a comment.
function M.to_comment()
  local client = client_of.need()
  if client then client_of.execute('evalToComment', client_of.place(client)) end
end

--- Evaluate code that a person types.
---@param code string
function M.code(code)
  client_of.execute('eval', { code = code }, function(result) M.show_report(result) end)
end

--- The whole of the result that is shown in the cursor's line.
function M.result()
  local result = inline.at(vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1)
  if result then
    M.show_report(result)
  else
    client_of.say('no result is shown in this line')
  end
end

return M
