#!/usr/bin/env bash
# `consort repl` in a terminal, key by key, as a person has it. `run.sh [PATTERN]`: only the steps
# whose names match. The screens are kept in tests/out/terminal.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../environment.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trap e2e_leave EXIT
export ONLY=${1:-${ONLY:-}}
rm -rf "$here/../../out/terminal"
e2e_limit 5 python3 "$here/repl.py" "$E2E_PLACE" "$here/../../out/terminal"
