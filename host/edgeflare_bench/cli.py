"""``bench suites``, ``run``, ``resume`` and ``show``."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel, Field

from edgeflare._internal.files import new_folder_name
from edgeflare._internal.flags import Flag, FlagsOfCampaign, Typed
from edgeflare._internal.records import jsonable
from edgeflare._internal.text import counted
from edgeflare.cli.options import Force, Json, command
from edgeflare.cli.terminal import echo_err, with_exit_codes

if TYPE_CHECKING:
    from edgeflare.campaign import BatchProgress
    from edgeflare_bench import BenchReport

app = typer.Typer(
    no_args_is_help=True,
    help="Compare search strategies on several model pairs: a suite of campaigns and its figures.",
)

_NARROWED = "Only a part of the suite"
_FAILED = 3


class _Planted(NamedTuple):
    """A suite of planted faults: the names of what `edgeflare_bench` has of it."""

    settings: str
    run: str
    bench: str
    write: str
    report: str
    document: str

    def of(self, name: str) -> Any:
        """Return a function of the suite, or its class of benches, by its field here."""
        import edgeflare_bench

        return attrgetter(getattr(self, name))(edgeflare_bench)


_PLANTED: Mapping[str, _Planted] = {
    "faults": _Planted(
        *("fault_suite", "run_faults", "FaultBench"),
        *("write_fault_report", "fault_report", "fault_document"),
    ),
    "everyday": _Planted(
        *("everyday_suite", "EverydayBench.run", "EverydayBench"),
        *("write_everyday_report", "everyday_report", "everyday_document"),
    ),
}
"""By the suite's name."""


def _planted_in(folder: Path) -> tuple[str, _Planted] | None:
    """Return which suite of planted faults a folder is a bench of."""
    return next((one for one in _PLANTED.items() if one[1].of("bench").is_in(folder)), None)


class RunSettings(BaseModel):
    """``bench run``."""

    suite: Annotated[str, Flag("suite")] = Field(
        description="A packaged suite (see `bench suites`) or a suite file (TOML)."
    )
    typed: Annotated[
        Typed,
        FlagsOfCampaign(
            *("device", "inventory", "python"),
            python={"help": "The devices' Python command; default python3 there."},
        ),
    ] = Typed()
    data: Annotated[tuple[Path, ...], Flag("--data", metavar="FOLDER")] = Field(
        (),
        description="Where the models and seeds are that it names {data}. May be repeated: each file is looked "
        "for in these folders in order.",
    )
    out: Annotated[Path | None, Flag("--out")] = Field(
        None, description="Folder to make; by default under benches/."
    )
    pairs: Annotated[tuple[str, ...], Flag("--pair", metavar="NAME", panel=_NARROWED)] = Field(
        (), description="Only this pair (of faults: this original); may be repeated."
    )
    strategies: Annotated[tuple[str, ...], Flag("--strategy", metavar="NAME", panel=_NARROWED)] = (
        Field((), description="Only this strategy; may be repeated.")
    )
    seeds: Annotated[int | None, Flag("--seeds", panel=_NARROWED)] = Field(
        None, ge=1, description="So many seed inputs of each pair (of faults: 10 at least)."
    )
    repeats: Annotated[int | None, Flag("--repeats", panel=_NARROWED)] = Field(
        None, ge=1, description="So many random seeds (of faults: draws of each kind and size)."
    )
    max_queries: Annotated[int | None, Flag("--max-queries", panel=_NARROWED)] = Field(
        None, ge=0, description="Search queries for each seed; 0: no limit."
    )
    reserved: Annotated[bool, Flag("--reserved", panel=_NARROWED)] = Field(
        False, description="Of faults: the draws that are looked at only for a final table."
    )
    gradients: Annotated[bool, Flag("--gradients/--no-gradients", panel=_NARROWED)] = Field(
        True,
        description="Of faults: search witnesses by gradients, too (slow for large models; needs the extra "
        "torch).",
    )


class BenchSettings(BaseModel):
    """Commands on a bench."""

    folder: Annotated[Path, Flag("folder")] = Field(description="A bench's folder.")


