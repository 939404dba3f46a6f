"""``demo``, ``init``, ``resume``, ``status``, ``show`` and ``export``."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.guard import say
from edgeflare.cli.options import (
    DEVICES,
    DeviceQueries,
    Devices,
    FleetMode,
    Handover,
    Json,
    OtherDevices,
    Out,
    Patience,
    Python,
    TotalQueries,
)
from edgeflare.cli.parse import without_none
from edgeflare.cli.running import run_config, run_on
from edgeflare.cli.search_options import OriginalTimeout

Campaign = Annotated[Path, typer.Argument(help="A campaign's folder.")]


def demo(
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seed images.")] = 20,
    device: Devices = None,
    fleet: FleetMode = None,
    python: Python = None,
    seed: Annotated[int, typer.Option(help="Fixes all randomness.")] = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Search on real MNIST digits with a real int8 model; no device needed."""
    from edgeflare import demo_config

    devices = device or ["local"]
    config = demo_config(
        seeds=seeds,
        devices=devices,
        fleet=fleet or "split",
        python=python,
        out=out,
        campaign_seed=seed,
    )
    run_config(config, json)


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("campaign.toml"),
) -> None:
    """Write a commented campaign.toml."""
    from edgeflare import write_starter

    write_starter(path)
    say(f"wrote {path}; edit it, then: edgeflare run {path}")


def resume(
    campaign: Campaign,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Go on though a model, seed file or library is not what it was."
        ),
    ] = False,
    device: OtherDevices = None,
    inventory: Annotated[
        Path | None,
        typer.Option(help="Another device inventory than before (TOML).", rich_help_panel=DEVICES),
    ] = None,
    device_queries: DeviceQueries = None,
    total_queries: TotalQueries = None,
    handover: Handover = None,
    patience: Patience = None,
    original_timeout: OriginalTimeout = None,
    json: Json = False,
) -> None:
    """Go on with a campaign that was interrupted, paused or killed; finished seeds are kept."""
    limits = {
        "device_queries": device_queries,
        "total_queries": total_queries,
        "handover_s": handover,
        "patience_s": patience,
    }
    run_on(
        campaign,
        json,
        force=force,
        devices=device or [],
        inventory=inventory,
        fleet_limits=without_none(limits),
        original_timeout_s=original_timeout,
    )


def status(
    campaign: Campaign,
    json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again each second until the campaign ends.")
    ] = False,
) -> None:
    """Show how far a campaign is and what its devices do, while it runs or after."""
    from edgeflare import campaign_status
    from edgeflare.cli.status_view import print_status, watch_status

    if watch:
        watch_status(campaign, json)
    else:
        print_status(campaign_status(campaign), json)


def show(
    campaign: Campaign,
    json: Json = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="With every step from a seed to its trigger.")
    ] = False,
) -> None:
    """Show what a campaign found: success rate, queries, time, label pairs, devices."""
    from edgeflare import summarize
    from edgeflare.cli.tables import print_summary

    print_summary(summarize(campaign), json, wide=wide)


def export(
    campaign: Campaign,
    folder: Annotated[Path, typer.Argument(help="The folder to make.")],
    json: Json = False,
) -> None:
    """Write pictures or sounds of each seed and trigger, their difference, and a JSON line for each."""
    from edgeflare import export_campaign
    from edgeflare.cli.tables import print_export

    print_export(export_campaign(campaign, folder), json)
