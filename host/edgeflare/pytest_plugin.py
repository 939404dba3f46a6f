"""The pytest plugin: a fixture for devices, a marker, and what `edgeflare.assert_agrees` needs.

pytest loads it in every environment that has EdgeFlare, so it imports nothing heavy. It runs with
any pytest from 7.0 on.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from edgeflare.assertions.running_test import RUNNING_TEST
from edgeflare.errors import (
    AgentCrashedError,
    AgentDiedError,
    DeviceAwayError,
    DeviceTimeoutError,
    InferenceTimeoutError,
    InventoryError,
    UnreachableError,
    UsageError,
)

_MARKER = "edgeflare"
_FIXTURE = "edgeflare_device"
_DEVICE_OPTION, _AWAY_OPTION = "--edgeflare-device", "--edgeflare-away"
_DEFAULT_DEVICES = ("local",)

_AWAY = (AgentDiedError, DeviceAwayError, DeviceTimeoutError, UnreachableError)
_NOT_AWAY = (AgentCrashedError, InferenceTimeoutError)
"""Kinds of those errors that a model can cause: the device is there."""

_NAME_LENGTH = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line's options and the setting of the configuration file."""
    group = parser.getgroup("edgeflare", "edgeflare: compressed models on devices")
    group.addoption(
        _DEVICE_OPTION,
        action="append",
        metavar="DEVICE",
        help="a device that tests with the fixture edgeflare_device run on: a name of "
        "devices.toml, local, ssh://user@host:port or adb://SERIAL; may be repeated",
    )
    group.addoption(
        _AWAY_OPTION,
        choices=("skip", "fail"),
        default="skip",
        help="what becomes of a test whose device is away: skip (the default) or fail",
    )
    parser.addini(
        _FIXTURE,
        f"the devices of the fixture edgeflare_device where {_DEVICE_OPTION} names none; by "
        "default local",
        type="args",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(device=...): a test of models on a device; device: the one, or a list of them, "
        f"that its fixture {_FIXTURE} takes, whatever {_DEVICE_OPTION} names",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses the fixture once for each device."""
    marked = _marked_devices(metafunc.definition)
    if _is_parametrized(metafunc.definition):
        return
    if _FIXTURE in metafunc.fixturenames:
        devices = marked or _stated_devices(metafunc.config)
        metafunc.parametrize(_FIXTURE, devices, indirect=True, scope="session")
    elif marked:
        pytest.fail(
            f"the marker's device is for the fixture {_FIXTURE}: add that to the test's arguments",
            pytrace=False,
        )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the fixture, so that ``-m "not edgeflare"`` leaves them out."""
    if _FIXTURE in getattr(item, "fixturenames", ()):
        item.add_marker(_MARKER)


@pytest.fixture(scope="session")
def edgeflare_device(request: pytest.FixtureRequest) -> str:
    """A device, as ``--device`` of the command line takes it; a test runs once for each."""
    from edgeflare import load_inventory, resolve_device

    name: str = getattr(request, "param", None) or _stated_devices(request.config)[0]
    try:
        resolve_device(name, load_inventory())
    except InventoryError as error:
        problem = str(error)
    else:
        return name
    pytest.fail(problem, pytrace=False)  # here: within `except` both errors would be shown


@pytest.fixture(scope="session", autouse=True)
def _edgeflare_folders(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have campaigns kept in the session's temporary folder, one folder for each.

    Where pytest runs without temporary folders (``-p no:tmpdir``), they are kept as outside of it.
    """
    if not request.config.pluginmanager.hasplugin("tmpdir"):
        yield
        return
    temporary: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")

    def make() -> Path:
        return temporary.mktemp(re.sub(r"\W", "_", RUNNING_TEST.name)[:_NAME_LENGTH])

    RUNNING_TEST.make_folder = make
    yield
    RUNNING_TEST.make_folder = None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, None]:
    """Tell `assert_agrees` which test runs, and on which device."""
    RUNNING_TEST.name = item.name
    RUNNING_TEST.device = lambda: _device_of(item)
    RUNNING_TEST.error = None
    yield
    RUNNING_TEST.device = RUNNING_TEST.error = None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, Any, None]:
    """Turn an error of a device that is away into a skip with the reason."""
    outcome = yield
    error = call.excinfo and call.excinfo.value
    concerned = error is RUNNING_TEST.error or item.get_closest_marker(_MARKER)
    if (
        isinstance(error, _AWAY)
        and not isinstance(error, _NOT_AWAY)
        and concerned
        and call.when != "teardown"
        and item.config.getoption(_AWAY_OPTION) == "skip"
    ):
        report = outcome.get_result()
        path, line, _ = item.reportinfo()
        report.outcome = "skipped"
        report.longrepr = (str(path), (line or 0) + 1, f"Skipped: the device is away: {error}")


def _device_of(item: pytest.Item) -> str | None:
    """Return the device of a test's fixture, also where the test or a fixture asks for it late.

    Raises UsageError where there is none though the command line names devices: the test would
    pass on this machine instead.
    """
    request: pytest.FixtureRequest | None = getattr(item, "_request", None)
    if request is None or _FIXTURE not in request.fixturenames:
        if item.config.getoption(_DEVICE_OPTION):
            raise UsageError(
                f"{_DEVICE_OPTION} is stated, but this test doesn't use it: add {_FIXTURE} to its "
                'arguments, or state the device: assert_agrees(..., device="local")'
            )
        return None
    name: str = request.getfixturevalue(_FIXTURE)
    return name


def _stated_devices(config: pytest.Config) -> Sequence[str]:
    stated = config.getoption(_DEVICE_OPTION) or config.getini(_FIXTURE)
    return tuple(dict.fromkeys(stated)) or _DEFAULT_DEVICES


def _is_parametrized(definition: pytest.Item) -> bool:
    """Whether the test's own ``parametrize`` states the devices."""
    for marker in definition.iter_markers("parametrize"):
        names = marker.kwargs.get("argnames") or marker.args[0]
        if _FIXTURE in (re.split(r"[,\s]+", names) if isinstance(names, str) else names):
            return True
    return False


def _marked_devices(definition: pytest.Item) -> Sequence[str]:
    """Return the devices of the test's marker; none where it names none."""
    marker = definition.get_closest_marker(_MARKER)
    if marker is None:
        return ()
    given = marker.kwargs.get("device", ())
    devices = (given,) if isinstance(given, str) else given
    named = isinstance(devices, (list, tuple)) and all(isinstance(one, str) for one in devices)
    if marker.args or not marker.kwargs.keys() <= {"device"} or not named:
        pytest.fail(
            f"the marker {_MARKER} takes device alone, a name or a list of names: "
            f'@pytest.mark.{_MARKER}(device="pi4")',
            pytrace=False,
        )
    return tuple(devices)
