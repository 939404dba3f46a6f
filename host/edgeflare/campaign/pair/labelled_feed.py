"""How images enter the original, told by labelled seeds where nothing else tells."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import percent_text
from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair.inputs import chosen_input, inferred_input, seed_rows
from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.errors import InferenceFailedError, ModelError, UsageError
from edgeflare.models import InputOptions, InputSpec, OriginalModel
from edgeflare.models.image_input import UnknownScalingError
from edgeflare.models.inferred_input import Inference, alike
from edgeflare.models.input_metadata import BESIDE, InferredInput
from edgeflare.models.usual_inputs import usual_ways, values_of, values_text
from edgeflare.seeds import SeedSource
from edgeflare.types import Query, SeedInput, with_row
from edgeflare.words import inputs as inputs_words
from edgeflare.words.inputs import TOLD_BY, pixels_words

_READ, _MOST, _FEWEST = 1000, 120, 16
"""Seeds that are read, the most that are asked about, and the fewest labelled ones that tell anything."""
_PARTS = (16, 32, 64, _MOST)
"""So many seeds are asked about before ways that are surely worse are left out."""
_LEAST_RIGHT = 0.5
_SHOWN = 4


class LabelledFeed(NamedTuple):
    """A configuration that states the scaling which labels tell, and what they say."""

    config: CampaignConfig
    told_by: InferredInput


def resolved_pair(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet, source: SeedSource | None
) -> tuple[CampaignConfig, tuple[ModelInterface, ModelInterface]]:
    """Return both models' interfaces as `resolve_pair`, and a configuration that states what isn't in their files.

    That is what labels told: where nothing else tells how the original is fed, labelled seeds of the
    `source` may. And it is what files beside them told, which aren't part of the campaign. Raises as
    `resolve_pair` where nothing tells.
    """
    try:
        sides = resolve_pair(config, original, fleet)
    except UnknownScalingError as error:
        labelled = None if source is None else feed_by_labels(config, original, fleet, source)
        if not isinstance(labelled, LabelledFeed):
            raise UnknownScalingError(f"{error}; {labelled or TOLD_BY}") from None
        config = labelled.config
        sides = resolve_pair(config, original, fleet)
        sides = sides[0]._replace(feed=labelled.told_by.told_by()), sides[1]
    update = {
        name: _stating(model, values_of(spec).model_copy(update={"size": spec.size}))
        for name, model, side in (
            ("original", config.original, sides[0]),
            ("deployed", config.deployed, sides[1]),
        )
        if side.feed is not None
        and side.feed["source"] in BESIDE
        and (spec := side.image_spec) is not None
    }
    return config.model_copy(update=update), sides


def _undecided_clause(labelled: int, ways: Sequence[tuple[float, InputOptions]]) -> str:
    """Return that labelled seeds don't tell ways apart, each with the share that is right."""
    shown = (
        f"{pixels_words(values_text(options))} ({percent_text(right)} right)"
        for right, options in ways[:_SHOWN]
    )
    more = len(ways) - _SHOWN
    listed = ", ".join(shown) + (f", {more} more" if more > 0 else "")
    return inputs_words.LABELS_TIED.format(labelled, listed)


