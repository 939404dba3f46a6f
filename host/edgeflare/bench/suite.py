"""A suite: the pairs, strategies and repeats of a benchmark, and its file."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError, model_validator

from edgeflare import toml
from edgeflare.bench.sections import (
    PairConfig,
    PerturbConfig,
    PlainName,
    Published,
    StrategyConfig,
    SuiteTable,
    plain,
)
from edgeflare.bench.suite_paths import SUITES, anchored, needs_data
from edgeflare.campaign.config import SearchConfig, Seconds, problems_of
from edgeflare.errors import UsageError
from edgeflare.search import build_strategy

__all__ = [
    "PairConfig",
    "PerturbConfig",
    "Published",
    "StrategyConfig",
    "Suite",
    "SuiteAbout",
    "load_suite",
    "suite_about",
    "suite_from",
    "suite_names",
]


class Suite(SuiteTable):
    """A benchmark: every strategy searches on every pair, once a repeat.

    The first `seeds` seed inputs of each pair are searched from, `repeats` times, with the campaign
    seeds `seed`, `seed` + 1 and so on. One search may cost `max_queries` queries, `max_host_queries`
    inputs given to the original alone, and `timeout_s` seconds (0: no limit). A deviation counts where
    both models' margins (top-1 minus top-2 probability) reach `margin_floor`; 0 as in the paper.
    `baseline` is the strategy that the others are compared with. `title` and `about` go on top of the
    report, `published` figures beside those measured. `data` are the folders that ``{data}`` stood for;
    they are no part of what is kept of a suite.
    """

    name: PlainName
    title: str = ""
    about: str = ""
    seeds: int = Field(default=100, ge=1)
    repeats: int = Field(default=1, ge=1, le=1000)
    seed: int = 0
    max_queries: int = Field(default=2000, ge=0)
    max_host_queries: int = Field(default=1_000_000, ge=0)
    timeout_s: Seconds = 180.0
    margin_floor: float = Field(default=0.0, ge=0, lt=1, allow_inf_nan=False)
    baseline: str | None = None
    pairs: tuple[PairConfig, ...] = Field(min_length=1)
    strategies: tuple[StrategyConfig, ...] = Field(min_length=1)
    published: tuple[Published, ...] = ()
    data: tuple[Path, ...] = Field(default=(), exclude=True)

    @model_validator(mode="after")
    def _hangs_together(self) -> "Suite":
        pairs = [pair.name for pair in self.pairs]
        strategies = [strategy.name for strategy in self.strategies]
        _only_once("pairs", [plain(name) for name in pairs])
        _only_once("strategies", strategies)
        if self.baseline is not None:
            _known("baseline", [self.baseline], strategies)
        for one in self.published:
            _known("published.pair", [one.pair], pairs)
            _known("published.strategy", [one.strategy], strategies)
        for strategy in self.strategies:
            key = f"strategies.{strategy.name}"
            _known(f"{key}.pairs", strategy.pairs, pairs)
            try:
                self.search(strategy.name)
            except ValidationError as error:
                raise ValueError(problems_of(error, key)) from error
        return self

    def pair(self, name: str) -> PairConfig:
        """Return a pair by its name. Raises KeyError."""
        return {pair.name: pair for pair in self.pairs}[name]

    def strategy(self, name: str) -> StrategyConfig:
        """Return a strategy by its name, what it leaves open filled in from the suite. Raises KeyError."""
        found = {strategy.name: strategy for strategy in self.strategies}[name]
        shared = (
            *("max_queries", "max_host_queries", "timeout_s"),
            *("margin_floor", "seeds", "repeats"),
        )
        missing = {key: getattr(self, key) for key in shared if getattr(found, key) is None}
        return found.model_copy(update=missing)

    def strategies_of(self, pair_name: str) -> tuple[StrategyConfig, ...]:
        """Return the strategies that are run on a pair, as `strategy` does. Raises KeyError."""
        pair = self.pair(pair_name).name
        return tuple(
            self.strategy(one.name) for one in self.strategies if not one.pairs or pair in one.pairs
        )

    def search(self, strategy: str, repeat: int = 0) -> SearchConfig:
        """Return how a campaign searches with a strategy in one repeat (0 is the first)."""
        one = self.strategy(strategy)
        return SearchConfig.model_validate(
            {
                "strategy": one.strategy,
                "options": one.options,
                "operators": one.operators,
                "max_queries": one.max_queries,
                "max_host_queries": one.max_host_queries,
                "timeout_s": one.timeout_s,
                "margin_floor": one.margin_floor,
                "seed": self.seed + repeat,
            }
        )

    def narrowed(
        self,
        *,
        pairs: Sequence[str] = (),
        strategies: Sequence[str] = (),
        seeds: int | None = None,
        repeats: int | None = None,
        max_queries: int | None = None,
    ) -> "Suite":
        """Return the suite with only these pairs and strategies (none named: all).

        `seeds`, `repeats` and `max_queries` replace the suite's and every strategy's own. A strategy
        that is run on none of the pairs goes; so does the baseline, if it isn't one of the strategies.
        Raises UsageError, naming the choices, for an unknown name, and where nothing is left to run.
        """
        kept = [pair for pair in self.pairs if not pairs or pair.name in pairs]
        names = [pair.name for pair in kept]
        try:
            _known("there is no such pair", pairs, [pair.name for pair in self.pairs])
            _known("there is no such strategy", strategies, [one.name for one in self.strategies])
        except ValueError as error:
            raise UsageError(f"suite {self.name}: {error}") from error
        over = {"seeds": seeds, "repeats": repeats, "max_queries": max_queries}
        over = {key: value for key, value in over.items() if value is not None}
        running = []
        for one in self.strategies:
            wanted = not strategies or one.name in strategies
            own = tuple(name for name in one.pairs if name in names)
            if wanted and (own or not one.pairs):
                running.append(one.model_copy(update={"pairs": own, **dict.fromkeys(over)}))
        if not running:
            raise UsageError(
                f"suite {self.name} runs none of the chosen strategies on any of the chosen pairs"
            )
        left = [one.name for one in running]
        values = {
            **self.model_dump(),
            **over,
            "data": self.data,
            "pairs": kept,
            "strategies": running,
            "baseline": self.baseline if self.baseline in left else None,
            "published": [
                one for one in self.published if one.pair in names and one.strategy in left
            ],
        }
        return suite_from(values, f"suite {self.name}")


def suite_from(values: dict[str, Any], source: str) -> Suite:
    """Validate plain values. Raises UsageError with one sentence naming `source` and each wrong key."""
    try:
        return Suite.model_validate(values)
    except ValidationError as error:
        raise UsageError(problems_of(error, source)) from error


class SuiteAbout(NamedTuple):
    """What a packaged suite is: `needs_data` tells whether its models must be given with --data."""

    name: str
    title: str
    needs_data: bool


def suite_names() -> tuple[str, ...]:
    """Return the names of the packaged suites, sorted."""
    return tuple(sorted(path.stem for path in SUITES.glob("*.toml")))


def suite_about(name: str) -> SuiteAbout:
    """Describe a packaged suite, or a suite's file, without needing its models. Raises UsageError."""
    values = toml.load(_file_of(name))
    return SuiteAbout(Path(name).stem, str(values.get("title", "")), needs_data(values))


