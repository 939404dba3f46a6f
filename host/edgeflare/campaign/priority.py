"""The order of a campaign's seeds: by what the original alone tells of them, or by the survey."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.outputs import has_one_value
from edgeflare.campaign.pair.model_pair import RawOriginal, original_reader
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import SeedsConfig
from edgeflare.errors import InferenceFailedError, UsageError
from edgeflare.models import AnswerReader, OriginalModel
from edgeflare.models.tensors import open_graph
from edgeflare.store import Store
from edgeflare.types import Output, Sample, SeedInput
from edgeflare_whitebox import InspectedOriginal, drift_priorities, order_of, priorities

FIRST_SEEDS = 64
"""Number of seeds by which the kind of a model's output is detected."""
_FLAG = "--prioritise"


def is_ordered_before(seeds: SeedsConfig) -> bool:
    """Whether the seeds are ordered before a device is asked, by the original alone."""
    return seeds.prioritise not in (None, "drift")


def check_priority(config: CampaignConfig, sides: tuple[ModelInterface, ModelInterface]) -> None:
    """Raise UsageError where two models' answers, or the settings, don't allow the seeds' order."""
    measure = config.seeds.prioritise
    if measure is None:
        return
    stated = f"{_FLAG} {measure}"
    if not all(side.kind.has_classes for side in sides):
        raise UsageError(
            f"{stated} needs an original with a score for each class, and these models answer with "
            f"{sides[0].answers}: leave {_FLAG} out"
        )
    if sides[0].chosen is not None and sides[0].chosen.rows and measure != "drift":
        raise UsageError(
            f"{stated} orders the seeds before their rows of the other inputs are known: leave {_FLAG} "
            "out, or take drift"
        )
    if not sides[0].kind.is_scored:
        raise UsageError(
            f"{stated} needs an original with a score for each class, and this one returns a label: "
            f"leave {_FLAG} out"
        )
    InspectedOriginal.check(measure, config.original.path)  # before the device is asked anything
    if measure == "surprise" and has_one_value(sides[0].output):
        raise UsageError(
            f"{stated} needs an original with a score for each class, and this one returns a single "
            f"one: take {_FLAG} margin"
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


class SourcePriority:
    """Tells how promising the seeds of a source are, by the original alone."""

    def __init__(
        self, config: CampaignConfig, original: OriginalModel, side: ModelInterface
    ) -> None:
        self._config = config
        self._original = original
        self._side = side

    def __call__(self, seeds: Iterable[SeedInput]) -> NDArray[np.float64]:
        """Return the priorities, float64 [seeds]. Raises as `edgeflare_whitebox.priorities`."""
        measure = self._config.seeds.prioritise
        assert measure is not None  # noqa: S101 - else there is no order
        inside = self._inside() if measure in ("surprise", "rarity") else None
        raw = RawOriginal(self._original)
        reader: AnswerReader | None = None

        def answer(sample: Sample) -> Output | None:
            try:
                return raw.answer([sample])[0][0]
            except InferenceFailedError:  # its seed query will fail, too, and be told of
                return None

        with ThreadPoolExecutor(os.cpu_count()) as threads:

            def scores(samples: Sequence[Sample]) -> list[Output | None]:
                nonlocal reader
                raws = list(threads.map(answer, samples))
                if reader is None:
                    known = [one for one in raws if one is not None]
                    reader = original_reader(self._config, self._side, known[:FIRST_SEEDS])
                return [None if one is None else reader.read(one) for one in raws]

            return priorities(measure, seeds, scores, inside)

    def _inside(self) -> InspectedOriginal:
        path, runtime = self._config.original.path, str(self._original.in_effect["name"])
        options = self._config.original.options
        graph = open_graph(path, runtime, options, self._side.output.name)
        return InspectedOriginal(path, graph, self._side.spec)


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
