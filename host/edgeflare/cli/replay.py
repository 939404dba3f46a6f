"""``replay``: stored triggers and seeds on another model, firmware or device."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from edgeflare.cli.options import Json
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare import CampaignConfig
    from edgeflare.cli.settings import ReplaySettings


def replay(settings: "ReplaySettings", json: Json = False) -> None:
    """Send stored triggers and seeds to a new model, firmware or device: what is fixed, new?"""
    from edgeflare import replay_base, replay_config

    stated, source, trigger = settings.typed, settings.source, [*settings.trigger]
    original, deployed = (
        stated.values.get(which, {}).get("path") for which in ("original", "deployed")
    )
    base = replay_base(source, settings.campaign, original=original, deployed=deployed)
    config = replay_config(base, stated.values, stated.flags)
    if trigger and settings.only is None:
        _reproduce(source, trigger, config, json)
    else:
        _replay(source, trigger, config, settings.only, json)


def _replay(
    source: Path, trigger: list[str], config: "CampaignConfig", only: str | None, json: bool
) -> None:
    from edgeflare import run_replay
    from edgeflare.analysis import check_limits, class_namer, replay_summary
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask, end_by
    from edgeflare.reports import replay_document
    from edgeflare.store import campaign_text

    with progress_display() as progress:
        folder = run_replay(source, config, only=only, seed_ids=trigger, ask=ask, progress=progress)
    limits = check_limits(folder)
    summary = replay_summary(folder)
    limits_json = [one.to_json() for one in limits]
    print_result(
        json,
        lambda: {**summary.to_json(), "limits": limits_json},
        lambda: replay_document(summary, limits, class_namer(folder)),
    )
    if not json:
        echo_err(f"\nEverything is in {summary.folder}")
        if summary.source_kind == "corpus":
            command = ["edgeflare", "corpus", "add", campaign_text(summary.source), summary.folder]
            echo_err(f"Tell the corpus: {shlex.join(command)}")
    undecided = [one.name for one in limits if one.undecided]
    end_by([one.name for one in limits if one.crossed], undecided)


def _reproduce(source: Path, trigger: list[str], config: "CampaignConfig", json: bool) -> None:
    from edgeflare.campaign import reproduce
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask
    from edgeflare.reports import reproductions_document

    with progress_display() as progress:
        found = reproduce(source, trigger, config, ask=ask, progress=progress)
    print_result(
        json,
        lambda: {"source": str(source), "triggers": [one.to_json() for one in found]},
        lambda: reproductions_document(found),
    )
    if not json and config.out is not None:
        echo_err(f"\nEverything is in {config.out}")
