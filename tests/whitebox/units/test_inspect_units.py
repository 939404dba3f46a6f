"""One pass for all hypotheses: what is read and how often, when it ends, and what it finds."""

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import DEMO
from onnx import helper
from onnx_nets import saved

from edgeflare.errors import ModelError, UsageError
from edgeflare.models import InputOptions, TensorInfo, resolve_input
from edgeflare.models.tensors import open_graph
from edgeflare_whitebox import (
    MEASURES,
    Hypothesis,
    InputRecord,
    InspectedOriginal,
    UnitScores,
    activations_of,
    default_layers,
    inspect_units,
)
from edgeflare_whitebox.units import inspection

ORIGINAL = DEMO / "original.onnx"
_TENSOR = TensorInfo(name="image", shape=(1, 1, 28, 28), dtype="float32")
_OPTIONS = InputOptions.model_validate({"scale": "1/255"})
MODEL = InspectedOriginal(
    ORIGINAL,
    open_graph(ORIGINAL, "onnx", {"threads": 1}),
    resolve_input(_TENSOR, _OPTIONS, InputOptions(), "the model"),
)
LAYERS = default_layers(MODEL.graph)


def records(count: int) -> list[InputRecord]:
    """Digits, each moved, noisy and dimmed anew."""
    images = np.load(DEMO / "seeds.npz")["images"].astype(float)
    rng = np.random.default_rng(0)
    found = []
    for place in range(count):
        image = np.roll(images[place % len(images)], rng.integers(-2, 3, 2), (0, 1))
        image = rng.uniform(0.4, 1) * image + rng.normal(0, 12, image.shape)
        sample = np.clip(np.rint(image), 0, 255).astype(np.uint8).reshape(28, 28, 1)
        found.append(InputRecord(sample, f"{place:064x}", place % 10))
    return found


RECORDS = records(3000)
BRIGHT = Hypothesis("bright", lambda one: float(one.sample.mean()))
DARK = Hypothesis("dark", lambda one: bool(one.sample.mean() < 20))
CORNER = Hypothesis("corner", lambda one: int(one.digest[-2:], 16) % 2)


@pytest.fixture(scope="module")
def traces() -> dict[str, Any]:
    """The units of each layer on all records: float [records, units]."""
    samples = (one.sample for one in RECORDS)
    found = list(activations_of(MODEL.graph, MODEL.spec, samples))
    return {
        layer: np.array([one.layers[layer].units for one in found], np.float64) for layer in LAYERS
    }


class Counting(Sequence[InputRecord]):
    """Records that count how often each is read."""

    def __init__(self, given: Sequence[InputRecord]) -> None:
        self.given, self.read = given, Counter[int]()

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, place: Any) -> Any:
        self.read[place] += 1
        return self.given[place]


def inspect(
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str] = ("pearson",),
    data: Sequence[InputRecord] = RECORDS,
    units: Any = None,
    **more: Any,
) -> UnitScores:
    return inspect_units(MODEL, units, hypotheses, measures, data, **more)


def test_the_scores_of_a_full_pass_are_numpys(traces: dict[str, Any]) -> None:
    found = inspect([BRIGHT, DARK])
    assert (found.records, found.failed) == (3000, 0)
    units = np.concatenate([traces[layer] for layer in LAYERS], axis=1)
    for place, one in enumerate((BRIGHT, DARK)):
        values = [one.value(record) for record in RECORDS]
        expected = np.corrcoef(units.T, values)[-1, :-1]
        np.testing.assert_allclose(found.scores["pearson"].score[place], expected, atol=1e-6)


def test_a_planted_hypothesis_is_found(traces: dict[str, Any]) -> None:
    """The unit whose sign it is comes first by each measure of units, and its layer by F1."""
    of_unit = {record.digest: one for record, one in zip(RECORDS, traces["b3"][:, 17], strict=True)}
    middle = np.quantile(traces["b3"][:, 17], 0.8)
    planted = Hypothesis("planted", lambda one: bool(of_unit[one.digest] > middle))
    found = inspect([BRIGHT, planted], tuple(MEASURES))
    assert found.ones[1] is not None
    for measure in ("pearson", "mutual-information"):
        first = next(found.rows("planted", measure))
        assert (first.layer, first.unit) == ("b3", 17), measure
        assert first.low > 0
    joint = next(found.rows("planted", "f1"))
    assert (joint.layer, joint.unit) == ("b3", None)
    assert joint.score > 0.8 > found.guesses[1]


def test_one_pass_serves_all_hypotheses_and_measures() -> None:
    asked: Counter[str] = Counter()

    def counted(name: str) -> Hypothesis:
        def function(one: InputRecord) -> float:
            asked[name] += 1
            return float(one.sample[10:12].mean()) + len(name)

        return Hypothesis(name, function)

    data = Counting(RECORDS[:300])
    inspect([counted("a"), counted("bb"), CORNER], tuple(MEASURES), data)
    assert set(data.read.values()) == {1}
    assert len(data.read) == 300
    assert asked == {"a": 300, "bb": 300}


def test_the_order_is_drawn() -> None:
    data, again, other = (Counting(RECORDS[:300]) for _ in range(3))
    found = inspect([BRIGHT], data=data)
    same = inspect([BRIGHT], data=again)
    assert list(again.read) == list(data.read)
    np.testing.assert_array_equal(same.scores["pearson"].score, found.scores["pearson"].score)
    inspect([BRIGHT], data=other, random_seed=1)
    assert list(other.read)[:50] != list(data.read)[:50] != sorted(data.read)[:50]


