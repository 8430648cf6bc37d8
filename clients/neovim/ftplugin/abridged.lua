vim.opt_local.wrap = true
vim.opt_local.linebreak = true
vim.opt_local.list = false
