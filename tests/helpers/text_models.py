"""Models that read text from images, for tests: a tiny made-up one, and PP-OCRv4's.

The made-up one compares each stretch of an image with the glyphs of its five symbols. It has PP-OCR's form: an open
size, probabilities for each frame, its symbols in the file. PP-OCRv4's is read from the wheel of rapidocr-onnxruntime,
which is never installed or imported.
"""

import os
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from filelock import FileLock
from onnx import TensorProto, helper, version_converter
from PIL import Image, ImageDraw, ImageFont
from small_models import save_onnx

SYMBOLS = "abcd"
HEIGHT, WIDTH = 8, 6
"""The size of a glyph in pixels."""
SIZE = (HEIGHT, 48)
READER_INPUT: dict[str, Any] = {"scale": "1/255", "size": SIZE}


def glyphs() -> np.ndarray:
    """Return the pictures of all symbols and of the space: float32 [5, height, width], 0 and 1."""
    drawn = np.random.default_rng(11).random((len(SYMBOLS) + 1, HEIGHT, WIDTH)) < 0.5
    return np.asarray(drawn, np.float32)


def written(text: str, noise: float = 0.0, number: int = 0) -> np.ndarray:
    """Return an image of up to eight symbols, light on dark: uint8 [8, 48, 3]; `noise` in levels."""
    image = np.full((*SIZE, 3), 60.0)
    for place, symbol in enumerate(text):
        glyph = glyphs()[(SYMBOLS + " ").index(symbol)]
        image[:, place * WIDTH : (place + 1) * WIDTH] += 130 * glyph[..., None]
    image += noise * np.random.default_rng(number).standard_normal(image.shape)
    return np.asarray(np.clip(image, 0, 255), np.uint8)


def text_reader(path: Path, *, drift: float = 0.0, symbols: str | None = SYMBOLS) -> Path:
    """x float32 [n, 3, height, width] -> probabilities [n, frames, 6]; `drift` moves its weights.

    `symbols`: those in the file's metadata; None: it has no such entry.
    """
    kernels = glyphs() - glyphs().mean(axis=(1, 2), keepdims=True)
    kernels /= np.linalg.norm(kernels, axis=(1, 2), keepdims=True)
    kernels += drift * np.random.default_rng(3).standard_normal(kernels.shape)
    weights = np.concatenate([np.zeros_like(kernels[:1]), kernels])[:, None].repeat(3, axis=1)
    bias = np.zeros(len(weights))
    bias[0] = 2.0  # the blank's, which wins where nothing is written
    nodes = [
        helper.make_node("Conv", ["x", "weights", "bias"], ["c"], strides=[1, WIDTH]),
        helper.make_node("Squeeze", ["c", "axes"], ["squeezed"]),
        helper.make_node("Transpose", ["squeezed"], ["frames"], perm=[0, 2, 1]),
        helper.make_node("Softmax", ["frames"], ["probabilities"], axis=-1),
    ]
    constants = {
        "weights": weights.astype(np.float32),
        "bias": bias.astype(np.float32),
        "axes": np.array([2]),
    }
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3, None, None])
    y = helper.make_tensor_value_info(
        "probabilities", TensorProto.FLOAT, [None, None, len(weights)]
    )
    about = {} if symbols is None else {"character": "\n".join(symbols)}
    return save_onnx(path, nodes, [x], [y], constants, about)


LINES = [
    "Keep right", "Platform 12", "Total 48.50", "Room 304", "No parking", "Exit only", "Gate B27",
    "Push to open", "Serial 77031", "Best before 2026", "High voltage", "Invoice 20931",
    "Main Street", "Fragile", "Speed limit 60", "Wet floor", "Batch 4471", "Pharmacy", "Fire exit",
    "Net weight 250 g", "Ticket office", "Cash only", "Do not enter", "Model X200", "Oil pressure",
    "Departures", "Arrivals", "Bus stop", "Made in Italy", "Receipt",
]  # fmt: skip
LINE_SIZE = (48, 320)
LINE_INPUT: dict[str, Any] = {
    "mean": (127.5,),
    "std": (127.5,),
    "color": "BGR",
    "size": LINE_SIZE,
}
"""How PP-OCRv4 takes images of lines."""
WHEELS = "EDGEFLARE_RAPIDOCR"
"""The environment variable with the folder that has the wheel of rapidocr-onnxruntime."""
_IN_WHEEL = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"


