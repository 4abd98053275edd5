--- Undoes the last reload that a message reported to the person. The server undoes the newest
--- reload of the image, whoever requested it. If the log has a newer one than the reported reload,
--- the person is asked about that first.
local client_of = require('consort.client')

local M = {}

-- Entries of the log

local ADDS = {} ---@type table<string, true> tools and commands that add a reload that can be undone
for _, name in ipairs({ 'compile_string', 'load_fasl', 'reload_package', 'reload_system', 'replace_function' }) do ADDS['code_' .. name] = true end
for _, name in ipairs({ 'replaceFunction', 'reloadSystem', 'reloadPackage', 'compileForm', 'compileFile', 'loadFile', 'recompileCallers', 'undefine' }) do
  ADDS['consort.' .. name] = true
end
local UNDOES = { code_undo = true, ['consort.undoReload'] = true }
local EDITS = 'lisp-edit-form'

--- Returns the effect of an entry of the log on the reloads that can be undone.
---@return 'adds'|'undoes'|nil
local function effect(entry)
  if entry.tool == EDITS then
    -- Forms are loaded one after the other, and the ones before a form that fails stay. A clipped
    -- outcome may have lost the line.
    local outcome = type(entry.outcome) == 'string' and entry.outcome or '...'
    return (('\n' .. outcome):find('\nReloaded ', 1, true) or outcome:find('%.%.%.$')) and 'adds' or nil
  end
  if entry.status ~= 'ok' then return end
  return ADDS[entry.tool] and 'adds' or UNDOES[entry.tool] and 'undoes' or nil
end

local function who(entry) return ((entry.client or '?'):gsub('%+.*$', '')) end

---@return string of one line
local function described(entry)
  local code = vim.split(vim.trim(type(entry.code) == 'string' and entry.code or ''), '\n', { plain = true })[1]
  local about = type(entry.about) == 'string' and entry.about or code
  local what = vim.trim(('%s %s'):format((entry.tool:gsub('^consort%.', '')), about))
  return ('%s by %s at %s (UTC)'):format(what, who(entry), (entry.time or ''):match('T(%d%d:%d%d:%d%d)') or '?')
end

-- Reloads that were reported to the person

---@class consort.Told
---@field words string
---@field what? string the server's name of the reload, if it is known
---@field is_of fun(entry: table): boolean true if an entry of the log is about it
---@field by? string the agent whose call it is

---@class consort.Reloads of one server
---@field told consort.Told[] the newest last
---@field nothing (fun(entry: table): boolean)[] of own commands that changed nothing
---@field image? string the identity of the image

---@type table<integer, consort.Reloads> by client
local servers = {}
local function reloads(client)
  servers[client] = servers[client] or { told = {}, nothing = {} }
  return servers[client]
end

--- Returns the current time in the format of the log.
local function now()
  local seconds, micros = vim.uv.gettimeofday()
  return os.date('!%Y-%m-%dT%H:%M:%S', seconds) .. ('.%03dZ'):format(math.floor(micros / 1000))
end

local function names(report)
  local all = {}
  for _, key in ipairs({ 'redefined', 'new', 'gone' }) do vim.list_extend(all, report[key] or {}) end
  return all
end

