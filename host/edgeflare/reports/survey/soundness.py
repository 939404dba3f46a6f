"""The verdict against healthy references, in words."""

from edgeflare._internal.text import counted
from edgeflare.analysis.soundness import SOUNDNESS_WORDS, Soundness, SoundnessVerdict
from edgeflare.reports.document import Block, Text, Tone

TONES: dict[SoundnessVerdict, Tone] = {"sound": "good", "worse": "bad", "cannot-tell": "warn"}


def soundness_sentence(found: Soundness) -> str:
    """Return the verdict in one sentence."""
    words = SOUNDNESS_WORDS[found.verdict]
    return (
        f"{words[0].upper()}{words[1:]} ({counted(found.inputs, 'input')} far from the seeds, "
        f"{counted(len(found.references), 'reference')}, {100 * found.confidence:g} % "
        "confidence)."
    )


def evidence_sentences(found: Soundness) -> tuple[str, ...]:
    """Return the evidence, a sentence each."""
    return tuple(f"{words[0].upper()}{words[1:]}." for words in found.evidence)


def soundness_blocks(found: Soundness | None) -> list[Block]:
    """Return the verdict and its evidence; nothing without references."""
    if found is None:
        return []
    first = Text(soundness_sentence(found), TONES[found.verdict])
    return [first, *map(Text, evidence_sentences(found))]
