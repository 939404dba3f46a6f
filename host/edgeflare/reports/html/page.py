"""``write_html_report``: a campaign as one HTML file."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edgeflare._internal.files import write_durably
from edgeflare._internal.records import JsonRecord
from edgeflare._internal.text import capitalized, counted
from edgeflare.analysis.campaign_verdict import is_control
from edgeflare.analysis.findings import results
from edgeflare.answers.detections.words import KIND_WORDS
from edgeflare.answers.oracles import is_measured
from edgeflare.document import Listing, Section, Table, Text
from edgeflare.errors import UsageError
from edgeflare.reports.campaign import limits_list
from edgeflare.reports.document import to_html
from edgeflare.reports.export import check_report_path, translate_report_errors
from edgeflare.reports.html.gallery import (
    MOST_PAIRS,
    MOST_SHOWN,
    Card,
    Collected,
    ReplayCards,
    Row,
    by_importance,
    collect,
    facets_of,
    found_card,
    listed,
    seeds_of,
)
from edgeflare.reports.html.media import BOXED_SIDE, MediaBundle, Shown
from edgeflare.reports.html.templates import embedded_json, render
from edgeflare.reports.media import (
    LARGEST_CHANGE_DB,
    LOWEST_DB,
    change_colours,
    gradient,
    level_colours,
)
from edgeflare.reports.report import Report
from edgeflare.reports.sections.campaign import FINDINGS, HEAD, make_report, report_sections
from edgeflare.reports.survey.export import count_survey_findings
from edgeflare.store import Store, open_store
from edgeflare.store.samples import SampleReader
from edgeflare.words.findings import severest_words

_FEW = 5
"""Number of sentences beside the verdict that are not folded."""
MOST_EMBEDDED_MB = 50.0
"""Largest size of a page, with its pictures."""
_MB = 1_000_000
_ADDRESSES = 8  # of a finding's pictures and sounds
_ADDRESS_BYTES = 120  # a picture's address in a file, and its number in a row, at most
_FRAME_BYTES = 2_000_000  # what else is in the page, measured below 300 kB


@dataclass(frozen=True)
class HtmlReport(JsonRecord):
    """What was written: the page, its size in bytes, its findings, and its pictures and sounds:
    `embedded` in it, and `beside` it in the folder ``<name of the page>-pictures``.

    `survey_findings` are the confident deviations of the survey, which are not among the findings.
    `notices` say which samples could not be shown.
    """

    path: str
    findings: int
    embedded: int
    beside: int
    bytes: int
    survey_findings: int = 0
    notices: tuple[str, ...] = ()


def write_html_report(
    campaign: Store | Path,
    path: Path,
    *,
    class_names: Sequence[str] | None = None,
    embed_mb: float = 10,
) -> HtmlReport:
    """Write a campaign as one HTML file that needs nothing else: no network, no other program.

    It begins with the result and whether the campaign is within its limits; then which classes are
    taken for which, every finding with its pictures, where and why the models differ, figures over
    all, the devices, and how to run it again. A replay, a control and a campaign that isn't finished are campaigns, too.

    `class_names` are the classes' names in their order; by default those of the campaign's label
    mapping, else their numbers. Pictures of the most severe finding of each pair of labels, device
    and status come first into the page, then the next of each, until `embed_mb` MB (10^6 bytes,
    base64) are used up; the page itself never exceeds 50 MB. All others go into the folder
    ``<stem>-pictures`` beside it, whose files an earlier report left are used again, or removed
    where they are of no use any more. Pictures above 96 pixels become thumbnails of at most 224, of
    wide images 448, with detections of at most 416. Audio is embedded as WAV of 16-bit PCM and shown
    as spectrograms. The file
    appears whole or not at all.

    Raises UsageError for an `embed_mb` below 0 or fewer names than classes, StoreError where a
    folder can't be used, DiskFullError where no space is left.
    """
    if not embed_mb >= 0 or math.isinf(embed_mb):
        raise UsageError(
            f"embed_mb is {embed_mb}; give the megabytes of pictures in the page, 0 or more"
        )
    path = Path(path)
    with open_store(campaign) as store, translate_report_errors(path):
        return _write(store, path, class_names, embed_mb)


def _write(
    store: Store, path: Path, class_names: Sequence[str] | None, embed_mb: float
) -> HtmlReport:
    check_report_path(path, store.folder)
    report = make_report(store, class_names)
    with seeds_of(store) if report.replay else nullcontext() as seeds:
        cards = ReplayCards(store, report.replay, seeds, report.name) if report.replay else None
        return _page(report, path, embed_mb, cards)


def _page(report: Report, path: Path, embed_mb: float, cards: ReplayCards | None) -> HtmlReport:
    store, kind = report.store, report.summary.kind
    by_disagreement = is_measured(report.summary.search)
    make = cards.card if cards else found_card
    collected = collect(results(store), make, by_disagreement=by_disagreement)
    shown = by_importance(collected.cards)[:MOST_SHOWN]
    rows = [collected.cards[number].row for number in shown]
    plain = len(embedded_json(_columns(Row.__slots__, rows)).encode(errors="replace"))
    room = MOST_EMBEDDED_MB * _MB - _FRAME_BYTES - plain - _ADDRESSES * _ADDRESS_BYTES * len(shown)
    reader = SampleReader(cards.read if cards else store.sample_to_show)
    folder, rate = path.with_name(f"{path.stem}-pictures"), store.sample_rate
    side = {"side": BOXED_SIDE} if kind.is_drawn else {}
    bundle = MediaBundle(reader, folder, min(embed_mb * _MB, room), rate=rate, **side)
    data = {**_data(report, collected, shown, bundle), "by_disagreement": by_disagreement}
    notices = (*report.summary.notices, *reader.notices)
    report = replace(report, summary=replace(report.summary, notices=notices))
    every = report_sections(
        report.summary, store, report.name, replay=report.replay, searches=collected.searches
    )
    sections = sorted(every, key=lambda section: section.order)
    page = render(
        "report.html.j2",
        scripts=("report.js",),
        report=report,
        data=data,
        facts=[one for section in sections for one in section.key_figures if one.main],
        sentences=_sentences(report, collected),
        limits=to_html(limits_list(report.checks)[1:]),
        head=[_panel(section) for section in sections if section.order < HEAD],
        before=[
            _panel(section)
            for section in sections
            if HEAD <= section.order < FINDINGS and (collected.cards or not _is_note(section))
        ],
        after=[_panel(section) for section in sections if section.order >= FINDINGS],
        written_at=datetime.now(timezone.utc),
        **_gallery(report, collected, len(shown)),
    ).encode()
    write_durably(path, page)
    bundle.remove_stale()
    media, surveyed = (bundle.embedded, bundle.beside), count_survey_findings(store)
    return HtmlReport(str(path), len(collected.cards), *media, len(page), surveyed, reader.notices)


def _sentences(report: Report, collected: Collected) -> list[str]:
    """Return what follows the verdict's first sentence."""
    summary, (_, found) = report.summary, report.sentences
    more = [found] if found else []
    if report.replay is None and (itself := summary.by_status.get("seed-deviates", 0)):
        more.append(
            f"{counted(itself, 'trigger is a seed', 'triggers are seeds')} as "
            f"{'it is' if itself == 1 else 'they are'}, without any search."
        )
    worst = collected.worst
    if report.replay is None and worst is not None and worst[0] >= 0:
        more.append(
            severest_words(
                worst[1].outcome,
                worst[0],
                report.name,
                is_measured=is_measured(summary.search),
                has_margins=not summary.kind.is_measured,
            )
        )
    return [*more, *report.guidance]