def test_a_hypothesis_that_never_holds_has_no_score() -> None:
    found = inspect([BRIGHT, Hypothesis("never", lambda _: 0)], data=RECORDS[:400])
    assert (found.records, found.scorable) == (400, (True, False))
    assert list(found.rows("never")) == []
    assert len(list(found.rows("bright"))) == 236


def test_units_are_chosen() -> None:
    found = inspect([BRIGHT], data=RECORDS[:200], units={"b3": [5, 2], "b1": [0]})
    assert {(one.layer, one.unit) for one in found.rows()} == {("b3", 5), ("b3", 2), ("b1", 0)}
    whole = inspect([BRIGHT], data=RECORDS[:200], units=["b3"])
    assert len(list(whole.rows())) == 120
    by_unit = {one.unit: one for one in whole.rows()}
    chosen = {one.unit: one.score for one in found.rows() if one.layer == "b3"}
    assert {unit: by_unit[unit].score for unit in chosen} == pytest.approx(chosen)


def test_dead_units_have_no_score() -> None:
    same = [RECORDS[0]._replace(label=k) for k in range(60)]  # one image, again and again
    label = Hypothesis("label", lambda one: one.label)
    found = inspect([label], ("pearson", "mutual-information"), same)
    assert found.dead.all()
    assert list(found.rows()) == []


def test_what_the_original_decides_is_told() -> None:
    seen: list[int | None] = []

    def function(one: InputRecord) -> float:
        seen.append(one.predicted)
        return len(seen)

    inspect([Hypothesis("count", function)], data=RECORDS[:20])
    samples = (one.sample for one in RECORDS[:20])
    labels = [one.label for one in activations_of(MODEL.graph, MODEL.spec, samples)]
    assert Counter(seen) == Counter(labels)


def test_inputs_without_an_answer_are_left_out() -> None:
    odd = InputRecord(np.zeros((5, 5, 1), np.uint8))
    mixed = list(itertools.chain.from_iterable((one, odd) for one in RECORDS[:100]))
    found = inspect([BRIGHT, CORNER], tuple(MEASURES), mixed)
    assert (found.records, found.failed, found.counts) == (200, 100, (100, 100))
    with pytest.raises(ModelError, match="be prepared"):
        inspect([BRIGHT], data=[odd] * 300)


def test_few_inputs_have_wide_intervals_or_no_score() -> None:
    found = inspect([BRIGHT], data=RECORDS[:12])
    assert min(one.high - one.low for one in found.rows()) > 0.05
    assert list(inspect([BRIGHT], data=RECORDS[:9]).rows()) == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"hypotheses": []}, "one hypothesis or more: none is given"),
    ({"measures": []}, "one measure or more"),
    ({"data": []}, "one input or more"),
    ({"hypotheses": [BRIGHT, BRIGHT]}, "two hypotheses have the name 'bright'"),
    ({"measures": ["spearman"]}, "there is no measure 'spearman' of units; take pearson"),
    ({"units": ["b9"]}, "the model has no tensor 'b9'"),
    ({"units": {"b1": [6]}}, "the layer 'b1' has no unit 6: its 6 units count from 0"),
    ({"hypotheses": [Hypothesis("nan", lambda _: float("nan"))]}, "'nan' returns nan"),
]


@pytest.mark.parametrize(("changed", "words"), WRONG)
def test_what_can_not_be_inspected_is_told(changed: dict[str, Any], words: str) -> None:
    given = {"hypotheses": [BRIGHT], "data": RECORDS[:30], **changed}
    with pytest.raises(UsageError, match=words):
        inspect(**given)


def test_an_input_with_an_activation_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["mean"]),
        helper.make_node("Sub", ["mean", "limit"], ["above"]),
        helper.make_node("Sqrt", ["above"], ["root"]),  # NaN below the limit
        helper.make_node("Flatten", ["root"], ["y"]),
    ]
    kernel = np.full((2, 1, 28, 28), 1 / 784, np.float32)
    constants = {"w": kernel, "limit": np.array([0.1], np.float32)}
    path = saved(tmp_path / "roots.onnx", nodes, constants, [1, 1, 28, 28])
    model = MODEL._replace(path=path, graph=open_graph(path, "onnx", {"threads": 1}))
    some = RECORDS[:400]
    dark = sum(one.sample.mean() / 255 < 0.1 for one in some)
    assert 0 < dark < 200

    found = inspect_units(model, ["root"], [BRIGHT, CORNER], list(MEASURES), some)

    assert found.failed == dark
    assert found.counts == (400 - dark,) * 2
    assert (found.scores["pearson"].score[0] > 0.9).all()
    black = [one._replace(sample=np.zeros_like(one.sample)) for one in some[:20]]
    with pytest.raises(ModelError, match="NaN or"):
        inspect_units(model, ["root"], [CORNER], ["pearson"], black)


def test_more_than_can_be_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MOST_PAIRS", 700)
    with pytest.raises(UsageError, match="3 hypotheses"):
        inspect([BRIGHT, DARK, CORNER], data=RECORDS[:2])
    monkeypatch.setattr(inspection, "MOST_ACTIVATIONS", 471)
    with pytest.raises(UsageError, match="472 activations"):
        inspect([BRIGHT], data=RECORDS[:2])


def test_a_hypothesis_without_finite_scores_has_none() -> None:
    huge = Hypothesis("huge", lambda one: 1e90 if one.digest.endswith("7") else 1.0)
    with np.errstate(all="ignore"):
        found = inspect([huge, BRIGHT], data=RECORDS[:200])
    for part in found.scores["pearson"]:
        assert np.isfinite(part[0]).all() or np.isnan(part[0]).any()
    for row in found.rows("huge"):
        assert np.isfinite([row.score, row.low, row.high]).all()
