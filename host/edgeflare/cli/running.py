"""What ``run``, ``demo`` and ``resume`` share: a campaign runs, is watched, and its figures are shown."""

import shlex
from collections.abc import Callable
from pathlib import Path

from edgeflare.cli.guard import say


def run_and_show(campaign: Callable[..., Path], json: bool) -> None:
    """Run a campaign, given what it asks the user by and reports to, and show what it found."""
    from edgeflare import summarize
    from edgeflare.cli.limit_lines import end_by
    from edgeflare.cli.prompt import ask
    from edgeflare.cli.stopping import stoppable
    from edgeflare.cli.summary_tables import print_summary
    from edgeflare.cli.watch import watching

    with stoppable() as stop, watching(stop) as progress:
        folder = campaign(ask=ask, progress=progress)
    summary = summarize(folder)
    print_summary(summary, json)
    if not json:
        say(f"\nEverything is in {folder}")
        say(f"A page of it: {shlex.join(['edgeflare', 'report', str(folder)])}")
        what = "sounds" if summary.sample_rate else "pictures"
        command = ["edgeflare", "export", str(folder), f"{folder}-{what}"]
        say(f"{what.capitalize()}: {shlex.join(command)}")
    end_by(summary.limits_crossed)
