--- `:Consort`: the table of its subcommands.
local M = {}

---@class consort.Subcommand
---@field about string the description
---@field run fun(rest: string, context: vim.api.keyset.create_user_command.command_args)
---@field choices? string[]|fun(): string[] the arguments that completion offers
---@field takes? 'one'|'any' 'one': one of the choices must be given; 'any': one of them or nothing.
--- If absent, any argument is accepted.

--- Returns a function that calls a function of a module, with fixed arguments, and loads the module
--- only then.
local function lazy(module, name, ...)
  local fixed = { ... }
  return function() require('consort.' .. module)[name](unpack(fixed)) end
end
--- Returns the same for a function that takes the subcommand's argument, or nil if there is none.
local function of_name(module, name)
  return function(rest) require('consort.' .. module)[name](rest ~= '' and rest or nil) end
end
--- Returns a function that executes a command of the server without arguments. `done` is the
--- message about its success, or a function that returns the message for the result.
local function plain(command, done)
  return function()
    require('consort.client').execute(command, {}, function(result)
      require('consort.client').say(type(done) == 'function' and done(result) or done)
    end)
  end
end
--- Returns the outcome of a reload as one line.
local function reloaded(report)
  local parts = {}
  for _, key in ipairs({ 'redefined', 'new', 'gone', 'stale' }) do
    local n = #(report[key] or {})
    if n > 0 then table.insert(parts, ('%d %s'):format(n, key)) end
  end
  return (report.what or 'reloaded') .. ': ' .. (#parts > 0 and table.concat(parts, ', ') or 'nothing changed')
end
--- Returns 'loaded' if a system was loaded, for the message of `on_system`; otherwise false or nil,
--- because the server shows a message about the failure, and `systems.show_failure` its details.
local function loaded(result) return result.loaded and 'loaded' end
--- Returns the function of a subcommand that executes a command of the server for a system. `done`
--- returns the message for the result: 'loaded' for the standard one; false or nil for none.
local function on_system(command, done)
  return function(rest)
    require('consort.systems').choose(rest, function(system)
      local execute = command == 'reloadSystem' and require('consort.undo').reload or require('consort.client').execute
      local unsaved = require('consort.systems').unsaved()
      execute(command, { system = system }, function(result, _, is_here)
        local words = done(result)
        if command == 'loadSystem' and not words and type(result.error) == 'table' then return require('consort.systems').show_failure(system, result, is_here) end
        if not words then return end
        words = words == 'loaded' and system .. ' is loaded' or words
        require('consort.client').say(words .. require('consort.systems').without(unsaved))
      end)
    end)
  end
end
local function systems() return require('consort.systems').names() end

---@type table<string, consort.Subcommand>
M.table = {
  eval = {
    about = 'form, top, region, buffer, cursor, comment; or code',
    choices = { 'form', 'top', 'region', 'buffer', 'cursor', 'comment' },
    run = function(rest, context)
      local eval = require('consort.eval')
      if rest == '' and context.range > 0 or rest == 'region' then
        eval.region(context.range > 0 and context.line1 or nil, context.range > 0 and context.line2 or nil)
      elseif rest == '' or rest == 'form' then
        eval.form()
      elseif rest == 'top' then
        eval.form(true)
      elseif rest == 'buffer' then
        eval.buffer()
      elseif rest == 'cursor' then
        eval.to_cursor()
      elseif rest == 'comment' then
        eval.to_comment()
      else
        eval.code(rest)
      end
    end,
  },
  result = { about = 'show the whole result in this line', run = lazy('eval', 'result') },
  clear = {
    about = 'remove the values in this buffer',
    run = function() require('consort.inline').clear(vim.api.nvim_get_current_buf()) end,
  },
  macroexpand = {
    about = 'expand the form: one, step, full; compiler (macro, format string)',
    choices = { 'one', 'step', 'full', 'compiler' },
    takes = 'any',
    run = of_name('views', 'expand'),
  },
  macrostep = { about = 'expand the form in place, in a copy; again', run = lazy('macrostep', 'step') },
  apropos = { about = 'find symbols by a part of their names, and describe one', run = of_name('names', 'apropos') },
  call = { about = 'type a call of the function at the cursor into the REPL', run = lazy('repl', 'call') },
  move = { about = 'move the definition to another file of its package', run = lazy('moving', 'ask') },
  scratch = { about = 'a buffer to try code in', run = lazy('scratch', 'open') },
  describe = { about = 'describe a symbol', run = of_name('views', 'describe') },
  manual = { about = 'the documentation of a package or a system', choices = systems, run = of_name('views', 'package_manual') },
  disassemble = { about = 'disassemble a function', run = of_name('views', 'disassemble') },
  hyperspec = { about = 'the page of the HyperSpec about a name', run = of_name('names', 'manual') },
  references = {
    about = 'references of a kind, in the quickfix list',
    choices = { 'calls', 'macroexpands', 'sets', 'binds', 'references', 'specializes', 'mentions' },
    takes = 'any',
    run = of_name('names', 'references'),
  },
  hierarchy = {
    about = 'callers, callees, subtypes, supertypes',
    choices = { 'callers', 'callees', 'subtypes', 'supertypes' },
    run = of_name('names', 'hierarchy'),
  },
  trace = { about = 'trace a function; all of a package: in PACKAGE', run = function(rest) require('consort.views').trace(true, rest) end },
  traced = { about = 'the calls of what is traced, as a tree', run = lazy('traced', 'open') },
  untrace = { about = 'stop tracing a function, or: in PACKAGE; without a name: all functions', run = function(rest) require('consort.views').trace(false, rest) end },
  inspect = { about = 'inspect the value of code, or the result in this line', run = function(rest) require('consort.inspect').open(rest) end },
  record = {
    about = 'record the form, a test by its name, or the next call: next NAME, cancel',
    choices = { 'next', 'cancel' },
    run = of_name('recording', 'record'),
  },
  profile = { about = 'profile the form: cpu, time, alloc', choices = { 'cpu', 'time', 'alloc' }, takes = 'any', run = of_name('views', 'profile') },
  load = { about = 'load a system', choices = systems, run = on_system('loadSystem', loaded) },
  reload = { about = 'reload the changed files of a system', choices = systems, run = on_system('reloadSystem', reloaded) },
  compile = {
    about = 'compile and load the form: file, debug (3), anyway (with errors)',
    choices = function() return require('consort.compiling').CHOICES end,
    run = of_name('compiling', 'compile'),
  },
  callers = { about = 'compile the users of the definition again', run = of_name('views', 'callers') },
  changed = { about = 'evaluate the forms that differ from the image', run = lazy('differences', 'load') },
  undefine = { about = 'remove the definitions of a name from the image', run = lazy('undefine', 'ask') },
  undo = { about = 'undo the last reload that was reported to you', run = lazy('undo', 'undo') },
  test = { about = 'run the test at the cursor, or those of a system', choices = systems, run = of_name('tests', 'run') },
  answer = {
    about = "answer an agent's question: in its code, or allow, allow-session, deny",
    choices = function() return require('consort.approve').decisions() end,
    run = of_name('approve', 'answer'),
  },
  write = { about = "write an agent's last replacement into its file", run = lazy('replacing', 'write') },
  breakpoint = {
    about = 'set or remove a breakpoint in this line; a condition; none: remove all',
    choices = { 'none' },
    run = function(rest)
      local breakpoints = require('consort.breakpoints')
      if rest == 'none' then breakpoints.clear() else breakpoints.toggle(rest ~= '' and rest or nil) end
    end,
  },
  cursor = { about = 'continue the newest stop to this line', run = lazy('breakpoints', 'run_to_cursor') },
  debugger = { about = 'the newest stop of a program', run = lazy('debugger', 'open') },
  failure = { about = 'look into a failure whose stack is kept', run = of_name('frozen', 'open') },
  repl = { about = 'the REPL', run = lazy('repl', 'open') },
  restart = { about = 'end the image and start a new one', run = plain('restartImage', 'a new image is running') },
  interrupt = {
    about = 'interrupt what runs for this editor',
    run = plain('interrupt', function(result) return result.interrupted == 0 and 'nothing was running' or ('%d interrupted'):format(result.interrupted) end),
  },
  status = { about = 'image, host, clients, what runs', run = lazy('status', 'open') },
  log = { about = 'what ran in the image, and by whom', run = lazy('log', 'open') },
  hints = { about = 'inlay hints, on and off', run = lazy('lsp', 'hints') },
  lens = { about = 'run the code lens of this line', run = lazy('lsp', 'lens') },
  structure = {
    about = 'edit the structure',
    choices = {
      'slurpForward', 'slurpBackward', 'barfForward', 'barfBackward', 'raise', 'wrap', 'splice', 'dragForward', 'dragBackward',
      'killSexp', 'killLine', 'split', 'join', 'convolute', 'transpose', 'moveForward', 'moveBackward', 'moveUp', 'moveDown',
    },
    takes = 'one',
    run = function(rest) require('consort.structure').act(rest) end,
  },
}

local function starting_with(words, lead)
  return vim.iter(words):filter(function(word) return vim.startswith(word, lead) end):totable()
end

--- Returns the completions for `:Consort`: the subcommands, or the choices of the subcommand.
---@return string[]
function M.complete(lead, line)
  local name = line:match('^%s*%S*Consort!?%s+(%S+)%s')
  if not name then
    local names = vim.tbl_keys(M.table)
    table.sort(names)
    return starting_with(names, lead)
  end
  local choices = M.table[name] and M.table[name].choices or {}
  return starting_with(type(choices) == 'function' and choices() or choices, lead)
end

--- Runs `:Consort`. Without a subcommand, runs `status`.
---@param context vim.api.keyset.create_user_command.command_args
function M.run(context)
  local name, rest = context.args:match('^(%S*)%s*(.-)%s*$')
  if name == '' then name = 'status' end
  local subcommand = M.table[name]
  if not subcommand then
    local names = vim.tbl_keys(M.table)
    table.sort(names)
    local meant = require('consort.meant').word(name, names)
    local hint = meant and ('did you mean `:Consort %s`?'):format(meant) or 'there are ' .. table.concat(names, ', ')
    return require('consort.client').fail(('there is no `:Consort %s`; %s'):format(name, hint))
  end
  local takes = subcommand.takes
  if takes and not (vim.list_contains(subcommand.choices, rest) or rest == '' and takes == 'any') then
    local given = rest ~= '' and ', and not ' .. rest or ''
    return require('consort.client').fail(('`:Consort %s` takes %s%s'):format(name, table.concat(subcommand.choices, ', '), given))
  end
  subcommand.run(rest, context)
end

return M
