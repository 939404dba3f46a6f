"""What each layer of the deployed model contributes to a deviation.

The deployed model's values at a cut through both graphs are given to the rest of the original: one
layer after the other becomes the deployed one's. The change of the margin from cut to cut is the
contribution of the layer between them, with the grid of its output; the contributions add up to the
whole change.

Differences: tools that compare layers one by one (SQNR of each tensor) or look for the first layer
that decides otherwise don't add up, and for inputs near the decision boundary the first guilty layer
is mostly a matter of chance.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from edgeflare.answers.metrics import class_scores
from edgeflare.errors import UsageError
from edgeflare.explanation.matching import Match, matched
from edgeflare.explanation.results import LayerFigures, Layers, TensorFigures
from edgeflare.models import OutputReader, Spec, prepare
from edgeflare.models.tensors import ROUNDING, Grid, ModelGraph
from edgeflare.models.tensors.graph import Values
from edgeflare.types import Sample

_MATCHED_ON = 16
_SEEDS = 50
_BYTES = 256 << 20
"""Of tensors that are held at once."""
SAME_ANSWER = 1e-6
"""A change of the margin that is rounding."""
_SAME_UNITS = 0.1
"""Both models' inputs are in the same units where they differ less, as a share of their size."""


class ReadModel(NamedTuple):
    """A model whose tensors are read: its graph, its input's preparation, its output's meaning.

    `spec` is None where the graph takes samples, which a device prepares.
    """

    name: str
    graph: ModelGraph
    spec: Spec | None
    reader: OutputReader

    def read(self, sample: Sample, names: Iterable[str]) -> dict[str, Values]:
        """Return what `ModelGraph.read` does, for a sample."""
        given = sample if self.spec is None else prepare(sample, self.spec)
        return self.graph.read(given, names)

    def margin(self, raw: Any, labels: tuple[int, int]) -> float:
        """Return the probability of the deployed model's class less that of the original's."""
        scores = class_scores(self.reader.read(raw))
        return float(scores[labels[1]] - scores[labels[0]])


class ReadFinding(NamedTuple):
    """A finding whose layers are asked for.

    `labels` are the original's and the deployed model's; `margins` those of the two undisturbed
    models. `deployed` is read in place of the deployed model: the same file on the device that answers
    to this finding.
    """

    id: str
    sample: Callable[[], Sample]
    labels: tuple[int, int]
    margins: tuple[float, float]
    deployed: ReadModel | None = None


class _Cut(NamedTuple):
    """A place in the deployed graph: the tensors there, and those of the original they stand for.

    `new` are those of `matches` that the cut before doesn't have; `operators` the deployed model's
    since then, the operator's number `place` being the last.
    """

    place: int
    matches: tuple[Match, ...]
    new: tuple[Match, ...]
    operators: str


