"""``compare`` and ``nightly``, which run several campaigns."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeflare.cli.options import Json, command_with_flags, flags_of_settings, folder, settings_from
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare._internal.flags import SettingFlag
    from edgeflare.analysis import CompareSettings
    from edgeflare.campaign import Candidates
    from edgeflare.cli.settings import NightlySettings


_FAILED = 3


def _flags() -> "Sequence[SettingFlag]":
    from edgeflare.analysis import CompareSettings

    return flags_of_settings(CompareSettings)


CompareCommand = command_with_flags(_flags)


def compare(
    context: typer.Context,
    candidates: Annotated[
        list[Path],
        typer.Argument(
            metavar="CANDIDATE...",
            parser=folder,
            help="Deployed model files, folders (or addresses) of campaigns or of comparisons, or "
            "both.",
        ),
    ],
    json: Json = False,
) -> None:
    """Rank candidate deployed models of one original by how hard they are to make deviate."""
    from edgeflare import EdgeFlareError
    from edgeflare.analysis import CompareSettings, rank_candidates
    from edgeflare.campaign import candidates_named
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import ranking_document

    settings = settings_from(CompareSettings, context.obj, "compare")
    candidates = list(candidates_named(candidates, level=settings.level))
    ran = (
        _run_models(candidates, settings) if any(not path.is_dir() for path in candidates) else None
    )
    failed = ran.failed if ran else {}
    if len(candidates) - len(failed) < 2:
        for name, why in failed.items():
            echo_err(f"not ranked: {name}: {why}")
        if ran is not None:
            echo_err(_resume_advice(ran.folder))
        echo_err("edgeflare: fewer than two candidates are left, so that there is nothing to rank")
        raise typer.Exit(_FAILED)
    try:
        comparison = rank_candidates(candidates, ran, settings)
    except EdgeFlareError:
        if ran is not None:
            echo_err(_resume_advice(ran.folder))
        raise
    print_result(
        json,
        comparison.to_json,
        lambda: ranking_document(comparison.ranking, failed),
    )
    if ran and not json:
        echo_err(f"\nThe candidates' campaigns are in {ran.folder}")
    if failed:
        raise typer.Exit(_FAILED)


def _run_models(candidates: Sequence[Path], settings: "CompareSettings") -> "Candidates | None":
    """Run the campaigns of those candidates that are model files."""
    from edgeflare.analysis import run_models
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.terminal import ask, handling_signals

    with (
        handling_signals() as stop,
        batch_display(
            stop, what="candidate ", advice=lambda last: _resume_advice(last.folder.parent)
        ) as watch,
    ):
        return run_models(candidates, settings, progress=watch, ask=ask)


def _resume_advice(folder: Path) -> str:
    """Return the sentence on where the finished campaigns are and how to continue."""
    return (
        f"The candidates' campaigns lie in {folder}; the same command with --out "
        f"{shlex.quote(str(folder))} goes on from there"
    )


def nightly(settings: "NightlySettings", json: Json = False) -> None:
    """Run every model on every device, and hold each against its last green night.

    What deviated before is sent again, then a budgeted search runs, then both nights are compared.
    Ends with 1 where a model got worse or a limit was crossed, else with 3 where a device was away
    or a run failed, else with 4 where it can't be told whether a limit is kept, else with 0.
    """
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.display.tables import print_accepted, print_night, state_word
    from edgeflare.cli.terminal import INTERRUPTED, ask, handling_signals
    from edgeflare.nightly import accept_night, load_nightly, run_nightly

    loaded = load_nightly(settings.config)
    models, devices = settings.models, settings.devices
    if settings.accept:
        lines = accept_night(loaded, models=models, devices=devices)
        print_accepted(lines, json)
        return
    try:
        with (
            handling_signals() as stop,
            batch_display(stop, result=lambda run: state_word(run.ended)) as progress,
        ):
            night = run_nightly(
                loaded,
                models=models,
                devices=devices,
                ask=ask,
                progress=progress,
                stopped=lambda: stop.asked,
            )
    except KeyboardInterrupt as interrupt:
        echo_err(
            "edgeflare: interrupted; what is finished is kept; run it again: "
            + _night_again(settings.config, models, devices)
        )
        raise typer.Exit(INTERRUPTED) from interrupt
    print_night(night, json)
    if not json:
        echo_err(
            f"\nEverything is in {night.folder}; the trend page is {loaded.history / 'index.html'}"
        )
    if night.exit_code:
        raise typer.Exit(night.exit_code)


def _night_again(config: Path, models: Sequence[str], devices: Sequence[str]) -> str:
    """Return the command that runs the same night."""
    narrowed = [
        *(part for name in models for part in ("--model", name)),
        *(part for name in devices for part in ("--device", name)),
    ]
    return shlex.join(["edgeflare", "nightly", str(config), *narrowed])
