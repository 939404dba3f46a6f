"""Whether a device's processor saturates the 8-bit products of the deployed model.

On x86-64 without VNNI, onnxruntime adds two products of an unsigned and a signed byte in 16 bits, which
saturate (VPMADDUBSW); processors with VNNI and arm64 compute them exactly.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.answers import AnswerKind
from edgeflare.answers.interface import ModelInterface
from edgeflare.errors import EdgeFlareError
from edgeflare.models import AnswerReader, OriginalModel
from edgeflare.types import Output, Seed, with_row

SEEDS_TRIED = 32
"""The first seeds, on which what differs is tried."""
_EXACT = ("avx512_vnni", "avx_vnni")
_OF_8_BITS = (b"QLinear", b"MatMulInteger", b"ConvInteger", b"DequantizeLinear", b"QGemm")
_APART = 1e-3
"""What other roundings of the rest of a model come to, in scores, is below that."""


def saturates(runtime: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> bool:
    """Whether sums of 8-bit products saturate there: by the runtime in effect and the processor."""
    return (
        runtime.get("name") == "onnx"
        and runtime.get("providers") == ["CPUExecutionProvider"]
        and not runtime.get("exact_int8")
        and fingerprint.get("arch") == "x86_64"
        and set(_EXACT).isdisjoint(fingerprint.get("cpu_flags") or ())
    )


def saturated_answers(
    path: Path, side: ModelInterface, reader: AnswerReader, seeds: Iterable[Seed]
) -> dict[str, Any] | None:
    """Return what saturation changes of a device's answers on the first 32 seeds; None for nothing.

    That is, as JSON, the `file`, the number of `seeds`, and on how many of them the `answers` and the
    `decisions` are others. `path` is the deployed model, which this machine runs with exact products; `side` and `reader`
    are how its inputs are prepared and its outputs read. `seeds` have the device's answers. None,
    too, where the model can't be run here, or is repaired.
    """
    if side.repair is not None:
        return None
    if path.suffix.lower() != ".onnx" or not any(one in path.read_bytes() for one in _OF_8_BITS):
        return None
    known = list(islice(seeds, SEEDS_TRIED))
    answers = [seed.outputs.deployed for seed in known]
    try:
        model = OriginalModel(path, "onnx", {"exact_int8": True})
        try:
            if side.chosen is not None:
                model.fix_inputs(side.chosen.given)
            model.configure(side.spec, side.asked, side.decoder, keep=side.keep)
            model.read_with(reader)
            exact = model.scores([with_row(seed.sample, seed.row) for seed in known])
        finally:
            model.close()
    except EdgeFlareError:
        return None
    differ = partial(_differ, side.kind)
    other = sum(map(differ, answers, exact))
    if other == 0:
        return None
    decisions = sum(map(partial(_decide_otherwise, side.kind), answers, exact))
    return {"file": path.name, "seeds": len(known), "answers": other, "decisions": decisions}


def _decide_otherwise(kind: AnswerKind[Any], answer: Output | None, exact: Output | None) -> bool:
    if answer is None or exact is None or kind.is_measured:
        return _differ(
            kind, answer, exact
        )  # what is a deviation a tolerance decides, not these two
    return not kind.agree(answer, exact)


def _differ(kind: AnswerKind[Any], answer: Output | None, exact: Output | None) -> bool:
    if answer is None or exact is None:
        return answer is not exact
    ours, theirs = kind.numbers(answer), kind.numbers(exact)
    if kind.text(answer) != kind.text(exact) or ours.shape != theirs.shape:
        return True
    return bool(np.abs(ours - theirs).max(initial=0.0) > _APART)
