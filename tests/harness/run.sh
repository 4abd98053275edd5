#!/usr/bin/env bash
# Tests of what the tests stand on: scripts/isolated shuts the machine out, tests/support/leaks
# fails for what its own command leaves and for nothing else, scripts/test-report.sh counts. `run.sh
# PATTERN`: only the tests whose name matches. The last line counts.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
. scripts/test-report.sh
. scripts/test-silence.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# leaks COMMAND...: as a stage runs one, but not patient with what is left.
leaks() { scripts/isolated env CONSORT_LEAKS_PATIENCE=1 tests/support/leaks "$@"; }
# expect STATUS WORDS COMMAND...: it ends with this status, and prints these words.
expect() {
    local wanted=$1 words=$2 status=0
    shift 2
    "$@" >"$scratch/out" 2>&1 || status=$?
    if [ "$status" != "$wanted" ] || [[ "$(cat "$scratch/out")" != *"$words"* ]]; then
        printf 'expected status %s and "%s", got %s from %s:\n' "$wanted" "$words" "$status" "$*"
        sed 's/^/  /' "$scratch/out"
        return 1
    fi
}
# comes WHAT COMMAND...: wait until the command succeeds.
comes() {
    local what=$1 until=$((SECONDS + 300))
    shift
    while ! "$@"; do
        [ "$SECONDS" -lt "$until" ] || { echo "waited in vain for $what"; return 1; }
        sleep 0.05
    done
}

a_hostile_environment_is_shut_out() {
    local name hostile=()
    for name in LANG LC_ALL LC_CTYPE LANGUAGE TERM TZ EDITOR VISUAL PAGER XDG_DATA_DIRS XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_RUNTIME_DIR \
        CL_SOURCE_REGISTRY ASDF_OUTPUT_TRANSLATIONS SBCL_HOME SBCL_CORE GIT_CONFIG_GLOBAL GIT_CONFIG_COUNT GIT_DIR PYTHONPATH PYTHONSTARTUP \
        NODE_OPTIONS NODE_PATH NPM_CONFIG_PREFIX RUST_LOG CONSORT_LOG http_proxy HTTPS_PROXY NO_COLOR CDPATH BASH_ENV DISPLAY TMUX; do
        hostile+=("$name=hostile")
    done
    mkdir -p "$scratch/bin"
    env "${hostile[@]}" "PATH=$scratch/bin:$PATH" scripts/isolated env >"$scratch/env" 2>"$scratch/err" || return
    if grep hostile "$scratch/env"; then return 1; fi
    if grep -F "$scratch/bin" "$scratch/env"; then return 1; fi
}

only_named_systems_are_found() {
    local data=$scratch/data name
    for name in asdf hostile; do
        mkdir -p "$data/common-lisp/source/$name" "$scratch/home/common-lisp/$name" "$scratch/home/.config/common-lisp/source-registry.conf.d"
        echo "(defsystem \"$name\" :version \"99\")" | tee "$data/common-lisp/source/$name/$name.asd" >"$scratch/home/common-lisp/$name/$name.asd"
    done
    echo "(:tree \"$data/\")" >"$scratch/home/.config/common-lisp/source-registry.conf.d/hostile.conf"
    echo '(error "hostile")' >"$scratch/home/.sbclrc"
    # Both compilers' homes are theirs alone; what an installation of rustup and cargo is, is asked
    # of nobody here.
    env HOME="$scratch/home" XDG_DATA_DIRS="$data" CONSORT_TEST_CACHE="${CONSORT_TEST_CACHE:?}" scripts/isolated sbcl --non-interactive \
        --eval '(require :asdf)' --eval '(print (list :hostile (asdf:find-system "hostile" nil)
                                                     :asdf (asdf:component-pathname (asdf:find-system "asdf" nil))
                                                     :known (and (asdf:find-system "cl-ppcre" nil) t)))' >"$scratch/out" 2>&1 || { cat "$scratch/out"; return 1; }
    grep -q ':HOSTILE NIL' "$scratch/out" && grep -q ':KNOWN T' "$scratch/out" && ! grep -q "$scratch" "$scratch/out" || { cat "$scratch/out"; return 1; }
}

