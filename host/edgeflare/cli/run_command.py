"""``run``: a new campaign."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeflare.cli.options import Json, Typed, command_with, typed
from edgeflare.cli.running import run_and_show

if TYPE_CHECKING:
    from edgeflare import CampaignConfig

RunCommand = command_with()


def run(
    context: typer.Context,
    campaign: Annotated[
        Path | None, typer.Argument(help="A campaign.toml (edgeflare init writes one).")
    ] = None,
    json: Json = False,
) -> None:
    """Find, for each seed input, an input on which the device's model decides differently."""
    from edgeflare import run_campaign

    run_and_show(partial(run_campaign, config_of(campaign, typed(context.obj))), json)


def config_of(campaign: Path | None, stated: Typed) -> "CampaignConfig":
    """Return the configuration: of the campaign file with the flags laid on top, or of the flags alone.

    Of flags alone `--variant` says as well that the strategy is dflare, unless another one is stated.
    Raises UsageError.
    """
    from edgeflare import UsageError, config_from, load_config

    if campaign is not None:
        return load_config(campaign, stated.values, stated.flags)
    missing = [f"--{name}" for name in ("original", "deployed", "seeds") if not stated.has(name)]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} missing: state all three, or give a campaign.toml (`edgeflare init` writes one)"
        )
    if stated.flags.get("search.options.variant") == "--variant":
        stated.values["search"].setdefault("strategy", "dflare")
    return config_from(stated.values, "run", stated.flags)
