"""Checks before a search: whether the two models belong together, and can be searched as they are.

`CHECKS` are the checks of both models' answers to the seeds; each yields an `Issue`.
"""

import filecmp
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from edgeflare._internal.text import capitalized, counted
from edgeflare.answers import kind_of_answer
from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.parts import Margins
from edgeflare.campaign.events import Reporter, Stage
from edgeflare.campaign.pair.health import UnusableAnswers, unusable_answers
from edgeflare.campaign.pair.saturation import SEEDS_TRIED, saturated_answers, saturates
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig
from edgeflare.errors import EdgeFlareError
from edgeflare.models import VALUE_FIELDS, AnswerReader, OriginalModel
from edgeflare.models.tensors import is_float_file
from edgeflare.statistics import wilson
from edgeflare.store import Store
from edgeflare.triage.agreement import FEWEST_SEEDS, HEALTHY, least_agreement, stacked
from edgeflare.triage.cause import CORRECTED, NAME, Cause
from edgeflare.types import Decision, Issue, Outputs, Seed
from edgeflare.words import triage as triage_words
from edgeflare.words.next_steps import in_one_sentence
from edgeflare.words.preflight import MAY_BE_CHANCE, sentence

if TYPE_CHECKING:
    from edgeflare.campaign.fleet import Fleet  # reports need nothing that opens devices

MINIMUM_SEEDS = 20
FEWEST_LABELS = 8
DISAGREEMENT_LIMIT = 0.20
OBJECTS_LIMIT = 0.12
"""Of a detector's objects: of two real detectors 2 to 8 % differ clearly after int8 quantisation, and
21 to 23 % with another colour order or scaling."""
_OF_STATEMENTS = ("another-model", "interface", "labels", "preprocessing")
"""Kinds of causes that come of what is stated of the pair: with them its answers can't be compared."""
_CLEAR = 0.05
"""The margin of a difference of detections that counts as clear: nearer ones come of rounding."""
_MANY_OBJECTS = 100
_EXAMPLES = 3


class SeedFigures(NamedTuple):
    """What the checks need of one seed that both models answered.

    Labels are None where not known, and of answers without class scores, which are over 0
    `classes`. `example` says of two answers how they differ, `margins` how sure the models are of
    that. `objects`: those that either of two detectors sees, and `differing` those that the other
    one clearly doesn't see, or takes for another class; None of other models. `detected`: those that
    the original sees. `has_tolerance`: how far answers may be apart is the user's to state.
    """

    id: str
    label: int | None
    decision: Decision
    original: int | None
    deployed: int | None
    classes: int
    example: str = ""
    margins: Margins = Margins(None, None)
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
        return figures._replace(
            example=kind.example(original, deployed), margins=kind.margins(original, deployed)
        )


@dataclass(frozen=True)
class PairAnswers:
    """Both models' answers to the seeds, as the checks see them.

    `unusable`: which model's answers tell nothing. `allow`: the user accepts a pair that
    disagrees.
    """

    seeds: Sequence[SeedFigures]
    unusable: Sequence[UnusableAnswers] = ()
    allow: bool = False

    def accuracy(self, model: str) -> tuple[int, int]:
        """Return on how many seeds a model is right, and how many have a label and one class."""
        labelled = [seed for seed in self.seeds if seed.label is not None and seed.classes]
        return sum(getattr(seed, model) == seed.label for seed in labelled), len(labelled)

    def details(self) -> dict[str, Any]:
        """Return what is known of the pair for a diagnosis, as JSON."""
        differing = [seed for seed in self.seeds if seed.decision is Decision.DEVIATION]
        models = ("original", "deployed")
        sure = {name: [getattr(seed.margins, name) for seed in differing] for name in models}
        margins = {name: [m for m in of_model if m is not None] for name, of_model in sure.items()}
        return {
            "accuracies": {name: self.accuracy(name) for name in models},
            "margins": {name: median(of) if of else None for name, of in margins.items()},
        }


def _one_class(pair: PairAnswers) -> Iterator[Issue]:
    """With seeds of one class alone a wrong preprocessing may go unnoticed."""
    labels = [seed.label for seed in pair.seeds if seed.label is not None]
    if len(set(labels)) == 1 and len(labels) >= FEWEST_LABELS:
        data = {"labelled": len(labels), "label": labels[0]}
        yield Issue("one-class", "note", data, {"seeds.path": None})


def _objects(pair: PairAnswers) -> Iterator[Issue]:
    """A detector sees nothing, or more than images show."""
    detected = [seed.detected for seed in pair.seeds if seed.detected is not None]
    if detected and (median(detected) > _MANY_OBJECTS or not any(detected)):
        data = {"seeds": len(pair.seeds), "median": median(detected)}
        fix = dict.fromkeys(("original.decoder", "detection.confidence", "original.input"))
        yield Issue("objects", "note", data, fix)


