"""The folder of a bench of planted faults: its suite, and what came of each model or pair so far.

A result is a line of ``results.jsonl``, so that an interrupted bench goes on.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ValidationError
from typing_extensions import Self

from edgeflare._internal.files import check_regular, read_regular
from edgeflare._internal.flags import problems_of
from edgeflare._internal.records import JsonRecord
from edgeflare.campaign.batch import check_free, description, opened_folder, write_description
from edgeflare.campaign.settings.models import Section
from edgeflare.errors import UsageError
from edgeflare.store import CampaignLock
from edgeflare.store.database import translate_errors

S = TypeVar("S", bound=Section)
R = TypeVar("R", bound=JsonRecord)
Watch = Callable[[R], None]
"""Is told of each result as soon as it is there."""


@dataclass(frozen=True)
class PlantedBench(Generic[S, R]):
    """A bench's folder: its suite, and the results so far.

    A suite's own class says where the settings are (`settings`), and of what classes suite and results
    are. `_results` yields those that are left.
    """

    folder: Path
    suite: S
    results: tuple[R, ...]
    settings: ClassVar[str]
    suite_class: ClassVar[type[Section]]
    result_class: ClassVar[type[JsonRecord]]

    @property
    def file(self) -> Path:
        """Where the results are kept, one a line."""
        return self.folder / "results.jsonl"

    def _results(self) -> Iterator[R]:
        raise NotImplementedError

    @classmethod
    def is_in(cls, folder: Path) -> bool:
        """Whether a folder is a bench of this suite."""
        return (Path(folder) / cls.settings).is_file()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read a bench of this suite. Raises StoreError where it is damaged."""
        folder = Path(folder).absolute()
        with description(folder / cls.settings, "begin a new bench") as values:
            suite: Any = cls.suite_class.model_validate(values["suite"])
            bench = cls(folder, suite, ())
            with translate_errors(folder):
                is_begun = bench.file.exists()
                text = read_regular(bench.file, inside=folder).decode() if is_begun else ""
            lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be torn
            results: Any = tuple(cls.result_class.from_json(json.loads(line)) for line in lines)
            return cls(folder, suite, results)

    @classmethod
    def run(cls, suite: S, folder: Path, watch: Watch[R]) -> Self:
        """Begin a bench in a new folder, and do all of it; raises UsageError where that is taken."""
        folder = Path(folder).absolute()
        if cls.is_in(folder):
            raise UsageError(
                f"there is a bench in {folder} already; go on with `edgeflare bench resume`, or "
                "choose another folder"
            )
        check_free(folder, cls.settings, "a bench")
        with opened_folder(folder, cls.settings, "a bench"):
            write_description(folder / cls.settings, {"suite": suite.model_dump(mode="json")})
            return cls.open(folder)._finished(watch)

    @classmethod
    def resume(cls, folder: Path, watch: Watch[R]) -> Self:
        """Do what is left. Raises UsageError, StoreError."""
        with CampaignLock(cls.open(folder).folder):
            return cls.open(folder)._finished(watch)

    def _finished(self, watch: Watch[R]) -> Self:
        with translate_errors(self.folder):
            if self.file.exists():
                check_regular(self.file, inside=self.folder)
            with self.file.open("ab+") as file:
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)  # of a line that a killed process left
        for result in self._results():
            with translate_errors(self.folder), self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(result.to_json()) + "\n")
            watch(result)
        return self.open(self.folder)


SuiteT = TypeVar("SuiteT", bound=Section)


def suite_of(kind: type[SuiteT], name: str, needs: str, **values: Any) -> SuiteT:
    """Return a suite of these settings; None leaves one out. Raises UsageError where one is wrong."""
    if not values.get("data"):
        raise UsageError(f"the suite {name} needs {needs}; name it with --data FOLDER")
    stated = {key: value for key, value in values.items() if value is not None}
    try:
        return kind.model_validate(stated)
    except ValidationError as error:
        raise UsageError(problems_of(error, f"suite {name}")) from error
