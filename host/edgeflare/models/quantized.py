"""Healthy int8 models of an original, made on the host by onnxruntime's own quantiser.

They tell what quantisation alone does to a model. The original's file is only read.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.files import replacing
from edgeflare.errors import ModelError, UsageError
from edgeflare.types import Sample
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.preprocess import prepare

CALIBRATED_ON = 128
"""Number of inputs that the ranges of activations are taken from, at most."""

_VERSION = 1
"""Raised where the same recipe gives another model, so that stored ones are made again."""
_DIGITS = 12
_TIMEOUT_S = 1800.0
_LAST_CHARACTERS = 600
_SEVERITY_ERROR = 3
_CHILD = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from edgeflare.models.quantized import quantize_here; quantize_here(sys.argv[1])"
)


class Recipe(NamedTuple):
    """How a model is quantised to int8; weights are symmetric, activations are not.

    `per_channel`: each output channel's weights have a scale of their own. `calibration`: the
    ranges of activations are what was seen ("minmax"), or without the outermost hundredth of a per
    cent of it ("percentile"); "dynamic": each input has ranges of its own, and no layer but those
    with weights is quantised. `inputs`: taken from all calibration inputs, or from every second one
    ("even", "odd"). `unsigned`: weights are uint8, with "dynamic" alone.
    """

    name: str
    per_channel: bool
    calibration: str = "minmax"
    inputs: str = "all"
    unsigned: bool = False


RECIPES = (
    Recipe("int8-per-channel-a", per_channel=True, inputs="even"),
    Recipe("int8-per-channel-b", per_channel=True, inputs="odd"),
    Recipe("int8-per-channel-percentile", per_channel=True, calibration="percentile"),
    Recipe("int8-per-tensor-a", per_channel=False, inputs="even"),
    Recipe("int8-per-tensor-b", per_channel=False, inputs="odd"),
    Recipe("int8-per-tensor-percentile", per_channel=False, calibration="percentile"),
    Recipe("int8-dynamic", per_channel=False, calibration="dynamic"),
    Recipe("int8-dynamic-unsigned", per_channel=False, calibration="dynamic", unsigned=True),
)
"""The references of ``--reference int8``: what careful users of a quantiser choose between."""

DYNAMIC = frozenset(one.name for one in RECIPES if one.calibration == "dynamic")
"""Names of those whose activations have a range for each input.

