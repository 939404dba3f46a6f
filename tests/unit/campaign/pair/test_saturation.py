"""Saturated 8-bit products: whose processor does so, and on which seeds it changes the answers.

The device's answers are emulated, so that the test says the same on every processor: pairs of products are
added in 16 bits that saturate, as VPMADDUBSW does.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from small_models import save_onnx
from text_models import READER_INPUT, text_reader, written

from edgeflare.answers import TRANSCRIPTS
from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.pair.saturation import saturated_answers, saturates
from edgeflare.models import InputOptions, InputSpec, OriginalModel, resolve_input
from edgeflare.types import Decision, Outputs, Seed, Transcript
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.runtimes import load

TERMS, CLASSES = 64, 4
SCALE = np.float32(1e-5)
CPU = {"name": "onnx", "providers": ["CPUExecutionProvider"]}
AVX2 = {"arch": "x86_64", "cpu_flags": ["avx2", "fma"]}


@pytest.mark.parametrize(
    ("runtime", "fingerprint", "does"),
    [
        (CPU, AVX2, True),
        (CPU, {"arch": "x86_64", "cpu_flags": ["avx2", "avx_vnni"]}, False),
        (CPU, {"arch": "x86_64", "cpu_flags": ["avx512_vnni"]}, False),
        (CPU, {"arch": "aarch64", "cpu_flags": []}, False),
        ({**CPU, "exact_int8": True}, AVX2, False),
        ({**CPU, "providers": ["CUDAExecutionProvider", "CPUExecutionProvider"]}, AVX2, False),
        ({"name": "tflite"}, AVX2, False),
    ],
)
def test_only_onnxruntime_on_processors_without_vnni_saturates(runtime, fingerprint, does) -> None:
    assert saturates(runtime, fingerprint) is does


def weights(most: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-most, most + 1, (TERMS, CLASSES)).astype(np.int8)


def model(path: Path, most: int) -> Path:
    nodes = [
        helper.make_node("MatMulInteger", ["levels", "weights"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "scale"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    given = helper.make_tensor_value_info("levels", TensorProto.UINT8, [1, TERMS])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES])
    return save_onnx(path, nodes, [given], [scores], {"weights": weights(most), "scale": SCALE})


def emulated(levels: np.ndarray, most: int, *, exact: bool) -> np.ndarray:
    products = levels.astype(np.int64)[:, None] * weights(most).astype(np.int64)
    pairs = products[0::2] + products[1::2]
    sums = (pairs if exact else np.clip(pairs, -(2**15), 2**15 - 1)).sum(axis=0)
    powers = np.exp(sums.astype(np.float32) * SCALE)
    scores: np.ndarray = powers / powers.sum()
    return scores


def seeds(most: int, *, exact: bool) -> list[Seed]:
    rng = np.random.default_rng(1)
    made = []
    for number in range(6):
        sample = rng.integers(0, 256, (1, TERMS, 1), dtype=np.uint8)
        if number < 2:
            sample //= 4  # dark: no pair saturates
        answer = emulated(sample.ravel(), most, exact=exact)
        made.append(Seed(str(number), sample, Outputs(answer, answer, Decision.AGREE), None))
    return made


SIDE = ModelInterface(
    InputSpec((1, TERMS), "uint8", (1, TERMS), 1),
    TensorInfo("scores", (1, CLASSES), "float32"),
    CLASSES,
)


@pytest.mark.parametrize(
    ("most", "exact", "answers"),
    [
        (127, False, 4),
        (127, True, None),
        (63, False, None),  # as reduce_range=True makes them: no pair can saturate
    ],
)
def test_what_saturation_changes_is_told(tmp_path, most, exact, answers) -> None:
    path = model(tmp_path / "m.onnx", most)
    told = saturated_answers(path, SIDE, SIDE.reader("probabilities"), seeds(most, exact=exact))
    if answers is None:
        assert told is None
    else:
        assert (told["file"], told["answers"], told["seeds"]) == ("m.onnx", answers, 6)


def test_the_option_makes_any_processor_exact(tmp_path: Path) -> None:
    path = str(model(tmp_path / "m.onnx", 127))
    exact = load(path, "onnx", {"exact_int8": True})
    assert exact.describe()["exact_int8"] is True
    for seed in seeds(127, exact=True):
        [scores] = exact.run(seed.sample.reshape(1, TERMS))
        np.testing.assert_allclose(scores[0], seed.outputs.deployed, atol=1e-6)


def test_texts_count_where_their_words_or_scores_are_others(tmp_path: Path) -> None:
    path = tmp_path / "int8.onnx"
    quantize_dynamic(text_reader(tmp_path / "o.onnx"), path, weight_type=QuantType.QInt8)
    samples = [written(text) for text in ("ab ca", "dab", "bad")]
    model = OriginalModel(path, "onnx", {"exact_int8": True})
    options = InputOptions.model_validate(READER_INPUT)
    spec = resolve_input(model.input, options, InputOptions(), "the model")
    side = ModelInterface(
        spec, model.outputs[0], kind=TRANSCRIPTS, task="transcript", decoder=model.decoder
    )
    model.configure(spec, side.output.name, side.decoder)
    model.read_with(side.reader("transcript"))
    exact = model.scores(samples)
    model.close()

    def saturated(answers: list[Any]) -> dict[str, Any] | None:
        seeds = [
            Seed(str(place), sample, Outputs(answer, answer, Decision.AGREE))
            for place, (sample, answer) in enumerate(zip(samples, answers, strict=True))
        ]
        return saturated_answers(path, side, side.reader("transcript"), seeds)

    one, second, third = exact
    assert saturated(exact) is None
    others = [
        one,
        Transcript(second.pieces, second.scores * 0.9),
        Transcript(("x",), third.scores[:1]),
    ]
    assert saturated(others) == {"file": "int8.onnx", "seeds": 3, "answers": 2, "decisions": 1}
