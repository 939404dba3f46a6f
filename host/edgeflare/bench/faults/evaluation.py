"""One original's evaluation: what a survey, a pursuit and searches see of faulty and healthy models.

Every model gets the same inputs of the survey, on which the original is sure; they are drawn, and
the original and its healthy int8 references are asked about them, once. A faulty model is a copy of
the original with a fault, so the original is its healthy twin: what deviates does so by the fault.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras
from edgeflare.analysis.soundness import Soundness, SurveyScores, judge
from edgeflare.bench.faults.originals import Batch, Original, predict, session
from edgeflare.metrics import is_finite, total_variation
from edgeflare.models.quantized import CALIBRATED_ON, make_references
from edgeflare.oracles import LabelOracle, margin, margins
from edgeflare.scheduler import Budget, SearchJob, SearchSettings, chain_seed
from edgeflare.strategies import build_strategy
from edgeflare.strategies.boundary import BoundaryOptions, resolve_options
from edgeflare.survey import PARTNERS, Drawn, families_for
from edgeflare.survey.features import FeatureSet
from edgeflare.survey.proposals import Inputs, Made
from edgeflare.survey.pursuit import (
    Answered,
    PursuitOptions,
    Reply,
    Screen,
    Screened,
    pursue,
)
from edgeflare.survey.sampling import SurveySettings, survey
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    KnownAnswers,
    Outputs,
    Sample,
    Scores,
    Seed,
)

QUERIES = 6
"""Device queries of each seed that every method has."""
SURVEY_QUERIES = 3
"""Those of the survey where a pursuit has the others."""
FEW_QUERIES = 2
SURE = 0.3
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "boundary": ("boundary", {}),
    "dflare": ("dflare", {}),
    "dflare-text": ("dflare", {"variant": "text"}),
    "diffchaser": ("diffchaser", {"batch": QUERIES - 1}),
}
"""Strategies that are compared with the survey, by their name in tables."""

_DEVIATIONS = (Decision.DEVIATION, Decision.NONFINITE)
_Answers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Surveyed:
    """A survey's inputs for an original, those of one seed together; N in all.

    `inputs` [N, ...] are as the model takes them, `probabilities` [N, classes] the original's;
    `seeds` [N] count from 0, `numbers` [N] the inputs of each seed.
    """

    samples: tuple[Sample, ...]
    drawn: tuple[Drawn, ...]
    inputs: Batch
    probabilities: _Answers
    seeds: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Response:
    """What a survey sees of a model. `first`: queries up to the first confident deviation, or None.

    `excess` is the root mean square of how much farther the model drifts than every reference; with
    the verdict it is that of `edgeflare.analysis.soundness`, as in every campaign.
    """

    queries: int
    deviations: int
    first: int | None
    verdict: str
    excess: float | None


class SearchResult(NamedTuple):
    """`queries` up to the first trigger on which the original is sure, or all; `found` whether one
    was; `triggers` whether there was a trigger of any margin."""

    found: bool
    queries: int
    triggers: bool


class Evaluation:
    """Asks faulty and healthy models of one original; `folder` keeps its int8 references.

    `seeds`: number of natural inputs, the original's first ones, that all begins with.
    """

    def __init__(self, original: Original, folder: Path, seeds: int = 50) -> None:
        self.original = original
        self._folder = folder
        self._opened = session(original.model)
        self._samples = to_samples(original, original.inputs[: max(seeds, PARTNERS)])
        self.seeds = self._samples[:seeds]
        self._partners = self._samples[:PARTNERS]
        self._families = families_for("image", channels=self.seeds[0].shape[2])
        self._references: dict[str, dict[str, SurveyScores]] = {}

    @cached_property
    def surveyed(self) -> Surveyed:
        """The survey's inputs: `QUERIES` of each seed at most, drawn by `edgeflare.survey`."""
        settings = SurveySettings(queries=QUERIES)
        samples: list[Sample] = []
        drawn: list[Drawn] = []
        seeds: list[int] = []
        numbers: list[int] = []
        for place, image in enumerate(self.seeds):
            rng = np.random.default_rng(chain_seed(0, str(place), "survey"))
            plan = survey(image, rng, settings, self._families, self._partners)
            reply: Answer | None = None
            while True:
                try:
                    ask = next(plan) if reply is None else plan.send(reply)
                except StopIteration as end:
                    found = end.value
                    break
                reply = Answer([Outputs(one, one, Decision.AGREE) for one in self._sound(ask)])
            samples += [one.sample for one in found]
            drawn += [one.drawn for one in found]
            seeds += [place] * len(found)
            numbers += range(len(found))
        inputs = to_inputs(self.original, samples)
        return Surveyed(
            *(tuple(samples), tuple(drawn), inputs, self._read(self._opened, inputs)),
            *(np.array(seeds, np.int64), np.array(numbers, np.int64)),
        )

    def respond(self, model: Any, queries: Sequence[int], base: Any = None) -> dict[int, Response]:
        """Return what surveys of so many queries a seed see of an ONNX model.

        `base`: the float model whose int8 models are the references; None: the original.
        """
        own, replies = self._scores(model)
        references = self._int8_of(self.original.model if base is None else base)
        found = {}
        for count in queries:
            asked = np.flatnonzero(self.surveyed.numbers < count)
            judged = judge(
                _part(own, asked), {name: _part(one, asked) for name, one in references.items()}
            )
            places = [n for n, place in enumerate(asked, 1) if replies[place].deviates]
            found[count] = _response(judged, places)
        return found

    def pursue(self, model: Any) -> SearchResult:
        """Ask `SURVEY_QUERIES` of each seed, then pursue what was seen until a deviation is found.

        The pursuit has the rest of all seeds' queries.
        """
        surveyed = self.surveyed
        _, replies = self._scores(model)
        asked = np.flatnonzero(surveyed.numbers < SURVEY_QUERIES)
        first = next((n for n, one in enumerate(asked, 1) if replies[one].deviates), None)
        if first is not None:
            return SearchResult(True, first, True)
        features = FeatureSet(self.seeds[0].shape, None, surveyed.probabilities.shape[1])
        known = [
            Answered(
                Made(int(surveyed.seeds[one]), *surveyed.drawn[one]),
                features.of(surveyed.samples[one], int(surveyed.probabilities[one].argmax())),
                *replies[one],
            )
            for one in asked
        ]
        options = PursuitOptions((QUERIES - SURVEY_QUERIES) * len(self.seeds), SURE)
        inputs = Inputs(self.seeds, self._families, self._partners)
        rng = np.random.default_rng(chain_seed(0, "", "pursuit"))
        run = pursue(known, inputs, features, options, rng)
        opened, spent = session(model), len(asked)
        reply: Sequence[Any] | None = None
        while True:
            try:
                request = next(run) if reply is None else run.send(reply)
            except StopIteration:
                return SearchResult(False, spent, False)
            given = to_inputs(self.original, request.samples)
            sound = self._read(self._opened, given)
            if isinstance(request, Screen):
                reply = [Screened(margin(one) or 0.0, int(one.argmax()), one) for one in sound]
                continue
            answers = list(map(_reply, sound, self._read(opened, given)))
            for number, one in enumerate(answers, 1):
                if one.deviates:
                    return SearchResult(True, spent + number, True)
            spent += len(answers)
            reply = answers

    def search(self, model: Any, method: str) -> SearchResult:
        """Search from every seed as a campaign with this method of `METHODS` does.

        A seed's own answer is the first of its `QUERIES`, and found where it deviates.
        """
        opened = session(model)
        name, stated = METHODS[method]
        if name == "boundary":
            stated = resolve_options(
                BoundaryOptions(), max(self.seeds[0].shape[:2]), one_trip=False
            ).model_dump(exclude_none=True)
        settings = SearchSettings(
            build_strategy(name, stated), Budget(QUERIES - 1, None), 0, 0, _Samples()
        )
        first = to_inputs(self.original, self._samples)
        sound, theirs = self._read(self._opened, first), self._read(opened, first)
        known = KnownAnswers(sound[:PARTNERS], theirs[:PARTNERS])
        spent, triggered = 0, False
        for place, sample in enumerate(self.seeds):
            outputs = _outputs(sound[place], theirs[place])
            spent += 1
            if outputs.decision in _DEVIATIONS:
                triggered = True
                if _is_sure(sound[place]):
                    return SearchResult(True, spent, True)
                continue
            seed = Seed(str(place), sample, outputs, others=self._partners, known=known)
            job = SearchJob(seed, settings)
            run = job.run()
            reply: Answer | None = None
            while True:
                try:
                    ask = next(run) if reply is None else run.send(reply)
                except StopIteration:
                    break
                inputs = to_inputs(self.original, ask.samples)
                ours = self._read(self._opened, inputs)
                if ask.of == "original":
                    reply = Answer([Outputs(one, None, Decision.UNDECIDED) for one in ours])
                    continue
                both = list(map(_outputs, ours, self._read(opened, inputs)))
                wrong = [one.decision in _DEVIATIONS for one in both]
                triggered |= any(wrong)
                for number, (one, deviates) in enumerate(zip(ours, wrong, strict=True), 1):
                    if deviates and _is_sure(one):
                        asked = job.counters.search - len(both) + number
                        return SearchResult(True, spent + asked, True)
                reply = Answer(both)
            spent += job.counters.search
        return SearchResult(False, spent, triggered)

    def _read(self, opened: Any, inputs: Batch) -> _Answers:
        return self.original.probabilities(predict(opened, inputs))

    def _sound(self, ask: Ask) -> _Answers:
        return self._read(self._opened, to_inputs(self.original, ask.samples))

    def _scores(self, model: Any) -> tuple[SurveyScores, list[Reply]]:
        surveyed = self.surveyed
        answers = self._read(session(model), surveyed.inputs)
        replies = list(map(_reply, surveyed.probabilities, answers))
        return (
            SurveyScores(
                [str(one) for one in surveyed.seeds],
                [one.family for one in surveyed.drawn],
                [one.severity for one in surveyed.drawn],
                np.array([one.drift for one in replies], np.float64),
                np.array([one.deviates for one in replies], np.bool_),
            ),
            replies,
        )

    def _int8_of(self, base: Any) -> dict[str, SurveyScores]:
        """Return what the int8 models of a float model answer; they are made once."""
        digest = hashlib.sha256(base.SerializeToString()).hexdigest()[:12]
        if digest not in self._references:
            self._folder.mkdir(parents=True, exist_ok=True)
            onnx = extras.onnx()
            path = self._folder / f"{self.original.name}-{digest}.onnx"
            onnx.save_model(base, path)
            count = len(self.seeds)
            places = (n * count // CALIBRATED_ON for n in range(CALIBRATED_ON))
            inputs = [self.original.inputs[n : n + 1] for n in dict.fromkeys(places)]
            made = make_references(path, inputs, self._folder)
            self._references[digest] = {
                name: self._scores(onnx.load_model(one))[0] for name, one in made.items()
            }
        return self._references[digest]


def area_under_curve(healthy: Sequence[float], faulty: Sequence[float]) -> float:
    """Return the share of (healthy, faulty) pairs in which the faulty one's value is larger.

    Equal values count as a half. NaN where either is empty.
    """
    if not healthy or not faulty:
        return float("nan")
    differences = np.subtract.outer(np.array(faulty), np.array(healthy))
    return float(((differences > 0) + 0.5 * (differences == 0)).mean())


def to_samples(original: Original, inputs: Batch) -> list[Sample]:
    """Return inputs as images: uint8 [height, width, channels] each."""
    pixels = np.rint(original.to_pixels(inputs) * 255).astype(np.uint8)
    if pixels.ndim == 3:
        return list(pixels[..., None])
    return list(pixels if original.layout == "NHWC" else pixels.transpose(0, 2, 3, 1))


def to_inputs(original: Original, samples: Sequence[Sample]) -> Batch:
    """Return images as the model takes them: [N, ...]."""
    pixels = np.stack(samples) / 255
    if original.inputs.ndim == 3:
        return original.from_pixels(pixels[..., 0])
    return original.from_pixels(
        pixels if original.layout == "NHWC" else pixels.transpose(0, 3, 1, 2)
    )


class _Samples:
    """Keeps no sample: nothing is read again."""

    def put_sample(self, sample: Sample) -> str:
        del sample
        return ""

    def get_sample(self, digest: str) -> Sample:
        raise KeyError(digest)


def _outputs(ours: Scores, theirs: Scores) -> Outputs:
    return Outputs(ours, theirs, LabelOracle().decide(ours, theirs))


def _is_sure(ours: Scores) -> bool:
    return (margin(ours) or 0.0) >= SURE


def _reply(ours: Scores, theirs: Scores) -> Reply:
    deviates = LabelOracle().decide(ours, theirs) in _DEVIATIONS
    drift = total_variation(ours, theirs) if is_finite(theirs) else 1.0
    return Reply(deviates, margins(ours, theirs).smaller or 0.0, drift)


def _part(scores: SurveyScores, places: npt.NDArray[np.int64]) -> SurveyScores:
    """Return the scores on some inputs alone."""
    return SurveyScores(
        [scores.seed_ids[place] for place in places],
        [scores.families[place] for place in places],
        [scores.severities[place] for place in places],
        scores.total_variation[places],
        scores.deviates[places],
    )


def _response(judged: Soundness, places: Sequence[int]) -> Response:
    first = places[0] if places else None
    return Response(judged.inputs, len(places), first, judged.verdict, judged.excess)
