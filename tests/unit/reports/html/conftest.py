"""A page as a parser sees it, and small campaigns made with the store directly."""

import json
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_answers import sure_of
from stores import ended, store_of

from edgeflare.metrics import l2
from edgeflare.store import SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Sample, Status

VOID = {"meta", "link", "input", "img", "br", "hr"}


class Page(HTMLParser):
    """A page's elements as (tag, attributes), its text without scripts and styles, and its embedded data.

    Raises AssertionError for an element that is not closed, or closed by another.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.html = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(self.html)
        self.close()
        assert self._open == []
        self.text = " ".join(self.text.split())

    @property
    def data(self) -> dict[str, Any]:
        """The embedded data."""
        data: dict[str, Any] = json.loads(self.scripts[-2])
        return data

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The findings in the data, by the names of their values."""
        findings = self.data["findings"]
        rows = zip(*findings.values(), strict=True)
        return [dict(zip(findings, row, strict=True)) for row in rows]

    def having(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of this tag that have these attributes."""
        return [
            found
            for name, found in self.elements
            if name == tag and attributes.items() <= found.items()
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag == "style":
            self.styles.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = self._open[-1][0] if self._open else ""
        if inside == "script":
            self.scripts[-1] += data
        elif inside == "style":
            self.styles[-1] += data
        else:
            self.text += f" {data}"


class Campaign:
    """A campaign in the making: three classes, one device, image by image."""

    def __init__(self, folder: Path) -> None:
        self.config: dict[str, Any] = {
            "search": {"strategy": "boundary", "seed": 7, "options": {"effort": 64}},
            "seeds": {"path": "seeds"},
            "limits": {},
        }
        self.store = store_of(
            folder,
            config=self.config,
            models=(
                {"name": "big.onnx", "sha256": "ab" * 32},
                {"name": "small.tflite", "sha256": "cd" * 32, "runtime": {"name": "tflite"}},
            ),
            devices={"board": {"cpu": "a core"}},
        )
        self._count = 0

    def add(
        self,
        status: Status = Status.FOUND,
        pair: tuple[int, int] = (0, 1),
        *,
        name: str = "",
        margin: float = 0.25,
        side: int = 12,
        channels: int = 1,
        device_name: str = "board",
        detail: str = "",
    ) -> tuple[Sample, Sample]:
        """Add a seed and how its search ended; return its image and the trigger's."""
        self._count += 1
        generator = np.random.default_rng(self._count)
        image = generator.integers(0, 200, (side, side, channels), np.uint8)
        change = generator.integers(0, 40, image.shape, np.uint8)
        name = name or f"seed-{self._count}.png"
        scores = tuple(sure_of(label, 0.5 + margin / 2, classes=3) for label in pair)
        self.store.add_seeds([SeedInput(name, image, 2)])
        self.store.add_seed_answers([SeedAnswer(name, *scores, Decision.AGREE)])
        shown = image if status is Status.SEED_DEVIATES else image + change
        values: dict[str, Any] = {}
        if status in (Status.FOUND, Status.SEED_DEVIATES, Status.UNSTABLE):
            far = {"l2": l2(image, shown), "linf": int(change.max())}
            values = {"trigger": shown, "answers": scores, "confirmed": 2, **far}
            values |= {"original_margin": margin, "deployed_margin": margin + 0.1}
            values["front"] = [FrontPoint(3, margin, *far.values())]
        asked = 0 if status is Status.SEED_DEVIATES else 3
        values |= {"seed_queries": 1, "search_queries": asked, "confirmation_queries": 2}
        values |= {"chain_seed": self._count, "seconds": 0.5, "detail": detail}
        ended(self.store, name, status, device="board", device_name=device_name, **values)
        return image, shown

    def finish(self) -> Store:
        """Say that it is finished."""
        self.store.state.finished = True
        return self.store


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Campaign]:
    """An empty campaign, not finished."""
    made = Campaign(tmp_path / "campaign")
    yield made
    made.store.close()


@pytest.fixture
def read() -> Callable[[Path], Page]:
    """Reads a page."""
    return Page
