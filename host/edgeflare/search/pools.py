"""Which mutation operators a search uses: those of the seed input's kind."""

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

_WORDS = {"image": "images", "audio": "audio"}


def named(names: Sequence[str]) -> dict[str, Operator]:
    """Return the operators of these names. Raises UsageError where there is none of a name."""
    try:
        return {name: get(name) for name in names}
    except UnknownOperatorError as error:
        raise UsageError(_unknown(names, str(error))) from error
    except MutationError as error:
        raise UsageError(str(error)) from error


def _unknown(names: Sequence[str], said: str) -> str:
    """Return what there is of each kind in place of the names that there are not."""
    try:
        images, audio = operators("image"), operators("audio")
    except MutationError:
        return said
    unknown = next(name for name in names if name not in images | audio)
    return (
        f"there is no mutation operator {unknown!r}; for images there are {', '.join(images)}; for audio "
        f"{', '.join(audio)}"
    )


def check_operators(names: Sequence[str], kind: Kind) -> None:
    """Raise UsageError unless operators of these names exist, mutate samples of this kind and have their libraries."""
    usable(named(names), kind)


def usable(pool: Mapping[str, Operator], kind: Kind) -> Mapping[str, Operator]:
    """Return the pool. Raises UsageError where one of it is for another kind, or lacks a library."""
    _check_kind(pool, kind)
    try:
        for operator in pool.values():
            operator.check_libraries()
    except MutationError as error:
        raise UsageError(str(error)) from error
    return pool


def spec_of(seed: Seed) -> SampleSpec:
    """Return what an operator draws for. Raises UsageError where the seed input is no sample that can be mutated."""
    try:
        return SampleSpec.of(seed.sample, seed.rate)
    except MutationError as error:
        raise UsageError(f"seed {seed.id}: {error}") from error


def _check_kind(pool: Mapping[str, Operator], kind: Kind) -> None:
    for name, operator in pool.items():
        if operator.kind != kind:
            raise UsageError(
                f"the operator {name} mutates {_WORDS[operator.kind]}, and the seed inputs are "
                f"{_WORDS[kind]}; choose of {', '.join(operators(kind))}"
            )
