"""The score tolerance oracle."""

from edgeflare.answers import class_scores, is_finite
from edgeflare.distances import total_variation
from edgeflare.types import Decision, Output


class ToleranceOracle:
    """A deviation is scores further apart than a tolerance, whatever the labels.

    Differences: the paper compares labels alone. Scores are apart by their total variation distance: the
    share of probability, 0 to 1, that they put on different classes. NaN or infinity in either answer is
    `NONFINITE`. There is no tie and no floor of the margin: a label need not be another one.
    """

    floor = 0.0

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two answers, float64 [classes] each. Raises TypeError for a transcript."""
        ours, theirs = class_scores(original), class_scores(deployed)
        if not (is_finite(ours) and is_finite(theirs)):
            return Decision.NONFINITE
        apart = total_variation(ours, theirs)
        return Decision.DEVIATION if apart > self.tolerance else Decision.AGREE
