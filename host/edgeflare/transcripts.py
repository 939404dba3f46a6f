"""The words of transcripts by their documented names; they stand in `edgeflare.answers.transcripts`."""

from edgeflare.answers.transcripts import (
    Word,
    WordChange,
    aligned,
    differing,
    spoken,
    transcript_diff,
    word_distance,
    words,
)

__all__ = [
    "Word",
    "WordChange",
    "aligned",
    "differing",
    "spoken",
    "transcript_diff",
    "word_distance",
    "words",
]
