"""The values of the report's template."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare._internal import toml
from edgeflare._internal.text import capitalized, counted, margin_text, number_text
from edgeflare.analysis.base import stored_sections
from edgeflare.analysis.campaign_verdict import Verdict, VerdictTone, campaign_verdict, is_control
from edgeflare.analysis.outcome_stats import units_of
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.answers import AnswerKind
from edgeflare.answers.detections.words import with_names
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.answers.oracles import is_measured
from edgeflare.campaign.status import CampaignStatus, campaign_status
from edgeflare.document import Block, Column, Figures, KeyFigure, Name, Table
from edgeflare.reports.campaign import END_WORDS, key_figures, limits_list, text_parts
from edgeflare.reports.charts import histogram
from edgeflare.reports.devices import agreement_blocks, devices_tables, telemetry_table
from edgeflare.reports.document import to_html
from edgeflare.reports.html.devices import device_charts, fingerprints, health_table
from edgeflare.reports.html.explanation import explanation_context
from edgeflare.reports.html.faults import faults_context
from edgeflare.reports.html.gallery import STATUS_WORDS, Collected, Row, SeverestTrigger, matrix
from edgeflare.reports.html.replay import STATE_WORDS
from edgeflare.reports.html.survey import survey_context
from edgeflare.reports.media import (
    LARGEST_CHANGE_DB,
    LOWEST_DB,
    change_colours,
    gradient,
    level_colours,
)
from edgeflare.reports.replay import replay_counts
from edgeflare.store import Store, campaign_text
from edgeflare.types import Status
from edgeflare.words.devices import runtime_words, value_words
from edgeflare.words.faults import coverage_words
from edgeflare.words.verdict import guidance, progress, verdict_words


class Headline(NamedTuple):
    """The first sentence, what it means for the reader, and the sentences below it.

    `progress` says that the campaign isn't finished, "" where it is.
    """

    sentence: str
    tone: VerdictTone
    more: tuple[str, ...]
    progress: str


def headline(
    result: Verdict,
    summary: Summary,
    collected: Collected,
    status: CampaignStatus,
    name: Name,
) -> Headline:
    """Return the result of a campaign, a replay or a control; `name` returns a class's name."""
    sentence, found = verdict_words(result)
    more = [found] if found else []
    if summary.replay is None:
        more += _more(summary, collected, name)
    more += guidance(result)
    return Headline(sentence, result.tone, tuple(more), progress(summary, status))


def _more(summary: Summary, collected: Collected, name: Name) -> list[str]:
    more = []
    itself = summary.by_status.get("seed-deviates", 0)
    if itself:
        more.append(
            f"{counted(itself, 'trigger is a seed', 'triggers are seeds')} as "
            f"{'it is' if itself == 1 else 'they are'}, without any search."
        )
    worst = collected.worst
    if worst is not None and worst.severity >= 0:
        outcome = worst.finding.outcome
        words = difference_text(outcome.original, outcome.deployed, name)
        if words is not None:
            margins = (
                ""
                if summary.kind.is_measured
                else f", with margins of {margin_text(outcome.original_margin)} and "
                f"{margin_text(outcome.deployed_margin)}"
            )
            return [*more, f"The severest: {words}{margins} (from {worst.finding.seed.id})."]
        if is_measured(summary.search):
            return [*more, _furthest(worst, name)]
        verb = "says"
        answers = [name(outcome.original_label), name(outcome.deployed_label)]
        texts = text_parts(text_of(outcome.original), text_of(outcome.deployed))
        if None not in texts:
            verb, answers = "returns", [f"“{text}”" for text in texts]
        more.append(
            f"The severest: the original {verb} {answers[0]}, the deployed model {answers[1]}, "
            f"with margins of {margin_text(outcome.original_margin)} and "
            f"{margin_text(outcome.deployed_margin)} (from {worst.finding.seed.id})."
        )
    return more


def _furthest(worst: SeverestTrigger, name: Name) -> str:
    outcome = worst.finding.outcome
    ours, theirs = outcome.original_label, outcome.deployed_label
    answers = f"the original says {name(ours)}, the deployed model {name(theirs)}"
    if ours == theirs:
        answers = f"both models say {name(ours)}"
    return (
        f"The severest: scores {margin_text(worst.severity)} apart, where {answers} (from "
        f"{worst.finding.seed.id})."
    )


MOST_PAIRS = 500
"""Number of pairs of labels to filter by, the most frequent ones."""

_MOST_LISTED = 20
_SHORT_NAME = 3


