"""The sections of a campaign's report, made once for all formats."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from edgeflare._internal.text import capitalized
from edgeflare.analysis.base import stored_sections
from edgeflare.analysis.campaign_verdict import campaign_verdict
from edgeflare.analysis.class_names import known_class_names
from edgeflare.analysis.findings import findings
from edgeflare.analysis.limits import LimitCheck
from edgeflare.analysis.replay import ReplaySummary, replay_summary
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.campaign.status import campaign_status
from edgeflare.document import (
    Block,
    Charts,
    CommandLine,
    Example,
    Examples,
    Figures,
    Fold,
    Heading,
    Name,
    Section,
    Text,
)
from edgeflare.reports.campaign import (
    MOST_SHOWN,
    STEPS_SHOWN,
    TriggerLine,
    answers_heading,
    endings,
    key_figures,
    notices_list,
    triggers_table,
)
from edgeflare.reports.devices import agreement_blocks, devices_tables, telemetry_table
from edgeflare.reports.explanation import causes_section, explanation_blocks
from edgeflare.reports.replay import replay_counts, replay_inputs
from edgeflare.reports.report import Report, outcome_words
from edgeflare.reports.sections.pairs import pairs_section, pairs_table
from edgeflare.reports.survey.document import (
    charted_groups,
    survey_chart,
    survey_figures_list,
    survey_tables,
    worst_table,
)
from edgeflare.reports.survey.faults import faults_list
from edgeflare.store import Store
from edgeflare.strategies.operators import describe_last_mutations
from edgeflare.types import TRIGGERS
from edgeflare.words.causes import CAUSES_NOTE, NEAREST_NOTE
from edgeflare.words.faults import FAULTS_NOTE, SURVEY_NOTE, fault_title
from edgeflare.words.findings import known_cause

if TYPE_CHECKING:
    from markupsafe import Markup

    from edgeflare.reports.sections.details import SearchFigures

FINDINGS = 200
"""The order of the gallery; sections below it tell what the user's own inputs show, those above it
where and why. Below `HEAD` they stand beside the verdict."""
HEAD = 100
_ANALYSES = 400
"""The least order of the sections of analyses."""


def make_report(
    store: Store,
    class_names: Sequence[str] | None = None,
    checks: tuple[LimitCheck, ...] | None = None,
) -> Report:
    """Return a campaign's report. Raises UsageError, StoreError.

    `class_names` are the names of the classes in their order, `checks` those of the limits, by
    default both as the campaign has them.
    """
    summary = summarize(store)
    checks = summary.limits if checks is None else checks
    replay = replay_summary(store) if store.state.is_replay else None
    models = [(summary.models.get(which) or {}).get("name") for which in ("deployed", "original")]
    return Report(
        title=f"{models[0]} against {models[1] or 'its original'}" if models[0] else store.id,
        verdict=campaign_verdict(store, summary, checks, replay),
        checks=checks,
        findings=partial(findings, store),
        store=store,
        summary=summary,
        replay=replay,
        names=known_class_names(store, class_names),
        make_sections=_text_sections,
    )


def _text_sections(report: Report) -> Iterator[Section]:
    return report_sections(
        report.summary,
        report.store,
        report.name,
        replay=report.replay,
        triggers=partial(_triggers, report),
    )


def report_sections(
    summary: Summary,
    store: Store,
    name: Name,
    *,
    replay: ReplaySummary | None = None,
    triggers: Callable[[], Sequence[Block]] = tuple,
    searches: "SearchFigures | None" = None,
    brief: bool = False,
) -> Iterator[Section]:
    """Yield every section of a report in the order of a text; a page sorts them by their `order`.

    `name` returns a class's name. `replay` has the results of a replay, whose inputs are all that a
    text lists. `triggers` makes the blocks on the first ones, with a heading; a page has its gallery.
    `searches` are a page's figures over all searches, None for a text. `brief`: for a terminal,
    without what each step and layer changes, and with the numbers of classes.
    """
    answers, kind, is_replay = summary.answers, summary.kind, replay is not None
    shown: Name = str if brief and kind.shows_pairs else name
    if replay is None:
        figures = key_figures(summary, shown)
        below = tuple(one for one in figures if not one.main) if searches else figures
        yield Section("key-figures", "Key figures", (Figures(below),), figures, order=10)
    elif searches:
        counts = tuple(replay_counts(replay.figures, replay))
        yield Section("replay", "What became of the inputs", counts, order=10)
    else:
        inputs = tuple(replay_inputs(replay, shown))
        yield Section("replay", "What became of each input", inputs, order=10)
    if replay is None or searches:
        yield from _faults(summary, store, shown)
        yield from _survey(summary, store, shown, brief=brief)
        if kind.page_part == "pairs":
            pairs = summary.label_pairs
            found = {(one.original, one.deployed): one.count for one in pairs}
            table = pairs_table(pairs, shown, 5 if brief else MOST_SHOWN)
            all_found = searches.pairs if searches else found
            yield pairs_section(table, all_found, shown, is_replay=is_replay)
        if answers is not None:
            yield from kind.sections(answers, shown, is_replay=is_replay)
        yield from _causes(summary, store, shown, brief=brief)
        yield from _named("triggers", triggers(), order=FINDINGS)
        yield from device_sections(summary, store)
    if replay is None and searches:
        from edgeflare.reports.sections.details import ends_section, searches_section

        yield searches_section(summary, searches)
        yield ends_section(summary, searches.ends)
    elif replay is None:
        yield from _named("without-a-trigger", endings(summary), order=800)
    yield from _named("notices", notices_list(summary.notices), order=30)
    for section in stored_sections(store, name):
        yield replace(section, order=max(section.order, _ANALYSES))
    if searches:
        from edgeflare.reports.sections.again import again_section

        yield again_section(summary, store, replay)


def _named(name: str, blocks: Sequence[Block], *, order: int) -> Iterator[Section]:
    """Yield a section of blocks that begin with its heading; nothing of none."""
    if blocks and isinstance(blocks[0], Heading):
        yield Section(name, blocks[0].text, tuple(blocks[1:]), order=order)


def _triggers(report: Report) -> Sequence[Block]:
    """Return the first triggers, and how to see one again."""
    triggers = (one for one in report.findings() if one.outcome.status in TRIGGERS)
    first = list(islice(triggers, MOST_SHOWN))
    if not first:
        return []
    total = sum(report.summary.by_status[status.value] for status in TRIGGERS)
    lines = [
        TriggerLine(
            seed=one.outcome.seed_text,
            answers=outcome_words(report, one.outcome),
            cause=known_cause(one.cause),
            steps=describe_last_mutations(one.outcome.mutations, STEPS_SHOWN),
            l2=one.outcome.l2,
            snr_db=one.outcome.snr_db,
            smaller_margin=one.outcome.severity,
        )
        for one in first
    ]
    return [
        *triggers_table(lines, total, answers_heading(report.summary)),
        Text("To see one again:"),
        CommandLine(first[0].command),
    ]


def _faults(summary: Summary, store: Store, name: Name) -> Iterator[Section]:
    found = summary.faults
    if found is None or not (found.faults or found.unlisted):
        return

    @cache
    def examples() -> list[list[Example]]:
        from edgeflare.reports.sections.examples import fault_examples

        return fault_examples(store, found.faults, name)

    def of_fault(place: int) -> Sequence[Example]:
        return examples()[place]

    blocks = [
        Text(FAULTS_NOTE, "note"),
        *faults_list(found, name),
        *(
            Examples(partial(of_fault, place), f"{capitalized(fault_title(fault))}: {fault.words}")
            for place, fault in enumerate(found.faults)
        ),
    ]
    title = "Faults: what deviating inputs have in common"
    yield Section("faults", title, tuple(blocks), order=300)


def _survey(
    summary: Summary, store: Store, name: Name, *, brief: bool = False
) -> Iterator[Section]:
    survey = summary.survey
    if survey is None:
        return

    def examples() -> Sequence[Example]:
        from edgeflare.reports.sections.examples import survey_examples

        return survey_examples(store, survey, name)

    def chart() -> "Sequence[tuple[str, Markup]]":
        drawing = survey_chart(survey)
        title = "Rate of confident deviations by severity, with 95 % bounds"
        return [] if drawing is None else [(title, drawing)]

    groups = charted_groups(survey)
    lines = ("all families", *groups) if groups else ()
    worst = worst_table(survey, name)
    blocks = [
        Text(SURVEY_NOTE, "note"),
        Figures(tuple(survey_figures_list(survey))),
        Charts(chart, lines),
        *survey_tables(survey, brief=brief),
        *(
            [
                Examples(
                    examples,
                    "Worst confident deviations: seed, input and their difference",
                    tuple(worst),
                )
            ]
            if worst
            else []
        ),
    ]
    yield Section("survey", "Survey: inputs far from the seeds", tuple(blocks), order=310)


def _causes(
    summary: Summary, store: Store, name: Name, *, brief: bool = False
) -> Iterator[Section]:
    found = summary.explanation
    if found is None:
        return

    def examples() -> Sequence[Example]:
        from edgeflare.reports.sections.examples import group_examples

        return group_examples(store, found, name)

    blocks = [
        Text(CAUSES_NOTE, "note"),
        *explanation_blocks(found, name, brief=brief),
        Text(NEAREST_NOTE, "note"),
        Examples(examples),
    ]
    yield causes_section(blocks)


def device_sections(summary: Summary, store: Store) -> Iterator[Section]:
    """Yield what each device did, how far they agree, and how they fared."""
    from edgeflare.reports.sections.details import device_charts, fingerprints, health_table

    did = devices_tables(summary)
    details: list[Block] = [*health_table(campaign_status(store.folder))]
    if summary.devices:
        title = f"What the devices are ({len(summary.devices)})"
        details.append(Fold(title, tuple(fingerprints(summary.devices))))
    if not did and not summary.devices:
        details.append(Text("No device has answered yet.", "note"))
    yield Section("devices", "What each device did", (*did[1:], *details), order=700)
    agreement = agreement_blocks(summary.agreements, summary.every_device)
    yield from _named("agreement", agreement, order=710)
    telemetry = telemetry_table(summary.telemetry)
    if telemetry:
        charts = Charts(partial(device_charts, store))
        yield from _named("telemetry", [*telemetry, charts], order=720)
