"""The words of transcripts (DFLARE, section 6.1), their alignment, and the distance of two
transcripts.

Words are compared as they are spoken, not as they are written: runs of letters, digits and
combining marks, with apostrophes inside them, in Unicode's form NFKC and case folded (a typographic
apostrophe becomes a plain one). Punctuation, case and white space make no difference. "30" and
"thirty" do: which one a model writes is its own decision. A run of letters in a language that is
written without spaces is one word.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import counted
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.parts import Card, Margins, Name, Pieces, later
from edgeflare.document import KeyFigure, Section
from edgeflare.statistics import CountedPair, counted_pairs
from edgeflare.types import Output, Transcript
from edgeflare.words.answers import OF_TRANSCRIPTS, TEXT_MODELS

NO_WORD = "(nothing)"
"""Stands for a word that one of two transcripts does not have."""
_BEFORE = 2
_FROM = 6
"""Number of words of an excerpt before the first that differs, and from there on."""
KEY_ARROW = "→"
"""Between the words of a card's key, in which it can't stand."""
_WORD = re.compile(r"w+(?:'w+)*")
"""Matches a word in a text in which every character of a word is replaced by w."""


class Word(NamedTuple):
    """A word as it is compared, with its tokens' product of probabilities and smallest margin.

    A token's margin is its probability less that of the best other token. Tokens that do nothing but
    part a word from the one before count in its margin, too, with the surest of them: without them
    both were one word.
    """

    text: str
    probability: float
    margin: float


def words(transcript: Transcript) -> tuple[Word, ...]:
    """Return the words of a transcript; a token that is part of two words counts for both."""
    ends = list(accumulate(map(len, transcript.pieces)))
    scores = transcript.scores.tolist()
    found = []
    before = None
    for text, begin, end in _spans("".join(transcript.pieces)):
        first, last = bisect_right(ends, begin), bisect_left(ends, end)
        probability, margin = _certainty(scores[first : last + 1])
        if before is not None and first > before + 1:
            margin = min(margin, max(one - other for one, other in scores[before + 1 : first]))
        found.append(Word(text, probability, margin))
        before = last
    return tuple(found)


def spoken(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared."""
    return tuple(word for word, _, _ in _spans(text))


def aligned(one: Sequence[Word], other: Sequence[Word]) -> list[tuple[Word | None, Word | None]]:
    """Return pairs of words, aligned with the fewest substitutions, insertions and deletions.

    None in a pair: the other one has an additional word there. Raises UsageError where RapidFuzz is
    missing.
    """
    pairs: list[tuple[Word | None, Word | None]] = []
    for kind, begin, end, start, stop in _steps(_texts(one), _texts(other)):
        if kind in ("equal", "replace"):
            pairs += zip(one[begin:end], other[start:stop], strict=True)
        else:
            pairs += [(word, None) for word in one[begin:end]]
            pairs += [(None, word) for word in other[start:stop]]
    return pairs


def differing(one: Sequence[Word], other: Sequence[Word]) -> list[tuple[Word | None, Word | None]]:
    """Return the `aligned` pairs that differ. Raises UsageError where RapidFuzz is missing."""
    if _texts(one) == _texts(other):
        return []
    return [(a, b) for a, b in aligned(one, other) if a is None or b is None or a.text != b.text]


Parts: TypeAlias = tuple[tuple[str, bool], ...]
"""A text as the model wrote it, in parts: whether each is a word that the other transcript lacks."""
WordChanges: TypeAlias = tuple[tuple[str, str], ...]
"""Words of the original and the deployed model's in their places; "" for none."""


def transcript_diff(
    original: Output | None, deployed: Output | None
) -> tuple[Parts, Parts, WordChanges] | None:
    """Return two transcripts in parts, and the words in which they differ, in their order.

    None unless both answers are transcripts. Words are aligned with the fewest substitutions,
    insertions and deletions. Raises UsageError where RapidFuzz is missing.
    """
    if not (isinstance(original, Transcript) and isinstance(deployed, Transcript)):
        return None
    pairs = aligned(words(original), words(deployed))
    changed = [one is None or other is None or one.text != other.text for one, other in pairs]
    ours = [differs for (one, _), differs in zip(pairs, changed, strict=True) if one is not None]
    theirs = [
        differs for (_, other), differs in zip(pairs, changed, strict=True) if other is not None
    ]
    return (
        _parts(original, ours),
        _parts(deployed, theirs),
        tuple(
            (one.text if one else "", other.text if other else "")
            for (one, other), differs in zip(pairs, changed, strict=True)
            if differs
        ),
    )


def word_distance(one: Transcript, other: Transcript) -> float:
    """Return the share of words that differ, of those of the longer transcript, 0 to 1.

    Raises UsageError where RapidFuzz is missing.
    """
    ours, theirs = words(one), words(other)
    return len(differing(ours, theirs)) / max(len(ours), len(theirs), 1)