def load_suite(source: str, data: Path | Sequence[Path] | None = None) -> Suite:
    """Read a packaged suite by its name, or a suite's TOML file by its path.

    `data` is the folder that ``{data}`` stands for, or several: each file is looked for in their order.
    All paths of the result are absolute. Raises UsageError, naming file and key; also where the suite
    needs `data` and it isn't given.
    """
    file = _file_of(source)
    given = [data] if isinstance(data, Path) else list(data or ())
    folders = [folder.expanduser().absolute() for folder in given]
    suite = suite_from({**anchored(toml.load(file), file, folders), "data": folders}, str(file))
    for strategy in suite.strategies:
        try:
            build_strategy(strategy.strategy, strategy.options, strategy.operators)
        except UsageError as error:
            raise UsageError(f"{file}: strategies.{strategy.name}: {error}") from error
    return suite


def _file_of(source: str) -> Path:
    if source in suite_names():
        return SUITES / f"{source}.toml"
    path = toml.expanded(source)
    if not path.is_file():
        raise UsageError(
            f"there is no suite {source!r}: name a suite's TOML file, or one of the packaged suites "
            f"{', '.join(suite_names()) or '(none)'}"
        )
    return path.absolute()


def _only_once(key: str, names: Iterable[str]) -> None:
    several = [name for name, n in Counter(map(str.casefold, names)).items() if n > 1]
    if several:
        raise ValueError(f"{key}: there are several called {', '.join(several)}")


def _known(key: str, names: Iterable[str], choices: Sequence[str]) -> None:
    for name in names:
        if name not in choices:
            raise ValueError(f"{key}: {name!r}; choose one of {', '.join(choices)}")
