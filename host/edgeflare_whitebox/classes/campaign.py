"""Which classes a campaign's original confuses, and what its deployed model adds to that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgeflare._internal.records import JsonRecord
from edgeflare._internal.text import counted
from edgeflare.analysis import RunContext
from edgeflare.answers.metrics import class_scores, is_finite
from edgeflare.campaign.settings.flags import Flag
from edgeflare.errors import UsageError
from edgeflare.store import Store, campaign_text
from edgeflare.store.database import decoding
from edgeflare.types import AGREED
from edgeflare_whitebox.activations import pre_activation_layers
from edgeflare_whitebox.classes.deployment import (
    BiasChange,
    ClassChange,
    PairChange,
    compare_deployment,
    decisions,
)
from edgeflare_whitebox.classes.evaluation import MeasureEvaluation, evaluate_measure, outlying
from edgeflare_whitebox.classes.pairs import (
    LEAST_INPUTS,
    ActivationProbabilities,
    Pairs,
    avg_bias,
    avg_cd,
    both_directions,
    class_pairs,
    directional_leak,
    directional_type1_confusion,
    memberships,
    near_distance,
    pair_values,
)
from edgeflare_whitebox.stored import (
    ClassIndex,
    Count,
    ProfileSettings,
    Share,
    Tell,
    answered_activations,
    inspect_campaign,
    layers_flag,
    profile_samples,
    profile_source,
    silent,
    stored_original,
)
from edgeflare_whitebox.words.inspections import (
    NOT_FINITE,
    OF_FIRST,
    WITHOUT_LABELS,
    few_inputs,
    skipped_notices,
)

_FACT = "classes"
MOST_SUSPECTS = 50
"""Pairs of classes that the original may confuse, as many at most."""
MOST_DRAWN = 40
"""With more classes than this the table of decisions has those of the strongest changes alone."""
_SHARES = ("bias", "leak", "deployed_leak", "confusion", "deployed_confusion")
"""The measures in `SuspectPair` that are shares."""

_Row = Annotated[tuple[Count, ...], Field(max_length=MOST_DRAWN)]


@dataclass(frozen=True)
class SuspectPair:
    """Two classes that the original may confuse, by what its activations and its outputs tell.

    `distance` is NAPVD, small where they may be confused, `bias` avg_bias, large where the model
    treats them unequally. `leak` and `deployed_leak` are the mean probability of one where the model
    decides for the other, of both directions: the baseline that needs no look into the model.
    `confusion` and `deployed_confusion` are how often the one is said in place of the other, by
    labels. None is what isn't known. `by_distance` and `by_leak`: it is flagged by being more than a
    standard deviation beyond the mean of all pairs; `confused`: it truly is, in the same sense.
    """

    first: ClassIndex
    second: ClassIndex
    distance: Annotated[float, Field(ge=0)] | None
    bias: Share | None
    leak: Share | None
    deployed_leak: Share | None
    confusion: Share | None
    deployed_confusion: Share | None
    by_distance: bool
    by_leak: bool
    confused: bool | None


@dataclass(frozen=True)
class DecisionTable:
    """How many inputs of each class (rows) each model decides for each class (columns).

    `classes` are both; rows are by label, without labels by what the original decides.
    """

    classes: _Row
    original: Annotated[tuple[_Row, ...], Field(max_length=MOST_DRAWN)]
    deployed: Annotated[tuple[_Row, ...], Field(max_length=MOST_DRAWN)]

    def __post_init__(self) -> None:
        """Raise ValueError where the tables are not square."""
        size = len(self.classes)
        for table in (self.original, self.deployed):
            if [len(row) for row in table] != [size] * size:
                raise ValueError("a table of decisions has a row and a column for each class")


@dataclass(frozen=True)
class ExampleSeed:
    """A seed whose answer moved: its id, its sample's digest, its label, and both decisions.

    `place` is what `PairChange.examples` names.
    """

    place: Count
    id: str
    sample: str
    label: ClassIndex | None
    original: ClassIndex
    deployed: ClassIndex


@dataclass(frozen=True)
class ClassesFound(JsonRecord):
    """Which classes a campaign's original confuses, and what the deployed model changes.

    `model` is the name of the original's file, which has `classes` classes. `inputs` seeds were
    answered by both models, `moved` of them not alike; `labelled`: all of them have labels. `profile` is None where the seeds
    are the profiling inputs of NAPVD, else where these are from; there are `profiled` of them.
    `enough` is the number of classes with inputs enough for pairs. `changes`, `pairs` and `biases`
    are as of `DeploymentComparison`, `suspects` are the original's pairs that are flagged, those of
    the largest leak first. `finished`: the campaign is.
    """

    model: str
    classes: Count
    inputs: Count
    moved: Count
    labelled: bool
    enough: Count
    profile: str | None
    profiled: Count
    random_seed: int
    finished: bool
    changes: tuple[ClassChange, ...]
    pairs: tuple[PairChange, ...]
    tested_pairs: Count
    biases: tuple[BiasChange, ...]
    suspects: tuple[SuspectPair, ...]
    evaluations: tuple[MeasureEvaluation, ...]
    decisions: DecisionTable
    examples: tuple[ExampleSeed, ...]
    notices: tuple[str, ...] = ()


class ClassesSettings(ProfileSettings):
    """What `classes_of_campaign` is told."""

    layers: Annotated[
        tuple[str, ...],
        layers_flag(
            "all outputs of convolutions and dense layers, before their activation functions"
        ),
    ] = ()
    class_names: Annotated[Path | None, Flag("--class-names", metavar="FILE")] = Field(
        None,
        description="The classes' names, as of report; by default the campaign's own label mapping.",
    )


def stored_classes(store: Store) -> ClassesFound | None:
    """Return what `classes_of_campaign` stored last, None before. Raises StoreError."""
    return store.result(_FACT, ClassesFound)


def classes_of_campaign(folder: Path, *, tell: Tell = silent, **settings: Any) -> ClassesFound:
    """Find which classes a campaign's original confuses, and what deployment changed; store and return it.

    Both models' answers to the seeds are those that the campaign has stored; no device is asked. In
    a campaign whose devices each search for themselves they are those of the first one. The original
    is run once more, on the profiling inputs, for NAPVD. `settings` are those of ``edgeflare inspect classes``:
    `original`, `profile` and `resize` as of `coverage_of_campaign`; `layers`, by default those of
    `pre_activation_layers`; `random_seed` draws permutations and bootstrap samples. Classes with
    fewer than `LEAST_INPUTS` inputs are in no pair.

    Raises as `coverage_of_campaign`, and UsageError for models that return texts and for a campaign
    without answers.
    """
    found: ClassesFound = inspect_campaign("classes", folder, tell, **settings)
    return found


def find_classes(store: Store, settings: ClassesSettings, context: RunContext) -> ClassesFound:
    """Return what `classes_of_campaign` does, of an open campaign; nothing is stored."""
    model = stored_original(store, settings.original)
    model.kind.check_classes(
        UsageError(
            f"classes are compared by models' decisions for them, and {model.path.name} {model.returns}"
        )
    )
    answers = _Answers(store)
    notices = answers.notices
    source = profile_source(store, model.spec, settings)
    count = answers.original.shape[1]
    names = tuple(dict.fromkeys(settings.layers)) or pre_activation_layers(model.graph)
    probabilities, profiled = ActivationProbabilities(names, count), 0
    samples, total = profile_samples(store, source)
    what = "the profile"
    for one in answered_activations(model, samples, names, what, total, context.tell, notices):
        probabilities.update([one])
        profiled += 1
    notices += skipped_notices(source)
    compared = compare_deployment(
        answers.original,
        answers.deployed,
        answers.labels,
        agree=answers.agree,
        has_probabilities=answers.has_probabilities,
        random_seed=settings.random_seed,
    )
    chosen, figures = _figures_of_pairs(answers, probabilities)
    if len(chosen) < count:
        notices.append(few_inputs(len(chosen), count, LEAST_INPUTS))
    before, after = decisions(answers.original, answers.deployed, answers.agree)
    rows = before if answers.labels is None else answers.labels
    places = sorted({place for pair in compared.pairs for place in pair.examples})
    return ClassesFound(
        model=model.path.name,
        classes=count,
        inputs=compared.inputs,
        moved=compared.moved,
        labelled=answers.labels is not None,
        enough=len(chosen),
        profile=settings.profile_path,
        profiled=profiled,
        random_seed=settings.random_seed,
        finished=store.state.finished,
        changes=compared.classes,
        pairs=compared.pairs,
        tested_pairs=compared.tested_pairs,
        biases=compared.biases,
        suspects=_suspects(chosen, figures),
        evaluations=_evaluations(figures),
        decisions=_decisions(rows, before, after, compared.classes, compared.pairs),
        examples=tuple(
            ExampleSeed(
                place,
                (seed := answers.seeds[place]).id,
                seed.sample,
                None if answers.labels is None else int(answers.labels[place]),
                int(before[place]),
                int(after[place]),
            )
            for place in places
        ),
        notices=tuple(notices),
    )


class _Answers:
    """Both models' stored answers to the seeds, float64 [seeds, classes], and the seeds' labels, if known.

    `agree`: the campaign counts the answers as the same decision, which ties and margins below its
    floor are. `has_probabilities`: the deployed model's answers are not labels alone. Raises
    UsageError where there are no answers.
    """

    def __init__(self, store: Store) -> None:
        self.notices: list[str] = []
        replicas = store.state.replicas
        of_each = ([seed for seed in store.seeds(name) if seed.outputs] for name in replicas)
        replica, answered = next(
            ((name, some) for name, some in zip(replicas, of_each, strict=True) if some), ("", [])
        )
        with decoding(store.folder, "the answers to the seeds"):
            finite = [
                (seed, class_scores(outputs.original), class_scores(outputs.deployed))
                for seed in answered
                if (outputs := seed.outputs) is not None
                if outputs.original is not None and is_finite(outputs.original)
                if outputs.deployed is not None and is_finite(outputs.deployed)
            ]
            if not finite:
                raise UsageError(
                    f"the campaign in {store.folder} has no seed yet that both models answered: go on "
                    f"with `edgeflare resume {campaign_text(store.folder)}`"
                )
            self.original = np.stack([scores for _, scores, _ in finite])
            self.deployed = np.stack([scores for _, _, scores in finite])
        if left_out := len(answered) - len(finite):
            self.notices.append(NOT_FINITE.format(counted(left_out, "seed")))
        self.seeds = [seed for seed, _, _ in finite]
        labels = [seed.label for seed in self.seeds]
        classes = self.original.shape[1]
        fits = [label is not None and 0 <= label < classes for label in labels]
        if any(label is not None for label in labels) and not all(fits):
            self.notices.append(
                WITHOUT_LABELS.format(counted(len(fits) - sum(fits), "seed"), len(fits))
            )
        if len(replicas) > 1:
            self.notices.append(OF_FIRST.format(replica, counted(len(replicas), "device")))
        self.labels = np.array(labels, np.int64) if all(fits) else None
        self.agree = np.array(
            [seed.outputs is not None and seed.outputs.decision in AGREED for seed in self.seeds]
        )
        self.has_probabilities = store.kind.is_scored


def _figures_of_pairs(
    answers: _Answers, probabilities: ActivationProbabilities
) -> tuple[list[int], dict[str, NDArray[np.float64]]]:
    """Return the classes with inputs enough, and each measure of their pairs, in `class_pairs`' order."""
    count, labels = answers.original.shape[1], answers.labels
    distance = probabilities.distances
    few = probabilities.inputs < LEAST_INPUTS
    distance[few] = distance[:, few] = np.nan
    figures: dict[str, Pairs] = {"distance": distance}
    tops = decisions(answers.original, answers.deployed, answers.agree)
    for side, scores, top in zip(
        ("", "deployed_"), (answers.original, answers.deployed), tops, strict=True
    ):
        decided, unknown = memberships(top, count), np.full((count, count), np.nan)
        figures[f"{side}leak"] = (
            both_directions(directional_leak(scores, decided, least=LEAST_INPUTS))
            if answers.has_probabilities or not side
            else unknown
        )
        figures[f"{side}confusion"] = (
            unknown
            if labels is None
            else both_directions(directional_type1_confusion(labels, decided, count))
        )
    known = np.any([np.isfinite(figures[one]) for one in ("distance", "leak", "confusion")], axis=0)
    np.fill_diagonal(known, False)
    members = memberships(answers.original.argmax(axis=1) if labels is None else labels, count)
    chosen = np.flatnonzero(known.any(axis=0) & (members.sum(axis=0) >= LEAST_INPUTS))
    figures = {name: pairs[np.ix_(chosen, chosen)] for name, pairs in figures.items()}
    near = near_distance(figures["distance"])
    figures["bias"] = avg_bias(figures["distance"], nearer_than=near)
    figures["disparity"] = avg_cd(figures["confusion"])
    return chosen.tolist(), {name: pair_values(pairs) for name, pairs in figures.items()}


