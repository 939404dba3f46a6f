"""What a model's file, the files beside it and its first operators tell of how it is fed."""

import json
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from onnx import TensorProto, helper
from small_models import TFLITE, save_onnx

from edgeflare.campaign.pair.inputs import resolve_inputs
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.errors import EdgeFlareError
from edgeflare.models import InputOptions, TensorInfo
from edgeflare.models.first_operators import FirstOperators, fed_by, operators_at
from edgeflare.models.inferred_input import Inference, InputFile, alike, infer_input
from edgeflare.models.input_metadata import packed_metadata
from edgeflare.models.tensors.open import open_structure
from edgeflare.models.usual_inputs import values_of

NOTHING = InputOptions()
RAW, UNIT = InputOptions(scale=1), InputOptions(scale="1/255")
SIGNED = InputOptions(mean=(127.5,), std=(127.5,))
IMAGENET = InputOptions(scale="1/255", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
ULTRALYTICS = {
    "description": "Ultralytics YOLOv8n model", "author": "Ultralytics", "stride": "32",
    "task": "detect", "imgsz": "[32, 48]", "names": "{0: 'cat', 1: 'dog'}",
}  # fmt: skip
HUGGING_FACE = {
    "do_normalize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_resize": True,
    "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
    "size": {"height": 8, "width": 8}, "resample": 2,
}  # fmt: skip
TIMM = {"pretrained_cfg": {
    "input_size": [3, 8, 8], "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
    "interpolation": "bicubic", "crop_pct": 0.95,
}}  # fmt: skip


def inferred(
    path: Path,
    runtime: str = "onnx",
    shape: tuple[int | None, ...] = (1, 3, 8, 8),
    metadata: dict[str, str] | None = None,
    dtype: str = "float32",
    quantization: Any = None,
    stated: InputOptions = NOTHING,
) -> Inference:
    tensor = TensorInfo("x", shape, dtype, quantization)
    return infer_input(InputFile(path, runtime, tensor, metadata or {}), stated, read_here)


def read_here(file: InputFile) -> FirstOperators | None:
    try:
        structure = open_structure(file.path, file.runtime, {})
    except EdgeFlareError:
        return None
    return operators_at(structure, file.tensor.name, file.channels)


def network(folder: Path, *before: Any, constants: Any = None, dtype: str = "float32") -> Path:
    """A convolution behind some operators, each of which makes "a1", "a2", ... of what is before it."""
    names = ["x", *(f"a{place}" for place in range(1, len(before) + 1))]
    nodes = [make(names[place], names[place + 1]) for place, make in enumerate(before)]
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    nodes.append(helper.make_node("Conv", [names[-1], "w"], ["y"], "conv"))
    types = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8}
    return save_onnx(
        folder / "net.onnx",
        nodes,
        [helper.make_tensor_value_info("x", types[dtype], [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        {"w": weights, **(constants or {})},
    )


def operator(kind: str, *constants: str, **attributes: Any) -> Any:
    return lambda before, made: helper.make_node(
        kind, [before, *constants], [made], kind.lower(), **attributes
    )


def channels(*values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(-1, 1, 1)


SUB, DIV, MUL, ADD = (operator(kind, name) for kind, name in
                      (("Sub", "m"), ("Div", "s"), ("Mul", "f"), ("Add", "o")))  # fmt: skip


@pytest.mark.parametrize(
    ("before", "constants", "options"),
    [
        ((DIV,), {"s": np.float32(255)}, RAW),
        ((SUB, DIV), {"m": np.float32(127.5), "s": np.float32(127.5)}, RAW),
        ((SUB,), {"m": channels(123.68, 116.779, 103.939)}, RAW),
        (
            (SUB,),
            {"m": channels(103.939, 116.779, 123.68)},
            RAW.model_copy(update={"color": "BGR"}),
        ),
        (
            (SUB, DIV),
            {"m": channels(0.485, 0.456, 0.406), "s": channels(0.229, 0.224, 0.225)},
            UNIT,
        ),
        ((MUL,), {"f": np.float32(255)}, UNIT),
        ((MUL, ADD), {"f": np.float32(2), "o": np.float32(-1)}, UNIT),
        ((ADD, DIV), {"o": np.float32(1), "s": np.float32(2)}, SIGNED),
        ((ADD, MUL), {"o": np.float32(1), "f": np.float32(127.5)}, SIGNED),
    ],
)
def test_operators_that_normalise_tell_how_the_file_is_fed(tmp_path, before, constants, options):
    known = inferred(network(tmp_path, *before, constants=constants)).known
    assert known.source == "first-operators"
    assert alike(known.options, options)
    assert known.options.color == options.color
    assert len(known.names) == len(before)


@pytest.mark.parametrize(
    ("before", "constants"),
    [
        ((), {}),
        ((MUL,), {"f": np.float32(0.5)}),
        ((MUL,), {"f": np.float32(2)}),
        ((ADD,), {"o": np.float32(0.1)}),
        ((MUL, ADD), {"f": np.float32(4.2), "o": np.float32(-1.9)}),  # a folded normalisation
        ((MUL, ADD), {"f": channels(4.4, 4.5, 4.4), "o": channels(-0.1, 0.1, 0)}),
        ((operator("Relu"),), {}),
    ],
)
def test_operators_that_may_be_any_networks_tell_nothing(tmp_path, before, constants):
    assert inferred(network(tmp_path, *before, constants=constants)) == Inference()


@pytest.mark.parametrize(
    ("mean", "deviation", "options"), [(118.0, 62.0, RAW), (0.46, 0.25, None), (0.0, 1.0, None)]
)
def test_a_normalisation_of_batches_tells_pixels_alone(tmp_path, mean, deviation, options):
    names = ("scale", "shift", "means", "variances")
    values = (1.3, 0.2, mean, deviation**2)
    constants = {
        name: np.full(3, value, np.float32) for name, value in zip(names, values, strict=True)
    }
    known = inferred(
        network(tmp_path, operator("BatchNormalization", *names), constants=constants)
    ).known
    assert (known and known.options) == options


def test_an_input_of_unsigned_bytes_takes_pixels(tmp_path):
    cast = operator("Cast", to=TensorProto.FLOAT)
    path = network(tmp_path, cast, DIV, constants={"s": np.float32(255)}, dtype="uint8")
    known = inferred(path, dtype="uint8").known
    assert (known.source, known.options) == ("integer-pixels", RAW)


@pytest.mark.parametrize(
    ("quantization", "options"),
    [((1 / 255, -128), UNIT), ((1.0, -128), RAW), ((2 / 255, 0), SIGNED)],
)
def test_the_range_of_an_integer_input_is_the_first_that_counts(tmp_path, quantization, options):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(HUGGING_FACE))
    path = network(tmp_path)
    known = inferred(path, dtype="int8", quantization=quantization).known
    assert known.source == "quantisation"
    assert alike(known.options, options)


def test_metadata_of_ultralytics_say_pixels_divided_by_255(tmp_path):
    known = inferred(network(tmp_path), shape=(1, 3, None, None), metadata=ULTRALYTICS).known
    assert (known.source, known.options.scale, known.options.size) == (
        "ultralytics", "1/255", (32, 48),
    )  # fmt: skip
    assert inferred(network(tmp_path), metadata={"names": ULTRALYTICS["names"]}).known is None


@pytest.mark.parametrize(
    ("metadata", "options"),
    [
        ({"pretrained_cfg": json.dumps(TIMM["pretrained_cfg"])}, IMAGENET),
        ({"mean": "[0.485, 0.456, 0.406]", "std": "[0.229, 0.224, 0.225]"}, IMAGENET),
        ({"mean": "0", "std": "1"}, None),
        ({"mean": "many", "std": "[0.2]"}, None),
        ({"edgeflare.input": '{"scale": 1}', "mean": "0.5", "std": "0.5"}, RAW),
    ],
)
def test_entries_of_a_files_metadata_count(tmp_path, metadata, options):
    known = inferred(network(tmp_path), metadata=metadata).known
    assert (known is None) if options is None else alike(known.options, options)


@pytest.mark.parametrize(
    ("name", "settings", "options"),
    [
        ("preprocessor_config.json", HUGGING_FACE, IMAGENET),
        ("preprocessor_config.json", {**HUGGING_FACE, "do_normalize": False}, UNIT),
        ("preprocessor_config.json", {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, SIGNED),
        ("preprocessor_config.json", {"sampling_rate": 16000, "feature_size": 80}, None),
        ("config.json", TIMM, IMAGENET),
        ("config.json", {"architectures": ["ViT"], "hidden_size": 768}, None),
        ("config.json", ["no table"], None),
    ],
)
def test_settings_beside_the_file_count(tmp_path, name, settings, options):
    folder = tmp_path / "onnx"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / name).write_text(json.dumps(settings))
        known = inferred(network(folder)).known
        assert (known is None) if options is None else alike(known.options, options)
        if known is not None:
            assert known.names == (name,)
        (place / name).unlink()


def test_settings_of_what_the_file_does_itself_are_not_done_twice(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(HUGGING_FACE))
    means, deviations = channels(0.485, 0.456, 0.406), channels(0.229, 0.224, 0.225)
    constants = {"m": 255 * means, "s": 255 * deviations}
    known = inferred(network(tmp_path, SUB, DIV, constants=constants)).known
    assert (known.source, known.options.scale) == ("first-operators", 1.0)
    constants = {"m": means, "s": deviations}
    known = inferred(network(tmp_path, SUB, DIV, constants=constants)).known
    assert (known.source, known.options.scale) == ("first-operators", "1/255")


def test_what_one_file_does_inside_is_not_said_of_the_other(tmp_path):
    found = inferred(network(tmp_path, DIV, constants={"s": np.float32(255)}))
    assert found.options == RAW
    assert found.of_both == NOTHING
    of_range = inferred(network(tmp_path), dtype="int8", quantization=(1 / 255, -128))
    assert of_range.of_both == of_range.options


def test_what_contradicts_is_no_knowledge(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(HUGGING_FACE))
    found = inferred(network(tmp_path, DIV, constants={"s": np.float32(255)}))
    assert found.known is None
    assert [one.source for one in found.candidates] == ["preprocessor-config", "first-operators"]


def test_numbers_of_rgb_tell_nothing_of_a_model_that_takes_bgr(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(HUGGING_FACE))
    assert inferred(network(tmp_path), stated=InputOptions(color="BGR")).known is None


def test_an_input_that_is_quantised_first_tells_what_it_was_calibrated_for(tmp_path):
    before = (operator("QuantizeLinear", "s", "z"), operator("DequantizeLinear", "s", "z"))
    constants = {"s": np.float32(2 / 255), "z": np.uint8(128)}
    found = inferred(network(tmp_path, *before, constants=constants))
    assert found.known is None
    assert alike(found.behind.options, SIGNED)


def test_values_of_black_and_white_are_followed():
    first = FirstOperators(("multiply",), ("mul",), (1 / 255,), (0.0,))
    assert np.allclose(first.made_of(RAW), (0, 1))
    assert fed_by(first) == RAW


def tflite_with_metadata(path: Path, mean: list[float], std: list[float], content: int = 2) -> Path:
    """A TFLite file with a normalisation in its metadata, as TFLite's metadata writers make it."""
    build = flatbuffers.Builder(256)

    def floats(values: list[float]) -> int:
        build.StartVector(4, len(values), 4)
        for value in reversed(values):
            build.PrependFloat32(value)
        return build.EndVector()

    def tables(*places: int) -> int:
        build.StartVector(4, len(places), 4)
        for place in reversed(places):
            build.PrependUOffsetTRelative(place)
        return build.EndVector()

    def table(fields: int, **slots: tuple[str, int]) -> int:
        build.StartObject(fields)
        for slot, (kind, value) in slots.items():
            add = build.PrependUint8Slot if kind == "byte" else build.PrependUOffsetTRelativeSlot
            add(int(slot[1:]), value, 0)
        return build.EndObject()

    means, deviations = floats(mean), floats(std)
    options = table(2, f0=("table", means), f1=("table", deviations))
    unit = table(2, f0=("byte", 1), f1=("table", options))
    image = table(3, f0=("byte", content), f1=("table", table(2, f0=("byte", 1))))
    units = tables(unit)
    given = table(7, f3=("table", image), f4=("table", units))
    inputs = tables(given)
    subgraphs = tables(table(9, f2=("table", inputs)))
    build.Finish(table(8, f3=("table", subgraphs)), file_identifier=b"M001")
    model = schema.ModelT.InitFromObj(
        schema.Model.GetRootAsModel((TFLITE / "float.tflite").read_bytes(), 0)
    )
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(bytes(build.Output()), np.uint8)
    entry.name, entry.buffer = b"TFLITE_METADATA", len(model.buffers)
    model.buffers.append(buffer)
    model.metadata = [*(model.metadata or []), entry]
    whole = flatbuffers.Builder(1024)
    whole.Finish(model.Pack(whole), file_identifier=b"TFL3")
    path.write_bytes(bytes(whole.Output()))
    return path


def test_tflite_metadata_say_how_pixels_are_normalised(tmp_path):
    path = tflite_with_metadata(tmp_path / "m.tflite", [127.5], [127.5])
    known = inferred(path, "tflite", (1, 8, 8, 1)).known
    assert (known.source, known.options) == ("tflite-metadata", SIGNED)
    of_sound = tflite_with_metadata(tmp_path / "s.tflite", [0.5], [2.0], content=1)
    assert inferred(of_sound, "tflite", (1, 8, 8, 1)) == Inference()
    nonsense = tflite_with_metadata(tmp_path / "n.tflite", [127.5], [-127.5])
    assert problems(inferred(nonsense, "tflite", (1, 8, 8, 1))) == ["values"]


def problems(found: Inference) -> list[str]:
    assert found.known is None
    return [settings.problem for settings in found.unusable]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("preprocessor_config.json", '{"image_mean": [0.5', "syntax"),
        ("preprocessor_config.json", "", "syntax"),
        ("preprocessor_config.json", "[" * 100_000, None),
        ("preprocessor_config.json", "[1, 2]", None),
        ("config.json", "{broken", None),  # any program's
        *(
            ("preprocessor_config.json", json.dumps({**HUGGING_FACE, name: value}), "values")
            for name, value in (
                ("image_std", [-0.2, 0.2, 0.2]), ("image_std", [0, 0, 0]), ("image_std", "many"),
                ("image_mean", [0.5, 0.5]), ("image_mean", None), ("image_mean", [float("nan")] * 3),
                ("image_mean", [10**400] * 3), ("rescale_factor", 0), ("rescale_factor", "1/255"),
                ("rescale_factor", float("inf")), ("rescale_factor", [1, 2]),
            )
        ),
        ("config.json", json.dumps({"input_size": [3, 8, 8], "mean": [0.5] * 3, "std": [-1]}), "values"),
        ("config.json", json.dumps({"input_size": 8, "mean": [9] * 3, "std": [1]}), None),
    ],
)  # fmt: skip
def test_settings_that_no_input_has_are_left_out_with_the_reason(tmp_path, name, text, problem):
    (tmp_path / name).write_text(text)
    assert problems(inferred(network(tmp_path))) == ([] if problem is None else [problem])


def test_a_size_that_no_image_has_leaves_the_scaling(tmp_path):
    for size in ({"height": 0, "width": 8}, {"height": 1e300, "width": 8}, "large", [1, 2, 3]):
        settings = json.dumps({**HUGGING_FACE, "size": size})
        (tmp_path / "preprocessor_config.json").write_text(settings)
        assert alike(inferred(network(tmp_path)).known.options, IMAGENET)


def test_numbers_of_other_channels_are_left_out_with_the_reason(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(HUGGING_FACE))
    assert problems(inferred(network(tmp_path), shape=(1, 1, 8, 8))) == ["channels"]
    metadata = {"mean": "[0.4, 0.4, 0.3]", "std": "[-0.2, 0.2, 0.2]"}
    (tmp_path / "preprocessor_config.json").unlink()
    assert problems(inferred(network(tmp_path), metadata=metadata)) == ["values"]


def test_what_ultralytics_packs_with_a_tflite_file_counts(tmp_path):
    path = tmp_path / "yolo.tflite"
    path.write_bytes((TFLITE / "float.tflite").read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("temp_meta.txt", str({**ULTRALYTICS, "stride": 32}))
    assert inferred(path, "tflite", (1, 8, 8, 1)).known.source == "ultralytics"


@pytest.mark.parametrize("length", [0, 3, 8, 40, 200, 600])
def test_a_damaged_file_tells_nothing(tmp_path, length):
    path = tflite_with_metadata(tmp_path / "m.tflite", [127.5], [127.5])
    path.write_bytes(path.read_bytes()[:length])
    assert packed_metadata(path) == packed_metadata(tmp_path / "gone.tflite")
    assert inferred(path, "tflite", (1, 8, 8, 1)) == Inference()


def test_a_file_is_read_in_a_process_of_its_own(tmp_path):
    path = network(tmp_path, DIV, constants={"s": np.float32(255)})
    file = InputFile(path, "onnx", TensorInfo("x", (1, 3, 8, 8), "float32", None), {})
    assert infer_input(file, NOTHING).known.options == RAW
    path.write_bytes(b"no model")
    assert infer_input(file, NOTHING) == Inference()


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(
    ("layer", "options"),
    [
        (("Rescaling", {"scale": 1 / 127.5, "offset": -1}), RAW),
        (("Rescaling", {"scale": 1 / 255}), RAW),
        (("Normalization", {"axis": -1, "mean": [118.0] * 3, "variance": [3600.0] * 3}), RAW),
        (("Normalization", {"axis": -1, "mean": [0.4] * 3, "variance": [0.06] * 3}), None),
    ],
)
def test_layers_of_keras_that_rescale_are_seen(tmp_path, monkeypatch, layer, options):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    kind, settings = layer
    model = keras.Sequential([
        keras.Input((8, 8, 3)), getattr(keras.layers, kind)(**settings), keras.layers.Flatten(),
        keras.layers.Dense(2),
    ])  # fmt: skip
    model.save(tmp_path / "m.keras")
    known = inferred(tmp_path / "m.keras", "keras", (None, 8, 8, 3)).known
    assert (known and known.options.factors) == (options and options.factors)


@pytest.mark.extended
def test_a_program_of_pytorch_that_normalises_is_seen(tmp_path):
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.tensor([123.675, 116.28, 103.53]).view(1, 3, 1, 1))
            self.last = torch.nn.Conv2d(3, 2, 3)

        def forward(self, x: Any) -> Any:
            return self.last((x - self.mean) / 58.0)

    program = torch.export.export(Net(), (torch.zeros(1, 3, 8, 8),))
    torch.export.save(program, tmp_path / "m.pt2")
    known = inferred(tmp_path / "m.pt2", "torch").known
    assert (known.source, known.options) == ("first-operators", RAW)


def test_what_is_stated_of_one_model_comes_before_a_folders_settings_for_the_other(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(HUGGING_FACE))
    path = network(tmp_path)
    tensor = TensorInfo("x", (1, 3, 8, 8), "float32", None)
    configs = ModelConfig(path=path, input=UNIT), ModelConfig(path=path)
    inferences = tuple(inferred(path, stated=config.input) for config in configs)
    specs, feeds = resolve_inputs(configs, (tensor, tensor), inferences)
    assert [alike(values_of(spec), UNIT) for spec in specs] == [True, True]
    assert (feeds[0], feeds[1].source) == (None, "other-model")
