--- Top-level forms that differ from the image: a sign at each line, and a command that evaluates
--- them.
local client_of = require('consort.client')

local M = {}
local PAUSE = 400 -- ms
local namespace = vim.api.nvim_create_namespace('consort.differences')
local timer = assert(vim.uv.new_timer())

--- Puts the signs at the lines of the forms in `answer`, and removes the earlier signs.
---@param buf integer
---@param answer table the result of consort.differences
local function mark(buf, answer)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local last = vim.api.nvim_buf_line_count(buf) - 1
  for _, form in ipairs(answer.forms) do
    for row = form.range.start.line, math.min(form.range['end'].line, last) do
      vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { sign_text = '┊', sign_hl_group = 'ConsortHint', priority = 1 })
    end
  end
end

--- Requests the forms of a buffer that differ from the image.
---@param on_answer fun(answer: table)
---@param on_error? fun(error: lsp.ResponseError) nil: errors are ignored
---@return boolean? sent true if a handler will be called; nil or false if no request was sent
local function ask(buf, on_answer, on_error)
  local client = vim.lsp.get_clients({ bufnr = buf, name = 'consort' })[1]
  if not client or not client.initialized or not client_of.knows(client, 'consort.differences') then return end
  return client_of.request(client, 'differences', { uri = vim.uri_from_bufnr(buf) }, function(error, answer)
    if not error then return on_answer(answer) end
    if on_error then on_error(error) end
  end, buf)
end

--- Finds the buffers that contain forms that differ from the image.
---@param done fun(names: string[]) called after all answers, with the sorted base names
function M.files(done)
  local names, open = {}, 1
  local function over()
    open = open - 1
    if open > 0 then return end
    table.sort(names)
    done(names)
  end
  local client = client_of.of()
  for buf in pairs(client and client.attached_buffers or {}) do
    open = open + 1
    local asked = ask(buf, function(answer)
      if #answer.forms > 0 then table.insert(names, vim.fs.basename(vim.api.nvim_buf_get_name(buf))) end
      over()
    end, over)
    if not asked then over() end
  end
  over()
end

local round = 0 -- the number of the last update of signs; answers to earlier updates are ignored

--- Updates the signs of the visible buffers after a pause, once for several calls.
function M.schedule_update()
  if vim.g.consort_marks == false then return end
  timer:stop()
  timer:start(PAUSE, 0, vim.schedule_wrap(function()
    local seen = {}
    round = round + 1
    local mine = round
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      local buf = vim.api.nvim_win_get_buf(win)
      if not seen[buf] then
        seen[buf] = true
        local is_same_text = client_of.text(buf)
        ask(buf, function(answer)
          if mine == round and is_same_text() then mark(buf, answer) end
        end)
      end
    end
  end))
end

---@type table<integer, true> the ids of the clients that were asked to report log entries
local followed = {}

--- Keeps the signs of a buffer up to date: updates them now, and whenever the buffer or the image
--- changes.
---@param client vim.lsp.Client
---@param buf integer
function M.follow(client, buf)
  if vim.g.consort_marks == false or not client_of.knows(client, 'consort.differences') then return end
  vim.api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave', 'BufEnter', 'BufWritePost' }, {
    group = vim.api.nvim_create_augroup('consort.differences.' .. buf, {}),
    buffer = buf,
    callback = M.schedule_update,
  })
  if not followed[client.id] then
    followed[client.id] = true
    client:request('workspace/executeCommand', { command = 'consort.log', arguments = { { limit = 1, follow = true } } }, function() end, buf)
  end
  M.schedule_update()
end

local loads = {} ---@type table<integer, table> a table that identifies the last `load` of a buffer

--- Evaluates the forms of the current buffer that differ from the image, in order, up to the first
--- that fails. Stops when the person edits the text or goes to another buffer, because the lines of
--- the forms are then no longer valid. A later call for the same buffer also ends this one, and
--- evaluates the rest.
function M.load()
  if not client_of.need() then return end
  local buf = vim.api.nvim_get_current_buf()
  local is_same_text = client_of.text(buf)
  local mine, done, last = {}, 0, -1
  loads[buf] = mine
  local function evaluated() return ('%d form%s evaluated'):format(done, done == 1 and '' or 's') end
  local function is_same()
    local same = vim.api.nvim_get_current_buf() == buf and is_same_text()
    if not same then client_of.say(('%s, then you moved on: `:Consort changed` goes on'):format(evaluated()), vim.log.levels.WARN) end
    return same
  end
  local function next_form()
    if mine ~= loads[buf] or not is_same() then return end
    local sent = ask(buf, function(answer)
      if mine ~= loads[buf] or not is_same() then return end
      local form = vim.iter(answer.forms):find(function(one) return one.range.start.line > last end)
      -- The image has no source text of a file that was never loaded, so no form of it differs.
      local none = ('nothing differs; a file that was never loaded needs %s'):format(require('consort.maps').key('eval-buffer'))
      if not form then return client_of.say(done == 0 and none or evaluated()) end
      last = form.range.start.line
      require('consort.eval').range(form.range, function(result)
        if result.status ~= 'ok' then return end
        done = done + 1
        next_form()
      end)
    end, client_of.failed)
    if not sent then client_of.fail('this is no Lisp file that the server has; `:Consort changed` is for those') end
  end
  next_form()
end

M.namespace = namespace
return M
