"""Checks before a search: whether the two models agree on enough seeds to belong together."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import counted, duration
from edgeflare.answers import SCORES, AnswerKind, kind_of_answer
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.errors import InferenceFailedError, PreflightError, SeedError
from edgeflare.models import InputSpec
from edgeflare.statistics import wilson
from edgeflare.types import Decision, Output, Outputs, Query, Seed, SeedInput, with_row

SEEDS_TRIED = 32
_SHARE_CLOSER = 0.6
_DISTANCE_RATIO = 0.5


class BetterPreprocessing(NamedTuple):
    """A preprocessing of the original that explains the deployed model's answers better.

    `closer` of `tried` seeds; `distance` and `stated_distance` are medians of the total variation
    distance between both models' probabilities, 0 to 1; of their labels where the deployed model
    returns no scores, of detections as `edgeflare.metrics.disagreement` has it.
    """

    change: str
    closer: int
    tried: int
    distance: float
    stated_distance: float

    def sentence(self) -> str:
        """Return it in words, for the user."""
        return (
            f"with {self.change}, the original comes closer to the deployed model on {self.closer} "
            f"of {self.tried} seeds (median distance {self.distance:.2g} instead of "
            f"{self.stated_distance:.2g}), so the preprocessing stated for one of the two is wrong"
        )


def _alternatives(original: InputSpec, deployed: InputSpec) -> dict[str, InputSpec]:
    """Return the original's spec with each of the usual mistakes corrected, by description."""
    numerator, denominator = original.scale
    changed = {
        "the other colour order": original._replace(
            color={"RGB": "BGR", "BGR": "RGB"}.get(original.color, original.color)
        ),
        "the deployed model's scale, mean and std": original._replace(
            scale=deployed.scale, mean=deployed.mean, std=deployed.std
        ),
        "pixel values 255 times larger": original._replace(scale=(numerator * 255, denominator)),
        "pixel values divided by 255": original._replace(scale=(numerator, denominator * 255)),
    }
    return {change: spec for change, spec in changed.items() if spec != original}


def better_preprocessing(
    seeds: Sequence[Seed],
    specs: tuple[InputSpec, InputSpec],
    answer: Callable[[Query, InputSpec], Output],
    kind: AnswerKind[Any] = SCORES,
) -> BetterPreprocessing | None:
    """Return the best alternative preprocessing where it is clearly better than the stated one.

    `specs` are those of original and deployed model; `answer` runs the original under a spec.
    Clearly better: closer on a share of the first 32 seeds whose lower 95 % bound is above 60 %,
    at no more than half the median distance. `kind`: of the deployed model's answers; where it
    returns a label and no scores, only labels are compared.
    """
    tried = [seed for seed in seeds[:SEEDS_TRIED] if _finite(seed)]
    if not tried:
        return None
    stated = _distances(
        kind, tried, [one for seed in tried if (one := seed.outputs.original) is not None]
    )
    asked = [with_row(seed.sample, seed.row) for seed in tried]
    found = []
    for change, spec in _alternatives(*specs).items():
        try:
            other = _distances(kind, tried, [answer(one, spec) for one in asked])
        except InferenceFailedError:  # prepared so, the original can't answer: it explains nothing
            continue
        closer = int(np.count_nonzero(other < stated))
        medians = float(np.median(other)), float(np.median(stated))
        if (
            wilson(closer, len(tried))[0] > _SHARE_CLOSER
            and medians[0] <= _DISTANCE_RATIO * medians[1]
        ):
            found.append(BetterPreprocessing(change, closer, len(tried), *medians))
    return min(found, key=lambda one: one.distance, default=None)


def _finite(seed: Seed) -> bool:
    return seed.outputs.decision is not Decision.NONFINITE


def _distances(
    kind: AnswerKind[Any], seeds: Sequence[Seed], originals: Sequence[Output]
) -> NDArray[np.float64]:
    deployed = [one for seed in seeds if (one := seed.outputs.deployed) is not None]
    pairs = zip(map(kind.as_deployed, originals), deployed, strict=True)
    return np.array([kind.distance(*both) for both in pairs])


