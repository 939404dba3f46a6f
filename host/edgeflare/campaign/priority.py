"""The order of a campaign's seeds: by what the original alone tells of them, or by the survey.

An order of the user's own is an entry point of the group ``edgeflare.priorities``: see `SeedPriority`.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import plugins
from edgeflare.answers import kind_of_answer
from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.oracles import margin
from edgeflare.answers.outputs import has_one_value
from edgeflare.campaign.pair.model_pair import RawOriginal, original_reader
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import PRIORITIES, SeedsConfig
from edgeflare.errors import InferenceFailedError, UsageError
from edgeflare.models import AnswerReader, OriginalModel, Spec
from edgeflare.models.tensors import ModelGraph, open_graph
from edgeflare.store import Store
from edgeflare.types import Output, Sample, SeedInput

FIRST_SEEDS = 64
"""Number of seeds that are asked about at once, and by which the kind of a model's output is detected."""
_FLAG = "--prioritise"

Answerer: TypeAlias = Callable[[Sequence[Sample]], Sequence[Output | None]]
"""Returns the original's probabilities, float64 [classes], for each of several samples; None for one
that it can't answer."""


class InspectedOriginal(NamedTuple):
    """An original whose layers are read: its file, its graph, its input.

    `label` makes the predicted class of a raw output, its greatest value where it is None.
    """

    path: Path
    graph: ModelGraph
    spec: Spec
    label: Callable[[NDArray[Any]], int] | None = None


class SeedPriority(Protocol):
    """How promising seeds are by what an original's file tells: a class, made without arguments.

    `needs_several_scores`: originals with a single score have no such order.
    """

    needs_several_scores: bool = False

    def check(self, original: Path) -> None:
        """Raise UsageError for a model file without such an order; nothing of it is read."""

    @abstractmethod
    def __call__(
        self, seeds: Iterable[SeedInput], scores: Answerer, original: InspectedOriginal
    ) -> NDArray[np.float64]:
        """Return how promising each seed is, float64 [seeds]: higher is more so, NaN: unknown.

        `seeds` may be iterated several times, samples are read on the way.
        """
        ...


def priority_of(measure: str) -> SeedPriority:
    """Return an installed order by its name. Raises UsageError where it isn't there or is none."""
    check_measure(measure)
    found = plugins.load("priority", measure)
    if not (isinstance(found, type) and all(name in dir(found) for name in _PARTS)):
        raise plugins.unusable("priority", measure, "must be a subclass of SeedPriority")
    priority: SeedPriority = plugins.made("priority", measure, found)
    return priority


_PARTS = ("needs_several_scores", "check", "__call__")


def check_measure(measure: str) -> None:
    """Raise UsageError for a name that is no measure; nothing is imported."""
    known = (*PRIORITIES, *plugins.names("priority"))
    if measure not in known:
        plugins.check_current("priority", measure)
        raise UsageError(
            f"there is no measure {measure} to order seeds by; take {', '.join(known)}"
        )


def least_margin(output: Output | None) -> float:
    """Return minus the `edgeflare.oracles.margin`, -1 to 0; NaN for no answer, and where there is none."""
    found = None if output is None else margin(output)
    return np.nan if found is None else -found


def gini(output: Output | None) -> float:
    """Return 1 - sum(p ** 2) of probabilities, float64 [classes]: 0 (sure) to 1 - 1 / classes.

    NaN for no answer, and for one with NaN or infinity. Source: Feng et al., "DeepGini", ISSTA
    2020, equation 1.
    """
    if output is None:
        return np.nan
    kind = kind_of_answer(output)
    if not (kind.class_count(output) and kind.is_finite(output)):
        return np.nan
    return float(1 - np.sum(kind.numbers(output) ** 2))


OF_SCORES: Mapping[str, Callable[[Output | None], float]] = {"margin": least_margin, "gini": gini}
"""The measures that need nothing but the original's scores."""


def priorities(
    measure: str,
    seeds: Iterable[SeedInput],
    scores: Answerer,
    inside: InspectedOriginal | None = None,
) -> NDArray[np.float64]:
    """Return how promising each seed is by a measure, float64 [seeds]: higher is more promising.

    `seeds` is iterated once, by ``rarity`` three times; 64 samples are held at once, and by
    ``surprise`` and ``rarity`` the activations of one layer on all seeds. `scores` returns the
    original's probabilities, float64 [classes], for each of several samples, None for one that it
    can't answer. `inside` is for all but ``margin`` and ``gini``. NaN for a seed on which there is
    no such measure.

    - ``margin``: minus the `edgeflare.oracles.margin`, -1 to 0;
    - ``gini``: 1 - sum(p ** 2), 0 to 1 - 1 / classes (Feng et al., "DeepGini", ISSTA 2020);
    - another one: what the `SeedPriority` of this name says.

    Raises UsageError for ``drift``, for transcripts, without `inside` where that is needed, and as
    the `SeedPriority` does.
    """
    if measure == "drift":
        raise UsageError("drift isn't known of the original alone: see drift_priorities")
    if measure in OF_SCORES:
        value = OF_SCORES[measure]
        return np.array([value(one) for one in answers(seeds, scores)], np.float64)
    check_measure(measure)
    if inside is None:
        raise UsageError(f"{measure} looks into the original: name its file and its graph")
    return priority_of(measure)(seeds, scores, inside)


