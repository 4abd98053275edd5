-- Found through 'runtimepath' by vim.lsp.enable('consort'), Neovim 0.11 or newer.

--- A buffer without a name has no URI either, and gets no server.
local function root_dir(buffer, on_dir)
  local start = require('consort.start')
  start.begins(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if name ~= '' then on_dir(start.workspace_of_file(name)) end
end

---@type vim.lsp.Config
return {
  cmd = { 'consort', 'lsp' },
  filetypes = { 'lisp' },
  root_dir = root_dir,
  -- Questions about what an agent may do come with the code, and not as a plain message; code that
  -- reads asks here. Evaluations that stop are shown in the debugger.
  init_options = { approve = true, input = true, stops = true, commands = true },
  -- Settings are from the person's own configuration: Neovim reads no other without `:trust`.
  before_init = function(params, config)
    require('consort.start').guard(config)
    params.capabilities.experimental = vim.tbl_deep_extend('force', params.capabilities.experimental or {}, { consort = { ownSettings = true } })
  end,
  -- LspDetach comes only for a server that has a buffer. Neovim drops the client in the next turn.
  on_exit = vim.schedule_wrap(function(_, _, id)
    require('consort.start').ends(vim.lsp.get_client_by_id(id))
    vim.schedule(function() require('consort.client').ended(id) end)
  end),
  -- A code lens is run here, so that what failed is shown at its line; a code action that loads a
  -- system, so that the outcome is shown; and those that ask the person.
  commands = {
    ['consort.loadSystem'] = function(command) require('consort.commands').table.load.run(command.arguments[1].system) end,
    ['consort.editor.moveDefinition'] = function() require('consort.moving').ask() end,
    ['_consort.rename'] = function(command) require('consort.renaming').begin(command.arguments[1]) end,
    ['consort.runTestAtPoint'] = function(command) require('consort.tests').run_lens(command) end,
  },
  handlers = {
    ['consort/approve'] = function(...) return require('consort.approve').on_request(...) end,
    ['consort/approvalOver'] = function(...) return require('consort.approve').on_over(...) end,
    ['window/showMessageRequest'] = function(...) return require('consort.prompt').on_request(...) end,
    ['$/cancelRequest'] = function(...) return require('consort.prompt').on_cancel(...) end,
    ['consort/input'] = function(...) return require('consort.input').on_request(...) end,
    ['consort/inputOver'] = function(...) return require('consort.input').on_over(...) end,
    ['consort/stopped'] = function(...) return require('consort.debugger').on_stopped(...) end,
    ['consort/imageState'] = function(_, state, context)
      vim.g.consort_image = state.state
      require('consort.undo').on_image_state(nil, state, context)
      require('consort.repl').on_image_state(nil, state, context)
    end,
    ['textDocument/rename'] = function(...) return require('consort.renaming').on_answer(...) end,
    ['consort/begun'] = function(...) return require('consort.running').on_begun(...) end,
    ['consort/output'] = function(...) return require('consort.running').on_output(...) end,
    ['window/showMessage'] = function(_, params)
      local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
      require('consort.client').say(params.message, levels[params.type])
    end,
    ['consort/logEntry'] = function() require('consort.differences').schedule_update() end,
  },
}
