"""Repairs and how they do: in tables, a curve, and a snippet for the application."""

import math
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from edgeflare._internal.files import write_whole
from edgeflare._internal.text import counted, number_text, p_text, percent_text
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.document import (
    Block,
    CommandLine,
    Heading,
    Item,
    Listing,
    Section,
    Text,
    table_of,
)
from edgeflare.repair import (
    AbstainSettings,
    Abstention,
    RepairedCampaign,
    RepairedSearch,
    TrainedRepair,
    TrainSettings,
    abstain_campaign,
    train_campaign,
)
from edgeflare.repair.campaigns import Language
from edgeflare.reports.charts import curve_chart, standalone
from edgeflare.statistics import upper_bound
from edgeflare.store import Store
from edgeflare.words.repair import source_text

S = TypeVar("S", bound=BaseModel)
_PUBLISHED = {"repair_ratio": 0.3273, "inducing_ratio": 0.0417, "improvement_ratio": 0.2856}
"""The averages of DFLARE's table 7."""
_FIGURES = {
    "repair_ratio": ("repaired triggering inputs", "repaired"),
    "inducing_ratio": ("induced on other inputs", "induced"),
    "improvement_ratio": ("fewer deviations", "improvement"),
}
"""The words for each ratio, and the count that it is of."""


def repaired_document(found: RepairedCampaign) -> list[Block]:
    """Return how a repair does on inputs that it wasn't made from, and in a new search."""
    blocks: list[Block] = []
    if found.is_harmful:
        harms = " and ".join(_harms(found))
        blocks.append(Text(f"Don't ship this repair: {harms}.", "strong"))
    if found.trained is not None:
        blocks += _trained(found.trained)
    if found.abstention is not None:
        blocks += _abstention(found.abstention, found.strategy)
    if found.search is not None:
        blocks += _search(found.search, found.strategy)
    blocks.append(Text(f"Written: {found.path} ({found.bytes:,} bytes), {found.onnx}"))
    if found.abstention is not None and found.snippet is not None:
        code = SNIPPETS[found.snippet].format(threshold=found.abstention.threshold)
        blocks.append(CommandLine(code))
    return blocks


def _harms(found: RepairedCampaign) -> Iterator[str]:
    """Yield what speaks against a repair."""
    harms, trained = found.harms, found.trained
    if "deviating" in harms:
        yield "no fewer inputs deviate with it"
    if trained is not None and "accuracy" in harms:
        right, wrong = trained.changed_accuracy
        yield (
            f"of the labelled seed inputs {wrong:,} become wrong and {right:,} right "
            f"({p_text(trained.accuracy_p)})"
        )
    duel = None if found.search is None else found.search.duel
    if duel is not None and "easier" in harms:
        yield (
            f"of {counted(duel.differing, 'seed')} whose searches differ, {duel.higher:,} are easier to "
            f"make deviate with it ({p_text(duel.p)} by ranks of queries)"
        )


def _trained(found: TrainedRepair) -> list[Block]:
    seeds = len({fold.random_seed for fold in found.folds})
    folds = len(found.folds) // seeds
    rows = [
        [
            words,
            number_text(found.mean(count) * folds, 1),
            percent_text(found.mean(name)),
            percent_text(found.spread(name)),
            percent_text(_PUBLISHED[name]),
        ]
        for name, (words, count) in _FIGURES.items()
    ]
    text = (
        f"Made of {counted(found.inputs, 'input')}, of which {found.triggering:,} are triggering; judged by "
        f"{folds} folds of seed inputs, {counted(seeds, 'time')}"
    )
    if found.max_inducing is not None and found.below is not None:
        text += (
            f". Trained on half of the seed inputs; by the other half, for at most {percent_text(found.max_inducing)} induced, an answer is replaced where the "
            f"model's margin is below {found.below:.3f} and the perceptron finds its class "
            f"likelier by more than {found.sure:.3f}"
        )
    blocks: list[Block] = [
        Heading("Of inputs that it was not trained on", 4),
        Text(text),
        table_of(["", "number", "mean", "± over the times", "DFLARE's table 7, mean"], rows),
    ]
    if found.accuracy is not None:
        before, after = map(percent_text, found.accuracy)
        right, wrong = found.changed_accuracy
        blocks.append(
            Text(
                f"Accuracy on labelled seed inputs: {before} before, {after} after "
                f"({wrong:,} become wrong, {right:,} right)"
            )
        )
    if found.unconverged:
        blocks.append(Listing((Item(_unconverged(found, len(found.folds) + 1), "warn", "note:"),)))
    return blocks


