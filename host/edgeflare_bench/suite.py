"""A suite: the pairs, strategies and repeats of a benchmark, and its file."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, ValidationError, model_validator

import edgeflare
from edgeflare._internal import extras, toml
from edgeflare._internal.flags import problems_of
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.campaign.settings.fleet import Seconds
from edgeflare.campaign.settings.models import ModelConfig, Section, SeedsConfig
from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy

SUITES = Path(__file__).resolve().parent / "assets" / "suites"
_DEMO = Path(edgeflare.__file__).parent / "assets" / "demo"
_PLACEHOLDER = re.compile(r"\{(\w*)\}(?=/|$)")
_BRACES = re.compile(r"[{}]")
_KEYS = (("original", "path"), ("deployed", "path"), ("seeds", "path"), ("seeds", "labels"))


def anchor_paths(values: dict[str, Any], file: Path, data: Sequence[Path]) -> dict[str, Any]:
    """Return the suite's values with whole paths: relative ones start at the folder of `file`.

    ``{data}`` is the first folder of `data` in which the rest of the path is, the first of all
    where none has it; they are absolute. Raises UsageError where ``{data}`` is used and one of its
    folders is not there, or none is given, for other words in braces, and for braces that are not
    the whole first part of a path.
    """
    places: dict[str, Sequence[Path]] = {"data": data, "demo": [_DEMO], "suites": [SUITES]}
    values = deepcopy(values)
    for key, table, name in _paths_in(values):
        text = table[name]
        found = _PLACEHOLDER.match(text)
        if _BRACES.search(text, found.end() if found else 0):
            raise UsageError(
                f"{file}: {key}: {text} has braces, which only stand for a folder that a path "
                "begins with, as in {data}/models/original.onnx"
            )
        if found is None:
            table[name] = str(file.parent / toml.expand_home(text))
            continue
        if found[1] not in places:
            raise UsageError(
                f"{file}: {key}: {found[0]} stands for no folder; there are {{data}}, {{demo}} and "
                "{suites}"
            )
        folders = places[found[1]]
        if not folders:
            raise UsageError(
                f"{file} needs the folder of its models and seeds; name it with --data FOLDER"
            )
        check_folders(folders)
        paths = [f"{folder}{text[found.end() :]}" for folder in folders]
        table[name] = next((path for path in paths if Path(path).exists()), paths[0])
    return values


def check_folders(folders: Iterable[Path]) -> None:
    """Raise UsageError for a folder of ``--data`` that isn't there."""
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}; name another one with --data FOLDER")


def _paths_in(values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield where a path stands in a suite's values: its key in words, its table, its name there."""
    pairs = values.get("pairs")
    for number, pair in enumerate(pairs if isinstance(pairs, list) else []):
        for table_name, name in _KEYS if isinstance(pair, dict) else ():
            table = pair.get(table_name)
            if isinstance(table, dict) and isinstance(table.get(name), str):
                yield f"pairs.{number}.{table_name}.{name}", table, name


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._ -]*[A-Za-z0-9_-])?")
_LONGEST = 100
"""Names become those of files and folders, which have 255 bytes at most on the usual disks."""


def plain(name: str) -> str:
    """Return a pair's name as its folder is called: every run of spaces is one ``-``."""
    return re.sub(r" +", "-", name)


def _pair_name(name: str) -> str:
    return _checked_name(name, " spaces,", "space or ")


def _plain_name(name: str) -> str:
    return _checked_name(name, "", "")


def _checked_name(name: str, spaces: str, space: str) -> str:
    """Return a name; raise ValueError unless it is one, with `spaces` where it may have these."""
    if not _NAME.fullmatch(name) or (" " in name and not spaces):
        raise ValueError(
            f"{name!r} is no name: use letters, digits,{spaces} '.', '_' and '-', "
            f"a letter or digit first, no {space}'.' last"
        )
    if len(name) > _LONGEST:
        raise ValueError(
            f"the name {name[:20]!r}... has {len(name)} characters; use {_LONGEST} at most"
        )
    return name


