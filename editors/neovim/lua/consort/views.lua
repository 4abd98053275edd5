--- What is asked of a symbol or a form and shown in a float: macroexpansion, description, disassembly, profile; and where things are.
local client_of = require('consort.client')
local float = require('consort.float')

local M = {}

-- Macroexpansion

--- The expansion of the form at the cursor; further and back in the float.
---@param how? 'one'|'step'|'full'
function M.expand(how)
  local client = client_of.need()
  if not client then return end
  local place = client_of.place(client)
  local history, buf = {}, nil
  local function show(result)
    table.insert(history, result)
    if buf and vim.api.nvim_buf_is_valid(buf) then return float.replace(buf, result.expansion) end
    local function deeper(wanted)
      local last = history[#history]
      client_of.execute('macroexpand', { text = last.expansion, package = last.package, how = wanted }, function(next)
        if next.expanded == false then return client_of.say('there is no macro left at the top of this form') end
        show(next)
      end)
    end
    buf = float.open(result.expansion, {
      title = 'Macroexpansion',
      filetype = 'lisp',
      hint = '+ further, f fully, - back, y copies, q closes',
      keys = {
        ['+'] = function() deeper('one') end,
        f = function() deeper('full') end,
        ['-'] = function()
          if #history < 2 then return client_of.say('this is the first expansion') end
          table.remove(history)
          float.replace(buf, history[#history].expansion)
        end,
        y = function()
          vim.fn.setreg('"', history[#history].expansion)
          client_of.say('copied')
        end,
      },
    })
  end
  client_of.execute('macroexpand', { uri = place.uri, position = place.position, how = how or 'one' }, function(result)
    if result.expanded == false then return client_of.say('no macro is called by the form at the cursor') end
    show(result)
  end)
end

-- Symbols

--- What a command on a name is asked: the name that was typed, or where the cursor is.
---@param name? string
---@return table? argument
local function asked(name)
  if name and name ~= '' then return { name = name } end
  local client = client_of.need()
  return client and client_of.place(client)
end

---@param command string
---@param options table for the float
local function show_text(command, options)
  return function(name)
    local argument = asked(name)
    if not argument then return end
    client_of.execute(command, argument, function(result)
      float.open(result.text, vim.tbl_extend('keep', { title = result.name }, options))
    end)
  end
end
M.describe = show_text('describe', { hint = 'q closes' })
M.disassemble = show_text('disassemble', { filetype = 'asm', hint = 'q closes' })

--- Trace a function, or no longer; without a name `untrace` is for all of them.
---@param on boolean
---@param name? string
function M.trace(on, name)
  local argument = on and asked(name) or name and name ~= '' and { name = name } or {}
  if not argument then return end
  client_of.execute(on and 'trace' or 'untrace', argument, function(result) client_of.say(result.text) end)
end

--- Open the definition of a symbol; of several, one is chosen.
---@param name string
function M.go_to(name)
  client_of.execute('sourceLocation', { symbol = name }, function(result)
    local places = vim.tbl_filter(function(one) return one.file end, result.definitions or {})
    local function open(one)
      if not one then return end
      vim.cmd.edit(vim.fn.fnameescape(one.file))
      vim.api.nvim_win_set_cursor(0, { one.line, 0 })
      vim.cmd.normal({ 'zz', bang = true })
    end
    if #places == 0 then return client_of.say(('where %s is defined is not known'):format(name)) end
    if #places == 1 then return open(places[1]) end
    vim.ui.select(places, {
      prompt = name .. ' is defined in',
      format_item = function(one) return ('%s  %s:%d'):format(one.kind, vim.fn.fnamemodify(one.file, ':~:.'), one.line) end,
    }, open)
  end)
end

-- Profiles

--- Profile the form at the cursor.
---@param mode? 'cpu'|'time'|'alloc'
function M.profile(mode)
  local client = client_of.need()
  if not client then return end
  local place = client_of.place(client)
  client_of.say('profiling ...')
  client_of.execute('profileForm', { uri = place.uri, position = place.position, mode = mode or 'cpu' }, function(result)
    local buf = float.open(result.text or vim.inspect(result), {
      title = 'Profile',
      hint = '<CR> goes to a function, q closes',
      keys = {
        ['<CR>'] = function()
          local name = vim.api.nvim_get_current_line():match('(%S+)%s*$')
          if not name then return end
          vim.api.nvim_win_close(0, true)
          M.go_to(name)
        end,
      },
    })
    vim.bo[buf].modifiable = false
  end)
end

return M
