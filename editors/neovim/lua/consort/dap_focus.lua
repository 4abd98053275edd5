--- Corrections to nvim-dap's sessions. The focus of a session is the stopped thread that nvim-dap's
--- commands act on. Listeners keep it where nvim-dap would lose it or choose another thread, and
--- have nvim-dap ask for the threads when it needs them.
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

--- Returns the name of a session's image. Each image numbers its threads and stops.
local function image_of(session)
  return ('%s %s'):format((session.config or {}).type, ((session.adapter or {}).options or {}).cwd)
end

--- Returns true if another session of the same image has the focus at a thread.
local function is_elsewhere(dap, session, thread)
  for _, other in pairs(dap.sessions and dap.sessions() or {}) do
    if other ~= session and other.stopped_thread_id == thread and image_of(other) == image_of(session) then return true end
  end
  return false
end

--- Changes a stop before nvim-dap handles it, so that a stop of the person's own evaluation and a
--- requested stop (`pause`) get the focus. By itself, nvim-dap does not move the focus to a stop
--- while another thread has it, nor to a `pause` that stops one thread only. A stop at which
--- another session has the focus does not get it again.
local function take_focus(dap, session, stop)
  if not stop.ownEvaluation and is_elsewhere(dap, session, stop.threadId) then
    stop.isShownElsewhere, stop.reason = true, 'pause'
    return
  end
  if stop.ownEvaluation and session.stopped_thread_id ~= stop.threadId then session.stopped_thread_id = nil end
  if stop.reason == 'pause' then stop.reason = 'paused' end
end

--- The newest stop of an own evaluation: its image and number, its session, and its thread until
--- that goes on.
local newest = {} ---@type { stop?: string, session?: table, thread?: integer }

--- Makes the session current whose own evaluation stopped. nvim-dap chooses a session that was told
--- of the stop first, or, while the own one asks for the threads, one that is told of another stop,
--- also in another image.
---@param before? table the session that was current before the stop
local function take_over(dap, session, stop, before)
  local name = ('%s %s'):format(image_of(session), stop.stop)
  if stop.ownEvaluation then newest = { stop = name, session = session, thread = stop.threadId } end
  local stays = newest.thread ~= nil and before == newest.session
  -- nvim-dap's own listener may come after this one.
  vim.schedule(function()
    if (stays or newest.stop == name) and not newest.session.closed and dap.set_session then dap.set_session(newest.session) end
  end)
end

--- Records that the thread of the newest own stop has gone on.
local function note_continued(session, body)
  if session == newest.session and (body.threadId == newest.thread or body.allThreadsContinued) then newest.thread = nil end
end

--- Removes the current frame when the thread with the focus has resumed. nvim-dap would go on
--- evaluating in that frame, which no longer exists.
local function forget_frame(session)
  if not session.stopped_thread_id then session.current_frame = nil end
end

--- Makes nvim-dap ask for the threads again whenever it needs them. By itself, it asks after a
--- `thread` event only, and would offer to pause evaluations that have ended, and no others.
local function forget_threads(session)
  if session.dirty then session.dirty.threads = true end
end

--- Registers the listeners of this module for all sessions of a type.
---@param dap table the module of nvim-dap
---@param kind string the type, as in a configuration of nvim-dap
function M.follow(dap, kind)
  -- A listener that returns true is removed.
  local function listen(when, name, react)
    dap.listeners[when][name][kind .. '.focus'] = function(session, ...)
      if (session.config or {}).type == kind then react(session, ...) end
    end
  end
  local before ---@type table? the session that was current before the event
  listen('before', 'event_stopped', function(session, stop)
    before = dap.session()
    take_focus(dap, session, stop)
  end)
  listen('after', 'event_stopped', function(session, stop) take_over(dap, session, stop, before) end)
  listen('after', 'event_continued', function(session, body)
    note_continued(session, body)
    forget_frame(session)
  end)
  listen('after', 'threads', forget_threads)
  for _, command in ipairs(RESUMING) do
    listen('after', command, keep_focus)
  end
  -- By default, nvim-dap continues a thread that stops while another thread is stopped. The adapter
  -- reports the stops of all clients, so the thread may be another person's or an agent's.
  local settings = dap.defaults and dap.defaults[kind]
  if settings and rawget(settings, 'auto_continue_if_many_stopped') == nil then settings.auto_continue_if_many_stopped = false end
end

return M
