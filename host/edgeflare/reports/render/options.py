"""What a format is, and what it may be told beside the report."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from edgeflare._internal.files import write_whole
from edgeflare.reports.report import Report

_PICTURE_NAME = re.compile(r"[0-9]{5}-.*-panel\.png")


class PictureFolder:
    """The PNG files of a Markdown file: a folder beside it, with its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, bytes] = {}

    @classmethod
    def of(cls, report: Path) -> "PictureFolder":
        """Return that of a report's file: ``report-pictures`` of ``report.md``."""
        return cls(report.with_name(f"{report.stem}-pictures"))

    def add(self, stem: str, data: bytes) -> str:
        """Add a picture; return its relative address as part of a URL. `write` writes it."""
        name = f"{stem}-panel.png"
        self._files[name] = data
        return quote(f"{self._folder.name}/{name}", errors="replace")

    def write(self) -> None:
        """Write the pictures, and remove those of an earlier report; other files stay.

        Raises OSError.
        """
        if self._files:
            self._folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            write_whole(self._folder / name, data)
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if _PICTURE_NAME.fullmatch(path.name) and path.name not in self._files:
                    path.unlink()

    def __len__(self) -> int:
        return len(self._files)


@dataclass(frozen=True)
class RenderOptions:
    """What a format may be told: the folder for `pictures`, without which there are none."""

    pictures: PictureFolder | None = None


Renderer: TypeAlias = Callable[[Report, RenderOptions], Iterable[str]]
"""A format: it returns the report's text, piece by piece."""
