"""EdgeFlare's own analyses of campaigns' stored answers: soundness, agreement and the ranking."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from edgeflare._internal.records import as_json
from edgeflare._internal.text import (
    NOTHING,
    capitalized,
    counted,
    margin_text,
    number_text,
    p_value_text,
    percent_text,
    size_text,
)
from edgeflare.analysis.agreement import Agreements, agreements
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.analysis.campaign_verdict import TONES, campaign_soundness
from edgeflare.analysis.check import NOT_ASKED, Checked, checked
from edgeflare.analysis.ranking.candidates import (
    CompareSettings,
    Comparison,
    rank_candidates,
    run_models,
)
from edgeflare.analysis.ranking.paired_tests import Duel
from edgeflare.analysis.ranking.ranking import RankedModel, Ranking
from edgeflare.analysis.ranking.scores import Estimate
from edgeflare.analysis.soundness import Soundness
from edgeflare.analysis.summary import ControlFigures, control_figures
from edgeflare.answers.detections.matching import DIFFERENCE_KINDS, DifferenceKind
from edgeflare.answers.detections.words import KIND_WORDS, kinds_text
from edgeflare.campaign.comparison import candidates_named
from edgeflare.campaign.events import BatchProgress
from edgeflare.campaign.pair.input_finder import FoundInputs, InputPair, found_inputs
from edgeflare.campaign.settings.config import config_from
from edgeflare.campaign.settings.flags import Flag
from edgeflare.document import (
    Block,
    Column,
    Figures,
    Heading,
    Item,
    Listing,
    Section,
    Table,
    Text,
    Tone,
)
from edgeflare.errors import ModelError, UsageError
from edgeflare.reports.campaign import control_list
from edgeflare.reports.devices import agreement_blocks
from edgeflare.store import Store
from edgeflare.triage.cause import Triage
from edgeflare.words import triage as triage_words
from edgeflare.words.inputs import feed_words
from edgeflare.words.next_steps import next_step, step_for
from edgeflare.words.soundness import evidence_sentences, soundness_sentence

_DUELS_SHOWN = 45
_decimal = partial(number_text, digits=1)
_VERDICTS = {"sound": "is sound", "worse": "is worse", "cannot-tell": "is undecided"}
_P_MEANS = (
    "what decides is p, of the paired permutation test (how likely so great a difference is by "
    "chance): a tie where it is above"
)


class SoundnessSettings(BaseModel):
    """How sure the verdict is to be."""

    confidence: Annotated[float, Flag("--confidence", metavar="SHARE")] = Field(
        0.95, gt=0.5, lt=1, description="Confidence in the verdict."
    )


class NoSettings(BaseModel):
    """There are none: what bounds a triage are counts."""


class _Triage(Analysis[NoSettings, Triage]):
    name = "triage"
    about = (
        "Find why a campaign's two models differ, by experiments with both files on this machine."
    )
    settings = NoSettings
    result = Triage

    def run(self, campaign: Store, settings: NoSettings, context: RunContext) -> Triage:
        from edgeflare.campaign.pair.triage import (
            triage_campaign,  # showing a result needs no models
        )

        del settings, context
        return triage_campaign(campaign, config_from(campaign.campaign, str(campaign.folder)))

    def to_json(self, result: Triage) -> dict[str, Any]:
        """Return the result with each cause in words, and what to do next about it."""
        found: dict[str, Any] = as_json(result)
        for name, causes in (("causes", result.causes), ("remarks", result.remarks)):
            for cause, plain in zip(causes, found[name], strict=True):
                plain |= {"text": triage_words.sentence(cause), "next": step_for(cause)}
        return found | {"next": next_step(result)}

    def sections(self, result: Triage) -> Iterator[Section]:  # type: ignore[override]
        found = [Item(capitalized(triage_words.sentence(one))) for one in result.causes]
        remarks = [Item(capitalized(triage_words.sentence(one))) for one in result.remarks]
        blocks: list[Block] = [Text(capitalized(triage_words.headline(result)))]
        if found:
            blocks.append(Listing(tuple(found)))
        if step := next_step(result):
            blocks.append(Text(f"Next: {step}."))
        if remarks:
            blocks += [
                Text("What else an application may meet:"),
                Listing(tuple(remarks)),
            ]
        if tried := triage_words.ruled_out(result):
            blocks.append(Listing(tuple(Item(capitalized(one)) for one in tried)))
        yield Section("triage", "Why the models differ", tuple(blocks), order=30)


class _Inputs(Analysis[NoSettings, FoundInputs]):
    name = "inputs"
    about = "Tell how samples enter a campaign's models, what tells it, and whether another way makes them agree."
    settings = NoSettings
    result = FoundInputs
    stored = False

    def run(self, campaign: Store, settings: NoSettings, context: RunContext) -> FoundInputs:
        del settings, context
        return found_inputs(campaign)

    def to_json(self, result: FoundInputs) -> dict[str, Any]:
        return {"inputs": as_json(result.inputs), **_Triage().to_json(result.triage)}

    def sections(self, result: FoundInputs) -> Iterator[Section]:  # type: ignore[override]
        yield Section("inputs", "How samples enter the models", tuple(_fed(result.inputs)), order=5)
        yield from _Triage().sections(result.triage)


def _fed(pair: InputPair) -> Iterator[Text]:
    for feed in (pair.original, pair.deployed):
        words = feed_words(feed.samples, feed.options, feed.source, feed.names)
        yield Text(f"{feed.file} takes {words}")


class _Check(Analysis[NoSettings, Checked]):
    """What ``edgeflare check`` says of the campaign that it made."""

    name = "check"
    about = "Judge a campaign's deployed model: the verdict, the cause with its proof, and the next step."
    settings = NoSettings
    result = Checked
    stored = False
    not_asked = NOT_ASKED

    def run(self, campaign: Store, settings: NoSettings, context: RunContext) -> Checked:
        del settings
        if not any(seed.outputs is not None for seed in campaign.seeds()):
            return NOT_ASKED
        from edgeflare.campaign.pair.triage import stored_triage

        config = config_from(campaign.campaign, str(campaign.folder))
        return checked(campaign, stored_triage(campaign, config, context.progress))

    def to_json(self, result: Checked) -> dict[str, Any]:
        """Return the contract: the verdict, the user's own inputs, and what the triage says."""
        empty = {"causes": [], "remarks": [], "ruled_out": {}, "failed": {}, "next": ""}
        triage = dict.fromkeys(field.name for field in fields(Triage)) | empty
        if result.triage is not None:
            triage = _Triage().to_json(result.triage)
        verdict_and_own = as_json(result)
        verdict_and_own.pop("triage")
        return {**verdict_and_own, **triage}

    def sections(self, result: Checked) -> Iterator[Section]:  # type: ignore[override]
        lines = [Text(_WORDS_OF_VERDICT[result.verdict], _TONES_OF_VERDICT[result.verdict])]
        own = result.own
        text = f"{counted(len(own.flips), 'flip')} on {counted(own.asked, 'input')} of your own"
        if own.flips:
            shown = ", ".join(f"{one.name} ({one.difference})" for one in own.flips[:_FLIPS_SHOWN])
            text += f": {shown}" + (" ..." if len(own.flips) > _FLIPS_SHOWN else "")
        lines.append(Text(text))
        if (right := own.accuracy) is not None:
            before, after = (
                percent_text(one / right.labelled) for one in (right.original, right.deployed)
            )
            lines.append(
                Text(f"Accuracy {before} -> {after} on {counted(right.labelled, 'label')}")
            )
        lines += [] if result.inputs is None else _fed(result.inputs)
        yield Section("check", "Check", tuple(lines), order=5)
        if result.triage is not None:
            yield from _Triage().sections(result.triage)

    def exit_code(self, result: Checked) -> int:
        return _CODES[result.verdict]


