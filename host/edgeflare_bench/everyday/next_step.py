"""The step that a first answer advises, carried out: whether the pair then agrees.

"mended": it does. "proved": what was said was shown to hold by an experiment of its own. "not": neither.
"": nothing is advised that a script could do. A step has what is printed of the cause, and no more; where
a tool chain is to be run again, what it makes then is known: a fault of the tool chain is gone, and one
that was in the model before it stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare.triage.cause import Cause, Change
from edgeflare.triage.model import HostModel, ModelFile
from edgeflare.triage.ways import Way
from edgeflare_agent.configuration.fixed_inputs import GivenInputs
from edgeflare_bench.everyday.catalogue import Faulty
from edgeflare_bench.everyday.evaluation import (
    DEVICE_SEEDS,
    OTHER_KERNELS,
    Answers,
    Both,
    answers_of,
    answers_of_device,
    answers_to,
    error_between,
    files_of,
    given_on_device,
    is_seen,
    model_file,
)
from edgeflare_bench.everyday.planted import in_half_precision
from edgeflare_bench.everyday.records import EverydayPair
from edgeflare_bench.faults import grafts

Outcome: TypeAlias = Literal["mended", "proved", "not", ""]
Function: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_ALIKE = 0.35
"""So far, in deviations, the device's answers may be from those that a way of feeding explains."""
_SAME = 0.02
"""So far what a device gives its model may be from what a way of feeding makes."""
_DIFFER = 0.1
_LAST = 5
"""So many operators are a model's last ones."""
_WITHOUT_STATEMENT = ("picture", "codes", "factor")
_FORMATS = ("compression", "calibration", "output-scale", "non-finite")


def carried_out(fault: Faulty, cause: Cause, folder: Path) -> Outcome:
    """Return what came of a cause's next step on a faulty pair; files are written to `folder`."""
    step = _STEPS.get(f"{cause.kind}/{cause.what}") or _STEPS.get(cause.kind)
    if step is None:
        return ""
    try:
        outcome = step(_Trial(fault, cause, folder))
    except Exception:  # noqa: BLE001 - of a runtime, which raises anything: the step doesn't hold
        return "not"
    return outcome if isinstance(outcome, str) else "mended" if outcome else "not"


