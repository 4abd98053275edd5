#!/bin/sh
# Build a core and a fasl with the given SBCL (default: sbcl) in a temporary directory, test both, and clean up.
#   lisp/tests/run.sh [SBCL]
set -eu
sbcl=${1:-sbcl}
lisp=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/consort-lisp-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM HUP

build() {
    CONSORT_OUTPUT=$scratch/$1 $sbcl --noinform --no-sysinit --no-userinit --non-interactive \
        --load "$lisp/boot.lisp" --eval '(consort:build)' >"$scratch/build.log" 2>&1 </dev/null ||
        { cat "$scratch/build.log"; echo "building $1 failed"; exit 1; }
}
build consort.core
build consort.fasl
CONSORT_TEST_SBCL=$sbcl CONSORT_TEST_SCRATCH=$scratch $sbcl --noinform --dynamic-space-size 4096 --no-sysinit --no-userinit --non-interactive \
    --load "$lisp/tests/run.lisp" </dev/null
