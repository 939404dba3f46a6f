"""Which classes a campaign's original confuses, and what its deployed model adds to that."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgeflare._internal.text import counted
from edgeflare.answers.metrics import class_scores, is_finite
from edgeflare.errors import UsageError
from edgeflare.seeds import SeedSource
from edgeflare.store import Store, campaign_text
from edgeflare.store.database import decoding
from edgeflare.store.records import SeedRecord
from edgeflare.types import AGREED
from edgeflare_whitebox.activations import pre_activation_layers
from edgeflare_whitebox.classes.activation_probabilities import ActivationProbabilities
from edgeflare_whitebox.classes.deployment import (
    BiasChange,
    ClassChange,
    PairChange,
    compare_deployment,
    decisions,
)
from edgeflare_whitebox.classes.evaluation import (
    MeasureEvaluation,
    evaluate_measure,
    outlying,
)
from edgeflare_whitebox.classes.pairs import (
    LEAST_INPUTS,
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
    Share,
    StoredOriginal,
    Tell,
    answered_activations,
    profile_samples,
    profile_source,
    silent,
    skipped_notices,
    store_found,
    stored_original,
)

_FACT = "classes"
MOST_SUSPECTS = 50
"""Pairs of classes that the original may confuse, as many at most."""
MOST_DRAWN = 40
"""With more classes than this the table of decisions has those of the strongest changes alone."""
_EXAMPLES = 3

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
class ClassesFound:
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

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self)


def stored_classes(store: Store) -> ClassesFound | None:
    """Return what `classes_of_campaign` stored last, None before. Raises StoreError."""
    return store.result(_FACT, ClassesFound)


def classes_of_campaign(
    folder: Path,
    *,
    original: Path | None = None,
    profile: Path | None = None,
    resize: str | None = None,
    layers: Sequence[str] = (),
    random_seed: int = 0,
    tell: Tell = silent,
) -> ClassesFound:
    """Find which classes a campaign's original confuses, and what deployment changed; store and return it.

    Both models' answers to the seeds are those that the campaign has stored; no device is asked. In
    a campaign whose devices each search for themselves they are those of the first one. The original
    is run once more, on the profiling inputs, for NAPVD. Arguments are as of `coverage_of_campaign`;
    by default `layers` are those of `pre_activation_layers`. `random_seed` draws permutations and
    bootstrap samples. Classes with fewer than `LEAST_INPUTS` inputs are in no pair.

    Raises as `coverage_of_campaign`, and UsageError for models that return texts and for a campaign
    without answers.
    """
    folder = Path(folder).absolute()
    with Store.open(folder) as store:
        model = stored_original(store, original)
        if not model.has_classes:
            raise UsageError(
                f"classes are compared by models' decisions for them, and {model.path.name} "
                f"{model.returns}"
            )
        answers, notices = _answers(store)
        source = None if profile is None else profile_source(store, model.spec, profile, resize)
        probabilities, run, left_out = _probabilities(
            store, model, source, layers, answers.original.shape[1], tell
        )
        found = _found(answers, probabilities, random_seed)
        result = replace(
            found,
            model=model.path.name,
            profile=None if profile is None else str(Path(profile).absolute()),
            profiled=run,
            finished=bool(store.fact("finished")),
            notices=(*notices, *left_out, *found.notices),
        )
        unstored = store_found(store, _FACT, result)
    return replace(result, notices=(*result.notices, *unstored))


class _Answers(NamedTuple):
    """Both models' answers to the seeds, float64 [seeds, classes], and the seeds' labels, if known.

    `agree`: the campaign counts the answers as the same decision, which ties and margins below its
    floor are. `has_probabilities`: the deployed model's answers are not labels alone.
    """

    seeds: list[SeedRecord]
    original: NDArray[np.float64]
    deployed: NDArray[np.float64]
    agree: NDArray[np.bool_]
    labels: NDArray[np.int64] | None
    has_probabilities: bool

    @property
    def decisions(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The classes that both models decide for."""
        return decisions(self.original, self.deployed, self.agree)


