"""Strategies by name."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from edgeflare.errors import UsageError
from edgeflare.search.dflare import DflareOptions, dflare
from edgeflare.types import Strategy
from edgeflare_mutators import MutationError, Operator, default_pool, get

_OPTIONS = {"dflare": DflareOptions}


def strategy_names() -> tuple[str, ...]:
    """Return the names that `build_strategy` knows."""
    return tuple(_OPTIONS)


def build_strategy(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = ()
) -> Strategy:
    """Return a strategy by name; no `operators` means the paper's table 3.

    Raises UsageError for an unknown strategy, option or operator.
    """
    if name not in _OPTIONS:
        raise UsageError(
            f"there is no strategy {name!r}; choose one of {', '.join(strategy_names())}"
        )
    try:
        parsed = _OPTIONS[name].model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"strategy {name}: option {field!r}: {first['msg']}; "
            f"it has {', '.join(_OPTIONS[name].model_fields)}"
        ) from error
    return dflare(parsed, _pool(operators))


def _pool(names: tuple[str, ...]) -> dict[str, Operator]:
    if not names:
        return dict(default_pool())
    try:
        return {name: get(name) for name in names}
    except MutationError as error:
        raise UsageError(str(error)) from error
