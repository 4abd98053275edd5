#!/usr/bin/env bash
# The extension as it is packaged, in VS Code's workbench (code-server, on loopback) in headless
# Chromium, against $CONSORT_BIN. Screenshots go to tests/out/vscode, in a dark and a light theme.
# `run.sh [PATTERN]`: only the steps whose names match; ONLY=PATTERN says the same.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../environment.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
tools=$CONSORT_TEST_CACHE/vscode
node=$tools/node/current/bin/node
code=$tools/cs/node_modules/code-server
out=$root/tests/out/vscode
vsix=$root/editors/vscode/consort.vsix
[ -x "$node" ] || { echo "run scripts/test-tools vscode first" >&2; exit 2; }
[ -f "$vsix" ] || { echo "package the extension first: npm run package in editors/vscode" >&2; exit 2; }
if [ $# -gt 0 ]; then export ONLY=$1; fi
mkdir -p "$out"
# An older log would say an older port.
rm -f "$out"/failure-* "$out/code-server.log"

place=$E2E_PLACE
group=
finish() {
  # The server has a process group of its own: extension host, terminals and language server are in
  # it.
  if [ -n "$group" ]; then kill -- "-$group" 2>/dev/null || true; wait "$group" 2>/dev/null || true; fi
  # The place itself is the workspace of the window without a folder. An extension that was ended
  # may have left a host that waits for it in any of the folders.
  for workspace in "$place" "$place"/*/; do (cd "$workspace" && "$CONSORT_BIN" stop >/dev/null 2>&1) || true; done
  # Files that VS Code and Chromium leave where the session keeps its sockets.
  rm -rf "$XDG_RUNTIME_DIR"/vscode-*.sock "$XDG_RUNTIME_DIR"/dconf
  e2e_leave
}
trap finish EXIT
trap 'exit 143' TERM INT

export HOME=$place/home XDG_CONFIG_HOME=$place/home/.config XDG_DATA_HOME=$place/home/.local/share
mkdir -p "$place/user/User" "$HOME"
# No gallery: the workbench asks no outside host then.
export EXTENSIONS_GALLERY='{"serviceUrl":""}'
cp -r "$root/examples/telegraph" "$place/telegraph"
cp "$here"/workspace/* "$place/telegraph/"
cp -r "$place/telegraph" "$place/original"
# Not on PATH, which a login shell makes anew for the extension host: where `cargo install` puts it.
mkdir -p "$HOME/.cargo/bin"
ln -s "$CONSORT_BIN" "$HOME/.cargo/bin/consort"
"$node" "$here/settings.mjs" >"$place/user/User/settings.json"
echo "auth: none" >"$place/cs.yaml"
common=(--config "$place/cs.yaml" --user-data-dir "$place/user" --extensions-dir "$place/ext")
# The tests' own extension, which says what the editor knows.
python3 - "$here/probe" "$place/probe.vsix" <<'PYTHON'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[2], "w") as package:
    for name in sorted(os.listdir(sys.argv[1])):
        package.write(os.path.join(sys.argv[1], name), "extension/" + name)
PYTHON
for extension in "$vsix" "$place/probe.vsix"; do
  "$node" "$code/out/node/entry.js" "${common[@]}" --install-extension "$extension" >"$out/install.log" 2>&1 || { cat "$out/install.log"; exit 1; }
done

export CONSORT_PROBE=$place/probe.json
cd "$place"
setsid "$node" "$code/out/node/entry.js" "${common[@]}" --auth none --bind-addr 127.0.0.1:0 --disable-telemetry \
  --disable-update-check --disable-getting-started-override >"$out/code-server.log" 2>&1 9>&- &
group=$!
# The program prints the port it got.
end=$((SECONDS + CONSORT_TEST_PATIENCE / 1000))
until address=$(sed -n 's/.*HTTP server listening on \(http:[^ ]*[0-9]\).*/\1/p' "$out/code-server.log" 2>/dev/null | head -1) && [ -n "$address" ]; do
  if ! kill -0 "$group" 2>/dev/null || [ "$SECONDS" -gt "$end" ]; then
    echo "FAILED: code-server does not listen; tests/out/vscode/code-server.log:"
    cat "$out/code-server.log"
    exit 1
  fi
  sleep 0.1
done
export NODE_PATH=$tools/driver/node_modules
e2e_limit 15 "$node" "$here/e2e.mjs" "$address" "$place" "$out"
