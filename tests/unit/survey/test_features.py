"""Features are what their names say, and whole or exact numbers."""

import numpy as np
import pytest

from edgeflare.survey.features import FeatureSet
from edgeflare.types import Sample


def values(sample: Sample, rate: int | None = None) -> dict[str, float]:
    found = FeatureSet(sample.shape, rate)
    return dict(zip((one.name for one in found.features), found.of(sample), strict=True))


def grey(levels: np.ndarray) -> Sample:
    return levels.astype(np.uint8)[..., np.newaxis]


def test_the_whole_image() -> None:
    image = np.zeros((28, 28))
    image[:14] = 255
    found = values(grey(image))
    assert found["mean brightness"] == 127.5
    assert found["brightest pixel"] == 255
    assert found["darkest pixel"] == 0
    assert found["contrast (standard deviation)"] == 127.5
    assert found["share of pixels at 250 or more"] == 50
    assert found["edges (mean step between neighbours)"] == 255 * 28 / (2 * 27 * 28)


def test_a_corner_is_its_own_alone() -> None:
    image = np.full((28, 28), 40)
    image[:3, -3:] = 200
    found = values(grey(image))
    assert found["darkest pixel of the top right corner (3 x 3)"] == 200
    others = [name for name in found if name.startswith("brightest") and "corner" in name]
    assert [found[name] for name in others].count(40) == 3


def test_borders_reach_to_the_edge() -> None:
    image = np.zeros((32, 32))
    image[:, -1] = 100
    found = values(grey(image))
    assert found["mean of the right column"] == 100
    assert found["mean of the 2 right columns"] == 50
    assert found["mean of the left column"] == 0
    assert found["mean of the top row"] == 100 / 32


def test_fine_detail_is_what_changes_from_pixel_to_pixel() -> None:
    rows, columns = np.indices((28, 28))
    assert values(grey((rows + columns) % 2 * 255))["fine detail (share of the variance)"] == 100
    assert values(grey((rows // 14) * 255))["fine detail (share of the variance)"] == 0
    assert values(grey(np.full((28, 28), 7)))["fine detail (share of the variance)"] == 0


def test_channels() -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    image[..., 2] = 90
    found = values(image)
    assert (found["mean of red"], found["mean of blue"], found["largest blue"]) == (0, 90, 90)
    assert found["colourfulness (spread of the channels)"] == 90


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 9, 3), (2, 2, 1), (224, 160, 3)])
def test_any_image_has_finite_features(shape: tuple[int, ...]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert np.isfinite(FeatureSet(shape).of(noise)).all()


def test_audio_level_silence_and_frequency() -> None:
    rate = 16_000
    tone = (0.5 * np.sin(2 * np.pi * 6000 * np.arange(rate) / rate)).astype(np.float32)
    tone[: rate // 2] = 0
    found = values(tone, rate)
    assert found["peak"] == pytest.approx(50, abs=0.1)
    assert found["share of silence"] == 50
    assert found["length"] == 1
    assert found["share of energy above about 2000 Hz"] > 90
    assert found["level of part 1 of 8 in time"] == 0
    low = (0.5 * np.sin(2 * np.pi * 100 * np.arange(rate) / rate)).astype(np.float32)
    assert values(low, rate)["share of energy above about 2000 Hz"] < 5


def test_the_originals_answer_is_a_feature_of_few_classes() -> None:
    image = np.zeros((8, 8, 1), np.uint8)
    few, many = FeatureSet(image.shape, classes=3), FeatureSet(image.shape, classes=1000)
    assert few.of(image, 1)[-3:].tolist() == [0, 1, 0]
    assert few.of(image, None)[-3:].tolist() == [0, 0, 0]
    assert "answer is 1" in few.features[-2].words(0.5, below=False)
    assert len(many.features) == len(few.features) - 3 == many.of(image, 7).size
