--- The workspace of a file, and the start of a server.
local M = {}

local PATIENCE = 30000 -- ms; the first start of all prepares Lisp

--- True if the last server that was started has ended before it answered.
M.has_failed = false
--- True if the last server that was started has ended later.
local has_ended = false

function M.begins() M.has_failed, has_ended = false, false end

---@param client? vim.lsp.Client
function M.ends(client)
  M.has_failed = client ~= nil and not client.initialized
  has_ended = not M.has_failed
end

--- Starts a server for a buffer of a file again, if it has ended.
---@param buf integer
function M.again(buf)
  -- Neovim starts servers at this event.
  if has_ended then vim.bo[buf].filetype = vim.bo[buf].filetype end
end

--- Returns the workspace of a file or directory: the one that a coding agent which is started in
--- the project has too, so that both share one image.
---@param path string
---@return string
function M.workspace(path)
  local is_url = path:find('^%a[%w+.-]*://') ~= nil
  local place = is_url and vim.uv.cwd() or path
  local root = vim.fs.root(place, { 'consort.toml', '.git' }) or vim.fs.root(place, function(entry) return entry:match('%.asd$') ~= nil end)
  if root then return root end
  -- A file may be in a directory that is not made yet.
  while (vim.uv.fs_stat(place) or {}).type ~= 'directory' and vim.fs.dirname(place) ~= place do
    place = vim.fs.dirname(place)
  end
  return place
end

--- Waits until a server that starts is there, or is not going to be.
---@param ready fun(): boolean?
function M.await(ready)
  local function is_over() return ready() or M.has_failed end
  vim.wait(200, is_over, 20)
  if is_over() then return end
  vim.api.nvim_echo({ { 'Consort: starting ... (CTRL-C goes on without it)' } }, false, {})
  vim.cmd.redraw()
  vim.wait(PATIENCE, is_over, 20)
  vim.api.nvim_echo({ { '' } }, false, {})
end

--- Starts a server for the current directory, attached to no buffer, and waits for it.
function M.here()
  local config = vim.deepcopy(vim.lsp.config.consort)
  config.name = 'consort'
  config.root_dir = M.workspace(vim.uv.cwd())
  M.begins()
  local id = vim.lsp.start(config, { attach = false, silent = true })
  local client = id and vim.lsp.get_client_by_id(id)
  if client then M.await(function() return client.initialized end) end
end

return M