_FLIPS_SHOWN = 3
_CODES = {"sound": 0, "worse": 1, "not-comparable": 2, None: 3, "cannot-tell": 4}
_WORDS_OF_VERDICT = {
    None: "CAN'T ASK: no device answered",
    "sound": "SOUND: as good as healthy references",
    "worse": "WORSE",
    "not-comparable": "CAN'T COMPARE: the answers of one model can't be used",
    "cannot-tell": "CAN'T SAY",
}
_TONES_OF_VERDICT: Mapping[str | None, Tone] = {
    None: "bad",
    "sound": "good",
    "worse": "bad",
    "not-comparable": "bad",
    "cannot-tell": "plain",
}


class _Soundness(Analysis[SoundnessSettings, Soundness]):
    name = "soundness"
    about = "Judge a campaign's deployed model against its healthy references and its labels."
    settings = SoundnessSettings
    result = Soundness
    stored = False

    def run(self, campaign: Store, settings: SoundnessSettings, context: RunContext) -> Soundness:
        del context
        found = campaign_soundness(campaign, confidence=settings.confidence)
        if found is None:
            raise UsageError(
                f"{campaign.folder} has no reference, and labels don't tell that the deployed model is "
                "worse: run it with --reference int8 or --reference CAMPAIGN"
            )
        return found

    def sections(self, result: Soundness) -> Iterator[Section]:  # type: ignore[override]
        evidence = tuple(Item(text) for text in evidence_sentences(result))
        blocks = (Text(soundness_sentence(result), TONES[result.verdict]), Listing(evidence))
        yield Section("soundness", "Verdict", blocks, order=10)


