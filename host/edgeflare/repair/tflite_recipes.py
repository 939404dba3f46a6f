"""TFLite candidates: ai-edge-quantizer, in a Python environment of its own.

The quantiser needs one version of the LiteRT runtime exactly. That the host's own never changes with
it, an environment in the user's cache folder has both. A recipe is a script: the one that is written
for the user makes the candidate, too.
"""

import hashlib
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from edgeflare._internal.files import cache_folder, make_folder, replacing
from edgeflare._internal.processes import how_it_failed, run_again_where_killed
from edgeflare.errors import HostError, ModelError, UsageError
from edgeflare.models.quantized import content_digest

QUANTIZER = "ai-edge-quantizer"
VERSION = "0.10.0"
"""The version that is installed; a Python that the user names may have another."""
_KEY = "serving_default"
_DIGITS = 12
_INSTALL_S = 1200
_MAKE_S = 1800
_LAST_CHARACTERS = 600
_READY = "ready"


class TFLiteRecipe(NamedTuple):
    """How a model is quantised: `function` of ``ai_edge_quantizer.recipe``.

    The operators that make one of the tensors `in_float` are not quantised.
    """

    name: str
    function: str
    in_float: tuple[str, ...] = ()


TFLITE_RECIPES = (
    TFLiteRecipe("int8", "static_wi8_ai8"),
    TFLiteRecipe("int16-activations", "static_wi8_ai16"),
    TFLiteRecipe("int8-dynamic", "dynamic_wi8_afp32"),
    TFLiteRecipe("int8-weights", "weight_only_wi8_afp32"),
)
"""All have a scale for each output channel of the weights."""


def find_quantizer(python: Path | None = None) -> tuple[Path, str]:
    """Return `python`, which must have ai-edge-quantizer, or that of an environment made for it.

    With it comes the quantiser's version.
    The environment is kept in ``$XDG_CACHE_HOME/edgeflare``. Raises UsageError where it can't be
    installed and where `python` hasn't the quantiser, HostError where no folder can be made.
    """
    if python is not None:
        version = _version(python)
        if version is None:
            raise UsageError(
                f"{python} has no {QUANTIZER}: install it there (`{python} -m pip install "
                f"{QUANTIZER}=={VERSION}`), or leave out --quantizer-python"
            )
        return python, version
    folder = cache_folder() / f"{QUANTIZER}-{VERSION}-python{sys.version_info.minor}"
    found = folder / "bin" / "python"
    try:
        make_folder(folder.parent)
        with FileLock(f"{folder}.lock"):
            if not (folder / _READY).is_file() or _version(found) is None:
                _install(folder, found)
    except OSError as error:
        raise HostError(f"{folder} can't be made: {error.strerror or error}") from error
    return found, VERSION


def _version(python: Path) -> str | None:
    code = f"from importlib.metadata import version; print(version({QUANTIZER!r}))"
    try:
        done = run_again_where_killed([str(python), "-I", "-c", code], 60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode().strip()


def _install(folder: Path, python: Path) -> None:
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", f"{QUANTIZER}=={VERSION}"],
    ):
        try:
            done = run_again_where_killed(command, _INSTALL_S)
            problem = _problem(done) if done.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
        if problem:
            raise UsageError(
                f"TFLite models are quantised by {QUANTIZER} {VERSION}, and pip can't install it "
                f"into {folder} ({problem}): run this again with a network, or name a Python that "
                "has it: --quantizer-python PATH"
            )
    (folder / _READY).touch()


