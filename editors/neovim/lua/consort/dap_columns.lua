--- Columns for nvim-dap, which takes them for bytes. The adapter counts UTF-16 code units, from 1.
local M = {}

--- Returns the lines of the buffer of a file; nil if no loaded buffer has it.
---@param path? string
---@return fun(line: integer): string?
local function lines_of(path)
  local buf = vim.iter(vim.api.nvim_list_bufs()):find(function(buf) return vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_name(buf) == path end)
  return function(line) return buf and line > 0 and vim.api.nvim_buf_get_lines(buf, line - 1, line, false)[1] or nil end
end

--- Converts the columns of frames in files that are open.
local function frames(answer)
  for _, frame in ipairs(answer.stackFrames or {}) do
    local path = (frame.source or {}).path
    local line_of = path and lines_of(path)
    for line, column in pairs(line_of and { line = 'column', endLine = 'endColumn' } or {}) do
      local text = frame[line] and frame[column] and line_of(frame[line])
      if text then frame[column] = vim.str_byteindex(text, 'utf-16', frame[column] - 1, false) + 1 end
    end
  end
end

--- Converts the start of the text that a completion replaces, which nvim-dap counts from 0.
local function completions(answer, arguments)
  for _, target in ipairs(answer.targets or {}) do
    if target.start then target.start = vim.str_byteindex(arguments.text, 'utf-16', target.start - 1, false) end
  end
end

--- Registers the listeners of this module for all sessions of a type.
---@param dap table the module of nvim-dap
---@param kind string the type, as in a configuration of nvim-dap
function M.follow(dap, kind)
  -- A listener that returns true is removed.
  local function listen(name, convert)
    dap.listeners.before[name][kind] = function(session, refused, answer, arguments)
      if (session.config or {}).type == kind and not refused and answer then convert(answer, arguments) end
    end
  end
  listen('stackTrace', frames)
  listen('completions', completions)
end

return M
