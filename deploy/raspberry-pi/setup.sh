#!/bin/sh
# Makes a Python for EdgeFlare's agent on a Raspberry Pi: numpy and a runtime in a folder of the login user's.
set -eu

usage() {
    cat <<'TEXT'
usage: sh setup.sh [options]

Run on the Raspberry Pi (or another Debian board) as the login user, not as root. Makes a virtual environment
with numpy and the runtime that has wheels for this board, tries it, and prints the device's inventory entry.
Running it again repairs or completes what is there. Nothing is set outside of the folder.

  --runtime tflite|onnx|both   runtime of the deployed model (default tflite)
  --wheels DIR                 install from the wheels in DIR, without internet; with a pip wheel among them
                               the board needs no python3-venv either
  --folder DIR                 where the virtual environment goes (default ~/edgeflare-python)
  --python COMMAND             Python to make it of, 3.8 or newer (default python3)
  --name NAME                  the device's name in the printed inventory entry (default: the host's name)
  --host NAME                  how the machine that runs EdgeFlare reaches the board (default its name and .local)
  --check                      only look, and say what is missing
  --help

Over SSH: ssh pi@raspberrypi.local 'sh -s -- --name pi' < setup.sh >> devices.toml
Exit status: 0 ready, 2 wrong options, 3 the board lacks something.
TEXT
}

wrong() {
    echo "setup.sh: $1; sh setup.sh --help tells the options" >&2
    exit 2
}

lacks() {
    echo "setup.sh: $1" >&2
    exit 3
}

# Facts about a Python: major and minor version, bits, machine. A 32-bit system may run on a 64-bit kernel, where uname tells
# the kernel: what counts for wheels is the interpreter.
facts() {
    "$1" -c '
import platform, struct, sys
bits = 8 * struct.calcsize("P")
machine = platform.machine()
if bits == 32 and machine in ("aarch64", "armv8l"):
    machine = "armv7l"
print("%d %d %d %s" % (sys.version_info[0], sys.version_info[1], bits, machine))
'
}

# Sets `packages` and `modules` for $runtime, or `unavailable` to the reason why there are none.
choose() {
    packages='' modules='numpy' unavailable=''
    if [ "$major" -ne 3 ] || [ "$minor" -lt 8 ]; then
        unavailable="$python is Python $major.$minor; the agent needs 3.8 or newer: flash a newer Raspberry Pi OS"
        return
    fi
    if [ "$runtime" != onnx ]; then
        if [ "$bits" -eq 64 ] && [ "$minor" -ge 9 ]; then
            packages='numpy ai-edge-litert' modules="$modules ai_edge_litert.interpreter"
        elif [ "$machine" != armv6l ] && [ "$minor" -le 11 ]; then
            packages='numpy<2 tflite-runtime' modules="$modules tflite_runtime.interpreter"
        elif [ "$machine" = armv6l ]; then
            unavailable='there is no TFLite runtime wheel for ARMv6 (Pi 1, Zero, Zero W): take a Zero 2 W or newer'
        else
            unavailable="there is no TFLite runtime wheel for a 32-bit system with Python 3.$minor: flash the 64-bit \
Raspberry Pi OS, or the 32-bit Legacy one (Debian bookworm, Python 3.11)"
        fi
    fi
    if [ "$runtime" != tflite ] && [ -z "$unavailable" ]; then
        if [ "$bits" -eq 64 ]; then
            packages="${packages:-numpy} onnxruntime" modules="$modules onnxruntime"
        else
            unavailable='there is no ONNX Runtime wheel for a 32-bit system: flash the 64-bit Raspberry Pi OS'
        fi
    fi
}

# Imports the modules with the folder's Python; prints their versions, or the error.
try_out() {
    [ -x "$folder/bin/python" ] || {
        echo "$folder is not there yet"
        return 1
    }
    "$folder/bin/python" - "$@" <<'TEXT' 2>&1
import importlib
import sys

found = []
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except Exception as error:
        sys.exit("%s: %s" % (name, " ".join(str(error).split()) or type(error).__name__))
    package = name.split(".")[0]
    version = getattr(module, "__version__", None) or getattr(sys.modules[package], "__version__", "")
    found.append(("%s %s" % (package, version)).strip())
    if "tflite_runtime" in name and int(sys.modules["numpy"].__version__.split(".")[0]) >= 2:
        sys.exit("tflite_runtime was built for numpy 1 and numpy 2 is installed")
print(", ".join(found))
TEXT
}

pip_wheel() {
    for file in "${wheels:-/nonexistent}"/pip-*.whl; do
        [ ! -f "$file" ] || {
            echo "$file"
            return
        }
    done
}

# How the folder can be made: "own pip", "pip wheel" or nothing.
means() {
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        echo 'own pip'
    elif [ -n "$(pip_wheel)" ] && "$python" -c 'import venv' 2>/dev/null; then
        echo 'pip wheel'
    fi
}

no_means="python3-venv is missing; run 'sudo apt install python3-venv', or, without root, put a pip wheel into the \
folder of --wheels ('pip download pip' on another machine)"

make_folder() {
    set --
    # On 32 bits numpy has no wheel on PyPI: Debian's python3-numpy serves, where it is installed.
    [ "$bits" -eq 64 ] || set -- --system-site-packages
    if [ -x "$folder/bin/python" ] && [ "$(facts "$folder/bin/python" 2>/dev/null)" = "$told" ] &&
        { "$folder/bin/python" -c 'import pip' 2>/dev/null || [ -n "$(pip_wheel)" ]; }; then
        return
    fi
    if [ -e "$folder" ] && [ ! -e "$folder/pyvenv.cfg" ]; then
        lacks "$folder exists and is no virtual environment; remove it, or name another folder with --folder"
    fi
    case "$(means)" in
        'own pip') "$python" -m venv --clear "$@" "$folder" ;;
        'pip wheel') "$python" -m venv --clear --without-pip "$@" "$folder" ;;
        *) lacks "$no_means" ;;
    esac
}

