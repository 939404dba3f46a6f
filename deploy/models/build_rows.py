# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = [
#     "torch==2.13.0",
#     "onnx==1.23.2",
#     "mlxtend==0.25.0",
# ]
# ///
# ruff: noqa: T201 - a script that is run by its path, in no package, and prints its figures
"""Makes the recurrent original of the fault suite: an LSTM over the rows of a digit, as ONNX.

``python deploy/models/build_rows.py --out host/edgeflare/assets/faults`` takes a minute of a core.

It is trained on the 4,000 training images of ``mnist_split.py``. Input: float32 [N, 28, 28], pixels
/ 255; output: ten softmax scores.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parent))

from mnist_split import split

HIDDEN = 48
EPOCHS = 15


class Rows(torch.nn.Module):
    """An LSTM whose last state is classified; logits [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(28, HIDDEN, batch_first=True)
        self.dense = torch.nn.Linear(HIDDEN, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits of images [N, 28, 28] in 0 to 1."""
        return self.dense(self.lstm(images)[0][:, -1])


def trained(images: np.ndarray, labels: np.ndarray) -> Rows:
    """Train by Adam in shuffled batches of 32, each image moved by up to two pixels."""
    torch.manual_seed(0)
    model = Rows()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    given, wanted = torch.from_numpy(images.astype(np.float32) / 255), torch.from_numpy(labels)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(given)).split(32):
            moves = torch.randint(-2, 3, (2,)).tolist()
            moved = torch.roll(given[batch], moves, (1, 2))
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(moved), wanted[batch]).backward()
            optimiser.step()
        schedule.step()
    return model.eval()


def to_onnx(model: Rows) -> onnx.ModelProto:
    """Return the model with ONNX's operator LSTM; its gates are in another order than torch's."""
    values = {name: value.numpy() for name, value in model.state_dict().items()}

    def gates(name: str) -> np.ndarray:
        first, forget, cell, out = np.split(values[f"lstm.{name}_l0"], 4)
        return np.concatenate([first, out, forget, cell])

    constants = {
        "weights": gates("weight_ih")[None],
        "recurrence": gates("weight_hh")[None],
        "biases": np.concatenate([gates("bias_ih"), gates("bias_hh")])[None],
        "dense": values["dense.weight"].T.copy(),
        "dense_bias": values["dense.bias"],
        "last": np.array(-1, np.int64),
        "directions": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("Transpose", ["input"], ["steps"], perm=[1, 0, 2]),
        helper.make_node(
            "LSTM",
            ["steps", "weights", "recurrence", "biases"],
            ["states", "", "cell"],
            hidden_size=HIDDEN,
        ),
        helper.make_node("Gather", ["states", "last"], ["final"], axis=0),
        helper.make_node("Squeeze", ["final", "directions"], ["features"]),
        helper.make_node("Gemm", ["features", "dense", "dense_bias"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["output"], axis=-1),
    ]
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "rows",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 28, 28])],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["n", 10])],
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.checker.check_model(made, full_check=True)
    return made


def main() -> None:
    """Write the model, and print the share of right answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    images, labels, test, test_labels = split()
    model = trained(images, labels)
    with torch.no_grad():
        said = model(torch.from_numpy(test.astype(np.float32) / 255)).argmax(1).numpy()
    print(f"{np.mean(said == test_labels):.3f} right on {len(test)} test images")
    onnx.save_model(to_onnx(model), out / "rows_lstm.onnx")


if __name__ == "__main__":
    main()
