"""Mutated seeds, labels, model metadata and campaign files: whatever they hold, one clear error, in bounded memory.

`python tests/benchmarks/fuzz/loaders.py [--seconds 180] [--seed 0] [--only NAME] [--keep FOLDER]`. Each execution mutates a
valid input and gives it to what reads it. Anything but an error for the user, more than 4 GB of address space beyond what the
libraries take, or more than 20 s is a failure: its input is written to FOLDER, and the exit code is 1.
"""

import argparse
import io
import json
import resource
import struct
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import soundfile
from numpy.lib import format as npy

from edgeflare.campaign.settings.config import load_config
from edgeflare.campaign.settings.templates import STARTER
from edgeflare.errors import EdgeFlareError
from edgeflare.models import DecoderOptions, InputOptions, known_of, prepare, resolve_input
from edgeflare.models.image_input import contradiction, options_in_file
from edgeflare.seeds import RESIZE_RULES, load_label_mapping, open_audio_seeds, open_seeds
from edgeflare.seeds.class_names import _numbered
from edgeflare.seeds.folder import read_names
from edgeflare_agent.decoding import decoder_in
from edgeflare_agent.errors import AgentError
from edgeflare_agent.image_spec import InputSpec, TensorInfo
from edgeflare_agent.runtimes.tensorrt_build import read_metadata

Rng = np.random.Generator
_MEMORY = 4 << 30
_SLOW_S = 20.0
_NUMBERS = [2, 128, *((1 << bits) - 1 for bits in (0, 1, 7, 8, 15, 16, 31, 32, 40, 63))]
_WORDS = [
    *b"""-1 0 1e308 nan inf true null [] {} "" '' [a] [[a]] a.b = # ' " 16384 134217728 8192 1000000 1979-05-27""".split(),
    *(b"1e999999999", b"1/1e999999999", b"~nobody-here/x", b"\\u0000", b"\\ud800", b"\0", b"\xff", b"\n"),
    *(b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"\xef\xbb\xbf"),
]  # fmt: skip
_VALUES = [
    *(0, -1, 1, 2, 7, 8192, 16384, 10**6, 1 << 27, 1 << 31, 1 << 63, 10**400, 0.5, 1e308, -1e308, 5e-324),
    *(float("nan"), float("inf"), None, True, False, "", "\ud800", [], {}, [0], [1, 2, 3], [0.0] * 999),
    *(["a"], ["a"] * 9, [[[]]], {"a": 1}, json.loads("[" * 400 + "]" * 400), "x", "1/255", "1e308", "~nobody-here/x"),
    *("waveform", "log-mel", "mfcc", "whisper", "CHW", "HWC", "BGR", "GRAY", "nearest", "area", "magnitude"),
    *("power", "htk", "slaney", "ln", "log10", "tensorflow", "bands-frames", "none", "maximum", "tokens", "ctc"),
]  # fmt: skip
_KEYS = (*InputOptions.model_fields, "text_tokens", "space", "bytes", "blank")


class Target(NamedTuple):
    """Something that reads files: valid ones by name, and what is called with a mutated one."""

    valid: list[tuple[str, bytes]]
    read: Callable[[Path, Rng], object]
    words: bool = False