def excerpts(one: str, other: str) -> tuple[str, str]:
    """Return both texts from two words before their first difference; dots replace the rest."""
    ours, theirs = _spans(one), _spans(other)
    same = 0
    for mine, yours in zip(ours, theirs, strict=False):
        if mine[0] != yours[0]:
            break
        same += 1
    return _excerpt(one, ours, same), _excerpt(other, theirs, same)


def _excerpt(text: str, spans: "Sequence[tuple[str, int, int]]", same: int) -> str:
    first, end = max(0, same - _BEFORE), same + _FROM
    begin = spans[first][1] if 0 < first < len(spans) else 0
    stop = spans[end - 1][2] if end < len(spans) else len(text)
    return ("... " if begin else "") + text[begin:stop] + (" ..." if stop < len(text) else "")


def _parts(transcript: Transcript, differing: Sequence[bool]) -> Parts:
    """Return a transcript's text in stretches, by which of its words differ."""
    text = "".join(transcript.pieces)
    parts: list[tuple[str, bool]] = []
    place = 0
    for (_, begin, end), differs in zip(_spans(text), differing, strict=True):
        if differs:
            parts += [(text[place:begin], False), (text[begin:end], True)]
            place = end
    parts.append((text[place:], False))
    parts[0] = (parts[0][0].lstrip(), parts[0][1])
    parts[-1] = (parts[-1][0].rstrip(), False)
    return tuple(part for part in parts if part[0])


def _texts(some: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in some)


def _steps(
    one: tuple[str, ...], other: tuple[str, ...]
) -> Sequence[tuple[str, int, int, int, int]]:
    from edgeflare._internal.extras import rapidfuzz

    return [
        (str(step.tag), step.src_start, step.src_end, step.dest_start, step.dest_end)
        for step in rapidfuzz().Levenshtein.opcodes(one, other)
    ]


