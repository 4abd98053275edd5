--- The debugger, with nvim-dap: `require('consort.dap').setup()`; see :help consort-debugger.
local client_of = require('consort.client')
local code_of = require('consort.dap_code')
local focus = require('consort.dap_focus')

local M = {}
local TYPE = 'consort'
local MISSING = "a debugger needs nvim-dap (https://github.com/mfussenegger/nvim-dap), which is not on 'runtimepath'; `consort.dap.setup()` did nothing"
local NO_SESSION = "nothing is stopped in nvim-dap; its `continue()` attaches to the image, and `:Consort debugger` shows the image's stops"

---@return table? dap
local function nvim_dap()
  local found, dap = pcall(require, 'dap')
  if found then return dap end
  -- If the module exists but fails to load, the person has to see its error.
  if #vim.api.nvim_get_runtime_file('lua/dap.lua', false) + #vim.api.nvim_get_runtime_file('lua/dap/init.lua', false) > 0 then error(dap, 0) end
  client_of.say(MISSING, vim.log.levels.WARN)
end

--- Passes the adapter to nvim-dap: the language client's program, for the client's workspace.
local function adapter(on_adapter)
  local program = client_of.program()
  if not program then return end
  local client = client_of.of()
  local root = client and client.root_dir
  on_adapter({
    type = 'executable',
    command = program,
    args = root and { 'dap', '--workspace', root } or { 'dap' },
    -- Sources without a file are Lisp, too. `terminate` waits for cleanup forms. The first answer
    -- waits for a host that is starting.
    options = { cwd = root, source_filetype = 'lisp', disconnect_timeout_sec = 15, initialize_timeout_sec = 30 },
    enrich_config = code_of.enrich,
  })
end

M.form = { type = TYPE, request = 'launch', name = 'Lisp: evaluate the form at the cursor', evaluate = 'top-level' }
M.test = { type = TYPE, request = 'launch', name = 'Lisp: run the test at the cursor', evaluate = 'test' }
M.buffer = { type = TYPE, request = 'launch', name = 'Lisp: evaluate the buffer', evaluate = 'file' }
M.attach = { type = TYPE, request = 'attach', name = 'Lisp: attach to the image' }

--- Adds the adapter and the configurations to nvim-dap, and a message at each stop. Further calls
--- have no effect.
---@return boolean done false if nvim-dap is not installed
function M.setup()
  local dap = nvim_dap()
  if not dap then return false end
  dap.adapters[TYPE] = adapter
  local configurations = dap.configurations.lisp or {}
  for _, own in ipairs({ M.form, M.test, M.buffer, M.attach }) do
    if not vim.list_contains(configurations, own) then table.insert(configurations, own) end
  end
  dap.configurations.lisp = configurations
  focus.follow(dap, TYPE)
  require('consort.dap_columns').follow(dap, TYPE)
  require('consort.dap_breakpoints').follow(dap, TYPE)
  require('consort.dap_results').follow(dap, TYPE)
  -- The listener returns nothing, because nvim-dap removes a listener that returns true.
  dap.listeners.after.event_stopped[TYPE] = function(session, body)
    if (session.config or {}).type ~= TYPE or body.isShownElsewhere then return end
    local what = type(body.text) == 'string' and body.text or body.description or 'stopped'
    -- A recording is no running program, and has no restarts.
    if session.config.recording then
      client_of.say(what)
    else
      client_of.say(what .. "  (`:lua require('consort.dap').restarts()` continues)", vim.log.levels.WARN)
    end
  end
  return true
end

--- Runs a configuration with what is at the cursor now, beside the debug sessions that there are:
--- nvim-dap would end one of the same name, and with it the stop that it is at.
local function run_here(own)
  local dap = nvim_dap()
  local used = {}
  for _, session in pairs(dap and dap.sessions and dap.sessions() or {}) do used[(session.config or {}).here or 0] = true end
  local here = dap and code_of.here(own.evaluate, used)
  if here then dap.run(vim.tbl_extend('error', { here = here }, own), { new = true }) end
end

--- Evaluates the top-level form at the cursor with the debugger. nvim-dap's `run_last()` evaluates
--- the same form again, as it is then.
function M.evaluate() run_here(M.form) end

--- Runs the test at the cursor with the debugger, which stops at errors and failed checks.
--- nvim-dap's `run_last()` runs the same test again.
function M.evaluate_test() run_here(M.test) end

--- Returns true if `setup()` has registered the adapter with nvim-dap.
---@return boolean
function M.is_set_up()
  local dap = package.loaded.dap
  return type(dap) == 'table' and type(dap.adapters) == 'table' and dap.adapters[TYPE] ~= nil
end

--- Steps through a recording with nvim-dap.
---@param number integer
function M.step_through(number)
  local dap = nvim_dap()
  if dap then dap.run({ type = TYPE, request = 'attach', name = ('Lisp: recording %d'):format(number), recording = number }) end
end

--- Returns the line for a restart: its name and its report.
---@param restart { name?: string, report: string }
local function line_of(restart)
  local name = type(restart.name) == 'string' and restart.name .. ': ' or ''
  return (name .. restart.report):gsub('%s+', ' ')
end

local function failed(error) client_of.fail(tostring(type(error) == 'table' and error.message or error)) end

local function invoke(session, thread, restart, arguments)
  session:request('consort/invokeRestart', {
    threadId = thread,
    stop = restart.stop,
    index = restart.index,
    name = type(restart.name) == 'string' and restart.name or nil,
    arguments = arguments,
  }, function(error)
    if error then failed(error) end
  end)
end

--- Asks which restart of a stopped thread of nvim-dap's session to invoke, and invokes it. The
--- thread is the one that has the focus, or else the only one, or else one that the person chooses.
function M.restarts()
  local dap = nvim_dap()
  local session = dap and dap.session()
  if not dap then return end
  if not session or (session.config or {}).type ~= TYPE then return client_of.say(NO_SESSION) end
  if session.stopped_thread_id then return M.restarts_of(session, session.stopped_thread_id) end
  local stopped = focus.stopped_threads(session)
  if #stopped == 0 then return client_of.say('nothing is stopped') end
  if #stopped == 1 then return M.restarts_of(session, stopped[1].id) end
  local is_here = client_of.here()
  vim.ui.select(stopped, { prompt = 'Stopped thread', format_item = function(thread) return thread.name end }, function(thread)
    if thread and is_here() then M.restarts_of(session, thread.id) end
  end)
end

--- Asks which restart of a stopped thread to invoke, and invokes it.
---@param thread integer
function M.restarts_of(session, thread)
  local is_here = client_of.here()
  local over = require('consort.latest').begun('restarts')
  local function choose(answer)
    if not is_here() then return client_of.say(client_of.GONE_ON) end
    vim.ui.select(answer.restarts, { prompt = 'Restart', format_item = line_of, kind = 'consort-restart' }, function(restart)
      if not restart then return end
      if not restart.arguments then return invoke(session, thread, restart) end
      vim.ui.input({ prompt = 'Argument, a Lisp form (none: empty): ' }, function(typed)
        if typed then invoke(session, thread, restart, vim.trim(typed) ~= '' and { typed } or nil) end
      end)
    end)
  end
  session:request('consort/restarts', { threadId = thread }, function(error, answer)
    if error then failed(error) end
    over(not error and function() choose(answer) end or nil)
  end)
end

return M
