#!/bin/sh
# Build a core and a fasl with the given SBCL (default: sbcl) in a temporary directory, test both, then the checker; and clean up.
# The last line counts: the checker's parts, each a script of its own, count as one test each.
#   lisp/tests/run.sh [SBCL [PART...]]      parts: image programs kinds loaded systems dependencies confined copies expand real-files
set -eu
sbcl=${1:-sbcl}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- image programs kinds loaded systems dependencies confined copies expand real-files
lisp=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/consort-lisp-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# It is one package, and the build cannot tell a redefinition from a macro that is loaded after it was compiled.
twice=$(grep -rhoE '^\((defun|defmacro|defgeneric|define-internal|define-operation|defvar|defparameter|define-global) [^ ()]+' "$lisp/src" |
    sed 's/^[^ ]* //' | sort | uniq -d)
[ -z "$twice" ] || { echo "defined more than once in lisp/src:" $twice; exit 1; }

# Only sbcl.lisp and sbcl/ name SBCL's internals. Two names of these packages are documented.
inside='(kernel|impl|int|sys|c|pcl|vm|di|debug|unix|fasl|disassem|bignum|walker)'
outside=$(cd "$lisp/src" && find . -name '*.lisp' ! -path ./sbcl.lisp ! -path './sbcl/*' -exec sed -E 's/;.*//; s/sb-(sys:system-area-pointer|debug:list-backtrace)//g' {} + |
    grep -iE "[( '\"]sb-$inside(:|\")" || true)
[ -z "$outside" ] || { echo "internals of SBCL named outside of lisp/src/sbcl*:" "$outside"; exit 1; }

# Both of one compilation: what is saved in the core has just been compiled, as `consort:build` does it.
CONSORT_OUTPUT=$scratch $sbcl --noinform --no-sysinit --no-userinit --non-interactive --load "$lisp/boot.lisp" \
    --eval '(let ((directory (concatenate (quote string) (sb-ext:posix-getenv "CONSORT_OUTPUT") "/")))
              (consort::concatenate-files (consort::compile-sources (sb-ext:parse-native-namestring directory))
                                          (sb-ext:parse-native-namestring (concatenate (quote string) directory "consort.fasl.new")))
              (mapc (function delete-file) (directory (concatenate (quote string) directory "*.fasl")))
              (consort::save-core (sb-ext:parse-native-namestring (concatenate (quote string) directory "consort.core"))))' \
    >"$scratch/build.log" 2>&1 </dev/null || { cat "$scratch/build.log"; echo "the build failed"; exit 1; }
mv "$scratch/consort.fasl.new" "$scratch/consort.fasl"
# The tests of the image talk to images; the checker's are loaded into one.
run() { $sbcl --noinform --dynamic-space-size 4096 --no-sysinit --no-userinit --non-interactive "$@" </dev/null; }

export CONSORT_TEST_SBCL="$sbcl" CONSORT_TEST_SCRATCH="$scratch"
passed=0 failed=0
for part; do
    if [ "$part" = image ]; then
        run --load "$lisp/tests/run.lisp" | tee "$scratch/image.log"
        counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$scratch/image.log" | tail -n 1)
        counts=${counts:-0 passed, 1 failed}
        good=${counts%% *} bad=${counts#* passed, }
        passed=$((passed + good)) failed=$((failed + ${bad% failed}))
    elif run --load "$scratch/consort.fasl" --load "$lisp/tests/check-$part.lisp"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
