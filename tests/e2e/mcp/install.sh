#!/usr/bin/env bash
# Installs the official MCP clients into $CONSORT_TEST_CACHE/mcp (default
# ~/.cache/consort-test/mcp). Does nothing when they are there: a stamp holds the pins that were
# installed. Registries are the ones pip and npm are configured with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/mcp
mkdir -p "$cache"
# Two installers at once would tear each other's tree.
exec 9>"$cache/.lock"
if command -v flock >/dev/null; then flock 9; fi

pins=$(cat "$here/package.json" "$here/requirements-v1.txt" "$here/requirements-v2.txt" | cksum)
if [ "$(cat "$cache/.pins" 2>/dev/null || true)" = "$pins" ]; then
  exit 0
fi

for tool in python3 npm node; do
  command -v "$tool" >/dev/null || { echo "tests/e2e/mcp needs $tool on PATH" >&2; exit 2; }
done

for era in v1 v2; do
  rm -rf "$cache/venv-$era"
  python3 -m venv "$cache/venv-$era"
  "$cache/venv-$era/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-$era.txt"
done

rm -rf "$cache/node_modules"
cp "$here/package.json" "$cache/package.json"
(cd "$cache" && npm install --silent --no-audit --no-fund --no-package-lock)

printf '%s' "$pins" >"$cache/.pins"
echo "installed the MCP clients in $cache"
