"""Analyses of a campaign by name: each has settings, a result, and a part of the reports.

An analysis is an object of the entry points ``edgeflare.analyses``, as `Analysis` has it. It is a
command, ``edgeflare analyse NAME CAMPAIGN``, whose flags its settings state. Its newest result is
stored in the campaign, and shown by ``show``, and on the page.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from markupsafe import Markup
from pydantic import BaseModel, ValidationError

from edgeflare._internal import plugins
from edgeflare._internal.flags import problems_of
from edgeflare._internal.text import reason
from edgeflare.document import Text
from edgeflare.errors import EdgeFlareError, StoreError, UsageError
from edgeflare.store import CampaignLock, Store

S = TypeVar("S", bound=BaseModel)
R = TypeVar("R")


class RunContext(NamedTuple):
    """What an analysis may use beside the campaign.

    `progress` takes what is done, how much of it, and the total where it is known.
    """

    progress: Callable[[str, int, int | None], None] = lambda *_: None


class Analysis(Protocol[S, R]):
    """One analysis.

    `about` is its command's help. `settings` is a pydantic model, in whose annotations
    `edgeflare._internal.flags.Flag` states flags; `result` is a dataclass of numbers and
    codes, which is stored as JSON and printed by ``--json``.
    """

    name: str
    about: str
    settings: type[S]
    result: type[R]

    def run(self, store: Store, settings: S, context: RunContext) -> R:
        """Return the result. Raises UsageError where the campaign hasn't what it needs."""
        ...

    def sections(self, result: R) -> Iterable[Any]:
        """Return its blocks of a report, see `edgeflare.reports.document`; a heading comes first."""
        ...


class PagePart(NamedTuple):
    """A section of the page. `id` names it in addresses, `link` in the contents."""

    id: str
    link: str
    title: str
    html: Markup
    order: int = 500


class ShownAnalysis(Protocol):
    """What a built-in analysis is in place of an `Analysis`: the page shows what it has stored."""

    def page(self, store: Store, name: Callable[[int | None], str]) -> PagePart | None:
        """Return its section, None where no result is stored; `name` returns a class's name."""
        ...


def analysis_names() -> tuple[str, ...]:
    """Return the names of the analyses that `analysis` returns; nothing is imported.

    The built-in ones are left out: all of them have commands of their own.
    """
    built_in = plugins.built_in("analysis")
    return tuple(name for name in plugins.names("analysis") if name not in built_in)


def analysis(name: str) -> Analysis[Any, Any]:
    """Return the analysis of this name. Raises UsageError where there is none that can be run."""
    if name not in analysis_names():
        installed = ", ".join(analysis_names()) or "none"
        raise UsageError(f"there is no analysis {name!r}; those installed: {installed}")
    loaded: Analysis[Any, Any] = plugins.load("analysis", name)
    if not {*dir(loaded)} >= _PARTS:
        why = f"must be an object with {', '.join(sorted(_PARTS))}"
        raise plugins.unusable("analysis", name, why)
    return loaded


_PARTS = {"about", "result", "run", "sections", "settings"}


def run_analysis(name: str, folder: Path, settings: Mapping[str, Any], context: RunContext) -> Any:
    """Run an analysis of a campaign, store its result there and return it.

    Raises UsageError for an unknown analysis, settings that it doesn't take, and one that fails;
    StoreError.
    """
    plugin = analysis(name)
    try:
        stated = plugin.settings.model_validate(settings)
    except ValidationError as error:
        raise UsageError(problems_of(error, f"analysis {name}")) from error
    with Store.open(folder) as store:
        try:
            result = plugin.run(store, stated, context)
        except EdgeFlareError:
            raise
        except Exception as error:  # the distribution's code: it may raise anything
            why = f"failed: {type(error).__name__}: {error}"
            raise plugins.unusable("analysis", name, why) from error
        with CampaignLock(store.folder):
            store.set_result(_key(name), result)
    return result


def stored_results(store: Store) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield the names of the analyses whose results are stored, and the blocks of these.

    Of an analysis that can't be loaded any more, or not show what it has stored, that is its error
    as a text.
    """
    for name in analysis_names():
        if not store.has_result(_key(name)):
            continue
        try:
            plugin = analysis(name)
            blocks = list(plugin.sections(store.result(_key(name), plugin.result)))
        except UsageError as error:
            blocks = [Text(str(error))]
        except Exception as error:  # noqa: BLE001 - the distribution's code: it may raise anything
            # what is stored doesn't fit a class that was changed since: the campaign isn't damaged
            cause = (error.__cause__ if isinstance(error, StoreError) else None) or error
            why = f"can't show its stored result: {type(cause).__name__}: {reason(cause)}"
            blocks = [Text(str(plugins.unusable("analysis", name, why)))]
        yield name, blocks


def shown_analyses() -> Iterator[ShownAnalysis]:
    """Yield the built-in analyses that have a command of their own."""
    for name in plugins.built_in("analysis"):
        with suppress(UsageError):  # a package that isn't there: the page lacks its sections
            yield plugins.load("analysis", name)


def _key(name: str) -> str:
    return f"analysis {name}"
