"""What a campaign found, as tables on stdout or as one JSON object."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare import Summary
from edgeflare.analysis import ControlFigures, TriggerFigures
from edgeflare.cli.agreement_tables import print_agreements
from edgeflare.cli.limit_lines import print_limits
from edgeflare.cli.replay_tables import print_replay_counts
from edgeflare.cli.tables import answer_words, plain_table, print_json, text_parts
from edgeflare.cli.telemetry_tables import print_telemetry

_NO_SEARCH = "none"
_TOLERANCE = "tolerance"
_PAIRS_SHOWN = 10
_FAILURES_SHOWN = 5
_STEPS_SHOWN = 3
_LEAST_ROOM = 20
_OTHER_COLUMNS = 40
"""Columns of a terminal for all but the seed and the steps to a trigger."""
_NONE = "-"
_NO_WORD = "(nothing)"

_AUDIO = ("of samples from -1 to 1", "levels of 16 bits")
"""What distances of audio are of."""


def print_summary(summary: Summary, as_json: bool, *, wide: bool = False) -> None:
    """Print what a campaign found; `wide`: with every step of the triggers shown."""
    if as_json:
        print_json(summary.to_json())
        return
    console = Console()
    if summary.replay is not None:
        print_replay_counts(console, summary.replay)
    console.print(_key_figures(summary))
    if summary.label_pairs:
        console.print(_label_pairs(summary))
    if summary.word_pairs:
        console.print(_word_pairs(summary))
    if any(one.words for one in summary.triggers):
        console.print(_triggers(summary, None if wide else console.width))
    if len(summary.by_device) > 1:
        console.print(_devices(summary))
    if summary.transfers:
        console.print("Of the triggers of each device, how many also trigger on another one:")
        console.print(_transfers(summary))
    print_agreements(console, summary.agreements, summary.every_device)
    print_telemetry(console, summary.telemetry)
    for notice in summary.notices[len(summary.notices) - len(summary.throttled) :]:
        console.print(f"[yellow]{escape(notice)}[/]", soft_wrap=True)
    for reason, count in summary.given_up.items():
        if summary.search.get("strategy") != _NO_SEARCH:
            console.print(escape(f"given up on {count}: {reason}"), soft_wrap=True)
    for failure in summary.failures[:_FAILURES_SHOWN]:
        where = f"{failure.device_name} can't answer on " if failure.device_name else ""
        console.print(escape(f"failed: {where}{failure.seed_id}: {failure.detail}"), soft_wrap=True)
    print_limits(console, summary.limits)


def _search(search: Mapping[str, Any]) -> str:
    """Return strategy, options and limits in one line."""
    options = [f"{name}={value}" for name, value in search["options"].items()]
    limits = []
    if search["max_queries"]:
        limits.append(f"{search['max_queries']:,} queries")
    if search.get("max_host_queries"):
        limits.append(f"{search['max_host_queries']:,} host queries")
    if search["timeout_s"]:
        limits.append(f"{search['timeout_s']:g} s")
    floor = search.get("margin_floor", 0)
    sure = f"margins of at least {floor:g}" if floor else "no margin floor"
    if search["strategy"] == _NO_SEARCH:
        return f"none (the seeds are compared as they are), {sure}"
    what = " ".join([search["strategy"], *options])
    if search.get("oracle") == _TOLERANCE:
        what += f", scores more than {search['tolerance']:g} apart"
    *before, last = limits
    most = f"{', '.join(before)} and {last}" if before else last
    return f"{what}, at most {most} a seed, {sure}"


def _key_figures(summary: Summary) -> Table:
    table = plain_table("", "", header=False)
    for name in ("original", "deployed"):
        model = summary.models.get(name)
        if model:
            table.add_row(
                f"{name} model", f"{escape(model['name'])} ({_runtime(model['runtime'])})"
            )
    kind = "devices like" if len(summary.by_device) > len(summary.devices) else "device"
    for device in summary.devices:
        print_of = device["fingerprint"]
        board = print_of.get("board") or print_of.get("cpu") or ""
        table.add_row(kind, escape(f"{device['name']} {board}".strip()))
    if summary.search:
        table.add_row("search", escape(_search(summary.search)))
    searches = summary.search.get("strategy") != _NO_SEARCH
    if searches:
        rate = "-" if summary.success_rate is None else f"{100 * summary.success_rate:.1f} %"
        table.add_row(
            "success rate", f"[bold]{rate}[/] ({summary.found} of {summary.searched} searched)"
        )
    for status, words in (_STATUS_WORDS if searches else _SEED_STATUS_WORDS).items():
        if summary.by_status.get(status):
            table.add_row(words, str(summary.by_status[status]))
    if summary.ties:
        table.add_row("seeds with a top-1 tie", str(summary.ties))
    if summary.skipped:
        table.add_row("files skipped", str(summary.skipped))
    if summary.unfinished:
        unit = "searches" if summary.replicas else "seeds"
        table.add_row(f"{unit} unfinished", str(summary.unfinished))
    if summary.queries_found and summary.seconds_found:
        queries, seconds = summary.queries_found, summary.seconds_found
        options = summary.search.get("options", {}) if summary.search else {}
        goes_on = options.get("device_budget") or (options.get("candidates") or 1) > 1
        table.add_row(
            "search queries to the first trigger" if goes_on else "search queries for a trigger",
            f"mean {queries.mean:.1f}, median {queries.median:.0f}, 90 % {queries.p90:.0f}",
        )
        table.add_row(
            "seconds for a whole search" if goes_on else "seconds for a trigger",
            f"mean {seconds.mean:.3f}, median {seconds.median:.3f}",
        )
    if summary.wall_s is not None:
        table.add_row("seconds by the clock", f"{summary.wall_s:.1f} for the whole campaign")
    if summary.original_margin is not None:
        deployed = summary.deployed_margin
        table.add_row(
            "median margin",
            f"original {summary.original_margin:.4f}, deployed "
            + ("none (labels only)" if deployed is None else f"{deployed:.4f}"),
        )
    if summary.l2 is not None and summary.linf is not None:
        of_l2, levels = _AUDIO if summary.sample_rate else ("", "levels")
        text = f"{f'L2 {summary.l2:.2f} {of_l2}'.strip()}, Linf {summary.linf:.0f} {levels}"
        table.add_row("median distance to the seed", text)
    if summary.snr_db is not None:
        table.add_row("median signal-to-noise ratio", f"{summary.snr_db:.1f} dB")
    if summary.corruptions:
        counts = ", ".join(f"{name} {count}" for name, count in summary.corruptions.items())
        named = "operators" if summary.sample_rate else "natural corruptions"
        table.add_row(named, escape(counts))
    total = summary.total_queries
    table.add_row(
        "queries in all",
        f"seed {total['seed']}, search {total['search']}, confirmation {total['confirmation']}, "
        f"measuring {total['measuring']}, host only {total['host_only']}; {summary.round_trips} round trips",
    )
    if summary.control:
        table.add_row("control", control_words(summary.control))
        table.add_row("control's setting", escape(control_setting(summary.control)))
    return table


def control_words(control: ControlFigures) -> str:
    """Return how many false alarms there were, and how many there may be."""
    if control.state == "not-begun":
        return "not begun"
    if control.state == "gone":
        return "gone: its folder is not there any more"
    if control.state == "refused":
        return escape(f"can't be run: {control.refusal}")
    if control.rate is None or control.upper_bound is None:
        total = control.unasked + control.failed + control.unfinished
        return f"0 of {total} searches have asked the device{_left(control)}"
    text = (
        f"[bold]{control.false_alarms} of {control.searches}[/] searches that asked the device raised a false alarm "
        f"({100 * control.rate:.1f} %, 95 % upper bound {100 * control.upper_bound:.1f} %)"
    )
    if control.false_alarms and control.safe_margin is not None:
        text += f", with margins up to {control.safe_margin:g}"
    return text + _left(control)


def _left(control: ControlFigures) -> str:
    """Return how many searches of a control came to nothing, or not to an end yet."""
    text = ""
    if control.unasked:
        text += f"; {control.unasked} ended without asking it"
    if control.failed:
        text += f"; {control.failed} failed"
    if control.unfinished:
        text += f"; {control.unfinished} unfinished"
    return text


def control_setting(control: ControlFigures) -> str:
    """Return what was compared, and how it was computed."""
    runtime = control.runtime
    options = ", ".join(
        f"{name.replace('_', ' ')} {'off' if runtime[name] in (None, 'none') else runtime[name]}"
        for name in ("graph_optimization", "delegate", "kernels")
        if name in runtime
    )
    parts = [
        "the original against itself"
        if control.own_file
        else f"the original against {control.model}",
        f"{runtime.get('name', '')} {runtime.get('version', '')}".strip(),
        options,
        f"margin floor {control.margin_floor:g}",
    ]
    return ", ".join(part for part in parts if part)


_STATUS_WORDS = {
    "seed-deviates": "seeds that deviate already",
    "unstable": "unstable (did not repeat)",
    "nonfinite": "NaN or infinity in an output",
    "exhausted": "nothing within the query budget",
    "timeout": "nothing within the time budget",
    "gave-up": "given up by the strategy",
    "failed": "failed: a model can't answer",
}
_SEED_STATUS_WORDS = {
    **_STATUS_WORDS,
    "seed-deviates": "seeds that deviate",
    "gave-up": "seeds that don't deviate",
}
"""The same where nothing is searched."""


def _label_pairs(summary: Summary) -> Table:
    table = plain_table("original says", "deployed says", "triggers")
    for pair in summary.label_pairs[:_PAIRS_SHOWN]:
        table.add_row(str(pair.original), str(pair.deployed), str(pair.count))
    rest = summary.label_pairs[_PAIRS_SHOWN:]
    if rest:
        table.add_row(f"{len(rest)} more pairs", "", str(sum(pair.count for pair in rest)))
    return table


def _word_pairs(summary: Summary) -> Table:
    table = plain_table("original hears", "deployed hears", "triggers")
    for pair in summary.word_pairs[:_PAIRS_SHOWN]:
        texts = (escape(word) or _NO_WORD for word in (pair.original, pair.deployed))
        table.add_row(*texts, str(pair.count))
    rest = len(summary.word_pairs) - _PAIRS_SHOWN
    if rest > 0:
        table.add_row(f"{rest} more pair{'' if rest == 1 else 's'}", "", "")
    return table


def _triggers(summary: Summary, width: int | None) -> Table:
    """Return the first triggering inputs: what was done to the seed, and what both models say then.

    On a terminal of `width` columns the last steps alone, as many as fit on two lines, but one; None: all.
    """
    apart = summary.search.get("oracle") == _TOLERANCE
    columns = ["seed", "what was done to it", "original says", "deployed says"]
    table = plain_table(*columns, *(["scores apart"] if apart else []))
    for one in summary.triggers:
        said = text_parts(one.original_text, one.deployed_text)
        table.add_row(
            escape(f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id),
            escape(_steps(one, width) or "-"),
            answer_words(one.original_label, said[0]),
            answer_words(one.deployed_label, said[1]),
            *([_NONE if one.disagreement is None else f"{one.disagreement:.3f}"] if apart else []),
        )
    if summary.found > len(summary.triggers):
        table.add_row(f"{summary.found - len(summary.triggers)} more", "see `edgeflare export`")
    return table


def _steps(one: TriggerFigures, width: int | None) -> str:
    if width is None:
        return one.steps(len(one.words))
    room = 2 * max(_LEAST_ROOM, width - len(one.seed_id) - _OTHER_COLUMNS)
    texts = [one.steps(most) for most in range(_STEPS_SHOWN, 0, -1)]
    return next((text for text in texts if len(text) <= room), texts[-1])


def _runtime(runtime: Mapping[str, Any]) -> str:
    """Return name, version and what runs the operators: the delegate, or providers other than the CPU's alone."""
    told = [f"{runtime.get('name', '?')} {runtime.get('version', '')}".strip()]
    if runtime.get("delegate"):
        told.append(str(runtime["delegate"]))
    if "nodes" in runtime:
        nodes = runtime["nodes"]
        if isinstance(nodes, Mapping):
            told += [f"{count} nodes on {provider}" for provider, count in nodes.items()]
        else:
            told.append("which provider runs a node isn't told")
    return escape(", ".join(told))


def _devices(summary: Summary) -> Table:
    table = plain_table("device", "seeds done", "found", "success rate", "search queries", "failed")
    for one in summary.by_device:
        table.add_row(
            escape(one.name),
            str(one.finished),
            str(one.found),
            "-" if one.success_rate is None else f"{100 * one.success_rate:.1f} %",
            str(one.queries),
            str(one.failed),
        )
    return table


def _transfers(summary: Summary) -> Table:
    """Return a row for each device whose triggers were tried, a column for each it was tried on."""
    cells = {(one.replica, one.on_device): one for one in summary.transfers}
    columns = sorted({on_device for _, on_device in cells})
    table = plain_table("triggers of", *(f"on {escape(name)}" for name in columns))
    for replica in sorted({replica for replica, _ in cells}):
        row = []
        for on_device in columns:
            cell = cells.get((replica, on_device))
            row.append(
                "-" if cell is None else f"{cell.deviating}/{cell.tried} {100 * cell.rate:.0f}%"
            )
        table.add_row(escape(replica or "the pool"), *row)
    return table
