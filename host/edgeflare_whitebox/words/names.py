"""What criteria, measures, hypotheses and orders of seeds are, by their names."""

from collections.abc import Mapping, Sequence

COUNTED: Mapping[str, str] = {
    "NC": "units above {threshold} of their layer's range",
    "KMNC": "{sections:,} sections of each unit's range",
    "NBC": "sides on which a unit leaves its range",
    "SNAC": "units above their range",
    "TKNC": "units among the {k} most active of a layer",
    "LSC": "{sections:,} sections of surprise by density, to {upper:,g}",
    "DSC": "{sections:,} sections of surprise by distance, to {upper:,g}",
}
"""What is counted for each criterion, with names of its settings in braces."""

MEASURES_OF_UNITS: Mapping[str, str] = {
    "pearson": "correlation of a unit's activation and the hypothesis, -1 to 1",
    "mutual-information": "information of a unit's activation in {bins} bins on the hypothesis, in bits",
    "f1": "how well all units of a layer together predict a binary hypothesis on held-out inputs",
}
SAMPLE_HYPOTHESES: Mapping[str, str] = {
    "brightness": "mean brightness of the image, 0 to 255",
    "contrast": "standard deviation of the image's values, of 255",
    "edges": "edge density: mean step between neighbouring pixels, of 255",
    "blur": "share of the variance that isn't within 2 x 2 pixels, in per cent: 100 has no fine detail",
    "level": "root mean square of the audio, in per cent of full scale",
    "peak": "largest value of the audio, in per cent of full scale",
    "silence": "share of 20 ms windows of the audio that are silent, in per cent",
}
"""The built-in hypotheses on a sample alone, by name, in words; the last three are of audio."""

PRIORITY_MEASURES: Mapping[str, str] = {
    "margin": "the original's top-1 minus top-2 probability, smallest first",
    "gini": "1 minus the sum of the original's squared probabilities, largest first",
    "surprise": "how far the original's activations are from those of the other half of the seeds, farthest first",
    "rarity": "the combination of the original's important units, rarest first",
    "drift": "how much the two models' answers to the survey differ, most first",
}
"""The measures, each in a few words: `priorities` computes all but drift, which `drift_priorities` does."""


def needs_classes(criteria: Sequence[str], model: str, returns: str) -> str:
    """Return why criteria can't be measured of a model whose answers aren't classes."""
    return (
        f"{', '.join(criteria)}: inputs of the same predicted class are compared, and {model} "
        f"{returns}"
    )