def answers(seeds: Iterable[SeedInput], scores: Answerer) -> Iterator[Output | None]:
    """Yield the original's answers to all seeds. Raises UsageError for what has no scores of classes."""
    samples = (seed.sample for seed in seeds)
    while batch := list(islice(samples, FIRST_SEEDS)):
        for score in scores(batch):
            if score is not None and not kind_of_answer(score).class_count(score):
                raise UsageError(
                    "seeds are ordered by probabilities of classes, and the original returns text, "
                    "boxes or values"
                )
            yield score


def drift_priorities(variations: Iterable[Sequence[float]]) -> NDArray[np.float64]:
    """Return the mean of each seed's total variations, float64 [seeds], 0 to 1; NaN without any.

    They are of both models' probabilities on inputs made from the seed
    (`SurveyRecord.total_variation`).
    """
    return np.array([np.mean(some) if len(some) else np.nan for some in variations], np.float64)


def order_of(found: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places of seeds, most promising first, of their priorities [seeds].

    Infinity is first, NaN last; of equal ones the one that comes first in the source.
    """
    return np.argsort(-found, kind="stable")


def is_ordered_before(seeds: SeedsConfig) -> bool:
    """Whether the seeds are ordered before a device is asked, by the original alone."""
    return seeds.prioritise not in (None, "drift")


def check_priority(config: CampaignConfig, sides: tuple[ModelInterface, ModelInterface]) -> None:
    """Raise UsageError where two models' answers, or the settings, don't allow the seeds' order."""
    measure = config.seeds.prioritise
    if measure is None:
        return
    stated = f"{_FLAG} {measure}"
    if not all(side.classes for side in sides):
        raise UsageError(
            f"{stated} needs an original with a score for each class, and these models answer with "
            f"{sides[0].answers}: leave {_FLAG} out"
        )
    if sides[0].chosen is not None and sides[0].chosen.rows and measure != "drift":
        raise UsageError(
            f"{stated} orders the seeds before their rows of the other inputs are known: leave {_FLAG} "
            "out, or take drift"
        )
    if measure not in PRIORITIES:
        priority = priority_of(measure)
        priority.check(config.original.path)  # before the device is asked anything
        if priority.needs_several_scores and has_one_value(sides[0].output):
            raise UsageError(
                f"{stated} needs an original with a score for each class, and this one returns a "
                f"single one: take {_FLAG} margin"
            )
    if measure != "drift":
        return
    if not config.survey.enabled:
        raise UsageError(
            f"{stated} orders the searches by the survey's answers: leave the survey on (--survey), "
            f"or take {_FLAG} margin"
        )
    if not sides[1].kind.is_scored:
        raise UsageError(
            f"{stated} needs a deployed model with a score for each class, and this one returns a "
            f"label: take {_FLAG} margin"
        )


def source_priorities(
    config: CampaignConfig,
    original: OriginalModel,
    side: ModelInterface,
    seeds: Iterable[SeedInput],
) -> NDArray[np.float64]:
    """Return how promising the seeds of a source are by the original alone. Raises as `priorities`."""
    measure = config.seeds.prioritise
    assert measure is not None  # noqa: S101 - else there is no order
    inside = None
    if measure not in OF_SCORES:
        runtime = str(original.in_effect["name"])
        path, options = config.original.path, config.original.options
        graph = open_graph(path, runtime, options, side.output.name)
        inside = InspectedOriginal(path, graph, side.spec)
    raw = RawOriginal(original)
    reader: AnswerReader | None = None

    def answer(sample: Sample) -> Output | None:
        try:
            return raw.answer([sample])[0][0]
        except InferenceFailedError:  # its seed query will fail, too, and be told of
            return None

    def scores(samples: Sequence[Sample]) -> list[Output | None]:
        nonlocal reader
        raws = list(threads.map(answer, samples))
        if reader is None:
            reader = original_reader(config, side, [one for one in raws if one is not None])
        return [None if one is None else reader.read(one) for one in raws]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return priorities(measure, seeds, scores, inside)


def drift_order(store: Store, replica: str) -> list[str]:
    """Return the ids of all seeds, first those on whose survey inputs the models differ most.

    Seeds without such answers are last, of equal ones the first in the order of the seeds.
    """
    variations: dict[str, list[float]] = {seed.id: [] for seed in store.seeds(replica)}
    for one in store.survey(replica, "survey"):
        if one.total_variation is not None:
            variations[one.seed_id].append(one.total_variation)
    ids = list(variations)
    return [ids[place] for place in order_of(drift_priorities(variations.values()))]
