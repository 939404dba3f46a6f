"""How images enter the original, told by labelled seeds where nothing else tells."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair.inputs import chosen_input, inferred_input, seed_rows
from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.errors import InferenceFailedError, ModelError, UsageError
from edgeflare.models import InputOptions, InputSpec, OriginalModel
from edgeflare.models.image_input import UnknownScalingError
from edgeflare.models.inferred_input import Inference, alike
from edgeflare.models.input_metadata import InferredInput
from edgeflare.models.usual_inputs import usual_ways, values_of
from edgeflare.seeds import SeedSource
from edgeflare.types import Query, SeedInput, with_row

_READ, _MOST, _FEWEST = 1000, 120, 16
"""Seeds that are read, the most that are asked about, and the fewest labelled ones that tell anything."""
_PARTS = (16, 32, 64, _MOST)
"""So many seeds are asked about before ways that are surely worse are left out."""
_LEAST_RIGHT = 0.5


class LabelledFeed(NamedTuple):
    """A configuration that states the scaling which labels tell, and what they say."""

    config: CampaignConfig
    told_by: InferredInput


def resolved_pair(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet, source: SeedSource | None
) -> tuple[CampaignConfig, tuple[ModelInterface, ModelInterface]]:
    """Return both models' interfaces as `resolve_pair`, and a configuration that states what labels told.

    Where nothing else tells how the original is fed, labelled seeds of the `source` may. Raises as
    `resolve_pair` where they don't.
    """
    try:
        return config, resolve_pair(config, original, fleet)
    except UnknownScalingError:
        labelled = None if source is None else feed_by_labels(config, original, fleet, source)
        if labelled is None:
            raise
    sides = resolve_pair(labelled.config, original, fleet)
    return labelled.config, (sides[0]._replace(feed=labelled.told_by.told_by()), sides[1])


def feed_by_labels(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet, source: SeedSource
) -> LabelledFeed | None:
    """Return the scaling in which the original is right where it isn't in any other; None: none is.

    By McNemar, among the usual ones in both colour orders. Where some aren't told apart, that which the
    integers behind an input were calibrated for counts, if it is as right as the best. The device isn't asked.
    """
    if config.original.input.has_scaling:
        return None  # it is the deployed model's that isn't known
    filled = _stating(config, InputOptions(scale="1/255"))
    try:
        sides = resolve_pair(filled, original, fleet)
    except UsageError:
        return None
    side = sides[0]
    if not isinstance(side.spec, InputSpec) or not side.kind.has_classes or side.classes < 2:
        return None
    seeds = _labelled(source, config.search.seed)
    labels = np.array([seed.label for seed in seeds])
    if len(seeds) < _FEWEST or len(set(labels.tolist())) < 2 or labels.max() >= side.classes:
        return None
    rows = seed_rows(sides, [seed.id for seed in seeds])
    samples = [with_row(seed.sample, rows.get(seed.id)) for seed in seeds]
    size = seeds[0].sample.shape[:2]
    ways = usual_ways(side.spec, side.spec, (size[0], size[1]), placed=False)
    inferences = _inferences(config, original, fleet)
    tried = _Tried(original, side, samples, labels)
    best = tried.best(ways, [one.behind for one in inferences if one.behind is not None])
    if best is None:
        return None
    right = tried.right[best][: tried.counts[best]]
    told = f"{int(right.sum())} of {len(right)} right"
    options = values_of(best)
    return LabelledFeed(_stating(config, options), InferredInput("labels", options, (told,)))


def _inferences(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet
) -> tuple[Inference, Inference]:
    model = fleet.sessions[0].model
    first = chosen_input(config.original, original.inputs, "the original model")
    second = chosen_input(config.deployed, model.inputs, "the deployed model")
    return (
        inferred_input(config.original, original.inputs, original.metadata, first),
        inferred_input(config.deployed, model.inputs, model.metadata, second),
    )


def _stating(config: CampaignConfig, options: InputOptions) -> CampaignConfig:
    """Return a configuration that states this for the original."""
    stated = config.original.input.model_dump(exclude_none=True)
    scaled = InputOptions.model_validate({**options.model_dump(exclude_none=True), **stated})
    original = config.original.model_copy(update={"input": scaled})
    return config.model_copy(update={"original": original})


def _labelled(source: SeedSource, seed: int) -> list[SeedInput]:
    """Return at most so many labelled seeds of the first ones, drawn at random."""
    labelled = [one for one in islice(source, _READ) if one.label is not None]
    drawn = np.random.default_rng(seed).permutation(len(labelled))[:_MOST]
    return [labelled[int(place)] for place in drawn]


class _Tried:
    """What the original decides in ways of feeding it; `right`: on which seeds it is right in each."""

    def __init__(
        self,
        original: OriginalModel,
        side: ModelInterface,
        samples: Sequence[Query],
        labels: NDArray[np.int64],
    ) -> None:
        self._original, self._side = original, side
        self._samples, self._labels = samples, labels
        self.right: dict[InputSpec, NDArray[np.bool_]] = {}
        self.counts: dict[InputSpec, int] = {}

    def best(
        self, ways: Sequence[InputSpec], calibrated: Sequence[InferredInput]
    ) -> InputSpec | None:
        """Return the way that is surely better than all others, or as good as the best and calibrated for."""
        kept = list(ways)
        parts = sorted({min(part, len(self._samples)) for part in _PARTS})
        for count in parts:
            for way in kept:
                self._ask(way, count)
            best = max(kept, key=lambda way: int(self.right[way][:count].sum()))
            kept = [way for way in kept if way == best or not self._is_worse(way, best, count)]
            if len(kept) == 1 or count == len(self._samples):
                break
        if self.right[best][:count].mean() < _LEAST_RIGHT:
            return None
        if len(kept) == 1:
            return best
        most = int(self.right[best][:count].sum())
        fitting = [
            way
            for way in kept
            if any(alike(values_of(way), one.options) for one in calibrated)
            and int(self.right[way][:count].sum()) >= most - 1
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _is_worse(self, way: InputSpec, best: InputSpec, count: int) -> bool:
        ours, theirs = self.right[best][:count], self.right[way][:count]
        won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
        return won - lost >= 3 + 2 * math.sqrt(won + lost)

    def _ask(self, way: InputSpec, count: int) -> None:
        """Ask about the first seeds in a way, as far as that isn't known."""
        known = self.counts.get(way, 0)
        right = self.right.setdefault(way, np.zeros(len(self._samples), bool))
        for place in range(known, count):
            right[place] = self._decided(way, self._samples[place]) == self._labels[place]
        self.counts[way] = max(known, count)

    def _decided(self, way: InputSpec, sample: Query) -> int:
        try:
            raw = self._original.raw(sample, way)
        except (InferenceFailedError, ModelError):
            return -1
        values = np.asarray(raw[0] if isinstance(raw, tuple) else raw, np.float64).reshape(-1)
        is_usable = values.size == self._side.classes and np.isfinite(values).all()
        return int(values.argmax()) if is_usable else -1