def _unconverged(found: TrainedRepair, trainings: int) -> str:
    own = ", that of the written repair among them" if not found.converged else ""
    advice = (
        ""
        if found.variant == "standardised"
        else ", or take --variant standardised, which converges sooner"
    )
    return (
        f"{found.unconverged:,} of {trainings:,} trainings{own} did not converge after "
        f"{found.iterations:,} iterations: more would repair and induce other shares; search from more "
        f"seeds{advice}"
    )


def _abstention(found: Abstention, strategy: str) -> list[Block]:
    text = (
        f"Below a margin of {found.threshold:.4g} the model abstains: set to catch "
        f"{percent_text(found.wanted)} of {counted(found.calibrated_on, 'deviation')} from half of the seed inputs"
    )
    if found.bound is not None:
        text += (
            f". Of what {strategy} finds from other seeds like these it catches {percent_text(found.bound)} "
            "or more on average (conformal bound); what another search finds may differ"
        )
    elif found.wanted == 1:
        text += ". There is no bound on what it catches of others for 100 %"
    else:
        needed = math.ceil(found.wanted / (1 - found.wanted))
        text += (
            f". For a bound on what it catches of others, {needed:,} deviations are needed there"
        )
    rows = [
        [
            source_text(one.source),
            f"{one.deviations:,}",
            percent_text(one.share or 0.0) if one.deviations else "",
        ]
        for one in found.caught
    ]
    return [
        Heading("What it catches, and what it defers", 4),
        Text(text),
        table_of(["deviations of", "number", "caught"], rows),
        *(
            Text(
                f"Of {source_text(one.source)} {percent_text(one.share)} are caught, fewer than the "
                f"{percent_text(found.wanted)} that the threshold was set for",
                "strong",
            )
            for one in found.caught
            if one.deviations and upper_bound(one.caught, one.deviations) < found.wanted
        ),
        Text(
            f"Deferred: {found.deferred:,} of {counted(found.seeds, 'seed input')} of the other half "
            f"({percent_text(found.deferred_share)}; at most {percent_text(found.deferred_bound)} with 95 % confidence)"
        ),
    ]


def _search(found: RepairedSearch, strategy: str) -> list[Block]:
    rows = [
        [
            name,
            f"{one.found:,} of {one.searched:,}",
            percent_text(one.success),
            number_text(one.queries, 1),
            f"{one.seed_deviates:,}",
        ]
        for name, one in (("as it was", found.before), ("repaired", found.after))
    ]
    blocks: list[Block] = [
        Heading("The same search again", 4),
        table_of(
            ["deployed model", "found", "success", "mean queries", "seeds that deviate"], rows
        ),
    ]
    if found.after.left:
        blocks.append(
            Text(
                f"It reached its bound of device queries with {counted(found.after.left, 'seed')} left, "
                "those that take longest among them; both rows are of the others. The same command with a larger --total-queries goes on"
            )
        )
    if found.duel is None:
        blocks.append(
            Text(
                f"The queries of {strategy} don't tell, and don't compare with DFLARE's table 8; a "
                "campaign with --strategy dflare has those"
            )
        )
    elif found.more_queries is not None:
        blocks.append(
            Text(
                f"A triggering input takes {found.more_queries:.2f} times the queries "
                "(DFLARE's table 8: 1.46 to 4.54 times, success 100 %), searches that find none left "
                f"out; {p_text(found.duel.p)} by ranks, with these as the hardest"
            )
        )
    return blocks