def mutated(data: bytes, others: list[tuple[str, bytes]], rng: Rng, *, words: bool) -> bytes:
    """Return the bytes after one to eight changes."""
    made = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(len(made) + 1))
        if rng.random() < 0.5:  # headers are at the start
            at = min(at, int(rng.integers(64)))
        length = int(rng.integers(1, 9))
        kind = int(rng.integers(8))
        if kind == 0 and at < len(made):
            made[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            made[at : at + length] = rng.bytes(length)
        elif kind == 2:
            del made[at : at + length]
        elif kind == 3:
            made[at:at] = made[at : at + 8 * length]
        elif kind == 4:
            del made[at:]
        elif kind == 5:
            number = _NUMBERS[int(rng.integers(len(_NUMBERS)))]
            size, order = 1 << int(rng.integers(4)), ("little", "big")[int(rng.integers(2))]
            made[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, order)
        elif kind == 6:
            other = others[int(rng.integers(len(others)))][1]
            start = int(rng.integers(len(other) + 1))
            made[at : at + 8 * length] = other[start : start + 8 * length]
        elif words:
            word = _WORDS[int(rng.integers(len(_WORDS)))]
            made[at : at + int(rng.integers(length))] = word
        if len(made) > 1 << 20:
            break
    return bytes(made)


def with_checksums(png: bytes) -> bytes:
    """Return a PNG with the checksums that its chunks need."""
    made = bytearray(png)
    at = 8
    while at + 12 <= len(made):
        length = int.from_bytes(made[at : at + 4], "big")
        end = at + 8 + length
        if end + 4 > len(made):
            break
        made[end : end + 4] = struct.pack(">I", zlib.crc32(made[at + 4 : end]))
        at = end + 4
    return bytes(made)


def images() -> Target:
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 256, (17, 23, 3), np.uint8)
    deep = rng.integers(0, 65536, (9, 7, 4), np.uint16)
    valid = [
        (f"a{suffix}", cv2.imencode(suffix, colour, options)[1].tobytes())
        for suffix, options in (
            *((".png", []), (".jpg", []), (".jpg", [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])),
            *((".webp", []), (".webp", [cv2.IMWRITE_WEBP_QUALITY, 80]), (".bmp", [])),
            *((".tif", []), (".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 8]), (".ppm", [])),
        )
    ]
    valid += [
        (f"d{suffix}", cv2.imencode(suffix, deep)[1].tobytes()) for suffix in (".png", ".tif")
    ]
    return Target(valid, _read_image)


def _read_image(path: Path, rng: Rng) -> None:
    if path.suffix == ".png" and rng.random() < 0.7:
        path.write_bytes(with_checksums(path.read_bytes()))
    rule = list(RESIZE_RULES)[int(rng.integers(len(RESIZE_RULES)))]
    for seed in open_seeds(path, size=(28, 20), channels=int(rng.choice([1, 3])), resize=rule):
        assert seed.sample.shape[:2] == (28, 20)


def archives() -> Target:
    rng = np.random.default_rng(0)
    pictures, sounds = rng.integers(0, 256, (3, 5, 4), np.uint8), rng.normal(size=(2, 99))
    valid = []
    for save in (np.savez, np.savez_compressed):
        for arrays in (
            {"images": pictures, "labels": np.arange(3)},
            {"images": np.asfortranarray(pictures[..., None].repeat(3, 3))},
            {"audio": sounds.astype(np.float32), "rate": np.array(16000), "labels": np.arange(2)},
        ):
            file = io.BytesIO()
            save(file, **arrays)
            valid.append(("a.npz", file.getvalue()))
    return Target(valid, _read_archive)


def _read_archive(path: Path, rng: Rng) -> None:
    if rng.random() < 0.3:
        _write_archive(path, rng)
    if rng.random() < 0.5:
        list(open_seeds(path, size=(5, 4), channels=1, resize="area"))
    else:
        cut = (None, "first", "windows")[int(rng.integers(3))]
        list(open_audio_seeds(path, rate=16000, samples=50, cut=cut, resample=True, limit=50))


def _write_archive(path: Path, rng: Rng) -> None:
    """Write an archive whose arrays' headers are mutated, and whose checksums are right."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in (
            ("images", np.zeros((2, 5, 4), np.uint8)),
            ("audio", np.zeros((2, 99), np.float32)),
            ("rate", np.array(16000)),
            ("labels", np.arange(2)),
        ):
            file = io.BytesIO()
            npy.write_array(file, array)
            data = file.getvalue()
            if rng.random() < 0.5:
                data = mutated(data, [("", data)], rng, words=True)
            archive.writestr(f"{name}.npy", data)
        if rng.random() < 0.3:
            archive.filelist[0].file_size = int(rng.integers(1 << 40))


def recordings() -> Target:
    clip = np.sin(np.arange(1600) / 9).astype("f4") * 0.5
    valid = []
    for name, subtype in (
        *(("a.wav", "PCM_16"), ("a.wav", "FLOAT"), ("a.wav", "IMA_ADPCM"), ("a.flac", "PCM_16")),
        *(("a.ogg", "VORBIS"), ("a.aiff", "PCM_24"), ("a.mp3", "MPEG_LAYER_III")),
    ):
        file = io.BytesIO()
        file.name = name
        soundfile.write(file, np.stack([clip, clip], 1), 16000, subtype=subtype)
        valid.append((name, file.getvalue()))
    return Target(valid, _read_recording)


def _read_recording(path: Path, rng: Rng) -> None:
    cut = (None, "first", "windows")[int(rng.integers(3))]
    samples = (None, 400, 16000)[int(rng.integers(3))]
    resample = bool(rng.integers(2))
    source = open_audio_seeds(
        path, rate=16000, samples=samples, cut=cut, resample=resample, limit=99
    )
    for seed in source:
        assert np.isfinite(seed.sample).all()


def labels() -> Target:
    mapping = {"cat": 0, "dog": 1, "\u00fc": 2}
    toml = b'[labels]\ncat = 0\n"dog" = 1\n'
    texts = (json.dumps(mapping), json.dumps(list(mapping)), json.dumps({"0": "cat", "1": "dog"}))
    valid = [("a.json", text.encode()) for text in texts]
    return Target(
        [*valid, ("a.toml", toml), ("a.txt", b"cat\ndog\n\xc3\xbc\n")], _read_labels, words=True
    )


def _read_labels(path: Path, rng: Rng) -> None:
    if rng.random() < 0.5:
        load_label_mapping(path)
    else:
        _numbered(read_names(path, "the file of class names"), path)


def vocabularies() -> Target:
    valid = [
        ("a.json", b'["<b>", "a"]'),
        ("a.json", b'{"<b>": 0, "a": 1}'),
        ("a.txt", b"<b>\na\n|\n"),
    ]
    return Target(valid, _read_vocabulary, words=True)


def _read_vocabulary(path: Path, rng: Rng) -> None:
    DecoderOptions(vocabulary=path, space=None if rng.random() < 0.5 else "|").decoder()


def metadata() -> Target:
    texts = (
        {"scale": "1/255", "mean": [0.4, 0.5, 0.6], "std": 0.2, "layout": "CHW", "color": "BGR"},
        {"scale": 1, "size": [32, 24], "resize": "area"},
        {"front_end": "mlperf-tiny-kws", "samples": 16000, "scale": 0.5},
        {"front_end": "log-mel", "rate": 16000, "samples": 1600, "window": 400, "stride": 160, "fft": 512, "bands": 40,
         "low_hz": 20.5, "high_hz": 7600, "mel_scale": "htk", "spectrum": "power", "log": "ln", "log_offset": 1e-6},
        {"front_end": "mfcc", "rate": 8000, "window": 200, "stride": 80, "bands": 20, "mel_scale": "slaney",
         "spectrum": "magnitude", "log": "log10", "log_offset": 1e-6, "coefficients": 10, "dct": "tensorflow", "peak": "maximum"},
        {"kind": "ctc", "vocabulary": ["<b>", "a", "|"], "blank": 0, "space": "|"},
        {"kind": "tokens", "vocabulary": ["a", "b"], "bytes": True, "text_tokens": 1},
    )  # fmt: skip
    return Target(
        [("a.json", json.dumps(text).encode()) for text in texts], _read_metadata, words=True
    )


_TENSORS = (
    TensorInfo("x", (None, None, None, 3), "float32"),
    TensorInfo("x", (1, 3, 32, 24), "int8", (2 / 255, 0)),
    TensorInfo("x", (1, 49, 10, 1), "int8", (0.5, 83)),
    TensorInfo("x", (1, None), "float32"),
    TensorInfo("x", (1, None, None), "float32"),
    TensorInfo("x", (), "float32"),
)


def _read_metadata(path: Path, rng: Rng) -> None:
    text = path.read_bytes().decode(errors="replace")
    if '"kind"' in text:
        decoder = decoder_in({"edgeflare.decoder": text}, "m.onnx")
        assert decoder is not None
        scores = TensorInfo("logits", (1, None, None), "float32")
        decoder.check_outputs([scores])
        frames = rng.normal(size=(1, 5, len(decoder.vocabulary))).astype(np.float32)
        decoder.decode({"logits": frames}, [scores])
        return
    in_file = options_in_file({"edgeflare.input": text}, "m.onnx")
    tensor = _TENSORS[int(rng.integers(len(_TENSORS)))]
    spec = resolve_input(
        tensor, InputOptions(), known_of(in_file, InputOptions(), InputOptions()), "it"
    )
    contradiction(tensor, InputOptions(scale="1/255"), in_file, "it")
    if not isinstance(spec, InputSpec):
        if (spec.samples or 0) > 1 << 20 or (spec.mel is not None and spec.mel.fft > 1024):
            return  # allowed, and slow
        prepare(np.zeros(min(spec.samples or 1600, 16000), np.float32), spec)
    elif spec.size[0] * spec.size[1] < 1 << 20:
        prepare(np.zeros((5, 7, spec.channels), np.uint8), spec)


def onnx_files() -> Target:
    assets = (
        Path(sys.modules["edgeflare"].__file__ or "").parents[1]
        / "edgeflare_bench"
        / "assets"
        / "mnist"
    )
    valid = [("a.onnx", (assets / "lenet4_pruned.onnx").read_bytes()[:9000])]
    entry = b"\x0a\x01a\x12\x80\x02" + b"z" * 256
    valid.append(
        ("a.onnx", b"\x08\x08\x72" + bytes([128 + len(entry) % 128, len(entry) >> 7]) + entry)
    )
    return Target(valid, lambda path, _: read_metadata(str(path)))


def campaigns() -> Target:
    lines = STARTER.splitlines()
    whole = [
        line.removeprefix("# ") if line.startswith("# ") and " = " in line else line
        for line in lines
    ]
    small = '[original]\npath = "a.onnx"\n[deployed]\npath = "b.tflite"\n[seeds]\npath = "s"\n'
    valid = [("c.toml", text.encode()) for text in (STARTER, "\n".join(whole), small)]
    valid.append(("c.toml", (small + '[search]\noracle = "tolerance"\ntolerance = 0.1\n').encode()))
    return Target(valid, lambda path, _: load_config(path), words=True)


TARGETS: dict[str, Callable[[], Target]] = {
    "images": images, "archives": archives, "recordings": recordings, "labels": labels,
    "vocabularies": vocabularies, "metadata": metadata, "onnx": onnx_files, "campaigns": campaigns,
}  # fmt: skip


class Fuzzing:
    """Executions and failures so far, the latter once for each kind and place."""

    def __init__(self, keep: Path) -> None:
        self.executions: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.failures: dict[str, Path] = {}
        self._keep = keep
        self._work = Path(tempfile.mkdtemp())

    def once(self, name: str, target: Target, rng: Rng) -> None:
        """Mutate one of a target's valid inputs and read it."""
        file, data = target.valid[int(rng.integers(len(target.valid)))]
        path = self._work / file
        if path.suffix == ".json" and rng.random() < 0.6:
            data = _with_values(data, rng)
        elif target.words and rng.random() < 0.7:
            for _ in range(int(rng.integers(1, 4))):
                data = _with_a_word(data, rng)
        else:
            data = mutated(data, target.valid, rng, words=target.words)
        path.write_bytes(data)
        self.executions[name] += 1
        began = time.monotonic()
        try:
            target.read(path, rng)
        except (EdgeFlareError, AgentError):
            self.refused[name] += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            frames = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "edgeflare" in frame.filename]
            where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
            self._failed(f"{name}: {type(error).__name__} at {where}: {str(error)[:100]}", path)
        if time.monotonic() - began > _SLOW_S:
            self._failed(f"{name}: took {time.monotonic() - began:.0f} s", path)

    def _failed(self, what: str, path: Path) -> None:
        key = what.rpartition(": ")[0]
        if key not in self.failures:
            kept = self._keep / f"{len(self.failures)}{path.suffix}"
            kept.write_bytes(path.read_bytes())
            self.failures[key] = kept
            print(f"FAILED {what} -> {kept}", flush=True)


def _with_values(data: bytes, rng: Rng) -> bytes:
    """Return a JSON object or list with some of its entries exchanged or added."""
    document = json.loads(data)
    for _ in range(int(rng.integers(1, 3))):
        value = _VALUES[int(rng.integers(len(_VALUES)))]
        if isinstance(document, dict):
            keys = [*document] if rng.random() < 0.6 else [*_KEYS]
            document[keys[int(rng.integers(len(keys)))]] = value
        else:
            document[int(rng.integers(len(document)))] = value
    return json.dumps(document).encode()


def _with_a_word(data: bytes, rng: Rng) -> bytes:
    """Return a text with the value of one of its keys, or one of its entries, exchanged."""
    places = [at for at, byte in enumerate(data) if byte in b"=:[,"]
    if not places:
        return data
    at = places[int(rng.integers(len(places)))] + 1
    ends = [end for end in (data.find(mark, at) for mark in (b",", b"\n", b"}", b"]")) if end >= 0]
    word = _WORDS[int(rng.integers(len(_WORDS)))]
    return data[:at] + word + data[min(ends, default=len(data)) :]


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _rounds(names: list[str], seconds: float) -> Iterator[str]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield from names


def main() -> int:
    """Fuzz for the time that is given, all targets in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "edgeflare-fuzz")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    names = [given.only] if given.only else list(TARGETS)
    targets = {name: TARGETS[name]() for name in names}
    rng = np.random.default_rng(given.seed)
    fuzzing = Fuzzing(given.keep)
    for name in names:  # libraries are loaded before memory is limited
        fuzzing.once(name, targets[name], rng)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + _MEMORY,) * 2)
    for name in _rounds(names, given.seconds):
        fuzzing.once(name, targets[name], rng)
    for name in names:
        print(f"{name}: {fuzzing.executions[name]} executions, {fuzzing.refused[name]} refused")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = fuzzing.executions.total()
    print(
        f"{total} executions in {given.seconds:g} s, {len(fuzzing.failures)} failures, {peak:.0f} MB at most"
    )
    return 1 if fuzzing.failures else 0


if __name__ == "__main__":
    sys.exit(main())
