--- Corrections to nvim-dap's sessions. The focus of a session is the stopped thread that nvim-dap's
--- commands act on. Listeners keep it where nvim-dap would lose it or choose another thread.
--- Another listener converts the columns of completions.
local M = {}

--- The requests that make nvim-dap mark the thread as running, even if the adapter refuses them.
local RESUMING = { 'continue', 'next', 'stepIn', 'stepOut', 'stepBack', 'reverseContinue', 'restartFrame' }

--- Returns the stopped threads of a session, in the order of their ids.
---@return table[] threads
function M.stopped_threads(session)
  local stopped = vim.tbl_filter(function(thread) return thread.stopped end, vim.tbl_values(session.threads or {}))
  table.sort(stopped, function(one, other) return one.id < other.id end)
  return stopped
end

--- Returns the thread that a request in RESUMING was for: the thread with the argument `threadId`,
--- or the thread that has the frame `frameId`. Returns nil if there is none.
local function thread_of(session, arguments)
  local threads = session.threads or {}
  if arguments.threadId then return threads[arguments.threadId] end
  return vim.iter(vim.tbl_values(threads)):find(function(thread)
    return vim.iter(thread.frames or {}):any(function(frame) return frame.id == arguments.frameId end)
  end)
end

--- Restores the focus of the thread of a refused request in RESUMING, if the thread is still
--- stopped. The adapter answers `consort/restarts` only for a stopped thread.
local function keep_focus(session, refused, _, arguments)
  local thread = refused and thread_of(session, arguments or {})
  if not thread then return end
  local is_here = require('consort.client').here()
  session:request('consort/restarts', { threadId = thread.id }, function(gone)
    if gone then return end
    thread.stopped = true
    if session.stopped_thread_id then return end
    session.stopped_thread_id = thread.id
    -- nvim-dap has also removed the sign at the frame. To set the sign again, nvim-dap moves the
    -- cursor to the frame.
    if is_here() and session.current_frame and session._frame_set then session:_frame_set(session.current_frame) end
  end)
end

--- Changes a stop before nvim-dap handles it, so that a stop of the person's own evaluation and a
--- requested stop (`pause`) get the focus. By itself, nvim-dap does not move the focus to a stop
--- while another thread has it, nor to a `pause` that stops one thread only.
local function take_focus(session, stop)
  if stop.ownEvaluation and session.stopped_thread_id ~= stop.threadId then session.stopped_thread_id = nil end
  if stop.reason == 'pause' then stop.reason = 'paused' end
end

--- Removes the current frame when the thread with the focus has resumed. nvim-dap would go on
--- evaluating in that frame, which no longer exists.
local function forget_frame(session)
  if not session.stopped_thread_id then session.current_frame = nil end
end

--- Converts the start of the text that a completion replaces to bytes, 0-based, for nvim-dap. The
--- adapter sends UTF-16 code units, 1-based.
local function count_in_bytes(_, refused, answer, arguments)
  for _, target in ipairs(not refused and answer and answer.targets or {}) do
    if target.start then target.start = vim.str_byteindex(arguments.text, 'utf-16', target.start - 1, false) end
  end
end

--- Registers the listeners of this module for all sessions of a type.
---@param dap table the module of nvim-dap
---@param kind string the type, as in a configuration of nvim-dap
function M.follow(dap, kind)
  -- A listener that returns true is removed.
  local function listen(when, name, react)
    dap.listeners[when][name][kind] = function(session, ...)
      if (session.config or {}).type == kind then react(session, ...) end
    end
  end
  listen('before', 'event_stopped', take_focus)
  listen('after', 'event_continued', forget_frame)
  listen('before', 'completions', count_in_bytes)
  for _, command in ipairs(RESUMING) do
    listen('after', command, keep_focus)
  end
  -- By default, nvim-dap continues a thread that stops while another thread is stopped. The adapter
  -- reports the stops of all clients, so the thread may be another person's or an agent's.
  local settings = dap.defaults and dap.defaults[kind]
  if settings and rawget(settings, 'auto_continue_if_many_stopped') == nil then settings.auto_continue_if_many_stopped = false end
end

return M
