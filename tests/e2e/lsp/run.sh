#!/usr/bin/env bash
# pytest-lsp's client against `consort lsp`. Arguments go to pytest: `run.sh -k PATTERN` runs the
# tests whose names match.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../environment.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trap e2e_leave EXIT
python=$CONSORT_TEST_CACHE/pytest-lsp/bin/python
[ -x "$python" ] || { echo "error: no $python; run scripts/test-tools python" >&2; exit 1; }
cd "$here"
e2e_limit 20 "$python" -m pytest -p no:cacheprovider --basetemp="$E2E_PLACE/t" "$@"
