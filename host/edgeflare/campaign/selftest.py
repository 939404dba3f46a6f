"""The self-test: the demo's search where it must find nothing, and where it must find something."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from edgeflare.campaign import single
from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.control import alarms_in, control_config
from edgeflare.campaign.demo import FOLDER, demo_config
from edgeflare.campaign.progress import Event, Notice, Progress, Stage, silent
from edgeflare.devices import LOCAL
from edgeflare.store import Store

SELFTEST_STRATEGY = "boundary"
_OPTIONS = {
    "crossing": "least-l2",
    "effort": 32,
    "candidates": 1,
}  # all options are stated, so none is measured
_MAX_QUERIES = 25


@dataclass(frozen=True)
class SelfTestPair:
    """What the `searches` of one pair that asked the device came to; `of_one_model`: its two models differ by rounding alone.

    There each of the `triggers` is a false alarm.
    """

    name: str
    searches: int
    triggers: int
    of_one_model: bool

    @property
    def false_alarms(self) -> int:
        """The number of triggers found where none is expected."""
        return self.triggers if self.of_one_model else 0


@dataclass(frozen=True)
class SelfTest:
    """The result of the self-test: `strategy` and `margin_floor` of its searches, and the result of each pair."""

    strategy: str
    margin_floor: float
    seconds: float
    pairs: tuple[SelfTestPair, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, a sentence each; none where EdgeFlare can be relied on here."""
        found = [
            f"{one.false_alarms} false alarms ({one.name}): on this machine rounding alone passes for a "
            "deviation; raise --margin-floor in your campaigns, and please report it"
            for one in self.pairs
            if one.false_alarms
        ]
        found += [
            f"nothing was found ({one.name}), where something is to be found: please report it"
            for one in self.pairs
            if not one.of_one_model and not one.triggers
        ]
        found += [
            f"no search was possible ({one.name}): its model can't answer, or no search asked it; please report it"
            for one in self.pairs
            if one.of_one_model and not one.searches
        ]
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        pairs = [{**asdict(one), "false_alarms": one.false_alarms} for one in self.pairs]
        problems = list(self.problems)
        return {**asdict(self), "pairs": pairs, "problems": problems, "passed": not problems}


def run_selftest(*, seeds: int = 20, progress: Progress = silent) -> SelfTest:
    """Search from the demo's first `seeds` (1 to 100) images with three deployed models, on this machine.

    They are the original itself, computed in another order; its float copy in another runtime; and its
    int8 version. Nothing is left on disk. Raises an `EdgeFlareError` of any kind.
    """
    began = time.monotonic()
    found = []
    with TemporaryDirectory(prefix="edgeflare-selftest-", ignore_cleanup_errors=True) as scratch:
        for name, config, of_one_model in _pairs(seeds, Path(scratch)):
            folder = single.begin(config, devices=[LOCAL], progress=_named(name, progress))
            with Store.open(folder) as store:
                alarms = alarms_in(store)
            found.append(SelfTestPair(name, alarms.searches, alarms.false_alarms, of_one_model))
    search = config.search
    return SelfTest(search.strategy, search.margin_floor, time.monotonic() - began, tuple(found))


def _pairs(seeds: int, scratch: Path) -> Iterator[tuple[str, CampaignConfig, bool]]:
    """Yield each pair's name, its configuration, and whether both are the same model."""
    demo = demo_config(seeds=seeds, out=scratch / "int8")
    search = demo.search.model_copy(
        update={
            "strategy": SELFTEST_STRATEGY,
            "options": _OPTIONS,
            "max_queries": _MAX_QUERIES,
            "timeout_s": 0.0,
        }
    )
    demo = demo.model_copy(update={"search": search})
    copied = demo.model_copy(update={"control_model": FOLDER / "original.tflite"})
    yield "the original against itself", control_config(demo, scratch / "itself"), True
    yield "the original against its float copy", control_config(copied, scratch / "copy"), True
    yield "the original against its int8 version", demo, False


def _named(name: str, progress: Progress) -> Progress:
    """Return a progress function that names the pair in each stage, and drops notices on how to resume."""

    def tell(event: Event) -> None:
        if isinstance(event, Stage):
            event = event._replace(detail=f"{name}, {event.detail}")
        if not (isinstance(event, Notice) and event.resume):
            progress(event)

    return tell
