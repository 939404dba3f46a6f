"""Strategies by name: built-in ones, and the user's.

A user's strategy is an entry point of the group ``edgeflare.strategies``: a `Strategy` (a function
of seed and generator), which has no options, or a class of options (a dataclass or pydantic model)
whose instances are strategies::

    @dataclass(frozen=True)
    class Noise:
        level: int = 8

        def __call__(self, seed: Seed, rng: np.random.Generator) -> Search: ...
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from edgeflare._internal import plugins
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary import Answered, BoundaryOptions, boundary, check_boundary
from edgeflare.strategies.dflare import DflareDOptions, DflareOptions, DflareROptions, dflare
from edgeflare.strategies.operators import check_operator_pool, operators_named, refuse_operators
from edgeflare.strategies.shrink import ShrinkOptions
from edgeflare.types import NOTHING_SEARCHED, Outcome, Search, Seed, Strategy
from edgeflare_bench.diffchaser import DiffchaserOptions, diffchaser
from edgeflare_mutators import Kind, Operator, default_pool
from edgeflare_whitebox.strategies.constraints import ConstrainedOptions
from edgeflare_whitebox.strategies.deepxplore import DeepxploreOptions, deepxplore
from edgeflare_whitebox.strategies.gradient import GradientOptions, gradient


class _NoneOptions(BaseModel):
    """Searches nothing: only the seed inputs themselves are compared. It has no options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _none(options: _NoneOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy that asks nothing: only the seed inputs are compared."""
    del options, operators
    return _search_nothing


def _search_nothing(seed: Seed, rng: np.random.Generator) -> Search:
    del seed, rng
    yield from ()
    return Outcome(None, reason=NOTHING_SEARCHED)


def _shrink(options: ShrinkOptions, operators: Mapping[str, Operator] | None) -> Strategy:
    """Return the strategy that shrinks triggering inputs. Raises UsageError."""
    refuse_operators("shrink", operators)
    _ = options.samples  # raises where it can't be read
    return options


class _Entry(NamedTuple):
    options: type[Any]  # a pydantic model or a dataclass
    build: Callable[[Any, Mapping[str, Operator] | None], Strategy]


_STRATEGIES = {
    "dflare": _Entry(DflareOptions, dflare),
    "dflare-d": _Entry(DflareDOptions, dflare),
    "dflare-r": _Entry(DflareROptions, dflare),
    "boundary": _Entry(BoundaryOptions, boundary),
    "diffchaser": _Entry(DiffchaserOptions, diffchaser),
    "gradient": _Entry(GradientOptions, gradient),
    "deepxplore": _Entry(DeepxploreOptions, deepxplore),
    "shrink": _Entry(ShrinkOptions, _shrink),
    "none": _Entry(_NoneOptions, _none),
}


def takes_gradients(name: str, options: Mapping[str, Any]) -> bool:
    """Whether a strategy asks for gradients of the original; of a user's own that isn't known.

    Raises UsageError for options that a built-in strategy doesn't have.
    """
    if name not in _STRATEGIES:
        return False
    parsed = _parsed(name, options)
    if isinstance(parsed, BoundaryOptions):
        return parsed.gradients
    return isinstance(parsed, ConstrainedOptions)


def other_originals(name: str, options: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the files of further models that a strategy has beside the original, in their order.

    Raises as `takes_gradients`.
    """
    if name not in _STRATEGIES:
        return ()
    parsed = _parsed(name, options)
    return parsed.others if isinstance(parsed, DeepxploreOptions) else ()


def strategy_names() -> tuple[str, ...]:
    """Return the names that `build_strategy` knows: the built-in ones, then the user's."""
    return (*_STRATEGIES, *(name for name in plugins.names("strategy") if name not in _STRATEGIES))


def strategy_options(name: str) -> type[Any]:
    """Return the class of a strategy's options: a pydantic model or a dataclass.

    Raises UsageError for an unknown strategy.
    """
    return _entry(name).options


def build_strategy(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = ()
) -> Strategy:
    """Return a strategy by its name; without `operators` it chooses its pool by the seed's kind.

    Raises UsageError for an unknown strategy, option or operator. Operators for another kind than
    the seed input's are refused when a search begins, or before by `check_operators`.
    """
    return _entry(name).build(
        _parsed(name, options), operators_named(operators) if operators else None
    )


def check_search(
    name: str,
    options: Mapping[str, Any],
    operators: tuple[str, ...] = (),
    *,
    kind: Kind,
    answered: Answered,
) -> None:
    """Check the arguments of `build_strategy` for seed inputs of a kind, before any search.

    `answered`: what the models' answers are; with "image" or "audio" class scores. Raises UsageError
    for options and operators that have no meaning then, and where a library of the operators is
    missing, also of those that the strategy chooses.
    """
    parsed, pool = _parsed(name, options), operators_named(operators) if operators else None
    if pool is not None:
        check_operator_pool(pool, kind)
    if isinstance(parsed, ConstrainedOptions) and kind == "audio":
        raise UsageError(f"strategy {name} changes images alone; state boundary for audio")
    if isinstance(parsed, ConstrainedOptions) and answered == "transcript":
        raise UsageError(
            f"strategy {name} needs scores of classes, and these models return text; state boundary"
        )
    if isinstance(parsed, BoundaryOptions):
        check_boundary(parsed, pool, kind, answered)
    elif (
        pool is None
        and name in _STRATEGIES
        and not isinstance(parsed, _NoneOptions | ShrinkOptions | ConstrainedOptions)
    ):
        check_operator_pool(default_pool(kind), kind)


def _entry(name: str) -> _Entry:
    if name in _STRATEGIES:
        return _STRATEGIES[name]
    found = plugins.load("strategy", name)
    if found is None:
        raise UsageError(
            f"there is no strategy {name!r}; choose one of {', '.join(strategy_names())}"
        )

    def build(parsed: Any, pool: Mapping[str, Operator] | None) -> Strategy:
        if pool is not None:
            raise UsageError(f"strategy {name} chooses its operators itself; leave --operator out")
        strategy: Strategy = parsed if isinstance(found, type) else found
        return strategy

    has_options = isinstance(found, type) and (is_dataclass(found) or issubclass(found, BaseModel))
    if not callable(found) or (
        isinstance(found, type) and not (has_options and "__call__" in dir(found))
    ):
        raise plugins.unusable(
            "strategy",
            name,
            "must be a function of seed and generator, or a dataclass or pydantic model of options "
            "whose instances are called like that",
        )
    return _Entry(found if has_options else _NoneOptions, build)


def _parsed(name: str, options: Mapping[str, Any]) -> Any:
    entry = _entry(name)
    known = _option_names(entry)
    advice = f"its options are {', '.join(known)}" if known else "it has no options"
    unknown = next((option for option in options if option not in known), None)
    if unknown is not None:
        raise UsageError(f"strategy {name}: {_no_option(unknown)}; {advice}")
    try:
        return TypeAdapter(entry.options).validate_python(dict(options))
    except ValidationError as error:
        raise UsageError(f"strategy {name}: {_problem(error)}; {advice}") from error


def _option_names(entry: _Entry) -> tuple[str, ...]:
    if is_dataclass(entry.options):
        return tuple(field.name for field in fields(entry.options))
    return tuple(entry.options.model_fields)


def _no_option(option: str) -> str:
    having = [name for name, one in _STRATEGIES.items() if option in _option_names(one)]
    return f"there is no option {option!r}" + (
        f" ({', '.join(having)} {'has' if len(having) == 1 else 'have'} it)" if having else ""
    )


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
