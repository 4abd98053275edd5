# Sourced by the scripts beside it: paths, and how packages are installed.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${CONSORT_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/consort-test}
# Debian's directory of the sources of Lisp systems.
LIBRARIES=/usr/share/common-lisp/source

# Sorting, comparing and matching in scripts does not depend on the caller's locale.
case $(uname -s) in Darwin) UTF8_LOCALE=en_US.UTF-8 ;; *) UTF8_LOCALE=C.UTF-8 ;; esac
unset LANG LANGUAGE ${!LC_*}
export LC_ALL=$UTF8_LOCALE

# libraries: the names of the systems that tests may see, one a line.
libraries() { sed -n 's/^!\{0,1\}\([^#!].*\)$/\1/p' "$ROOT/tests/support/systems"; }

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# True if `as_root` works without a question on a terminal that is not there.
can_be_root() {
    [ "$(id -u)" = 0 ] || { have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }
}
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_install PACKAGE...: installs only missing packages, and fetches the lists only then.
apt_install() {
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    can_be_root || fail "missing packages, and neither root nor sudo to install them. Run: apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