def _answers(store: Store) -> tuple[_Answers, list[str]]:
    """Return the stored answers, and notices. Raises UsageError where there are none."""
    notices = []
    replicas = store.fact("replicas") or [""]
    of_each = ([seed for seed in store.seeds(name) if seed.outputs] for name in replicas)
    replica, answered = next(
        ((name, some) for name, some in zip(replicas, of_each, strict=True) if some), ("", [])
    )
    with decoding(store.folder, "an answer to a seed"):
        known = [
            (one, class_scores(outputs.original), class_scores(outputs.deployed))
            for one in answered
            if (outputs := one.outputs) is not None
            if outputs.original is not None and is_finite(outputs.original)
            if outputs.deployed is not None and is_finite(outputs.deployed)
        ]
    if not known:
        raise UsageError(
            f"the campaign in {store.folder} has no seed yet that both models answered: go on with "
            f"`edgeflare resume {campaign_text(store.folder)}`"
        )
    if left_out := len(answered) - len(known):
        notices.append(
            f"{counted(left_out, 'seed')} left out on which a model answers NaN or infinity"
        )
    seeds = [one for one, _, _ in known]
    with decoding(store.folder, "the answers to the seeds"):
        original = np.stack([one for _, one, _ in known])
        deployed = np.stack([one for _, _, one in known])
    labels = [seed.label for seed in seeds]
    fits = [label is not None and 0 <= label < original.shape[1] for label in labels]
    if any(label is not None for label in labels) and not all(fits):
        notices.append(
            f"{counted(len(fits) - sum(fits), 'seed')} of {len(fits):,} without the label of a class of the original: "
            "all are compared without labels; label all seeds to see each class's recall"
        )
    if len(replicas) > 1:
        notices.append(
            f"the deployed model's answers are those of {replica}, the first of "
            f"{counted(len(replicas), 'device')} that has any"
        )
    with decoding(store.folder, "what is known of the deployed model"):
        kind = store.models["deployed"]["output"]["kind"]
    whole = np.array(labels, np.int64) if all(fits) else None
    agree = np.array(
        [seed.outputs is not None and seed.outputs.decision in AGREED for seed in seeds]
    )
    return _Answers(seeds, original, deployed, agree, whole, kind != "label"), notices


def _probabilities(
    store: Store,
    model: StoredOriginal,
    source: SeedSource | None,
    layers: Sequence[str],
    classes: int,
    tell: Tell,
) -> tuple[ActivationProbabilities, int, list[str]]:
    """Return the activation probabilities on the profiling inputs, the number of these, and notices.

    Raises ModelError where no input can be run.
    """
    notices: list[str] = []
    names = tuple(dict.fromkeys(layers)) or pre_activation_layers(model.graph)
    found = ActivationProbabilities(names, classes)
    samples, total = profile_samples(store, source)
    run = 0
    for activation in answered_activations(
        model, samples, names, "the profile", total, tell, notices
    ):
        found.update([activation])
        run += 1
    return found, run, [*notices, *skipped_notices(source)]


def _found(
    answers: _Answers, probabilities: ActivationProbabilities, random_seed: int
) -> ClassesFound:
    """Return all that follows from the answers and the activations."""
    labels, classes = answers.labels, answers.original.shape[1]
    compared = compare_deployment(
        answers.original,
        answers.deployed,
        labels,
        agree=answers.agree,
        has_probabilities=answers.has_probabilities,
        examples=_EXAMPLES,
        random_seed=random_seed,
    )
    measures = _Measures.of(answers, probabilities)
    notices = []
    enough = len(measures.classes)
    if enough < classes:
        notices.append(
            f"{enough:,} of {classes:,} classes have {LEAST_INPUTS} inputs or more"
            + (
                ": of the original's pairs only those of two such classes are known"
                if enough > 1
                else ", so that nothing can be said of the original's pairs: add seeds"
            )
        )
    places = {place for pair in compared.pairs for place in pair.examples}
    before, after = answers.decisions
    return ClassesFound(
        model="",
        classes=classes,
        inputs=compared.inputs,
        moved=compared.moved,
        labelled=labels is not None,
        enough=enough,
        profile=None,
        profiled=0,
        random_seed=random_seed,
        finished=False,
        changes=compared.classes,
        pairs=compared.pairs,
        tested_pairs=compared.tested_pairs,
        biases=compared.biases,
        suspects=measures.suspects(),
        evaluations=measures.evaluations(),
        decisions=_decisions(
            before if labels is None else labels, before, after, compared.classes, compared.pairs
        ),
        examples=tuple(
            ExampleSeed(
                place,
                answers.seeds[place].id,
                answers.seeds[place].sample,
                None if labels is None else int(labels[place]),
                int(before[place]),
                int(after[place]),
            )
            for place in sorted(places)
        ),
        notices=tuple(notices),
    )


