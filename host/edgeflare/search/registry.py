"""Strategies by name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from edgeflare.errors import UsageError
from edgeflare.search.boundary import BoundaryOptions, boundary, check_audio
from edgeflare.search.dflare import DflareDOptions, DflareOptions, DflareROptions, dflare
from edgeflare.search.diffchaser import DiffchaserOptions, diffchaser
from edgeflare.search.none import NoneOptions, none
from edgeflare.search.pools import named, usable
from edgeflare.types import Strategy
from edgeflare_mutators import Operator, default_pool


class _Entry(NamedTuple):
    options: type[BaseModel]
    build: Callable[[Any, Mapping[str, Operator] | None], Strategy]


_STRATEGIES = {
    "dflare": _Entry(DflareOptions, dflare),
    "dflare-d": _Entry(DflareDOptions, dflare),
    "dflare-r": _Entry(DflareROptions, dflare),
    "boundary": _Entry(BoundaryOptions, boundary),
    "diffchaser": _Entry(DiffchaserOptions, diffchaser),
    "none": _Entry(NoneOptions, none),
}


def strategy_names() -> tuple[str, ...]:
    """Return the names that `build_strategy` knows."""
    return tuple(_STRATEGIES)


def build_strategy(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = ()
) -> Strategy:
    """Return a strategy by name; no `operators` means the pool that the strategy chooses by the seed's kind.

    Raises UsageError for an unknown strategy, option or operator. Operators of another kind than the seed input's are
    refused when a search begins; `check_operators` does so before.
    """
    return _entry(name).build(_parsed(name, options), named(operators) if operators else None)


def check_audio_search(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = (), *, words: bool
) -> None:
    """Check a strategy as `build_strategy` takes it for seed inputs of audio, before any is searched from.

    `words`: recognisers answer, else there are class scores. Raises UsageError for options and operators that have no
    meaning then, and where a library of the operators is missing, also of those that the strategy chooses.
    """
    parsed, pool = _parsed(name, options), named(operators) if operators else None
    if pool is not None:
        usable(pool, "audio")
    if isinstance(parsed, BoundaryOptions):
        check_audio(parsed, pool, words=words)
    elif pool is None and not isinstance(parsed, NoneOptions):
        usable(default_pool("audio"), "audio")


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
    """Return what is wrong with the first option, a misspelt one before others."""
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    option = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        having = [name for name, one in _STRATEGIES.items() if option in one.options.model_fields]
        return f"there is no option {option!r}" + (
            f" ({', '.join(having)} {'has' if len(having) == 1 else 'have'} it)" if having else ""
        )
    said: str = first["msg"].removeprefix("Value error, ")
    return f"option {option!r}: {said}" if option else said
