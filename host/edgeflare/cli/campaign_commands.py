"""``demo``, ``init``, ``resume``, ``status``, ``show`` and ``export``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.guard import say
from edgeflare.cli.options import Json, command_with, typed
from edgeflare.cli.running import run_and_show

Campaign = Annotated[Path, typer.Argument(help="A campaign's folder.")]


DemoCommand = command_with("device", "fleet", "python", "out")
ResumeCommand = command_with(
    *("device", "inventory", "device_queries", "total_queries", "handover", "patience"),
    "original_timeout",
    device={"help": "Other devices than the campaign's; may be repeated."},
    inventory={"help": "Another device inventory than before (TOML)."},
)


def demo(
    context: typer.Context,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seed images.")] = 20,
    seed: Annotated[int, typer.Option(help="Fixes all randomness.")] = 0,
    json: Json = False,
) -> None:
    """Search on real MNIST digits with a real int8 model; no device needed."""
    from edgeflare import run_campaign
    from edgeflare.campaign import demo_config

    stated = typed(context.obj)
    config = demo_config(stated.values, stated.flags, seeds=seeds, campaign_seed=seed)
    run_and_show(partial(run_campaign, config), json)


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("campaign.toml"),
) -> None:
    """Write a commented campaign.toml."""
    from edgeflare.campaign import write_starter

    write_starter(path)
    say(f"wrote {path}; edit it, then: edgeflare run {path}")


def resume(
    context: typer.Context,
    campaign: Campaign,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Go on though a model, seed file or library is not what it was."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Go on with a campaign that was interrupted, paused or killed; finished seeds are kept."""
    from edgeflare import resume_campaign

    stated = typed(context.obj)
    run_and_show(
        partial(resume_campaign, campaign, force=force, changes=stated.values, typed=stated.flags),
        json,
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
