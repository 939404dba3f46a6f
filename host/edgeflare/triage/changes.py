"""What would mend a cause, for programs: settings, orders, operators and values, by name.

Of a preprocessing, and of the order of inputs, the checks themselves state it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from edgeflare.triage.cause import Cause

Change = Mapping[str, Any]


def change_of(cause: Cause) -> Change:
    """Return the change that would mend a cause, as far as its evidence has the values; {}: none is known."""
    make = _CHANGES.get(f"{cause.kind}/{cause.what}") or _CHANGES.get(cause.kind)
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
    "interface/classes-exchanged": lambda _, e: {"classes": e["classes"]},
    "interface/one-class-more": lambda _, e: {"without_class": e["which"], "of": e["side"]},
    "interface/axes": lambda cause, e: {"names": cause.names, "axes": e["axes"]},
    "interface/form": lambda cause, e: {"names": cause.names, "function": e["function"]},
    "interface/boxes": lambda cause, e: {"names": cause.names, "boxes": e["boxes"]},
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
