"""The search strategies by their names, and the strategy "none"."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from edgeflare.errors import UsageError
from edgeflare.search.boundary import BoundaryOptions, boundary, check_audio
from edgeflare.search.dflare import DflareDOptions, DflareOptions, DflareROptions, dflare
from edgeflare.search.diffchaser import DiffchaserOptions, diffchaser
from edgeflare.search.operators import check_operator_pool, operators_named
from edgeflare.types import NOTHING_SEARCHED, Outcome, Search, Seed, Strategy
from edgeflare_mutators import Operator, default_pool


class _NoneOptions(BaseModel):
    """The strategy "none" has no options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _none(options: _NoneOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy that asks nothing and ends: only the seed inputs themselves are compared."""
    del options, operators
    return _search_nothing


def _search_nothing(seed: Seed, rng: np.random.Generator) -> Search:
    del seed, rng
    yield from ()
    return Outcome(None, reason=NOTHING_SEARCHED)


class _Entry(NamedTuple):
    options: type[BaseModel]
    build: Callable[[Any, Mapping[str, Operator] | None], Strategy]


_STRATEGIES = {
    "dflare": _Entry(DflareOptions, dflare),
    "dflare-d": _Entry(DflareDOptions, dflare),
    "dflare-r": _Entry(DflareROptions, dflare),
    "boundary": _Entry(BoundaryOptions, boundary),
    "diffchaser": _Entry(DiffchaserOptions, diffchaser),
    "none": _Entry(_NoneOptions, _none),
}


def strategy_names() -> tuple[str, ...]:
    """Return the names that `build_strategy` knows."""
    return tuple(_STRATEGIES)


def build_strategy(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = ()
) -> Strategy:
    """Return a strategy by its name; without `operators` it chooses its pool by the seed's kind.

    Raises UsageError for an unknown strategy, option or operator. Operators for another kind than the seed input's are
    refused when a search begins, or before by `check_operators`.
    """
    return _entry(name).build(
        _parsed(name, options), operators_named(operators) if operators else None
    )


def check_audio_search(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = (), *, words: bool
) -> None:
    """Check the arguments of `build_strategy` for seed inputs of audio, before any search.

    `words`: speech recognisers answer, else there are class scores. Raises UsageError for options and operators that have
    no meaning then, and where a library of the operators is missing, also of those that the strategy chooses.
    """
    parsed, pool = _parsed(name, options), operators_named(operators) if operators else None
    if pool is not None:
        check_operator_pool(pool, "audio")
    if isinstance(parsed, BoundaryOptions):
        check_audio(parsed, pool, words=words)
    elif pool is None and not isinstance(parsed, _NoneOptions):
        check_operator_pool(default_pool("audio"), "audio")


def _entry(name: str) -> _Entry:
    if name not in _STRATEGIES:
        raise UsageError(
            f"there is no strategy {name!r}; choose one of {', '.join(strategy_names())}"
        )
    return _STRATEGIES[name]


def _parsed(name: str, options: Mapping[str, Any]) -> Any:
    entry = _entry(name)
    try:
        return entry.options.model_validate(dict(options))
    except ValidationError as error:
        known = entry.options.model_fields
        raise UsageError(
            f"strategy {name}: {_problem(error)}; "
            + (f"its options are {', '.join(known)}" if known else "it has no options")
        ) from error


def _problem(error: ValidationError) -> str:
    """Return what is wrong with the first invalid option; an unknown one comes before others."""
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    option = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        owners = [name for name, one in _STRATEGIES.items() if option in one.options.model_fields]
        return f"there is no option {option!r}" + (
            f" ({', '.join(owners)} {'has' if len(owners) == 1 else 'have'} it)" if owners else ""
        )
    message: str = first["msg"].removeprefix("Value error, ")
    return f"option {option!r}: {message}" if option else message
