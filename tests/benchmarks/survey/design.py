"""What a survey's inputs tell: where the original is sure, and which score tells faulty from healthy.

python tests/benchmarks/survey/design.py [--data FOLDER] [--seeds 100] [--candidates 60] [--draws 20]

Without --data: the packaged LeNet-5 and digits. With the folder of DiffChaser's models and the test
images: its LeNet-5 and ResNet-20. Two tables for each.

The first: the share of inputs at which the original's margin is at least 0.3, by family and severity, and
the share of these whose brightest value is below 100.

The second: AUC of faulty against healthy int8 models, mean over the faults. Ten healthy models (onnxruntime, static;
per channel and per tensor, three calibrations, on three parts of the images); five are references, five are judged. The
faults are planted before the quantisation, or before the healthy model h0, or are regions of the input where its answer is
wrong. Each draw takes half of the seeds and so many inputs of each, families and severities in even shares. The scores:

- mean: mean total variation between the answers of original and deployed model, without references
- ratio: its logarithm minus that of the references' mean
- log: mean logarithm (of the total variation + 1e-4) minus that of the references
- excess: mean of how far it is above the largest of the references' on the same input
- top: the mean of the largest 5 % of that
- share: inputs on which it is above all references' by more than 0.1
- group: the largest mean of a group of families
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationMethod, QuantType, quantize_static
from rich.console import Console
from rich.table import Table

from edgeflare.survey import PARTNERS, SEVERITIES, Family, families_for

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from command import DEMO

Array = NDArray[Any]
SURE, QUERIES = 0.3, (2, 3, 4, 6)
HEALTHY = [
    (0, True, "MinMax", QuantType.QUInt8), (1, False, "MinMax", QuantType.QUInt8),
    (2, True, "Percentile", QuantType.QUInt8), (0, False, "Percentile", QuantType.QUInt8),
    (1, True, "Entropy", QuantType.QUInt8), (2, False, "MinMax", QuantType.QInt8),
    (0, False, "Entropy", QuantType.QUInt8), (1, True, "Percentile", QuantType.QInt8),
    (2, False, "Percentile", QuantType.QUInt8), (1, True, "MinMax", QuantType.QUInt8),
]  # fmt: skip
"""Part of the images for calibration, per channel, method, type of the activations."""
PIXELS: Mapping[str, Callable[[Array], Array]] = {
    "highlights clipped at 200": lambda image: np.minimum(image, 200),
    "highlights clipped at 225": lambda image: np.minimum(image, 225),
    "levels 16 to 235": lambda image: np.rint(16 + image * (219 / 255)),
    "gamma 0.9": lambda image: np.rint(255 * (image / 255) ** 0.9),
    "right column black": lambda image: np.pad(image[:, :-1], ((0, 0), (0, 1), (0, 0))),
    "12 levels brighter": lambda image: np.minimum(image + 12.0, 255),
    "sum wraps": lambda image: image.astype(int) * 11 // 10 % 256,
}
"""Faults before the model: what becomes of the image."""
REGIONS: Mapping[str, Callable[[Array], bool]] = {
    "wrong where the brightest is below 100": lambda image: bool(image.max() < 100),
    "wrong where the mean is above 180": lambda image: bool(image.mean() > 180),
    "wrong where 3 x 3 corner pixels are white": lambda image: bool(image[:3, :3].min() >= 230),
    "wrong where the range is below 80": lambda image: bool(np.ptp(image) < 80),
}


class Pair(NamedTuple):
    """An original, its images uint8 [n, height, width, channels], and (values - mean) / std."""

    name: str
    path: Path
    images: Array
    mean: Array
    std: Array

    def tensor(self, images: Sequence[Array]) -> Array:
        """Return the images as the model takes them."""
        values = ((np.stack(images) - self.mean) / self.std).astype(np.float32)
        shape = onnx.load(self.path).graph.input[0].type.tensor_type.shape.dim
        channels_first = shape[1].dim_value == values.shape[3]
        return values.transpose(0, 3, 1, 2) if channels_first else values

    def answers(self, path: Path, images: Sequence[Array]) -> Array:
        """Return a model's probabilities, float64 [images, classes]."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        parts = (images[start : start + 64] for start in range(0, len(images), 64))
        return np.concatenate([session.run(None, {name: self.tensor(p)})[0] for p in parts]).astype(
            float
        )


