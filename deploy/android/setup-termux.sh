#!/bin/sh
# Makes an Android phone a device for EdgeFlare: an SSH server in Termux, and Debian's Python with numpy and a
# runtime in proot-distro.
set -eu

usage() {
    cat <<'TEXT'
usage: sh setup-termux.sh --key 'ssh-ed25519 AAAA... you@host' [options]

Run inside Termux. Installs openssh and proot-distro, Debian inside of it, and there a virtual environment with
numpy and the runtime; lets the key log in, starts sshd (port 8022) and keeps the phone awake; prints the
device's inventory entry. Running it again repairs or completes what is there, and starts sshd after a reboot.

  --key TEXT                   the public key that may log in: the line of ~/.ssh/id_ed25519.pub on the host
  --key-file FILE              the same from a file on the phone
  --runtime tflite|onnx|both   runtime of the deployed model (default tflite)
  --name NAME                  the device's name in the printed inventory entry (default phone)
  --check                      only look, and say what is missing
  --help

Exit status: 0 ready, 2 wrong options, 3 the phone lacks something.
TEXT
}

wrong() {
    echo "setup-termux.sh: $1; sh setup-termux.sh --help tells the options" >&2
    exit 2
}

lacks() {
    echo "setup-termux.sh: $1" >&2
    exit 3
}

# A key is one line: a kind, the key and perhaps a comment.
check_key() {
    case "$1" in
        *'
'*) wrong 'the key has several lines; give one public key' ;;
        'ssh-'*' AAAA'* | 'ecdsa-'*' AAAA'* | 'sk-'*' AAAA'*) ;;
        *'PRIVATE KEY'*) wrong 'that is a private key; give the public one (the .pub file)' ;;
        *) wrong "that is no public key; it begins like 'ssh-ed25519 AAAA'" ;;
    esac
}

let_in() {
    mkdir -p "$HOME/.ssh"
    chmod 700 "$HOME/.ssh"
    [ -e "$keys" ] || : >"$keys"
    chmod 600 "$keys"
    grep -qxF "$key" "$keys" && return
    # the file's last line may lack its end
    [ -z "$(tail -c 1 "$keys")" ] || echo >>"$keys"
    echo "$key" >>"$keys"
}

in_debian() {
    proot-distro login debian -- "$@"
}

# Imports the modules with Debian's Python; prints their versions, or the error.
try_out() {
    # shellcheck disable=SC2086 # a list of words
    in_debian "$python" -c '
import importlib, sys
found = []
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    package = sys.modules[name.split(".")[0]]
    found.append(("%s %s" % (package.__name__, getattr(package, "__version__", ""))).strip())
print(", ".join(found))
' $modules 2>&1 | tail -n 1
}

works() {
    seen="$(try_out)" || return 1
    case "$seen" in numpy*) ;; *) return 1 ;; esac
}

runs_sshd() {
    pgrep -x sshd >/dev/null 2>&1
}

look() {
    missing=0
    for tool in sshd proot-distro; do
        if command -v "$tool" >/dev/null; then
            echo "$tool  ok"
        else
            echo "$tool  fix: not installed"
            missing=3
        fi
    done
    if [ "$missing" -eq 0 ]; then
        if works; then
            echo "debian  ok: $seen"
        else
            echo "debian  fix: ${seen:-not installed}"
            missing=3
        fi
        if runs_sshd; then
            echo 'server  ok: sshd runs, port 8022'
        else
            echo 'server  fix: sshd does not run'
            missing=3
        fi
    fi
    if [ -s "$keys" ]; then
        echo "keys  ok: $(grep -c . "$keys") may log in"
    else
        echo 'keys  fix: no key may log in; give one with --key'
        missing=3
    fi
    return "$missing"
}

set_up() {
    for tool in sshd:openssh proot-distro:proot-distro; do
        command -v "${tool%%:*}" >/dev/null || pkg install -y "${tool#*:}" ||
            lacks "pkg could not install ${tool#*:} (see above); run 'pkg update' and this script again"
    done
    [ -z "$key" ] || let_in
    [ -s "$keys" ] || wrong 'no key may log in yet; give yours with --key'
    in_debian true >/dev/null 2>&1 || proot-distro install debian ||
        lacks 'proot-distro could not install Debian (see above)'
    if ! works; then
        in_debian sh -c "set -e
            python3 -c 'import ensurepip' 2>/dev/null || {
                apt-get update
                DEBIAN_FRONTEND=noninteractive apt-get install -y python3 python3-venv
            }
            $python -c 'import pip' 2>/dev/null || python3 -m venv --clear /root/edgeflare-python
            $python -m pip install --quiet --disable-pip-version-check --only-binary=:all: $packages" ||
            lacks "Debian's Python or its packages could not be installed (see above)"
        works || lacks "installed, but it doesn't work: $seen"
    fi
    runs_sshd || sshd || lacks 'sshd does not start (see above)'
    termux-wake-lock 2>/dev/null || echo 'setup-termux.sh: no wake lock; keep the screen on' >&2
}

tell() {
    address="$(ip -4 route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/\1/p')" || true
    cat <<TEXT
Ready: $seen

Put one of these into devices.toml on the machine that runs EdgeFlare. Over the network:

[devices.$name]
host = "${address:-ADDRESS-OF-THE-PHONE}"
port = 8022
user = "$(id -un)"
python = "proot-distro login debian -- $python"
timeout_s = 120

or over USB, with USB debugging on:

[devices.$name]
transport = "adb"
python = "proot-distro login debian -- $python"
timeout_s = 120

and then, there:

edgeflare devices trust $name
edgeflare devices check $name
TEXT
}

main() {
    key='' runtime=tflite name=phone only_look='' python=/root/edgeflare-python/bin/python
    keys="$HOME/.ssh/authorized_keys"
    while [ $# -gt 0 ]; do
        case "$1" in
            --key | --key-file | --runtime | --name)
                [ $# -ge 2 ] || wrong "$1 needs a value"
                case "$1" in
                    --key) key="$2" ;;
                    --key-file)
                        [ -r "$2" ] || wrong "there is no file $2"
                        key="$(cat "$2")"
                        ;;
                    --runtime) runtime="$2" ;;
                    --name) name="$2" ;;
                esac
                shift
                ;;
            --check) only_look=yes ;;
            --help | -h)
                usage
                exit 0
                ;;
            *) wrong "unknown option $1" ;;
        esac
        shift
    done
    case "$runtime" in
        tflite) packages='numpy ai-edge-litert' modules='numpy ai_edge_litert.interpreter' ;;
        onnx) packages='numpy onnxruntime' modules='numpy onnxruntime' ;;
        both) packages='numpy ai-edge-litert onnxruntime' modules='numpy ai_edge_litert.interpreter onnxruntime' ;;
        *) wrong "--runtime is tflite, onnx or both, not $runtime" ;;
    esac
    case "$name" in
        '' | *[!A-Za-z0-9_-]*) wrong "--name may hold letters, digits, - and _, not '$name'" ;;
    esac
    [ -z "$key" ] || check_key "$key"
    case "${PREFIX:-}" in
        */com.termux/*) ;;
        *) lacks 'this is not Termux; run it in the Termux app on the phone' ;;
    esac
    case "$(uname -m)" in
        aarch64 | x86_64) ;;
        *) lacks "the runtimes have no wheels for $(uname -m); a 64-bit phone is needed" ;;
    esac
    if [ -n "$only_look" ]; then
        look
        return
    fi
    set_up
    tell
}

main "$@" </dev/null
