"""What ``run``, ``demo`` and ``resume`` share: a campaign runs, is watched, and its figures are shown."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare.cli.guard import end_by, say

if TYPE_CHECKING:
    from edgeflare import CampaignConfig
    from edgeflare.campaign import Progress


def run_config(config: "CampaignConfig", json: bool) -> None:
    """Run a new campaign and show what it found."""
    from edgeflare import run_campaign
    from edgeflare.cli.prompt import ask

    _run(lambda progress: run_campaign(config, ask=ask, progress=progress), json)


def run_on(folder: Path, json: bool, **changes: Any) -> None:
    """Go on with a campaign, with the changes that `resume_campaign` takes, and show what it found."""
    from edgeflare import resume_campaign
    from edgeflare.cli.prompt import ask

    _run(lambda progress: resume_campaign(folder, ask=ask, progress=progress, **changes), json)


def _run(campaign: Callable[["Progress"], Path], json: bool) -> None:
    from edgeflare import summarize
    from edgeflare.cli.stopping import stoppable
    from edgeflare.cli.tables import print_summary
    from edgeflare.cli.watch import watching

    with stoppable() as stop, watching(stop) as progress:
        folder = campaign(progress)
    summary = summarize(folder)
    print_summary(summary, json)
    if not json:
        say(f"\nEverything is in {folder}")
        say(f"A page of it: {shlex.join(['edgeflare', 'report', str(folder)])}")
        what = "sounds" if summary.sample_rate else "pictures"
        command = ["edgeflare", "export", str(folder), f"{folder}-{what}"]
        say(f"{what.capitalize()}: {shlex.join(command)}")
    end_by(summary.limits_crossed)
