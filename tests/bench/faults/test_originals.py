"""Originals that faults are planted into, from real models and inputs."""

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from edgeflare_bench.faults import Parameters, faulty_model, find_witness, open_original
from edgeflare_bench.faults.distillation import distilled
from edgeflare_bench.faults.originals import predict, session


def test_the_rebuilt_keyword_spotter_decides_as_its_file(shared_data: Path) -> None:
    original = open_original("keywords", shared_data)
    rebuilt = predict(session(original.model), original.inputs[:200])
    opened = Interpreter(str(shared_data / "models/mlperf-tiny/kws_dscnn_float.tflite"))
    opened.allocate_tensors()
    (given,), (output,) = opened.get_input_details(), opened.get_output_details()
    answers = []
    for one in original.inputs[:200]:
        opened.set_tensor(given["index"], one[None])
        opened.invoke()
        answers.append(opened.get_tensor(output["index"])[0])
    assert (rebuilt.argmax(1) != np.argmax(answers, 1)).sum() <= 2
    assert np.abs(rebuilt - answers).sum(1).mean() < 0.02  # TFLite rounds its activations


def test_every_view_of_the_photographs_is_another_valid_input(shared_data: Path) -> None:
    original = open_original("photographs", shared_data)
    assert len({one.tobytes() for one in original.inputs}) == 50
    assert np.array_equal(
        original.from_pixels(original.to_pixels(original.inputs)), original.inputs
    )


@pytest.mark.parametrize("kind", ["stale-state", "wraps", "dead-channels"])
def test_a_fault_of_a_recurrent_layer_has_a_witness(shared_data: Path, kind: str) -> None:
    original = open_original("rows", shared_data)
    faulty = faulty_model(original, kind, Parameters(1.0, 0.0, 0.4, 0.6))
    witness = find_witness(original, faulty, np.random.default_rng(0), gradients=False)
    assert witness is not None
    assert witness.margin >= 0.3
    sound, wrong = (
        predict(session(model), witness.sample).argmax() for model in (original.model, faulty)
    )
    assert bool(sound != wrong) == witness.decides_otherwise


def test_the_keyword_spotter_can_be_padded_wrongly(shared_data: Path) -> None:
    original = open_original("keywords", shared_data)
    faulty = faulty_model(original, "wrong-padding", Parameters(1.0, 0.0, 0.4, 0.6))
    assert find_witness(original, faulty, np.random.default_rng(0), gradients=False) is not None


@pytest.mark.torch
def test_a_distilled_student_decides_mostly_as_its_teacher(shared_data: Path) -> None:
    original = open_original("mnist", shared_data)
    student = distilled(original, steps=120)
    taught, learned = (
        predict(session(model), original.inputs).argmax(1) for model in (original.model, student)
    )
    assert (taught == learned).mean() >= 0.9
    assert student.ByteSize() < original.model.ByteSize()
