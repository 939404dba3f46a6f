"""What a replay told, as tables on stdout or as one JSON object."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.analysis import LimitCheck, ReplayFigures, ReplaySummary
from edgeflare.campaign import ReplayedInput, ReplayState, Reproduction, TopScore
from edgeflare.cli.limit_lines import print_limits
from edgeflare.cli.tables import plain_table, print_json, text_parts

_SHOWN = 10
_WORDS: Mapping[ReplayState, str] = {
    "new": "new: deviates now, did not before",
    "still": "still: deviates as before",
    "fixed": "fixed: deviated, and does not now",
    "agrees": "agrees, as before",
    "unstable": "unstable: the deviation did not repeat",
    "nonfinite": "NaN or infinity in an output",
    "failed": "failed: a model can't answer",
}
_RARE = ("unstable", "nonfinite", "failed")


def print_replay(summary: ReplaySummary, limits: Sequence[LimitCheck], as_json: bool) -> None:
    """Print what became of the inputs, whether limits hold, and how to see more."""
    if as_json:
        limits_json = [one.to_json() for one in limits]
        print_json({**summary.to_json(), "limits": limits_json})
        return
    console = Console()
    print_replay_counts(console, summary.figures)
    _print_inputs(console, "New:", summary.new)
    _print_inputs(console, "Still deviating, but with other answers:", summary.elsewhere)
    _print_inputs(console, "Not told:", (*summary.unstable, *summary.nonfinite, *summary.failed))
    print_limits(console, limits)
    report = shlex.join(["edgeflare", "report", summary.folder])
    console.print(f"As a page: {escape(report)}", soft_wrap=True)


def print_replay_counts(console: Console, summary: ReplayFigures) -> None:
    """Print that a campaign is a replay, of what, and how many of its inputs are fixed, still there, new."""
    file = {None: "", True: " (the same file as then)", False: " (another file than then)"}
    console.print(
        f"A replay of the {summary.source_kind} {escape(summary.source)} on "
        f"{escape(summary.deployed or '?')}{file[summary.same_deployed]}",
        soft_wrap=True,
        highlight=False,
    )
    names = list(summary.by_device) if len(summary.by_device) > 1 else []
    table = plain_table(
        "inputs", "in all" if names else "", *map(escape, names), header=bool(names)
    )
    for state, words in _WORDS.items():
        count = summary.counts[state]
        if count or state not in _RARE:
            each = [str(summary.by_device[name][state]) for name in names]
            table.add_row(words + _aside(summary, state), str(count), *each)
    if summary.unfinished:
        table.add_row("not asked about yet", str(summary.unfinished), *("" for _ in names))
    console.print(table)


def print_reproductions(source: Path, found: Sequence[Reproduction], as_json: bool) -> None:
    """Print what both models said of triggers when they were found, and what they say now."""
    if as_json:
        print_json({"source": str(source), "triggers": [one.to_json() for one in found]})
        return
    console = Console()
    for one in found:
        console.print(
            f"[bold]{escape(one.seed_id)}[/] on {escape(one.device)}: {_outcome(one)}",
            soft_wrap=True,
            highlight=False,
        )
        console.print(_answers(one))
        console.print(_equality(one), soft_wrap=True, highlight=False)


def _aside(summary: ReplayFigures, state: str) -> str:
    """Return what more there is to say of the inputs in a state."""
    if state == "fixed" and summary.narrow:
        return f" ({summary.narrow} narrowly: a tie, or below the margin floor)"
    if state == "still" and summary.elsewhere:
        return f" ({summary.elsewhere} with other answers)"
    return ""


def _print_inputs(console: Console, title: str, inputs: Sequence[ReplayedInput]) -> None:
    if not inputs:
        return
    console.print(title)
    several = len({one.device for one in inputs}) > 1
    table = plain_table(
        "input", *(["device"] if several else []), "original says", "deployed says", "margin", "L2"
    )
    for one in inputs[:_SHOWN]:
        table.add_row(
            escape(f"{one.kind} {one.seed_id}"),
            *([escape(one.device)] if several else []),
            _said(one, "original"),
            _said(one, "deployed"),
            "-" if one.margin is None else f"{one.margin:.4f}",
            "-" if one.l2 is None else f"{one.l2:.2f}",
        )
    if len(inputs) > _SHOWN:
        table.add_row(f"{len(inputs) - _SHOWN} more: --json has them all")
    console.print(table)


def _said(one: ReplayedInput, which: str) -> str:
    """Return what a model said before and says now: its label, or the text that it heard."""
    place = ("original", "deployed").index(which)
    now = text_parts(one.original_text, one.deployed_text)[place]
    if now is None:
        return _change(getattr(one, f"{which}_label_before"), getattr(one, f"{which}_label"))
    before = text_parts(one.original_text_before, one.deployed_text_before)[place]
    return escape(_quoted(now) if before in (None, now) else f"{_quoted(before)} -> {_quoted(now)}")


def _quoted(text: str) -> str:
    return f'"{text}"'


def _change(before: int | None, now: int | None) -> str:
    shown = "-" if now is None else str(now)
    return shown if before in (None, now) else f"{before} -> {shown}"


def _outcome(one: Reproduction) -> str:
    if one.deviates:
        verb = "deviates" if one.found_on is None else "still deviates"
        return f"{verb} (confirmed {one.confirmed} times)"
    words = {
        "unstable": "deviates, but not each time",
        "nonfinite": "has NaN or infinity in an output",
        "failed": f"can't be answered: {escape(one.detail)}",
    }
    return words.get(one.state, "does not deviate (any more)")


def _answers(one: Reproduction) -> Table:
    texts = one.original_text_now is not None or one.original_text_before is not None
    table = plain_table("model", "", "heard" if texts else "most probable classes")
    for name in ("original", "deployed"):
        for when, words in (("before", "when found"), ("now", "now")):
            if texts:
                text: str | None = getattr(one, f"{name}_text_{when}")
                said = "not known" if text is None else escape(_quoted(text))
            else:
                said = _scores(getattr(one, f"{name}_{when}"))
            table.add_row(name if when == "before" else "", words, said)
    return table


def _scores(top: Sequence[TopScore]) -> str:
    return ", ".join(f"{one.label} ({one.probability:.4f})" for one in top) or "not known"


def _equality(one: Reproduction) -> str:
    if one.bit_equal is None:
        return "No scores are stored to compare with."
    where = "" if one.found_on == one.device else f", on {escape(str(one.found_on))}"
    equal = (one.original_equal, one.deployed_equal)
    whose = {
        (True, True): "Both models' answers are",
        (True, False): "The original's answer alone is",
        (False, True): "The deployed model's answer alone is",
    }.get((bool(equal[0]), bool(equal[1])), "Neither model's answer is")
    return f"{whose} what was stored, to the last bit{where}."
