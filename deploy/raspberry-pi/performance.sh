#!/bin/sh
# Shows, and on request steadies, the clock of a Raspberry Pi (or another Linux board).
set -eu

usage() {
    cat <<'TEXT'
usage: sh performance.sh [show|on|off] [--root DIR]

  show         governor, clock, temperature and what slows the board down (the default; needs no root)
  on           governor "performance": full clock all the time (needs root: sudo sh performance.sh on)
  off          the governor that was set before "on"; a reboot does the same
  --root DIR   look at and write a copy of the system's files below DIR, to try it out
  --help

Exit status: 0 done, 2 wrong arguments, 3 the board doesn't let it.
TEXT
}

wrong() {
    echo "performance.sh: $1; sh performance.sh --help tells the arguments" >&2
    exit 2
}

cannot() {
    echo "performance.sh: $1" >&2
    exit 3
}

content() {
    [ -r "$1" ] && cat "$1" || echo unknown
}

# Words for the bits of the firmware's get_throttled, of now (from bit 0) or since the start (from bit 16).
flags() {
    words='' shift_by="$2"
    for word in 'voltage too low' 'clock capped' 'throttled' 'soft temperature limit'; do
        [ $((($1 >> shift_by) & 1)) -eq 0 ] || words="${words:+$words, }$word"
        shift_by=$((shift_by + 1))
    done
    echo "${words:-nothing}"
}

show() {
    echo "governor     $(content "$root$first/scaling_governor")"
    clock="$(content "$root$first/scaling_cur_freq")"
    most="$(content "$root$first/cpuinfo_max_freq")"
    case "$clock$most" in
        *unknown*) echo 'clock        unknown' ;;
        *) echo "clock        $((clock / 1000)) MHz of $((most / 1000))" ;;
    esac
    heat="$(content "$root/sys/class/thermal/thermal_zone0/temp")"
    case "$heat" in
        unknown) echo 'temperature  unknown' ;;
        *) echo "temperature  $((heat / 1000)) C" ;;
    esac
    if bits="$(vcgencmd get_throttled 2>/dev/null)"; then
        echo "slowed now   $(flags "${bits#*=}" 0)"
        echo "since start  $(flags "${bits#*=}" 16)"
    else
        echo 'slowed now   unknown (no vcgencmd here)'
    fi
}

set_governors() {
    for file in "$root"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
        [ -e "$file" ] || cannot 'this board has no CPU clock to set (no cpufreq in its kernel)'
        echo "$1" 2>/dev/null >"$file" || cannot "can't set the governor; run it as root: sudo sh performance.sh $action"
    done
}

main() {
    action='' root=''
    while [ $# -gt 0 ]; do
        case "$1" in
            show | on | off)
                [ -z "$action" ] || wrong 'only one of show, on and off'
                action="$1"
                ;;
            --root)
                [ $# -ge 2 ] || wrong '--root needs a folder'
                [ -d "$2" ] || wrong "there is no folder $2"
                root="$2"
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
    action="${action:-show}"
    first=/sys/devices/system/cpu/cpu0/cpufreq
    before="$root/run/edgeflare-governor"
    case "$action" in
        on)
            old="$(content "$root$first/scaling_governor")"
            case " $(content "$root$first/scaling_available_governors") " in
                *' performance '* | *' unknown '*) ;;
                *) cannot 'this kernel has no governor "performance"' ;;
            esac
            set_governors performance
            # On again must not forget what was set before the first time.
            [ -e "$before" ] || echo "$old" >"$before"
            ;;
        off)
            [ -e "$before" ] || cannot 'nothing to undo: "on" was not run since the start'
            set_governors "$(cat "$before")"
            rm -f "$before"
            ;;
    esac
    show
}

main "$@" </dev/null
