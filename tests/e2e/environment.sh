# Sourced by the run.sh of each kind of client, after `set`: the environment that its programs get,
# the same on every machine, and how long to wait. Nothing of the caller's comes in but what is
# named here; without scripts/isolated the run gets directories of its own.
#
# Afterwards: $E2E_PLACE, a directory that `e2e_leave` removes; $CONSORT_TEST_PATIENCE, in
# milliseconds; `e2e_limit SECONDS COMMAND...`.

: "${CONSORT_BIN:?the consort to test}"
if [ -z "${E2E_ENVIRONMENT:-}" ]; then
    CONSORT_TEST_CACHE=${CONSORT_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/consort-test}
    CONSORT_BIN=$(cd "$(dirname "$CONSORT_BIN")" && pwd)/$(basename "$CONSORT_BIN")
    keep=(PATH CONSORT_BIN CONSORT_TEST_CACHE CONSORT_TEST_RUN CONSORT_TEST_PATIENCE ONLY)
    # The variables that scripts/isolated has set.
    if [ -n "${CONSORT_TEST_PLACE:-}" ]; then
        keep+=(CONSORT_TEST_PLACE CONSORT_MEMORY_FACTS HOME TMPDIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CACHE_HOME)
        keep+=(CL_SOURCE_REGISTRY ASDF_OUTPUT_TRANSLATIONS SBCL_HOME)
    fi
    clean=(E2E_ENVIRONMENT=yes LC_ALL=C.UTF-8 LANG=C.UTF-8 TZ=UTC TERM=xterm-256color SHELL=/bin/bash USER=tester LOGNAME=tester)
    # Python writes UTF-8 whatever the locale is called, and nothing into the work tree; git and
    # SBCL read no one's configuration.
    clean+=(PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null)
    for name in "${keep[@]}"; do
        if [ -n "${!name:-}" ]; then clean+=("$name=${!name}"); fi
    done
    exec env -i "${clean[@]}" bash "$0" "$@"
fi

E2E_PLACE=$(mktemp -d "${TMPDIR:-/tmp}/consort-e2e.XXXXXX")
if [ -z "${CONSORT_TEST_PLACE:-}" ]; then
    mkdir -m 700 "$E2E_PLACE"/{home,config,data,state,runtime}
    mkdir -p "$CONSORT_TEST_CACHE/xdg"
    export HOME=$E2E_PLACE/home XDG_CONFIG_HOME=$E2E_PLACE/config XDG_DATA_HOME=$E2E_PLACE/data XDG_STATE_HOME=$E2E_PLACE/state
    export XDG_RUNTIME_DIR=$E2E_PLACE/runtime XDG_CACHE_HOME=$CONSORT_TEST_CACHE/xdg
fi
mkdir -m 700 "$E2E_PLACE/tmp"
export TMPDIR=$E2E_PLACE/tmp
e2e_leave() { rm -rf "$E2E_PLACE"; }

# How long what must come may take: two minutes on an ordinary machine, and in proportion where
# starting programs and computing, looked at now, take longer. Nothing asserts that anything comes
# sooner, so this only says when a test gives up.
if [ -z "${CONSORT_TEST_PATIENCE:-}" ]; then
    CONSORT_TEST_PATIENCE=$(python3 - <<'PYTHON'
import hashlib, subprocess, sys, time
ORDINARY = 0.5
begun = time.monotonic()
for _ in range(5):
    subprocess.run([sys.executable, "-S", "-c", "import json"], check=True)
    data = b""
    for _ in range(100_000):
        data = hashlib.sha256(data).digest()
took = time.monotonic() - begun
print(int(120_000 * min(10, max(1, took / ORDINARY))))
PYTHON
    )
    export CONSORT_TEST_PATIENCE
fi
printf 'what must come is waited for at most %d s\n' $((CONSORT_TEST_PATIENCE / 1000))

# e2e_limit TIMES COMMAND...: end it, and say so, when it takes that many times the patience.
e2e_limit() {
    local seconds=$(($1 * CONSORT_TEST_PATIENCE / 1000)) status=0
    shift
    # Not every system has it.
    command -v timeout >/dev/null || { "$@"; return; }
    timeout --kill-after=30 "$seconds" "$@" || status=$?
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then echo "FAILED: $1 was ended: it had not ended by itself within $seconds s"; fi
    return "$status"
}
