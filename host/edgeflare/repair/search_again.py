"""A new search on a repaired model, of the same seed inputs and budget as the campaign's own."""

from dataclasses import dataclass
from pathlib import Path

from edgeflare.analysis import summarize
from edgeflare.campaign import executor
from edgeflare.campaign.batch import CampaignRunner
from edgeflare.campaign.control import scaled_as_stored
from edgeflare.campaign.events import Event, Notice, Progress
from edgeflare.campaign.provenance import changed_seeds, check_same_models
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.errors import UsageError
from edgeflare.oracles import traits_of
from edgeflare.store import Store, campaign_text
from edgeflare.store.location import is_campaign
from edgeflare.types import Status

REPAIR_FOLDER = "repair"
"""Name of the folder, in a campaign's, with its repairs and the searches that judge them."""


@dataclass(frozen=True)
class SearchFigures:
    """How a search came out: `found` of `searched` seed inputs, and the mean queries to find one.

    `queries` is None where nothing was found. `seed_deviates` more seed inputs deviate as they are.
    """

    searched: int
    found: int
    queries: float | None
    seed_deviates: int

    @property
    def success(self) -> float:
        """The share of seed inputs from which a triggering input was found."""
        return self.found / self.searched if self.searched else 0.0


def search_figures(folder: Path) -> SearchFigures:
    """Return how the search of a campaign came out so far.

    Raises UsageError where a model's answers can't be used: finding nothing there is no success;
    StoreError.
    """
    summary = summarize(folder)
    for problem in summary.unusable:
        raise UsageError(f"a repair can't be judged by the search in {folder}: {problem.words}")
    queries = summary.queries_found
    return SearchFigures(
        summary.searched,
        summary.found,
        None if queries is None else queries.mean,
        summary.by_status.get(Status.SEED_DEVIATES, 0),
    )


def check_finished(folder: Path) -> None:
    """Raise UsageError where a campaign isn't finished; StoreError."""
    unfinished = summarize(folder).unfinished
    with Store.open(folder) as store:
        if unfinished or not store.fact("seeds_complete"):
            raise UsageError(
                f"the search of {folder} isn't finished: finish it with `edgeflare resume "
                f"{campaign_text(folder)}` first"
            )


def campaign_config(folder: Path) -> CampaignConfig:
    """Return the configuration of a finished campaign, without survey, control or limits.

    Raises UsageError where the campaign isn't finished, a model or seed file isn't there as it was,
    or the oracle compares scores; StoreError.
    """
    check_finished(folder)
    with Store.open(folder) as store:
        config = config_from({**executor.WITHOUT_SURVEY, **store.campaign}, str(folder))
        if traits_of(config.search.oracle).compares_scores:
            raise UsageError(
                f"{folder} was searched with the oracle {config.search.oracle}, which compares "
                "scores; repairs are made of decisions: search with the oracle top1"
            )
        executor.check_files(config)
        check_same_models(config, store, by_flag=False)
        if changed := next(changed_seeds(config, store), None):
            raise UsageError(f"since the campaign was run {changed}; undo the change")
        config = scaled_as_stored(config, store)
    return config.without_survey.model_copy(
        update={
            "control": False,
            "control_model": None,
            "limits": LimitsConfig(),
            "allow_disagreement": True,
        }
    )


def search_again(
    config: CampaignConfig,
    repair: Path | None,
    out: Path,
    *,
    runner: CampaignRunner,
    progress: Progress,
) -> SearchFigures:
    """Search on the deployed model with this repair, or finish that; return how it came out.

    Raises as `run_campaign`.
    """

    def tell(event: Event) -> None:
        if isinstance(event, Notice) and event.resume is not None:
            event = Notice(f"{event.text}; the same command goes on with it")
        progress(event)

    if is_campaign(out):
        runner.resume(out, name=out.name, progress=tell)
    else:
        model = config.deployed.model_copy(update={"repair": repair})
        config = config.model_copy(update={"deployed": model})
        runner.run(config, out, name=out.name, progress=tell)
    return search_figures(out)
