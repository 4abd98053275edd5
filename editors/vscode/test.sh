#!/usr/bin/env bash
# Types, unit tests, and the package: what `make test` asks of the extension without an editor. scripts/test-tools has installed the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Packaging needs a newer Node than some systems have.
PATH=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/vscode/node/current/bin:$PATH
node build.mjs
npx --no-install tsc -p .
npx --no-install tsc -p src/webview
node build.mjs tests
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
node --test --test-reporter=spec dist/test/*.test.mjs >"$log" || status=$?
cat "$log"
npm run --silent package >/dev/null
size=$(wc -c <consort.vsix)
echo "consort.vsix: $size bytes"
[ "$size" -lt 5000000 ] || { echo "the package is larger than 5 MB"; status=1; }
# For one platform, with a program in it; what the program is makes no difference here.
npm run --silent package -- --bundle /bin/true >/dev/null
bundled=$(ls consort-*-*.vsix)
if ! python3 -m zipfile -l "$bundled" | grep -q "^extension/bin/consort " || [ -e bin ]; then echo "$bundled has no program in it"; status=1; fi
rm -f "$bundled"
awk '/^ℹ pass /{p=$3} /^ℹ fail /{f=$3} /^ℹ skipped /{s=$3} END{print p+0 " passed, " f+0 " failed" (s > 0 ? ", " s " skipped" : "")}' "$log"
exit $status
