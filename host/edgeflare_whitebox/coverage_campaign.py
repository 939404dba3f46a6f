"""Coverage of a campaign's original by its seeds, its triggering inputs and its survey's findings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from edgeflare._internal.records import JsonRecord
from edgeflare.analysis import RunContext
from edgeflare.campaign.settings.flags import Flag
from edgeflare.errors import UsageError
from edgeflare.models.tensors import ModelGraph
from edgeflare.store import Store
from edgeflare.types import Sample
from edgeflare_whitebox.activations import (
    Activations,
    default_layers,
    model_digest,
    penultimate_layer,
)
from edgeflare_whitebox.coverage import KMNC, NBC, NC, SNAC, TKNC, CoverageCriterion, UnitCriterion
from edgeflare_whitebox.stored import (
    ProfileSettings,
    SetCounts,
    SetShares,
    Tell,
    answered_activations,
    input_sets,
    inspect_campaign,
    layers_flag,
    profile_samples,
    profile_source,
    set_counts,
    silent,
    stored_original,
)
from edgeflare_whitebox.surprise import DSC, LSC
from edgeflare_whitebox.words.inspections import SET_WORDS, skipped_notices
from edgeflare_whitebox.words.names import COUNTED, needs_classes

_FACT = "coverage"
TRACES = 10_000
"""Profiling inputs whose traces are kept at most, for criteria that compare with each of them."""


class CriterionEntry(NamedTuple):
    """A criterion that is measured of campaigns.

    `make` takes the model's digest and the layers' names; `layers` are those by default. `counts`
    says what is counted, with names of settings in braces. `keeps_traces`: its profile is the
    traces of single inputs, by the predicted class.
    """

    make: Callable[[str, Sequence[str]], CoverageCriterion]
    layers: Callable[[ModelGraph], Sequence[str]]
    counts: str
    keeps_traces: bool = False


def _penultimate(graph: ModelGraph) -> Sequence[str]:
    return (penultimate_layer(graph),)


CRITERIA: Mapping[str, CriterionEntry] = {
    "NC": CriterionEntry(NC, default_layers, COUNTED["NC"]),
    "KMNC": CriterionEntry(KMNC, default_layers, COUNTED["KMNC"]),
    "NBC": CriterionEntry(NBC, default_layers, COUNTED["NBC"]),
    "SNAC": CriterionEntry(SNAC, default_layers, COUNTED["SNAC"]),
    "TKNC": CriterionEntry(TKNC, default_layers, COUNTED["TKNC"]),
    "LSC": CriterionEntry(LSC, _penultimate, COUNTED["LSC"], keeps_traces=True),
    "DSC": CriterionEntry(DSC, _penultimate, COUNTED["DSC"], keeps_traces=True),
}
"""The criteria by name, in the order in which they are shown."""


@dataclass(frozen=True)
class CriterionCoverage:
    """What the sets of inputs cover by one criterion.

    `counts` says what is counted. `layers` are names of tensors, `settings` the criterion's.
    """

    name: str
    counts: str
    layers: tuple[str, ...]
    settings: dict[str, Any]
    scores: SetShares


@dataclass(frozen=True)
class CoverageFound(JsonRecord):
    """What the inputs of a campaign cover of its original.

    `model` is the name of the original's file. `units` are those of the layers of criteria over
    units, of which `dead_units` are constant over the profile and left out; both None where there
    is no such criterion. `profile` is None where the seeds are the profiling inputs, else where
    these are from; there are `profiled` of them. `traces` is the number of those that LSC and DSC
    keep, a random subsample drawn with `random_seed` where it is below `profiled`; None without
    such criteria. `finished`: the campaign is.
    """

    model: str
    units: int | None
    dead_units: int | None
    profile: str | None
    profiled: int
    traces: int | None
    random_seed: int
    inputs: SetCounts
    finished: bool
    criteria: tuple[CriterionCoverage, ...]
    notices: tuple[str, ...] = ()


class CoverageSettings(ProfileSettings):
    """What `coverage_of_campaign` is told."""

    criteria: Annotated[tuple[str, ...], Flag("--criterion", metavar="NAME")] = Field(
        (),
        description="Measure by this criterion alone, such as KMNC; may be repeated. By default by all.",
    )
    layers: Annotated[
        tuple[str, ...],
        layers_flag("all outputs of activation functions, and the last but one for LSC and DSC"),
    ] = ()


def stored_coverage(store: Store) -> CoverageFound | None:
    """Return what `coverage_of_campaign` stored last, None before. Raises StoreError."""
    return store.result(_FACT, CoverageFound)


def coverage_of_campaign(folder: Path, *, tell: Tell = silent, **settings: Any) -> CoverageFound:
    """Measure what a campaign's inputs cover of its original; store the result there and return it.

    The campaign may be unfinished. Its inputs are its seeds, its triggering inputs and its survey's
    findings, each once, as they are stored. `settings` are those of ``edgeflare inspect coverage``: `original`,
    `profile`, `resize`, `criteria` (names in `CRITERIA`), `layers` and `random_seed`, which draws the
    subsample of traces, see `TRACES`. Profiling inputs are read as seeds are: of audio that is too
    long for the model the beginning is taken, and other rates are resampled, where the campaign
    states nothing else.

    An input on which the original can't answer is left out; a notice says so. Where the campaign is
    running the result isn't stored; a notice says that, too.

    Raises UsageError where the campaign has no seeds yet, its original isn't the file that it was
    run with or has no tensors that can be read, for names that aren't known, and without onnx for
    an ONNX model; SeedError for the profile; StoreError.
    """
    found: CoverageFound = inspect_campaign("coverage", folder, tell, **settings)
    return found


def measure_coverage(
    store: Store, settings: CoverageSettings, context: RunContext
) -> CoverageFound:
    """Return what `coverage_of_campaign` does, of an open campaign; nothing is stored."""
    entries = _entries(settings.criteria)
    model = stored_original(store, settings.original)
    notices: list[str] = []
    by_class = [name for name, entry in entries.items() if entry.keeps_traces]
    if by_class and not model.kind.has_classes:
        text = needs_classes(by_class, model.path.name, model.returns)
        if settings.criteria:
            raise UsageError(f"{text}; leave them out")
        entries = {name: entry for name, entry in entries.items() if name not in by_class}
        notices.append(f"{text}: left out")
    source = profile_source(store, model.spec, settings)
    digest, stated = model_digest(model.path), tuple(dict.fromkeys(settings.layers))
    fitted = {
        name: entry.make(digest, stated or entry.layers(model.graph))
        for name, entry in entries.items()
    }
    probed = list(dict.fromkeys(name for made in fitted.values() for name in made.layers))

    def activations(
        samples: Iterable[Sample], what: str, total: int | None
    ) -> Iterator[Activations]:
        return answered_activations(model, samples, probed, what, total, context.tell, notices)

    samples, total = profile_samples(store, source)
    rng = np.random.default_rng(settings.random_seed)
    profiled, traces = _fit(activations(samples, "the profile", total), fitted, rng)
    notices += skipped_notices(source)
    sets, left_out = input_sets(store)
    notices += left_out
    union = {name: criterion.emptied() for name, criterion in fitted.items()}
    scores: dict[str, dict[str, float | None]] = {name: {} for name in fitted}
    for which, digests in sets.items():
        parts = {name: criterion.emptied() for name, criterion in fitted.items()}
        inputs = map(store.get_sample, digests)
        for activation in activations(inputs, SET_WORDS[which], len(digests)):
            for part in parts.values():
                part.update([activation])
        for name, part in parts.items():
            scores[name][which] = part.score if part.inputs else None
            union[name].merge(part)
    for name, criterion in union.items():
        scores[name]["union"] = criterion.score if criterion.inputs else None
    of_units = [made for made in fitted.values() if isinstance(made, UnitCriterion)]
    return CoverageFound(
        model=model.path.name,
        units=of_units[0].units or None if of_units else None,
        dead_units=of_units[0].dead if of_units else None,
        profile=settings.profile_path,
        profiled=profiled,
        traces=traces,
        random_seed=settings.random_seed,
        inputs=set_counts(sets),
        finished=store.state.finished,
        criteria=tuple(
            CriterionCoverage(
                name,
                entries[name].counts.format(**criterion.settings),
                criterion.layers,
                criterion.settings,
                SetShares(**scores[name]),
            )
            for name, criterion in fitted.items()
        ),
        notices=tuple(notices),
    )


def _entries(names: Sequence[str]) -> dict[str, CriterionEntry]:
    """Return the entries of criteria, of all without a name, in their order."""
    wanted = {name.upper() for name in names} or set(CRITERIA)
    if unknown := sorted(wanted - set(CRITERIA)):
        raise UsageError(f"there is no criterion {unknown[0]}; take {', '.join(CRITERIA)}")
    return {name: entry for name, entry in CRITERIA.items() if name in wanted}


def _fit(
    inputs: Iterable[Activations],
    criteria: Mapping[str, CoverageCriterion],
    rng: np.random.Generator,
) -> tuple[int, int | None]:
    """Fit all criteria in one pass; return the numbers of profiling inputs and of traces kept.

    Of more than `TRACES` inputs each has the same chance that its trace is kept (Vitter's algorithm
    R).
    """
    plain = [made for name, made in criteria.items() if not CRITERIA[name].keeps_traces]
    traced = [made for name, made in criteria.items() if CRITERIA[name].keeps_traces]
    layers = {name for criterion in traced for name in criterion.layers}
    kept: list[Activations] = []
    profiled = 0
    for profiled, activation in enumerate(inputs, start=1):
        for criterion in plain:
            criterion.fit([activation])
        if not layers:
            continue
        trace = activation._replace(layers={name: activation.layers[name] for name in layers})
        if profiled <= TRACES:
            kept.append(trace)
        elif (place := int(rng.integers(profiled))) < TRACES:
            kept[place] = trace
    for criterion in traced:
        criterion.fit(kept)
    return profiled, len(kept) if traced else None
