import subprocess
import sys

import pytest

from edgeflare_mutators import (
    UnknownOperatorError,
    common_corruptions,
    corruptions,
    default_pool,
    get,
    operators,
)

TABLE_3 = [
    "random-pixel-change", "gaussian-noise", "multiplicative-noise", "average-blur",
    "gaussian-blur", "median-blur",
]  # fmt: skip

CORRUPTIONS = [
    "brightness", "contrast", "haze", "natural-blur", "sensor-noise", "jpeg", "rotation", "shift",
    "crop",
]  # fmt: skip

FURTHER = [
    "saturation", "scale", "shot-noise", "impulse-noise", "defocus-blur", "glass-blur",
    "motion-blur", "zoom-blur", "elastic", "pixelate", "snow", "spatter",
]  # fmt: skip

LAZY = """
import sys
import numpy as np
from edgeflare_mutators import default_pool, SampleSpec
assert "cv2" not in sys.modules, "imported with the package"
image = np.zeros((4, 4, 1), np.uint8)
rng = np.random.default_rng(0)
for name, operator in default_pool().items():
    operator.apply(image, operator.draw(rng, SampleSpec.of(image)))
    print(name, "cv2" in sys.modules)
"""


def test_the_default_pool_is_table_3_in_its_order() -> None:
    assert list(default_pool()) == TABLE_3
    assert [operator.name for operator in default_pool().values()] == TABLE_3
    assert list(operators())[:6] == TABLE_3


def test_the_natural_corruptions_are_operators_but_not_in_the_default_pool() -> None:
    assert list(corruptions()) == CORRUPTIONS
    assert [corruption.name for corruption in corruptions().values()] == CORRUPTIONS
    assert list(common_corruptions()) == CORRUPTIONS + FURTHER
    assert list(operators())[-len(CORRUPTIONS + FURTHER) :] == CORRUPTIONS + FURTHER
    assert not default_pool().keys() & common_corruptions().keys()


def test_a_natural_crossing_of_images_does_not_draw_from_the_surveys_further_corruptions() -> None:
    assert not corruptions().keys() & set(FURTHER)
    assert common_corruptions("audio") == corruptions("audio")


def test_operators_are_to_be_had_by_name() -> None:
    for name, operator in (default_pool() | common_corruptions()).items():
        assert get(name) is operator
    with pytest.raises(UnknownOperatorError, match="operator 'x'"):
        get("x")


def test_a_pool_is_the_callers_own() -> None:
    default_pool().clear()
    operators().clear()
    corruptions().clear()
    assert list(default_pool()) == TABLE_3
    assert list(corruptions()) == CORRUPTIONS


def test_opencv_is_imported_by_the_first_blur_only() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["False"] * 3 + ["True"] * 3
