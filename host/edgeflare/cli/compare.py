"""``compare``: candidate deployed models of one original, ranked."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from edgeflare.cli.options import FILES, Json, command_with, folder, typed
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare import CampaignConfig
    from edgeflare._internal.flags import Typed
    from edgeflare.campaign import Candidates, Measure

_FAILED = 3
CompareCommand = command_with(
    *("original", "seeds", "input", "original_input", "deployed_input", "output"),
    *("input_name", "original_input_name", "deployed_input_name", "fixed_inputs"),
    *("original_fixed_inputs", "deployed_fixed_inputs"),
    *("original_output", "deployed_output", "output_name", "original_output_name"),
    *("deployed_output_name", "decoder", "runtime_option", "resize", "cut", "resample_audio"),
    *("labels", "limit", "device", "inventory", "python", "one_trip", "strategy", "option"),
    *("device_budget", "max_queries", "timeout", "oracle", "tolerance", "margin_floor"),
    *("task", "confidence", "nms", "match_iou", "shift_iou", "keep_boxes", "class_names"),
    *("seed", "survey_queries", "sure", "family", "reference", "allow_disagreement"),
    strategy={"help": "The search strategy; by default boundary, for the measure queries dflare."},
    option={"help": "For the strategy, as of edgeflare run; may be repeated."},
)


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
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What ranks: disagreement (how far both models' answers to the worst trigger are "
            "apart; the default), severity (how sure both are of different classes there) or "
            "queries (to the first trigger, as in the paper). The search follows from it.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="SHARE", help="Confidence in all verdicts together.")
    ] = 0.95,
    campaign: Annotated[
        Path | None,
        typer.Option(
            help="A campaign.toml that says everything but the deployed model.",
            rich_help_panel=FILES,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the candidates' campaigns; by default a new one under comparisons/. "
            "Named again, what is finished in it is kept and the rest goes on.",
            rich_help_panel=FILES,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Rank candidate deployed models of one original by how hard they are to make deviate."""
    from edgeflare import EdgeFlareError, rank_campaigns
    from edgeflare.campaign import candidates_named

    candidates = list(candidates_named(candidates, level=level))
    chosen = cast("Measure | None", measure)
    models = [path for path in candidates if not path.is_dir()]
    ran = None
    if models:
        like = _like(candidates, models[0], campaign, typed(context.obj))
        ran = _run(like, models, measure, out)
    failed = {run.name: run.failed for run in ran.runs if run.failed} if ran else {}
    folders = _folders(candidates, ran)
    if len(folders) < 2:
        for name, why in failed.items():
            echo_err(f"not ranked: {name}: {why}")
        if ran is not None:
            echo_err(_resume_advice(ran.folder))
        echo_err("edgeflare: fewer than two candidates are left, so that there is nothing to rank")
        raise typer.Exit(_FAILED)
    try:
        ranking = rank_campaigns(folders, measure=chosen, level=level)
    except EdgeFlareError:
        if ran is not None:
            echo_err(_resume_advice(ran.folder))
        raise
    more = {"failed": failed, "folder": str(ran.folder) if ran else None}
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import ranking_document

    print_result(json, lambda: ranking.to_json() | more, lambda: ranking_document(ranking, failed))
    if ran and not json:
        echo_err(f"\nThe candidates' campaigns are in {ran.folder}")
    if failed:
        raise typer.Exit(_FAILED)


def _run(
    like: "CampaignConfig | Path", models: Sequence[Path], measure: str | None, out: Path | None
) -> "Candidates":
    """Run the campaigns of those candidates that are model files."""
    from edgeflare import run_candidates
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.terminal import ask, handling_signals

    with (
        handling_signals() as stop,
        batch_display(
            stop, what="candidate ", advice=lambda last: _resume_advice(last.folder.parent)
        ) as watch,
    ):
        return run_candidates(like, models, measure=measure, out=out, ask=ask, progress=watch)


def _like(
    candidates: Sequence[Path], model: Path, campaign: Path | None, stated: "Typed"
) -> "CampaignConfig | Path":
    """Return the candidates' configuration: by flags, or the first named campaign's folder."""
    from edgeflare import UsageError, config_from, load_config

    folder = next((path for path in candidates if path.is_dir()), None)
    if folder is not None and campaign is None and not stated.values:
        return folder
    missing = [f"--{name}" for name in ("original", "seeds") if not stated.has(name)]
    stated.values.setdefault("deployed", {})["path"] = model
    if campaign is not None:
        return _checked(load_config(campaign, stated.values, stated.flags))
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: to run "
            "candidates that are model files, give both --original MODEL and --seeds FOLDER, or "
            "--campaign with a campaign.toml (`edgeflare init` writes one)"
        )
    return _checked(config_from(stated.values, "compare", stated.flags))


def _checked(config: "CampaignConfig") -> "CampaignConfig":
    from edgeflare.analysis import check_healthy

    check_healthy(config.survey.references)
    return config


def _folders(candidates: Sequence[Path], ran: "Candidates | None") -> list[Path]:
    """Return the campaigns' folders, in the candidates' order, without those that failed."""
    runs = {run.model: run for run in ran.runs} if ran else {}
    found = []
    for path in candidates:
        run = runs.get(path.expanduser().absolute())
        if run is None or run.failed is None:
            found.append(path if run is None else run.folder)
    return found


def _resume_advice(folder: Path) -> str:
    """Return the sentence on where the finished campaigns are and how to continue."""
    return (
        f"The candidates' campaigns lie in {folder}; the same command with --out "
        f"{shlex.quote(str(folder))} goes on from there"
    )