def feed_by_labels(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet, source: SeedSource
) -> LabelledFeed | str | None:
    """Return the scaling in which the original is right where it isn't in any other, or why none is; None: no labels.

    By McNemar, among the usual ones in both colour orders, and what the files tell. Where some aren't told
    apart, that which the files tell or the integers behind an input were calibrated for counts, if it is
    as right as the best. The device isn't asked.
    """
    if config.original.input.has_scaling:
        return None  # it is the deployed model's that isn't known
    filled = _of_original(config, InputOptions(scale="1/255"))
    try:
        sides = resolve_pair(filled, original, fleet)
    except UsageError:
        return None
    side = sides[0]
    spec = side.image_spec
    if spec is None or side.label_count < 2:
        return None
    seeds = _labelled(source, config.search.seed)
    labels = np.array([seed.label for seed in seeds])
    if not seeds:
        return None
    classes = len(set(labels.tolist()))
    if labels.max() >= side.classes:
        return inputs_words.LABELS_BEYOND.format(labels.max(), side.classes)
    if len(seeds) < _FEWEST or classes < 2:
        return inputs_words.few_labels(len(seeds), classes)
    rows = seed_rows(sides, [seed.id for seed in seeds])
    samples = [with_row(seed.sample, rows.get(seed.id)) for seed in seeds]
    size = seeds[0].sample.shape[:2]
    inferences = _inferences(config, original, fleet)
    behind = [inference.behind for inference in inferences if inference.behind is not None]
    hints = [feed.options for feed in (*inferences[0].candidates, *behind)]
    ways = usual_ways(spec, spec, (size[0], size[1]), placed=False)
    for options in hints:
        if not any(alike(values_of(way), options) for way in ways):
            ways.append(_fed_so(spec, options))
    tried = _Tried(original, side, samples, labels)
    undecided = tried.best(ways)
    fitting = undecided
    if len(undecided) > 1:
        fitting = [
            way
            for way in undecided
            if any(alike(values_of(way), options) for options in hints)
            and tried.count(way) >= tried.count(undecided[0]) - 1
        ]
    if not undecided:
        return inputs_words.LABELS_FIT_NONE.format(len(ways), len(seeds))
    if len(fitting) != 1:
        shares = [(tried.count(way) / tried.asked, values_of(way)) for way in undecided]
        return _undecided_clause(tried.asked, shares)
    told = inputs_words.LABELS_RIGHT.format(tried.count(fitting[0]), tried.asked)
    options = values_of(fitting[0])
    return LabelledFeed(_of_original(config, options), InferredInput("labels", options, (told,)))


def _fed_so(spec: InputSpec, options: InputOptions) -> InputSpec:
    scale, mean, std = options.factors
    return spec._replace(scale=scale, mean=mean, std=std, color=options.color or spec.color)


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


def _stating(model: ModelConfig, options: InputOptions) -> ModelConfig:
    """Return a model's configuration that states this, but for what it states already."""
    stated = model.input.model_dump(exclude_none=True)
    update = {"input": InputOptions.model_validate(options.model_dump(exclude_none=True) | stated)}
    return model.model_copy(update=update)


def _of_original(config: CampaignConfig, options: InputOptions) -> CampaignConfig:
    return config.model_copy(update={"original": _stating(config.original, options)})


def _labelled(source: SeedSource, seed: int) -> list[SeedInput]:
    """Return at most so many labelled seeds of the first ones, drawn at random."""
    labelled = [seed for seed in islice(source, _READ) if seed.label is not None]
    drawn = np.random.default_rng(seed).permutation(len(labelled))[:_MOST]
    return [labelled[int(place)] for place in drawn]


class _Tried:
    """What the original decides in ways of feeding it, on the first `asked` seeds."""

    def __init__(
        self,
        original: OriginalModel,
        side: ModelInterface,
        samples: Sequence[Query],
        labels: NDArray[np.int64],
    ) -> None:
        self._original, self._side = original, side
        self._samples, self._labels = samples, labels
        self._right: dict[InputSpec, list[bool]] = {}
        self.asked = 0

    def count(self, way: InputSpec) -> int:
        """Return on how many seeds the original is right in a way."""
        return sum(self._right[way][: self.asked])

    def best(self, ways: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the ways that none is surely better than, the best first; none where all are bad."""
        kept = list(ways)
        for self.asked in sorted({min(part, len(self._samples)) for part in _PARTS}):
            for way in kept:
                self._ask(way)
            kept.sort(key=lambda way: -self.count(way))
            kept = [way for way in kept if not self._is_worse(way, kept[0])]
            if len(kept) == 1:
                break
        return kept if self.count(kept[0]) >= _LEAST_RIGHT * self.asked else []

    def _is_worse(self, way: InputSpec, best: InputSpec) -> bool:
        pairs = list(zip(self._right[best], self._right[way], strict=True))
        won, lost = pairs.count((True, False)), pairs.count((False, True))
        return won - lost >= 3 + 2 * math.sqrt(won + lost)

    def _ask(self, way: InputSpec) -> None:
        """Ask about the first seeds in a way, as far as that isn't known."""
        right = self._right.setdefault(way, [])
        for place in range(len(right), self.asked):
            right.append(self._decided(way, self._samples[place]) == self._labels[place])

    def _decided(self, way: InputSpec, sample: Query) -> int:
        try:
            raw = self._original.raw(sample, way)
        except (InferenceFailedError, ModelError):
            return -1
        values = np.asarray(raw[0] if isinstance(raw, tuple) else raw, np.float64).reshape(-1)
        is_usable = values.size == self._side.classes and np.isfinite(values).all()
        return int(values.argmax()) if is_usable else -1
