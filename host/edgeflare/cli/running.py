"""Runs a campaign with a progress display and prints its summary, for ``run``, ``demo`` and ``resume``."""

import shlex
from collections.abc import Callable
from pathlib import Path

from edgeflare.cli.guard import say


def run_and_show(campaign: Callable[..., Path], json: bool) -> None:
    """Run a campaign, a function of ``ask`` and ``progress``, and print its summary."""
    from edgeflare import summarize
    from edgeflare.cli.guard import end_by
    from edgeflare.cli.prompt import ask
    from edgeflare.cli.stopping import stoppable
    from edgeflare.cli.tables import print_summary
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
