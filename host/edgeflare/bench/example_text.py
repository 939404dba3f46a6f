"""What both models heard of a bench's triggering inputs, as Markdown."""

import math
from collections.abc import Sequence
from itertools import groupby

from edgeflare.analysis.words import number_text, plain, table
from edgeflare.bench import explanations
from edgeflare.bench.rows import SearchRow
from edgeflare.transcripts import spoken

_SHOWN = 3


def examples(searches: Sequence[SearchRow]) -> list[str]:
    """Return a table for each pair of models that transcribe; nothing where none does or nothing was found."""
    transcribed = [row for row in searches if row.found and row.original_text is not None]
    parts = ["## Examples", explanations.EXAMPLES] if transcribed else []
    header = ["strategy", "the original heard", "the deployed model heard", "SNR (dB)", "L2"]
    for pair, rows in groupby(transcribed, key=lambda row: row.pair):
        shown = [_line(row) for row in _nearest(list(rows))]
        parts += [f"### {plain(pair)}", table(header, shown, header[:3])]
    return parts


def _nearest(rows: Sequence[SearchRow]) -> list[SearchRow]:
    """Return of each strategy the few triggering inputs nearest to their seeds, one of each seed."""
    found: list[SearchRow] = []
    for strategy in dict.fromkeys(row.strategy for row in rows):
        of_it = sorted((row for row in rows if row.strategy == strategy), key=_distance)
        found += list({row.seed_id: row for row in reversed(of_it)}.values())[::-1][:_SHOWN]
    return found


def _distance(row: SearchRow) -> tuple[float, float, str, int]:
    nearness = -math.inf if row.snr_db is None else row.snr_db
    return -nearness, math.inf if row.l2 is None else row.l2, row.seed_id, row.repeat


def _line(row: SearchRow) -> list[str]:
    return [
        plain(row.strategy),
        plain(" ".join(spoken(row.original_text or ""))),
        plain(" ".join(spoken(row.deployed_text or ""))),
        number_text(row.snr_db, 1),
        number_text(row.l2),
    ]
