"""The user's own strategies, oracles, runtimes, transports, hypotheses and detectors: entry points.

In the user's ``pyproject.toml``::

    [project.entry-points."edgeflare.strategies"]
    my-strategy = "my_package:MyStrategy"

What the named object must be is documented where each kind is used: `strategies.registry`,
`oracles`, `devices.runtimes`, `devices.open`, `inspection.units.hypotheses`,
`models.detectors.options`, `campaign.priority`. A built-in name always means the built-in one. Nothing is imported before
its name is used, so a plug-in that is broken fails alone. Mutation operators are declared in the same
way, in the group ``edgeflare.mutators``; see `edgeflare_mutators`.
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from edgeflare.errors import UsageError

if TYPE_CHECKING:
    from pydantic import AfterValidator

Kind: TypeAlias = Literal[
    "strategy",
    "oracle",
    "runtime",
    "transport",
    "hypothesis",
    "detector",
    "command",
    "priority",
    "probe",
    "analysis",
    "store",
    "cluster",
]

GROUPS: dict[Kind, str] = {
    "strategy": "edgeflare.strategies",
    "oracle": "edgeflare.oracles",
    "runtime": "edgeflare.runtimes",
    "transport": "edgeflare.transports",
    "hypothesis": "edgeflare.hypotheses",
    "detector": "edgeflare.detectors",
    "command": "edgeflare.commands",
    "priority": "edgeflare.priorities",
    "probe": "edgeflare.probes",
    "analysis": "edgeflare.analyses",
    "store": "edgeflare.stores",
    "cluster": "edgeflare.clusters",
}


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names that installed distributions declare, sorted; nothing is imported."""
    return tuple(sorted(set(entry_points(group=GROUPS[kind]).names)))


@cache
def load(kind: Kind, name: str) -> Any:
    """Import and return the object of this name, None where no distribution declares it.

    Raises UsageError, naming the distribution, where several declare it or it can't be imported.
    """
    declared = tuple(entry_points(group=GROUPS[kind], name=name))
    if not declared:
        return None
    if len(declared) > 1:
        several = " and ".join(sorted(map(_distribution, declared)))
        raise UsageError(f"the {kind} {name!r} is declared by {several}; uninstall all but one")
    try:
        return declared[0].load()
    except Exception as error:  # the user's code: it may raise anything
        raise unusable(
            kind,
            name,
            f"can't be loaded from {declared[0].value}: {type(error).__name__}: {error}; "
            "repair or uninstall that distribution",
        ) from error


def unusable(kind: Kind, name: str, why: str) -> UsageError:
    """Return the error to raise for a plug-in; it begins with its name and distribution."""
    return UsageError(f"the {kind} {name!r} of {origin(kind, name)} {why}")


def origin(kind: Kind, name: str) -> str | None:
    """Return the distribution and version that declares a name, else None; imports nothing."""
    declared = next(iter(entry_points(group=GROUPS[kind], name=name)), None)
    return None if declared is None else _distribution(declared)


def check_installed(kind: Kind, name: str, built_in: Sequence[str]) -> None:
    """Raise UsageError where a name is neither built in nor declared; nothing is imported."""
    if name not in built_in and name not in names(kind):
        raise UsageError(f"there is no {kind} {name!r}; is the distribution that has it installed?")


def known_name(kind: Kind, built_in: Sequence[str]) -> "AfterValidator":
    """Return pydantic's check that a text names a built-in or a plug-in; it imports nothing of these."""
    from pydantic import AfterValidator
    from pydantic_core import PydanticCustomError

    def check(name: str | None) -> str | None:
        if name is None or name in built_in or name in names(kind):
            return name
        known = ", ".join(repr(one) for one in (*built_in, *names(kind)))
        expected = f"{known} or a name that an installed distribution declares"
        raise PydanticCustomError(
            "literal_error", "Input should be {expected}", {"expected": expected}
        )

    return AfterValidator(check)


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed distribution"