def _disagreement(pair: PairAnswers) -> Iterator[Issue]:
    """Two models disagree on far more seeds than compression explains."""
    seeds = pair.seeds
    differing = [seed for seed in seeds if seed.decision is Decision.DEVIATION]
    if not differing or any(seed.has_tolerance for seed in seeds):
        return
    counts, limit = (len(differing), len(seeds)), DISAGREEMENT_LIMIT
    if any(seed.objects is not None for seed in seeds):  # nearly every image has one that differs
        counts = sum(seed.differing for seed in seeds), sum(seed.objects or 0 for seed in seeds)
        limit = OBJECTS_LIMIT
    if not counts[1] or (low := wilson(*counts)[0]) <= limit:
        return
    examples = [{"seed": seed.id, "difference": seed.example} for seed in differing[:_EXAMPLES]]
    data = {"differing": len(differing), "seeds": len(seeds), "examples": examples}
    data |= {"counted": counts, "low": low, "limit": limit} | pair.details()
    yield Issue("disagreement", "stop", data, {"original.input": None, "deployed.input": None})


def _accuracy(pair: PairAnswers) -> Iterator[Issue]:
    """A model is no better than chance, by the lower 95 % bound of its accuracy."""
    of_labelled = (seed.classes for seed in pair.seeds if seed.label is not None and seed.classes)
    classes = next(of_labelled, 0)
    for model in ("original", "deployed"):
        right, labelled = pair.accuracy(model)
        if labelled and wilson(right, labelled)[0] <= 1 / classes:
            data = {"right": right, "labelled": labelled, "classes": classes}
            fix = {"seeds.labels": None, f"{model}.input": None}
            yield Issue(f"accuracy-{model}", "stop", data | pair.details(), fix)


CHECKS: tuple[Callable[[PairAnswers], Iterator[Issue]], ...] = (
    *(_one_class, _objects),
    *(_disagreement, _accuracy),
)


def pair_issues(pair: PairAnswers) -> list[Issue]:
    """Return what the checks find; none stops where fewer than 20 seeds were answered, or with `allow`."""
    issues = [issue for check in CHECKS for issue in check(pair)]
    if len(pair.seeds) >= MINIMUM_SEEDS and not pair.allow:
        return issues
    return [replace(one, severity="warning") if one.severity == "stop" else one for one in issues]


class PairChecked(NamedTuple):
    """Notices, and what is wrong with a pair; "": nothing is, there are too few seeds to tell, or the
    user accepts it. `looks_wrong`: whether something is, be it accepted or chance."""

    notices: Sequence[str]
    problem: str
    looks_wrong: bool


def check_pair(pair: PairAnswers) -> PairChecked:
    """Check both models' answers on the seeds."""
    issues = pair_issues(pair)
    notices = [sentence(issue) for issue in issues if issue.severity == "note"]
    problems = [issue for issue in issues if issue.severity != "note"]
    if not problems:
        return PairChecked(notices, "", False)
    text = "; ".join(map(sentence, problems))
    if len(pair.seeds) < MINIMUM_SEEDS:
        chance = MAY_BE_CHANCE.format(text, counted(len(pair.seeds), "seed"))
        return PairChecked([*notices, chance], "", True)
    if pair.allow:
        return PairChecked([*notices, text], "", True)
    text = "; ".join([*(problem.words for problem in pair.unusable), text])
    return PairChecked(notices, text, True)


def disagreement(seeds: Sequence[SeedFigures]) -> Issue | None:
    """Return that two models disagree on far more seeds than compression explains, else None."""
    return next(_disagreement(PairAnswers(seeds)), None)


def slowness(
    seconds: Sequence[float], search: SearchConfig, host_seconds: Sequence[float] = ()
) -> Issue | None:
    """Return that the time budget will end searches before the query budget does, else None.

    A query takes the device's `seconds` and the original's `host_seconds`, whose medians count.
    """
    if not seconds or not search.timeout_s or not search.max_queries:
        return None
    device, host = median(seconds), median(host_seconds) if host_seconds else 0.0
    typical = device + host
    affordable = int(search.timeout_s / typical) if typical else search.max_queries
    if affordable >= search.max_queries:
        return None
    data = {"device_s": device, "host_s": host, "timeout_s": search.timeout_s}
    fix = {"search.max_queries": affordable or None, "search.timeout_s": None}
    return Issue("slow", "note", {**data, "affordable": affordable}, fix)


def same_file(config: CampaignConfig, sides: Sequence[ModelInterface]) -> list[str]:
    """Return a notice where the deployed model is the original's own file, prepared alike."""
    paths = config.original.path, config.deployed.path
    if sides[0].spec != sides[1].spec or not filecmp.cmp(*paths, shallow=False):
        return []
    return [sentence(Issue("same-file", "note"))]


