#!/usr/bin/env bash
# The extension as it is packaged, in VS Code's workbench (code-server, on loopback) in headless Chromium, against $CONSORT_BIN.
# Screenshots go to tests/out/vscode, in a dark and a light theme. ONLY=PATTERN runs the steps whose names match.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
: "${CONSORT_BIN:?the consort to test}"
tools=${CONSORT_TEST_CACHE:-$HOME/.cache/consort-test}/vscode
node=$tools/node/current/bin/node
code=$tools/cs/node_modules/code-server
out=$root/tests/out/vscode
vsix=$root/editors/vscode/consort.vsix
[ -x "$node" ] || { echo "run scripts/test-tools vscode first" >&2; exit 2; }
[ -f "$vsix" ] || { echo "package the extension first: npm run package in editors/vscode" >&2; exit 2; }
mkdir -p "$out"

place=$(mktemp -d)
group=
finish() {
  # The server has a process group of its own: extension host, terminals and language server are in it.
  if [ -n "$group" ]; then kill -- "-$group" 2>/dev/null || true; wait "$group" 2>/dev/null || true; fi
  (cd "$place/telegraph" && "$CONSORT_BIN" stop >/dev/null 2>&1) || true
  rm -rf "$place"
  # What VS Code and Chromium leave where the session keeps its sockets; only in a place that is the test's own.
  if [ -n "${CONSORT_TEST_PLACE:-}" ]; then rm -rf "$CONSORT_TEST_PLACE"/runtime/vscode-*.sock "$CONSORT_TEST_PLACE"/runtime/dconf; fi
}
trap finish EXIT

export HOME=$place/home XDG_CONFIG_HOME=$place/home/.config XDG_DATA_HOME=$place/home/.local/share TMPDIR=$place/tmp
mkdir -p "$HOME" "$TMPDIR" "$place/user/User"
# No gallery: the workbench asks no outside host then.
export EXTENSIONS_GALLERY='{"serviceUrl":""}'
cp -r "$root/examples/telegraph" "$place/telegraph"
cp "$here"/workspace/* "$place/telegraph/"
# Not on PATH, which a login shell makes anew for the extension host: where `cargo install` puts it.
mkdir -p "$HOME/.cargo/bin"
ln -s "$CONSORT_BIN" "$HOME/.cargo/bin/consort"
"$node" "$here/settings.mjs" >"$place/user/User/settings.json"
echo "auth: none" >"$place/cs.yaml"
common=(--config "$place/cs.yaml" --user-data-dir "$place/user" --extensions-dir "$place/ext")
"$node" "$code/out/node/entry.js" "${common[@]}" --install-extension "$vsix" >/dev/null

port=$("$node" -e 's=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
setsid "$node" "$code/out/node/entry.js" "${common[@]}" --auth none --bind-addr "127.0.0.1:$port" --disable-telemetry \
  --disable-update-check --disable-workspace-trust --disable-getting-started-override >"$out/code-server.log" 2>&1 9>&- &
group=$!
for _ in $(seq 150); do
  curl -fsS "http://127.0.0.1:$port/healthz" >/dev/null 2>&1 && break
  sleep 0.2
done
export NODE_PATH=$tools/driver/node_modules
timeout 1200 "$node" "$here/e2e.mjs" "http://127.0.0.1:$port" "$place" "$out"
