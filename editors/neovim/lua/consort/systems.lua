--- The workspace's systems, by the `.asd` files of its root and of the directories in it.
local client_of = require('consort.client')
local escaped = require('consort.escaped')

local M = {}
local LIMIT = 50 -- files

--- Returns the names of the systems that a text defines.
---@param text string
---@return string[]
function M.defined(text)
  local names = {}
  for name in text:gmatch('%(%s*[%w:]*defsystem%s+[#:"]*([^%s"()]+)') do table.insert(names, name:lower()) end
  return names
end

--- Returns the files of system definitions.
local function definitions()
  local client = client_of.of()
  if client and client.root_dir then
    return vim.fs.find(function(name) return name:match('%.asd$') end, { path = client.root_dir, limit = LIMIT, type = 'file' })
  end
  -- A command can start a server for this directory, which may be a home directory, so only part of
  -- it is searched.
  local root = require('consort.start').workspace(vim.uv.cwd() or '/')
  return vim.list_extend(vim.fn.glob(root .. '/*.asd', true, true), vim.fn.glob(root .. '/*/*.asd', true, true))
end

---@return string[]
function M.names()
  local names = {}
  for _, file in ipairs(definitions()) do
    vim.list_extend(names, M.defined(table.concat(vim.fn.readfile(file), '\n')))
  end
  table.sort(names)
  return names
end

--- Returns the names of the Lisp files that have unsaved changes here, which a load from the disk
--- does not include.
---@return string[]
function M.unsaved()
  local client = client_of.of()
  local names = {}
  for buf in pairs(client and client.attached_buffers or {}) do
    local file = vim.api.nvim_buf_get_name(buf)
    if file ~= '' and vim.bo[buf].buftype == '' and vim.bo[buf].modified then
      table.insert(names, client.root_dir and vim.fs.relpath(client.root_dir, file) or vim.fs.basename(file))
    end
  end
  table.sort(names)
  return names
end

--- Returns a text to append to an outcome that does not include unsaved changes; '' for no files.
---@param unsaved? string[] the names of their files
---@return string
function M.without(unsaved)
  if not unsaved or #unsaved == 0 then return '' end
  return ('; %s %s unsaved: :wall, then repeat'):format(table.concat(unsaved, ', '), #unsaved == 1 and 'is' or 'are')
end

--- Returns the system of the current buffer's file, if a diagnostic says that it is not loaded.
---@return string?
local function unloaded_here()
  for _, one in ipairs(vim.diagnostic.get(0)) do
    local system = one.code == 'system-not-loaded' and vim.tbl_get(one, 'user_data', 'lsp', 'data', 'system')
    if type(system) == 'string' then return escaped.line(system) end
  end
end

--- Returns, for the error that a package does not exist yet, one line that says what to do: load
--- the file's system, that of the package's name or the only one there is, or evaluate the buffer.
---@param error lsp.ResponseError
---@return string?
function M.package_missing(error)
  local package = type(error.data) == 'table' and error.data.kind == 'package-not-found' and (error.message:match('^The package (%S+) does not exist yet') or error.message:match('^Package (%S+) not found'))
  if not package then return end
  local names = M.names()
  local system = unloaded_here() or vim.list_contains(names, package:lower()) and package:lower() or #names == 1 and names[1]
  local buffer = require('consort.maps').key('eval-buffer')
  return ('no package %s yet: %s%s'):format(package, system and (':Consort load %s, or '):format(system) or '', buffer)
end

--- Returns the frames of the program's functions. A file's top-level forms, LOAD and ASDF called
--- them.
---@param backtrace consort.Frame[]
---@return consort.Frame[]
local function frames_above_load(backtrace)
  local all = require('consort.frames').of_program(backtrace)
  for i, frame in ipairs(all) do
    local is_load = frame.name == 'LOAD' or frame.text:find('SB-C::TOP-LEVEL-FORM', 1, true) or frame.text:find('SB-FASL::', 1, true)
    if is_load or (frame.name or ''):match('^ASDF/') or (frame.name or ''):match('^UIOP/') then return vim.list_slice(all, 1, i - 1) end
  end
  return all
end

--- Shows why a system was not loaded: the error, the compiler's warnings with those first that
--- make the compilation fail, and the compiler's output, which names the files and forms. Another
--- error is shown with its frames; the server's message is enough for one without.
---@param system string
---@param result table the answer of `consort.loadSystem`
---@param is_here fun(): boolean of client.here()
function M.show_failure(system, result, is_here)
  local serious, others = {}, {}
  for _, warning in ipairs(result.warnings or {}) do
    table.insert(warning.type:match('STYLE%-WARNING$') and others or serious, ('%s: %s'):format(warning.type, warning.message))
  end
  local output = vim.trim(result.stderr or '')
  -- The output alone has the error of a text that cannot be read.
  local by_compiler = #serious > 0 or output ~= '' and result.error.type:match('COMPILE%-FILE%-ERROR$') ~= nil
  if not by_compiler then
    local backtrace = frames_above_load(result.error.backtrace or {})
    if #backtrace == 0 then return end
    local error = vim.tbl_extend('force', result.error, { backtrace = backtrace })
    return require('consort.eval').show_report({ status = result.status, error = error }, is_here)
  end
  local lines = { ('%s was not loaded: %s'):format(system, result.error.message), '' }
  for _, text in ipairs(vim.list_extend(serious, others)) do vim.list_extend(lines, vim.split(text, '\n', { plain = true })) end
  if output ~= '' then
    if lines[#lines] ~= '' then table.insert(lines, '') end
    vim.list_extend(lines, vim.split(output, '\n', { plain = true }))
  end
  require('consort.float').open(lines, { title = 'Not loaded', is_here = is_here, hint = 'q closes' })
end

--- Calls `go_on` with the system of a name; without a name, with the only system there is or the
--- one that is chosen.
---@param name string
---@param go_on fun(name: string)
function M.choose(name, go_on)
  if name ~= '' then return go_on(name) end
  local names = M.names()
  if #names == 0 then return client_of.fail('which system? There is no .asd file in the workspace') end
  if #names == 1 then return go_on(names[1]) end
  vim.ui.select(names, { prompt = 'Which system?' }, function(choice)
    if choice then go_on(choice) end
  end)
end

return M
