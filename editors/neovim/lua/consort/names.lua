--- Commands on the name at the cursor or a typed name: references by kind, hierarchies, symbols by
--- a part of their names, and pages of the HyperSpec.
local client_of = require('consort.client')
local escaped = require('consort.escaped')

local M = {}

--- Puts the references of a kind to the name at the cursor into the quickfix list. Without a kind,
--- and if there are references of several kinds, the person chooses one kind or all.
---@param kind? string
function M.references(kind)
  local client = client_of.need()
  if not client then return end
  local place = client_of.place(client)
  client_of.execute('references', { uri = place.uri, position = place.position, kinds = kind and { kind } or nil }, function(result)
    local function show(chosen)
      if not chosen then return end
      local found = vim.tbl_filter(function(one) return chosen == 'all' or one.kind == chosen end, result.references)
      local items = vim.lsp.util.locations_to_items(found, client.offset_encoding)
      for i, item in ipairs(items) do
        local from = item.user_data
        item.text = ('%s: %s'):format(from.kind, vim.trim(item.text))
        items[i] = item
      end
      vim.fn.setqflist({}, ' ', { title = ('%s: %s'):format(escaped.line(result.name), chosen), items = items })
      vim.cmd.copen()
    end
    local count = {}
    for _, one in ipairs(result.references) do count[one.kind] = (count[one.kind] or 0) + 1 end
    if #result.references == 0 then return client_of.say(('nothing refers to %s%s'):format(result.name, kind and (' by ' .. kind) or '')) end
    if kind then return show(kind) end
    local kinds = vim.tbl_filter(function(one) return count[one] end, result.kinds)
    if #kinds == 1 then return show(kinds[1]) end
    table.insert(kinds, 'all')
    vim.ui.select(kinds, {
      prompt = 'References to ' .. escaped.line(result.name),
      format_item = function(one) return ('%s  %d'):format(one, count[one] or #result.references) end,
    }, show)
  end, { here = true })
end

--- Shows a hierarchy of the name at the cursor, with the functions of `vim.lsp.buf`.
---@param which? string 'callers' (the default), 'callees', 'subtypes' or 'supertypes'
function M.hierarchy(which)
  if not client_of.need() then return end
  local shown = {
    callers = vim.lsp.buf.incoming_calls,
    callees = vim.lsp.buf.outgoing_calls,
    subtypes = function() vim.lsp.buf.typehierarchy('subtypes') end,
    supertypes = function() vim.lsp.buf.typehierarchy('supertypes') end,
  }
  local show = shown[which or 'callers']
  if not show then return client_of.fail('the hierarchies are callers, callees, subtypes and supertypes') end
  show()
end

--- Lists the symbols of the image whose names contain a string, and describes the one that the
--- person chooses.
---@param pattern? string the string; by default the person is asked for it
function M.apropos(pattern)
  local function find(wanted)
    if not wanted or vim.trim(wanted) == '' then return end
    client_of.execute('apropos', { pattern = vim.trim(wanted), limit = 500 }, function(found)
      if #found.symbols == 0 then return client_of.say(('no symbol that names something has %s in its name'):format(wanted)) end
      local all = found.total > #found.symbols and (' (%d of %d)'):format(#found.symbols, found.total) or ''
      vim.ui.select(found.symbols, {
        prompt = ('Symbols with %s%s'):format(vim.fn.strtrans(wanted), all),
        format_item = function(one)
          local summary = one.summary and '  ' .. one.summary or ''
          return vim.fn.strtrans(('%s  [%s]%s'):format(one.lambda_list or one.name, one.kind, summary))
        end,
        kind = 'consort-apropos',
      }, function(one)
        if one then require('consort.views').describe(one.name) end
      end)
    end, { here = true })
  end
  if pattern and pattern ~= '' then return find(pattern) end
  vim.ui.input({ prompt = 'Apropos: ' }, find)
end

--- Opens the page of the HyperSpec about a name, by default about the symbol, format directive or
--- reader macro at the cursor.
---@param name? string
function M.manual(name)
  local client = client_of.need()
  if not client then return end
  local place = not name and client_of.place(client) or nil
  local argument = place and { uri = place.uri, position = place.position } or { name = name }
  client_of.execute('hyperspec', argument, function(result)
    local _, error = vim.ui.open(result.url)
    client_of.say(error and ('%s: %s'):format(result.url, error) or result.url)
  end)
end

return M
