"""Tool chains that compress or convert an original, each by the recipe of its own documentation.

What a tool chain needs beyond the project's own dependencies is imported when it is used.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare_bench.everyday.originals import SEED, parts
from edgeflare_bench.everyday.records import EverydayOriginal

_CALIBRATED_ON = 100
"""Inputs of a calibration set, as TensorFlow's and NNCF's guides have it."""
Feed = dict[str, NDArray[np.float32]]
Make = Callable[[EverydayOriginal, Path], None]


@dataclass(frozen=True)
class ToolChain:
    """A tool chain: modules that it needs, and its variants, each of which writes one file.

    `of_program`: the original is PyTorch's exported program, not the ONNX file.
    """

    name: str
    needs: tuple[str, ...]
    suffix: str
    variants: Mapping[str, Make]
    of_program: bool = False

    @property
    def missing(self) -> list[str]:
        """The modules that aren't installed."""
        return [module for module in self.needs if find_spec(module) is None]


def _feeds(original: EverydayOriginal, number: int) -> Iterator[Feed]:
    """Yield the inputs of a calibration set, by names of the original's inputs."""
    rng = np.random.default_rng([SEED, number])
    names = [info.name for info in original.model.graph.input]
    for place in rng.permutation(len(original.calibration))[:_CALIBRATED_ON]:
        batch = original.calibration[place][None]
        yield dict(zip(names, parts(original.name, batch), strict=True))


# ONNX Runtime


class _Reader:
    """Calibration inputs as ONNX Runtime reads them."""

    def __init__(self, feeds: Iterator[Feed]) -> None:
        self._feeds = feeds

    def get_next(self) -> Feed | None:
        """Return the next input, None at the end."""
        return next(self._feeds, None)


def _static(
    original: EverydayOriginal, path: Path, calibration: int, form: str = "QDQ", **more: Any
) -> None:
    """Quantise as ONNX Runtime's guide says: prepared, calibrated, signed weights."""
    quantization: Any = import_module("onnxruntime.quantization")
    kinds = {"calibrate_method": "CalibrationMethod", "activation_type": "QuantType"}
    options = {
        "weight_type": quantization.QuantType.QInt8,
        "activation_type": quantization.QuantType.QInt8,
        **{
            key: getattr(getattr(quantization, kinds[key]), value) if key in kinds else value
            for key, value in more.items()
        },
    }
    quantization.quantize_static(
        _prepared(original, path),
        path,
        _Reader(_feeds(original, calibration)),
        quant_format=getattr(quantization.QuantFormat, form),
        **options,
    )


def _prepared(original: EverydayOriginal, path: Path) -> Path:
    prepared = path.parents[1] / "prepared.onnx"
    if not prepared.is_file():
        quantization: Any = import_module("onnxruntime.quantization")
        quantization.quant_pre_process(original.path, prepared, skip_symbolic_shape=True)
    return prepared


def _dynamic(original: EverydayOriginal, path: Path, weights: str, per_channel: bool) -> None:
    quantization: Any = import_module("onnxruntime.quantization")
    kind = getattr(quantization.QuantType, weights)
    prepared = _prepared(original, path)
    quantization.quantize_dynamic(prepared, path, weight_type=kind, per_channel=per_channel)


def _optimised(original: EverydayOriginal, path: Path, level: str) -> None:
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path)
    runtime.InferenceSession(str(original.path), options, providers=["CPUExecutionProvider"])


# Tools for ONNX graphs


def _half(original: EverydayOriginal, path: Path, keep: bool) -> None:
    module: Any = import_module("onnxconverter_common.float16")
    converted = module.convert_float_to_float16(original.model, keep_io_types=keep)
    extras.onnx().save_model(converted, path)


def _onnxsim(original: EverydayOriginal, path: Path) -> None:
    converted, is_same = import_module("onnxsim").simplify(original.model)
    if not is_same:
        raise ValueError("onnxsim found the simplified model to differ")
    extras.onnx().save_model(converted, path)


def _onnxslim(original: EverydayOriginal, path: Path) -> None:
    extras.onnx().save_model(import_module("onnxslim").slim(str(original.path)), path)


