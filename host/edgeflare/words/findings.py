"""Findings: what both models answer, which is the severest, and what a corpus takes of them."""

from edgeflare._internal.text import NOTHING, margin_text
from edgeflare.analysis.agreement import NOT_ATTRIBUTED
from edgeflare.analysis.corpus import CorpusAddition
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.answers.transcripts import excerpts
from edgeflare.document import Name
from edgeflare.store import OutcomeRecord


def text_parts(original: str | None, deployed: str | None) -> tuple[str | None, str | None]:
    """Return two transcripts from near their first difference; unchanged if one is None."""
    if original is None or deployed is None:
        return original, deployed
    return excerpts(original, deployed)


def answer_words(label: int | None, text: str | None, name: Name = str) -> str:
    """Return a model's answer: the name of a class, a transcript in quotes, or a dash."""
    if text is not None:
        return f'"{text}"'
    return NOTHING if label is None else name(label)


def answers_text(
    labels: tuple[int | None, int | None], texts: tuple[str | None, str | None], name: Name
) -> str:
    """Return both models' answers, such as ``4 -> 9`` or ``"no" -> "go"``."""
    both = zip(labels, texts, strict=True)
    return " -> ".join(name(label) if text is None else f'"{text}"' for label, text in both)


def known_cause(cause: str) -> str:
    """Return a trigger's cause, empty if it is not attributed."""
    return "" if cause == NOT_ATTRIBUTED else cause


def severest_words(
    outcome: OutcomeRecord, severity: float, name: Name, *, is_measured: bool, has_margins: bool
) -> str:
    """Return the severest trigger in a sentence; `name` returns a class's name.

    `is_measured`: an oracle compares scores or values, and `severity` is how far they are apart;
    `has_margins`: the answers have any.
    """
    margins = (
        f"margins of {margin_text(outcome.original_margin)} and "
        f"{margin_text(outcome.deployed_margin)}"
    )
    where = f"(from {outcome.seed_id})"
    words = difference_text(outcome.original, outcome.deployed, name)
    if words is not None:
        beside = f", with {margins}" if has_margins else ""
        return f"The severest: {words}{beside} {where}."
    labels = outcome.original_label, outcome.deployed_label
    if is_measured:
        answers = f"the original says {name(labels[0])}, the deployed model {name(labels[1])}"
        if labels[0] == labels[1]:
            answers = f"both models say {name(labels[0])}"
        return f"The severest: scores {margin_text(severity)} apart, where {answers} {where}."
    verb, both = "says", tuple(map(name, labels))
    texts = text_parts(text_of(outcome.original), text_of(outcome.deployed))
    if texts[0] is not None and texts[1] is not None:
        verb, both = "returns", (f"“{texts[0]}”", f"“{texts[1]}”")
    return (
        f"The severest: the original {verb} {both[0]}, the deployed model {both[1]}, with {margins} "
        f"{where}."
    )


def addition_notices(addition: CorpusAddition) -> tuple[str, ...]:
    """Return what a user should know of an addition, without full stops."""
    folder, source = addition.folder, addition.source
    notices = []
    if addition.unfinished:
        notices.append(f"{folder} is not finished: what it found so far was added")
    if addition.another_original:
        notices.append(
            f"the original model of {folder} is another file than the corpus' triggers were found "
            "with so far: if it is not the same network retrained, keep a corpus of its own for it"
        )
    if addition.unplaced:
        notices.append(
            f"{addition.unplaced} triggers of the replay {folder} were not added, since their seed "
            f"inputs are not there any more: {source} can't be opened"
        )
    if count := addition.unknown_fixed:
        triggers = "1 trigger that is" if count == 1 else f"{count} triggers that are"
        notices.append(
            f"{triggers} fixed in {folder}: the corpus knows nothing of "
            f"{'it' if count == 1 else 'them'} yet; add the campaign {source}, then {folder} again"
        )
    return tuple(notices)
