"""The transcript oracle (DFLARE, section 6.1)."""

from edgeflare.answers import is_finite, says_alike
from edgeflare.extras import rapidfuzz
from edgeflare.oracles.margin import margins
from edgeflare.types import Decision, Output, Transcript


class TranscriptOracle:
    """A deviation is another sentence (DFLARE, section 6.1: it "compares the sentences word by word").

    Words are compared as `edgeflare.transcripts` has them: runs of letters, digits and combining marks, with
    apostrophes inside; Unicode form NFKC, case folded, a typographic apostrophe as a plain one. Punctuation,
    case and white space make no difference; "30" and "thirty" do.

    The margin of a deviation is the smallest of the words that differ, side by side with the fewest
    substitutions, insertions and deletions: a recogniser that hears one word otherwise may go on otherwise,
    however sure it then is, so the least sure word decides. A word that only one model has counts with that
    one's margin. Before the deployed model is asked, the floor is held against the smallest margin of all
    of the original's words, since which ones will differ is not known yet.

    Differences: the paper names no normalisation; ours is the above. A token whose two best have the same
    probability decides nothing: different transcripts are a `TIE` where a word that differs has no margin. NaN or
    infinity in either answer's scores is `NONFINITE`. With a floor above 0, different transcripts are `BELOW_FLOOR`
    where a word that differs has a margin below it. The paper speaks of none of these. Raises UsageError, when it is
    made, where RapidFuzz is missing, which aligns the words.
    """

    def __init__(self, floor: float = 0.0) -> None:
        rapidfuzz()
        self._floor = floor

    @property
    def floor(self) -> float:
        """The smallest margin of a word of either model, in [0, 1), that makes a deviation."""
        return self._floor

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two transcripts. Raises TypeError for scores."""
        if not (isinstance(original, Transcript) and isinstance(deployed, Transcript)):
            raise TypeError("scores are no transcript")
        if not (is_finite(original) and is_finite(deployed)):
            return Decision.NONFINITE
        if says_alike(original, deployed):
            return Decision.AGREE
        margin = margins(original, deployed).smaller
        assert margin is not None  # noqa: S101 - where texts differ a word does
        if margin <= 0:
            return Decision.TIE
        return Decision.BELOW_FLOOR if margin < self._floor else Decision.DEVIATION
