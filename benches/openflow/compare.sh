#!/usr/bin/env bash
# Compares the controller with the hand-written C peer on the same machine and prints a markdown table.
#
#   benches/openflow/compare.sh [--rounds N] [--seconds S] [--of 1.0|1.3] [--throughput "1 16 64 1000"] [--latency "1 16"]
#                                [--full "16 64 200 1000"] [--storm "1000 5000"] [--latency-core N] [--out FILE]
#
# --full lists the numbers of switches for runs with full sockets (--window none), beside which a bystander sends single
# packets. --storm lists the numbers of switches that connect in one moment. Both are left out unless they are given.
#
# Environment (all optional):
#   BEEHIVE     the beehive program (default: built, target/release/beehive)
#   GENERATOR   the beehive program that generates the load (default: $BEEHIVE)
#   SUBJECT     command of the controller to compare with the peer; {port} is replaced
#               (default: "$BEEHIVE controller --listen 127.0.0.1:{port}")
#   SUBJECT_NAME  name of that controller in the table (default: the name of its program)
#   PEER_PORT, SUBJECT_PORT  (default: 16653, 16654)
#   GENERATOR_ARGS  further arguments for every run, for example "--threads 2"
#
# For each number of switches the script starts both controllers and measures them alternately (peer, subject, peer, subject, ...), so
# that other load on the machine affects both. Processes are not pinned to cores, except that --latency-core pins controller and
# generator to one core for the latency runs: without it, the scheduler's placement influences latency more than the controller does.
# The table shows medians and, in brackets, the minimum and maximum over the rounds. Processor time is the controller's user and system
# time in /proc/<pid>/stat over the measured window, divided by the number of answered packet-ins.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
rounds=5 seconds=5 version=1.3 throughput="1 16 64 1000" latency="1 16" full= storm= latency_core= out=
while [ $# -gt 0 ]; do
    case $1 in
        --help|-h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
        --rounds|--seconds|--of|--throughput|--latency|--full|--storm|--latency-core|--out)
            [ $# -ge 2 ] || { echo "compare.sh: $1 wants a value" >&2; exit 2; }
            case $1 in
                --rounds) rounds=$2 ;; --seconds) seconds=$2 ;; --of) version=$2 ;;
                --throughput) throughput=$2 ;; --latency) latency=$2 ;;
                --full) full=$2 ;; --storm) storm=$2 ;;
                --latency-core) latency_core=$2 ;; --out) out=$2 ;;
            esac
            shift 2 ;;
        *) echo "compare.sh: unknown argument $1 (--help shows all)" >&2; exit 2 ;;
    esac
done

if [ -z "${BEEHIVE:-}" ]; then
    cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p beehive-cli
    BEEHIVE=${CARGO_TARGET_DIR:-$root/target}/release/beehive