def write_curve(found: Abstention, path: Path) -> None:
    """Write a chart of the share caught against the share deferred. Raises OSError."""
    held_out = found.caught[0]
    chart = curve_chart(
        "Deviations caught by an abstention, and inputs deferred for it",
        [(one.deferred, one.caught) for one in found.curve],
        (found.deferred_share, held_out.share or 0.0),
        across="deferred",
        upright="caught",
        words=percent_text,
    )
    write_whole(path, standalone(chart).encode())


SNIPPETS: dict[Language, str] = {
    "python": """\
import numpy as np

def decide(probabilities):  # of one input; None: ask the original model
    second, first = np.sort(probabilities)[-2:]
    return int(np.argmax(probabilities)) if first - second >= {threshold!r} else None
""",
    "kotlin": """\
fun decide(probabilities: DoubleArray): Int? {{  // null: ask the original model
    val order = probabilities.indices.sortedByDescending {{ probabilities[it] }}
    val margin = probabilities[order[0]] - probabilities[order[1]]
    return if (margin >= {threshold!r}) order[0] else null
}}
""",
    "c++": """\
#include <algorithm>
#include <vector>
int decide(const std::vector<double>& p) {{  // -1: ask the original model
  auto first = std::max_element(p.begin(), p.end());
  double second = -1;
  for (auto it = p.begin(); it != p.end(); ++it) if (it != first) second = std::max(second, *it);
  return *first - second >= {threshold!r} ? int(first - p.begin()) : -1;
}}
""",
}
"""Code of at most ten lines that abstains below ``{threshold}``, by its language."""


class _Repair(Analysis[S, RepairedCampaign]):
    result = RepairedCampaign
    title: str

    def advice(self, result: RepairedCampaign) -> str:
        """Return how to deploy a repair that does no harm."""
        if result.is_harmful:
            return ""
        command = shlex.join(["edgeflare", "run", "--repair", result.path])
        return f"To deploy it: {command} and the flags of the campaign"

    def sections(self, result: RepairedCampaign) -> Iterator[Section]:  # type: ignore[override]
        """Yield how the repair does."""
        yield Section(f"repair-{self.name}", self.title, (*repaired_document(result),))


class _Train(_Repair[TrainSettings]):
    name, title = "train", "A repair: classes by a trained perceptron"
    about = "Train DRepair: it takes the deployed model's probabilities and returns the original's class."
    settings = TrainSettings

    def run(
        self, campaign: Store, settings: TrainSettings, context: RunContext
    ) -> RepairedCampaign:
        found = train_campaign(campaign.folder, **settings.arguments, **context.options)
        assert found.trained is not None  # noqa: S101
        return replace(found, trained=replace(found.trained, repair=None))


class _Abstain(_Repair[AbstainSettings]):
    name, title = "abstain", "A repair: an abstention below a margin"
    about = (
        "Find the margin of the deployed model below which it should leave the decision to another."
    )
    settings = AbstainSettings

    def run(
        self, campaign: Store, settings: AbstainSettings, context: RunContext
    ) -> RepairedCampaign:
        found = abstain_campaign(campaign.folder, **settings.arguments, **context.options)
        return replace(found, snippet=settings.snippet)

    def write(self, result: RepairedCampaign, settings: AbstainSettings) -> None:
        del settings
        assert result.abstention is not None  # noqa: S101
        write_curve(result.abstention, _curve(result))

    def advice(self, result: RepairedCampaign) -> str:
        curve = f"The share caught against the share deferred: {_curve(result)}"
        return "\n".join(filter(None, (super().advice(result), curve)))


def _curve(found: RepairedCampaign) -> Path:
    return Path(found.path).with_suffix(".svg")


TRAIN, ABSTAIN = _Train(), _Abstain()