class _Agreement(Analysis[NoSettings, Agreements]):
    name = "agreement"
    about = "Compare the answers of devices that searched for themselves, each two of them."
    settings = NoSettings
    result = Agreements
    stored = False

    def run(self, campaign: Store, settings: NoSettings, context: RunContext) -> Agreements:
        del settings, context
        pairs, every_device = agreements(campaign)
        if not pairs:
            raise UsageError(
                f"the devices of {campaign.folder} shared the seeds, or there is one: run it with "
                "several devices and --fleet replicate"
            )
        return Agreements(pairs, every_device)

    def sections(self, result: Agreements) -> Iterator[Block]:  # type: ignore[override]
        yield from agreement_blocks(result.pairs, result.every_device)


class _Control(Analysis[NoSettings, ControlFigures]):
    name = "control"
    about = "Count the false alarms of a campaign's control: the original against itself."
    settings, result = NoSettings, ControlFigures
    stored = False

    def run(self, campaign: Store, settings: NoSettings, context: RunContext) -> ControlFigures:
        del settings, context
        if (figures := control_figures(campaign)) is None:
            raise UsageError(f"{campaign.folder} has no control: run it with --control")
        return figures

    def sections(self, result: ControlFigures) -> Iterator[Section]:  # type: ignore[override]
        yield Section("control", "Control", (Figures((*control_list(result),)),))


_FAILED = 3


class _Compare(Analysis[CompareSettings, Comparison]):
    """``compare``; candidates that are model files are run first."""

    name = "compare"
    about = "Rank candidate deployed models of one original by how hard they are to make deviate."
    settings, result = CompareSettings, Comparison
    scope = "campaigns"
    argument = Flag(
        "candidates",
        metavar="CANDIDATE...",
        help="Deployed model files, folders (or addresses) of campaigns or of comparisons, or both.",
    )
    each = "candidate"

    def run(
        self, campaign: Sequence[Path], settings: CompareSettings, context: RunContext
    ) -> Comparison:
        candidates = candidates_named(campaign, level=settings.level)
        ran = run_models(candidates, settings, progress=context.batch, **context.reach)
        failed = ran.failed if ran else {}
        if len(candidates) - len(failed) < 2:
            why = "; ".join(f"{name}: {text}" for name, text in failed.items())
            error = ModelError(
                "fewer than two candidates are left, so that there is nothing to rank; not ranked: "
                f"{why}"
            )
            error.exit_code = _FAILED
            raise error
        return rank_candidates(candidates, ran, settings)

    def go_on(self, last: BatchProgress) -> str:
        folder = last.folder.parent
        return (
            f"The candidates' campaigns lie in {folder}; the same command with --out "
            f"{shlex.quote(str(folder))} goes on from there"
        )

    def advice(self, result: Comparison) -> str:
        return f"The candidates' campaigns are in {result.folder}" if result.folder else ""

    def exit_code(self, result: Comparison) -> int:
        return _FAILED if result.failed else 0

    def sections(self, result: Comparison) -> Iterator[Section]:  # type: ignore[override]
        yield Section("ranking", "", (*ranking_document(result.ranking, result.failed),))


def ranking_document(ranking: Ranking, failed: Mapping[str, str]) -> list[Block]:
    """Return verdicts, candidates, pairs and notes; `failed` has candidates that failed."""
    verdicts = filter(None, (ranking.accuracy_verdict, ranking.success_verdict))
    judged = {one.name: one.soundness for one in ranking.candidates if one.soundness}
    has_references = any(one.references or one.left_out for one in judged.values())
    against = f"Against {'healthy references' if has_references else 'the original'}"
    words = ", ".join(f"{name} {_VERDICTS[one.verdict]}" for name, one in judged.items())
    sentences = tuple(
        Item(
            " ".join([soundness_sentence(one), *evidence_sentences(one)]),
            TONES[one.verdict],
            f"{name}:",
        )
        for name, one in judged.items()
    )
    evidence: list[Block] = [Heading(against), Listing(sentences)] if judged else []
    about = (
        f"{ranking.seeds} seeds that all have finished; approximate intervals of "
        f"{percent_text(ranking.level)}, accuracy's of 95 %; queries are those of the searches "
        "that found a trigger:"
    )
    return [
        *([Text(f"{against} {words}.", "strong")] if judged else []),
        Text(ranking.verdict, "strong"),
        *map(Text, verdicts),
        *evidence,
        Heading("Candidates"),
        Table(_candidates(ranking), ranking.candidates, about),
        *_differences(ranking),
        Listing(tuple(Item(f"not ranked: {name}: {why}") for name, why in failed.items())),
        *(_duels(ranking) if len(ranking.duels) <= _DUELS_SHOWN else []),
        Listing(tuple(Item(sentence, "warn", "note:") for sentence in ranking.notes)),
        Listing(tuple(Item(f"Differences: {sentence}") for sentence in ranking.differences)),
    ]


