"""An ONNX Runtime whose process ends at some inputs, in the ways in which processes end."""

from pathlib import Path

import pytest

_SHIM = '''
import importlib, os, signal, stat, sys, time
site = sys.path.pop(sys.path.index(os.path.dirname(os.path.dirname(__file__))))
sys.modules.pop("onnxruntime")
real = importlib.import_module("onnxruntime")
sys.path.insert(0, site)
left = os.path.join(site, "left")

def write(data):
    """Write to the host, past the agent."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            os.write(descriptor, data)

def end(way):
    if way == "hang":
        time.sleep(100)
    elif way == "half a frame":
        write(b"\\x93EFW\\x02")
    elif way == "nonsense":
        write(b"no frame, and it goes on living")
        signal.pause()
    elif way != "exit":
        os.kill(os.getpid(), getattr(signal, way))
    os._exit(0)

class Session(real.InferenceSession):
    def run(self, names, feeds, *more):
        (values,) = feeds.values()
        if {condition}:
            times = int(open(left).read())
            if times:
                with open(left, "w") as file:
                    file.write(str(times - 1))
                end("{way}")
        return super().run(names, feeds, *more)

real.InferenceSession = Session
'''


def install(folder: Path, patch: pytest.MonkeyPatch, condition: str, way: str) -> Path:
    """Let processes that start from now on end where `condition` holds for an input's `values`.

    `way` is a signal's name, "exit", "hang", "half a frame" or "nonsense". Return the file that has
    how often they do so.
    """
    package = folder / "fragile" / "onnxruntime"
    package.mkdir(parents=True)
    shim = _SHIM.replace("{condition}", condition).replace("{way}", way)
    (package / "__init__.py").write_text(shim)
    patch.syspath_prepend(package.parent)
    left = package.parent / "left"
    left.write_text("1000000")
    return left
