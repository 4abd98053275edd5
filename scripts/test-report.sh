# Sourced by `test`: reads the logs of stages, and warnings.

# count LOG: "passed failed skipped flaky" of a stage. The result lines of cargo and pytest are
# added up; of the plain lines `N passed, N failed[, N skipped][, N flaky]` the last one counts, so
# that a runner may also print one for each of its parts. A flaky step of a real editor passed only
# at the second try. Lines `N flaky` alone are added.
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

# no_warnings COMMAND...: a build that is there already prints its warnings again, those of clippy
# too; fails when there are any.
no_warnings() {
    local said status=0
    said=$("$@" 2>&1 | sed 's/\x1b\[[0-9;]*m//g'; exit "${PIPESTATUS[0]}") || status=$?
    [ -z "$said" ] || printf '%s\n' "$said"
    [ "$status" = 0 ] && ! grep -qE '^(warning|error)(\[|:)' <<<"$said"
}

# telling LOG: the lines of a failed stage's log about the failure, in a few lines; the end of the
# log when there are none.
telling() {
    sed 's/\x1b\[[0-9;]*m//g; s/\r$//' "$1" | awk '
        { line[NR] = substr($0, 1, 240) }
        /FAILED|HUNG|[Ff]ailures?:|panicked|LEAK|left behind|[Ww]aited|in vain|[Ee]rror|Traceback|AssertionError|timed out|^E  |assertion.*failed|^(warning|error)(\[|:)/ &&
            !/ 0 (failed|errors)|test result: ok|\.\.\. ok$|^ *([0-9.]+ s +)?(ok|✔) / { more = /^(test .* FAILED|failures:)$/ ? 0 : 2
              for (i = NR; i <= NR + more; i++) wanted[i] = 1; any = 1 }
        END { if (!any) for (i = NR - 9; i <= NR; i++) wanted[i] = 1
              for (i = 1; i <= NR; i++) if ((i in wanted) && (i in line) && line[i] !~ /^(stack backtrace:|note: .*)?$/) told[++n] = line[i]
              # The first lines have the cause, the last ones the sum.
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

# verdicts LOG: a line for each failed test, `FAILED NAME: the first line of its reason`, and then
# one for each step that passed only when it was tried again, `flaky NAME: ...`. Known are the
# reports of cargo, pytest and node, and the lines `FAILED NAME`, `FAIL NAME` and `AGAIN NAME` of
# the other runners, which the reason follows.
verdicts() {
    sed 's/\x1b\[[0-9;]*m//g; s/\r$//' "$1" | awk '
        # A line that is not a reason of the failure before it.
        function over(line) { return line ~ /^ *(alone:|Alone:|the window:|Tests that failed|[0-9]+ (passed|flaky))|^[A-Za-z-]+: [0-9]+ failed$|^test result: |^(failures|successes):$/ }
        function named(kind, name, wants) {
            sub(/^ +/, "", name)
            now = kind SUBSEP name; how = wants; colon = 0
            if (now in why) { if (why[now] != "") now = ""; return }
            why[now] = ""; kinds[++n] = kind; names[n] = name
        }
        function because(line) {
            gsub(/^[ |]+|[ ]+$/, "", line)
            why[now] = why[now] (why[now] == "" ? "" : " ") line
            # A sentence that only introduces the next line.
            colon = line ~ /:$/ && !colon
            if (!colon) now = ""
        }
        /^---- .* stdout ----$/ { name = $0; sub(/^---- /, "", name); sub(/ stdout ----$/, "", name); named("FAILED", name, "panic"); rust = 1; next }
        /^error: test failed, to rerun pass `/ { if (!rust) { split($0, a, "`"); named("FAILED", a[2], "exit") } rust = 0; next }
        /^(FAILED|ERROR) [^ ]+\.py(::[^ ]+)?( - |$)/ {
            name = $0; sub(/^[A-Z]+ /, "", name); reason = ""
            if (i = index(name, " - ")) { reason = substr(name, i + 3); name = substr(name, 1, i - 1) }
            named("FAILED", name, "next"); if (now != "" && reason != "") because(reason)
            now = ""; next }
        /^ *([0-9.]+ s +)?(FAILED|FAIL|AGAIN) +[^ ]/ {
            name = $0; sub(/^ *([0-9.]+ s +)?/, "", name)
            kind = name ~ /^AGAIN/ ? "AGAIN" : "FAILED"
            sub(/^[A-Z]+ +/, "", name); named(kind, name, "next"); next }
        /^ *([0-9.]+ s +)?ok +[^ ]/ { name = $0; sub(/^ *([0-9.]+ s +)?ok +/, "", name); passed[name] = 1; now = ""; next }
        /^(FAILED|HUNG): / { named("FAILED", substr($0, index($0, ":") + 2), ""); now = ""; next }
        /^LEAK: / { named("FAILED", $0, "next"); next }
        /^✖ failing tests:/ { spec = 1; next }
        spec && /^ *✖ .* \([0-9.]+m?s\)$/ { name = $0; sub(/^ *✖ /, "", name); sub(/ \([0-9.]+m?s\)$/, "", name); named("FAILED", name, "next"); next }
        now == "" || /^ *$/ { next }
        over($0) { now = ""; next }
        how == "panic" { if (/ panicked at /) how = "next"; else if (/^Error: /) because($0); next }
        how == "exit" { if (/^ *process didn/) because($0); next }
        how == "next" && /Traceback \(most recent call last\)/ { how = "raised"; next }
        how == "raised" { if (/^[ |]*[A-Za-z_.]*(Error|Exception|Exit|Interrupt|Timeout|Cancelled|Failed)[A-Za-z]*(:|$)/ && !/ExceptionGroup/) because($0); next }
        how == "next" { because($0) }
        function put(kind, i) {
            line = kind " " names[i]
            if (why[kinds[i], names[i]] != "") line = line ": " why[kinds[i], names[i]]
            if (length(line) > 240) line = substr(line, 1, 237) "..."
            print line
        }
        END {
            for (i = 1; i <= n; i++) if (kinds[i] == "FAILED" || !(("FAILED" SUBSEP names[i]) in why || names[i] in passed)) put("FAILED", i)
            for (i = 1; i <= n; i++) if (kinds[i] == "AGAIN" && !(("FAILED" SUBSEP names[i]) in why) && names[i] in passed) put("flaky", i) }'
}

# closing DIRECTORY STAGE...: the verdicts of these stages, whose logs are in the directory, in at
# most forty lines; of one that names no test, the first lines that tell of its failure.
closing() {
    local directory=$1 stage lines
    shift
    [ $# -gt 0 ] || return 0
    printf '\n── failed, or passed only when tried again\n'
    for stage in "$@"; do
        lines=$(verdicts "$directory/$stage.log")
        [ -n "$lines" ] || lines=$(telling "$directory/$stage.log" | sed -n '1,2s/^ */FAILED /p')
        printf '%s\n' "$lines" | awk -v stage="$stage" -v most="$((38 / $# > 2 ? 38 / $# : 2))" '
            NR <= most { print "  " stage ": " $0 }
            END { if (NR > most) print "  " stage ": and " NR - most " more, in its log" }'
    done
}