MINIMUM_SEEDS = 20
FEWEST_LABELS = 8
DISAGREEMENT_LIMIT = 0.20
OBJECTS_LIMIT = 0.12
"""Of a detector's objects: of two real detectors 2 to 8 % differ clearly after int8 quantisation, and
21 to 23 % with another colour order or scaling."""
_CLEAR = 0.05
"""The margin of a difference of detections that counts as clear: nearer ones come of rounding."""
_MANY_OBJECTS = 100
_IMAGE = "scale, mean, std, colour order and layout"
_AUDIO = "front end, rate and length"


class SeedFigures(NamedTuple):
    """What the checks need of one seed that both models answered.

    Labels are None where not known, and of answers without class scores, which are over 0
    `classes`. `example` says of two answers how they differ. `objects`: those that either of two
    detectors sees, and `differing` those that the other one clearly doesn't see, or takes for another
    class; None of other models. `detected`: those that the original sees. `has_tolerance`: how far
    answers may be apart is the user's to state.
    """

    id: str
    label: int | None
    decision: Decision
    original: int | None
    deployed: int | None
    classes: int
    example: str = ""
    objects: int | None = None
    detected: int | None = None
    differing: int = 0
    has_tolerance: bool = False

    @classmethod
    def of(cls, seed_id: str, label: int | None, outputs: Outputs) -> "SeedFigures":
        """Return the figures of one seed."""
        original, deployed, decision = outputs
        if original is None:
            return cls(seed_id, label, decision, None, None, 0)
        kind = kind_of_answer(original)
        tops = kind.top_label(original), None if deployed is None else kind.top_label(deployed)
        figures = cls(seed_id, label, decision, *tops, kind.class_count(original))
        figures = figures._replace(has_tolerance=kind.is_measured)
        if deployed is None:
            return figures
        counts = kind.object_counts(original, deployed, _CLEAR)
        figures = figures if counts is None else figures._replace(**counts._asdict())
        if decision is not Decision.DEVIATION:
            return figures
        return figures._replace(example=kind.example(original, deployed))


def check_pair(
    seeds: Sequence[SeedFigures],
    explanation: BetterPreprocessing | None = None,
    *,
    allow: bool,
    audio: bool = False,
    is_tried: bool = False,
    unusable: Sequence[str] = (),
) -> list[str]:
    """Check both models' answers on the seeds; return notices for the user.

    Raises PreflightError, unless `allow`, where the lower 95 % bound of the rate of disagreement is
    above 20 %, where another preprocessing is a clearly better `explanation` of the answers, or
    where the lower 95 % bound of a model's accuracy on labelled seeds is no better than chance.
    With fewer than 20 seeds it only warns. `audio`: the models take audio. `is_tried`: the usual
    mistakes of preprocessing were looked at, whether or not there is an `explanation`. `unusable`:
    why answers can't be used, which the error says first; there is no finding to explain then. A
    notice says where all labelled seeds are of one class, with which a wrong preprocessing may go unnoticed.
    """
    notices = _one_class(seeds) + _unlikely_objects(seeds)
    original = _accuracy(seeds, "original")
    problems = [
        problem
        for problem in (
            disagreement_problem(seeds),
            explanation.sentence() if explanation else "",
            original,
            _accuracy(seeds, "deployed"),
        )
        if problem
    ]
    if not problems:
        return notices
    text = "; ".join(problems)
    if len(seeds) < MINIMUM_SEEDS:
        few = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
        return [*notices, f"{text}; with only {few} this may be chance"]
    if allow:
        return [*notices, f"{text}; going on, as --allow-disagreement says"]
    # `edgeflare inputs` is for images of models that have classes
    finder = "" if audio or not seeds[0].classes else "; `edgeflare inputs` finds the likeliest"
    what = f"{_AUDIO if audio else _IMAGE} of both inputs (`--original-input`, `--deployed-input`{finder})"
    if explanation is not None:
        advice = f"correct {what}"
    elif original:
        advice = f"check the labels, and {what}"
    elif is_tried:
        advice = (
            "no usual mistake of preprocessing explains it, so check that the deployed file is a version "
            "of the original, and what is stated of its input and output alone"
        )
    else:
        advice = f"check {what}"
    explain = "" if unusable else " (`edgeflare explain` then names the cause)"
    raise PreflightError(
        f"{'; '.join((*unusable, text))}; the preprocessing or the model pair looks wrong: {advice}, or "
        f"go on with --allow-disagreement{explain}"
    )


