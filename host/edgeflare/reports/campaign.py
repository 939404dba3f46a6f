"""Key figures, tables and sentences of a campaign, for every kind of report."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare._internal.text import counted, margin_text, number_text, percent_text
from edgeflare.analysis.limits import LimitCheck
from edgeflare.analysis.summary import NO_SEARCH, ControlFigures, Summary
from edgeflare.answers.oracles import MARGIN_FLOOR, is_measured, traits_in
from edgeflare.document import (
    Block,
    Column,
    Heading,
    Item,
    KeyFigure,
    Listing,
    Name,
    Table,
    Text,
)
from edgeflare.models.scaling import ScalingOptions
from edgeflare.reports.survey.document import survey_key_figures
from edgeflare.reports.survey.faults import faults_key_figures
from edgeflare.words.devices import runtime_words
from edgeflare.words.faults import coverage_words
from edgeflare.words.inputs import source_words, units_of

MOST_SHOWN = 10
"""Number of pairs, triggers and inputs shown; the rest is counted."""
STEPS_SHOWN = 5
"""Number of steps to a trigger that files and pages show; the others are counted."""
END_WORDS = {
    "seed-deviates": "seeds that deviate already",
    "failed": "failed: a model can't answer",
    "nonfinite": "NaN or infinity in an output",
    "unstable": "unstable (did not repeat)",
    "exhausted": "nothing within the query budget",
    "timeout": "nothing within the time budget",
    "gave-up": "given up by the strategy",
}
"""Names of the statuses of a search that ends without a trigger."""

PAIR, DIFFERENCE = "original -> deployed", "difference"
"""Headings of the column with both models' answers, or with what differs in them."""

_FAILURES_SHOWN = 5


class TriggerLine(NamedTuple):
    """A row of the table of triggers; texts are empty and numbers None where not known."""

    seed: str
    answers: str
    cause: str
    steps: str
    l2: float | None = None
    snr_db: float | None = None
    smaller_margin: float | None = None
    disagreement: float | None = None


def limits_list(limits: Sequence[LimitCheck]) -> list[Block]:
    """Return whether each limit holds; nothing without limits."""
    items = tuple(
        Item(limit.words, "muted", "not checked")
        if not limit.checked
        else Item(limit.words, "bad", "crossed")
        if limit.crossed
        else Item(limit.words, "warn", "undecided")
        if limit.undecided
        else Item(limit.words, "good", "kept")
        for limit in limits
    )
    return [Heading("Limits"), Listing(items)] if items else []


def notices_list(notices: Sequence[str]) -> list[Block]:
    """Return the notices as a list; nothing without any."""
    items = tuple(Item(notice, "warn") for notice in notices)
    return [Heading("Notices"), Listing(items)] if items else []


# Key figures


def key_figures(summary: Summary, name: Name = str) -> tuple[KeyFigure, ...]:
    """Return models, devices, success, costs, distances and the control; what is not known is left
    out.

    `name` returns a class's name.
    """
    return (
        *_subjects(summary),
        *faults_key_figures(summary.faults),
        *survey_key_figures(summary.survey),
        *_results(summary, name),
        *_costs(summary),
        *_distances(summary),
        *control_list(summary.control),
    )


def _subjects(summary: Summary) -> Iterable[KeyFigure]:
    for which in ("original", "deployed"):
        model = summary.models.get(which) or {}
        if model.get("name"):
            about = runtime_words(model.get("runtime") or {}, brief=True)
            if repair := model.get("repair"):
                about += f", repaired by {repair.get('name', '')}"
            yield KeyFigure(f"{which} model", model["name"], about)
    scalings = {which: _scaling(model) for which, model in summary.models.items()}
    if scalings and all(scalings.values()):
        sources = {which: _source(model) for which, model in summary.models.items()}
        about = "; ".join(filter(None, ("pixels are 0 to 255", _of_both(sources))))
        yield KeyFigure("preprocessing", _of_both(scalings), about)
    if summary.answers is not None:
        yield from summary.kind.setting_figures(summary.answers, summary.models)
    kind = "devices like" if len(summary.by_device) > len(summary.devices) else "device"
    for device in summary.devices:
        known = device["fingerprint"]
        board = known.get("board") or known.get("cpu") or ""
        yield KeyFigure(kind, f"{device['name']} {board}".strip())
    if summary.search.get("strategy"):
        yield KeyFigure("search", _search(summary.search))


def _of_both(texts: Mapping[str, str]) -> str:
    """Return what is said of each model, once where it is the same."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{which} {text}" for which, text in texts.items())


def _source(model: Mapping[str, Any]) -> str:
    """Return what tells how a model is fed; "": a campaign of an earlier version doesn't have it."""
    feed = {"source": "stated", "names": ()} if model.get("feed") is None else model["feed"]
    return source_words(**feed) if "feed" in model else ""