PairName = Annotated[str, AfterValidator(_pair_name)]
PlainName = Annotated[str, AfterValidator(_plain_name)]


class PerturbConfig(Section):
    """A deployed model that is made from the original, an ONNX file (section 5.4.1).

    `percent` % of its weights, drawn from `seed`, are multiplied by 1 + `by` or 1 - `by`.
    """

    percent: float = Field(gt=0, le=100)
    by: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0)


class PairConfig(Section):
    """An original model, the deployed one or how to make it, and their seed inputs.

    The pairs of one `study` are correlated by their `x` with what a search costs (section 5.4.1).
    `allow_disagreement` begins the search although the models disagree on many seed inputs. On a
    `control` pair the deployed model is an equal copy of the original, so that every finding is a
    false alarm.
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


class StrategyConfig(Section):
    """A search strategy with its options, and where it departs from the suite.

    `max_queries`, `max_host_queries`, `timeout_s`, `margin_floor`, `seeds` and `repeats` stand in
    for the suite's; `pairs` are the only ones that it is run on (none named: all).
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


class Published(Section):
    """A publication's figures of one strategy on one pair, to compare with those measured.

    Means over the seed inputs on which a triggering input was found (section 4.3): `queries`, and
    `seconds`; `success` is the rate of those, 0 to 1.
    """

    pair: str
    strategy: str
    source: str = Field(min_length=1)
    queries: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    success: float | None = Field(default=None, ge=0, le=1)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Suite(Section):
    """A benchmark: every strategy searches on every pair, once a repeat.

    The first `seeds` seed inputs of each pair are searched from, `repeats` times, with the campaign
    seeds `seed`, `seed` + 1 and so on. One search may cost `max_queries` queries,
    `max_host_queries` inputs given to the original alone, and `timeout_s` seconds (0: no limit). A
    deviation counts where both models' margins (top-1 minus top-2 probability) reach
    `margin_floor`; 0 as in the paper. `baseline` is the strategy that the others are compared with.
    `title` and `about` go on top of the report, `published` figures beside those measured. `data`
    are the folders that ``{data}`` stood for; they are not stored with the suite.
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
    def _is_consistent(self) -> "Suite":
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
        """Return a strategy by name, open settings filled in from the suite. Raises KeyError."""
        found = {strategy.name: strategy for strategy in self.strategies}[name]
        shared = Suite.model_fields.keys() & StrategyConfig.model_fields.keys() - {"name"}
        missing = {key: getattr(self, key) for key in shared if getattr(found, key) is None}
        return found.model_copy(update=missing)

    def strategies_of(self, pair_name: str) -> tuple[StrategyConfig, ...]:
        """Return the strategies that are run on a pair, as `strategy` does. Raises KeyError."""
        pair = self.pair(pair_name).name
        return tuple(
            self.strategy(strategy.name)
            for strategy in self.strategies
            if not strategy.pairs or pair in strategy.pairs
        )

    def search(self, strategy: str, repeat: int = 0) -> SearchConfig:
        """Return how a campaign searches with a strategy in one repeat (0 is the first)."""
        one = self.strategy(strategy)
        keys = SearchConfig.model_fields.keys() & StrategyConfig.model_fields.keys()
        values = {key: getattr(one, key) for key in keys}
        return SearchConfig.model_validate({**values, "seed": self.seed + repeat})

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

        `seeds`, `repeats` and `max_queries` replace the suite's and every strategy's own. A
        strategy that is run on none of the pairs goes; so does the baseline, if it isn't one of the
        strategies. Raises UsageError, naming the choices, for an unknown name, and where nothing is
        left to run.
        """
        try:
            _known("there is no such pair", pairs, [pair.name for pair in self.pairs])
            _known("there is no such strategy", strategies, [one.name for one in self.strategies])
        except ValueError as error:
            raise UsageError(f"suite {self.name}: {error}") from error
        chosen = [pair for pair in self.pairs if not pairs or pair.name in pairs]
        names = [pair.name for pair in chosen]
        stated = {"seeds": seeds, "repeats": repeats, "max_queries": max_queries}
        over = {key: value for key, value in stated.items() if value is not None}
        running = []
        for strategy in self.strategies:
            own = tuple(name for name in strategy.pairs if name in names)
            if (not strategies or strategy.name in strategies) and (own or not strategy.pairs):
                running.append(strategy.model_copy(update={"pairs": own, **dict.fromkeys(over)}))
        if not running:
            raise UsageError(
                f"suite {self.name} runs none of the chosen strategies on any of the chosen pairs"
            )
        left = [one.name for one in running]
        values = {
            **self.model_dump(),
            **over,
            "data": self.data,
            "pairs": chosen,
            "strategies": running,
            "baseline": self.baseline if self.baseline in left else None,
            "published": [
                one for one in self.published if one.pair in names and one.strategy in left
            ],
        }
        return suite_from(values, f"suite {self.name}")


