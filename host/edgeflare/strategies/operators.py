"""Mutation operators of a search, and mutation paths: recorded, serialised, in words."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from edgeflare.errors import UsageError
from edgeflare.types import Seed
from edgeflare_mutators import (
    SEED,
    Corruption,
    Kind,
    Mutation,
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
        raise _unknown(names, str(error)) from error
    except MutationError as error:
        raise UsageError(str(error)) from error


def _unknown(names: Sequence[str], message: str) -> UsageError:
    """Return which name is unknown, and the names that there are of each kind."""
    try:
        images, audio = operators("image"), operators("audio")
    except MutationError:
        return UsageError(message)
    unknown = next(name for name in names if name not in images | audio)
    return UsageError(
        f"there is no mutation operator {unknown!r}; for images there are {', '.join(images)}; for "
        f"audio {', '.join(audio)}"
    )


def check_operators(names: Sequence[str], kind: Kind) -> None:
    """Raise UsageError unless these operators exist, fit this kind and have their libraries."""
    check_operator_pool(operators_named(names), kind)


def check_operator_pool(pool: Mapping[str, Operator], kind: Kind) -> Mapping[str, Operator]:
    """Return the pool. Raises UsageError for another kind's operator or a missing library."""
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
    """Return what an operator draws parameters for. Raises UsageError for a seed unfit for any."""
    try:
        return SampleSpec.of(seed.sample, seed.rate)
    except MutationError as error:
        raise UsageError(f"seed {seed.id}: {error}") from error


Trail: TypeAlias = tuple["Trail", Mutation] | None
"""The last mutation and the path before it, which inputs may share; None at the seed."""

_UNCHANGED = {"count": 0, "kernel": 1, "sigma": 0, "amount": 0}
"""Parameters of operators, and the value with which they leave a sample as it is."""


def mutation_path(trail: Trail) -> tuple[dict[str, Any], ...]:
    """Return the mutations as JSON objects, the first one first."""
    path = []
    while trail is not None:
        trail, mutation = trail
        path.append(mutation.to_json())
    return tuple(reversed(path))


def describe_mutations(mutations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return serialised mutations in words, one text each, in their order.

    A natural corruption describes itself, as "JPEG quality 37"; for any other operator it is the
    name and the parameters (without the seed of its noise), as "average-blur (size=3)". The same
    for an operator that is not installed here, and for one that does not accept the recorded
    parameters.
    """
    return [
        _described(str(step.get("operator", "?")), step.get("params") or {}) for step in mutations
    ]


def changing(mutations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the mutations without those that change nothing, such as a blur of kernel 1."""
    return [
        step
        for step in mutations
        if not any((step.get("params") or {}).get(name) == one for name, one in _UNCHANGED.items())
    ]


def join_last(words: Sequence[str], most: int) -> str:
    """Return the last `most` texts as one, after the number of those left out; "" for none."""
    before = max(0, len(words) - most)
    return " + ".join([*([f"{before} earlier"] if before else []), *words[before:]])


def corruption_names(mutations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the natural corruptions among the mutations, by name, each once, in order."""
    names = dict.fromkeys(str(step.get("operator", "?")) for step in mutations)
    return [name for name in names if _corruption(name) is not None]


def describe_last_mutations(mutations: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return the last `most` effective mutations in words, after the number left out."""
    return join_last(describe_mutations(changing(mutations)), most)


def describe_finding(
    mutations: Sequence[Mapping[str, Any]],
    original: int | str | None,
    deployed: int | str | None,
    most: int,
) -> str:
    """Return the mutations and both answers: "JPEG quality 37: original 3, device 5".

    `original` and `deployed` are class indices, or the models' texts, as 'original
    "no", device "go"'; None leaves a model out.
    """
    labels = [
        f'{name} "{answer}"' if isinstance(answer, str) else f"{name} {answer}"
        for name, answer in (("original", original), ("device", deployed))
        if answer is not None
    ]
    parts = (describe_last_mutations(mutations, most), ", ".join(labels))
    return ": ".join(part for part in parts if part)


def _described(name: str, params: Mapping[str, Any]) -> str:
    corruption = _corruption(name)
    if corruption is not None:
        try:
            return str(corruption.words(params))
        except Exception:  # noqa: BLE001  the operator may be a user's, and newer than the record
            return _plain(name, params)
    return _plain(name, params)


def _plain(name: str, params: Mapping[str, Any]) -> str:
    stated = ", ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in params.items()
        if key != SEED.name
    )
    return f"{name} ({stated})" if stated else name


@lru_cache(maxsize=256)
def _corruption(name: str) -> Corruption | None:
    """Return the natural corruption of this name; None for others and for one not installed."""
    try:
        operator = get(name)
    except MutationError:
        return None
    return operator if isinstance(operator, Corruption) else None


def refuse_operators(strategy: str, operators: Mapping[str, Operator] | None) -> None:
    """Raise UsageError for operators of a strategy that doesn't use any."""
    if operators is not None:
        raise UsageError(f"strategy {strategy} uses no mutation operators; leave --operator out")
