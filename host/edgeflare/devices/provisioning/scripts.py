"""The two scripts that run on a device, sent to its Python's stdin with their parameters.

Both print one JSON object between two markers, so that other output of a login shell does no harm.
Any Python since 2.7 parses both.
"""

import json
from collections.abc import Mapping
from typing import Any

from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE, LONGEST_TEXT, WrongValueError, checked
from edgeflare.devices.transports.base import Completed, Transport
from edgeflare.errors import DeviceProtocolError, DevicePythonError

_BEGIN, _END = "<<<edgeflare<<<", ">>>edgeflare>>>"
_SHOWN_LINES = 3


def run_script(
    transport: Transport, python: str, script: str, parameters: Mapping[str, Any], timeout: float
) -> dict[str, Any]:
    """Run a script and return the JSON object it prints; see `run_script_with_output`."""
    return run_script_with_output(transport, python, script, parameters, timeout)[0]


def run_script_with_output(
    transport: Transport, python: str, script: str, parameters: Mapping[str, Any], timeout: float
) -> tuple[dict[str, Any], str]:
    """Return the JSON object that a script printed, and what a login shell printed around it.

    `python` is the device's Python command, for messages. Raises DevicePythonError where there is
    none, DeviceProtocolError where something else answers, and what the transport raises.
    """
    # The current folder may be anybody's: nothing is imported from there.
    head = (
        "import sys\nsys.path[:] = [one for one in sys.path if one]\nimport json\nPARAMETERS = "
        f"json.loads({json.dumps(parameters)!r})\n"
    )
    tail = f"\nprint({_BEGIN!r} + json.dumps(main(**PARAMETERS)) + {_END!r})\n"
    done = transport.run(["-"], (head + script + tail).encode("ascii"), timeout=timeout)
    printed = done.stdout.decode(errors="replace")
    before, _, rest = printed.partition(_BEGIN)
    text, end, after = rest.partition(_END)
    try:
        answer = checked(json.loads(text)) if end else None
    except WrongValueError as error:
        raise invalid_answer(transport.name, error) from error
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise _no_script_reply(transport.name, python, done)
    return answer, clean_text(before + after, LONGEST_TEXT, lines=True)


def invalid_answer(name: str, wrong: WrongValueError) -> DeviceProtocolError:
    """Return the error for an answer whose fields are not what the script returns."""
    return DeviceProtocolError(
        f"the Python on {name} sent {wrong}; check `python` in the device's inventory entry, which "
        "runs something else or was tampered with"
    )


def _no_script_reply(
    name: str, python: str, done: Completed
) -> DevicePythonError | DeviceProtocolError:
    if done.status in (126, 127):
        return DevicePythonError(
            f"there is no Python command {python!r} on {name}: install Python 3.8 or newer there, "
            "or give its command as `python` in the device's inventory entry"
        )
    printed = done.stdout.decode(errors="replace").split("\n") + done.stderr.split("\n")
    lines = [line.strip() for line in printed if line.strip()]
    if len(lines) > _SHOWN_LINES:  # the last line of a traceback has the error
        gap = ["..."] if len(lines) > _SHOWN_LINES + 1 else []
        lines = [*lines[:_SHOWN_LINES], *gap, lines[-1]]
    lines = [clean_text(line, LONGEST_LINE) for line in lines]
    return DeviceProtocolError(
        f"the command {python!r} on {name} did not behave as Python does (exit status "
        f"{done.status}); "
        + (f"it printed: {' | '.join(lines)}" if lines else "it printed nothing")
        + "; check `python` in the device's inventory entry and what the login shell does there"
    )


