"""One original's evaluation: what a survey, a pursuit and searches see of faulty and healthy models.

Every model gets the same inputs of the survey, on which the original is sure; they are drawn, and
the original and its healthy int8 references are asked about them, once. A faulty model is a copy of
the original with a fault, so the original is its healthy twin: what deviates does so by the fault.
"""

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras
from edgeflare.analysis.soundness import SurveyScores, judge
from edgeflare.answers.metrics import is_finite, total_variation
from edgeflare.answers.oracles import LabelOracle, margin, margins
from edgeflare.models.quantized import CALIBRATED_ON, DYNAMIC, make_references
from edgeflare.scheduler import Budget, SearchJob, SearchSettings, chain_seed
from edgeflare.strategies import build_strategy
from edgeflare.strategies.boundary import BoundaryOptions, resolve_options
from edgeflare.survey import PARTNERS, Drawn, families_for
from edgeflare.survey.features import FeatureSet
from edgeflare.survey.proposals import Derivation, Inputs
from edgeflare.survey.pursuit import (
    Answered,
    Reply,
    Request,
    Screen,
    Screened,
    pursue,
)
from edgeflare.survey.sampling import SurveySettings, survey
from edgeflare.types import Answer, Ask, Decision, KnownAnswers, Outputs, Sample, Scores, Seed
from edgeflare_bench.faults.originals import Batch, Original, predict, session
from edgeflare_bench.faults.witness import SURE

T = TypeVar("T")

QUERIES = 6
"""Device queries of each seed that every method has."""
SURVEY_QUERIES = 3
"""Those of the survey where a pursuit has the others."""
FEW_QUERIES = 2
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

    @property
    def as_search(self) -> "SearchResult":
        """What the survey found, as of a search."""
        return SearchResult(bool(self.first), self.first or self.queries, bool(self.first))


@dataclass(frozen=True)
class SearchResult:
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
        found: list[Any] = []
        places: list[tuple[int, int]] = []
        for place, image in enumerate(self.seeds):
            rng = np.random.default_rng(chain_seed(0, str(place), "survey"))
            plan = survey(image, rng, settings, self._families, self._partners)
            of_seed = _drive(plan, self._sound)
            found += of_seed
            places += [(place, number) for number in range(len(of_seed))]
        samples, drawn = zip(*((one.sample, one.drawn) for one in found), strict=True)
        inputs = to_inputs(self.original, samples)
        probabilities = self._read(self._opened, inputs)
        return Surveyed(samples, drawn, inputs, probabilities, *np.array(places, np.int64).T)

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
                _part(own, asked),
                {name: _part(one, asked) for name, one in references.items()},
                explaining=DYNAMIC,
            )
            deviating = [n for n, place in enumerate(asked, 1) if replies[place].deviates]
            first = deviating[0] if deviating else None
            found[count] = Response(
                judged.inputs, len(deviating), first, judged.verdict, judged.excess
            )
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
                Derivation(int(surveyed.seeds[one]), *surveyed.drawn[one]),
                features.of(surveyed.samples[one], int(surveyed.probabilities[one].argmax())),
                *replies[one],
                surveyed.probabilities[one],
            )
            for one in asked
        ]
        queries = (QUERIES - SURVEY_QUERIES) * len(self.seeds)
        inputs = Inputs(self.seeds, self._families, self._partners)
        rng = np.random.default_rng(chain_seed(0, "", "pursuit"))
        opened, spent = session(model), len(asked)

        def answer(request: Request) -> Sequence[Any]:
            nonlocal spent
            given = to_inputs(self.original, request.samples)
            sound = self._read(self._opened, given)
            if isinstance(request, Screen):
                return [Screened(margin(one) or 0.0, int(one.argmax()), one) for one in sound]
            answers = list(map(_reply, sound, self._read(opened, given)))
            for number, one in enumerate(answers, 1):
                if one.deviates:
                    raise _Found(spent + number)
            spent += len(answers)
            return answers

        try:
            _drive(pursue(known, inputs, features, queries, SURE, rng), answer)
        except _Found as found:
            return SearchResult(True, found.queries, True)
        return SearchResult(False, spent, False)

    def search(self, model: Any, method: str) -> SearchResult:
        """Search from every seed as a campaign with this method of `METHODS` does.

        A seed's own answer is the first of its `QUERIES`, and found where it deviates.
        """
        opened, settings = session(model), self._settings(method)
        first = to_inputs(self.original, self._samples)
        sound, theirs = self._read(self._opened, first), self._read(opened, first)
        known = KnownAnswers(sound[:PARTNERS], theirs[:PARTNERS])
        spent, triggers = 0, False

        def answer(ask: Ask) -> Answer:
            nonlocal triggers
            inputs = to_inputs(self.original, ask.samples)
            ours = self._read(self._opened, inputs)
            if ask.of == "original":
                return Answer([Outputs(one, None, Decision.UNDECIDED) for one in ours])
            both = list(map(_outputs, ours, self._read(opened, inputs)))
            for number, (one, outputs) in enumerate(zip(ours, both, strict=True), 1):
                if outputs.decision in _DEVIATIONS:
                    triggers = True
                    if (margin(one) or 0.0) >= SURE:
                        before = max(0, job.counters.search - len(both))
                        raise _Found(spent + min(before + number, job.counters.search))
            return Answer(both)

        try:
            for place, sample in enumerate(self.seeds):
                outputs = _outputs(sound[place], theirs[place])
                seed = Seed(str(place), sample, outputs, others=self._partners, known=known)
                job = SearchJob(seed, settings)
                spent += 1
                _drive(job.run(), answer)  # confirms where the seed itself deviates
                spent += job.counters.search
        except _Found as found:
            return SearchResult(True, found.queries, True)
        return SearchResult(False, spent, triggers)

    def _settings(self, method: str) -> SearchSettings:
        name, options = METHODS[method]
        if name == "boundary":
            side = max(self.seeds[0].shape[:2])
            chosen = resolve_options(BoundaryOptions(), side, one_trip=False)
            options = chosen.model_dump(exclude_none=True)
        budget = Budget(QUERIES - 1, None)
        return SearchSettings(build_strategy(name, options), budget, 1, 0, _Samples())

    def _read(self, opened: Any, inputs: Batch) -> _Answers:
        return self.original.probabilities(predict(opened, inputs))

    def _sound(self, ask: Ask) -> Answer:
        answers = self._read(self._opened, to_inputs(self.original, ask.samples))
        return Answer([Outputs(one, one, Decision.AGREE) for one in answers])

    def _scores(self, model: Any) -> tuple[SurveyScores, list[Reply]]:
        surveyed = self.surveyed
        answers = self._read(session(model), surveyed.inputs)
        replies = list(map(_reply, surveyed.probabilities, answers))
        scores = SurveyScores(
            [str(place) for place in surveyed.seeds],
            [drawn.family for drawn in surveyed.drawn],
            [drawn.severity for drawn in surveyed.drawn],
            np.array([reply.drift for reply in replies], np.float64),
            np.array([reply.deviates for reply in replies], np.bool_),
        )
        return scores, replies

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


