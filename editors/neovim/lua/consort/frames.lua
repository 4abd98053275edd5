--- Frames of a backtrace, as the image prints them.
local M = {}

-- What signals: the program called it, and it is not where the program went wrong.
local signalling = { ERROR = true, CERROR = true, SIGNAL = true, WARN = true, BREAK = true, ['INVOKE-DEBUGGER'] = true }

--- The frames from the program's own on. Those above it, `ERROR` and its like, say what the message says already.
---@param frames string[]
---@return string[]
function M.of_program(frames)
  for i, frame in ipairs(frames) do
    local name = frame:match('^%(([^%s()]+)')
    if not name or not (signalling[name] or name:match('^SB%-%u+::?')) then return vim.list_slice(frames, i) end
  end
  return frames -- there is no other to show
end

--- The name of the function that a line of a backtrace is in, as `consort.sourceLocation` takes it.
---@param line string
---@return string?
function M.function_of(line)
  local call = line:match('^%s*%d+%s+%((.*)$')
  if not call then return end
  -- ((:METHOD NAME (T)) ...), ((FLET F :IN NAME) ...), ((LAMBDA (X) :IN NAME) ...), ((SETF NAME) ...), (NAME ...)
  local inner = call:match('^%((.*)$')
  if not inner then return call:match('^[^%s()]+') end
  return inner:match('^SETF%s+[^%s()]+') and ('(setf %s)'):format(inner:match('^SETF%s+([^%s()]+)'))
    or inner:match('^[^%s()]+%s.-:IN%s+([^%s()]+)')
    or inner:match('^:?[%w-]*METHOD%s+([^%s()]+)')
    or inner:match('^[^%s()]+%s+([^%s()]+)')
end

return M
