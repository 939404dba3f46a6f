"""The steps that causes advise, carried out on faults in a small original: they mend it, prove it, or do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_everyday import CLASSES, INPUT, small_everyday

from edgeflare.triage.cause import Cause
from edgeflare_bench.everyday.catalogue import KINDS, Draw, Faulty, planted
from edgeflare_bench.everyday.evaluation import accuracy, answers_of, files_of
from edgeflare_bench.everyday.next_step import Outcome, carried_out
from edgeflare_bench.everyday.records import EverydayOriginal

BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> EverydayOriginal:
    return small_everyday(tmp_path_factory.mktemp("original"))


@pytest.fixture
def step(original: EverydayOriginal, tmp_path: Path) -> Any:
    def carry_out(name: str, kind: Any, what: str = "", **values: Any) -> Outcome:
        fault = planted(Draw(BY_NAME[name], "small"), original, tmp_path, {})
        assert isinstance(fault, Faulty), fault
        return carried_out(fault, Cause(kind, what, "corrected", 4.5, **values), tmp_path)

    return carry_out


@pytest.mark.parametrize(
    ("fault", "place", "outcome"),
    [
        ("bias-lost", ("conv2",), "mended"),
        ("bias-lost", ("dense",), "not"),
        ("branch-lost", ("relu2",), "mended"),  # what it is given is looked at, too
        ("training-mode", ("c3",), "mended"),
        ("flattened-in-other-layout", ("nowhere",), "not"),
        ("range-cut-off", ("conv2",), "not"),  # the exporter isn't what made it
    ],
)
def test_a_conversion_is_mended_where_it_is_named(step, fault, place, outcome) -> None:
    assert step(fault, "conversion", "layer", names=place) == outcome


def test_the_operator_that_the_original_has_there_is_looked_at(step) -> None:
    named: Any = {"names": ("flatten",), "evidence": {"original_name": "relu3"}}
    assert step("activation-other", "conversion", "layer", **named) == "mended"


def test_what_is_kept_in_float_is_not_rounded_and_a_conversion_stays(step) -> None:
    assert step("coarse-layer", "compression", "layer", names=("conv2",)) == "mended"
    assert step("range-too-wide", "compression", "layer", names=("c2_QuantizeLinear",)) == "mended"
    assert step("range-too-wide", "compression", "layer", names=("conv3",)) == "not"
    assert step("bias-lost", "compression", "layer", names=("conv2",)) == "not"


def test_half_precision_keeps_in_float_what_is_named(step) -> None:
    assert step("overflow", "non-finite", "not-finite", names=("fault__5",)) == "mended"
    assert step("overflow", "non-finite", "not-finite", names=("conv1",)) == "proved"
    assert step("bias-lost", "non-finite", "not-finite", names=("conv1",)) == "not"


def test_a_calibration_is_done_again_and_no_conversion_goes_with_it(step) -> None:
    assert step("on-noise", "calibration", "layer") == "mended"
    assert step("input-cut-off", "input-range", "few-codes") == "mended"
    assert step("bias-lost", "calibration", "layer") == "not"


def test_inputs_are_stated_as_is_said(step) -> None:
    right = {name: INPUT[name] for name in ("mean", "std")}
    assert step("of-other-data-deployed", "preprocessing", "other-way", change=INPUT) == "mended"
    assert step("no-deviation-deployed", "preprocessing", "same-tensor", change=right) == "mended"
    wrong = {"color": "BGR"}
    assert step("no-deviation-deployed", "preprocessing", "other-way", change=wrong) == "not"
    also: Any = {"change": wrong, "evidence": {"also": [right]}}
    assert step("no-deviation-deployed", "preprocessing", "other-way", **also) == "mended"


def test_the_same_feed_of_both_mends_but_not_an_accuracy_that_is_lost(step) -> None:
    # to check the labels is for who made them
    assert step("turned-both", "preprocessing", "inaccurate", side="both") == ""
    assert step("turned-both", "preprocessing", "same-tensor") == "not"
    assert step("of-other-data-deployed", "preprocessing", "same-tensor") == "mended"


def test_a_device_is_fed_as_is_said(step) -> None:
    inverted = {"side": "device", "change": {"picture": "inverted"}}
    assert step("inverted-device", "preprocessing", "other-way", **inverted) == "mended"
    grey = {"side": "device", "change": {"picture": "grey"}}
    assert step("inverted-device", "preprocessing", "other-way", **grey) == "not"


def test_a_recorded_tensor_tells_the_feed_from_kernels(step) -> None:
    assert step("inverted-device", "device", "answers-otherwise", side="device") == "not"
    assert step("kernels-weights-lost", "device", "answers-otherwise", side="device") == "proved"
    assert step("exif-device", "exif", "turned", side="device") == "mended"


def test_outputs_are_read_as_is_said(step, original, tmp_path) -> None:
    fault = planted(Draw(BY_NAME["classes-permuted"], "small"), original, tmp_path, {})
    assert isinstance(fault, Faulty)
    first, second = (answers_of(file, original.samples)[0] for file in files_of(fault.pair))
    order = {
        str(label): int(np.abs(second - column[:, None]).sum(axis=0).argmin())
        for label, column in enumerate(first.T)
    }
    exchanged = {"names": ("scores",), "change": {"classes": order}}
    assert step("classes-permuted", "interface", "classes-exchanged", **exchanged) == "mended"
    wrong = {"names": ("scores",), "change": {"classes": {"0": 1, "1": 0}}}
    assert step("classes-permuted", "interface", "classes-exchanged", **wrong) == "not"
    for which in ("first", "last"):
        change = {"change": {"without_class": which, "of": "deployed"}, "names": ("scores",)}
        outcome = step("background-class", "interface", "one-class-more", **change)
        assert outcome == ("mended" if which == "first" else "not")
    for function in ("log", "exp"):
        change = {"change": {"function": function}, "names": ("scores",)}
        outcome = step("logarithms", "interface", "form", **change)
        assert outcome == ("mended" if function == "exp" else "not")


def test_units_are_undone_by_factors(step) -> None:
    outcomes = {
        step("other-units", "interface", "units", names=("scores",), change={"factors": [factor]})
        for factor in (100.0, 0.01, 1 / 255)
    }
    assert outcomes == {"mended", "not"}


def test_labels_are_renumbered(step, original, tmp_path) -> None:
    fault = planted(Draw(BY_NAME["labels-rotated"], "small"), original, tmp_path, {})
    assert isinstance(fault, Faulty)
    back = dict(zip(fault.pair.labels, original.labels, strict=True))
    assert step("labels-rotated", "labels", "renumbered", change={"classes": back}) == "mended"
    same = {str(label): label for label in range(CLASSES)}
    assert step("labels-rotated", "labels", "renumbered", change={"classes": same}) == "not"
    assert accuracy(answers_of(files_of(fault.pair)[0], original.samples), original.labels) == 1


def test_answers_are_asked_again_in_one_session(step) -> None:
    assert step("noise", "not-repeatable", "answers-change", names=("conv2",)) == "proved"
    assert step("bias-lost", "not-repeatable", "answers-change") == "not"
    assert step("noisy-device", "not-repeatable", "on-device", side="device") == "proved"


def test_what_draws_random_numbers_is_exported_without(original, tmp_path) -> None:
    fault = planted(Draw(BY_NAME["noise"], "small"), original, tmp_path, {})
    assert isinstance(fault, Faulty)
    cause = Cause("not-repeatable", "answers-change", "located", 5.0, names=("fault__2",))
    assert carried_out(fault, cause, tmp_path) == "mended"


def test_a_constant_is_proved_or_its_last_operators_are_mended(step) -> None:
    assert step("empty-last", "constant", "same-for-all", names=("scores",)) == "mended"
    assert step("bias-lost", "constant", "same-for-all", names=("scores",)) == "not"


def test_the_right_training_state_is_exported(step) -> None:
    assert step("untrained", "another-model", "no-kernel-fits") == "mended"
    assert step("bias-lost", "another-model", "no-kernel-fits") == "not"


def test_each_sample_of_a_batch_is_given_alone(step) -> None:
    assert step("batch", "batch", "rows-differ", is_remark=True) == "mended"


def test_a_step_that_no_script_can_do_has_no_outcome(step) -> None:
    assert step("bias-lost", "labels", "missing") == ""
    assert step("bias-lost", "hardware", "cells") == ""
