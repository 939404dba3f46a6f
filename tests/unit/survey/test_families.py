"""The inputs of a survey: made again from their parameters, farther with the severity."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from plugin_distributions import install_corruption

from edgeflare.errors import UsageError
from edgeflare.survey import PARTNERS, SEVERITIES, Family, families_for
from edgeflare.types import Sample

RATE = 8000
IMAGES = list(families_for("image").values())
AUDIO = list(families_for("audio", rate=RATE).values())
MOVING = {"shift", "speed"}
"""Of audio: where what sounds has moved by half a period, moving it farther changes no more."""
OF_COLOUR = {"saturation", "swap"}
EACH = pytest.mark.parametrize(
    "family", IMAGES + AUDIO, ids=[f.name for f in IMAGES] + [f"{f.name} of audio" for f in AUDIO]
)

DIGESTS = """
import hashlib, sys
import numpy as np
from edgeflare.survey import families_for
image = np.random.default_rng(0).integers(0, 256, (33, 28, 3), dtype=np.uint8)
sound = (np.arange(4000) * 7919 % 4096 / 2048 - 1).astype(np.float32)
for kind, seed in (("image", image), ("audio", sound)):
    for family in families_for(kind, rate=8000).values():
        rng = np.random.Generator(np.random.PCG64(1))
        for severity in (1, 3, 5):
            params = family.draw(rng, seed, severity)
            made = family.apply(seed, params, [seed, seed[::-1].copy()])
            print(hashlib.sha256((repr(params)).encode() + made.tobytes()).hexdigest())
"""


def scene(height: int = 28, width: int = 28, channels: int = 3) -> Sample:
    """Return a smooth image with an edge; levels 40 to 170."""
    down, right = np.mgrid[:height, :width] / max(height, width)
    waves = 90 + 40 * np.sin(5 * right + 2 * down) + 40 * (down > right)
    return np.stack([waves * (1 - channel / 5) for channel in range(channels)], -1).astype(np.uint8)


def sound(samples: int = 4000) -> Sample:
    """Return harmonics of 120 Hz that swell and fade, within -0.6 to 0.6."""
    time = np.arange(samples) / RATE
    waves = sum(np.sin(2 * np.pi * 120 * k * time + k) / k for k in range(1, 6))
    return (0.25 * waves * (1 + np.sin(8 * time))).astype(np.float32)


def samples_of(family: Family) -> tuple[Sample, list[Sample]]:
    """Return a seed and partners of the family's kind."""
    if family in AUDIO:
        return sound(), [sound()[::-1].copy(), sound(2500), sound(6000)]
    return scene(), [scene()[::-1].copy(), scene(40, 30, 1), scene(20, 50, 3)]


@EACH
def test_an_input_is_made_again_from_its_seed_and_stored_parameters(family: Family) -> None:
    seed, partners = samples_of(family)
    before = seed.copy()
    seed.flags.writeable = False
    for number, severity in enumerate((*SEVERITIES, *SEVERITIES)):
        params = family.draw(np.random.default_rng(number), seed, severity)
        assert params == family.draw(np.random.default_rng(number), seed, severity)
        stored = json.loads(json.dumps(params, allow_nan=False))
        made = family.apply(seed, params, partners)
        assert (made.dtype, made.shape) == (seed.dtype, seed.shape)
        assert np.isfinite(made).all()
        assert np.abs(made.astype(float)).max() <= (255 if made.ndim == 3 else 1)
        assert family.apply(seed, stored, partners).tobytes() == made.tobytes()
        assert family.words(stored) == family.words(params)
        assert 0 < len(family.words(params)) < 90
        assert "\n" not in family.words(params)
    assert np.array_equal(seed, before)


@EACH
def test_inputs_lie_farther_from_the_seed_at_a_higher_severity(family: Family) -> None:
    seed, partners = samples_of(family)
    rng = np.random.default_rng(2)

    def distance(severity: int) -> float:
        made = (
            family.apply(seed, family.draw(rng, seed, severity), partners).astype(float)
            for _ in range(30)
        )
        return float(np.mean([np.linalg.norm(one - seed) for one in made]))

    mild, middle, far = distance(1), distance(3), distance(5)
    assert mild > 0
    assert mild < middle < far or (family in AUDIO and family.name in MOVING)
    assert far > 0.03 * np.linalg.norm(seed.astype(float))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 3), (2, 9, 1), (64, 3, 3)])
def test_images_of_any_size_are_taken(shape: tuple[int, int, int]) -> None:
    image = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    for family in families_for("image", channels=shape[2]).values():
        for severity in SEVERITIES:
            params = family.draw(np.random.default_rng(severity), image, severity)
            assert family.apply(image, params, [scene(), image]).shape == shape


@pytest.mark.parametrize("size", [1, 2, 17])
def test_the_shortest_recordings_are_taken(size: int) -> None:
    for clip in (np.zeros(size, np.float32), np.ones(size, np.float32)):
        for family in AUDIO:
            params = family.draw(np.random.default_rng(3), clip, 5)
            made = family.apply(clip, params, [sound()])
            assert made.shape == (size,)
            assert np.isfinite(made).all()


