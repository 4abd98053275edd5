--- The `<Plug>` maps, and the default keys of Lisp buffers. doc/consort.txt documents both; a test
--- compares this table with the documentation.
local M = {}

---@class consort.Map
---@field plug string the map is `<Plug>(consort-PLUG)`
---@field keys? string the default keys; nil for none
---@field mode? string|string[] as for vim.keymap.set()
---@field about string the description
---@field command? string the arguments of `:Consort` that do the same; nil for none
---@field run fun()

---@type consort.Map[]
M.maps = {}

local function map(plug, keys, about, command, mode)
  table.insert(M.maps, {
    plug = plug,
    keys = keys,
    mode = mode or 'n',
    about = about,
    command = type(command) == 'string' and command or nil,
    run = type(command) == 'function' and command or function() require('consort.commands').run({ args = command, range = 0 }) end,
  })
end

map('eval-form', '<LocalLeader>ee', 'evaluate the form', 'eval form')
map('eval-top', '<LocalLeader>er', 'evaluate the top-level form', 'eval top')
map('eval-buffer', '<LocalLeader>eb', 'evaluate the buffer', 'eval buffer')
map('eval-cursor', nil, 'evaluate up to the cursor', 'eval cursor')
map('eval-comment', '<LocalLeader>ec', 'evaluate to a comment', 'eval comment')
map('eval-region', '<LocalLeader>E', 'evaluate the selection', function()
  vim.cmd.normal({ '\27', bang = true }) -- leaves Visual mode, which sets '< and '>
  require('consort.eval').region()
end, 'x')
map('eval-operator', '<LocalLeader>eo', 'evaluate the text of a motion', function() require('consort.eval').operator() end)
map('result', '<LocalLeader>ev', 'show the whole result', 'result')
map('changed', '<LocalLeader>el', 'evaluate the forms that differ', 'changed')
map('callers', '<LocalLeader>eu', 'compile the users again', 'callers')
map('clear', '<LocalLeader>ex', 'remove the values', 'clear')
map('macroexpand', '<LocalLeader>mm', 'macroexpand', 'macroexpand one')
map('macroexpand-full', '<LocalLeader>mf', 'macroexpand fully', 'macroexpand full')
map('macrostep', '<LocalLeader>ms', 'macroexpand in place, in a copy', 'macrostep')
map('describe', '<LocalLeader>d', 'describe the symbol', 'describe')
map('disassemble', '<LocalLeader>D', 'disassemble the function', 'disassemble')
map('hyperspec', nil, 'the page of the HyperSpec about the name', 'hyperspec')
map('references', nil, 'references of a kind', 'references')
map('hierarchy-callers', nil, 'who calls the function', 'hierarchy callers')
map('hierarchy-callees', nil, 'what the function calls', 'hierarchy callees')
map('hierarchy-subtypes', nil, 'the subclasses', 'hierarchy subtypes')
map('hierarchy-supertypes', nil, 'the superclasses', 'hierarchy supertypes')
map('trace', nil, 'trace the function', 'trace')
map('traced', nil, 'the calls of what is traced', 'traced')
map('untrace', nil, 'untrace all', 'untrace')
map('profile', '<LocalLeader>p', 'profile the form', 'profile')
map('inspect', '<LocalLeader>v', 'inspect the result or the name', 'inspect')
map('record', '<LocalLeader>r', 'record the form', 'record')
map('load', nil, 'load a system', 'load')
map('reload', nil, 'reload the changed files of a system', 'reload')
map('test', '<LocalLeader>t', 'run the test', 'test')
map('breakpoint', '<LocalLeader>b', 'set or remove a breakpoint', 'breakpoint')
map('cursor', '<LocalLeader>B', 'continue to this line', 'cursor')
map('debugger', '<LocalLeader>g', 'the debugger', 'debugger')
map('failure', nil, 'look into a failure', 'failure')
map('repl', '<LocalLeader>s', 'the REPL', 'repl')
map('interrupt', '<LocalLeader>i', 'interrupt', 'interrupt')
map('answer', '<LocalLeader>a', 'answer the question of an agent', 'answer')
map('undo', '<LocalLeader>u', 'undo the last reload', 'undo')
map('write', nil, 'write the last replacement into its file', 'write')
map('undefine', nil, 'remove the definitions of the name', 'undefine')
map('move', nil, 'move the definition to another file', 'move')
map('apropos', nil, 'symbols by a part of their names', 'apropos')
map('call', nil, 'type a call of the function into the REPL', 'call')
map('compile', nil, 'compile and load the form', 'compile')
map('manual', nil, 'the documentation of the package', 'manual')
map('scratch', nil, 'a buffer to try code in', 'scratch')
map('restart', nil, 'a new image', 'restart')
map('status', nil, 'image, host, clients, what runs', 'status')
map('log', '<LocalLeader>l', 'what ran', 'log')
map('hints', nil, 'inlay hints, on and off', 'hints')
map('lens', nil, 'run the code lens of the line', 'lens')
--- Returns the function that does a structural edit. The edit takes a count, and `.` repeats it.
local function edit(action)
  return function() require('consort.structure').key(action) end
