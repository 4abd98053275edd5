#!/usr/bin/env bash
# Types, unit tests, and the package: what `make test` asks of the extension without an editor.
# scripts/test-tools has installed the rest.
# `test.sh PATTERN`: only the unit tests whose names match.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${CONSORT_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/consort-test}
# Packaging needs a newer Node than some systems have. Of the environment, only what programs are
# found by: npm and Node read much else.
if [ -z "${CONSORT_UNIT_ENVIRONMENT:-}" ]; then
    exec env -i CONSORT_UNIT_ENVIRONMENT=yes PATH="$cache/vscode/node/current/bin:$PATH" HOME="$HOME" TMPDIR="${TMPDIR:-/tmp}" \
        LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1 npm_config_userconfig=/dev/null npm_config_globalconfig=/nonexistent/npmrc npm_config_update_notifier=false \
        ${CONSORT_TEST_RUN:+"CONSORT_TEST_RUN=$CONSORT_TEST_RUN"} ${UPDATE_SNAPSHOTS:+"UPDATE_SNAPSHOTS=$UPDATE_SNAPSHOTS"} bash "$PWD/test.sh" "$@"
fi
node build.mjs
npx --no-install tsc -p .
npx --no-install tsc -p src/webview
node build.mjs tests
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
chosen=()
[ $# -eq 0 ] || chosen=(--test-name-pattern="$1")
# One report for people, one to be counted.
node --test --test-reporter=spec --test-reporter-destination=stdout --test-reporter=tap --test-reporter-destination="$log" \
    ${chosen[@]+"${chosen[@]}"} dist/test/*.test.mjs || status=$?
[ "$status" = 0 ] || echo "alone: editors/vscode/test.sh 'PATTERN OF THE NAME'"
if [ $# -eq 0 ]; then
    npm run --silent package >/dev/null
    size=$(wc -c <consort.vsix)
    echo "consort.vsix: $size bytes"
    [ "$size" -lt 5000000 ] || { echo "the package is larger than 5 MB"; status=1; }
    # For one platform, with a program in it; what the program is makes no difference here.
    program=$(type -P true)
    npm run --silent package -- --bundle "$program" >/dev/null
    bundled=$(ls consort-*-*.vsix)
    if ! python3 -m zipfile -l "$bundled" | grep -q "^extension/bin/consort " || [ -e bin ]; then echo "$bundled has no program in it"; status=1; fi
    rm -f "$bundled"
fi
awk '/^# pass /{p=$3} /^# fail /{f=$3} /^# skipped /{s=$3} END{print p+0 " passed, " f+0 " failed" (s > 0 ? ", " s " skipped" : "")}' "$log"
exit $status
