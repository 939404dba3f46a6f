"""The demo's original as a model of PyTorch and of Keras, with the same weights."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from command import DEMO
from onnx import numpy_helper


def weights() -> dict[str, np.ndarray]:
    graph = onnx.load(DEMO / "original.onnx").graph
    return {one.name: numpy_helper.to_array(one) for one in graph.initializer}


def torch_model() -> Any:
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84),
        nn.Tanh(), nn.Linear(84, 10), nn.Softmax(1),
    )  # fmt: skip
    values = weights()
    names = (
        ("conv1", "bias1"),
        ("conv2", "bias2"),
        *((f"dense{n}", f"bias{n + 2}") for n in (1, 2, 3)),
    )
    layers = [one for one in model if isinstance(one, nn.Conv2d | nn.Linear)]
    for layer, (name, bias) in zip(layers, names, strict=True):
        value = values[name] if name.startswith("conv") else values[name].T
        layer.weight.data = torch.from_numpy(value.copy())
        layer.bias.data = torch.from_numpy(values[bias].copy())
    return model.eval()


def torch_file(path: Path) -> Path:
    """Write the model: ``.pt2`` of torch.export, or TorchScript."""
    import torch

    model, example = torch_model(), torch.zeros(1, 1, 28, 28)
    if path.suffix == ".pt2":
        torch.export.save(torch.export.export(model, (example,)), str(path))
    else:
        torch.jit.trace(model, example).save(str(path))
    return path


def keras_file(path: Path) -> Path:
    """Write the model, [n, 28, 28, 1] -> [n, 10], computed by PyTorch."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    values = weights()
    # Flattened here are height, width, channels; there the channels come first.
    first = values["dense1"].reshape(16, 5, 5, 120).transpose(1, 2, 0, 3).reshape(400, 120)
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(6, 5, padding="same", activation="tanh"),
            layers.MaxPooling2D(2),
            layers.Conv2D(16, 5, activation="tanh"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(120, activation="tanh"),
            layers.Dense(84, activation="tanh"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    kernels = [values["conv1"].transpose(2, 3, 1, 0), values["conv2"].transpose(2, 3, 1, 0)]
    kernels += [first, values["dense2"], values["dense3"]]
    model.set_weights(
        [value for n, kernel in enumerate(kernels) for value in (kernel, values[f"bias{n + 1}"])]
    )
    model.save(path)
    return path
