"""The fault suite's bench: what is evaluated, and what is kept of each model."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from edgeflare._internal.records import JsonRecord
from edgeflare.campaign.settings.models import Section
from edgeflare.errors import UsageError
from edgeflare_bench.faults.catalogue import Draw, Size, draws, faulty_model, is_reserved
from edgeflare_bench.faults.evaluation import (
    FEW_QUERIES,
    METHODS,
    QUERIES,
    SURVEY_QUERIES,
    Evaluation,
    Response,
    SearchResult,
)
from edgeflare_bench.faults.graph_edit import Inapplicable
from edgeflare_bench.faults.healthy import Healthy, healthy_models
from edgeflare_bench.faults.originals import ORIGINALS, Original, open_original
from edgeflare_bench.faults.witness import find_witness
from edgeflare_bench.planted_bench import PlantedBench, Watch, suite_of
from edgeflare_bench.suite import SuiteAbout, check_folders
from edgeflare_bench.words.faults import outcome

NAME = "faults"
FAULTS_ABOUT = SuiteAbout(
    NAME, "Faults planted in float models, told apart from healthy ones", True
)


class FaultSuite(Section):
    """What of the fault suite is evaluated, and where its models and inputs are (`data`).

    `draws`: of each kind and size, 1 to 3, the reserved ones or the others. `seeds`: number of
    natural inputs of each original. `methods`: strategies that are compared with the survey.
    `gradients`: whether witnesses are also searched by gradients, which needs torch.
    """

    data: tuple[Path, ...] = Field(min_length=1)
    originals: tuple[str, ...] = tuple(ORIGINALS)
    draws: int = Field(default=3, ge=1, le=3)
    seeds: int = Field(default=50, ge=10)
    methods: tuple[str, ...] = tuple(METHODS)
    reserved: bool = False
    gradients: bool = Field(default_factory=lambda: find_spec("torch") is not None)

    @field_validator("originals", "methods", mode="before")
    @classmethod
    def _all_where_none_is_named(cls, names: Any, info: Any) -> Any:
        known = tuple(ORIGINALS if info.field_name == "originals" else METHODS)
        for name in names:
            if name not in known:
                raise ValueError(f"{name!r} is none of {', '.join(known)}")
        return tuple(names) or known

    def faults(self) -> Iterator[Draw]:
        """Yield the draws that are evaluated, the first of each kind and size first."""
        chosen = (
            draw
            for draw in draws()
            if is_reserved(draw) == self.reserved and draw.index // 2 < self.draws
        )
        return iter(sorted(chosen, key=lambda one: one.index))


@dataclass(frozen=True)
class Evaluated(JsonRecord):
    """One model of the suite.

    A fault (`size` is given) has a `witness` and its `strength`, or a sentence `without`: why it
    doesn't count. `surveys`: what a survey of so many queries a seed sees. `searches`: by method;
    "survey" is the survey with the pursuit. `by_original`: of a healthy model made from another
    float model than the original, the verdict with references made from the original.
    """

    original: str
    name: str
    kind: str
    size: Size | Literal[""] = ""
    strength: float | None = None
    witness: str = ""
    without: str = ""
    surveys: Mapping[int, Response] = field(default_factory=dict)
    searches: Mapping[str, SearchResult] = field(default_factory=dict)
    by_original: Response | None = None

    @property
    def words(self) -> str:
        """What came out, in a few words."""
        return outcome(self, QUERIES)


class FaultBench(PlantedBench[FaultSuite, Evaluated]):
    """A bench's folder: its suite, and the models evaluated so far."""

    settings = "faults.json"
    suite_class = FaultSuite
    result_class = Evaluated

    @property
    def evaluated(self) -> tuple[Evaluated, ...]:
        """The models evaluated so far."""
        return self.results

    def _results(self) -> Iterator[Evaluated]:
        for name in self.suite.originals:
            original = _open(self.suite, name)
            evaluation = Evaluation(original, self.folder / "references", self.suite.seeds)
            done = {one.name: one.size for one in self.results if one.original == name}
            yield from _evaluated(evaluation, self.suite, done)


def is_fault_bench(folder: Path) -> bool:
    """Whether a folder is one of the fault suite, and not of a suite of searches."""
    return FaultBench.is_in(folder)


def open_fault_bench(folder: Path) -> FaultBench:
    """Read a bench of the fault suite. Raises StoreError where it is damaged."""
    return FaultBench.open(folder)


def fault_suite(**values: Any) -> FaultSuite:
    """Return a suite of these settings; None leaves one out. Raises UsageError where one is wrong."""
    return suite_of(FaultSuite, NAME, "the folder of its models and seeds", **values)


def run_faults(suite: FaultSuite, folder: Path, watch: Watch[Evaluated]) -> FaultBench:
    """Evaluate every model of a suite in a new folder; raises UsageError where it is taken."""
    check_folders(suite.data)
    for name in suite.originals:
        _open(suite, name)
    return FaultBench.run(suite, folder, watch)


def resume_faults(folder: Path, watch: Watch[Evaluated]) -> FaultBench:
    """Evaluate the models that are left. Raises UsageError, StoreError."""
    return FaultBench.resume(folder, watch)


_COUNTS = (FEW_QUERIES, SURVEY_QUERIES, QUERIES)


def _evaluated(
    evaluation: Evaluation, suite: FaultSuite, done: Mapping[str, str]
) -> Iterator[Evaluated]:
    """Evaluate an original's models one by one, but for those that are done, by name and size."""
    # the healthy ones are made one after the other, and come first: a fault tells that all are done
    for healthy in () if any(done.values()) else healthy_models(evaluation.original):
        if healthy.name not in done:
            yield _compressed(evaluation, healthy)
    for draw in suite.faults():
        name = f"{draw.kind}, {draw.size}, {draw.index}"
        if name not in done:
            yield _fault(evaluation, draw, name, suite)


def _compressed(evaluation: Evaluation, one: Healthy) -> Evaluated:
    surveys = evaluation.respond(one.model, _COUNTS, one.base)
    by_original = evaluation.respond(one.model, [QUERIES])[QUERIES] if one.base else None
    name = evaluation.original.name
    return Evaluated(name, one.name, one.kind, surveys=surveys, by_original=by_original)


def _fault(evaluation: Evaluation, draw: Draw, name: str, suite: FaultSuite) -> Evaluated:
    """Plant a fault of the least strength with a witness, and evaluate the model."""
    original = evaluation.original
    found = Evaluated(original.name, name, draw.kind, draw.size)
    for parameter in draw.parameters:
        try:
            model = faulty_model(original, draw.kind, parameter)
        except Inapplicable as problem:
            return replace(found, without=f"not applicable: {problem}")
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        witness = find_witness(original, model, rng, gradients=suite.gradients)
        if witness is None:
            continue
        pursued = evaluation.pursue(model)
        return replace(
            found,
            strength=parameter.strength,
            witness=witness.found_by,
            surveys=evaluation.respond(model, _COUNTS),
            searches={
                "survey": pursued,
                **{method: evaluation.search(model, method) for method in suite.methods},
            },
        )
    return replace(found, without="no witness")


def _open(suite: FaultSuite, name: str) -> Original:
    """Open an original below the first folder that has its files."""
    for folder in suite.data[:-1]:
        try:
            return open_original(name, folder)
        except UsageError:
            continue
    return open_original(name, suite.data[-1])
