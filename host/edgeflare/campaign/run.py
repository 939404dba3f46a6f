"""Runs and resumes a campaign with its control."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from edgeflare.campaign import single
from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.control import check_control, run_control
from edgeflare.campaign.fleet import Connect, Prompt
from edgeflare.campaign.progress import Progress, silent
from edgeflare.campaign.replay import fill_on
from edgeflare.devices import connect


def run_campaign(
    config: CampaignConfig,
    *,
    name: str | None = None,
    ask: Prompt | None = None,
    progress: Progress = silent,
    connect: Connect = connect,
) -> Path:
    """Run a campaign to its end and return its folder.

    `name` is what others who want a device are told is using it (the folder's name where None). `ask` is
    asked for a passphrase or password where a device wants one; `progress` is told what happens, by the
    calling thread; `connect` reaches a device (`edgeflare.testing` has one that fails on purpose). Raises
    an `EdgeFlareError` of any kind; what was found before it is in the folder, and `resume_campaign` goes
    on from there.

    Where `config.control` is set the control follows the search, in the folder ``control`` of the
    campaign's own: the same search for deviations of the original from itself, on this machine.
    """
    check_control(config)
    return single.begin(
        config, after=run_control, name=name, ask=ask, progress=progress, connect=connect
    )


def resume_campaign(
    folder: Path,
    *,
    force: bool = False,
    changes: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
    name: str | None = None,
    ask: Prompt | None = None,
    progress: Progress = silent,
    connect: Connect = connect,
) -> Path:
    """Resume a campaign that was interrupted, or do nothing where it is finished; return its folder.

    Seeds that are finished stay as they are; the others start again and, on the same kind of CPU, end as
    they would have. `changes` (nested) are laid on top of the configuration that the campaign began with: its
    `devices` and `inventory`, its `fleet` table, `original_timeout_s`; `typed` names their flags, as in
    `config_from`. A device that can't be reached now is left out, with a notice, where another one can. A control
    that is not finished goes on once the search is.

    Raises UsageError, naming it, where a model, a seed file, a library or a device has changed, unless
    `force`; StoreError where another process runs the campaign; else as `run_campaign`.
    """
    return single.go_on(
        folder,
        fill=fill_on,
        after=partial(run_control, force=force),
        force=force,
        changes=changes,
        typed=typed,
        name=name,
        ask=ask,
        progress=progress,
        connect=connect,
    )
