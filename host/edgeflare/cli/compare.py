"""``compare``: candidate deployed models of one original, ranked."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeflare.cli.options import (
    Json,
    command_with_flags,
    flags_of_settings,
    folder,
    settings_from,
)
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare._internal.flags import SettingFlag
    from edgeflare.analysis import CompareSettings
    from edgeflare.campaign import Candidates

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
    ran = _run(candidates, settings) if any(not path.is_dir() for path in candidates) else None
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


def _run(candidates: Sequence[Path], settings: "CompareSettings") -> "Candidates | None":
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
