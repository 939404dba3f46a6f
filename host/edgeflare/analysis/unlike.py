"""In what two devices differ, and so what another answer of theirs can come from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Side: TypeAlias = Literal["hardware", "runtime", "system"]
Cause: TypeAlias = Literal["hardware", "runtime", "hardware or runtime", "system", "unexplained"]

_SYSTEM = frozenset({"kernel", "os", "python", "numpy"})
_HARDWARE = frozenset(
    {
        "board",
        "soc",
        "cpu",
        "cpu_flags",
        "arch",
        "runtime.gpu",
        "runtime.compute_capability",
    }
)


@dataclass(frozen=True)
class Unlike:
    """A field of two devices' fingerprints that differs, as `first` and `second` have it; JSON values.

    A field of the runtime in effect is named ``runtime.threads``. `side` is what it belongs to:
    "hardware" (board, processor, its flags, architecture, GPU), "runtime" (package, version, delegate,
    kernels, threads, options) or "system" (kernel, operating system, Python, numpy).
    """

    field: str
    first: Any
    second: Any
    side: Side

    def named(self, value: Any) -> Any:
        """Return one of the two values as people know it: an Arm processor's name for its part number."""
        from edgeflare.devices.doctor.cpu import shown_name  # devices bring much, as below

        return shown_name(value) if self.field == "cpu" and isinstance(value, str) else value


def what_differs(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[Unlike, ...]:
    """Return each field of two devices' fingerprints that differs, in their order."""
    from edgeflare.devices.likeness import differences  # devices bring much that figures do without

    return tuple(
        Unlike(field, here, there, _side(field))
        for field, here, there in differences(first, second)
    )


def cause_of(found: Iterable[Unlike]) -> Cause:
    """Return what another answer of two devices can come from, by elimination.

    The system is blamed where nothing else differs: the runtime computes the answer on the processor,
    with little of the system's own. "unexplained" where nothing that is known differs.
    """
    sides = {one.side for one in found}
    if {"hardware", "runtime"} <= sides:
        return "hardware or runtime"
    for side in ("hardware", "runtime", "system"):
        if side in sides:
            return side
    return "unexplained"


def _side(field: str) -> Side:
    if field in _HARDWARE:
        return "hardware"
    return "system" if field in _SYSTEM else "runtime"
