"""Checks of a night's configuration, before the night begins."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from edgeflare.campaign.baseline import baseline_pairs
from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.campaign.single import check_files
from edgeflare.campaign.stages import strategy_of
from edgeflare.errors import UsageError
from edgeflare.nightly.config import NightlyConfig, NightlyModel
from edgeflare.seeds import load_label_mapping

Look: TypeAlias = Callable[[CampaignConfig], object]
_SHOWN = 5


def check_night(config: NightlyConfig, chosen: Sequence[tuple[NightlyModel, str]]) -> None:
    """Check every model and device of a night, without connecting to a device or loading a model.

    Raises UsageError, one sentence with every mistake: a device that isn't in the inventory, an inventory or
    a ``campaign.toml`` that is missing or wrong, an unknown strategy, a file that isn't there.
    """
    found = list(dict.fromkeys(_mistakes(config, chosen)))
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UsageError(
            f"no night was begun: {'; and '.join(one.rstrip('.') for one in found[:_SHOWN])}{more}"
        )


def _mistakes(config: NightlyConfig, chosen: Sequence[tuple[NightlyModel, str]]) -> Iterator[str]:
    looked_at = set[str]()
    for model, device in chosen:
        try:
            campaign = config.campaign(model, device)
        except UsageError as error:
            yield str(error)
            continue
        looks: list[Look] = [fleet_devices]
        if model.name not in looked_at:
            looked_at.add(model.name)
            looks += [check_files, _check_seeds, strategy_of]
            if config.limits.new_pairs or config.limits.baseline is not None:
                looks.append(
                    _check_baseline
                )  # else the last green night is the baseline, if there is one
        for look in looks:
            try:
                look(campaign)
            except UsageError as error:
                yield str(error)
            except OSError as error:  # a folder on the way to it that may not be entered
                yield f"{error.filename} can't be read: {error.strerror}"


def _check_seeds(campaign: CampaignConfig) -> None:
    """Raise UsageError where the seeds aren't there, or the mapping of their labels can't be used."""
    path: Path = campaign.seeds.path
    if not path.exists():
        raise UsageError(f"there are no seeds at {path}: no such file or folder")
    if campaign.seeds.labels is not None:
        load_label_mapping(campaign.seeds.labels)


def _check_baseline(campaign: CampaignConfig) -> None:
    baseline_pairs(campaign.limits)
