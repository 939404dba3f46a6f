import numpy as np

from edgeflare.answers.oracles import LabelOracle
from edgeflare.types import Decision


def test_there_is_no_floor_unless_it_is_stated() -> None:
    barely = np.array([0.5, np.nextafter(0.5, 1)])
    assert (LabelOracle().floor, LabelOracle(floor=0.125).floor) == (0, 0.125)
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