def contributions(
    original: ReadModel,
    deployed: ReadModel,
    findings: Sequence[ReadFinding],
    seeds: Sequence[Sample],
    *,
    same: Mapping[str, Match] | None = None,
) -> Layers:
    """Return what the layers contribute to the change of each finding's margin.

    `original` is the model before it was compressed. The tensors' figures are those on the findings
    and on some of the `seeds`. `same` are the matches of tensors where both are the same file,
    `deployed` as a device runs it: then findings to which it answers otherwise when its tensors are
    read, or with tensors that aren't finite, are left out. Raises UsageError where no layers of the two match, and the errors of
    `ModelGraph`.
    """
    matches = same
    if matches is None:
        samples = [*seeds, *(one.sample() for one in findings[:_MATCHED_ON])]
        matches = _matches(original, deployed, samples)
    cuts = _cuts(original, deployed, matches)
    if same is not None and not cuts:
        raise UsageError(f"no tensor of {original.name} can be given to the rest of it")
    if same is None and all(one.place < 0 for one in cuts):  # the input is no layer
        raise UsageError(
            f"no layers of {deployed.name} match those of {original.name}: they are different "
            "networks"
        )
    wanted = list(dict.fromkeys(one for cut in cuts for one in cut.matches))
    figures = {one: (_Sums(), _Sums()) for one in wanted}
    for sample in seeds[:: max(1, len(seeds) // _SEEDS)][:_SEEDS]:
        first, second, _ = _read(original, deployed, sample, wanted)
        if same is not None and not _is_finite(second):
            continue
        for one, (_, sums) in figures.items():
            sums.add(one, (first, second), deployed.graph.grids.get(one.deployed))
    margins: dict[str, list[float]] = {}
    changed, disturbed = 0.0, []
    held: list[tuple[ReadFinding, Mapping[str, Values]]] = []

    def follow() -> None:
        for cut in cuts:
            rest = original.graph.starting_at([one.original for one in cut.matches])
            for finding, values in held:
                raw = rest([one.in_original(values[one.deployed]) for one in cut.matches])
                margins[finding.id].append(original.margin(raw, finding.labels))
        held.clear()

    for finding in findings:
        first, second, raw = _read(original, finding.deployed or deployed, finding.sample(), wanted)
        change = abs(deployed.margin(raw, finding.labels) - finding.margins[1])
        changed = max(changed, change)
        if same is not None and not (change <= SAME_ANSWER and _is_finite(second)):
            disturbed.append(finding.id)
            continue
        for one, (sums, _) in figures.items():
            sums.add(one, (first, second), deployed.graph.grids.get(one.deployed))
        margins[finding.id] = [finding.margins[0]]
        held.append((finding, second))
        if len(held) * sum(one.nbytes for one in second.values()) > _BYTES:
            follow()
    follow()
    findings = [one for one in findings if one.id in margins]
    cuts = _with_margins(original, deployed, cuts, margins)
    changes = {
        one.id: tuple(np.diff([*margins[one.id], one.margins[1]]).tolist()) for one in findings
    }
    ends = [
        *cuts,
        _Cut(len(deployed.graph.operations) - 1, (), (), _operators(deployed, cuts[-1].place)),
    ]
    layers = []
    for place, cut in enumerate(ends):
        if not findings:
            break
        steps = [changes[one.id][place] for one in findings]
        layers.append(
            LayerFigures(
                name=", ".join(one.original for one in cut.new) or original.graph.output,
                deployed=tuple(one.deployed for one in cut.new) or (deployed.graph.output,),
                operators=cut.operators,
                mean=fmean(steps),
                median=median(steps),
                largest=max(steps),
                restored=sum(
                    one.margins[1] < change for one, change in zip(findings, steps, strict=True)
                ),
                findings=_worst(figures[one][0] for one in cut.new),
                seeds=_worst(figures[one][1] for one in cut.new),
            )
        )
    matching = {*matches, deployed.graph.output}
    names = [name for operation in deployed.graph.operations for name in operation.outputs]
    return Layers(
        original=original.name,
        deployed=deployed.name,
        layers=tuple(layers),
        contributions=changes,
        unmatched=tuple(name for name in names if name not in matching),
        changed=changed,
        disturbed=tuple(disturbed),
    )


def _with_margins(
    original: ReadModel,
    deployed: ReadModel,
    cuts: Sequence[_Cut],
    margins: dict[str, list[float]],
) -> list[_Cut]:
    """Leave out the cuts after which a margin isn't finite, and those margins; return the others.

    There the deployed model's values are out of the range of the original's next operator: 0 after
    rounding, of which that takes the logarithm. What lies between the cuts beside it is then one
    layer, so that contributions still add up.
    """
    kept = [
        place
        for place in range(len(cuts))
        if all(math.isfinite(of_it[place + 1]) for of_it in margins.values())
    ]
    if not kept:
        raise UsageError(
            f"{original.name} has no finite answer to any tensor of {deployed.name}, so that the "
            "layers can't be told apart"
        )
    for name, (own, *after) in margins.items():
        margins[name] = [own, *(after[place] for place in kept)]
    if len(kept) == len(cuts):
        return list(cuts)
    return _described(deployed, [(cuts[place].place, cuts[place].matches) for place in kept])


def _read(
    original: ReadModel, deployed: ReadModel, sample: Sample, wanted: Sequence[Match]
) -> tuple[Mapping[str, Values], Mapping[str, Values], Any]:
    """Return both models' tensors on one input by name, and the deployed model's raw output."""
    first = original.read(sample, {one.original for one in wanted})
    second = dict(deployed.read(sample, {one.deployed for one in wanted}))
    raw = second.pop(deployed.graph.output)
    return first, second, raw


def _is_finite(tensors: Mapping[str, Values]) -> bool:
    """Whether all of the deployed model's tensors are finite: a device may send what it likes."""
    return all(bool(np.isfinite(one).all()) for one in tensors.values())


def _matches(
    original: ReadModel, deployed: ReadModel, samples: Sequence[Sample]
) -> dict[str, Match]:
    """Return the matches of tensors, by the values on some samples."""
    values: tuple[dict[str, list[Values]], ...] = ({}, {})
    number = _MATCHED_ON
    for place in range(_MATCHED_ON):
        if place >= min(number, len(samples)):
            break
        sample = (
            samples[len(samples) * place // _MATCHED_ON]
            if len(samples) > _MATCHED_ON
            else samples[place]
        )
        size = 0
        for model, known in zip((original, deployed), values, strict=True):
            graph = model.graph
            names = [
                graph.input,
                *(name for operation in graph.operations for name in operation.outputs),
            ]
            read = model.read(sample, names)
            for name in names:
                if name != graph.output and read[name].dtype.kind == "f":
                    known.setdefault(name, []).append(read[name])
                    size += read[name].nbytes
        number = max(2, _BYTES // max(1, size))
    found = matched(original.graph, deployed.graph, (values[0], values[1]))
    given = found.get(deployed.graph.input)
    if given is not None and not _in_same_units(
        values[0][given.original], [given.in_original(one) for one in values[1][given.deployed]]
    ):
        del found[deployed.graph.input]
    return found


def _in_same_units(first: Sequence[Values], second: Sequence[Values]) -> bool:
    one, other = np.array(first, np.float64), np.array(second, np.float64)
    return bool(np.abs(one - other).mean() <= _SAME_UNITS * np.abs(one).mean())


def _cuts(original: ReadModel, deployed: ReadModel, matches: Mapping[str, Match]) -> list[_Cut]:
    """Return the places at which all that lies between the deployed model's two parts has a match.

    Where several places stand for the same tensors of the original, the last counts: what lies
    between them belongs to the layer before.
    """
    graph = deployed.graph
    last_use = {name: place for place, one in enumerate(graph.operations) for name in one.inputs}
    last_use[graph.output] = len(graph.operations)
    found: list[tuple[int, dict[str, Match]]] = []
    live: list[str] = [graph.input]
    left = len(original.graph.operations) + 1
    for place in range(-1, len(graph.operations) - 1):
        if place >= 0:
            live += graph.operations[place].outputs
        live = [name for name in live if last_use.get(name, -1) > place]
        if not all(name in matches for name in live):
            continue
        by_original = {matches[name].original: matches[name] for name in live}
        part = original.graph.part_after(list(by_original))
        names, operations = part or ((), ())
        if not operations or len(operations) > left:
            continue
        chosen = {name: by_original[name] for name in names}
        if found and chosen.keys() == found[-1][1].keys():
            found.pop()
        elif len(operations) == left:
            continue
        left = len(operations)
        found.append((place, chosen))
    return _described(deployed, [(place, tuple(chosen.values())) for place, chosen in found])


def _described(deployed: ReadModel, places: Iterable[tuple[int, tuple[Match, ...]]]) -> list[_Cut]:
    """Return the cuts at these places of the deployed graph, with what lies between each and the last."""
    cuts: list[_Cut] = []
    for place, matches in places:
        known = {one.original for one in cuts[-1].matches} if cuts else set()
        new = tuple(one for one in matches if one.original not in known)
        words = _operators(deployed, cuts[-1].place if cuts else -1, place)
        cuts.append(_Cut(place, matches, new or matches, words))
    return cuts


def _operators(deployed: ReadModel, after: int, until: int | None = None) -> str:
    """Return the kinds of the deployed model's operators between two places."""
    last = None if until is None else until + 1
    kinds = [operation.kind for operation in deployed.graph.operations[after + 1 : last]]
    return ", ".join(dict.fromkeys(kind for kind in kinds if kind not in ROUNDING))


@dataclass
class _Sums:
    """Sums over inputs of what a tensor's figures are made of."""

    signal: float = 0.0
    noise: float = 0.0
    count: int = 0
    outside: int = 0
    used: set[int] = field(default_factory=set)
    levels: int = 0

    def add(
        self,
        match: Match,
        read: tuple[Mapping[str, Values], Mapping[str, Values]],
        grid: Grid | None,
    ) -> None:
        """Add one input's values of both models; `grid` is that of the deployed tensor."""
        deployed = match.in_original(read[1][match.deployed])
        exact = read[0][match.original].astype(np.float64)
        self.signal += float((exact**2).sum())
        self.noise += float(((exact - deployed) ** 2).sum())
        self.count += exact.size
        if grid is not None:
            least, largest = grid.range
            half = grid.scale / 2
            self.outside += int(((exact < least - half) | (exact > largest + half)).sum())
            self.used.update(np.unique(grid.quantized(deployed)).tolist())
            self.levels = grid.integers[1] - grid.integers[0] + 1

    def figures(self) -> TensorFigures:
        """Return the figures; unknown ones are None."""
        ratio = None
        if 0 < self.signal < math.inf and 0 < self.noise < math.inf:
            ratio = 10 * math.log10(self.signal / self.noise)
        if not self.levels:
            return TensorFigures(ratio, None, None)
        return TensorFigures(ratio, self.outside / self.count, len(self.used) / self.levels)


def _worst(sums: Iterable[_Sums]) -> TensorFigures:
    """Return the figures of the tensor with the smallest SQNR."""
    found = [one.figures() for one in sums]
    return min(
        found,
        key=lambda one: math.inf if one.sqnr is None else one.sqnr,
        default=TensorFigures(None, None, None),
    )
