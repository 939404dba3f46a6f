"""This machine: what it does beside the measured processes, and a place of its own for what they leave."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_STAT = Path("/proc/stat")


def busy_core_seconds() -> float | None:
    """Return the seconds that all cores together were busy since boot; None where it isn't told."""
    if not _STAT.is_file():
        return None
    ticks = [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft, _stolen = ticks
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


@contextmanager
def own_home() -> Iterator[None]:
    """Give agents and models a home that nobody else uses, and that ends with the measurement."""
    before = os.environ.get("HOME")
    with TemporaryDirectory(prefix="edgeflare-benchmark-") as folder:
        os.environ["HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = before