class ResumeSettings(BenchSettings):
    """``bench resume``."""

    typed: Annotated[Typed, FlagsOfCampaign("device", "inventory")] = Typed()


class ShowSettings(BenchSettings):
    """``bench show``."""

    searches: Annotated[bool, Flag("--searches")] = Field(
        False, description="Every single search, too."
    )


@app.command()
@with_exit_codes
def suites(json: Json = False) -> None:
    """List the suites that come with EdgeFlare."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import table_of
    from edgeflare_bench import EVERYDAY_ABOUT, FAULTS_ABOUT, suite_about, suite_names

    found = sorted([*map(suite_about, suite_names()), FAULTS_ABOUT, EVERYDAY_ABOUT])
    rows = [(*one[:2], "--data FOLDER" if one.needs_data else "nothing") for one in found]
    table = table_of(("suite", "title", "needs"), rows, text=3)
    print_result(json, lambda: [one._asdict() for one in found], lambda: [table])


@command(app, lambda: RunSettings)
def run(settings: RunSettings, json: Json = False) -> None:
    """Run every strategy of a suite on every pair, several times, and compare them.

    The suite faults plants faults into float models, and reports which of them the survey finds,
    and which the verdict tells apart from healthy compressed models. The suite everyday plants faults of
    everyday deployment, and reports for which of them the first answer is right.
    """
    stated, suite = settings.typed, settings.suite
    if suite == "faults":
        unused = {"--max-queries": settings.max_queries, **dict.fromkeys(stated.flags.values(), 1)}
        _check_unused(unused, "the suite faults has a fixed budget and runs on this host")
        _run_planted(
            suite,
            settings.out or new_folder_name("benches", suite),
            json,
            data=settings.data,
            originals=settings.pairs,
            methods=settings.strategies,
            reserved=settings.reserved,
            gradients=None if settings.gradients else False,
            seeds=settings.seeds,
            draws=settings.repeats,
        )
        return
    if suite == "everyday":
        unused = {
            "--max-queries": settings.max_queries,
            "--seeds": settings.seeds,
            "--repeats": settings.repeats,
            "--no-gradients": None if settings.gradients else True,
            **dict.fromkeys(stated.flags.values(), 1),
        }
        # draws and seeds are fixed, so that two runs answer about the same faults
        _check_unused(unused, "the suite everyday has its own seeds and runs on this host")
        _run_planted(
            suite,
            settings.out or new_folder_name("benches", suite),
            json,
            data=settings.data,
            originals=settings.pairs or None,
            kinds=settings.strategies,
            reserved=settings.reserved,
        )
        return
    unused = {
        "--reserved": settings.reserved or None,
        "--no-gradients": None if settings.gradients else True,
    }
    _check_unused(unused, "only the suites faults and everyday have planted faults")
    from edgeflare.cli.terminal import ask
    from edgeflare_bench import load_suite, run_bench

    chosen = load_suite(suite, [*settings.data] or None).narrowed(
        pairs=settings.pairs,
        strategies=settings.strategies,
        seeds=settings.seeds,
        repeats=settings.repeats,
        max_queries=settings.max_queries,
    )
    folder = settings.out or new_folder_name("benches", chosen.name)
    _run(
        folder,
        lambda progress: run_bench(
            chosen, folder, **{"devices": ["local"], **stated.values}, ask=ask, progress=progress
        ),
        json,
    )


@command(app, lambda: ResumeSettings)
def resume(settings: ResumeSettings, force: Force = False, json: Json = False) -> None:
    """Go on with a bench that was interrupted or killed; finished cells are kept."""
    from edgeflare.cli.terminal import ask
    from edgeflare_bench import resume_bench

    stated, folder = settings.typed, settings.folder
    if (planted := _planted_in(folder)) is not None:
        given = dict.fromkeys(stated.flags.values(), True)
        _check_unused(given, f"the suite {planted[0]} runs on this host")
        _run_planted(planted[0], folder, json)
        return
    _run(
        folder,
        lambda progress: resume_bench(
            folder, force=force, **stated.values, ask=ask, progress=progress
        ),
        json,
    )


@command(app, lambda: ShowSettings)
def show(settings: ShowSettings, json: Json = False) -> None:
    """Show what a bench found so far, and write its report's files again."""
    from edgeflare import StoreError
    from edgeflare_bench import bench_report, write_report

    folder, searches = settings.folder, settings.searches
    if (planted := _planted_in(folder)) is not None:
        name, functions = planted
        _check_unused(
            {"--searches": searches or None}, f"the suite {name} keeps no single searches"
        )
        _show_planted(functions, functions.of("bench").open(folder), json)
        return
    report = bench_report(folder)
    try:
        write_report(report, folder)
    except StoreError as error:
        echo_err(f"note: the report's files are as they were: {error}")
    print_bench(report, json, searches=searches)


