#!/bin/sh
# Build a core and a fasl with the given SBCL (default: sbcl) in a temporary directory, test both, then the checker; and clean up.
# The last line counts: the checker's parts, each a script of its own, count as one test each.
#   lisp/tests/run.sh [SBCL]
set -eu
sbcl=${1:-sbcl}
lisp=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/consort-lisp-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM HUP

# It is one package, and the build cannot tell a redefinition from a macro that is loaded after it was compiled.
twice=$(grep -rhoE '^\((defun|defmacro|defgeneric|define-internal|define-operation|defvar|defparameter|define-global) [^ ()]+' "$lisp/src" |
    sed 's/^[^ ]* //' | sort | uniq -d)
[ -z "$twice" ] || { echo "defined more than once in lisp/src:" $twice; exit 1; }

# Only sbcl.lisp and sbcl/ name SBCL's internals. Two names of these packages are documented.
inside='(kernel|impl|int|sys|c|pcl|vm|di|debug|unix|fasl|disassem|bignum|walker)'
outside=$(cd "$lisp/src" && find . -name '*.lisp' ! -path ./sbcl.lisp ! -path './sbcl/*' -exec sed -E 's/;.*//; s/sb-(sys:system-area-pointer|debug:list-backtrace)//g' {} + |
    grep -iE "[( '\"]sb-$inside(:|\")" || true)
[ -z "$outside" ] || { echo "internals of SBCL named outside of lisp/src/sbcl*:" "$outside"; exit 1; }

build() {
    CONSORT_OUTPUT=$scratch/$1 $sbcl --noinform --no-sysinit --no-userinit --non-interactive \
        --load "$lisp/boot.lisp" --eval '(consort:build)' >"$scratch/build.log" 2>&1 </dev/null ||
        { cat "$scratch/build.log"; echo "building $1 failed"; exit 1; }
}
build consort.core
build consort.fasl
run() { $sbcl --noinform --dynamic-space-size 4096 --no-sysinit --no-userinit --non-interactive --load "$lisp/tests/$1.lisp" </dev/null; }

export CONSORT_TEST_SBCL="$sbcl" CONSORT_TEST_SCRATCH="$scratch"
run run | tee "$scratch/image.log"
counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$scratch/image.log" | tail -n 1)
passed=${counts%% *} failed=${counts#* passed, } failed=${failed% failed}
if [ -z "$counts" ]; then passed=0 failed=1; fi
for part in programs kinds loaded systems confined copies expand real-files; do
    if run "check-$part"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