def pairs(data: Path | None) -> Iterator[Pair]:
    """Return the originals; images in a random order, as some files have them by class."""
    if data is None:
        seeds = np.load(DEMO / "seeds.npz")
        images = seeds[next(name for name in seeds.files if seeds[name].ndim >= 3)]
        yield _pair(
            "LeNet-5",
            DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist" / "lenet5.onnx",
            images,
            0,
            255,
        )
        return
    models = data / "models" / "diffchaser"
    digits = np.load(data / "images" / "mnist_test_0_499.npz")["images"]
    yield _pair("LeNet-5 of DiffChaser", models / "lenet5.onnx", digits, 0, 255)
    colour = np.load(data / "images" / "cifar10_test_500_jpeg.npz")["images"]
    mean, std = (125.307, 122.95, 113.865), (62.9932, 62.0887, 66.7048)
    yield _pair("ResNet-20 of DiffChaser", models / "resnet20.onnx", colour, mean, std)


def _pair(name: str, path: Path, images: Array, mean: Any, std: Any) -> Pair:
    images = images if images.ndim == 4 else images[..., np.newaxis]
    mixed = images[np.random.default_rng(0).permutation(len(images))]
    return Pair(name, path, mixed, np.float32(mean), np.float32(std))


class Pool(NamedTuple):
    """Inputs at which the original is sure: [n] seed, family and severity of each, and answers."""

    images: list[Array]
    seeds: Array
    families: Array
    severities: Array
    original: Array


def drawn(
    pair: Pair, families: Sequence[Family], seeds: int, candidates: int, console: Console
) -> Pool:
    """Return the inputs; print the first table."""
    rng = np.random.default_rng(1)
    cells = [(family, severity) for family in range(len(families)) for severity in SEVERITIES]
    images, rows = [], []
    for seed in range(seeds):
        for cell in rng.permutation(len(cells))[:candidates]:
            family, severity = cells[cell]
            params = families[family].draw(rng, pair.images[seed], severity)
            images.append(families[family].apply(pair.images[seed], params, pair.images[:PARTNERS]))
            rows.append((seed, family, severity))
    answers = pair.answers(pair.path, images)
    ranked = np.sort(answers, axis=1)
    sure = ranked[:, -1] - ranked[:, -2] >= SURE
    where = np.array(rows).T
    dark = np.array([image.max() < 100 for image in images])
    table = Table("family", *(f"severity {one}" for one in SEVERITIES), "dark", title=pair.name)
    for family in range(len(families)):
        own = where[1] == family
        shares = [sure[own & (where[2] == one)].mean() for one in SEVERITIES]
        table.add_row(
            families[family].name,
            *(f"{one:.2f}" for one in shares),
            f"{dark[own & sure].mean():.2f}",
        )
    shares = [sure[where[2] == one].mean() for one in SEVERITIES]
    table.add_row("all", *(f"{one:.2f}" for one in shares), f"{dark[sure].mean():.3f}")
    console.print(table)
    kept = [image for image, one in zip(images, sure, strict=True) if one]
    seed, family_of, severity = where[:, sure]
    return Pool(kept, seed, family_of, severity, answers[sure])