class _Trial:
    """A faulty pair, and what was said of it."""

    def __init__(self, fault: Faulty, cause: Cause, folder: Path) -> None:
        self.fault, self.cause, self.folder = fault, cause, folder
        self.pair, self.change = fault.pair, cause.change
        self.samples = self.pair.samples[:DEVICE_SEEDS]
        self.is_of_format = not set(_FORMATS).isdisjoint(fault.kind.expected)

    @cached_property
    def files(self) -> tuple[ModelFile, ModelFile]:
        """The original and the deployed file."""
        return files_of(self.pair)

    @cached_property
    def faulty(self) -> Both:
        """The pair's answers."""
        return self._both(self.pair)

    @cached_property
    def healthy(self) -> Both:
        """Those of the healthy pair."""
        device = {"kernels": "other"} if self.pair.device else {}
        return self._both(replace(self.fault.sound, device=device))

    def _both(self, pair: EverydayPair) -> Both:
        original, deployed = (answers_of(file, self.samples) for file in files_of(pair))
        return original, answers_of_device(pair).outputs if pair.device else deployed

    def agrees(
        self,
        original: Answers | None = None,
        deployed: Answers | None = None,
        labels: Sequence[int] | None = None,
    ) -> bool:
        """Whether the fault can't be seen with these answers or labels in place of the pair's."""
        faulty = original or self.faulty[0], deployed or self.faulty[1]
        stated = self.pair.labels if labels is None else labels
        right = self.fault.sound.labels
        return not is_seen(self.pair.tool_chain, self.healthy, faulty, right, stated)

    def is_mended_by(self, pair: EverydayPair) -> bool:
        """Whether another pair agrees."""
        return self.agrees(*self._both(pair))

    # Inputs

    def restated(self) -> Outcome | bool:
        """State the ways of feeding that are named; or feed the device's model so on this machine."""
        ways = [self.change, *self.cause.evidence.get("also", ())]
        if self.cause.side == "device":
            return self._fed_as(ways)
        if not self.change:  # "the same input for both models"
            first, second = self.pair.original_input, self.pair.deployed_input
            return any(
                self.is_mended_by(pair)
                for pair in (
                    replace(self.pair, deployed_input=first),
                    replace(self.pair, original_input=second),
                )
            )
        sides = {"original": (True, False), "both": (True, True)}
        of_original, of_deployed = sides.get(self.cause.side, (False, True))
        return any(
            self.agrees(
                self._fed(0, way) if of_original else None,
                self._fed(1, way) if of_deployed and not self.pair.device else None,
            )
            for way in ways
        )

    def _way(self, place: int, change: Change) -> tuple[ModelFile, dict[str, Any]]:
        """Return a file as a change states its input, and what no statement has."""
        file, pair = self.files[place], self.pair
        stated = pair.deployed_input if place else pair.original_input
        given = pair.deployed_given if place else pair.original_given
        options = {
            name: value
            for name, value in change.items()
            if value and name not in _WITHOUT_STATEMENT  # a flag without a value isn't printed
        }
        without: dict[str, Any] = {
            name: change[name] for name in _WITHOUT_STATEMENT if name in change
        }
        if "factor" in without:
            without["factor"] = float(without["factor"])
        return model_file(file.side, file.path, {**stated, **options}, given), without

    def _fed(self, place: int, change: Change) -> Answers:
        file, way = self._way(place, change)
        return answers_of(file, self.samples, way)

    def _fed_as(self, ways: Sequence[Change], place: int = 1) -> Outcome:
        """Compare with what the device is given, and answers, to samples that weren't asked before."""
        samples = self.pair.samples[DEVICE_SEEDS : 2 * DEVICE_SEEDS]
        fed = given_on_device(self.pair, samples)
        answers = answers_of_device(self.pair, samples).outputs
        for change in ways:
            file, way = self._way(place, change)
            model = HostModel(file)
            tensors = [model.tensors(sample, Way(file.spec, **way)) for sample in samples]
            if place and _are_same(tensors, fed):
                return "mended"  # what feeds the device is known
            if error_between(answers_to(model, tensors), answers) <= _ALIKE:
                return "proved"
        return "not"

    def fed_as_original(self) -> Outcome | bool:
        """Feed the original as is said: whether it answers as the device does."""
        if {*self.change} == {"color"}:
            return self.restated()
        return self._fed_as([self.change], place=0)

    def recorded(self) -> Outcome:
        """Give the file on this machine what the device is given: whether the answers still differ."""
        file = self.files[1]
        fed, answers = given_on_device(self.pair, self.samples), self.faulty[1]
        kernels: Sequence[Change] = (
            {},
            OTHER_KERNELS[file.runtime],
            self.change if self.cause.kind == "kernels" else {},
        )
        alike = [
            error_between(answers_to(HostModel(replace(file, options=options)), fed), answers)
            <= _DIFFER
            for options in kernels
        ]
        if self.cause.kind == "kernels":
            return "proved" if alike[2] and not alike[0] else "not"
        return "not" if any(alike) else "proved"  # else it is the feed

    def upright(self) -> Outcome | bool:
        """Turn images as they are stored before the device is given them."""
        if self.cause.side != "device" and not self.pair.device.get("turned"):
            return False
        return self.is_mended_by(replace(self.pair, device={"kernels": "other"}))

    # Outputs and labels

    def renumbered_labels(self) -> bool:
        """Renumber the labels as is said."""
        numbers = {int(name): int(number) for name, number in self.change["classes"].items()}
        return self.agrees(labels=[numbers.get(label, label) for label in self.pair.labels])

    def inputs_in_order(self) -> bool:
        """Give the deployed model its inputs in the order that is said."""
        order = self.change.get("input_name", ",".join(self.cause.names)).split(",")
        given = GivenInputs(tuple(order), axis=self.pair.deployed_given.axis)
        return self.is_mended_by(replace(self.pair, deployed_given=given))

    def outputs_in_order(self) -> bool:
        """Read the deployed model's outputs as is said."""
        originals, own = self._output_names
        holding = {held: name for name, held in self.change["outputs"].items()}
        answers = [self.faulty[1][own.index(holding.get(name, name))] for name in originals]
        return self.agrees(deployed=tuple(answers))

    @cached_property
    def _output_names(self) -> tuple[list[str], list[str]]:
        first, second = ([info.name for info in HostModel(file).outputs] for file in self.files)
        return first, second

    def _with_output(self, function: Function, of_original: bool = False) -> bool:
        """Whether the pair agrees where the named output of one model is read otherwise."""
        places = [
            names.index(name)
            for name in self.cause.names
            for names in self._output_names
            if name in names
        ]
        place = places[0] if places else 0
        answers = list(self.faulty[0] if of_original else self.faulty[1])
        answers[place] = function(answers[place])
        changed = tuple(answers)
        return self.agrees(original=changed) if of_original else self.agrees(deployed=changed)

    def classes_renumbered(self) -> bool:
        """Read the classes by the numbers that are said."""
        axis = self.cause.evidence.get("axis")

        def renumbered(values: NDArray[np.float64]) -> NDArray[np.float64]:
            order = np.arange(values.shape[-1 if axis is None else axis])
            for name, number in self.change["classes"].items():
                order[int(name)] = number
            return np.asarray(np.take(values, order, -1 if axis is None else axis))

        return self._with_output(renumbered)

    def without_class(self) -> bool:
        """Leave the first or the last class out."""
        part = slice(1, None) if self.change["without_class"] == "first" else slice(None, -1)
        return self._with_output(lambda values: values[..., part], self.change["of"] == "original")

    def axes_in_order(self) -> bool:
        """Put the axes of an output in the order that is said."""
        order = [0, *(axis + 1 for axis in self.change["axes"])]
        return self._with_output(lambda values: values.transpose(order))

    def in_form(self) -> bool:
        """Apply the function that is said to an output."""
        name = self.change["function"]
        plain = name.removeprefix("original-")
        return self._with_output(_FUNCTIONS[plain], of_original=plain != name)

    def in_units(self) -> bool:
        """Multiply an output by the factors that are said."""
        factors, axis = np.array(self.change["factors"]), self.change.get("axis")

        def multiplied(values: NDArray[np.float64]) -> NDArray[np.float64]:
            shape = [1] * values.ndim
            shape[-1 if axis is None else axis] = factors.size
            return np.asarray(values * factors.reshape(shape))

        return self._with_output(multiplied)

    # Files

    def _is_mended_with(self, make: Callable[..., Any | None], *arguments: Any) -> bool:
        """Whether the pair agrees with a file that is made in place of the deployed one."""
        path = self.folder / f"{self.pair.name.replace('/', '-')}-mended.onnx"
        try:
            model = make(*arguments)
            if model is None:
                return False
            extras.onnx().save_model(model, path)
            return self.is_mended_by(replace(self.pair, deployed=path))
        except Exception:  # noqa: BLE001 - a file that can't be run mends nothing
            return False

    def _models(self) -> tuple[Any, Any, Any]:
        """Return the deployed model, the healthy one, and the original."""
        load = extras.onnx().load_model
        return load(self.pair.deployed), load(self.fault.sound.deployed), load(self.pair.original)

    def looked_at(self) -> bool:
        """Convert again, with the healthy operators where is said: those named, or what is beside them."""
        if self.is_of_format and "conversion" not in self.fault.kind.expected:
            return False  # the exporter isn't what made it
        faulty, *sources = self._models()
        names = [*self.cause.names, self.cause.evidence.get("original_name", "")]
        graph = grafts.Graph(faulty)
        wider = [part for name in self.cause.names for part in graph.around(name)]
        return any(
            self._is_mended_with(grafts.grafted, tried, faulty, source)
            for tried in (names[:-1], names, [*names, *wider])
            for source in sources
        )

    def kept_in_float(self) -> bool:
        """Keep what is named in float; or quantise otherwise, which mends what quantising did."""
        if not self.is_of_format:
            return False
        if not self.cause.names:
            return self.is_mended_by(self.fault.sound)
        faulty, _, original = self._models()
        if self.pair.tool_chain == "float16":
            return self._is_mended_with(in_half_precision, original, self.cause.names)
        if self._is_mended_with(grafts.in_float, self.cause.names, faulty, original):
            return True
        is_of_rounding = self.fault.kind.expected == ("compression",)
        return is_of_rounding and self.is_mended_by(self.fault.sound)  # "or quantise per channel"

    def last_in_float(self) -> bool:
        """Leave the last operators before an output in float."""
        faulty, _, original = self._models()
        return self.is_of_format and self._is_mended_with(
            grafts.grafted, self.cause.names, faulty, original
        )

    def calibrated_again(self) -> bool:
        """Quantise again, calibrated with natural inputs."""
        return self.is_of_format and self.is_mended_by(self.fault.sound)

    def not_finite(self) -> Outcome | bool:
        """Keep what is named in float32, and look at its inputs; or run the file in float32."""
        if not self.cause.names:
            return "mended" if self.is_of_format and self.is_mended_by(self.fault.sound) else "not"
        return self.kept_in_float() or self._holds(
            lambda answers: not all(np.isfinite(output).all() for output in answers)
        )

    def constant(self) -> Outcome | bool:
        """Look at the last operators."""
        faulty, *sources = self._models()
        graph = grafts.Graph(faulty)
        names = [name for output in self.cause.names for name in graph.last(output, _LAST)]
        if any(self._is_mended_with(grafts.grafted, names, faulty, source) for source in sources):
            return True
        return self._holds(
            lambda answers: any(
                np.ptp(output, axis=0).max() <= 1e-6 * np.abs(output).max() for output in answers
            )
        )

    def _holds(self, holds: Callable[[Answers], bool]) -> Outcome:
        """Look at the answers of the side that is meant, to samples that weren't asked before."""
        samples = self.pair.samples[DEVICE_SEEDS : 2 * DEVICE_SEEDS]
        answers = answers_of(self.files[self.cause.side != "original"], samples)
        return "proved" if holds(answers) else "not"

    def repeated(self) -> Outcome | bool:
        """Export in inference mode, without what is named; or ask again."""
        if self.pair.device:
            return "proved" if self.pair.device.get("noise") else "not"
        model = HostModel(self.files[1])  # new sessions of one process draw the same numbers
        fed = [model.tensors(sample, Way(model.spec)) for sample in self.samples]
        if error_between(answers_to(model, fed), answers_to(model, fed)) == 0:
            return "not"
        faulty, sound, _ = self._models()
        is_named, stays = (
            any(grafts.Graph(model).named(name) for name in self.cause.names)
            for model in (faulty, sound)
        )
        is_mended = is_named and not stays and self.is_mended_by(self.fault.sound)
        return "mended" if is_mended else "proved"

    def other_state(self) -> bool:
        """Export the right training state."""
        expected = self.fault.kind.expected
        return "another-model" in expected and self.is_mended_by(self.fault.sound)

    def reset_before_each(self) -> bool:
        """Load the model anew before each input."""
        model, answers = HostModel(self.files[1]), []
        for sample in self.samples:
            model.forget()
            answers.append(answers_to(model, [model.tensors(sample, Way(model.spec))]))
        outputs = zip(*answers, strict=True)
        return self.agrees(deployed=tuple(np.concatenate(output) for output in outputs))


