"""What the findings of a campaign come of, and how near they came to the seeds, in tables."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import BaseModel, Field

from edgeflare._internal.files import replacing
from edgeflare._internal.flags import FILES
from edgeflare._internal.text import NOTHING, counted, number_text, percent_text
from edgeflare.analysis.agreement import agreements
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.flags import Flag, FlagsOfCampaign, Typed
from edgeflare.document import (
    Block,
    Column,
    Heading,
    Item,
    Listing,
    Name,
    Section,
    Table,
    Text,
    table_of,
)
from edgeflare.errors import UsageError
from edgeflare.explanation import (
    DEVICE_QUERIES,
    Explanation,
    KindFigures,
    LayerFigures,
    Layers,
    ShrunkFinding,
    ShrunkFindings,
    explained_devices,
)
from edgeflare.explanation.results import EACH
from edgeflare.reports.devices import agreement_blocks
from edgeflare.store import Store
from edgeflare.words.causes import (
    CAUSE_WORDS,
    count_text,
    labels_words,
    layer_words,
    left_out_text,
    nearest_words,
    pair_text,
    remark_text,
    step_text,
)

GROUPS_SHOWN = 10
_CHANGE = "Of the change: the part of a kind in what changes the margins of all findings"
_NOTHING = 0.0005
"""A change of the margin that is printed as 0."""


def explanation_document(found: Explanation, campaign: Path, name: Name = str) -> list[Block]:
    """Return what the findings come of, and how far several devices agree.

    `name` returns a class's name. Raises StoreError.
    """
    blocks = explanation_blocks(found, name)
    with Store.open(campaign) as store:
        folder = explained_devices(store)
    if folder is not None:
        with Store.open(folder) as replay:
            blocks += agreement_blocks(*agreements(replay))
    return blocks


def causes_section(blocks: Iterable[Block]) -> Section:
    """Return the section of an explanation."""
    return Section("causes", "Causes: what decides", tuple(blocks), order=320)


def explanation_blocks(found: Explanation, name: Name = str, *, brief: bool = False) -> list[Block]:
    """Return what each kind of cause makes of all findings, by layers and labels, and what is unclear.

    `name` returns a class's name. `brief`: without what each step and layer changes.
    """
    total = len(found.findings)
    columns = (
        Column("what decides", 0, lambda one: CAUSE_WORDS[one.kind], text=True),
        Column("findings", 0, lambda one: f"{one.findings:,}"),
        Column("share", 0, lambda one: percent_text(one.findings / total)),
        Column("of the change", 0, _share_of_change, optional=True),
        Column("doubtful", 1, lambda one: f"{one.doubtful:,}"),
    )
    pair = pair_text(found)
    notices = tuple(Item(remark_text(notice)) for notice in found.notices)
    return [
        *([Text(pair, "warn")] if pair else []),
        Text(count_text(found)),
        Table(columns, found.kinds, _CHANGE if any(one.share for one in found.kinds) else ""),
        *([] if brief else [*_contributions(found), *_layers(found)]),
        *_groups(found, name),
        *([Listing(notices)] if notices else []),
    ]


def _share_of_change(figures: KindFigures) -> str:
    return "" if figures.share is None else percent_text(round(figures.share, 3) + 0.0)


def _contributions(found: Explanation) -> list[Block]:
    """Return what each rung changes of the margin, over the findings whose margins are known."""
    known = [one.contributions for one in found.findings if one.contributions]
    rows = []
    for rung, _, file in found.rungs:
        changes = [one[rung] for one in known if rung in one]
        if changes:
            rows.append([step_text(rung, file), f"{median(changes):+.3f}", f"{max(changes):+.3f}"])
    if not rows:
        return []
    return [
        Heading("What each step changes", 4),
        Text(
            "The margin is the probability of the deployed model's class less that of the original's: "
            "below 0 for the original, above 0 on the device"
        ),
        table_of(["step", "median", "largest"], rows),
    ]


def _layers(found: Explanation) -> list[Block]:
    """Return the layers that change the margin most, of the file and on the device."""
    blocks: list[Block] = []
    columns = (
        Column("layer", 0, lambda one: layer_words(one.name), text=True),
        Column("operators", 3, lambda one: one.operators, text=True),
        Column("mean", 0, lambda one: f"{one.mean:+.3f}"),
        Column("largest", 0, lambda one: f"{one.largest:+.3f}"),
        Column("restored", 0, lambda one: f"{one.restored:,}"),
        Column("SQNR dB", 2, lambda one: _both(one, "sqnr", lambda value: f"{value:.1f}")),
    )
    held = (
        Column("clipped", 1, lambda one: _both(one, "clipped", percent_text), optional=True),
        Column("levels used", 1, lambda one: _both(one, "levels", percent_text), optional=True),
    )
    if layers := found.layers:
        blocks += _layer_table(
            layers,
            "What each layer changes",
            f"Changes of the margin, on {counted(len(layers.contributions), 'finding')} charged to "
            f"{layers.deployed}, by the layer's own operators and the grid of its output. Restored: "
            "findings on which the original's decision would come back, were this layer alone as in "
            f"{layers.original} (predicted). SQNR, values clipped and levels used: on these findings "
            "/ on seeds",
            (*columns, *held),
        )
    if (layers := found.device_layers) and layers.layers:
        blocks += _layer_table(
            layers,
            "What each layer changes on the device",
            f"Changes of the margin, on {counted(len(layers.contributions), 'finding')} charged to "
            f"the device, by the layer's own operators, as {layers.deployed} runs there and here. "
            "Restored: findings on which the original's decision would come back, were this layer "
            "alone computed as here (predicted). SQNR: on these findings / on seeds",
            columns,
        )
    return blocks


def _layer_table(found: Layers, title: str, text: str, columns: tuple[Column, ...]) -> list[Block]:
    most = sorted(found.layers, key=lambda one: -one.mean)[:GROUPS_SHOWN]
    shown = [one for one in most if one.largest > _NOTHING]
    rest = left_out_text(found, len(found.layers) - len(shown))
    return [
        Heading(title, 4),
        Text(text),
        Table(columns, shown),
        *([Text(rest)] if rest else []),
    ]


def _both(layer: LayerFigures, figure: str, words: Callable[[float], str]) -> str:
    pair = [getattr(one, figure) for one in (layer.findings, layer.seeds)]
    if pair == [None, None]:
        return NOTHING
    return " / ".join(NOTHING if one is None else words(one) for one in pair)


def write_node_data(found: Explanation, path: Path) -> None:
    """Write the mean contribution of each layer as node data of Google's Model Explorer.

    It is loaded there beside the deployed model's file. Raises UsageError where no layers are known,
    OSError where the file can't be written.
    """
    known = found.layers or found.device_layers
    if known is None or not known.layers:
        texts = map(remark_text, found.notices)
        why = next((text for text in texts if "layer" in text), "no finding comes of the file")
        raise UsageError(f"there is nothing to write to {path}: {why}")
    layers = known.layers
    data = {
        "name": "mean change of the margin",
        "results": {name: {"value": one.mean} for one in layers for name in one.deployed},
        "gradient": [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e4572e"}],
    }
    with replacing(path) as file:
        file.write(json.dumps(data, indent=1).encode())


def _groups(found: Explanation, name: Name) -> list[Block]:
    columns = (
        Column("cause", 0, lambda one: one.cause, text=True),
        Column("main layer", 0, lambda one: layer_words(one.layer), text=True, optional=True),
        Column("survey's fault", 1, lambda one: one.fault, text=True, optional=True),
        Column(
            "original -> deployed", 0, lambda one: labels_words(one, name), text=True, optional=True
        ),
        Column("findings", 0, lambda one: f"{one.count:,}"),
        Column(
            "doubtful", 2, lambda one: f"{one.doubtful:,}" if one.doubtful else "", optional=True
        ),
        Column("nearest to its seed", 0, lambda one: nearest_words(one, name), text=True),
    )
    more = len(found.groups) - GROUPS_SHOWN
    rest: list[Block] = [Text(f"Left out here: {counted(more, 'more group')}")]
    return [
        Heading("Groups", 4),
        Table(columns, found.groups[:GROUPS_SHOWN]),
        *(rest if more > 0 else []),
    ]


def shrunk_document(found: ShrunkFindings) -> list[Block]:
    """Return how near the findings came, in medians, and the first of them one by one."""
    findings = found.findings
    queries = median(one.device_queries for one in findings)
    most = max(one.device_queries for one in findings)
    moved = found.shrunk
    others = sum(one.classes_before != one.classes_after for one in moved)
    text = f"{len(moved):,} of {counted(len(findings), 'finding')} moved nearer to the seed"
    if others:
        text += f", {others:,} of {len(moved):,} between other classes than before"
    text += f"; device queries of each: {number_text(queries, 0)} in the median, {most:,} at most"
    if found.left_out:
        text += f"; {counted(found.left_out, 'finding')} left out: seed inputs themselves"
    columns = (
        Column("seed", 0, lambda one: one.seed_id, text=True),
        Column("L2", 0, lambda one: _change(one.before.l2, one.after.l2, 2)),
        Column("Linf", 1, lambda one: _change(one.before.linf, one.after.linf, 0)),
        Column("SSIM", 2, lambda one: _change(one.before.ssim, one.after.ssim, 3), optional=True),
        Column("device queries", 0, lambda one: f"{one.device_queries:,}"),
    )
    natural_columns = (
        columns[0],
        Column("what made it", 0, lambda one: one.words_before, text=True),
        Column("weakest that deviates", 0, _weakest, text=True),
        columns[-1],
    )
    natural = [one for one in findings if one.words_before]
    rest = max(0, len(findings) - GROUPS_SHOWN), max(0, len(natural) - GROUPS_SHOWN)
    more = [Text(f"Left out here: {counted(one, 'more input')}; --json has them") for one in rest]
    return [
        Text(text),
        table_of(["distance to the seed", "median before", "after"], _medians(findings)),
        Table(columns, findings[:GROUPS_SHOWN]),
        *(more[:1] if rest[0] else []),
        *([Table(natural_columns, natural[:GROUPS_SHOWN])] if natural else []),
        *(more[1:] if rest[1] else []),
    ]


def _weakest(finding: ShrunkFinding) -> str:
    return "as it was" if finding.words_after == finding.words_before else finding.words_after


def _medians(findings: Sequence[ShrunkFinding]) -> list[list[str]]:
    rows = []
    for name, title, digits in (("l2", "L2", 2), ("linf", "Linf", 0), ("ssim", "SSIM", 3)):
        known = [
            [getattr(one.before, name), getattr(one.after, name)]
            for one in findings
            if getattr(one.before, name) is not None
        ]
        if known:
            medians = (number_text(median(column), digits) for column in zip(*known, strict=True))
            rows.append([title, *medians])
    return rows


def _change(before: float | None, after: float | None, digits: int) -> str:
    if before is None or after is None:
        return ""
    return " -> ".join(dict.fromkeys(number_text(one, digits) for one in (before, after)))


# Commands

_FLAGS = ("original", "deployed", "patience", "python", "inventory", "confirmations")
_MOVED: Mapping[str, Any] = {
    which: {"help": f"The {which} model, where it has moved."} for which in ("original", "deployed")
}


class ExplainSettings(BaseModel):
    """What ``explain`` is told; `stated` is what is otherwise than in the campaign."""

    float_model: Annotated[Path | None, Flag("--float-model", metavar="FILE", panel=FILES)] = Field(
        None,
        description="The model before it was compressed, in the deployed model's format.",
    )
    device_queries: Annotated[int, Flag("--device-queries", metavar="N")] = Field(
        DEVICE_QUERIES, ge=1, description="Send devices N inputs at most in all."
    )
    node_data: Annotated[Path | None, Flag("--node-data", metavar="FILE")] = Field(
        None, description="Write what each layer changes, as node data for Model Explorer."
    )
    stated: Annotated[
        Typed,
        FlagsOfCampaign(
            *_FLAGS,
            "device",
            device={
                "help": "Other devices than the campaign's; several are compared with each other."
            },
            **_MOVED,
        ),
    ] = Field(default_factory=Typed)


class ShrinkSettings(BaseModel):
    """What ``shrink`` is told; `stated` is what is otherwise than in the campaign."""

    device_budget: Annotated[int, Flag("--device-budget", metavar="N")] = Field(
        EACH, ge=1, description="Device queries for each finding, at most."
    )
    stated: Annotated[Typed, FlagsOfCampaign(*_FLAGS, "workers", **_MOVED)] = Field(
        default_factory=Typed
    )


def _config(campaign: Store, stated: Typed) -> CampaignConfig:
    """Return the configuration with which findings are sent again; several devices all get each."""
    from edgeflare.campaign.replay.results import replay_config
    from edgeflare.campaign.replay.run import replay_base

    each = {"fleet": {"mode": "replicate"}} if len(stated.values.get("devices", ())) > 1 else {}
    return replay_config(replay_base(campaign.folder), {**stated.values, **each}, stated.flags)


class Explain(Analysis[ExplainSettings, Explanation]):
    """``explain``; what it finds is in the summary of its campaign."""

    name = "explain"
    about = (
        "Tell what each finding comes of: compression, kernels, accelerator, hardware or others."
    )
    settings, result = ExplainSettings, Explanation
    exclusive, in_reports = True, False

    def run(self, campaign: Store, settings: ExplainSettings, context: RunContext) -> Explanation:
        """Return the explanation."""
        from edgeflare.explanation.run import explained  # reports need nothing that runs

        config = _config(campaign, settings.stated)
        return explained(campaign, config, context, settings.float_model, settings.device_queries)

    def write(self, result: Explanation, settings: ExplainSettings) -> None:
        """Write the node data, where it is wanted."""
        if settings.node_data is not None:
            write_node_data(result, settings.node_data)

    def sections(self, result: Explanation, names: Name, store: Store | None) -> Iterator[Section]:
        """Yield the causes."""
        assert store is not None  # noqa: S101
        yield causes_section(explanation_document(result, store.folder, names))


class Shrink(Analysis[ShrinkSettings, ShrunkFindings]):
    """``shrink``; what it finds is a campaign of its own."""

    name = "shrink"
    about = (
        "Move each triggering input as near to its seed as it deviates; the campaign's own stay."
    )
    settings, result = ShrinkSettings, ShrunkFindings
    stored = False

    def run(self, campaign: Store, settings: ShrinkSettings, context: RunContext) -> ShrunkFindings:
        """Return how near the findings came."""
        from edgeflare.explanation import shrink_campaign

        config = _config(campaign, settings.stated)
        budget = settings.device_budget
        return shrink_campaign(campaign.folder, config, device_budget=budget, **context.options)

    def advice(self, result: ShrunkFindings) -> str:
        """Return how to see them."""
        return f"A page of them: {shlex.join(['edgeflare', 'report', result.folder])}"

    def sections(
        self, result: ShrunkFindings, names: Name, store: Store | None
    ) -> Iterator[Section]:
        """Yield the distances."""
        del names, store
        yield Section(
            "shrunk", "Findings nearer to their seeds", (*shrunk_document(result),), order=71
        )


EXPLAIN, SHRINK = Explain(), Shrink()