def answers_of_models(pair: Pair, pool: Pool, folder: Path) -> dict[str, Array]:
    """Return the answers of ten healthy models, h0 to h9, and of the faulty ones by their names."""
    parts = np.array_split(pair.images[len(pair.images) // 2 :], 3)
    answers = {}
    for number, (part, *how) in enumerate(HEALTHY):
        model = _quantised(pair, pair.path, folder / f"h{number}.onnx", parts[part], *how)
        answers[f"h{number}"] = pair.answers(model, pool.images)
    for name, damaged in _damaged(pair, folder):
        model = _quantised(pair, damaged, folder / "faulty.onnx", parts[0], *HEALTHY[0][1:])
        answers[name] = pair.answers(model, pool.images)
    for name, change in PIXELS.items():
        changed = [change(image).astype(np.uint8) for image in pool.images]
        answers[name] = pair.answers(folder / "h0.onnx", changed)
    for name, inside in REGIONS.items():
        wrong = np.array([inside(image) for image in pool.images])[:, np.newaxis]
        answers[name] = np.where(wrong, np.roll(answers["h0"], 1, axis=1), answers["h0"])
    return answers


def _quantised(
    pair: Pair, source: Path, path: Path, images: Array, per_channel: bool, method: str, kind: Any
) -> Path:
    name = onnx.load(source).graph.input[0].name
    tensors = iter([{name: pair.tensor([image])} for image in images[:100]])
    reader = type("Reader", (), {"get_next": lambda _: next(tensors, None)})()
    with redirect_stdout(StringIO()):
        quantize_static(
            source, path, reader, per_channel=per_channel, activation_type=kind,
            weight_type=QuantType.QInt8, calibrate_method=CalibrationMethod[method],
        )  # fmt: skip
    return path


def _damaged(pair: Pair, folder: Path) -> Iterator[tuple[str, Path]]:
    """Return originals with a channel, or weight, of the third last convolution scaled."""
    rng = np.random.default_rng(5)
    for what, factor in [("channel", 1.5), ("channel", 2.0), ("channel", 0.0), ("weight", 16.0)]:
        for one in (1, 2):
            model = onnx.load(pair.path)
            late = [node for node in model.graph.node if node.op_type == "Conv"][-3:][0]
            stored = next(i for i in model.graph.initializer if i.name == late.input[1])
            weights = numpy_helper.to_array(stored).copy()
            if what == "channel":
                weights[rng.integers(len(weights))] *= factor
            else:
                largest = np.argsort(-np.abs(weights), axis=None)
                weights.reshape(-1)[largest[rng.integers(weights.size // 4)]] *= factor
            stored.CopyFrom(numpy_helper.from_array(weights, stored.name))
            onnx.save(model, folder / "damaged.onnx")
            yield f"{what} x {factor:g}, {one}", folder / "damaged.onnx"


def scores(own: Array, references: Array, groups: Array) -> dict[str, float]:
    """Return each score; total variation [n] of a model and [references, n], group of each."""
    excess = np.maximum(own - references.max(axis=0), 0)
    top = max(1, len(own) // 20)
    return {
        "mean": own.mean(),
        "group": max(own[groups == one].mean() for one in np.unique(groups)),
        "ratio": np.log(own.mean() / references.mean()),
        "log": (np.log10(own + 1e-4) - np.log10(references + 1e-4)).mean(),
        "share": (excess > 0.1).mean(),
        "excess": excess.mean(),
        "top": np.sort(excess)[-top:].mean(),
    }


def chosen(pool: Pool, queries: int, rng: np.random.Generator) -> Array:
    """Return places in the pool: of half of the seeds so many inputs each, in even shares."""
    asked: list[int] = []
    by_family, by_severity = np.zeros(pool.families.max() + 1), np.zeros(max(SEVERITIES) + 1)
    seeds = np.unique(pool.seeds)
    for seed in rng.permutation(seeds)[: len(seeds) // 2]:
        own = list(rng.permutation(np.flatnonzero(pool.seeds == seed)))
        for _ in range(min(queries, len(own))):
            least = min(
                own, key=lambda i: (by_family[pool.families[i]], by_severity[pool.severities[i]])
            )
            own.remove(least)
            asked.append(least)
            by_family[pool.families[least]] += 1
            by_severity[pool.severities[least]] += 1
    return np.array(asked)


def auc(faulty: Array, healthy: Array) -> float:
    """Return the probability that a faulty model's score is above a healthy one's."""
    above = faulty[:, np.newaxis] - healthy
    return float((above > 0).mean() + (above == 0).mean() / 2)


def compare(
    pool: Pool, answers: Mapping[str, Array], groups: Array, draws: int, console: Console
) -> None:
    """Print the second table, and each fault's mean total variation and AUC by excess."""
    varied = {name: np.abs(one - pool.original).sum(1) / 2 for name, one in answers.items()}
    references = np.stack([varied[f"h{one}"] for one in range(1, 10, 2)])
    judged = [f"h{one}" for one in range(0, 10, 2)]
    faults = [name for name in varied if not name.removeprefix("h").isdigit()]
    found: dict[tuple[str, str, int], float] = {}
    for queries in QUERIES:
        places = [chosen(pool, queries, np.random.default_rng(one)) for one in range(draws)]
        rows = {
            name: [scores(varied[name][at], references[:, at], groups[at]) for at in places]
            for name in (*judged, *faults)
        }
        for score in rows["h0"][0]:
            healthy = np.array([row[score] for name in judged for row in rows[name]])
            for fault in faults:
                faulty = np.array([row[score] for row in rows[fault]])
                found[score, fault, queries] = auc(faulty, healthy)
    table = Table("score", *(f"{queries} a seed" for queries in QUERIES))
    for score in dict.fromkeys(score for score, _, _ in found):
        means = [np.mean([found[score, fault, one] for fault in faults]) for one in QUERIES]
        table.add_row(score, *(f"{mean:.3f}" for mean in means))
    console.print(table)
    table = Table("model", "mean total variation", *(f"excess, {one}" for one in QUERIES))
    spread = sorted(varied[f"h{one}"].mean() for one in range(10))
    table.add_row("ten healthy", f"{spread[0]:.4f} to {spread[-1]:.4f}")
    for fault in faults:
        values = (f"{found['excess', fault, one]:.2f}" for one in QUERIES)
        table.add_row(fault, f"{varied[fault].mean():.4f}", *values)
    console.print(table)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    console = Console(width=130)
    for pair in pairs(given.data):
        families = list(families_for("image", channels=pair.images.shape[3]).values())
        pool = drawn(pair, families, given.seeds, given.candidates, console)
        names = list(dict.fromkeys(family.group for family in families))
        groups = np.array([names.index(family.group) for family in families])[pool.families]
        with TemporaryDirectory() as folder:
            answers = answers_of_models(pair, pool, Path(folder))
        compare(pool, answers, groups, given.draws, console)


if __name__ == "__main__":
    main()
