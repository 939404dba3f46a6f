"""Properties of any model's answer: scores, a transcript, detections or values."""

import math
from typing import Any, TypeGuard

import numpy as np

from edgeflare import detections, values
from edgeflare._internal import exact
from edgeflare.errors import UsageError
from edgeflare.transcripts import spoken, word_distance
from edgeflare.types import Detections, Output, Sample, Scores, Transcript, Values


def is_scores(output: Output | None) -> TypeGuard[Scores]:
    """Whether an answer has a score for each class, and so a top-1 class."""
    return isinstance(output, np.ndarray)


def is_finite(output: Output) -> bool:
    """Whether no number of an answer is NaN or infinite."""
    scores = numbers(output).reshape(-1)
    if not scores.size:
        return True
    highest, lowest = scores[scores.argmax()], scores[scores.argmin()]  # NaN is both
    return math.isfinite(highest) and math.isfinite(lowest)


def numbers(output: Output) -> Scores:
    """Return all numbers of an answer, float64.

    The scores of classes, [classes]; [tokens, 2] of a transcript; of detections their scores and
    boxes, [n, 5]; of values their array.
    """
    if isinstance(output, Transcript):
        return output.scores
    if isinstance(output, Detections):
        return np.concatenate([output.scores[:, None], output.boxes], axis=1)
    return output.array if isinstance(output, Values) else output


def top_label(output: Output | None) -> int | None:
    """Return the top-1 class; None for no answer, NaN, and an answer of no class scores."""
    if not is_scores(output) or np.isnan(output).any():
        return None
    return int(output.argmax())


def text_of(output: Output | None) -> str | None:
    """Return the text of a transcript, or the classes that are detected with their numbers.

    None for scores, values and no answer.
    """
    if isinstance(output, Detections):
        return detections.summary(output)
    return output.text if isinstance(output, Transcript) else None


def is_same(one: Output, other: Output) -> bool:
    """Whether two answers are the same to the last bit; NaN is the same as NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Transcript) and isinstance(other, Transcript) and one.pieces != other.pieces:
        return False
    if (
        isinstance(one, Detections)
        and isinstance(other, Detections)
        and not np.array_equal(one.labels, other.labels)
    ):
        return False
    return bool(np.array_equal(numbers(one), numbers(other), equal_nan=True))


_ROUNDING = 0.05
"""The largest share by which a number of two answers to one input may differ by rounding alone."""
_NEGLIGIBLE = 1e-5
"""A number so small, as a share of the answer's largest one (of scores, of 1), is not compared."""
_PIXELS = 0.01
"""The largest share of pixels whose label may differ by rounding alone; as the default tolerance."""


def is_same_answer(one: Output, other: Output, *, is_clear: bool = True) -> bool:
    """Whether one model's two answers to one input are the same: the decision, and the numbers.

    A device's answers are equal to the last bit as a rule. Where sums are added in another order
    (several threads, a GPU), the last bits differ: each number may do so by 5 % of its size, which
    is what five roundings in the last place of a 16-bit logit from 8 to 16 come to. A drawn dropout
    changes small probabilities by more, also where the largest one is near 1. Two answers that are
    not finite are the same. `is_clear` False: so near a boundary that the decision may differ, too,
    where the numbers are the same, or there is a box more or less.
    """
    if is_same(one, other):
        return True
    if not (is_finite(one) and is_finite(other)):
        return is_finite(one) == is_finite(other)
    ours, theirs = numbers(one), numbers(other)
    if ours.shape != theirs.shape:  # a candidate box that rounding lets through is no other answer
        if not is_clear:
            return True
        return decides_equally(one, other) and disagreement(one, other) <= _ROUNDING
    size = np.maximum(np.abs(ours), np.abs(theirs))
    largest = float(size.max(initial=0.0))
    if isinstance(one, Values):
        if one.rules.measure == "labels":
            return disagreement(one, other) <= _PIXELS
        least = _ROUNDING * largest  # an element near 0 may be a sum of large ones
    elif not is_clear or decides_equally(one, other):
        least = _NEGLIGIBLE * max(1.0, largest)
    else:
        return False
    return bool((np.abs(ours - theirs) <= np.maximum(_ROUNDING * size, least)).all())


def decides_equally(one: Output, other: Output) -> bool:
    """Whether two answers have the same top-1 class, words or objects; of values, are the same."""
    if isinstance(one, Transcript) and isinstance(other, Transcript):
        return spoken(one.text) == spoken(other.text)
    if isinstance(one, Detections) and isinstance(other, Detections):
        return not detections.differences(one, other)
    if isinstance(one, Values):
        return is_same(one, other)
    return top_label(one) == top_label(other)