class _Measures(NamedTuple):
    """The measures of pairs of some classes, those with inputs enough; each [those, those]."""

    classes: list[int]
    distance: Pairs
    bias: Pairs
    leak: Pairs
    deployed_leak: Pairs
    confusion: Pairs
    deployed_confusion: Pairs
    disparity: Pairs

    @classmethod
    def of(cls, answers: _Answers, probabilities: ActivationProbabilities) -> "_Measures":
        count = answers.original.shape[1]
        distance = probabilities.distances
        few = probabilities.inputs < LEAST_INPUTS
        distance[few] = distance[:, few] = np.nan
        unknown = np.full((count, count), np.nan)
        leaks, confusions = [], []
        sides = zip((answers.original, answers.deployed), answers.decisions, strict=True)
        for scores, top in sides:
            decided = memberships(top, count)
            leaks.append(both_directions(directional_leak(scores, decided, least=LEAST_INPUTS)))
            confusions.append(
                unknown
                if answers.labels is None
                else both_directions(directional_type1_confusion(answers.labels, decided, count))
            )
        if not answers.has_probabilities:
            leaks[1] = unknown
        known = np.isfinite(distance) | np.isfinite(leaks[0]) | np.isfinite(confusions[0])
        np.fill_diagonal(known, False)
        members = memberships(
            answers.original.argmax(axis=1) if answers.labels is None else answers.labels, count
        )
        large = members.sum(axis=0) >= LEAST_INPUTS
        chosen = np.flatnonzero(known.any(axis=0) & large)
        some = np.ix_(chosen, chosen)
        near = near_distance(distance[some])
        return cls(
            chosen.tolist(),
            distance[some],
            avg_bias(distance[some], nearer_than=near),
            leaks[0][some],
            leaks[1][some],
            confusions[0][some],
            confusions[1][some],
            avg_cd(confusions[0][some]),
        )

    def suspects(self) -> tuple[SuspectPair, ...]:
        """Return the flagged pairs, and those that are truly confused, the largest leak first."""
        distance, bias, leak, deployed_leak, confusion, deployed_confusion = (
            pair_values(one)
            for one in (
                self.distance,
                self.bias,
                self.leak,
                self.deployed_leak,
                self.confusion,
                self.deployed_confusion,
            )
        )
        by_distance, by_leak, confused = outlying(-distance), outlying(leak), outlying(confusion)
        pairs = class_pairs(len(self.classes))
        order = np.argsort(-np.nan_to_num(leak, nan=-1.0), kind="stable")
        flagged = order[(by_distance | by_leak | confused)[order]]
        return tuple(
            SuspectPair(
                first=self.classes[pairs[place][0]],
                second=self.classes[pairs[place][1]],
                distance=_known(distance[place]),
                bias=_share(bias[place]),
                leak=_share(leak[place]),
                deployed_leak=_share(deployed_leak[place]),
                confusion=_share(confusion[place]),
                deployed_confusion=_share(deployed_confusion[place]),
                by_distance=bool(by_distance[place]),
                by_leak=bool(by_leak[place]),
                confused=bool(confused[place]) if np.isfinite(confusion[place]) else None,
            )
            for place in flagged[:MOST_SUSPECTS].tolist()
        )

    def evaluations(self) -> tuple[MeasureEvaluation, ...]:
        """Return how well the measures find the true pairs; nothing where there is none."""
        compared = (
            ("NAPVD", -1, self.distance, self.confusion),
            ("leak", 1, self.leak, self.confusion),
            ("avg_bias", 1, self.bias, self.disparity),
        )
        found = (
            evaluate_measure(name, sign * pair_values(measure), pair_values(truth))
            for name, sign, measure, truth in compared
        )
        return tuple(
            replace(one, correlation=None if one.correlation is None else sign * one.correlation)
            for one, (_, sign, _, _) in zip(found, compared, strict=True)
            if one.by_deviation.true
        )


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


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