fi
generator=${GENERATOR:-$BEEHIVE}
subject=${SUBJECT:-$BEEHIVE controller --listen 127.0.0.1:{port\}}
command_name=${subject%% *}
subject_name=${SUBJECT_NAME:-${command_name##*/}} # the table must not call another program beehive
peer_port=${PEER_PORT:-16653} subject_port=${SUBJECT_PORT:-16654}
read -r -a generator_args <<< "${GENERATOR_ARGS:-}"

work=$(mktemp -d)
mkdir "$work/runs"
peer_pid= subject_pid=
stop() {
    local pid
    for pid in $peer_pid $subject_pid; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
    peer_pid= subject_pid=
}
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

make --silent -C "$root/benches/peers" OUT="$work/bin"
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge 16384 ] || ulimit -n 16384 || ulimit -n 4096 || echo "compare.sh: few file descriptors; many switches may fail" >&2

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# start COMMAND PORT LOG: starts a controller in the background, waits until it listens, and stores its process id in $started
start() {
    if listens "$2"; then echo "compare.sh: port $2 is in use" >&2; exit 1; fi
    local words
    read -r -a words <<< "${1//\{port\}/$2}"
    "${words[@]}" >"$3" 2>&1 &
    started=$!
    for _ in $(seq 200); do
        if ! kill -0 "$started" 2>/dev/null; then break; fi
        if listens "$2"; then return; fi
        sleep 0.05
    done
    echo "compare.sh: '${words[*]}' does not listen on port $2:" >&2
    tail -n 20 "$3" >&2
    exit 1
}

# field FILE NAME [PARENT]: prints a number from the generator's JSON (one object on one line)
field() {
    if [ $# -eq 3 ]; then sed -n "s/.*\"$3\":{[^}]*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1"; else sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1"; fi
}

# nested FILE PARENT NAME: prints a latency of the echoes or of the bystanders
nested() {
    sed -n "s/.*\"$2\":{[^{}]*\"waited_ns\":{[^}]*\"$3\":\([-0-9.e+]*\).*/\1/p" "$1"
}

# measure WHO PORT PID MODE SWITCHES: runs once and appends a line to $work/runs/WHO.MODE.SWITCHES: rate, cpu ns, p50 ns, p99 ns, slowest,
# fastest, generator cores; for full sockets also Jain's index, unanswered in percent, p99 of echoes and of the bystander
# in ns, and the controller's resident memory in KiB. A storm leaves the times in seconds: connected (median, last),
# flows read (last), and the number of those that were refused.
measure() {
    local json=$work/json list=$work/runs/$1.$4.$5 pinned=()
    [ "$4" = latency ] && [ -n "$latency_core" ] && pinned=(taskset -c "$latency_core")
    if ! kill -0 "$3" 2>/dev/null; then echo "compare.sh: $1 has died" >&2; echo failed >>"$list"; return; fi
    local mode=("--mode" "$4")
    [ "$4" = full ] && mode=(--window none --bystanders 1)
    [ "$4" = storm ] && mode=(--storm --macs 2 --window 4 --connect-timeout 60)
    if ! "${pinned[@]}" "$generator" bench openflow --controller "127.0.0.1:$2" --switches "$5" "${mode[@]}" --of "$version" --seconds "$seconds" --warmup 1 \
        --controller-pid "$3" --json "${generator_args[@]}" >"$json" 2>"$work/progress"; then
        echo "compare.sh: the run of $1 with $5 switches ($4) failed:" >&2
        tail -n 5 "$work/progress" >&2
        echo failed >>"$list"
        return
    fi
    if [ "$4" = storm ]; then
        echo "$(field "$json" median_s ready) $(field "$json" last_s ready) $(field "$json" last_s flows_read) $(field "$json" retried)" \
            "0 0 $(field "$json" cores generator_cpu)" >>"$list"
        echo "  $1, storm of $5: $(tail -n 1 "$list" | awk '{printf "median %.2f s, last %.2f s, flows read %.2f s, %d tried again", $1, $2, $3, $4}')" >&2
        return
    fi
    if [ "$(field "$json" flooded)" != 0 ] || [ "$(field "$json" misdirected)" != 0 ]; then
        echo "compare.sh: $1 flooded or misdirected packets to known hosts ($5 switches, $4)" >&2
        grep note: "$work/progress" >&2 || true
    fi
    echo "$(field "$json" mean rate_per_second) $(field "$json" ns_per_answer controller_cpu) $(field "$json" p50 latency_ns)" \
        "$(field "$json" p99 latency_ns) $(field "$json" slowest_to_mean fairness) $(field "$json" fastest_to_mean fairness)" \
        "$(field "$json" cores generator_cpu)" \
        "$(field "$json" jain fairness) $(awk -v r="$(field "$json" unanswered_ratio)" 'BEGIN {print r * 100}')" \
        "$(nested "$json" echoes p99) $(nested "$json" bystanders p99) $(awk '/^VmRSS/ {print $2}' "/proc/$3/status")" >>"$list"
    echo "  $1, $5 switches, $4: $(tail -n 1 "$list" | awk '{printf "%d answered/s, %.0f ns of processor time, p50 %.1f us", $1, $2, $3 / 1000}')" >&2
}

# column FILE N: prints median, minimum and maximum of column N over the successful runs, and their number
column() {
    { grep -v failed "$1" || true; } | awk -v n="$2" '{print $n}' | sort -g |
        awk '{v[NR] = $1} END {if (!NR) {print "- - - 0"; exit} m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; print m, v[1], v[NR], NR}'
}

# shown FILE N SCALE FORMAT: prints "median (min–max)"
shown() {
    local median min max sound
    read -r median min max sound <<< "$(column "$1" "$2")"
    if [ "$sound" = 0 ]; then printf 'fails'; return; fi
    awk -v a="$median" -v b="$min" -v c="$max" -v s="$3" -v f="$4" 'BEGIN {printf f " (" f "–" f ")", a / s, b / s, c / s}'
    [ "$sound" = "$rounds" ] || printf ', %s of %s runs' "$sound" "$rounds"
}

# ratio N FORMAT: prints the subject's median divided by the peer's
ratio() {
    awk -v s="$(column "$subject_list" "$1")" -v p="$(column "$peer_list" "$1")" -v f="$2" \
        'BEGIN {split(s, a, " "); split(p, b, " "); if (a[1] == "-" || b[1] == "-" || b[1] == 0) print "–"; else printf f "\n", a[1] / b[1]}'
}

# fair FILE: prints the slowest and the fastest switch of the worst rounds, relative to the mean
fair() {
    local slowest fastest
    slowest=$(column "$1" 5 | cut -d' ' -f2) fastest=$(column "$1" 6 | cut -d' ' -f3)
    [ "$slowest" = - ] && printf '–' || printf '%.2f–%.2f' "$slowest" "$fastest"
}

for mode in throughput latency full storm; do
    for switches in ${!mode}; do
        start "$work/bin/epoll-switch --port {port}" "$peer_port" "$work/peer.log"; peer_pid=$started
        start "$subject" "$subject_port" "$work/subject.log"; subject_pid=$started
        if [ "$mode" = latency ] && [ -n "$latency_core" ]; then
            for pid in "$peer_pid" "$subject_pid"; do taskset -apc "$latency_core" "$pid" >&2; done
        fi
        for round in $(seq "$rounds"); do
            echo "round $round of $rounds" >&2
            measure peer "$peer_port" "$peer_pid" "$mode" "$switches"
            measure subject "$subject_port" "$subject_pid" "$mode" "$switches"
        done
        stop
    done
done

table() {
    echo "OpenFlow $version, $rounds rounds of $seconds s in turns, $(nproc) cores ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), Linux $(uname -r);" \
        "median (min–max). 64-byte frames, NO_BUFFER."
    echo
    if [ -n "$throughput" ]; then
        echo "| switches | C peer, M answered/s | $subject_name, M answered/s | ratio | C peer, CPU ns/answer | $subject_name, CPU ns/answer | ratio | slowest–fastest switch to mean, C peer | $subject_name |"
        echo "|---|---|---|---|---|---|---|---|---|"
        for switches in $throughput; do
            peer_list=$work/runs/peer.throughput.$switches subject_list=$work/runs/subject.throughput.$switches
            echo "| $switches | $(shown "$peer_list" 1 1e6 %.2f) | $(shown "$subject_list" 1 1e6 %.2f) | $(ratio 1 %.3f)" \
                "| $(shown "$peer_list" 2 1 %.0f) | $(shown "$subject_list" 2 1 %.0f) | $(ratio 2 %.1f)" \
                "| $(fair "$peer_list") | $(fair "$subject_list") |"
        done
        echo
    fi
    if [ -n "$latency" ]; then
        if [ -n "$latency_core" ]; then
            echo "One packet-in outstanding per switch; controller and generator share core $latency_core:"
        else
            echo "One packet-in outstanding per switch; not pinned, so where the scheduler puts both processes is part of these figures:"
        fi
        echo
        echo "| switches | C peer, p50 µs | $subject_name, p50 µs | ratio | C peer, p99 µs | $subject_name, p99 µs | C peer, k answered/s | $subject_name, k answered/s |"
        echo "|---|---|---|---|---|---|---|---|"
        for switches in $latency; do
            peer_list=$work/runs/peer.latency.$switches subject_list=$work/runs/subject.latency.$switches
            echo "| $switches | $(shown "$peer_list" 3 1e3 %.1f) | $(shown "$subject_list" 3 1e3 %.1f) | $(ratio 3 %.2f)" \
                "| $(shown "$peer_list" 4 1e3 %.1f) | $(shown "$subject_list" 4 1e3 %.1f)" \
                "| $(shown "$peer_list" 1 1e3 %.1f) | $(shown "$subject_list" 1 1e3 %.1f) |"
        done
        echo
    fi
    if [ -n "$full" ]; then
        echo "Full sockets (up to 8191 unanswered packet-ins per switch), and one bystander:"
        echo
        echo "| switches | C peer, M answered/s | $subject_name, M answered/s | ratio | CPU ns/answer, ratio | slowest to mean, C peer | $subject_name | Jain's index | unanswered for 3 s, %, C peer | $subject_name | echo p99 ms | bystander p99 ms, C peer | $subject_name | resident MB |"
        echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        for switches in $full; do
            peer_list=$work/runs/peer.full.$switches subject_list=$work/runs/subject.full.$switches
            echo "| $switches | $(shown "$peer_list" 1 1e6 %.2f) | $(shown "$subject_list" 1 1e6 %.2f) | $(ratio 1 %.3f) | $(ratio 2 %.1f)" \
                "| $(shown "$peer_list" 5 1 %.2f) | $(shown "$subject_list" 5 1 %.2f) | $(shown "$subject_list" 8 1 %.3f)" \
                "| $(shown "$peer_list" 9 1 %.1f) | $(shown "$subject_list" 9 1 %.1f) | $(shown "$subject_list" 10 1e6 %.0f)" \
                "| $(shown "$peer_list" 11 1e6 %.1f) | $(shown "$subject_list" 11 1e6 %.1f) | $(shown "$subject_list" 12 1e3 %.0f) |"
        done
        echo
    fi
    if [ -n "$storm" ]; then
        echo "All switches connect in one moment:"
        echo
        echo "| switches | C peer, last connected s | $subject_name, median connected s | last connected s | last asked for its flows s | tried again, C peer | $subject_name |"
        echo "|---|---|---|---|---|---|---|"
        for switches in $storm; do
            peer_list=$work/runs/peer.storm.$switches subject_list=$work/runs/subject.storm.$switches
            echo "| $switches | $(shown "$peer_list" 2 1 %.2f) | $(shown "$subject_list" 1 1 %.2f) | $(shown "$subject_list" 2 1 %.2f)" \
                "| $(shown "$subject_list" 3 1 %.2f) | $(shown "$peer_list" 4 1 %.0f) | $(shown "$subject_list" 4 1 %.0f) |"
        done
        echo
    fi
    echo "The generator used up to $(cat "$work"/runs/* | awk '$7 + 0 > m {m = $7 + 0} END {printf "%.2f", m}') cores."
}

table | tee ${out:+"$out"}
! grep -q failed "$work"/runs/*
