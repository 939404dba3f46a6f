"""A new search on a repaired model, of the same seed inputs and budget as the campaign's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.analysis import summarize
from edgeflare.campaign import executor, resume_campaign, run_campaign
from edgeflare.campaign.control import scaled_as_stored
from edgeflare.campaign.events import Progress, silent
from edgeflare.campaign.fleet import Connect
from edgeflare.campaign.provenance import check_same_models
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.devices import Prompt, connect
from edgeflare.store import Store
from edgeflare.store.database import DATABASE_NAME

REPAIR_FOLDER = "repair"
"""Name of the folder, in a campaign's, with its repairs and the searches that judge them."""


@dataclass(frozen=True)
class SearchFigures:
    """How a search came out: `found` of `searched` seed inputs, and the mean queries to find one.

    `queries` is None where nothing was found.
    """

    searched: int
    found: int
    queries: float | None

    @property
    def success(self) -> float:
        """The share of seed inputs from which a triggering input was found."""
        return self.found / self.searched if self.searched else 0.0


def search_figures(folder: Path) -> SearchFigures:
    """Return how the search of a campaign came out so far. Raises StoreError."""
    summary = summarize(folder)
    queries = summary.queries_found
    return SearchFigures(summary.searched, summary.found, None if queries is None else queries.mean)


def campaign_config(folder: Path) -> CampaignConfig:
    """Return the configuration of a campaign, without survey, control or limits.

    Raises UsageError where a model isn't there as it was; StoreError.
    """
    with Store.open(folder) as store:
        config = config_from({**executor.WITHOUT_SURVEY, **store.campaign}, str(folder))
        executor.check_files(config)
        check_same_models(config, store)
        config = scaled_as_stored(config, store)
    return config.model_copy(
        update={
            "survey": config.survey.off,
            "control": False,
            "control_model": None,
            "allow_disagreement": True,
        }
    )


def search_again(
    config: CampaignConfig,
    deployed: Mapping[str, Any],
    out: Path,
    *,
    ask: Prompt | None = None,
    progress: Progress = silent,
    connect: Connect = connect,
) -> SearchFigures:
    """Search with another deployed model, or finish that; return how it came out.

    `deployed` are the settings that differ, such as ``{"repair": FILE}``. Raises as `run_campaign`.
    """
    if (out / DATABASE_NAME).is_file():
        resume_campaign(out, name=out.name, ask=ask, progress=progress, connect=connect)
    else:
        model = config.deployed.model_copy(update=dict(deployed))
        config = config.model_copy(update={"deployed": model, "out": out})
        run_campaign(config, name=out.name, ask=ask, progress=progress, connect=connect)
    return search_figures(out)