def _one_class(seeds: Sequence[SeedFigures]) -> list[str]:
    labels = [seed.label for seed in seeds if seed.label is not None]
    if len(set(labels)) != 1 or len(labels) < FEWEST_LABELS:
        return []
    text = (
        f"all {len(labels)} labelled seeds are of class {labels[0]}, so that the accuracy on them "
        "tells nothing of the preprocessing; take seeds of several classes "
        "(--limit takes the first)"
    )
    return [text]


def _unlikely_objects(seeds: Sequence[SeedFigures]) -> list[str]:
    """Return a notice where a detector sees nothing, or more than images show."""
    detected = [seed.detected for seed in seeds if seed.detected is not None]
    if not detected:
        return []
    usual = median(detected)
    if usual > _MANY_OBJECTS:
        found = f"{usual:g} objects on the median seed"
    elif not any(detected):
        found = f"nothing on any of {counted(len(seeds), 'seed')}"
    else:
        return []
    return [
        (
            f"the original detects {found}: check the decoder (--decoder), the confidence "
            "(--confidence) and the preprocessing (--input)"
        )
    ]


def check_labels(seeds: Sequence[SeedInput], classes: int) -> None:
    """Raise SeedError, naming a seed, where a label is no class number of the models."""
    for seed in seeds:
        if seed.label is not None and not 0 <= seed.label < classes:
            raise SeedError(
                f"seed {seed.id} has the label {seed.label}, but the models have {classes} "
                f"classes, 0 to {classes - 1}: correct the labels, or leave them out"
            )


def slowness(
    seconds: Sequence[float], search: SearchConfig, host_seconds: Sequence[float] = ()
) -> list[str]:
    """Return a notice where the time budget will end searches before the query budget does.

    A query takes the device's `seconds` and the original's `host_seconds`, whose medians count.
    """
    if not seconds or not search.timeout_s or not search.max_queries:
        return []
    device, host = median(seconds), median(host_seconds) if host_seconds else 0.0
    typical = device + host
    affordable = int(search.timeout_s / typical) if typical else search.max_queries
    if affordable >= search.max_queries:
        return []
    where = (
        f"on the device and {duration(host)} on the host"
        if host >= 0.01 * device
        else "on the device"
    )
    took = (
        f"one inference takes {duration(device)} {where}, so the time budget of "
        f"{search.timeout_s:g} s"
    )
    if affordable < 1:
        return [f"{took} ends a search after its first query: state a longer --timeout"]
    sentence = (
        f"{took} ends a search after about {affordable} queries; such an end depends on speed; for "
        f"repeatable results state --max-queries {affordable} or a longer --timeout"
    )
    return [sentence]


def disagreement_problem(seeds: Sequence[SeedFigures]) -> str:
    """Return that two models disagree on far more seeds than compression explains, or ""."""
    differing = [seed for seed in seeds if seed.decision is Decision.DEVIATION]
    if not differing or not _is_too_much(seeds, len(differing)):
        return ""
    examples = ", ".join(f"{seed.id} ({seed.example})" for seed in differing[:3])
    return (
        f"the two models disagree on {len(differing)} of {len(seeds)} seeds as they are, far more "
        f"than compression explains: {examples}"
    )


def _is_too_much(seeds: Sequence[SeedFigures], differing: int) -> bool:
    """Whether models of one kind can't differ on so many seeds; of detectors on so many objects."""
    if any(seed.has_tolerance for seed in seeds):
        return False
    if any(seed.objects is not None for seed in seeds):
        objects = sum(seed.objects or 0 for seed in seeds)
        apart = sum(seed.differing for seed in seeds)
        return objects > 0 and wilson(apart, objects)[0] > OBJECTS_LIMIT
    return wilson(differing, len(seeds))[0] > DISAGREEMENT_LIMIT


def _accuracy(seeds: Sequence[SeedFigures], which: str) -> str:
    labelled = [seed for seed in seeds if seed.label is not None and seed.classes]
    if not labelled:
        return ""
    right = sum(getattr(seed, which) == seed.label for seed in labelled)
    chance = 1 / labelled[0].classes
    if wilson(right, len(labelled))[0] > chance:
        return ""
    return (
        f"the {which} model is right on only {right} of {len(labelled)} labelled seeds, no better "
        f"than guessing among {labelled[0].classes} classes"
    )
