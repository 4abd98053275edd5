#!/usr/bin/env bash
# Headless Neovim 0.11, with its own LSP client and nothing but editors/neovim on its runtimepath, against `consort lsp`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CONSORT_BIN:?the consort to test}"
nvim=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/nvim/bin/nvim
[ -x "$nvim" ] || nvim=nvim

# The configuration under test says `consort`: it finds ours.
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin" "$place/tmp"
ln -s "$CONSORT_BIN" "$place/bin/consort"
export PATH=$place/bin:$PATH TMPDIR=$place/tmp
status=0
for part in lsp_test plugin_test; do
    mkdir "$place/$part"
    TMPDIR=$place/$part timeout 300 "$nvim" --headless -u NONE -i NONE -l "$here/$part.lua" 2>&1 | tee "$place/$part.log" || status=1
done
# One line that counts both.
cat "$place"/*.log | awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { printf "%d passed, %d failed\n", p, f }'
exit $status
