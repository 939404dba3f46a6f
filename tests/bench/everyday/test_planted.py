"""Everyday faults, planted in a small original: each does what it says, and is always the same."""

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from small_everyday import CLASSES, small_everyday

from edgeflare.triage.cause import CauseKind
from edgeflare_bench.everyday.catalogue import KINDS, Draw, Faulty, draws, planted
from edgeflare_bench.everyday.evaluation import (
    answers_of,
    answers_of_device,
    files_of,
    without_witness,
)
from edgeflare_bench.everyday.originals import PLANS
from edgeflare_bench.everyday.records import EverydayOriginal, is_reserved

BY_NAME = {kind.name: kind for kind in KINDS}
EXPECTED: dict[str, tuple[CauseKind, ...]] = {
    **dict.fromkeys(("padding-side", "bias-lost", "branch-lost", "pooling-kind"), ("conversion",)),
    **dict.fromkeys(("flattened-in-other-layout", "activation-lost"), ("conversion",)),
    "noise": ("not-repeatable",),
    "dropout-active": ("not-repeatable", "conversion"),
    "empty-last": ("constant", "conversion"),
    "overflow": ("non-finite",),
    **dict.fromkeys(("on-noise", "range-cut-off"), ("calibration",)),
    "input-cut-off": ("calibration", "input-range"),
    "zero-point-off": ("calibration", "compression"),
    "coarse-layer": ("compression",),
    **dict.fromkeys(("no-deviation-original", "of-other-data-deployed"), ("preprocessing",)),
    **dict.fromkeys(("turned-both", "inverted-device"), ("preprocessing",)),
    **dict.fromkeys(("classes-permuted", "background-class", "logarithms"), ("interface",)),
    "labels-rotated": ("labels",),
    "untrained": ("another-model",),
    "noisy-device": ("not-repeatable",),
    "exif-device": ("exif", "preprocessing"),
    "kernels-weights-lost": ("device", "kernels", "accelerator"),
}
"""Of each family some kinds, and the causes of which the first must be one."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> EverydayOriginal:
    return small_everyday(tmp_path_factory.mktemp("original"))


def faulty(name: str, original: EverydayOriginal, folder: Path) -> Faulty:
    made = planted(Draw(BY_NAME[name], "small"), original, folder, {})
    assert isinstance(made, Faulty), made
    return made


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fault_can_be_seen_and_its_healthy_pair_has_none(name, original, tmp_path) -> None:
    fault = faulty(name, original, tmp_path)
    assert fault.pair.expected == EXPECTED[name]
    assert without_witness(fault.pair, fault.sound, original.labels) == ""
    departs = {"kernels": "other"} if fault.pair.device else {}
    healthy = replace(fault.sound, device=departs)
    assert without_witness(healthy, fault.sound, original.labels) != ""


@pytest.mark.parametrize("name", ["padding-side", "range-cut-off", "coarse-layer", "overflow"])
def test_the_names_of_a_fault_are_of_its_files(name, original, tmp_path) -> None:
    pair = faulty(name, original, tmp_path).pair
    known = set()
    for path in (pair.original, pair.deployed):
        graph = onnx.load_model(path).graph
        known |= {tensor.name for tensor in graph.initializer}
        known |= {name for node in graph.node for name in (node.name, *node.input, *node.output)}
    assert pair.names
    assert known.issuperset(pair.names)


def test_a_fault_is_planted_alike_each_time(original, tmp_path) -> None:
    for name in ("folded-wrongly", "on-noise", "of-other-data-deployed"):
        first = faulty(name, original, tmp_path).pair
        file = first.deployed.read_bytes()
        second = faulty(name, original, tmp_path).pair
        assert (file, second) == (second.deployed.read_bytes(), first)


def test_what_suits_no_model_is_told(original, tmp_path) -> None:
    for name in ("gates-in-other-order", "box-pixels", "other-spectrum-device", "keeps-state"):
        assert isinstance(planted(Draw(BY_NAME[name], "small"), original, tmp_path, {}), str)


def test_a_conversion_changes_the_operator_that_is_named(original, tmp_path) -> None:
    fault = faulty("branch-lost", original, tmp_path)
    nodes = {node.name: node.op_type for node in onnx.load_model(fault.pair.deployed).graph.node}
    assert (fault.pair.names[0], nodes["join"]) == ("join", "Identity")
    sound = {node.name: node.op_type for node in original.model.graph.node}
    assert {name for name, kind in sound.items() if nodes[name] != kind} == {"join"}


@pytest.mark.parametrize("name", ["noise", "dropout-active"])
def test_an_operator_without_a_name_is_called_by_what_it_makes(name, original, tmp_path) -> None:
    pair = faulty(name, original, tmp_path).pair
    nodes = onnx.load_model(pair.deployed).graph.node
    drawing = [node.output[0] for node in nodes if node.op_type.startswith("Random")]
    assert len(drawing) == 1
    assert {*drawing} <= {*pair.names}


def test_half_precision_overflows_where_the_float_model_does_not(original, tmp_path) -> None:
    first, second = files_of(faulty("overflow", original, tmp_path).pair)
    assert np.isfinite(answers_of(first, original.samples)[0]).all()
    assert not np.isfinite(answers_of(second, original.samples)[0]).all()


def test_noise_answers_otherwise_each_time(original, tmp_path) -> None:
    pair = faulty("noise", original, tmp_path).pair
    answers = answers_of(files_of(pair)[1], [original.samples[0]] * 4)[0]
    assert len(np.unique(answers, axis=0)) == 4


def test_labels_are_rotated_and_the_files_stay(original, tmp_path) -> None:
    fault = faulty("labels-rotated", original, tmp_path)
    assert fault.pair.deployed == fault.sound.deployed
    steps = np.subtract(fault.pair.labels, original.labels) % CLASSES
    assert set(steps) in ({1}, {CLASSES - 1})


def test_a_device_departs_from_the_same_file_here(original, tmp_path) -> None:
    pair = faulty("inverted-device", original, tmp_path).pair
    inverted = [255 - sample for sample in original.samples[:24]]
    here = answers_of(files_of(pair)[1], inverted)
    np.testing.assert_allclose(answers_of_device(pair).outputs[0], here[0], atol=1e-4)
    noisy = faulty("noisy-device", original, tmp_path).pair
    assert answers_of_device(noisy).repeated == 24


def test_a_half_of_the_names_is_reserved_and_always_the_same() -> None:
    names = [f"original-{number}/kind" for number in range(2000)]
    reserved = [is_reserved(name) for name in names]
    assert 900 < sum(reserved) < 1100
    assert zlib.crc32(bytes(reserved)) == 2665042687


def test_the_catalogue_is_the_one_that_figures_are_of() -> None:
    table = [
        (kind.name, kind.expected, kind.chains, kind.share, kind.report, kind.where)
        for kind in KINDS
    ]
    assert len({name for name, *_ in table}) == len(table)
    assert sum(bool(kind.report) for kind in KINDS) >= 20
    assert zlib.crc32(repr(table).encode()) == 142600813
    assert zlib.crc32(repr([draw.name for draw in draws(tuple(PLANS))]).encode()) == 3821665126


def test_the_draws_of_an_original_do_not_depend_on_others() -> None:
    alone = [draw.name for draw in draws(("plain",))]
    among = [draw.name for draw in draws(("lstm", "plain")) if draw.original == "plain"]
    assert alone == among
