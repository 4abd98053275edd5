#!/bin/sh
# Build a core and a fasl with the given SBCL (default: sbcl) in a temporary directory, test both,
# then the checker; and clean up. The last line counts: the checker's parts, each a script of its
# own, count as one test each.
#
#   lisp/tests/run.sh [SBCL [PART [NAME...]]...]
#   lisp/tests/run.sh SBCL without PART...
#
# Parts: image programs kinds loaded systems dependencies plan confined attacks reading copies chain
# expand real-files.
#
# NAMEs behind a part select its tests: those that have one of them in their name, in which hyphens
# stand for spaces. With CONSORT_TEST_COSTS set, the processor time of the dearest tests of `image`
# is printed, and after each part that of all so far.
#   lisp/tests/run.sh sbcl image profile-a-hot-spot
#   lisp/tests/run.sh sbcl programs unused
#   lisp/tests/run.sh sbcl plan circular-dependency
#
# Nothing of the user's or of the machine comes in but SBCL: the environment has what is set below
# and nothing else. ASDF finds no system but those that a test names.
set -eu
LC_ALL=C
export LC_ALL
parts='image programs kinds loaded systems dependencies plan confined attacks reading copies chain expand real-files'
name=${1:-sbcl}
[ $# = 0 ] || shift
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $parts
part_p() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }
if [ "$1" = without ]; then
    shift
    left=
    for part in $parts; do
        case " $* " in *" $part "*) ;; *) left="$left $part" ;; esac
    done
    # shellcheck disable=SC2086
    set -- $left
fi
part_p "$1" || { echo "there is no part $1; parts: $parts"; exit 2; }
sbcl=$(command -v "$name") || { echo "there is no program $name"; exit 2; }
case $sbcl in /*) ;; *) sbcl=$(pwd)/$sbcl ;; esac
lisp=$(cd "$(dirname "$0")/.." && pwd)
cache=${CONSORT_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/consort-test}/lisp-fasls
scratch=$(mktemp -d "${TMPDIR:-/tmp}/consort-lisp.XXXXXX")
scratch=$(cd "$scratch" && pwd -P)
plain=
trap 'rm -rf "$scratch" ${plain:+"$plain"}' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$scratch/home/.config" "$scratch/home/.cache" "$scratch/home/.local/share" "$scratch/tmp" "$scratch/fasls"
mkdir -m 700 "$scratch/runtime"
# A cache that cannot be written is done without.
{ mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null || cache=$scratch/fasls

# Consort is one package, and the build cannot tell a redefinition from a macro that is loaded after
# it was compiled.
twice=$(grep -rhoE '^\((defun|defmacro|defgeneric|define-internal|define-operation|defvar|defparameter|define-global) [^ ()]+' "$lisp/src" |
    sed 's/^[^ ]* //' | sort | uniq -d)
[ -z "$twice" ] || { echo "defined more than once in lisp/src:" $twice; exit 1; }

# Only sbcl.lisp and sbcl/ name SBCL's internals. Two names of these packages are documented.
inside='(kernel|impl|int|sys|c|pcl|vm|di|debug|unix|fasl|disassem|bignum|walker)'
outside=$(cd "$lisp/src" && find . -name '*.lisp' ! -path ./sbcl.lisp ! -path './sbcl/*' -exec sed -E 's/;.*//; s/sb-(sys:system-area-pointer|debug:list-backtrace)//g' {} + |
    grep -iE "[( '\"]sb-$inside(:|\")" || true)
[ -z "$outside" ] || { echo "internals of SBCL named outside of lisp/src/sbcl*:" "$outside"; exit 1; }

# clean COMMAND...: run it in the environment of the tests. What the leak check knows its processes
# by goes with them.
clean() {
    set -- PATH="$(getconf PATH)" HOME="$scratch/home" TMPDIR="$scratch/tmp" \
        XDG_CONFIG_HOME="$scratch/home/.config" XDG_CACHE_HOME="$scratch/home/.cache" XDG_DATA_HOME="$scratch/home/.local/share" \
        XDG_STATE_HOME="$scratch/home/.local/state" XDG_RUNTIME_DIR="$scratch/runtime" XDG_CONFIG_DIRS="$scratch/home" XDG_DATA_DIRS="$scratch/home" \
        LANG=C.UTF-8 LC_ALL=C.UTF-8 TERM=dumb TZ=UTC \
        CL_SOURCE_REGISTRY='(:source-registry :ignore-inherited-configuration)' \
        ASDF_OUTPUT_TRANSLATIONS="(:output-translations (t (\"$scratch/fasls/\" :implementation)) :ignore-inherited-configuration)" \
        CONSORT_TEST_SBCL="$sbcl" CONSORT_TEST_SBCL_NAME="$name" CONSORT_TEST_SCRATCH="$scratch" CONSORT_TEST_FASLS="$cache" "$@"
    for kept in SBCL_HOME LD_LIBRARY_PATH CONSORT_TEST_RUN CONSORT_TEST_PLACE CONSORT_TEST_COSTS CONSORT_ACCEPT CONSORT_COPIES CONSORT_FEW_FILES CONSORT_EDITS CONSORT_EDIT_FILES CONSORT_SEED; do
        eval "value=\${$kept-}"
        [ -z "$value" ] || set -- "$kept=$value" "$@"
    done
    env -i "$@" </dev/null
}

