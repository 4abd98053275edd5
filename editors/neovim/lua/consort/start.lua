--- The workspace of a file, and the start of a server.
local M = {}

local PATIENCE = 30000 -- ms; the first start of all prepares Lisp

---@type table<integer, string> the workspaces, by buffer, of the buffers whose last server ended
---  before it answered `initialize`
local failed = {}
---@type table<string, string> why the last server of a workspace refused to start, by workspace
local refusals = {}
---@type table<string, true> the workspaces whose server is waited for
local awaited = {}

--- Returns the workspace of a server, or an empty string if it has no root directory.
---@param server vim.lsp.Client|vim.lsp.ClientConfig
---@return string
local function root_of(server) return server.root_dir or '' end

--- Forgets that the last server of a buffer has failed.
---@param buf integer that a server is started for
function M.begins(buf) failed[buf] = nil end

--- Shows why the server of a workspace has not started.
---@param root string of the workspace
function M.say_failed(root)
  local refusal = refusals[root]
  require('consort.client').fail(refusal and 'the server did not start: ' .. refusal or 'the server ended at its start: `:checkhealth consort`')
end

--- Makes a client stop its server if `initialize` is answered with an error. Neovim would keep that
--- server, although it answers no other request.
---@param config vim.lsp.ClientConfig of a client that is about to send the request
function M.guard(config)
  local root = root_of(config)
  refusals[root] = nil
  local client = vim.iter(vim.lsp.get_clients({ name = 'consort', _uninitialized = true })):find(function(one) return one.config == config end)
  if not client then return end
  local request = client.rpc.request
  client.rpc.request = function(method, params, callback, ...)
    if method ~= 'initialize' then return request(method, params, callback, ...) end
    return request(method, params, function(error, result)
      if not error then return callback(error, result) end
      refusals[root] = tostring(error.message)
      -- A function that waits for the server shows the reason. Otherwise it is shown here, with the
      -- workspace, because the person may be in another one.
      if not awaited[root] then require('consort.client').fail(('the server of %s did not start: %s'):format(vim.fn.fnamemodify(root, ':~'), refusals[root])) end
      client:stop(true)
    end, ...)
  end
end

--- Records the buffers of a client whose server ended before it answered `initialize`.
---@param client? vim.lsp.Client that has ended
function M.ends(client)
  if not client or client.initialized then return end
  for buf in pairs(client.attached_buffers) do failed[buf] = root_of(client) end
end

--- Returns true if the last server of a buffer ended before it answered `initialize`.
---@param buf integer
---@return boolean
function M.has_failed(buf) return failed[buf] ~= nil end

--- Returns the client of a buffer, also while its server is starting.
---@param buf integer
---@return vim.lsp.Client?
local function server_of(buf) return vim.lsp.get_clients({ bufnr = buf, name = 'consort', _uninitialized = true })[1] end

--- Returns the workspace of a file or directory. A coding agent that is started in the project gets
--- the same workspace, so that both share one image.
---@param path string
---@return string
function M.workspace(path)
  local is_url = path:find('^%a[%w+.-]*://') ~= nil
  local place = is_url and vim.uv.cwd() or path
  local root = vim.fs.root(place, { 'consort.toml', '.git' }) or vim.fs.root(place, function(entry) return entry:match('%.asd$') ~= nil end)
  if root then return root end
  -- A file may be in a directory that does not exist yet.
  while (vim.uv.fs_stat(place) or {}).type ~= 'directory' and vim.fs.dirname(place) ~= place do
    place = vim.fs.dirname(place)
  end
  return place
end

--- Parts of the paths of sources that a system's packages or Quicklisp have installed.
local INSTALLED = { '^/usr/share/', '^/usr/lib', '^/usr/local/share/', '^/usr/local/lib', '^/opt/homebrew/', '^/nix/store/', '/quicklisp/dists/', '/%.qlot/dists/' }

--- Returns the workspace of a file that is opened. An installed source belongs to the workspace of
--- the file that the person was in before, whose image may have loaded it.
---@param path string
---@return string
function M.workspace_of_file(path)
  local before = require('consort.client').last_workspace()
  local is_installed = vim.iter(INSTALLED):any(function(part) return path:find(part) ~= nil end)
  return is_installed and before or M.workspace(path)
end

--- Waits until a server has started or failed, for at most PATIENCE, or until CTRL-C.
---@param root string of its workspace
---@param is_over fun(): boolean?
local function await(root, is_over)
  awaited[root] = true
  vim.wait(200, is_over, 20)
  if not is_over() then
    vim.api.nvim_echo({ { 'Consort: starting ... (CTRL-C continues without it)' } }, false, {})
    vim.cmd.redraw()
    vim.wait(PATIENCE, is_over, 20)
    vim.api.nvim_echo({ { '' } }, false, {})
  end
  awaited[root] = nil
end

--- Waits for the server of a file. Starts one if there is none, because the last one has ended.
---@param buf integer
---@param ready fun(): boolean?
---@return string? failed the workspace whose server has not started
function M.of_file(buf, ready)
  if not server_of(buf) then
    M.begins(buf)
    vim.bo[buf].filetype = vim.bo[buf].filetype -- the FileType event makes Neovim start servers
  end
  local server = server_of(buf)
  local root = server and root_of(server) or M.workspace_of_file(vim.api.nvim_buf_get_name(buf))
  -- The wait for the removal of a failed client makes Neovim's own message come before ours.
  await(root, function() return ready() or M.has_failed(buf) and not server_of(buf) end)
  return not server_of(buf) and (failed[buf] or root) or nil
end

--- Waits for the server of a workspace. Starts one that is attached to no buffer if there is none.
---@param root? string that of the current directory by default
---@return vim.lsp.Client? client that has started
---@return string? failed the workspace, if its server has not started
function M.here(root)
  root = root or M.workspace(vim.uv.cwd())
  local config = vim.tbl_extend('force', vim.deepcopy(vim.lsp.config.consort), { name = 'consort', root_dir = root })
  -- Neovim uses a server that is already starting.
  local id = vim.lsp.start(config, { attach = false, silent = true })
  local client = id and vim.lsp.get_client_by_id(id)
  if not client then return nil, root end
  local function is_gone() return vim.lsp.get_client_by_id(client.id) == nil end
  await(root, function() return client.initialized or is_gone() end)
  return client.initialized and client or nil, is_gone() and root or nil
end

return M
