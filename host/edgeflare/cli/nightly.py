"""``nightly``, which runs several campaigns and compares them with those of earlier nights."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edgeflare.cli.options import Json
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare.cli.settings import NightlySettings


def nightly(settings: "NightlySettings", json: Json = False) -> None:
    """Run every model on every device, and hold each against its last green night.

    What deviated before is sent again, then a budgeted search runs, then both nights are compared.
    Ends with 1 where a model got worse or a limit was crossed, else with 3 where a device was away
    or a run failed, else with 4 where it can't be told whether a limit is kept, else with 0.
    """
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import INTERRUPTED, ask, handling_signals
    from edgeflare.nightly import (
        accept_night,
        load_nightly,
        night_document,
        run_nightly,
        state_word,
    )
    from edgeflare.reports import Text

    loaded = load_nightly(settings.config)
    models, devices = settings.models, settings.devices
    if settings.accept:
        lines = accept_night(loaded, models=models, devices=devices)
        print_result(json, {"accepted": list(lines)}, lambda: map(Text, lines))
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
    print_result(json, night.to_json, lambda: night_document(night))
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
