"""What the boundary search leaves open, chosen once: when a campaign is created, by what queries cost."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import cycle, islice
from statistics import median
from typing import Any, Protocol

from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.progress import Notice, Stage
from edgeflare.campaign.reporter import Reporter
from edgeflare.errors import DeviceAwayError, InferenceFailedError
from edgeflare.scheduler import Original
from edgeflare.search.boundary import BoundaryOptions, is_open, resolved
from edgeflare.store import Store
from edgeflare.types import Sample

STRATEGY = "boundary"
RESOLVED = ("crossing", "effort", "candidates")
"""The options that are resolved."""
_TIMES = 8
_ENOUGH_S = 10.0
_LEAST_TIMES = 3


class Measured(Protocol):
    """A device with the deployed model, such as a SteadySession."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def submit(self, samples: Sequence[Sample]) -> "Future[Any]":
        """Queue a request without waiting for anything."""
        ...


def resolve_search(
    config: CampaignConfig,
    original: Original,
    devices: Sequence[Measured],
    store: Store,
    reporter: Reporter,
) -> CampaignConfig:
    """Return the configuration with nothing left open of the boundary search, and store it.

    Does nothing for other strategies, nor where all is stated or was resolved before: a campaign that is
    resumed keeps what it began with. What the searches find depends on the result, and that on how
    fast devices and host are just now; a notice says how to repeat it. The seeds must be answered; what is
    asked to measure counts as no query of a search. Raises DeviceAwayError where a device does not
    answer within the fleet's patience, and the errors of devices and models.
    """
    search = config.search
    if search.strategy != STRATEGY:
        return config
    options = BoundaryOptions.model_validate(search.options)
    samples = _first_samples(store)
    if not samples or (not is_open(options) and options.candidates is not None):
        return config
    ratio = 0.0
    if is_open(options):
        reporter(Stage("device", "what a query costs"))
        ratio = cost_ratio(original, devices, samples, patience_s=config.fleet.patience_s)
    chosen = resolved(options, ratio, max(samples[0].shape[:2]), config.one_trip)
    notices = [_told(chosen, ratio)] if is_open(options) else []
    values = {**search.options, **{name: getattr(chosen, name) for name in RESOLVED}}
    config = config.model_copy(update={"search": search.model_copy(update={"options": values})})
    store.set_campaign(config.model_dump(mode="json"), notices)
    for notice in notices:
        reporter(Notice(notice))
    return config


def cost_ratio(
    original: Original,
    devices: Sequence[Measured],
    samples: Sequence[Sample],
    *,
    patience_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return how many queries of the original one device query costs, in time; of several devices the slowest's.

    Each is the median over about eight requests of one sample, one after the other, round trip
    included. Samples on which a device can't answer tell nothing. Raises as `resolve_search`.
    """

    def ask(device: Measured, sample: Sample) -> None:
        pending = device.submit([sample])
        if wait([pending], patience_s).not_done:
            raise DeviceAwayError(
                f"{device.name} did not answer within {patience_s:g} s; is it on and reached? Try "
                "`edgeflare devices check`"
            )
        pending.result()

    host = _typical(lambda sample: original.scores([sample]), samples, clock)
    slowest = max(
        _typical(lambda sample, device=device: ask(device, sample), samples, clock)  # type: ignore[misc]
        for device in devices
    )
    return slowest / host if host > 0 else 0.0


def _typical(
    ask: Callable[[Sample], object], samples: Sequence[Sample], clock: Callable[[], float]
) -> float:
    """Return the median of an asking's seconds; 0.0 where none was answered."""
    took: list[float] = []
    for sample in islice(cycle(samples), _TIMES):
        began = clock()
        with suppress(InferenceFailedError):
            ask(sample)
            took.append(clock() - began)
        if sum(took) > _ENOUGH_S and len(took) >= _LEAST_TIMES:
            break
    return median(took) if took else 0.0


def _first_samples(store: Store) -> list[Sample]:
    """Return the first seeds that were answered."""
    answered = (seed for seed in store.seeds() if seed.outputs is not None)
    return [store.get_sample(seed.sample) for seed in islice(answered, _TIMES)]


def _told(chosen: BoundaryOptions, ratio: float) -> str:
    about = f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.2g}"
    return (
        f"crossing: {chosen.crossing}, effort {chosen.effort} (a device query costs about {about} host "
        f"queries); `--crossing {chosen.crossing} --option effort={chosen.effort}` repeats it"
    )
