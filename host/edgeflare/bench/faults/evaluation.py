"""What a survey sees of faulty and of healthy models: deviations found, and how far they move."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeflare.bench.faults.originals import Batch, Original, predict, session
from edgeflare.survey import PARTNERS, families_for
from edgeflare.survey.sampling import SurveySettings, survey
from edgeflare.types import Answer, Decision, Outputs, Sample, Scores


@dataclass(frozen=True)
class Surveyed:
    """A survey's inputs [N, ...] for an original, its probabilities there, and each one's seed."""

    inputs: Batch
    probabilities: npt.NDArray[np.float64]
    seeds: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Response:
    """One model on a survey's inputs, in the order in which they are asked.

    `first` counts the queries up to and including the first confident deviation; None where there
    was none. `total_variation` is the mean over all inputs, 0 to 1; an answer that is no number
    counts as 1.
    """

    queries: int
    deviations: int
    first: int | None
    total_variation: float


def survey_inputs(
    original: Original, *, seeds: int = 50, queries: int = 6, campaign_seed: int = 0
) -> Surveyed:
    """Draw the survey's inputs from an original's first inputs: far from them, the original sure.

    The same inputs are for every model of that original. Draws `queries` inputs a seed at most, by
    `edgeflare.survey` with its own families.
    """
    images = _images(original)
    opened = session(original.model)
    partners = images[:PARTNERS]
    channels = images[0].shape[2]
    families = families_for("image", channels=channels)
    settings = SurveySettings(queries=queries)
    found: list[Sample] = []
    numbers: list[int] = []
    for number, image in enumerate(images[:seeds]):
        rng = np.random.default_rng([campaign_seed, number])
        plan = survey(image, rng, settings, families, partners)
        asked = next(plan)
        while True:
            scores = _scores(original, opened, asked.samples)
            outputs = [
                Outputs(one, one if asked.of != "original" else None, Decision.AGREE)
                for one in scores
            ]
            try:
                asked = plan.send(Answer(outputs))
            except StopIteration as end:
                found.extend(one.sample for one in end.value)
                numbers.extend([number] * len(end.value))
                break
    inputs = _as_inputs(original, found)
    read = original.probabilities(predict(opened, inputs))
    return Surveyed(inputs, read, np.array(numbers, np.int64))


def respond(original: Original, model: Any, surveyed: Surveyed, sure: float = 0.3) -> Response:
    """Ask a model about a survey's inputs; compare its answers with the original's.

    A confident deviation: another class than the original's, where the original's margin is at
    least `sure`.
    """
    answers = original.probabilities(predict(session(model), surveyed.inputs))
    moved = np.abs(answers - surveyed.probabilities).sum(1) / 2
    ordered = np.sort(surveyed.probabilities, 1)
    confident = ordered[:, -1] - ordered[:, -2] >= sure
    deviates = confident & (answers.argmax(1) != surveyed.probabilities.argmax(1))
    places = np.flatnonzero(deviates)
    return Response(
        len(answers),
        len(places),
        int(places[0]) + 1 if len(places) else None,
        float(np.where(np.isfinite(moved), moved, 1.0).mean()),
    )


def area_under_curve(healthy: Sequence[float], faulty: Sequence[float]) -> float:
    """Return the share of (healthy, faulty) pairs in which the faulty one's value is larger.

    Equal values count as a half. NaN where either is empty.
    """
    if not healthy or not faulty:
        return float("nan")
    differences = np.subtract.outer(np.array(faulty), np.array(healthy))
    return float(((differences > 0) + 0.5 * (differences == 0)).mean())


def _images(original: Original) -> list[Sample]:
    pixels = np.rint(original.to_pixels(original.inputs) * 255).astype(np.uint8)
    return list(pixels if original.layout == "NHWC" else pixels.transpose(0, 2, 3, 1))


def _as_inputs(original: Original, samples: Sequence[Sample]) -> Batch:
    pixels = np.stack(samples) / 255
    return original.from_pixels(
        pixels if original.layout == "NHWC" else pixels.transpose(0, 3, 1, 2)
    )


def _scores(original: Original, opened: Any, samples: Sequence[Sample]) -> Iterator[Scores]:
    read = original.probabilities(predict(opened, _as_inputs(original, samples)))
    return iter(read)
