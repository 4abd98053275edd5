--- The focus of nvim-dap's sessions, which is the stopped thread that its commands are for, where
--- nvim-dap would lose it or take another; and columns that nvim-dap counts in another way.
local M = {}

--- The requests before which nvim-dap takes the thread for running, also when they are refused.
local RESUMING = { 'continue', 'next', 'stepIn', 'stepOut', 'stepBack', 'reverseContinue', 'restartFrame' }

--- Returns the stopped threads of a session, by their numbers.
---@return table[] threads
function M.stopped_threads(session)
  local stopped = vim.tbl_filter(function(thread) return thread.stopped end, vim.tbl_values(session.threads or {}))
  table.sort(stopped, function(one, other) return one.id < other.id end)
  return stopped
end

--- Returns the thread that a request to go on was about: by its number, or by a frame of it.
local function thread_of(session, arguments)
  local threads = session.threads or {}
  if arguments.threadId then return threads[arguments.threadId] end
  return vim.iter(vim.tbl_values(threads)):find(function(thread)
    return vim.iter(thread.frames or {}):any(function(frame) return frame.id == arguments.frameId end)
  end)
end

--- Gives the focus back to the thread of a request to go on that was refused, if it is stopped
--- still.
local function keep_focus(session, refused, _, arguments)
  local thread = refused and thread_of(session, arguments or {})
  if not thread then return end
  local is_here = require('consort.client').here()
  session:request('consort/restarts', { threadId = thread.id }, function(gone)
    if gone then return end
    thread.stopped = true
    if session.stopped_thread_id then return end
    session.stopped_thread_id = thread.id
    -- The sign at the frame was removed, too. nvim-dap goes to the frame to set it.
    if is_here() and session.current_frame and session._frame_set then session:_frame_set(session.current_frame) end
  end)
end

--- Before nvim-dap handles a stop: a stop of the person's own evaluation, and one that was asked
--- for (`pause`), get the focus. nvim-dap gives none to a stop while it has one in another thread,
--- nor to a `pause` that stops one thread only.
local function take_focus(session, stop)
  if stop.ownEvaluation and session.stopped_thread_id ~= stop.threadId then session.stopped_thread_id = nil end
  if stop.reason == 'pause' then stop.reason = 'paused' end
end

--- After a thread went on: its frames are gone. nvim-dap would evaluate in the last one for ever.
local function forget_frame(session)
  if not session.stopped_thread_id then session.current_frame = nil end
end

--- Counts the beginning of what completions replace in bytes from 0, as nvim-dap does. The
--- protocol counts it in UTF-16 code units, here from 1.
local function count_in_bytes(_, refused, answer, arguments)
  for _, target in ipairs(not refused and answer and answer.targets or {}) do
    if target.start then target.start = vim.str_byteindex(arguments.text, 'utf-16', target.start - 1, false) end
  end
end

--- Has all sessions of a type follow the stops so.
---@param dap table the module of nvim-dap
---@param kind string
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
  -- nvim-dap would invoke CONTINUE in each thread that stops while another one is stopped. The
  -- stops of all clients of the image are told, so these may be another person's or an agent's.
  local settings = dap.defaults and dap.defaults[kind]
  if settings and rawget(settings, 'auto_continue_if_many_stopped') == nil then settings.auto_continue_if_many_stopped = false end
end

return M
