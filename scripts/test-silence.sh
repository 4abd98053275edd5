# Sourced by `test`: ends a stage that prints nothing any more, so that a run tells which one hangs.

# seconds_silent LOG: the seconds since something was written to it.
seconds_silent() {
    local written
    written=$(stat -c %Y "$1" 2>/dev/null || stat -f %m "$1") || return
    echo $(($(date +%s) - written))
}

# end_silent GROUP LOG LIMIT: ends a stage whose log has been silent for more than LIMIT seconds.
# GROUP is its process group, whose first process lives on to report the stage's end. The log gets
# the processes that ran.
end_silent() {
    local group=$1 log=$2 limit=$3 silent pids
    silent=$(seconds_silent "$log") || return 0
    [ "$silent" -gt "$limit" ] || return 0
    pids=$(ps -e -o pid=,pgid= | awk -v group="$group" '$2 == group && $1 != group { print $1 }')
    [ -n "$pids" ] || return 0
    {
        printf 'HUNG: no output for %d s. The processes of this stage, which are ended now:\n' "$silent"
        ps -o pid=,ppid=,etime=,time=,stat=,args= -p "$(echo $pids | tr ' ' ,)" | cut -c1-200 | sed 's/^/  /'
        printf '  and what else runs:\n'
        ps -e -o pid=,ppid=,etime=,time=,stat=,args= | grep -v '\[' | tail -n 40 | cut -c1-200 | sed 's/^/  /'
    } >>"$log"
    kill -TERM $pids 2>/dev/null || true
}
