"""Stored triggers: a replay, its tables by state and of reproductions, and those of a corpus."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from edgeflare._internal.flags import FILES, Flag, FlagsOfCampaign, Typed
from edgeflare._internal.text import (
    ADDRESS,
    NOTHING,
    counted,
    margin_text,
    number_text,
    size_text,
)
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.analysis.class_names import class_name, class_namer
from edgeflare.analysis.corpus import CorpusAddition, CorpusSummary
from edgeflare.analysis.limits import LimitCheck, check_limits
from edgeflare.analysis.replay import Replayed, ReplayFigures, ReplaySummary, replay_summary
from edgeflare.answers.detections.words import with_names
from edgeflare.campaign.replay.results import ReplayedInput, ReplayState
from edgeflare.document import (
    Block,
    Column,
    Figures,
    Heading,
    KeyFigure,
    Name,
    Section,
    Table,
    Text,
    table_of,
)
from edgeflare.reports.campaign import MOST_SHOWN, limits_list
from edgeflare.store import campaign_text, folder_at
from edgeflare.store.corpus.records import CorpusRemoved
from edgeflare.words.findings import answer_words, answers_text, text_parts
from edgeflare.words.inputs import sample_form
from edgeflare.words.verdict import unusable_sentences

if TYPE_CHECKING:
    from edgeflare.campaign.replay.reproduce import Reproduction, TopScore

STATE_WORDS: Mapping[ReplayState, str] = {
    "new": "new: deviates now, did not before",
    "still": "still: deviates as before",
    "fixed": "fixed: deviated, and does not now",
    "agrees": "agrees, as before",
    "unstable": "unstable: the deviation did not repeat, or answers can't be used",
    "nonfinite": "NaN or infinity in an output",
    "failed": "failed: a model can't answer",
}
_RARE = ("unstable", "nonfinite", "failed")


def replay_document(
    summary: ReplaySummary, limits: Sequence[LimitCheck], name: Name = str
) -> list[Block]:
    """Return counts, the inputs of interest, whether limits hold, and how to see more.

    `name` returns a class's name.
    """
    page = shlex.join(["edgeflare", "report", summary.folder])
    unusable = [Text(sentence, "bad") for sentence in unusable_sentences(summary.unusable)]
    return [
        *unusable,
        *replay_inputs(summary, name),
        *limits_list(limits),
        Text(f"As a page: {page}"),
    ]


def replay_inputs(summary: ReplaySummary, name: Name = str) -> list[Block]:
    """Return counts and the inputs of interest; `name` returns a class's name."""
    unclear = (*summary.unstable, *summary.nonfinite, *summary.failed)
    known = tuple(one for one in summary.still if not one.elsewhere)
    return [
        *replay_counts(summary.figures, summary),
        *_inputs("New deviations", summary.new, name),
        *_inputs("Known deviations with other answers", summary.elsewhere, name),
        *_inputs("Known deviations", known, name),
        *_inputs("Without a clear answer", unclear, name),
    ]


def replay_counts(figures: ReplayFigures, summary: ReplaySummary | None = None) -> list[Block]:
    """Return what was replayed on which model, and the number of inputs in each state."""
    file = {None: "", True: " (the same file as then)", False: " (another file than then)"}
    text = f"A replay of the {figures.source_kind} {figures.source} on {figures.deployed or '?'}"
    text += file[figures.same_deployed]
    if summary is not None and summary.original:
        text += f", against {summary.original}{file[summary.same_original]}"
    names = list(figures.by_device) if len(figures.by_device) > 1 else []
    rows = [
        [
            STATE_WORDS[state] + _remark(figures, state),
            f"{count:,}",
            *(f"{figures.by_device[name][state]:,}" for name in names),
        ]
        for state, count in figures.counts.items()
        if count or state not in _RARE
    ]
    if figures.unfinished:
        rows.append(["not asked about yet", f"{figures.unfinished:,}", *("" for _ in names)])
    header = ["inputs", "in all", *(name or "not asked" for name in names)]
    return [Text(text), table_of(header, rows)]


def _remark(figures: ReplayFigures, state: ReplayState) -> str:
    if state == "fixed" and figures.narrow:
        return f" ({figures.narrow:,} narrowly: a tie, or below the margin floor)"
    if state == "still" and figures.elsewhere:
        return f" ({figures.elsewhere:,} with other answers)"
    return ""


