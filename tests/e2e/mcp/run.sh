#!/usr/bin/env bash
# The official MCP clients and the conformance suite against `consort mcp` and `consort serve
# --http`. `run.sh [PART [PATTERN]]`: only this part, and of it only the checks whose names match.
# The last line counts everything: `N passed, N failed`.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# With the caller's environment, which may say which registries are used.
[ -n "${E2E_ENVIRONMENT:-}" ] || "$here/install.sh" || exit 2
. "$here/../environment.sh"
cache=$CONSORT_TEST_CACHE/mcp
place=$E2E_PLACE
mkdir -m 700 "$place/workspace"
# Nobody is there to be asked.
mkdir -p "$XDG_CONFIG_HOME/consort"
printf '[approval]\ncompile-file = "allow"\nmodify-running-code = "allow"\nedit-file = "allow"\nrestart-image = "allow"\n' \
    >"$XDG_CONFIG_HOME/consort/config.toml"
export CONSORT_WORKSPACE=$place/workspace
touch "$CONSORT_WORKSPACE/consort.toml"
leave() {
    "$CONSORT_BIN" stop --workspace "$CONSORT_WORKSPACE" >/dev/null 2>&1
    e2e_leave
}
trap leave EXIT

# The conformance suite and the newer clients need a newer Node than some systems have.
node=$cache/node_modules/node-linux-$([ "$(uname -m)" = x86_64 ] && echo x64 || echo arm64)/bin/node
[ -x "$node" ] || node=node
export NODE=$node
# The scripts import packages from the cache, without a copy of it beside them.
cp "$here"/*.mjs "$place/" 2>/dev/null
ln -s "$cache/node_modules" "$place/node_modules"

passed=0 failed=0
part() {
    local name=$1 log=$place/$1.log
    shift
    printf -- '-- %s\n' "$name"
    e2e_limit 20 "$@" ${pattern:+"$pattern"} 2>&1 | tee "$log"
    local status=${PIPESTATUS[0]} p f
    read -r p f < <(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -1 | sed 's/[a-z,]//g')
    sed -n "s/^FAILED  [^ ]* \(.*\)/alone: CONSORT_BIN=\$PWD\/target\/debug\/consort scripts\/isolated tests\/e2e\/mcp\/run.sh $name '\1'/p" "$log"
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0}))
    # A client that ends badly without having counted its failure is one.
    if [ "$status" != 0 ] && [ "${f:-0}" = 0 ]; then failed=$((failed + 1)); fi
}

pattern=${2:-${ONLY:-}}
parts=(${1+"$1"})
[ $# -gt 0 ] || parts=(python-v1 python-v2 python-v2-legacy typescript-v1 typescript-v2 inspector raw approval-v1 approval-v2 conformance)
for name in "${parts[@]}"; do
    case $name in
    python-v1) part "$name" "$cache/venv-v1/bin/python" "$here/client_v1.py" ;;
    python-v2) part "$name" "$cache/venv-v2/bin/python" "$here/client_v2.py" ;;
    python-v2-legacy) part "$name" env MCP_MODE=legacy "$cache/venv-v2/bin/python" "$here/client_v2.py" ;;
    typescript-v1) part "$name" "$node" "$place/client_v1.mjs" ;;
    typescript-v2) part "$name" "$node" "$place/client_v2.mjs" ;;
    inspector) part "$name" "$node" "$place/inspector.mjs" ;;
    approval-v1) part "$name" "$cache/venv-v1/bin/python" "$here/approval.py" ;;
    approval-v2) part "$name" "$cache/venv-v2/bin/python" "$here/approval.py" ;;
    raw) part "$name" "$cache/venv-v1/bin/python" "$here/raw.py" ;;
    conformance) part "$name" "$node" "$place/conformance.mjs" ;;
    *) echo "no part $name" >&2; exit 2 ;;
    esac
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
