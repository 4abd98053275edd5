#!/usr/bin/env bash
# pytest-lsp's client against `consort lsp`. Arguments go to pytest.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CONSORT_BIN:?the consort to test}"
python=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/pytest-lsp/bin/python
[ -x "$python" ] || { echo "error: no $python; run scripts/test-tools python" >&2; exit 1; }
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
cd "$here"
PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider --basetemp="$base/t" "$@"