def _panel(section: Section) -> dict[str, Any]:
    """Return a section as the page has it.

    `link` is its name in the contents; `folded` shows its title alone until it is opened.
    """
    folded = not all(
        isinstance(block, Text | Table) or (isinstance(block, Listing) and len(block.items) <= _FEW)
        for block in section.blocks
    )
    return {
        "id": section.id,
        "title": section.title,
        "html": to_html(section.blocks),
        "link": capitalized(section.id.removeprefix("analysis-").replace("-", " ")),
        "folded": folded,
    }


def _is_note(section: Section) -> bool:
    """Whether a section only says that there is nothing to choose the findings by."""
    return all(isinstance(block, Text) and block.tone == "note" for block in section.blocks)


def _gallery(report: Report, collected: Collected, shown: int) -> dict[str, Any]:
    """Return what the gallery is made of beside its data."""
    summary = report.summary
    kind, answers = summary.kind, summary.answers
    sound = {
        "levels": gradient(level_colours()),
        "lowest": f"{-LOWEST_DB:.0f}",
        "changes": gradient(change_colours()),
        "largest": f"{LARGEST_CHANGE_DB:.0f}",
    }
    return {
        "kind": kind,
        "note": "" if answers is None else kind.page_note(answers),
        "signs": KIND_WORDS,
        "has_maps": any(card.maps for card in collected.cards),
        "sound": sound if summary.sample_rate else None,
        "facets": facets_of(collected, kind, report.name),
        "rare_pairs": max(0, len(collected.facets["pair"]) - MOST_PAIRS),
        "listed": to_html([listed(collected, report.name, replayed=report.replay is not None)]),
        "not_shown": len(collected.cards) - shown,
        "is_control": is_control(report.store.folder),
    }


def _data(
    report: Report, collected: Collected, shown: Sequence[int], bundle: MediaBundle
) -> dict[str, Any]:
    """Return what the page's script makes the gallery of; rows are in the order of the seeds."""
    media = {number: _shown(bundle, collected.cards[number]) for number in shown}
    rows = [collected.cards[number].row for number in sorted(media)]
    needed = {label for row in rows for label in _classes(row)}
    return {
        "findings": _columns(Row.__slots__, rows)
        | _columns(Shown._fields, [media[number] for number in sorted(media)]),
        "classes": {str(number): report.name(number) for number in sorted(needed)},
        "pictures": bundle.addresses,
        "rate": bundle.rate,
        "wide": bundle.wide,
        "kinds": KIND_WORDS,
    }


def _columns(names: Sequence[str], rows: Sequence[object]) -> dict[str, list[Any]]:
    """Return the values of rows by their names."""
    return {name: [getattr(row, name) for row in rows] for name in names}


def _shown(bundle: MediaBundle, one: Card) -> Shown:
    """Add a card's pictures; a seed that can't be read is left out, as one of a replay may be deleted."""
    shown = bundle.add(one.seed, one.trigger, one.maps)
    if shown is None and one.trigger is not None:
        shown = bundle.add(one.trigger, None, one.maps)
    return bundle.add_missing(one.maps) if shown is None else shown


def _classes(row: Row) -> set[int]:
    """Return the classes that a row names."""
    labels = [row.original, row.deployed, row.label, *(number for number, _, _ in row.scores)]
    if row.detections is not None:
        labels += [label for _, *both, _, _, _ in row.detections["differences"] for label in both]
        for drawn in (row.detections["trigger"], row.detections["seed"]):
            labels += [mark[2] for marks in drawn or () for mark in marks]
    return {number for number in labels if number is not None}
