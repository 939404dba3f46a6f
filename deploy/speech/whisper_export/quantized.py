"""Dynamic int8 of an exported model, the way onnxruntime's users do it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Weights as unsigned bytes: the products of signed ones saturate on x86 CPUs without VNNI, and the
# file would then answer by the CPU it runs on. The convolutions stay float32.
QUANTIZED_OPERATORS = ["MatMul", "Gather"]


def write_int8(float_model: Path, destination: Path) -> None:
    """Writes ``float_model`` with 8-bit weights, one scale a tensor, to ``destination``.

    Activations stay float32 in the file and are quantised as they come (dynamic quantisation).
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _without_advice():
        quantize_dynamic(
            float_model,
            destination,
            op_types_to_quantize=QUANTIZED_OPERATORS,
            weight_type=QuantType.QUInt8,
            extra_options={"EnableSubgraph": True},
        )


@contextmanager
def _without_advice() -> Iterator[None]:
    """Suppresses onnxruntime's advice to optimise first, whose result depends on the release."""
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
