"""What installed distributions add to EdgeFlare, by name: entry points.

In the user's ``pyproject.toml``::

    [project.entry-points."edgeflare.strategies"]
    my-strategy = "my_package:MyStrategy"

What the named object must be is documented where each kind is used: `strategies.registry`,
`answers.oracles`, `answers.kind`, `answers.detections.formats.options`, `devices.runtimes`, `devices.open`,
`models.probe`, `analysis.base`, `store.servers`, `campaign.priority`, `triage.run`, `cli.groups`. Nothing is
imported before its name is used, so a plug-in that is broken fails alone. EdgeFlare's own distribution declares names in the same way; a built-in name, such a one
too, always means the built-in object. Mutation operators are declared in the group
``edgeflare.mutators``; see `edgeflare_mutators`.
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from edgeflare.errors import EdgeFlareError, UsageError

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
    "kind of answer",
    "cause",
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
    "kind of answer": "edgeflare.answers",
    "cause": "edgeflare.causes",
}


_OWN = "edgeflare"
"""EdgeFlare's own distribution, whose names count as built in."""


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names that installed distributions declare, sorted; nothing is imported."""
    return tuple(sorted(set(entry_points(group=GROUPS[kind]).names)))


def built_in(kind: Kind) -> tuple[str, ...]:
    """Return the names that EdgeFlare's own distribution declares, sorted; nothing is imported."""
    return tuple(
        sorted({entry.name for entry in entry_points(group=GROUPS[kind]) if _is_own(entry)})
    )


@cache
def load(kind: Kind, name: str) -> Any:
    """Import and return the object of this name, None where no distribution declares it.

    Raises UsageError, naming the distribution, where several declare it or it can't be imported, and
    where EdgeFlare's own names aren't installed.
    """
    declared = _declared(kind, name)
    if not declared:
        check_current(kind, name)
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
            f"can't be loaded from {declared[0].value} ({type(error).__name__}: {error}); "
            "repair or uninstall that distribution",
        ) from error


def made(kind: Kind, name: str, declared: Any, *arguments: Any) -> Any:
    """Return what a declared class makes of these arguments.

    Raises UsageError, naming the distribution, where it fails; EdgeFlare's own errors are its answer.
    """
    try:
        return declared(*arguments)
    except EdgeFlareError:
        raise
    except Exception as error:  # the user's code: it may raise anything
        why = f"can't be made: {type(error).__name__}: {error}"
        raise unusable(kind, name, why) from error


def check_current(kind: Kind, name: str) -> None:
    """Raise UsageError where a name may be missing since EdgeFlare's own names aren't installed."""
    if not built_in("command"):
        raise UsageError(
            f"there is no {kind} {name!r}, and EdgeFlare's installation is older than its code: install "
            "it anew (pip install -e .)"
        )


def unusable(kind: Kind, name: str, why: str) -> UsageError:
    """Return the error to raise for a plug-in; it begins with its name and distribution."""
    return UsageError(f"the {kind} {name!r} of {_distribution(_declared(kind, name)[0])} {why}")


def blamed(fault: BaseException) -> str | None:
    """Return the distribution with plug-ins in whose code an error was raised, else None.

    That is where the innermost frame of EdgeFlare's code and of plug-ins is one of a plug-in. Modules
    of EdgeFlare's own distribution are none.
    """
    owners = {
        entry.module.partition(".")[0]: _distribution(entry)
        for group in GROUPS.values()
        for entry in entry_points(group=group)
        if not _is_own(entry)
    }
    owner, trace = None, fault.__traceback__
    while trace is not None:
        root = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if root.startswith("edgeflare"):
            owner = None
        owner = owners.get(root, owner)
        trace = trace.tb_next
    return owner


def origin(kind: Kind, name: str) -> str | None:
    """Return the distribution and version that declares a name that isn't built in, else None.

    Imports nothing.
    """
    declared = _declared(kind, name)
    return _distribution(declared[0]) if declared and not _is_own(declared[0]) else None


def check_installed(kind: Kind, name: str, built_in: Sequence[str]) -> None:
    """Raise UsageError where a name is neither built in nor declared; nothing is imported."""
    if name not in built_in and name not in names(kind):
        check_current(kind, name)
        raise UsageError(f"there is no {kind} {name!r}; is the distribution that has it installed?")


def known_name(kind: Kind, built_in: Sequence[str]) -> "AfterValidator":
    """Return pydantic's check that a text names a built-in or a plug-in; it imports nothing of these."""
    from pydantic import AfterValidator
    from pydantic_core import PydanticCustomError

    def check(name: str | None) -> str | None:
        if name is None or name in built_in or name in names(kind):
            return name
        check_current(kind, name)
        known = ", ".join(repr(one) for one in (*built_in, *names(kind)))
        expected = f"{known} or a name that an installed distribution declares"
        raise PydanticCustomError(
            "literal_error", "Input should be {expected}", {"expected": expected}
        )

    return AfterValidator(check)


def _declared(kind: Kind, name: str) -> tuple[EntryPoint, ...]:
    """Return what is declared under a name: where EdgeFlare itself declares it, that alone."""
    declared = tuple(entry_points(group=GROUPS[kind], name=name))
    return tuple(filter(_is_own, declared)) or declared


def _is_own(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == _OWN


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed distribution"
