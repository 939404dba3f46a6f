"""A campaign in Markdown, for a comment on a change or the summary of a job."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from edgeflare.analysis.causes import NOT_ATTRIBUTED
from edgeflare.analysis.findings import Finding, findings
from edgeflare.analysis.formats.markdown_figures import key_figures, replay_figures
from edgeflare.analysis.formats.material import Material
from edgeflare.analysis.formats.sentences import STEPS_SHOWN, replayed_words, said_words
from edgeflare.analysis.words import margin_text, number_text, percent_text, plain, table
from edgeflare.campaign.replay_states import ReplayedInput
from edgeflare.search.mutation_path import joined_words
from edgeflare.text import clean_text
from edgeflare.types import TRIGGERS

_SHOWN = 10
_NO_WORD = "(nothing)"


def text(material: Material) -> str:
    """Return the document: verdict, limits, key figures, pairs of labels, devices, triggers, notices."""
    parts = [
        f"## EdgeFlare: {plain(material.store.folder.resolve().name)}",
        _verdict(material),
        *map(plain, material.guidance),
        *filter(None, [plain(material.progress)]),
        *_limits(material),
        *(_found(material) if material.replay is None else _replayed(material)),
        *_notices(material),
    ]
    return "\n\n".join(parts) + "\n"


def _verdict(material: Material) -> str:
    said = material.verdict
    if not material.has_limits:
        return f"**{plain(said)}**"
    return f"**{'Failed' if material.crossed else 'Passed'}.** {plain(said)}"


def _limits(material: Material) -> Iterator[str]:
    rows = [
        [
            plain(one.name),
            "not checked" if not one.checked else "**crossed**" if one.crossed else "kept",
            plain(one.words.removeprefix(f"{one.name}: ")),
        ]
        for one in material.limits
    ]
    if rows:
        yield "### Limits"
        yield table(["limit", "", "what was found"], rows, ["", "what was found"])


def _found(material: Material) -> Iterator[str]:
    yield "### Key figures"
    yield table(["", "figure"], key_figures(material), ["figure"])
    yield from _pairs(material)
    yield from _devices(material)
    triggers = (one for one in findings(material.store) if one.outcome.status in TRIGGERS)
    yield from _triggers(material, list(islice(triggers, _SHOWN)))


def _pairs(material: Material) -> Iterator[str]:
    pairs = material.summary.label_pairs
    if material.summary.word_pairs:
        yield "### Words heard differently"
        yield table(["original", "deployed", "triggers"], _words(material), ["deployed"])
    rows = [
        [plain(material.name(one.original)), plain(material.name(one.deployed)), f"{one.count:,}"]
        for one in pairs[:_SHOWN]
    ]
    rest = sum(one.count for one in pairs[_SHOWN:])
    if rest:
        rows.append([f"{len(pairs) - _SHOWN:,} more pairs", "", f"{rest:,}"])
    if rows:
        yield "### Pairs of labels"
        yield table(["original says", "deployed says", "triggers"], rows, ["deployed says"])


def _words(material: Material) -> list[list[str]]:
    pairs = material.summary.word_pairs
    rows = [
        [plain(one.original or _NO_WORD), plain(one.deployed or _NO_WORD), f"{one.count:,}"]
        for one in pairs[:_SHOWN]
    ]
    if len(pairs) > _SHOWN:
        more = len(pairs) - _SHOWN
        rows.append([f"{more:,} more pair{'' if more == 1 else 's'}", "", ""])
    return rows


def _devices(material: Material) -> Iterator[str]:
    summary = material.summary
    rows = [
        [
            plain(one.name) + (" (throttled)" if one.name in summary.throttled else ""),
            f"{one.finished:,}",
            f"{one.found:,}",
            percent_text(one.success_rate),
            f"{one.queries:,}",
            f"{one.failed:,}",
        ]
        for one in summary.by_device
    ]
    if rows:
        yield "### Devices"
        yield table(
            ["device", "seeds done", "found", "success rate", "search queries", "failed"], rows
        )


def _triggers(material: Material, first: Sequence[Finding]) -> Iterator[str]:
    if not first:
        return
    yield "### First triggers"
    header = [
        "seed",
        "original -> deployed",
        "cause",
        "what was done to it",
        "L2",
        "SNR",
        "smaller margin",
    ]
    columns = list(zip(*(_trigger(material, one) for one in first), strict=True))
    told = [
        (name, column)
        for name, column in zip(header, columns, strict=True)
        if set(column) - {"", NOT_ATTRIBUTED}
    ]
    names = [name for name, _ in told]
    rows = list(map(list, zip(*(column for _, column in told), strict=True)))
    yield table(names, rows, header[:4])
    yield f"To see one again:\n\n{_code(first[0].command)}"


def _trigger(material: Material, finding: Finding) -> list[str]:
    one = finding.outcome
    return [
        plain(f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id),
        plain(said_words(material, one)),
        plain(finding.cause),
        plain(joined_words(one.mutations, STEPS_SHOWN)),
        number_text(one.l2),
        "" if one.snr_db is None else f"{one.snr_db:.1f} dB",
        margin_text(one.severity),
    ]


def _replayed(material: Material) -> Iterator[str]:
    replay = material.replay
    if replay is None:
        return
    yield "### The replay"
    yield table(["", "what"], replay_figures(replay), ["what"])
    states = list(next(iter(replay.by_device.values()), {}))
    rows = [
        [plain(device), *(f"{counts[state]:,}" for state in states)]
        for device, counts in replay.by_device.items()
    ]
    if rows:
        yield "### Inputs replayed"
        yield table(["device", *states], rows)
    yield from _inputs("New deviations", material, replay.new)
    yield from _inputs("Known deviations", material, replay.still)


def _inputs(title: str, material: Material, inputs: Sequence[ReplayedInput]) -> Iterator[str]:
    if not inputs:
        return
    rows: Iterable[list[str]] = (
        [plain(one.id), plain(one.device), plain(replayed_words(material.name, one))]
        for one in inputs[:_SHOWN]
    )
    yield f"### {title}"
    yield table(["input", "device", "what happened"], list(rows), ["device", "what happened"])
    if len(inputs) > _SHOWN:
        yield f"{len(inputs) - _SHOWN:,} more."


def _notices(material: Material) -> Iterator[str]:
    notices = material.summary.notices
    if notices:
        yield "### Notices"
        yield "\n".join(f"- {plain(one)}" for one in notices)


def _code(line: str) -> str:
    """Return a line as a block of code; its fence is longer than any in it."""
    line = clean_text(line, lines=True)
    fence = "```"
    while fence in line:
        fence += "`"
    return f"{fence}sh\n{line}\n{fence}"
