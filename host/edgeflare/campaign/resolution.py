"""Chooses the boundary search's open options once for a campaign: by the seeds, or by measuring."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from edgeflare._internal.text import names_text
from edgeflare.answers import AnswerKind, kind_of_task
from edgeflare.answers.oracles import is_measured
from edgeflare.campaign.events import Notice, Reporter, Stage
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig
from edgeflare.errors import DeviceAwayError, InferenceFailedError
from edgeflare.scheduler import Original
from edgeflare.store import Store
from edgeflare.strategies.boundary import (
    Answered,
    BoundaryOptions,
    answered_words,
    has_open_choice,
    resolve_options,
)
from edgeflare.types import Sample, Task
from edgeflare.words import campaign as words

STRATEGY = "boundary"
RESOLVED = ("crossing", "effort", "tied_classes", "candidates")
"""The options that are resolved."""
_TIMES = 8
_ENOUGH_S = 10.0
_LEAST_TIMES = 3
_LEAST_PATIENCE_S = 60.0


class _MeasuredDevice(Protocol):
    """A device with the deployed model, such as a ReconnectingSession."""

    @property
    def name(self) -> str: ...

    def submit(self, samples: Sequence[Sample]) -> "Future[Any]":
        """Queue a request without waiting for anything."""
        ...


def resolve_search(
    config: CampaignConfig,
    task: Task,
    original: Original,
    devices: Sequence[_MeasuredDevice],
    store: Store,
    reporter: Reporter,
) -> CampaignConfig:
    """Return the configuration with all options of the boundary search chosen, and store it.

    `task`: that of the models; with a gallery they have classes. Does nothing for other strategies,
    nor where all is stated or was resolved before: a campaign that is resumed keeps those that it
    started with. The choice follows from the seeds, which must be answered. With `search.tune` a
    device query is measured and the choice follows from that: it depends on how fast devices and
    host are just then, and a notice says how to repeat it. Queries of the measurement are counted
    apart from those of searches. Raises DeviceAwayError where no device answers within the fleet's
    patience, and the errors of devices and models.
    """
    search = config.search
    if search.strategy != STRATEGY:
        return config
    options = BoundaryOptions.model_validate(search.options)
    samples = _first_samples(store)
    left = (options.candidates, options.tied_classes)
    is_open = has_open_choice(options)
    if not samples or (not is_open and None not in left):
        return config
    of = answered_with(search, task, audio=samples[0].ndim == 1)
    resolve = partial(resolve_options, options, max(samples[0].shape[:2]), config.one_trip, of)
    chosen, notices = resolve(), []
    if search.tune and is_open and of == "image":
        reporter(Stage("device", words.QUERY_COST))
        ratio = cost_ratio(
            original,
            devices,
            samples,
            patience_s=max(_LEAST_PATIENCE_S, config.fleet.patience_s),
            handover_s=max(_LEAST_PATIENCE_S, config.fleet.handover_s),
        )
        chosen = resolve(ratio=ratio)
        notices = [words.tuned(chosen, ratio)]
    elif search.tune and is_open:
        notices = [words.NOTHING_TO_TUNE.format(answered_words(of))]
    if options.candidates is None and search.max_queries:
        most = min(chosen.candidates or 1, search.max_queries)
        chosen = chosen.model_copy(update={"candidates": most})
    values = {**search.options, **{name: getattr(chosen, name) for name in RESOLVED}}
    config = config.model_copy(update={"search": search.model_copy(update={"options": values})})
    store.set_campaign(config.model_dump(mode="json"), notices)
    for notice in notices:
        reporter(Notice(notice))
    return config


def answered_with(search: SearchConfig, task: Task, *, audio: bool) -> Answered:
    """Return what a search from audio, else from images, is of, by the task of the models."""
    by_distance = AnswerKind.boundary_options if is_measured(dict(search)) else ""
    of_sample: Answered = "audio" if audio else "image"
    return kind_of_task(task).boundary_options or by_distance or of_sample


def resolved_as_in(campaign: Path, search: SearchConfig) -> SearchConfig | None:
    """Return a search with the open options as a campaign resolved them; None: not yet."""
    with Store.open(campaign) as store:
        found = store.setting("search", "options")
    if any(found.get(name) is None for name in RESOLVED):
        return None
    options = {**search.options, **{name: found[name] for name in RESOLVED}}
    return search.model_copy(update={"options": options})


def cost_ratio(
    original: Original,
    devices: Sequence[_MeasuredDevice],
    samples: Sequence[Sample],
    *,
    patience_s: float,
    handover_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the time of a device query over that of the original's; of the slowest device.

    Each is the median over about eight requests of one sample, one after the other, round trip
    included. Samples on which a device can't answer are left out. A device counts that answers
    within `patience_s`, or within `handover_s` once another one did. Raises as `resolve_search`.
    """

    def ask(device: _MeasuredDevice, sample: Sample) -> None:
        pending = device.submit([sample])
        if wait([pending], patience_s).not_done:
            raise _no_answer([device], patience_s)
        pending.result()

    host = _median_seconds(lambda sample: original.answer([sample]), samples, clock)
    took = []
    for device in _responding(devices, samples[0], patience_s, handover_s):
        with suppress(DeviceAwayError):
            took.append(_median_seconds(partial(ask, device), samples, clock))
    if not took:
        raise _no_answer(devices, patience_s)
    return max(took) / host if host > 0 else 0.0


def _responding(
    devices: Sequence[_MeasuredDevice], sample: Sample, patience_s: float, handover_s: float
) -> Sequence[_MeasuredDevice]:
    """Return the devices that answer within the limits; a single device in any case."""
    if len(devices) == 1:
        return devices
    first = [device.submit([sample]) for device in devices]
    wait(first, patience_s, FIRST_COMPLETED)
    if not any(one.done() for one in first):
        return ()
    wait(first, handover_s)
    return [device for device, one in zip(devices, first, strict=True) if one.done()]


def _no_answer(devices: Sequence[_MeasuredDevice], patience_s: float) -> DeviceAwayError:
    names = names_text([device.name for device in devices])
    return DeviceAwayError(
        f"{names} did not answer within {patience_s:g} s; is it on and reached? Try "
        "`edgeflare devices check`"
    )


def _median_seconds(
    ask: Callable[[Sample], object], samples: Sequence[Sample], clock: Callable[[], float]
) -> float:
    """Return the median seconds of a query; 0.0 where none was answered."""
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
