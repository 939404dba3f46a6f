"""Causes: what a triage finds, as numbers and codes, and their order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

CauseKind: TypeAlias = Literal[
    "non-finite",
    "constant",
    "not-repeatable",
    "conversion",
    "compression",
    "calibration",
    "output-scale",
    "preprocessing",
    "interface",
    "another-model",
    "labels",
    "state",
    "exif",
    "resize-rule",
    "batch",
    "input-range",
    "kernels",
    "accelerator",
    "hardware",
    "device",
]
"""What a pair differs by. Programs read these names."""
Proof: TypeAlias = Literal["corrected", "located", "read", "indicated"]
"""How a cause is known: a change made the pair agree; the first operator that differs was found; it
stands in the files; or it is only likely."""
Side: TypeAlias = Literal["original", "deployed", "both", "device"]
NumberFormat: TypeAlias = Literal["float32", "float16", "int16", "int8"]

# The order of causes. A cause that makes all answers unusable comes first; a change that restored the
# pair is the strongest proof; what was located comes before what is merely likely; remarks are last.
UNUSABLE = 5.0
ANOTHER_MODEL = 4.6
CORRECTED = 4.5
RENUMBERED_LABELS = 4.4
OUTPUT_SCALE = 4.3
IGNORED = 4.0
MOST_LIKE = 3.6
TRAINING_MODE = 3.5
INACCURATE = 3.4
CUT_OFF = 3.4
LOCATED = 3.3
CONSTANT = 3.25
COARSE = 3.2
REMARK = 3.0
REFERENCE = 2.9
LIKELY = 2.5
BLUNT = 2.0
WEAK = 1.5
SHOWN = 2.0
"""Weaker causes are shown only where there is no other."""
STANDING = 3.5
"""Where a change restored the pair, weaker causes follow from the same fault and aren't shown."""


@dataclass(frozen=True)
class Cause:
    """Why a pair differs, or, as a remark, what an application may meet though it agrees.

    `kind`, `proof` and `side` are codes; `what` tells causes of one kind apart, such as
    "inputs-exchanged". `names`: tensors, operators, inputs or outputs, as the files have them.
    `evidence`: the numbers. `change`: what would mend it, by name; of a preprocessing the options of
    `--input` for that side. `strength` and `gain` (dB) order causes.
    """

    kind: CauseKind
    what: str
    proof: Proof
    strength: float
    side: Side = "deployed"
    names: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] = field(default_factory=dict)
    gain: float = 0.0
    is_remark: bool = False


@dataclass(frozen=True)
class Triage:
    """Why a pair differs: ranked causes and remarks, and what was ruled out.

    `agreement` is that of the outputs, and `expected` what healthy pairs of this number format reach,
    in dB; None where the answers can't be compared. `is_healthy`: no cause of a fault was found and
    the pair agrees. `failed`: the checks that could not be tried, and why. `calls`: inferences of
    both models on this machine.
    """

    number_format: NumberFormat
    agreement: float | None
    expected: float
    same_class: float | None
    is_healthy: bool
    is_unusable: bool
    causes: tuple[Cause, ...]
    remarks: tuple[Cause, ...]
    ruled_out: Mapping[str, Any] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0


def ranked(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Return causes in their order, the strongest first, without those that follow from another.

    Several of a compression are one, with the evidence of the strongest two.
    """
    found = sorted(causes, key=lambda cause: (-cause.strength, -cause.gain))
    found = _one_compression(found)
    strong = [cause for cause in found if cause.strength >= SHOWN]
    found = strong or found[:1]
    restored = any(
        cause.strength == CORRECTED and cause.gain > 0 and cause.side != "both" for cause in found
    )
    if restored:
        found = [cause for cause in found if cause.strength >= STANDING or cause.is_remark]
    return tuple(found)


def _one_compression(causes: Sequence[Cause]) -> list[Cause]:
    of_kind = [cause for cause in causes if cause.kind == "compression"]
    kept = [cause for cause in causes if cause.kind != "compression" or cause is of_kind[0]]
    if len(of_kind) > 1:
        first, second = of_kind[:2]
        joined = Cause(
            **{
                **vars(first),
                "names": tuple(dict.fromkeys((*first.names, *second.names))),
                "evidence": {**second.evidence, **first.evidence, "also": second.what},
            }
        )
        kept[kept.index(first)] = joined
    return kept
