"""The bench of everyday faults: its folder, what is triaged, and what is kept of each pair.

A pair that was triaged is a line of ``results.jsonl``, so that an interrupted bench goes on.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pydantic import Field, ValidationError

from edgeflare._internal.files import check_regular, read_regular
from edgeflare._internal.flags import problems_of
from edgeflare._internal.records import JsonRecord, as_json
from edgeflare.campaign.batch import check_free, description, opened_folder, write_description
from edgeflare.campaign.settings.models import Section
from edgeflare.errors import UsageError
from edgeflare.store import CampaignLock
from edgeflare.store.database import translate_errors
from edgeflare.triage.cause import Cause, Triage
from edgeflare.words.triage import sentence
from edgeflare_bench.everyday.catalogue import Draw, Faulty, draws, planted
from edgeflare_bench.everyday.evaluation import triaged
from edgeflare_bench.everyday.next_step import carried_out
from edgeflare_bench.everyday.originals import PLANS, open_everyday
from edgeflare_bench.everyday.planted import TFLITE
from edgeflare_bench.everyday.records import EverydayOriginal, EverydayPair, is_reserved
from edgeflare_bench.suite import SuiteAbout
from edgeflare_bench.words.everyday import outcome

NAME = "everyday"
EVERYDAY_ABOUT = SuiteAbout(NAME, "Everyday faults of deployment, named by the first answer", True)
_SETTINGS, _RESULTS, _FILES = "everyday.json", "results.jsonl", "files"
_LEAST_NAME = 4
"""A shorter name may stand in others by chance."""


class EverydaySuite(Section):
    """What of the suite is triaged. The folder `data` has what `healthy.build_healthy` made.

    `reserved`: the reserved half of the pairs, or the other. `workers`: pairs at a time.
    """

    data: tuple[Path, ...] = Field(min_length=1, max_length=1)
    originals: tuple[str, ...] = tuple(PLANS)
    kinds: tuple[str, ...] = ()
    reserved: bool = False
    workers: int = Field(default=1, ge=1)

    def draws(self) -> list[Draw]:
        """Return the faults that are planted."""
        return [
            one
            for one in draws(self.originals)
            if is_reserved(one.name) == self.reserved
            and (not self.kinds or one.kind.name in self.kinds)
        ]


@dataclass(frozen=True)
class Told(JsonRecord):
    """What was told of one pair.

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
        told = self.remarks if self.where == "remarks" else self.causes[:1]
        is_clean = self.where == "causes" or not self.causes
        return is_clean and any(one["kind"] in self.expected for one in told)

    @property
    def is_right(self) -> bool:
        """Whether kind, side and place are right."""
        first = self.first
        if not self.is_kind_right or first is None or not self.fault:
            return self.is_kind_right
        if first["kind"] == "preprocessing" and self.sides and first["side"] not in self.sides:
            return False
        return not self.names or any(
            told.startswith(name) or (len(told) >= _LEAST_NAME and name.startswith(told))
            for told in first["names"]
            for name in self.names
        )


class EverydayBench(NamedTuple):
    """A bench's folder: its suite, and the pairs triaged so far."""

    folder: Path
    suite: EverydaySuite
    told: tuple[Told, ...]

    @property
    def file(self) -> Path:
        """Where the triaged pairs are kept, one a line."""
        return self.folder / _RESULTS


Watch: TypeAlias = Callable[[Told], None]
"""Is told of each pair as soon as it is triaged."""


def is_everyday_bench(folder: Path) -> bool:
    """Whether a folder is a bench of this suite."""
    return (Path(folder) / _SETTINGS).is_file()


def everyday_suite(**values: Any) -> EverydaySuite:
    """Return a suite of these settings; None leaves one out. Raises UsageError where one is wrong."""
    if not values.get("data"):
        raise UsageError(
            f"the suite {NAME} needs the folder that its originals are kept in; name it with --data FOLDER"
        )
    try:
        return EverydaySuite.model_validate(
            {k: one for k, one in values.items() if one is not None}
        )
    except ValidationError as error:
        raise UsageError(problems_of(error, f"suite {NAME}")) from error


def open_everyday_bench(folder: Path) -> EverydayBench:
    """Read a bench of this suite. Raises StoreError where it is damaged."""
    folder = Path(folder).absolute()
    with description(folder / _SETTINGS, "begin a new bench") as values:
        suite = EverydaySuite.model_validate(values["suite"])
        path = folder / _RESULTS
        with translate_errors(folder):
            text = read_regular(path, inside=folder).decode() if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be torn
        return EverydayBench(folder, suite, tuple(Told.from_json(json.loads(one)) for one in lines))