def lines(count: int, number: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield texts and images of them, uint8 [48, 320, 3] RGB, of many colours, sizes and sharpnesses."""
    rng = np.random.default_rng(number)
    cv2 = import_module("cv2")
    for _ in range(count):
        light, dark = rng.integers(170, 256, 3), rng.integers(0, 80, 3)
        ground, ink = (dark, light) if rng.random() < 0.4 else (light, dark)
        slope = rng.uniform(-20, 20) * np.linspace(-1, 1, LINE_SIZE[1])[:, None]
        image = np.clip(np.broadcast_to(ground + slope, (*LINE_SIZE, 3)), 0, 255).astype(np.uint8)
        text = str(rng.choice(LINES))
        text = text.upper() if rng.random() < 0.3 else text
        size = int(rng.integers(28, 41))
        while ImageFont.load_default(size).getlength(text) > LINE_SIZE[1] - 16:
            size -= 1
        font, picture = ImageFont.load_default(size), Image.fromarray(image)
        left = int(rng.integers(4, LINE_SIZE[1] - 8 - int(font.getlength(text))))
        place = (left, LINE_SIZE[0] // 2 + int(rng.integers(-2, 3)))
        fill = tuple(ink.tolist())
        ImageDraw.Draw(picture).text(place, text, font=font, fill=fill, anchor="lm")
        image = np.asarray(picture)
        if (sigma := rng.uniform(0, 1)) > 0.3:
            image = cv2.GaussianBlur(image, (0, 0), sigma)
        noisy = image + rng.uniform(0, 5) * rng.standard_normal(image.shape)
        yield text, np.clip(noisy, 0, 255).astype(np.uint8)


class Readers(NamedTuple):
    """PP-OCRv4's text recognition: the float32 and the static int8 file."""

    original: Path
    deployed: Path


def make_readers(wheels: Path, folder: Path) -> Readers:
    """Write both files into a folder: the wheel's, and static QDQ int8 per channel of it.

    Convolutions and matrix products are quantised, calibrated on 64 images of `lines`. Raises FileNotFoundError where
    `wheels` has no wheel.
    """
    quantization = import_module("onnxruntime.quantization")
    wheel = next(iter(sorted(wheels.glob("rapidocr_onnxruntime-*.whl"))), None)
    if wheel is None:
        raise FileNotFoundError(f"{wheels} has no wheel of rapidocr-onnxruntime")
    folder.mkdir(parents=True, exist_ok=True)
    original, plain, deployed = (
        folder / f"{name}.onnx" for name in ("ppocrv4-rec", "plain", "ppocrv4-rec-int8")
    )
    with zipfile.ZipFile(wheel) as archive:
        original.write_bytes(archive.read(_IN_WHEEL))
    newer = version_converter.convert_version(onnx.load(str(original)), 13)  # scales per channel
    onnx.save(newer, str(plain))
    preprocess = import_module("onnxruntime.quantization.shape_inference").quant_pre_process
    preprocess(str(plain), str(plain), skip_symbolic_shape=True)

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left = lines(64, 1)

        def get_next(self) -> dict[str, np.ndarray] | None:
            for _, image in self.left:
                values = (image[..., ::-1].astype(np.float32) - 127.5) / 127.5
                return {"x": values.transpose(2, 0, 1)[None]}
            return None

    quantization.quantize_static(
        str(plain),
        str(deployed),
        Reader(),
        quant_format=quantization.QuantFormat.QDQ,
        op_types_to_quantize=["Conv", "MatMul"],
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    plain.unlink()
    return Readers(original, deployed)


def write_lines(folder: Path, count: int, number: int = 2) -> Path:
    """Write images of `lines` as PNG, named by their texts; return the folder."""
    folder.mkdir(parents=True)
    for place, (text, image) in enumerate(lines(count, number)):
        name = f"{place:03d}-{text.lower().replace(' ', '-')}.png"
        Image.fromarray(image).save(folder / name)
    return folder


def write_images(folder: Path, images: Sequence[np.ndarray]) -> Path:
    """Write images as numbered PNG; return the folder."""
    folder.mkdir(parents=True)
    for place, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{place}.png")
    return folder


@pytest.fixture(scope="session")
def ppocr_readers(tmp_path_factory: pytest.TempPathFactory) -> Readers:
    """PP-OCRv4's files, made once for all workers; tests skip where the wheel isn't there."""
    wheels = os.environ.get(WHEELS)
    if wheels is None or not list(Path(wheels).glob("rapidocr_onnxruntime-*.whl")):
        pytest.skip(f"{WHEELS} names no folder with the wheel of rapidocr-onnxruntime")
    base = tmp_path_factory.getbasetemp()
    shared = base if base.name.startswith("pytest-") else base.parent
    folder = shared / "ppocr"
    with FileLock(shared / "ppocr.lock"):
        if not folder.is_dir():
            made = make_readers(Path(wheels), shared / "ppocr-making")
            made.original.parent.rename(folder)
    return Readers(folder / "ppocrv4-rec.onnx", folder / "ppocrv4-rec-int8.onnx")
