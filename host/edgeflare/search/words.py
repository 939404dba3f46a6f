"""The steps that lead from a seed input to a triggering input, in words."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from edgeflare_mutators import SEED, Corruption, MutationError, get

_UNCHANGED = {"count": 0, "kernel": 1, "sigma": 0, "amount": 0}
"""Parameters of operators, and the value with which they leave a sample as it is."""


def step_words(mutations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a serialised outcome's steps in words, one text each, in their order.

    A natural corruption says itself what it does, as "JPEG quality 37"; any other operator is told by name and
    parameters (without the seed of its noise), as "average-blur (size=3)". So is one that can't be had here, such as
    a user's operator that is not installed, and one that does not take the recorded parameters.
    """
    return [_one(str(step.get("operator", "?")), step.get("params") or {}) for step in mutations]


def changing(mutations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the steps but for those whose parameters leave the sample as it is, such as a blur's kernel of 1."""
    return [
        step
        for step in mutations
        if not any((step.get("params") or {}).get(name) == one for name, one in _UNCHANGED.items())
    ]


def last_words(words: Sequence[str], most: int) -> str:
    """Return the last `most` of a search's steps as one text, and how many are before them; "" for none."""
    before = max(0, len(words) - most)
    return " + ".join([*([f"{before} earlier"] if before else []), *words[before:]])


def corruption_names(mutations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the natural corruptions among the steps, each once, in their order."""
    names = dict.fromkeys(str(step.get("operator", "?")) for step in mutations)
    return [name for name in names if _corruption(name) is not None]


def joined_words(mutations: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return the last `most` steps that change something in words, and how many are before them; "" for none."""
    return last_words(step_words(changing(mutations)), most)


def finding_words(
    mutations: Sequence[Mapping[str, Any]],
    original: int | str | None,
    deployed: int | str | None,
    most: int,
) -> str:
    """Return what was done and what both models say, as "JPEG quality 37: original 3, device 5".

    `original` and `deployed` are class indices, or the texts of speech recognisers, as 'original "no", device "go"'; a
    model's is left out where it is None.
    """
    labels = [
        f'{name} "{said}"' if isinstance(said, str) else f"{name} {said}"
        for name, said in (("original", original), ("device", deployed))
        if said is not None
    ]
    parts = (joined_words(mutations, most), ", ".join(labels))
    return ": ".join(part for part in parts if part)


def _one(name: str, params: Mapping[str, Any]) -> str:
    corruption = _corruption(name)
    if corruption is not None:
        try:
            return str(corruption.words(params))
        except Exception:  # noqa: BLE001  the operator may be a user's, and newer than the record
            return _plain(name, params)
    return _plain(name, params)


def _plain(name: str, params: Mapping[str, Any]) -> str:
    told = ", ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in params.items()
        if key != SEED.name
    )
    return f"{name} ({told})" if told else name


@lru_cache(maxsize=256)
def _corruption(name: str) -> Corruption | None:
    """Return the natural corruption of this name; None for another operator, and for one not to be had."""
    try:
        operator = get(name)
    except MutationError:
        return None
    return operator if isinstance(operator, Corruption) else None