def _scaling(model: Any) -> str:
    """Return how pixels become a model's input values, as for ``--input``; empty: not known."""
    try:
        spec = model["input"]
        scale = "/".join(f"{number:g}" for number in spec["scale"])
        mean, std = (tuple(spec[name]) for name in ("mean", "std"))
        changed = {"mean": None if not any(mean) else mean, "std": None if set(std) == {1} else std}
        clip = f", clip={','.join(f'{one:g}' for one in spec['clip'])}" if "clip" in spec else ""
        return f"{ScalingOptions(scale=scale, **changed).shown()}, {spec['color']}{clip}"
    except (KeyError, TypeError, ValueError):
        return ""


def _results(summary: Summary, name: Name) -> Iterable[KeyFigure]:
    searches = summary.has_searches
    if searches:
        found = f"{summary.found:,} of {summary.searched:,} searched"
        yield KeyFigure("success rate", percent_text(summary.success_rate), found, main=True)
    words = END_WORDS
    if not searches:
        words = END_WORDS | {
            "seed-deviates": "seeds that deviate",
            "gave-up": "seeds that don't deviate",
        }
    for status, text in words.items():
        if summary.by_status.get(status):
            deviates = status == "seed-deviates"
            yield KeyFigure(text, f"{summary.by_status[status]:,}", main=deviates)
    if searches and summary.coverage.searches:
        yield KeyFigure("covered without a trigger", coverage_words(summary.coverage))
    is_repaired = bool((summary.models.get("deployed") or {}).get("repair"))
    for text, count in (
        (f"seeds with a top-1 tie{' (the repair abstains)' * is_repaired}", summary.ties),
        ("files skipped", summary.skipped),
        (f"{'searches' if summary.replicas else 'seeds'} unfinished", summary.unfinished),
    ):
        if count:
            yield KeyFigure(text, f"{count:,}")
    if summary.label_pairs and not is_measured(summary.search):
        pair = summary.label_pairs[0]
        text = f"{name(pair.original)} -> {name(pair.deployed)}"
        yield KeyFigure("most frequent pair", text, counted(pair.count, "trigger"), main=True)
    if summary.answers is not None:
        yield from summary.kind.key_figures(summary.answers)


def _costs(summary: Summary) -> Iterable[KeyFigure]:
    queries, seconds = summary.queries_found, summary.seconds_found
    if queries:
        yield KeyFigure(
            "search queries to the first trigger",
            f"median {number_text(queries.median, 0)}",
            f"mean {number_text(queries.mean, 1)}, 90 % at most {number_text(queries.p90, 0)}",
            main=True,
        )
    if seconds:
        median, mean = number_text(seconds.median, 3), number_text(seconds.mean, 3)
        yield KeyFigure("seconds for a search that found one", f"median {median}", f"mean {mean}")
    if summary.wall_s is not None:
        yield KeyFigure("seconds by the clock", f"{summary.wall_s:.1f}", "the whole campaign")
    kinds = [name for name in summary.total_queries if name != "host_only"]
    pursued = summary.faults is not None
    words = {"survey": "survey and pursuit"} if pursued else {}
    parts = ", ".join(f"{words.get(name, name)} {summary.total_queries[name]:,}" for name in kinds)
    yield KeyFigure(
        "device queries in all",
        f"{sum(summary.total_queries[name] for name in kinds):,}",
        f"{parts}; original alone {summary.total_queries['host_only']:,}; "
        f"{counted(summary.round_trips, 'round trip')}",
    )


def _distances(summary: Summary) -> Iterable[KeyFigure]:
    if summary.original_margin is not None:
        deployed = summary.deployed_margin
        theirs = "none (labels only)" if deployed is None else margin_text(deployed)
        text = f"original {margin_text(summary.original_margin)}, deployed {theirs}"
        yield KeyFigure("median margin", text, main=True)
    if summary.l2 is not None and summary.linf is not None:
        units = units_of(summary.sample_rate)
        linf = f"Linf {number_text(summary.linf, 0)} of {units.most_levels:,} {units.levels}"
        text = f"L2 {number_text(summary.l2)}"
        yield KeyFigure("median distance to the seed", text, f"{units.l2}; {linf}", main=True)
    if summary.snr_db is not None:
        about = "the seed's power over the difference's"
        yield KeyFigure(
            "median signal-to-noise ratio", f"{summary.snr_db:.1f} dB", about, main=True
        )
    if summary.corruptions:
        counts = ", ".join(f"{name} {count:,}" for name, count in summary.corruptions.items())
        yield KeyFigure("operators" if summary.sample_rate else "natural corruptions", counts)
    if summary.labelled:
        ours, theirs = (
            percent_text(right / summary.labelled)
            for right in (summary.original_right, summary.deployed_right)
        )
        about = counted(summary.labelled, "labelled seed")
        yield KeyFigure(
            "accuracy on the seeds", f"original {ours}, deployed {theirs}", about, main=True
        )