def _run(
    folder: Path, bench: Callable[[Callable[["BatchProgress"], None]], Path], json: bool
) -> None:
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.terminal import handling_signals
    from edgeflare.words.campaign import NOTHING_LEFT
    from edgeflare_bench import bench_report, write_report
    from edgeflare_bench.words.report import resume_command

    again = resume_command(folder)
    advice = f"the cells that are finished are kept; go on with: {again}"
    with (
        handling_signals() as stop,
        batch_display(stop, what="cell ", advice=lambda _: advice) as progress,
    ):
        bench(progress)
    if progress.last is None:
        echo_err(f"note: {NOTHING_LEFT.format(folder)}")
    report = bench_report(folder)
    try:
        write_report(report, folder)
    finally:
        print_bench(report, json)
    if not json:
        echo_err(f"\nEverything is in {folder}; the report is {folder / 'report.md'}")
    if report.failed:
        cells = counted(len(report.failed), "cell")
        echo_err(f"edgeflare: {cells} can't be run, see above; once that is mended: {again}")
        raise typer.Exit(_FAILED)


def _check_unused(given: Mapping[str, Any], why: str) -> None:
    from edgeflare import UsageError

    for flag, value in given.items():
        if value is not None:
            raise UsageError(f"{why}; leave {flag} out")


def _run_planted(suite: str, folder: Path, json: bool, **settings: Any) -> None:
    """Run a suite of planted faults with these settings; without any, go on with the bench there."""
    from edgeflare.cli.terminal import handling_signals
    from edgeflare_bench.words.report import resume_command

    functions, evaluated = _PLANTED[suite], False

    def watch(one: Any) -> None:
        nonlocal evaluated
        evaluated = True
        echo_err(f"{one.original}: {one.name}: {one.words}")

    try:
        with handling_signals():
            if settings:
                chosen = functions.of("settings")(**settings)
                bench = functions.of("run")(chosen, folder, watch)
            else:
                bench = functions.of("bench").resume(folder, watch)
    except KeyboardInterrupt:
        if evaluated:
            again = resume_command(folder)
            echo_err(f"note: the models evaluated so far are kept; go on with: {again}")
        raise
    _show_planted(functions, bench, json)


def _show_planted(functions: _Planted, bench: Any, json: bool) -> None:
    from edgeflare import StoreError
    from edgeflare.cli.display.tables import print_result

    try:
        where = f"; the report is {functions.of('write')(bench)}"
    except StoreError as error:
        where = f"; the report's files are as they were: {error}"
    print_result(
        json, lambda: functions.of("report")(bench), lambda: functions.of("document")(bench)
    )
    if not json:
        echo_err(f"\nEverything is in {bench.folder}{where}")


def print_bench(report: "BenchReport", as_json: bool, *, searches: bool = False) -> None:
    """Print what a bench found so far; `searches`: with each of them."""
    from edgeflare.cli.display.tables import print_result
    from edgeflare_bench import bench_summary

    def values() -> Any:
        every = {"searches": [row.to_json() for row in report.searches]} if searches else {}
        return jsonable(report.to_json() | every)

    print_result(as_json, values, lambda: bench_summary(report, searches=searches))
