"""Byte code of the board's Python modules; without it, importing numpy takes the board ten seconds more."""

import re
import shutil
import sys
from pathlib import Path

from edgeflare.devices import connect
from edgeflare.errors import DeviceError
from edgeflare.virtual.entry import board_device, write_entry
from edgeflare.virtual.initrd import board_archive
from edgeflare.virtual.keys import board_keys
from edgeflare.virtual.machine import Machine, free_port
from edgeflare.virtual.settings import BoardSettings
from edgeflare.virtual.tools import Log, ToolError, run_tool, runs
from edgeflare.virtual.wheels import FOLDER, PYTHON

_FOLDERS = (f"usr/lib/python{PYTHON}", FOLDER)
_LEFT_OUT = r"/usr/lib/.*(/tests?/|lib2to3|idlelib|onnxruntime/(transformers|quantization|tools))"
_WORDS = ("-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
_LIMIT_S = 1800.0
_END = """
import os, subprocess
os.remove("/etc/ssh/ssh_host_ed25519_key")
subprocess.run(["mount", "-o", "remount,ro", "/"], check=True)
"""


def find_compiler() -> str | None:
    """Return a Python on this machine whose byte code is the board's, None where there is none."""
    test = f"import compileall, sys; sys.exit('%d.%d' % sys.version_info[:2] != {PYTHON!r})"
    for python in (sys.executable, shutil.which(f"python{PYTHON}")):
        if python and runs([python, "-c", test]):
            return python
    return None


def compile_here(python: str, root: Path, log: Log) -> None:
    """Compile the board's modules in its root folder, on all of this machine's cores."""
    command: list[str | Path] = [python, "-I", "-m", "compileall", *_WORDS, "-s", root, "-p", "/"]
    command += ["-x", re.escape(str(root)) + _LEFT_OUT, *(root / folder for folder in _FOLDERS)]
    try:
        run_tool(command, log, doing="byte-compiling")
    except ToolError as error:  # a file that was never meant to be imported; all others are done
        log.add(str(error))


def compile_there(build: Path, folder: Path, log: Log) -> None:
    """Let the board compile its modules: boot it from the build's image, and keep what it writes.

    `folder` is for the machine and is made. Raises DeviceError and its kinds.
    """
    folder.mkdir(mode=0o700)
    keys, machine, port = board_keys(folder), Machine(folder), free_port()
    device = board_device(folder, "board", port, user="root")
    write_entry(folder, device, keys.host_public)
    own_files = board_archive("board", keys.authorized, keys.host_key)
    machine.start(build, own_files, BoardSettings(), port, keep=True)
    try:
        machine.wait_for_ssh(port)
        transport = connect(device)
        try:
            folders = [f"/{each}" for each in _FOLDERS]
            words = ["-m", "compileall", *_WORDS, "-x", _LEFT_OUT, *folders]
            done = transport.run(words, timeout=_LIMIT_S)
            log.add(done.stdout.decode(errors="replace") + done.stderr)
            done = transport.run(["-c", _END], timeout=60)
        finally:
            transport.close()
    finally:
        machine.stop()
    if done.status != 0:
        raise DeviceError(f"byte-compiling on the board failed: {done.stderr.strip()}")
    # a disk without a journal whose board was just switched off
    command: list[str | Path] = ["e2fsck", "-f", "-y", build / "disk.img"]
    run_tool(command, log, doing="checking the disk image", fine=(0, 1))