def test_the_same_bits_without_the_cpus_extensions() -> None:
    plain = {
        **os.environ,
        "OPENCV_CPU_DISABLE": "AVX512_SKX,AVX2,AVX,FP16,SSE4_2,SSE4_1,NEON_DOTPROD,NEON_FP16",
        "OPENCV_IPP": "disabled",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4,X86_V3,AVX512F,AVX2,FMA3",
        "OPENBLAS_CORETYPE": "Nehalem",
        "JSIMD_FORCENONE": "1",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS], env=env, capture_output=True, check=True
        ).stdout.split()
        for env in (dict(os.environ), plain)
    ]
    assert len(set(outputs[0])) == 3 * len(IMAGES + AUDIO)
    assert outputs[0] == outputs[1]
    digest = hashlib.sha256(b"".join(outputs[0])).hexdigest()
    assert digest == PINNED, (
        "families draw other parameters or make other inputs than before: stored surveys can't be "
        "remade; say so in CHANGELOG.md and pin this anew"
    )


PINNED = "9b62fdee2ab4ffdd5deea64d3a91403cf9747b1473018abe440b243f78878448"


def test_grey_images_have_no_families_of_colour() -> None:
    every, grey = families_for("image"), families_for("image", channels=1)
    assert every.keys() - grey.keys() == OF_COLOUR
    image = scene(28, 28, 1)
    for name in OF_COLOUR - {"swap"}:
        params = every[name].draw(np.random.default_rng(1), image, 5)
        assert np.array_equal(every[name].apply(image, params), image)
    with pytest.raises(UsageError, match="'swap' changes"):
        families_for("image", ["gain", "swap"], channels=1)


def test_families_are_chosen_by_name_in_the_order_stated() -> None:
    assert list(families_for("image", ["noise", "gain", "noise"])) == ["noise", "gain"]
    with pytest.raises(UsageError, match="family 'nois'"):
        families_for("image", ["nois"])
    with pytest.raises(UsageError, match="family 'low_pass'"):
        families_for("audio", ["low_pass"])
    with pytest.raises(UsageError, match="family 'xyz'"):
        families_for("audio", ["xyz"])


def test_a_users_corruption_is_a_family_of_its_name(tmp_path, monkeypatch) -> None:
    install_corruption(tmp_path, "darken-by-user")
    monkeypatch.syspath_prepend(tmp_path)
    families = families_for("image")
    assert list(families)[-1] == "darken-by-user"
    family = families["darken-by-user"]
    assert (family.group, family.about) == ("plugin", "Subtract up to 200 levels.")
    for severity in SEVERITIES:
        params = family.draw(np.random.default_rng(severity), scene(), severity)
        assert 40 * (severity - 0.8) <= params["levels"] <= 40 * severity
    assert families_for("audio").keys() == {one.name for one in AUDIO}


def test_a_users_corruption_with_a_familys_name_is_refused(tmp_path, monkeypatch) -> None:
    install_corruption(tmp_path, "patch")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match="built-in family"):
        families_for("image")


def test_a_seed_is_mixed_with_the_partner_named_and_never_with_itself() -> None:
    mix, overlap = families_for("image")["mix"], families_for("audio")["overlap"]
    black, white = np.zeros((4, 4, 1), np.uint8), np.full((8, 8, 3), 255, np.uint8)
    half = {"share": 0.5, "partner": 1}
    assert mix.apply(black, half, [black, white]).ravel().tolist() == [128] * 16
    assert mix.apply(black, half, [white, black]).ravel().tolist() == [128] * 16
    assert mix.apply(black, {"share": 0.5, "partner": 7}, [black, white]).max() == 128
    assert mix.apply(black, half, [black]).max() == 0
    silence, loud = np.zeros(4, np.float32), np.full(2, 0.5, np.float32)
    assert overlap.apply(silence, half, [silence, loud]).tolist() == [0.25, 0.25, 0, 0]
    drawn = {mix.draw(np.random.default_rng(n), black, 3)["partner"] for n in range(400)}
    assert drawn == set(range(PARTNERS))


def test_each_family_says_in_one_sentence_what_it_does() -> None:
    for family in IMAGES + AUDIO:
        assert family.about.endswith(".")
        assert 20 < len(family.about) < 130


def test_filters_of_audio_keep_what_they_name() -> None:
    families = families_for("audio", rate=16_000)
    time = np.arange(16_000) / 16_000
    low, high = (0.4 * np.sin(2 * np.pi * hertz * time) for hertz in (100, 6000))
    both = (low + high).astype(np.float32)

    def parts(name: str) -> tuple[float, float]:
        family = families[name]
        made = family.apply(both, family.draw(np.random.default_rng(1), both, 4)).astype(float)
        return tuple(float(made @ tone / (tone @ tone)) for tone in (low, high))  # type: ignore[return-value]

    kept, lost = parts("low-pass")
    assert kept > 0.8 > 0.1 > abs(lost)
    lost, kept = parts("high-pass")
    assert kept > 0.8 > 0.1 > abs(lost)
