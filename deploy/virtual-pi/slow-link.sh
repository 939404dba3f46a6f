#!/bin/sh
# Delays, or thins out, what a virtual board sends: a link as over Wi-Fi, or worse.
set -eu

usage() {
    cat <<'TEXT'
usage: sh slow-link.sh [show|on|off] [options]

Run on the machine where the board runs (edgeflare devices virtual up).

  show          what is set now (the default)
  on            delay and lose packets as told by the options
  off           the link as it was; stopping the board does the same
  --name NAME   the board (default virtual)
  --delay MS    so many milliseconds later (default 20); a round trip takes that much longer
  --jitter MS   more or less so many (default 0)
  --loss PER    percent of the packets that are lost (default 0); SSH sends them again
  --help

Exit status: 0 done, 2 wrong arguments, 3 the board can't be reached or refuses.
TEXT
}

wrong() {
    echo "slow-link.sh: $1; sh slow-link.sh --help tells the arguments" >&2
    exit 2
}

main() {
    action='' name=virtual delay=20 jitter=0 loss=0
    while [ $# -gt 0 ]; do
        case "$1" in
            show | on | off)
                [ -z "$action" ] || wrong 'only one of show, on and off'
                action="$1"
                ;;
            --name | --delay | --jitter | --loss)
                [ $# -ge 2 ] || wrong "$1 needs a value"
                case "$1=$2" in
                    --name=?*) name="$2" ;;
                    --name=) wrong '--name needs a name' ;;
                    *=*[!0-9.]* | *=*.*.* | *=. | *=) wrong "$1 needs a number, not '$2'" ;;
                    --delay=*) delay="$2" ;;
                    --jitter=*) jitter="$2" ;;
                    --loss=*) loss="$2" ;;
                esac
                shift
                ;;
            --help | -h)
                usage
                exit 0
                ;;
            *) wrong "unknown argument $1" ;;
        esac
        shift
    done
    folder="${XDG_STATE_HOME:-$HOME/.local/state}/edgeflare/virtual/$name"
    entry="$folder/devices.toml"
    if [ ! -f "$entry" ]; then
        echo "slow-link.sh: there is no board $name; run 'edgeflare devices virtual up --name $name'" >&2
        exit 3
    fi
    port="$(sed -n 's/^port = \([0-9]*\)$/\1/p' "$entry")"
    key="$(sed -n 's/^key = "\(.*\)"$/\1/p' "$entry")"
    tc='/usr/sbin/tc qdisc'
    case "${action:-show}" in
        show) command="$tc show dev eth0" ;;
        on)
            command="$tc replace dev eth0 root netem delay ${delay}ms ${jitter}ms loss $loss% limit 10000 && \
$tc show dev eth0"
            ;;
        off) command="{ $tc del dev eth0 root 2>/dev/null || true; } && $tc show dev eth0" ;;
    esac
    status=0
    ssh -F /dev/null -i "$key" -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=20 \
        -o "UserKnownHostsFile=\"$folder/known_hosts\"" -p "$port" root@127.0.0.1 "$command" || status=$?
    case "$status" in
        0) ;;
        255)
            echo "slow-link.sh: $name can't be reached (see above); is it up?" >&2
            exit 3
            ;;
        *)
            echo "slow-link.sh: $name refused this (see above); sh slow-link.sh --help tells the arguments" >&2
            exit 3
            ;;
    esac
}

main "$@" </dev/null
