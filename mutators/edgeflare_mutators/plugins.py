"""The user's operators: entry points of installed distributions.

In the user's ``pyproject.toml``::

    [project.entry-points."edgeflare.mutators"]
    salt-and-pepper = "my_package:SaltAndPepper"

The object named is an `Operator`, or a class or function that gives one when called without
arguments. The entry point and the operator have the same name.
"""

import sys
from collections.abc import Hashable
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

from edgeflare_mutators.base import KINDS, Operator
from edgeflare_mutators.errors import MutatorLoadError

GROUP = "edgeflare.mutators"


def names() -> tuple[str, ...]:
    """Return the names that installed distributions declare, sorted; nothing is loaded."""
    return tuple(sorted(_installed().names))


def origin(name: str) -> str:
    """Return the distributions that declare this name, as text for a sentence."""
    return " and ".join(sorted(_distribution(entry) for entry in _declared(name)))


@cache
def load(name: str) -> Operator:
    """Return the operator of this name; it is loaded once in the life of the process.

    Raises KeyError where no distribution declares the name, and MutatorLoadError, naming the
    distribution, where several do or what it gives is no operator of this name.
    """
    declared = _declared(name)
    if not declared:
        raise KeyError(name)
    if len(declared) > 1:
        raise MutatorLoadError(
            f"the mutation operator {name!r} is declared by {origin(name)}; uninstall all but one"
        )
    return _load(declared[0])


def _load(entry: EntryPoint) -> Operator:
    subject = f"the mutation operator {entry.name!r} of {_distribution(entry)}"
    try:
        loaded = entry.load()
        operator = loaded if isinstance(loaded, Operator) else loaded()
    except Exception as error:  # the user's code: it may raise anything
        raise MutatorLoadError(
            f"{subject} can't be loaded from {entry.value}: {type(error).__name__}: {error}; "
            "repair or uninstall that distribution"
        ) from error
    if not isinstance(operator, Operator):
        raise MutatorLoadError(
            f"{subject} is a {type(operator).__name__}; {entry.value} must be an "
            "edgeflare_mutators.Operator, or give one when called without arguments"
        )
    name = getattr(operator, "name", None)
    if name != entry.name:
        raise MutatorLoadError(f"{subject} calls itself {name!r}; give both the same name")
    if operator.kind not in KINDS:
        raise MutatorLoadError(
            f"{subject} is of kind {operator.kind!r}; the kinds are {', '.join(KINDS)}"
        )
    if not hasattr(operator, "ranges"):
        raise MutatorLoadError(f"{subject} has no ranges; call super().__init__() in its __init__")
    return operator


def _declared(name: str) -> tuple[EntryPoint, ...]:
    return tuple(_installed().select(name=name))


def _installed() -> EntryPoints:
    return _read(tuple(map(_identity, sys.path)))


@lru_cache(maxsize=1)
def _read(path: tuple[Hashable, ...]) -> EntryPoints:
    """Return what is declared; again only where `path` differs, as this reads all distributions."""
    del path
    return entry_points(group=GROUP)


def _identity(entry: str) -> Hashable:
    """Return what changes where a distribution is put into or taken out of this folder."""
    try:
        found = Path(entry).stat()
    except (OSError, ValueError):
        return entry
    return entry, found.st_dev, found.st_ino, found.st_mtime_ns


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed distribution"