the_directory_is_removed_and_the_status_kept() {
    local place
    expect 7 /tmp/ scripts/isolated sh -c 'echo $CONSORT_TEST_PLACE; exit 7' || return
    place=$(cat "$scratch/out")
    [ -n "$place" ] && [ ! -e "$place" ]
}

what_leaves_nothing_passes() {
    expect 0 done leaks sh -c 'f=$(mktemp); rm $f; echo done' &&
        expect 3 done leaks sh -c 'echo done; exit 3'
}
a_process_is_a_leak_and_is_ended() {
    local pid
    expect 70 'sleep 7001' leaks bash -c 'setsid sleep 7001 >/dev/null 2>&1 </dev/null & echo $! >'"$scratch/pid" || return
    pid=$(cat "$scratch/pid")
    comes "the end of process $pid" gone "$pid" || return
    # One that dropped its environment is known by where it works.
    expect 70 'sleep 7002' leaks bash -c 'cd $TMPDIR; env -i setsid sleep 7002 >/dev/null 2>&1 </dev/null & sleep 0.2'
}
a_file_is_a_leak() {
    expect 70 /tmp/left leaks sh -c 'touch $TMPDIR/left' &&
        expect 70 /runtime/left leaks sh -c 'touch $XDG_RUNTIME_DIR/left' &&
        expect 70 /home/.left leaks sh -c 'touch $HOME/.left' || return
    # Beside the place, under its name.
    expect 70 .beside leaks sh -c 'touch $CONSORT_TEST_PLACE.beside' || return
    rm -f "$(sed -n 's/^ *\(\/tmp\/.*\.beside\)$/\1/p' "$scratch/out")"
}
a_host_elsewhere_is_a_leak() {
    local directory=/tmp/consort-harness.$$
    expect 70 host.json leaks sh -c "mkdir -p $directory/a; echo '{\"workspace\": \"'\$TMPDIR'\"}' >$directory/a/host.json" || { rm -rf "$directory"; return 1; }
    rm -rf "$directory"
}
what_others_do_meanwhile_is_not_a_leak() {
    local other=/tmp/consort-others.$$ status=0 pid
    (cd / && exec env -i sleep 7003) &
    pid=$!
    expect 0 done leaks bash -c "mkdir -p $other/a; touch /dev/shm/consort-others.$$; echo '{\"workspace\": \"/else\"}' >$other/a/host.json; echo done" || status=1
    kill "$pid" 2>/dev/null || { echo "another's process was ended"; status=1; }
    wait "$pid" 2>/dev/null
    rm -rf "$other" "/dev/shm/consort-others.$$"
    return $status
}
# tree: a work tree with the script in it.
tree() {
    mkdir -p "$1/tests/support"
    cp tests/support/leaks "$1/tests/support/leaks"
    (cd "$1" && git init -q . && echo one >file && git add . && git -c user.name=t -c user.email=t@localhost commit -qm one)
}
a_changed_work_tree_is_found() {
    local tree=$scratch/tree
    tree "$tree" || return
    local leaks=("env" "CONSORT_TEST_SERIES=consort-h$$" "CONSORT_LEAKS_PATIENCE=1" "$tree/tests/support/leaks")
    echo two >"$tree/file"
    "${leaks[@]}" --list >"$scratch/before"
    expect 0 '' "${leaks[@]}" --since "$scratch/before" || return
    touch /tmp/consort-others.$$
    expect 0 '' "${leaks[@]}" --since "$scratch/before" || { rm -f /tmp/consort-others.$$; return 1; }
    rm -f /tmp/consort-others.$$
    # Also of a file that was another than the committed one before.
    echo three >"$tree/file"
    expect 70 file "${leaks[@]}" --since "$scratch/before" || return
    echo two >"$tree/file"
    touch "$tree/new"
    expect 70 new "${leaks[@]}" --since "$scratch/before" || return
    rm "$tree/new"
    mkdir "/tmp/consort-h$$.left"
    expect 70 "consort-h$$.left" "${leaks[@]}" --since "$scratch/before" || { rmdir "/tmp/consort-h$$.left"; return 1; }
    rmdir "/tmp/consort-h$$.left"
}
gone() { ! grep -qs sleep "/proc/$1/cmdline"; }
# ended PID: a child of this shell has ended, also when nobody has waited for it yet.
ended() { [[ "$(ps -o stat= -p "$1")" =~ ^(Z|$) ]]; }
an_interrupted_run_leaves_nothing() {
    local group place pid signal
    for signal in TERM INT; do
        rm -f "$scratch/ready"
        set -m
        # A caller may have had SIGINT ignored, which a shell cannot undo. The command says that it
        # is ready without a child: bash drops a SIGINT that comes while it waits for a child that
        # has just ended.
        env --default-signal=INT,TERM "$root/scripts/isolated" env CONSORT_LEAKS_PATIENCE=1 tests/support/leaks bash -c 'setsid sleep 7004 >/dev/null 2>&1 </dev/null &
            echo "$! $CONSORT_TEST_PLACE" >'"$scratch/ready"'; exec sleep 7005' >"$scratch/out" 2>&1 &
        group=$!
        set +m
        comes "the command's start" test -s "$scratch/ready" || return
        read -r pid place <"$scratch/ready"
        kill -"$signal" -- "-$group"
        comes "the end of the command after $signal" ended "$group" || { kill -KILL -- "-$group"; return 1; }
        wait "$group"
        comes "the end of process $pid after $signal" gone "$pid" || return
        comes "the end of $place after $signal" test ! -e "$place" || return
    done
}

