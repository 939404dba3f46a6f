"""The layers of Whisper as ONNX nodes.

Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", section 2.2:
pre-normalised transformer layers. Every tensor is float32 [1, positions, width].
"""

from __future__ import annotations

import math

import numpy as np

from whisper_export.builder import Builder
from whisper_export.model import WhisperModel
from whisper_export.weights import floats

LAYER_NORM_EPSILON = 1e-5


class Layers:
    """Adds layers of ``model`` to the graph of ``builder``."""

    def __init__(self, model: WhisperModel, builder: Builder) -> None:
        self._model = model
        self._add = builder

    def convolution(self, signal: str, name: str, stride: int) -> str:
        """A convolution over three positions with GELU, float32 [1, channels, positions]."""
        result = self._add.call(
            "Conv",
            signal,
            self._weight(f"{name}/weight"),
            self._weight(f"{name}/bias"),
            kernel_shape=[3],
            pads=[1, 1],
            strides=[stride],
        )
        return self.gelu(result)

    def norm(self, tensor: str, name: str) -> str:
        """Layer normalisation over the features."""
        return self._add.call(
            "LayerNormalization",
            tensor,
            self._weight(f"{name}/gamma"),
            self._weight(f"{name}/beta"),
            axis=-1,
            epsilon=LAYER_NORM_EPSILON,
        )

    def linear(self, tensor: str, name: str) -> str:
        """A linear layer: the weights, kept as [out, in], are turned for the product."""
        weight = floats(self._model.weights, f"{name}/weight").T
        bias = self._weight(f"{name}/bias")
        product = self._add.call("MatMul", tensor, self._add.constant(f"{name}/weight", weight))
        return self._add.call("Add", product, bias)

    def gelu(self, tensor: str) -> str:
        """The exact GELU, x / 2 (1 + erf(x / sqrt 2))."""
        add = self._add
        scaled = add.call("Div", tensor, add.scalar("square_root_of_two", math.sqrt(2.0)))
        gate = add.call("Add", add.call("Erf", scaled), add.scalar("one", 1.0))
        return add.call("Mul", add.call("Mul", tensor, gate), add.scalar("half", 0.5))

    def feed_forward(self, tensor: str, name: str) -> str:
        """``tensor`` plus its normalised, widened, gated and narrowed self."""
        inner = self.linear(self.norm(tensor, f"{name}/layer_norm"), f"{name}/linear_0")
        return self._add.call("Add", tensor, self.linear(self.gelu(inner), f"{name}/linear_1"))

    def projections(self, tensor: str, name: str, count: int) -> list[str]:
        """``count`` projections in one linear layer, each float32 [1, heads, positions, n]."""
        model = self._model
        joined = self.linear(tensor, name)
        parts = [joined]
        if count > 1:
            sizes = self._add.integers(*([model.width] * count))
            parts = self._add.node("Split", [joined, sizes], outputs=count, axis=-1)
        return [self._add.heads(part, model.heads, model.width) for part in parts]

    def attention(self, queries: str, keys: str, values: str, name: str) -> str:
        """Attention of ``queries`` over ``keys`` and ``values``, heads joined and projected."""
        add, model = self._add, self._model
        scale = add.scalar("attention_scale", 1.0 / math.sqrt(model.width // model.heads))
        turned = add.call("Transpose", keys, perm=[0, 1, 3, 2])
        weights = add.call("MatMul", add.call("Mul", queries, scale), turned)
        mixed = add.call("MatMul", add.call("Softmax", weights, axis=-1), values)
        joined = add.call("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.linear(add.call("Reshape", joined, add.integers(1, -1, model.width)), name)

    def _weight(self, name: str) -> str:
        return self._add.constant(name, np.asarray(floats(self._model.weights, name)))
