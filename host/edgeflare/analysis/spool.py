"""JSON objects put aside in a temporary file, to be taken out again in another order."""

import json
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any


class Spool(AbstractContextManager["Spool"]):
    """Keeps a JSON object for each key; in memory are only the keys.

    The file has no name, lies on the disk of `folder` and goes when it is closed.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `__exit__` closes it
        self._places: dict[tuple[str, ...], tuple[int, int]] = {}
        self._end = 0

    def put(self, key: tuple[str, ...], value: dict[str, Any]) -> None:
        """Keep an object."""
        data = json.dumps(value, allow_nan=False).encode()
        self._file.seek(self._end)
        self._file.write(data)
        self._places[key] = (self._end, len(data))
        self._end += len(data)

    def get(self, key: tuple[str, ...]) -> dict[str, Any] | None:
        """Return the object of a key, None where there is none."""
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place[0])
        value: dict[str, Any] = json.loads(self._file.read(place[1]))
        return value

    def __len__(self) -> int:
        return len(self._places)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
