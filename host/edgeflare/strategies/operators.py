"""Mutation operators of a search: by their names, and whether they fit the seed inputs."""

from collections.abc import Mapping, Sequence

from edgeflare.errors import UsageError
from edgeflare.types import Seed
from edgeflare_mutators import (
    Kind,
    MutationError,
    Operator,
    SampleSpec,
    UnknownOperatorError,
    get,
    operators,
)

_PLURALS = {"image": "images", "audio": "audio"}


def operators_named(names: Sequence[str]) -> dict[str, Operator]:
    """Return the operators with these names. Raises UsageError for a name that no operator has."""
    try:
        return {name: get(name) for name in names}
    except UnknownOperatorError as error:
        raise UsageError(_unknown(names, str(error))) from error
    except MutationError as error:
        raise UsageError(str(error)) from error


def _unknown(names: Sequence[str], message: str) -> str:
    """Return which name is unknown, and the names that there are of each kind."""
    try:
        images, audio = operators("image"), operators("audio")
    except MutationError:
        return message
    unknown = next(name for name in names if name not in images | audio)
    return (
        f"there is no mutation operator {unknown!r}; for images there are {', '.join(images)}; for audio "
        f"{', '.join(audio)}"
    )


def check_operators(names: Sequence[str], kind: Kind) -> None:
    """Raise UsageError unless operators with these names exist, mutate samples of this kind and have their libraries."""
    check_operator_pool(operators_named(names), kind)


def check_operator_pool(pool: Mapping[str, Operator], kind: Kind) -> Mapping[str, Operator]:
    """Return the pool. Raises UsageError where an operator is for another kind, or its library is missing."""
    for name, operator in pool.items():
        if operator.kind != kind:
            raise UsageError(
                f"the operator {name} mutates {_PLURALS[operator.kind]}, and the seed inputs are "
                f"{_PLURALS[kind]}; choose of {', '.join(operators(kind))}"
            )
    try:
        for operator in pool.values():
            operator.check_libraries()
    except MutationError as error:
        raise UsageError(str(error)) from error
    return pool


def spec_of(seed: Seed) -> SampleSpec:
    """Return what an operator draws parameters for. Raises UsageError where the seed input can't be mutated."""
    try:
        return SampleSpec.of(seed.sample, seed.rate)
    except MutationError as error:
        raise UsageError(f"seed {seed.id}: {error}") from error