def area_under_curve(healthy: Sequence[float], faulty: Sequence[float]) -> float | None:
    """Return the share of (healthy, faulty) pairs in which the faulty one's value is larger.

    Equal values count as a half. None where either is empty.
    """
    if not healthy or not faulty:
        return None
    differences = np.subtract.outer(np.array(faulty), np.array(healthy))
    return float(((differences > 0) + 0.5 * (differences == 0)).mean())


def to_samples(original: Original, inputs: Batch) -> list[Sample]:
    """Return inputs as images: uint8 [height, width, channels] each."""
    pixels = np.rint(original.to_pixels(inputs) * 255).astype(np.uint8)
    return list(pixels if original.layout == "NHWC" else pixels.transpose(0, 2, 3, 1))


def to_inputs(original: Original, samples: Sequence[Sample]) -> Batch:
    """Return images as the model takes them: [N, ...]."""
    pixels = np.stack(samples) / 255
    return original.from_pixels(
        pixels if original.layout == "NHWC" else pixels.transpose(0, 3, 1, 2)
    )


class _Found(Exception):  # noqa: N818 - no error: what was looked for is found
    """A confident deviation after so many device queries."""

    def __init__(self, queries: int) -> None:
        self.queries = queries


def _drive(steps: Generator[Any, Any, T], answer: Callable[[Any], Any]) -> T:
    """Answer all that a survey, a pursuit or a search asks; return its result."""
    reply = None
    while True:
        try:
            request = next(steps) if reply is None else steps.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result
        reply = answer(request)


class _Samples(dict[str, Sample]):
    """Keeps the samples of one search in memory."""

    def put_sample(self, sample: Sample) -> str:
        self[str(len(self))] = sample
        return str(len(self) - 1)

    def get_sample(self, digest: str) -> Sample:
        return self[digest]


def _outputs(ours: Scores, theirs: Scores) -> Outputs:
    return Outputs(ours, theirs, LabelOracle().decide(ours, theirs))


def _reply(ours: Scores, theirs: Scores) -> Reply:
    deviates = LabelOracle().decide(ours, theirs) in _DEVIATIONS
    drift = total_variation(ours, theirs) if is_finite(theirs) else 1.0
    return Reply(deviates, margins(ours, theirs).smaller or 0.0, drift)


def _part(scores: SurveyScores, places: npt.NDArray[np.int64]) -> SurveyScores:
    """Return the scores on some inputs alone."""
    lists: Any = ([values[place] for place in places] for values in scores[:3])
    return SurveyScores(*lists, *(values[places] for values in scores[3:]))