def _nncf(original: EverydayOriginal, path: Path, calibration: int, **options: Any) -> None:
    nncf: Any = import_module("nncf")
    preset = getattr(nncf.QuantizationPreset, options.pop("preset"))
    data = nncf.Dataset(list(_feeds(original, calibration)))
    converted = nncf.quantize(
        original.model, data, preset=preset, subset_size=_CALIBRATED_ON, **options
    )
    extras.onnx().save_model(converted, path)


# TensorFlow and LiteRT


_TRIED_ON = "calibration_image_sample_data_20x128x128x3_float32.npy"
"""Images that onnx2tf tries its conversion on; it downloads them where the working folder has none."""


def _converted(original: EverydayOriginal, path: Path) -> Path:
    """Return the folder in which onnx2tf writes a SavedModel and float TFLite files."""
    folder = path.parents[1].absolute() / "onnx2tf work"
    if not (folder / f"{original.name}_float32.tflite").is_file():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        source, before = original.path.absolute(), Path.cwd()
        is_nhwc = original.input.get("layout") == "HWC"
        folder.mkdir(exist_ok=True)
        images = np.random.default_rng(SEED).random((20, 128, 128, 3), np.float32)
        np.save(folder / _TRIED_ON, images)
        os.chdir(folder)
        try:
            import_module("onnx2tf").convert(
                str(source),
                output_folder_path=str(folder),
                output_signaturedefs=True,
                copy_onnx_input_output_names_to_tflite=True,
                keep_shape_absolutely_input_names=["image"] if is_nhwc else None,
                non_verbose=True,
            )
        finally:
            os.chdir(before)
    return folder


def _onnx2tf(original: EverydayOriginal, path: Path, form: str) -> None:
    shutil.copy(_converted(original, path) / f"{original.name}_{form}.tflite", path)


def _converter(original: EverydayOriginal, path: Path) -> Any:
    lite: Any = import_module("tensorflow").lite
    return lite.TFLiteConverter.from_saved_model(str(_converted(original, path)))


def _with_signature(original: EverydayOriginal, path: Path) -> Path:
    """Return a float TFLite file that tells the names of its inputs, which onnx2tf's own doesn't."""
    model = _converted(original, path) / "with signature.tflite"
    if not model.is_file():
        model.write_bytes(_converter(original, path).convert())
    return model


def _tflite_feeds(original: EverydayOriginal, number: int, model: Path) -> Iterator[Feed]:
    """Yield a calibration set as a TFLite file takes it: by its names, in its order of axes."""
    opened = import_module("ai_edge_litert.interpreter").Interpreter(str(model))
    inputs = opened.get_signature_runner().get_input_details()
    for feed in _feeds(original, number):
        yield {
            name: values
            if values.shape == tuple(inputs[name]["shape"])
            else values.transpose(0, 2, 3, 1)
            for name, values in feed.items()
        }


def _tensorflow(
    original: EverydayOriginal, path: Path, calibration: int | None = None, form: str = "int8"
) -> None:
    """Quantise as TensorFlow's guide on post-training quantisation says."""
    converter = _converter(original, path)
    tensorflow: Any = import_module("tensorflow")
    lite = tensorflow.lite
    converter.optimizations = [lite.Optimize.DEFAULT]
    if calibration is not None:
        model = _with_signature(original, path)
        converter.representative_dataset = partial(_tflite_feeds, original, calibration, model)
    if form == "full-int8":
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tensorflow.int8
    elif form == "int16x8":
        operators = lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [operators, lite.OpsSet.TFLITE_BUILTINS]
    path.write_bytes(converter.convert())


def _litert(original: EverydayOriginal, path: Path, recipe: str, calibration: int = 0) -> None:
    """Quantise with the AI Edge Quantizer, by one of its recipes."""
    model = _with_signature(original, path)
    recipes: Any = import_module("ai_edge_quantizer.recipe")
    quantizer = import_module("ai_edge_quantizer.quantizer").Quantizer(str(model))
    quantizer.load_quantization_recipe(getattr(recipes, recipe)())
    ranges = None
    if quantizer.need_calibration:
        feeds = list(_tflite_feeds(original, calibration, model))
        ranges = quantizer.calibrate({"serving_default": feeds}, num_threads=1)
    quantizer.quantize(ranges).export_model(str(path), overwrite=True)


def _exported(original: EverydayOriginal, path: Path) -> None:
    shutil.copy(original.path, path)


