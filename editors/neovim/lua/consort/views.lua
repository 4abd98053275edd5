--- Floats with answers about a symbol or a form (macroexpansion, description, disassembly,
--- profile), tracing of functions, and jumps to definitions.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

-- Macroexpansion

--- Shows the macroexpansion of the form at the cursor. In the float, `+` expands the macro call at
--- the cursor once, `f` expands the form fully, and `-` returns to the previous expansion.
---@param how? 'one'|'step'|'full'|'compiler'
function M.expand(how)
  local client = client_of.need()
  if not client then return end
  local place, is_same_text = client_of.place(client), client_of.text(vim.api.nvim_get_current_buf())
  -- The server keeps no state between the requests. Each request has the position of the form, and
  -- the positions at which its successive expansions were expanded further.
  local shown, buf = {}, nil ---@type { steps: table[], how: string, expansion: string }[]
  local asked = 0 -- the number of the last request: answers to earlier ones are dropped

  local function ask(steps, wanted)
    if not is_same_text() then return client_of.fail('the text has changed since it was expanded; expand it again') end
    asked = asked + 1
    local mine = asked
    local argument = { uri = place.uri, position = place.position, how = wanted, steps = #steps > 0 and steps or nil }
    client_of.execute('macroexpand', argument, function(result, _, is_here)
      if mine ~= asked or buf and not vim.api.nvim_buf_is_valid(buf) then return end
      if type(result.error) == 'table' then return client_of.fail(('%s: %s'):format(result.error.type, result.error.message)) end
      if result.expanded == false then
        return client_of.say(wanted == 'compiler' and 'no compiler macro and no format string is there' or 'no macro is called there')
      end
      table.insert(shown, { steps = steps, how = wanted, expansion = result.expansion })
      if buf then return float.replace(buf, result.expansion) end
      buf = float.open(result.expansion, {
        title = 'Macroexpansion',
        filetype = 'lisp',
        is_here = is_here,
        hint = '+ expands at the cursor, f fully, - back, y copies, q closes',
        keys = {
          ['+'] = function()
            local cursor = vim.api.nvim_win_get_cursor(0)
            local line = vim.api.nvim_get_current_line()
            local character = vim.str_utfindex(line, client.offset_encoding, cursor[2], false)
            ask(vim.list_extend(vim.deepcopy(shown[#shown].steps), { { line = cursor[1] - 1, character = character } }), 'one')
          end,
          f = function() ask(shown[#shown].steps, 'full') end,
          ['-'] = function()
            if #shown < 2 then return client_of.say('this is the first expansion') end
            asked = asked + 1
            table.remove(shown)
            float.replace(buf, shown[#shown].expansion)
          end,
          y = function()
            vim.fn.setreg('"', shown[#shown].expansion)
            client_of.say('copied')
          end,
        },
      })
    end, { latest = not buf and 'macroexpand' or nil })
  end
  ask({}, how or 'one')
end

-- Symbols

--- Returns the argument of a command for a name that was typed. A name without a package prefix is
--- read in the package of the current file.
---@param name string
local function named(name)
  return { name = name, package = not name:find(':', 1, true) and require('consort.repl').package_of_file() or nil }
end

--- Returns the argument of a command for the name that was typed or, without one, for the name at
--- the cursor. Returns nil if there is no client.
---@param name? string
---@return table? argument
local function asked(name)
  if name and name ~= '' then return named(name) end
  local client = client_of.need()
  return client and client_of.place(client)
end

--- Returns a function that executes a command for a name, and shows the text of the result in a
--- float.
---@param command string
---@param options table for the float
---@param latest? string as of client.execute()
---@param execute? function instead of client.execute()
---@param argument_of? fun(name?: string): table?
local function show_text(command, options, latest, execute, argument_of)
  return function(name)
    local argument = (argument_of or asked)(name)
    if not argument then return end
    local run = execute or client_of.execute
    run(command, argument, function(result, _, is_here)
      float.open(result.text, vim.tbl_extend('keep', { title = result.name, is_here = is_here }, options))
    end, { latest = latest })
  end
end
M.describe = show_text('describe', { hint = 'q closes' }, 'describe')
M.disassemble = show_text('disassemble', { filetype = 'asm', hint = 'q closes' }, 'disassemble')

local show_manual = show_text('packageManual', { hint = 'q closes' }, 'packageManual', nil, function(name) return { name = name } end)

--- Shows the documentation of a package or a system. By default, shows that of the package of the
--- text at the cursor.
---@param name? string
function M.package_manual(name) show_manual(name or require('consort.repl').package_here() or 'CL-USER') end

--- Compiles the callers and other users of a definition again. The definition is given by its name
--- or, by default, by the cursor.
M.callers = show_text('recompileCallers', { hint = 'q closes' }, nil, function(...) require('consort.undo').reload(...) end)

--- Traces a function or, with `in PACKAGE`, all functions of a package. If `on` is false, ends the
--- tracing of the function or of those of the package or, without a name, of all functions.
---@param on boolean
---@param name? string by default, to trace, the name at the cursor
function M.trace(on, name)
  local package = (name or ''):match('^in%s+(%S+)$')
  local argument = package and { package = package } or name and name ~= '' and named(name) or nil
  if not argument and on then
    local client = client_of.need()
    if not client then return end
    argument = client_of.place_of_name(client)
  end
  client_of.execute(on and 'trace' or 'untrace', argument or {}, function(result) client_of.say(result.text) end)
end

--- Opens the definition of a symbol. If there are several, the person chooses one.
---@param name string
function M.go_to(name)
  client_of.execute('sourceLocation', { symbol = name }, function(result)
    local places = vim.tbl_filter(function(one) return one.file end, result.definitions or {})
    local function open(one)
      if not one then return end
      require('consort.goto').line(one.file, one.line)
    end
    if #places == 0 then return client_of.say(('the definition of %s is not known'):format(name)) end
    if #places == 1 then return open(places[1]) end
    vim.ui.select(places, {
      prompt = name .. ' is defined in',
      format_item = function(one) return ('%s  %s:%d'):format(one.kind, vim.fn.fnamemodify(one.file, ':~:.'), one.line) end,
    }, open)
  end, { here = true })
end

-- Profiles

local SHARE = 0.5 -- percent; calls with a smaller share are left out of the tree
local BAR = 20 -- the width in cells of the bar for 100 %

--- Returns the lines of a profile, a table of functions and a tree of calls, and the function of
--- each line. Without samples, returns the lines of the result's text and no functions.
---@param result table the answer of consort.profileForm
---@return string[] lines
---@return table<integer, string> functions by line
function M.profile_lines(result)
  local profile = result.profile
  local lines, functions = {}, {}
  if type(profile) ~= 'table' or profile.status ~= 'ok' or profile.samples == 0 then
    return vim.split(result.text or vim.inspect(result), '\n', { plain = true }), functions
  end
  local measured = profile.mode == 'alloc' and ('%d bytes allocated'):format(profile.bytes) or ('%.2f s'):format(profile.seconds)
  vim.list_extend(lines, { ('%s, %d samples'):format(measured, profile.samples), '⇒ ' .. table.concat(profile.values or {}, ', '), '', '  self   total  function' })
  for _, row in ipairs(profile.rows or {}) do
    table.insert(lines, ('%5.1f%%  %5.1f%%  %s'):format(row.self_percent, row.inclusive_percent or row.cumulative_percent, row['function']))
    functions[#lines] = row['function']
  end
  vim.list_extend(lines, { '', 'Calls' })
  local function add(node, depth)
    if node.percent < SHARE then return end
    local bar = ('█'):rep(math.max(1, math.floor(node.percent / 100 * BAR + 0.5)))
    table.insert(lines, ('%5.1f%%  %s%s  %s%s'):format(node.percent, bar, (' '):rep(BAR - vim.fn.strchars(bar)), ('  '):rep(depth), node['function']))
    functions[#lines] = node['function']
    -- The direct recursive calls of a function share one line. The other functions that these calls
    -- call are the children of that line.
    local children, i = vim.list_slice(node.children or {}), 1
    while children[i] do
      if children[i]['function'] == node['function'] then
        vim.list_extend(children, table.remove(children, i).children or {})
      else
        i = i + 1
      end
    end
    for _, child in ipairs(children) do add(child, depth + 1) end
  end
  for _, node in ipairs(profile.tree or {}) do add(node, 0) end
  return lines, functions
end

--- Profiles the form at the cursor.
---@param mode? 'cpu'|'time'|'alloc'
function M.profile(mode)
  local client = client_of.need()
  if not client then return end
  local place = client_of.place(client)
  local over = client_of.doing('profiling ...')
  client_of.execute('profileForm', { uri = place.uri, position = place.position, mode = mode or 'cpu' }, function(result, _, is_here)
    over()
    local lines, functions = M.profile_lines(result)
    local first = math.huge
    for line in pairs(functions) do first = math.min(first, line) end
    float.open(lines, {
      title = ({ time = 'Profile: elapsed time', alloc = 'Profile: memory' })[mode] or 'Profile: processor time',
      is_here = is_here,
      row = first < math.huge and first - 1 or nil,
      hint = next(functions) and '<CR> goes to the function, q closes' or 'q closes',
      keys = {
        ['<CR>'] = function()
          local name = functions[vim.api.nvim_win_get_cursor(0)[1]]
          if not name then return end
          vim.api.nvim_win_close(0, true)
          M.go_to(name)
        end,
      },
    })
  end)
end

return M