def _search(search: Mapping[str, Any]) -> str:
    """Return strategy, options and limits of a campaign's table "search" in one line."""
    floor = search.get("margin_floor", 0)
    at_least = f"margins of at least {floor:g}" if floor else "no margin floor"
    if search["strategy"] == NO_SEARCH:
        return f"none (the seeds are compared as they are), {at_least}"
    options = (f"{name}={value}" for name, value in (search.get("options") or {}).items())
    parts = [" ".join([search["strategy"], *options])]
    setting = traits_in(search).setting
    if setting != MARGIN_FLOOR:
        parts.append(f"{setting} of {search[setting]:g}")
    limits = [
        f"{search[name]:{',g' if isinstance(search[name], float) else ','}} {unit}"
        for name, unit in (
            ("max_queries", "queries"),
            ("max_host_queries", "host queries"),
            ("timeout_s", "s"),
        )
        if search.get(name)
    ]
    if limits:
        *before, last = limits
        most = f"{', '.join(before)} and {last}" if before else last
        parts.append(f"at most {most} a seed")
    return ", ".join([*parts, at_least])


def control_list(control: ControlFigures | None) -> Iterable[KeyFigure]:
    """Yield what a campaign's control found and compared; nothing where there is none."""
    if control is not None:
        yield KeyFigure("control", control_words(control))
        about = "a false alarm takes the original for another model by other arithmetic alone"
        yield KeyFigure("control's setting", control_setting(control), about)


def control_words(control: ControlFigures) -> str:
    """Return how many false alarms a control raised, and how many its campaign may have at most."""
    if control.state == "not-begun":
        return "not begun"
    if control.state == "gone":
        return "finished, but its folder has been removed"
    if control.state == "refused":
        return f"can't be run: {control.refusal}"
    if control.rate is None or control.upper_bound is None:
        total = control.unasked + control.failed + control.unfinished
        text = f"0 of {total} searches have asked the device"
    else:
        text = (
            f"{control.false_alarms:,} of {counted(control.searches, 'search', 'searches')} that "
            f"asked the device raised a false alarm ({percent_text(control.rate)}, with 95 % "
            f"confidence at most {percent_text(control.upper_bound)})"
        )
        if control.false_alarms and control.safe_margin is not None:
            text += f", none with a margin above {control.safe_margin:g}"
    if control.surveyed:
        text += f"; {control.survey_alarms:,} of {control.surveyed:,} inputs of its survey are confident deviations"
    counts = (
        (control.unasked, "ended without asking it"),
        (control.failed, "failed"),
        (control.unfinished, "unfinished"),
    )
    return "; ".join([text, *(f"{count:,} {what}" for count, what in counts if count)])


def control_setting(control: ControlFigures) -> str:
    """Return what a control compared, and with which runtime."""
    runtime = control.runtime
    options = (
        f"{name.replace('_', ' ')} {'off' if runtime[name] in (None, 'none') else runtime[name]}"
        for name in ("graph_optimization", "delegate", "kernels")
        if name in runtime
    )
    other = "itself" if control.own_file else control.model
    version = f"{runtime.get('name', '')} {runtime.get('version', '')}".strip()
    parts = [f"the original against {other}", version, *options]
    return ", ".join(filter(None, [*parts, f"margin floor {control.margin_floor:g}"]))


# Triggers


def triggers_table(lines: Sequence[TriggerLine], total: int, answers: str = PAIR) -> list[Block]:
    """Return the first triggers, and how many more there are of `total`; `answers`: a heading."""
    if not lines:
        return []
    columns = (
        Column("seed", 0, lambda one: one.seed, text=True),
        Column(answers, 0, lambda one: one.answers, text=True),
        Column("cause", 0, lambda one: one.cause, text=True, optional=True),
        Column("what was done to it", 0, lambda one: one.steps, text=True, optional=True),
        Column("L2", 0, lambda one: number_text(one.l2), optional=True),
        Column("SNR in dB", 0, lambda one: number_text(one.snr_db, 1), optional=True),
        Column("smaller margin", 0, lambda one: margin_text(one.smaller_margin), optional=True),
        Column("scores apart", 0, lambda one: margin_text(one.disagreement), optional=True),
    )
    more = total - len(lines)
    where = "`edgeflare report` shows them as a page, `edgeflare export` writes each as files"
    rest: list[Block] = [
        Text(f"Left out here: {counted(more, 'more trigger')}; {where}", has_code=True)
    ]
    return [Heading("First triggers"), Table(columns, lines), *(rest if more > 0 else [])]


def answers_heading(summary: Summary) -> str:
    """Return the heading of the column with both models' answers to triggers."""
    return PAIR if summary.kind.shows_pairs else DIFFERENCE


def endings(summary: Summary) -> list[Block]:
    """Return why searches gave up, and the first seeds on which a device could not answer."""
    items = []
    if summary.has_searches:
        items += [Item(f"given up on {count:,}: {why}") for why, count in summary.given_up.items()]
    for failure in summary.failures[:_FAILURES_SHOWN]:
        where = f"{failure.device_name} can't answer on " if failure.device_name else ""
        items.append(Item(f"failed: {where}{failure.seed_id}: {failure.detail}"))
    return [Heading("Searches without a result"), Listing(tuple(items))] if items else []
