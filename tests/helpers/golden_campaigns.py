"""The tiny campaigns whose reports are kept in `tests/golden`, run on this machine through the command line.

Their models calculate with integers and powers of two where their answers allow that, so that other processors
and other versions of a runtime find the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from command import Ran, edgeflare
from golden_texts import kept
from onnx import TensorProto, helper
from small_models import save_onnx
from speech_models import LETTERS, RATE, ctc_model, spelt
from text_models import SIZE as TEXT_SIZE
from text_models import text_reader, write_images, written

SIDE, CLASSES = 8, 4
EXACT = ("brightness", "contrast", "random-pixel-change", "shift")
"""Operators whose results do not depend on how a processor rounds."""
TERMINAL = {"COLUMNS": "1000", "NO_COLOR": "1"}
"""So wide that no table is folded, which the names of a machine would decide."""
NO_SURVEY = ("--no-survey",)
Texts = dict[str, str]


def exact_onnx(path: Path, kind: str, step: int = 1) -> Path:
    """x float32 [1, 3, 8, 8] of levels -> sums of them with whole weights, over 1,024: exact in any order.

    `kind`: "scores" are logits, "labels" their largest's index, "tags" and "vector" the sums, "map" the sums at each
    pixel. Weights are multiples of `step`.
    """
    rng = np.random.default_rng(3)
    of_map = kind == "map"
    shape = (CLASSES, 3, 1, 1) if of_map else (3 * SIDE * SIDE, CLASSES)
    weights = np.round(rng.integers(-8, 9, shape) / step) * step / (32 if of_map else 1024)
    nodes = [helper.make_node("Sub", ["x", "middle"], ["levels"])]
    if of_map:
        nodes.append(helper.make_node("Conv", ["levels", "weights"], ["sums"]))
    else:
        nodes.append(helper.make_node("Flatten", ["levels"], ["flat"]))
        nodes.append(helper.make_node("MatMul", ["flat", "weights"], ["sums"]))
    dtype, sizes = TensorProto.FLOAT, [1, CLASSES, SIDE, SIDE] if of_map else [1, CLASSES]
    if kind == "labels":
        nodes.append(helper.make_node("ArgMax", ["sums"], ["y"], axis=-1, keepdims=0))
        dtype, sizes = TensorProto.INT64, [1]
    else:
        nodes.append(helper.make_node("Identity", ["sums"], ["y"]))
    constants = {"middle": np.float32(128), "weights": weights.astype(np.float32)}
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("y", dtype, sizes)],
        {name: np.asarray(value) for name, value in constants.items()},
        {"edgeflare.input": '{"scale": "1"}'},
    )


def exact_detector(path: Path, step: float | None = None) -> Path:
    """x float32 [1, 3, 8, 8] of levels -> the four quarters [1, 4, 6]: corners, mean over 256, brighter channel.

    Scores are multiples of `step`.
    """
    nodes = [
        helper.make_node("AveragePool", ["x"], ["means"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Reshape", ["means", "rows"], ["channels"]),
        helper.make_node("ReduceMax", ["channels"], ["brightest"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["brightest", "share"], ["scores"]),
        helper.make_node("Div", ["scores", "step"], ["steps"]),
        helper.make_node("Floor", ["steps"], ["whole_steps"]),
        helper.make_node("Mul", ["whole_steps", "step"], ["coarse"]),
        helper.make_node("ArgMax", ["channels"], ["index"], axis=1, keepdims=1),
        helper.make_node("Cast", ["index"], ["classes"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["coarse", "classes"], ["pairs"], axis=1),
        helper.make_node("Transpose", ["pairs"], ["columns"], perm=[0, 2, 1]),
        helper.make_node("Concat", ["boxes", "columns"], ["y"], axis=2),
    ]
    corners = [[left, top, left + 4, top + 4] for top in (0, 4) for left in (0, 4)]
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6])],
        {
            "rows": np.array([1, 3, 4]),
            "share": np.array(1 / 256, np.float32),
            "step": np.array(step or 1 / 4096, np.float32),
            "boxes": np.array([corners], np.float32),
        },
        {"edgeflare.input": '{"scale": "1"}'},
    )


def write_seeds(path: Path, count: int, cell: int = SIDE) -> Path:
    """Write images uint8 [count, 8, 8, 3] of noisy cells of one hue each."""
    rng = np.random.default_rng(5)
    cells = SIDE // cell
    hues = rng.integers(56, 200, (count, cells, 1, cells, 1, 3))
    noise = rng.integers(-24, 25, (count, cells, cell, cells, cell, 3))
    np.savez(path, images=(hues + noise).astype(np.uint8).reshape(count, SIDE, SIDE, 3))
    return path


@dataclass
class Golden:
    """A campaign that has run in the folder `home`, and what its command ended with."""

    home: Path
    ended: Ran
    folder: str = "campaign"

    def rendered(self) -> Texts:
        """Return what each format says of it, by file name, without what differs by machine."""
        commands = {
            "show.txt": ("show", self.folder),
            "show.json": ("show", self.folder, "--json"),
            "report.md": ("report", self.folder, "--format", "markdown"),
            "report.xml": ("report", self.folder, "--format", "junit"),
            "report.csv": ("report", self.folder, "--format", "csv"),
            "report.html": ("report", self.folder, "--format", "html", "--out", "report.html"),
        }
        texts = {}
        for name, command in commands.items():
            ran = edgeflare(*command, home=self.home, extra=TERMINAL)
            assert ran.code == 0, ran.err
            texts[name] = ran.out
        page = self.home / "report.html"
        return kept(texts | {page.name: page.read_text(encoding="utf-8")}, self.home)


def run(home: Path, *flags: object, command: str = "run", code: int = 0) -> Golden:
    """Run a campaign from the files of `home`."""
    quick = ("--timeout", 0, "--workers", 0, "--concurrency", 1, "--out", "campaign")
    models = ("--original", "original.onnx", "--deployed", "deployed.onnx")
    if command == "survey":
        quick = quick[4:]
    ran = edgeflare(command, *models, *quick, *flags, home=home)
    assert ran.code == code, ran.both
    return Golden(home, ran)


def dflare(queries: int = 40) -> tuple[object, ...]:
    """The flags of a search with exact operators and few queries."""
    return ("--strategy", "dflare", "--max-queries", queries, *operators(*EXACT))


def operators(*names: str) -> tuple[str, ...]:
    return tuple(flag for name in names for flag in ("--operator", name))


def of_images(home: Path, kind: str, *flags: object, **more: Any) -> Golden:
    """Run a campaign of three seeds with an exact pair of this kind."""
    deployed = more.pop("deployed", kind)
    exact_onnx(home / "original.onnx", kind)
    exact_onnx(home / "deployed.onnx", deployed, step=more.pop("step", 4))
    write_seeds(home / "seeds.npz", more.pop("seeds", 3))
    return run(home, "--seeds", "seeds.npz", *flags, **more)


def scores(home: Path) -> Golden:
    """The default search, on logits."""
    return of_images(home, "scores", "--output", "logits", *NO_SURVEY)


def labels(home: Path) -> Golden:
    flags = ("--original-output", "logits", "--deployed-output", "label")
    return of_images(home, "scores", *flags, *dflare(), *NO_SURVEY, deployed="labels")


def tags(home: Path) -> Golden:
    flags = ("--task", "multi-label", "--output", "sigmoid-logits")
    return of_images(home, "tags", *flags, *dflare(), *NO_SURVEY)


def vector(home: Path) -> Golden:
    flags = ("--task", "vector", "--tolerance", 1)
    return of_images(home, "vector", *flags, *dflare(), *NO_SURVEY)


def dense_map(home: Path) -> Golden:
    flags = ("--task", "dense", "--tolerance", 0.25)
    return of_images(home, "map", *flags, *dflare(), *NO_SURVEY)


def detections(home: Path) -> Golden:
    exact_detector(home / "original.onnx")
    exact_detector(home / "deployed.onnx", step=3 / 16)
    write_seeds(home / "seeds.npz", 3, cell=4)
    flags = ("--task", "detection", "--decoder", "kind=end-to-end", "--decoder", "units=pixels")
    return run(home, "--seeds", "seeds.npz", *flags, *dflare(), *NO_SURVEY)


def transcripts(home: Path) -> Golden:
    text_reader(home / "original.onnx")
    text_reader(home / "deployed.onnx", drift=0.05)
    texts = enumerate(("ab ca", "dab", "cab"))
    write_images(home / "seeds", [written(text, 8, number) for number, text in texts])
    size = f"size={TEXT_SIZE[0]},{TEXT_SIZE[1]}"
    flags = ("--input", "scale=1/255", "--input", size, "--crossing", "natural")
    search = operators("brightness", "contrast", "shift")
    return run(home, "--seeds", "seeds", *flags, *search, *NO_SURVEY)


def audio(home: Path) -> Golden:
    ctc_model(home / "original.onnx")
    ctc_model(home / "deployed.onnx", shift=0.04)
    (home / "seeds").mkdir()
    for number, text in enumerate(("ab|ca", "b|ac|b", "ca|ba")):
        sound = spelt(text, LETTERS)
        soundfile.write(home / "seeds" / f"{number}.wav", sound, RATE, subtype="FLOAT")
    search = ("--strategy", "dflare", "--max-queries", 25, "--operator", "gain")
    return run(home, "--seeds", "seeds", *search, *NO_SURVEY)


def control(home: Path) -> Golden:
    return of_images(home, "scores", "--output", "logits", *dflare(), *NO_SURVEY, "--control")


def replicate(home: Path) -> Golden:
    fleet = ("--device", "local", "--device", "local", "--fleet", "replicate")
    return of_images(home, "scores", "--output", "logits", *fleet, *dflare(), *NO_SURVEY)


def survey(home: Path) -> Golden:
    families = ("--family", "dim", "--family", "gain", "--survey-queries", 4, "--sure", 0.1)
    return of_images(
        home, "scores", "--output", "logits", *families, seeds=4, step=4, command="survey"
    )


def nothing_found(home: Path) -> Golden:
    return of_images(home, "scores", "--output", "logits", *dflare(6), *NO_SURVEY, step=1)


def unfinished(home: Path) -> Golden:
    """Stopped by its budget in the second of its searches."""
    limits = ("--total-queries", 12)
    return of_images(home, "scores", "--output", "logits", *dflare(), *NO_SURVEY, *limits)


def limits(home: Path) -> Golden:
    """Of five limits three are crossed."""
    (home / "limits.toml").write_text(
        "[limits]\nmax_deviation_rate = 0.25\nmax_seed_deviation_rate = 0.5\n"
        "min_median_queries = 1000\nmin_l2 = 0.001\nmax_severity = 0.0625\n"
    )
    flags = ("limits.toml", "--output", "logits", "--margin-floor", 0.001)
    return of_images(home, "scores", *flags, *dflare(), *NO_SURVEY, code=1)


def replay(home: Path) -> Golden:
    """What the first campaign found, sent to the same model with finer weights."""
    of_images(home, "scores", "--output", "logits", *dflare(), *NO_SURVEY)
    exact_onnx(home / "finer.onnx", "scores", step=2)
    return replayed(home)


def replay_of_detections(home: Path) -> Golden:
    detections(home)
    exact_detector(home / "finer.onnx", step=5 / 32)
    return replayed(home)


def replayed(home: Path) -> Golden:
    """Send what the campaign in `home` found to `finer.onnx`."""
    ran = edgeflare("replay", "campaign", "--deployed", "finer.onnx", "--out", "replay", home=home)
    assert ran.code == 0, ran.both
    return Golden(home, ran, "replay")


class Night(Golden):
    """A night on a model that is coarser than the night before."""

    def rendered(self) -> Texts:
        """Return what the night said, as text and as JSON, and the page of all nights."""
        page = self.home / "history" / "index.html"
        again = edgeflare("nightly", "nightly.toml", "--json", home=self.home)
        assert again.code == 1, again.both
        texts = {"show.txt": self.ended.out, "show.json": again.out}
        return kept(texts | {"report.html": page.read_text(encoding="utf-8")}, self.home)


def night(home: Path) -> Golden:
    """A night that is red, after a green one, and one more."""
    exact_onnx(home / "original.onnx", "scores")
    write_seeds(home / "seeds.npz", 3)
    (home / "campaign.toml").write_text(
        '[original]\npath = "original.onnx"\noutput = "logits"\n'
        '[deployed]\npath = "deployed.onnx"\noutput = "logits"\n'
        '[seeds]\npath = "seeds.npz"\n[survey]\nenabled = false\n'
        f'[search]\nstrategy = "dflare"\nmax_queries = 20\noperators = {list(EXACT)}\ntimeout_s = 0\n'
    )
    (home / "nightly.toml").write_text(
        'history = "history"\ndevices = ["local"]\n[[models]]\nname = "small"\ncampaign = "campaign.toml"\n'
    )
    for step, code in ((2, 0), (10, 1)):
        exact_onnx(home / "deployed.onnx", "scores", step=step)
        ran = edgeflare("nightly", "nightly.toml", home=home, extra=TERMINAL)
        assert ran.code == code, ran.both
    return Night(home, ran)


CAMPAIGNS: Mapping[str, Callable[[Path], Golden]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        *(scores, labels, tags, vector, dense_map, detections, transcripts, audio),
        *(control, replicate, survey, nothing_found, unfinished, limits),
        *(replay, replay_of_detections, night),
    )
}
