#!/usr/bin/env bash
# Headless Neovim 0.11, with its own LSP client and nothing but editors/neovim on its runtimepath, against `consort lsp`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CONSORT_BIN:?the consort to test}"
nvim=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/nvim/bin/nvim
[ -x "$nvim" ] || nvim=nvim

# The configuration under test says `consort`: it finds ours.
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
ln -s "$CONSORT_BIN" "$bin/consort"
export PATH=$bin:$PATH
status=0
timeout 300 "$nvim" --headless -u NONE -i NONE -l "$here/lsp_test.lua" || status=$?
exit $status
