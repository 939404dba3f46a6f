"""The cells of a suite: one pair, one strategy, one repeat; each is a campaign."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from edgeflare.bench.sections import PairConfig, plain
from edgeflare.bench.suite import Suite
from edgeflare.campaign.config import CampaignConfig, ModelConfig


class Cell(NamedTuple):
    """A strategy on a pair; `repeat` counts from 0."""

    pair: str
    strategy: str
    repeat: int

    @property
    def name(self) -> str:
        """The cell's folder below ``cells/``, such as "LeNet-1/dflare/0"."""
        return f"{plain(self.pair)}/{self.strategy}/{self.repeat}"

    @property
    def words(self) -> str:
        """The cell's name in messages."""
        return f"{self.pair}, {self.strategy}, repeat {self.repeat}"


def cells(suite: Suite) -> tuple[Cell, ...]:
    """Return all cells, by pair, repeat and strategy, so that an unfinished bench compares strategies."""
    found = []
    for pair in suite.pairs:
        running = suite.strategies_of(pair.name)
        for repeat in range(max((one.repeats or 0 for one in running), default=0)):
            found += [
                Cell(pair.name, one.name, repeat) for one in running if repeat < (one.repeats or 0)
            ]
    return tuple(found)


def made_model(folder: Path, pair: PairConfig) -> Path:
    """Return the path, in a bench's folder, of a deployed model that is made from the original."""
    return folder / "models" / f"{plain(pair.name)}.onnx"


def cell_config(
    suite: Suite,
    cell: Cell,
    folder: Path,
    *,
    devices: Sequence[str],
    inventory: Path | None = None,
    python: str | None = None,
) -> CampaignConfig:
    """Return the campaign of a cell of the bench in `folder`."""
    pair, strategy = suite.pair(cell.pair), suite.strategy(cell.strategy)
    limits = [limit for limit in (strategy.seeds, pair.seeds.limit) if limit is not None]
    return CampaignConfig(
        original=pair.original,
        deployed=pair.deployed or _made(pair, folder),
        seeds=pair.seeds.model_copy(update={"limit": min(limits)}),
        devices=tuple(devices),
        python=python,
        inventory=inventory,
        out=folder / "cells" / cell.name,
        search=suite.search(cell.strategy, cell.repeat),
        allow_disagreement=pair.allow_disagreement,
    )


def _made(pair: PairConfig, folder: Path) -> ModelConfig:
    """Return the description of a deployed model made from the original: all but its file is the same."""
    return pair.original.model_copy(update={"path": made_model(folder, pair)})
