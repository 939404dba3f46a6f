"""The fault suite's bench: its folder, what is evaluated, and what is kept of each model.

A model that was evaluated is a line of ``results.jsonl``, so that an interrupted bench goes on.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field, ValidationError, field_validator

from edgeflare._internal.files import check_regular, read_regular
from edgeflare._internal.flags import problems_of
from edgeflare._internal.records import JsonRecord
from edgeflare.campaign.batch import check_free, description, opened_folder, write_description
from edgeflare.campaign.settings.models import Section
from edgeflare.errors import UsageError
from edgeflare.store import CampaignLock
from edgeflare.store.database import translate_errors
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
from edgeflare_bench.suite import SuiteAbout, check_folders
from edgeflare_bench.words.faults import outcome

NAME = "faults"
FAULTS_ABOUT = SuiteAbout(
    NAME, "Faults planted in float models, told apart from healthy ones", True
)
_SETTINGS, _RESULTS = "faults.json", "results.jsonl"


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


Watch: TypeAlias = Callable[[Evaluated], None]
"""Is told of each model as soon as it is evaluated."""


class FaultBench(NamedTuple):
    """A bench's folder: its suite, and the models evaluated so far."""

    folder: Path
    suite: FaultSuite
    evaluated: tuple[Evaluated, ...]

    @property
    def file(self) -> Path:
        """Where the evaluated models are kept, one a line."""
        return self.folder / _RESULTS


def is_fault_bench(folder: Path) -> bool:
    """Whether a folder is one of the fault suite, and not of a suite of searches."""
    return (Path(folder) / _SETTINGS).is_file()


def open_fault_bench(folder: Path) -> FaultBench:
    """Read a bench of the fault suite. Raises StoreError where it is damaged."""
    folder = Path(folder).absolute()
    with description(folder / _SETTINGS, "begin a new bench") as values:
        suite = FaultSuite.model_validate(values["suite"])
        path = folder / _RESULTS
        with translate_errors(folder):
            text = read_regular(path, inside=folder).decode() if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be torn
        return FaultBench(
            folder, suite, tuple(Evaluated.from_json(json.loads(one)) for one in lines)
        )


def fault_suite(**values: Any) -> FaultSuite:
    """Return a suite of these settings; None leaves one out. Raises UsageError where one is wrong."""
    if not values.get("data"):
        raise UsageError(
            f"the suite {NAME} needs the folder of its models and seeds; name it with --data FOLDER"
        )
    try:
        return FaultSuite.model_validate({k: one for k, one in values.items() if one is not None})
    except ValidationError as error:
        raise UsageError(problems_of(error, f"suite {NAME}")) from error


def run_faults(suite: FaultSuite, folder: Path, watch: Watch) -> FaultBench:
    """Evaluate every model of a suite in a new folder; raises UsageError where it is taken."""
    folder = Path(folder).absolute()
    if is_fault_bench(folder):
        raise UsageError(
            f"there is a bench in {folder} already; go on with `edgeflare bench resume`, or choose "
            "another folder"
        )
    check_free(folder, _SETTINGS, "a bench")
    check_folders(suite.data)
    for name in suite.originals:
        _open(suite, name)
    with opened_folder(folder, _SETTINGS, "a bench"):
        write_description(folder / _SETTINGS, {"suite": suite.model_dump(mode="json")})
        return _run(open_fault_bench(folder), watch)


def resume_faults(folder: Path, watch: Watch) -> FaultBench:
    """Evaluate the models that are left. Raises UsageError, StoreError."""
    with CampaignLock(open_fault_bench(folder).folder):
        return _run(open_fault_bench(folder), watch)


def _run(bench: FaultBench, watch: Watch) -> FaultBench:
    with translate_errors(bench.folder):
        if bench.file.exists():
            check_regular(bench.file, inside=bench.folder)
        with bench.file.open("ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # of a line that a killed process left
    for name in bench.suite.originals:
        original = _open(bench.suite, name)
        evaluation = Evaluation(original, bench.folder / "references", bench.suite.seeds)
        done = {one.name: one.size for one in bench.evaluated if one.original == name}
        for found in _evaluated(evaluation, bench.suite, done):
            with translate_errors(bench.folder), bench.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found.to_json()) + "\n")
            watch(found)
    return open_fault_bench(bench.folder)


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
