"""The bench of everyday faults: what is triaged, and what is kept of each pair."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from edgeflare._internal.records import JsonRecord, as_json
from edgeflare.campaign.settings.models import Section
from edgeflare.triage.cause import Cause, Triage
from edgeflare.words.triage import sentence
from edgeflare_bench.everyday.catalogue import KINDS, Draw, Faulty, draws, planted
from edgeflare_bench.everyday.evaluation import triaged
from edgeflare_bench.everyday.healthy import healthy_pairs, without_wrong_conversions
from edgeflare_bench.everyday.next_step import carried_out
from edgeflare_bench.everyday.originals import PLANS, open_everyday
from edgeflare_bench.everyday.planted import TFLITE
from edgeflare_bench.everyday.records import EverydayPair, is_reserved
from edgeflare_bench.planted_bench import PlantedBench, suite_of
from edgeflare_bench.suite import SuiteAbout, check_folders
from edgeflare_bench.words.everyday import WRONG_BEFORE, outcome

NAME = "everyday"
EVERYDAY_ABOUT = SuiteAbout(NAME, "Everyday faults of deployment, named by the first answer", True)
_LEAST_NAME = 4
"""A shorter name may stand in others by chance."""


class EverydaySuite(Section):
    """What of the suite is triaged. The folder `data` has what `healthy.build_healthy` made.

    `reserved`: the reserved half of the pairs, or the other. `workers`: pairs at a time. Of only some
    `kinds` of faults no healthy pairs are triaged.
    """

    data: tuple[Path, ...] = Field(min_length=1, max_length=1)
    originals: tuple[str, ...] = tuple(PLANS)
    kinds: tuple[str, ...] = ()
    reserved: bool = False
    workers: int = Field(default=1, ge=1)

    @field_validator("originals", "kinds")
    @classmethod
    def _are_known(cls, names: tuple[str, ...], info: Any) -> tuple[str, ...]:
        is_original = info.field_name == "originals"
        choices = tuple(PLANS) if is_original else tuple(kind.name for kind in KINDS)
        for name in names:
            if name not in choices:
                raise ValueError(f"{name!r} is none of {', '.join(choices)}")
        return names

    def draws(self) -> list[Draw]:
        """Return the faults that are planted."""
        return [
            draw
            for draw in draws(self.originals)
            if is_reserved(draw.name) == self.reserved
            and (not self.kinds or draw.kind.name in self.kinds)
        ]


@dataclass(frozen=True)
class FirstAnswer(JsonRecord):
    """What a triage says of one pair.

    `fault`: the kind of fault; "": a healthy pair. `expected`, `names`, `sides`, `where`: what the answer
    must be, see `FaultKind` and `Planted`. `without`: why the fault doesn't count, since it can't be seen.
    `failed`: why the pair could not be triaged. `mended`: what came of the next step, see `next_step`.
    """

    original: str
    name: str
    tool_chain: str
    fault: str = ""
    report: str = ""
    expected: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    where: str = "causes"
    is_device: bool = False
    without: str = ""
    failed: str = ""
    agreement: float | None = None
    causes: tuple[Mapping[str, Any], ...] = ()
    remarks: tuple[Mapping[str, Any], ...] = ()
    not_tried: Mapping[str, str] | None = None
    calls: int = 0
    seconds: float = 0.0
    mended: str = ""

    @property
    def first(self) -> Mapping[str, Any] | None:
        """The first cause."""
        return self.causes[0] if self.causes else None

    @property
    def words(self) -> str:
        """What came out, in a few words."""
        return outcome(self)

    @property
    def is_kind_right(self) -> bool:
        """Whether the first cause, or a remark where that is what is expected, has the right kind."""
        if self.failed:
            return False
        if not self.fault:
            return not self.causes
        if self.where == "remarks":
            return not self.causes and any(cause["kind"] in self.expected for cause in self.remarks)
        return self.first is not None and self.first["kind"] in self.expected

    @property
    def is_right(self) -> bool:
        """Whether kind, side and place are right."""
        first = self.first
        if not self.is_kind_right or first is None:
            return self.is_kind_right
        if first["kind"] == "preprocessing" and self.sides and first["side"] not in self.sides:
            return False
        return not self.names or any(
            _is_of(named, name) or (len(named) >= _LEAST_NAME and _is_of(name, named))
            for named in first["names"]
            for name in self.names
        )


def _is_of(longer: str, name: str) -> bool:
    """Whether a name is another one, or made from it: ``Conv_12`` is not of ``Conv_1``."""
    return longer.startswith(name) and not longer[len(name) :][:1].isalnum()


class EverydayBench(PlantedBench[EverydaySuite, FirstAnswer]):
    """A bench's folder: its suite, and the pairs triaged so far."""

    settings = "everyday.json"
    suite_class = EverydaySuite
    result_class = FirstAnswer

    def _results(self) -> Iterator[FirstAnswer]:
        with ThreadPoolExecutor(self.suite.workers) as workers:
            yield from workers.map(lambda job: job(), self._jobs())

    def _jobs(self) -> Iterator[Callable[[], FirstAnswer]]:
        """Yield the faults that are left, original by original, then the healthy pairs."""
        suite, files, data = self.suite, self.folder / "files", self.suite.data[0]
        files.mkdir(exist_ok=True)
        done = {answer.name for answer in self.results}
        healthy = {pair.name: pair for pair in healthy_pairs(data, suite.originals)}
        right = without_wrong_conversions([*healthy.values()])
        wrong = healthy.keys() - {pair.name for pair in right}
        for name in suite.originals:
            original = open_everyday(name, data / "originals")
            chains = {
                chain: healthy[f"{name}/{of}"]
                for chain, of in TFLITE.items()
                if f"{name}/{of}" in healthy
            }
            for draw in suite.draws():
                if draw.original == name and draw.name not in done:
                    plant = partial(planted, draw, original, files, chains)
                    yield partial(_of_draw, draw, plant, files, wrong)
        if suite.kinds:
            return
        on_device = set()
        for pair in right:
            if is_reserved(pair.name) != suite.reserved:
                continue
            if pair.name not in done:
                yield partial(answer_of, pair, files)
            chain = pair.of, pair.tool_chain
            device = replace(pair, name=f"{pair.name}/device", device={"kernels": "other"})
            if chain not in on_device and device.name not in done:
                yield partial(answer_of, device, files)
            on_device.add(chain)


