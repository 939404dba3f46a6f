"""Causes: what a triage finds, as numbers and codes, and their order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

NAME = "triage"
"""The name of the analysis under which a campaign has its triage."""
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
CUT_OFF = 3.4
LOCATED = 3.3
CONSTANT = 3.25
COARSE = INACCURATE = 3.2
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
    text: str = ""
    """What a check of another distribution says of its cause; EdgeFlare's own have theirs by `what`."""


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
    order = sorted(causes, key=lambda cause: (-cause.strength, -cause.gain))
    order = _one_compression(order)
    strong = [cause for cause in order if cause.strength >= SHOWN]
    order = strong or order[:1]
    restored = any(
        cause.strength == CORRECTED and cause.gain > 0 and cause.side != "both" for cause in order
    )
    if restored:
        # files whose weights were cut up or folded are one model where that change makes them agree
        order = [
            cause
            for cause in order
            if cause.is_remark or (cause.strength >= STANDING and cause.kind != "another-model")
        ]
    return tuple(order)


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


Change = Mapping[str, Any]


def change_of(cause: Cause) -> Change:
    """Return the change that would mend a cause, as far as its evidence has the values; {}: none is known."""
    make = _CHANGES.get(f"{cause.kind}/{cause.what}") or _CHANGES.get(cause.kind)
    if cause.text:  # of another distribution: its evidence is its own
        make = None
    change = cause.change or ({} if make is None else make(cause, cause.evidence))
    return {name: value for name, value in change.items() if value not in (None, (), [], {})}


def _recalibrated(cause: Cause, evidence: Change) -> Change:
    """The least and the largest value that the tensors must hold."""
    return {"names": cause.names, "range": evidence.get("original_range", evidence.get("fed"))}


def _converted(cause: Cause, evidence: Change) -> Change:
    """The attributes and the weights that an operator has in the original."""
    attributes = {name: was for name, (was, _) in evidence.get("attributes", {}).items()}
    is_other = evidence.get("weights") in ("differ", "other-order")
    weights = evidence.get("partner") or (evidence.get("original_name") if is_other else None)
    return {"names": cause.names, "attributes": attributes, "weights_of": weights}


_CHANGES: Mapping[str, Callable[[Cause, Change], Change]] = {
    "non-finite": lambda cause, _: {"in_float32": cause.names},
    "not-repeatable": lambda cause, _: {"without": cause.names},
    "calibration": _recalibrated,
    "input-range": _recalibrated,
    "compression": lambda cause, _: {"in_float": cause.names},
    "output-scale": lambda cause, e: {"names": cause.names, "channels": e.get("channels")},
    "conversion": _converted,
    "conversion/training-mode": lambda cause, _: {"names": cause.names, "training": "false"},
    "conversion/kernel-reordered": lambda cause, e: {"names": cause.names, "weights_of": e["of"]},
    "labels": lambda _, e: {"classes": e.get("classes")},
    "interface/outputs-exchanged": lambda cause, e: {
        "outputs": dict(zip(cause.names, e["holds"], strict=True))
    },
    "interface/classes-exchanged": lambda _, e: {
        "classes": e["classes"],
        "axis": e.get("axis"),
    },
    "interface/one-class-more": lambda _, e: {"without_class": e["which"], "of": e["side"]},
    "interface/axes": lambda cause, e: {"names": cause.names, "axes": e["axes"]},
    "interface/form": lambda cause, e: {"names": cause.names, "function": e["function"]},
    "interface/boxes": lambda cause, e: {
        "names": cause.names,
        "boxes": e["boxes"],
        "axis": e.get("axis"),
    },
    "interface/units": lambda cause, e: {
        "names": cause.names,
        "factors": e["factors"],
        "axis": e["axis"],
    },
    "accelerator": lambda _, e: {"without": e["accelerator"]},
    "kernels": lambda _, e: dict(e["options"]),
    "batch": lambda *_: {"batch": 1},
    "state": lambda *_: {"reset": "before each input"},
    "resize-rule": lambda _, e: {"resize": e["rule"]},
    "exif": lambda *_: {"orientation": "of the EXIF tag"},
}