def _certainty(scores: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a word's probability and margin from its tokens' (probability, highest other)."""
    probability, margin = 1.0, 1.0
    for chosen, other in scores:
        probability *= chosen
        margin = min(margin, chosen - other)
    return probability, margin


@lru_cache(maxsize=1024)
def _spans(text: str) -> tuple[tuple[str, int, int], ...]:
    shape = "".join(map(_shape, text))
    return tuple(
        (_normal(text[found.start() : found.end()]), found.start(), found.end())
        for found in _WORD.finditer(shape)
    )


def _shape(character: str) -> str:
    """Return w for a character of words, a plain apostrophe, or a space."""
    if character in "'’":
        return "'"
    return "w" if unicodedata.category(character)[0] in "LNM" else " "


def _normal(word: str) -> str:
    folded = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    return unicodedata.normalize("NFKC", folded)


class WordFigures(NamedTuple):
    """Words of the original and the deployed model's in their places, over the triggering inputs."""

    pairs: tuple[CountedPair[str], ...]


class TranscriptKind(AnswerKind[Transcript]):
    """A deviation is another word."""

    name = "transcripts"
    tasks = {"transcript": "text"}
    noun = "transcripts"
    outputs = ("transcript",)
    boundary = "edgeflare.strategies.boundary.strategy:search_texts"
    boundary_options = "transcript"
    boundary_noun = TEXT_MODELS
    distance_name = "word_difference"
    shows_pairs = True
    page_part = "words"
    report_words = OF_TRANSCRIPTS

    stated_outputs = ("auto", "transcript")
    takes_device_budget = False

    def accepts(self, answer: object) -> bool:
        return isinstance(answer, Transcript)

    def suits(self, original: Any, deployed: Any) -> str | None:
        """Return "" where both models return text, as stated or as in their files."""
        from edgeflare.answers.text_interfaces import text_sources

        return None if text_sources("auto", original, deployed) is None else ""

    def check_files(self, task: str, original: Any, deployed: Any) -> None:
        """Raise where only one of the models returns text, before their inputs are compared."""
        from edgeflare.answers.text_interfaces import text_sources

        if task in ("auto", *self.tasks):
            text_sources(task, original, deployed)

    def interfaces(self, task: str, settings: Any, original: Any, deployed: Any) -> tuple[Any, Any]:
        from edgeflare.answers.text_interfaces import text_interfaces

        return text_interfaces(original, deployed)

    def reader(self, side: Any) -> Any:
        from edgeflare.answers.outputs import OutputReader

        return OutputReader(side.output, "transcript", side.classes)

    def numbers(self, answer: Transcript) -> NDArray[np.float64]:
        return answer.scores

    def agree(self, original: Transcript, deployed: Transcript) -> bool:
        return spoken(original.text) == spoken(deployed.text)

    def distance(self, original: Transcript, deployed: Transcript) -> float:
        """Return the number of differing words over that of the longer one."""
        return word_distance(original, deployed)

    def margin(self, answer: Transcript) -> float | None:
        """Return the smallest margin of a word; None without one."""
        return _smallest(words(answer))

    def margins(self, original: Transcript, deployed: Transcript) -> Margins:
        """Return the smallest margins of the words that differ; of all where none do."""
        if not (self.is_finite(original) and self.is_finite(deployed)):
            return super().margins(original, deployed)
        ours, theirs = words(original), words(deployed)
        pairs = differing(ours, theirs) or list(zip(ours, theirs, strict=True))
        return Margins(
            _smallest([word for word, _ in pairs if word is not None]),
            _smallest([word for _, word in pairs if word is not None]),
        )

    def is_same(self, first: Transcript, second: Transcript) -> bool:
        return first.pieces == second.pieces and super().is_same(first, second)

    def state(self, answer: Transcript) -> NDArray[np.float64]:
        return np.array([word.probability for word in words(answer)], np.float64)

    def top_difference(self, original: Transcript, deployed: Transcript) -> float:
        pairs = aligned(words(original), words(deployed))
        return max((abs(_sure(ours) - _sure(theirs)) for ours, theirs in pairs), default=0.0)

    def to_columns(self, answer: Transcript) -> tuple[bytes, Pieces]:
        return np.asarray(answer.scores, dtype="<f8").tobytes(), list(answer.pieces)

    def from_columns(self, data: bytes, pieces: Any) -> Transcript:
        scores = np.frombuffer(data, dtype="<f8").astype(np.float64)
        return Transcript(tuple(pieces), scores.reshape(-1, 2))

    def changes(self, original: Transcript, deployed: Transcript) -> WordChanges:
        """Return the words that differ, in their order."""
        changed = transcript_diff(original, deployed)
        return () if changed is None else changed[2]

    def text(self, answer: Transcript) -> str | None:
        return answer.text

    def pieces(self, answer: Transcript) -> list[str] | None:
        return list(answer.pieces)

    def answers_words(
        self, original: Transcript | None, deployed: Transcript | None, name: Name = str
    ) -> tuple[str, str]:
        """Return both texts in quotes, from near their first difference where there are both."""
        texts = (
            None if original is None else original.text,
            None if deployed is None else deployed.text,
        )
        if original is not None and deployed is not None:
            texts = excerpts(original.text, deployed.text)
        first, second = ("no answer" if text is None else f'"{text}"' for text in texts)
        return first, second

    def figures(
        self, seeds: Iterable[Any], triggers: Iterable[Any], settings: Mapping[str, Any]
    ) -> WordFigures:
        counts: Counter[tuple[str, str]] = Counter()
        for original, deployed in triggers:
            counts.update(set(self.changes(original, deployed)))
        return WordFigures(counted_pairs(counts.items()))

    def figures_json(self, figures: WordFigures) -> dict[str, Any]:
        return {"word_pairs": [asdict(pair) for pair in figures.pairs]}

    def key_figures(self, figures: WordFigures) -> Iterable[KeyFigure]:
        for pair in figures.pairs[:1]:
            text = f"{pair.original or NO_WORD} -> {pair.deployed or NO_WORD}"
            yield KeyFigure("most frequent words", text, counted(pair.count, "trigger"), main=True)

    def sections(
        self, figures: WordFigures, name: Name, *, is_replay: bool = False
    ) -> Iterable[Section]:
        yield later(
            "edgeflare.reports.sections.differences:words_section", figures, is_replay=is_replay
        )

    def pair_words(self, key: str, name: Name) -> str:
        original, _, deployed = key.partition(KEY_ARROW)
        return f"{original or NO_WORD} {KEY_ARROW} {deployed or NO_WORD}"

    def card(self, original: Transcript, deployed: Transcript, seed: Sequence[Any] = ()) -> Card:
        """Return the words that differ, and both texts in stretches, marked where they do."""
        both = transcript_diff(original, deployed)
        if both is None:
            return Card()
        ours, theirs, changes = both
        texts = [" ".join((answer.text if answer else "").split()) for answer in seed]
        data = {
            "changes": [list(change) for change in changes],
            "original": [[text, int(differs)] for text, differs in ours],
            "deployed": [[text, int(differs)] for text, differs in theirs],
            "seed": texts or None,
        }
        keys = dict.fromkeys(KEY_ARROW.join(change) for change in changes)
        return Card(transcripts=data, pairs=tuple(keys))

    def example(self, original: Transcript, deployed: Transcript) -> str:
        ours, theirs = excerpts(original.text, deployed.text)
        return f'"{ours}" against "{theirs}"'


def _smallest(spoken_words: Sequence[Word]) -> float | None:
    return min((word.margin for word in spoken_words), default=None)


def _sure(word: Word | None) -> float:
    return 0.0 if word is None else word.probability


TRANSCRIPTS = TranscriptKind()