def everyday_suite(**values: Any) -> EverydaySuite:
    """Return a suite of these settings; None leaves one out. Raises UsageError where one is wrong."""
    suite = suite_of(EverydaySuite, NAME, "the folder that its originals are kept in", **values)
    check_folders(suite.data)
    return suite


def _of_draw(
    draw: Draw, plant: Callable[[], Faulty | str], files: Path, wrong: Collection[str]
) -> FirstAnswer:
    """Plant and triage a fault; one in a file that is wrong already (`wrong`: names of pairs) doesn't count."""
    fault = plant()
    if (
        isinstance(fault, Faulty)
        and f"{draw.original}/{TFLITE.get(fault.sound.tool_chain)}" in wrong
    ):
        fault = WRONG_BEFORE
    if isinstance(fault, str):
        return FirstAnswer(draw.original, draw.name, "", draw.kind.name, without=fault)
    return answer_of(fault.pair, files, fault)


def answer_of(pair: EverydayPair, files: Path, fault: Faulty | None = None) -> FirstAnswer:
    """Triage a pair, and carry out the next step of a fault; return what is said of it."""
    begun = time.monotonic()
    about: dict[str, Any] = {}
    try:
        about = _triaged(triaged(pair), fault, files)
    except Exception as error:  # noqa: BLE001 - one pair costs one row
        about = {"failed": f"{type(error).__name__}: {error}"}
    if fault is not None:
        kind = fault.kind
        about |= {"fault": kind.name, "report": kind.report, "where": kind.where}
        about |= {"sides": fault.sides}
    return FirstAnswer(
        *(pair.of, pair.name, pair.tool_chain),
        expected=pair.expected,
        names=pair.names,
        is_device=bool(pair.device),
        seconds=time.monotonic() - begun,
        **about,
    )


def _triaged(triage: Triage, fault: Faulty | None, files: Path) -> dict[str, Any]:
    about = {
        "agreement": triage.agreement,
        "causes": _plain(triage.causes),
        "remarks": _plain(triage.remarks),
        "not_tried": dict(triage.failed),
        "calls": triage.calls,
    }
    if fault is None:
        return about
    advised = [*triage.causes[:1]]
    if fault.kind.where == "remarks":
        advised += [remark for remark in triage.remarks if remark.kind in fault.kind.expected]
    return about | {"mended": carried_out(fault, advised[0], files) if advised else ""}


def _plain(causes: Sequence[Cause]) -> tuple[Mapping[str, Any], ...]:
    return tuple({**as_json(cause), "sentence": sentence(cause)} for cause in causes)