def _inputs(title: str, inputs: Sequence[ReplayedInput], name: Name) -> list[Block]:
    if not inputs:
        return []
    differ = any(one.difference for one in inputs)  # says what matters of both answers
    says = 2 if differ else 0
    columns = (
        Column("input", 0, lambda one: f"{one.kind} {one.seed_id}", text=True),
        Column("device", 0, lambda one: one.device, text=True, optional=True),
        Column("original says", says, lambda one: _answers(one, 0, name), text=True),
        Column("deployed says", says, lambda one: _answers(one, 1, name), text=True),
        Column(
            "difference",
            0,
            lambda one: with_names(one.difference or "", name),
            text=True,
            optional=True,
        ),
        Column("smaller margin", 0, lambda one: margin_text(one.margin), optional=True),
        Column("L2", 0, lambda one: number_text(one.l2), optional=True),
        Column("detail", 1, lambda one: one.detail, text=True, optional=True),
    )
    more = len(inputs) - MOST_SHOWN
    where = "`edgeflare report --format csv` has them all"
    rest: list[Block] = [
        Text(f"Left out here: {counted(more, 'more input')}; {where}", has_code=True)
    ]
    return [Heading(title), Table(columns, inputs[:MOST_SHOWN]), *(rest if more > 0 else [])]


def _pair(one: ReplayedInput, when: str = "") -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return both models' labels and texts, now or "_before"."""
    labels, texts = (
        (getattr(one, f"original_{what}{when}"), getattr(one, f"deployed_{what}{when}"))
        for what in ("label", "text")
    )
    return labels, texts


def _answers(one: ReplayedInput, place: int, name: Name) -> str:
    """Return a model's answer before and now, one answer if they are the same."""
    now, before = (
        answer_words(labels[place], text_parts(*texts)[place], name)
        if one.difference is None
        else with_names(texts[place] or NOTHING, name)  # detections, or values, which have no text
        for labels, texts in (_pair(one), _pair(one, "_before"))
    )
    return now if before in (NOTHING, now) else f"{before} -> {now}"


def replayed_words(one: ReplayedInput, name: Name) -> str:
    """Return an input's state with both models' answers: ``still deviates: 4 -> 9, was 4 -> 7``."""
    labels, texts = _pair(one)
    labels_before, texts_before = _pair(one, "_before")
    now = answers_text(labels, texts, name)
    if one.difference is not None:
        now = with_names(one.difference, name)
    elif one.original_text is None and labels[0] == labels[1] and one.state in ("new", "still"):
        now = f"{name(one.original_label)} by both"  # where a tolerance decides
    words = {
        "new": f"new: {now}",
        "still": f"still deviates: {now}",
        "fixed": f"fixed: {now}",
        "agrees": f"agrees as before: {now}",
        "unstable": "a deviation that did not repeat",
        "nonfinite": "NaN or infinity in an output",
        "failed": "a model can't answer",
    }[one.state]
    if one.narrow:
        words += ", narrowly"
    if not (one.state in ("new", "fixed") or one.elsewhere):
        return words
    if all(before is None for before in (*labels_before, *texts_before)):
        return words
    before = answers_text(labels_before, texts_before, name)
    if one.difference is not None:
        before = " -> ".join(with_names(text or NOTHING, name) for text in texts_before)
    return f"{words}, was {before}"


def reproductions_document(found: "Sequence[Reproduction]") -> list[Block]:
    """Return the answers of both models to each trigger, when it was found and now."""
    return [block for one in found for block in _reproduction(one)]


_UNKNOWN = "not known"


def _reproduction(one: "Reproduction") -> list[Block]:
    texts = one.original_text_now is not None or one.original_text_before is not None
    differ = one.difference_now is not None or one.difference_before is not None
    named = partial(class_name, one.class_names)  # of detectors; models of values have no texts

    def answer(model: str, when: str) -> str:
        text: str | None = getattr(one, f"{model}_text_{when}")
        if differ:
            return with_names(text or _UNKNOWN, named)
        if texts:
            return _UNKNOWN if text is None else f'"{text}"'
        top: Sequence[TopScore] = getattr(one, f"{model}_{when}")
        return ", ".join(f"{one.label} ({one.probability:.4f})" for one in top) or _UNKNOWN

    moments = (("before", "when found"), ("now", "now"))
    rows = [
        [model, words, answer(model, when)]
        for model in (("original", "deployed") if texts or not differ else ())
        for when, words in moments
    ]
    heading = "transcript" if texts else "most probable classes"
    if differ:
        rows += [
            ["difference", words, with_names(getattr(one, f"difference_{when}") or _UNKNOWN, named)]
            for when, words in moments
        ]
        heading = "detected" if texts else "answers"
    return [
        Heading(f"{one.seed_id} on {one.device}: {_outcome(one)}", 4),
        table_of(["model", "", heading], rows, text=3),
        Text(_equality(one)),
    ]


