"""A new search on a repaired model, of the same seed inputs and budget as the campaign's own."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from edgeflare.analysis import summarize
from edgeflare.answers.oracles import is_measured
from edgeflare.campaign import executor
from edgeflare.campaign.batch import CampaignRunner
from edgeflare.campaign.control import scaled_as_stored
from edgeflare.campaign.events import Event, Notice
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.campaign.provenance import changed_seeds, check_same_models
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.status import expected_outcomes
from edgeflare.errors import UsageError
from edgeflare.statistics import mean
from edgeflare.store import Store, campaign_text
from edgeflare.store.location import is_campaign
from edgeflare.types import Status
from edgeflare.words.repair import GOES_ON

LEAST_QUERIES = 20_000
"""What a new search may ask of the device in any case: minutes on most devices."""
REPAIR_FOLDER = "repair"
"""Name of the folder, in a campaign's, with its repairs and the searches that judge them."""


@dataclass(frozen=True)
class SearchFigures:
    """How a search came out: `found` of `searched` seed inputs, and the mean queries to find one.

    `queries` is None where nothing was found. `seed_deviates` more seed inputs deviate as they are.
    `left` seed inputs were not searched: the bound on its device queries was reached.
    """

    searched: int
    found: int
    queries: float | None
    seed_deviates: int
    left: int = 0

    @property
    def success(self) -> float:
        """The share of seed inputs from which a triggering input was found."""
        return self.found / self.searched if self.searched else 0.0


def search_figures(folder: Path, like: Path | None = None) -> SearchFigures:
    """Return how the search of a campaign came out so far.

    `like`: count only the seed inputs whose search in this campaign has ended. Raises UsageError
    where a model's answers can't be used: finding nothing there is no success; StoreError.
    """
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(folder))
        for problem in unusable_answers(store):
            raise UsageError(f"a repair can't be judged by the search in {folder}: {problem.words}")
        outcomes = list(store.outcomes())
        left = max(0, expected_outcomes(store) - len(outcomes))
        if like is not None:
            other = stack.enter_context(Store.open(like))
            ended = {outcome.seed_id for outcome in other.outcomes()}
            outcomes = [outcome for outcome in outcomes if outcome.seed_id in ended]
    counts = Counter(outcome.status for outcome in outcomes)
    found = [outcome.first_queries for outcome in outcomes if outcome.status is Status.FOUND]
    return SearchFigures(
        sum(outcome.searched for outcome in outcomes),
        counts[Status.FOUND],
        mean(found),
        counts[Status.SEED_DEVIATES],
        left,
    )


def search_cost(folder: Path, total_queries: int | None = None) -> tuple[int, int, float | None]:
    """Return the seeds of a new search, the most device queries, and the seconds of each, if known.

    Raises StoreError. The seconds are the device's own for a query of the campaign's searches.

    By default that is as many device queries as the campaign took itself, and `LEAST_QUERIES` at
    least: an abstaining model is searched far longer than the model as it was.
    """
    summary = summarize(folder)
    own = sum(summary.total_queries.values()) - summary.total_queries["host_only"]
    with Store.open(folder) as store:
        timed = [
            (outcome.device_seconds, outcome.search_queries + outcome.confirmation_queries)
            for outcome in store.outcomes()
        ]
    seconds, queries = (sum(values) for values in zip(*timed, strict=True))
    most = max(own, LEAST_QUERIES) if total_queries is None else total_queries
    return summary.seeds, most, seconds / queries if queries else None


def check_finished(folder: Path) -> None:
    """Raise UsageError where a campaign isn't finished; StoreError."""
    unfinished = summarize(folder).unfinished
    with Store.open(folder) as store:
        if unfinished or not store.state.seeds_complete:
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
        if is_measured(dict(config.search)):
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
    total_queries: int,
) -> SearchFigures:
    """Search on the deployed model with this repair, or finish that; return how it came out.

    The device is given `total_queries` inputs at most; what is left then stays so until it is
    called with more. Raises as `run_campaign`.
    """

    def tell(event: Event) -> None:
        if isinstance(event, Notice) and event.resume is not None:
            event = Notice(GOES_ON.format(event.text))
        runner.context.progress(event)

    if is_campaign(out):
        runner.resume(
            out, name=out.name, progress=tell, changes={"fleet": {"total_queries": total_queries}}
        )
    else:
        model = config.deployed.model_copy(update={"repair": repair})
        fleet = config.fleet.model_copy(update={"total_queries": total_queries})
        config = config.model_copy(update={"deployed": model, "fleet": fleet})
        runner.run(config, out, name=out.name, progress=tell)
    return search_figures(out)
