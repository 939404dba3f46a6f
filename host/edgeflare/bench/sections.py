"""The tables of a suite file: its pairs, its strategies, what it changes and what others published."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from edgeflare.campaign.config import ModelConfig, Seconds, SeedsConfig

_PAIR = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._ -]*[A-Za-z0-9_-])?")
_LONGEST = 100
"""Names become those of files and folders, which have 255 bytes at most on the usual disks."""


def plain(name: str) -> str:
    """Return a pair's name as its folder is called: every run of spaces is one ``-``."""
    return re.sub(r" +", "-", name)


def _pair_name(name: str) -> str:
    if not _PAIR.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name: use letters, digits, spaces, '.', '_' and '-', "
            "a letter or digit first, no space or '.' last"
        )
    return _short(name)


def _plain_name(name: str) -> str:
    if not _PAIR.fullmatch(name) or " " in name:
        raise ValueError(
            f"{name!r} is no name: use letters, digits, '.', '_' and '-', "
            "a letter or digit first, no '.' last"
        )
    return _short(name)


def _short(name: str) -> str:
    if len(name) > _LONGEST:
        raise ValueError(
            f"the name {name[:20]!r}... has {len(name)} characters; use {_LONGEST} at most"
        )
    return name


PairName = Annotated[str, AfterValidator(_pair_name)]
PlainName = Annotated[str, AfterValidator(_plain_name)]


class SuiteTable(BaseModel):
    """A table of a suite file: no unknown keys, and it never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PerturbConfig(SuiteTable):
    """A deployed model that is made from the original, an ONNX file (section 5.4.1).

    `percent` % of its weights, drawn from `seed`, are multiplied by 1 + `by` or 1 - `by`.
    """

    percent: float = Field(gt=0, le=100)
    by: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0)


class PairConfig(SuiteTable):
    """An original model, the deployed one beside it or how to make it, and their seed inputs.

    The pairs of one `study` are correlated by their `x` with what a search costs (section 5.4.1).
    `allow_disagreement` begins the search although the models disagree on many seed inputs. On a
    `control` pair the deployed model is an equal copy of the original, so that every finding is a false alarm.
    """

    name: PairName
    original: ModelConfig
    deployed: ModelConfig | None = None
    perturb: PerturbConfig | None = None
    seeds: SeedsConfig
    study: str | None = Field(default=None, min_length=1)
    x: float | None = Field(default=None, allow_inf_nan=False)
    allow_disagreement: bool = False
    control: bool = False

    @model_validator(mode="after")
    def _one_deployed_model(self) -> "PairConfig":
        if (self.deployed is None) == (self.perturb is None):
            raise ValueError(f"pair {self.name} needs either deployed or perturb")
        if (self.study is None) != (self.x is None):
            raise ValueError(f"pair {self.name} needs study and x, or neither of them")
        return self


class StrategyConfig(SuiteTable):
    """A search strategy with its options, and where it departs from the suite.

    `max_queries`, `max_host_queries`, `timeout_s`, `margin_floor`, `seeds` and `repeats` stand in for the
    suite's; `pairs` are the only ones that it is run on (none named: all).
    """

    name: PlainName
    strategy: str = "dflare"
    options: dict[str, Any] = Field(default_factory=dict)
    operators: tuple[str, ...] = ()
    max_queries: int | None = Field(default=None, ge=0)
    max_host_queries: int | None = Field(default=None, ge=0)
    timeout_s: Seconds | None = None
    margin_floor: float | None = Field(default=None, ge=0, lt=1, allow_inf_nan=False)
    seeds: int | None = Field(default=None, ge=1)
    repeats: int | None = Field(default=None, ge=1)
    pairs: tuple[str, ...] = ()


class Published(SuiteTable):
    """What a publication says of one strategy on one pair, to stand beside what was measured.

    Means over the seed inputs on which a triggering input was found (section 4.3): `queries`, and
    `seconds`; `success` is the rate of those, 0 to 1.
    """

    pair: str
    strategy: str
    source: str = Field(min_length=1)
    queries: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    success: float | None = Field(default=None, ge=0, le=1)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