def context(
    store: Store,
    collected: Collected,
    name: Name,
    replay: ReplaySummary | None = None,
) -> dict[str, Any]:
    """Return the values of ``report.html.j2``; `name` returns a class's name. Raises StoreError."""
    summary = summarize(store)
    status = campaign_status(store.folder)
    result = campaign_verdict(store, summary, summary.limits, replay)
    figures = () if replay else key_figures(summary, name)
    kind, answered = summary.kind, summary.answers
    original, deployed = (summary.models.get(which) or {} for which in ("original", "deployed"))
    return {
        "summary": summary,
        "title": f"{deployed['name']} against {original.get('name') or 'its original'}"
        if deployed.get("name")
        else summary.campaign,
        "replay": replay,
        "status": status,
        "control_of": is_control(store.folder),
        "coverage": coverage_words(summary.coverage),
        "headline": headline(result, summary, collected, status, name),
        "cards": [one for one in figures if one.main],
        "figures": to_html([Figures(tuple(one for one in figures if not one.main))]),
        "faults": faults_context(store, summary.faults, name),
        "explanation": explanation_context(store, summary.explanation, name),
        "survey": survey_context(store, summary.survey, name),
        "analyses": _analyses(store, name),
        "limits": to_html(limits_list(summary.limits)[1:]),
        "matrix": matrix(collected.pairs),
        "part": kind.page_part,
        "tables": answered
        and kind.page_tables(answered.figures, name, is_replay=replay is not None),
        "drawn": kind.is_drawn,
        "note": kind.page_note(answered.figures) if answered else "",
        "has_maps": any(one.maps for one in collected.cards),
        "margin": kind.report_words.margin,
        "sound": _sound() if summary.sample_rate else None,
        "long_names": any(len(name(deployed)) > _SHORT_NAME for _, deployed in collected.pairs),
        "facets": _facets(collected, kind, name),
        "rare_pairs": max(0, len(collected.facets.pair) - MOST_PAIRS),
        "listed": to_html(_listed(collected, name, replayed=replay is not None)),
        "histograms": _histograms(collected, summary.sample_rate),
        "spreads": to_html(_spreads(summary)),
        "replayed": to_html(replay_counts(replay.figures, replay)) if replay else "",
        "ends": [
            (capitalized(words), ends, to_html([Table(_ENDED, ends.named)]))
            for status_, words in END_WORDS.items()
            if (ends := collected.ends.get(Status(status_)))
        ],
        "devices": to_html(
            [
                *devices_tables(summary),
                *health_table(status),
                *telemetry_table(summary.telemetry),
            ]
        ),
        "agreements": to_html(agreement_blocks(summary.agreements, summary.every_device)),
        "fingerprints": to_html(fingerprints(summary.devices)),
        "device_charts": device_charts(store),
        "models": to_html([_models_table(summary.models)]),
        "versions": to_html([Figures((*_settings(summary), *_versions(store)))]),
        "campaign_toml": campaign_toml(store.campaign),
        "resume": shlex.join(["edgeflare", "resume", campaign_text(store.folder.resolve())]),
        "send_again": shlex.join(["edgeflare", "replay", campaign_text(replay.source)])
        if replay
        else "",
        "name": name,
    }


def _analyses(store: Store, name: Name) -> list[dict[str, Any]]:
    """Return the sections of the analyses whose results are stored."""
    return [
        {
            "id": section.id,
            "link": section.id.removeprefix("analysis-").capitalize(),
            "title": section.title,
            "html": to_html(section.blocks),
        }
        for section in stored_sections(store, name)
    ]


_ENDED = (
    Column("seed", 0, lambda one: one.seed_id, text=True),
    Column("device", 0, lambda one: one.device, text=True, optional=True),
    Column("device queries", 0, lambda one: f"{one.queries:,}"),
    Column("original alone", 0, lambda one: f"{one.host_only_queries:,}"),
    Column("why", 0, lambda one: one.detail, text=True, optional=True),
)


def _settings(summary: Summary) -> list[KeyFigure]:
    found = [one for one in key_figures(summary) if one.name == "search"]
    seed = summary.search.get("seed")
    return found + ([] if seed is None else [KeyFigure("seed of all randomness", str(seed))])


def _spreads(summary: Summary) -> list[Block]:
    """Return queries and time of the searches, queueing left out."""
    rows = (
        ("queries, triggers found", summary.queries_found, 1),
        ("queries, all searches", summary.queries_searched, 1),
        ("seconds, triggers found", summary.seconds_found, 3),
        ("seconds, all searches", summary.seconds_searched, 3),
    )
    columns = (
        Column("", 0, lambda row: row[0], text=True),
        Column("searches", 0, lambda row: f"{row[1].count:,}"),
        Column("mean", 0, lambda row: number_text(row[1].mean, row[2])),
        Column("median", 0, lambda row: number_text(row[1].median, row[2])),
        Column("90 % at most", 0, lambda row: number_text(row[1].p90, row[2])),
    )
    title = "Queries and time of the searches, queueing left out"
    return [Table(columns, [row for row in rows if row[1]], title)]


