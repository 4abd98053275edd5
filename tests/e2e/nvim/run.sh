#!/usr/bin/env bash
# Neovim 0.11 with nothing but editors/neovim on its runtimepath, against `consort lsp`: headless,
# with its own LSP client, and in a terminal, key by key, as a person has it. `run.sh [PART
# [PATTERN]]`: only this part (shown_test, stale_test, latest_test, waiting_test, undo_test,
# repl_test, telling_test, lsp_test, offline_test, plugin_test, install_test, dap_test,
# debugger_test, frozen_test, recording_test, inspect_test, macrostep_test, compile_test,
# asking_test, starting_test, hostile, person), and only its tests whose names match.
# Screens of `hostile` and `person` are kept in tests/out/nvim.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../environment.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
place=$E2E_PLACE
trap e2e_leave EXIT
nvim=$CONSORT_TEST_CACHE/nvim/bin/nvim
[ -x "$nvim" ] || nvim=nvim

# The configuration under test says `consort`: it finds ours.
mkdir "$place/bin"
ln -s "$CONSORT_BIN" "$place/bin/consort"
export PATH=$place/bin:$PATH
rm -rf "$here/../../out/nvim"
status=0
parts=(shown_test stale_test latest_test waiting_test undo_test repl_test telling_test lsp_test offline_test plugin_test install_test
    dap_test debugger_test frozen_test recording_test inspect_test macrostep_test compile_test asking_test starting_test hostile person)
[ $# -eq 0 ] || parts=("$1")
export ONLY=${2:-${ONLY:-}}
for part in "${parts[@]}"; do
    mkdir "$place/$part"
    case $part in
    hostile | person)
        python=$CONSORT_TEST_CACHE/mcp/venv-v1/bin/python
        e2e_limit 10 "$python" "$here/$part.py" "$nvim" "$place/$part" "$here/../../out/nvim" 2>&1 | tee "$place/$part.log" || status=1
        ;;
    *) TMPDIR=$place/$part NVIM=$nvim e2e_limit 5 "$nvim" --headless -u NONE -i NONE -l "$here/$part.lua" 2>&1 | tee "$place/$part.log" || status=1 ;;
    esac
    # One that ended without counting has failed.
    grep -qE '^[0-9]+ passed, [0-9]+ failed$' "$place/$part.log" || { status=1; echo "0 passed, 1 failed" >>"$place/$part.log"; }
done
# One line that counts all.
cat "$place"/*.log | awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { printf "%d passed, %d failed\n", p, f }'
exit $status
