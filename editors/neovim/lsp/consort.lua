-- Found through 'runtimepath' by vim.lsp.enable('consort'), Neovim 0.11 or newer.

--- The workspace: what a coding agent that is started in the project has too, so that both share
--- one image.
local function root_dir(buffer, on_dir)
  on_dir(
    vim.fs.root(buffer, { 'consort.toml', '.git' })
      or vim.fs.root(buffer, function(name) return name:match('%.asd$') ~= nil end)
      or vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
  )
end

---@type vim.lsp.Config
return {
  cmd = { 'consort', 'lsp' },
  filetypes = { 'lisp' },
  root_dir = root_dir,
  -- Questions about what an agent may do come with the code, and not as a plain message; code that
  -- reads asks here. Evaluations that stop are shown in the debugger.
  init_options = { approve = true, input = true, stops = true },
  -- Settings are from the person's own configuration: Neovim reads no other without `:trust`.
  before_init = function(params)
    params.capabilities.experimental = vim.tbl_deep_extend('force', params.capabilities.experimental or {}, { consort = { ownSettings = true } })
  end,
  -- LspDetach comes only for a server that has a buffer. Neovim drops the client in the next turn.
  on_exit = vim.schedule_wrap(function(_, _, client)
    vim.schedule(function() require('consort.client').ended(client) end)
  end),
  -- A code lens is run here, so that what failed is shown at its line.
  commands = {
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
    ['consort/output'] = function(...) return require('consort.running').on_output(...) end,
    ['window/showMessage'] = function(_, params)
      local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
      require('consort.client').say(params.message, levels[params.type])
    end,
    ['consort/logEntry'] = function() require('consort.differences').schedule_update() end,
  },
}
