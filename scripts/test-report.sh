# Sourced by `test`: what a stage's log says.

# count LOG: "passed failed skipped flaky" of a stage. Cargo and pytest say it in lines of their
# own, which are added up; of the plain lines `N passed, N failed[, N skipped][, N flaky]` the last
# one counts, so that a runner may also print one for each of its parts. Flaky is a step of a real
# editor that passed only when it was tried a second time. A line `N flaky` alone is added.
count() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
        /^test result: / { for (i = 1; i < NF; i++) { w = $(i + 1)
            if (w ~ /^passed;/) p += $i; if (w ~ /^failed;/) f += $i; if (w ~ /^ignored;/) s += $i } }
        /^=+ .* in [0-9.]+s.*=+$/ { for (i = 1; i < NF; i++) { w = $(i + 1)
            if (w ~ /^passed/) p += $i; if (w ~ /^(failed|error)/) f += $i; if (w ~ /^skipped/) s += $i } }
        /^([A-Za-z-]+: )?[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?(, [0-9]+ flaky)?$/ { plain = $0 }
        /^([A-Za-z-]+: )?[0-9]+ flaky$/ { y += $(NF - 1) }
        END { if (plain) { n = split(plain, a, /[ ,]+/)
                for (i = 2; i <= n; i++) { if (a[i] == "passed") p += a[i-1]; if (a[i] == "failed") f += a[i-1]
                    if (a[i] == "skipped") s += a[i-1]; if (a[i] == "flaky") y += a[i-1] } }
            print p + 0, f + 0, s + 0, y + 0 }'
}

# telling LOG: what a failed stage's log says of the failure, in a few lines; its end when no line
# says anything.
telling() {
    sed 's/\x1b\[[0-9;]*m//g; s/\r$//' "$1" | awk '
        { line[NR] = substr($0, 1, 240) }
        /FAILED|HUNG|[Ff]ailures?:|panicked|LEAK|left behind|[Ww]aited|in vain|[Ee]rror|Traceback|AssertionError|timed out|^E  |assertion.*failed|^(warning|error)(\[|:)/ &&
            !/ 0 (failed|errors)|test result: ok|\.\.\. ok$|^ *([0-9.]+ s +)?(ok|✔) / { more = /^(test .* FAILED|failures:)$/ ? 0 : 2
              for (i = NR; i <= NR + more; i++) wanted[i] = 1; any = 1 }
        END { if (!any) for (i = NR - 9; i <= NR; i++) wanted[i] = 1
              for (i = 1; i <= NR; i++) if ((i in wanted) && (i in line) && line[i] !~ /^(stack backtrace:|note: .*)?$/) told[++n] = line[i]
              # The first tell the cause, the last the sum.
              for (i = 1; i <= n; i++) { if (i <= 20 || i > n - 3) print "  " told[i]; else if (i == 21) print "  [...]" } }'
}

# alone LOG PREFIX: the commands that run the failed Rust tests of a stage and no others; PREFIX is
# put before each. Cargo names the target of failures behind them.
alone() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | awk -v prefix="$2" '
        /^failures:$/ { names = ""; listing = 1; next }
        listing && /^    [A-Za-z_]/ { names = names " " $1; next }
        /^test result: / { listing = 0 }
        /^error: test failed, to rerun pass `/ { split($0, a, "`"); print prefix "cargo test --locked " a[2] " -- --exact" names; names = "" }'
}
