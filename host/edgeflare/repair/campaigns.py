"""Repairs of a campaign's deployed model: made, written, and searched again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from edgeflare._internal.files import file_sha256, write_whole
from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.analysis import Duel, rank_campaigns
from edgeflare.answers.outputs import load_repair, save_repair
from edgeflare.campaign.batch import CampaignRunner
from edgeflare.campaign.context import RunContext, RunOptions
from edgeflare.campaign.events import Notice, Stage, Step
from edgeflare.campaign.resolution import STRATEGY
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.flags import Flag, FlagsOfCampaign, Typed
from edgeflare.errors import UsageError
from edgeflare.repair.abstention import CATCH, Abstention, abstention_of
from edgeflare.repair.examples import Examples, examples_of
from edgeflare.repair.onnx_stage import onnx_stage
from edgeflare.repair.search_again import (
    REPAIR_FOLDER,
    SearchFigures,
    campaign_config,
    search_again,
    search_cost,
    search_figures,
)
from edgeflare.repair.training import FOLDS, RANDOM_SEEDS, TrainedRepair, Variant, train_repair
from edgeflare.store import CampaignLock
from edgeflare.store.database import translate_errors
from edgeflare.store.location import is_campaign
from edgeflare.words.repair import cost_text
from edgeflare_agent.repair import Repair

if TYPE_CHECKING:
    from typing_extensions import Unpack

_AS_IT_WAS = "as it was"
"""The name of the model without the repair, where both are compared."""
FRESH = ("dflare", "boundary")
"""The strategies of fresh searches."""
_BESIDE = (".onnx", ".svg")
"""The endings of what is written beside a repair."""
Language: TypeAlias = Literal["python", "kotlin", "c++"]
"""What code for an application is in."""
Harm: TypeAlias = Literal["deviating", "accuracy", "easier"]
"""No fewer inputs deviate, the accuracy falls, or the next search finds something more easily."""


def _share(value: object) -> object:
    """Return a share that is written as 0.01 or 1%."""
    if not isinstance(value, str):
        return value
    try:
        return float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        raise PydanticCustomError(
            "share", "a share is a number such as 0.01 or 1%, not {text}", {"text": repr(value)}
        ) from None


_Share: TypeAlias = Annotated[float, BeforeValidator(_share)]


class _RepairSettings(BaseModel):
    out: Annotated[Path | None, Flag("--out")] = Field(
        None, description="The repair's file (.npz); by default one in CAMPAIGN/repair."
    )
    search: Annotated[bool, Flag("--search/--no-search")] = Field(
        True, description="Search again; by default yes."
    )
    stated: Annotated[
        Typed,
        FlagsOfCampaign(
            "total_queries",
            total_queries={
                "help": "Each new search gives the device N inputs at most; by default as many as the "
                "campaign took, and 20,000 at least."
            },
        ),
    ] = Field(default_factory=Typed)

    @property
    def arguments(self) -> dict[str, Any]:
        """What is stated, by the names of the function's arguments."""
        total_queries = self.stated.values.get("fleet", {}).get("total_queries")
        stated = self.model_dump(exclude={"stated", "snippet"})
        return {**stated, "total_queries": total_queries}


class TrainSettings(_RepairSettings):
    """What ``repair train`` is told."""

    variant: Annotated[Variant, Flag("--variant", metavar="NAME")] = Field(
        "paper",
        description="paper (DRepair as published; the default) or standardised (repairs more and makes "
        "more worse).",
    )
    max_inducing: Annotated[_Share | None, Flag("--max-inducing", metavar="SHARE", type=str)] = (
        Field(
            None,
            description="Of inputs on which the models agree, at most this share may deviate afterwards, "
            "such as 0.01 or 1%, on average over inputs like the campaign's.",
        )
    )


class AbstainSettings(_RepairSettings):
    """What ``repair abstain`` is told."""

    catch: Annotated[_Share, Flag("--catch", metavar="SHARE", type=str)] = Field(
        CATCH, description="The share of deviations to catch."
    )
    snippet: Annotated[Language | None, Flag("--snippet", metavar="LANGUAGE")] = Field(
        None, description="Print code for python, kotlin or c++ as well."
    )


