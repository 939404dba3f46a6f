"""Python, numpy, runtimes and the cache folder."""

import shlex
from collections.abc import Iterator

from edgeflare.devices.device import Device
from edgeflare.devices.doctor.facts import Facts
from edgeflare.devices.doctor.line import CheckLine, bad, good, judged, note
from edgeflare.devices.probe import (
    OLDEST_PYTHON,
    Probe,
    behind_wrapper,
    check_cache,
    check_numpy,
    check_python,
    check_runtime,
    how_to_install,
)
from edgeflare.devices.runtimes import RuntimeName, calibration_file
from edgeflare.errors import UsageError

_OLD_TFLITE = "tflite-runtime"


def python(seen: Probe, facts: Facts) -> CheckLine:
    """Judge the Python; where it is too old, a newer one that is there already is named."""
    problem = check_python(seen)
    if problem is None:
        return good("python", f"{seen.python}, {seen.executable}, {seen.arch}")
    newer = next((path for path in facts.pythons if _is_newer(path)), None)
    if newer is None:
        return bad("python", problem.what, problem.fix)
    command = behind_wrapper(seen.command, newer)
    return bad(
        "python",
        problem.what,
        f"{newer} is there: try it with `edgeflare devices check {shlex.quote(seen.name)} --python "
        f'{shlex.quote(command)}`, then give python = "{command}" in the device\'s inventory entry',
    )


def packages(seen: Probe, wanted: tuple[RuntimeName, ...]) -> Iterator[CheckLine]:
    """Yield the lines of numpy and the runtimes."""
    yield _numpy(seen, wanted)
    yield _runtimes(seen, wanted)


def calibration(wanted: tuple[RuntimeName, ...], device: Device) -> Iterator[CheckLine]:
    """Yield the line of a calibration file that is named and is not on this machine."""
    try:
        for runtime in wanted:
            calibration_file(runtime, device.options)
    except UsageError as error:
        yield bad("calibration", str(error), None)


def cache_folder(seen: Probe) -> CheckLine:
    """Judge whether the cache folder can be used."""
    return judged("cache folder", check_cache(seen), seen.root)


def _numpy(seen: Probe, wanted: tuple[RuntimeName, ...]) -> CheckLine:
    problem = check_numpy(seen)
    if problem is not None:
        return bad("numpy", problem.what, problem.fix)
    if not _clashes(seen):
        return good("numpy", seen.numpy or "")
    clash = check_runtime(seen, "tflite")
    assert clash is not None  # noqa: S101 - that is what a clash is
    if any(check_runtime(seen, name) is None for name in wanted) or "tflite" not in wanted:
        return note("numpy", f"{clash.what}: TFLite models can't run", clash.fix)
    return bad("numpy", clash.what, clash.fix)


def _clashes(seen: Probe) -> bool:
    """Whether a TFLite runtime is there and numpy is too new for it."""
    return (
        seen.numpy is not None
        and _OLD_TFLITE in seen.runtimes
        and check_runtime(seen, "tflite") is not None
    )


def _runtimes(seen: Probe, wanted: tuple[RuntimeName, ...]) -> CheckLine:
    """Judge what is installed; a clash with numpy is the line above's."""
    problems = [
        None if name == "tflite" and _clashes(seen) else check_runtime(seen, name)
        for name in wanted
    ]
    detail = ", ".join(f"{package} {version}" for package, version in seen.runtimes.items())
    if None in problems:
        return good("runtimes", detail)
    first = problems[0]
    if len(wanted) == 1 or seen.runtimes:
        return judged("runtimes", first, detail)
    return bad(
        "runtimes",
        f"none is installed for {seen.executable} on {seen.name}",
        f"for TFLite models: {first.fix if first else ''}; "
        f"for ONNX models: {how_to_install(seen, 'onnxruntime')}",
    )


def _is_newer(path: str) -> bool:
    """Whether a path such as ``/usr/bin/python3.11`` names a Python that serves."""
    _, _, minor = path.rpartition("python3.")
    return minor.isdigit() and (3, int(minor)) >= OLDEST_PYTHON
