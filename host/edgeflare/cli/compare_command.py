# ruff: noqa: ARG001 - the parameters are what the user may type; `context` has them all
"""``compare``: candidate deployed models of one original, ranked."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from edgeflare.cli.guard import say
from edgeflare.cli.options import Devices, Inventory, Json, Python
from edgeflare.cli.pair_options import (
    FILES,
    Cut,
    Decoder,
    DeployedInput,
    DeployedOutput,
    DeployedOutputName,
    Input,
    Labels,
    Limit,
    Original,
    OriginalInput,
    OriginalOutput,
    OriginalOutputName,
    Output,
    OutputName,
    Pairs,
    ResampleAudio,
    Resize,
    RuntimeOption,
    Seeds,
)
from edgeflare.cli.search_options import (
    SEARCH,
    AllowDisagreement,
    DeviceBudget,
    MarginFloor,
    MaxQueries,
    OneTrip,
    Oracle,
    RandomSeed,
    Timeout,
    Tolerance,
)

if TYPE_CHECKING:
    from edgeflare import CampaignConfig, CandidateProgress, Candidates, Measure

_FAILED = 3
_NO_SETTINGS = ("candidates", "measure", "level", "out", "json")
"""The parameters that make no configuration."""


def compare(
    context: typer.Context,
    candidates: Annotated[
        list[Path],
        typer.Argument(
            metavar="CANDIDATE...",
            help="Deployed model files, folders of campaigns or of comparisons, or both.",
        ),
    ],
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What ranks: disagreement (how far both models' answers to the worst trigger are apart; the "
            "default), severity (how sure both are of different classes there) or queries (to the "
            "first trigger, as in the paper). The search follows from it.",
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
    original: Original = None,
    seeds: Seeds = None,
    input_: Input = None,
    original_input: OriginalInput = None,
    deployed_input: DeployedInput = None,
    output: Output = None,
    original_output: OriginalOutput = None,
    deployed_output: DeployedOutput = None,
    output_name: OutputName = None,
    original_output_name: OriginalOutputName = None,
    deployed_output_name: DeployedOutputName = None,
    decoder: Decoder = None,
    runtime_option: RuntimeOption = None,
    resize: Resize = None,
    cut: Cut = None,
    resample_audio: ResampleAudio = None,
    labels: Labels = None,
    limit: Limit = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the candidates' campaigns; by default a new one under comparisons/. Named again, "
            "what is finished in it is kept and the rest goes on.",
            rich_help_panel=FILES,
        ),
    ] = None,
    device: Devices = None,
    inventory: Inventory = None,
    python: Python = None,
    one_trip: OneTrip = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The search strategy; by default boundary, for the measure queries dflare.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    option: Annotated[
        Pairs,
        typer.Option(
            metavar="KEY=VALUE",
            help="For the strategy, as of edgeflare run; may be repeated.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    device_budget: DeviceBudget = None,
    max_queries: MaxQueries = None,
    timeout: Timeout = None,
    oracle: Oracle = None,
    tolerance: Tolerance = None,
    margin_floor: MarginFloor = None,
    seed: RandomSeed = None,
    allow_disagreement: AllowDisagreement = None,
    json: Json = False,
) -> None:
    """Rank candidate deployed models of one original by how hard they are to make deviate."""
    from edgeflare import EdgeFlareError, candidates_named, rank_campaigns
    from edgeflare.cli.tables import print_result
    from edgeflare.reports import ranking_document

    candidates = list(candidates_named(candidates, level=level))
    chosen = cast("Measure | None", measure)
    ran = _run(candidates, context.params)
    failed = {run.name: run.failed for run in ran.runs if run.failed} if ran else {}
    folders = _folders(candidates, ran)
    if len(folders) < 2:
        for name, why in failed.items():
            say(f"not ranked: {name}: {why}")
        if ran is not None:
            say(_goes_on(ran))
        say("edgeflare: fewer than two candidates are left, so that there is nothing to rank")
        raise typer.Exit(_FAILED)
    try:
        ranking = rank_campaigns(folders, measure=chosen, level=level)
    except EdgeFlareError:
        if ran is not None:
            say(_goes_on(ran))
        raise
    more = {"failed": failed, "folder": str(ran.folder) if ran else None}
    print_result(json, lambda: ranking.to_json() | more, lambda: ranking_document(ranking, failed))
    if ran and not json:
        say(f"\nThe candidates' campaigns are in {ran.folder}")
    if failed:
        raise typer.Exit(_FAILED)


def _run(candidates: Sequence[Path], flags: Mapping[str, Any]) -> "Candidates | None":
    """Run the campaigns of those candidates that are model files; None where there are none."""
    from edgeflare import Stage, run_candidates
    from edgeflare.cli.prompt import ask
    from edgeflare.cli.stopping import stoppable
    from edgeflare.cli.watch import watching

    models = [path for path in candidates if not path.is_dir()]
    if not models:
        return None
    like = _like(candidates, models[0], flags)
    with stoppable() as stop, watching(stop) as watch:

        def progress(report: "CandidateProgress") -> None:
            begins = Stage("candidate", f"{report.name}, {report.number} of {report.total}")
            watch(begins if report.event is None else report.event)

        return run_candidates(
            like, models, measure=flags["measure"], out=flags["out"], ask=ask, progress=progress
        )


def _like(
    candidates: Sequence[Path], model: Path, flags: Mapping[str, Any]
) -> "CampaignConfig | Path":
    """Return what to run the candidates like: as the flags say, else like the first campaign that is named."""
    from edgeflare import UsageError, config_from, load_config
    from edgeflare.cli.parse import without_none
    from edgeflare.cli.run_flags import values_of

    stated = without_none({name: flags[name] for name in flags if name not in _NO_SETTINGS})
    campaign = next((path for path in candidates if path.is_dir()), None)
    if campaign is not None and not stated:
        return campaign
    values = values_of({**flags, "deployed": model, "out": None})
    if flags["campaign"] is not None:
        return load_config(flags["campaign"], values)
    missing = [name for name in ("original", "seeds") if flags[name] is None]
    if missing:
        raise UsageError(
            f"{' and '.join(f'--{name}' for name in missing)} {'is' if len(missing) == 1 else 'are'} missing: to run "
            "candidates that are model files, give both --original MODEL and --seeds FOLDER, or --campaign with "
            "a campaign.toml (`edgeflare init` writes one)"
        )
    return config_from(values, "compare")


def _folders(candidates: Sequence[Path], ran: "Candidates | None") -> list[Path]:
    """Return the campaigns' folders in the order the candidates were named, without those that failed."""
    runs = {run.model: run for run in ran.runs} if ran else {}
    found = []
    for path in candidates:
        run = runs.get(path.expanduser().absolute())
        if run is None or run.failed is None:
            found.append(path if run is None else run.folder)
    return found


def _goes_on(ran: "Candidates") -> str:
    """Say where the work lies that was done before something failed."""
    return (
        f"The candidates' campaigns lie in {ran.folder}; the same command with --out "
        f"{shlex.quote(str(ran.folder))} goes on from there"
    )