They may drift much farther than the static ones, or less. So they explain a deployed model's drift,
but how much more a healthy model may drift is taken from the static ones.
"""


def check_quantizable(original: Path) -> None:
    """Raise UsageError where no int8 model can be made from this float model on this host."""
    if original.suffix.lower() != ".onnx":
        raise UsageError(
            f"healthy int8 references are made from ONNX models, and {original.name} is none; "
            "search a deployment that you trust with the same original, seeds and --seed, and name "
            "its campaign: --reference CAMPAIGN"
        )
    if find_spec("onnx") is None:
        raise UsageError(
            "making int8 references needs onnx; install it with `pip install 'edgeflare[bench]'`"
        )


def calibration_inputs(samples: Sequence[Sample], spec: Spec) -> list[NDArray[Any]]:
    """Return the tensors of at most `CALIBRATED_ON` samples, evenly spread over all of them.

    `spec` is the original's input, so that a sample is prepared as for the original itself.
    """
    count = min(len(samples), CALIBRATED_ON)
    return [prepare(samples[place * len(samples) // count], spec) for place in range(count)]


def make_references(
    original: Path,
    inputs: Sequence[NDArray[Any]],
    folder: Path,
    tell: Callable[[str, str], None] | None = None,
) -> dict[str, Path]:
    """Make healthy int8 models of a float ONNX model; return their files in `folder` by name.

    `tell` gets each recipe's name when it is done, and why it could not be made ("": it was).

    `inputs` are tensors of the model's one input, from `calibration_inputs`. A file's name ends
    with a digest of the original, the recipe, the calibration inputs and the libraries' versions; a
    file that is there is not made again. The same digest stands for the same weights and scales.

    Raises UsageError as `check_quantizable`, and for fewer than two inputs; ModelError where the
    quantiser fails for every recipe; OSError where `folder` can't be written.
    """
    check_quantizable(original)
    if len(inputs) < 2:
        raise UsageError(
            "int8 references are calibrated on seed inputs, and there are fewer than two; add seeds"
        )
    content = original.read_bytes()
    common = hashlib.sha256(content)
    for tensor in inputs:
        common.update(f"{tensor.dtype.str}{tensor.shape}".encode())
        common.update(np.ascontiguousarray(tensor).tobytes())
    made: dict[str, Path] = {}
    problems: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    for recipe in RECIPES:
        path = folder / f"{recipe.name}-{_digest(common.digest(), recipe)}.onnx"
        problem = "" if path.is_file() else _make(original, recipe, inputs, path)
        if problem:
            problems.append(problem)
        else:
            made[recipe.name] = path
        if tell is not None:
            tell(recipe.name, problem)
    if not made:
        raise ModelError(
            f"onnxruntime can't quantise {original}: {problems[0]}; name the campaign of a "
            "deployment that you trust instead: --reference CAMPAIGN"
        )
    return made


def _digest(common: bytes, recipe: Recipe) -> str:
    import onnx
    import onnxruntime

    about = [_VERSION, list(recipe), onnx.__version__, onnxruntime.__version__]
    return hashlib.sha256(common + json.dumps(about).encode()).hexdigest()[:_DIGITS]


def _make(original: Path, recipe: Recipe, inputs: Sequence[NDArray[Any]], path: Path) -> str:
    """Make one file, in a process of its own, since the quantiser prints and may crash.

    Return "", or why it could not be made.
    """
    with tempfile.TemporaryDirectory(prefix="edgeflare-int8-") as name:
        work = Path(name)
        np.savez(work / "inputs.npz", *_selected(inputs, recipe.inputs))
        request = {"original": str(original), "folder": name, "recipe": recipe._asdict()}
        command = [sys.executable, "-c", _CHILD, json.dumps(request), *filter(None, sys.path)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode or not (work / _MADE).is_file():
            printed = done.stdout.decode(errors="replace").strip()[-_LAST_CHARACTERS:]
            return printed.splitlines()[-1] if printed else f"it ended with {done.returncode}"
        with replacing(path) as file:
            file.write((work / _MADE).read_bytes())
    return ""


def _selected(inputs: Sequence[NDArray[Any]], which: str) -> Sequence[NDArray[Any]]:
    return {"all": inputs, "even": inputs[::2], "odd": inputs[1::2]}[which]


# In the process of its own

_MADE = "int8.onnx"
_OLDEST_OPSET = 13
"""From here on QuantizeLinear and DequantizeLinear know channels."""
_PERCENTILE = 99.99


class _Reader:
    """Gives the quantiser its inputs; one pass."""

    def __init__(self, name: str, inputs: Sequence[NDArray[Any]]) -> None:
        self._feeds: Iterator[Mapping[str, NDArray[Any]]] = iter([{name: one} for one in inputs])

    def get_next(self) -> Mapping[str, NDArray[Any]] | None:
        """Return the next input, None at the end."""
        return next(self._feeds, None)


def quantize_here(request: str) -> None:
    """Quantise in this process, as `make_references` asks for in JSON; write the file."""
    import_module("onnxruntime").set_default_logger_severity(_SEVERITY_ERROR)
    asked = json.loads(request)
    folder = Path(asked["folder"])
    with np.load(folder / "inputs.npz") as stored:
        inputs = [stored[name] for name in stored.files]
    onnx = import_module("onnx")
    original = onnx.load_model(asked["original"])
    made = quantized(original, Recipe(**asked["recipe"]), inputs)
    options = {"providers": ["CPUExecutionProvider"]}
    opened = import_module("onnxruntime").InferenceSession(made.SerializeToString(), **options)
    opened.run(None, {_input_name(original): inputs[0]})  # some quantised layers have no kernel
    onnx.save_model(made, folder / _MADE)


def quantized(model: Any, recipe: Recipe, inputs: Sequence[NDArray[Any]]) -> Any:
    """Return an int8 model of a float `onnx.ModelProto`, in this process; the quantiser prints.

    `inputs` are the tensors that it is calibrated on, none for "dynamic".
    """
    quantization: Any = import_module("onnxruntime.quantization")
    onnx = import_module("onnx")
    int8 = quantization.QuantType.QUInt8 if recipe.unsigned else quantization.QuantType.QInt8
    with tempfile.TemporaryDirectory(prefix="edgeflare-int8-") as folder:
        plain, prepared, made = (Path(folder) / name for name in ("plain", "prepared", "made"))
        onnx.save_model(_with_channel_scales(model), plain)
        quantization.quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        if recipe.calibration == "dynamic":
            quantization.quantize_dynamic(prepared, made, weight_type=int8)
            return onnx.load_model(made)
        percentile = recipe.calibration == "percentile"
        methods = quantization.CalibrationMethod
        quantization.quantize_static(
            prepared,
            made,
            _Reader(_input_name(model), inputs),
            per_channel=recipe.per_channel,
            activation_type=int8,
            weight_type=int8,
            calibrate_method=methods.Percentile if percentile else methods.MinMax,
            extra_options={"CalibPercentile": _PERCENTILE} if percentile else {},
        )
        return onnx.load_model(made)


def _with_channel_scales(model: Any) -> Any:
    """Return the model, in an operator set that has scales for each channel."""
    import onnx

    versions = {one.domain: one.version for one in model.opset_import}
    if versions.get("", _OLDEST_OPSET) < _OLDEST_OPSET:
        model = onnx.version_converter.convert_version(model, _OLDEST_OPSET)
    return model


def _input_name(model: Any) -> str:
    """Return the name of the one input that is no weight."""
    weights = {one.name for one in model.graph.initializer}
    return str(next(one.name for one in model.graph.input if one.name not in weights))