_PER_CHANNEL: dict[str, Any] = {"per_channel": True}
_PER_TENSOR: dict[str, Any] = {"per_channel": False}
_PERCENTILE: dict[str, Any] = {
    "calibrate_method": "Percentile",
    "extra_options": {"CalibPercentile": 99.99},
}
_UNSIGNED: dict[str, Any] = {"activation_type": "QUInt8"}
TOOL_CHAINS = (
    ToolChain(
        *("onnxruntime-qdq", (), ".onnx"),
        {
            **{f"channels-{n}": partial(_static, calibration=n, **_PER_CHANNEL) for n in range(3)},
            **{f"tensors-{n}": partial(_static, calibration=n, **_PER_TENSOR) for n in range(3)},
            "percentile": partial(_static, calibration=3, **_PER_CHANNEL, **_PERCENTILE),
            "uint8": partial(_static, calibration=4, **_PER_CHANNEL, **_UNSIGNED),
        },
    ),
    ToolChain(
        *("onnxruntime-qoperator", (), ".onnx"),
        {
            f"{kind}-{n}": partial(_static, calibration=n, form="QOperator", **_UNSIGNED, **option)
            for n, (kind, option) in enumerate(
                (("channels", _PER_CHANNEL), ("tensors", _PER_TENSOR))
            )
        },
    ),
    ToolChain(
        *("onnxruntime-dynamic", (), ".onnx"),
        {
            "int8": partial(_dynamic, weights="QInt8", per_channel=False),
            "uint8": partial(_dynamic, weights="QUInt8", per_channel=False),
            "channels": partial(_dynamic, weights="QInt8", per_channel=True),
        },
    ),
    ToolChain(
        *("onnxruntime-optimised", (), ".onnx"),
        {
            "basic": partial(_optimised, level="ORT_ENABLE_BASIC"),
            "extended": partial(_optimised, level="ORT_ENABLE_EXTENDED"),
        },
    ),
    ToolChain(
        *("float16", ("onnxconverter_common",), ".onnx"),
        {"float-inputs": partial(_half, keep=True), "half-inputs": partial(_half, keep=False)},
    ),
    ToolChain("onnxsim", ("onnxsim",), ".onnx", {"simplified": _onnxsim}),
    ToolChain("onnxslim", ("onnxslim",), ".onnx", {"slim": _onnxslim}),
    ToolChain(
        *("nncf", ("nncf",), ".onnx"),
        {
            "performance": partial(_nncf, calibration=0, preset="PERFORMANCE"),
            "mixed": partial(_nncf, calibration=1, preset="MIXED"),
            "bias": partial(_nncf, calibration=2, preset="MIXED", fast_bias_correction=False),
        },
    ),
    ToolChain(
        *("onnx2tf", ("onnx2tf", "tensorflow"), ".tflite"),
        {
            "float32": partial(_onnx2tf, form="float32"),
            "float16": partial(_onnx2tf, form="float16"),
        },
    ),
    ToolChain(
        *("tensorflow", ("onnx2tf", "tensorflow"), ".tflite"),
        {
            "dynamic": _tensorflow,
            "int8-0": partial(_tensorflow, calibration=0),
            "int8-1": partial(_tensorflow, calibration=1),
            "full-int8-0": partial(_tensorflow, calibration=0, form="full-int8"),
            "full-int8-1": partial(_tensorflow, calibration=1, form="full-int8"),
            "int16x8": partial(_tensorflow, calibration=2, form="int16x8"),
        },
    ),
    ToolChain(
        *("litert", ("ai_edge_quantizer", "onnx2tf", "tensorflow"), ".tflite"),
        {
            "dynamic": partial(_litert, recipe="dynamic_wi8_afp32"),
            "weights": partial(_litert, recipe="weight_only_wi8_afp32"),
            "int8-0": partial(_litert, recipe="static_wi8_ai8"),
            "int8-1": partial(_litert, recipe="static_wi8_ai8", calibration=1),
            "int16": partial(_litert, recipe="static_wi8_ai16"),
        },
    ),
    ToolChain(
        *("torch", ("torch",), ".onnx"),
        {
            "exported": _exported,
            "int8": partial(_static, calibration=5, **_PER_CHANNEL),
        },
        of_program=True,
    ),
)
"""The tool chains, and all variants of each."""
