"""Search strategies: generators of queries that know nothing of devices."""

from edgeflare.strategies.operators import check_operators
from edgeflare.strategies.registry import (
    build_strategy,
    check_search,
    strategy_names,
    strategy_options,
)

__all__ = [
    "build_strategy",
    "check_operators",
    "check_search",
    "strategy_names",
    "strategy_options",
]
