"""`assert_agrees`: a search as an assertion."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgeflare._internal import toml
from edgeflare._internal.files import new_folder_name
from edgeflare._internal.flags import problems_of
from edgeflare._internal.text import duration
from edgeflare.assertions.failure import failure_text, wrapped
from edgeflare.assertions.running_test import RUNNING_TEST
from edgeflare.campaign.api import PathOrTable, SearchResult, SeedInputs, search
from edgeflare.campaign.settings.config import PATHS
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.errors import (
    DeviceBusyError,
    EdgeFlareError,
    PreflightError,
    StoreError,
    StrategyError,
    UsageError,
)

_POLL_S = 1.0
_DEFAULT_LIMITS = LimitsConfig(max_seed_deviation_rate=0.0)
_OF_SEEDS = {"max_seed_deviation_rate"}
"""The limits that a search can't cross: they are about the seeds as they are."""
_NOT_OF_SEARCHES = {"baseline", "max_new_triggers"}
_OF_THE_SEARCH = ("strategy", "options", "operators", "search", "control")
"""Settings that ask for a search, whatever the limits."""


def assert_agrees(
    original: PathOrTable,
    deployed: PathOrTable,
    seeds: SeedInputs,
    *,
    device: str | Sequence[str] | None = None,
    limits: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    wait_s: float = 600.0,
    **settings: Any,
) -> SearchResult:
    """Search as `edgeflare.search` does; raise AssertionError where a limit is crossed.

    `original`, `deployed`, `seeds` and `settings` are as `edgeflare.search` takes them. `limits`
    are those of ``[limits]`` in ``campaign.toml``, under the same names and by the same rules, or
    the path of a ``campaign.toml`` that has them. By default the models must agree on every seed as
    it is (``max_seed_deviation_rate = 0``); searched triggers are no default limit, since a search
    finds one from nearly every seed of a good model, too. Where no limit is about searched triggers,
    nothing is searched, unless the settings name a strategy, its options or operators. A seed on
    which a model fails, or gives NaN or infinity, fails the assertion whatever the limits; so does a
    campaign that isn't finished, such as one that a query limit paused.

    `device` is by default the one of pytest's fixture `edgeflare_device` where the test uses it,
    else this machine. While another campaign, such as one of another process of pytest-xdist, holds
    the device, it is waited for, at most about `wait_s` seconds.

    The campaign is kept in a new folder within `folder`; by default within one of the test's own
    below pytest's base temporary folder, outside of pytest within ``campaigns``. The returned
    result has its triggers.

    The error's text names each crossed limit, the worst triggering input with both models' answers,
    a picture of it, and the command that sends it again. Raises UsageError for limits and settings
    that are wrong, and every `EdgeFlareError` that `run_campaign` raises; where the device is away,
    the pytest plugin skips the test.
    """
    __tracebackhide__ = True
    try:
        limits_table = _limits_in_effect(limits)
        result = _search_when_free(
            original,
            deployed,
            seeds,
            _device(device),
            wait_s,
            folder,
            {**_search_settings(settings, limits_table), "limits": limits_table},
        )
        failure = failure_text(result.folder)
    except StrategyError:  # the traceback may lead to the user's own code
        raise
    except PreflightError as error:  # of several sentences
        shown = PreflightError("\n".join(wrapped(str(error))))
        shown.folder = error.folder
        raise shown from None
    except EdgeFlareError as error:
        RUNNING_TEST.error = error
        raise error.with_traceback(None) from None
    if failure is not None:
        raise AssertionError(failure)
    return result


def _limits_in_effect(
    limits: Mapping[str, Any] | str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """Return the table of the limits that are checked.

    Raises UsageError where one is wrong, or none can be crossed.
    """
    if limits is None:
        return _in_effect(_DEFAULT_LIMITS)
    if isinstance(limits, Mapping):
        where, table = "limits", dict(limits)
    else:
        path = Path(limits)
        where = f"[limits] of {path}"
        loaded = toml.anchor_paths(toml.load(path), PATHS, path.parent)
        table = loaded.get("limits", {})
        if not isinstance(table, dict):
            raise UsageError(f"{path}: limits must be a table, [limits]")
    try:
        in_effect = _in_effect(LimitsConfig.model_validate(table))
    except ValidationError as error:
        raise UsageError(problems_of(error, where)) from error
    if not in_effect.keys() - _NOT_OF_SEARCHES:
        raise UsageError(
            f"{where} states no limit that a search can cross, so that every model would pass: "
            "state one, such as max_seed_deviation_rate = 0"
        )
    return in_effect


def _in_effect(limits: LimitsConfig) -> dict[str, Any]:
    return limits.model_dump(mode="json", exclude_defaults=True)


def _search_settings(settings: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings; with the strategy none where no limit needs a search."""
    wanted = limits.keys() - _NOT_OF_SEARCHES - _OF_SEEDS
    if wanted or any(name in settings for name in _OF_THE_SEARCH):
        return dict(settings)
    return {**settings, "strategy": "none"}


def _device(device: str | Sequence[str] | None) -> str | Sequence[str]:
    if device is not None:
        return device
    of_the_test = RUNNING_TEST.device and RUNNING_TEST.device()
    return of_the_test or "local"


def _search_when_free(
    original: PathOrTable,
    deployed: PathOrTable,
    seeds: SeedInputs,
    device: str | Sequence[str],
    wait_s: float,
    parent: str | os.PathLike[str] | None,
    settings: Mapping[str, Any],
) -> SearchResult:
    """Search in a new folder once no other campaign holds the device.

    Raises DeviceBusyError where that takes too long, else as `search`.
    """
    began = time.monotonic()
    folder = _new_folder(parent, deployed)
    try:
        while True:
            try:
                return search(original, deployed, seeds, device, folder=folder, **settings)
            except DeviceBusyError as error:
                waited = time.monotonic() - began
                if waited >= wait_s:
                    raise DeviceBusyError(
                        f"{error}; it was waited for {duration(waited)}: free it, or wait longer "
                        f"(wait_s = {wait_s:g})"
                    ) from error
            time.sleep(_POLL_S)
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # where it is empty
        raise


def _new_folder(parent: str | os.PathLike[str] | None, deployed: PathOrTable) -> Path:
    """Make the campaign's folder, which no other process has. Raises StoreError."""
    path = deployed.get("path", "") if isinstance(deployed, Mapping) else deployed
    stem = Path(path).stem or "campaign"
    try:
        if parent is None and RUNNING_TEST.make_folder is not None:
            folder = RUNNING_TEST.make_folder() / stem
            folder.mkdir()
            return folder
        while True:
            folder = new_folder_name(os.fspath(parent or "campaigns"), stem).absolute()
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise StoreError(
            f"no folder for the campaign can be made in {parent or 'campaigns'}: "
            f"{error.strerror}; choose another one (folder)"
        ) from error
