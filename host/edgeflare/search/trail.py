"""The mutations that lead from a seed input to an input, shared by all inputs that came by the same way."""

from typing import Any, TypeAlias

from edgeflare_mutators import Mutation

Trail: TypeAlias = tuple["Trail", Mutation] | None
"""The last mutation and the trail before it; None at the seed."""


def steps_of(trail: Trail) -> tuple[dict[str, Any], ...]:
    """Return the mutations as JSON objects, the first one first."""
    steps = []
    while trail is not None:
        trail, mutation = trail
        steps.append(mutation.to_json())
    return tuple(reversed(steps))