def _are_same(first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]]) -> bool:
    """Whether what inputs are fed is the same, but for what rounding does."""

    def is_same(fed: NDArray[Any], partner: NDArray[Any]) -> bool:
        if fed.shape != partner.shape:
            return False
        away = np.abs(fed.astype(np.float64) - partner).mean()
        return bool(away <= _SAME * (fed.std() + 1e-12))

    return all(
        is_same(*tensors)
        for calls in zip(first, second, strict=True)
        for tensors in zip(*calls, strict=True)
    )


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(np.maximum(values, 1e-30))


_FUNCTIONS: Mapping[str, Function] = {
    "softmax": _softmax,
    "sigmoid": lambda values: 1 / (1 + np.exp(-values)),
    "exp": np.exp,
    "log": _log,
    "log-softmax": lambda values: _log(_softmax(values)),
    "normalised": lambda values: values / np.linalg.norm(values, axis=-1, keepdims=True),
}


def _centres(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = values[..., :2], values[..., 2:4]
    return np.concatenate([(low + high) / 2, high - low, values[..., 4:]], -1)


def _corners(values: NDArray[np.float64]) -> NDArray[np.float64]:
    middle, half = values[..., :2], values[..., 2:4] / 2
    return np.concatenate([middle - half, middle + half, values[..., 4:]], -1)


_BOXES: Mapping[str, Function] = {"corners-to-centre": _centres, "centre-to-corners": _corners}

_STEPS: Mapping[str, Callable[[_Trial], Outcome | bool]] = {
    "preprocessing": _Trial.restated,
    "preprocessing/as-original": _Trial.fed_as_original,
    "preprocessing/inaccurate": lambda _: "",  # to check labels is for who made them
    "resize-rule": _Trial.restated,
    "exif": _Trial.upright,
    "labels/renumbered": _Trial.renumbered_labels,
    "interface/inputs-exchanged": _Trial.inputs_in_order,
    "interface/outputs-exchanged": _Trial.outputs_in_order,
    "interface/classes-exchanged": _Trial.classes_renumbered,
    "interface/one-class-more": _Trial.without_class,
    "interface/axes": _Trial.axes_in_order,
    "interface/form": _Trial.in_form,
    "interface/boxes": lambda trial: trial._with_output(_BOXES[trial.change["boxes"]]),
    "interface/units": _Trial.in_units,
    "conversion": _Trial.looked_at,
    "compression": _Trial.kept_in_float,
    "output-scale": _Trial.last_in_float,
    "calibration": _Trial.calibrated_again,
    "input-range": _Trial.calibrated_again,
    "non-finite": _Trial.not_finite,
    "constant": _Trial.constant,
    "not-repeatable": _Trial.repeated,
    "another-model": _Trial.other_state,
    "state": _Trial.reset_before_each,
    "batch": lambda trial: trial.agrees(),  # each sample alone
    "device": _Trial.recorded,
    "kernels": _Trial.recorded,
    "accelerator": _Trial.recorded,
}