def _suspects(
    classes: Sequence[int], figures: Mapping[str, NDArray[np.float64]]
) -> tuple[SuspectPair, ...]:
    """Return the flagged pairs, and those that are truly confused, the largest leak first."""
    flags = {
        "by_distance": outlying(-figures["distance"]),
        "by_leak": outlying(figures["leak"]),
        "confused": outlying(figures["confusion"]),
    }
    pairs = class_pairs(len(classes))
    order = np.argsort(-np.nan_to_num(figures["leak"], nan=-1.0), kind="stable")
    flagged = order[np.any(list(flags.values()), axis=0)[order]]
    found = []
    for place in flagged[:MOST_SUSPECTS].tolist():
        first, second = (classes[one] for one in pairs[place])
        said: dict[str, Any] = {name: bool(flag[place]) for name, flag in flags.items()}
        if np.isnan(figures["confusion"][place]):
            said["confused"] = None
        shares: dict[str, Any] = {name: _share(figures[name][place]) for name in _SHARES}
        distance = figures["distance"][place]
        known = float(distance) if np.isfinite(distance) else None
        found.append(SuspectPair(first, second, known, **shares, **said))
    return tuple(found)


def _evaluations(figures: Mapping[str, NDArray[np.float64]]) -> tuple[MeasureEvaluation, ...]:
    """Return how well the measures find the true pairs; nothing where there is none."""
    found = []
    for name, sign, measure, truth in (
        ("NAPVD", -1, "distance", "confusion"),
        ("leak", 1, "leak", "confusion"),
        ("avg_bias", 1, "bias", "disparity"),
    ):
        one = evaluate_measure(name, sign * figures[measure], figures[truth])
        if one.by_deviation.true:
            of_measure = None if one.correlation is None else sign * one.correlation
            found.append(replace(one, correlation=of_measure))
    return tuple(found)


def _share(value: Any) -> float | None:
    """Return a figure within 0..1, which rounding of a model's scores may exceed; None for NaN."""
    return None if np.isnan(value) else float(np.clip(value, 0, 1))


def _decisions(
    rows: NDArray[Any],
    before: NDArray[np.intp],
    after: NDArray[np.intp],
    changes: Sequence[ClassChange],
    pairs: Sequence[PairChange],
) -> DecisionTable:
    """Return the table of decisions; of many classes that of those in the strongest changes."""
    classes = [change.label for change in changes]
    if len(classes) > MOST_DRAWN:
        named = [label for pair in pairs for label in (pair.label, pair.said)]
        moved = [change.label for change in changes if change.moved]
        classes = list(dict.fromkeys([*named, *moved]))[: MOST_DRAWN // 2]
    classes = sorted(classes)
    tables = (
        tuple(
            tuple(int(((rows == label) & (said == decided)).sum()) for decided in classes)
            for label in classes
        )
        for said in (before, after)
    )
    return DecisionTable(tuple(classes), *tables)