counts_are_read_from_logs() {
    printf 'test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured\ntest result: ok. 4 passed; 0 failed; 0 ignored\n' >"$scratch/cargo"
    printf '=== 5 passed, 1 failed, 2 skipped in 3.21s ===\n' >"$scratch/pytest"
    printf 'lsp: 2 passed, 1 failed\n10 passed, 1 failed, 3 skipped, 2 flaky\n' >"$scratch/plain"
    printf '10 passed, 0 failed\n1 flaky\n' >"$scratch/alone"
    local log wanted
    for log in 'cargo:7 1 2 0' 'pytest:5 1 2 0' 'plain:10 1 3 2' 'alone:10 0 0 1'; do
        wanted=${log#*:}
        [ "$(count "$scratch/${log%%:*}")" = "$wanted" ] || { echo "${log%%:*}: $(count "$scratch/${log%%:*}") and not $wanted"; return 1; }
    done
}
failed_tests_are_named_with_their_command() {
    cat >"$scratch/log" <<'END'
running 2 tests
failures:

---- a::b stdout ----
thread 'a::b' panicked at x.rs:1:
waited in vain for the moon

failures:
    a::b
    c

test result: FAILED. 0 passed; 2 failed; 0 ignored
error: test failed, to rerun pass `-p consort-tests --test faults`
END
    [ "$(alone "$scratch/log" 'P ')" = 'P cargo test --locked -p consort-tests --test faults -- --exact a::b c' ] || { alone "$scratch/log" 'P '; return 1; }
    telling "$scratch/log" | grep -q 'waited in vain for the moon'
}

# gives LOG LINE...: what is read from standard input as a stage's log has these verdicts.
gives() {
    local log=$scratch/$1.log
    shift
    cat >"$log"
    printf '%s\n' "$@" | diff - <(verdicts "$log")
}
failures_and_flaky_steps_are_named_with_a_reason() {
    gives rust 'FAILED a::b: waited in vain for the moon' 'FAILED c: Error: no such file' 'FAILED d: assertion `left == right` failed' \
        'FAILED -p consort-tests --test crashed: process didn'"'"'t exit successfully: `x` (signal: 11, SIGSEGV)' <<'END' || return
running 3 tests
..
failures:

---- a::b stdout ----
some output
thread 'a::b' (4711) panicked at x.rs:1:
waited in vain for the moon
note: run with `RUST_BACKTRACE=1`

---- c stdout ----
Error: no such file

---- d stdout ----

thread 'd' panicked at y.rs:2:3:
assertion `left == right` failed
  left: 1

failures:
    a::b
    c
    d

test result: FAILED. 0 passed; 3 failed; 0 ignored
error: test failed, to rerun pass `-p consort-tests --test faults`
running 1 test
error: test failed, to rerun pass `-p consort-tests --test crashed`

Caused by:
  process didn't exit successfully: `x` (signal: 11, SIGSEGV)
error: 2 targets failed:
    `-p consort-tests --test faults`
END
    gives lisp 'FAILED stops-in-a-loop: (= 1 2) is false' 'FAILED a circular dependency: told "x": not y' 'FAILED the part plan ended with code 1.' <<'END' || return
FAILED stops-in-a-loop
  (= 1 2) is false
FAILED a circular dependency
  told "x": not y
plan: 1 failed
FAILED: the part plan ended with code 1.
1 passed, 2 failed
END
    gives pytest 'FAILED test_documents.py::test_late: TimeoutError: no answer' 'FAILED test_rename.py::test_name' <<'END' || return
E   TimeoutError: no answer
=========================== short test summary info ============================
FAILED test_documents.py::test_late - TimeoutError: no answer
FAILED test_rename.py::test_name
========================= 2 failed, 3 passed in 1.00s ==========================
END
    gives mcp 'FAILED python-v1 a_copy_is_made: AssertionError: 1 is not 2' 'FAILED typescript-v1 names: Error: closed' <<'END' || return
ok      python-v1 another
FAILED  python-v1 a_copy_is_made
  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1, in run
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "y.py", line 2, in f
    |     raise AssertionError
    | AssertionError: 1 is not 2
    +------------------------------------
FAILED  typescript-v1 names
Error: closed
    at file:///x.mjs:1:2
alone: tests/e2e/mcp/run.sh python-v1 'a_copy_is_made'
1 passed, 2 failed
END
    gives nvim 'FAILED a value is shown: lsp_test.lua:12: waited 120 s in vain for it' 'FAILED two windows are read: TimeoutError: nothing came' \
        'flaky one window is read: AssertionError' <<'END' || return
ok   another
FAIL a value is shown
lsp_test.lua:12: waited 120 s in vain for it
stack traceback:
1 passed, 1 failed
AGAIN one window is read
Traceback (most recent call last):
  File "person.py", line 1, in attempt
AssertionError
alone: tests/e2e/nvim/run.sh person one_window
ok   one window is read
AGAIN two windows are read
Traceback (most recent call last):
AssertionError: no
FAIL two windows are read
Traceback (most recent call last):
TimeoutError: nothing came
1 flaky
1 passed, 1 failed
END
    gives vscode 'FAILED a form: it fails: AssertionError [ERR_ASSERTION]: Expected values to be equal: 2 !== 1' 'FAILED a list' \
        'FAILED the last one: not run after three failures' 'flaky a value, at its line: Error: waited 120 s in vain for it' <<'END' || return
   1.0 s  ok      another
   2.0 s  AGAIN   a value, at its line
Error: waited 120 s in vain for it
    at Workbench.until
alone: tests/e2e/vscode/run.sh 'a value'
   3.0 s  ok      a value, at its line
   4.0 s  AGAIN   a form: it fails
Error: once
   5.0 s  FAILED  a form: it fails
AssertionError [ERR_ASSERTION]: Expected values to be equal:

2 !== 1

FAILED a form: it fails
FAILED a list
FAILED the last one
  not run after three failures
2 passed, 3 failed, 1 flaky
END
    [ "$(count "$scratch/vscode.log")" = '2 3 0 1' ] && [ "$(count "$scratch/nvim.log")" = '1 1 0 1' ] || { count "$scratch/vscode.log"; count "$scratch/nvim.log"; return 1; }
    gives unit 'FAILED a line is read: TypeError: x is not a function' <<'END'
✖ a line is read (1.2ms)
ℹ fail 1

✖ failing tests:

test at dist/test/x.test.mjs:1:2
✖ a line is read (1.2ms)
  TypeError: x is not a function
      at y
END
}
steps_in_vs_code_begin_with_the_same_files_and_are_told_as_they_are_counted() {
    local node=${CONSORT_TEST_CACHE:?}/vscode/node/current/bin/node place=$scratch/steps
    [ -x "$node" ] || { echo "run scripts/test-tools vscode first"; return 1; }
    mkdir -p "$place/telegraph/directory"
    echo one >"$place/telegraph/file"
    echo two >"$place/telegraph/directory/file"
    cp -r "$place/telegraph" "$place/original"
    cat >"$place/run.mjs" <<'END'
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
const [root, place] = process.argv.slice(2)
const { Steps } = await import(`${root}/tests/e2e/vscode/steps.mjs`)
const nothing = async () => undefined
const steps = new Steps({ clear: nothing, ready: nothing, folder: nothing, described: async () => 'seen', shot: nothing }, place, '')
const file = (name) => `${place}/telegraph/${name}`
let tries = 0
await steps.step('a step, that is late', async () => {
  writeFileSync(file('added'), '')
  writeFileSync(file('file'), 'other')
  rmSync(file('directory/file'))
  if (++tries === 1) throw new Error('waited in vain')
})
await steps.step('a step: it fails', async () => {
  assert.ok(!existsSync(file('added')))
  assert.equal(readFileSync(file('file'), 'utf8'), 'one\n')
  assert.equal(readFileSync(file('directory/file'), 'utf8'), 'two\n')
  throw new Error('as it should')
})
steps.finish()
END
    ONLY='' CONSORT_BIN=$(type -P true) "$node" "$place/run.mjs" "$root" "$place" | gives steps 'FAILED a step: it fails: Error: as it should' \
        'flaky a step, that is late: Error: waited in vain' && [ "$(count "$scratch/steps.log")" = '1 1 0 1' ] || { cat "$scratch/steps.log"; return 1; }
}
the_end_of_a_run_is_short_and_has_all_stages() {
    local i
    for i in $(seq 100); do printf 'FAILED test-%d\n  why %d\n' "$i" "$i"; done >"$scratch/many.log"
    printf '   1.0 s  AGAIN   a step\nError: late\n   2.0 s  ok      a step\n1 passed, 0 failed, 1 flaky\n' >"$scratch/few.log"
    printf 'error[E0425]: cannot find value\n  --> x.rs:1:2\n' >"$scratch/build.log"
    closing "$scratch" >"$scratch/closing"
    [ ! -s "$scratch/closing" ] || return
    closing "$scratch" many build few >"$scratch/closing"
    [ "$(wc -l <"$scratch/closing")" -le 42 ] && grep -q 'many: FAILED test-1: why 1' "$scratch/closing" && grep -q 'many: and .* more' "$scratch/closing" &&
        grep -q 'build: FAILED error\[E0425\]: cannot find value' "$scratch/closing" && grep -q 'few: flaky a step: Error: late' "$scratch/closing" || { cat "$scratch/closing"; return 1; }
}

warnings_of_a_build_fail_its_stage() {
    local text
    expect 0 '' no_warnings true || return
    expect 0 'warnings: none' no_warnings echo 'the warnings: none' || return
    expect 1 'it broke' no_warnings sh -c 'echo it broke; exit 101' || return
    for text in 'warning: used `unwrap()`' 'warning[E1]: x' 'error: unused' '\033[1m\033[33mwarning\033[0m: length comparison'; do
        expect 1 "${text##*: }" no_warnings printf 'note: a crate\n'"$text"'\n' || return
    done
}
hangs() { end_silent "$1" "$2" 1; grep -q HUNG "$2"; }
a_stage_that_says_nothing_is_ended_and_told() {
    local group status
    set -m
    {
        bash -c 'echo begun; sleep 7006' >"$scratch/hung.log" 2>&1
        echo $? >"$scratch/hung.status"
    } &
    group=$!
    set +m
    comes "the stage's output" grep -qs begun "$scratch/hung.log" || return
    end_silent "$group" "$scratch/hung.log" 1000
    ! grep HUNG "$scratch/hung.log" || return
    comes "the end of a stage that hangs" hangs "$group" "$scratch/hung.log" || { kill -KILL -- "-$group"; return 1; }
    comes "the stage's own end" test -s "$scratch/hung.status" || { kill -KILL -- "-$group"; return 1; }
    wait "$group"
    status=$(cat "$scratch/hung.status")
    [ "$status" != 0 ] && grep -q 'sleep 7006' "$scratch/hung.log" && telling "$scratch/hung.log" | grep -q HUNG || { cat "$scratch/hung.log"; return 1; }
}

for name in $(declare -F | awk '{ print $3 }' | grep -vxE 'leaks|expect|comes|gone|ended|hangs|tree|count|telling|alone|verdicts|no_warnings|closing|gives|seconds_silent|end_silent' | grep -E -- "${1:-}"); do
    if "$name" >"$scratch/told" 2>&1; then
        printf '   ok   %s\n' "$name"
        passed=$((passed + 1))
    else
        printf '   FAILED %s\n' "$name"
        sed 's/^/       /' "$scratch/told"
        printf '       alone: scripts/isolated tests/support/leaks tests/harness/run.sh %s\n' "$name"
        failed=$((failed + 1))
    fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
