"""Analyses of a campaign by name: each has settings, a result, and sections of the reports.

An analysis is an object of the entry points ``edgeflare.analyses``, as `Analysis` has it. It is a
command, ``edgeflare analyse NAME CAMPAIGN``, whose flags its settings state. Its newest result is
stored in the campaign, and its sections are in every report. EdgeFlare's own are such objects, too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from edgeflare._internal import plugins
from edgeflare._internal.flags import problems_of
from edgeflare._internal.text import reason
from edgeflare.campaign.context import RunContext as RunContext  # noqa: PLC0414 - exported
from edgeflare.campaign.events import Notice
from edgeflare.document import Block, Heading, Name, Section, Text
from edgeflare.errors import DiskFullError, EdgeFlareError, StoreError, UnwritableError, UsageError
from edgeflare.store import CampaignLock, Store
from edgeflare.store.analyses import AnalysisRun, UnitRows
from edgeflare.words.campaign import NOT_IN_REPORT

S = TypeVar("S", bound=BaseModel)
R = TypeVar("R")


@dataclass(frozen=True)
class WithUnitScores(Generic[R]):
    """What an analysis returns with the rows that replace the campaign's table unit_scores."""

    result: R
    rows: UnitRows


class Analysis(Protocol[S, R]):
    """One analysis; what has a value here need not be stated by a class that isn't derived from it.

    `about` is its command's help. `settings` is a pydantic model, in whose annotations
    `edgeflare.campaign.settings.flags.Flag` states flags; `result` is a frozen dataclass of numbers and
    codes, which is stored as JSON. With the `scope` "campaigns" it takes several, with "folder" one that
    may be no campaign's; what it returns isn't stored then. One that is `exclusive` has the campaign
    locked while it runs, so that nobody else writes to it; others may be run while the campaign
    runs. The result of one that isn't `stored` is
    printed alone; what it keeps in case it is interrupted is deleted when it ends. With ``in_reports``
    false it is stored, but reports tell it elsewhere.

    Further parts are optional: ``to_json(result)`` returns what ``--json`` prints, by default
    that of the result, or its fields; ``advice(result)`` returns a line for the user on what to do next,
    "" for none; ``write(result, settings)`` writes files that the settings name, once the result is
    printed; ``limits(result)`` returns `LimitCheck`s, by which the command ends as
    ``edgeflare run`` does, ``exit_code(result)`` what it ends with else. ``argument`` is the
    `edgeflare.campaign.settings.flags.Flag` of the campaigns, where these have another name or a help of
    their own. One that runs several campaigns reports them to the context's `batch`: ``each`` is what
    one of them is called in a terminal, and ``go_on(last)`` returns how to continue where the
    command fails after it reported `last`.
    """

    name: str
    about: str
    settings: type[S]
    result: type[R]
    scope: Literal["campaign", "campaigns", "folder"] = "campaign"
    exclusive: bool = False
    stored: bool = True

    def run(self, campaign: Any, settings: S, context: RunContext) -> R | WithUnitScores[R]:
        """Return the result.

        `campaign` is the open `Store`; with another scope it is the list of folders. Raises UsageError
        where the campaign hasn't what it needs.
        """
        ...

    def sections(self, result: R, names: Name, store: Store | None) -> Iterable[Section | Block]:
        """Return what reports show of it; blocks alone become one section, a heading first its title.

        `names` returns the names of classes. The `store`, where there is one, has the samples that
        pictures are made of. One that takes the result alone, or result and names, is given these.
        """
        ...


_PARTS = {"about", "result", "run", "sections", "settings"}


def analysis_names() -> tuple[str, ...]:
    """Return the names of the analyses that `analysis` returns; nothing is imported."""
    return plugins.names("analysis")


def analysis(name: str) -> Analysis[Any, Any]:
    """Return the analysis of this name. Raises UsageError where there is none that can be run."""
    if name not in analysis_names():
        plugins.check_current("analysis", name)
        installed = ", ".join(analysis_names()) or "none"
        raise UsageError(f"there is no analysis {name!r}; those installed: {installed}")
    loaded: Analysis[Any, Any] = plugins.load("analysis", name)
    if not {*dir(loaded)} >= _PARTS:
        raise plugins.unusable(
            "analysis", name, f"must be an object with {', '.join(sorted(_PARTS))}"
        )
    return loaded


def run_analysis(
    name: str,
    folder: Path | Sequence[Path],
    settings: Mapping[str, Any] | BaseModel,
    context: RunContext,
) -> Any:
    """Run an analysis of a campaign, or of several where it takes these; store its result and return it.

    What it had finished when it was interrupted with the same settings is there again. While another
    process writes to the campaign the result isn't stored: a notice says so, in the result's own
    `notices` where it has these.

    Raises UsageError for an unknown analysis, settings that it doesn't take, and one that fails;
    StoreError.
    """
    return run_as(analysis(name), name, folder, settings, context)


