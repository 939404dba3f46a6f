"""A campaign in Markdown, for a comment on a change or the summary of a job."""

from collections.abc import Sequence
from itertools import islice

from edgeflare.analysis.findings import Finding, findings
from edgeflare.reports.campaign import (
    MOST_SHOWN,
    TriggerLine,
    campaign_blocks,
    known_cause,
    limits_list,
    notices_list,
    triggers_table,
)
from edgeflare.reports.document import Block, Command, Heading, Text, to_markdown
from edgeflare.reports.replay import replay_inputs
from edgeflare.reports.sentences import STEPS_SHOWN, said_words
from edgeflare.reports.text_reports import ReportData
from edgeflare.strategies.mutation_path import describe_last_mutations
from edgeflare.types import TRIGGERS


def text(material: ReportData) -> str:
    """Return the document: verdict, limits, key figures, pairs of labels, devices, triggers, notices."""
    passed = ("Failed. " if material.crossed else "Passed. ") if material.has_limits else ""
    replay = material.replay
    blocks = [
        Heading(f"EdgeFlare: {material.store.folder.resolve().name}", 2),
        Text(passed + material.verdict, "strong"),
        *map(Text, filter(None, [*material.guidance, material.progress])),
        *limits_list(material.limits),
    ]
    if replay is None:
        blocks += campaign_blocks(material.summary, _triggers(material), material.name)
    else:
        blocks += replay_inputs(replay, material.name)
        blocks += notices_list(material.summary.notices)
    return to_markdown(blocks) + "\n"


def _triggers(material: ReportData) -> Sequence[Block]:
    triggers = (one for one in findings(material.store) if one.outcome.status in TRIGGERS)
    first = list(islice(triggers, MOST_SHOWN))
    if not first:
        return []
    total = sum(material.summary.by_status[status.value] for status in TRIGGERS)
    lines = [_line(material, one) for one in first]
    return [*triggers_table(lines, total), Text("To see one again:"), Command(first[0].command)]


def _line(material: ReportData, finding: Finding) -> TriggerLine:
    one = finding.outcome
    return TriggerLine(
        seed=f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id,
        answers=said_words(material, one),
        cause=known_cause(finding.cause),
        steps=describe_last_mutations(one.mutations, STEPS_SHOWN),
        l2=one.l2,
        snr_db=one.snr_db,
        smaller_margin=one.severity,
    )
