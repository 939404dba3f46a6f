"""Details for the readers of a page: devices, and figures over all searches."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from markupsafe import Markup

from edgeflare._internal.text import NOTHING, capitalized, number_text
from edgeflare.analysis.summary import Summary
from edgeflare.campaign.status import CampaignStatus
from edgeflare.devices import DeviceMinute, DeviceStatus
from edgeflare.document import (
    Block,
    Charts,
    Column,
    Figures,
    Fold,
    Heading,
    KeyFigure,
    Section,
    Table,
    Text,
)
from edgeflare.reports.campaign import END_WORDS
from edgeflare.reports.charts import histogram, time_chart
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Status
from edgeflare.words.devices import runtime_words
from edgeflare.words.faults import coverage_words
from edgeflare.words.inputs import units_of

_FEW = 5
_MOST_CHARTED = 24
_ABOUT = ("board", "soc", "cpu", "arch", "os", "kernel", "python", "numpy")


def fingerprints(devices: Iterable[Mapping[str, Any]]) -> list[Block]:
    """Return what is known of each of `Summary.devices`."""
    from edgeflare.devices.cpu_names import shown_name

    blocks: list[Block] = []
    for device in devices:
        known = {name: str(value) for name, value in device["fingerprint"].items() if value}
        if "cpu" in known:
            known["cpu"] = shown_name(known["cpu"])
        rows = [KeyFigure(name, known[name]) for name in _ABOUT if name in known]
        if "runtime" in known:
            rows.append(KeyFigure("runtime", runtime_words(device["fingerprint"]["runtime"])))
        rows.append(KeyFigure("fingerprint", device["digest"][:16]))
        blocks += [Heading(device["name"]), Figures(tuple(rows))]
    return blocks


def health_table(status: CampaignStatus) -> list[Block]:
    """Return the devices as the campaign saw them last."""
    columns = (
        Column("device", 0, lambda one: one.name, text=True),
        Column(
            "state",
            0,
            lambda one: ": ".join(filter(None, [one.state.value, one.detail])),
            text=True,
        ),
        Column("reconnects", 0, lambda one: str(one.reconnects)),
        Column("slowed down by", 0, _slowed_by, text=True),
    )
    if not status.devices:
        return []
    table = Table(columns, status.devices, identifier="health")
    return [Fold("As the campaign saw them last", (table,), is_open=True)]


def _slowed_by(one: DeviceStatus) -> str:
    return ", ".join(one.throttle_reasons) or (NOTHING if one.throttled is None else "nothing")


_Choose: TypeAlias = Callable[[list[float]], float]


def device_charts(store: Store) -> list[tuple[str, Markup]]:
    """Return temperature and inference time of the first 24 devices that were watched, by name."""
    minutes: dict[str, dict[datetime, list[DeviceMinute]]] = {}
    for one in store.telemetry():
        if one.device in minutes or len(minutes) < _MOST_CHARTED:
            minutes.setdefault(one.device, {}).setdefault(one.minute, []).append(one)
    return [
        chart
        for name in sorted(minutes)
        if len(minutes[name]) > 1
        for chart in _charts(name, dict(sorted(minutes[name].items())))
    ]


_CHARTED: tuple[tuple[str, _Choose, Callable[[DeviceMinute], float | None]], ...] = (
    ("temperature, °C", max, lambda part: part.temperature_max_c),
    ("inference, median ms", max, lambda part: _milliseconds(part.latency_median_s)),
    ("slowest core, MHz", min, lambda part: part.frequency_least_mhz),
)


def _charts(
    device: str, minutes: Mapping[datetime, Sequence[DeviceMinute]]
) -> Iterator[tuple[str, Markup]]:
    for title, choose, figure in _CHARTED:
        values = [_known(choose, *map(figure, parts)) for parts in minutes.values()]
        drawing = time_chart(list(minutes), values, f"{device}: {title}")
        if drawing is not None:
            yield f"{device}: {title}", drawing


def _known(choose: _Choose, *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


# Searches

_MOST_NAMED = 200


@dataclass
class SearchFigures:
    """The figures of searches that no other summary has.

    `pairs` counts the triggers, those that are the seed itself among them, by both models' labels.
    `queries` (up to the first trigger), `seconds`, `l2` and `snr_db` are those of the searches that
    found one, `ends` has the first 200 of each status without a trigger.
    """

    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    queries: "array[int]" = field(default_factory=lambda: array("q"))
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    l2: "array[float]" = field(default_factory=lambda: array("d"))
    snr_db: "array[float]" = field(default_factory=lambda: array("d"))
    ends: dict[Status, list[OutcomeRecord]] = field(default_factory=dict)

    def add_found(self, outcome: OutcomeRecord) -> None:
        """Add a search that found a trigger."""
        self.queries.append(outcome.first_queries)
        self.seconds.append(outcome.seconds)
        if outcome.l2 is not None:
            self.l2.append(outcome.l2)
        if outcome.snr_db is not None:
            self.snr_db.append(outcome.snr_db)

    def add_end(self, outcome: OutcomeRecord) -> None:
        """Add a search that ended without one."""
        ends = self.ends.setdefault(outcome.status, [])
        if len(ends) < _MOST_NAMED:
            ends.append(outcome)


_ENDED = (
    Column("seed", 0, lambda one: one.seed_id, text=True),
    Column("device", 0, lambda one: one.device_or_replica, text=True, optional=True),
    Column("device queries", 0, lambda one: f"{one.search_queries:,}"),
    Column("original alone", 0, lambda one: f"{one.host_only_queries:,}"),
    Column("why", 0, lambda one: one.detail, text=True, optional=True),
)


def ends_section(summary: Summary, ends: Mapping[Status, Sequence[OutcomeRecord]]) -> Section:
    """Return which searches ended without a trigger, and why."""
    blocks: list[Block] = []
    if not ends and not summary.skipped:
        blocks.append(Text("None: every search that ended found one.", "note"))
    if covered := coverage_words(summary.coverage):
        blocks.append(Text(f"{capitalized(covered)}."))
    for status, words in END_WORDS.items():
        ended = ends.get(Status(status))
        if ended is None:
            continue
        count = summary.by_status[status]
        table: list[Block] = [Table(_ENDED, ended)]
        if (more := count - len(ended)) > 0:
            table.append(Text(f"and {more:,} more", "note"))
        title = f"{capitalized(words)}: {count:,}"
        blocks.append(Fold(title, tuple(table), is_open=count <= _FEW))
    if summary.skipped:
        files = (
            "file was skipped as seed" if summary.skipped == 1 else "files were skipped as seeds"
        )
        blocks.append(Text(f"{summary.skipped:,} {files}."))
    return Section(
        "without-a-trigger", "Searches without a trigger", tuple(blocks), brief=False, order=800
    )


def searches_section(summary: Summary, searches: SearchFigures) -> Section:
    """Return how queries, time and distances of the triggers are distributed."""
    blocks = (Charts(partial(_histograms, searches, summary.sample_rate)), _spreads(summary))
    folded = Fold("Histograms, and queries and time of the searches", blocks)
    return Section("figures", "Figures over all triggers", (folded,), brief=False, order=600)


def _spreads(summary: Summary) -> Table:
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
    return Table(columns, [row for row in rows if row[1]], title)


def _histograms(searches: SearchFigures, sample_rate: int | None) -> list[tuple[str, Markup]]:
    of_l2 = f"L2, {units_of(sample_rate).l2}"
    drawn: list[tuple[str, Sequence[float], str]] = [
        ("Search queries to the first trigger", searches.queries, "queries"),
        ("Time of a search that found one", searches.seconds, "seconds"),
        ("L2 distance of trigger and seed", searches.l2, of_l2),
    ]
    if searches.snr_db:
        drawn.append(("Signal-to-noise ratio of the triggers", searches.snr_db, "dB"))
    return [(title, histogram(values, title, unit)) for title, values, unit in drawn]