@dataclass(frozen=True)
class RepairedSearch(JsonRecord):
    """The campaign's search on the model as it was (`before`) and on the repaired one (`after`).

    Both are of the same seed inputs: where the latter reached its bound, of those that it got to.
    `duel` compares the queries of both, seed by seed, as `rank_campaigns` does; None where the
    campaign's strategy has no queries that tell, see there.
    """

    folder: str
    before: SearchFigures
    after: SearchFigures
    duel: Duel | None

    @in_json
    def more_queries(self) -> float | None:
        """How many times the queries a triggering input takes now; None where none was found."""
        if not self.before.queries or self.after.queries is None:
            return None
        return self.after.queries / self.before.queries

    @property
    def is_easier(self) -> bool:
        """Whether triggering inputs of the repaired model are found with fewer queries, beyond chance."""
        return self.duel is not None and self.duel.verdict == _AS_IT_WAS


@dataclass(frozen=True)
class RepairedCampaign(JsonRecord):
    """A repair that was written to `path`, of so many `bytes` (and `onnx`, the same for ONNX Runtime).

    One of `trained` and `abstention` says how it does on inputs that it wasn't made from. `search`
    is None where none was wanted; `strategy` is the campaign's. `snippet` is the language of the code
    that is shown of an abstention.
    """

    path: str
    onnx: str
    bytes: int
    strategy: str
    trained: TrainedRepair | None = None
    abstention: Abstention | None = None
    search: RepairedSearch | None = None
    snippet: Annotated[Language | None, Field(exclude=True)] = None

    @property
    def harms(self) -> tuple[Harm, ...]:
        """What speaks against the repair."""
        trained, search = self.trained, self.search
        harms: dict[Harm, bool] = {
            "deviating": trained is not None and trained.mean("improvement_ratio") <= 0,
            "accuracy": trained is not None and trained.loses_accuracy,
            "easier": search is not None and search.is_easier,
        }
        return tuple(harm for harm, holds in harms.items() if holds)

    @in_json
    def is_harmful(self) -> bool:
        """Whether anything speaks against the repair."""
        return bool(self.harms)


def train_campaign(
    folder: Path,
    *,
    variant: Variant = "paper",
    max_inducing: float | None = None,
    random_seeds: int = RANDOM_SEEDS,
    out: Path | None = None,
    search: bool = True,
    total_queries: int | None = None,
    **run: "Unpack[RunOptions]",
) -> RepairedCampaign:
    """Train DRepair on a campaign's inputs, write it, and search again on the repaired model.

    Arguments as of `train_repair`. `out` is the repair's file, by default ``repair/VARIANT.npz`` in
    the campaign's folder; an ONNX model of it is written beside. The new search, of the same seed
    inputs, strategy and budget, is a campaign in the folder ``repair``, too; started again, it goes
    on. It gives the device `total_queries` inputs at most, by default as `search_cost` has it; a
    notice says what that may cost. Raises UsageError as `campaign_config`, `examples_of` and
    `train_repair`, and where `out` is another file; StoreError; the errors of `run_campaign`.
    """
    folder, context = Path(folder).absolute(), RunContext(**run)
    config = campaign_config(folder)

    def tell(done: int) -> None:
        context.progress(Step(done) if done else Stage("training", "folds", FOLDS * random_seeds))

    with CampaignLock(folder):
        name = variant if max_inducing is None else f"{variant}-{max_inducing:g}"
        path = _file(folder, out, name)
        trained = train_repair(
            examples_of(folder),
            variant=variant,
            max_inducing=max_inducing,
            random_seeds=random_seeds,
            tell=tell,
        )
        assert trained.repair is not None  # noqa: S101
        found = replace(_written(trained.repair, path, config), trained=trained)
        if not search:
            return found
        ran, _ = _searched(folder, config, path, total_queries, context)
        return replace(found, search=ran)


