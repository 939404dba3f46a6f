"""Quantised models of an original, made on the host by onnxruntime's own quantiser.

The healthy int8 references of a survey tell what quantisation alone does to a model; the recipes of a
repair are candidates for deployment. The original's file is only read.
"""

import hashlib
import inspect
import json
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare._internal.files import replacing
from edgeflare._internal.processes import how_it_failed, python_calling, run_again_where_killed
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


class Recipe(NamedTuple):
    """How a model is quantised to int8; weights are symmetric, activations are not.

    `per_channel`: each output channel's weights have a scale of their own. `calibration`: the
    ranges of activations are what was seen ("minmax"), or without the outermost hundredth of a per
    cent of it ("percentile"), or those that keep most information ("entropy"); "dynamic": each
    input has ranges of its own, and no layer but those with weights is quantised; "none": only
    weights are quantised, and are brought to floats again before they are used. `inputs`: taken
    from all calibration inputs, or from every second one ("even", "odd"). `unsigned`: weights are
    uint8, with "dynamic" alone. `wide`: activations have 16 bits, of static ones alone. The
    operators that make one of the tensors `in_float`, by their names in the original, are not
    quantised.
    """

    name: str
    per_channel: bool
    calibration: str = "minmax"
    inputs: str = "all"
    unsigned: bool = False
    wide: bool = False
    in_float: tuple[str, ...] = ()


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


def check_quantizable(original: Path, made: str = "int8 references") -> None:
    """Raise UsageError where no int8 model, which is `made`, can be made from this float model."""
    if original.suffix.lower() != ".onnx":
        raise UsageError(
            f"healthy int8 references are made from ONNX models, and {original.name} is none; "
            "search a deployment that you trust with the same original, seeds and --seed, and name "
            "its campaign: --reference CAMPAIGN"
        )
    extras.onnx(f"making {made}")
    if (count := _inputs_in(original)) > 1:
        raise UsageError(
            f"{original.name} has {count} inputs, and {made} are calibrated for models with one; "
            "leave them out"
        )


def _inputs_in(original: Path) -> int:
    """Return how many inputs an ONNX file has; 0 for a file that can't be read."""
    import onnx

    try:
        graph = onnx.load(str(original), load_external_data=False).graph
    except Exception:  # noqa: BLE001  what is wrong with it is told where it is loaded
        return 0
    return len({one.name for one in graph.input} - {one.name for one in graph.initializer})


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
    `inputs` are tensors of the model's one input, from `calibration_inputs`.

    Raises UsageError as `check_quantizable`, and for fewer than two inputs; ModelError where the
    quantiser fails for every recipe; OSError where `folder` can't be written.
    """
    check_quantizable(original)
    if len(inputs) < 2:
        raise UsageError(
            "int8 references are calibrated on seed inputs, and there are fewer than two; add seeds"
        )
    problems: list[str] = []

    def told(name: str, problem: str) -> None:
        problems.extend([problem] if problem else [])
        if tell is not None:
            tell(name, problem)

    made = make_quantized(original, RECIPES, inputs, folder, told)
    if not made:
        raise ModelError(
            f"onnxruntime can't quantise {original}: {problems[0]}; name the campaign of a "
            "deployment that you trust instead: --reference CAMPAIGN"
        )
    return made


def make_quantized(
    original: Path,
    recipes: Sequence[Recipe],
    inputs: Sequence[NDArray[Any]],
    folder: Path,
    tell: Callable[[str, str], None],
) -> dict[str, Path]:
    """Quantise a float ONNX model by some recipes; return those files in `folder` that could be made.

    `tell` gets each recipe's name when it is done, and why it could not be made ("": it was).
    `inputs` are tensors of the model's one input. A file's name ends with a digest of the original,
    the recipe, the calibration inputs and the libraries' versions; a file that is there is not made
    again. The same digest stands for the same weights and scales. Raises OSError where `folder`
    can't be written.
    """
    common = content_digest(original, inputs)
    made: dict[str, Path] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for recipe in recipes:
        path = folder / f"{recipe.name}-{_digest(common, recipe)}.onnx"
        problem = "" if path.is_file() else _make(original, recipe, inputs, path)
        if not problem:
            made[recipe.name] = path
        tell(recipe.name, problem)
    return made


def content_digest(original: Path, inputs: Sequence[NDArray[Any]]) -> bytes:
    """Return the SHA-256 of a model's file, the files with its weights, and its calibration inputs."""
    common = hashlib.sha256(original.read_bytes())
    for name in _weight_files(original):
        common.update((original.parent / name).read_bytes())
    for tensor in inputs:
        common.update(f"{tensor.dtype.str}{tensor.shape}".encode())
        common.update(np.ascontiguousarray(tensor).tobytes())
    return common.digest()