def _facets(
    collected: Collected, kind: AnswerKind[Any], name: Name
) -> dict[str, list[tuple[str, str, int]]]:
    """Return the choices of each filter: value, words and count, the most frequent first."""
    facets = {
        name_: [(value, value, count) for value, count in counts.most_common()]
        for name_, counts in vars(collected.facets).items()
    }
    facets["pair"] = [
        (
            value,
            kind.report_words.unpaired if value == "none" else kind.pair_words(value, name),
            count,
        )
        for value, _, count in facets["pair"][:MOST_PAIRS]
    ]
    facets["status"] = [
        (value, STATUS_WORDS.get(value, value), count) for value, _, count in facets["status"]
    ]
    facets["state"] = [
        (state, words_, collected.facets.state[state])
        for state, words_ in STATE_WORDS.items()
        if collected.facets.state[state]
    ]
    facets["device"] = [(value, value or "unknown", count) for value, _, count in facets["device"]]
    return facets


def _listed(collected: Collected, name: Name, *, replayed: bool) -> list[Block]:
    """Return the severest findings, for readers without scripts."""

    def answer(model: str) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            if row.difference is not None:
                return ""
            if row.transcripts:
                return "".join(part for part, _ in row.transcripts[model])
            return name(getattr(row, model))

        return text

    def state(row: Row) -> str:
        return row.replayed["words"] if row.replayed else STATUS_WORDS.get(row.status, row.status)

    columns = (
        Column("input" if replayed else "seed", 0, lambda row: row.seed, text=True),
        Column(
            "difference",
            0,
            lambda row: with_names(row.difference or "", name),
            text=True,
            optional=True,
        ),
        Column("original", 0, answer("original"), text=True, optional=True),
        Column("deployed", 0, answer("deployed"), text=True, optional=True),
        Column("state" if replayed else "status", 0, state, text=True),
        Column("device", 0, lambda row: row.device, text=True, optional=True),
        Column("smaller margin", 0, lambda row: margin_text(row.severity)),
        Column("L2", 0, lambda row: number_text(row.l2)),
        Column("to reproduce", 0, lambda row: row.command, text=True),
    )
    ranked = sorted(collected.cards, key=lambda card: (card.rank, -card.severity))
    return [Table(columns, [card.row for card in ranked[:_MOST_LISTED]])]


def _histograms(collected: Collected, sample_rate: int | None) -> list[tuple[str, Any]]:
    of_l2 = f"L2, {units_of(sample_rate).l2}"
    drawn: list[tuple[str, Sequence[float], str]] = [
        ("Search queries to the first trigger", collected.queries, "queries"),
        ("Time of a search that found one", collected.seconds, "seconds"),
        ("L2 distance of trigger and seed", collected.l2, of_l2),
    ]
    if collected.snr_db:
        drawn.append(("Signal-to-noise ratio of the triggers", collected.snr_db, "dB"))
    return [(title, histogram(values, title, unit)) for title, values, unit in drawn]


def _sound() -> dict[str, Any]:
    """Return the spectrograms' colour scales in dB."""
    return {
        "levels": gradient(level_colours()),
        "lowest": f"{-LOWEST_DB:.0f}",
        "changes": gradient(change_colours()),
        "largest": f"{LARGEST_CHANGE_DB:.0f}",
    }


# How to run the campaign again


def _models_table(models: Mapping[str, Any]) -> Table:
    """Return the models of a campaign: their files, byte for byte, and the runtimes in effect."""
    columns = (
        Column("model", 0, lambda one: one[0], text=True),
        Column("file", 0, lambda one: str(one[1].get("name", "")), text=True),
        Column("bytes", 0, lambda one: number_text(one[1].get("bytes"), 0)),
        Column("SHA-256", 0, lambda one: str(one[1].get("sha256", "")), text=True),
        Column("runtime", 0, lambda one: runtime_words(one[1].get("runtime") or {}), text=True),
    )
    rows = [(which, models[which]) for which in ("original", "deployed") if models.get(which)]
    if repair := models.get("deployed", {}).get("repair"):
        rows.append(("its repair", repair))
    for which, model in [*rows]:
        if fixed := model.get("fixed_inputs"):
            rows.append((f"fixed inputs of the {which} model", fixed))
    return Table(columns, rows, "The models' files, byte for byte, and what ran them", "models")


def _versions(store: Store) -> list[KeyFigure]:
    """Return the versions of what ran on the host; of several environments all of them."""
    versions: dict[str, dict[str, None]] = {}
    for environment in store.environments().values():
        for name, value in environment.items():
            if value:
                versions.setdefault(name, {})[value_words(value)] = None
    return [KeyFigure(name, ", then ".join(values)) for name, values in versions.items()]


def campaign_toml(config: Mapping[str, Any]) -> str:
    """Return a stored configuration as TOML, without its folder and what is not set."""
    plain, tables = [], []
    for name, value in config.items():
        if name == "out":
            continue
        if isinstance(value, Mapping):
            tables.append(_toml_table(name, value))
        elif value is not None:
            plain.append(f"{name} = {toml.dumps(value)}")
    return "\n".join(["\n".join(plain), *filter(None, tables)]).strip() + "\n"


def _toml_table(name: str, values: Mapping[str, Any]) -> str:
    lines = [
        f"{key} = {text}"
        for key, value in values.items()
        if value is not None and (text := toml.dumps(value)) not in ("{}", "[]")
    ]
    return "\n".join(["", f"[{name}]", *lines]) if lines else ""