--- Executes a command that may add a reload, and remembers what is reported to the person.
---@param name string
---@param argument table
---@param on_result fun(result: any, client: vim.lsp.Client, is_here: fun(): boolean)
---@param options? consort.Options
function M.reload(name, argument, on_result, options)
  options = options or {}
  local client = client_of.need(options.buf)
  if not client then return end
  local from = now()
  --- Returns a function that returns true for the log entry of this command.
  local function mine()
    local to = now()
    return function(entry)
      return entry.frontend == 'lsp' and entry.tool == 'consort.' .. name and from <= entry.time and entry.time <= to
    end
  end
  local on_error = options.on_error or client_of.failed
  return client_of.execute(name, argument, function(result, ...)
    local report = type(result.report) == 'table' and result.report or result.report == nil and result or {}
    local changed = names(report)
    if #changed == 0 then
      table.insert(reloads(client.id).nothing, mine())
    else
      local words = ('%s (%s%s)'):format(report.what or name, changed[1], #changed > 1 and ', ...' or '')
      table.insert(reloads(client.id).told, { words = words, what = report.what, is_of = mine() })
    end
    on_result(result, ...)
  end, vim.tbl_extend('force', options, {
    on_error = function(error)
      -- The log contains some of these as successful.
      if not client_of.has_ended(error) then table.insert(reloads(client.id).nothing, mine()) end
      on_error(error)
    end,
  }))
end

--- Remembers a call of an agent that the person has allowed. Returns true if `undo` can undo it.
---@param params table of consort/approve
---@param client integer
---@return boolean
function M.allow(params, client)
  if not ADDS[params.tool] and params.tool ~= EDITS then return false end
  local from, arguments = now(), type(params.arguments) == 'table' and params.arguments or {}
  local named = arguments.system or arguments['function'] or arguments.symbol
  table.insert(reloads(client).told, {
    words = params.what,
    by = params.client,
    is_of = function(entry)
      -- The log clips long names.
      local is_about = type(entry.about) ~= 'string' or type(named) ~= 'string' or #named > 100 or named == entry.about
      return entry.frontend == 'mcp' and entry.tool == params.tool and entry.client == params.client and is_about and from <= entry.time
    end,
  })
  return true
end

--- `consort/imageState`: a new image has none of the reported reloads, or has them in another
--- order.
function M.on_image_state(_, state, context)
  if state.state ~= 'ready' then return end
  local here = reloads(context.client_id)
  if here.image and here.image ~= state.image then here.told, here.nothing = {}, {} end
  here.image = state.image
end

-- Undoing

--- Returns the newest reload of the entries from the I-th on that is not undone, and the entry that
--- undid an earlier one, if any.
local function newest(entries, i, nothing)
  local open, undid = {}, nil
  for _, entry in ipairs(vim.list_slice(entries, i)) do
    local what = effect(entry)
    if what == 'adds' and not vim.iter(nothing):any(function(is_of) return is_of(entry) end) then
      table.insert(open, entry)
    elseif what == 'undoes' and not table.remove(open) then
      undid = undid or entry
    end
  end
  return open[#open], undid
end

--- Returns the last reload that was reported to the person, if it is the newest one; otherwise nil,
--- the reason, and the newest one of the log, if any.
---@param here consort.Reloads
---@param entries table[]
---@return consort.Told?, string?, table?
local function told_last(here, entries)
  local one = here.told[#here.told]
  if not one then return nil, 'it was not reported to you', (newest(entries, 1, here.nothing)) end
  -- Later entries belong to other calls.
  local at = vim.iter(ipairs(entries)):find(function(_, entry) return one.is_of(entry) end)
  if at and effect(entries[at]) == 'adds' then
    local other, undid = newest(entries, at + 1, here.nothing)
    if not other and not undid then return one end
    if not undid then return nil, ('it is newer than %s'):format(one.words), other end
    table.remove(here.told)
    return nil, ('%s was undone by %s'):format(one.words, who(undid)), (newest(entries, 1, here.nothing))
  end
  table.remove(here.told)
  local reason = at and 'has failed' or one.by and 'has not ended, or never began' or 'is not in the log any more'
  return nil, ('%s %s'):format(one.words, reason), (newest(entries, 1, here.nothing))
end

--- Returns true if another reload, which was added just before, was undone instead.
local function is_other(report, one) return one.what ~= nil and report.what ~= one.what end

---@param report table
---@param one? consort.Told
local function say(report, one)
  local parts = { ('undone: %s%s'):format(report.what or 'a reload', one and one.by and (' (%s)'):format(one.by) or '') }
  for _, list in ipairs({ { 'redefined', 'put back' }, { 'new', 'there again' }, { 'gone', 'taken away' }, { 'not_undone', 'could not be put back' } }) do
    local items = report[list[1]] or {}
    if #items > 0 then table.insert(parts, ('%s: %s'):format(list[2], table.concat(items, ', '))) end
  end
  if one and is_other(report, one) then table.insert(parts, ('and not %s'):format(one.words)) end
  local is_notable = one and is_other(report, one) or #(report.not_undone or {}) > 0
  client_of.say(table.concat(parts, '; '), is_notable and vim.log.levels.WARN or nil)
end

local busy = false -- while a request has no answer

--- Undoes the last reload that was reported to the person. If it is not the newest one, asks
--- whether to undo the newest one.
function M.undo()
  if busy then return client_of.say('an undo is under way; `:Consort undo` again after it') end

  ---@param client vim.lsp.Client
  local function request(client, name, argument, done)
    local function over(error, result)
      busy = false
      if error then return client_of.failed(error) end
      done(result)
    end
    busy = true
    if not client_of.request(client, name, argument, over, vim.api.nvim_get_current_buf()) then
      busy = false
      client_of.fail(client_of.ENDED)
    end
  end
  ---@param one? consort.Told
  local function put_back(client, one)
    request(client, 'undoReload', {}, function(report)
      local here = reloads(client.id)
      here.told = vim.tbl_filter(function(other) return other ~= one or is_other(report, one) end, here.told)
      say(report, one)
    end)
  end
  --- Undoes the newest reload, if no other was added since the log was read.
  local function put_back_newest(client, since)
    request(client, 'log', { since = since }, function(log)
      for _, entry in ipairs(log.entries or {}) do
        if effect(entry) then
          return client_of.fail(('nothing was undone, as there was %s since the question; `:Consort undo` asks again'):format(described(entry)))
        end
      end
      put_back(client)
    end)
  end

  busy = client_of.execute('log', {}, function(log, client, is_here)
    busy = false
    local entries = log.entries or {}
    local one, reason, other = told_last(reloads(client.id), entries)
    if one then return put_back(client, one) end
    -- If the log is complete and nothing is left to undo, the server reports that.
    if not other and (entries[1] == nil or entries[1].number == 1) then return put_back(client) end
    if not is_here() then return client_of.say(client_of.GONE_ON) end
    local newest_one = other and described(other) or 'a reload that is no longer in the log'
    vim.ui.select({ 'no', 'undo it' }, { prompt = ('The newest reload is %s; %s. Undo it? '):format(newest_one, reason), format_item = tostring, kind = 'consort-undo' }, function(choice)
      if choice == 'undo it' then put_back_newest(client, log.last or 0) end
    end)
  end, {
    on_error = function(error)
      busy = false
      client_of.failed(error)
    end,
  }) ~= nil
end

return M