def _weight_files(original: Path) -> list[str]:
    """Return the names of the files beside an ONNX model that have some of its weights."""
    if original.suffix.lower() != ".onnx":
        return []
    onnx = import_module("onnx")
    weights = onnx.load_model(str(original), load_external_data=False).graph.initializer
    entries = (entry for weight in weights for entry in weight.external_data)
    return sorted({str(one.value) for one in entries if one.key == "location"})


def _digest(common: bytes, recipe: Recipe) -> str:
    import onnx
    import onnxruntime

    about = [_VERSION, recipe_key(recipe), onnx.__version__, onnxruntime.__version__]
    return hashlib.sha256(common + json.dumps(about).encode()).hexdigest()[:_DIGITS]


def recipe_key(recipe: Recipe) -> list[Any]:
    """Return what tells a recipe from others; of one without newer fields it is what it always was."""
    values = list(recipe)
    first_of_newer = Recipe._fields.index("wide")
    return values if any(values[first_of_newer:]) else values[:first_of_newer]


def _make(original: Path, recipe: Recipe, inputs: Sequence[NDArray[Any]], path: Path) -> str:
    """Make one file, in a process of its own, since the quantiser prints and may crash.

    Return "", or why it could not be made.
    """
    with tempfile.TemporaryDirectory(prefix="edgeflare-int8-") as name:
        work = Path(name)
        np.savez(work / "inputs.npz", *_selected(inputs, recipe.inputs))
        request = {"original": str(original), "folder": name, "recipe": recipe._asdict()}
        command = python_calling(quantize_here, json.dumps(request))
        try:
            done = run_again_where_killed(command, _TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode or not (work / _MADE).is_file():
            return how_it_failed(done)[-_LAST_CHARACTERS:]
        with replacing(path) as file:
            file.write((work / _MADE).read_bytes())
    return ""


def _selected(inputs: Sequence[NDArray[Any]], which: str) -> Sequence[NDArray[Any]]:
    return {"all": inputs, "even": inputs[::2], "odd": inputs[1::2]}[which]


# In the process of its own

_MADE = "int8.onnx"
_OLDEST_OPSET = 13
"""From here on QuantizeLinear and DequantizeLinear know channels."""
_METHODS = {"minmax": "MinMax", "percentile": "Percentile", "entropy": "Entropy"}
_PERCENTILE = 99.99


class Inputs:
    """Calibration inputs for the quantiser; one pass."""

    def __init__(self, name: str, inputs: Sequence[Any]) -> None:
        self._feeds = iter([{name: one} for one in inputs])

    def get_next(self) -> Mapping[str, Any] | None:
        """Return the next input, None at the end."""
        return next(self._feeds, None)


def quantize_here(request: str) -> None:
    """Quantise in this process, as `make_references` asks for in JSON; write the file."""
    import_module("onnxruntime").set_default_logger_severity(_SEVERITY_ERROR)
    asked = json.loads(request)
    recipe = {**asked["recipe"], "in_float": tuple(asked["recipe"]["in_float"])}
    folder = Path(asked["folder"])
    with np.load(folder / "inputs.npz") as stored:
        inputs = [stored[name] for name in stored.files]
    onnx = import_module("onnx")
    original = onnx.load_model(asked["original"])
    made = quantized(original, Recipe(**recipe), inputs)
    options = {"providers": ["CPUExecutionProvider"]}
    opened = import_module("onnxruntime").InferenceSession(made.SerializeToString(), **options)
    opened.run(None, {_input_name(original): inputs[0]})  # some quantised layers have no kernel
    onnx.save_model(made, folder / _MADE)


def quantized(model: Any, recipe: Recipe, inputs: Sequence[NDArray[Any]]) -> Any:
    """Return a quantised model of a float `onnx.ModelProto`, in this process; the quantiser prints.

    `inputs` are the tensors that it is calibrated on, none for "dynamic" and "none".
    """
    quantization: Any = import_module("onnxruntime.quantization")
    onnx = import_module("onnx")
    function, arguments = quantizer_call(recipe)
    for name, kind in _ENUMERATIONS.items():
        if name in arguments:
            arguments[name] = getattr(getattr(quantization, kind), arguments[name])
    with tempfile.TemporaryDirectory(prefix="edgeflare-int8-") as folder:
        plain, prepared, made = (Path(folder) / name for name in ("plain", "prepared", "made"))
        onnx.save_model(_with_channel_scales(model), plain)
        quantization.quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        if function == "weights_in_int8":
            return weights_in_int8(onnx.load(prepared))
        if recipe.in_float:
            arguments["nodes_to_exclude"] = operators_making(recipe.in_float, str(prepared))
        if function == "quantize_dynamic":
            quantization.quantize_dynamic(prepared, made, **arguments)
        else:
            reader = Inputs(_input_name(model), inputs)
            quantization.quantize_static(prepared, made, reader, **arguments)
        return onnx.load_model(made)


_ENUMERATIONS = {
    "activation_type": "QuantType",
    "weight_type": "QuantType",
    "calibrate_method": "CalibrationMethod",
}


def quantizer_call(recipe: Recipe) -> tuple[str, dict[str, Any]]:
    """Return the function that quantises by a recipe, and its arguments; enumerations by names."""
    if recipe.calibration == "none":
        return "weights_in_int8", {}
    weights = "QUInt8" if recipe.unsigned else "QInt8"
    if recipe.calibration == "dynamic":
        return "quantize_dynamic", {"weight_type": weights}
    options: dict[str, Any] = {}
    if recipe.calibration == "percentile":
        options["CalibPercentile"] = _PERCENTILE
    if recipe.wide:
        options["UseQDQContribOps"] = True
    return "quantize_static", {
        "per_channel": recipe.per_channel,
        "activation_type": "QInt16" if recipe.wide else weights,
        "weight_type": weights,
        "calibrate_method": _METHODS[recipe.calibration],
        "extra_options": options,
    }


def operators_making(tensors: Collection[str], path: str) -> list[str]:
    """Name all operators of an ONNX file, and return those that make one of the tensors."""
    import onnx

    model = onnx.load(path)
    for number, node in enumerate(model.graph.node):
        node.name = f"operator {number}"
    onnx.save_model(model, path)
    found = [one.name for one in model.graph.node if not set(tensors).isdisjoint(one.output)]
    if not found:
        raise ValueError(f"no operator makes one of {', '.join(tensors)} once others are fused")
    return found


def weights_in_int8(model: Any) -> Any:
    """Hold the weights of an `onnx.ModelProto` as int8, each output channel's on a scale of its own."""
    import numpy as np
    import onnx

    def used(graph: Any) -> set[str]:
        graphs = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
        own = {name for node in graph.node for name in node.input}
        return own.union((one.name for one in graph.output), *map(used, graphs))

    graph = model.graph
    floats = {one.name: one for one in graph.initializer}
    places = {"Conv": 0, "MatMul": -1, "Gemm": -1}
    made, nodes = set(), []
    for node in graph.node:
        axis, weights = places.get(node.op_type), floats.get([*node.input, "", ""][1])
        if axis is None or weights is None or len(weights.dims) < 2:
            continue
        if any(one.name == "transB" and one.i for one in node.attribute):
            axis = 0
        values = onnx.numpy_helper.to_array(weights)
        axis %= values.ndim
        name = f"{weights.name}, channels {axis}"
        node.input[1] = name
        if name in made:
            continue
        made.add(name)
        others = tuple(one for one in range(values.ndim) if one != axis)
        scale = np.maximum(np.abs(values).max(axis=others, keepdims=True) / 127, 1e-12)
        integers = np.round(values / scale).astype(np.int8)
        held = {"scale": scale.ravel().astype(np.float32), "int8": integers}
        for what, array in held.items():
            graph.initializer.append(onnx.numpy_helper.from_array(array, f"{name}, {what}"))
        inputs = [f"{name}, int8", f"{name}, scale"]
        nodes.append(onnx.helper.make_node("DequantizeLinear", inputs, [name], axis=axis))
    ordered = [*nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(ordered)
    for name in floats.keys() - used(graph):
        graph.initializer.remove(floats[name])
        for given in [one for one in graph.input if one.name == name]:  # of old files
            graph.input.remove(given)
    return model


def _with_channel_scales(model: Any) -> Any:
    """Return the model, in an operator set that has scales for each channel."""
    import onnx

    if _is_old(model):
        model = onnx.version_converter.convert_version(model, _OLDEST_OPSET)
    return model


def _is_old(model: Any) -> bool:
    versions = {one.domain: one.version for one in model.opset_import}
    return bool(versions.get("", _OLDEST_OPSET) < _OLDEST_OPSET)


def _input_name(model: Any) -> str:
    """Return the name of the one input that is no weight."""
    weights = {one.name for one in model.graph.initializer}
    return str(next(one.name for one in model.graph.input if one.name not in weights))


# A recipe as a script

_SCRIPT = '''"""Makes {made} of {original}: recipe {name} of edgeflare repair.

Run by onnxruntime {version} when it was written. Needs onnx and onnxruntime.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime import quantization
{functions}
HERE = Path(__file__).resolve().parent
ORIGINAL = {path}

model = onnx.load(ORIGINAL){converted}
onnx.save_model(model, HERE / "prepared.onnx")
quantization.quant_pre_process(
    HERE / "prepared.onnx", HERE / "prepared.onnx", skip_symbolic_shape=True
)
{steps}(HERE / "prepared.onnx").unlink()
'''
_IN_FLOAT = """\
    nodes_to_exclude=operators_making({}, str(HERE / "prepared.onnx")),
"""
_STEPS = {
    "weights_in_int8": """\
model = weights_in_int8(onnx.load(HERE / "prepared.onnx"))
onnx.save_model(model, HERE / {made})
""",
    "quantize_dynamic": """\
quantization.quantize_dynamic(
    HERE / "prepared.onnx",
    HERE / {made},
{arguments})
""",
    "quantize_static": """\
stored = np.load(HERE / {stored})
inputs = Inputs({input}, [stored[one] for one in stored.files])
quantization.quantize_static(
    HERE / "prepared.onnx",
    HERE / {made},
    inputs,
{arguments})
""",
}


def script_of(recipe: Recipe, original: Path, calibration: str, made: str) -> str:
    """Return a Python script that quantises as `quantized` does, with the libraries alone.

    It reads `calibration`, an ``.npz`` of input tensors, and writes `made`, a file's name, both beside
    the script.
    """
    onnx = import_module("onnx")
    model = onnx.load_model(str(original), load_external_data=False)
    function, arguments = quantizer_call(recipe)
    lines = [
        f"    {name}={_in_script(name, value)},\n"
        for name, value in arguments.items()
        if value != {}
    ]
    if recipe.in_float:
        lines.append(_IN_FLOAT.format(json.dumps(recipe.in_float)))
    names = {"made": made, "stored": calibration, "input": _input_name(model)}
    quoted = {name: json.dumps(value) for name, value in names.items()}
    steps = _STEPS[function].format(arguments="".join(lines), **quoted)
    ours: tuple[Callable[..., Any], ...] = (operators_making, weights_in_int8, Inputs)
    called = [one for one in ours if f"{one.__name__}(" in steps]
    sources = "".join(f"\n\n{inspect.getsource(one)}" for one in called)
    version = import_module("onnxruntime").__version__
    is_old = _is_old(model)
    convert = f"\nmodel = onnx.version_converter.convert_version(model, {_OLDEST_OPSET})"
    return _SCRIPT.format(
        made=made,
        original=original.name,
        name=recipe.name,
        version=version,
        functions=f"{sources}\n" if sources else "",
        path=repr(str(original)),
        converted=convert if is_old else "",
        steps=steps,
    )


def _in_script(name: str, value: Any) -> str:
    kind = _ENUMERATIONS.get(name)
    return f"quantization.{kind}.{value}" if kind else repr(value)