def _outcome(one: "Reproduction") -> str:
    if one.deviates:
        verb = "deviates" if one.found_on is None else "still deviates"
        return f"{verb} (confirmed {one.confirmed} times)"
    words = {
        "unstable": "deviates, but not each time",
        "nonfinite": "has NaN or infinity in an output",
        "failed": f"can't be answered: {one.detail}",
    }
    return words.get(one.state, "does not deviate (any more)")


def _equality(one: "Reproduction") -> str:
    if one.bit_equal is None:
        return "No scores are stored to compare with."
    where = "" if one.found_on == one.device else f", on {one.found_on}"
    whose = {
        (True, True): "Both models' answers are",
        (True, False): "The original's answer alone is",
        (False, True): "The deployed model's answer alone is",
    }.get((bool(one.original_equal), bool(one.deployed_equal)), "Neither model's answer is")
    return f"{whose} what was stored, to the last bit{where}."


# A corpus


def additions_document(corpus: Path, additions: Sequence[CorpusAddition]) -> list[Block]:
    """Return what became of the triggers of each campaign that was added; at least one."""
    columns = (
        Column("campaign", 0, lambda one: one.folder, text=True),
        *(_count_column(name) for name in ("new", "replaced", "known")),
        Column("near duplicates", 0, lambda one: f"{one.near:,}"),
        _count_column("noted"),
    )
    entries = counted(additions[-1].entries, "trigger")
    return [Table(columns, additions), Text(f"{corpus} has {entries} now")]


def _count_column(name: str) -> Column:
    return Column(name, 0, lambda one: f"{getattr(one, name):,}")


def removed_document(removed: CorpusRemoved, *, dry_run: bool) -> list[Block]:
    """Return what was removed; `dry_run`: what would be."""
    text = (
        f"{'would remove' if dry_run else 'removed'} {counted(removed.entries, 'trigger')} and "
        f"{counted(removed.samples, 'sample file')} ({size_text(removed.bytes)})"
    )
    if removed.kept:
        stay = "stay" if dry_run else "stayed"
        text += f"; {removed.kept:,} that another model showed, too, {stay}"
    return [Text(text)]


def corpus_document(summary: CorpusSummary) -> list[Block]:
    """Return figures of a corpus, each model's last answers, and the pairs of classes."""
    targets = (
        Column("model", 0, lambda one: one.model, text=True),
        Column("device", 0, lambda one: one.device, text=True),
        Column("deviate", 0, lambda one: f"{one.deviating:,}"),
        Column("agree", 0, lambda one: f"{one.agreeing:,}"),
        Column("never looked at", 1, lambda one: f"{one.unseen:,}"),
        Column("last look", 0, lambda one: _moment(one.looked_at), text=True),
    )
    pairs = [tuple(map(str, pair)) for pair in summary.pairs[:MOST_SHOWN]]
    if rest := summary.pairs[MOST_SHOWN:]:
        count = sum(pair.entries for pair in rest)
        pairs.append((counted(len(rest), "more pair"), "", str(count)))
    return [
        Figures(tuple(_figures(summary))),
        Table(targets, summary.targets),
        table_of(["original", "deployed", "triggers"], pairs, text=2),
    ]


def _figures(summary: CorpusSummary) -> list[KeyFigure]:
    seeds, times = counted(summary.seeds, "seed input"), counted(summary.sightings, "time")
    campaigns, near = (
        counted(summary.campaigns, "campaign"),
        counted(summary.near, "near duplicate"),
    )
    rows = [
        KeyFigure("corpus", summary.folder),
        KeyFigure("triggers", f"{summary.entries:,} from {seeds}"),
        KeyFigure("found", f"{times} in {campaigns}; {near} refused"),
        KeyFigure("kept", f"up to {summary.per_pair} for one seed input and class pair"),
    ]
    if summary.shape is not None:
        form = sample_form(summary.shape, summary.rate)
        rows.append(KeyFigure("inputs", f"{form}, {summary.classes} classes"))
    originals = {digest[:12]: count for digest, count in summary.originals.items()}
    for name, models in (("shown by", summary.models), ("original", originals)):
        if models:
            text = ", ".join(f"{one} ({count:,})" for one, count in models.items())
            rows.append(KeyFigure(name, text))
    if summary.found_first is not None and summary.found_last is not None:
        days = counted((datetime.now(timezone.utc) - summary.found_first).days, "day")
        first, last = _moment(summary.found_first), _moment(summary.found_last)
        rows.append(KeyFigure("age", f"first found {first} ({days} ago), last {last}"))
    return [*rows, KeyFigure("on disk", size_text(summary.size))]