@dataclass(frozen=True)
class Preflight:
    """The checks of a campaign's answers to its seeds, once for each replica."""

    config: CampaignConfig
    original: OriginalModel
    fleet: "Fleet"
    sides: tuple[ModelInterface, ModelInterface]
    store: Store
    reporter: Reporter

    def run(self, replicas: Mapping[str, Sequence[str]], reader: AnswerReader) -> None:
        """Check what isn't checked yet; store notices, and what is wrong with the pair.

        `replicas`: the names of the devices of each; `reader`: how the deployed model's outputs
        become answers. A pair that looks wrong, or agrees worse than healthy pairs do, is triaged.
        """
        checked = list(self.store.state.checked)
        if set(replicas) <= {*checked}:
            return
        unusable = [one for one in unusable_answers(self.store) if one.replica not in checked]
        told = self.store.notices()
        for problem in unusable:
            if (text := capitalized(problem.words)) not in told:
                self.reporter.notice(text)
        wrong: list[str] = []
        looks_wrong = False
        for replica, names in replicas.items():
            if replica in checked:
                continue
            where = f"{replica}: " if replica else ""
            answers = check_pair(self._answers(replica, unusable))
            for notice in answers.notices:
                self.reporter.notice(where + notice)
            looks_wrong |= answers.looks_wrong
            if answers.problem:
                wrong.append(where + answers.problem)
            if saturated := self._saturation(replica, names, reader):
                self.reporter.notice(where + sentence(saturated))
            checked.append(replica)
        is_triaged = looks_wrong or self._are_fed_otherwise() or self._is_off()
        first = self._triaged() if is_triaged else None
        is_stated = (
            first is not None and first.kind in _OF_STATEMENTS and first.strength >= CORRECTED
        )
        if wrong or (is_stated and not self.config.allow_disagreement):
            causes = [] if first is None else [triage_words.sentence(first)]
            self.store.state.disagreement = "; ".join([*wrong, *causes])
        self.store.state.checked = checked

    def _are_fed_otherwise(self) -> bool:
        """Whether samples enter the two models as other values: one of the statements may be wrong."""
        first, second = (side.spec for side in self.sides)
        return any(
            getattr(first, name, None) != getattr(second, name, None) for name in VALUE_FIELDS
        )

    def _is_off(self) -> bool:
        """Whether the answers agree worse than those of healthy pairs of these files do."""
        files = zip(
            (self.config.original.path, self.config.deployed.path),
            (self.store.models[which]["runtime"]["name"] for which in ("original", "deployed")),
            strict=True,
        )
        # a file of PyTorch or Keras, whose libraries take seconds to load, counts as floats
        is_float = [
            runtime not in ("onnx", "tflite") or is_float_file(path, runtime) is not False
            for path, runtime in files
        ]
        seeds = [seed for seed in self.store.seeds() if seed.outputs is not None][:SEEDS_TRIED]
        kind = self.sides[0].kind
        numbers = [
            [
                kind.numbers(answer)
                for seed in seeds
                if (answer := getattr(seed.outputs, which)) is not None
            ]
            for which in ("original", "deployed")
        ]
        found = [stacked([[one] for one in of_model]) for of_model in numbers]
        if len(seeds) < FEWEST_SEEDS:
            return False
        if found[0] is None or found[1] is None or not self.sides[1].kind.is_scored:
            return False
        expected = HEALTHY["float32" if all(is_float) else "int8"]
        return least_agreement(found[0], found[1]) < expected

    def _triaged(self) -> Cause | None:
        """Triage the pair, store the result, and tell it; return the first cause."""
        from edgeflare.campaign.pair.triage import triage_campaign  # what is shown needs no models

        self.reporter(Stage(NAME, triage_words.LOOKING))
        try:
            found = triage_campaign(self.store, self.config)
        except EdgeFlareError as error:
            self.reporter.notice(triage_words.NOT_LOOKED_FOR.format(error))
            return None
        self.store.add_result(NAME, found)
        self.reporter.notice(in_one_sentence(found))
        return next(iter(found.causes), None)

    def _answers(self, replica: str, unusable: Sequence[UnusableAnswers]) -> PairAnswers:
        figures = [
            SeedFigures.of(seed.id, seed.label, seed.outputs)
            for seed in self.store.seeds(replica)
            if seed.outputs is not None
        ]
        return PairAnswers(figures, unusable, allow=self.config.allow_disagreement)

    def _saturation(self, replica: str, names: Sequence[str], reader: AnswerReader) -> Issue | None:
        """Return what saturated 8-bit products of a replica's device change, if anything."""
        devices = {session.name: session for session in self.fleet}
        for name in names:
            device = devices.get(name)  # None: its worker was left out
            if device is not None and saturates(device.model.runtime, device.fingerprint):
                path, seeds = self.config.deployed.path, self._with_samples(replica)
                data = saturated_answers(path, self.sides[1], reader, seeds)
                fix = {"deployed.options.exact_int8": True}
                return Issue("saturation", "warning", data, fix) if data else None
        return None

    def _with_samples(self, replica: str) -> Iterator[Seed]:
        rows = self.store.state.seed_rows
        for seed in self.store.seeds(replica):
            if seed.outputs is not None:
                sample = self.store.get_sample(seed.sample)
                row = rows.get(seed.id)
                yield Seed(seed.id, sample, seed.outputs, seed.label, row=row)