def _candidates(ranking: Ranking) -> tuple[Column, ...]:
    ties = {
        candidate.name: sum(
            duel.verdict == "tie" and candidate.name in (duel.first, duel.second)
            for duel in ranking.duels
        )
        for candidate in ranking.candidates
    }
    by_queries = ranking.measure == "queries"
    text = _decimal if by_queries else margin_text

    def value(one: RankedModel) -> str:
        return _bounded(text, one.value.value, one.value.low, one.value.high)

    def accuracy(one: RankedModel) -> str:
        found = one.figures.accuracy
        return (
            NOTHING if found is None else _bounded(percent_text, found.rate, found.low, found.high)
        )

    return (
        Column("place", 0, lambda one: str(one.place)),
        Column("candidate", 0, lambda one: one.name, text=True),
        Column("mean rank", 0, lambda one: number_text(one.mean_rank, 1), optional=True),
        Column("queries counted" if by_queries else ranking.measure, 0, value),
        Column("ties with", 9, lambda one: str(ties[one.name])),
        Column("accuracy", 10, accuracy),
        Column("deviating seeds", 8, lambda one: str(one.figures.seed_deviates)),
        Column("success", 5, lambda one: percent_text(one.figures.success_rate)),
        Column("queries", 7, lambda one: _count(one.figures.queries)),
        Column("median", 4, lambda one: _count(one.figures.queries_median)),
        Column("L2", 3, lambda one: number_text(one.figures.l2)),
        Column("size", 6, lambda one: size_text(one.size)),
        Column("ms", 6, _milliseconds),
    )


def _differences(ranking: Ranking) -> list[Block]:
    """Return how the candidates' detections differ on the seeds as they are; nothing of others."""
    rows = [candidate for candidate in ranking.candidates if candidate.differences is not None]

    def kind_column(kind: DifferenceKind) -> Column:
        return Column(KIND_WORDS[kind], 0, lambda row: f"{row.differences.inputs_by_kind[kind]:,}")

    def share(row: RankedModel) -> str:
        counts = row.differences
        return percent_text(counts.differing / counts.inputs if counts and counts.inputs else None)

    def objects(row: RankedModel) -> str:
        return "" if row.differences is None else kinds_text(row.differences.kinds)

    columns = (
        Column("candidate", 0, lambda row: row.name, text=True),
        Column("seeds that differ", 0, share),
        *map(kind_column, DIFFERENCE_KINDS),
        Column("objects", 1, objects, text=True),
    )
    about = "Seeds that differ as they are, and of those the number with each kind:"
    return [Heading("Detections on the seeds"), Table(columns, rows, about)] if rows else []


def _bounded(words: Callable[[float], str], *numbers: float) -> str:
    """Return a number with its lower and upper bound."""
    number, low, high = map(words, numbers)
    return f"{number} [{low}, {high}]"


def _count(one: Estimate | None) -> str:
    return NOTHING if one is None else _bounded(_decimal, one.value, one.low, one.high)


def _milliseconds(one: RankedModel) -> str:
    seconds = one.figures.seconds_per_inference
    return NOTHING if seconds is None else f"{1000 * seconds:.3g}"


def _duels(ranking: Ranking) -> list[Block]:
    level = ranking.duels[0].level
    about = (
        "Seed by seed, the first less the second; each approximate interval of "
        f"{percent_text(level, 2)}; {_P_MEANS} {number_text(1 - level, 4)}, so that all verdicts "
        f"together have {percent_text(ranking.level)}:"
    )
    digits = 1 if ranking.measure == "queries" else 3
    success = {(duel.first, duel.second): duel for duel in ranking.success}

    def difference(duel: Duel) -> str:
        value, low, high = (f"{one:+.{digits}f}" for one in (duel.difference, *duel.interval))
        return f"{value} [{low}, {high}]"

    def by_success(duel: Duel) -> str:
        other = success.get((duel.first, duel.second))
        return "" if other is None else f"{p_value_text(other.p)} {other.verdict}"

    def verdict(duel: Duel) -> str:
        return f"{duel.verdict}, too few seeds" if duel.too_few else duel.verdict

    columns = (
        Column("first", 0, lambda duel: duel.first, text=True),
        Column("second", 0, lambda duel: duel.second, text=True),
        Column(f"difference in {ranking.measure}", 0, difference),
        Column("p", 0, lambda duel: p_value_text(duel.p)),
        Column("harder to make deviate", 0, verdict, text=True),
        Column("by success (p)", 5, by_success, text=True, optional=True),
    )
    return [Heading("Pairs"), Table(columns, ranking.duels, about)]


TRIAGE: Analysis[NoSettings, Triage] = _Triage()
CHECK, INPUTS = _Check(), _Inputs()
SOUNDNESS, AGREEMENT, CONTROL, COMPARE = _Soundness(), _Agreement(), _Control(), _Compare()