def class_scores(output: Output) -> Scores:
    """Return class probabilities, float64 [classes]. Raises TypeError for any other answer."""
    if not is_scores(output):
        raise TypeError(f"{type(output).__name__} has no class scores")
    return output


_WINDOW = 7
_SMALLEST = 3
_LOG10_E = 0.4342944819032518
_LEVELS = 32767
"""The largest 16-bit sample."""


def l2(seed: Sample, sample: Sample) -> float:
    """Return the Euclidean length of the difference of two samples.

    Of images (uint8, of one shape) with pixels from 0 to 1. Of audio (float32 [samples]) in its own
    units, -1 to 1; the shorter one is padded with silence.
    """
    if _is_audio(seed):
        return exact.norm(_audio_difference(seed, sample))
    return float(np.sqrt(np.square(_difference(seed, sample)).sum()) / 255.0)


def linf(seed: Sample, sample: Sample) -> int:
    """Return the largest difference of one value of two samples, in levels.

    Of images (uint8, of one shape): 0 to 255. Of audio (float32 [samples] in [-1, 1]): in levels of
    16 bits, rounded, 0 to 65534; the shorter one is padded with silence.
    """
    if _is_audio(seed):
        largest = np.abs(_audio_difference(seed, sample)).max(initial=0.0)
        return round(float(largest) * _LEVELS)
    return int(np.abs(_difference(seed, sample)).max(initial=0))


def snr_db(seed: Sample, sample: Sample) -> float | None:
    """Return the signal-to-noise ratio of changed audio in dB: the seed's power over the change's.

    None for images, audio of another length, a silent seed, and where nothing is different.
    """
    if not _is_audio(seed) or seed.shape != sample.shape:
        return None
    signal = float(np.square(seed.astype(np.float64)).sum())
    noise = float(np.square(_audio_difference(seed, sample)).sum())
    if signal <= 0 or noise <= 0:
        return None
    return 10 * _LOG10_E * float(exact.log(signal) - exact.log(noise))


def disagreement(original: Output, deployed: Output) -> float:
    """Return the distance of two answers of one kind, 0 to 1; of values it may be larger.

    NaN where a score is NaN, or where a value is not finite.

    Scores, float [classes]: their total variation distance. Transcripts: the number of differing
    words over that of the longer one. Detections: the largest difference of the scores of an
    object, as `edgeflare.detections.score_distance` has it. Values: `edgeflare.values.distance`.
    Raises TypeError for two kinds, UsageError where RapidFuzz is missing.
    """
    if isinstance(original, Transcript) and isinstance(deployed, Transcript):
        return word_distance(original, deployed)
    if isinstance(original, Detections) and isinstance(deployed, Detections):
        return detections.score_distance(original, deployed)
    if isinstance(original, Values) and isinstance(deployed, Values):
        return values.distance(original, deployed)
    return total_variation(class_scores(original), class_scores(deployed))


def total_variation(original: Scores, deployed: Scores) -> float:
    """Return the total variation distance of two answers, float [classes], from 0 to 1.

    Rounding of a sum does not lead beyond 1; NaN of an answer that has it.
    """
    return min(float(np.abs(original - deployed).sum() / 2), 1.0)


def ssim(seed: Sample, sample: Sample) -> float | None:
    """Return SSIM of two uint8 images [height, width, channels] of one shape; 1 of equal ones.

    Wang et al. (2004) as scikit-image has it: uniform windows of 7 x 7 or, in a smaller image, the
    largest odd one that fits; the mean over windows and channels; a range of 255 levels. None for
    audio, and for less than 3 pixels in a direction. Raises UsageError where scikit-image is
    missing.
    """
    if _is_audio(seed):
        return None
    side = min(seed.shape[:2])
    if side < _SMALLEST:
        return None
    try:
        from skimage import metrics
    except ImportError as error:
        raise UsageError(
            "SSIM needs scikit-image; install it with `pip install 'edgeflare[bench]'`"
        ) from error
    window = min(_WINDOW, side - (side + 1) % 2)
    similarity: Any = metrics.structural_similarity
    value = similarity(seed, sample, win_size=window, data_range=255, channel_axis=-1)
    return float(np.clip(value, -1.0, 1.0))


def _difference(seed: Sample, sample: Sample) -> Any:
    return sample.astype(np.int64) - seed.astype(np.int64)


def _is_audio(sample: Sample) -> bool:
    return sample.ndim == 1


def _audio_difference(seed: Sample, sample: Sample) -> Any:
    longest = max(seed.size, sample.size)
    difference = np.zeros(longest)
    difference[: sample.size] = sample
    difference[: seed.size] -= seed
    return difference