def _moment(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


# The command

_INPUTS = "Inputs"


class ReplaySettings(BaseModel):
    """What ``replay`` is told; `typed` is what is otherwise than in the campaign."""

    typed: Annotated[
        Typed,
        FlagsOfCampaign(
            *("original", "deployed", "input", "original_input", "deployed_input"),
            *("deployed_output", "input_name", "original_input_name", "deployed_input_name"),
            *("fixed_inputs", "original_fixed_inputs", "deployed_fixed_inputs"),
            *("deployed_output_name", "runtime_option", "device", "fleet", "patience", "python"),
            *("inventory", "confirmations", "out", "store", "samples"),
            original={"help": "The original model, where it has moved or changed."},
            deployed={"help": "The new deployed model; by default the campaign's."},
            device={"help": "Other devices than the campaign's; may be repeated."},
            confirmations={
                "help": "How often a deviation is sent again; by default as in the campaign.",
                "panel": _INPUTS,
            },
        ),
    ] = Field(default_factory=Typed)
    campaign: Annotated[Path | None, Flag("--campaign", panel=FILES, parser=folder_at)] = Field(
        None,
        description="A campaign.toml, or a campaign's folder, whose models, devices and limits are taken. "
        "A corpus has none of its own.",
    )
    trigger: Annotated[tuple[str, ...], Flag("--trigger", metavar="SEED_ID", panel=_INPUTS)] = (
        Field(
            (),
            description="Only the trigger that was found from this seed, with what both models said then and "
            "say now; may be repeated. Leaves nothing behind without --out.",
        )
    )
    only: Annotated[str | None, Flag("--only", metavar="KIND", panel=_INPUTS)] = Field(
        None,
        description="triggers, or seeds: the seed inputs on which the models agreed. Default: both.",
    )


class _Replay(Analysis[ReplaySettings, Replayed]):
    name, scope = "replay", "folder"
    about = "Send stored triggers and seeds to a new model, firmware or device: what is fixed, new?"
    settings, result = ReplaySettings, Replayed
    argument = Flag(
        "source", help=f"A campaign's folder, a replay's, or a trigger corpus; or {ADDRESS}."
    )

    def run(self, campaign: list[Path], settings: ReplaySettings, context: RunContext) -> Replayed:
        from edgeflare.campaign.replay.reproduce import reproduce  # reports need nothing that runs
        from edgeflare.campaign.replay.results import replay_config
        from edgeflare.campaign.replay.run import replay_base, run_replay

        (source,), values, trigger = campaign, settings.typed.values, settings.trigger
        paths = {name: values.get(name, {}).get("path") for name in ("original", "deployed")}
        base = replay_base(source, settings.campaign, **paths)
        config = replay_config(base, values, settings.typed.flags)
        if trigger and settings.only is None:
            triggers = reproduce(source, trigger, config, **context.options)
            kept = None if config.out is None else str(config.out)
            return Replayed(str(source), kept, triggers=triggers)
        folder = run_replay(source, config, only=settings.only, seed_ids=trigger, **context.options)
        summary = replay_summary(folder)
        return Replayed(summary.source, summary.folder, summary, check_limits(folder))

    def limits(self, result: Replayed) -> tuple[LimitCheck, ...]:
        return result.limits

    def advice(self, result: Replayed) -> str:
        if result.folder is None:
            return ""
        lines = [f"Everything is in {result.folder}"]
        if result.summary is not None and result.summary.source_kind == "corpus":
            corpus = campaign_text(Path(result.source))
            lines.append(
                f"Tell the corpus: {shlex.join(['edgeflare', 'corpus', 'add', corpus, result.folder])}"
            )
        return "\n".join(lines)

    def sections(self, result: Replayed) -> Iterator[Section]:  # type: ignore[override]
        if result.summary is None:
            blocks = reproductions_document(result.triggers)
        else:
            name = class_namer(result.summary.folder)
            blocks = replay_document(result.summary, result.limits, name)
        yield Section("replay", "", (*blocks,))


REPLAY = _Replay()
