"""The survey from one seed: inputs far from it at which the original is sure."""

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from edgeflare.answers.oracles import certainty
from edgeflare.errors import InferenceFailedError
from edgeflare.survey.family import SEVERITIES, Drawn, Family
from edgeflare.types import Answer, Ask, Output, Sample


class SurveySettings(NamedTuple):
    """`queries`: inputs of each seed that the deployed model is asked about.

    Only inputs are asked about on which the original's `edgeflare.oracles.certainty` is at least
    `sure`; of each seed at most `candidates` are drawn to find them, which cost no query of the
    device.
    """

    queries: int = 3
    sure: float = 0.3
    candidates: int = 28


class Surveyed(NamedTuple):
    """One input far from its seed, and both models' answers to it.

    `deployed` is None where the deployed model can't answer; `failure` says why then.
    """

    drawn: Drawn
    sample: Sample
    original: Output
    deployed: Output | None
    failure: str = ""


SurveyPlan: TypeAlias = Generator[Ask, Answer, Sequence[Surveyed]]
"""Yields queries, is sent the answers, returns the inputs that both models were asked about."""


def survey(
    seed: Sample,
    rng: np.random.Generator,
    settings: SurveySettings,
    families: Mapping[str, Family],
    partners: Sequence[Sample],
) -> SurveyPlan:
    """Ask the deployed model about a few inputs far from a seed at which the original is sure.

    Each of the `queries` inputs is of another family and another severity (where there are as
    many), drawn at random: so over many seeds families have even shares, and severities have. The
    original is asked about inputs of that family and severity first, then of its other
    severities, then of families that are left, until it is sure of one. What is asked depends on
    nothing but the arguments and the original's answers.
    """
    order = [list(families.values())[place] for place in rng.permutation(len(families))]
    severities = [SEVERITIES[place] for place in rng.permutation(len(SEVERITIES))]
    slots = min(settings.queries, settings.candidates)
    numbers = [int(rng.integers(1 << 63)) for _ in range(slots)]
    wanted = [
        _Slot(
            seed,
            np.random.default_rng(number),
            [order[(place + step * slots) % len(order)] for step in range(len(order))],
            severities[place % len(severities)],
        )
        for place, number in enumerate(numbers)
    ]
    chosen: dict[int, Surveyed] = {}
    for _ in range(settings.candidates // slots):
        open_slots = [place for place in range(slots) if place not in chosen]
        drawn = [wanted[place].next() for place in open_slots]
        samples = [families[one.family].apply(seed, one.params, partners) for one in drawn]
        if not samples:
            break
        answer = yield Ask(tuple(samples), "original")
        for place, one, sample, outputs in zip(
            open_slots, drawn, samples, answer.outputs, strict=True
        ):
            assert outputs.original is not None  # noqa: S101 - it was asked
            sure = certainty(outputs.original)
            is_sure = sure is not None and sure >= settings.sure
            if is_sure and not _is_known(sample, seed, chosen):
                chosen[place] = Surveyed(one, sample, outputs.original, None)
    surveyed = []
    for place in sorted(chosen):
        surveyed.append((yield from asked(chosen[place])))  # noqa: PERF401 - no yield there
    return surveyed


def asked(one: Surveyed) -> Generator[Ask, Answer, Surveyed]:
    """Ask the deployed model about an input alone; return it with the answer, or the failure."""
    try:
        answer = yield Ask((one.sample,), "deployed")
    except InferenceFailedError as error:
        return one._replace(failure=str(error))
    return one._replace(deployed=answer.outputs[0].deployed)


class _Slot:
    """Draws candidates for one query: first of its own family and severity, later of others."""

    _OWN = 3
    """Number of candidates of the slot's own severity, before other severities are tried."""

    def __init__(
        self, seed: Sample, rng: np.random.Generator, order: Sequence[Family], severity: int
    ) -> None:
        """Draw of the first family of `order` first, then of each after it."""
        self._seed = seed
        self._rng = rng
        self._cells = self._ordered(order, severity)

    def next(self) -> Drawn:
        """Draw the next candidate."""
        family, severity = next(self._cells)
        return Drawn(family.name, severity, family.draw(self._rng, self._seed, severity))

    def _ordered(self, order: Sequence[Family], severity: int) -> Iterator[tuple[Family, int]]:
        for family in itertools.cycle(order):
            others = [SEVERITIES[place] for place in self._rng.permutation(len(SEVERITIES))]
            others.remove(severity)
            for one in (*(severity,) * self._OWN, *others):
                yield family, one


def _is_known(sample: Sample, seed: Sample, chosen: Mapping[int, Surveyed]) -> bool:
    """Whether an input is the seed itself, or one that was chosen before."""
    return any(
        np.array_equal(sample, other) for other in (seed, *(one.sample for one in chosen.values()))
    )