def run_as(
    plugin: Analysis[S, R],
    name: str,
    folder: Path | Sequence[Path],
    settings: Mapping[str, Any] | BaseModel,
    context: RunContext,
) -> R:
    """Run an analysis that is stored under this name, see `run_analysis`."""
    try:
        stated = plugin.settings.model_validate(settings)
    except ValidationError as error:
        raise UsageError(problems_of(error, f"analysis {name}")) from error
    if not isinstance(folder, Path) or getattr(plugin, "scope", "campaign") != "campaign":
        folders = [folder] if isinstance(folder, Path) else [*folder]
        return _run(plugin, name, folders, stated, context)[0]
    with Store.open(folder.absolute()) as store:
        exclusive = getattr(plugin, "exclusive", False)
        with CampaignLock(store.folder) if exclusive else nullcontext():
            values = stated.model_dump(mode="json")
            resume = _Resume(partial(store.analysis_run, name, values))
            inner = replace(context, folder=store.folder.joinpath, resume=resume)
            result, rows = _run(plugin, name, store, stated, inner)
            if not getattr(plugin, "stored", True):
                if resume.run is not None:
                    with suppress(UnwritableError):
                        resume.run.forget()
                return result
            try:
                with nullcontext() if exclusive else CampaignLock(store.folder):
                    if resume.run is not None:
                        resume.run.finish(result, rows)
                    else:
                        store.add_result(name, result, settings=values, units=rows)
            except DiskFullError:
                raise
            except StoreError as error:
                text = NOT_IN_REPORT.format(error)
                if not hasattr(result, "notices"):
                    context.progress(Notice(text))
                    return result
                with_notices: Any = result
                changed: R = replace(with_notices, notices=(*with_notices.notices, text))
                return changed
    return result


class _Resume(MutableMapping[str, Any]):
    """What a run of an analysis finished before it was interrupted.

    What is put here is stored at once, unless the campaign can't be written to; `run` is the stored
    run, None as long as nobody has asked. The campaign isn't locked for it: it may be run meanwhile.
    """

    def __init__(self, begin: Callable[[], AnalysisRun]) -> None:
        self.run: AnalysisRun | None = None
        self._begin = begin
        self._parts: dict[str, Any] | None = None

    def _known(self) -> dict[str, Any]:
        if self._parts is None:
            self._parts = {}
            with suppress(UnwritableError):
                self.run = self._begin()
                self._parts = dict(self.run.parts)
        return self._parts

    def __getitem__(self, name: str) -> Any:
        return self._known()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._known()[name] = value
        if self.run is not None:
            with suppress(UnwritableError):
                self.run.parts[name] = value

    def __delitem__(self, name: str) -> None:
        del self._known()[name]
        if self.run is not None:
            with suppress(UnwritableError):
                self.run.parts.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())


def _run(
    plugin: Analysis[S, R], name: str, campaign: object, settings: S, context: RunContext
) -> tuple[R, UnitRows | None]:
    try:
        returned = plugin.run(campaign, settings, context)
    except EdgeFlareError:
        raise
    except Exception as error:  # the distribution's code: it may raise anything
        if plugins.origin("analysis", name) is None:
            raise
        why = f"failed: {type(error).__name__}: {error}"
        raise plugins.unusable("analysis", name, why) from error
    if isinstance(returned, WithUnitScores):
        return returned.result, returned.rows
    if not isinstance(returned, plugin.result):
        kind = type(returned).__name__
        why = f"returned {kind}, which isn't its result {plugin.result.__name__}"
        if plugins.origin("analysis", name) is None:
            raise TypeError(f"the analysis {name!r} {why}")
        raise plugins.unusable("analysis", name, why)
    return returned, None


def sections_of(
    plugin: Analysis[Any, R], name: str, result: R, names: Name, store: Store | None = None
) -> tuple[Section, ...]:
    """Return the sections of a result; the first has the result as its data where it states none."""
    make: Any = plugin.sections
    parts = [*make(*(result, names, store)[: len(signature(make).parameters)])]
    sections = [part for part in parts if isinstance(part, Section)]
    blocks = [part for part in parts if not isinstance(part, Section)]
    if blocks:
        first = blocks[0]
        title = first.text if isinstance(first, Heading) else name
        further = blocks[1:] if isinstance(first, Heading) else blocks
        sections.insert(0, Section(f"analysis-{name}", title, tuple(further)))
    if sections and sections[0].data is None:
        sections[0] = replace(sections[0], data=result)
    return tuple(sections)


def stored_sections(store: Store, names: Name) -> Iterator[Section]:
    """Yield the sections of the newest stored result of each analysis, by the sections' order.

    Of an analysis that can't be loaded any more, or not show what it has stored, that is its error
    as a text.
    """
    stored = {one.name for one in store.results()}
    found = (name for name in analysis_names() if name in stored)
    sections = (part for name in found for part in _stored(store, name, names))
    yield from sorted(sections, key=lambda section: section.order)


def _stored(store: Store, name: str, names: Name) -> tuple[Section, ...]:
    try:
        plugin = analysis(name)
        if not getattr(plugin, "in_reports", True):
            return ()
        result = store.result(name, plugin.result)
        return () if result is None else sections_of(plugin, name, result, names, store)
    except UsageError as error:
        problem = str(error)
    except Exception as error:
        # what is stored doesn't fit a class that was changed since: the campaign isn't damaged
        if plugins.origin("analysis", name) is None:
            raise
        cause = (error.__cause__ if isinstance(error, StoreError) else None) or error
        why = f"can't show its stored result: {type(cause).__name__}: {reason(cause)}"
        problem = str(plugins.unusable("analysis", name, why))
    return (Section(f"analysis-{name}", name, (Text(problem),)),)