def suite_from(values: dict[str, Any], source: str) -> Suite:
    """Validate plain values. Raises UsageError naming `source` and each wrong key."""
    try:
        return Suite.model_validate(values)
    except ValidationError as error:
        raise UsageError(problems_of(error, source)) from error


class SuiteAbout(NamedTuple):
    """What a packaged suite is: `needs_data`: whether its models must be given with --data."""

    name: str
    title: str
    needs_data: bool


def suite_names() -> tuple[str, ...]:
    """Return the names of the packaged suites, sorted."""
    return tuple(sorted(path.stem for path in SUITES.glob("*.toml")))


def suite_about(name: str) -> SuiteAbout:
    """Describe a packaged suite or a file, without needing its models. Raises UsageError."""
    values = toml.load(_file_of(name))
    needs_data = any(table[key].startswith("{data}") for _, table, key in _paths_in(values))
    return SuiteAbout(Path(name).stem, str(values.get("title", "")), needs_data)


def load_suite(source: str, data: Path | Sequence[Path] | None = None) -> Suite:
    """Read a packaged suite by its name, or a suite's TOML file by its path.

    `data` is the folder that ``{data}`` stands for, or several: each file is looked for in their
    order. All paths of the result are absolute. Raises UsageError, naming file and key; also where
    the suite needs `data` and it isn't given.
    """
    file = _file_of(source)
    given = [data] if isinstance(data, Path) else list(data or ())
    folders = [folder.expanduser().absolute() for folder in given]
    suite = suite_from({**anchor_paths(toml.load(file), file, folders), "data": folders}, str(file))
    for strategy in suite.strategies:
        try:
            build_strategy(strategy.strategy, strategy.options, strategy.operators)
        except UsageError as error:
            raise UsageError(f"{file}: strategies.{strategy.name}: {error}") from error
    return suite


def _file_of(source: str) -> Path:
    if source in suite_names():
        return SUITES / f"{source}.toml"
    path = toml.expand_home(source)
    if not path.is_file():
        raise UsageError(
            f"there is no suite {source!r}: name a suite's TOML file, or one of the packaged "
            f"suites {', '.join(suite_names()) or '(none)'}"
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


def check_files(suite: Suite) -> None:
    """Raise UsageError where a model, seeds, or onnx to make a model are missing."""
    missing = list(dict.fromkeys(path for path in _paths(suite) if not path.exists()))
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise UsageError(
            f"the suite {suite.name} names files that are not there: "
            f"{_looked_for(missing[0], suite)}{more}; correct its paths or `--data`, or choose "
            "other pairs with `--pair`"
        )
    made = [pair.name for pair in suite.pairs if pair.perturb is not None]
    if made:
        extras.onnx(f"changing a model's weights, as for {made[0]!r},")


def _looked_for(path: Path, suite: Suite) -> str:
    """Return a file that is missing; below ``{data}`` with all folders that this stood for."""
    if len(suite.data) < 2 or not path.is_relative_to(suite.data[0]):
        return str(path)
    folders = ", ".join(map(str, suite.data))
    return f"{path.relative_to(suite.data[0])} in none of {folders}"


def _paths(suite: Suite) -> Iterator[Path]:
    for pair in suite.pairs:
        yield pair.original.path
        if pair.deployed is not None:
            yield pair.deployed.path
        yield pair.seeds.path
