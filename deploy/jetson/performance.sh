#!/bin/sh
# Shows, and on request steadies, the clocks of an NVIDIA Jetson.
set -eu

usage() {
    cat <<'TEXT'
usage: sh performance.sh [show|on|off] [--mode ID]

  show         power mode and temperatures (the default)
  on           all clocks at the highest that the power mode allows (needs root: sudo sh performance.sh on)
  --mode ID    with "on": this power mode first; which there are stands in /etc/nvpmodel.conf. Modes that
               need a reboot have to be set by hand (sudo nvpmodel -m ID)
  off          clocks and power mode as they were before "on" (needs root)
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

mode_now() {
    nvpmodel -q | tail -n 1
}

show() {
    nvpmodel -q 2>/dev/null || echo 'power mode unknown'
    for zone in /sys/class/thermal/thermal_zone*; do
        # A sensor of a unit that is off can't be read.
        heat="$(cat "$zone/temp" 2>/dev/null)" || continue
        echo "$(cat "$zone/type") $((heat / 1000)) C"
    done
}

main() {
    action='' mode='' state=/run/edgeflare-clocks
    while [ $# -gt 0 ]; do
        case "$1" in
            show | on | off)
                [ -z "$action" ] || wrong 'only one of show, on and off'
                action="$1"
                ;;
            --mode)
                [ $# -ge 2 ] || wrong '--mode needs a number'
                case "$2" in
                    '' | *[!0-9]*) wrong "--mode needs a number, not '$2'" ;;
                esac
                mode="$2"
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
    [ -z "$mode" ] || [ "$action" = on ] || wrong '--mode goes with "on"'
    for tool in nvpmodel jetson_clocks; do
        command -v "$tool" >/dev/null || cannot "there is no $tool here; is this a Jetson?"
    done
    [ "$action" = show ] || [ "$(id -u)" -eq 0 ] ||
        cannot "needs root: sudo sh performance.sh $action"
    case "$action" in
        on)
            # On again must not forget what was set before the first time.
            if [ ! -e "$state.mode" ]; then
                jetson_clocks --store "$state"
                mode_now >"$state.mode"
            fi
            [ -z "$mode" ] || nvpmodel -m "$mode" || cannot "nvpmodel refuses mode $mode (see above)"
            jetson_clocks
            ;;
        off)
            [ -e "$state.mode" ] || cannot 'nothing to undo: "on" was not run since the start'
            jetson_clocks --restore "$state"
            [ "$(mode_now)" = "$(cat "$state.mode")" ] || nvpmodel -m "$(cat "$state.mode")"
            rm -f "$state" "$state.mode"
            ;;
    esac
    show
}

main "$@" </dev/null