def run_everyday(suite: EverydaySuite, folder: Path, watch: Watch) -> EverydayBench:
    """Triage every pair of a suite in a new folder; raises UsageError where it is taken."""
    folder = Path(folder).absolute()
    if is_everyday_bench(folder):
        raise UsageError(
            f"there is a bench in {folder} already; go on with `edgeflare bench resume`, or choose "
            "another folder"
        )
    check_free(folder, _SETTINGS, "a bench")
    with opened_folder(folder, _SETTINGS, "a bench"):
        write_description(folder / _SETTINGS, {"suite": suite.model_dump(mode="json")})
        return _run(open_everyday_bench(folder), watch)


def resume_everyday(folder: Path, watch: Watch) -> EverydayBench:
    """Triage the pairs that are left. Raises UsageError, StoreError."""
    with CampaignLock(open_everyday_bench(folder).folder):
        return _run(open_everyday_bench(folder), watch)


def _run(bench: EverydayBench, watch: Watch) -> EverydayBench:
    with translate_errors(bench.folder):
        if bench.file.exists():
            check_regular(bench.file, inside=bench.folder)
        with bench.file.open("ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # of a line that a killed process left
    done = {one.name for one in bench.told}
    with ThreadPoolExecutor(bench.suite.workers) as workers:
        for told in workers.map(lambda job: job(), _jobs(bench, done)):
            with translate_errors(bench.folder), bench.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told.to_json()) + "\n")
            watch(told)
    return open_everyday_bench(bench.folder)


def _healthy_pairs(folder: Path) -> list[EverydayPair]:
    name = f"{__package__}.healthy"
    found: list[EverydayPair] = import_module(name).healthy_pairs(folder) if find_spec(name) else []
    return found


def _jobs(bench: EverydayBench, done: set[str]) -> Iterator[Callable[[], Told]]:
    """Yield the faults that are left, original by original, then the healthy pairs."""
    suite, files = bench.suite, bench.folder / _FILES
    files.mkdir(exist_ok=True)
    folder = suite.data[0]
    healthy = [one for one in _healthy_pairs(folder) if one.of in suite.originals]
    tflite = {one.name: one for one in healthy}
    for name in suite.originals:
        original = open_everyday(name, folder / "originals")
        chains = {
            chain: tflite[f"{name}/{of}"]
            for chain, of in TFLITE.items()
            if f"{name}/{of}" in tflite
        }
        for draw in suite.draws():
            if draw.original == name and draw.name not in done:
                yield partial(_of_draw, draw, original, files, chains)
    if suite.kinds:
        return
    asked = set()
    for pair in healthy:
        if is_reserved(pair.name) != suite.reserved:
            continue
        if pair.name not in done:
            yield partial(told_of, pair, files)
        chain = pair.of, pair.tool_chain
        device = replace(pair, name=f"{pair.name}/device", device={"kernels": "other"})
        if chain not in asked and device.name not in done:
            yield partial(told_of, device, files)
        asked.add(chain)


def _of_draw(
    draw: Draw, original: EverydayOriginal, files: Path, tflite: Mapping[str, EverydayPair]
) -> Told:
    found = planted(draw, original, files, tflite)
    if not isinstance(found, Faulty):
        return Told(original.name, draw.name, "", draw.kind.name, without=found)
    return told_of(found.pair, files, found)


def told_of(pair: EverydayPair, files: Path, fault: Faulty | None = None) -> Told:
    """Triage a pair, and carry out the next step of a fault; return what was told of it."""
    begun = time.monotonic()
    found: Triage | None = None
    failed = ""
    try:
        found = triaged(pair)
    except Exception as error:  # noqa: BLE001 - one pair costs one row
        failed = f"{type(error).__name__}: {error}"
    about: dict[str, Any] = {}
    if fault is not None:
        kind = fault.kind
        about = {
            "fault": kind.name,
            "report": kind.report,
            "where": kind.where,
            "sides": fault.sides,
        }
    if found is not None:
        advised = [*found.causes[:1]]
        if fault is not None and fault.kind.where == "remarks":
            advised += [one for one in found.remarks if one.kind in fault.kind.expected]
        if fault is not None and advised:
            about["mended"] = carried_out(fault, advised[0], files)
        about |= {
            "agreement": found.agreement,
            "causes": _plain(found.causes),
            "remarks": _plain(found.remarks),
            "not_tried": dict(found.failed),
            "calls": found.calls,
        }
    return Told(
        pair.of,
        pair.name,
        pair.tool_chain,
        expected=pair.expected,
        names=pair.names,
        is_device=bool(pair.device),
        failed=failed,
        seconds=time.monotonic() - begun,
        **about,
    )


def _plain(causes: Sequence[Cause]) -> tuple[Mapping[str, Any], ...]:
    return tuple({**as_json(one), "sentence": sentence(one)} for one in causes)
