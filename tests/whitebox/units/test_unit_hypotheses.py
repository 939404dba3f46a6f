"""Hypotheses on inputs: the built-in ones, the user's, and functions that misbehave."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_distributions import write_distribution

from edgeflare.errors import UsageError
from edgeflare_whitebox import SAMPLE_HYPOTHESES, Hypothesis, InputRecord, built_in_hypothesis
from edgeflare_whitebox.units.hypotheses import is_of_audio

IMAGE = np.random.default_rng(0).integers(0, 256, (8, 8, 1), np.uint8)
RECORD = InputRecord(IMAGE, "ab" * 32, 3, 5, {"pi": False, "jetson": True}, ("dim",))


def value(name: str, record: InputRecord = RECORD, **known: Any) -> float:
    known = {"devices": ("pi", "jetson", "nano"), "families": ("dim", "fog"), **known}
    return built_in_hypothesis(name, **known).value(record)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deviates", 1), ("deviates:pi", 0), ("deviates:jetson", 1), ("deviates:nano", math.nan),
        ("class:3", 1), ("class:5", 0), ("family:dim", 1), ("family:fog", 0),
    ],
)  # fmt: skip
def test_what_is_known_of_an_input(name: str, expected: float) -> None:
    assert value(name) == pytest.approx(expected, nan_ok=True)


def test_what_is_not_known_is_no_value() -> None:
    unknown = InputRecord(IMAGE)
    assert all(math.isnan(value(name, unknown)) for name in ("deviates", "class:3", "family:dim"))
    assert value("class:5", RECORD._replace(label=None)) == 1, "the original's decision"


def test_samples_are_looked_at() -> None:
    x = IMAGE[..., 0].astype(float)
    steps = [*np.abs(np.diff(x, axis=0)).ravel(), *np.abs(np.diff(x, axis=1)).ravel()]
    blocks = x.reshape(4, 2, 4, 2).mean(axis=(1, 3))
    expected = {
        "brightness": x.mean(),
        "contrast": x.std(),
        "edges": np.mean(steps),
        "blur": 100 * blocks.var() / x.var(),
    }
    for name, one in expected.items():
        assert value(name) == pytest.approx(one), name
    flat = InputRecord(np.full((8, 8, 3), 9, np.uint8))
    assert [value(name, flat) for name in expected] == [9, 0, 0, 100]


def test_audio_is_looked_at() -> None:
    sound = np.zeros(16_000, np.float32)
    sound[:8000] = np.where(np.arange(8000) % 2, 0.5, -0.5)
    found = {
        name: value(name, InputRecord(sound), rate=16_000)
        for name in SAMPLE_HYPOTHESES
        if is_of_audio(name)
    }
    expected = {"level": 50 / math.sqrt(2), "peak": 50, "silence": 50}
    assert found == {name: pytest.approx(one, abs=0.01) for name, one in expected.items()}


@pytest.mark.parametrize(
    ("name", "rate", "words"),
    [
        ("sharpness", None, "hypothesis 'sharpness'"),
        ("deviates:tpu", None, "hypothesis 'deviates:tpu'"),
        ("family:snow", None, "hypothesis 'family:snow'"),
        ("class:x", None, "hypothesis 'class:x'"),
        ("peak", None, "images: leave"),
        ("blur", 16_000, "audio: leave"),
    ],
)
def test_other_names_are_refused(name: str, rate: int | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        value(name, rate=rate)


def fails(_: InputRecord) -> float:
    raise KeyError("colour")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fails, "KeyError: 'colour'"),
        (lambda _: math.nan, "returns nan"),
        (lambda _: -math.inf, "returns -inf"),
        (lambda _: "bright", "abababababab: return"),
        (lambda _: 1j, "returns"),
        (lambda one: one.sample, "returns"),
    ],
)
def test_functions_that_misbehave_are_named(function: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Hypothesis("mine", function).value(RECORD)


@pytest.mark.parametrize(
    "given", [True, 1, 1.0, np.bool_(True), np.float32(1), np.uint8(1), np.array(1)]
)
def test_any_number_will_do(given: Any) -> None:
    assert Hypothesis("mine", lambda _: given).value(RECORD) == 1
    assert math.isnan(Hypothesis("mine", lambda _: None).value(RECORD))


def test_a_users_own_is_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def corner(one):\n    return one.sample[0, 0, 0]\nnumber = 7\n"
    entries = {"edgeflare.hypotheses/corner": "corner", "edgeflare.hypotheses/seven": "number"}
    write_distribution(tmp_path, "my_hypotheses", source, entries, "my-hypotheses")
    monkeypatch.syspath_prepend(tmp_path)
    assert value("corner") == IMAGE[0, 0, 0]
    with pytest.raises(UsageError, match=r"my-hypotheses 1.2"):
        value("seven")
