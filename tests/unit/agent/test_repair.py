"""What a repair makes of a model's answers, and which repairs are refused."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.answers.outputs import load_repair, save_repair
from edgeflare.errors import UsageError
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.repair import Repair

ABSTAINS = Repair(3, "probabilities", below=0.3)
SURE, UNSURE = np.array([0.1, 0.7, 0.2]), np.array([0.4, 0.45, 0.15])


def perceptron(**changes: Any) -> Repair:
    """A repair of four classes, of which its classifier knows three."""
    rng = np.random.default_rng(0)
    layers = (
        (rng.normal(size=(4, 5)), rng.normal(size=5)),
        (rng.normal(size=(5, 3)), rng.normal(size=3)),
    )
    made = Repair(
        4, "probabilities", None, None, rng.normal(size=4), rng.uniform(1, 2, 4),
        np.array([0, 1, 3]), layers,
    )  # fmt: skip
    return made._replace(**changes)


def test_an_answer_below_the_margin_has_no_top_class() -> None:
    np.testing.assert_array_equal(ABSTAINS.apply(SURE, None), SURE)
    np.testing.assert_array_equal(ABSTAINS.apply(UNSURE, None), np.full(3, 1 / 3))
    assert np.isnan(ABSTAINS.apply(np.array([np.nan, 0.5, 0.5]), None)).all()


def test_logits_and_integers_become_probabilities_first() -> None:
    logits = np.array([[1.0, 3.0, 2.0]], np.float32)
    shares = np.exp(logits[0].astype(float)) / np.exp(logits[0].astype(float)).sum()
    repair = ABSTAINS._replace(kind="logits")
    np.testing.assert_allclose(repair.apply(logits, None), shares, rtol=1e-12)
    stored = np.array([[10, 200, 46]], np.uint8)
    np.testing.assert_allclose(ABSTAINS.apply(stored, (1 / 256, 0)), stored[0] / 256, rtol=1e-12)


def test_a_perceptron_is_computed_as_written_down() -> None:
    repair = perceptron()
    scores = np.array([0.0, 0.5, 0.3, 0.2])
    (first, bias), (second, last) = repair.layers
    hidden = np.maximum((scores - repair.mean) / repair.std @ first + bias, 0)
    powers = np.exp(hidden @ second + last)
    expected = np.zeros(4)
    expected[[0, 1, 3]] = powers / powers.sum()
    np.testing.assert_allclose(repair.apply(scores, None), expected, rtol=1e-9, atol=1e-300)
    lead = expected.max() - expected[1]
    for kept in (repair._replace(below=0.1), repair._replace(sure=lead + 1e-6)):
        np.testing.assert_array_equal(kept.apply(scores, None), scores)
    np.testing.assert_allclose(
        repair._replace(sure=lead - 1e-6).apply(scores, None), expected, rtol=1e-9, atol=1e-300
    )


def test_a_lead_of_one_is_not_above_one() -> None:
    certain = perceptron(layers=((np.zeros((4, 3)), np.array([0.0, 0.0, 800.0])),))
    assert certain.apply(np.array([0.9, 0.1, 0.0, 0.0]), None)[3] == 1.0
    kept = certain._replace(sure=1.0).apply(np.array([0.9, 0.1, 0.0, 0.0]), None)
    np.testing.assert_array_equal(kept, [0.9, 0.1, 0.0, 0.0])


def test_a_repair_is_the_same_from_its_file(tmp_path: Path) -> None:
    for repair in (ABSTAINS, perceptron()):
        save_repair(repair, tmp_path / "one.npz")
        save_repair(repair, tmp_path / "two.npz")
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
        again = load_repair(tmp_path / "one.npz")
        assert again.about == repair.about
        for one, other in zip(again.arrays, repair.arrays, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kind": "label"}, "probabilities, logits"),
        ({"below": 1.5}, "margin lies"),
        ({"below": np.nan}, "margin lies"),
        ({"sure": -0.1}, "margin lies"),
        ({"mean": np.zeros(3)}, "each class"),
        ({"std": np.zeros(4)}, "std 1e-9"),
        ({"mean": np.full(4, np.inf)}, "float64"),
        ({"mean": np.zeros(4, np.float32)}, "float64"),
        ({"layers": perceptron().layers[:1]}, "each output"),
        ({"layers": perceptron().layers[1:]}, "layers don't"),
        ({"classes": np.array([0, 1, 4])}, "each output"),
        ({"classes": np.array([0, 1, 1])}, "each output"),
        ({"classes": np.array([0.0, 1, 3])}, "each output"),
        ({"size": 1}, "two classes"),
        ({"layers": (), "below": None}, "neither layers"),
    ],
)
def test_a_repair_that_makes_no_sense_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(RequestError, match=why):
        perceptron(**changes).check()


def test_parts_that_are_no_repair_are_refused() -> None:
    about, arrays = perceptron().about, perceptron().arrays
    for wrong in (
        None,
        [],
        {},
        {**about, "size": "many"},
        {**about, "size": float("inf")},
        {**about, "below": []},
    ):
        with pytest.raises(RequestError, match="repair"):
            Repair.from_parts(wrong, arrays)
    for some in (arrays[:1], arrays[:-1]):
        with pytest.raises(RequestError, match="repair"):
            Repair.from_parts(about, some)


def test_a_repair_fits_outputs_with_its_number_of_classes() -> None:
    ABSTAINS.check_fits(TensorInfo("y", (None, 3), "int8"))
    with pytest.raises(RequestError, match="output 'y'"):
        ABSTAINS.check_fits(TensorInfo("y", (1, 4), "int8"))


def test_a_file_that_is_no_repair_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="repair"):
        load_repair(tmp_path / "none.npz")
    with pytest.raises(UsageError, match="regular file"):
        load_repair(tmp_path)
    (tmp_path / "text.npz").write_text("nothing")
    np.savez(tmp_path / "other.npz", images=np.zeros(3))
    np.save(tmp_path / "plain.npy", np.zeros(3))
    save_repair(perceptron(), tmp_path / "cut.npz")
    content = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "changed.npz").write_bytes(content.replace(b"mean", b"maen")[:200] + content[230:])
    for name in ("text.npz", "other.npz", "plain.npy", "cut.npz", "changed.npz"):
        with pytest.raises(UsageError, match="repair"):
            load_repair(tmp_path / name)


def test_a_hostile_file_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    save_repair(perceptron(), tmp_path / "good.npz")
    np.savez_compressed(tmp_path / "bomb.npz", about=np.zeros(17 << 20, np.uint8))
    assert (tmp_path / "bomb.npz").stat().st_size < 1 << 17
    with pytest.raises(UsageError, match="16 MiB"):
        load_repair(tmp_path / "bomb.npz")
    (tmp_path / "long.npz").write_bytes(bytes(17 << 20) + (tmp_path / "good.npz").read_bytes())
    with pytest.raises(UsageError, match="repair"):
        load_repair(tmp_path / "long.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    for special in (tmp_path / "pipe.npz", Path("/dev/zero")):
        with pytest.raises(UsageError, match="regular file"):
            load_repair(special)


def test_numbers_that_make_every_answer_infinite_are_refused() -> None:
    repair = perceptron()
    weights, bias = repair.layers[0]
    with pytest.raises(RequestError, match="1e9 at"):
        repair._replace(layers=((weights * 1e12, bias), *repair.layers[1:])).check()