PROBE = r"""
def main(cache, packages):
    import os
    import platform
    import sys
    home = os.path.expanduser("~")
    root = os.path.join(home, os.path.expanduser(cache))
    answer = {
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "home": home,
        "root": root,
        "arch": architecture(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "managed": is_managed(),
    }
    answer["numpy"], answer["numpy_problem"] = numpy_version()
    answer["runtimes"] = runtimes(packages)
    answer.update(prepare(root))
    return answer


def architecture():
    import platform
    import struct
    machine = platform.machine()
    if struct.calcsize("P") == 4:  # perhaps under a 64-bit kernel
        return {"aarch64": "armv8l", "x86_64": "i686"}.get(machine, machine)
    return machine


def is_managed():
    import os
    import sys
    import sysconfig
    if sys.prefix != getattr(sys, "base_prefix", sys.prefix):
        return False
    return os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))


def numpy_version():
    try:
        import numpy
        return numpy.__version__, None
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return None, "%s: %s" % (type(error).__name__, lines[0])


def runtimes(packages):
    try:
        from importlib import metadata, util
    except ImportError:
        return {}
    found = {}
    for module, names in packages:
        if util.find_spec(module) is None:
            continue
        name, version = names[0], "unknown"
        for candidate in names:
            try:
                name, version = candidate, metadata.version(candidate)
                break
            except metadata.PackageNotFoundError:
                pass
        found[name] = version
    return found


def prepare(root):
    import os
    files = {"agents": {}, "models": {}}
    problem = None
    try:
        make(root)
        check_ours(root)
        check_parents(os.path.dirname(os.path.realpath(root)))
        for folder in files:
            path = os.path.join(root, folder)
            make(path)
            check_ours(path)
            os.chmod(path, 0o700)
            if not os.access(path, os.W_OK):
                raise OSError(30, "not writable", path)
            for name in os.listdir(path):
                try:
                    files[folder][name] = os.path.getsize(os.path.join(path, name))
                except OSError:
                    pass
        engines = os.path.join(root, "engines")
        if os.path.lexists(engines):
            check_ours(engines)
    except OSError as error:
        problem = "%s: %s" % (error.filename or root, error.strerror)
    return {"files": files, "cache_problem": problem, "free_bytes": free_bytes(root)}


def make(path):
    import os
    if os.path.isdir(path):
        return
    home = os.path.expanduser("~")
    if not os.path.isdir(home) and path.startswith(os.path.join(home, "")):
        raise OSError(2, "this user's home folder does not exist", home)
    try:
        os.makedirs(path, 0o700)
    except OSError:
        if not os.path.isdir(path):  # else another agent's host made it just now
            raise


def check_ours(path):
    import os
    import stat
    about = os.lstat(path)
    if stat.S_ISLNK(about.st_mode):
        raise OSError(1, "a symbolic link; name the folder that it leads to", path)
    if about.st_uid != os.geteuid():
        raise OSError(1, "it belongs to user %d, not to the login user" % about.st_uid, path)
    if about.st_mode & 0o022 and not about.st_mode & stat.S_ISVTX:
        raise OSError(1, "others may write there; `chmod go-w` ends that", path)


def check_parents(path):
    import os
    import stat
    while path != os.path.dirname(path):
        try:
            about = os.stat(path)
        except OSError:  # Android lets no app look at some of them
            about = None
        if about is not None and about.st_mode & 0o002:
            if not about.st_mode & stat.S_ISVTX or about.st_uid not in (0, os.geteuid()):
                raise OSError(1, "every user may rename what is in there", path)
        path = os.path.dirname(path)


def free_bytes(path):
    import os
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    try:
        import shutil
        return shutil.disk_usage(path).free
    except AttributeError:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize
    except OSError:
        return None
"""
"""Examines the device and makes the cache's folders; ``cache``: path, ``packages``: see the agent.

A cache folder is refused where another user could exchange what the agent runs: a symbolic link, a
folder of another user, one that others may write (without the sticky bit), one below a folder in
which every user may rename entries.
"""

CLEAN_CACHE = r"""
import hashlib, os, stat, time

TEMPORARY = ".part"


def main(root, wanted, discard, limit, recent_s, stale_s):
    bad = [one["name"] for one in wanted if not settle(root, one)]
    for path in discard:
        remove(path)
    removed = remove_stale(root, time.time() - stale_s)
    if limit is not None:
        keep = set(os.path.join(root, one["folder"], one["name"]) for one in wanted)
        removed += trim(root, keep, limit, time.time() - recent_s)
    return {"bad": bad, "files": len(removed), "bytes": sum(removed)}


def settle(root, one):
    path = os.path.join(root, one["folder"], one["name"])
    try:
        if one["temporary"] is not None:
            if sha256(one["temporary"]) != one["sha256"]:
                remove(one["temporary"])
                return False
            os.chmod(one["temporary"], 0o600)
            os.replace(one["temporary"], path)
        elif not is_ours(path) or sha256(path) != one["sha256"]:
            return False
        os.utime(path, None)
        return os.path.getsize(path) == one["size"]
    except OSError:
        return False


def is_ours(path):
    about = os.lstat(path)
    safe = stat.S_ISREG(about.st_mode) and not about.st_mode & 0o022
    return safe and about.st_uid == os.geteuid()


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def entries(root):
    found = []
    for folder in ("agents", "models", "engines"):
        for parent, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                path = os.path.join(parent, name)
                try:
                    about = os.stat(path)
                except OSError:
                    continue
                found.append((about.st_mtime, about.st_size, path))
    return sorted(found)


def remove_stale(root, before):
    return [
        size
        for used, size, path in entries(root)
        if path.endswith(TEMPORARY) and used < before and remove(path)
    ]


def trim(root, keep, limit, before):
    files = [entry for entry in entries(root) if not entry[2].endswith(TEMPORARY)]
    total = sum(size for _, size, _ in files)
    removed = []
    for used, size, path in files:
        if total > limit and used < before and path not in keep and remove(path):
            total -= size
            removed.append(size)
    return removed


def remove(path):
    try:
        os.remove(path)
        return True
    except OSError:
        return False
"""
"""Cleans the cache: verifies and renames uploads, verifies and touches files, removes old ones.

``wanted``: ``{folder, name, sha256, size, temporary: path or null}``; ``discard``: paths;
``limit``: bytes or null; files used in the last ``recent_s`` seconds stay, as do all wanted ones.
"""