def abstain_campaign(
    folder: Path,
    *,
    catch: float = CATCH,
    out: Path | None = None,
    search: bool = True,
    total_queries: int | None = None,
    **run: "Unpack[RunOptions]",
) -> RepairedCampaign:
    """Set a threshold for the deployed model's margin, write it, and judge it by fresh searches.

    `catch` as of `abstention_of`. Fresh searches, by `dflare` and by `boundary`, begin from the
    campaign's seed inputs with another random seed; then the repaired model is searched, as by
    `train_campaign`, with the same arguments and errors. Each gives the device `total_queries`
    inputs at most.
    """
    folder, context = Path(folder).absolute(), RunContext(**run)
    config = campaign_config(folder)
    with CampaignLock(folder):
        path = _file(folder, out, f"abstain-{catch:g}")
        abstention = abstention_of(examples_of(folder), catch=catch)
        found = _written(abstention.repair, path, config)
        if not search:
            return replace(found, abstention=abstention)
        ran, fresh = _searched(folder, config, path, total_queries, context, FRESH)
        for strategy, examples in fresh.items():
            abstention = abstention.with_fresh(strategy, examples)
        return replace(found, abstention=abstention, search=ran)


def _fresh(config: CampaignConfig, strategy: str) -> CampaignConfig:
    """Return the configuration of another search on the model as it is."""
    search = config.search
    changed = {
        "strategy": strategy,
        "options": search.options if strategy == search.strategy else {},
        "seed": search.seed + 1,
    }
    return config.model_copy(update={"search": search.model_copy(update=changed)})


def _file(folder: Path, out: Path | None, name: str) -> Path:
    path = folder / REPAIR_FOLDER / f"{name}.npz" if out is None else Path(out).absolute()
    if path.suffix != ".npz":
        raise UsageError(f"a repair is an .npz file, and {path} is none; name another --out")
    if path.is_file():
        try:
            load_repair(path)
        except UsageError as error:
            raise UsageError(f"{path} exists and is no repair; name another --out") from error
    elif taken := next((one for one in map(path.with_suffix, _BESIDE) if one.exists()), None):
        raise UsageError(f"{taken} exists and belongs to no repair; name another --out")
    return path


def _written(repair: Repair, path: Path, config: CampaignConfig) -> RepairedCampaign:
    onnx = path.with_suffix(".onnx")
    with translate_errors(path.parent, resumable=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_repair(repair, path)
        write_whole(onnx, onnx_stage(load_repair(path)))
    return RepairedCampaign(str(path), str(onnx), path.stat().st_size, config.search.strategy)


def _searched(
    folder: Path,
    config: CampaignConfig,
    path: Path,
    total_queries: int | None,
    context: RunContext,
    fresh: Sequence[str] = (),
) -> tuple[RepairedSearch, dict[str, Examples]]:
    """Search again on the repaired model, after `fresh` searches by these strategies on the model as it is.

    Returns the examples of these, too. Tells what the searches may cost that haven't ended.
    """
    # a repair that is made anew has another place, and a search its own copy of its repair
    place = folder / REPAIR_FOLDER / f"search-{path.stem}-{file_sha256(path)[:8]}"
    copy = place.with_name(f"{place.name}.npz")
    fresh_places = {strategy: folder / REPAIR_FOLDER / f"fresh-{strategy}" for strategy in fresh}
    seeds, queries, latency_s = search_cost(folder, total_queries)
    places = (*fresh_places.values(), place)
    unfinished = [one for one in places if not is_campaign(one) or search_figures(one).left]
    if unfinished:
        context.progress(Notice(cost_text(len(unfinished), seeds, queries, latency_s)))
    again = partial(search_again, runner=CampaignRunner(context), total_queries=queries)
    examples = {}
    for strategy, fresh_place in fresh_places.items():
        again(_fresh(config, strategy), None, fresh_place)
        examples[strategy] = examples_of(fresh_place, need_triggering=False)
    with translate_errors(place.parent):
        place.parent.mkdir(exist_ok=True)
        write_whole(copy, path.read_bytes())
    after, duel = again(config, copy, place), None
    if config.search.strategy != STRATEGY:
        names = [_AS_IT_WAS, "repaired"]
        (duel,) = rank_campaigns([folder, place], names=names, measure="queries").duels
    searched = RepairedSearch(str(place), search_figures(folder, like=place), after, duel)
    return searched, examples