# Both of one compilation: what is saved in the core has just been compiled, as `consort:build` does
# it.
clean CONSORT_OUTPUT="$scratch" "$sbcl" --noinform --no-sysinit --no-userinit --non-interactive --load "$lisp/boot.lisp" \
    --eval '(let ((directory (concatenate (quote string) (sb-ext:posix-getenv "CONSORT_OUTPUT") "/")))
              (consort::concatenate-files (consort::compile-sources (sb-ext:parse-native-namestring directory))
                                          (sb-ext:parse-native-namestring (concatenate (quote string) directory "consort.fasl.new")))
              (mapc (function delete-file) (directory (concatenate (quote string) directory "*.fasl")))
              (consort::save-core (sb-ext:parse-native-namestring (concatenate (quote string) directory "consort.core"))))' \
    >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log"; echo "the build failed"; exit 1; }
mv "$scratch/consort.fasl.new" "$scratch/consort.fasl"
# run ENVIRONMENT LISP-OPTION...: the tests of the image talk to images; the checker's are loaded
# into one.
run() {
    names=$1
    shift
    clean CONSORT_TEST_NAMES="$names" "$sbcl" --noinform --dynamic-space-size 4096 --no-sysinit --no-userinit --non-interactive "$@"
}

passed=0 failed=0 skipped=0
# test_part PART NAMES
test_part() {
    if [ "$1" = image ]; then
        run "$2" --load "$lisp/tests/run.lisp" | tee "$scratch/image.log"
        counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$scratch/image.log" | tail -n 1 | tr -dc '0-9 ')
        # shellcheck disable=SC2086
        set -- ${counts:-0 1 0}
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
        return
    fi
    # A secret that is in the environment from the start is in /proc/self/environ, which one that is
    # set later is not.
    count "$1" "$2" CONSORT_TEST_TOKEN=sesame CONSORT_TEST_UNSET_TOKEN=sesame-two CONSORT_TEST_OTHER_TOKEN=sesame-three CONSORT_TEST_PROXY=http://me:sesame-four@proxy:8080
    # The confinement of a copy must hold for root and for a plain user: root plays both, with the
    # first compiler.
    if [ "$1" = attacks ] && [ "$(id -u)" = 0 ] && [ -z "${CONSORT_FEW_FILES-}" ]; then
        # A directory that a plain user can get to, which those of TMPDIR need not be. Its name
        # begins as the leak check expects it.
        [ -n "$plain" ] || plain=$(mktemp -d "/tmp/$(basename "${CONSORT_TEST_PLACE:-consort-lisp}").plain.XXXXXX")
        chmod 1777 "$plain"
        count "$1" "$2" TMPDIR="$plain" CONSORT_TEST_USER=65534
    fi
}
# count PART NAMES [NAME=VALUE...]: run a part of the checker's with these variables, and count how
# it ended.
count() {
    part_of_checker=$1 names=$2 status=0
    shift 2
    clean CONSORT_TEST_NAMES="$names" "$@" "$sbcl" --noinform --dynamic-space-size 4096 --no-sysinit --no-userinit --non-interactive \
        --load "$scratch/consort.fasl" --load "$lisp/tests/check-$part_of_checker.lisp" || status=$?
    set -- "$part_of_checker" "$names"
    case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "FAILED: the part $1 ended with code $status. To run it alone: lisp/tests/run.sh $name $1${2:+ $2}"
        ;;
    esac
}
while [ $# -gt 0 ]; do
    part=$1 names=
    shift
    while [ $# -gt 0 ] && ! part_p "$1"; do
        names="$names${names:+ }$1"
        shift
    done
    test_part "$part" "$names"
    [ -z "${CONSORT_TEST_COSTS-}" ] || { echo "processor time until the end of $part:"; times; }
done
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" = 0 ]
