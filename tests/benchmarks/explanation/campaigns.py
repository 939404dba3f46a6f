"""Campaigns on real pairs, for what explains and shrinks their findings."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from command import DEMO
from links import devices, write_inventory
from seed_files import crop
from shared_models import PAIRS, Pair, images_of
from small_models import prune

from edgeflare import config_from, resume_campaign, run_campaign

LOOPBACK = "loopback"
PRUNED = 0.5
"""The share of the weights that is 0."""
_MNIST = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"
_DIGITS = str(DEMO / "seeds.npz")
_WHISPER = "whisper-tiny-en"
_LENET5, _STUDENT = str(_MNIST / "lenet5.onnx"), str(_MNIST / "lenet5_distilled.onnx")
_GREY = {"scale": "1/255"}
SPEECH = "Whisper tiny.en"
_OTHERS = {
    "LeNet-5, pruned": Pair(_LENET5, "", _DIGITS, _GREY),
    "LeNet-5, distilled": Pair(_LENET5, _STUDENT, _DIGITS, _GREY),
    SPEECH: Pair(f"{_WHISPER}.onnx", f"{_WHISPER}.int8.onnx", "audio/speech", {}),
}
_CIFAR = PAIRS["ResNet-20"]
_SAME = {
    "demo int8, same file": Pair(
        str(DEMO / "deployed.tflite"), str(DEMO / "deployed.tflite"), _DIGITS, _GREY
    ),
    "ResNet-20 int8, same file": _CIFAR._replace(original=_CIFAR.deployed, float_model=""),
}
"""Both models are one file, run by TFLite's built-in kernels: only the devices differ."""
NAMES = (*PAIRS, *_OTHERS)
PLANTED = (*_SAME,)


class Device(NamedTuple):
    """The name of a device, and the inventory that it stands in, where that isn't the user's."""

    name: str
    inventory: Path | None = None


@contextmanager
def device_named(name: str) -> Iterator[Device]:
    """Give a device of the user's inventory, or this machine over SSH where it is LOOPBACK."""
    if name != LOOPBACK:
        yield Device(name)
        return
    with tempfile.TemporaryDirectory() as folder, devices(("SSH loopback",)) as ways:
        if not ways:
            raise SystemExit("there is no sshd here: name another device, such as local")
        inventory = Path(folder) / "devices.toml"
        (board,) = write_inventory(inventory, ways).values()
        yield Device(board, inventory)


class Campaign(NamedTuple):
    """A finished campaign: its folder, and which seeds are alike, such as crops of one photograph.

    `groups` has the number of the group of each seed, by its id.
    """

    folder: Path
    groups: Callable[[str], int | str]
    float_model: Path | None


def run(
    name: str,
    data: Path,
    folder: Path,
    device: Device,
    *,
    seeds: int,
    strategy: str,
    speech: Path | None = None,
    survey: bool = True,
) -> Campaign:
    """Run a campaign on a pair, or resume that of the folder; `speech` has Whisper's two files."""
    pair = {**PAIRS, **_OTHERS, **_SAME}[name]
    options = {"delegate": False} if name in _SAME else {}
    folder.mkdir(parents=True, exist_ok=True)
    original, deployed = data / pair.original, data / pair.deployed
    archive, photographs = folder / "seeds.npz", 0
    source: Path = archive
    if name == SPEECH:
        if speech is None:
            raise SystemExit(f"{name} needs --speech, the folder that export_whisper.py wrote")
        original, deployed = speech / pair.original, speech / pair.deployed
        source = data / pair.images
    elif name == "EfficientNet-Lite0":
        crops, photographs = _crops(data, pair, seeds)
        np.savez(archive, images=crops)
    else:
        images = images_of(data, pair)
        shuffled = np.random.default_rng(0).permutation(len(images))
        chosen = shuffled[:seeds]
        with np.load(data / pair.images) as stored:
            labels = {"labels": stored["labels"][chosen]} if "labels" in stored else {}
        np.savez(archive, images=images[chosen], **labels)
    if name == "LeNet-5, pruned":
        deployed = prune(original, folder / "lenet5_pruned.onnx", PRUNED)
    values: dict[str, Any] = {
        "original": {"path": original, "input": pair.entry, "options": options},
        "deployed": {"path": deployed, "input": pair.entry, "options": options},
        "seeds": {"path": source, "limit": seeds},
        "search": {"strategy": strategy},
        "survey": {"enabled": survey and name != SPEECH},
        "devices": [device.name],
        "inventory": device.inventory,
        "out": folder / "campaign",
    }

    def group(seed: str) -> int | str:
        return int(seed.rpartition(":")[2]) % photographs if photographs else seed

    out: Path = values["out"]
    if out.is_dir():
        resume_campaign(out, changes={"inventory": device.inventory, "devices": [device.name]})
    else:
        run_campaign(config_from(values, "the benchmark"))
    return Campaign(out, group, data / pair.float_model if pair.float_model else None)


def _crops(data: Path, pair: Pair, count: int) -> tuple[NDArray[np.uint8], int]:
    """Return crops of the photographs in turn, uint8 [count, 224, 224, 3], and how many photographs."""
    photographs = list(images_of(data, pair))
    for path in sorted((data / "images" / "photos_detection").glob("*.jpg")):
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if pixels is None:
            raise SystemExit(f"{path} can't be read")
        photographs.append(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB).astype(np.uint8))
    rng = np.random.default_rng(0)
    order = rng.permutation(len(photographs))
    chosen = [photographs[order[place % len(order)]] for place in range(count)]
    return np.stack([crop(one, rng) for one in chosen]), len(photographs)


def row(cells: Sequence[object]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"
