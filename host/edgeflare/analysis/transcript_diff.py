"""What two speech recognisers heard of one input, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edgeflare.transcripts import aligned, placed, words
from edgeflare.types import Output, Transcript


class Part(NamedTuple):
    """A stretch of a text as the model wrote it; `differs` where it is a word that the other one has not."""

    text: str
    differs: bool


class WordChange(NamedTuple):
    """A word of the original, and what the deployed model heard instead; "" where one of the two has none."""

    original: str
    deployed: str


@dataclass(frozen=True)
class WordPair:
    """On how many triggering inputs the deployed model heard `deployed` where the original heard `original`.

    Words as they are compared, see `edgeflare.transcripts`; "" where one of the two has no word.
    """

    original: str
    deployed: str
    count: int


@dataclass(frozen=True)
class TranscriptDiff:
    """Two transcripts with the words marked in which they differ, and these words side by side in their order."""

    original: tuple[Part, ...]
    deployed: tuple[Part, ...]
    changes: tuple[WordChange, ...]


def heard(original: Output | None, deployed: Output | None) -> TranscriptDiff | None:
    """Return what both models heard; None where one of the answers is no transcript.

    Words are aligned with the fewest substitutions, insertions and deletions. Raises UsageError where RapidFuzz is
    missing.
    """
    if not (isinstance(original, Transcript) and isinstance(deployed, Transcript)):
        return None
    pairs = aligned(words(original), words(deployed))
    changed = [one is None or other is None or one.text != other.text for one, other in pairs]
    ours = [differs for (one, _), differs in zip(pairs, changed, strict=True) if one is not None]
    theirs = [
        differs for (_, other), differs in zip(pairs, changed, strict=True) if other is not None
    ]
    return TranscriptDiff(
        _parts(original, ours),
        _parts(deployed, theirs),
        tuple(
            WordChange(one.text if one else "", other.text if other else "")
            for (one, other), differs in zip(pairs, changed, strict=True)
            if differs
        ),
    )


def change_words(change: WordChange, arrow: str = "->") -> str:
    """Return a change in words, like ``"no" -> "go"``; a word that is not there is "nothing", without quotes."""
    return f" {arrow} ".join(f'"{word}"' if word else "nothing" for word in change)


def _parts(transcript: Transcript, differing: Sequence[bool]) -> tuple[Part, ...]:
    """Return a transcript's text in stretches, by which of its words differ."""
    text = "".join(transcript.pieces)
    parts, place = [], 0
    for (_, begin, end), differs in zip(placed(text), differing, strict=True):
        if differs:
            parts += [Part(text[place:begin], False), Part(text[begin:end], True)]
            place = end
    parts.append(Part(text[place:], False))
    first, last = parts[0], parts[-1]
    parts[0] = first._replace(text=first.text.lstrip())
    parts[-1] = last._replace(text=parts[-1].text.rstrip())
    return tuple(part for part in parts if part.text)
