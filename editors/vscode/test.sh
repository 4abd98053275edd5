#!/usr/bin/env bash
# Types, unit tests, and the package: what `make test` asks of the extension without an editor. scripts/test-tools has installed the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
node build.mjs
npx --no-install tsc -p .
npx --no-install tsc -p src/webview
node build.mjs tests
status=0
node --test --test-reporter=spec dist/test/ || status=$?
npx --no-install vsce package --no-dependencies --out consort.vsix >/dev/null
size=$(wc -c <consort.vsix)
echo "consort.vsix: $size bytes"
[ "$size" -lt 5000000 ] || { echo "the package is larger than 5 MB"; status=1; }
exit $status
