"""Coverage of a campaign's original by its seeds, its triggering inputs and its survey's findings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare.errors import UsageError
from edgeflare.models.tensors import ModelGraph
from edgeflare.seeds import SeedSource
from edgeflare.store import Store
from edgeflare.types import Sample
from edgeflare_whitebox.activations import (
    Activations,
    default_layers,
    model_digest,
    penultimate_layer,
)
from edgeflare_whitebox.coverage import (
    KMNC,
    NBC,
    NC,
    SNAC,
    TKNC,
    CoverageCriterion,
    UnitCriterion,
)
from edgeflare_whitebox.stored import (
    SET_WORDS,
    SetCounts,
    SetShares,
    StoredOriginal,
    Tell,
    answered_activations,
    input_sets,
    profile_samples,
    profile_source,
    silent,
    skipped_notices,
    store_found,
    stored_original,
)
from edgeflare_whitebox.surprise import DSC, LSC

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
    "NC": CriterionEntry(NC, default_layers, "units above {threshold} of their layer's range"),
    "KMNC": CriterionEntry(KMNC, default_layers, "{sections:,} sections of each unit's range"),
    "NBC": CriterionEntry(NBC, default_layers, "sides on which a unit leaves its range"),
    "SNAC": CriterionEntry(SNAC, default_layers, "units above their range"),
    "TKNC": CriterionEntry(TKNC, default_layers, "units among the {k} most active of a layer"),
    "LSC": CriterionEntry(
        LSC, _penultimate, "{sections:,} sections of surprise by density, to {upper:,g}", True
    ),
    "DSC": CriterionEntry(
        DSC, _penultimate, "{sections:,} sections of surprise by distance, to {upper:,g}", True
    ),
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
class CoverageFound:
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

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self)


def stored_coverage(store: Store) -> CoverageFound | None:
    """Return what `coverage_of_campaign` stored last, None before. Raises StoreError."""
    return store.result(_FACT, CoverageFound)


def coverage_of_campaign(
    folder: Path,
    *,
    original: Path | None = None,
    profile: Path | None = None,
    resize: str | None = None,
    criteria: Sequence[str] = (),
    layers: Sequence[str] = (),
    random_seed: int = 0,
    tell: Tell = silent,
) -> CoverageFound:
    """Measure what a campaign's inputs cover of its original; store the result there and return it.

    The campaign may be unfinished. Its inputs are its seeds, its triggering inputs and its survey's
    findings, each once, as they are stored. `original` is the model's file where it has moved.
    `profile` is a folder or an ``.npz`` with the profiling inputs, such as training inputs; by
    default they are the seeds. They are read as seeds are; `resize` is as of `open_seeds`, by
    default the campaign's. Of audio that is too long for the model the beginning is taken, and
    other rates are resampled, where the campaign states nothing else. `criteria` are names in
    `CRITERIA`, by default all. `layers` are names of tensors; by default those in `CRITERIA`.
    `random_seed` draws the subsample of traces, see `TRACES`.

    An input on which the original can't answer is left out; a notice says so. Where the campaign is
    running the result isn't stored; a notice says that, too.

    Raises UsageError where the campaign has no seeds yet, its original isn't the file that it was
    run with or has no tensors that can be read, for names that aren't known, and without onnx for
    an ONNX model; SeedError for the profile; StoreError.
    """
    folder = Path(folder).absolute()
    with Store.open(folder) as store:
        chosen = _chosen(criteria)
        model = stored_original(store, original)
        notices: tuple[str, ...] = ()
        by_class = [name for name, one in chosen.items() if one.keeps_traces]
        if by_class and not model.has_classes:
            text = (
                f"{', '.join(by_class)}: inputs of the same predicted class are compared, and "
                f"{model.path.name} {model.returns}"
            )
            if criteria:
                raise UsageError(f"{text}; leave them out")
            chosen = {name: one for name, one in chosen.items() if name not in by_class}
            notices = (f"{text}: left out",)
        source = None if profile is None else profile_source(store, model.spec, profile, resize)
        found = _Measurement(store, model, chosen, layers, random_seed, tell).run(source)
        if profile is not None:
            found = replace(found, profile=str(Path(profile).absolute()))
        found = replace(found, notices=(*notices, *found.notices))
        unstored = store_found(store, _FACT, found)
    return replace(found, notices=(*found.notices, *unstored))


def _chosen(names: Sequence[str]) -> dict[str, CriterionEntry]:
    """Return the entries of criteria, of all without a name, in their order."""
    wanted = {name.upper() for name in names} or set(CRITERIA)
    if unknown := sorted(wanted - set(CRITERIA)):
        raise UsageError(f"there is no criterion {unknown[0]}; take {', '.join(CRITERIA)}")
    return {name: one for name, one in CRITERIA.items() if name in wanted}


@dataclass
class _Subsample:
    """A random subsample of what is added, each with the same chance, of `most` at most."""

    most: int
    rng: np.random.Generator
    kept: list[Activations] = field(default_factory=list)
    _seen: int = 0

    def add(self, one: Activations) -> None:
        """Keep it, maybe in place of another one (Vitter's algorithm R)."""
        self._seen += 1
        if len(self.kept) < self.most:
            self.kept.append(one)
        elif (place := int(self.rng.integers(self._seen))) < self.most:
            self.kept[place] = one


class _Measurement:
    """Runs each set of inputs once, for all criteria together; activations of one input are held."""

    def __init__(
        self,
        store: Store,
        model: StoredOriginal,
        chosen: Mapping[str, CriterionEntry],
        layers: Sequence[str],
        random_seed: int,
        tell: Tell,
    ) -> None:
        self._store = store
        self._model = model
        self._tell = tell
        self._random_seed = random_seed
        self._notices: list[str] = []
        digest = model_digest(model.path)
        stated = tuple(dict.fromkeys(layers))
        self._fitted = {
            name: one.make(digest, stated or one.layers(model.graph))
            for name, one in chosen.items()
        }
        self._traced = [one for name, one in self._fitted.items() if chosen[name].keeps_traces]
        self._plain = [one for name, one in self._fitted.items() if not chosen[name].keeps_traces]
        of_all = (name for one in self._fitted.values() for name in one.layers)
        self._layers = list(dict.fromkeys(of_all))

    def run(self, profile: SeedSource | None) -> CoverageFound:
        """Return the coverage; the profiling inputs are the seeds where there is no `profile`."""
        profiled, traces, units = self._fit(profile)
        sets, notices = input_sets(self._store)
        self._notices += notices
        union = {name: one.emptied() for name, one in self._fitted.items()}
        scores: dict[str, dict[str, float | None]] = {name: {} for name in union}
        for which, digests in sets.items():
            parts = {name: one.emptied() for name, one in union.items()}
            samples = map(self._store.get_sample, digests)
            run = 0
            for activation in self._activations(samples, SET_WORDS[which], len(digests)):
                run += 1
                for part in parts.values():
                    part.update([activation])
            for name, part in parts.items():
                scores[name][which] = part.score if run else None
                union[name].merge(part)
        for name, whole in union.items():
            scores[name]["union"] = whole.score if whole.inputs else None
        inputs = {which: len(digests) for which, digests in sets.items()}
        dead = (one.dead for one in self._plain if isinstance(one, UnitCriterion))
        return CoverageFound(
            model=self._model.path.name,
            units=units,
            dead_units=next(dead, None),
            profile=None,
            profiled=profiled,
            traces=traces,
            random_seed=self._random_seed,
            inputs=SetCounts(**inputs, union=len(set().union(*sets.values()))),
            finished=bool(self._store.fact("finished")),
            criteria=tuple(
                CriterionCoverage(
                    name,
                    CRITERIA[name].counts.format(**one.settings),
                    one.layers,
                    one.settings,
                    SetShares(**scores[name]),
                )
                for name, one in self._fitted.items()
            ),
            notices=tuple(self._notices),
        )

    def _fit(self, profile: SeedSource | None) -> tuple[int, int | None, int | None]:
        """Fit all criteria; return the numbers of profiling inputs, of traces kept, and of units."""
        samples, total = profile_samples(self._store, profile)
        kept = _Subsample(TRACES, np.random.default_rng(self._random_seed))
        traced = {name for one in self._traced for name in one.layers}
        profiled = units = 0
        for activation in self._activations(samples, "the profile", total):
            profiled += 1
            for criterion in self._plain:
                criterion.fit([activation])
                if isinstance(criterion, UnitCriterion):
                    units = sum(activation.layers[name].units.size for name in criterion.layers)
            if traced:
                kept.add(
                    activation._replace(layers={name: activation.layers[name] for name in traced})
                )
        for criterion in self._traced:
            criterion.fit(kept.kept)
        self._notices += skipped_notices(profile)
        return profiled, len(kept.kept) if traced else None, units or None

    def _activations(
        self, samples: Iterable[Sample], what: str, total: int | None
    ) -> Iterator[Activations]:
        """Yield the activations of inputs, see `answered_activations`."""
        return answered_activations(
            self._model, samples, self._layers, what, total, self._tell, self._notices
        )