install_packages() {
    mkdir -p "$folder/tmp"
    # /tmp may be a small one in memory.
    export TMPDIR="$folder/tmp" PIP_DISABLE_PIP_VERSION_CHECK=1
    if "$folder/bin/python" -c 'import pip' 2>/dev/null; then
        pip=''
    else
        pip="$(pip_wheel)"
        [ -n "$pip" ] || lacks "$folder has no pip: $no_means"
    fi
    set -- install --quiet --only-binary=:all:
    [ -z "$wheels" ] || set -- "$@" --no-index --find-links "$wheels"
    # shellcheck disable=SC2086 # a list of words
    set -- "$@" $packages
    done=0
    if [ -n "$pip" ]; then
        "$folder/bin/python" "$pip/pip" "$@" >&2 || done=$?
    else
        "$folder/bin/python" -m pip "$@" >&2 || done=$?
    fi
    rm -rf "$folder/tmp"
    [ "$done" -eq 0 ] || lacks "pip could not install $packages (see above); $(pip_hint)"
}

pip_hint() {
    if [ "$bits" -eq 32 ]; then
        echo "on a 32-bit system run 'sudo apt install python3-numpy' and this script again"
    elif [ -n "$wheels" ]; then
        echo "$wheels lacks a wheel for Python 3.$minor on $machine"
    else
        echo 'where the board has no internet, give a folder of wheels with --wheels'
    fi
}

look() {
    ready=0
    board="$({ tr -d '\000' </proc/device-tree/model; } 2>/dev/null || true)"
    echo "board     ${board:-unknown}, $machine, $bits-bit"
    echo "python    $python, $major.$minor"
    if [ -n "$unavailable" ]; then
        echo "runtime   fix: $unavailable"
        return 3
    fi
    echo "packages  $packages"
    # shellcheck disable=SC2086 # a list of words
    if seen="$(try_out $modules)"; then
        echo "folder    ok: $seen in $folder"
    else
        echo "folder    fix: $seen"
        ready=3
        if [ ! -x "$folder/bin/python" ] && [ -z "$(means)" ]; then
            echo "venv      fix: $no_means"
        fi
    fi
    echo "disk      $(df -Pk "$HOME" | awk 'NR == 2 { printf "%d MB free", $4 / 1024 }') at $HOME"
    return "$ready"
}

# The table alone goes to stdout, so that it can be appended to devices.toml.
tell() {
    cat <<TEXT >&2
Ready: $seen

The inventory entry, for devices.toml on the machine that runs EdgeFlare; then, there: edgeflare devices check $name

TEXT
    cat <<TEXT
[devices.$name]
host = "$host"
user = "$(id -un)"
python = "$folder/bin/python"
TEXT
}

main() {
    runtime=tflite wheels='' folder="$HOME/edgeflare-python" python=python3 only_look=''
    own="$(uname -n)"
    own="${own%%.*}"
    host="$own.local"
    name="$(printf %s "$own" | tr -c 'A-Za-z0-9_-' -)"
    while [ $# -gt 0 ]; do
        case "$1" in
            --runtime | --wheels | --folder | --python | --name | --host)
                [ $# -ge 2 ] || wrong "$1 needs a value"
                case "$1" in
                    --runtime) runtime="$2" ;;
                    --wheels) wheels="$2" ;;
                    --folder) folder="$2" ;;
                    --python) python="$2" ;;
                    --name) name="$2" ;;
                    --host) host="$2" ;;
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
        tflite | onnx | both) ;;
        *) wrong "--runtime is tflite, onnx or both, not $runtime" ;;
    esac
    case "$name" in
        '' | *[!A-Za-z0-9_-]*) wrong "--name may hold letters, digits, - and _, not '$name'" ;;
    esac
    if [ -n "$wheels" ]; then
        [ -d "$wheels" ] || wrong "there is no folder $wheels"
        wheels="$(cd "$wheels" && pwd)"
    fi
    case "$host" in
        '' | *[!A-Za-z0-9.:_-]*) wrong "--host is a name or an address, not '$host'" ;;
    esac
    case "$folder" in
        *[!A-Za-z0-9/._+-]*) wrong "--folder may hold letters, digits and / . _ + -, not '$folder'" ;;
        /*) ;;
        *) folder="$PWD/$folder" ;;
    esac

    command -v "$python" >/dev/null ||
        lacks "there is no $python; run 'sudo apt install python3 python3-venv'"
    told="$(facts "$python")" || lacks "$python does not behave as Python does"
    read -r major minor bits machine <<TEXT
$told
TEXT
    choose
    if [ -n "$only_look" ]; then
        look
        return
    fi
    [ -z "$unavailable" ] || lacks "$unavailable"
    # shellcheck disable=SC2086 # a list of words
    if ! seen="$(try_out $modules)"; then
        make_folder
        echo "installing $packages into $folder" >&2
        install_packages
        # shellcheck disable=SC2086 # a list of words
        seen="$(try_out $modules)" || lacks "installed, but it doesn't work: $seen; $(pip_hint)"
    fi
    tell
}

# Where the script itself comes by stdin, nothing it starts may read from there.
main "$@" </dev/null
