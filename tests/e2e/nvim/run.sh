#!/usr/bin/env bash
# Neovim 0.11 with nothing but editors/neovim on its runtimepath, against `consort lsp`: headless, with its own LSP client, and in a terminal,
# key by key, as a person has it. `run.sh [PART ...]`: only these parts. What the person saw is kept in tests/out/nvim.
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
parts=("$@")
[ $# -gt 0 ] || parts=(lsp_test plugin_test install_test person)
for part in "${parts[@]}"; do
    mkdir "$place/$part"
    case $part in
    person)
        python=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/mcp/venv-v1/bin/python
        rm -rf "$here/../../out/nvim"
        PYTHONDONTWRITEBYTECODE=1 timeout 600 "$python" "$here/person.py" "$nvim" "$place/$part" "$here/../../out/nvim" 2>&1 | tee "$place/$part.log" || status=1
        ;;
    *) TMPDIR=$place/$part NVIM=$nvim timeout 300 "$nvim" --headless -u NONE -i NONE -l "$here/$part.lua" 2>&1 | tee "$place/$part.log" || status=1 ;;
    esac
done
# One line that counts all.
cat "$place"/*.log | awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { printf "%d passed, %d failed\n", p, f }'
exit $status