def _problem(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Return why a command failed: the last of pip's errors, or what killed it."""
    if done.returncode < 0:
        return how_it_failed(done)
    printed = done.stdout.decode(errors="replace")
    lines = [one.strip() for one in printed.splitlines() if one.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["nothing printed"])[-1][-_LAST_CHARACTERS:]


def make_tflite(
    original: Path,
    recipe: TFLiteRecipe,
    inputs: Sequence[NDArray[Any]],
    folder: Path,
    quantizer: tuple[Path, str],
) -> Path:
    """Quantise a float TFLite model; return the file in `folder`.

    `inputs` are tensors of its one input. The file's name ends with a digest of all that it is made
    of; one that is there is not made again. Raises ModelError where the quantiser can't, OSError.
    """
    about = json.dumps([list(recipe), quantizer[1]]).encode()
    digest = hashlib.sha256(content_digest(original, inputs) + about).hexdigest()[:_DIGITS]
    path = folder / f"{recipe.name}-{digest}.tflite"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="edgeflare-int8-") as name:
        work = Path(name)
        np.savez(work / "calibration.npz", *inputs)
        text = tflite_script(recipe, original, "calibration.npz", "made.tflite", quantizer[1])
        (work / "make.py").write_text(text, encoding="utf-8")
        try:
            done = run_again_where_killed([str(quantizer[0]), "-I", str(work / "make.py")], _MAKE_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ModelError(str(error)) from error
        if done.returncode or not (work / "made.tflite").is_file():
            raise ModelError(_problem(done))
        with replacing(path) as file:
            file.write((work / "made.tflite").read_bytes())
    return path


_SCRIPT = '''"""Makes {made} of {original}: recipe {name} of edgeflare repair.

Needs {quantizer} {version}, best in an environment of its own.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_quantizer import qtyping, quantizer, recipe
{functions}
HERE = Path(__file__).resolve().parent
ORIGINAL = {path}

model = bytearray(Path(ORIGINAL).read_bytes())
{steps}
(HERE / {made_file}).write_bytes(made)
'''

_KEEP_FLOAT = """for tensor in {tensors}:
    work.update_quantization_recipe(
        f"^{{re.escape(tensor)}};?$",
        qtyping.TFLOperationName.ALL_SUPPORTED,
        algorithm_key="no_quantize",
    )"""
_CALIBRATE = """stored = np.load(HERE / {stored})
inputs = [{{{input}: stored[one]}} for one in stored.files]
ranges = work.calibrate({{{key}: inputs}})
made = work.quantize(ranges).quantized_model"""


def tflite_script(
    recipe: TFLiteRecipe, original: Path, calibration: str, made: str, version: str
) -> str:
    """Return a Python script that quantises with ai-edge-quantizer alone.

    It reads `calibration`, an ``.npz`` of input tensors, and writes `made`, a file's name, both beside
    the script. Raises ModelError for an original that LiteRT can't read, or of several inputs.
    """
    key, inputs = _signature(original)
    steps = [f"work = quantizer.Quantizer(model, recipe.{recipe.function}())"]
    if recipe.in_float:
        steps.append(_KEEP_FLOAT.format(tensors=json.dumps(recipe.in_float)))
    if recipe.function.startswith("static"):
        names = {"stored": calibration, "input": inputs, "key": key or _KEY}
        quoted = {name: json.dumps(value) for name, value in names.items()}
        steps.append(_CALIBRATE.format(**quoted))
    else:
        steps.append("made = work.quantize().quantized_model")
    if not key:
        steps.insert(0, "model = with_signature(model)")
    source = "" if key else f"\n\n{inspect.getsource(with_signature)}\n"
    return _SCRIPT.format(
        made=made,
        original=original.name,
        name=recipe.name,
        quantizer=QUANTIZER,
        version=version,
        functions=source,
        path=repr(str(original)),
        steps="\n".join(steps),
        made_file=json.dumps(made),
    )


def _signature(original: Path) -> tuple[str, str]:
    """Return the key of a model's signature, "" without one, and the name of its one input."""
    library = import_module("ai_edge_litert.interpreter")
    try:
        interpreter = library.Interpreter(str(original))
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"{original.name} is no TFLite file that can be read: {error}") from error
    signatures = interpreter.get_signature_list()
    key = next(iter(signatures), "")
    names = signatures[key]["inputs"] if key else [interpreter.get_input_details()[0]["name"]]
    if len(interpreter.get_input_details()) != 1:
        raise ModelError(f"{original.name} has several inputs; only models of one are quantised")
    return key, str(names[0])


def with_signature(content: bytearray) -> bytearray:
    """Return a TFLite model, of a file without signatures, with one that has all inputs and outputs."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    graph = model.subgraphs[0]

    def named(indices: Any) -> list[Any]:
        found = []
        for index in indices:
            tensor = schema.TensorMapT()
            tensor.name, tensor.tensorIndex = graph.tensors[index].name, int(index)
            found.append(tensor)
        return found

    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = "serving_default", 0
    signature.inputs, signature.outputs = named(graph.inputs), named(graph.outputs)
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytearray(builder.Output())
