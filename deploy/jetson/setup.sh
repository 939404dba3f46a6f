#!/bin/sh
# Makes a Python for EdgeFlare's agent on an NVIDIA Jetson: JetPack's TensorRT, and numpy, in a virtual environment.
set -eu

usage() {
    cat <<'TEXT'
usage: sh setup.sh [options]

Run on the Jetson (JetPack 5 or newer) as the login user, not as root. Makes a virtual environment that sees
JetPack's TensorRT, puts numpy in it, tries both on the GPU, and prints the device's inventory entry.
Running it again repairs or completes what is there. Nothing is set outside of the folder.

  --wheel FILE      install this wheel too, such as an onnxruntime_gpu one made for this JetPack
  --wheels DIR      install from the wheels in DIR, without internet
  --folder DIR      where the virtual environment goes (default ~/edgeflare-python)
  --name NAME       the device's name in the printed inventory entry (default: the host's name)
  --host NAME       how the machine that runs EdgeFlare reaches the board (default its name and .local)
  --check           only look, and say what is missing
  --help

Over SSH: ssh user@jetson.local 'sh -s -- --name jetson' < setup.sh >> devices.toml
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

# JetPack's release as "R36, REVISION 4.0", from the file that all of its Linux has.
release() {
    sed -n 's/^# \(R[0-9]*\) (release), \(REVISION: [0-9.]*\).*/\1 \2/p' /etc/nv_tegra_release 2>/dev/null |
        sed 's/ REVISION: /./;q'
}

# What is amiss before anything is made; nothing where all is well.
missing() {
    if ! command -v python3 >/dev/null; then
        echo "there is no python3; run 'sudo apt install python3 python3-venv'"
    elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))'; then
        echo 'Python is older than 3.8 (JetPack 4); flash JetPack 5 or newer'
    elif ! python3 -c 'import tensorrt' 2>/dev/null; then
        echo "TensorRT's Python package is missing; run 'sudo apt install python3-libnvinfer' (or all of JetPack: \
'sudo apt install nvidia-jetpack')"
    elif ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        echo "python3-venv is missing; run 'sudo apt install python3-venv'"
    fi
}

# Imports all with the folder's Python and asks TensorRT for the GPU; prints versions, or the error.
try_out() {
    [ -x "$folder/bin/python" ] || {
        echo "$folder is not there yet"
        return 1
    }
    "$folder/bin/python" - <<'TEXT' 2>&1
import importlib.util
import sys

found = []
for name in ("numpy", "tensorrt", "onnxruntime"):
    if name == "onnxruntime" and importlib.util.find_spec(name) is None:
        continue
    try:
        module = __import__(name)
    except Exception as error:
        sys.exit("%s: %s" % (name, " ".join(str(error).split()) or type(error).__name__))
    found.append("%s %s" % (name, module.__version__))
if int(sys.modules["numpy"].__version__.split(".")[0]) >= 2:
    sys.exit("numpy is 2, and JetPack's packages are built for numpy 1")
tensorrt = sys.modules["tensorrt"]
try:
    usable = tensorrt.Builder(tensorrt.Logger(tensorrt.Logger.ERROR)) is not None
except Exception:
    usable = False
if not usable:
    sys.exit("TensorRT finds no GPU (is the login user in the groups 'video' and 'render'?)")
if "onnxruntime" in sys.modules:
    found.append("providers " + " ".join(sys.modules["onnxruntime"].get_available_providers()))
print(", ".join(found))
TEXT
}

# Whether the wheel's package is in the folder already.
has_wheel() {
    [ -n "$wheel" ] || return 0
    package="$(basename "$wheel")"
    rest="${package#*-}"
    "$folder/bin/python" -c '
import sys
try:
    from importlib.metadata import version
    sys.exit(version(sys.argv[1].replace("_", "-")) != sys.argv[2])
except Exception:
    sys.exit(1)
' "${package%%-*}" "${rest%%-*}"
}

install_packages() {
    if [ ! -x "$folder/bin/python" ] || ! "$folder/bin/python" -c 'import pip' 2>/dev/null; then
        [ ! -e "$folder" ] || [ -e "$folder/pyvenv.cfg" ] ||
            lacks "$folder exists and is no virtual environment; remove it, or name another folder with --folder"
        python3 -m venv --clear --system-site-packages "$folder"
    fi
    export PIP_DISABLE_PIP_VERSION_CHECK=1
    set -- --quiet --only-binary=:all:
    [ -z "$wheels" ] || set -- "$@" --no-index --find-links "$wheels"
    set -- "$@" 'numpy<2'
    [ -z "$wheel" ] || set -- "$@" "$wheel"
    "$folder/bin/python" -m pip install "$@" >&2 ||
        lacks 'pip could not install that (see above); without internet, give a folder of wheels with --wheels'
}

look() {
    echo "board     $({ tr -d '\000' </proc/device-tree/model; } 2>/dev/null || echo unknown)"
    echo "jetpack   Jetson Linux $(release || true)"
    problem="$(missing)"
    if [ -n "$problem" ]; then
        echo "system    fix: $problem"
        return 3
    fi
    if seen="$(try_out)"; then
        echo "folder    ok: $seen in $folder"
    else
        echo "folder    fix: $seen"
        return 3
    fi
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
runtime = "tensorrt"
options = { precision = "fp16" }
timeout_s = 1800
TEXT
}

main() {
    wheel='' wheels='' folder="$HOME/edgeflare-python" only_look=''
    own="$(uname -n)"
    own="${own%%.*}"
    host="$own.local"
    name="$(printf %s "$own" | tr -c 'A-Za-z0-9_-' -)"
    while [ $# -gt 0 ]; do
        case "$1" in
            --wheel | --wheels | --folder | --name | --host)
                [ $# -ge 2 ] || wrong "$1 needs a value"
                case "$1" in
                    --wheel) wheel="$2" ;;
                    --wheels) wheels="$2" ;;
                    --folder) folder="$2" ;;
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
    [ -z "$wheel" ] || [ -f "$wheel" ] || wrong "there is no file $wheel"
    [ -z "$wheels" ] || [ -d "$wheels" ] || wrong "there is no folder $wheels"
    case "$name" in
        '' | *[!A-Za-z0-9_-]*) wrong "--name may hold letters, digits, - and _, not '$name'" ;;
    esac
    case "$host" in
        '' | *[!A-Za-z0-9.:_-]*) wrong "--host is a name or an address, not '$host'" ;;
    esac
    case "$folder" in
        *[!A-Za-z0-9/._+-]*) wrong "--folder may hold letters, digits and / . _ + -, not '$folder'" ;;
        /*) ;;
        *) folder="$PWD/$folder" ;;
    esac
    if [ -n "$only_look" ]; then
        look
        return
    fi
    problem="$(missing)"
    [ -z "$problem" ] || lacks "$problem"
    if ! seen="$(try_out)" || ! has_wheel; then
        echo "installing numpy<2${wheel:+ and $wheel} into $folder" >&2
        install_packages
        seen="$(try_out)" || lacks "installed, but it doesn't work: $seen"
    fi
    tell
}

# Where the script itself comes by stdin, nothing it starts may read from there.
main "$@" </dev/null
