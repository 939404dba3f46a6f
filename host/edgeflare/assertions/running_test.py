"""What the pytest plugin and `assert_agrees` tell each other about the test that runs.

A file of its own, since the plugin needs it in every test session: it imports nothing heavy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class RunningTest:
    """The test that runs in this process; outside of pytest nothing is set.

    `name` is the test's. `make_folder` makes and returns an empty folder of its own. `device`
    returns the device that it runs on, None where it does not use the fixture `edgeflare_device`.
    `error` is the one that `assert_agrees` raised last.
    """

    name: str = ""
    make_folder: Callable[[], Path] | None = None
    device: Callable[[], str | None] | None = None
    error: Exception | None = None


RUNNING_TEST = RunningTest()
"""One for each process; pytest runs one test at a time."""
