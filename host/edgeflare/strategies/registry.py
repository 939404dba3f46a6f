"""Strategies by name: those stated here, and those that distributions declare.

Such a strategy is an entry point of the group ``edgeflare.strategies``: a `Strategy` (a function
of seed and generator), which has no options, or a class of options (a dataclass or pydantic model)
whose instances are strategies::

    @dataclass(frozen=True)
    class Noise:
        level: int = 8

        def __call__(self, seed: Seed, rng: np.random.Generator) -> Search: ...

The class may have more of what `StrategyTraits` has.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from edgeflare._internal import plugins
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary import Answered, BoundaryOptions, boundary, check_boundary
from edgeflare.strategies.dflare import DflareDOptions, DflareOptions, DflareROptions, dflare
from edgeflare.strategies.operators import check_operator_pool, operators_named, refuse_operators
from edgeflare.strategies.shrink import ShrinkOptions
from edgeflare.types import NOTHING_SEARCHED, Outcome, Search, Seed, Strategy
from edgeflare_mutators import Kind, Operator, default_pool


class _NoneOptions(BaseModel, extra="forbid", frozen=True):
    """Searches nothing: only the seed inputs themselves are compared. It has no options."""


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


class StrategyTraits(Protocol):
    """What a class of options may have beside them and ``__call__``; each may be missing."""

    probe: str
    """The probe of the original that the search asks, an entry point of ``edgeflare.probes``."""
    further_models: str
    """The name of the option, of paths, that has the files of further models asked on the host."""
    needs_labels: bool
    """Of the class: whether it searches where labels change, so that a tolerance has no meaning."""
    dropped_options: tuple[str, ...]
    """Of the class: options that it had once; campaigns that state them can be resumed."""

    def with_operators(self, operators: Mapping[str, Operator]) -> Strategy:
        """Return the strategy with these mutation operators; without it --operator is refused."""
        ...

    def check_search(
        self, name: str, operators: Mapping[str, Operator] | None, kind: Kind, answered: Answered
    ) -> None:
        """Raise UsageError where it can't search so; the arguments are those of `check_search`."""
        ...


_Entry: TypeAlias = tuple[type[Any], Callable[[Any, Mapping[str, Operator] | None], Strategy]]
"""A strategy's options, a pydantic model or a dataclass, and what builds it of them."""
_STRATEGIES: Mapping[str, _Entry] = {
    "dflare": (DflareOptions, dflare),
    "dflare-d": (DflareDOptions, dflare),
    "dflare-r": (DflareROptions, dflare),
    "boundary": (BoundaryOptions, boundary),
    "shrink": (ShrinkOptions, _shrink),
    "none": (_NoneOptions, _none),
}


def probe_of(name: str, options: Mapping[str, Any]) -> str:
    """Return the name of the probe of the original that a strategy asks; "": none.

    Raises UsageError for options that it doesn't have.
    """
    probe: str = getattr(_parsed(name, options), "probe", "")
    return probe


def other_originals(name: str, options: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the files of further models that a strategy has beside the original, in their order.

    Raises as `probe_of`.
    """
    parsed = _parsed(name, options)
    files: tuple[Path, ...] = getattr(parsed, getattr(parsed, "further_models", ""), ())
    return files


def with_full_paths(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a strategy's options with the full paths of its further models. Raises as `probe_of`."""
    files = [str(path) for path in other_originals(name, options)]
    return {**options, **({strategy_options(name).further_models: files} if files else {})}


def needs_labels(name: str) -> bool:
    """Whether a strategy searches where labels change; not of one that can't be loaded."""
    try:
        return getattr(strategy_options(name), "needs_labels", False)
    except UsageError:  # told when the search is checked
        return False


def strategy_names() -> tuple[str, ...]:
    """Return the names that `build_strategy` knows: the built-in ones, then the user's."""
    built_in = _built_in()
    return (*built_in, *(name for name in plugins.names("strategy") if name not in built_in))


def _built_in() -> tuple[str, ...]:
    return (*_STRATEGIES, *plugins.built_in("strategy"))


def strategy_options(name: str) -> type[Any]:
    """Return the class of a strategy's options: a pydantic model or a dataclass.

    Raises UsageError for an unknown strategy.
    """
    return _entry(name)[0]


def build_strategy(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = ()
) -> Strategy:
    """Return a strategy by its name; without `operators` it chooses its pool by the seed's kind.

    Raises UsageError for an unknown strategy, option or operator. Operators for another kind than
    the seed input's are refused when a search begins, or before by `check_operators`.
    """
    return _entry(name)[1](
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
    if isinstance(parsed, BoundaryOptions):
        check_boundary(parsed, pool, kind, answered)
    elif name in _STRATEGIES:
        if pool is None and not isinstance(parsed, _NoneOptions | ShrinkOptions):
            check_operator_pool(default_pool(kind), kind)
    elif check := getattr(parsed, "check_search", None):
        check(name, pool, kind, answered)


def _entry(name: str) -> _Entry:
    if name in _STRATEGIES:
        return _STRATEGIES[name]
    found = plugins.load("strategy", name)
    if found is None:
        raise UsageError(
            f"there is no strategy {name!r}; choose one of {', '.join(strategy_names())}"
        )

    def build(parsed: Any, pool: Mapping[str, Operator] | None) -> Strategy:
        strategy: Strategy = parsed if isinstance(found, type) else found
        if pool is not None and not hasattr(strategy, "with_operators"):
            raise UsageError(f"strategy {name} chooses its operators itself; leave --operator out")
        return strategy if pool is None else strategy.with_operators(pool)  # type: ignore[attr-defined]

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
    return (found if has_options else _NoneOptions), build


def _parsed(name: str, options: Mapping[str, Any]) -> Any:
    kind, _ = _entry(name)
    dropped = getattr(kind, "dropped_options", ())
    options = {option: value for option, value in options.items() if option not in dropped}
    known = _option_names(kind)
    unknown = next((option for option in options if option not in known), None)
    if unknown is not None:
        having = []
        for other in _built_in():
            with suppress(UsageError):  # one that can't be loaded
                having += [other] if unknown in _option_names(_entry(other)[0]) else []
        verb = "has" if len(having) == 1 else "have"
        raise _refused(
            name,
            f"there is no option {unknown!r}"
            + (f" ({', '.join(having)} {verb} it)" if having else ""),
            known,
        )
    try:
        return TypeAdapter(kind).validate_python(options)
    except ValidationError as error:
        raise _refused(name, _problem(error), known) from error


def _refused(name: str, problem: str, known: Sequence[str]) -> UsageError:
    advice = f"its options are {', '.join(known)}" if known else "it has no options"
    return UsageError(f"strategy {name}: {problem}; {advice}")


def _option_names(kind: type[Any]) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(kind.model_fields)


def _problem(error: ValidationError) -> str:
    """Return what is wrong with the first invalid option."""
    first = error.errors()[0]
    option = ".".join(str(part) for part in first["loc"])
    message: str = first["msg"].removeprefix("Value error, ")
    return f"option {option!r}: {message}" if option else message
