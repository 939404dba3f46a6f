"""What matters in a campaign's original, and what its inputs reach of it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from edgeflare._internal import extras
from edgeflare._internal.records import JsonRecord
from edgeflare.analysis import RunContext
from edgeflare.campaign.settings.flags import Flag
from edgeflare.errors import ModelError, UsageError
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Sample
from edgeflare_agent.image_spec import InputSpec
from edgeflare_whitebox.activations import default_layers, prepared
from edgeflare_whitebox.importance import (
    IMPORTANT_UNITS,
    LayerImportance,
    Samples,
    importance_of_layers,
)
from edgeflare_whitebox.relevance import (
    RelevanceModel,
    check_traceable,
    most_relevant,
    relevance_map,
)
from edgeflare_whitebox.stored import (
    ProfileSettings,
    SetCounts,
    StoredOriginal,
    Tell,
    input_sets,
    inspect_campaign,
    layers_flag,
    original_path,
    profile_source,
    set_counts,
    silent,
    stored_original,
)
from edgeflare_whitebox.words.inspections import SET_WORDS

_FACT = "importance"
_DRAWN = 6
"""Triggering inputs whose most relevant pixels are drawn."""
_DRAWN_SHARE = 0.05
"""The share of an image's pixels that are drawn."""


@dataclass(frozen=True)
class RelevantPixels:
    """The pixels that the original's decision on an image rests on most.

    `sample` is the image's digest, `label` what the original decides there, `pixels` are the places
    of at most a twentieth of its pixels, the most relevant first, row * width + column.
    """

    sample: str
    label: int
    pixels: tuple[Annotated[int, Field(ge=0, lt=1 << 31)], ...]


@dataclass(frozen=True)
class ImportanceFound(JsonRecord):
    """What matters in a campaign's original: its layers in order, and some triggering inputs.

    `model` is the name of the original's file. `number` units of a layer count as important.
    `profile` is None where the seeds are the profiling inputs, else where these are from; of
    `profiled` ones the original decides `counted` as they are labelled, or they have no label.
    `finished`: the campaign is. `drawn` are pairs of a
    seed and a triggering input found from it; none of audio.
    """

    model: str
    number: int
    profile: str | None
    profiled: int
    counted: int
    inputs: SetCounts
    finished: bool
    layers: tuple[LayerImportance, ...]
    drawn: Annotated[tuple[tuple[RelevantPixels, RelevantPixels], ...], Field(max_length=_DRAWN)]
    notices: tuple[str, ...] = ()


class ImportanceSettings(ProfileSettings):
    """What `importance_of_campaign` is told."""

    number: Annotated[int, Flag("--units", metavar="N")] = Field(
        IMPORTANT_UNITS, ge=1, description="Units of each layer that count as important."
    )
    layers: Annotated[tuple[str, ...], layers_flag()] = ()


def stored_importance(store: Store) -> ImportanceFound | None:
    """Return what `importance_of_campaign` stored last, None before. Raises StoreError."""
    return store.result(_FACT, ImportanceFound)


def importance_of_campaign(
    folder: Path, *, tell: Tell = silent, **settings: Any
) -> ImportanceFound:
    """Find what matters in a campaign's original, and which of it its inputs reach; store and return it.

    `settings` are those of ``edgeflare inspect importance``: `original`, `profile` and `resize` as of
    `coverage_of_campaign`; `number` units of each layer are the important ones; `layers` are by
    default those of `default_layers` but the last one, whose units are the classes; `random_seed` is
    that of k-means and of the units drawn at random. Profiling inputs are labelled as seeds are.

    Raises as `coverage_of_campaign`, and UsageError where PyTorch or scikit-learn is missing, for
    an original that is no ONNX model, and for operators that relevance can't be traced back
    through.
    """
    found: ImportanceFound = inspect_campaign("importance", folder, tell, **settings)
    return found


def find_importance(
    store: Store, settings: ImportanceSettings, context: RunContext
) -> ImportanceFound:
    """Return what `importance_of_campaign` does, of an open campaign; nothing is stored."""
    check_traceable(
        original_path(store, settings.original)
    )  # before a large profile is read for labels
    extras.torch("inspection", "relevance")
    extras.scikit_learn("cluster", "inspection", "importance")
    model = stored_original(store, settings.original)
    model.kind.check_classes(
        UsageError(
            f"importance is that of decisions for classes, and {model.path.name} {model.returns}"
        )
    )
    samples, labels = _profile(store, model, settings)
    sets, notices = input_sets(store)
    known = default_layers(model.graph)

    def told(given: Iterable[Sample], what: str, total: int) -> Iterator[Sample]:
        context.tell(what, 0, total)
        for done, sample in enumerate(given, 1):
            yield sample
            context.tell(what, done, total)

    def reading(digests: Sequence[str], what: str) -> Samples:
        return lambda: told(map(store.get_sample, digests), what, len(digests))

    found, counted = importance_of_layers(
        model.path,
        model.graph,
        model.spec,
        lambda: told(samples(), "the profile", len(labels)),
        labels,
        {which: reading(some, SET_WORDS[which]) for which, some in sets.items() if some},
        settings.layers or known[:-1] or known,
        number=settings.number,
        random_seed=settings.random_seed,
    )
    return ImportanceFound(
        model=model.path.name,
        number=settings.number,
        profile=settings.profile_path,
        profiled=len(labels),
        counted=counted,
        inputs=set_counts(sets),
        finished=store.state.finished,
        layers=found,
        drawn=tuple(_drawn(store, model)),
        notices=tuple(notices),
    )


def _profile(
    store: Store, model: StoredOriginal, settings: ProfileSettings
) -> tuple[Samples, list[int | None]]:
    """Return the profiling inputs, and their labels; the seeds where there is no path."""
    source = profile_source(store, model.spec, settings)
    if source is None:
        return lambda: iter(store.seed_samples()), [seed.label for seed in store.seeds()]
    return lambda: (one.sample for one in source), [one.label for one in source]


def _drawn(store: Store, model: StoredOriginal) -> Iterator[tuple[RelevantPixels, RelevantPixels]]:
    """Yield the most relevant pixels of some seeds, and of the triggering inputs found from them."""
    if not isinstance(model.spec, InputSpec):
        return
    relevance = RelevanceModel(model.path, model.graph)

    def pixels(digest: str, spec: InputSpec) -> RelevantPixels:
        image = store.get_sample(digest)
        found = relevance.relevances(prepared(image, spec))
        places = relevance_map(found, spec, image.shape)
        chosen = most_relevant(places, max(1, round(places.size * _DRAWN_SHARE)))
        positive = chosen[places.reshape(-1)[chosen] > 0]
        return RelevantPixels(digest, found.label, tuple(positive.tolist()))

    seeds = {one.id: one.sample for one in store.seeds()}
    triggers = (
        (seeds[outcome.seed_id], outcome.trigger)
        for outcome in store.outcomes()
        if outcome.status in TRIGGERS and outcome.trigger not in (None, seeds[outcome.seed_id])
    )
    for seed, trigger in islice(triggers, _DRAWN):
        assert trigger is not None  # noqa: S101 - left out above
        with suppress(ModelError):  # the original's score isn't finite
            yield pixels(seed, model.spec), pixels(trigger, model.spec)
