import numpy as np
import pytest

from edgeflare.answers.oracles import LabelOracle
from edgeflare.types import Decision


@pytest.mark.parametrize(
    ("original", "deployed", "decision"),
    [
        ([0.7, 0.3], [0.6, 0.4], Decision.AGREE),
        ([0.7, 0.3], [0.4, 0.6], Decision.DEVIATION),
        ([0.5, 0.5], [0.4, 0.6], Decision.TIE),
        ([0.7, 0.3], [0.5, 0.5], Decision.TIE),
        ([0.4, 0.3, 0.3], [0.3, 0.4, 0.3], Decision.DEVIATION),  # a tie below the top is no tie
        ([np.nan, 0.3], [0.4, 0.6], Decision.NONFINITE),
        ([0.7, 0.3], [np.inf, 0.6], Decision.NONFINITE),
    ],
)
def test_decision(original: list[float], deployed: list[float], decision: Decision) -> None:
    assert LabelOracle().decide(np.array(original), np.array(deployed)) is decision


class TestFloor:
    @pytest.mark.parametrize(
        ("original", "deployed", "decision"),
        [
            ([0.7, 0.3], [0.4, 0.6], Decision.DEVIATION),
            ([0.5625, 0.4375], [0.4375, 0.5625], Decision.DEVIATION),  # just at it
            ([0.55, 0.45], [0.1, 0.9], Decision.BELOW_FLOOR),
            ([0.9, 0.1], [0.45, 0.55], Decision.BELOW_FLOOR),
            ([0.55, 0.45], [0.55, 0.45], Decision.AGREE),  # they agree, however unsure
            ([0.5, 0.5], [0.1, 0.9], Decision.TIE),
            ([np.nan, 0.5], [0.1, 0.9], Decision.NONFINITE),
            ([0.45, 0.55], [1.0, 0.0], Decision.BELOW_FLOOR),  # a model that gives a label only
        ],
    )
    def test_different_labels_need_it_in_both_models(self, original, deployed, decision) -> None:
        oracle = LabelOracle(floor=0.125)
        assert oracle.floor == 0.125
        assert oracle.decide(np.array(original), np.array(deployed)) is decision

    def test_there_is_none_unless_it_is_stated(self) -> None:
        barely = np.array([0.5, np.nextafter(0.5, 1)])
        assert LabelOracle().floor == 0
        assert LabelOracle().decide(barely, barely[::-1]) is Decision.DEVIATION


def test_ties_of_the_mlperf_int8_resnet_are_no_deviations(shared_data) -> None:  # type: ignore[no-untyped-def]
    from ai_edge_litert.interpreter import Interpreter

    images = np.load(shared_data / "images" / "cifar10_test_500_jpeg.npz")["images"]
    folder = shared_data / "models" / "mlperf-tiny"
    floats = Interpreter(str(folder / "cifar10_resnet8_float.tflite"), num_threads=1)
    ints = Interpreter(str(folder / "cifar10_resnet8_int8.tflite"), num_threads=1)
    for interpreter in (floats, ints):
        interpreter.allocate_tensors()
    ties = []
    for image in images:
        floats.set_tensor(floats.get_input_details()[0]["index"], image[None].astype(np.float32))
        ints.set_tensor(
            ints.get_input_details()[0]["index"],
            (image[None].astype(np.int16) - 128).astype(np.int8),
        )
        floats.invoke()
        ints.invoke()
        original = floats.get_tensor(floats.get_output_details()[0]["index"])[0].astype(np.float64)
        stored = ints.get_tensor(ints.get_output_details()[0]["index"])[0]
        deployed = (stored.astype(np.float64) + 128) / 256
        if np.count_nonzero(stored == stored.max()) > 1:
            ties.append(LabelOracle().decide(original, deployed))
    assert 8 <= len(ties) <= 16
    assert set(ties) == {Decision.TIE}