end
map('slurp-forward', '<LocalLeader>>', 'slurp: take the next form into the list', edit('slurpForward'))
map('barf-forward', '<LocalLeader><', 'barf: put the last form out of the list', edit('barfForward'))
map('slurp-backward', nil, 'slurp: take the form before into the list', edit('slurpBackward'))
map('barf-backward', nil, 'barf: put the first form out of the list', edit('barfBackward'))
map('raise', '<LocalLeader>R', 'raise: replace the list with the form', edit('raise'))
map('wrap', '<LocalLeader>w', 'wrap the form in a list', edit('wrap'))
map('splice', '<LocalLeader>S', 'splice: remove the parentheses', edit('splice'))
map('drag-forward', '<LocalLeader>]', 'move the form forward', edit('dragForward'))
map('drag-backward', '<LocalLeader>[', 'move the form backward', edit('dragBackward'))
map('kill', '<LocalLeader>k', 'delete the form', edit('killSexp'))
map('kill-line', nil, 'delete to the end of the line or list', edit('killLine'))
map('split', nil, 'split the list or string', edit('split'))
map('join', nil, 'join the lists or strings', edit('join'))
map('convolute', nil, 'convolute the list and the one around it', edit('convolute'))
map('transpose', nil, 'exchange two forms', edit('transpose'))
map('outer-form', 'af', 'the form', function() require('consort.structure').select(false) end, { 'x', 'o' })
map('inner-form', 'if', 'the inside of the form', function() require('consort.structure').select(true) end, { 'x', 'o' })

--- Returns the default keys of a map if they run it in the current buffer. Otherwise returns the
--- `:Consort` command that does the same or, without one, the name of the `<Plug>` map.
---@param plug string
---@return string
function M.key(plug)
  for _, one in ipairs(M.maps) do
    if one.plug == plug then
      local there = one.keys and vim.fn.maparg(one.keys, 'n', false, true) or {}
      if there.desc == 'Consort: ' .. one.about then return vim.fn.keytrans(vim.keycode(one.keys)) end
      return one.command and ':Consort ' .. one.command or ('<Plug>(consort-%s)'):format(plug)
    end
  end
  error('no map ' .. plug)
end

--- Defines the `<Plug>` maps.
function M.define_plug_maps()
  for _, one in ipairs(M.maps) do
    vim.keymap.set(one.mode, ('<Plug>(consort-%s)'):format(one.plug), one.run, { desc = 'Consort: ' .. one.about })
  end
end

--- The maps that need no Lisp text, in the order of the table.
local ANYWHERE = { 'debugger', 'repl', 'interrupt', 'answer', 'undo', 'log' }

--- Returns the keys of the Normal mode mappings that apply in a buffer and are not Consort's.
---@param buf integer
---@return string[]
local function keys_of_others(buf)
  local keys = {}
  for _, there in ipairs(vim.list_extend(vim.api.nvim_buf_get_keymap(buf, 'n'), vim.api.nvim_get_keymap('n'))) do
    if not vim.startswith(there.desc or '', 'Consort: ') then vim.list_extend(keys, { there.lhsraw, there.lhsrawalt }) end
  end
  return keys
end

--- Maps the default keys in a buffer of Consort's own that has no Lisp text: those that need none,
--- and, with `all`, the others to a message. Without a mapping, Neovim would skip the leader and
--- run what the next key means in that buffer. Keys that already have another mapping keep it.
---@param buf integer
---@param all? boolean
function M.without_text(buf, all)
  if vim.g.consort_maps == false then return end
  local others = keys_of_others(buf)
  for _, one in ipairs(M.maps) do
    local is_anywhere = vim.list_contains(ANYWHERE, one.plug)
    local modes = type(one.mode) == 'table' and one.mode or { one.mode }
    local keys = one.keys and vim.keycode(one.keys)
    if keys and vim.list_contains(modes, 'n') and (is_anywhere or all) and not vim.list_contains(others, keys) then
      local function run()
        if is_anywhere then return one.run() end
        require('consort.client').say(('%s is for Lisp texts: %s'):format(vim.fn.keytrans(vim.keycode(one.keys)), one.about))
      end
      -- Without waiting, a longer mapping that begins with these keys could not be typed.
      local is_beginning = vim.iter(others):any(function(other) return vim.startswith(other, keys) end)
      vim.keymap.set('n', one.keys, run, { buffer = buf, nowait = not is_beginning, desc = 'Consort: ' .. one.about })
    end
  end
end

--- Maps the default keys in a Lisp buffer, except those that already have another mapping.
---@param buf integer
function M.defaults(buf)
  for _, one in ipairs(M.maps) do
    for _, mode in ipairs(type(one.mode) == 'table' and one.mode or { one.mode }) do
      -- While a question of an agent waits, the key that answers it has a global mapping of
      -- Consort's. That mapping does not prevent the one in the buffer. `maparg` examines the
      -- current buffer.
      local there = one.keys and vim.api.nvim_buf_call(buf, function() return vim.fn.maparg(one.keys, mode, false, true) end) or {}
      local ours = there.buffer == 0 and there.desc == 'Consort: ' .. one.about
      if one.keys and (next(there) == nil or ours) then
        vim.keymap.set(mode, one.keys, ('<Plug>(consort-%s)'):format(one.plug), { buffer = buf, remap = true, desc = 'Consort: ' .. one.about })
      end
    end
  end
end

return M
